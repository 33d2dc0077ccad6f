//! A drift report for people: what is wrong, what comes closest to it, what was not looked at.

use veracity::results::{DriftReport, DriftRow, Verdict};

use super::style::{self, paint};
use super::table::{Cell, Column, Table};
use super::text::number;

/// Rows that are shown although nothing is wrong with them: those closest to their budget.
const CLOSEST: usize = 5;

/// Rows that are shown because something is.
const MOST_WRONG: usize = 25;

/// The report, as wide as this.
pub(crate) fn render(report: &DriftReport, width: usize) -> String {
    let mut text = format!("{}\nagainst {}\n\n", report.candidate, report.reference);
    let shown = shown(&report.rows);
    if !shown.is_empty() {
        text += &table(report, &shown, width);
        let hidden = report.rows.len() - shown.len();
        if hidden > 0 {
            text.push_str(&["and ", &hidden.to_string(), " more\n"].concat());
        }
        text.push('\n');
    }
    text += &summary(report);
    text
}

/// What is wrong, in the order in which it is computed, or else what comes closest to it.
fn shown(rows: &[DriftRow]) -> Vec<&DriftRow> {
    let wrong: Vec<&DriftRow> =
        rows.iter().filter(|row| row.verdict != Verdict::Proved).take(MOST_WRONG).collect();
    if !wrong.is_empty() {
        return wrong;
    }
    let share = |row: &DriftRow| row.introduced.max_abs / row.budget.max(f64::MIN_POSITIVE);
    let mut closest: Vec<&DriftRow> = rows.iter().collect();
    closest.sort_by(|left, right| share(right).total_cmp(&share(left)));
    closest.truncate(CLOSEST);
    closest
}

fn table(report: &DriftReport, rows: &[&DriftRow], width: usize) -> String {
    let mut table = Table::new([
        Column::left("value").flexible(),
        Column::left("operator").flexible(),
        Column::left("verdict"),
        Column::right("introduced"),
        Column::right("budget"),
        Column::right("accumulated"),
    ]);
    for row in rows {
        let (color, word) = verdict(row.verdict);
        table.row([
            Cell::from(&row.name),
            Cell::from(&row.op_type),
            Cell::styled(color, word),
            Cell::from(number(row.introduced.max_abs)),
            Cell::from(number(row.budget)),
            Cell::from(number(row.accumulated.max_abs)),
        ]);
        for note in notes(report, row) {
            table.note(&note);
        }
    }
    table.render(0, width)
}

fn notes(report: &DriftReport, row: &DriftRow) -> Vec<String> {
    let mut notes = Vec::new();
    if report.origin.as_ref() == Some(&row.name) {
        notes.push("this is the first operator that is wrong".to_owned());
    }
    if !row.reference.is_empty() {
        notes.push(format!("{} compared with {}", row.dtype, row.reference));
    }
    if row.introduced.mismatching > 0 {
        notes.push(format!("{} NaN or infinities without a match", row.introduced.mismatching));
    }
    let places = [&row.module, &row.source];
    let places: Vec<&str> =
        places.into_iter().filter(|place| !place.is_empty()).map(String::as_str).collect();
    if !places.is_empty() {
        notes.push(places.join(", "));
    }
    notes.extend(row.problem.clone());
    notes
}

fn summary(report: &DriftReport) -> String {
    let count = |verdict| report.rows.iter().filter(|row| row.verdict == verdict).count();
    let (color, word) = verdict(report.verdict);
    let mut lines = vec![format!(
        "{}: {} proved, {} disproved, {} not comparable, {} not compared",
        paint(color, word),
        count(Verdict::Proved),
        count(Verdict::Disproved),
        count(Verdict::NotComparable),
        report.unmapped.len(),
    )];
    if let Some(origin) = &report.drift_origin {
        lines.push(format!("errors first add up to more than {} at {origin}", report.tolerance));
    }
    lines.extend(report.reasons.iter().map(|reason| reason.message.clone()));
    lines.extend(report.notes.iter().cloned());
    lines.join("\n") + "\n"
}

fn verdict(verdict: Verdict) -> (anstyle::Style, &'static str) {
    match verdict {
        Verdict::Proved => (style::GOOD, "proved"),
        Verdict::Disproved => (style::ERROR, "disproved"),
        Verdict::NotComparable => (style::WARNING, "not comparable"),
    }
}
