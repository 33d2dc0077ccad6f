//! Where everything is. Whole units, origin at the upper left; one unit is one pixel of a page.

use serde::Serialize;
use veracity_results::{PortName, Verdict};

use crate::font;

/// A pipeline with coordinates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Layout {
    /// Width of the whole.
    pub width: i32,
    /// Height of the whole.
    pub height: i32,
    /// What the picture is called, and what it shows in a few words.
    pub titles: Vec<Label>,
    /// The nodes, in the order of the description.
    pub blocks: Vec<Block>,
    /// The edges, in the order of the description.
    pub routes: Vec<Route>,
    /// What colours and signs mean; only those that are there.
    pub legend: Vec<LegendEntry>,
}

/// The box of a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// The node.
    pub node: String,
    /// Left edge.
    pub x: i32,
    /// Upper edge.
    pub y: i32,
    /// Width.
    pub width: i32,
    /// Height.
    pub height: i32,
    /// Height of the part that holds the name.
    pub header: i32,
    /// What a proof says about it, where there is one.
    pub verdict: Option<Verdict>,
    /// Its name, and the kind of its model.
    pub labels: Vec<Label>,
    /// Its ports, inputs first.
    pub ports: Vec<PortPlace>,
}

/// Which side of a box a port is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Left.
    Input,
    /// Right.
    Output,
}

/// A port on the edge of its box.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortPlace {
    /// Its name.
    pub port: String,
    /// Input or output.
    pub side: Side,
    /// Where lines end: on the edge of the box.
    pub x: i32,
    /// The same.
    pub y: i32,
    /// Whether it is an end of the whole pipeline; then a stub leads out of the box to `stub_x`.
    pub is_pipeline_end: bool,
    /// End of the stub.
    pub stub_x: i32,
    /// Name, and what else is known about it.
    pub labels: Vec<Label>,
}

/// The line of an edge, from the output to the input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    /// The output.
    pub source: PortName,
    /// The input.
    pub target: PortName,
    /// Ticks until the value arrives; more than 0 for feedback.
    pub delay: u32,
    /// Corners, ends included. Neighbours differ in one coordinate.
    pub points: Vec<(i32, i32)>,
    /// The delay. Edges that share their line share the label: the first has it.
    pub label: Option<Label>,
}

/// How a text lies at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// How fat letters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// For most texts.
    Regular,
    /// For names of nodes.
    SemiBold,
}

/// A text in one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// What is shown.
    pub text: String,
    /// All of it, where what is shown was shortened.
    pub full: Option<String>,
    /// Where it begins, ends or has its middle.
    pub x: i32,
    /// Base line.
    pub y: i32,
    /// What of it is at `x`.
    pub align: Align,
    /// Height of the letters.
    pub size: i32,
    /// How fat they are.
    pub weight: Weight,
    /// Whether it matters less than others.
    pub is_quiet: bool,
    /// Width of what is shown, rounded up.
    pub width: i32,
}

impl Label {
    /// A text at the origin, shortened to a width.
    pub(crate) fn new(text: &str, size: i32, weight: Weight, most: i32) -> Self {
        let shown = font::shortened(text, size, weight, most);
        let width = font::width(&shown, size, weight);
        let full = (shown != text).then(|| text.to_owned());
        let is_quiet = false;
        Self { text: shown, full, x: 0, y: 0, align: Align::Start, size, weight, is_quiet, width }
    }

    /// The same text in a quieter colour.
    pub(crate) fn quiet(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    /// The same text at another place.
    pub(crate) fn at(mut self, x: i32, y: i32, align: Align) -> Self {
        (self.x, self.y, self.align) = (x, y, align);
        self
    }

    /// Left and right end.
    pub fn span(&self) -> (i32, i32) {
        let left = match self.align {
            Align::Start => self.x,
            Align::Middle => self.x - (self.width + 1) / 2,
            Align::End => self.x - self.width,
        };
        (left, left + self.width)
    }
}

/// What an entry of the legend shows a sample of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LegendKind {
    /// A line within a tick.
    Data,
    /// A line into a later tick.
    Feedback,
    /// The stub of a pipeline input.
    Input,
    /// The stub of a pipeline output.
    Output,
    /// The sign of a verdict.
    Verdict(Verdict),
}

/// One entry of the legend: a sample, `width` wide, and what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LegendEntry {
    /// What the sample shows.
    pub kind: LegendKind,
    /// Left end of the sample.
    pub x: i32,
    /// Middle of the sample.
    pub y: i32,
    /// Width of the sample.
    pub width: i32,
    /// What it means.
    pub label: Label,
}
