//! The tape: calls on tensors go in; the program of each node, and the edges between nodes, come out.
//!
//! A tensor is the memory that it shows: a *view* is a storage, a geometry and an element type, and
//! two objects that show the same memory are the same view. The front (which knows torch) numbers
//! nodes, ports, operations and source lines, tells each call with its views, and marks inputs and
//! outputs. When an execution is closed, its program is the part of the recording that leads from
//! its inputs to its outputs, with every write that shows in it, through whatever alias it was made.
//!
//! Nothing here knows values. What needs them (whether a constant changed, whether the program
//! computes what the code computed) is told as data and decided by the front.

mod call;
mod carry;
mod difference;
mod edges;
mod execution;
mod geometry;
mod ids;
mod log;
mod memory;
mod report;
mod slice;
mod slicer;
mod table;
mod tape;

pub use call::{Call, Recorded};
pub use carry::{Carry, Content, Doubt, DoubtKind, Promoted, Spot, State};
pub use difference::{Difference, DifferenceKind, differences};
pub use edges::{Edge, EdgeProblem, EdgeProblemKind, Graph};
pub use geometry::{Geometry, Sizes, Strides};
pub use ids::{EventId, ExecutionId, NodeId, OpId, PortId, SiteId, StorageId, ViewId};
pub use memory::Birth;
pub use report::{Closed, Escape, InputFact, Origin, Problem};
pub use slice::{Constant, InputUse, Operand, Slice, Step};
pub use tape::Tape;
