//! Every command that answers something answers people, programs and pages.

use crate::bundle::{floats, write_episode, write_recorded_policy};
use crate::support::{Desk, Said, python_environment};

/// What is asked, and the exit codes that are an answer to it.
const ASKED: [(&str, &[i32]); 18] = [
    ("inspect policy", &[0]),
    ("draw policy", &[0]),
    ("verify policy", &[0]),
    ("verify policy --robot robot.yaml", &[0, 1, 3]),
    ("check policy --engine embedded", &[1]),
    ("check policy --engine embedded --baseline bad.json", &[0]),
    ("diff bad.json good.json", &[0]),
    ("diff scale.onnx memory.onnx", &[0]),
    ("seal policy", &[0]),
    ("run policy --engine embedded --mock 1 --steps 5", &[0]),
    ("bench policy --engine embedded --steps 5 --warmup 1", &[0]),
    ("compare expected.npz other.npz --atol 0 --rtol 0 --percentiles", &[1]),
    ("drift scale.onnx other.onnx --engine ort --repro fault", &[1]),
    ("rerun fault", &[1]),
    ("report bad.json", &[0]),
    ("transform memory.onnx -o small.onnx --engine ort", &[0]),
    ("bisect memory.onnx --engine ort", &[0]),
    ("passes", &[0]),
];

/// What needs the answer of another command first.
const AFTERWARDS: [(&str, &[i32]); 3] = [
    ("audit small.onnx", &[0]),
    ("reverse small.onnx -o back.onnx", &[0]),
    ("transform policy -o policy_small --engine ort", &[0, 1]),
];

const ROBOT: &str = "\
rate_hz: 50
inputs:
  scale/obs: {kind: state/joint/position, element_names: [knee, hip, ankle]}
";

fn desk() -> Desk {
    let desk = Desk::new();
    write_recorded_policy(&desk, 0.25);
    write_episode(&desk, 3);
    std::fs::write(desk.path("robot.yaml"), ROBOT).unwrap();
    let mut other = veracity_onnx::GraphBuilder::new("scale", 17)
        .input("obs", veracity::tensor::DType::F32, [1, 3])
        .initializer("two", &floats([1], &[2.25]));
    other = other.node(veracity_onnx::Node::new("Mul", ["obs", "two"], ["scaled"]));
    let other = other.output("scaled", veracity::tensor::DType::F32, [1, 3]).finish().unwrap();
    other.write(desk.path("other.onnx")).unwrap();
    desk.run("run policy --engine embedded --mock 1 --steps 3 --outputs other.npz").done();
    desk.run("check policy --engine embedded --output bad.json --save");
    let tolerance = "--tolerance atol=1,rtol=0";
    desk.run(&format!("check policy --engine embedded {tolerance} --output good.json")).done();
    desk
}

/// Runs a command as on a terminal of 80 columns.
fn said(desk: &Desk, asked: &str, format: &str) -> Said {
    // Nothing that was written the time before is in the way.
    for folder in ["fault", "policy_small"] {
        if asked.contains(&format!(" {folder}")) && !asked.starts_with("rerun") {
            let _ = std::fs::remove_dir_all(desk.path(folder));
        }
    }
    let mut command = desk.command(&format!("{asked} --format {format}"));
    command.env("VIRTUAL_ENV", python_environment()).env("COLUMNS", "80");
    Said::from(command)
}

#[test]
fn every_command_answers_in_every_format() {
    let desk = desk();
    for (asked, codes) in ASKED.into_iter().chain(AFTERWARDS) {
        let json = said(&desk, asked, "json");
        assert!(codes.contains(&json.code), "{asked}: {json}");
        assert!(serde_json::from_str::<serde_json::Value>(&json.stdout).is_ok(), "{asked}: {json}");
        let page = said(&desk, asked, "md");
        assert!(codes.contains(&page.code), "{asked}: {page}");
        assert!(page.stdout.starts_with("# "), "{asked}: {page}");
        assert!(!page.stdout.contains('\u{1b}'), "{asked}: {page}");
        let table = said(&desk, asked, "table");
        assert!(codes.contains(&table.code), "{asked}: {table}");
        let long = |line: &&str| line.chars().count() > 80 && !line.contains("error[");
        assert_eq!(table.stdout.lines().find(long), None, "{asked}: {table}");
        assert!(!table.stdout.is_empty(), "{asked}: {table}");
    }
}

#[test]
fn every_command_that_answers_has_a_format() {
    // What answers with a script, hands over, or shows pages has none.
    let others = ["completions", "view"];
    let desk = Desk::new();
    let help = desk.run("--help").stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    for line in commands.lines() {
        let name = line.split_whitespace().next().unwrap();
        let has_format = desk.run(&format!("{name} --help")).stdout.contains("--format <FORMAT>");
        assert_eq!(has_format, !others.contains(&name), "{name}");
        let is_tried = ASKED.iter().chain(&AFTERWARDS).any(|(asked, _)| asked.starts_with(name));
        assert!(is_tried || others.contains(&name) || name == "parity", "{name}");
    }
}

#[test]
fn tables_of_long_names_fit_and_errors_are_not_cut() {
    let desk = Desk::new();
    let long = format!("{}/{}", "encoder_of_the_left_camera".repeat(3), "feature_map".repeat(3));
    let other = format!("{}/{}", "encoder_of_the_left_camera".repeat(3), "attention_map");
    for (file, value) in [("a.npz", 1.0), ("b.npz", 1.5)] {
        let tensor = || floats([1], &[value]);
        desk.tensors(file, [(long.as_str(), tensor()), (other.as_str(), tensor())]);
    }
    let said = desk.run("compare a.npz b.npz --atol 0 --rtol 0");
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{said}");
    for end in ["feature_map", "attention_map"] {
        assert!(said.stdout.contains(end), "{end}: {said}");
    }
    let path = format!("{}.npz", "nowhere".repeat(20));
    let refused = desk.run(&format!("compare a.npz {path} --atol 0 --rtol 0"));
    assert!(refused.stderr.contains(&path), "{refused}");
}
