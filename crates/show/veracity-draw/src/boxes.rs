//! A node as a box: a header with its name, and a row for each port.

use veracity_results::{PipelineNode, PipelinePort};

use crate::layout::{Align, Block, Label, PortPlace, Side, Weight};

/// Height of the part that holds the name.
pub(crate) const HEADER: i32 = 34;
/// Height of a row: a name and a line below it.
const ROW: i32 = 36;
/// Free space below the last row.
const FOOT: i32 = 6;
/// Free space at the left and at the right of texts.
const PAD: i32 = 14;
/// Least space between inputs and outputs.
const MIDDLE: i32 = 28;
/// Widest text of a row.
const WIDEST_ROW: i32 = 190;
/// Widest name of a node.
const WIDEST_NAME: i32 = 280;
/// Least width of a box.
const NARROWEST: i32 = 120;
/// What the sign of a verdict takes before the name.
pub(crate) const SIGN: i32 = 22;
/// How far the stub of a pipeline input or output leads out of the box.
const STUB: i32 = 20;

/// Where the port of a row is, below the upper edge of its box.
pub(crate) fn row_y(row: usize) -> i32 {
    HEADER + ROW * count(row) + ROW / 2
}

/// A number of things, as a length.
pub(crate) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The box of a node at the origin, as wide as it needs to be.
pub(crate) fn block(node: &PipelineNode, is_open: impl Fn(Side, usize) -> bool) -> Block {
    let ports = |side, ports: &[PipelinePort]| -> Vec<PortPlace> {
        let one = |(row, port)| port_place(port, side, row, is_open(side, row));
        ports.iter().enumerate().map(one).collect()
    };
    let (inputs, outputs) = (ports(Side::Input, &node.inputs), ports(Side::Output, &node.outputs));
    let (left, right) = (widest(&inputs), widest(&outputs));
    let middle = if left > 0 && right > 0 { MIDDLE } else { 0 };
    let labels = header(node);
    let sign = if node.verdict.is_some() { SIGN } else { 0 };
    let title: i32 = labels.iter().map(|label| label.width + PAD).sum();
    let rows = inputs.len().max(outputs.len());
    Block {
        node: node.name.clone(),
        x: 0,
        y: 0,
        width: NARROWEST.max(title + PAD + sign).max(left + middle + right + 2 * PAD),
        height: HEADER + ROW * count(rows) + if rows > 0 { FOOT } else { 0 },
        header: HEADER,
        verdict: node.verdict,
        labels,
        ports: inputs.into_iter().chain(outputs).collect(),
    }
}

/// Puts a box, which is at the origin, into its place; texts follow.
pub(crate) fn place(block: &mut Block, x: i32, y: i32, width: i32) {
    (block.x, block.y, block.width) = (x, y, width);
    let sign = if block.verdict.is_some() { SIGN } else { 0 };
    for label in &mut block.labels {
        label.x = match label.align {
            Align::End => x + width - PAD,
            _ => x + PAD + sign,
        };
        label.y += y;
    }
    for port in &mut block.ports {
        let (edge, inside, outside) = match port.side {
            Side::Input => (x, x + PAD, x - STUB),
            Side::Output => (x + width, x + width - PAD, x + width + STUB),
        };
        (port.x, port.stub_x) = (edge, if port.is_pipeline_end { outside } else { edge });
        port.y += y;
        for label in &mut port.labels {
            (label.x, label.y) = (inside, label.y + y);
        }
    }
}

fn header(node: &PipelineNode) -> Vec<Label> {
    let name = Label::new(&node.name, 13, Weight::SemiBold, WIDEST_NAME);
    let format = node.format.as_deref().unwrap_or("no model");
    let format = Label::new(format, 10, Weight::Regular, WIDEST_ROW).quiet();
    vec![name.at(0, 22, Align::Start), format.at(0, 22, Align::End)]
}

fn port_place(port: &PipelinePort, side: Side, row: usize, is_pipeline_end: bool) -> PortPlace {
    let align = match side {
        Side::Input => Align::Start,
        Side::Output => Align::End,
    };
    let y = row_y(row);
    let name = Label::new(&port.name, 12, Weight::Regular, WIDEST_ROW).at(0, y - 2, align);
    let facts = Label::new(&facts(port), 10, Weight::Regular, WIDEST_ROW).quiet();
    let labels = vec![name, facts.at(0, y + 12, align)];
    let name = port.name.clone();
    PortPlace { port: name, side, x: 0, y, is_pipeline_end, stub_x: 0, labels }
}

/// `float32 [1, 12] · state/joint/position · rad`, or as much of it as is known.
fn facts(port: &PipelinePort) -> String {
    let sizes: Vec<String> = port.shape.iter().map(u64::to_string).collect();
    let shape = format!("{} [{}]", port.dtype, sizes.join(", "));
    let more = [&port.kind, &port.unit].into_iter().flatten();
    more.fold(shape.trim().to_owned(), |text, part| text + " · " + part)
}

fn widest(ports: &[PortPlace]) -> i32 {
    ports.iter().flat_map(|port| &port.labels).map(|label| label.width).max().unwrap_or(0)
}
