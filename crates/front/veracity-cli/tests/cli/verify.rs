//! `veracity verify`.

use crate::assert_said;
use crate::bundle::write_policy;
use crate::support::Desk;

#[test]
fn a_sound_bundle_is_said_to_be_so_with_what_was_checked() {
    let desk = Desk::new();
    write_policy(&desk);
    assert_said!(desk.run("verify policy"), @"");
}

#[test]
fn a_changed_byte_is_refused() {
    let desk = Desk::new();
    write_policy(&desk);
    let model = desk.path("policy/scale.onnx");
    let mut bytes = std::fs::read(&model).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&model, bytes).unwrap();
    assert_said!(desk.run("verify policy"), @"");
}

#[test]
fn every_problem_of_the_description_is_shown_in_one_run() {
    let desk = Desk::new();
    write_policy(&desk);
    desk.edit("policy/policy.yaml", "float32", "flaot32");
    desk.edit("policy/policy.yaml", "memory/h_next", "memory/h_nxet");
    assert_said!(desk.run("verify policy"), @"");
}

#[test]
fn what_is_not_there_cannot_be_verified() {
    assert_said!(Desk::new().run("verify nowhere"), @"");
    let json = Desk::new().run("verify nowhere --format json");
    assert_eq!((json.code, json.json()["sound"].as_bool()), (2, Some(false)));
}

#[test]
fn warnings_refuse_only_when_asked_to() {
    let desk = Desk::new();
    write_policy(&desk);
    desk.edit("policy/policy.yaml", "1.3", "1.9");
    assert_said!(desk.run("verify policy"), @"");
    assert_eq!(desk.run("verify policy --strict").code, 1);
    let json = desk.run("verify policy --format json").done().json();
    assert_eq!(json["diagnostics"][0]["severity"], "warning");
}
