//! Models, nodes and weights without the elements of large tensors, to be kept elsewhere.
//!
//! A tensor whose elements were taken out holds an *address* instead: a text that whoever took them
//! out chose, and by which they are found again. Only elements that stand as plain bytes are taken
//! out. Such a model is for storage: it must be filled before it means anything.

use bytes::Bytes;
use prost::Message as _;
use veracity_diag::{Diagnostic, Refusal, Result, codes};

use crate::build::{Node, entry};
use crate::edit::Weight;
use crate::generated::onnx::{
    AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto,
};
use crate::{Model, limits};

/// Key of the address.
const ADDRESS: &str = "veracity.elements";

impl Model {
    /// The elements of every tensor, wherever in the model it is, in an order that depends on the
    /// structure alone; empty where a tensor has none that are plain bytes.
    pub fn stored(&self) -> Vec<Bytes> {
        let mut found = Vec::new();
        // Cloned messages share the elements.
        visit(&mut self.proto().clone(), &mut |tensor| {
            found.push(tensor.raw_data.clone().unwrap_or_default());
        });
        found
    }

    /// The model without the elements that `address` gives an address for.
    #[must_use]
    pub fn emptied(&self, mut address: impl FnMut(&Bytes) -> Option<String>) -> Self {
        self.with(|proto| visit(proto, &mut |tensor| take_out(tensor, &mut address)))
    }

    /// The model with the elements that were taken out. Refused when `find` does not have some.
    pub fn filled(&self, mut find: impl FnMut(&str) -> Option<Bytes>) -> Result<Self> {
        let mut missing = None;
        let filled = self.with(|proto| {
            visit(proto, &mut |tensor| {
                if let Err(address) = put_back(tensor, &mut find) {
                    missing.get_or_insert(address);
                }
            });
        });
        missing.map_or(Ok(filled), |address| Err(absent(&address)))
    }
}

impl Node {
    /// The node as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    /// The node that [`Node::to_bytes`] gave. Refused when it is none, or takes too much memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        limits::check_node(bytes)?;
        let node = NodeProto::decode(bytes).map_err(|error| malformed("a node", &error))?;
        Ok(Self(node))
    }
}

impl Weight {
    /// The elements as they stand, whatever their type; `None` when they are a list of numbers.
    pub fn stored(&self) -> Option<&Bytes> {
        self.0.raw_data.as_ref()
    }

    /// Name of the type of the elements, also of one that is not ours.
    pub fn type_name(&self) -> String {
        let known = crate::generated::onnx::tensor_proto::DataType::try_from(self.0.data_type());
        match (self.dtype(), known) {
            (Some(dtype), _) => dtype.to_string(),
            (None, Ok(known)) => known.as_str_name().to_lowercase(),
            (None, Err(_)) => format!("type {}", self.0.data_type()),
        }
    }

    /// The weight as bytes, with all its elements.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    /// The weight as bytes, with an address instead of its elements.
    pub fn to_bytes_without(&self, address: &str) -> Vec<u8> {
        let mut tensor = self.0.clone();
        take_out(&mut tensor, &mut |_| Some(address.to_owned()));
        tensor.encode_to_vec()
    }

    /// The weight that was turned into bytes, its elements found by their address, if it has one.
    pub fn from_bytes(bytes: &[u8], mut find: impl FnMut(&str) -> Option<Bytes>) -> Result<Self> {
        let mut tensor =
            TensorProto::decode(bytes).map_err(|error| malformed("a weight", &error))?;
        put_back(&mut tensor, &mut find).map_err(|address| absent(&address))?;
        Ok(Self(tensor))
    }
}

fn take_out(tensor: &mut TensorProto, address: &mut impl FnMut(&Bytes) -> Option<String>) {
    let Some(address) = tensor.raw_data.as_ref().and_then(address) else { return };
    tensor.raw_data = None;
    tensor.external_data.push(entry(ADDRESS, address));
}

fn put_back(
    tensor: &mut TensorProto,
    find: &mut impl FnMut(&str) -> Option<Bytes>,
) -> std::result::Result<(), String> {
    let Some(last) = tensor.external_data.pop_if(|last| last.key() == ADDRESS) else {
        return Ok(());
    };
    tensor.raw_data = Some(find(last.value()).ok_or_else(|| last.value().to_owned())?);
    Ok(())
}

/// Calls `see` for every tensor: weights first, then nodes in their order, bodies where they stand;
/// functions and training graphs come last. `Model::checked` bounds the depth.
fn visit(model: &mut ModelProto, see: &mut impl FnMut(&mut TensorProto)) {
    model.graph.iter_mut().for_each(|graph| visit_graph(graph, see));
    for function in &mut model.functions {
        function.node.iter_mut().for_each(|node| visit_attributes(&mut node.attribute, see));
        visit_attributes(&mut function.attribute_proto, see);
    }
    for training in &mut model.training_info {
        let graphs = [&mut training.initialization, &mut training.algorithm];
        graphs.into_iter().flatten().for_each(|graph| visit_graph(graph, see));
    }
}

fn visit_graph(graph: &mut GraphProto, see: &mut impl FnMut(&mut TensorProto)) {
    graph.initializer.iter_mut().for_each(&mut *see);
    graph.sparse_initializer.iter_mut().for_each(|tensor| visit_sparse(tensor, see));
    graph.node.iter_mut().for_each(|node| visit_attributes(&mut node.attribute, see));
}

fn visit_sparse(tensor: &mut SparseTensorProto, see: &mut impl FnMut(&mut TensorProto)) {
    [&mut tensor.values, &mut tensor.indices].into_iter().flatten().for_each(&mut *see);
}

fn visit_attributes(attributes: &mut [AttributeProto], see: &mut impl FnMut(&mut TensorProto)) {
    for attribute in attributes {
        attribute.t.iter_mut().chain(&mut attribute.tensors).for_each(&mut *see);
        let sparse = attribute.sparse_tensor.iter_mut().chain(&mut attribute.sparse_tensors);
        sparse.for_each(|tensor| visit_sparse(tensor, see));
        let bodies = attribute.g.iter_mut().chain(&mut attribute.graphs);
        bodies.for_each(|graph| visit_graph(graph, see));
    }
}

fn absent(address: &str) -> Refusal {
    let message = format!("the elements {address:?} are not there");
    Diagnostic::error(codes::ELEMENTS_MISSING, message).into()
}

fn malformed(what: &str, error: &prost::DecodeError) -> Refusal {
    Diagnostic::error(codes::ONNX_MALFORMED, format!("not {what} of a model: {error}")).into()
}

#[cfg(test)]
mod tests {
    use veracity_tensor::{DType, Tensor};

    use super::*;
    use crate::GraphBuilder;

    fn model() -> Model {
        let tensor = |number| Tensor::from_slice([2], &[number, 2.0_f32]).unwrap();
        let branch = |operator: &str| {
            let node = Node::new(operator, ["x", "inner"], ["out"]);
            let branch = GraphBuilder::new("branch", 20).initializer("inner", &tensor(3.0));
            branch.node(node).output("out", DType::F32, [2_usize])
        };
        GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [2_usize])
            .input("flag", DType::Bool, [0_usize; 0])
            .initializer("w", &tensor(1.0))
            .node(Node::new("Constant", [""; 0], ["c"]).tensor("value", &tensor(2.0)))
            .node(
                Node::new("If", ["flag"], ["y"])
                    .graph("then_branch", branch("Add"))
                    .graph("else_branch", branch("Sub")),
            )
            .output("y", DType::F32, [2_usize])
            .finish()
            .unwrap()
    }

    #[test]
    fn elements_that_were_taken_out_are_put_back_wherever_they_were() {
        let model = model();
        let stored = model.stored();
        assert_eq!(stored.len(), 4, "a weight, a constant and one in each branch");
        let mut next = 0;
        let emptied = model.emptied(|elements| {
            next += 1;
            assert_eq!(elements, &stored[next - 1]);
            (next != 2).then(|| (next - 1).to_string())
        });
        assert_eq!(emptied.stored().iter().filter(|one| one.is_empty()).count(), 3);
        let read = Model::from_bytes(emptied.to_bytes().unwrap().into()).unwrap();
        let filled = read.filled(|at| stored.get(at.parse::<usize>().ok()?).cloned()).unwrap();
        assert_eq!(filled.to_bytes().unwrap(), model.to_bytes().unwrap());
        let refused = read.filled(|_| None).unwrap_err();
        assert_eq!(refused.first_error().code, codes::ELEMENTS_MISSING);
    }

    #[test]
    fn nodes_and_weights_survive_as_bytes() {
        let model = model();
        for node in model.main_nodes() {
            assert_eq!(Node::from_bytes(&node.to_bytes()).unwrap(), node);
        }
        assert!(Node::from_bytes(&[0x0a, 5]).is_err());
        let weight = Weight::new(Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap());
        let none = |_: &str| None;
        assert_eq!(Weight::from_bytes(&weight.to_bytes(), none).unwrap(), weight);
        let empty = weight.to_bytes_without("here");
        assert!(Weight::from_bytes(&empty, none).is_err());
        let find = |at: &str| (at == "here").then(|| weight.stored().cloned()).flatten();
        assert_eq!(Weight::from_bytes(&empty, find).unwrap(), weight);
    }
}
