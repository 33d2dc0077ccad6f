//! One change of a graph.

use crate::build::Node;
use crate::edit::{NodeId, Weight};

/// One change of a graph: nodes and weights that go and come, and values that are read instead of
/// others. A node that is added may give values that removed nodes gave, which keeps their names.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    /// Nodes that go.
    pub remove: Vec<NodeId>,
    /// Nodes that get another content and stay who they are.
    pub change: Vec<(NodeId, Node)>,
    /// Nodes that come, at the place of the last one that goes or changes.
    pub add: Vec<Node>,
    /// Weights that come, under names that are not taken.
    pub weights: Vec<(String, Weight)>,
    /// Weights that go.
    pub drop_weights: Vec<String>,
    /// Values with what is read instead of them. An output of the model keeps its name.
    pub replace: Vec<(String, String)>,
    /// Nodes that stay, and that show why the change is right: a second node that computes the
    /// same, for example. A check of this patch runs them as well.
    pub context: Vec<NodeId>,
    /// Why the change is right, for people.
    pub reason: String,
}

impl Patch {
    /// An empty patch with its reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }

    /// Takes a node out.
    #[must_use]
    pub fn remove(mut self, id: NodeId) -> Self {
        self.remove.push(id);
        self
    }

    /// Gives a node another content.
    #[must_use]
    pub fn change(mut self, id: NodeId, node: Node) -> Self {
        self.change.push((id, node));
        self
    }

    /// Puts a node in.
    #[must_use]
    pub fn insert(mut self, node: Node) -> Self {
        self.add.push(node);
        self
    }

    /// Puts a weight in.
    #[must_use]
    pub fn weight(mut self, name: impl Into<String>, weight: Weight) -> Self {
        self.weights.push((name.into(), weight));
        self
    }

    /// Takes a weight out.
    #[must_use]
    pub fn drop_weight(mut self, name: impl Into<String>) -> Self {
        self.drop_weights.push(name.into());
        self
    }

    /// Lets everybody read `new` instead of `old`.
    #[must_use]
    pub fn replace(mut self, old: impl Into<String>, new: impl Into<String>) -> Self {
        self.replace.push((old.into(), new.into()));
        self
    }

    /// Names a node that shows why the change is right.
    #[must_use]
    pub fn context(mut self, id: NodeId) -> Self {
        self.context.push(id);
        self
    }

    /// Nodes that the patch takes out or changes.
    pub fn touched(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.remove.iter().copied().chain(self.change.iter().map(|(id, _)| *id))
    }
}
