//! The form of a rule: what operators of some names may look like.

use std::fmt;

use veracity_tensor::DType;

use super::conditions::Condition;

/// What operators of some names may look like.
pub(super) struct Rule {
    /// The names.
    pub(super) ops: &'static [&'static str],
    /// What the inputs are, in order.
    pub(super) inputs: &'static [Role],
    /// Whether there may be more inputs, like the last.
    pub(super) any_inputs: bool,
    /// Whether inputs may be left out before the last.
    pub(super) gaps: bool,
    /// What the data may be.
    pub(super) dtypes: &'static [DType],
    /// What happens to integers from shapes.
    pub(super) sizes: OnSizes,
    /// What the outputs are, in order.
    pub(super) outputs: &'static [Gives],
    /// Whether there may be more outputs, like the last.
    pub(super) any_outputs: bool,
    /// The attributes that are understood. Any other one is refused.
    pub(super) attributes: &'static [(&'static str, Allowed)],
    /// What else must hold.
    pub(super) condition: Option<Condition>,
}

/// What an input is to an operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// What is computed with. All of one dtype.
    Data,
    /// Indices, axes, shapes.
    Integer,
    /// Booleans that choose.
    Condition,
    /// Judged by the rule's condition, if at all.
    Other,
}

/// What an operator does to [`super::value::Value::Sizes`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnSizes {
    /// It must not get them.
    Refused,
    /// It passes elements on.
    Moved,
    /// It computes with them.
    Computed,
}

/// What an output is.
#[derive(Clone, Copy)]
pub(super) enum Gives {
    /// Of the dtype of the data.
    Data,
    /// Always of this dtype.
    Plain(DType),
    /// Sizes.
    Sizes,
    /// What the attribute `to` says.
    Cast,
    /// What the value in the attribute is.
    Attribute,
}

/// What an attribute may be.
#[derive(Clone, Copy)]
pub(super) enum Allowed {
    /// Anything that the format allows.
    Any,
    /// This integer.
    Int(i64),
    /// The number 1.
    One,
    /// One of these texts.
    Text(&'static [&'static str]),
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("given directly"),
            Self::Int(value) => write!(f, "{value}"),
            Self::One => f.write_str("1"),
            Self::Text(texts) => f.write_str(&texts.join(" or ")),
        }
    }
}

impl Rule {
    pub(super) const fn gaps(mut self) -> Self {
        self.gaps = true;
        self
    }

    pub(super) const fn any_inputs(mut self) -> Self {
        self.any_inputs = true;
        self
    }

    pub(super) const fn any_outputs(mut self) -> Self {
        self.any_outputs = true;
        self
    }

    pub(super) const fn sizes(mut self, sizes: OnSizes) -> Self {
        self.sizes = sizes;
        self
    }

    pub(super) const fn gives(mut self, outputs: &'static [Gives]) -> Self {
        self.outputs = outputs;
        self
    }

    pub(super) const fn with(mut self, attributes: &'static [(&'static str, Allowed)]) -> Self {
        self.attributes = attributes;
        self
    }

    pub(super) const fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }
}

/// A rule for operators with one output, of the dtype of their data, and without attributes.
pub(super) const fn rule(
    ops: &'static [&'static str],
    inputs: &'static [Role],
    dtypes: &'static [DType],
) -> Rule {
    Rule {
        ops,
        inputs,
        any_inputs: false,
        gaps: false,
        dtypes,
        sizes: OnSizes::Refused,
        outputs: &[Gives::Data],
        any_outputs: false,
        attributes: &[],
        condition: None,
    }
}
