//! What is said about a drift report in more than one place.

use veracity_results::{Cause, DriftReport, DriftRow, Verdict};

use super::causes::name;
use crate::plain::count;

/// The answer in words.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Proved => "proved",
        Verdict::Conditional => "conditional",
        Verdict::Disproved => "disproved",
        Verdict::NotComparable => "not comparable",
    }
}

/// The answer as a sentence without a full stop.
pub(crate) fn verdict_line(report: &DriftReport) -> String {
    let counts = report.counts();
    let compared = count(counts.compared(), "value");
    match report.verdict {
        Verdict::Proved => {
            format!("proved: on these inputs none of {compared} brings in more than its budget")
        }
        Verdict::Disproved if counts.disproved > 0 => {
            format!("disproved: {} of {compared} off by more than the budget", counts.disproved)
        }
        Verdict::Disproved => "disproved, although no operator is over its budget".to_owned(),
        Verdict::NotComparable if counts.compared() == 0 => {
            "not comparable: nothing was compared".to_owned()
        }
        Verdict::Conditional | Verdict::NotComparable => format!(
            "not comparable: nothing is wrong among {compared}, but something could not be compared"
        ),
    }
}

/// What was looked at: on the side of the export and, where it is known, of the original.
pub(crate) fn coverage_lines(report: &DriftReport) -> Vec<String> {
    let counts = report.counts();
    let mut lines = vec![format!(
        "export: {} of {} compared, {} part of compared ones, {} not mapped",
        counts.compared(),
        count(counts.values(), "value"),
        counts.parts,
        counts.not_mapped
    )];
    // Rounded down: 100 % means all of them.
    let proved = (counts.program_proved + counts.program_folded) * 100;
    if let Some(share) = proved.checked_div(counts.program) {
        lines.push(format!(
            "original: {} of {} proved, {} folded into proved ({share} %), {} not mapped",
            counts.program_proved,
            count(counts.program, "tensor"),
            counts.program_folded,
            counts.program_not_mapped
        ));
    }
    lines
}

/// A cause in a line.
pub(crate) fn cause_line(cause: &Cause) -> String {
    let ruled_out = match cause.ruled_out.as_slice() {
        [] => String::new(),
        tried => format!(" (ruled out: {})", tried.join(", ")),
    };
    let detail = if cause.detail.is_empty() { "" } else { ": " };
    format!("{}{detail}{}{ruled_out}", name(cause.kind), cause.detail)
}

/// `float32[1, 64, 7, 7]`
pub(crate) fn shape(row: &DriftRow) -> String {
    format!("{}{:?}", row.dtype, row.shape)
}
