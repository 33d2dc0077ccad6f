//! What a search found, in a few lines.

use veracity::transform::{Culprit, ToolCulprits};

use super::document::Document;
use super::style::{self, paint};
use super::text::{count, printable};

/// The rewrite that made a model wrong.
pub(crate) fn culprit(found: &Culprit, document: &mut Document) {
    let head = paint(style::ERROR, &format!("rewrite {} of {}", found.index, found.pass));
    document.line(format!("{head} at {}: {}", printable(&found.value), printable(&found.why)));
    document.line(format!("  {}", printable(&found.reason)));
    for other in &found.others {
        document.line(format!("  only together with {}", printable(other)));
    }
    let models = count(found.models, "model");
    document.line(format!("found among {} by running {models}", count(found.rewrites, "rewrite")));
    if let Some(folder) = &found.repro {
        document.line(format!("repro: {}", printable(&folder.display().to_string())));
    }
}

/// The parts of another optimiser that make a model wrong.
pub(crate) fn tool(found: &ToolCulprits, document: &mut Document) {
    let names = printable(&found.culprits.join(", ")).into_owned();
    document.line(format!("{}: {}", paint(style::ERROR, &names), printable(&found.reason)));
    document.line(format!("found by making {}", count(found.models, "model")));
}
