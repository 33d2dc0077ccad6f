//! What an earlier execution had to do with memory that a later one reads.

use super::side::{CallKey, Side};
use super::{DoubtKind, Inference};
use crate::execution::{Mark, Read};
use crate::geometry::Geometry;
use crate::ids::{EventId, PortId, StorageId, ViewId};
use crate::memory::Derived;
use crate::slicer::{Leaf, Place};

/// How memory belongs to an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A call made it, as one of its outputs.
    Made(CallKey, usize),
    /// It was written: it is the same memory all the time.
    Written,
    /// It was written, through an argument of a call, and is other memory on every pass: a new
    /// buffer, or one of two that change places.
    Filled(CallKey, usize),
    /// It was an input, so far from the beginning of that.
    Given(PortId, u64),
    /// It is an output, or a copy that was made of it afterwards.
    Returned(PortId),
    /// It was read in another place.
    Moved,
}

/// What an execution got from those before it.
pub(super) enum Provenance {
    /// Nothing that they had to do with.
    Fixed,
    /// What stands in the latest one for what it read, which a later one will read.
    Next {
        storage: StorageId,
        geometry: Geometry,
        delay: u32,
        origin: Origin,
    },
    Doubt(DoubtKind),
}

impl Inference<'_> {
    pub(super) fn provenance(&self, leaf: &Leaf) -> Provenance {
        for side in self.earlier.iter().rev() {
            let delay = self.latest.number().saturating_sub(side.number());
            if let Some(origin) = self.origin(side, leaf.storage, leaf.view) {
                return self.next(leaf, side, origin, delay);
            }
            if delay == 1
                && let Some(found) = self.moved(leaf, side)
            {
                return found;
            }
        }
        let opened_at = self.latest.execution.opened_at;
        let node = self.latest.execution.node;
        let before = |piece: &Derived| piece.node == node && piece.since < opened_at;
        let derived = self.tape.memory.derived(leaf.view).any(before);
        // What a pass left that was not recorded is derived from the node, too, and nobody knows how.
        let recorded = self.earlier.iter().any(|side| side.number() + 1 == self.latest.number());
        if derived && recorded {
            Provenance::Doubt(DoubtKind::MadeOutside)
        } else {
            Provenance::Fixed
        }
    }

    fn next(&self, leaf: &Leaf, side: &Side, origin: Origin, delay: u32) -> Provenance {
        let origin = if origin == Origin::Written { self.filled(leaf, side) } else { origin };
        // Memory that is written holds its value until it is written again.
        let delay = if origin == Origin::Written { 1 } else { delay };
        match self.counterpart(leaf, origin) {
            Some((storage, view, shift)) => self.like((storage, view), shift, delay, origin),
            None if self.is_for_good(side, origin) => Provenance::Fixed,
            None => Provenance::Doubt(DoubtKind::MadeOnce),
        }
    }

    /// What an execution had to do with some memory.
    pub(super) fn origin(&self, side: &Side, storage: StorageId, view: ViewId) -> Option<Origin> {
        let made = self.made(side, storage);
        let written = || self.is_written(side, storage, view).then_some(Origin::Written);
        let found = made.or_else(written).or_else(|| self.given(side, storage, view));
        found.or_else(|| self.returned(side, view))
    }

    fn made(&self, side: &Side, storage: StorageId) -> Option<Origin> {
        let memory = &self.tape.memory;
        let makers = memory.storage(storage).made_by.iter().rev();
        let maker = makers.copied().find(|event| side.owns(self.tape, *event))?;
        let event = self.tape.log.get(maker)?;
        let on_storage = |view: &ViewId| memory.storage_of(*view) == storage;
        let output = event.outputs.iter().position(on_storage)?;
        Some(Origin::Made(*side.keys.get(&maker)?, output))
    }

    fn is_written(&self, side: &Side, storage: StorageId, view: ViewId) -> bool {
        let memory = &self.tape.memory;
        let into = |id: &EventId| {
            let event = self.tape.log.get(*id).filter(|event| event.concerns(side.id));
            event.is_some_and(|event| {
                let on = event.written().filter(|read| read.storage == storage);
                on.into_iter().any(|read| memory.overlaps(read.view, view))
            })
        };
        memory.storage(storage).written_by.iter().any(into)
    }

    /// How an execution wrote memory that a later one reads.
    fn filled(&self, leaf: &Leaf, side: &Side) -> Origin {
        let spot = self.latest.spot(leaf.place);
        let read = spot.and_then(|spot| side.read(self.tape, spot));
        let older = self.tape.memory.storage(leaf.storage).born < side.execution.opened_at;
        if read.map_or(older, |(read, _)| read.storage == leaf.storage) {
            return Origin::Written;
        }
        let writes = self.tape.memory.storage(leaf.storage).written_by.iter();
        let mut own = writes.filter(|event| side.owns(self.tape, **event));
        let found = own.find_map(|id| {
            let event = self.tape.log.get(*id)?;
            let on = |index: &&usize| event.reads[**index].storage == leaf.storage;
            Some(Origin::Filled(*side.keys.get(id)?, *event.writes.iter().find(on)?))
        });
        found.unwrap_or(Origin::Written)
    }

    fn given(&self, side: &Side, storage: StorageId, view: ViewId) -> Option<Origin> {
        let memory = &self.tape.memory;
        let shows = |mark: &&Mark| mark.storage == storage && memory.contains(mark.view, view);
        let mark = side.execution.marks.iter().find(shows)?;
        Some(Origin::Given(mark.port, memory.view(mark.view).geometry.offset))
    }

    fn returned(&self, side: &Side, view: ViewId) -> Option<Origin> {
        let origin = self.tape.memory.published(view)?.origin;
        let is_it =
            (origin.node, Some(origin.execution)) == (side.execution.node, side.execution.number);
        is_it.then_some(Origin::Returned(origin.port))
    }

    /// Whether the first execution made it, once, from what no input reaches: a table.
    pub(super) fn is_for_good(&self, side: &Side, origin: Origin) -> bool {
        let (Origin::Made(key, _) | Origin::Filled(key, _)) = origin else { return false };
        let event = side.calls.get(&key).and_then(|id| self.tape.log.get(*id));
        let again = self.earlier.iter().skip(1).chain([self.latest]);
        side.id == self.earlier[0].id
            && event.is_some_and(|event| event.plain)
            && !again.into_iter().any(|later| later.calls.contains_key(&key))
    }

    /// The storage that stands in the latest execution for memory of an earlier one, a tensor that
    /// lies there as the counterpart does, and how much farther from the beginning that is.
    fn counterpart(&self, leaf: &Leaf, origin: Origin) -> Option<(StorageId, ViewId, i128)> {
        let memory = &self.tape.memory;
        let latest = &self.latest.execution;
        match origin {
            Origin::Made(key, output) => {
                let event = self.latest.calls.get(&key).and_then(|id| self.tape.log.get(*id))?;
                Some((memory.storage_of(*event.outputs.get(output)?), leaf.view, 0))
            }
            Origin::Filled(key, read) => {
                let event = self.latest.calls.get(&key).and_then(|id| self.tape.log.get(*id))?;
                Some((event.reads.get(read)?.storage, leaf.view, 0))
            }
            Origin::Written => Some((leaf.storage, leaf.view, 0)),
            Origin::Given(port, offset) => {
                let now = latest.marks.iter().find(|mark| mark.port == port)?;
                let here = memory.view(now.view).geometry.offset;
                Some((now.storage, leaf.view, i128::from(here) - i128::from(offset)))
            }
            Origin::Returned(port) => {
                let output = latest.outputs.iter().rfind(|output| output.port == port)?;
                Some((output.read.storage, output.read.view, 0))
            }
            Origin::Moved => None,
        }
    }

    /// The execution before read it in another place.
    fn moved(&self, leaf: &Leaf, previous: &Side) -> Option<Provenance> {
        let spot = self.latest.spot(leaf.place)?;
        let (before, _) = previous.read(self.tape, spot)?;
        if before.storage == leaf.storage {
            return None;
        }
        let events = self.tape.log.since(previous.execution.first_event);
        for (id, event) in events.filter(|(_, event)| event.concerns(previous.id)) {
            let is_it = |read: &Read| (read.storage, read.count) == (leaf.storage, leaf.count);
            let Some(read) = event.reads.iter().position(is_it) else { continue };
            let elsewhere = previous.spot(Place::Read(id, read))?;
            let (now, _) = self.latest.read(self.tape, elsewhere)?;
            return Some(self.like((now.storage, leaf.view), 0, 1, Origin::Moved));
        }
        None
    }

    /// The tensor on another storage that lies there as this one lies on its own.
    fn like(
        &self,
        (storage, view): (StorageId, ViewId),
        shift: i128,
        delay: u32,
        origin: Origin,
    ) -> Provenance {
        let mut geometry = self.tape.memory.view(view).geometry.clone();
        let Ok(offset) = u64::try_from(i128::from(geometry.offset) + shift) else {
            return Provenance::Doubt(DoubtKind::MadeOnce);
        };
        geometry.offset = offset;
        Provenance::Next { storage, geometry, delay, origin }
    }
}
