//! Makes models in code, for tests, examples and generated glue.

mod function;

use std::collections::BTreeSet;

use bytes::Bytes;
use veracity_diag::{Diagnostic, Result, codes};
use veracity_tensor::{DType, Tensor};

use crate::generated::onnx::attribute_proto::AttributeType;
use crate::generated::onnx::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto,
};
use crate::value::{ValueInfo, to_onnx};
use crate::{Dim, Model};

pub use function::Function;

/// Format version of the models made here: ONNX 1.12, old enough for every engine and new enough
/// for model-local functions.
const IR_VERSION: i64 = 8;

/// Makes a graph part by part. The same calls give the same bytes.
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    graph: GraphProto,
    opset: i64,
    functions: Vec<Function>,
    metadata: Vec<StringStringEntryProto>,
}

impl GraphBuilder {
    /// An empty graph that uses this version of the default operators.
    pub fn new(name: impl Into<String>, opset: i64) -> Self {
        let graph = GraphProto { name: Some(name.into()), ..GraphProto::default() };
        Self { graph, opset, functions: Vec::new(), metadata: Vec::new() }
    }

    /// Adds an input.
    #[must_use]
    pub fn input<D: Into<Dim>>(
        mut self,
        name: impl Into<String>,
        dtype: DType,
        dims: impl IntoIterator<Item = D>,
    ) -> Self {
        let dims = dims.into_iter().map(Into::into).collect();
        self.graph.input.push(ValueInfo::tensor_proto(name.into(), dtype, dims));
        self
    }

    /// Adds an output: a value that a node, an initializer or an input gives.
    #[must_use]
    pub fn output<D: Into<Dim>>(
        mut self,
        name: impl Into<String>,
        dtype: DType,
        dims: impl IntoIterator<Item = D>,
    ) -> Self {
        let dims = dims.into_iter().map(Into::into).collect();
        self.graph.output.push(ValueInfo::tensor_proto(name.into(), dtype, dims));
        self
    }

    /// Adds a constant value.
    #[must_use]
    pub fn initializer(mut self, name: impl Into<String>, tensor: &Tensor) -> Self {
        self.graph.initializer.push(tensor_proto(Some(name.into()), tensor));
        self
    }

    /// Adds a node. Nodes stand in the order in which they are to run.
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        self.graph.node.push(node.0);
        self
    }

    /// Adds a function that nodes can call: those with its domain and its name as operator.
    #[must_use]
    pub fn function(mut self, function: Function) -> Self {
        self.functions.push(function);
        self
    }

    /// Adds a key with a value to the model.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push(entry(key, value));
        self
    }

    pub(crate) fn into_graph(self) -> GraphProto {
        self.graph
    }

    /// The model. Refused when subgraphs nest too deep; whether the nodes make sense is for an
    /// engine to say.
    pub fn finish(self) -> Result<Model> {
        let domains: BTreeSet<&str> = self.functions.iter().map(|one| one.0.domain()).collect();
        let mut imports = vec![opset_import("", self.opset)];
        imports.extend(domains.into_iter().map(|domain| opset_import(domain, 1)));
        let proto = ModelProto {
            opset_import: imports,
            functions: self.functions.into_iter().map(|one| one.0).collect(),
            metadata_props: self.metadata,
            ..model_proto(self.graph, IR_VERSION)
        };
        Model::checked(proto)
            .map_err(|problem| Diagnostic::error(codes::ONNX_MALFORMED, problem).into())
    }
}

/// One node of a graph: an operator with the names of what it takes and gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Node(pub(crate) NodeProto);

impl Node {
    /// A node. An input that is left out has the name `""`.
    pub fn new<I: Into<String>, O: Into<String>>(
        op_type: impl Into<String>,
        inputs: impl IntoIterator<Item = I>,
        outputs: impl IntoIterator<Item = O>,
    ) -> Self {
        Self(NodeProto {
            op_type: Some(op_type.into()),
            input: inputs.into_iter().map(Into::into).collect(),
            output: outputs.into_iter().map(Into::into).collect(),
            ..NodeProto::default()
        })
    }

    /// Gives the node a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.0.name = Some(name.into());
        self
    }

    /// Takes the operator from another domain than the default one.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.0.domain = Some(domain.into());
        self
    }

    /// Adds an integer attribute.
    #[must_use]
    pub fn int(self, name: impl Into<String>, value: i64) -> Self {
        let value = AttributeProto { i: Some(value), ..AttributeProto::default() };
        self.attribute(name, AttributeType::Int, value)
    }

    /// Adds a type attribute, like `to` of `Cast`.
    #[must_use]
    pub fn dtype(self, name: impl Into<String>, value: DType) -> Self {
        self.int(name, to_onnx(value).into())
    }

    /// Adds a number attribute.
    #[must_use]
    pub fn float(self, name: impl Into<String>, value: f32) -> Self {
        let value = AttributeProto { f: Some(value), ..AttributeProto::default() };
        self.attribute(name, AttributeType::Float, value)
    }

    /// Adds a text attribute.
    #[must_use]
    pub fn string(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = AttributeProto { s: Some(value.into().into()), ..AttributeProto::default() };
        self.attribute(name, AttributeType::String, value)
    }

    /// Adds an attribute that is a list of integers.
    #[must_use]
    pub fn ints(self, name: impl Into<String>, values: impl Into<Vec<i64>>) -> Self {
        let value = AttributeProto { ints: values.into(), ..AttributeProto::default() };
        self.attribute(name, AttributeType::Ints, value)
    }

    /// Adds an attribute that is a list of numbers.
    #[must_use]
    pub fn floats(self, name: impl Into<String>, values: impl Into<Vec<f32>>) -> Self {
        let value = AttributeProto { floats: values.into(), ..AttributeProto::default() };
        self.attribute(name, AttributeType::Floats, value)
    }

    /// Adds a tensor attribute.
    #[must_use]
    pub fn tensor(self, name: impl Into<String>, value: &Tensor) -> Self {
        let value =
            AttributeProto { t: Some(tensor_proto(None, value)), ..AttributeProto::default() };
        self.attribute(name, AttributeType::Tensor, value)
    }

    /// Adds a graph attribute, the body of a branch or loop. It uses the operators of the model it
    /// ends up in: its own operator version and metadata are dropped.
    #[must_use]
    pub fn graph(self, name: impl Into<String>, body: GraphBuilder) -> Self {
        let value = AttributeProto { g: Some(body.graph), ..AttributeProto::default() };
        self.attribute(name, AttributeType::Graph, value)
    }

    /// In a function: lets an attribute be that attribute of the call. What was set under the name
    /// before says of which type it is.
    #[must_use]
    pub fn refer(mut self, name: &str, call: impl Into<String>) -> Self {
        let call = call.into();
        for attribute in self.0.attribute.iter_mut().filter(|one| one.name() == name) {
            let (name, r#type) = (attribute.name.take(), attribute.r#type);
            let ref_attr_name = Some(call.clone());
            *attribute =
                AttributeProto { name, r#type, ref_attr_name, ..AttributeProto::default() };
        }
        self
    }

    fn attribute(
        mut self,
        name: impl Into<String>,
        kind: AttributeType,
        value: AttributeProto,
    ) -> Self {
        let (name, r#type) = (name.into(), Some(kind.into()));
        self.0.attribute.retain(|attribute| attribute.name() != name);
        self.0.attribute.push(AttributeProto { name: Some(name), r#type, ..value });
        self
    }
}

/// A model around a graph, with nothing but what every model made by Veracity has.
pub(crate) fn model_proto(graph: GraphProto, ir_version: i64) -> ModelProto {
    ModelProto {
        ir_version: Some(ir_version),
        producer_name: Some("veracity".to_owned()),
        producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        graph: Some(graph),
        ..ModelProto::default()
    }
}

pub(crate) fn opset_import(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) }
}

pub(crate) fn entry(key: impl Into<String>, value: impl Into<String>) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) }
}

pub(crate) fn tensor_proto(name: Option<String>, tensor: &Tensor) -> TensorProto {
    let dims = tensor.shape().dims().iter();
    TensorProto {
        name,
        dims: dims.map(|dim| dim.cast_signed() as i64).collect(),
        data_type: Some(to_onnx(tensor.dtype())),
        raw_data: Some(Bytes::copy_from_slice(tensor.bytes())),
        ..TensorProto::default()
    }
}

impl From<NodeProto> for Node {
    fn from(node: NodeProto) -> Self {
        Self(node)
    }
}

impl From<Node> for NodeProto {
    fn from(node: Node) -> Self {
        node.0
    }
}
