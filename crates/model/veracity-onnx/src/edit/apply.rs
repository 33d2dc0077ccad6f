//! Applies a patch as a whole, or refuses it as a whole.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use veracity_diag::{Diagnostic, Refusal, Result, codes};

use crate::build::Node;
use crate::capture::read_elsewhere;
use crate::edit::graph::{Graph, NodeId};
use crate::edit::{Patch, Weight};

/// What a patch did: enough to tell, to check and to do it again.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Nodes that went, with what they were.
    pub removed: Vec<(NodeId, Node)>,
    /// Nodes that changed, with what they were and what they are, without what only follows from
    /// [`Applied::replaced`].
    pub changed: Vec<(NodeId, Node, Node)>,
    /// Nodes that came.
    pub added: Vec<(NodeId, Node)>,
    /// Nodes that stayed and show why the change is right.
    pub context: Vec<(NodeId, Node)>,
    /// Weights that came.
    pub weights: Vec<(String, Weight)>,
    /// Weights that went.
    pub dropped: Vec<(String, Weight)>,
    /// Values with what is read instead. Where an output of the model was replaced, its name moved:
    /// the second value is called like the first now, see [`Applied::renamed`].
    pub replaced: Vec<(String, String)>,
    /// Values that got another name, because an output of the model must keep its own.
    pub renamed: Vec<(String, String)>,
    /// Why the change is right.
    pub reason: String,
}

impl Graph {
    /// Applies a patch. When it is refused, the graph is as it was: a patch may not take out what
    /// is still read, read what is not there, give a value twice, or lose an output of the model.
    pub fn apply(&mut self, patch: &Patch) -> Result<Applied> {
        let moves = self.check(patch)?;
        let mut applied = Applied {
            context: self.kept(patch.context.iter().copied()),
            reason: patch.reason.clone(),
            ..Applied::default()
        };
        let at = patch.touched().filter_map(|id| self.order.iter().position(|&one| one == id));
        let at = at.max().map_or(self.order.len(), |index| index + 1);
        for id in patch.remove.iter().copied() {
            applied.removed.extend(self.take_out(id).map(|node| (id, node)));
        }
        for (id, node) in &patch.change {
            if let Some(before) = self.exchange(*id, node.clone()) {
                applied.changed.push((*id, before, node.clone()));
            }
        }
        for (name, weight) in &patch.weights {
            self.insert_weight(name.clone(), weight.clone())?;
            applied.weights.push((name.clone(), weight.clone()));
        }
        let mut fresh = Vec::new();
        for node in &patch.add {
            let id = self.insert_node(node.clone())?;
            applied.added.push((id, node.clone()));
            fresh.push(id);
        }
        self.order.truncate(self.order.len() - fresh.len());
        self.order.splice(at..at, fresh);
        self.order.retain(|id| self.nodes[id.0 as usize].is_some());
        applied.replaced.clone_from(&patch.replace);
        for (old, new) in &patch.replace {
            self.reroute(old, new);
        }
        for (new, old) in moves {
            self.rename(&new, &old);
            applied.renamed.push((new, old));
        }
        for name in &patch.drop_weights {
            if let Some(weight) = self.weights.remove(name) {
                applied.dropped.push((name.clone(), weight));
            }
        }
        if !patch.drop_weights.is_empty() {
            self.weight_order.retain(|name| self.weights.contains_key(name));
        }
        Ok(applied)
    }

    /// Refuses a patch that would break the graph. Gives the values that must take over the name
    /// of an output of the model.
    fn check(&self, patch: &Patch) -> Result<Vec<(String, String)>> {
        let touched: HashSet<NodeId> = patch.touched().collect();
        if touched.len() != patch.touched().count() {
            return Err(refused("a node is taken out or changed twice"));
        }
        if let Some(id) = touched.iter().chain(&patch.context).find(|id| self.node(**id).is_none())
        {
            return Err(refused(format!("the node {id} is not there")));
        }
        let mut lost: BTreeSet<&str> =
            touched.iter().filter_map(|&id| self.node(id)).flat_map(given).collect();
        let fresh = patch.add.iter().chain(patch.change.iter().map(|(_, node)| node));
        let mut given_now: BTreeSet<&str> = BTreeSet::new();
        let names = fresh.clone().flat_map(given);
        for name in names.chain(patch.weights.iter().map(|(name, _)| name.as_str())) {
            let free = lost.contains(name) || !self.is_taken(name);
            if !free || !given_now.insert(name) {
                return Err(refused(format!("the value {name:?} would be given twice")));
            }
        }
        lost.retain(|name| !given_now.contains(name));
        lost.extend(patch.drop_weights.iter().map(String::as_str));
        let there = |name: &str| {
            given_now.contains(name) || (self.is_defined(name) && !lost.contains(name))
        };
        let replaced: BTreeMap<&str, &str> =
            patch.replace.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect();
        for (old, new) in &replaced {
            if !there(new) || replaced.contains_key(new) {
                return Err(refused(format!("{old:?} cannot be replaced: {new:?} is not there")));
            }
        }
        for name in fresh.flat_map(Node::reads_itself) {
            if !there(name) && !replaced.contains_key(name) {
                return Err(refused(format!("a new node reads {name:?}, which is not there")));
            }
        }
        for name in &lost {
            let read = self.readers(name).any(|id| !touched.contains(&id));
            if (read || self.is_output(name)) && !replaced.contains_key(name) {
                return Err(refused(format!("{name:?} would be gone and is still needed")));
            }
        }
        self.moves(patch, &given_now, &touched)
    }

    /// The replacements that concern outputs of the model: the value that comes instead must be
    /// free to take the name.
    fn moves(
        &self,
        patch: &Patch,
        given_now: &BTreeSet<&str>,
        touched: &HashSet<NodeId>,
    ) -> Result<Vec<(String, String)>> {
        let mut moves = Vec::new();
        let mut sources = HashSet::new();
        for (old, new) in patch.replace.iter().filter(|(old, _)| self.is_output(old)) {
            let computed = given_now.contains(new.as_str())
                && !patch.weights.iter().any(|(weight, _)| weight == new)
                || self.producers.get(new).is_some_and(|id| !touched.contains(id));
            let gone = self.producers.get(old).is_some_and(|id| touched.contains(id));
            if !computed || !gone || self.is_output(new) || !sources.insert(new) {
                let message = format!("the output {old:?} of the model cannot become {new:?}");
                return Err(refused(message));
            }
            moves.push((new.clone(), old.clone()));
        }
        Ok(moves)
    }

    fn kept(&self, ids: impl Iterator<Item = NodeId>) -> Vec<(NodeId, Node)> {
        ids.filter_map(|id| Some((id, self.node(id)?.clone()))).collect()
    }

    fn take_out(&mut self, id: NodeId) -> Option<Node> {
        let node = self.nodes.get_mut(id.0 as usize)?.take()?;
        self.forget(id, &node);
        Some(Arc::unwrap_or_clone(node))
    }

    fn exchange(&mut self, id: NodeId, node: Node) -> Option<Node> {
        let before = self.nodes.get_mut(id.0 as usize)?.take()?;
        self.forget(id, &before);
        for output in given(&node) {
            self.producers.insert(output.to_owned(), id);
        }
        for name in node.reads() {
            self.readers.entry(name).or_default().insert(id);
        }
        self.nodes[id.0 as usize] = Some(Arc::new(node));
        Some(Arc::unwrap_or_clone(before))
    }

    fn forget(&mut self, id: NodeId, node: &Node) {
        for output in given(node) {
            if self.producers.get(output) == Some(&id) {
                self.producers.remove(output);
            }
        }
        for name in node.reads() {
            if let Some(ids) = self.readers.get_mut(&name) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.readers.remove(&name);
                }
            }
        }
    }

    /// Lets all nodes read `new` instead of `old`, in bodies as well.
    fn reroute(&mut self, old: &str, new: &str) {
        let renamed: HashMap<String, String> = [(old.to_owned(), new.to_owned())].into();
        for id in self.readers.get(old).cloned().unwrap_or_default() {
            let Some(mut node) = self.node(id).cloned() else { continue };
            read_elsewhere(node.proto_mut(), &renamed);
            self.exchange(id, node);
        }
    }

    /// Gives a computed value another name.
    fn rename(&mut self, from: &str, to: &str) {
        if let Some(id) = self.producers.get(from).copied()
            && let Some(mut node) = self.node(id).cloned()
        {
            for output in &mut node.proto_mut().output {
                if output == from {
                    to.clone_into(output);
                }
            }
            self.exchange(id, node);
        }
        self.reroute(from, to);
    }
}

/// The values that a node gives.
fn given(node: &Node) -> impl Iterator<Item = &str> {
    node.outputs().iter().map(String::as_str).filter(|name| !name.is_empty())
}

fn refused(what: impl Into<String>) -> Refusal {
    Diagnostic::error(codes::PATCH_BREAKS_GRAPH, what).into()
}

impl Applied {
    /// Every value that was there before and is another one now, or gone: `None`.
    pub fn value_map(&self) -> BTreeMap<String, Option<String>> {
        let gone = self.removed.iter().flat_map(|(_, node)| given(node));
        let changed = self.changed.iter().flat_map(|(_, before, _)| given(before));
        let here: HashSet<&str> = self
            .added
            .iter()
            .map(|(_, node)| node)
            .chain(self.changed.iter().map(|(_, _, after)| after))
            .flat_map(given)
            .collect();
        let lost = gone.chain(changed).filter(|name| !here.contains(name));
        let mut map: BTreeMap<String, Option<String>> =
            lost.map(|name| (name.to_owned(), None)).collect();
        for (old, new) in &self.replaced {
            map.insert(old.clone(), Some(new.clone()));
        }
        for (from, to) in &self.renamed {
            map.remove(to);
            map.insert(from.clone(), Some(to.clone()));
        }
        map
    }
}
