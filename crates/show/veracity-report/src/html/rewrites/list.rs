//! The rewrites, each to be unfolded: why it was made, what replaced what, what checking showed.

use std::fmt::Write as _;

use veracity_results::{ChangedNode, RewriteCheck, RewriteRecord};

use super::super::escape::escape;
use super::super::facts::facts;
use super::super::table::{list_controls, script_number};
use super::super::words::{class, number};
use super::{Rewritten, window};
use crate::drift::verdict;
use crate::plain::count;

/// Every rewrite that is in the result.
pub(super) fn list(of: &Rewritten<'_>, prefix: &str) -> String {
    if of.log.records.is_empty() {
        return String::new();
    }
    let id = format!("{prefix}rewrite-list");
    let orders = [("order", "order"), ("pass", "pass"), ("error", "largest error")];
    let mut html = list_controls(&id, "pass, node, value, reason", &orders);
    html += &window::shapes(of.windows, prefix);
    let _ = writeln!(html, "<div class=\"list\" id=\"{id}\">");
    for (index, record) in of.log.records.iter().enumerate() {
        let check = of.checks.and_then(|checks| {
            checks.rewrites.iter().find(|check| check.kept && check.id == record.id)
        });
        write_rewrite(&mut html, of, prefix, index, record, check);
    }
    html + "</div>\n"
}

fn write_rewrite(
    html: &mut String,
    of: &Rewritten<'_>,
    prefix: &str,
    index: usize,
    record: &RewriteRecord,
    check: Option<&RewriteCheck>,
) {
    let (state, word) = check
        .map_or(("unknown", "not checked"), |check| (class(check.verdict), verdict(check.verdict)));
    let error = script_number(check.map_or(f64::NAN, |check| check.max_abs));
    let shown =
        check.map_or_else(String::new, |check| format!(", error {}", number(check.max_abs)));
    let (before, after) = (record.removed.len(), record.added.len());
    let what = match (before, after, record.changed.len()) {
        (0, 0, 0) => "values only".to_owned(),
        (before, after, changed) => {
            format!("{} became {}", count(before + changed, "node"), after + changed)
        }
    };
    let _ = write!(
        html,
        "<details class=\"card\" id=\"{prefix}rewrite-{0}\" data-verdict=\"{state}\" data-order=\"{0}\" \
         data-pass=\"{pass}\" data-error=\"{error}\">\n<summary>{0} <code>{pass}</code> <span \
         class=\"{state}\">{word}</span> <span class=\"quiet\">{place}: {what}{shown}</span></summary>\n\
         <p>{reason}</p>\n",
        index + 1,
        pass = escape(&record.pass),
        place = escape(place(record)),
        reason = escape(&record.reason),
    );
    if let Some(window) = of.windows.rewrites.get(index) {
        html.push_str("<div class=\"sides\">\n");
        *html += &window::side("Before", &window.before, window.shapes.0, of.windows, prefix);
        *html += &window::side("After", &window.after, window.shapes.1, of.windows, prefix);
        html.push_str("</div>\n");
    }
    record.changed.iter().for_each(|node| write_changed(html, node));
    *html += &facts(&[&checked(check)[..], &provenance(record)[..]].concat());
    html.push_str("</details>\n");
}

/// A name to find a rewrite by: the first node that it is about.
fn place(record: &RewriteRecord) -> &str {
    let names = record.removed.iter().chain(&record.added).map(|node| {
        let output = node.outputs.first().map_or("", String::as_str);
        if node.name.is_empty() { output } else { node.name.as_str() }
    });
    names.chain(record.changed.iter().map(|node| node.name.as_str())).next().unwrap_or("the graph")
}

fn write_changed(html: &mut String, node: &ChangedNode) {
    let side = |text: &Option<String>| match text {
        Some(text) => format!("<code>{}</code>", escape(text)),
        None => "nothing".to_owned(),
    };
    let _ = writeln!(html, "<p>Changed: <code>{}</code></p>\n<ul>", escape(&node.name));
    for field in &node.fields {
        let (name, before, after) = (escape(&field.field), side(&field.before), side(&field.after));
        let _ = writeln!(html, "<li>{name}: {before} became {after}</li>");
    }
    html.push_str("</ul>\n");
}

/// What checking showed.
fn checked(check: Option<&RewriteCheck>) -> Vec<(&'static str, String)> {
    let Some(check) = check else {
        return vec![("checked", "not alone; see the outputs".to_owned())];
    };
    let worst = match check.worst_set.as_str() {
        "" => String::new(),
        set => format!("{} on {set} inputs", check.value),
    };
    vec![
        ("decided by", check.rule.clone()),
        ("why not proved", check.reason.clone().unwrap_or_default()),
        ("largest error", format!("{} of {}", number(check.max_abs), number(check.scale))),
        ("where", worst),
        ("run on", check.sets.join(", ")),
        ("seen", check.notes.join("; ")),
    ]
}

/// Where it comes from, and what came and went with it.
fn provenance(record: &RewriteRecord) -> Vec<(&'static str, String)> {
    let ids = |ids: &[u32]| {
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        ids.join(", ")
    };
    let weight = |one: &veracity_results::WeightRecord| {
        format!("{} ({}{:?})", one.name, one.dtype, one.dims)
    };
    let mut came = record.weights.iter().map(|new| {
        let from: Vec<&str> = new.from.iter().map(|one| one.name.as_str()).collect();
        match from.as_slice() {
            [] => weight(&new.weight),
            from => format!("{} from {}", weight(&new.weight), from.join(", ")),
        }
    });
    let mut values = record.values.iter().map(|(value, now)| match now {
        Some(now) => format!("{value} is {now}"),
        None => format!("{value} is gone"),
    });
    let join = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join("; ");
    let pass = format!("{} version {}, {}", record.pass, record.version, record.class);
    vec![
        ("pass", pass),
        ("made as", format!("number {} of its pass, round {}", record.index + 1, record.round + 1)),
        ("about node", record.anchor.map_or_else(String::new, |id| id.to_string())),
        ("shown by nodes", ids(&record.context)),
        ("stands for it", ids(&record.standing)),
        ("read another value", ids(&record.rerouted)),
        ("new weights", join(&mut came)),
        ("weights that went", join(&mut record.dropped.iter().map(weight))),
        ("values", join(&mut values)),
    ]
}
