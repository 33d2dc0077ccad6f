//! Functions of a model, made in code.

use super::{Node, opset_import};
use crate::generated::onnx::FunctionProto;

/// A function of a model, part by part.
#[derive(Clone, Debug)]
pub struct Function(pub(super) FunctionProto);

impl Function {
    /// A function without nodes that uses this version of the default operators.
    pub fn new<I: Into<String>, O: Into<String>>(
        (domain, name): (&str, &str),
        opset: i64,
        inputs: impl IntoIterator<Item = I>,
        outputs: impl IntoIterator<Item = O>,
    ) -> Self {
        Self(FunctionProto {
            name: Some(name.to_owned()),
            domain: Some(domain.to_owned()),
            input: inputs.into_iter().map(Into::into).collect(),
            output: outputs.into_iter().map(Into::into).collect(),
            opset_import: vec![opset_import("", opset)],
            ..FunctionProto::default()
        })
    }

    /// Adds a node. Nodes stand in the order in which they are to run.
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        self.0.node.push(node.0);
        self
    }

    /// Names a further operator set that the nodes use.
    #[must_use]
    pub fn import(mut self, domain: &str, version: i64) -> Self {
        self.0.opset_import.push(opset_import(domain, version));
        self
    }

    /// Adds attributes that a call may have: those of this node are the defaults.
    #[must_use]
    pub fn defaults(mut self, node: Node) -> Self {
        self.0.attribute_proto.extend(node.0.attribute);
        self
    }

    /// Adds an attribute without a default.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>) -> Self {
        self.0.attribute.push(name.into());
        self
    }
}
