//! A layout as SVG. One file that needs nothing else: the font is inside, and so are the colours for
//! light and dark pages.

mod style;

use std::fmt::Write as _;

use veracity_results::Verdict;

use crate::boxes::SIGN;
use crate::layout::Weight;
use crate::layout::{Align, Block, Label, Layout, LegendEntry, LegendKind, PortPlace, Route, Side};

/// Radius of the corners of lines.
const BEND: i32 = 6;
/// Radius of the corners of boxes.
const ROUND: i32 = 7;

/// Radius of ports.
const PORT: i32 = 3;

/// Who looks at a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// People, on light and on dark pages.
    Page,
    /// What makes pixels of it: it has the font, and knows no dark pages.
    #[cfg(feature = "png")]
    Painter,
}

/// A layout as SVG.
pub fn svg(layout: &Layout) -> String {
    document(layout, Reader::Page)
}

pub(crate) fn document(layout: &Layout, reader: Reader) -> String {
    let Layout { width, height, .. } = layout;
    let name = layout.titles.first().map(full).unwrap_or_default();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n{}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n",
        escape(name),
        style::style(reader),
    );
    // Feedback last: it is drawn over the rest where lines cross.
    for is_feedback in [false, true] {
        for route in layout.routes.iter().filter(|route| (route.delay > 0) == is_feedback) {
            write_route(&mut out, route);
        }
    }
    for label in layout.routes.iter().filter_map(|route| route.label.as_ref()) {
        write_tag(&mut out, label);
    }
    layout.blocks.iter().for_each(|block| write_block(&mut out, block));
    layout.titles.iter().for_each(|title| write_label(&mut out, title));
    layout.legend.iter().for_each(|entry| write_entry(&mut out, entry));
    out + "</svg>\n"
}

fn write_route(out: &mut String, route: &Route) {
    let class = if route.delay > 0 { "feedback" } else { "data" };
    let (source, target) = (&route.source, &route.target);
    let ends = format!("{}/{} → {}/{}", source.node, source.port, target.node, target.port);
    let _ = writeln!(out, "<g class=\"{class}\"><title>{}</title>", escape(&ends));
    let _ = writeln!(out, "<path class=\"line\" d=\"{}\"/>", line(&route.points));
    if let Some((x, y)) = route.points.last() {
        write_arrow(out, *x - PORT, *y);
    }
    out.push_str("</g>\n");
}

/// An arrow head that points right and ends at a point.
fn write_arrow(out: &mut String, x: i32, y: i32) {
    let _ = writeln!(out, "<path class=\"head\" d=\"M{x} {y}l-8 -4v8z\"/>");
}

/// A line with round corners.
fn line(points: &[(i32, i32)]) -> String {
    let mut path = String::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| points.get(before));
        let corner = before.zip(points.get(index + 1));
        let _ = match corner {
            None if index == 0 => write!(path, "M{x} {y}"),
            None => write!(path, "L{x} {y}"),
            Some((&before, &after)) => {
                let bend = BEND.min(length(before, (x, y)) / 2).min(length((x, y), after) / 2);
                let (from, to) = (towards((x, y), before, bend), towards((x, y), after, bend));
                write!(path, "L{} {}Q{x} {y} {} {}", from.0, from.1, to.0, to.1)
            }
        };
    }
    path
}

fn length(a: (i32, i32), b: (i32, i32)) -> i32 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

/// The point that lies so far from one point towards another, along an axis.
fn towards(from: (i32, i32), to: (i32, i32), by: i32) -> (i32, i32) {
    (from.0 + by * (to.0 - from.0).signum(), from.1 + by * (to.1 - from.1).signum())
}

/// A label on a line.
fn write_tag(out: &mut String, label: &Label) {
    let (left, right) = label.span();
    let (x, y, width) = (left - 4, label.y - 11, right - left + 8);
    let _ = writeln!(
        out,
        "<g class=\"tag\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"15\" rx=\"4\"/>"
    );
    write_label(out, label);
    out.push_str("</g>\n");
}

fn write_block(out: &mut String, block: &Block) {
    let Block { x, y, width, height, header, .. } = block;
    let _ = writeln!(out, "<g class=\"node\"><title>{}</title>", escape(&block.node));
    let _ = writeln!(
        out,
        "<rect class=\"box\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
         rx=\"{ROUND}\"/>"
    );
    // The header, inside of the border.
    let (inner, right, base) = (ROUND - 1, width - 2 * ROUND, header - ROUND - 1);
    let _ = writeln!(
        out,
        "<path class=\"header\" d=\"M{} {}v-{base}q0 -{inner} {inner} -{inner}h{right}q{inner} 0 \
         {inner} {inner}v{base}z\"/>",
        x + 1,
        y + header - 1,
    );
    if let Some(verdict) = block.verdict {
        write_sign(out, verdict, x + 10 + SIGN / 2, y + header / 2);
    }
    block.labels.iter().for_each(|label| write_label(out, label));
    block.ports.iter().for_each(|port| write_port(out, port));
    out.push_str("</g>\n");
}

fn write_port(out: &mut String, port: &PortPlace) {
    let (class, x, y) = (class_of(port.side), port.x, port.y);
    if port.is_pipeline_end {
        let stub = port.stub_x;
        let _ = writeln!(out, "<g class=\"{class}\"><path class=\"line\" d=\"M{stub} {y}H{x}\"/>");
        let _ = writeln!(out, "<circle class=\"head\" cx=\"{stub}\" cy=\"{y}\" r=\"4\"/>");
        if port.side == Side::Input {
            write_arrow(out, x, y);
        }
        out.push_str("</g>\n");
    }
    if port.side == Side::Output || !port.is_pipeline_end {
        let _ = writeln!(out, "<circle class=\"port\" cx=\"{x}\" cy=\"{y}\" r=\"{PORT}\"/>");
    }
    port.labels.iter().for_each(|label| write_label(out, label));
}

fn class_of(side: Side) -> &'static str {
    match side {
        Side::Input => "input",
        Side::Output => "output",
    }
}

/// A disc with a tick, a wave, a cross or a dash: told apart without colours.
fn write_sign(out: &mut String, verdict: Verdict, x: i32, y: i32) {
    let (class, mark) = match verdict {
        Verdict::Proved => ("proved", "m-3 0l2 2.5l4 -5"),
        Verdict::Conditional => ("conditional", "m-3 1q1.5 -3 3 -1t3 -1"),
        Verdict::Disproved => ("disproved", "m-2.5 -2.5l5 5m0 -5l-5 5"),
        Verdict::NotComparable => ("open", "m-3 0h6"),
    };
    let word = class.replace("open", "not comparable");
    let _ = writeln!(
        out,
        "<g class=\"{class}\"><title>{word}</title><circle cx=\"{x}\" cy=\"{y}\" r=\"6\"/>\
         <path class=\"mark\" d=\"M{x} {y}{mark}\"/></g>"
    );
}

fn write_entry(out: &mut String, entry: &LegendEntry) {
    let LegendEntry { x, y, width, .. } = entry;
    let end = x + width;
    let line = |out: &mut String, class: &str| {
        let _ = writeln!(out, "<g class=\"{class}\"><path class=\"line\" d=\"M{x} {y}H{end}\"/>");
    };
    match entry.kind {
        LegendKind::Data | LegendKind::Feedback => {
            let is_data = entry.kind == LegendKind::Data;
            line(out, if is_data { "data" } else { "feedback" });
            write_arrow(out, end, *y);
            out.push_str("</g>\n");
        }
        LegendKind::Input | LegendKind::Output => {
            let is_input = entry.kind == LegendKind::Input;
            line(out, class_of(if is_input { Side::Input } else { Side::Output }));
            let disc = if is_input { x + 4 } else { end - 4 };
            let _ = writeln!(out, "<circle class=\"head\" cx=\"{disc}\" cy=\"{y}\" r=\"4\"/>");
            if is_input {
                write_arrow(out, end, *y);
            }
            out.push_str("</g>\n");
        }
        LegendKind::Verdict(verdict) => write_sign(out, verdict, x + 6, *y),
    }
    write_label(out, &entry.label);
}

fn write_label(out: &mut String, label: &Label) {
    let Label { x, y, size, .. } = label;
    let class = match (label.weight, label.is_quiet) {
        (Weight::SemiBold, _) => " class=\"name\"",
        (Weight::Regular, true) => " class=\"quiet\"",
        (Weight::Regular, false) => "",
    };
    let anchor = match label.align {
        Align::Start => "",
        Align::Middle => " text-anchor=\"middle\"",
        Align::End => " text-anchor=\"end\"",
    };
    let _ = write!(out, "<text{class} x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor}>");
    if let Some(full) = &label.full {
        let _ = write!(out, "<title>{}</title>", escape(full));
    }
    let _ = writeln!(out, "{}</text>", escape(&label.text));
}

fn full(label: &Label) -> &str {
    label.full.as_deref().unwrap_or(&label.text)
}

/// Text between tags. Characters that XML does not know are shown as what they are: not to be shown.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push(' '),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            other if other.is_control() => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}
