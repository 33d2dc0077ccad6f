//! A front in few words, for tests.

use veracity_trace::{Birth, Call, Geometry, OpId, Recorded, SiteId, StorageId, Tape, ViewId};

/// A row of a storage.
pub(crate) fn row(offset: u64, len: u64) -> Geometry {
    Geometry {
        offset,
        sizes: [len].into_iter().collect(),
        strides: [1].into_iter().collect(),
        element: 0,
    }
}

/// Tells calls to a tape. The line of a call is its number, and so is its operation.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) tape: Tape,
    pub(crate) calls: u32,
}

impl Script {
    /// A tensor of eight elements on a storage of its own.
    pub(crate) fn tensor(&mut self, birth: Birth) -> ViewId {
        let storage = self.tape.storage(birth);
        self.tape.view(storage, &row(0, 8))
    }

    /// A tensor that was there before the session.
    pub(crate) fn old(&mut self) -> ViewId {
        self.tensor(Birth::Before)
    }

    /// A part of a tensor, through an alias that nobody saw.
    pub(crate) fn part(&mut self, of: ViewId, offset: u64, len: u64) -> ViewId {
        let storage = self.storage(of);
        self.tape.view(storage, &row(offset, len))
    }

    pub(crate) fn storage(&self, view: ViewId) -> StorageId {
        self.tape.geometry(view).0
    }

    /// Tells a call, changed as wanted.
    pub(crate) fn tell(
        &mut self,
        reads: &[ViewId],
        writes: &[usize],
        outputs: &[ViewId],
        change: impl FnOnce(&mut Call<'_>),
    ) -> Recorded {
        self.calls += 1;
        let mut call = Call {
            op: OpId(self.calls),
            site: SiteId(self.calls),
            literals: 0,
            reads,
            writes,
            outputs,
            ragged: false,
            identity: None,
            part: None,
            overwrites: false,
            may_alias: false,
            blind: false,
        };
        change(&mut call);
        self.tape.call(&call)
    }

    /// A call that makes a tensor.
    pub(crate) fn compute(&mut self, reads: &[ViewId]) -> ViewId {
        self.compute_with(reads, |_| ())
    }

    /// A call that makes a tensor, changed as wanted.
    pub(crate) fn compute_with(
        &mut self,
        reads: &[ViewId],
        change: impl FnOnce(&mut Call<'_>),
    ) -> ViewId {
        let output = self.tensor(Birth::Seen);
        self.tell(reads, &[], &[output], change);
        output
    }

    /// A call that changes its first argument and gives nothing back.
    pub(crate) fn write(&mut self, reads: &[ViewId]) -> Recorded {
        self.tell(reads, &[0], &[], |_| ())
    }

    /// A call that replaces its first argument by its second.
    pub(crate) fn copy(&mut self, target: ViewId, source: ViewId) -> Recorded {
        self.tell(&[target, source], &[0], &[target], |call| {
            call.overwrites = true;
            call.identity = Some(1);
        })
    }
}
