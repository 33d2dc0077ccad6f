//! What to look at next, chosen by what was seen.

use veracity_diag::{Code, codes};
use veracity_results::{Measurement, NodeProof, PortProof, Proof, Role, SampleProof, Verdict};

/// A tolerance this many times larger would pass: worth saying.
const NEARLY: f64 = 10.0;

/// What tracing calls the reason why a node is right on its first pass and wrong later.
const FROZEN: [Code; 6] = [
    codes::FROZEN_VALUE,
    codes::MISSED_INPUT,
    codes::UNMARKED_USE,
    codes::BORN_UNSEEN,
    codes::RANDOM_VALUE,
    codes::PASS_DIFFERS,
];

/// What to look at next. Empty when nothing is wrong.
pub(crate) fn advice(proof: &Proof) -> Vec<String> {
    let mut found = Vec::new();
    for node in &proof.nodes {
        advise_on_node(node, &mut found);
        let is_wrong = |port: &&PortProof| port.verdict == Verdict::Disproved;
        // Where the cause is told, what follows from the numbers would only be guessed beside it.
        let is_open = |port: &&PortProof| !is_explained(proof, node, port);
        for port in node.ports.iter().filter(is_wrong).filter(is_open) {
            advise_on_port(node, port, &mut found);
        }
    }
    advise_on_rollout(proof, &mut found);
    found
}

/// Whether it is known why an output is wrong. What makes later passes differ from the first cannot
/// be why the first one is wrong; a constant that changed afterwards can, and so can the device.
fn is_explained(proof: &Proof, node: &NodeProof, port: &PortProof) -> bool {
    let found = |codes: &[Code]| proof.findings_of(&node.node).any(|one| codes.contains(&one.code));
    let refused = node.reasons.iter().any(|reason| reason.code == codes::RECORDED_WRONG);
    found(&[codes::CONSTANT_CHANGED, codes::DEVICE_ROUNDS])
        || (first_passes(port) && (refused || found(&FROZEN)))
}

fn first_passes(port: &PortProof) -> bool {
    port.samples.first().is_some_and(|one| one.verdict == Verdict::Proved)
}

fn advise_on_node(node: &NodeProof, found: &mut Vec<String>) {
    let counts = [codes::OUTPUT_COUNT_DIFFERS, codes::ENGINE_OUTPUT_MISMATCH];
    if node.reasons.iter().any(|reason| counts.contains(&reason.code)) {
        found.push(format!(
            "{}: the number of outputs differs: look at the export backend and at the declared \
             outputs first",
            node.node
        ));
    }
}

fn advise_on_port(node: &NodeProof, port: &PortProof, found: &mut Vec<String>) {
    let name = &port.port;
    let failing: Vec<&SampleProof> =
        port.samples.iter().filter(|sample| sample.verdict == Verdict::Disproved).collect();
    if failing.is_empty() {
        return;
    }
    // What is said of a port must hold for every sample, so that the worst one counts.
    let measured = failing.iter().filter_map(|sample| sample.measurement.as_ref());
    let measured = measured.max_by(|left, right| severity(left).total_cmp(&severity(right)));
    if !measured.is_some_and(is_nearly) {
        found.extend(advise_on_samples(node, port, &failing));
    }
    found.extend(measured.and_then(|measured| advise_on_numbers(name, measured)));
}

/// What follows from which samples fail. Roundings make some fail, and others not, for no reason.
fn advise_on_samples(
    node: &NodeProof,
    port: &PortProof,
    failing: &[&SampleProof],
) -> Option<String> {
    let name = &port.port;
    let is_fresh = |sample: &&&SampleProof| sample.label.starts_with("fresh");
    let only_fresh = failing.iter().all(|sample| is_fresh(&sample));
    if only_fresh && node.samples > 0 {
        return Some(format!(
            "{name}: every recorded sample passes and fresh inputs do not: a branch or a value \
             was frozen while recording, or the exporter changed what happens outside of the \
             recorded range"
        ));
    }
    first_passes(port).then(|| {
        format!(
            "{name}: the first sample passes and a later one fails: a value that changes may have \
             been recorded as a constant; make it an input of the node"
        )
    })
}

fn advise_on_numbers(name: &str, measured: &Measurement) -> Option<String> {
    let bad = &measured.non_finite;
    let in_export = bad.candidate_nan + bad.candidate_inf;
    let in_source = bad.reference_nan + bad.reference_inf;
    if in_export + in_source > 0 && (bad.mismatching > 0 || measured.outside == 0) {
        return Some(if in_source == 0 {
            format!("{name}: only the export has NaN or Inf: the export backend brought them in")
        } else {
            format!(
                "{name}: the traced values have NaN or Inf too: the original computation is \
                 unstable there"
            )
        });
    }
    if is_nearly(measured) {
        return Some(format!(
            "{name}: the difference is small: it passes with atol={:.2e}",
            // Rounded up, or it would not pass with what is shown.
            measured.min_atol * 1.006
        ));
    }
    is_shifted(measured).then(|| {
        format!(
            "{name}: the whole output is shifted, not single values: suspect what the backend \
             makes of an operation, or a weight"
        )
    })
}

/// Whether a tolerance that is not much larger would do.
fn is_nearly(measured: &Measurement) -> bool {
    let atol = measured.tolerance.atol();
    measured.non_finite.mismatching == 0 && atol > 0.0 && measured.min_atol <= NEARLY * atol
}

/// How far a measurement is outside; beyond every number where NaN or infinities have no equal.
fn severity(measured: &Measurement) -> f64 {
    if measured.non_finite.mismatching > 0 { f64::INFINITY } else { measured.min_atol }
}

/// Whether half of the elements are about as wrong as the worst one.
fn is_shifted(measured: &Measurement) -> bool {
    measured.percentiles.is_some_and(|found| found.p50 > measured.max_abs / 10.0)
}

fn advise_on_rollout(proof: &Proof, found: &mut Vec<String>) {
    let Some(first) = &proof.rollout.first_divergence else { return };
    let nodes_hold = proof.nodes.iter().all(|node| node.verdict.holds());
    if !nodes_hold {
        return;
    }
    let port = &first.port;
    found.push(match (first.role, first.tick) {
        (Role::Feedback, 0) => format!(
            "every node alone is right and `{port}` starts from another value: the initial \
             value is wrong"
        ),
        (Role::Feedback, _) => format!(
            "every node alone is right and `{port}` gets another state: the wrong output is fed \
             back, or with the wrong delay; when the error grows slowly, roundings add up"
        ),
        (Role::Edge, _) => format!(
            "every node alone is right and `{port}` gets another value: it is wired to the wrong \
             output"
        ),
        (Role::Output | Role::Inner, _) => format!(
            "every node alone is right on its samples and `{port}` is not over time: look for \
             state inside of a model, or for errors that add up"
        ),
    });
}
