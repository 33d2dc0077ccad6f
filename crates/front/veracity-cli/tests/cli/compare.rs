//! `veracity compare`.

use veracity::tensor::Tensor;

use crate::assert_said;
use crate::bundle::floats;
use crate::support::Desk;

fn desk() -> Desk {
    let desk = Desk::new();
    let integers = |values: &[i64]| Tensor::from_slice([values.len()], values).unwrap();
    let reference = floats([2, 2], &[1.0, 2.0, 3.0, 4.0]);
    desk.tensors("reference.npz", [("a/x", reference.clone()), ("a/n", integers(&[1, 2]))]);
    let close = floats([2, 2], &[1.0, 2.0, 3.000_001, 4.0]);
    desk.tensors("close.safetensors", [("a/x", close), ("a/n", integers(&[1, 2]))]);
    let far = floats([2, 2], &[1.0, f32::NAN, 3.5, 4.0]);
    desk.tensors("far.npz", [("a/x", far), ("a/n", integers(&[1, 3]))]);
    desk.tensors(
        "more.npz",
        [("a/x", reference), ("a/y", integers(&[1])), ("a/n", integers(&[1, 2]))],
    );
    desk.tensors("reshaped.npz", [("a/x", floats([4], &[1.0, 2.0, 3.0, 4.0]))]);
    desk.tensors("nan.npz", [("x", floats([2], &[f32::NAN, 1.0]))]);
    desk
}

#[test]
fn tensors_within_the_tolerance_are_proved() {
    let said = desk().run("compare reference.npz close.safetensors --atol 1e-5 --rtol 0");
    assert_said!(said, @"
    exit code 0
    ----- stdout -----
    name  verdict   max abs   max rel       rms  outside
    a/x   proved   9.537e-7  3.179e-7  4.768e-7      0/4
      worst at [1, 0]: reference 3, candidate 3.0000009536743164
    a/n   proved          0         0         0      0/2

    2 proved, 0 disproved, 0 not comparable
    ");
}

#[test]
fn tensors_outside_of_the_tolerance_are_disproved_worst_first() {
    let said = desk().run("compare reference.npz far.npz --atol 1e-5 --rtol 0 --percentiles");
    assert_said!(said, @"
    exit code 1
    ----- stdout -----
    name  verdict    max abs  max rel     rms  outside
    a/n   disproved        1      0.5  0.7071      1/2
      worst at [1]: reference 2, candidate 3
      abs error: p50 0.5, p75 0.75, p90 0.9, p99 0.99, p99.5 0.995
      integers and bools must be equal
    a/x   disproved      0.5   0.1667  0.2887      1/4
      worst at [1, 0]: reference 3, candidate 3.5
      NaN/Inf: reference 0/0, candidate 1/0; 1 without a match, first at [0, 1]
      abs error: p50 0, p75 0.25, p90 0.4, p99 0.49, p99.5 0.495
      finite values would pass with --atol 0.5 --rtol 0

    0 proved, 2 disproved, 0 not comparable
    ");
}

#[test]
fn a_tensor_on_one_side_only_is_never_proved() {
    let said = desk().run("compare reference.npz more.npz --atol 0 --rtol 0");
    assert_said!(said, @r#"
    exit code 3
    ----- stdout -----
    name  verdict         max abs  max rel  rms  outside
    a/y   not comparable
      "a/y" exists in the candidate only
    a/n   proved                0        0    0      0/2
    a/x   proved                0        0    0      0/4

    2 proved, 0 disproved, 1 not comparable
    "#);
}

#[test]
fn another_shape_is_disproved() {
    let said = desk().run("compare reference.npz reshaped.npz --atol 0 --rtol 0");
    assert_said!(said, @r#"
    exit code 1
    ----- stdout -----
    name  verdict
    a/x   disproved
      the reference has shape [2, 2], the candidate [4]
    a/n   not comparable
      "a/n" exists in the reference only

    0 proved, 1 disproved, 1 not comparable
    "#);
}

#[test]
fn nan_is_accepted_only_when_asked_for() {
    let desk = desk();
    let compare = "compare nan.npz nan.npz --atol 1 --rtol 1";
    assert_said!(desk.run(compare), @"
    exit code 1
    ----- stdout -----
    name  verdict    max abs  max rel  rms  outside
    x     disproved        0        0    0      0/2
      NaN/Inf: reference 1/0, candidate 1/0; all match, `--equal-nan` accepts them

    0 proved, 1 disproved, 0 not comparable
    ");
    assert_eq!(desk.run(&format!("{compare} --equal-nan")).code, 0);
}

#[test]
fn programs_get_every_number() {
    let said = desk().run("compare reference.npz far.npz --atol 0 --rtol 0 --format json");
    let found = said.json();
    assert_eq!((said.code, &found["verdict"]), (1, &"disproved".into()));
    assert_eq!(found["rows"][0]["name"], "a/n");
    assert_eq!(found["rows"][1]["measurement"]["worst"]["candidate"], 3.5);
}

#[test]
fn a_file_that_cannot_be_read_gives_no_verdict() {
    assert_said!(desk().run("compare reference.npz gone.npz --atol 0 --rtol 0"), @"
    exit code 2
    ----- stderr -----
    error[VER0001]: the file does not exist
     --> gone.npz
    ");
}
