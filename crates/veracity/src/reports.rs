//! Reports as files. Each file is whole or not there; what was there before stays until then.

pub(crate) mod drawing;
mod windows;

use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_report::html::Rewritten;
use veracity_report::{drift, html};
use veracity_results::{CheckedLog, DriftReport, Proof};
use veracity_tensor::file::write_bytes;

use crate::transform::{BundleChange, Change};

/// Most bytes of a file that is looked into to find out what it is.
const MAX_BYTES: u64 = 1 << 30;

/// What a file of results is about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Results {
    /// What was proved about a bundle.
    Proof(Box<Proof>),
    /// What comparing operator by operator found.
    Drift(Box<DriftReport>),
    /// What was done to a model of that name, and what checking showed.
    Rewrites(String, Box<CheckedLog>),
}

/// Reads a file of results, or the proof of a bundle. What it is about is told by what stands in it:
/// a proof has a subject, a drift report has rows, a log has records.
pub fn read(path: &Path) -> Result<Results> {
    if path.is_dir() || path.extension().is_none_or(|extension| extension != "json") {
        return Ok(Results::Proof(Box::new(veracity_prove::read(path)?)));
    }
    let names = names(path)?;
    if names.subject.is_some() && names.nodes.is_some() {
        Ok(Results::Proof(Box::new(veracity_prove::read(path)?)))
    } else if names.session.is_some() && names.rows.is_some() {
        Ok(Results::Drift(Box::new(veracity_drift::read_report(path)?)))
    } else if names.passes.is_some() && names.records.is_some() {
        let log = veracity_transform::read_checked_log(path)?;
        Ok(Results::Rewrites(model_name(path), Box::new(log)))
    } else {
        let message = "this is neither a proof nor a drift report nor a log of rewrites";
        Err(Diagnostic::error(codes::RESULTS_UNKNOWN, message)
            .at(Place::file(path.display().to_string()))
            .hint(
                "`veracity check --output`, `veracity drift --save` and `veracity transform` write such files",
            )
            .into())
    }
}

/// What tells files of results apart: names that stand at the top.
#[derive(serde::Deserialize)]
struct Names {
    subject: Option<IgnoredAny>,
    nodes: Option<IgnoredAny>,
    session: Option<IgnoredAny>,
    rows: Option<IgnoredAny>,
    passes: Option<IgnoredAny>,
    records: Option<IgnoredAny>,
}

/// The model that a log lies beside: `small.onnx` of `small.onnx.rewrites.json`.
fn model_name(log: &Path) -> String {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".rewrites.json").unwrap_or(&name).to_owned()
}

fn names(path: &Path) -> Result<Names> {
    let place = Place::file(path.display().to_string());
    let unreadable = |error: std::io::Error| {
        Diagnostic::error(codes::FILE_UNREADABLE, format!("cannot be read: {error}"))
            .at(place.clone())
    };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_BYTES {
        let message = format!("results of {size} bytes");
        return Err(Diagnostic::error(codes::FILE_TOO_LARGE, message).at(place).into());
    }
    let text = std::fs::read(path).map_err(unreadable)?;
    serde_json::from_slice(&text).map_err(|error| {
        let message = format!("not a file of results: {error}");
        Diagnostic::error(codes::RESULTS_UNKNOWN, message).at(place.clone()).into()
    })
}

/// Results as a page.
pub fn page(results: &Results) -> String {
    match results {
        Results::Proof(proof) => proof_page(proof),
        Results::Drift(report) => html::drift(report),
        Results::Rewrites(name, found) => rewrites_page(name, found),
    }
}

fn rewrites_page(name: &str, CheckedLog { log, checks }: &CheckedLog) -> String {
    let windows = windows::windows(log);
    html::rewrites(&Rewritten { name, log, checks: checks.as_ref(), windows: &windows })
}

/// Writes what was done to a model as a page.
pub fn write_change_page(name: &str, change: &Change, path: &Path) -> Result<()> {
    write(path, &rewrites_page(name, &change.checked_log()?))
}

/// Writes what was done to a bundle as a page: the proof of the new one, and the changes of its
/// models.
pub fn write_bundle_change_page(change: &BundleChange, path: &Path) -> Result<()> {
    let mut parts = Vec::new();
    for node in &change.nodes {
        if let Some(done) = &node.change {
            let log = &done.recorded()?.log;
            parts.push((node.node.as_str(), log, done.checks.as_ref(), windows::windows(log)));
        }
    }
    let nodes: Vec<Rewritten<'_>> = parts
        .iter()
        .map(|(name, log, checks, windows)| Rewritten { name, log, checks: *checks, windows })
        .collect();
    let drawing = drawing::drawing(&change.proof);
    write(path, &html::rewritten_bundle(&change.proof, drawing.as_ref(), &nodes))
}

fn proof_page(proof: &Proof) -> String {
    html::proof(proof, drawing::drawing(proof).as_ref())
}

/// Writes results as a page.
pub fn write_page(results: &Results, path: &Path) -> Result<()> {
    write(path, &page(results))
}

/// Writes a proof as a page.
pub fn write_proof_page(proof: &Proof, path: &Path) -> Result<()> {
    write(path, &proof_page(proof))
}

/// Writes every file of a drift report; `base` is what their names start with. Gives their paths.
pub fn write_drift(report: &DriftReport, base: &Path) -> Result<Vec<PathBuf>> {
    let Some(name) = base.file_name() else {
        let message = "the files of a report need a name to start with";
        let place = Place::file(base.display().to_string());
        return Err(Diagnostic::error(codes::FILE_UNWRITABLE, message).at(place).into());
    };
    let mut paths = Vec::new();
    for file in drift::files(report) {
        let mut name = name.to_owned();
        name.push(file.ending);
        let path = base.with_file_name(name);
        write(&path, &file.text)?;
        paths.push(path);
    }
    Ok(paths)
}

/// Writes a drift report as a page.
pub fn write_drift_page(report: &DriftReport, path: &Path) -> Result<()> {
    write(path, &html::drift(report))
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            let place = Place::file(folder.display().to_string());
            Diagnostic::error(codes::FILE_UNWRITABLE, error.to_string()).at(place)
        })?;
    }
    write_bytes(path, text.as_bytes())
}
