//! The recorded episode through the whole bundle.

use veracity_diag::codes;
use veracity_onnx::Node as Op;
use veracity_results::{Role, Verdict};
use veracity_tensor::Tensor;

use crate::common::{Draft, accumulator, chain, key, pair};
use crate::support::{changed, checked, recorded, with_samples};

/// Two states of one shape that grow differently, and a node that takes both in order.
fn two_states() -> Draft {
    let grow = |input: &str, by: &str, output: &str| Op::new("Mul", [input, by], [output]);
    Draft::default()
        .node(
            "grow",
            &["x", "left", "right"],
            &["left_out", "right_out"],
            vec![
                grow("left", "half", "left_half"),
                Op::new("Add", ["left_half", "x"], ["left_out"]),
                Op::new("Add", ["right", "one"], ["right_out"]),
            ],
        )
        .node(
            "mix",
            &["a", "b"],
            &["out"],
            vec![Op::new("Mul", ["b", "half"], ["h"]), Op::new("Add", ["a", "h"], ["out"])],
        )
        .data("grow/left_out", "mix/a")
        .data("grow/right_out", "mix/b")
        .feedback("grow/left_out", "grow/left")
        .feedback("grow/right_out", "grow/right")
        .initial("grow/left", pair(1.0, 2.0))
        .initial("grow/right", pair(3.0, 4.0))
        .inputs(&["grow/x"])
        .outputs(&["mix/out"])
}

#[test]
fn a_bundle_that_does_what_was_recorded_is_proved_with_resets() {
    for (what, draft, steps, resets) in
        [("chain", chain(), 5, 0), ("state", accumulator(), 11, 2), ("two", two_states(), 11, 2)]
    {
        let (_folder, bundle) = recorded(draft, 5);
        let proof = checked(&bundle);
        assert_eq!(proof.verdict, Verdict::Proved, "{what}: {:?}", proof.advice);
        let rollout = &proof.rollout;
        assert_eq!((rollout.ticks, rollout.steps, rollout.resets), (5, steps, resets), "{what}");
        assert!(rollout.ports.iter().all(|port| port.measurement.elements > 0), "{what}");
        assert!(rollout.ports.iter().all(|port| port.over_time.max_abs == [0.0; 5]), "{what}");
    }
}

#[test]
fn one_fault_in_the_wiring_is_named_with_tick_and_port() {
    type Change = fn(&mut veracity_spec::Spec, &mut std::collections::BTreeMap<String, Tensor>);
    let swap_edges: Change = |spec, _| {
        let (first, rest) = spec.data_flow.split_first_mut().unwrap();
        std::mem::swap(&mut first.source, &mut rest[0].source);
    };
    let swap_feedback: Change = |spec, _| {
        let (first, rest) = spec.feedback_flow.split_first_mut().unwrap();
        std::mem::swap(&mut first.source, &mut rest[0].source);
    };
    let start_elsewhere: Change = |_, initial| {
        initial.insert("grow/right".into(), pair(3.0, 4.5));
    };
    let start_from_nothing: Change = |_, initial| {
        initial.remove("grow/left");
    };
    let other_output: Change = |spec, _| {
        spec.feedback_flow[1].source = key("grow/left_out");
    };
    for (what, change, tick, port, role) in [
        ("swapped edges", swap_edges, 0, "mix/a", Role::Edge),
        ("swapped feedback", swap_feedback, 1, "grow/left", Role::Feedback),
        ("another initial value", start_elsewhere, 0, "grow/right", Role::Feedback),
        ("no initial value", start_from_nothing, 0, "grow/left", Role::Feedback),
        ("another source", other_output, 1, "grow/right", Role::Feedback),
    ] {
        let (_folder, bundle) = recorded(two_states(), 5);
        let (_other, bundle) = changed(&bundle, change);
        let proof = checked(&bundle);
        assert!(proof.nodes.iter().all(|node| node.verdict == Verdict::Proved), "{what}");
        let first = proof.rollout.first_divergence.clone().unwrap();
        assert_eq!((first.tick, first.port.as_str(), first.role), (tick, port, role), "{what}");
        let named = proof.rollout.ports.iter().find(|one| one.port == port).unwrap();
        let errors = &named.over_time.max_abs;
        assert_eq!(errors.len(), 5, "{what}");
        assert_eq!(errors.iter().position(|error| *error > 0.0), Some(tick), "{what}: {errors:?}");
        let most = errors.iter().copied().fold(0.0, f64::max);
        assert_eq!(most.to_bits(), named.measurement.max_abs.to_bits(), "{what}");
        assert_eq!(proof.verdict, Verdict::Disproved, "{what}");
        assert_eq!(proof.rollout.reasons[0].code, codes::ROLLOUT_DIVERGES, "{what}");
        assert!(!proof.advice.is_empty(), "{what}");
    }
}

#[test]
fn a_state_that_is_read_one_tick_late_is_found() {
    let (_folder, bundle) = recorded(accumulator(), 4);
    // Two pass-through nodes, one on each side, delay the state by a tick.
    let delayed = Draft::default()
        .node("hold", &["in"], &["out"], vec![Op::new("Identity", ["in"], ["out"])])
        .node(
            "sum",
            &["x", "total_in"],
            &["shown", "total_out"],
            vec![
                Op::new("Add", ["x", "total_in"], ["total_out"]),
                Op::new("Identity", ["total_out"], ["shown"]),
            ],
        )
        .node("after", &["in"], &["out"], vec![Op::new("Identity", ["in"], ["out"])])
        .feedback("sum/total_out", "hold/in")
        .data("hold/out", "after/in")
        .feedback("after/out", "sum/total_in")
        .initial("hold/in", pair(10.0, 20.0))
        .initial("sum/total_in", pair(10.0, 20.0))
        .inputs(&["sum/x"])
        .outputs(&["sum/shown"]);
    let (_other, wrong) = delayed.write();
    let samples = bundle.spec().veracity.as_ref().unwrap().samples.clone().unwrap();
    let bytes = std::fs::read(samples.resolve(bundle.root()).unwrap()).unwrap();
    wrong.attach_samples(&bytes, &[]).unwrap();
    let wrong = veracity_spec::Bundle::open(wrong.yaml_path()).unwrap();
    let first = checked(&wrong).rollout.first_divergence.unwrap();
    assert_eq!((first.tick, first.port.as_str()), (1, "sum/total_in"));
}

#[test]
fn a_recording_that_began_anew_in_the_middle_is_followed() {
    let (_folder, bundle) = recorded(accumulator(), 3);
    let repeated = with_samples(&bundle, |tensors, _| {
        for tensor in tensors.values_mut() {
            let twice = [tensor.bytes(), tensor.bytes()].concat();
            let dims = [&[6], &tensor.shape().dims()[1..]].concat();
            let shape = veracity_tensor::Shape::new(dims).unwrap();
            *tensor = Tensor::from_bytes(tensor.dtype(), shape, &twice).unwrap();
        }
    });
    let proof = checked(&repeated);
    assert_eq!(proof.verdict, Verdict::Proved, "{:?}", proof.rollout);
    assert!(proof.rollout.resets > 2);
}

#[test]
fn an_episode_that_cannot_be_lined_up_is_not_comparable() {
    type Change = fn(&mut std::collections::BTreeMap<String, String>);
    let twice: Change =
        |metadata| drop(metadata.insert("ticks".into(), r#"{"sum":[0,0,1]}"#.into()));
    let gap: Change = |metadata| drop(metadata.insert("ticks".into(), r#"{"sum":[0,2,3]}"#.into()));
    for (what, change) in [("twice a tick", twice), ("a gap", gap)] {
        let (_folder, bundle) = recorded(accumulator(), 3);
        let bundle = with_samples(&bundle, |_, metadata| change(metadata));
        let proof = checked(&bundle);
        assert_eq!(proof.rollout.verdict, Some(Verdict::NotComparable), "{what}");
        assert_eq!(proof.verdict, Verdict::NotComparable, "{what}");
        assert_eq!(proof.rollout.reasons[0].code, codes::ROLLOUT_NOT_RUN, "{what}");
    }
}

#[test]
fn an_episode_that_begins_later_says_that_the_start_was_not_checked() {
    let (_folder, bundle) = recorded(accumulator(), 3);
    let bundle = with_samples(&bundle, |_, metadata| {
        metadata.insert("ticks".into(), r#"{"sum":[2,3,4]}"#.into());
    });
    let (_other, bundle) = changed(&bundle, |_, initial| {
        initial.insert("sum/total_in".into(), pair(0.0, 0.0));
    });
    let proof = checked(&bundle);
    assert_eq!(proof.verdict, Verdict::Conditional);
    assert_eq!(proof.assumptions[0].code, codes::START_UNCHECKED);
    let told = proof.rollout.reasons.iter().any(|reason| reason.message.contains("not checked"));
    assert!(told, "{:?}", proof.rollout.reasons);
}
