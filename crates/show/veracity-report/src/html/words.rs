//! Words and numbers that every page shows in the same way.

use veracity_results::Verdict;

use crate::python::exponential;

/// The class of a verdict: a word of ours, without spaces.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Proved => "proved",
        Verdict::Disproved => "disproved",
        Verdict::NotComparable => "not_comparable",
    }
}

/// An error in few columns.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { exponential(value) }
}
