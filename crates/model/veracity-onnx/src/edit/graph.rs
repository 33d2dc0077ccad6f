//! The nodes and weights of a main graph, and who gives and reads each value.

use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use veracity_diag::{Diagnostic, Place, Result, codes};

use crate::build::Node;
use crate::capture::collect_reads;
use crate::edit::Weight;
use crate::generated::onnx::{ModelProto, NodeProto, OperatorSetIdProto};
use crate::model::initializer_names;
use crate::{Model, ValueInfo};

/// Names a node of a [`Graph`] as long as the node lives; never given to another one. The nodes of
/// the model have the ids 0, 1, 2, … in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// The main graph of a model, to be changed by patches. Copies share what is not changed.
#[derive(Clone)]
pub struct Graph {
    /// The model without the nodes and weights of its main graph.
    pub(crate) shell: Arc<ModelProto>,
    pub(crate) place: Place,
    /// Nodes by id; `None` where one was taken out.
    pub(crate) nodes: Vec<Option<Arc<Node>>>,
    pub(crate) order: Vec<NodeId>,
    pub(crate) weights: HashMap<String, Weight>,
    pub(crate) weight_order: Vec<String>,
    pub(crate) producers: HashMap<String, NodeId>,
    pub(crate) readers: HashMap<String, BTreeSet<NodeId>>,
    pub(crate) inputs: HashSet<String>,
    pub(crate) outputs: HashSet<String>,
    pub(crate) sparse: HashSet<String>,
}

impl Graph {
    /// The main graph of a model, its nodes in an order in which they can run. Refused when a value
    /// is given twice or when nodes wait for each other.
    pub fn new(model: Model) -> Result<Self> {
        let place = model.place();
        let sparse = model.graph().sparse_initializer.len();
        let names = initializer_names(model.graph()).map(str::to_owned);
        let sparse = names.skip(model.graph().initializer.len()).take(sparse).collect();
        let mut shell = model.into_proto();
        let Some(main) = shell.graph.as_mut() else {
            return Err(broken("the model has no graph", place));
        };
        let nodes: Vec<NodeProto> = std::mem::take(&mut main.node);
        let initializers = std::mem::take(&mut main.initializer);
        let listed = |infos: &[crate::generated::onnx::ValueInfoProto]| {
            infos.iter().map(|info| info.name().to_owned()).collect()
        };
        let (inputs, outputs) = (listed(&main.input), listed(&main.output));
        let mut graph = Self {
            shell: Arc::new(shell),
            place,
            nodes: Vec::with_capacity(nodes.len()),
            order: Vec::with_capacity(nodes.len()),
            weights: HashMap::with_capacity(initializers.len()),
            weight_order: Vec::with_capacity(initializers.len()),
            producers: HashMap::new(),
            readers: HashMap::new(),
            inputs,
            outputs,
            sparse,
        };
        for mut tensor in initializers {
            let name = tensor.name.take().unwrap_or_default();
            graph.insert_weight(name, Weight(tensor))?;
        }
        for node in nodes {
            graph.insert_node(Node::from(node))?;
        }
        graph.sort()?;
        Ok(graph)
    }

    /// The nodes in an order in which they can run.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> {
        self.order.iter().filter_map(|&id| Some((id, self.node(id)?)))
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A node, unless it was taken out.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)?.as_deref()
    }

    /// The id that the next node gets.
    pub fn next_id(&self) -> NodeId {
        NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
    }

    /// The node that gives a value.
    pub fn producer(&self, value: &str) -> Option<(NodeId, &Node)> {
        let id = *self.producers.get(value)?;
        Some((id, self.node(id)?))
    }

    /// The nodes that read a value, themselves or in a body, by id.
    pub fn readers(&self, value: &str) -> impl Iterator<Item = NodeId> + '_ {
        self.readers.get(value).into_iter().flatten().copied()
    }

    /// Whether one node alone reads the value, and it is no output of the model.
    pub fn has_one_reader(&self, value: &str) -> bool {
        !self.is_output(value) && self.readers.get(value).is_some_and(|ids| ids.len() == 1)
    }

    /// Whether the model gives this value.
    pub fn is_output(&self, value: &str) -> bool {
        self.outputs.contains(value)
    }

    /// Whether the model takes this value, also when it has a default.
    pub fn is_input(&self, value: &str) -> bool {
        self.inputs.contains(value)
    }

    /// A weight that nobody can replace from outside: one that is no input as well.
    pub fn weight(&self, name: &str) -> Option<&Weight> {
        self.weights.get(name).filter(|_| !self.inputs.contains(name))
    }

    /// All weights with their names, in the order of the file, those that are inputs included.
    pub fn weights(&self) -> impl Iterator<Item = (&str, &Weight)> {
        let found = |name: &'_ String| self.weights.get_key_value(name.as_str());
        self.weight_order.iter().filter_map(found).map(|(name, weight)| (name.as_str(), weight))
    }

    /// Whether something has this name: a value, a weight or an input, here or in a body.
    pub fn is_taken(&self, name: &str) -> bool {
        self.is_defined(name) || self.readers.contains_key(name)
    }

    /// A name like `base` that nothing has.
    pub fn free_name(&self, base: &str) -> String {
        if !self.is_taken(base) {
            return base.to_owned();
        }
        let numbered = (1_usize..).map(|number| format!("{base}_{number}"));
        numbered.into_iter().find(|name| !self.is_taken(name)).unwrap_or_else(|| base.to_owned())
    }

    /// What the model takes, weights that are inputs as well included.
    pub fn declared_inputs(&self) -> Vec<ValueInfo> {
        self.main().input.iter().map(ValueInfo::from_proto).collect()
    }

    /// What the model gives.
    pub fn declared_outputs(&self) -> Vec<ValueInfo> {
        self.main().output.iter().map(ValueInfo::from_proto).collect()
    }

    /// What the model says about values in between.
    pub fn declared_values(&self) -> Vec<ValueInfo> {
        self.main().value_info.iter().map(ValueInfo::from_proto).collect()
    }

    /// Version of an operator set; `""` is the default one. One that only functions of the model
    /// use has the version that the first of them names.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        let of_functions = self.shell.functions.iter().flat_map(|one| &one.opset_import);
        let mut imports = self.shell.opset_import.iter().chain(of_functions);
        imports
            .find(|found| crate::walk::domain(found.domain()) == domain)
            .map(OperatorSetIdProto::version)
    }

    /// Where the model came from.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The model. What it declared about values that are gone is left out; the rest is kept.
    pub fn to_model(&self) -> Result<Model> {
        let mut proto = ModelProto::clone(&self.shell);
        if let Some(main) = proto.graph.as_mut() {
            let nodes = self.nodes().map(|(_, node)| NodeProto::from(node.clone()));
            main.node = nodes.collect();
            main.initializer = self
                .weights()
                .map(|(name, weight)| {
                    let mut tensor = weight.0.clone();
                    tensor.name = Some(name.to_owned());
                    tensor
                })
                .collect();
            main.value_info.retain(|info| self.is_defined(info.name()));
        }
        self.import_from_functions(&mut proto);
        let mut model = Model::checked(proto).map_err(|what| broken(what, self.place.clone()))?;
        model.set_place(&self.place);
        Ok(model)
    }

    /// Puts the nodes into an order in which they can run; of those that can, the one that stands
    /// first stays first.
    pub fn sort(&mut self) -> Result<()> {
        let mut waiting: HashMap<NodeId, usize> = HashMap::with_capacity(self.order.len());
        let mut followers: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        let place: HashMap<NodeId, usize> =
            self.order.iter().enumerate().map(|(index, &id)| (id, index)).collect();
        for (id, node) in self.nodes() {
            let before: BTreeSet<NodeId> = node
                .reads()
                .iter()
                .filter_map(|name| self.producers.get(name).copied())
                // A body may define a name that its own node gives outside.
                .filter(|&producer| producer != id)
                .collect();
            waiting.insert(id, before.len());
            for producer in before {
                followers.entry(producer).or_default().push(id);
            }
        }
        let ready = self.order.iter().filter(|id| waiting[id] == 0).map(|id| place[id]);
        let mut ready: BinaryHeap<std::cmp::Reverse<usize>> =
            ready.map(std::cmp::Reverse).collect();
        let mut sorted = Vec::with_capacity(self.order.len());
        while let Some(std::cmp::Reverse(index)) = ready.pop() {
            let id = self.order[index];
            sorted.push(id);
            for follower in followers.remove(&id).unwrap_or_default() {
                if let Some(left) = waiting.get_mut(&follower) {
                    *left -= 1;
                    if *left == 0 {
                        ready.push(std::cmp::Reverse(place[&follower]));
                    }
                }
            }
        }
        if sorted.len() != self.order.len() {
            return Err(broken("nodes of the main graph wait for each other", self.place.clone()));
        }
        self.order = sorted;
        Ok(())
    }

    /// Puts the nodes into this order, which one that could run was in before. Refused when it does
    /// not name every node once.
    pub fn reorder(&mut self, order: &[NodeId]) -> Result<()> {
        let (mut given, mut here) = (order.to_vec(), self.order.clone());
        given.sort_unstable();
        here.sort_unstable();
        if given != here {
            return Err(broken("an order does not name every node once", self.place.clone()));
        }
        order.clone_into(&mut self.order);
        Ok(())
    }

    pub(crate) fn is_defined(&self, name: &str) -> bool {
        self.producers.contains_key(name)
            || self.weights.contains_key(name)
            || self.inputs.contains(name)
            || self.sparse.contains(name)
    }

    pub(crate) fn insert_weight(&mut self, name: String, weight: Weight) -> Result<()> {
        if self.weights.insert(name.clone(), weight).is_some() {
            return Err(self.given_twice(&name));
        }
        self.weight_order.push(name);
        Ok(())
    }

    pub(crate) fn insert_node(&mut self, node: Node) -> Result<NodeId> {
        let id = self.next_id();
        for output in node.outputs().iter().filter(|name| !name.is_empty()) {
            let taken = self.weights.contains_key(output) || self.inputs.contains(output);
            if taken || self.producers.insert(output.clone(), id).is_some() {
                return Err(self.given_twice(output));
            }
        }
        for name in node.reads() {
            self.readers.entry(name).or_default().insert(id);
        }
        self.nodes.push(Some(Arc::new(node)));
        self.order.push(id);
        Ok(id)
    }

    fn main(&self) -> &crate::generated::onnx::GraphProto {
        self.shell.graph.as_ref().expect("`new` refuses models without a graph")
    }

    fn given_twice(&self, name: &str) -> veracity_diag::Refusal {
        broken(format!("the value {name:?} is given twice"), self.place.clone())
    }
}

impl Node {
    /// Every name that the node reads, itself and in bodies, and that bodies define.
    pub fn reads(&self) -> BTreeSet<String> {
        if self.bodies().next().is_none() {
            return self.reads_itself().map(str::to_owned).collect();
        }
        let mut found = HashSet::new();
        collect_reads(self.proto(), &mut found);
        let mut sorted: BTreeSet<String> = found.into_iter().collect();
        sorted.remove("");
        sorted
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} nodes, {} weights)", self.order.len(), self.weights.len())
    }
}

pub(crate) fn broken(what: impl Into<String>, place: Place) -> veracity_diag::Refusal {
    Diagnostic::error(codes::ONNX_MALFORMED, what).at(place).into()
}
