//! `veracity check` when it gives no answer.

use crate::assert_said;
use crate::bundle::{floats, write_policy, write_recorded_policy};
use crate::support::Desk;

/// A proved bundle.
fn desk() -> Desk {
    let desk = Desk::new();
    write_recorded_policy(&desk, 0.0);
    desk.run("check policy --engine embedded --save").done();
    desk
}

#[test]
fn what_cannot_be_answered_is_refused_with_code_and_reason() {
    let desk = desk();
    std::fs::create_dir(desk.path("folder")).unwrap();
    std::fs::write(desk.path("truncated.json"), &desk.read("policy/proof.json")[..700]).unwrap();
    std::fs::copy(desk.path("policy/proof.json"), desk.path("newer.json")).unwrap();
    desk.edit("newer.json", "\"1.1\"", "\"2.0\"");
    std::fs::write(desk.path("other.json"), "[1, 2]").unwrap();
    let other = "--tolerance atol=1,rtol=1";
    for (options, code, part) in [
        ("--tolerance memory/actoin:atol=1,rtol=1", "VER1112", "did you mean \"memory/action\"?"),
        ("--tolerance auto", "VER1113", "no derived tolerances"),
        (&format!("{other} {other}"), "VER0707", "for every port"),
        (&format!("{other} --tolerance auto"), "VER0707", "for every port"),
        (
            "--tolerance memory/action:atol=1,rtol=1 --tolerance memory/action:atol=1,rtol=0",
            "VER0707",
            "\"memory/action\"",
        ),
        ("--rejudge --tolerance memory/actoin:atol=1,rtol=1", "VER1112", "memory/action"),
        ("--rejudge --tolerance auto", "VER1113", "no derived tolerances"),
        ("--baseline gone.json", "VER0002", "gone.json"),
        ("--baseline truncated.json", "VER1104", "truncated.json"),
        ("--baseline newer.json", "VER1104", "version \"2.0\""),
        ("--baseline other.json", "VER1104", "other.json"),
        ("--baseline folder", "VER0209", "no bundle"),
        ("--output folder", "VER0003", "not a regular file"),
        ("--output nowhere/proof.json", "VER0003", "does not exist"),
        ("--output policy/copy.json", "VER0003", "inside of the bundle"),
        ("--output /proc/proof.json", "VER0003", "/proc/proof.json"),
        ("--junit nowhere/proof.xml", "VER0003", "does not exist"),
        ("--record", "VER0005", "samples from the Python code"),
    ] {
        let engine = if options.contains("--rejudge") { "" } else { "--engine embedded" };
        let said = desk.run(&format!("check policy {engine} {options}"));
        assert_eq!(said.code, 2, "{options}: {said}");
        assert_eq!(said.stdout, "", "{options}");
        assert!(said.stderr.starts_with(&format!("error[{code}]")), "{options}: {said}");
        assert!(said.stderr.contains(part), "{options}: {said}");
    }
}

#[test]
fn a_bundle_that_is_not_sound_is_not_checked() {
    let desk = desk();
    desk.damage("policy/scale.onnx");
    for options in ["--engine embedded", "--rejudge --equal-nan"] {
        let said = desk.run(&format!("check policy {options}"));
        assert_eq!(said.code, 2, "{options}: {said}");
        assert!(said.stderr.starts_with("error[VER0205]"), "{options}: {said}");
    }
    assert_said!(desk.run("check nowhere"), @"
    exit code 2
    ----- stderr -----
    error[VER0209]: there is no bundle here
     --> nowhere
    ");
}

#[test]
fn what_was_measured_on_other_files_is_not_judged_again() {
    let desk = desk();
    desk.edit("policy/policy.yaml", "frequency: 50", "frequency: 60");
    assert_said!(desk.run("check policy --rejudge --equal-nan"), @"
    exit code 2
    ----- stderr -----
    error[VER1102]: the proof is stale: nodes, ports, wiring or settings are not those that were proved
     --> policy/policy.yaml
      = hint: check it without `--rejudge`
    ");
}

#[test]
fn there_is_nothing_to_judge_again_without_a_proof() {
    let desk = Desk::new();
    write_policy(&desk);
    assert_said!(desk.run("check policy --rejudge --equal-nan"), @"
    exit code 2
    ----- stderr -----
    error[VER1101]: the bundle has no proof
     --> policy/policy.yaml
      = hint: `veracity check --save` makes one
    ");
}

#[test]
fn a_proof_that_cannot_be_stored_is_told() {
    let desk = Desk::new();
    write_recorded_policy(&desk, 0.0);
    std::fs::create_dir(desk.path("policy/proof.json")).unwrap();
    let said = desk.run("check policy --engine embedded --save");
    assert_eq!(said.code, 2, "{said}");
    assert!(said.stderr.starts_with("error[VER0003]"), "{said}");
    assert!(desk.run("verify policy").done().stdout.starts_with("sound"));
}

#[test]
fn a_recorded_episode_starts_from_the_bundles_own_values() {
    let desk = Desk::new();
    write_policy(&desk);
    let zeros = floats([1, 3], &[0.0; 3]);
    desk.tensors("inputs.npz", [("scale/obs", zeros.clone()), ("memory/h", zeros)]);
    assert_said!(desk.run("check policy --engine embedded --record --inputs inputs.npz"), @r#"
    exit code 2
    ----- stderr -----
    error[VER0708]: "memory/h" is a feedback input: a recorded episode starts from the bundle's initial values
     --> inputs.npz
      = hint: leave it out of the file
    "#);
    let said = desk.run("check policy --engine embedded --record --inputs gone.npz");
    assert_eq!(said.code, 2, "{said}");
    assert!(said.stderr.starts_with("error[VER0001]"), "{said}");
}
