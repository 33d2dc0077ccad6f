//! A drift report and the rerun of a repro, in the colours of this tool.

use veracity::report::{TextOptions, drift};
use veracity::results::{DriftReport, ReproRun};

use super::document::Document;
use super::proof::painted;
use super::style::{self, paint};
use super::text::printable;

/// The report as text, one screen of it.
pub(crate) fn render(report: &DriftReport, width: usize) -> String {
    drift::text(report, &TextOptions { width, paint: painted, ..TextOptions::default() })
}

/// What running a repro again showed, in a line.
pub(crate) fn rerun(run: &ReproRun) -> Document {
    let ReproRun { value, engine, engine_version, shows, repeats, error, budget } = run;
    let verdict = if *shows {
        paint(style::ERROR, "the fault shows again")
    } else {
        paint(style::GOOD, "the fault does not show")
    };
    let bits = if *repeats { "the same bits as before" } else { "other bits than before" };
    let value = printable(value);
    let mut document = Document::new(format!("Rerun: {value}"));
    document.line(format!(
        "{value} on {engine} {engine_version}: {verdict}: off by {error:.3e}, {budget:.3e} is \
         allowed; {bits}"
    ));
    document
}
