//! `veracity verify --robot`, and `veracity run --map`.

use veracity::tensor::file;
use veracity_onnx::{GraphBuilder, Node};

use crate::assert_said;
use crate::bundle::floats;
use crate::support::{Desk, Said};
use crate::walker::{OBSERVED, action, of_robot, write_values, write_walker};

fn desk() -> Desk {
    let desk = Desk::new();
    write_walker(&desk, true);
    desk
}

fn codes(said: &Said) -> Vec<String> {
    let json = said.json();
    let found = json["robot"]["diagnostics"].as_array().unwrap();
    found.iter().map(|found| found["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn another_order_is_told_with_its_permutation_and_the_map_is_written() {
    let desk = desk();
    assert_said!(desk.run("verify walker --robot robot.yaml --write-map map.yaml"), @"");
    assert_said!(desk.read("map.yaml"), @"");
}

#[test]
fn the_map_brings_the_robots_episode_through_the_bundle_and_back() {
    let desk = desk();
    desk.run("verify walker --robot robot.yaml --write-map map.yaml");
    let observed = OBSERVED.map(of_robot).concat();
    desk.tensors("robot.npz", [("policy/obs", floats([3, 1, 3], &observed))]);
    desk.run("run walker --engine embedded --inputs robot.npz --map map.yaml --outputs out.npz")
        .done();
    let expected = OBSERVED.map(action).map(of_robot).concat();
    let outputs = file::read(desk.path("out.npz")).unwrap();
    assert_eq!(outputs["policy/action"], floats([3, 1, 3], &expected));
    desk.run("run walker --engine embedded --inputs robot.npz --outputs out.npz").done();
    let outputs = file::read(desk.path("out.npz")).unwrap();
    assert_ne!(outputs["policy/action"], floats([3, 1, 3], &expected), "it takes the map");
}

#[test]
fn a_map_for_other_names_is_refused() {
    let desk = desk();
    desk.run("verify walker --robot robot.yaml --write-map map.yaml");
    desk.edit("map.yaml", "[hip, knee, ankle]", "[hip, elbow, ankle]");
    desk.edit("map.yaml", "[ankle, hip, knee]", "[ankle, hip, elbow]");
    assert_said!(desk.run("run walker --engine embedded --mock 0 --map map.yaml"), @"");
}

#[test]
fn a_robot_that_agrees_is_said_to_with_what_was_not_compared() {
    let desk = desk();
    desk.edit("robot.yaml", "[ankle, hip, knee]", "[hip, knee, ankle]");
    desk.edit("robot.yaml", ", units: rad}\noutputs", "}\noutputs");
    assert_said!(desk.run("verify walker --robot robot.yaml"), @"");
    let json = desk.run("verify walker --robot robot.yaml --format json").done().json();
    assert_eq!(json["robot"]["agrees"], true);
    assert_eq!(json["robot"]["rows"][0]["status"], "unchecked");
    assert_eq!(json["sound"], true);
}

#[test]
fn differences_refuse_and_warnings_only_when_asked_to() {
    for (from, to, code, expected) in [
        ("rate_hz: 50", "rate_hz: 100", 1, "VER1418"),
        ("hip: 20", "hip: 25", 1, "VER1419"),
        ("units: rad}\noutputs", "units: deg}\noutputs", 1, "VER1416"),
        ("state/joint/position", "state/joint/velocity", 1, "VER1417"),
        ("policy/action:", "policy/actions:", 1, "VER1412"),
        ("inputs:\n", "inputs:\n  camera:\n", 0, "VER1412"),
    ] {
        let desk = desk();
        desk.edit("robot.yaml", "[ankle, hip, knee]", "[hip, knee, ankle]");
        desk.edit("robot.yaml", from, to);
        let said = desk.run("verify walker --robot robot.yaml --format json");
        assert_eq!((said.code, codes(&said)[0].as_str()), (code, expected), "{to}: {said}");
        assert_eq!(desk.run("verify walker --robot robot.yaml --strict").code, 1, "{to}");
    }
    let desk = desk();
    desk.edit("robot.yaml", "[ankle, hip, knee]", "[hip, knee, ankle]");
    desk.edit("robot.yaml", "hip: 20", "hip: 20.1");
    assert_eq!(desk.run("verify walker --robot robot.yaml").code, 1);
    desk.run("verify walker --robot robot.yaml --gain-rtol 0.01").done();
}

#[test]
fn a_robot_that_says_nothing_is_inconclusive_and_one_that_cannot_be_read_is_no_answer() {
    let desk = desk();
    std::fs::write(desk.path("robot.yaml"), "robot: silent\n").unwrap();
    let said = desk.run("verify walker --robot robot.yaml");
    assert_eq!(said.code, 3, "{said}");
    std::fs::write(desk.path("robot.yaml"), "rat_hz: 50\n").unwrap();
    assert_said!(desk.run("verify walker --robot robot.yaml"), @"");
    assert_eq!(desk.run("verify walker --robot nowhere.yaml").code, 2);
    assert_eq!(desk.run("verify walker --robot robot.yaml --write-map walker/map.yaml").code, 2);
    assert_eq!(desk.run("verify walker --robot robot.yaml --write-map robot.yaml").code, 2);
}

#[test]
fn recorded_values_confirm_the_order_of_the_names() {
    let desk = desk();
    write_values(&desk, OBSERVED, of_robot);
    let said = desk.run("verify walker --robot robot.yaml --values values.npz --format json");
    assert_eq!(codes(&said), ["VER1415", "VER1415"], "{said}");
    let values: Vec<_> = said.json()["robot"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["aspect"] == "values")
        .map(|row| row["status"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(values, ["agrees", "agrees"]);
}

#[test]
fn values_that_agree_only_in_another_order_give_a_map_where_there_are_no_names() {
    let desk = Desk::new();
    write_walker(&desk, false);
    std::fs::write(desk.path("robot.yaml"), "rate_hz: 50\n").unwrap();
    write_values(&desk, OBSERVED, of_robot);
    let said =
        desk.run("verify walker --robot robot.yaml --values values.npz --write-map map.yaml");
    assert_said!(said, @"");
    let observed = OBSERVED.map(of_robot).concat();
    desk.tensors("robot.npz", [("policy/obs", floats([3, 1, 3], &observed))]);
    desk.run("run walker --engine embedded --inputs robot.npz --map map.yaml --outputs out.npz")
        .done();
    let outputs = file::read(desk.path("out.npz")).unwrap();
    let expected = OBSERVED.map(action).map(of_robot).concat();
    assert_eq!(outputs["policy/action"], floats([3, 1, 3], &expected));
}

#[test]
fn names_and_values_that_contradict_each_other_give_no_map() {
    let desk = desk();
    desk.edit("robot.yaml", "[ankle, hip, knee]", "[hip, knee, ankle]");
    write_values(&desk, OBSERVED, of_robot);
    let command = "verify walker --robot robot.yaml --values values.npz --write-map map.yaml";
    let said = desk.run(command);
    assert_eq!(said.code, 1);
    assert!(said.stdout.contains("say another order: one of them is wrong"), "{said}");
    assert!(said.stdout.contains("no map was written"), "{said}");
    assert!(!desk.path("map.yaml").exists());
    // The names say that the order differs; the values come as the bundle has them.
    let desk = self::desk();
    write_values(&desk, OBSERVED, |values| values);
    let said = desk.run(&format!("{command} --format json"));
    assert_eq!(codes(&said), ["VER1415", "VER1415", "VER1421", "VER1421"], "{said}");
    assert!(!desk.path("map.yaml").exists());
}

#[test]
fn values_that_do_not_decide_or_do_not_fit_are_told() {
    let desk = Desk::new();
    write_walker(&desk, false);
    std::fs::write(desk.path("robot.yaml"), "rate_hz: 50\n").unwrap();
    let command = "verify walker --robot robot.yaml --values values.npz --format json";
    let mut other = OBSERVED;
    other[1][2] += 0.5;
    write_values(&desk, other, of_robot);
    assert_eq!(codes(&desk.run(command)), ["VER1422", "VER1422"]);
    let near = desk.run(&format!("{command} --atol 60"));
    assert_ne!(codes(&near)[0], "VER1422", "a tolerance that covers the difference");
    desk.tensors("values.npz", [("policy/obs", floats([3], &[0.0; 3]))]);
    assert_eq!(codes(&desk.run(command)), ["VER1420"]);
    desk.tensors("values.npz", [("policy/observed", floats([1, 3], &[0.0; 3]))]);
    assert_eq!(codes(&desk.run(command)), ["VER1412"]);
    // Of the first pass alone, in which hip and ankle are alike.
    desk.tensors("values.npz", [("obs", floats([1, 3], &of_robot(OBSERVED[0])))]);
    let said = desk.run(command);
    assert_eq!((said.code, codes(&said)), (1, vec!["VER1421".to_owned()]), "{said}");
}

#[test]
fn metadata_speaks_for_a_bundle_that_says_nothing_and_for_a_robot() {
    let desk = Desk::new();
    write_walker(&desk, false);
    let said = desk.run("verify walker --robot robot.yaml --format json");
    let all = codes(&said);
    assert_eq!(all.iter().filter(|code| *code == "VER1415").count(), 2, "{said}");
    let robot = GraphBuilder::new("policy", 17)
        .input("obs", veracity::tensor::DType::F32, [1, 3])
        .node(Node::new("Identity", ["obs"], ["action"]))
        .output("action", veracity::tensor::DType::F32, [1, 3])
        .metadata("joint_names", "hip,knee,ankle")
        .metadata("joint_stiffness", "20.000,30.000,41.000")
        .finish()
        .unwrap();
    robot.write(desk.path("robot.onnx")).unwrap();
    assert_said!(desk.run("verify walker --robot robot.onnx"), @"");
}
