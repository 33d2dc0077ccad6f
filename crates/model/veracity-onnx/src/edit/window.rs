//! A few nodes as a model of their own, so that they can be run alone.
//!
//! A window says nothing about shapes of what it computes. It has the operator versions and the
//! functions of the graph that its nodes come from.

use std::collections::{HashMap, HashSet};

use veracity_diag::Result;
use veracity_tensor::DType;

use crate::build::{Node, model_proto};
use crate::capture::read_elsewhere;
use crate::edit::graph::{Graph, broken};
use crate::edit::{NodeId, Weight};
use crate::generated::onnx::attribute_proto::AttributeType;
use crate::generated::onnx::{
    AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, type_proto,
};
use crate::value::{from_onnx, to_onnx};
use crate::{Dim, Model, ValueInfo};

/// Attributes that name an element type.
const TYPE_ATTRIBUTES: [&str; 2] = ["to", "dtype"];

/// Nodes with what they are given and what they give.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The nodes, in any order.
    pub nodes: Vec<Node>,
    /// Values that are handed in, with their types and sizes.
    pub inputs: Vec<(String, DType, Vec<usize>)>,
    /// Constants.
    pub weights: Vec<(String, Weight)>,
    /// Values that are wanted.
    pub outputs: Vec<String>,
}

impl Window {
    /// The model, in the operator versions of a graph. Refused when nodes wait for each other.
    pub fn to_model(&self, of: &Graph) -> Result<Model> {
        let named = |(name, weight): &(String, Weight)| TensorProto {
            name: Some(name.clone()),
            ..weight.0.clone()
        };
        let fed = |(name, dtype, dims): &(String, DType, Vec<usize>)| {
            let dims = dims.iter().copied().map(Dim::Fixed).collect();
            ValueInfo::tensor_proto(name.clone(), *dtype, dims)
        };
        let wanted = |name: &String| ValueInfoProto {
            name: Some(name.clone()),
            ..ValueInfoProto::default()
        };
        let Some(nodes) = in_order(&self.nodes) else {
            return Err(broken("nodes of a rewrite wait for each other", of.place.clone()));
        };
        let graph = GraphProto {
            name: Some("window".to_owned()),
            node: nodes.into_iter().map(|node| NodeProto::from(node.clone())).collect(),
            initializer: self.weights.iter().map(named).collect(),
            input: self.inputs.iter().map(fed).collect(),
            output: self.outputs.iter().map(wanted).collect(),
            ..GraphProto::default()
        };
        let mut proto = model_proto(graph, of.shell.ir_version());
        proto.opset_import.clone_from(&of.shell.opset_import);
        proto.functions.clone_from(&of.shell.functions);
        of.import_from_functions(&mut proto);
        Model::checked(proto).map_err(|what| broken(what, of.place.clone()))
    }

    /// The window in float64: constants, casts to float types and what is handed in. `None` when a
    /// constant lies elsewhere.
    pub fn widened(&self) -> Option<Self> {
        let mut wide = self.clone();
        for (_, weight) in &mut wide.weights {
            widen_tensor(&mut weight.0)?;
        }
        for (_, dtype, _) in &mut wide.inputs {
            if dtype.is_float() {
                *dtype = DType::F64;
            }
        }
        wide.nodes.iter_mut().try_for_each(|node| widen_node(node.proto_mut()))?;
        Some(wide)
    }
}

impl Node {
    /// The node as an engine needs it: without its name and what only people and tools read.
    #[must_use]
    pub fn bare(&self) -> Self {
        let NodeProto { input, output, op_type, domain, overload, attribute, .. } = self.proto();
        Self(NodeProto {
            input: input.clone(),
            output: output.clone(),
            op_type: op_type.clone(),
            domain: domain.clone(),
            overload: overload.clone(),
            attribute: attribute.clone(),
            ..NodeProto::default()
        })
    }

    /// The node with other names for what it reads, in bodies as well, and for what it gives.
    #[must_use]
    pub fn renamed(mut self, names: &HashMap<String, String>) -> Self {
        read_elsewhere(self.proto_mut(), names);
        for output in &mut self.proto_mut().output {
            if let Some(other) = names.get(output) {
                output.clone_from(other);
            }
        }
        self
    }

    /// The node with other names for what it reads, in bodies as well.
    #[must_use]
    pub fn reading(mut self, names: &HashMap<String, String>) -> Self {
        read_elsewhere(self.proto_mut(), names);
        self
    }
}

impl Graph {
    /// Whether the main graph has a value of this name.
    pub fn has_value(&self, name: &str) -> bool {
        self.is_defined(name)
    }

    /// A weight, also when it is an input that has it as a default.
    pub fn default_of(&self, name: &str) -> Option<&Weight> {
        self.weights.get(name)
    }

    /// Where each node stands in the running order.
    pub fn places(&self) -> HashMap<NodeId, usize> {
        self.order.iter().enumerate().map(|(place, &id)| (id, place)).collect()
    }
}

/// The nodes in an order in which they can run; `None` when they wait for each other.
fn in_order(nodes: &[Node]) -> Option<Vec<&Node>> {
    let made: HashSet<&str> = nodes
        .iter()
        .flat_map(Node::outputs)
        .map(String::as_str)
        .filter(|n| !n.is_empty())
        .collect();
    let mut done: HashSet<&str> = HashSet::new();
    let mut sorted = Vec::with_capacity(nodes.len());
    let mut waiting: Vec<(&Node, Vec<String>)> = nodes
        .iter()
        .map(|node| {
            let own = |name: &String| node.outputs().contains(name);
            let reads = node.reads().into_iter();
            (node, reads.filter(|name| made.contains(name.as_str()) && !own(name)).collect())
        })
        .collect();
    while !waiting.is_empty() {
        let before = sorted.len();
        waiting.retain(|(node, reads)| {
            let ready = reads.iter().all(|name| done.contains(name.as_str()));
            if ready {
                done.extend(node.outputs().iter().map(String::as_str));
                sorted.push(*node);
            }
            !ready
        });
        if sorted.len() == before {
            return None;
        }
    }
    Some(sorted)
}

fn is_short(elem_type: i32) -> bool {
    from_onnx(elem_type).is_some_and(|dtype| dtype.is_float() && dtype != DType::F64)
}

fn widen_tensor(tensor: &mut TensorProto) -> Option<()> {
    if !is_short(tensor.data_type()) {
        return Some(());
    }
    let weight = Weight(tensor.clone());
    let wide = Weight::from_floats(DType::F64, &weight.dims(), &weight.floats()?)?;
    *tensor = TensorProto { name: tensor.name.take(), ..wide.0 };
    Some(())
}

/// Depth is bounded for every model.
fn widen_node(node: &mut NodeProto) -> Option<()> {
    if let Some(weight) = Node(node.clone()).constant() {
        let value = AttributeProto {
            name: Some("value".to_owned()),
            r#type: Some(AttributeType::Tensor.into()),
            t: Some(weight.0),
            ..AttributeProto::default()
        };
        node.attribute = vec![value];
    }
    for attribute in &mut node.attribute {
        if TYPE_ATTRIBUTES.contains(&attribute.name())
            && attribute.i.and_then(|kind| i32::try_from(kind).ok()).is_some_and(is_short)
        {
            attribute.i = Some(to_onnx(DType::F64).into());
        }
        let tensors = attribute.t.iter_mut().chain(&mut attribute.tensors);
        tensors.into_iter().try_for_each(widen_tensor)?;
        for body in attribute.g.iter_mut().chain(&mut attribute.graphs) {
            body.initializer.iter_mut().try_for_each(widen_tensor)?;
            let declared = body.input.iter_mut().chain(&mut body.output);
            declared.chain(&mut body.value_info).for_each(widen_declared);
            body.node.iter_mut().try_for_each(widen_node)?;
        }
    }
    Some(())
}

fn widen_declared(info: &mut ValueInfoProto) {
    if let Some(type_proto::Value::TensorType(tensor)) =
        info.r#type.as_mut().and_then(|declared| declared.value.as_mut())
        && is_short(tensor.elem_type())
    {
        tensor.elem_type = Some(to_onnx(DType::F64));
    }
}

#[cfg(test)]
mod tests {
    use veracity_tensor::Tensor;

    use super::*;
    use crate::GraphBuilder;
    use crate::text::text;

    fn graph() -> Graph {
        Graph::new(GraphBuilder::new("graph", 20).finish().unwrap()).unwrap()
    }

    fn window() -> Window {
        let half = Tensor::from_slice([1], &[0.5_f32]).unwrap();
        Window {
            nodes: vec![
                Node::new("Cast", ["b"], ["y"]).int("to", 1),
                Node::new("Mul", ["x", "w"], ["a"]),
                Node::new("Constant", [""; 0], ["c"]).float("value_float", 0.1),
                Node::new("Add", ["a", "c"], ["b"]),
            ],
            inputs: vec![("x".to_owned(), DType::F32, vec![2])],
            weights: vec![("w".to_owned(), Weight::new(half))],
            outputs: vec!["y".to_owned()],
        }
    }

    #[test]
    fn nodes_stand_in_running_order() {
        let model = window().to_model(&graph()).unwrap();
        let given: Vec<String> = model.nodes().into_iter().flat_map(|node| node.outputs).collect();
        assert_eq!(given, ["a", "c", "b", "y"]);
        assert_eq!(model.opset(), Some(20));
    }

    #[test]
    fn nodes_that_wait_for_each_other_are_refused() {
        let mut window = window();
        window.nodes.push(Node::new("Relu", ["y"], ["x"]));
        assert!(window.to_model(&graph()).is_err());
    }

    #[test]
    fn all_floats_become_float64() {
        let model = window().widened().unwrap().to_model(&graph()).unwrap();
        assert!(text(&model).contains("input x: float64 [2]"), "{}", text(&model));
        assert_eq!(model.constant("w").unwrap().as_slice::<f64>(), Some(&[0.5][..]));
        let constant = model.constant("c").unwrap();
        assert_eq!(constant.as_slice::<f64>(), Some(&[f64::from(0.1_f32)][..]));
        assert_eq!(model.attributes(3)["to"].text(), "11");
    }

    #[test]
    fn bodies_follow_other_names() {
        let branch = || {
            let node = Node::new("Neg", ["x"], ["out"]);
            GraphBuilder::new("branch", 20).node(node).output("out", DType::F32, [2_usize])
        };
        let node = Node::new("If", ["flag"], ["y"])
            .graph("then_branch", branch())
            .graph("else_branch", branch());
        let names = [("x", "1/x"), ("y", "1/y")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let renamed = node.renamed(&names.into());
        assert!(renamed.reads().contains("1/x"));
        assert_eq!(renamed.outputs(), ["1/y"]);
    }
}
