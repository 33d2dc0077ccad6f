//! What the front tells about one call.

use crate::ids::{EventId, OpId, SiteId, ViewId};

/// One call on tensors, told after it ran.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, named where they are given")]
pub struct Call<'a> {
    /// What was called.
    pub op: OpId,
    /// The user's line.
    pub site: SiteId,
    /// Fingerprint of the arguments that are no tensors.
    pub literals: u64,
    /// Every tensor among the arguments, as it was before the call. A tensor that the call writes
    /// is one of them, even when its old value does not matter (`out=`).
    pub reads: &'a [ViewId],
    /// Which of the reads were written, as indices.
    pub writes: &'a [usize],
    /// Every tensor of the result.
    pub outputs: &'a [ViewId],
    /// Whether sizes of the result depend on the values of the arguments.
    pub ragged: bool,
    /// The read of which the written tensor, or else the first output, is a plain copy: `clone`,
    /// `contiguous`, `copy_`, `x[:] = y`.
    pub identity: Option<usize>,
    /// The part of its one written tensor that the call writes, when it is not all of it and the front
    /// knows which: `x[0] = y`.
    pub part: Option<ViewId>,
    /// Whether the call replaces every element of what it writes without looking at the old ones:
    /// `copy_`, `fill_`, `x[:] = y`, `out=`. When in doubt, false.
    pub overwrites: bool,
    /// Whether the result shares memory with an argument or not depending on the layout:
    /// `reshape`, `contiguous`, `to`.
    pub may_alias: bool,
    /// Whether the result depends on something that is no argument: a random draw.
    pub blind: bool,
}

/// What became of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Its event, when it concerns an open execution. The front keeps the call under this number.
    pub event: Option<EventId>,
    /// Which of the reads are constants for an open execution, as indices. The front keeps the
    /// memory of these alive, under the storage and its write count before the call.
    pub constants: Vec<usize>,
}
