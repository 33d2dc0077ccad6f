//! Executions and events: what the tape keeps while a node runs.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::ids::{EventId, ExecutionId, NodeId, OpId, PortId, SiteId, StorageId, ViewId};
use crate::memory::Published;
use crate::report::Escape;

/// Orders events and marks.
pub(crate) type Time = u64;

/// The executions that an event or a storage concerns, sorted.
pub(crate) type Taint = SmallVec<[ExecutionId; 2]>;

/// A run through a node: one that has not ended, or one that is held.
#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) node: NodeId,
    /// Whether only marks and origins are kept.
    pub(crate) light: bool,
    /// When it began.
    pub(crate) opened_at: Time,
    /// Which of the node's completed executions it is, once it is.
    pub(crate) number: Option<u32>,
    /// The event that comes first in it, if any.
    pub(crate) first_event: EventId,
    pub(crate) marks: Vec<Mark>,
    pub(crate) outputs: Vec<OutputMark>,
    pub(crate) escapes: Vec<Escape>,
    /// Values that left and that no input reaches: they may be of state.
    pub(crate) plain_escapes: Vec<(Escape, OutputMark)>,
    /// Storages from outside that it wrote beside its marks: since when, and the write count
    /// before that. From then on the content is the constant of that count, plus recorded writes.
    pub(crate) bases: HashMap<StorageId, (Time, u32)>,
}

/// From its time on, the memory under the view is the port.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) port: PortId,
    pub(crate) view: ViewId,
    pub(crate) storage: StorageId,
    pub(crate) time: Time,
    /// The storage's write count at that time.
    pub(crate) count: u32,
    pub(crate) published: Option<Published>,
    /// Whether the front knows that nobody wrote into it since it was published.
    pub(crate) confirmed: bool,
    /// Where it was computed, if it was.
    pub(crate) glue: Option<SiteId>,
}

/// The value of a view, at its time, is the port.
#[derive(Debug, Clone)]
pub(crate) struct OutputMark {
    pub(crate) port: PortId,
    pub(crate) site: SiteId,
    pub(crate) time: Time,
    pub(crate) read: Read,
}

/// A use of a tensor, with what was known about its memory at that time.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) view: ViewId,
    pub(crate) storage: StorageId,
    /// The storage's write count.
    pub(crate) count: u32,
    /// What is wrong with it, should it turn out to be a constant.
    pub(crate) hazard: Option<Box<Hazard>>,
}

/// Why a tensor must not be taken for a constant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hazard {
    /// Executions that were open and reached it.
    pub(crate) reached_by: Vec<(ExecutionId, NodeId)>,
    /// Nodes from whose values it was computed.
    pub(crate) derived_from: Vec<NodeId>,
    /// Nobody saw it being made.
    pub(crate) unseen: bool,
}

/// A call that concerns an open execution.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a call")]
pub(crate) struct Event {
    pub(crate) op: OpId,
    pub(crate) site: SiteId,
    pub(crate) literals: u64,
    pub(crate) time: Time,
    pub(crate) taint: Taint,
    pub(crate) reads: SmallVec<[Read; 3]>,
    /// Indices into the reads.
    pub(crate) writes: SmallVec<[usize; 1]>,
    pub(crate) outputs: SmallVec<[ViewId; 1]>,
    pub(crate) overwrites: bool,
    pub(crate) may_alias: bool,
    pub(crate) blind: bool,
    /// Whether nothing that it reads depends on an input. Its results are constants, unless the
    /// memory that it starts from turns out to be carried over from an earlier execution.
    pub(crate) plain: bool,
    /// Reads that share their storage with an output, when all that the call does is to show memory
    /// of its arguments in another way; empty for every other call.
    pub(crate) shown: SmallVec<[usize; 1]>,
}

impl Event {
    pub(crate) fn concerns(&self, execution: ExecutionId) -> bool {
        self.taint.contains(&execution)
    }

    pub(crate) fn reads_on(&self, storage: StorageId) -> impl Iterator<Item = &Read> {
        self.reads.iter().filter(move |read| read.storage == storage)
    }

    pub(crate) fn written(&self) -> impl Iterator<Item = &Read> {
        self.writes.iter().map(|index| &self.reads[*index])
    }

    /// Whether the value of a read matters to the call, and not only its memory.
    pub(crate) fn looks_at(&self, read: usize) -> bool {
        let replaced = self.overwrites && self.writes.contains(&read);
        // What a view shows is looked at where the view is used.
        !replaced && !self.shown.contains(&read)
    }

    /// Whether all it does is to show memory of its arguments in another way.
    pub(crate) fn only_views(&self) -> bool {
        !self.shown.is_empty()
    }
}
