//! Drift reports, from Python: the same writers as on the command line.

use std::path::PathBuf;

use pyo3::prelude::*;
use veracity::report::{TextOptions, drift};
use veracity::results::DriftReport;
use veracity::{reports, two};

use crate::errors::OrRaise;
use crate::options::invalid;

/// Adds the functions of this file.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(drift_text, module)?)?;
    module.add_function(wrap_pyfunction!(drift_markdown, module)?)?;
    module.add_function(wrap_pyfunction!(drift_worse, module)?)?;
    module.add_function(wrap_pyfunction!(write_drift, module)?)?;
    module.add_function(wrap_pyfunction!(write_drift_page, module)?)
}

/// A report as text.
#[pyfunction]
fn drift_text(py: Python<'_>, report_json: &str, width: usize) -> PyResult<String> {
    let options = TextOptions { width, ..TextOptions::default() };
    Ok(drift::text(&read(py, report_json)?, &options))
}

/// A report as Markdown.
#[pyfunction]
fn drift_markdown(py: Python<'_>, report_json: &str) -> PyResult<String> {
    Ok(drift::markdown(&read(py, report_json)?))
}

/// What is worse in a report than in one that was saved, as JSON.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
fn drift_worse(py: Python<'_>, report_json: &str, baseline: PathBuf) -> PyResult<String> {
    let report = read(py, report_json)?;
    let baseline = two::read_report(&baseline).or_raise(py)?;
    let worse = two::worse_than(&baseline, &report);
    serde_json::to_string(&worse).map_err(|error| invalid(error.to_string())).or_raise(py)
}

/// Writes the files of a report; gives their paths.
#[pyfunction]
fn write_drift(py: Python<'_>, report_json: &str, base: PathBuf) -> PyResult<Vec<PathBuf>> {
    let report = read(py, report_json)?;
    py.detach(move || reports::write_drift(&report, &base)).or_raise(py)
}

/// Writes a report as a page.
#[pyfunction]
fn write_drift_page(py: Python<'_>, report_json: &str, path: PathBuf) -> PyResult<()> {
    let report = read(py, report_json)?;
    py.detach(move || reports::write_drift_page(&report, &path)).or_raise(py)
}

fn read(py: Python<'_>, report_json: &str) -> PyResult<DriftReport> {
    serde_json::from_str(report_json)
        .map_err(|error| invalid(format!("not a drift report: {error}")))
        .or_raise(py)
}
