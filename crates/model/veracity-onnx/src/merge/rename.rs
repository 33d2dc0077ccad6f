//! Puts the stage in front of every name of a graph.

use std::collections::{HashMap, HashSet};

use crate::generated::onnx::tensor_shape_proto::dimension;
use crate::generated::onnx::type_proto::Value;
use crate::generated::onnx::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto,
};
use crate::model::initializer_names;

/// Renames one stage. Bodies of branches and loops see the values around them, unless they define
/// one of that name themselves.
pub(super) struct Renamer {
    prefix: String,
    /// Connected inputs, with the values that feed them.
    aliases: HashMap<String, String>,
    /// What the bodies around the current node have defined so far, outermost first.
    scopes: Vec<HashSet<String>>,
}

impl Renamer {
    pub(super) fn new(stage: &str, aliases: HashMap<String, String>) -> Self {
        Self { prefix: format!("{stage}/"), aliases, scopes: Vec::new() }
    }

    /// What a value is called in the merged model.
    pub(super) fn name(&self, name: &str) -> String {
        let shadowed = || self.scopes.iter().any(|scope| scope.contains(name));
        match self.aliases.get(name) {
            Some(alias) if !shadowed() => alias.clone(),
            _ => self.own_name(name),
        }
    }

    /// The name with the stage in front. The empty name means "nothing" and stays.
    pub(super) fn own_name(&self, name: &str) -> String {
        if name.is_empty() { String::new() } else { format!("{}{name}", self.prefix) }
    }

    /// Whether the name is that of a connected input.
    pub(super) fn is_alias(&self, name: &str) -> bool {
        self.aliases.contains_key(name)
    }

    /// Renames everything in a graph. Nodes are taken in their order: a name means the value
    /// around the body until the body defines its own.
    pub(super) fn body(&mut self, graph: &mut GraphProto) {
        let sparse =
            graph.sparse_initializer.iter_mut().filter_map(|tensor| tensor.values.as_mut());
        for TensorProto { name, .. } in graph.initializer.iter_mut().chain(sparse) {
            self.replace(name);
        }
        graph.node.iter_mut().for_each(|node| self.node(node));
        let values = graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info);
        values.for_each(|info| self.value_info(info));
        for note in &mut graph.quantization_annotation {
            self.replace(&mut note.tensor_name);
            for parameter in &mut note.quant_parameter_tensor_names {
                self.replace(&mut parameter.value);
            }
        }
    }

    /// Renames the body of a branch or loop.
    fn subgraph(&mut self, graph: &mut GraphProto) {
        let inputs = graph.input.iter().map(ValueInfoProto::name);
        let defined = inputs.chain(initializer_names(graph)).map(ToOwned::to_owned).collect();
        self.scopes.push(defined);
        self.body(graph);
        self.scopes.pop();
    }

    fn node(&mut self, node: &mut NodeProto) {
        for input in &mut node.input {
            *input = self.name(input);
        }
        node.attribute.iter_mut().for_each(|attribute| self.attribute(attribute));
        for output in &mut node.output {
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(output.clone());
            }
            *output = self.own_name(output);
        }
        // Node names are a namespace of their own.
        node.name = node.name.as_deref().map(|name| self.own_name(name));
    }

    fn attribute(&mut self, attribute: &mut AttributeProto) {
        let graphs = attribute.g.iter_mut().chain(&mut attribute.graphs);
        graphs.for_each(|graph| self.subgraph(graph));
        let types = attribute.tp.iter_mut().chain(&mut attribute.type_protos);
        types.for_each(|declared| self.axis_names(declared));
    }

    /// Renames a value and the axes in its type.
    pub(super) fn value_info(&self, info: &mut ValueInfoProto) {
        self.replace(&mut info.name);
        info.r#type.iter_mut().for_each(|declared| self.axis_names(declared));
    }

    fn replace(&self, name: &mut Option<String>) {
        *name = name.as_deref().map(|name| self.name(name));
    }

    /// Two stages may mean different sizes by one axis name.
    fn axis_names(&self, declared: &mut TypeProto) {
        let mut next = Some(declared);
        while let Some(declared) = next.take() {
            let shape = match &mut declared.value {
                Some(Value::TensorType(tensor)) => &mut tensor.shape,
                Some(Value::SparseTensorType(tensor)) => &mut tensor.shape,
                Some(Value::SequenceType(sequence)) => {
                    next = sequence.elem_type.as_deref_mut();
                    continue;
                }
                Some(Value::MapType(map)) => {
                    next = map.value_type.as_deref_mut();
                    continue;
                }
                Some(Value::OptionalType(optional)) => {
                    next = optional.elem_type.as_deref_mut();
                    continue;
                }
                Some(Value::OpaqueType(_)) | None => continue,
            };
            for dim in shape.iter_mut().flat_map(|shape| &mut shape.dim) {
                if let Some(dimension::Value::DimParam(name)) = &mut dim.value {
                    *name = self.own_name(name);
                }
            }
        }
    }
}
