//! Puts nodes of a body into the graph around it, under names of their own.
//!
//! Every name that the body defines, at whatever depth, becomes a new one, so that it can neither
//! meet nor hide a name of its new surroundings.

use std::collections::HashMap;

use crate::generated::onnx::{AttributeProto, GraphProto, NodeProto, ValueInfoProto};

/// Gives names that nothing has, like the one that is handed in.
pub(crate) type Fresh<'f> = dyn FnMut(&str) -> String + 'f;

/// Renames the nodes of one body.
pub(crate) struct Splice<'f> {
    /// What the names of the body are called now, then those of the bodies around the current node.
    scopes: Vec<HashMap<String, String>>,
    /// What values that the body is still to define are to be called.
    awaited: HashMap<String, String>,
    /// What a reference to an attribute stands for; only functions have such references.
    attributes: Option<HashMap<String, Option<AttributeProto>>>,
    /// Stands before the names of nodes.
    prefix: String,
    fresh: &'f mut Fresh<'f>,
}

impl<'f> Splice<'f> {
    /// The body of a branch: names that it does not define are those around it.
    pub(crate) fn branch(prefix: &str, fresh: &'f mut Fresh<'f>) -> Self {
        let scopes = vec![HashMap::new()];
        let awaited = HashMap::new();
        Self { scopes, awaited, attributes: None, prefix: prefix.to_owned(), fresh }
    }

    /// The body of a function: it sees its inputs alone. Attributes are by the name under which the
    /// body refers to them; `None` for those that are left out.
    pub(crate) fn function(
        prefix: &str,
        inputs: HashMap<String, String>,
        attributes: HashMap<String, Option<AttributeProto>>,
        fresh: &'f mut Fresh<'f>,
    ) -> Self {
        Self { scopes: vec![inputs], attributes: Some(attributes), ..Self::branch(prefix, fresh) }
    }

    /// Lets a value that the body is to define have this name.
    pub(crate) fn expect(&mut self, name: &str, called: &str) {
        self.awaited.insert(name.to_owned(), called.to_owned());
    }

    /// What a value is called now.
    pub(crate) fn name(&self, name: &str) -> Result<String, String> {
        let own = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        match own {
            Some(own) => Ok(own.clone()),
            None if name.is_empty() || self.attributes.is_none() => Ok(name.to_owned()),
            None => Err(format!("the function reads {name:?}, which it does not define")),
        }
    }

    /// A new name for a value that the innermost body defines.
    pub(crate) fn define(&mut self, name: &str) -> String {
        if name.is_empty() {
            return String::new();
        }
        let awaited = if self.scopes.len() == 1 { self.awaited.remove(name) } else { None };
        let called = awaited.unwrap_or_else(|| (self.fresh)(name));
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), called.clone());
        }
        called
    }

    /// A node of the body under its new names.
    pub(crate) fn node(&mut self, node: &NodeProto) -> Result<NodeProto, String> {
        let mut made = node.clone();
        for input in &mut made.input {
            *input = self.name(input)?;
        }
        let attributes = std::mem::take(&mut made.attribute);
        for attribute in attributes {
            made.attribute.extend(self.attribute(attribute)?);
        }
        for output in &mut made.output {
            *output = self.define(output);
        }
        if !made.name().is_empty() {
            made.name = Some(format!("{}/{}", self.prefix, made.name()));
        }
        Ok(made)
    }

    /// What an attribute becomes; `None` when it refers to one that is left out.
    fn attribute(
        &mut self,
        mut attribute: AttributeProto,
    ) -> Result<Option<AttributeProto>, String> {
        let reference = attribute.ref_attr_name().to_owned();
        if let (Some(known), false) = (&self.attributes, reference.is_empty()) {
            let Some(value) = known.get(&reference) else {
                return Err(format!(
                    "the function refers to {reference:?}, no attribute of its own"
                ));
            };
            // What the caller wrote belongs to where it was written: its names stay.
            return Ok(value.clone().map(|value| AttributeProto { name: attribute.name, ..value }));
        }
        for body in attribute.g.iter_mut().chain(&mut attribute.graphs) {
            self.body(body)?;
        }
        Ok(Some(attribute))
    }

    /// Renames a body within the body.
    fn body(&mut self, graph: &mut GraphProto) -> Result<(), String> {
        self.scopes.push(HashMap::new());
        for input in &mut graph.input {
            input.name = Some(self.define(input.name()));
        }
        let sparse = graph.sparse_initializer.iter_mut().filter_map(|one| one.values.as_mut());
        for tensor in graph.initializer.iter_mut().chain(sparse) {
            tensor.name = Some(self.define_once(tensor.name()));
        }
        for node in &mut graph.node {
            *node = self.node(node)?;
        }
        for output in &mut graph.output {
            output.name = Some(self.name(output.name())?);
        }
        let known = |info: &ValueInfoProto| self.scopes.last()?.get(info.name()).cloned();
        graph.value_info.retain_mut(|info| {
            info.name = known(info);
            info.name.is_some()
        });
        graph.quantization_annotation.clear();
        self.scopes.pop();
        Ok(())
    }

    /// An initializer may be the default of an input.
    fn define_once(&mut self, name: &str) -> String {
        let known = self.scopes.last().and_then(|scope| scope.get(name)).cloned();
        known.unwrap_or_else(|| self.define(name))
    }
}
