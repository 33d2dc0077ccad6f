//! A description by numbers instead of names, after it was checked.

use std::collections::{BTreeMap, BTreeSet};

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_results::{Pipeline, PortName};

use crate::layout::Side;

/// More nodes than this are no picture any more.
const MOST_NODES: usize = 1000;
/// The same for edges.
const MOST_EDGES: usize = 10_000;

/// A port by the numbers of its node and of itself, on a side that is known from elsewhere.
pub(crate) type End = (usize, usize);

/// An edge by numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    /// The output.
    pub(crate) from: End,
    /// The input.
    pub(crate) to: End,
    /// Whether it leads into a later tick.
    pub(crate) is_feedback: bool,
    /// Edges of one net come from one output after the same delay, and share their line.
    pub(crate) net: usize,
}

/// All edges, in the order of the description.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wiring {
    pub(crate) nodes: usize,
    pub(crate) wires: Vec<Wire>,
    /// Ends of the whole pipeline.
    pub(crate) open: BTreeSet<(Side, End)>,
}

/// Checks a description and finds its ports.
pub(crate) fn wiring(pipeline: &Pipeline) -> Result<Wiring> {
    let (nodes, edges) = (pipeline.nodes.len(), pipeline.edges.len());
    if nodes > MOST_NODES || edges > MOST_EDGES {
        let message = format!(
            "{nodes} nodes and {edges} edges; at most {MOST_NODES} and {MOST_EDGES} are drawn"
        );
        return Err(Diagnostic::error(codes::PICTURE_TOO_LARGE, message).into());
    }
    let ports = Ports::of(pipeline)?;
    let mut numbers = BTreeMap::new();
    let mut wires = Vec::new();
    for edge in &pipeline.edges {
        let from = ports.find(&edge.source, Side::Output)?;
        let to = ports.find(&edge.target, Side::Input)?;
        let known = numbers.len();
        let net = *numbers.entry((from, edge.delay)).or_insert(known);
        wires.push(Wire { from, to, is_feedback: edge.is_feedback(), net });
    }
    let mut open = BTreeSet::new();
    for (side, names) in [(Side::Input, &pipeline.inputs), (Side::Output, &pipeline.outputs)] {
        for name in names {
            open.insert((side, ports.find(name, side)?));
        }
    }
    Ok(Wiring { nodes, wires, open })
}

struct Ports<'p>(BTreeMap<(Side, &'p str, &'p str), End>);

impl<'p> Ports<'p> {
    fn of(pipeline: &'p Pipeline) -> Result<Self> {
        let mut ports = BTreeMap::new();
        let mut names = BTreeSet::new();
        for (index, node) in pipeline.nodes.iter().enumerate() {
            if !names.insert(&node.name) {
                return Err(misfit(&node.name, None, "two nodes have this name").into());
            }
            for (side, rows) in [(Side::Input, &node.inputs), (Side::Output, &node.outputs)] {
                for (row, port) in rows.iter().enumerate() {
                    let key = (side, node.name.as_str(), port.name.as_str());
                    if ports.insert(key, (index, row)).is_some() {
                        let message = "two ports on one side of the node have this name";
                        return Err(misfit(&node.name, Some(&port.name), message).into());
                    }
                }
            }
        }
        Ok(Self(ports))
    }

    fn find(&self, name: &PortName, side: Side) -> Result<End> {
        let key = (side, name.node.as_str(), name.port.as_str());
        self.0.get(&key).copied().ok_or_else(|| {
            let message = match side {
                Side::Input => "there is no such input",
                Side::Output => "there is no such output",
            };
            misfit(&name.node, Some(&name.port), message).into()
        })
    }
}

/// The description says something that cannot be.
pub(crate) fn misfit(node: &str, port: Option<&str>, message: &str) -> Diagnostic {
    let place = match port {
        None => Place::node(node),
        Some(port) => Place::port(node, port),
    };
    Diagnostic::error(codes::PICTURE_MISFIT, message).at(place)
}
