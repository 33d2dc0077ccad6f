//! What the end of an execution brings to light.

use crate::ids::{EventId, NodeId, OpId, PortId, SiteId, ViewId};
use crate::slice::Slice;

/// Where a value came from: an output of a finished execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The producer.
    pub node: NodeId,
    /// Which of its completed executions, counted from zero.
    pub execution: u32,
    /// The producer's port.
    pub port: PortId,
}

/// Everything about an execution that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Which of the node's completed executions this was, counted from zero.
    pub execution: u32,
    /// The program; empty for a light execution.
    pub slice: Slice,
    /// What makes the program wrong or doubtful, in the order of the program.
    pub problems: Vec<Problem>,
    /// Values that left for Python, in order.
    pub escapes: Vec<Escape>,
    /// One for each input mark that was not taken back, in order.
    pub inputs: Vec<InputFact>,
    /// Once the slice is read, the front may let go of the calls kept under smaller numbers.
    pub released: EventId,
}

/// What is known about one input of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputFact {
    /// The port.
    pub port: PortId,
    /// The output that it is, unchanged.
    pub origin: Option<Origin>,
    /// It is computed from outputs of nodes without being one: where that was done.
    pub glue: Option<SiteId>,
    /// Whether the program reads it.
    pub used: bool,
}

/// A value that left for Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Escape {
    /// The tensor.
    pub view: ViewId,
    /// How it left, in the front's numbers.
    pub kind: u16,
    /// The user's line.
    pub site: SiteId,
    /// Fingerprint of the value.
    pub fingerprint: u64,
}

/// Why a program is wrong or doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Problem {
    /// The program needs a value of another execution that is still open.
    Mixed {
        /// The user's line that reads the value.
        site: SiteId,
        /// The node of that execution.
        other: NodeId,
    },
    /// The output does not depend on any input.
    OutputUntraced {
        /// The output's port.
        port: PortId,
    },
    /// The program reads a value of another node that is not marked as an input.
    UnmarkedUse {
        /// The user's line that reads the value.
        site: SiteId,
        /// The node that computed it.
        origin_node: Option<NodeId>,
    },
    /// The program reads memory whose making nobody saw.
    BornUnseen {
        /// The user's line that reads the value.
        site: SiteId,
    },
    /// A tensor lies partly on the memory of an input and partly beside it.
    PartlyInput {
        /// The user's line that uses the tensor.
        site: SiteId,
        /// The input.
        port: PortId,
    },
    /// Two inputs share memory, and it is written between two uses.
    InputsOverlap {
        /// The user's line that writes.
        site: SiteId,
        /// The two inputs; the same one twice when it overlaps with itself (`expand`) or with
        /// memory that is no input.
        ports: (PortId, PortId),
    },
    /// The program draws random numbers.
    Random {
        /// The user's line.
        site: SiteId,
        /// What was called.
        op: OpId,
    },
}
