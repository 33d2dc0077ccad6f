//! A proof as text: one screen, the worst first, the answer in the last line.
//!
//! What is proved takes a line a node. What is disproved is shown with everything that helps to find
//! out why, for the worst few; the rest is listed, and the rest of that counted. What a verdict
//! rests on is told with what would settle it. The last line always has the form
//! `N proved, M disproved, K not comparable (why; why)`, with `C conditional` behind the first where
//! something is, and ends with the numbers of assumptions and other warnings where there are any.

mod failure;
mod noticed;
pub(crate) mod page;
mod summary;
mod ticks;

use veracity_diag::codes;
use veracity_results::{
    NodeProof, Origin, Part, PlantedFault, Proof, ProofRow, RolloutProof, Verdict,
};

use crate::plain::{count, number};
pub(crate) use noticed::line_of;
use page::Page;
pub use page::{TextOptions, Tone};
pub(crate) use summary::why_unknown;

/// Inputs and notes that are named in remarks.
const MAX_REMARKS: usize = 3;

/// A proof for people.
pub fn proof_text(proof: &Proof, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    failure::write_all(proof, options, &mut page);
    let diverges = proof.rollout.verdict == Some(Verdict::Disproved);
    if diverges {
        write_divergence(&proof.rollout, options, &mut page);
    }
    write_proved_nodes(proof, options, &mut page);
    if !diverges {
        write_rollout(&proof.rollout, &mut page);
        ticks::write(&proof.rollout, options, &mut page);
    }
    write_unknown(proof, options, &mut page);
    noticed::write_assumptions(proof, options, &mut page);
    noticed::write(proof, options, &mut page);
    write_remarks(proof, &mut page);
    for advice in &proof.advice {
        page.item("advice", Tone::Heading, advice);
    }
    summary::write(proof, &mut page);
    page.finish()
}

/// Everything about one row that is not proved, as in [`proof_text`], without colours.
pub(crate) fn row_text(proof: &Proof, row: &ProofRow<'_>) -> String {
    // Whoever shows it breaks lines on its own.
    let options = TextOptions { width: usize::MAX, ..TextOptions::default() };
    let mut page = Page::new(&options);
    match row.part {
        Part::RolloutPort(_, port) => page.line(0, &failure::rollout_line(port)),
        _ => failure::write_block(proof, row, &mut page),
    }
    page.finish()
}

fn write_divergence(rollout: &RolloutProof, options: &TextOptions, page: &mut Page<'_>) {
    page.headed("roll-out: disproved,", Tone::Bad, &extent(rollout));
    let reasons = rollout.reasons.iter().filter(|found| found.code != codes::ROLLOUT_DIVERGES);
    reasons.for_each(|found| page.line(2, &found.message));
    failure::write_rollout(rollout, options, page);
    ticks::write(rollout, options, page);
}

fn write_rollout(rollout: &RolloutProof, page: &mut Page<'_>) {
    let extent = extent(rollout);
    let text = match rollout.verdict {
        None => format!("not run{}", because(rollout)),
        Some(Verdict::Proved | Verdict::Conditional) => {
            let ports = &rollout.ports;
            let error = ports.iter().map(|port| port.measurement.max_abs).fold(0.0, f64::max);
            let ports = count(ports.len(), "port");
            let limits = rollout.reasons.iter().filter(|limit| !limit.is_assumption());
            let limits = limits.map(|limit| format!("; {}", limit.message));
            let limits: String = limits.collect();
            format!("{extent}, {ports}, largest error {}{limits}", number(error))
        }
        Some(_) => format!("not comparable, {extent}{}", because(rollout)),
    };
    page.item("roll-out", Tone::Heading, &text);
}

fn extent(rollout: &RolloutProof) -> String {
    let RolloutProof { ticks, steps, resets, .. } = rollout;
    let counts = [(ticks, "tick"), (steps, "step"), (resets, "reset")];
    counts.map(|(amount, noun)| count(*amount, noun)).join(", ")
}

fn because(rollout: &RolloutProof) -> String {
    let reasons: Vec<&str> = rollout.reasons.iter().map(|reason| &*reason.message).collect();
    if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
}

/// A line for each node that holds; a long list is cut in the middle of the screen, not at its end.
fn write_proved_nodes(proof: &Proof, options: &TextOptions, page: &mut Page<'_>) {
    let proved = |node: &&NodeProof| node.verdict.holds();
    let nodes: Vec<&NodeProof> = proof.nodes.iter().filter(proved).collect();
    for node in nodes.iter().take(options.most) {
        let samples = node.ports.iter().flat_map(|port| &port.samples);
        let measured = samples.filter_map(|sample| sample.measurement.as_ref());
        let error = measured.map(|measured| measured.max_abs).fold(0.0, f64::max);
        let fresh = match node.fresh + node.tried {
            0 => String::new(),
            fresh => format!(", {}", count(fresh, "fresh input")),
        };
        let conditional = if node.verdict == Verdict::Conditional { "conditional, " } else { "" };
        let faults =
            node.adequacy.as_ref().map_or_else(String::new, |one| format!(", {}", one.text()));
        let (samples, error) = (samples_of(node), number(error));
        let rest = format!("{conditional}{samples}{fresh}, largest error {error}{faults}");
        page.headed(&format!("{}:", node.node), Tone::Heading, &rest);
    }
    page.more(nodes.len(), options.most, "proved nodes");
}

/// The planted faults of a node that no sample finds, each with its reason.
fn missed_faults(node: &NodeProof) -> Vec<String> {
    let missed = node.adequacy.iter().flat_map(|adequacy| &adequacy.missed);
    missed.map(|fault| format!("{}: {}", node.node, planted_fault(fault))).collect()
}

/// What was planted, where, and why no sample shows it.
pub(crate) fn planted_fault(fault: &PlantedFault) -> String {
    let PlantedFault { what, place, reason } = fault;
    let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
    format!("{what}{place}: {reason}")
}

/// How many samples a node was tried on, and of how many passes when there were more.
pub(crate) fn samples_of(node: &NodeProof) -> String {
    match node.passes_kept() {
        Some((kept, seen)) => format!("{kept} of {seen} recorded passes"),
        None => count(node.samples, "sample"),
    }
}

/// What nothing is known about, and what disagrees with itself.
fn write_unknown(proof: &Proof, options: &TextOptions, page: &mut Page<'_>) {
    let mut unknown = proof.rows();
    unknown.retain(|row| row.verdict == Verdict::NotComparable || row.is_unstable());
    // The roll-out as a whole has its own line.
    unknown.retain(|row| !matches!(row.part, Part::Rollout(_)));
    failure::keep_one_of_each_unreached_node(&mut unknown);
    for row in unknown.iter().take(options.most) {
        let word = if row.is_unstable() { "unstable" } else { "not comparable" };
        let reason = why_unknown(row);
        let name = failure::unreached_node(row).unwrap_or(row.name);
        page.headed(&format!("{name}: {word}:"), Tone::Doubt, &reason);
    }
    page.more(unknown.len(), options.most, "that were not compared");
}

/// How far the proof reaches.
fn write_remarks(proof: &Proof, page: &mut Page<'_>) {
    let constant = proof.inputs.iter().filter(|input| input.constant);
    let names: Vec<&str> = constant.map(|input| &*input.port).collect();
    if !names.is_empty() {
        let shown = names[..names.len().min(MAX_REMARKS)].join(", ");
        let more = match names.len().saturating_sub(MAX_REMARKS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let remark = format!("{shown}{more}: nothing is known about other values");
        page.item("always the same", Tone::Heading, &remark);
    }
    let notes = proof.nodes.iter().filter_map(|node| Some((node, node.fresh_note.as_ref()?)));
    let notes: Vec<String> = notes.map(|(node, note)| format!("{}: {note}", node.node)).collect();
    for note in notes.iter().take(MAX_REMARKS) {
        page.item("fresh inputs", Tone::Heading, note);
    }
    page.more(notes.len(), MAX_REMARKS, "notes about fresh inputs");
    let missed: Vec<String> = proof.nodes.iter().flat_map(missed_faults).collect();
    for fault in missed.iter().take(MAX_REMARKS) {
        page.item("planted fault", Tone::Heading, fault);
    }
    page.more(missed.len(), MAX_REMARKS, "planted faults that no sample finds");
    if proof.reference.origin == Origin::Runtime {
        let remark = "the recorded values are those of the bundle itself: this shows that runs \
                      repeat, and nothing about the Python code";
        page.item("note", Tone::Doubt, remark);
    }
}
