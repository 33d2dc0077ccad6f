//! How two models differ, for people.

use std::fmt::Write as _;

use veracity_results::{FieldChange, ModelDiff, NodeRecord};

use super::words::figure;
use crate::plain::count;
use crate::text::page::Page;
use crate::{TextOptions, Tone};

/// Rows of one kind that are shown.
const MOST: usize = 12;

/// Characters of an attribute or a list that are shown.
const MOST_CHARACTERS: usize = 60;

/// A difference for people.
pub fn diff_text(diff: &ModelDiff, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let same = format!(
        "{} and {}; {} the same",
        count(diff.nodes_before, "node"),
        diff.nodes_after,
        diff.nodes_same
    );
    let (word, tone) =
        if diff.is_empty() { ("the same", Tone::Good) } else { ("different", Tone::Doubt) };
    page.headed(&format!("{word}:"), tone, &same);
    for (title, lines) in sections(diff) {
        if lines.is_empty() {
            continue;
        }
        page.row("");
        page.headed(&format!("{title} ({})", lines.len()), Tone::Heading, "");
        for line in lines.iter().take(MOST) {
            page.line(2, line);
        }
        if lines.len() > MOST {
            page.line(2, &format!("… and {} more", lines.len() - MOST));
        }
    }
    page.finish()
}

/// A difference as Markdown.
pub fn diff_markdown(diff: &ModelDiff) -> String {
    let mut text = format!(
        "{} and {} nodes; {} the same\n",
        diff.nodes_before, diff.nodes_after, diff.nodes_same
    );
    for (title, lines) in sections(diff) {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n## {title} ({})\n", lines.len());
            text.extend(lines.iter().map(|line| format!("- {line}\n")));
        }
    }
    text
}

fn sections(diff: &ModelDiff) -> [(&'static str, Vec<String>); 8] {
    let nodes = |all: &[NodeRecord]| all.iter().map(node).collect();
    let outlines = |all: &[veracity_results::WeightOutline]| {
        all.iter().map(|one| format!("{}: {} {:?}", one.name, one.dtype, one.dims)).collect()
    };
    let changed = diff.changed.iter().map(|one| {
        let fields: Vec<String> = one.fields.iter().map(field).collect();
        format!("{} ({}): {}", one.name, one.op_type, fields.join("; "))
    });
    let weights = diff.weights_changed.iter().map(|one| {
        let (before, after) = (&one.before, &one.after);
        let what = match one.max_abs {
            Some(error) => format!("off by at most {}", figure(error)),
            None => format!(
                "{} {:?} became {} {:?}",
                before.dtype, before.dims, after.dtype, after.dims
            ),
        };
        format!("{}: {what}", before.name)
    });
    let renamed = diff.weights_renamed.iter().map(|(from, to)| format!("{from} is {to} now"));
    [
        ("nodes that are gone", nodes(&diff.removed)),
        ("new nodes", nodes(&diff.added)),
        ("nodes that changed", changed.collect()),
        ("weights that are gone", outlines(&diff.weights_removed)),
        ("new weights", outlines(&diff.weights_added)),
        ("weights that changed", weights.collect()),
        ("weights with another name", renamed.collect()),
        ("the model itself", diff.model.iter().map(field).collect()),
    ]
}

fn node(node: &NodeRecord) -> String {
    let (inputs, outputs) = (node.inputs.join(", "), node.outputs.join(", "));
    shortened(&format!("{outputs} = {}({inputs})", node.op_type), 2 * MOST_CHARACTERS)
}

fn field(change: &FieldChange) -> String {
    let side = |text: &Option<String>| {
        text.as_deref()
            .map_or_else(|| "nothing".to_owned(), |text| shortened(text, MOST_CHARACTERS))
    };
    format!("{}: {} -> {}", change.field, side(&change.before), side(&change.after))
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most).chain(['…']).collect()
}
