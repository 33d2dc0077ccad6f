//! What a bundle and a robot say about the values that go between them, and where they disagree.
//!
//! Both sides become a [`Contract`]: the bundle by [`Contract::of_bundle`], a robot by
//! [`Contract::from_robot_yaml`], the metadata of an ONNX model by [`Contract::from_metadata`].
//! [`compare()`] holds one against the other. What only one side says is listed as unchecked, never
//! as agreeing. Recorded values are compared elsewhere: here are words and numbers only.

mod bundle;
mod deploy;
mod lists;
mod metadata;
mod order;
mod quantity;
mod robot;
mod rules;
mod units;

pub use lists::Item;
pub use order::{Take, readable};
pub(crate) use order::{inverse, is_permutation};
pub use quantity::{Number, Quantity};
pub(crate) use robot::refuse_unknown;
pub use rules::{Findings, Row, Status, compare};

use veracity_diag::{Diagnostic, Place};
use veracity_tensor::DType;

use crate::{AxisNames, Direction};

/// A value and where it is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated<T> {
    /// What is said.
    pub value: T,
    /// Where.
    pub place: Place,
}

impl<T> Stated<T> {
    pub(crate) fn new(value: T, place: Place) -> Self {
        Self { value, place }
    }
}

/// What one side declares. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contract {
    /// The file as a whole, for what is not said in a line of its own.
    pub place: Place,
    /// Steps per second.
    pub rate_hz: Option<Stated<f64>>,
    /// Joints in order, with what is known of each. A robot has at most one group.
    pub joints: Vec<Joints>,
    /// Names of the observation terms in order, as mjlab calls them.
    pub observation_names: Option<Stated<Vec<String>>>,
    /// Names of the commands in order.
    pub command_names: Option<Stated<Vec<String>>>,
    /// Inputs and outputs of the pipeline.
    pub ports: Vec<Port>,
    /// Whether a port that is not listed is not there. A model that speaks for a robot by its
    /// metadata is only one of those that may run on it.
    pub lists_all_ports: bool,
    /// What of a file could not be used, and why.
    pub remarks: Vec<Diagnostic>,
}

/// Joints in order, and numbers about each.
#[derive(Clone, Debug, PartialEq)]
pub struct Joints {
    /// What messages call the group.
    pub subject: String,
    /// The joints. Where they have no names, their positions stand here.
    pub names: Stated<Vec<String>>,
    /// Whether they have names; others are told apart by where they stand in a list.
    pub has_names: bool,
    /// Whether the order is a port's own, which is compared there.
    pub of_port: bool,
    /// Gains, defaults and limits: one number for each joint, or none where nothing is said.
    pub quantities: Vec<(Quantity, Stated<Vec<Option<Number>>>)>,
}

/// What one side says about an input or output of the pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// `node/port`, or `port` alone.
    pub key: String,
    /// Into the pipeline or out of it.
    pub direction: Direction,
    /// Where it is declared.
    pub place: Place,
    /// Sizes of the axes.
    pub shape: Option<Stated<Vec<usize>>>,
    /// Type of the elements.
    pub dtype: Option<Stated<DType>>,
    /// What the values mean.
    pub kind: Option<Stated<String>>,
    /// Names along the axes, in the form of [`PortSpec`](crate::PortSpec).
    pub element_names: Option<Stated<Vec<AxisNames>>>,
    /// One unit for all elements, or one for each.
    pub units: Option<Stated<Vec<String>>>,
    /// Time between two elements of the temporal axis.
    pub temporal_period_ms: Option<Stated<f64>>,
}

impl Port {
    /// A port of which nothing is said.
    pub fn new(key: impl Into<String>, direction: Direction, place: Place) -> Self {
        Self {
            key: key.into(),
            direction,
            place,
            shape: None,
            dtype: None,
            kind: None,
            element_names: None,
            units: None,
            temporal_period_ms: None,
        }
    }
}
