//! What got worse since an earlier report.
//!
//! A baseline is a report that somebody accepted. What it already says is no news: only rows that
//! are wrong now and were not, errors that grew, and values that are no longer looked at are.

use std::collections::BTreeMap;
use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_results::{DRIFT_SCHEMA_VERSION, DriftReport, DriftRow, Verdict};

use crate::file::{position, read_text};

/// Most bytes of a report.
const MAX_BYTES: u64 = 1 << 30;

/// An error that is at most this many times the old one is the same error: another number of
/// threads or another release of the engine moves errors by this much.
const FACTOR: f64 = 2.0;

/// Reads a report that was saved.
pub fn read_report(path: &Path) -> Result<DriftReport> {
    let place = Place::file(path.display().to_string());
    let text = read_text(path, MAX_BYTES)?;
    let report: DriftReport = serde_json::from_str(&text).map_err(|error| {
        let message = format!("this is no drift report: {error}");
        let found = Diagnostic::error(codes::DRIFT_UNREADABLE, message).at(position(&error));
        found.within(&place).hint("`veracity drift ... --save FILE` writes one")
    })?;
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    if major(&report.schema_version) != major(DRIFT_SCHEMA_VERSION) {
        let (theirs, ours) = (&report.schema_version, DRIFT_SCHEMA_VERSION);
        let message = format!("the report has version {theirs}; {ours} is understood");
        return Err(Diagnostic::error(codes::DRIFT_UNREADABLE, message).at(place).into());
    }
    Ok(report)
}

/// What is worse in a report than in an earlier one, in the order of the values.
pub fn worse_than(baseline: &DriftReport, report: &DriftReport) -> Vec<Diagnostic> {
    let now: BTreeMap<&str, &DriftRow> =
        report.rows.iter().map(|row| (row.name.as_str(), row)).collect();
    let before: BTreeMap<&str, &DriftRow> =
        baseline.rows.iter().map(|row| (row.name.as_str(), row)).collect();
    let mut worse: Vec<Diagnostic> = Vec::new();
    for row in &baseline.rows {
        if !now.contains_key(row.name.as_str()) {
            worse.push(finding(&row.name, "it was compared and is not any more".to_owned()));
        }
    }
    for row in &report.rows {
        let change = match before.get(row.name.as_str()) {
            Some(old) => grown(old, row),
            None if row.verdict == Verdict::Proved => None,
            None => Some(format!("it is new and {}", said(row.verdict))),
        };
        worse.extend(change.map(|change| finding(&row.name, change)));
    }
    // A reason that keeps a report from being proved concerns no row.
    if worse.is_empty() && report.verdict > baseline.verdict {
        let (was, is) = (said(baseline.verdict), said(report.verdict));
        let message = format!("the whole was {was} and is {is}");
        worse.push(Diagnostic::error(codes::DRIFT_WORSE, message));
    }
    worse
}

/// How a row got worse, if it did.
fn grown(old: &DriftRow, new: &DriftRow) -> Option<String> {
    if new.verdict > old.verdict {
        return Some(format!("it was {} and is {}", said(old.verdict), said(new.verdict)));
    }
    let exceeds = |was: f64, is: f64| is > was * FACTOR && is - was > new.budget;
    for (what, was, is) in [
        ("introduces", old.introduced, new.introduced),
        ("accumulates", old.accumulated, new.accumulated),
    ] {
        if is.mismatching > was.mismatching {
            let (was, is) = (was.mismatching, is.mismatching);
            return Some(format!("it {what} {is} NaN or infinities where it had {was}"));
        }
        if exceeds(was.max_abs, is.max_abs) {
            return Some(format!("it {what} {:.3e} where it had {:.3e}", is.max_abs, was.max_abs));
        }
    }
    None
}

fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Proved => "proved",
        Verdict::Conditional => "conditional",
        Verdict::NotComparable => "not comparable",
        Verdict::Disproved => "disproved",
    }
}

fn finding(name: &str, change: String) -> Diagnostic {
    Diagnostic::error(codes::DRIFT_WORSE, change).at(Place::node(name))
}
