//! What is disproved, with everything that helps to find out why.

use std::cmp::Reverse;

use veracity_diag::codes;
use veracity_results::{
    Measurement, NodeProof, NonFinite, Origin, Part, PortProof, Proof, ProofRow, Role, RolloutPort,
    RolloutProof, SampleProof, Verdict,
};

use super::page::{Page, TextOptions, Tone};
use super::summary::{outside, part, tolerance};
use crate::plain::{apart, enough, number};

/// Other failing samples that are named.
const MAX_LABELS: usize = 4;

/// Every disproved output of a node, the worst first.
pub(super) fn write_all(proof: &Proof, options: &TextOptions, page: &mut Page<'_>) {
    let mut failing = proof.rows();
    failing.retain(|row| row.verdict == Verdict::Disproved && !row.is_rollout());
    keep_one_of_each_unreached_node(&mut failing);
    failing.sort_by_key(|row| Reverse(severity(row)));
    for row in failing.iter().take(options.detailed) {
        write_block(proof, row, page);
    }
    for row in failing.iter().take(options.most).skip(options.detailed) {
        write_line(row, page);
    }
    page.more(failing.len(), options.most, "disproved");
}

/// A node whose outputs were not looked at is told once, not once for each output.
pub(super) fn keep_one_of_each_unreached_node(rows: &mut Vec<ProofRow<'_>>) {
    let mut told: Vec<&str> = Vec::new();
    rows.retain(|row| match unreached_node(row) {
        Some(node) if told.contains(&node) => false,
        Some(node) => {
            told.push(node);
            true
        }
        None => true,
    });
}

/// The node of an output, if none of its outputs was looked at.
pub(super) fn unreached_node<'p>(row: &ProofRow<'p>) -> Option<&'p str> {
    match row.part {
        Part::Port(node, _) if node.ports.iter().all(|port| port.samples.is_empty()) => {
            Some(&node.node)
        }
        _ => None,
    }
}

/// How bad it is: what cannot be compared element by element, then NaN and infinities, then by the
/// largest error, whose bits are ordered as it is not negative.
type Severity = (u8, u64);

fn severity(row: &ProofRow<'_>) -> Severity {
    let sample = match row.part {
        Part::Port(_, port) => worst_sample(port),
        _ => None,
    };
    sample.map_or((3, 0), sample_severity)
}

fn sample_severity(sample: &SampleProof) -> Severity {
    match &sample.measurement {
        None => (2, 0),
        Some(measured) => {
            (u8::from(has_non_finite(&measured.non_finite)), measured.max_abs.to_bits())
        }
    }
}

/// The failing sample to show: of equally bad ones the first.
fn worst_sample(port: &PortProof) -> Option<&SampleProof> {
    let mut failing = failing_samples(port);
    let first = failing.next()?;
    Some(failing.fold(first, |worst, sample| {
        if sample_severity(sample) > sample_severity(worst) { sample } else { worst }
    }))
}

fn failing_samples(port: &PortProof) -> impl Iterator<Item = &SampleProof> {
    port.samples.iter().filter(|sample| sample.verdict == Verdict::Disproved)
}

/// One failing row in full.
pub(super) fn write_block(proof: &Proof, row: &ProofRow<'_>, page: &mut Page<'_>) {
    match row.part {
        Part::Port(node, port) => match worst_sample(port) {
            Some(sample) => {
                write_sample(proof, port, sample, page);
                write_cause(node, page);
            }
            None => write_whole(row, page),
        },
        _ => write_whole(row, page),
    }
}

/// Something that is wrong, or unknown, as a whole.
fn write_whole(row: &ProofRow<'_>, page: &mut Page<'_>) {
    let name = unreached_node(row).unwrap_or(row.name);
    let (word, tone) = match row.verdict {
        Verdict::Proved => ("proved", Tone::Good),
        Verdict::Conditional => ("conditional", Tone::Doubt),
        Verdict::Disproved => ("disproved", Tone::Bad),
        Verdict::NotComparable => ("not comparable", Tone::Doubt),
    };
    page.headed(&format!("{name}: {word}"), tone, "");
    for reason in row.reasons() {
        page.line(2, &reason.message);
        reason.hints.iter().for_each(|hint| page.fact("hint", hint));
    }
}

/// What the code did while it was recorded that its export cannot do.
fn write_cause(node: &NodeProof, page: &mut Page<'_>) {
    let causes = node.reasons.iter().filter(|reason| reason.code == codes::RECORDED_WRONG);
    causes.for_each(|reason| page.fact("cause", &reason.message));
}

fn write_line(row: &ProofRow<'_>, page: &mut Page<'_>) {
    let sample = match row.part {
        Part::Port(_, port) => worst_sample(port),
        _ => None,
    };
    let name = unreached_node(row).unwrap_or(row.name);
    let label = sample.map_or(String::new(), |sample| format!(" {}", sample.label));
    let rest = match sample.and_then(|sample| sample.measurement.as_ref()) {
        Some(measured) => outside(measured),
        None => row.reasons().first().map_or(String::new(), |reason| reason.message.clone()),
    };
    page.headed(&format!("{name}{label}: disproved,"), Tone::Bad, &rest);
}

/// One output on the sample that shows it best.
fn write_sample(proof: &Proof, port: &PortProof, sample: &SampleProof, page: &mut Page<'_>) {
    let head = format!("{} {}: disproved", port.port, sample.label);
    let integral = is_integral(&sample.reference);
    let judged = if integral { "must be equal".to_owned() } else { tolerance(port.tolerance) };
    page.headed(&head, Tone::Bad, &format!("({judged})"));
    let measured = sample.measurement.as_ref();
    let source = source_word(proof);
    let ranges =
        [measured.and_then(|m| m.reference_range), measured.and_then(|m| m.candidate_range)];
    page.fact(source, &kind_and_range(&sample.reference, ranges[0]));
    page.fact("exported", &kind_and_range(&sample.candidate, ranges[1]));
    match measured {
        None => {
            for reason in &sample.reasons {
                page.fact("reason", &reason.message);
            }
        }
        Some(measured) => write_measurement(measured, integral, source, page),
    }
    let hints = sample.reasons.iter().flat_map(|reason| &reason.hints);
    hints.for_each(|hint| page.fact("hint", hint));
    write_other_samples(port, sample, page);
}

/// What stands opposite the exported model.
fn source_word(proof: &Proof) -> &'static str {
    match proof.reference.origin {
        Origin::Python => "source",
        Origin::Runtime | Origin::Nothing => "recorded",
    }
}

fn is_integral(kind: &str) -> bool {
    ["int", "uint", "bool"].iter().any(|start| kind.starts_with(start))
}

fn kind_and_range(kind: &str, range: Option<(f64, f64)>) -> String {
    let kind = if kind.is_empty() { "nothing" } else { kind };
    match range {
        None => kind.to_owned(),
        Some((low, high)) => format!("{kind}, from {} to {}", number(low), number(high)),
    }
}

fn write_measurement(measured: &Measurement, integral: bool, source: &str, page: &mut Page<'_>) {
    write_non_finite(measured, source, page);
    if measured.differing == 0 {
        return;
    }
    if integral {
        page.fact("differing", &format!("{} of {}", measured.differing, measured.elements));
        write_worst(measured, source, page);
        return;
    }
    let Measurement { max_abs, mean_abs, rms, max_rel, max_ulp, .. } = measured;
    let [max_abs, mean_abs, rms, max_rel] = [max_abs, mean_abs, rms, max_rel].map(|n| number(*n));
    page.fact("error", &format!("max {max_abs}, mean {mean_abs}, rms {rms}"));
    write_percentiles(measured, page);
    page.fact("", &format!("max relative {max_rel}, max ULP {max_ulp}"));
    page.fact("outside", &format!("{} of {}", measured.outside, measured.elements));
    write_worst(measured, source, page);
    if measured.outside > 0 {
        let rest =
            if has_non_finite(&measured.non_finite) { ", as far as it is finite" } else { "" };
        let rtol = part(measured.tolerance.rtol());
        let atol = enough(measured.min_atol);
        page.fact("passes", &format!("with atol {atol} at rtol {rtol}{rest}"));
    }
}

fn write_percentiles(measured: &Measurement, page: &mut Page<'_>) {
    let Some(found) = &measured.percentiles else { return };
    let named = found.named().map(|(name, value)| format!("{name} {}", number(value)));
    page.fact("", &named.join(", "));
}

fn write_worst(measured: &Measurement, source: &str, page: &mut Page<'_>) {
    if let Some(worst) = &measured.worst {
        let (reference, candidate) = apart(worst.reference, worst.candidate);
        let index = &worst.index;
        page.fact("worst", &format!("at {index:?}: {source} {reference}, exported {candidate}"));
    }
}

fn has_non_finite(found: &NonFinite) -> bool {
    found.reference_nan + found.reference_inf + found.candidate_nan + found.candidate_inf > 0
}

/// NaN and infinities of both sides, and whose they are.
fn write_non_finite(measured: &Measurement, source: &str, page: &mut Page<'_>) {
    let found = &measured.non_finite;
    if !has_non_finite(found) {
        return;
    }
    let side = |nan: u64, inf: u64| {
        let [nan_percent, inf_percent] = [nan, inf].map(|n| percent(n, measured.elements));
        format!("{nan} NaN ({nan_percent}), {inf} Inf ({inf_percent})")
    };
    let in_source = found.reference_nan + found.reference_inf > 0;
    let in_exported = found.candidate_nan + found.candidate_inf > 0;
    let whose = match (in_source, in_exported) {
        (true, true) => "on both sides".to_owned(),
        (true, false) => format!("in {source} only"),
        (false, _) => "in exported only".to_owned(),
    };
    page.fact("NaN/Inf", &format!("{whose}, of {} elements", measured.elements));
    let exported = side(found.candidate_nan, found.candidate_inf);
    page.fact("", &format!("exported: {exported}"));
    page.fact("", &format!("{source}: {}", side(found.reference_nan, found.reference_inf)));
    match &found.first_mismatch {
        Some(index) => {
            let mismatching = found.mismatching;
            page.fact("", &format!("{mismatching} without an equal, first at {index:?}"));
        }
        None => page.fact("", "all in the same places"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "three decimals are shown")]
fn percent(part: u64, whole: u64) -> String {
    format!("{:.3} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn write_other_samples(port: &PortProof, shown: &SampleProof, page: &mut Page<'_>) {
    let others: Vec<&str> = failing_samples(port)
        .filter(|sample| sample.label != shown.label)
        .map(|sample| sample.label.as_str())
        .collect();
    if others.is_empty() {
        return;
    }
    let more = match others.len().saturating_sub(MAX_LABELS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = others[..others.len().min(MAX_LABELS)].join(", ");
    page.fact("also", &format!("{named}{more}"));
}

/// Where a roll-out left the recorded episode, and every port that did.
pub(super) fn write_rollout(rollout: &RolloutProof, options: &TextOptions, page: &mut Page<'_>) {
    if let Some(first) = &rollout.first_divergence {
        let (tick, port, role) = (first.tick, &first.port, role(first.role));
        page.line(
            2,
            &format!("first leaves the recorded episode at tick {tick}, in {port} ({role})"),
        );
    }
    let mut failing: Vec<&RolloutPort> =
        rollout.ports.iter().filter(|port| port.verdict == Verdict::Disproved).collect();
    // What diverged first is the cause of the rest.
    failing.sort_by_key(|port| port.first_divergence.unwrap_or(usize::MAX));
    for port in failing.iter().take(options.most) {
        page.line(2, &rollout_line(port));
    }
    page.more(failing.len(), options.most, "ports of the roll-out");
}

/// One port over time.
pub(super) fn rollout_line(port: &RolloutPort) -> String {
    let start = port.first_divergence.map_or(String::new(), |tick| format!(" from tick {tick}"));
    let measured = &port.measurement;
    let non_finite = match measured.non_finite.mismatching {
        0 => String::new(),
        mismatching => format!(", {mismatching} NaN/Inf without an equal"),
    };
    let passes = match measured.outside {
        0 => String::new(),
        _ => format!(", passes with atol {}", enough(measured.min_atol)),
    };
    let outside = outside(measured);
    format!("{} ({}){start}: {outside}{non_finite}{passes}", port.port, role(port.role))
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Output => "output",
        Role::Feedback => "feedback",
        Role::Edge => "edge",
        Role::Inner => "inner",
    }
}
