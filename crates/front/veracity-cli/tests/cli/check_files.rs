//! `veracity check`: what it writes, and what a stored proof is good for.

use crate::bundle::{write_policy, write_recorded_policy};
use crate::support::Desk;

const CHECK: &str = "check policy --engine embedded";
const RUN: &str = "run policy --engine embedded --mock 0 --steps 1 --require-proof";

fn desk(wrong: f32) -> Desk {
    let desk = Desk::new();
    write_recorded_policy(&desk, wrong);
    desk
}

#[test]
fn nothing_is_written_unless_it_is_asked_for() {
    let desk = desk(0.0);
    let files = || {
        let mut names: Vec<_> = ["", "policy"]
            .iter()
            .flat_map(|folder| std::fs::read_dir(desk.path(folder)).unwrap())
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let (names, description) = (files(), desk.read("policy/policy.yaml"));
    desk.run(CHECK).done();
    assert_eq!((files(), desk.read("policy/policy.yaml")), (names, description));
}

#[test]
fn a_proof_in_the_bundle_is_what_was_answered() {
    let desk = desk(0.0);
    let said = desk.run(&format!("{CHECK} --save --output proof.json --format json")).done();
    assert_eq!(desk.read("proof.json"), said.stdout);
    let stored: serde_json::Value = serde_json::from_str(&desk.read("policy/proof.json")).unwrap();
    assert_eq!(stored, said.json());
    desk.run("verify policy --strict").done();
}

#[test]
fn a_build_server_gets_xml() {
    let desk = desk(0.25);
    assert_eq!(desk.run(&format!("{CHECK} --junit proof.xml")).code, 1);
    let xml = desk.read("proof.xml");
    assert!(xml.contains("<testsuite name=\"rollout\""), "{xml}");
    assert!(xml.contains("<failure message=\"memory/action sample 3: disproved"), "{xml}");
    assert_eq!(desk.run(&format!("{CHECK} --junit again.xml")).code, 1);
    assert_eq!(desk.read("again.xml"), xml);
}

#[test]
fn a_run_that_requires_a_proof_refuses_everything_else() {
    let proved = || {
        let desk = desk(0.0);
        desk.run(&format!("{CHECK} --save")).done();
        desk
    };
    let without = desk(0.0);
    let disproved = desk(0.25);
    assert_eq!(disproved.run(&format!("{CHECK} --save")).code, 1);
    let unknown = Desk::new();
    write_policy(&unknown);
    assert_eq!(unknown.run(&format!("{CHECK} --save")).code, 3);
    let sealed = proved();
    sealed.edit("policy/policy.yaml", "frequency: 50", "frequency: 60");
    let truncated = proved();
    std::fs::write(truncated.path("policy/proof.json"), "{\"schema_version\": \"1.0\"").unwrap();
    for (name, desk, code, finding) in [
        ("proved", proved(), 0, ""),
        ("without", without, 2, "error[VER1101]"),
        ("edited", sealed, 2, "error[VER1102]"),
        ("disproved", disproved, 2, "error[VER1103]"),
        ("inconclusive", unknown, 2, "error[VER1103]"),
        ("truncated", truncated, 2, "error[VER"),
    ] {
        let said = desk.run(RUN);
        assert_eq!(said.code, code, "{name}: {said}");
        assert!(said.stderr.starts_with(finding), "{name}: {said}");
    }
}

#[test]
fn a_damaged_model_is_not_run_whatever_the_proof_says() {
    let desk = desk(0.0);
    desk.run(&format!("{CHECK} --save")).done();
    desk.damage("policy/scale.onnx");
    let said = desk.run(RUN);
    assert_eq!(said.code, 2, "{said}");
    assert!(said.stderr.contains("VER0205"), "{said}");
}
