//! The parts of a model one by one, for whoever compares two models or adds notes to one.

use std::collections::BTreeMap;

use prost::Message as _;

use crate::build::{Node, entry};
use crate::edit::Weight;
use crate::generated::onnx::{ModelProto, StringStringEntryProto, TensorProto};
use crate::walk::domain;
use crate::{Model, ValueInfo};

impl Model {
    /// The nodes of the main graph, in the order of the file.
    pub fn main_nodes(&self) -> Vec<Node> {
        self.graph().node.iter().cloned().map(Node).collect()
    }

    /// The model with further keys on itself and on nodes of its main graph, by position. A key
    /// that is there gets the new value.
    #[must_use]
    pub fn annotated(
        &self,
        nodes: impl IntoIterator<Item = (usize, Vec<(String, String)>)>,
        model: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.with(|proto| {
            for (key, value) in model {
                set(&mut proto.metadata_props, &key, value);
            }
            let Some(main) = &mut proto.graph else { return };
            for (index, entries) in nodes {
                let Some(node) = main.node.get_mut(index) else { continue };
                for (key, value) in entries {
                    set(&mut node.metadata_props, &key, value);
                }
            }
        })
    }

    /// The model with something else in its messages that keeps its graph and its depth.
    pub(crate) fn with(&self, change: impl FnOnce(&mut ModelProto)) -> Self {
        let mut proto = self.proto().clone();
        change(&mut proto);
        let mut changed = Self::checked(proto).expect("graph and depth are kept");
        changed.set_place(&self.place());
        changed
    }

    /// The weights of the main graph with their names, in the order of the file, sparse ones left
    /// out.
    pub fn main_weights(&self) -> Vec<(String, Weight)> {
        let named = self.graph().initializer.iter().map(|tensor| {
            let mut tensor = tensor.clone();
            (tensor.name.take().unwrap_or_default(), Weight(tensor))
        });
        named.collect()
    }

    /// Everything that the graph may be given, also what has a value already.
    pub fn accepted_inputs(&self) -> Vec<ValueInfo> {
        self.graph().input.iter().map(ValueInfo::from_proto).collect()
    }

    /// Versions of all operator sets; `""` is the default one.
    pub fn opsets(&self) -> BTreeMap<String, i64> {
        let imports = self.proto().opset_import.iter();
        imports.map(|import| (domain(import.domain()).to_owned(), import.version())).collect()
    }

    /// The functions of the model and the sparse weights of its main graph, by name and as bytes:
    /// enough to see whether they are the same.
    pub fn further_parts(&self) -> BTreeMap<String, Vec<u8>> {
        let functions = self.proto().functions.iter().map(|function| {
            let name = format!("function {}::{}", function.domain(), function.name());
            (format!("{name} {}", function.overload()).trim().to_owned(), function.encode_to_vec())
        });
        let sparse = self.graph().sparse_initializer.iter().map(|tensor| {
            let name = tensor.values.as_ref().map(TensorProto::name);
            (format!("sparse weight {}", name.unwrap_or_default()), tensor.encode_to_vec())
        });
        functions.chain(sparse).collect()
    }
}

fn set(entries: &mut Vec<StringStringEntryProto>, key: &str, value: String) {
    match entries.iter_mut().find(|found| found.key() == key) {
        Some(found) => found.value = Some(value),
        None => entries.push(entry(key, value)),
    }
}

#[cfg(test)]
mod tests {
    use veracity_tensor::{DType, Tensor};

    use super::*;
    use crate::GraphBuilder;

    fn model() -> Model {
        GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [2_usize])
            .input("w", DType::F32, [2_usize])
            .initializer("w", &Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap())
            .node(Node::new("Relu", ["x"], ["a"]))
            .node(Node::new("Add", ["a", "w"], ["y"]))
            .output("y", DType::F32, [2_usize])
            .finish()
            .unwrap()
    }

    #[test]
    fn parts_are_given_by_name() {
        let model = model();
        assert_eq!(model.accepted_inputs().len(), 2);
        assert_eq!(model.opsets(), [(String::new(), 20)].into());
        let weights = model.main_weights();
        assert_eq!((weights[0].0.as_str(), weights[0].1.dims()), ("w", vec![2]));
        assert!(model.further_parts().is_empty());
    }

    #[test]
    fn keys_are_added_to_nodes_and_model() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let once = model().annotated([(1, vec![pair("a", "1")])], [pair("m", "2")]);
        let twice = once.annotated([(1, vec![pair("a", "3")])], []);
        assert_eq!(twice.metadata(), [pair("m", "2")]);
        assert_eq!(twice.nodes()[1].metadata, [pair("a", "3")]);
        assert!(twice.nodes()[0].metadata.is_empty());
    }
}
