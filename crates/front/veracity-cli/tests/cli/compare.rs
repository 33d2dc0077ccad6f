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
    assert_said!(said, @"");
}

#[test]
fn tensors_outside_of_the_tolerance_are_disproved_worst_first() {
    let said = desk().run("compare reference.npz far.npz --atol 1e-5 --rtol 0 --percentiles");
    assert_said!(said, @"");
}

#[test]
fn a_tensor_on_one_side_only_is_never_proved() {
    let said = desk().run("compare reference.npz more.npz --atol 0 --rtol 0");
    assert_said!(said, @"");
}

#[test]
fn another_shape_is_disproved() {
    let said = desk().run("compare reference.npz reshaped.npz --atol 0 --rtol 0");
    assert_said!(said, @"");
}

#[test]
fn nan_is_accepted_only_when_asked_for() {
    let desk = desk();
    let compare = "compare nan.npz nan.npz --atol 1 --rtol 1";
    assert_said!(desk.run(compare), @"");
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
    assert_said!(desk().run("compare reference.npz gone.npz --atol 0 --rtol 0"), @"");
}
