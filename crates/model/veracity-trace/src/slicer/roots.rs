//! On which memory a tensor lies in the program.

use super::Slicer;
use crate::execution::{Read, Time};
use crate::ids::{EventId, PortId, StorageId, ViewId};

/// Memory that the program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Root {
    /// An input, as index of its mark.
    Mark(usize),
    /// A storage that an event made.
    Made(EventId, StorageId),
    /// A storage from outside, as it was at a write count.
    Base(StorageId, u32),
}

impl Root {
    /// Whether an event made it.
    pub(super) fn is_made_by(self, id: EventId) -> bool {
        matches!(self, Self::Made(maker, _) if maker == id)
    }
}

impl Slicer<'_> {
    /// The root under a tensor at a time. Refused with the port when only a part of the tensor is
    /// an input.
    pub(super) fn root(&self, read: &Read, time: Time) -> Result<Root, PortId> {
        if let Some(mark) = self.mark_under(read, time)? {
            return Ok(Root::Mark(mark));
        }
        if let Some(maker) = self.maker(read.storage, time) {
            return Ok(Root::Made(maker, read.storage));
        }
        Ok(Root::Base(read.storage, self.base_count(read, time)))
    }

    /// The mark that is the tensor, else the latest that contains it.
    fn mark_under(&self, read: &Read, time: Time) -> Result<Option<usize>, PortId> {
        let Some(on_storage) = self.marks.get(&read.storage) else { return Ok(None) };
        let marks = &self.execution.marks;
        let memory = &self.tape.memory;
        let mut earlier = on_storage.iter().rev().filter(|mark| marks[**mark].time < time);
        let exact = earlier.clone().find(|mark| marks[**mark].view == read.view);
        let containing =
            || earlier.clone().find(|mark| memory.contains(marks[**mark].view, read.view));
        if let Some(mark) = exact.or_else(containing) {
            // Memory that was made after the mark is not the input any more.
            let remade = self.maker(read.storage, time).map(|maker| self.event(maker).time);
            return Ok(
                Some(*mark).filter(|mark| remade.is_none_or(|made| made < marks[*mark].time))
            );
        }
        let overlapping = earlier.find(|mark| memory.overlaps(marks[**mark].view, read.view));
        let Some(mark) = overlapping else { return Ok(None) };
        if self.descends_from(marks[*mark].view, read, time) {
            return Ok(Some(*mark));
        }
        Err(marks[*mark].port)
    }

    /// Whether recorded calls lead from a marked tensor to this one on the same memory. Geometries
    /// cannot tell when the elements are read as another type on the way.
    fn descends_from(&self, marked: ViewId, read: &Read, time: Time) -> bool {
        let memory = &self.tape.memory;
        let (mut view, mut time) = (read.view, time);
        loop {
            let produced_by = &memory.view(view).produced_by;
            let last = produced_by.partition_point(|(id, _)| self.is_before(*id, time));
            let own = |(id, _): &(EventId, u32)| self.own_event(*id);
            let Some(event) = produced_by[..last].iter().rev().find_map(own) else { return false };
            let Some(source) = event.reads_on(read.storage).next() else { return false };
            if source.view == marked || memory.contains(marked, source.view) {
                return true;
            }
            (view, time) = (source.view, event.time);
        }
    }

    /// The latest event of this execution that made a storage.
    fn maker(&self, storage: StorageId, time: Time) -> Option<EventId> {
        let made_by = &self.tape.memory.storage(storage).made_by;
        let own = |id: &&EventId| self.own_event(**id).is_some_and(|event| event.time < time);
        made_by.iter().rev().find(own).copied()
    }

    fn base_count(&self, read: &Read, time: Time) -> u32 {
        let bases = self.live.bases().unwrap_or(&self.execution.bases);
        let base = bases.get(&read.storage);
        base.filter(|(since, _)| *since < time).map_or(read.count, |(_, count)| *count)
    }

    /// The time after which writes are writes to the root.
    pub(super) fn begin(&self, root: Root) -> Time {
        match root {
            Root::Mark(mark) => self.execution.marks[mark].time,
            Root::Made(maker, _) => self.event(maker).time,
            Root::Base(..) => 0,
        }
    }

    pub(super) fn storage_of(&self, root: Root) -> StorageId {
        match root {
            Root::Mark(mark) => self.execution.marks[mark].storage,
            Root::Made(_, storage) | Root::Base(storage, _) => storage,
        }
    }
}
