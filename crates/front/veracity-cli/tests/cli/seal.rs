//! `veracity seal`.

use crate::assert_said;
use crate::bundle::{write_policy, write_recorded_policy};
use crate::support::Desk;

fn proved() -> Desk {
    let desk = Desk::new();
    write_recorded_policy(&desk, 0.0);
    desk.run("check policy --engine embedded --save").done();
    desk
}

/// The model of another bundle, which computes something else.
fn swap_model(desk: &Desk) {
    let mut bytes = std::fs::read(desk.path("policy/scale.onnx")).unwrap();
    let two = 2.0_f32.to_le_bytes();
    let position = bytes.windows(4).position(|part| part == two).unwrap();
    bytes[position..position + 4].copy_from_slice(&3.0_f32.to_le_bytes());
    std::fs::write(desk.path("policy/scale.onnx"), bytes).unwrap();
}

#[test]
fn a_bundle_that_was_not_changed_keeps_its_proof() {
    let desk = proved();
    assert_said!(desk.run("seal policy"), @"
    exit code 0
    ----- stdout -----
    sealed: every file is as it was recorded
    proof: good
    ");
    desk.run("run policy --engine embedded --mock 0 --steps 1 --require-proof").done();
}

#[test]
fn a_changed_model_makes_the_proof_stale_until_it_is_proved_again() {
    let desk = proved();
    swap_model(&desk);
    assert_eq!(desk.run("verify policy").code, 1);
    assert_said!(desk.run("seal policy"), @"
    exit code 0
    ----- stdout -----
    sealed: 1 file recorded anew
      scale.onnx
    proof: stale: `scale.onnx` is not the file that was proved
    hint: prove it with `veracity check policy --save`
    ");
    desk.run("verify policy --strict").done();
    let said = desk.run("run policy --engine embedded --mock 0 --steps 1 --require-proof");
    assert_eq!(said.code, 2, "{said}");
    assert!(said.stderr.starts_with("error[VER1102]"), "{said}");
    assert_eq!(desk.run("check policy --engine embedded").code, 1, "it computes something else");
    desk.run("check policy --engine embedded --record --replace --save").done();
    let said = desk.run("run policy --engine embedded --mock 0 --steps 1 --require-proof");
    assert!(said.stderr.starts_with("error[VER1103]"), "a run of itself proves nothing: {said}");
}

#[test]
fn a_bundle_without_proof_is_told_how_to_get_one() {
    let desk = Desk::new();
    write_policy(&desk);
    assert_said!(desk.run("seal policy"), @"
    exit code 0
    ----- stdout -----
    sealed: every file is as it was recorded
    proof: missing
    hint: prove it with `veracity check policy --save`
    ");
    let json = desk.run("seal policy --format json").done().json();
    assert_eq!((&json["proof"], &json["changed"]), (&"missing".into(), &serde_json::json!([])));
}

#[test]
fn programs_are_told_which_files_changed() {
    let desk = proved();
    swap_model(&desk);
    let json = desk.run("seal policy --format json").done().json();
    assert_eq!(json["changed"], serde_json::json!(["scale.onnx"]));
    assert_eq!(json["proof"], "stale");
}

#[test]
fn what_is_no_bundle_is_not_sealed() {
    let said = Desk::new().run("seal nowhere");
    assert_eq!(said.code, 2, "{said}");
    assert!(said.stderr.starts_with("error[VER0209]"), "{said}");
}
