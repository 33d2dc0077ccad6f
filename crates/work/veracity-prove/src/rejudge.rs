//! Judges what was measured by another tolerance, without running anything.

use std::collections::BTreeSet;

use veracity_compare::{Judgement, judge, reasons};
use veracity_diag::{Diagnostic, Place, Severity, codes};
use veracity_results::{
    Measurement, Proof, SampleProof, Tolerance, TolerancePart, TolerancePolicy, Verdict,
};

use crate::builder::{sum_up, sum_up_node};
use crate::rollout::parts_over_time;

/// The same measurements judged by another policy. What they cannot decide is not comparable, with
/// that reason; what could not be measured stays as it was.
pub fn rejudge(proof: &Proof, policy: &TolerancePolicy) -> Proof {
    let before = &proof.policy;
    let mut proof = Proof { policy: policy.clone(), ..proof.clone() };
    for node in &mut proof.nodes {
        for port in &mut node.ports {
            port.tolerance = kept_exact(port.tolerance, port.samples.first(), policy, &port.port);
            let is_same = is_same(before, policy, &port.port);
            for sample in &mut port.samples {
                // What held by the same tolerances was measured by those of its elements, too.
                let is_known = is_same && sample.verdict.holds();
                let parts = if is_known { &[] } else { policy.parts_of(&port.port) };
                rejudge_sample(sample, port.tolerance, parts, policy.equal_nan);
            }
        }
        sum_up_node(node);
    }
    rejudge_rollout(&mut proof, before, policy);
    sum_up(&mut proof);
    proof
}

/// Whether two policies judge a port alike, alone and over time, but for NaN.
fn is_same(before: &TolerancePolicy, now: &TolerancePolicy, port: &str) -> bool {
    let of = |policy: &TolerancePolicy| (policy.basis, policy.default, policy.of(port));
    of(before) == of(now) && before.parts_of(port) == now.parts_of(port)
}

/// Integers and bools must be equal whatever the policy says.
fn kept_exact(
    before: Tolerance,
    sample: Option<&SampleProof>,
    policy: &TolerancePolicy,
    port: &str,
) -> Tolerance {
    if is_float(sample) { policy.of(port) } else { before }
}

fn rejudge_sample(
    sample: &mut SampleProof,
    tolerance: Tolerance,
    parts: &[TolerancePart],
    equal_nan: bool,
) {
    let Some(measurement) = &sample.measurement else { return };
    let place = sample.reasons.first().map(|reason| reason.place.clone()).unwrap_or_default();
    let (verdict, found) = judged(measurement, tolerance, parts, equal_nan);
    sample.verdict = verdict;
    sample.reasons = found.into_iter().map(|reason| reason.within(&place)).collect();
}

fn judged(
    measurement: &Measurement,
    tolerance: Tolerance,
    parts: &[TolerancePart],
    equal_nan: bool,
) -> (Verdict, Vec<Diagnostic>) {
    let verdict = match judge(measurement, tolerance, equal_nan) {
        Judgement::Proved if !within_parts(measurement, parts, equal_nan) => {
            let message =
                "the measurement is of all elements, and some have tolerances of their own";
            let reason = Diagnostic::error(codes::COMPARE_UNDECIDED, message)
                .hint("measure again with this tolerance");
            return (Verdict::NotComparable, vec![reason]);
        }
        Judgement::Proved => Verdict::Proved,
        Judgement::Disproved => Verdict::Disproved,
        Judgement::Undecided => Verdict::NotComparable,
    };
    (verdict, reasons(measurement, tolerance, equal_nan))
}

/// Whether a measurement of all elements shows that each is within a tolerance of its own.
pub(crate) fn within_parts(
    measurement: &Measurement,
    parts: &[TolerancePart],
    equal_nan: bool,
) -> bool {
    let inside = |part: &TolerancePart| judge(measurement, part.tolerance, equal_nan);
    parts.iter().all(|part| inside(part) == Judgement::Proved)
}

/// Which tick leaves a tolerance first is not in the measurements of another tolerance. That a step
/// failed stays what it is.
fn rejudge_rollout(proof: &mut Proof, before: &TolerancePolicy, policy: &TolerancePolicy) {
    let floats = float_ports(proof);
    let rollout = &mut proof.rollout;
    if rollout.ports.is_empty() {
        return;
    }
    rollout.first_divergence = None;
    rollout.reasons.retain(|reason| reason.code != codes::ROLLOUT_DIVERGES);
    let failed = rollout.reasons.iter().any(|reason| reason.severity == Severity::Error);
    let ticks = rollout.ticks;
    for port in &mut rollout.ports {
        if floats.contains(&port.source) {
            port.tolerance = crate::rollout::over_time(policy, policy.of(&port.source), ticks);
        }
        let is_known = is_same(before, policy, &port.source) && port.verdict.holds();
        let parts =
            if is_known { Vec::new() } else { parts_over_time(policy, &port.source, ticks) };
        let (verdict, _) = judged(&port.measurement, port.tolerance, &parts, policy.equal_nan);
        (port.verdict, port.first_divergence) = (verdict, None);
        if verdict == Verdict::Disproved {
            let message = format!("`{}` leaves the recorded episode", port.port);
            let place = port.port.split_once('/');
            let place = place.map_or_else(Place::default, |(node, port)| Place::port(node, port));
            rollout.reasons.push(Diagnostic::error(codes::ROLLOUT_DIVERGES, message).at(place));
        }
    }
    let worst = rollout.ports.iter().map(|port| port.verdict).max();
    rollout.verdict = if failed { Some(Verdict::Disproved) } else { worst };
}

/// Outputs that are floats, by what was compared of them.
fn float_ports(proof: &Proof) -> BTreeSet<String> {
    let ports = proof.nodes.iter().flat_map(|node| &node.ports);
    ports.filter(|port| is_float(port.samples.first())).map(|port| port.port.clone()).collect()
}

fn is_float(sample: Option<&SampleProof>) -> bool {
    sample.is_some_and(|sample| {
        sample.reference.starts_with("float") || sample.reference.starts_with("bfloat")
    })
}
