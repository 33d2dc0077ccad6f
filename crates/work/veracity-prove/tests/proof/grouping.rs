//! Many samples, and judging them again.

use veracity_prove::rejudge;
use veracity_results::{Proof, Verdict};

use crate::common::chain;
use crate::support::{checked, policy, recorded, with_samples};

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
