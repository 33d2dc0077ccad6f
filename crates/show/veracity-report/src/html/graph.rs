//! A pipeline to move around in: boxes that lead to what is known about them, and lines between.
//!
//! Where everything lies is decided elsewhere; here it is only shown.

use std::fmt::Write as _;

use veracity_results::Verdict;

use super::escape::escape;
use super::words::class;

/// A pipeline with coordinates. The origin is at the upper left; letters take about 12 units.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// Width of the whole.
    pub width: i32,
    /// Height of the whole.
    pub height: i32,
    /// The nodes.
    pub boxes: Vec<DrawnBox>,
    /// What goes from node to node.
    pub lines: Vec<DrawnLine>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct DrawnBox {
    /// Name of the node.
    pub node: String,
    /// Left edge.
    pub x: i32,
    /// Upper edge.
    pub y: i32,
    /// Width.
    pub width: i32,
    /// Height.
    pub height: i32,
    /// What is known about it, if anything.
    pub verdict: Option<Verdict>,
    /// Its texts: the name, the kind of its model, its ports.
    pub texts: Vec<DrawnText>,
}

/// What of a text is at its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anchor {
    /// Where it begins.
    #[default]
    Start,
    /// Its middle.
    Middle,
    /// Where it ends.
    End,
}

/// A text in one line.
#[derive(Clone, Debug, Default)]
pub struct DrawnText {
    /// What it says.
    pub text: String,
    /// The whole, where that was cut.
    pub full: Option<String>,
    /// Where it begins, ends or has its middle.
    pub x: i32,
    /// Base line.
    pub y: i32,
    /// What of it is at `x`.
    pub anchor: Anchor,
    /// Whether it is the name of a node.
    pub is_title: bool,
    /// Whether it is less important than others.
    pub is_quiet: bool,
    /// The width that there is for it, whatever the font; 0 when that is not known.
    pub width: i32,
}

/// A value that goes from node to node.
#[derive(Clone, Debug, Default)]
pub struct DrawnLine {
    /// Corners, ends included.
    pub points: Vec<(i32, i32)>,
    /// Ticks until it arrives; more than 0 for feedback.
    pub delay: u32,
    /// What it is, `node/port` to `node/port`.
    pub title: String,
    /// What is written on it.
    pub label: Option<DrawnText>,
}

/// Where the sign of a verdict stands in a box: before the name.
const SIGN_X: i32 = 14;
const SIGN_Y: i32 = 22;

fn sign(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Proved => ("✓", "proved"),
        Verdict::Conditional => ("~", "conditional"),
        Verdict::Disproved => ("✗", "disproved"),
        Verdict::NotComparable => ("?", "not comparable"),
    }
}

/// How much larger than drawn a small pipeline is shown at first.
const LARGEST: f64 = 1.4;

/// A drawing with its controls. `target` gives the id of what a node leads to.
pub(super) fn graph(drawing: &Drawing, target: impl Fn(&str) -> Option<String>) -> String {
    if drawing.boxes.is_empty() {
        return String::new();
    }
    let Drawing { width, height, .. } = drawing;
    let most = LARGEST * f64::from(*height);
    let mut html = format!(
        "<div class=\"graph\">\n<div class=\"controls\" hidden>\n<label>Search <input type=\"search\" \
         placeholder=\"node, port\"></label>\n<button type=\"button\" value=\"larger\">Larger</button>\n\
         <button type=\"button\" value=\"smaller\">Smaller</button>\n<button type=\"button\" \
         value=\"all\">Show all</button>\n<output aria-live=\"polite\"></output>\n</div>\n\
         <svg viewBox=\"0 0 {width} {height}\" data-width=\"{width}\" data-height=\"{height}\" \
         style=\"--most: {most:.0}px\" role=\"group\" aria-label=\"The pipeline\">\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" \
         refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 \
         4L0 8z\" class=\"tip\"/></marker></defs>\n"
    );
    drawing.lines.iter().for_each(|line| write_line(&mut html, line));
    let labels = drawing.lines.iter().filter_map(|line| line.label.as_ref());
    labels.for_each(|label| write_text(&mut html, label, "delay"));
    for one in &drawing.boxes {
        write_box(&mut html, one, target(&one.node));
    }
    html + "</svg>\n</div>\n<p class=\"legend\"><span class=\"flow\">within a tick</span> \
            <span class=\"delayed\">feedback, a tick or more later</span></p>\n"
}

fn write_line(html: &mut String, line: &DrawnLine) {
    let class = if line.delay > 0 { "edge feedback" } else { "edge" };
    let points: Vec<String> = line.points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    let after = match line.delay {
        0 => String::new(),
        1 => ", 1 tick later".to_owned(),
        delay => format!(", {delay} ticks later"),
    };
    let _ = writeln!(
        html,
        "<polyline class=\"{class}\" points=\"{}\" marker-end=\"url(#arrow)\"><title>{}{after}\
         </title></polyline>",
        points.join(" "),
        escape(&line.title)
    );
}

fn write_box(html: &mut String, one: &DrawnBox, target: Option<String>) {
    let DrawnBox { x, y, width, height, .. } = one;
    let verdict = one.verdict.map_or("unknown", class);
    let href = target.map_or_else(String::new, |id| format!(" href=\"#{}\"", escape(&id)));
    let name = escape(&one.node);
    let _ = writeln!(
        html,
        "<a{href} class=\"{verdict}\" aria-label=\"{name}\"><rect class=\"box\" x=\"{x}\" y=\"{y}\" \
         width=\"{width}\" height=\"{height}\" rx=\"6\"/>"
    );
    for text in &one.texts {
        let class = match text {
            text if text.is_title => "title",
            text if text.is_quiet => "fact",
            _ => "port",
        };
        write_text(html, text, class);
    }
    // Colours alone tell not everybody.
    if let Some((sign, name)) = one.verdict.map(sign) {
        let (x, y) = (x + SIGN_X, y + SIGN_Y);
        let _ = writeln!(
            html,
            "<text class=\"sign\" x=\"{x}\" y=\"{y}\">{sign}<title>{name}</title></text>"
        );
    }
    html.push_str("</a>\n");
}

fn write_text(html: &mut String, text: &DrawnText, class: &str) {
    let DrawnText { x, y, .. } = text;
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let width = match text.width {
        0 => String::new(),
        width => format!(" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\""),
    };
    // What was cut to fit says the rest to who points at it.
    let full = text.full.as_ref().map(|full| format!("<title>{}</title>", escape(full)));
    let _ = writeln!(
        html,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}{width}>{}{}</text>",
        escape(&text.text),
        full.unwrap_or_default()
    );
}
