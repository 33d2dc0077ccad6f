//! Cuts a rewrite out of its graph: what was there, what came instead, and what both are given.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use veracity_onnx::{Graph, Node, NodeId, Weight};

use super::run::Values;
use crate::Rewrite;
use crate::evaluate::is_random;

/// Most nodes around a rewrite that are taken in to find values that both sides start from.
const MOST_AROUND: usize = 64;

/// One side of a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// The nodes, in any order.
    pub(crate) nodes: Vec<Node>,
    /// Constants that they read.
    pub(crate) weights: BTreeMap<String, Weight>,
}

/// A rewrite, cut out. Names are those of the graph before the sweep; nodes have what an engine needs.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) before: Side,
    pub(crate) after: Side,
    /// Values that are handed in.
    pub(crate) given: BTreeSet<String>,
    /// Values that are read elsewhere, each with what it is afterwards.
    pub(crate) outputs: Vec<(String, String)>,
    /// Values that came, under the names that they have from now on.
    pub(crate) fresh: Vec<(String, String)>,
    /// Whether what comes reads nothing that the other side does not start from. Otherwise the two
    /// sides only fit together on values that belong together.
    pub(crate) is_closed: bool,
}

impl Window {
    pub(crate) fn of(graph: &Graph, places: &HashMap<NodeId, usize>, rewrite: &Rewrite) -> Self {
        let applied = &rewrite.applied;
        let replaced: HashMap<String, String> = applied.replaced.iter().cloned().collect();
        let touched = applied.removed.iter().map(|(id, node)| (*id, node));
        let touched = touched.chain(applied.changed.iter().map(|(id, node, _)| (*id, node)));
        // Another rewrite of the sweep may have led a node elsewhere since: as it was is meant.
        let gone: BTreeMap<NodeId, Node> =
            touched.map(|(id, node)| (id, graph.node(id).unwrap_or(node).bare())).collect();
        let came = applied.added.iter().map(|(_, node)| node);
        let came = came.chain(applied.changed.iter().map(|(_, _, node)| node));
        let came: Vec<Node> = came.map(|node| node.bare().reading(&replaced)).collect();
        let mut cut = Cut {
            graph,
            gone: &gone,
            came: &came,
            shared: applied
                .context
                .iter()
                .filter_map(|(id, _)| Some((*id, graph.node(*id)?.bare())))
                .filter(|(id, _)| !gone.contains_key(id))
                .collect(),
            weights: applied.weights.iter().map(|(name, weight)| (name.as_str(), weight)).collect(),
            outputs: Vec::new(),
        };
        cut.outputs = cut.changed_outputs(&applied.replaced);
        cut.take_in(places);
        cut.finish(&applied.renamed)
    }

    /// Whether nothing that is read anywhere changed.
    pub(crate) fn is_structural(&self) -> bool {
        self.outputs
            .iter()
            .all(|(old, new)| old == new && !self.before.makes(old) && !self.after.makes(new))
    }
}

impl Side {
    /// The whole graph, to be run.
    pub(crate) fn whole(graph: &Graph) -> Self {
        let nodes: Vec<Node> = graph.nodes().map(|(_, node)| node.bare()).collect();
        let weights = graph.weights().filter(|(name, _)| !graph.is_input(name));
        let weights = weights.map(|(name, one)| (name.to_owned(), one.clone())).collect();
        Self { nodes, weights }
    }

    /// The values that its nodes give.
    pub(crate) fn made(&self) -> impl Iterator<Item = &str> {
        let given = self.nodes.iter().flat_map(Node::outputs).map(String::as_str);
        given.filter(|name| !name.is_empty())
    }

    /// The values that constants do not settle; nodes must be in order. What follows from constants
    /// alone is large, and rarely asked for.
    pub(crate) fn made_from(&self, given: &Values) -> BTreeSet<&str> {
        let mut found: BTreeSet<&str> = BTreeSet::new();
        for node in &self.nodes {
            let open = |name: &String| given.contains_key(name) || found.contains(name.as_str());
            if may_draw(node) || node.reads().iter().any(open) {
                found.extend(node.outputs().iter().map(String::as_str));
            }
        }
        found.remove("");
        found
    }

    pub(crate) fn makes(&self, value: &str) -> bool {
        self.made().any(|name| name == value)
    }

    /// The nodes and constants that some values need; the others go.
    pub(crate) fn keep_for<'v>(&mut self, values: impl IntoIterator<Item = &'v str>) {
        let mut needed: BTreeSet<String> = values.into_iter().map(str::to_owned).collect();
        let mut kept = vec![false; self.nodes.len()];
        loop {
            let before = needed.len();
            for (node, kept) in self.nodes.iter().zip(&mut kept).rev() {
                if !*kept && node.outputs().iter().any(|name| needed.contains(name)) {
                    *kept = true;
                    needed.extend(node.reads());
                }
            }
            if needed.len() == before {
                break;
            }
        }
        let mut kept = kept.into_iter();
        self.nodes.retain(|_| kept.next().unwrap_or(false));
        self.weights.retain(|name, _| needed.contains(name));
    }
}

/// Whether a node may give something else each time: itself, in a body, or in a function.
fn may_draw(node: &Node) -> bool {
    let holds_others = ["If", "Loop", "Scan", "SequenceMap", "Dropout"];
    let operator = node.op_type();
    !node.op_domain().is_empty() || holds_others.contains(&operator) || is_random(operator)
}

/// A window that is being cut out.
struct Cut<'g> {
    graph: &'g Graph,
    gone: &'g BTreeMap<NodeId, Node>,
    came: &'g [Node],
    /// Nodes that stay and are run on both sides.
    shared: BTreeMap<NodeId, Node>,
    /// Constants that came.
    weights: HashMap<&'g str, &'g Weight>,
    outputs: Vec<(String, String)>,
}

impl Cut<'_> {
    /// What the rewrite gave that others read, with what it is now.
    fn changed_outputs(&self, replaced: &[(String, String)]) -> Vec<(String, String)> {
        let read = |name: &&String| {
            let outside = self.graph.readers(name).any(|id| !self.gone.contains_key(&id));
            self.graph.is_output(name) || outside
        };
        // What nothing gives any more, nothing reads any more: a patch that leaves a reader behind
        // is refused. Its readers went with another rewrite of this sweep.
        let still_there = |name: &&String| {
            self.weights.contains_key(name.as_str())
                || self.came.iter().any(|node| node.outputs().contains(name))
        };
        let given = self.gone.values().flat_map(Node::outputs).filter(|name| !name.is_empty());
        let given = given.filter(still_there);
        let names: BTreeSet<&String> =
            given.chain(replaced.iter().map(|(old, _)| old)).filter(read).collect();
        let now = |name: &String| {
            let target = replaced.iter().find(|(old, _)| old == name);
            target.map_or_else(|| name.clone(), |(_, new)| new.clone())
        };
        names.into_iter().map(|name| (name.clone(), now(name))).collect()
    }

    fn before(&self) -> impl Iterator<Item = &Node> {
        self.gone.values().chain(self.shared.values())
    }

    fn after(&self) -> impl Iterator<Item = &Node> {
        self.came.iter().chain(self.shared.values())
    }

    /// What nodes start from: what they read and others give, constants aside.
    fn border<'n>(
        &self,
        nodes: impl Iterator<Item = &'n Node> + Clone,
        wanted: impl Iterator<Item = &'n String>,
    ) -> BTreeSet<String> {
        let made: BTreeSet<&String> = nodes.clone().flat_map(Node::outputs).collect();
        let reads = nodes.flat_map(Node::reads).chain(wanted.cloned());
        let constant =
            |name: &str| self.weights.contains_key(name) || self.graph.weight(name).is_some();
        reads
            .filter(|name| !made.contains(name) && !constant(name) && self.graph.has_value(name))
            .collect()
    }

    fn borders(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let before: Vec<&Node> = self.before().collect();
        let after: Vec<&Node> = self.after().collect();
        (
            self.border(before.iter().copied(), self.outputs.iter().map(|(old, _)| old)),
            self.border(after.iter().copied(), self.outputs.iter().map(|(_, new)| new)),
        )
    }

    /// Takes in nodes around the rewrite until what came starts from nothing that the other side
    /// does not start from: a node that skips over another one reads what that one reads.
    fn take_in(&mut self, places: &HashMap<NodeId, usize>) {
        for _ in 0..MOST_AROUND {
            let (before, after) = self.borders();
            if after.is_subset(&before) {
                return;
            }
            let next = before
                .symmetric_difference(&after)
                .filter_map(|name| self.graph.producer(name))
                .filter(|(id, _)| !self.gone.contains_key(id))
                .max_by_key(|(id, _)| places.get(id).copied());
            let Some((id, node)) = next else { return };
            self.shared.insert(id, node.bare());
        }
    }

    fn finish(self, renamed: &[(String, String)]) -> Window {
        let constants = |nodes: &[Node], wanted: &mut dyn Iterator<Item = &String>| {
            let reads = nodes.iter().flat_map(Node::reads).chain(wanted.cloned());
            let found = |name: String| {
                let weight = self.weights.get(name.as_str()).copied();
                let weight = weight.or_else(|| self.graph.weight(&name)).cloned();
                weight.map(|weight| (name, weight))
            };
            reads.filter_map(found).collect::<BTreeMap<String, Weight>>()
        };
        let side = |nodes: Vec<Node>, wanted: &mut dyn Iterator<Item = &String>| {
            let weights = constants(&nodes, wanted);
            Side { nodes, weights }
        };
        let mut old = self.outputs.iter().map(|(old, _)| old);
        let mut new = self.outputs.iter().map(|(_, new)| new);
        let mut before = side(self.before().cloned().collect(), &mut old);
        let mut after = side(self.after().cloned().collect(), &mut new);
        before.keep_for(self.outputs.iter().map(|(old, _)| old.as_str()));
        after.keep_for(self.outputs.iter().map(|(_, new)| new.as_str()));
        let reach = |side: &Side, wanted: &mut dyn Iterator<Item = &String>| {
            let wanted: Vec<String> = wanted.cloned().collect();
            self.border(side.nodes.iter(), wanted.iter())
        };
        let from_before = reach(&before, &mut self.outputs.iter().map(|(old, _)| old));
        let from_after = reach(&after, &mut self.outputs.iter().map(|(_, new)| new));
        let is_closed = from_after.is_subset(&from_before);
        let names: HashMap<&str, &str> =
            renamed.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
        let came = self.came.iter().flat_map(Node::outputs);
        let fresh = came
            .filter(|name| after.makes(name) && !self.graph.has_value(name))
            .map(|name| {
                let now = names.get(name.as_str()).copied().unwrap_or(name);
                (name.clone(), now.to_owned())
            })
            .collect();
        let given = from_before.union(&from_after).cloned().collect();
        Window { before, after, given, outputs: self.outputs, fresh, is_closed }
    }
}
