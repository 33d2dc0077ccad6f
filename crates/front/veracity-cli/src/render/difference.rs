//! What changed between two proofs.

use std::fmt::Write as _;

use veracity::results::{
    Change, Judged, PortDifference, PortSide, ProofDifference, Section, Verdict,
};

use super::document::Document;
use super::style::{self, paint};
use super::table::{Cell, Column, Table};
use super::text::{number, printable};

/// Digits of a hash that tell files apart for the eye.
const SHORT_HASH: usize = 12;

/// Ports that are shown although they are as good as before.
const MAX_DRIFTED: usize = 8;

/// Length of a hash.
const HASH: usize = 64;

/// Changes around the numbers, the ports that are not the same, and a line that sums up.
pub(crate) fn document(difference: &ProofDifference) -> Document {
    let mut document = Document::new("What changed");
    for (title, changes) in [
        ("subject", &difference.subject),
        ("reference", &difference.reference),
        ("environment", &difference.environment),
        ("policy", &difference.policy),
    ] {
        section(title, changes, &mut document);
    }
    for found in &difference.noticed {
        let place = found.place.to_string();
        let what = format!("{} is new: {}", found.code, printable(&found.message));
        document.line(format!("{}: {}", printable(&place), paint(style::ERROR, &what)));
    }
    ports(&difference.ports, &mut document);
    document.line(summary(difference));
    document
}

fn section(title: &'static str, changes: &[Change], document: &mut Document) {
    if changes.is_empty() {
        return;
    }
    let mut table = Table::new([
        Column::left(title).path(),
        Column::left("before").flexible(),
        Column::left("after").flexible(),
    ]);
    for change in changes {
        let side = |side: &Option<String>| side.as_deref().map_or("-".to_owned(), short);
        let cells = [change.what.clone(), side(&change.before), side(&change.after)];
        table.row(cells.map(Cell::from));
    }
    document.table(table, 0);
    document.gap();
}

/// Hashes are cut, the rest is not.
fn short(text: &str) -> String {
    let is_hash = |word: &str| word.len() == HASH && word.bytes().all(|b| b.is_ascii_hexdigit());
    let word = |word| if is_hash(word) { &word[..SHORT_HASH] } else { word };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What is worse comes first, then what is otherwise judged, then ports whose errors changed within
/// the tolerance, the largest first.
fn ports(ports: &[PortDifference], document: &mut Document) {
    let mut changed: Vec<&PortDifference> =
        ports.iter().filter(|port| port.judged != Judged::Same).collect();
    changed.sort_by_key(|port| !port.judged.is_worse());
    let mut drifted: Vec<&PortDifference> =
        ports.iter().filter(|port| port.judged == Judged::Same && has_drifted(port)).collect();
    drifted.sort_by(|left, right| max_abs(right).total_cmp(&max_abs(left)));
    let more = drifted.len().saturating_sub(MAX_DRIFTED);
    changed.extend(drifted.into_iter().take(MAX_DRIFTED));
    if changed.is_empty() {
        return;
    }
    let mut table = Table::new([
        Column::left("port").path(),
        Column::left("where"),
        Column::left("judged"),
        Column::left("verdict"),
        Column::left("max abs"),
    ]);
    for port in changed {
        table.row(cells(port));
        if let Some(note) = passing(port) {
            table.note(&note);
        }
    }
    document.table(table, 0);
    if more > 0 {
        document.line(format!("… and {more} more with other errors, as good as before"));
    }
    document.gap();
}

fn has_drifted(port: &PortDifference) -> bool {
    let errors = |side: Option<PortSide>| side.and_then(|side| side.errors).map(|e| e.max_abs);
    errors(port.before) != errors(port.after)
}

fn max_abs(port: &PortDifference) -> f64 {
    port.after.and_then(|side| side.errors).map_or(0.0, |errors| errors.max_abs)
}

fn cells(port: &PortDifference) -> [Cell; 5] {
    let section = match port.section {
        Section::Node => "alone",
        Section::Rollout => "over time",
    };
    let (color, judged) = word(port.judged);
    let error = |side: PortSide| side.errors.map_or("-".to_owned(), |e| number(e.max_abs));
    [
        Cell::from(&port.port),
        Cell::from(section),
        Cell::styled(color, judged),
        Cell::from(both(port, |side| verdict(side.verdict).to_owned())),
        Cell::from(both(port, error)),
    ]
}

/// What stood before and what stands now; once, if it is the same.
fn both(port: &PortDifference, show: impl Fn(PortSide) -> String) -> String {
    let [before, after] = [port.before, port.after].map(|side| side.map_or("-".to_owned(), &show));
    if before == after { after } else { format!("{before} -> {after}") }
}

/// The tolerance that would pass, where it is what was judged.
fn passing(port: &PortDifference) -> Option<String> {
    let (before, after) = (port.before?, port.after?);
    if before.verdict != Verdict::Disproved || after.verdict != Verdict::Disproved {
        return None;
    }
    let atol = |side: PortSide| match side.errors {
        Some(errors) if errors.min_atol.is_finite() => format!("atol {}", number(errors.min_atol)),
        _ => "no atol".to_owned(),
    };
    Some(format!("passes with {}, before with {}", atol(after), atol(before)))
}

fn word(judged: Judged) -> (anstyle::Style, &'static str) {
    match judged {
        Judged::Better => (style::GOOD, "better"),
        Judged::Same => (style::FAINT, "same"),
        Judged::Worse => (style::ERROR, "worse"),
        Judged::New => (style::HEADING, "new"),
        Judged::Gone => (style::ERROR, "gone"),
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Proved => "proved",
        Verdict::Conditional => "conditional",
        Verdict::Disproved => "disproved",
        Verdict::NotComparable => "not comparable",
    }
}

fn summary(difference: &ProofDifference) -> String {
    let mut text = String::new();
    for judged in [Judged::Worse, Judged::Gone, Judged::Better, Judged::New, Judged::Same] {
        let amount = difference.ports.iter().filter(|port| port.judged == judged).count();
        let (color, word) = word(judged);
        let part = format!("{amount} {word}");
        let comma = if text.is_empty() { "" } else { ", " };
        let part = if amount == 0 { part } else { paint(color, &part) };
        let _ = write!(text, "{comma}{part}");
    }
    match difference.noticed.len() {
        0 => text,
        amount => format!("{text}, {}", paint(style::ERROR, &format!("{amount} newly noticed"))),
    }
}
