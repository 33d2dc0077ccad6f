//! What a node says about itself.

use veracity_tensor::DType;

use crate::build::Node;
use crate::edit::Weight;
use crate::generated::onnx::{AttributeProto, GraphProto, NodeProto, StringStringEntryProto};
use crate::walk::domain;

impl Node {
    /// Its name; often empty.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The operator, without its domain.
    pub fn op_type(&self) -> &str {
        self.0.op_type()
    }

    /// The domain of the operator; the default one is `""`.
    pub fn op_domain(&self) -> &str {
        domain(self.0.domain())
    }

    /// Whether it is this operator of the default domain.
    pub fn is(&self, op_type: &str) -> bool {
        self.op_type() == op_type && self.op_domain().is_empty()
    }

    /// Names of what it takes; an input that is left out is `""`.
    pub fn inputs(&self) -> &[String] {
        &self.0.input
    }

    /// Name of an input, unless it is left out.
    pub fn input(&self, index: usize) -> Option<&str> {
        self.0.input.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Names of what it gives; an output that is left out is `""`.
    pub fn outputs(&self) -> &[String] {
        &self.0.output
    }

    /// Name of an output, unless it is left out.
    pub fn output(&self, index: usize) -> Option<&str> {
        self.0.output.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The one value that the node gives; `None` when it gives several.
    pub fn only_output(&self) -> Option<&str> {
        let mut given = self.0.output.iter().filter(|name| !name.is_empty());
        given.next().filter(|_| given.next().is_none()).map(String::as_str)
    }

    /// An integer attribute.
    pub fn int_of(&self, name: &str) -> Option<i64> {
        self.attribute_of(name)?.i
    }

    /// A type attribute, like `to` of `Cast`; `None` for types that are not ours as well.
    pub fn dtype_of(&self, name: &str) -> Option<DType> {
        crate::value::from_onnx(i32::try_from(self.int_of(name)?).ok()?)
    }

    /// A number attribute.
    pub fn float_of(&self, name: &str) -> Option<f32> {
        self.attribute_of(name)?.f
    }

    /// A text attribute.
    pub fn string_of(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.attribute_of(name)?.s.as_deref()?).ok()
    }

    /// A list of integers.
    pub fn ints_of(&self, name: &str) -> Option<&[i64]> {
        self.attribute_of(name).map(|attribute| attribute.ints.as_slice())
    }

    /// A list of numbers.
    pub fn floats_of(&self, name: &str) -> Option<&[f32]> {
        self.attribute_of(name).map(|attribute| attribute.floats.as_slice())
    }

    /// A tensor attribute.
    pub fn tensor_of(&self, name: &str) -> Option<Weight> {
        self.attribute_of(name)?.t.clone().map(Weight)
    }

    /// What a `Constant` node of the default domain gives, as far as it is a tensor.
    pub fn constant(&self) -> Option<Weight> {
        if !self.is("Constant") {
            return None;
        }
        if let Some(weight) = self.tensor_of("value") {
            return Some(weight);
        }
        crate::substitute::constant_value(self.0.attribute.first()?).map(Weight::new)
    }

    /// Names of the attributes that are set.
    pub fn attribute_names(&self) -> impl Iterator<Item = &str> {
        self.0.attribute.iter().map(AttributeProto::name)
    }

    /// Whether two nodes have the same operator and the same attributes, in whatever order; names
    /// and comments do not count.
    pub fn computes_like(&self, other: &Self) -> bool {
        let plain = |node: &NodeProto| {
            let mut all = node.attribute.clone();
            for attribute in &mut all {
                attribute.doc_string = None;
            }
            all.sort_by(|one, two| one.name().cmp(two.name()));
            all
        };
        self.op_type() == other.op_type()
            && self.op_domain() == other.op_domain()
            && self.0.overload() == other.0.overload()
            && plain(&self.0) == plain(&other.0)
    }

    /// Whether the node has bodies: branches or loops.
    pub fn has_bodies(&self) -> bool {
        self.bodies().next().is_some()
    }

    /// Free-form keys and values.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.metadata_props.iter().map(|entry| (entry.key(), entry.value()))
    }

    /// Adds a key, or gives it another value.
    #[must_use]
    pub fn with_metadata(mut self, key: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        match self.0.metadata_props.iter_mut().find(|entry| entry.key() == key) {
            Some(entry) => entry.value = Some(value),
            None => self
                .0
                .metadata_props
                .push(StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) }),
        }
        self
    }

    /// Lets an input be another value; `""` leaves it out.
    #[must_use]
    pub fn with_input(mut self, index: usize, name: impl Into<String>) -> Self {
        if self.0.input.len() <= index {
            self.0.input.resize(index + 1, String::new());
        }
        self.0.input[index] = name.into();
        while self.0.input.last().is_some_and(String::is_empty) {
            self.0.input.pop();
        }
        self
    }

    /// Gives an output another name.
    #[must_use]
    pub fn with_output(mut self, index: usize, name: impl Into<String>) -> Self {
        if self.0.output.len() <= index {
            self.0.output.resize(index + 1, String::new());
        }
        self.0.output[index] = name.into();
        self
    }

    /// Takes an attribute away.
    #[must_use]
    pub fn without(mut self, attribute: &str) -> Self {
        self.0.attribute.retain(|found| found.name() != attribute);
        self
    }

    /// The names that the node takes, bodies aside and without those left out.
    pub fn reads_itself(&self) -> impl Iterator<Item = &str> {
        self.0.input.iter().map(String::as_str).filter(|name| !name.is_empty())
    }

    pub(crate) fn bodies(&self) -> impl Iterator<Item = &GraphProto> {
        self.0.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
    }

    pub(crate) fn proto(&self) -> &NodeProto {
        &self.0
    }

    pub(crate) fn proto_mut(&mut self) -> &mut NodeProto {
        &mut self.0
    }

    fn attribute_of(&self, name: &str) -> Option<&AttributeProto> {
        self.0.attribute.iter().find(|attribute| attribute.name() == name)
    }
}
