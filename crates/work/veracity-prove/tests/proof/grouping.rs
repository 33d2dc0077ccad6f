//! Many samples, and judging them again.

use veracity_diag::{Diagnostic, codes};
use veracity_prove::{check, rejudge};
use veracity_results::{Proof, Verdict};

use crate::common::{Ort, chain};
use crate::support::{checked, options, policy, recorded, with_samples};

/// 100 samples, of which one is off by 0.001.
fn one_off(sample: usize) -> Proof {
    let (_folder, bundle) = recorded(chain(), 100);
    let bundle = with_samples(&bundle, |tensors, _| {
        let tensor = tensors.get_mut("recorded/third/out/out").unwrap();
        tensor.as_mut_slice::<f32>().unwrap()[2 * sample] += 0.001;
    });
    checked(&bundle)
}

#[test]
fn later_samples_are_counted_together_and_a_failure_is_listed() {
    let proof = one_off(60);
    let samples = &proof.nodes[2].ports[0].samples;
    let labels: Vec<&str> = samples.iter().map(|sample| sample.label.as_str()).collect();
    assert_eq!(labels[..2], ["sample 0", "sample 1"]);
    assert_eq!(labels[31..], ["sample 31", "samples 32 to 99", "sample 60"]);
    let elements: u64 =
        samples.iter().map(|sample| sample.measurement.as_ref().unwrap().elements).sum();
    assert_eq!(elements, 200);
    assert_eq!(proof.nodes[2].samples, 100);
    assert_eq!(samples[33].verdict, Verdict::Disproved);
}

#[test]
fn another_tolerance_is_judged_without_running_anything() {
    let proof = one_off(60);
    for (atol, verdict) in
        [(1e-6, Verdict::Disproved), (0.01, Verdict::Proved), (1e-9, Verdict::Disproved)]
    {
        let judged = rejudge(&proof, &policy(atol));
        assert_eq!(judged.verdict, verdict, "{atol}");
        assert_eq!(judged.policy, policy(atol));
        assert_eq!(judged.subject, proof.subject);
        let text = serde_json::to_string(&judged).unwrap();
        assert_eq!(serde_json::from_str::<Proof>(&text).unwrap(), judged);
    }
}

#[test]
fn a_step_that_failed_stays_failed_whatever_the_tolerance() {
    let mut proof = one_off(60);
    let reason = Diagnostic::error(codes::STEP_FAILED, "the engine failed");
    proof.rollout.reasons = vec![reason];
    let judged = rejudge(&proof, &policy(1e9));
    assert_eq!(judged.rollout.verdict, Some(Verdict::Disproved));
    assert_eq!(judged.verdict, Verdict::Disproved);
}

#[test]
fn floats_that_had_to_be_equal_may_differ_under_another_tolerance() {
    let (_folder, bundle) = recorded(chain(), 3);
    let bundle = with_samples(&bundle, |tensors, _| {
        for tensor in tensors.values_mut() {
            tensor.as_mut_slice::<f32>().unwrap()[0] *= 1.0 + f32::EPSILON;
        }
    });
    let exact = check(&bundle, &Ort, &options(0.0)).unwrap();
    assert_eq!(exact.verdict, Verdict::Disproved);
    assert_eq!(rejudge(&exact, &policy(1e-3)).verdict, Verdict::Proved);
}
