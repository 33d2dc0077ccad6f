//! What a runner computes, step by step.

use std::collections::BTreeMap;

use crate::common::{Draft, Ort, accumulator, chain, chain_with_opset, pair, step};
use veracity_diag::codes;
use veracity_onnx::Node as Op;
use veracity_runtime::{Fusion, RunOptions, Runner, StateId};
use veracity_tensor::{DType, Tensor};

fn each_form(mut check: impl FnMut(RunOptions)) {
    check(RunOptions::new());
    check(RunOptions::new().with_fusion(Fusion::within_single_precision()));
}

#[test]
fn a_chain_computes_what_its_nodes_compute() {
    each_form(|options| {
        let mut runner = chain().load(&options);
        assert!(runner.warnings().is_empty(), "{:?}", runner.warnings());
        assert_eq!(step(&mut runner, "first/x", pair(1.0, -4.0), "third/out"), [1.5, -3.5]);
        assert_eq!(step(&mut runner, "first/x", pair(0.0, 0.0), "third/out"), [0.5, 0.5]);
    });
}

#[test]
fn merging_leaves_one_session() {
    let options = RunOptions::new().with_fusion(Fusion::within_single_precision());
    let runner = chain().load(&options);
    let sessions: Vec<_> = runner.sessions().map(|session| session.nodes.clone()).collect();
    assert_eq!(sessions, ["first+second+third"]);
    assert_eq!(chain().load(&RunOptions::new()).sessions().count(), 3);
}

#[test]
fn state_starts_from_its_initial_value_and_is_carried() {
    each_form(|options| {
        let mut runner = accumulator().load(&options);
        for tick in 1_u8..=5 {
            let shown = step(&mut runner, "sum/x", pair(1.0, 2.0), "sum/shown");
            let tick = f32::from(tick);
            assert_eq!(shown, [10.0 + tick, 20.0 + 2.0 * tick]);
        }
    });
}

#[test]
fn reset_restores_the_initial_value_at_any_moment() {
    for steps_before in 0..4 {
        let mut runner = accumulator().load(&RunOptions::new());
        for _ in 0..steps_before {
            step(&mut runner, "sum/x", pair(5.0, 5.0), "sum/shown");
        }
        runner.reset();
        let shown = step(&mut runner, "sum/x", pair(1.0, 1.0), "sum/shown");
        assert_eq!(shown, [11.0, 21.0], "after {steps_before} steps");
    }
}

#[test]
fn state_without_an_initial_value_starts_from_zeros() {
    let draft = Draft::default()
        .node("sum", &["x", "a"], &["b"], vec![Op::new("Add", ["x", "a"], ["b"])])
        .feedback("sum/b", "sum/a")
        .inputs(&["sum/x"])
        .outputs(&["sum/b"]);
    let mut runner = draft.load(&RunOptions::new());
    assert_eq!(step(&mut runner, "sum/x", pair(1.0, 2.0), "sum/b"), [1.0, 2.0]);
    assert_eq!(step(&mut runner, "sum/x", pair(1.0, 2.0), "sum/b"), [2.0, 4.0]);
}

/// `late` feeds both inputs of `early`; they start from different values.
fn two_consumers() -> Draft {
    Draft::default()
        .node("early", &["p", "q"], &["sum"], vec![Op::new("Add", ["p", "q"], ["sum"])])
        .node("late", &["sum", "x"], &["next"], vec![Op::new("Add", ["sum", "x"], ["next"])])
        .data("early/sum", "late/sum")
        .feedback("late/next", "early/p")
        .feedback("late/next", "early/q")
        .initial("early/p", pair(100.0, 0.0))
        .initial("early/q", pair(1.0, 0.0))
        .inputs(&["late/x"])
        .outputs(&["late/next"])
}

#[test]
fn consumers_of_one_value_may_start_from_different_values() {
    each_form(|options| {
        let mut runner = two_consumers().load(&options);
        let mut expected = 101.0;
        for _ in 0..4 {
            let next = step(&mut runner, "late/x", pair(0.0, 0.0), "late/next");
            assert_eq!(next[0].to_bits(), f32::to_bits(expected));
            expected *= 2.0;
        }
    });
}

#[test]
fn a_replaced_state_is_read_by_the_next_step_and_then_carried_on() {
    for steps_before in 0..3 {
        let mut runner = accumulator().load(&RunOptions::new());
        for _ in 0..steps_before {
            step(&mut runner, "sum/x", pair(1.0, 1.0), "sum/shown");
        }
        runner.write_state(StateId(0), &pair(-5.0, 0.0).view()).unwrap();
        assert_eq!(step(&mut runner, "sum/x", pair(1.0, 1.0), "sum/shown"), [-4.0, 1.0]);
        assert_eq!(step(&mut runner, "sum/x", pair(1.0, 1.0), "sum/shown"), [-3.0, 2.0]);
    }
}

#[test]
fn a_refused_call_changes_no_state() {
    let mut runner = accumulator().load(&RunOptions::new());
    step(&mut runner, "sum/x", pair(1.0, 1.0), "sum/shown");
    let override_only = BTreeMap::from([("sum/total_in".to_owned(), pair(999.0, 999.0))]);
    let refusal = runner.run(&override_only).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::INPUT_MISSING);
    assert_eq!(step(&mut runner, "sum/x", pair(1.0, 1.0), "sum/shown"), [12.0, 22.0]);
}

#[test]
fn inputs_that_do_not_fit_are_refused_by_name() {
    let mut runner = chain().load(&RunOptions::new());
    let wide = Tensor::zeros(DType::F32, [1, 3].into());
    let flat = Tensor::zeros(DType::F32, [2].into());
    let double = Tensor::zeros(DType::F64, [1, 2].into());
    for (what, inputs, code) in [
        ("nothing", vec![], codes::INPUT_MISSING),
        ("a misspelt name", vec![("first/X", pair(0.0, 0.0))], codes::INPUT_UNKNOWN),
        ("an unknown node", vec![("zeroth/x", pair(0.0, 0.0))], codes::INPUT_UNKNOWN),
        ("no slash", vec![("x", pair(0.0, 0.0))], codes::INPUT_UNKNOWN),
        ("a computed input", vec![("second/in", pair(0.0, 0.0))], codes::INPUT_NOT_SETTABLE),
        ("another shape", vec![("first/x", wide)], codes::INPUT_SHAPE),
        ("a shape that would broadcast", vec![("first/x", flat)], codes::INPUT_SHAPE),
        ("another dtype", vec![("first/x", double)], codes::INPUT_DTYPE),
    ] {
        let inputs = inputs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let refusal = runner.run(&inputs).unwrap_err();
        assert_eq!(refusal.first_error().code, code, "{what}: {refusal}");
    }
}

#[test]
fn an_input_is_needed_on_every_step() {
    let mut runner = chain().load(&RunOptions::new());
    step(&mut runner, "first/x", pair(1.0, 1.0), "third/out");
    assert_eq!(runner.step().unwrap_err().first_error().code, codes::INPUT_MISSING);
}

#[test]
fn values_at_node_inputs_can_be_read() {
    let mut runner = chain().load(&RunOptions::new());
    assert_eq!(runner.input_value("second", "in"), None, "no step has finished");
    step(&mut runner, "first/x", pair(1.0, 2.0), "third/out");
    for (node, port, expected) in [
        ("first", "x", pair(1.0, 2.0)),
        ("second", "in", pair(2.0, 4.0)),
        ("third", "in", pair(3.0, 5.0)),
    ] {
        assert_eq!(runner.input_value(node, port), Some(expected), "{node}/{port}");
    }
    assert_eq!(runner.input_value("third", "nothing"), None);
}

#[test]
fn the_same_steps_give_the_same_bits() {
    let episode = || -> Vec<Vec<f32>> {
        let mut runner = accumulator().load(&RunOptions::new());
        (0..20)
            .map(|tick| {
                let inputs = runner.mock_inputs(tick);
                runner.run(&inputs).unwrap()["sum/shown"].as_slice::<f32>().unwrap().to_vec()
            })
            .collect()
    };
    assert_eq!(episode(), episode());
}

#[test]
fn a_model_that_was_changed_is_refused() {
    let (_folder, bundle) = chain().write();
    let model = bundle.root().join("second.onnx");
    let mut bytes = std::fs::read(&model).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&model, bytes).unwrap();
    let refusal = Runner::load(&bundle, &Ort, &RunOptions::new()).expect_err("must be refused");
    assert_eq!(refusal.first_error().code, codes::HASH_MISMATCH, "{refusal}");
    assert_eq!(refusal.first_error().place.node.as_deref(), Some("second"));
    assert!(refusal.first_error().place.line.is_some());
}

#[test]
fn nodes_that_cannot_be_merged_run_separately_with_a_warning() {
    let draft = chain_with_opset(18);
    let options = RunOptions::new().with_fusion(Fusion::within_single_precision());
    let mut runner = draft.load(&options);
    assert_eq!(runner.warnings()[0].code, codes::FUSION_UNPROVED, "{:?}", runner.warnings());
    assert_eq!(runner.sessions().count(), 3);
    assert_eq!(step(&mut runner, "first/x", pair(1.0, -4.0), "third/out"), [1.5, -3.5]);
}

#[test]
fn a_merged_form_that_differs_is_not_used() {
    // ONNX Runtime seeds noise by the place of a node in its model, which merging changes.
    let draft = Draft::default()
        .node("noise", &["x"], &["y"], vec![Op::new("RandomNormalLike", ["x"], ["y"])])
        .node("more", &["y"], &["z"], vec![Op::new("RandomNormalLike", ["y"], ["z"])])
        .data("noise/y", "more/y")
        .inputs(&["noise/x"])
        .outputs(&["more/z"]);
    let options = RunOptions::new().with_fusion(Fusion::within_single_precision());
    let runner = draft.load(&options);
    assert_eq!(runner.warnings()[0].code, codes::FUSION_UNPROVED, "{:?}", runner.warnings());
    assert_eq!(runner.sessions().count(), 2);
}
