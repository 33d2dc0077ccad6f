//! `veracity verify`.

use crate::assert_said;
use crate::bundle::write_policy;
use crate::support::Desk;

#[test]
fn a_sound_bundle_is_said_to_be_so_with_what_was_checked() {
    let desk = Desk::new();
    write_policy(&desk);
    assert_said!(desk.run("verify policy"), @"
    exit code 0
    ----- stdout -----
    sound: 3 files hashed, 2 models compared with their ports
    ");
}

#[test]
fn a_changed_byte_is_refused() {
    let desk = Desk::new();
    write_policy(&desk);
    let model = desk.path("policy/scale.onnx");
    let mut bytes = std::fs::read(&model).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&model, bytes).unwrap();
    assert_said!(desk.run("verify policy"), @"
    exit code 1
    ----- stdout -----
    error[VER0205]: `scale.onnx` has SHA-256 [sha256], not the recorded [sha256]
      --> policy/policy.yaml:16:19
       |
    16 |       model_path: scale.onnx
       |                   ^^^^^^^^^^
       = node: scale
       = hint: the file was changed or cut short after the bundle was made: get both anew, or record a deliberate change with `veracity seal`

    refused: 1 error; 3 files hashed, 2 models compared with their ports
    ");
}

#[test]
fn every_problem_of_the_description_is_shown_in_one_run() {
    let desk = Desk::new();
    write_policy(&desk);
    desk.edit("policy/policy.yaml", "float32", "flaot32");
    desk.edit("policy/policy.yaml", "memory/h_next", "memory/h_nxet");
    assert_said!(desk.run("verify policy"), @r#"
    exit code 1
    ----- stdout -----
    error[VER0305]: dtype "flaot32" is not known
     --> policy/policy.yaml:5:14
      |
    5 |       dtype: flaot32
      |              ^^^^^^^
      = hint: did you mean `float32`?

    error[VER0311]: node "memory" has no output "h_nxet"
      --> policy/policy.yaml:51:5
       |
    51 |     memory/h_nxet: [memory/h]
       |     ^^^^^^^^^^^^^
       = port: memory/h_nxet
       = hint: did you mean `h_next`?

    refused: 2 errors; its files were not looked at
    "#);
}

#[test]
fn what_is_not_there_cannot_be_verified() {
    assert_said!(Desk::new().run("verify nowhere"), @"
    exit code 2
    ----- stderr -----
    error[VER0209]: there is no bundle here
     --> nowhere
    ");
    let json = Desk::new().run("verify nowhere --format json");
    assert_eq!((json.code, json.json()["sound"].as_bool()), (2, Some(false)));
}

#[test]
fn warnings_refuse_only_when_asked_to() {
    let desk = Desk::new();
    write_policy(&desk);
    desk.edit("policy/policy.yaml", "1.3", "1.9");
    assert_said!(desk.run("verify policy"), @"
    exit code 0
    ----- stdout -----
    warning[VER0302]: format version 1.9 is not known; 1.1 to 1.3 are
      --> policy/policy.yaml:59:25
       |
    59 |   leapp config version: '1.9'
       |                         ^^^^^
       = hint: it is read as 1.3; what is new in it is not checked

    sound: 1 warning; 3 files hashed, 2 models compared with their ports
    ");
    assert_eq!(desk.run("verify policy --strict").code, 1);
    let json = desk.run("verify policy --format json").done().json();
    assert_eq!(json["diagnostics"][0]["severity"], "warning");
}
