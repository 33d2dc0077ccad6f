//! Looks at values inside of a graph: as further outputs, or each computed from inputs that are
//! given instead of computed.
//!
//! A graph with every value as output shows how errors add up. A graph that is *cut* at values reads
//! them from inputs of their own wherever they are used and still computes them: fed with reference
//! values, each output then holds only the error that its own operators bring in. Both leave the
//! weights where they are.

use std::collections::{HashMap, HashSet};

use veracity_diag::{Diagnostic, Refusal, Result, codes, nearest};

use crate::generated::onnx::{
    AttributeProto, GraphProto, ModelProto, NodeProto, StringStringEntryProto, ValueInfoProto,
};
use crate::model::initializer_names;
use crate::{Model, ValueInfo};

/// A node of the main graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its name; often empty.
    pub name: String,
    /// The operator, `domain::Operator` outside of the default domain.
    pub op_type: String,
    /// What it takes; an input that is left out is `""`.
    pub inputs: Vec<String>,
    /// What it gives.
    pub outputs: Vec<String>,
    /// Free-form keys and values: exporters say there where a node comes from.
    pub metadata: Vec<(String, String)>,
}

impl Model {
    /// The nodes of the main graph, in the order in which they run.
    pub fn nodes(&self) -> Vec<NodeFacts> {
        self.graph().node.iter().map(facts).collect()
    }

    /// What the model says about the values that the nodes of its main graph give, as far as it
    /// says anything.
    pub fn described_values(&self) -> Vec<ValueInfo> {
        let described = self.declared();
        let outputs = self.graph().node.iter().flat_map(|node| &node.output);
        let found = outputs.filter_map(|name| described.get(name.as_str()).copied());
        found.map(ValueInfo::from_proto).collect()
    }

    /// The model with these values as outputs after its own. A value that already is an output
    /// stays where it is. Refused for a value that no node gives or that has no declared type.
    pub fn with_outputs<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Self> {
        let added = self.wanted(names)?;
        Ok(self.changed(|graph| graph.output.extend(added)))
    }

    /// The model cut at these values: each is read from an input called `prefix` and its name, and
    /// is an output as well. Refused like [`Model::with_outputs`], and when an input of that name
    /// is already there.
    pub fn cut_at(&self, names: &[&str], prefix: &str) -> Result<Self> {
        let outputs = self.wanted(names.iter().copied())?;
        let described = self.declared();
        let mut renamed = HashMap::new();
        let mut inputs = Vec::new();
        for name in names {
            let input = format!("{prefix}{name}");
            if self.defines(&input) {
                let message = format!("the model has a value {input:?} already");
                return Err(self.refused(message));
            }
            inputs.push(ValueInfoProto { name: Some(input.clone()), ..described[name].clone() });
            renamed.insert((*name).to_owned(), input);
        }
        Ok(self.changed(|graph| {
            graph.node.iter_mut().for_each(|node| read_elsewhere(node, &renamed));
            graph.input.extend(inputs);
            graph.output.extend(outputs);
        }))
    }

    /// The part of the model that these values need, with them as its outputs, in this order.
    /// Refused like [`Model::with_outputs`].
    pub fn part_for(&self, names: &[&str]) -> Result<Self> {
        let mut described = self.declared();
        described.extend(self.graph().input.iter().map(|input| (input.name(), input)));
        self.wanted(names.iter().copied())?;
        let outputs: Vec<ValueInfoProto> =
            names.iter().map(|name| described[name].clone()).collect();
        Ok(self.changed(|graph| {
            let mut needed: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut kept = Vec::new();
            for node in graph.node.drain(..).rev() {
                if node.output.iter().any(|output| needed.contains(output)) {
                    collect_reads(&node, &mut needed);
                    kept.push(node);
                }
            }
            kept.reverse();
            graph.node = kept;
            graph.output = outputs;
            graph.input.retain(|input| needed.contains(input.name()));
            graph.initializer.retain(|tensor| needed.contains(tensor.name()));
            graph.sparse_initializer.retain(|tensor| {
                tensor.values.as_ref().is_none_or(|values| needed.contains(values.name()))
            });
            graph.value_info.retain(|info| needed.contains(info.name()));
        }))
    }

    /// What the main graph declares about values, by name.
    fn declared(&self) -> HashMap<&str, &ValueInfoProto> {
        let graph = self.graph();
        let infos = graph.value_info.iter().chain(&graph.output);
        let typed = infos.filter(|info| info.r#type.is_some());
        typed.map(|info| (info.name(), info)).collect()
    }

    /// The declarations of these values, without those that are outputs already.
    fn wanted<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<ValueInfoProto>> {
        let described = self.declared();
        let computed: HashSet<&str> =
            self.graph().node.iter().flat_map(|node| &node.output).map(String::as_str).collect();
        let mut present: HashSet<&str> =
            self.graph().output.iter().map(ValueInfoProto::name).collect();
        let mut wanted = Vec::new();
        for name in names {
            if !computed.contains(name) {
                return Err(self.unknown(name, &computed));
            }
            let Some(info) = described.get(name) else {
                return Err(self.refused(format!("the model does not say what {name:?} is")));
            };
            if present.insert(name) {
                wanted.push((*info).clone());
            }
        }
        Ok(wanted)
    }

    fn defines(&self, name: &str) -> bool {
        let graph = self.graph();
        graph.input.iter().any(|input| input.name() == name)
            || graph.node.iter().any(|node| node.output.iter().any(|output| output == name))
            || initializer_names(graph).any(|initializer| initializer == name)
    }

    #[must_use]
    pub(crate) fn changed(&self, change: impl FnOnce(&mut GraphProto)) -> Self {
        let mut proto: ModelProto = self.proto().clone();
        change(proto.graph.as_mut().expect("`checked` refuses models without a graph"));
        Self::checked(proto).expect("what was changed keeps its graph and its depth")
    }

    fn refused(&self, message: String) -> Refusal {
        Diagnostic::error(codes::ONNX_VALUE_UNKNOWN, message).at(self.place()).into()
    }

    fn unknown(&self, name: &str, computed: &HashSet<&str>) -> Refusal {
        let mut known: Vec<&str> = computed.iter().copied().collect();
        known.sort_unstable();
        let found = Diagnostic::error(
            codes::ONNX_VALUE_UNKNOWN,
            format!("no node of the main graph gives {name:?}"),
        );
        let found = match nearest(name, known) {
            Some(meant) => found.hint(format!("did you mean {meant:?}?")),
            None => found,
        };
        found.at(self.place()).into()
    }
}

fn facts(node: &NodeProto) -> NodeFacts {
    let entry = |entry: &StringStringEntryProto| (entry.key().to_owned(), entry.value().to_owned());
    NodeFacts {
        name: node.name().to_owned(),
        op_type: op_type(node),
        inputs: node.input.clone(),
        outputs: node.output.clone(),
        metadata: node.metadata_props.iter().map(entry).collect(),
    }
}

/// The operator, `domain::Operator` outside of the default domain.
pub(crate) fn op_type(node: &NodeProto) -> String {
    match crate::walk::domain(node.domain()) {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}::{}", node.op_type()),
    }
}

/// Adds every name that a node reads, bodies included. Names that a body defines itself are added
/// as well: keeping too much does no harm.
pub(crate) fn collect_reads(node: &NodeProto, needed: &mut HashSet<String>) {
    needed.extend(node.input.iter().cloned());
    for attribute in &node.attribute {
        for body in attribute.g.iter().chain(&attribute.graphs) {
            body.node.iter().for_each(|node| collect_reads(node, needed));
            needed.extend(body.output.iter().map(|output| output.name().to_owned()));
        }
    }
}

/// Lets a node read other values, bodies of branches and loops included.
pub(crate) fn read_elsewhere(node: &mut NodeProto, renamed: &HashMap<String, String>) {
    for input in &mut node.input {
        if let Some(other) = renamed.get(input) {
            input.clone_from(other);
        }
    }
    node.attribute.iter_mut().for_each(|attribute| read_in_bodies(attribute, renamed));
}

/// A body sees the values around it, unless it defines one of that name itself. Models that define
/// a name after reading the outer one are not made by anybody; they are read as if they shadowed.
fn read_in_bodies(attribute: &mut AttributeProto, renamed: &HashMap<String, String>) {
    for body in attribute.g.iter_mut().chain(&mut attribute.graphs) {
        let mut visible = renamed.clone();
        for input in &body.input {
            visible.remove(input.name());
        }
        for name in initializer_names(body) {
            visible.remove(name);
        }
        for output in body.node.iter().flat_map(|node| &node.output) {
            visible.remove(output);
        }
        body.node.iter_mut().for_each(|node| read_elsewhere(node, &visible));
        // A body may hand out a value from around it.
        for output in &mut body.output {
            if let Some(other) = output.name.as_ref().and_then(|name| visible.get(name)) {
                output.name = Some(other.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use veracity_tensor::DType;

    use super::*;
    use crate::text::text;
    use crate::{GraphBuilder, Node};

    /// `a = Relu(x)`, `b = If(flag) { Add(a, a) } else { a }`, `y = Mul(a, b)`.
    fn model() -> Model {
        let branch = |name: &str, node: Node| {
            GraphBuilder::new(name, 20).node(node).output("out", DType::F32, [2_usize])
        };
        let model = GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [2_usize])
            .input("flag", DType::Bool, [0_usize; 0])
            .node(Node::new("Relu", ["x"], ["a"]))
            .node(
                Node::new("If", ["flag"], ["b"])
                    .graph("then_branch", branch("then", Node::new("Add", ["a", "a"], ["out"])))
                    .graph("else_branch", branch("else", Node::new("Identity", ["a"], ["out"]))),
            )
            .node(Node::new("Mul", ["a", "b"], ["y"]))
            .output("y", DType::F32, [2_usize])
            .finish()
            .unwrap();
        model.changed(|graph| {
            for name in ["a", "b"] {
                let dims = vec![crate::Dim::Fixed(2)];
                let info = ValueInfo::tensor_proto(name.into(), DType::F32, dims);
                graph.value_info.push(info);
            }
        })
    }

    #[test]
    fn values_become_outputs_after_those_that_are_there() {
        let marked = model().with_outputs(["y", "a", "b", "a"]).unwrap();
        let names: Vec<String> = marked.outputs().into_iter().map(|value| value.name).collect();
        assert_eq!(names, ["y", "a", "b"]);
        assert_eq!(marked.nodes(), model().nodes());
    }

    #[test]
    fn a_cut_value_is_read_from_an_input_everywhere_and_still_computed() {
        let cut = text(&model().cut_at(&["a", "b"], "given:").unwrap());
        for line in [
            "input given:a: float32 [2]",
            "input given:b: float32 [2]",
            "node a = Relu(x)",
            "out = Add(given:a, given:a)",
            "out = Identity(given:a)",
            "node y = Mul(given:a, given:b)",
            "output a: float32 [2]",
        ] {
            assert!(cut.contains(line), "{line} is not in\n{cut}");
        }
    }

    #[test]
    fn a_part_has_only_what_its_values_need() {
        let part = text(&model().part_for(&["a"]).unwrap());
        assert_eq!(
            part.lines().collect::<Vec<_>>(),
            [
                "input x: float32 [2]",
                "node a = Relu(x)",
                "value a: float32 [2]",
                "output a: float32 [2]"
            ]
        );
        let whole = model().part_for(&["y"]).unwrap();
        assert_eq!(whole.nodes(), model().nodes());
    }

    #[test]
    fn what_cannot_be_looked_at_is_refused() {
        let model = model();
        let untyped = model.changed(|graph| graph.value_info.clear());
        for (what, refused) in [
            ("no such value", model.with_outputs(["c"]).unwrap_err()),
            ("an input", model.with_outputs(["x"]).unwrap_err()),
            ("without type", untyped.with_outputs(["a"]).unwrap_err()),
            ("a name that is taken", model.cut_at(&["a"], "").unwrap_err()),
        ] {
            assert_eq!(refused.first_error().code, codes::ONNX_VALUE_UNKNOWN, "{what}");
        }
    }

    #[test]
    fn nodes_say_what_they_are() {
        let nodes = model().nodes();
        let kinds: Vec<&str> = nodes.iter().map(|node| node.op_type.as_str()).collect();
        assert_eq!(kinds, ["Relu", "If", "Mul"]);
        let described = model().described_values();
        assert_eq!(described.iter().map(|value| &value.name).collect::<Vec<_>>(), ["a", "b", "y"]);
    }
}
