//! One element of a short integer tensor.

use veracity_onnx::Dim;

/// One element of a short integer tensor, as shapes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// This number.
    Known(i64),
    /// The size of the axes with this name: not negative.
    Named(String),
    /// Any number.
    Unknown,
}

impl Element {
    /// The number, when it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Known(number) => Some(*number),
            Self::Named(_) | Self::Unknown => None,
        }
    }

    /// The size of an axis that this element asks for.
    pub(super) fn to_dim(&self) -> Dim {
        match self {
            Self::Known(number) => usize::try_from(*number).map_or(Dim::Unknown, Dim::Fixed),
            Self::Named(name) => Dim::Named(name.clone()),
            Self::Unknown => Dim::Unknown,
        }
    }
}

impl From<&Dim> for Element {
    fn from(dim: &Dim) -> Self {
        match dim {
            Dim::Fixed(size) => i64::try_from(*size).map_or(Self::Unknown, Self::Known),
            Dim::Named(name) => Self::Named(name.clone()),
            Dim::Unknown => Self::Unknown,
        }
    }
}
