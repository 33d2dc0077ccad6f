//! Which writes a use of a tensor needs.
//!
//! All recorded writes to its root before the use, back to the latest one that replaced the whole
//! tensor. They are looked up by scanning the writes of the storage backward; what was scanned is
//! remembered, so that a long program does not scan the same writes for every use.

use std::collections::{BTreeMap, HashMap};

use super::{Root, Slicer};
use crate::execution::{Event, Read, Time};
use crate::ids::{EventId, ViewId};

/// Where a scan came to its end, and the time of the write that ended it.
#[derive(Debug, Clone, Copy)]
struct Scan {
    begin: usize,
    replaced_at: Option<Time>,
}

/// A root whose writes were scanned to the end.
#[derive(Debug, Clone, Copy, Default)]
struct Complete {
    /// All writes to the root before this position are needed.
    end: usize,
    /// Whether one of them replaces what it writes.
    replaces: bool,
}

/// What was scanned so far. Positions are indices into the writes of the root's storage.
#[derive(Debug, Default)]
pub(super) struct Scans {
    complete: HashMap<Root, Complete>,
    /// For a tensor: by the end of a scan, its beginning and result.
    done: HashMap<(Root, ViewId), BTreeMap<usize, Scan>>,
}

impl Scans {
    /// An earlier scan that ended here or later and came down to here.
    fn known(&self, root: Root, view: ViewId, end: usize) -> Option<Scan> {
        let (_, scan) = self.done.get(&(root, view))?.range(end..).next()?;
        (scan.begin < end || scan.replaced_at.is_none()).then_some(*scan)
    }
}

impl Slicer<'_> {
    /// Needs the writes that a use of a tensor sees. Gives the time of the one that replaced all of
    /// it; `None` when the first content of the root shows.
    pub(super) fn need_writes(&mut self, root: Root, read: &Read, time: Time) -> Option<Time> {
        let written_by = &self.tape.memory.storage(self.storage_of(root)).written_by;
        let end = written_by.partition_point(|id| self.is_before(*id, time));
        if let Some(scan) = self.scans.known(root, read.view, end) {
            return scan.replaced_at;
        }
        let mut complete = self.scans.complete.get(&root).copied().unwrap_or_default();
        let scan = self.scan(root, read, &written_by[..end], &mut complete);
        self.scans.done.entry((root, read.view)).or_default().insert(end, scan);
        if scan.replaced_at.is_none() {
            complete.end = complete.end.max(end);
            self.scans.complete.insert(root, complete);
        }
        scan.replaced_at
    }

    fn scan(
        &mut self,
        root: Root,
        read: &Read,
        writes: &[EventId],
        complete: &mut Complete,
    ) -> Scan {
        let begin = self.begin(root);
        // Where everything is needed already, it matters only whether the tensor was replaced, and
        // only when its first content is dubious.
        let settled = if complete.replaces && read.hazard.is_some() { 0 } else { complete.end };
        for (index, id) in writes.iter().enumerate().rev() {
            if index < settled {
                break;
            }
            self.visits += 1;
            let Some(event) = self.own_event(*id) else { continue };
            if event.time <= begin {
                break;
            }
            if self.writes_to(event, root) {
                self.need(*id);
                complete.replaces |= event.overwrites;
                if self.replaces(event, root, read.view) {
                    return Scan { begin: index, replaced_at: Some(event.time) };
                }
            }
        }
        Scan { begin: 0, replaced_at: None }
    }

    /// Whether an event may write to memory of a root.
    fn writes_to(&self, event: &Event, root: Root) -> bool {
        let storage = self.storage_of(root);
        event.written().filter(|written| written.storage == storage).any(|written| match root {
            Root::Made(..) => true,
            Root::Base(..) => !matches!(self.root(written, event.time), Ok(Root::Mark(_))),
            Root::Mark(mark) => {
                self.tape.memory.overlaps(self.execution.marks[mark].view, written.view)
            }
        })
    }

    /// Whether an event replaces every element of a tensor.
    fn replaces(&self, event: &Event, root: Root, view: ViewId) -> bool {
        let covers = |written: &Read| {
            self.root(written, event.time) == Ok(root)
                && self.tape.memory.contains(written.view, view)
        };
        event.overwrites && event.written().any(covers)
    }

    /// Whether an event came before a time. Those that are not kept any more did.
    pub(super) fn is_before(&self, id: EventId, time: Time) -> bool {
        self.tape.log.get(id).is_none_or(|event| event.time < time)
    }
}
