//! `veracity run` when it does not run.

use veracity::tensor::Tensor;

use crate::assert_said;
use crate::bundle::{floats, write_episode, write_policy, write_sum};
use crate::support::Desk;

fn desk() -> Desk {
    let desk = Desk::new();
    write_policy(&desk);
    write_episode(&desk, 6);
    desk
}

#[test]
fn every_problem_of_the_inputs_is_shown_in_one_run() {
    let desk = desk();
    desk.tensors("inputs.npz", [("scale/osb", floats([1, 3], &[0.0; 3]))]);
    assert_said!(desk.run("run policy --engine embedded --inputs inputs.npz"), @r#"
    exit code 2
    ----- stderr -----
    error[VER0702]: there is no input "scale/osb"
     --> inputs.npz
      = hint: did you mean "scale/obs"?

    error[VER0701]: input "scale/obs", float32 [1, 3], was not given
     --> inputs.npz
      = port: scale/obs
    "#);
}

#[test]
fn inputs_that_do_not_fit_are_refused_with_their_code() {
    let desk = desk();
    let row = || floats([1, 3], &[0.0; 3]);
    desk.tensors("double.npz", [("scale/obs", Tensor::from_slice([1, 3], &[0.0; 3]).unwrap())]);
    desk.tensors("wide.npz", [("scale/obs", floats([1, 4], &[0.0; 4]))]);
    desk.tensors("empty.npz", [("scale/obs", floats([0, 1, 3], &[]))]);
    desk.tensors("deep.npz", [("scale/obs", floats([1, 1, 1, 3], &[0.0; 3]))]);
    desk.tensors("computed.npz", [("scale/obs", row()), ("memory/x", row())]);
    let states = floats([2, 1, 3], &[0.0; 6]);
    desk.tensors("states.npz", [("scale/obs", row()), ("memory/h", states)]);
    std::fs::write(desk.path("text.npz"), "no archive").unwrap();
    for (options, code) in [
        ("", "VER0701"),
        ("--inputs double.npz", "VER0703"),
        ("--inputs wide.npz", "VER0704"),
        ("--inputs empty.npz", "VER0704"),
        ("--inputs deep.npz", "VER0704"),
        ("--inputs computed.npz", "VER0708"),
        ("--inputs states.npz", "VER0704"),
        ("--inputs text.npz", "VER0402"),
        ("--inputs gone.npz", "VER0001"),
        ("--inputs episode.csv", "VER0407"),
        ("--inputs episode.npz --steps 7", "VER0707"),
        ("--mock 0 --outputs out.csv", "VER0407"),
        ("--mock 0 --outputs no/such/folder/out.npz", "VER0003"),
        ("--mock 0 --outputs out.npz --steps 1000000000000", "VER0405"),
        ("--inputs double.npz --outputs double.npz", "VER0003"),
        ("--mock 0 --outputs policy/out.npz", "VER0003"),
        ("--mock 0 --outputs policy/../policy/memory.onnx.npz", "VER0003"),
        ("--mock 0 --engine ort --ort-library nowhere", "VER0602"),
        ("--mock 0 --engine torch", "VER0603"),
        ("--mock 0 --device cuda:99", "VER0608"),
    ] {
        let engine = if options.contains("--engine") { "" } else { "--engine embedded" };
        let said = desk.run(&format!("run policy {engine} {options}"));
        assert_eq!(said.code, 2, "{options}: {said}");
        assert!(said.stderr.contains(&format!("error[{code}]")), "{options}: {said}");
        assert!(said.stdout.is_empty(), "{options}: {said}");
    }
}

#[test]
fn episodes_of_different_length_are_refused() {
    let desk = Desk::new();
    write_sum(&desk);
    let episode = |steps: usize| floats([steps, 1, 3], &vec![0.0; steps * 3]);
    desk.tensors("inputs.npz", [("sum/x", episode(2)), ("sum/h", episode(3))]);
    assert_said!(desk.run("run sum --engine embedded --inputs inputs.npz"), @r#"
    exit code 2
    ----- stderr -----
    error[VER0704]: input "sum/h" has 3 steps, but input "sum/x" has 2
     --> inputs.npz
      = port: sum/h
    "#);
}

#[test]
fn a_rate_is_not_made_up() {
    let desk = desk();
    desk.edit("policy/policy.yaml", "frequency: 50", "note: 50");
    assert_said!(desk.run("run policy --engine embedded --mock 0 --rate bundle"), @"
    exit code 2
    ----- stderr -----
    error[VER0707]: the bundle names no frequency
     --> policy/policy.yaml
      = hint: give the rate as a number: `--rate 50`
    ");
}

#[test]
fn a_rate_that_cannot_be_is_a_wrong_argument() {
    assert_said!(desk().run("run policy --mock 0 --rate -1"), @"
    exit code 2
    ----- stderr -----
    error: invalid value '-1' for '--rate <HZ>': must be between 0.001 and 1000000

    For more information, try '--help'.
    ");
}
