//! Storages and views: what is known about memory right now.
//!
//! A view is found by what it is, not by which object shows it: two tensors with the same storage
//! and geometry are one view.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::execution::Time;
use crate::geometry::Geometry;
use crate::ids::{EventId, ExecutionId, NodeId, SiteId, StorageId, ViewId};
use crate::report::Origin;
use crate::table::Table;

/// Why a missing record is a fault of the caller.
const ALIVE: &str = "a storage is used only until the front forgets it";

/// A storage that was computed piece by piece is remembered as a whole beyond this many pieces.
const MOST_PIECES: usize = 8;

/// How a storage came into the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Birth {
    /// It was there when the session began.
    Before,
    /// A recorded call made it.
    Seen,
    /// Neither: somebody made it where the recorder does not see.
    Unseen,
}

/// Memory that was computed from values of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Derived {
    pub(crate) node: NodeId,
    /// Where it was computed.
    pub(crate) site: SiteId,
    /// Since when it is so.
    pub(crate) since: Time,
    /// Which part of the storage; `None` is all of it.
    pub(crate) region: Option<ViewId>,
}

/// An origin, valid while the storage is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) origin: Origin,
    /// The storage's write count at which it holds.
    pub(crate) count: u32,
    /// Whether a light execution published it.
    pub(crate) light: bool,
    /// In which stretch of seen calls it was published.
    pub(crate) stretch: u32,
}

/// What a view is a plain copy of, valid while the storage is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) source: ViewId,
    /// The write count of the source's storage when it was copied.
    pub(crate) source_count: u32,
    /// The storage's write count at which it holds.
    pub(crate) count: u32,
}

/// What is known about a storage.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) birth: Birth,
    /// When it was seen first.
    pub(crate) born: Time,
    /// How often it was written.
    pub(crate) count: u32,
    /// The write count at which it was last read as a constant.
    pub(crate) constant_at: Option<u32>,
    /// Executions whose inputs reach it, sorted; those that ended may still be among them.
    pub(crate) taint: SmallVec<[ExecutionId; 2]>,
    pub(crate) derived: SmallVec<[Derived; 1]>,
    pub(crate) ragged: bool,
    /// Events that made it: it is among their outputs and none of their reads.
    pub(crate) made_by: SmallVec<[EventId; 1]>,
    /// Events that wrote it.
    pub(crate) written_by: Vec<EventId>,
    /// When and where it was last written while no execution was open.
    pub(crate) written_between: Option<(Time, SiteId)>,
    /// Views that are an output or a plain copy of something, or were.
    known: SmallVec<[ViewId; 2]>,
    views: SmallVec<[ViewId; 2]>,
}

/// What is known about a view.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) storage: StorageId,
    pub(crate) geometry: Geometry,
    pub(crate) ragged: bool,
    pub(crate) published: Option<Published>,
    copied: Option<Copied>,
    /// Events that gave it back, and as which output.
    pub(crate) produced_by: SmallVec<[(EventId, u32); 1]>,
}

/// All storages and views.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    storages: Table<Storage>,
    views: Table<View>,
    numbers: HashMap<(StorageId, Geometry), ViewId>,
}

impl Memory {
    pub(crate) fn add_storage(&mut self, birth: Birth, born: Time) -> StorageId {
        StorageId(self.storages.push(Storage {
            birth,
            born,
            count: 0,
            constant_at: None,
            taint: SmallVec::new(),
            derived: SmallVec::new(),
            ragged: false,
            made_by: SmallVec::new(),
            written_by: Vec::new(),
            written_between: None,
            known: SmallVec::new(),
            views: SmallVec::new(),
        }))
    }

    /// The number of a view, given when it is seen first.
    pub(crate) fn intern(&mut self, storage: StorageId, geometry: &Geometry) -> ViewId {
        // Copying a geometry of few extents allocates nothing.
        let key = (storage, geometry.clone());
        if let Some(view) = self.numbers.get(&key) {
            return *view;
        }
        let view = ViewId(self.views.push(View {
            storage,
            geometry: geometry.clone(),
            ragged: false,
            published: None,
            copied: None,
            produced_by: SmallVec::new(),
        }));
        self.numbers.insert(key, view);
        self.storage_mut(storage).views.push(view);
        view
    }

    /// Removes a storage with its views.
    pub(crate) fn remove(&mut self, storage: StorageId) {
        let Some(record) = self.storages.remove(storage.0) else { return };
        for view in record.views {
            if let Some(view) = self.views.remove(view.0) {
                self.numbers.remove(&(view.storage, view.geometry));
            }
        }
    }

    pub(crate) fn storage(&self, storage: StorageId) -> &Storage {
        self.storages.get(storage.0).expect(ALIVE)
    }

    pub(crate) fn storage_mut(&mut self, storage: StorageId) -> &mut Storage {
        self.storages.get_mut(storage.0).expect(ALIVE)
    }

    pub(crate) fn view(&self, view: ViewId) -> &View {
        self.views.get(view.0).expect(ALIVE)
    }

    pub(crate) fn view_mut(&mut self, view: ViewId) -> &mut View {
        self.views.get_mut(view.0).expect(ALIVE)
    }

    pub(crate) fn storage_of(&self, view: ViewId) -> StorageId {
        self.view(view).storage
    }

    /// The storage that a view shows.
    pub(crate) fn under(&self, view: ViewId) -> &Storage {
        self.storage(self.storage_of(view))
    }

    pub(crate) fn contains(&self, outer: ViewId, inner: ViewId) -> bool {
        outer == inner || self.view(outer).geometry.contains(&self.view(inner).geometry)
    }

    pub(crate) fn overlaps(&self, first: ViewId, second: ViewId) -> bool {
        !self.view(first).geometry.is_apart_from(&self.view(second).geometry)
    }

    /// What the memory under a view was computed from.
    pub(crate) fn derived(&self, view: ViewId) -> impl Iterator<Item = &Derived> {
        let pieces = self.under(view).derived.iter();
        pieces.filter(move |piece| piece.region.is_none_or(|region| self.overlaps(region, view)))
    }

    /// Notes that the memory under a view was computed from values of a node.
    pub(crate) fn derive(&mut self, view: ViewId, node: NodeId, site: SiteId, time: Time) {
        let mut piece = Derived { node, site, since: time, region: Some(view) };
        let pieces = &mut self.storage_mut(self.storage_of(view)).derived;
        let same = |known: &&Derived| (known.node, known.region) == (node, piece.region);
        piece.since = pieces.iter().find(same).map_or(time, |known| known.since);
        // The latest line is the one that a person looks for.
        pieces.retain(|known| (known.node, known.region) != (node, piece.region));
        pieces.insert(0, piece);
        if pieces.len() > MOST_PIECES {
            let mut whole: SmallVec<[Derived; 1]> = SmallVec::new();
            for piece in pieces.iter() {
                if whole.iter().all(|known| known.node != piece.node) {
                    whole.push(Derived { region: None, ..*piece });
                }
            }
            *pieces = whole;
        }
    }

    /// Forgets what the memory under a view was computed from: all of it was replaced.
    pub(crate) fn clear_derived(&mut self, view: ViewId) {
        let storage = self.storage_of(view);
        let mut pieces = std::mem::take(&mut self.storage_mut(storage).derived);
        pieces.retain(|piece| piece.region.is_none_or(|region| !self.contains(view, region)));
        self.storage_mut(storage).derived = pieces;
    }

    /// The origin of a view, while it holds.
    pub(crate) fn published(&self, view: ViewId) -> Option<Published> {
        let record = self.view(view);
        record.published.filter(|published| published.count == self.storage(record.storage).count)
    }

    /// Gives a view the origin of another.
    pub(crate) fn publish(&mut self, view: ViewId, published: Published) {
        let count = self.under(view).count;
        self.view_mut(view).published = Some(Published { count, ..published });
        self.know(view);
    }

    /// What a view is a plain copy of, while that holds.
    pub(crate) fn copied(&self, view: ViewId) -> Option<Copied> {
        let record = self.view(view);
        record.copied.filter(|copied| copied.count == self.storage(record.storage).count)
    }

    /// Notes that a view is a plain copy of another, which has not been written since that count.
    pub(crate) fn copy(&mut self, view: ViewId, source: ViewId, source_count: u32) {
        let count = self.under(view).count;
        self.view_mut(view).copied = Some(Copied { source, source_count, count });
        self.know(view);
    }

    /// A copy means nothing once the executions are over that may mark its source.
    pub(crate) fn forget_copy(&mut self, view: ViewId) {
        self.view_mut(view).copied = None;
    }

    fn know(&mut self, view: ViewId) {
        let known = &mut self.storage_mut(self.storage_of(view)).known;
        if !known.contains(&view) {
            known.push(view);
        }
    }

    /// Counts a write to these parts of a storage. What lies apart from all of them is what it was.
    pub(crate) fn count_write(&mut self, storage: StorageId, parts: &[ViewId]) {
        let before = self.storage(storage).count;
        let after = before + 1;
        let mut known = std::mem::take(&mut self.storage_mut(storage).known);
        known.retain(|view| parts.iter().all(|part| !self.overlaps(*part, *view)));
        for view in &known {
            let record = self.view_mut(*view);
            if let Some(published) = record.published.as_mut().filter(|held| held.count == before) {
                published.count = after;
            }
            if let Some(copied) = record.copied.as_mut().filter(|held| held.count == before) {
                copied.count = after;
            }
        }
        let record = self.storage_mut(storage);
        record.known = known;
        record.count = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(offset: u64) -> Geometry {
        Geometry {
            offset,
            sizes: [3].into_iter().collect(),
            strides: [1].into_iter().collect(),
            element: 0,
        }
    }

    #[test]
    fn a_view_is_found_by_what_it_is() {
        let mut memory = Memory::default();
        let (first, second) =
            (memory.add_storage(Birth::Seen, 0), memory.add_storage(Birth::Seen, 0));
        let view = memory.intern(first, &row(0));
        assert_eq!(memory.intern(first, &row(0)), view);
        assert_ne!(memory.intern(first, &row(1)), view);
        assert_ne!(memory.intern(second, &row(0)), view);
    }

    #[test]
    fn a_removed_storage_leaves_nothing_behind() {
        let mut memory = Memory::default();
        let (first, second) =
            (memory.add_storage(Birth::Seen, 0), memory.add_storage(Birth::Seen, 0));
        for offset in 0..100 {
            memory.intern(first, &row(offset));
        }
        let kept = memory.intern(second, &row(0));
        memory.remove(first);
        assert_eq!(memory.numbers.len(), 1);
        assert_eq!(memory.intern(second, &row(0)), kept);
    }
}
