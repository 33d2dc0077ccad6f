//! The program of one execution: what leads from its inputs to its outputs.
//!
//! Writes stay writes, in the order in which they were made. Everything that a slice says about
//! memory it carries itself, so it outlives the tape's own records.

use crate::geometry::Geometry;
use crate::ids::{EventId, OpId, PortId, SiteId, StorageId, ViewId};

/// A straight program over tensors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slice {
    /// The inputs that matter, in the order in which they were marked.
    pub inputs: Vec<InputUse>,
    /// In the order of their first use.
    pub constants: Vec<Constant>,
    /// In the order of execution.
    pub steps: Vec<Step>,
    /// One for each output mark, in the order of the marks.
    pub outputs: Vec<(PortId, Operand)>,
}

/// An input that the program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputUse {
    /// The port under which it was marked.
    pub port: PortId,
    /// Whether a step writes into its memory: the program must start from a copy.
    pub written: bool,
}

/// Memory that is no input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// The storage.
    pub storage: StorageId,
    /// How often the storage had been written when it had the wanted content.
    pub count: u32,
    /// The tensor; `None` is the whole storage, flat, because it is written, and seen through
    /// several views or through one that shows a place twice (`expand`).
    pub view: Option<ViewId>,
    /// Where the tensor lies in the storage.
    pub geometry: Option<Geometry>,
    /// Whether a step writes into its memory: the program must start from a copy.
    pub written: bool,
    /// Whether its content matters. It does not when the program overwrites it before it looks.
    pub read: bool,
    /// The user's line that needs it first.
    pub site: SiteId,
}

/// A tensor, where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// Index into [`Slice::inputs`].
    Input(usize),
    /// Index into [`Slice::constants`].
    Constant(usize),
    /// An output of a step.
    Step {
        /// Index into [`Slice::steps`].
        step: usize,
        /// Which tensor of its result.
        output: usize,
    },
}

/// One step of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A recorded call.
    Call {
        /// The number under which the front keeps it.
        event: EventId,
        /// What was called.
        op: OpId,
        /// The user's line.
        site: SiteId,
        /// Fingerprint of the arguments that are no tensors.
        literals: u64,
        /// One for each read of the call.
        operands: Vec<Operand>,
    },
    /// A tensor on the memory of another, through an alias that nobody saw being made.
    View {
        /// A tensor on the same memory, which contains the wanted one.
        base: Operand,
        /// Which tensor that was when it was recorded; `None` is a whole storage, flat.
        base_view: Option<ViewId>,
        /// Where it lay.
        base_geometry: Option<Box<Geometry>>,
        /// The wanted tensor.
        view: ViewId,
        /// Where it lies on the same storage.
        geometry: Box<Geometry>,
        /// The user's line that uses it.
        site: SiteId,
    },
    /// The value of a tensor at this position, before later steps write into its memory.
    Copy {
        /// What to copy.
        source: Operand,
        /// The user's line.
        site: SiteId,
    },
}

impl Step {
    /// The user's line.
    pub fn site(&self) -> SiteId {
        match *self {
            Self::Call { site, .. } | Self::View { site, .. } | Self::Copy { site, .. } => site,
        }
    }
}
