//! Each node alone.

use veracity_diag::codes;
use veracity_onnx::Node as Op;
use veracity_prove::check;
use veracity_results::Verdict;
use veracity_tensor::Tensor;

use crate::common::{Draft, Ort, chain};
use crate::support::{checked, options, recorded, with_samples};

fn one_node(ops: Vec<Op>) -> Draft {
    Draft::default().node("node", &["x"], &["y"], ops).inputs(&["node/x"]).outputs(&["node/y"])
}

#[test]
fn a_node_without_edges_needs_no_episode() {
    let (_folder, bundle) = recorded(one_node(vec![Op::new("Relu", ["x"], ["y"])]), 3);
    let proof = checked(&bundle);
    assert_eq!((proof.verdict, proof.rollout.verdict), (Verdict::Proved, None));
    assert_eq!(proof.nodes[0].samples, 3);
}

#[test]
fn what_was_never_recorded_is_never_proved() {
    let (_folder, bundle) = chain().write();
    let proof = check(&bundle, &Ort, &options(1.0)).unwrap();
    assert_eq!(proof.verdict, Verdict::NotComparable);
    assert_eq!(
        (proof.coverage.proved, proof.coverage.not_comparable),
        (0, 4),
        "the roll-out counts"
    );
    let codes: Vec<_> = proof.nodes.iter().map(|node| node.reasons[0].code).collect();
    assert_eq!(codes, [codes::SAMPLES_MISSING; 3]);
}

#[test]
fn an_output_that_was_not_recorded_is_not_comparable() {
    let (_folder, bundle) = recorded(chain(), 2);
    let bundle = with_samples(&bundle, |tensors, _| {
        tensors.remove("recorded/third/out/out");
    });
    let proof = checked(&bundle);
    assert_eq!(proof.nodes[2].verdict, Verdict::NotComparable);
    assert_eq!(proof.verdict, Verdict::NotComparable);
}

#[test]
fn a_wrong_value_is_disproved_with_sample_and_place() {
    let (_folder, bundle) = recorded(chain(), 3);
    let bundle = with_samples(&bundle, |tensors, _| {
        let tensor = tensors.get_mut("recorded/second/out/shifted").unwrap();
        tensor.as_mut_slice::<f32>().unwrap()[3] += 0.5;
    });
    let proof = checked(&bundle);
    let port = &proof.nodes[1].ports[0];
    let verdicts: Vec<_> = port.samples.iter().map(|sample| sample.verdict).collect();
    assert_eq!(verdicts, [Verdict::Proved, Verdict::Disproved, Verdict::Proved]);
    assert_eq!(port.samples[1].label, "sample 1");
    let measured = port.samples[1].measurement.as_ref().unwrap();
    assert_eq!(measured.worst.as_ref().unwrap().index, [0, 1]);
    assert!(measured.percentiles.is_some());
    assert!(proof.advice.iter().any(|line| line.contains("recorded as a constant")));
}

#[test]
fn a_tolerance_is_advised_only_if_every_sample_passes_with_it() {
    for (errors, is_small) in [([2e-6_f32, 0.0], true), ([2e-6, 5e-6], true), ([2e-6, 0.5], false)]
    {
        let (_folder, bundle) = recorded(chain(), 3);
        let bundle = with_samples(&bundle, |tensors, _| {
            let tensor = tensors.get_mut("recorded/second/out/shifted").unwrap();
            let values = tensor.as_mut_slice::<f32>().unwrap();
            let each = values.len() / 3;
            for (sample, error) in errors.into_iter().enumerate() {
                values[sample * each] += error;
            }
        });
        let proof = checked(&bundle);
        let advised = proof.advice.iter().find(|line| line.contains("it passes with"));
        assert_eq!(advised.is_some(), is_small, "{:?}", proof.advice);
        let needed = proof.nodes[1].ports[0]
            .samples
            .iter()
            .filter_map(|one| one.measurement.as_ref().map(|measured| measured.min_atol));
        let needed = needed.fold(0.0, f64::max);
        let shown = advised.map(|line| line.rsplit('=').next().unwrap().parse::<f64>().unwrap());
        assert!(shown.is_none_or(|shown| shown >= needed), "{shown:?} for {needed:e}");
    }
}

#[test]
fn a_model_that_disagrees_with_itself_is_not_called_wrong() {
    let random =
        vec![Op::new("RandomNormalLike", ["x"], ["noise"]), Op::new("Add", ["x", "noise"], ["y"])];
    let (_folder, bundle) = recorded(one_node(random), 2);
    let proof = checked(&bundle);
    assert_eq!(proof.verdict, Verdict::NotComparable);
    assert!(proof.nodes[0].ports[0].unstable);
    assert_eq!(proof.nodes[0].reasons[0].code, codes::UNSTABLE);
}

#[test]
fn samples_that_do_not_fit_are_refused() {
    type Change = fn(&mut std::collections::BTreeMap<String, Tensor>);
    let cases: [(&str, Change); 5] = [
        ("a port that is not there", |tensors| {
            let tensor = tensors["recorded/first/in/x"].clone();
            tensors.insert("recorded/first/in/z".into(), tensor);
        }),
        ("a node that is not there", |tensors| {
            let tensor = tensors["recorded/first/in/x"].clone();
            tensors.insert("recorded/fourth/in/x".into(), tensor);
        }),
        ("another shape", |tensors| {
            let tensor = Tensor::from_slice([2, 2], &[0.0_f32; 4]).unwrap();
            tensors.insert("recorded/first/in/x".into(), tensor);
        }),
        ("another dtype", |tensors| {
            let tensor = Tensor::from_slice([2, 1, 2], &[0.0_f64; 4]).unwrap();
            tensors.insert("recorded/first/in/x".into(), tensor);
        }),
        ("another count", |tensors| {
            let tensor = Tensor::from_slice([3, 1, 2], &[0.0_f32; 6]).unwrap();
            tensors.insert("recorded/first/in/x".into(), tensor);
        }),
    ];
    for (what, change) in cases {
        let (_folder, bundle) = recorded(chain(), 2);
        let bundle = with_samples(&bundle, |tensors, _| change(tensors));
        let refusal = check(&bundle, &Ort, &options(1.0)).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::SAMPLES_MISMATCH, "{what}");
    }
}

#[test]
fn a_tolerance_for_a_port_that_is_not_there_is_refused_with_the_nearest() {
    let (_folder, bundle) = recorded(chain(), 1);
    let mut policy = crate::support::policy(1.0);
    policy.ports.insert("third/outt".into(), policy.default);
    let options = veracity_prove::CheckOptions {
        tolerance: veracity_prove::ToleranceChoice::Given(policy),
        ..veracity_prove::CheckOptions::default()
    };
    let refusal = check(&bundle, &Ort, &options).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::TOLERANCE_PORT_UNKNOWN);
    assert_eq!(refusal.first_error().hints, ["did you mean \"third/out\"?"]);
}
