//! What was replaced, and what replaced it: a picture where there is one, and the nodes as text.
//!
//! Hundreds of rewrites have a few shapes, so that a picture stands in the page once and shows
//! operators only; names are in the text below it.

use std::fmt::Write as _;

use veracity_results::NodeRecord;

use super::super::escape::escape;
use super::super::graph::Drawing;
use super::Windows;

/// The pictures that rewrites show, themselves out of sight.
pub(super) fn shapes(windows: &Windows, prefix: &str) -> String {
    if windows.shapes.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<svg class=\"shapes\" aria-hidden=\"true\">\n<defs><marker id=\"{prefix}tip\" viewBox=\"0 0 8 8\" \
         refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path \
         class=\"window-tip\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n"
    );
    for (index, shape) in windows.shapes.iter().enumerate() {
        write_shape(&mut html, shape, prefix, index);
    }
    html + "</svg>\n"
}

fn write_shape(html: &mut String, shape: &Drawing, prefix: &str, index: usize) {
    let Drawing { width, height, .. } = shape;
    let _ = writeln!(
        html,
        "<symbol id=\"{prefix}shape-{}\" viewBox=\"0 0 {width} {height}\">",
        index + 1
    );
    for line in &shape.lines {
        let points: Vec<String> = line.points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let _ = writeln!(
            html,
            "<polyline class=\"window-line\" points=\"{}\" marker-end=\"url(#{prefix}tip)\"/>",
            points.join(" ")
        );
    }
    for one in &shape.boxes {
        let _ = writeln!(
            html,
            "<rect class=\"window-box\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\"/>",
            one.x, one.y, one.width, one.height
        );
        for text in &one.texts {
            let (x, y, text) = (text.x, text.y, escape(&text.text));
            let _ = writeln!(html, "<text class=\"window-text\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
    }
    html.push_str("</symbol>\n");
}

/// One side of a rewrite.
pub(super) fn side(
    title: &str,
    nodes: &[NodeRecord],
    shape: Option<usize>,
    windows: &Windows,
    prefix: &str,
) -> String {
    let mut html = format!("<div>\n<h4>{title}</h4>\n");
    let shape = shape.and_then(|index| Some((index + 1, windows.shapes.get(index)?)));
    if let Some((number, Drawing { width, height, .. })) = shape {
        let _ = writeln!(
            html,
            "<svg class=\"window\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{}\"><use \
             href=\"#{prefix}shape-{number}\"/></svg>",
            escape(&operators(nodes))
        );
    }
    if nodes.is_empty() {
        return html + "<p class=\"quiet\">no nodes</p>\n</div>\n";
    }
    html += "<ul class=\"nodes\">\n";
    for node in nodes {
        let (outputs, inputs) = (node.outputs.join(", "), node.inputs.join(", "));
        let name = match node.name.as_str() {
            "" => String::new(),
            name => format!(" <span class=\"quiet\">{}</span>", escape(name)),
        };
        let _ = writeln!(
            html,
            "<li><code>{} = <b>{}</b>({})</code>{name}</li>",
            escape(&outputs),
            escape(&node.op_type),
            escape(&inputs)
        );
    }
    html + "</ul>\n</div>\n"
}

fn operators(nodes: &[NodeRecord]) -> String {
    let names: Vec<&str> = nodes.iter().map(|node| node.op_type.as_str()).collect();
    names.join(", ")
}
