//! What a search found, in a few lines.

use std::fmt::Write as _;

use veracity::transform::{Culprit, ToolCulprits};

use super::style::{self, paint};
use super::text::{count, printable};

/// The rewrite that made a model wrong.
pub(crate) fn culprit(found: &Culprit) -> String {
    let head = paint(style::ERROR, &format!("rewrite {} of {}", found.index, found.pass));
    let mut text = format!("{head} at {}: {}\n", printable(&found.value), printable(&found.why));
    let _ = writeln!(text, "  {}", printable(&found.reason));
    for other in &found.others {
        let _ = writeln!(text, "  only together with {}", printable(other));
    }
    let models = count(found.models, "model");
    let _ = writeln!(text, "found among {} by running {models}", count(found.rewrites, "rewrite"));
    if let Some(folder) = &found.repro {
        let _ = writeln!(text, "repro: {}", printable(&folder.display().to_string()));
    }
    text
}

/// The parts of another optimiser that make a model wrong.
pub(crate) fn tool(found: &ToolCulprits) -> String {
    let names = printable(&found.culprits.join(", ")).into_owned();
    let head = paint(style::ERROR, &names);
    let models = count(found.models, "model");
    format!("{head}: {}\nfound by making {models}\n", printable(&found.reason))
}
