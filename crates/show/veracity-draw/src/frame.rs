//! The whole picture: title, parts that hang together, legend.

use std::collections::BTreeMap;

use veracity_diag::Result;
use veracity_results::{Pipeline, Verdict};

use crate::arrange::{Arranged, arrange};
use crate::boxes::{self, block};
use crate::layers::ASPECT;
use crate::layout::{Align, Block, Label, Layout, LegendEntry, LegendKind, Route, Side, Weight};
use crate::wiring::{Wire, Wiring, misfit, wiring};

/// Free space around everything.
const MARGIN: i32 = 28;
/// Space between parts that do not hang together.
const PART: i32 = 36;
/// What title and subtitle take.
const TITLE: i32 = 62;
/// Widest title.
const WIDEST_TITLE: i32 = 560;
/// Least width of a picture.
const NARROWEST: i32 = 320;
/// Height of a line of the legend.
const LEGEND_LINE: i32 = 24;
/// Width of a sample in the legend.
const SAMPLE: i32 = 34;

/// Gives a pipeline coordinates.
///
/// Refused are descriptions that contradict themselves (VER1401) and those that are too large
/// (VER1402).
pub fn layout(pipeline: &Pipeline) -> Result<Layout> {
    let wiring = wiring(pipeline)?;
    let mut blocks: Vec<Block> = (pipeline.nodes.iter().enumerate())
        .map(|(index, node)| block(node, |side, row| wiring.open.contains(&(side, (index, row)))))
        .collect();
    let labels = net_labels(pipeline, &wiring);
    let mut parts = Vec::new();
    for nodes in components(&wiring) {
        let (indices, wires) = wires_of(&nodes, &wiring);
        let Some(arranged) = arrange(&nodes, &wires, &blocks, &labels) else {
            let name = &pipeline.nodes[nodes[0]].name;
            let message = "nodes read from each other within one tick";
            return Err(misfit(name, None, message)
                .hint("an edge of the circle is feedback")
                .into());
        };
        parts.push((indices, arranged));
    }
    let mut layout = Layout { titles: titles(pipeline), ..Layout::default() };
    pack(&mut parts, &mut layout);
    layout.routes = vec_of_routes(pipeline);
    for (indices, part) in parts {
        for (node, x, y, width) in part.boxes {
            boxes::place(&mut blocks[node], x, y, width);
        }
        for (wire, points) in indices.iter().zip(part.lines) {
            layout.routes[*wire].points = points;
        }
        for (wire, label) in part.labels {
            layout.routes[indices[wire]].label = Some(label);
        }
    }
    layout.blocks = blocks;
    add_legend(&mut layout);
    Ok(layout)
}

fn vec_of_routes(pipeline: &Pipeline) -> Vec<Route> {
    let route = |edge: &veracity_results::PipelineEdge| Route {
        source: edge.source.clone(),
        target: edge.target.clone(),
        delay: edge.delay,
        points: Vec::new(),
        label: None,
    };
    pipeline.edges.iter().map(route).collect()
}

/// What is written on the lines of feedback.
fn net_labels(pipeline: &Pipeline, wiring: &Wiring) -> BTreeMap<usize, Label> {
    let edges = pipeline.edges.iter().zip(&wiring.wires).filter(|(edge, _)| edge.is_feedback());
    let label = |delay: u32| {
        let text = if delay == 1 { "1 tick".to_owned() } else { format!("{delay} ticks") };
        Label::new(&text, 10, Weight::Regular, WIDEST_TITLE)
    };
    edges.map(|(edge, wire)| (wire.net, label(edge.delay))).collect()
}

/// Nodes that hang together, by their first node.
fn components(wiring: &Wiring) -> Vec<Vec<usize>> {
    let mut root: Vec<usize> = (0..wiring.nodes).collect();
    let find = |root: &[usize], mut node: usize| {
        while root[node] != node {
            node = root[node];
        }
        node
    };
    for wire in &wiring.wires {
        let (a, b) = (find(&root, wire.from.0), find(&root, wire.to.0));
        root[a.max(b)] = a.min(b);
    }
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for node in 0..wiring.nodes {
        parts.entry(find(&root, node)).or_default().push(node);
    }
    parts.into_values().collect()
}

fn wires_of(nodes: &[usize], wiring: &Wiring) -> (Vec<usize>, Vec<Wire>) {
    let ours = |(_, wire): &(usize, &Wire)| nodes.binary_search(&wire.from.0).is_ok();
    wiring.wires.iter().enumerate().filter(ours).map(|(index, wire)| (index, *wire)).unzip()
}

/// Puts parts side by side and below each other, and sizes the picture.
fn pack(parts: &mut [(Vec<usize>, Arranged)], layout: &mut Layout) {
    let sizes = || parts.iter().map(|(_, part)| (part.width + PART, part.height + PART));
    let area: f64 = sizes().map(|(width, height)| f64::from(width) * f64::from(height)).sum();
    let widest = sizes().map(|(width, _)| width).max().unwrap_or(0);
    #[expect(clippy::cast_possible_truncation, reason = "saturates, which is as good")]
    let most = widest.max((area * ASPECT).sqrt() as i32);
    let (mut x, mut y, mut line, mut right) = (0, 0, 0, 0);
    for (_, part) in parts.iter_mut() {
        if x > 0 && x + part.width > most {
            (x, y, line) = (0, y + line + PART, 0);
        }
        let (width, height) = (part.width, part.height);
        part.shift(MARGIN + x, MARGIN + TITLE + y);
        x += width + PART;
        right = right.max(x - PART);
        line = line.max(height);
    }
    let titles = layout.titles.iter().map(|title| title.width).max().unwrap_or(0);
    layout.width = right.max(titles).max(NARROWEST) + 2 * MARGIN;
    layout.height = MARGIN + TITLE + y + line;
}

fn titles(pipeline: &Pipeline) -> Vec<Label> {
    let feedback = pipeline.edges.iter().filter(|edge| edge.is_feedback()).count();
    let mut parts = vec![plural(pipeline.nodes.len(), "node")];
    parts.push(plural(pipeline.edges.len() - feedback, "data edge"));
    if feedback > 0 {
        parts.push(plural(feedback, "feedback edge"));
    }
    parts.extend(pipeline.rate_hz.map(|rate| format!("{rate} Hz")));
    let name = Label::new(&pipeline.name, 18, Weight::SemiBold, WIDEST_TITLE);
    let facts = Label::new(&parts.join(" · "), 12, Weight::Regular, WIDEST_TITLE).quiet();
    vec![name.at(MARGIN, MARGIN + 16, Align::Start), facts.at(MARGIN, MARGIN + 36, Align::Start)]
}

fn plural(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// Explains what is in the picture, in as many lines as it takes.
fn add_legend(layout: &mut Layout) {
    let has_end = |side| {
        let mut ports = layout.blocks.iter().flat_map(|block| &block.ports);
        ports.any(|port| port.is_pipeline_end && port.side == side)
    };
    let has_verdict = |verdict| layout.blocks.iter().any(|block| block.verdict == Some(verdict));
    let has_route = |is_feedback| layout.routes.iter().any(|one| (one.delay > 0) == is_feedback);
    let entries = [
        (has_route(false), LegendKind::Data, "within the tick"),
        (has_route(true), LegendKind::Feedback, "feedback into a later tick"),
        (has_end(Side::Input), LegendKind::Input, "pipeline input"),
        (has_end(Side::Output), LegendKind::Output, "pipeline output"),
        (has_verdict(Verdict::Proved), LegendKind::Verdict(Verdict::Proved), "proved"),
        (
            has_verdict(Verdict::Conditional),
            LegendKind::Verdict(Verdict::Conditional),
            "conditional",
        ),
        (has_verdict(Verdict::Disproved), LegendKind::Verdict(Verdict::Disproved), "disproved"),
        (
            has_verdict(Verdict::NotComparable),
            LegendKind::Verdict(Verdict::NotComparable),
            "not comparable",
        ),
    ];
    let (mut x, mut y) = (MARGIN, layout.height + PART);
    let mut legend = Vec::new();
    for (_, kind, text) in entries.into_iter().filter(|entry| entry.0) {
        let sample = if matches!(kind, LegendKind::Verdict(_)) { 12 } else { SAMPLE };
        let label = Label::new(text, 11, Weight::Regular, WIDEST_TITLE).quiet();
        let width = sample + 8 + label.width;
        if x > MARGIN && x + width > layout.width - MARGIN {
            (x, y) = (MARGIN, y + LEGEND_LINE);
        }
        let label = label.at(x + sample + 8, y + 4, Align::Start);
        legend.push(LegendEntry { kind, x, y, width: sample, label });
        x += width + 22;
    }
    if !legend.is_empty() {
        layout.height = y + 6;
    }
    layout.height += MARGIN;
    layout.legend = legend;
}
