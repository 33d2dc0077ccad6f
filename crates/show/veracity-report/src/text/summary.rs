//! What ran, by what it was judged, and the answer.

use std::collections::BTreeMap;

use veracity_results::{Basis, Coverage, Measurement, Part, Proof, ProofRow, Tolerance, Verdict};

use super::page::{Page, Tone};
use crate::plain::{count, number};

/// Reasons that the last line names.
const MAX_REASONS: usize = 3;

pub(super) fn write(proof: &Proof, page: &mut Page<'_>) {
    if let Some(engines) = engines(proof) {
        page.item("ran on", Tone::Heading, &engines);
    }
    page.item("judged by", Tone::Heading, &policy(proof));
    page.last(&answer(proof));
}

/// Engines with their versions, and the nodes of each where there are several.
fn engines(proof: &Proof) -> Option<String> {
    let environment = &proof.environment;
    let mut nodes_by_engine: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for session in &environment.sessions {
        let engine = format!("{} {} ({})", session.engine, session.engine_version, session.device);
        nodes_by_engine.entry(engine).or_default().push(&session.node);
    }
    let engines: Vec<String> = match nodes_by_engine.len() {
        0 => return None,
        1 => nodes_by_engine.into_keys().collect(),
        _ => {
            let named =
                |(engine, nodes): (String, Vec<&str>)| format!("{engine} for {}", nodes.join(", "));
            nodes_by_engine.into_iter().map(named).collect()
        }
    };
    let threads = count(environment.threads, "thread");
    Some(format!("{}; {threads}; {}", engines.join("; "), environment.system))
}

fn policy(proof: &Proof) -> String {
    let policy = &proof.policy;
    let mut text = match policy.basis {
        Basis::Given => tolerance(policy.default),
        Basis::Scaled if policy.ports.is_empty() => tolerance(policy.default),
        Basis::Scaled => {
            let finer = count(policy.ports.len(), "port");
            format!("{}, finer for the scale of {finer}", tolerance(policy.default))
        }
        Basis::Auto => {
            format!("tolerances derived for each port, else {}", tolerance(policy.default))
        }
    };
    if policy.basis == Basis::Given && !policy.ports.is_empty() {
        let own: Vec<&str> = policy.ports.keys().map(String::as_str).collect();
        text = format!("{text}; others for {}", own.join(", "));
    }
    if policy.equal_nan {
        text += "; NaN equals NaN";
    }
    text
}

/// A tolerance as it can be given again.
pub(super) fn tolerance(tolerance: Tolerance) -> String {
    format!("rtol {}, atol {}", part(tolerance.rtol()), part(tolerance.atol()))
}

/// Small numbers are read more easily with an exponent.
pub(super) fn part(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// `N proved, C conditional, M disproved, K not comparable (why; why), A assumptions, W warnings`;
/// the second and the last two only where there are some.
fn answer(proof: &Proof) -> Vec<(Option<Tone>, String)> {
    let Coverage { proved, conditional, disproved, not_comparable } = proof.coverage;
    let tone = |amount: usize, tone| (amount > 0).then_some(tone);
    let mut parts =
        vec![(tone(proved, Tone::Good), format!("{proved} proved")), (None, ", ".to_owned())];
    if conditional > 0 {
        parts.push((Some(Tone::Doubt), format!("{conditional} conditional")));
        parts.push((None, ", ".to_owned()));
    }
    parts.extend([
        (tone(disproved, Tone::Bad), format!("{disproved} disproved")),
        (None, ", ".to_owned()),
        (tone(not_comparable, Tone::Doubt), format!("{not_comparable} not comparable")),
    ]);
    let why = why(proof);
    if !why.is_empty() {
        parts.push((None, format!(" ({})", why.join("; "))));
    }
    let doubts = [(proof.assumptions.len(), "assumption"), (proof.other_warnings(), "warning")];
    for (amount, noun) in doubts.into_iter().filter(|(amount, _)| *amount > 0) {
        parts.push((None, ", ".to_owned()));
        parts.push((Some(Tone::Doubt), count(amount, noun)));
    }
    parts
}

/// Why something was not compared: each reason once, in the order in which they were found. What
/// says nothing at all says that, too.
fn why(proof: &Proof) -> Vec<String> {
    let mut why: Vec<String> = Vec::new();
    let mut add = |reason: &str| {
        if !why.iter().any(|known| known == reason) {
            why.push(reason.to_owned());
        }
    };
    for row in proof.rows() {
        if row.verdict == Verdict::NotComparable {
            add(&why_unknown(&row));
        }
    }
    if proof.coverage.all() == 0 {
        proof.rollout.reasons.iter().for_each(|reason| add(&reason.message));
        if why.is_empty() {
            why.push("nothing was compared".to_owned());
        }
    }
    let more = why.len().saturating_sub(MAX_REASONS);
    if more > 0 {
        why.truncate(MAX_REASONS);
        why.push(format!("{more} more"));
    }
    why
}

/// Why a row is not known to hold, or not known well.
pub(crate) fn why_unknown(row: &ProofRow<'_>) -> String {
    if let Some(reason) = row.reasons().first() {
        return reason.message.clone();
    }
    let why = match (row.verdict, row.part) {
        (Verdict::Proved | Verdict::Conditional, _) => {
            "the same inputs gave different values, all within the tolerance"
        }
        (_, Part::RolloutPort(..)) => "what was measured does not decide it",
        _ => "there was nothing to compare it with",
    };
    why.to_owned()
}

/// The largest error of something, and how much of it was outside.
pub(super) fn outside(measured: &Measurement) -> String {
    let Measurement { outside, elements, max_abs, .. } = measured;
    format!("{outside} of {elements} outside, largest error {}", number(*max_abs))
}
