//! Shows values that the model declares nothing about, and declares what was found.

use std::collections::HashSet;

use veracity_diag::Result;
use veracity_tensor::{DType, Shape};

use crate::generated::onnx::{NodeProto, ValueInfoProto};
use crate::value::from_onnx;
use crate::{Dim, Model, ValueInfo};

impl Model {
    /// Like [`Model::part_for`], also for values without a declared type: they are outputs by name
    /// alone, and the engine says what they are.
    pub fn showing(&self, names: &[&str]) -> Result<Self> {
        let described: HashSet<String> =
            self.described_values().into_iter().map(|info| info.name).collect();
        let untyped: Vec<&str> =
            names.iter().copied().filter(|name| !described.contains(*name)).collect();
        // A value of any type makes the others be looked for; the type is taken away again.
        let declared = self.changed(|graph| {
            for name in &untyped {
                let info = ValueInfo::tensor_proto((*name).to_owned(), DType::Bool, Vec::new());
                graph.output.retain(|output| output.name() != *name);
                graph.value_info.push(info);
            }
        });
        let part = declared.part_for(names)?;
        Ok(part.changed(|graph| {
            graph.value_info.retain(|info| !untyped.contains(&info.name()));
            for output in &mut graph.output {
                if untyped.contains(&output.name()) {
                    *output =
                        ValueInfoProto { name: output.name.take(), ..ValueInfoProto::default() };
                }
            }
        }))
    }

    /// An integer attribute of the node of the main graph that gives this value, if it is set.
    pub fn int_attribute(&self, value: &str, attribute: &str) -> Option<i64> {
        let gives = |node: &&NodeProto| node.output.iter().any(|output| output == value);
        let node = self.graph().node.iter().find(gives)?;
        node.attribute.iter().find(|found| found.name() == attribute)?.i
    }

    /// The dtype that the `Cast` casts to which gives this value.
    pub fn cast_type(&self, value: &str) -> Option<DType> {
        from_onnx(i32::try_from(self.int_attribute(value, "to")?).ok()?)
    }

    /// The model with these dtypes and shapes declared, whatever it declared before.
    #[must_use]
    pub fn declaring<'v>(
        &self,
        values: impl IntoIterator<Item = (&'v str, DType, &'v Shape)>,
    ) -> Self {
        self.changed(|graph| {
            for (name, dtype, shape) in values {
                let dims = shape.dims().iter().map(|&dim| Dim::Fixed(dim)).collect();
                let info = ValueInfo::tensor_proto(name.to_owned(), dtype, dims);
                graph.value_info.retain(|known| known.name() != name);
                match graph.output.iter_mut().find(|output| output.name() == name) {
                    Some(output) => *output = info,
                    None => graph.value_info.push(info),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::text;
    use crate::{GraphBuilder, Node};

    fn model() -> Model {
        GraphBuilder::new("graph", 20)
            .input("x", DType::F32, ["n"])
            .node(Node::new("Relu", ["x"], ["a"]))
            .node(Node::new("Neg", ["a"], ["y"]))
            .output("y", DType::F32, ["n"])
            .finish()
            .unwrap()
    }

    #[test]
    fn a_value_that_nobody_declared_is_shown_by_name() {
        let shown = model().showing(&["a"]).unwrap();
        let outputs = shown.outputs();
        assert_eq!(outputs.len(), 1);
        assert_eq!((outputs[0].name.as_str(), outputs[0].type_name), ("a", ValueInfo::UNTYPED));
        assert_eq!(shown.nodes().len(), 1, "only what is needed");
        assert!(model().showing(&["gone"]).is_err());
        let both = model().showing(&["a", "y"]).unwrap();
        assert_eq!(both.outputs()[1].dtype, Some(DType::F32), "what is declared stays");
    }

    #[test]
    fn attributes_are_found_by_the_value_that_their_node_gives() {
        let node = Node::new("Softmax", ["x"], ["y"]).int("axis", 1);
        let model = GraphBuilder::new("graph", 20).node(node).finish().unwrap();
        assert_eq!(model.int_attribute("y", "axis"), Some(1));
        assert_eq!(model.int_attribute("y", "group"), None);
        assert_eq!(model.int_attribute("x", "axis"), None);
        let cast = |to| Node::new("Cast", ["x"], ["y"]).int("to", to);
        let to = |number| GraphBuilder::new("g", 20).node(cast(number)).finish().unwrap();
        assert_eq!(to(10).cast_type("y"), Some(DType::F16));
        assert_eq!(to(8).cast_type("y"), None, "text is no number");
    }

    #[test]
    fn what_was_found_can_be_declared() {
        let shape = Shape::new([3]).unwrap();
        let found = [("a", DType::F32, &shape), ("y", DType::F32, &shape)];
        let declared = text(&model().declaring(found));
        assert!(declared.contains("value a: float32 [3]"), "{declared}");
        assert!(declared.contains("output y: float32 [3]"), "{declared}");
    }
}
