//! Finds writes to one root that another root should have seen.

use std::collections::{BTreeMap, BTreeSet};

use super::{Root, Slicer, Use};
use crate::execution::Time;
use crate::ids::{EventId, PortId, SiteId, StorageId};
use crate::report::Problem;

/// A use of a tensor on memory where an input lies.
#[derive(Debug, Clone, Copy)]
struct Access {
    time: Time,
    site: SiteId,
    used: Use,
    writes: bool,
}

impl Slicer<'_> {
    /// Only a storage with an input has several roots that live at the same time.
    pub(super) fn check_overlaps(&mut self, events: &[EventId]) {
        for accesses in self.accesses(events).values() {
            self.check_folded(accesses);
            let roots: BTreeSet<Root> = accesses.iter().map(|access| access.used.root).collect();
            if roots.len() < 2 {
                continue;
            }
            for write in accesses.iter().filter(|access| access.writes) {
                if let Some(ports) = accesses.iter().find_map(|read| self.misses(read, write)) {
                    let problem = Problem::InputsOverlap { site: write.site, ports };
                    self.problems.insert((write.time, problem));
                }
            }
        }
    }

    /// An input that shows a place twice (`expand`) gets a place for each when it is given anew; a
    /// write to one would not show on the other.
    fn check_folded(&mut self, accesses: &[Access]) {
        for write in accesses.iter().filter(|access| access.writes) {
            let Root::Mark(index) = write.used.root else { continue };
            let mark = &self.execution.marks[index];
            if self.tape.memory.view(mark.view).geometry.may_overlap_itself() {
                let ports = (mark.port, mark.port);
                self.problems
                    .insert((write.time, Problem::InputsOverlap { site: write.site, ports }));
            }
        }
    }

    fn accesses(&self, events: &[EventId]) -> BTreeMap<StorageId, Vec<Access>> {
        let mut accesses: BTreeMap<StorageId, Vec<Access>> = BTreeMap::new();
        let mut note = |time, site, used: Use, writes| {
            let storage = self.storage_of(used.root);
            if self.marks.contains_key(&storage) {
                accesses.entry(storage).or_default().push(Access { time, site, used, writes });
            }
        };
        for id in events {
            let event = self.event(*id);
            for (index, used) in self.uses[id].iter().enumerate() {
                note(event.time, event.site, *used, event.writes.contains(&index));
            }
        }
        for (output, used) in self.execution.outputs.iter().zip(&self.output_uses) {
            note(output.time, output.site, *used, false);
        }
        accesses
    }

    /// The ports of a read that should see a write and, in the program, does not.
    fn misses(&self, read: &Access, write: &Access) -> Option<(PortId, PortId)> {
        let lives = self.begin(read.used.root) < write.time && write.time < read.time;
        let elsewhere = read.used.root != write.used.root;
        let should_see = read.used.looked_at && lives && elsewhere;
        if !should_see || !self.tape.memory.overlaps(read.used.view, write.used.view) {
            return None;
        }
        let port = |root| match root {
            Root::Mark(mark) => Some(self.execution.marks[mark].port),
            Root::Made(..) | Root::Base(..) => None,
        };
        let (written, seen) = (port(write.used.root), port(read.used.root));
        Some((written.or(seen)?, seen.or(written)?))
    }
}
