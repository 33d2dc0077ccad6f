//! What checks promise: what is wrong goes alone or with its pass, what could not be run is never
//! proved, and the same checks give the same report.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "support/rewriter.rs"]
mod rewriter;
mod support;

use std::collections::BTreeMap;

use rewriter::Rewriter;
use veracity_diag::codes;
use veracity_onnx::{Graph, GraphBuilder, Model, Node, Patch, Weight};
use veracity_results::{RewriteChecks, Verdict};
use veracity_tensor::{DType, Tensor};
use veracity_transform::judge::{CheckOptions, InputSet, Inputs, OnFail, Unchecked, Validation};
use veracity_transform::{Class, Found, Limits, Pass, Pipeline, Transformed, View};

type Find = fn(&View<'_>, &mut Found);

fn run(
    finds: &[(&'static str, Find)],
    model: &Model,
    options: CheckOptions,
) -> veracity_diag::Result<(Transformed, RewriteChecks)> {
    let pass = |(name, find): &(&'static str, Find)| -> Box<dyn Pass> {
        Box::new(Rewriter { name, class: Class::ExactBits, find: *find })
    };
    let pipeline = Pipeline::new(finds.iter().map(pass).collect());
    let limits = Limits { rounds: 1, sweeps: 1, ..Limits::default() };
    pipeline.run_checked(Graph::new(model.clone()).unwrap(), limits, support::ort(), options)
}

fn validating(validation: Validation, on_fail: OnFail) -> CheckOptions {
    CheckOptions { validation, on_fail, ..CheckOptions::default() }
}

/// `y = Tanh(Relu(Neg(x)))`
fn chain() -> Model {
    GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [4_usize])
        .node(Node::new("Neg", ["x"], ["a"]))
        .node(Node::new("Relu", ["a"], ["b"]))
        .node(Node::new("Tanh", ["b"], ["y"]))
        .output("y", DType::F32, [4_usize])
        .finish()
        .unwrap()
}

fn exchange(view: &View<'_>, found: &mut Found, was: &'static str, is: &str) {
    for (id, node) in view.nodes_of(was) {
        let (given, value) = (node.input(0).unwrap(), node.output(0).unwrap());
        let patch = Patch::because("the same").remove(id).insert(Node::new(is, [given], [value]));
        found.propose(id, patch);
    }
}

fn wrong(view: &View<'_>, found: &mut Found) {
    exchange(view, found, "Relu", "Abs");
}

/// `0 - x` is `-x`, but for the sign of zero.
fn right(view: &View<'_>, found: &mut Found) {
    for (id, node) in view.nodes_of("Neg") {
        let (given, value) = (node.input(0).unwrap(), node.output(0).unwrap());
        let patch = Patch::because("times minus one")
            .weight("minus", Weight::from_floats(DType::F32, &[], &[-1.0]).unwrap())
            .remove(id)
            .insert(Node::new("Mul", [given, "minus"], [value]));
        found.propose(id, patch);
    }
}

const BOTH: &[(&str, Find)] = &[("right", right), ("wrong", wrong)];

fn kept(done: &Transformed) -> Vec<&'static str> {
    done.rewrites.iter().map(|rewrite| rewrite.pass).collect()
}

#[test]
fn what_is_wrong_goes_and_the_rest_stays() {
    for validation in [Validation::Local, Validation::Pass] {
        let (done, checks) = run(BOTH, &chain(), validating(validation, OnFail::Rollback)).unwrap();
        assert_eq!(kept(&done), ["right"], "{validation:?}");
        assert_eq!(done.rejected.len(), 1, "{validation:?}");
        assert_eq!(checks.verdict, Verdict::Proved, "{validation:?} {checks:?}");
    }
}

#[test]
fn at_the_end_all_goes() {
    let (done, checks) =
        run(BOTH, &chain(), validating(Validation::Final, OnFail::Rollback)).unwrap();
    assert!(done.rewrites.is_empty());
    assert_eq!(done.rejected.len(), 2);
    assert_eq!(checks.notes.len(), 1);
    assert_eq!(support::lines(&done.graph), support::lines(&Graph::new(chain()).unwrap()));
}

#[test]
fn what_is_wrong_may_be_refused_or_kept_and_told() {
    for validation in [Validation::Local, Validation::Pass, Validation::Final] {
        let refused = run(BOTH, &chain(), validating(validation, OnFail::Raise)).unwrap_err();
        assert_eq!(refused.first_error().code, codes::REWRITE_WRONG, "{validation:?}");
        let (done, checks) = run(BOTH, &chain(), validating(validation, OnFail::Keep)).unwrap();
        assert_eq!(kept(&done), ["right", "wrong"], "{validation:?}");
        assert_eq!(checks.verdict, Verdict::Disproved, "{validation:?}");
    }
}

#[test]
fn what_was_not_checked_is_not_proved() {
    let (done, checks) =
        run(BOTH, &chain(), validating(Validation::Off, OnFail::Rollback)).unwrap();
    assert_eq!(kept(&done), ["right", "wrong"]);
    assert_eq!(checks.verdict, Verdict::NotComparable);
}

#[test]
fn only_the_wrong_one_of_a_sweep_goes() {
    let model = GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [4_usize])
        .node(Node::new("Abs", ["x"], ["a"]))
        .node(Node::new("Relu", ["a"], ["b"]))
        .node(Node::new("Relu", ["x"], ["c"]))
        .node(Node::new("Add", ["b", "c"], ["y"]))
        .output("y", DType::F32, [4_usize])
        .finish()
        .unwrap();
    // After Abs a rectifier does nothing; the context says so.
    let drop = |view: &View<'_>, found: &mut Found| {
        for (id, node) in view.nodes_of("Relu") {
            let (given, value) = (node.input(0).unwrap(), node.output(0).unwrap());
            let patch = Patch::because("positive").remove(id).replace(value, given);
            found.propose(
                id,
                match view.graph().producer(given) {
                    Some((context, _)) => patch.context(context),
                    None => patch,
                },
            );
        }
    };
    let (done, checks) = run(&[("drop", drop)], &model, CheckOptions::default()).unwrap();
    assert_eq!(done.rewrites.len(), 1);
    assert_eq!(done.rewrites[0].value, "b");
    assert_eq!(checks.verdict, Verdict::Proved, "{checks:?}");
    let told: Vec<(bool, Verdict)> =
        checks.rewrites.iter().map(|check| (check.kept, check.verdict)).collect();
    assert_eq!(told, [(false, Verdict::Disproved), (true, Verdict::Proved)]);
}

#[test]
fn what_disagrees_with_itself_is_not_blamed_and_not_proved() {
    let model = GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [4_usize])
        .node(Node::new("RandomNormalLike", ["x"], ["r"]))
        .node(Node::new("Add", ["x", "r"], ["y"]))
        .output("y", DType::F32, [4_usize])
        .finish()
        .unwrap();
    let same = |view: &View<'_>, found: &mut Found| {
        exchange(view, found, "RandomNormalLike", "RandomNormalLike");
    };
    let (done, checks) = run(&[("same", same)], &model, CheckOptions::default()).unwrap();
    assert_eq!(done.rewrites.len(), 1, "it stays");
    assert_eq!(checks.rewrites[0].verdict, Verdict::NotComparable);
    assert!(checks.rewrites[0].reason.as_ref().unwrap().contains("disagrees with itself"));
    assert!(checks.cumulative.iter().all(|check| check.verdict == Verdict::NotComparable));
    assert_eq!(checks.verdict, Verdict::NotComparable);
}

#[test]
fn what_the_engine_cannot_run_is_told_and_may_be_left_out() {
    let model = GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [4_usize])
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Strange", ["a"], ["b"]).domain("elsewhere"))
        .node(Node::new("Relu", ["b"], ["y"]))
        .output("y", DType::F32, [4_usize])
        .finish()
        .unwrap();
    let same = |view: &View<'_>, found: &mut Found| exchange(view, found, "Relu", "Relu");
    for (unchecked, left) in [(Unchecked::Keep, 2), (Unchecked::Reject, 1)] {
        let options = CheckOptions { unchecked, ..CheckOptions::default() };
        let (done, checks) = run(&[("same", same)], &model, options).unwrap();
        assert_eq!(done.rewrites.len(), left, "{checks:?}");
        assert_eq!(checks.verdict, Verdict::NotComparable, "the whole cannot be run either");
        let open = checks.rewrites.iter().filter(|one| one.verdict == Verdict::NotComparable);
        assert!(open.clone().count() >= 1 && open.clone().all(|one| one.reason.is_some()));
    }
}

#[test]
fn a_rewrite_that_holds_for_one_size_of_an_open_axis_is_rejected() {
    let model = GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [veracity_onnx::Dim::from("batch"), 4.into()])
        .initializer("shape", &Tensor::from_slice([2], &[0_i64, 4]).unwrap())
        .node(Node::new("Reshape", ["x", "shape"], ["y"]))
        .output("y", DType::F32, [veracity_onnx::Dim::from("batch"), 4.into()])
        .finish()
        .unwrap();
    let fixed = |view: &View<'_>, found: &mut Found| {
        let (id, node) = view.nodes_of("Reshape").next().unwrap();
        let shape = Weight::new(Tensor::from_slice([2], &[3_i64, 4]).unwrap());
        let patch = Patch::because("three rows")
            .weight("three", shape)
            .change(id, node.clone().with_input(1, "three"));
        found.propose(id, patch);
    };
    let (done, checks) = run(&[("fixed", fixed)], &model, CheckOptions::default()).unwrap();
    assert_eq!(done.rejected.len(), 1, "{checks:?}");
    assert!(checks.inputs.iter().any(|set| set.contains("size 1")), "{:?}", checks.inputs);
}

#[test]
fn the_same_checks_give_the_same_report_whatever_the_memory() {
    let report = |memory: usize| {
        let options = CheckOptions { memory, ..CheckOptions::default() };
        run(BOTH, &chain(), options).unwrap().1
    };
    let first = report(1 << 30);
    assert_eq!(first, report(1 << 30));
    assert_eq!(first, report(0), "values that are not held are computed again");
    let other = Inputs { seed: 1, ..Inputs::default() };
    let options = CheckOptions { inputs: other, ..CheckOptions::default() };
    assert_ne!(first.rewrites, run(BOTH, &chain(), options).unwrap().1.rewrites);
}

#[test]
fn given_inputs_are_used_and_must_fit() {
    let sets = |recorded: BTreeMap<String, Tensor>| {
        let sets = vec![InputSet::Normal, InputSet::Uniform, InputSet::Edge];
        let inputs = Inputs { recorded: vec![recorded], sets, ..Inputs::default() };
        let options = CheckOptions { inputs, ..CheckOptions::default() };
        run(&[("right", right)], &chain(), options).unwrap().1
    };
    let given = Tensor::from_slice([4], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let checks = sets([("x".to_owned(), given)].into());
    assert_eq!(checks.inputs, ["recorded 0", "normal", "uniform", "edge"]);
    assert_eq!(checks.verdict, Verdict::Proved);
    assert_eq!(checks.rewrites[0].sets[0], "recorded 0");
    let lacking = sets(BTreeMap::new());
    assert_eq!(lacking.verdict, Verdict::NotComparable);
    assert!(lacking.notes[0].contains("no \"x\""), "{:?}", lacking.notes);
}

#[test]
fn bodies_are_part_of_a_window() {
    let branch = |operator: &str| {
        let node = Node::new(operator, ["a"], ["out"]);
        GraphBuilder::new("branch", 17).node(node).output("out", DType::F32, [4_usize])
    };
    let model = GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [4_usize])
        .input("flag", DType::Bool, [0_usize; 0])
        .node(Node::new("Neg", ["x"], ["a"]))
        .node(
            Node::new("If", ["flag"], ["y"])
                .graph("then_branch", branch("Relu"))
                .graph("else_branch", branch("Abs")),
        )
        .output("y", DType::F32, [4_usize])
        .finish()
        .unwrap();
    let (done, checks) = run(&[("right", right)], &model, CheckOptions::default()).unwrap();
    assert_eq!((done.rewrites.len(), checks.verdict), (1, Verdict::Proved), "{checks:?}");
    let swapped = |view: &View<'_>, found: &mut Found| {
        let (id, _) = view.nodes_of("If").next().unwrap();
        let branch = |operator: &str| {
            let node = Node::new(operator, ["a"], ["out"]);
            GraphBuilder::new("branch", 17).node(node).output("out", DType::F32, [4_usize])
        };
        let node = Node::new("If", ["flag"], ["y"])
            .graph("then_branch", branch("Abs"))
            .graph("else_branch", branch("Relu"));
        found.propose(id, Patch::because("the other way").change(id, node));
    };
    let (done, checks) = run(&[("swapped", swapped)], &model, CheckOptions::default()).unwrap();
    assert_eq!(done.rejected.len(), 1, "{checks:?}");
}

#[test]
fn drift_is_told_pass_by_pass() {
    let (_, checks) = run(BOTH, &chain(), validating(Validation::Pass, OnFail::Keep)).unwrap();
    let drift = checks.drift();
    assert_eq!(drift.len(), 2);
    assert_eq!((drift[0].0, drift[1].0), ("right", "wrong"));
    assert!(drift[0].1 == 0.0 && drift[1].1 > 0.0, "{drift:?}");
}
