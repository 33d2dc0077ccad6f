//! `veracity drift`.

use veracity::tensor::{DType, Tensor};
use veracity_onnx::{GraphBuilder, Model, Node};

use crate::assert_said;
use crate::bundle::floats;
use crate::support::{Desk, Said, python_environment};

/// `y = relu(x * w)`.
fn model(weight: f32) -> Model {
    GraphBuilder::new("net", 20)
        .input("x", DType::F32, [veracity_onnx::Dim::from("batch"), veracity_onnx::Dim::from(2)])
        .initializer("w", &floats([2, 1], &[weight, 1.0]))
        .node(Node::new("MatMul", ["x", "w"], ["product"]))
        .node(Node::new("Relu", ["product"], ["y"]))
        .output("y", DType::F32, [veracity_onnx::Dim::from("batch"), veracity_onnx::Dim::from(1)])
        .finish()
        .unwrap()
}

fn desk() -> Desk {
    let desk = Desk::new();
    model(2.0).write(desk.path("a.onnx")).unwrap();
    model(2.0).write(desk.path("same.onnx")).unwrap();
    model(2.1).write(desk.path("b.onnx")).unwrap();
    let other = GraphBuilder::new("other", 20)
        .input("x", DType::F32, [1_usize, 2])
        .node(Node::new("Abs", ["x"], ["z"]))
        .finish()
        .unwrap();
    other.write(desk.path("other.onnx")).unwrap();
    let renamed = GraphBuilder::new("renamed", 20)
        .input("obs", DType::F32, [1_usize, 2])
        .node(Node::new("Abs", ["obs"], ["y"]))
        .output("y", DType::F32, [1_usize, 2])
        .finish()
        .unwrap();
    renamed.write(desk.path("renamed.onnx")).unwrap();
    std::fs::write(desk.path("text.onnx"), "not a model").unwrap();
    desk.tensors("x.npz", [("x", floats([1, 2], &[1.0, 3.0]))]);
    desk.tensors("nan.npz", [("x", floats([1, 2], &[f32::NAN, 3.0]))]);
    desk
}

fn embedded(desk: &Desk, arguments: &str) -> Said {
    desk.run(&format!("drift {arguments} --engine embedded"))
}

#[test]
fn models_that_compute_the_same_are_proved() {
    let said = embedded(&desk(), "a.onnx same.onnx --dim batch=3");
    assert_said!(said, @"
    exit code 0
    ----- stdout -----
    same.onnx: proved on embedded tract [version] (cpu)
    compared: same.onnx on embedded tract [version] with a.onnx on embedded tract
      [version]
    export: 2 of 2 values compared, 0 part of compared ones, 0 not mapped
    original: 2 of 2 tensors proved, 0 folded into proved (100 %), 0 not mapped

    introduced budget     accumulated   operator  value    module
    0          2.51e-5    0             MatMul    product
    0          2.51e-5    0             Relu      y

    note: inputs were drawn with seed 0: floats from a normal distribution, indices
        over their whole range, bools 0 and 1; batch = 3
    note: the outputs alone were compared on further made-up inputs of many kinds
    2 proved, 0 disproved, 0 not comparable
    ");
}

#[test]
fn the_operator_that_differs_is_named() {
    let said = embedded(&desk(), "a.onnx b.onnx --inputs x.npz");
    assert_said!(said, @"
    exit code 1
    ----- stdout -----
    b.onnx: disproved on embedded tract [version] (cpu)
    compared: b.onnx on embedded tract [version] with a.onnx on embedded tract [version]
    export: 2 of 2 values compared, 0 part of compared ones, 0 not mapped
    original: 1 of 2 tensors proved, 0 folded into proved (50 %), 0 not mapped
    origin: product (MatMul)
        introduces 1.00e-1 at [0, 0], 2.6e3 times its budget of 3.81e-5
        cause: weight_bit_mismatch: `w` differs from the original in 1 of 2
          elements, by up to 1.00e-1 (ruled out: nondeterminism: it gives the same
          again, with 1 and with 2 threads, layout: no order of the axes restores
          agreement)

    introduced budget     accumulated   operator  value    module
    1.00e-1    3.81e-5    1.00e-1     ✗ MatMul    product
    0          3.81e-5    1.00e-1       Relu      y

    error over depth: ▁ is 1.00e-1, █ is 1.00e-1, · is none
    introduced  █·
    accumulated ██
    1 proved, 1 disproved, 0 not comparable
    ");
}

#[test]
fn a_file_beside_itself_says_little_and_that_is_said() {
    let said = embedded(&desk(), "a.onnx a.onnx").done();
    assert!(said.stdout.contains("only says that it repeats itself"), "{said}");
}

#[test]
fn programs_get_everything() {
    let said = embedded(&desk(), "a.onnx b.onnx --inputs x.npz --format json --save drift.json");
    let found = said.json();
    assert_eq!((said.code, &found["verdict"]), (1, &"disproved".into()));
    assert_eq!(found["origin"], "product");
    assert_eq!(found["rows"][1]["verdict"], "proved");
    assert_eq!(found["program"][0]["status"], "disproved");
    assert_eq!(found["rows"][0]["cause"]["kind"], "weight_bit_mismatch");
    let quick = embedded(&desk(), "a.onnx b.onnx --inputs x.npz --format json --no-causes").json();
    assert_eq!(quick["rows"][0].get("cause"), None);
    assert_eq!(quick["rows"][0]["introduced"], found["rows"][0]["introduced"]);
}

#[test]
fn pages_and_reports_are_written_beside_the_answer() {
    let desk = desk();
    let arguments = "a.onnx b.onnx --inputs x.npz --html page.html --report-base drift --format md";
    let said = embedded(&desk, arguments);
    assert_eq!(said.code, 1, "{said}");
    assert!(said.stdout.starts_with("# Drift: b.onnx\n"), "{said}");
    assert!(said.stdout.contains("- cause: weight_bit_mismatch: "), "{said}");
    assert!(desk.read("page.html").starts_with("<!doctype html>"));
    assert!(desk.read("drift.json").contains("\"drift_origin\": \"product\""));
    assert!(desk.read("drift_drift.json").contains("weight_bit_mismatch"));
    assert!(!desk.read("drift.md").is_empty());
    let arguments = "a.onnx b.onnx --inputs x.npz --baseline drift_drift.json --format md";
    let said = embedded(&desk, arguments).done();
    assert!(
        said.stdout.ends_with("## Since the baseline\n\nnothing is worse than in the baseline\n"),
        "{said}"
    );
}

#[test]
fn a_repro_shows_the_fault_again_until_it_is_mended() {
    let desk = desk();
    let said = embedded(&desk, "a.onnx b.onnx --inputs x.npz --repro fault --quiet");
    assert_eq!(said.code, 1, "{said}");
    // The engine is the one that it was made with; there is no other one here.
    assert_said!(desk.run("rerun fault"), @"
    exit code 1
    ----- stdout -----
    product on embedded tract [version]: the fault shows again: off by 1.000e-1,
        3.815e-5 is allowed; the same bits as before
    ");
    let again = desk.run("rerun fault --format json").json();
    assert_eq!((&again["shows"], &again["repeats"]), (&true.into(), &true.into()));
    let mended = Model::read(desk.path("fault/model.onnx")).unwrap();
    let mended = mended.with_constant("w", &floats([2, 1], &[2.0, 1.0]));
    mended.write(desk.path("fault/model.onnx")).unwrap();
    let said = desk.run("rerun fault").done();
    assert!(said.stdout.contains("the fault does not show"), "{said}");
    assert!(said.stdout.contains("other bits than before"), "{said}");
}

#[test]
fn nothing_wrong_leaves_no_repro() {
    let desk = desk();
    embedded(&desk, "a.onnx same.onnx --inputs x.npz --repro fault").done();
    assert!(!desk.path("fault").exists());
}

#[test]
fn what_is_no_repro_is_refused() {
    let desk = desk();
    for arguments in ["rerun gone", "rerun a.onnx", "rerun ."] {
        let said = desk.run(arguments);
        assert_eq!(said.code, 2, "{said}");
        assert!(said.stderr.contains("VER1202"), "{said}");
    }
}

#[test]
fn nothing_in_common_and_nan_are_inconclusive() {
    let desk = desk();
    assert_said!(embedded(&desk, "a.onnx other.onnx"), @r#"
    exit code 3
    ----- stdout -----
    other.onnx: not comparable on embedded tract [version] (cpu)
    compared: other.onnx on embedded tract [version] with a.onnx on embedded tract
      [version]
    export: 0 of 1 value compared, 0 part of compared ones, 1 not mapped
    original: 0 of 2 tensors proved, 0 folded into proved (0 %), 2 not mapped
    reason: no value of the export has a counterpart: nothing was compared
    reason: output "y" of the reference has no counterpart

    not mapped: z (Abs): it feeds no compared value
    not mapped: product (MatMul): nothing that was compared depends on it
    not mapped: y (Relu): nothing that was compared depends on it
    note: inputs were drawn with seed 0: floats from a normal distribution and
        wider, indices over their whole range, bools 0 and 1; batch = 1
    0 proved, 0 disproved, 0 not comparable
    "#);
    let said = desk.run("drift a.onnx same.onnx --inputs nan.npz --engine ort");
    assert_eq!(said.code, 2, "there is no ONNX Runtime here: {said}");
    let mut command = desk.command("drift a.onnx same.onnx --inputs nan.npz --engine ort");
    command.env("VIRTUAL_ENV", python_environment());
    let said = Said::from(command);
    assert_eq!(said.code, 3, "{said}");
    assert!(said.stdout.contains("the original has NaN here"), "{said}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let desk = desk();
    std::fs::write(desk.path("bad.json"), r#"{"rules": [{"opp": "Relu", "budget": 1}]}"#).unwrap();
    std::fs::write(desk.path("rules.json"), r#"{"rules": []}"#).unwrap();
    desk.tensors("wrong.npz", [("y", floats([1, 2], &[1.0, 2.0]))]);
    desk.tensors("shape.npz", [("x", floats([1, 3], &[1.0; 3]))]);
    desk.tensors("ints.npz", [("x", Tensor::from_slice([1, 2], &[1_i64, 2]).unwrap())]);
    for (arguments, code) in [
        ("a.onnx gone.onnx", "VER0001"),
        ("a.onnx text.onnx", "VER0501"),
        ("a.onnx renamed.onnx", "VER1210"),
        ("a.onnx b.onnx --inputs gone.npz", "VER0001"),
        ("a.onnx b.onnx --inputs wrong.npz", "VER0701"),
        ("a.onnx b.onnx --inputs shape.npz", "VER0704"),
        ("a.onnx b.onnx --inputs ints.npz", "VER0703"),
        ("a.onnx b.onnx --dim bach=2", "VER1211"),
        ("a.onnx b.onnx --dim batch=99999999999", "VER0701"),
        ("a.onnx b.onnx --tolerances gone.json", "VER0001"),
        ("a.onnx b.onnx --tolerances bad.json", "VER1212"),
        ("a.onnx b.onnx --baseline bad.json", "VER1213"),
        ("a.onnx b.onnx --save a.onnx", "VER0003"),
        ("a.onnx b.onnx --html b.onnx", "VER0003"),
        ("a.onnx b.onnx --html gone/page.html", "VER0003"),
        ("a.onnx b.onnx --report-base gone/drift", "VER0003"),
        ("a.onnx b.onnx --tolerances rules.json --report-base rules", "VER0003"),
        ("a.onnx b.onnx --repro gone/fault", "VER0003"),
        ("a.onnx b.onnx --repro .", "VER1201"),
        ("a.onnx", "VER0707"),
        ("a.onnx --level all", "VER0606"),
    ] {
        let said = embedded(&desk, arguments);
        assert_eq!(said.code, 2, "{arguments}: {said}");
        assert!(said.stderr.contains(code), "{arguments}: {said}");
        assert_eq!(said.stdout, "", "{arguments}");
    }
}

#[test]
fn tolerances_are_for_the_operators_that_they_name() {
    let desk = desk();
    let rules = r#"{"rules": [{"op": "MatMul", "atol": 0.5}, {"name": "conv*", "budget": 8}]}"#;
    std::fs::write(desk.path("tolerances.json"), rules).unwrap();
    let said = embedded(&desk, "a.onnx b.onnx --inputs x.npz --tolerances tolerances.json").done();
    assert!(said.stdout.contains(r#"rule 2 (name "conv*") holds for no value"#), "{said}");
}

#[test]
fn a_baseline_fails_only_on_what_got_worse() {
    let desk = desk();
    embedded(&desk, "a.onnx same.onnx --inputs x.npz --save good.json").done();
    assert_eq!(embedded(&desk, "a.onnx b.onnx --inputs x.npz --save bad.json").code, 1);
    embedded(&desk, "a.onnx b.onnx --inputs x.npz --baseline bad.json").done();
    let worse = embedded(&desk, "a.onnx b.onnx --inputs x.npz --baseline good.json");
    assert_said!(worse, @"
    exit code 1
    ----- stdout -----
    b.onnx: disproved on embedded tract [version] (cpu)
    compared: b.onnx on embedded tract [version] with a.onnx on embedded tract [version]
    export: 2 of 2 values compared, 0 part of compared ones, 0 not mapped
    original: 1 of 2 tensors proved, 0 folded into proved (50 %), 0 not mapped
    origin: product (MatMul)
        introduces 1.00e-1 at [0, 0], 2.6e3 times its budget of 3.81e-5
        cause: weight_bit_mismatch: `w` differs from the original in 1 of 2
          elements, by up to 1.00e-1 (ruled out: nondeterminism: it gives the same
          again, with 1 and with 2 threads, layout: no order of the axes restores
          agreement)

    introduced budget     accumulated   operator  value    module
    1.00e-1    3.81e-5    1.00e-1     ✗ MatMul    product
    0          3.81e-5    1.00e-1       Relu      y

    error over depth: ▁ is 1.00e-1, █ is 1.00e-1, · is none
    introduced  █·
    accumulated ██
    1 proved, 1 disproved, 0 not comparable

    error[VER1214]: it was proved and is disproved
      = node: product
    error[VER1214]: it accumulates 1.000e-1 where it had 0.000e0
      = node: y
    2 worse than in the baseline
    ");
    let lost = embedded(&desk, "a.onnx other.onnx --baseline good.json --format json");
    assert_eq!((lost.code, &lost.json()["worse"][0]["code"]), (1, &"VER1214".into()));
    assert_eq!(embedded(&desk, "a.onnx other.onnx --save nothing.json").code, 3);
    let still = embedded(&desk, "a.onnx other.onnx --baseline nothing.json");
    assert_eq!(still.code, 3, "nothing to compare is not nothing worse: {still}");
}

#[test]
fn one_model_runs_on_two_engines_and_at_two_levels() {
    let desk = desk();
    for (arguments, part) in [
        ("a.onnx --engine embedded --reference-engine ort", "a.onnx on embedded"),
        ("a.onnx --level extended --engine ort", "optimised at level extended, 2 of 2 values"),
        ("a.onnx --reference-level all --engine ort", "with a.onnx on ort"),
    ] {
        let mut command = desk.command(&format!("drift {arguments}"));
        command.env("VIRTUAL_ENV", python_environment());
        let said = Said::from(command).done();
        assert!(said.stdout.contains(part), "{said}");
    }
}
