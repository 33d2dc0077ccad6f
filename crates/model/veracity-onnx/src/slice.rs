//! Cuts out what computes one value, so that it can be run alone.
//!
//! A slice says nothing about the shapes of the values inside of it and of its output: what a model
//! says there may be wrong, and parts of a slice may be exchanged.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use veracity_diag::Result;
use veracity_tensor::{DType, Shape, Tensor};

use crate::build::tensor_proto;
use crate::capture::{collect_reads, op_type};
use crate::generated::onnx::{GraphProto, NodeProto, ValueInfoProto, type_proto};
use crate::model::initializer_names;
use crate::{Dim, GraphBuilder, Model, Node, ValueInfo};

/// Most axes that [`Model::shape_probe`] can tell.
pub const PROBED_AXES: usize = 8;

/// A value inside of the body of a branch or loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyValue {
    /// The first value that the node around the body gives.
    pub outer: String,
    /// Its own name, which other bodies may use as well.
    pub name: String,
    /// The operator that gives it.
    pub op_type: String,
}

impl Model {
    /// What computes `name` from values that are `given`, which become its inputs, declared as they
    /// are. Weights that it needs are inside. Refused when no node gives the value, or when the model
    /// does not say what it is.
    pub fn slice(
        &self,
        name: &str,
        given: &dyn Fn(&str) -> Option<(DType, Shape)>,
    ) -> Result<Self> {
        let part = self.part_for(&[name])?;
        Ok(part.changed(|graph| {
            let held: HashSet<String> = initializer_names(graph).map(str::to_owned).collect();
            let given = |read: &str| if held.contains(read) { None } else { given(read) };
            let (kept, inputs) = needed_for(graph, name, &given);
            graph.node = kept;
            let read = reads(&graph.node);
            graph.input.retain(|input| !inputs.contains_key(input.name()));
            graph.input.retain(|input| read.contains(input.name()));
            graph.input.extend(inputs.into_iter().map(|(name, (dtype, shape))| {
                let dims = shape.dims().iter().copied().map(Dim::from).collect();
                ValueInfo::tensor_proto(name, dtype, dims)
            }));
            graph.initializer.retain(|tensor| read.contains(tensor.name()));
            graph.value_info.retain(|info| read.contains(info.name()));
            graph.value_info.iter_mut().chain(&mut graph.output).for_each(forget_shape);
        }))
    }

    /// The model without what it says about the shapes of values that it computes.
    #[must_use]
    pub fn without_shapes(&self) -> Self {
        self.changed(|graph| {
            graph.value_info.iter_mut().chain(&mut graph.output).for_each(forget_shape);
        })
    }

    /// The model with the shape of one of its values as output, and nothing else: a list of
    /// [`PROBED_AXES`] sizes, filled up with -1.
    #[must_use]
    pub fn shape_probe(&self, value: &str) -> Self {
        const OUTPUT: &str = "veracity:shape";
        let names = ["is", "filled", "fill", "from", "to"].map(|part| format!("{OUTPUT}:{part}"));
        let [is, filled, fill, from, to] = &names;
        let axes = PROBED_AXES.cast_signed() as i64;
        let nodes = [
            Node::new("Shape", [value], [is]),
            Node::new("Concat", [is, fill], [filled]).int("axis", 0),
            Node::new("Slice", [filled, from, to], [OUTPUT]),
        ];
        let constants = [(fill, vec![-1; PROBED_AXES]), (from, vec![0]), (to, vec![axes])];
        let output = GraphBuilder::new("", 1).output(OUTPUT, DType::I64, [PROBED_AXES]);
        self.changed(|graph| {
            graph.node.extend(nodes.map(NodeProto::from));
            graph.initializer.extend(constants.into_iter().filter_map(|(name, values)| {
                let tensor = Tensor::from_slice([values.len()], &values).ok()?;
                Some(tensor_proto(Some(name.clone()), &tensor))
            }));
            graph.output = output.into_graph().output;
        })
    }

    /// The values that nodes in bodies of branches and loops give, bodies within bodies included.
    pub fn body_values(&self) -> Vec<BodyValue> {
        let mut found = Vec::new();
        for node in &self.graph().node {
            let outer = node.output.first().cloned().unwrap_or_default();
            collect_body(node, &outer, &mut found);
        }
        found
    }
}

type Inputs = BTreeMap<String, (DType, Shape)>;

/// The nodes behind a value, as far as they are needed, and the given values that they read.
fn needed_for(
    graph: &mut GraphProto,
    name: &str,
    given: &dyn Fn(&str) -> Option<(DType, Shape)>,
) -> (Vec<NodeProto>, Inputs) {
    let mut inputs = Inputs::new();
    let mut needed = HashSet::from([name.to_owned()]);
    let mut kept = Vec::new();
    for node in graph.node.drain(..).rev() {
        if !node.output.iter().any(|output| needed.contains(output)) {
            continue;
        }
        for read in reads(std::slice::from_ref(&node)) {
            match given(&read) {
                Some(kind) => drop(inputs.insert(read, kind)),
                None => drop(needed.insert(read)),
            }
        }
        kept.push(node);
    }
    kept.reverse();
    // An operator with several outputs computes one that is needed and one that is given.
    for output in kept.iter_mut().flat_map(|node| &mut node.output) {
        if inputs.contains_key(output) {
            output.push_str(":own");
        }
    }
    (kept, inputs)
}

fn reads(nodes: &[NodeProto]) -> BTreeSet<String> {
    let mut read = HashSet::new();
    for node in nodes {
        collect_reads(node, &mut read);
    }
    read.into_iter().collect()
}

fn forget_shape(info: &mut ValueInfoProto) {
    if let Some(type_proto::Value::TensorType(tensor)) =
        info.r#type.as_mut().and_then(|declared| declared.value.as_mut())
    {
        tensor.shape = None;
    }
}

/// Depth is bounded for every model.
fn collect_body(node: &NodeProto, outer: &str, found: &mut Vec<BodyValue>) {
    for body in node.attribute.iter().flat_map(|found| found.g.iter().chain(&found.graphs)) {
        for node in &body.node {
            for name in node.output.iter().filter(|name| !name.is_empty()) {
                let op_type = op_type(node);
                found.push(BodyValue { outer: outer.to_owned(), name: name.clone(), op_type });
            }
            collect_body(node, outer, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::text;

    /// `p, q = Split(x)`, `a = Relu(p)`, `y = Add(a, q) * w`
    fn model() -> Model {
        let weight = Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap();
        GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [4_usize])
            .initializer("w", &weight)
            .initializer("unused", &weight)
            .node(Node::new("Split", ["x"], ["p", "q"]).int("num_outputs", 2))
            .node(Node::new("Relu", ["p"], ["a"]))
            .node(Node::new("Add", ["a", "q"], ["s"]))
            .node(Node::new("Mul", ["s", "w"], ["y"]))
            .output("y", DType::F32, [7_usize])
            .output("a", DType::F32, [2_usize])
            .finish()
            .unwrap()
    }

    fn sliced(name: &str, given: &[&str]) -> Vec<String> {
        let kind = |read: &str| given.contains(&read).then(|| (DType::F32, Shape::from([2])));
        let slice = model().slice(name, &kind).unwrap();
        text(&slice).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_slice_reaches_back_to_what_is_given() {
        assert_eq!(
            sliced("y", &["a", "q"]),
            [
                "input a: float32 [2]",
                "input q: float32 [2]",
                "constant w",
                "node s = Add(a, q)",
                "node y = Mul(s, w)",
                "output y: float32",
            ]
        );
    }

    #[test]
    fn what_is_not_given_is_computed_from_the_inputs() {
        let lines = sliced("a", &[]);
        assert_eq!(lines[0], "input x: float32 [4]");
        assert_eq!(lines.last().unwrap(), "output a: float32");
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn an_operator_that_gives_a_given_value_as_well_keeps_a_name_of_its_own() {
        let lines = sliced("y", &["p", "q"]);
        assert!(!lines.iter().any(|line| line.contains("Split")), "{lines:?}");
        let lines = sliced("y", &["q"]);
        assert!(lines.contains(&"node p, q:own = Split(x)".to_owned()), "{lines:?}");
        assert!(lines.contains(&"node s = Add(a, q)".to_owned()), "{lines:?}");
    }

    #[test]
    fn values_in_bodies_are_listed_with_the_node_around_them() {
        let body = |op: &str| {
            let node = Node::new(op, ["x"], ["inside"]);
            GraphBuilder::new("body", 20).node(node).output("inside", DType::F32, [4_usize])
        };
        let model = GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [4_usize])
            .input("flag", DType::Bool, [0_usize; 0])
            .node(
                Node::new("If", ["flag"], ["y"])
                    .graph("then_branch", body("Relu"))
                    .graph("else_branch", body("Abs")),
            )
            .finish()
            .unwrap();
        let found: Vec<String> = model
            .body_values()
            .into_iter()
            .map(|value| format!("{}/{} {}", value.outer, value.name, value.op_type))
            .collect();
        assert_eq!(found, ["y/inside Relu", "y/inside Abs"]);
    }
}
