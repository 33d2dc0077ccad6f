//! Verdicts over named tensors, worst first.

use veracity::results::{Comparison, ComparisonRow, Measurement, Tolerance, Verdict};

use super::document::Document;
use super::style::{self, paint};
use super::table::{Cell, Column, Table};
use super::text::{exact, number};

/// The table and the line that sums up. `asked` is the tolerance that was given.
pub(crate) fn document(comparison: &Comparison, asked: Tolerance) -> Document {
    let mut table = Table::new([
        Column::left("name").path(),
        Column::left("verdict"),
        Column::right("max abs"),
        Column::right("max rel"),
        Column::right("rms"),
        Column::right("outside"),
    ]);
    for row in &comparison.rows {
        table.row(cells(row));
        for note in notes(row, asked) {
            table.note(&note);
        }
    }
    let mut document = Document::new("Comparison");
    if !comparison.rows.is_empty() {
        document.table(table, 0);
        document.gap();
    }
    document.line(summary(comparison));
    document
}

fn cells(row: &ComparisonRow) -> [Cell; 6] {
    let (color, word) = verdict(row.verdict);
    let measured = |value: fn(&Measurement) -> String| {
        Cell::from(row.measurement.as_ref().map(value).unwrap_or_default())
    };
    [
        Cell::from(&row.name),
        Cell::styled(color, word),
        measured(|measured| number(measured.max_abs)),
        measured(|measured| number(measured.max_rel)),
        measured(|measured| number(measured.rms)),
        measured(|measured| format!("{}/{}", measured.outside, measured.elements)),
    ]
}

fn verdict(verdict: Verdict) -> (anstyle::Style, &'static str) {
    match verdict {
        Verdict::Proved => (style::GOOD, "proved"),
        Verdict::Conditional => (style::WARNING, "conditional"),
        Verdict::Disproved => (style::ERROR, "disproved"),
        Verdict::NotComparable => (style::WARNING, "not comparable"),
    }
}

/// What does not fit into a column. Reasons that the numbers already give are left out.
fn notes(row: &ComparisonRow, asked: Tolerance) -> Vec<String> {
    let Some(measured) = &row.measurement else {
        return row.reasons.iter().map(|reason| reason.message.clone()).collect();
    };
    let mut notes = Vec::new();
    if let Some(worst) = &measured.worst {
        let (reference, candidate) = (exact(worst.reference), exact(worst.candidate));
        let index = &worst.index;
        notes.push(format!("worst at {index:?}: reference {reference}, candidate {candidate}"));
    }
    notes.extend(non_finite(row.verdict, measured));
    notes.extend(percentiles(measured));
    if row.verdict == Verdict::Disproved {
        notes.extend(passing(row, measured, asked));
    }
    notes
}

fn non_finite(verdict: Verdict, measured: &Measurement) -> Option<String> {
    let found = &measured.non_finite;
    let sides = [
        ("reference", found.reference_nan, found.reference_inf),
        ("candidate", found.candidate_nan, found.candidate_inf),
    ];
    if sides.iter().all(|(_, nan, inf)| nan + inf == 0) {
        return None;
    }
    let sides = sides.map(|(side, nan, inf)| format!("{side} {nan}/{inf}")).join(", ");
    let remark = match (&found.first_mismatch, verdict) {
        (Some(index), _) => format!("{} without a match, first at {index:?}", found.mismatching),
        (None, Verdict::Proved) => "all match".to_owned(),
        (None, _) => "all match, `--equal-nan` accepts them".to_owned(),
    };
    Some(format!("NaN/Inf: {sides}; {remark}"))
}

fn percentiles(measured: &Measurement) -> Option<String> {
    let found = measured.percentiles.as_ref()?;
    let named = found.named().map(|(name, value)| format!("{name} {}", number(value)));
    Some(format!("abs error: {}", named.join(", ")))
}

/// The tolerance that would pass, where a tolerance can help.
fn passing(row: &ComparisonRow, measured: &Measurement, asked: Tolerance) -> Option<String> {
    if measured.outside == 0 {
        return None;
    }
    if row.tolerance != asked {
        return Some("integers and bools must be equal".to_owned());
    }
    let (atol, rtol) = (measured.min_atol, row.tolerance.rtol());
    Some(format!("finite values would pass with --atol {} --rtol {}", exact(atol), exact(rtol)))
}

fn summary(comparison: &Comparison) -> String {
    let coverage = &comparison.coverage;
    let parts = [
        (coverage.proved, Verdict::Proved),
        (coverage.disproved, Verdict::Disproved),
        (coverage.not_comparable, Verdict::NotComparable),
    ];
    let parts = parts.map(|(number, kind)| {
        let (color, word) = verdict(kind);
        let part = format!("{number} {word}");
        if number == 0 { part } else { paint(color, &part) }
    });
    let nothing = if comparison.rows.is_empty() { ": there was nothing to compare" } else { "" };
    format!("{}{nothing}", parts.join(", "))
}
