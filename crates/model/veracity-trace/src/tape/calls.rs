//! Recording a call: as an event when it concerns an open execution, and in any case by what it does
//! to the memory.

use smallvec::SmallVec;

use super::{Tape, add_taint};
use crate::call::{Call, Recorded};
use crate::execution::{Event, Hazard, Mark, OutputMark, Read, Taint, Time};
use crate::ids::{EventId, ExecutionId, NodeId, PortId, SiteId, StorageId, ViewId};
use crate::memory::{Birth, Published};
use crate::report::Escape;

/// Values that leave on one line of a pass and that no input reaches: a loop of another thread may ask
/// thousands of times.
const MOST_PLAIN_ESCAPES: usize = 8;

impl Tape {
    /// Asked before a write: is the content that is about to be lost needed as a constant?
    pub fn must_snapshot(&self, written: ViewId, reads: &[ViewId]) -> bool {
        let id = self.memory.storage_of(written);
        let storage = self.memory.storage(id);
        if storage.constant_at == Some(storage.count) {
            return true;
        }
        let mut taint = self.open_taint(reads);
        add_taint(&mut taint, &self.open_taint(&[written]));
        if taint.is_empty() {
            taint = self.watching();
        }
        // The call may read the storage through one view as a constant and write it through another.
        let on_storage = reads.iter().filter(|read| self.memory.storage_of(**read) == id);
        on_storage
            .chain([&written])
            .any(|view| taint.iter().any(|execution| self.is_constant(*execution, *view)))
    }

    /// A value left for Python; true if an input of an open execution reaches it.
    pub fn escape(&mut self, view: ViewId, kind: u16, site: SiteId, fingerprint: u64) -> bool {
        let taint = self.open_taint(&[view]);
        let escape = Escape { view, kind, site, fingerprint };
        for execution in &taint {
            self.find_mut(*execution).escapes.push(escape);
        }
        if taint.is_empty() {
            self.plain_escape(escape);
        }
        !taint.is_empty()
    }

    /// A value that no input reaches left: it decides where it comes from an earlier execution.
    fn plain_escape(&mut self, escape: Escape) {
        let watching = self.watching();
        let time = self.tick();
        let read = self.read(escape.view, &watching);
        for execution in &watching {
            let kept = &mut self.find_mut(*execution).plain_escapes;
            let alike = |(known, _): &&(Escape, OutputMark)| {
                (known.site, known.kind) == (escape.site, escape.kind)
            };
            if kept.iter().filter(alike).count() < MOST_PLAIN_ESCAPES {
                let (port, site, read) = (PortId(0), escape.site, read.clone());
                kept.push((escape, OutputMark { port, site, time, read }));
            }
        }
    }

    /// Records a call that ran.
    pub fn call(&mut self, call: &Call<'_>) -> Recorded {
        let taint = self.open_taint(call.reads);
        let nodes = self.nodes_behind(call, &taint);
        let ragged = (call.ragged && !taint.is_empty())
            || call.reads.iter().any(|read| self.is_ragged(*read));
        let carried = call.identity.and_then(|read| self.memory.published(call.reads[read]));
        let before = call.identity.map_or(0, |read| self.memory.under(call.reads[read]).count);
        let recorded = self.record(call, &taint);
        self.apply_writes(call, &taint, &nodes);
        self.apply_outputs(call, &taint, &nodes, ragged);
        if let Some(read) = call.identity {
            self.carry(call, read, before, carried, !taint.is_empty());
        }
        recorded
    }

    /// Open executions that are recorded in full.
    fn watching(&self) -> Taint {
        let full = self.open.iter().filter(|(_, execution)| !execution.light);
        full.map(|(id, _)| *id).collect()
    }

    /// Keeps a call as an event, when it concerns an open execution. One that reads nothing that
    /// inputs reach is kept, too: what it starts from may be carried over from an earlier execution,
    /// and what it makes to a later one, be it `torch.ones(1)`.
    fn record(&mut self, call: &Call<'_>, taint: &Taint) -> Recorded {
        let plain = taint.is_empty();
        let taint = &if plain { self.watching() } else { taint.clone() };
        if taint.is_empty() {
            return Recorded::default();
        }
        let constants: Vec<usize> = (0..call.reads.len())
            .filter(|read| taint.iter().any(|id| self.is_constant(*id, call.reads[*read])))
            .collect();
        for read in &constants {
            let storage = self.memory.storage_of(call.reads[*read]);
            let storage = self.memory.storage_mut(storage);
            storage.constant_at = Some(storage.count);
        }
        let time = self.tick();
        if !plain {
            self.note_bases(call, taint, time);
        }
        let event = Event {
            op: call.op,
            site: call.site,
            literals: call.literals,
            time,
            taint: taint.clone(),
            reads: call.reads.iter().map(|read| self.read(*read, taint)).collect(),
            writes: call.writes.into(),
            outputs: call.outputs.into(),
            overwrites: call.overwrites,
            may_alias: call.may_alias,
            blind: call.blind,
            plain,
            shown: self.shown(call),
        };
        let id = self.log.push(event);
        self.index(call, id);
        Recorded { event: Some(id), constants }
    }

    /// Leaves an event on the memory that it wrote, made or showed.
    fn index(&mut self, call: &Call<'_>, id: EventId) {
        for written in call.writes {
            let view = call.reads[*written];
            let storage = self.memory.storage_of(view);
            let events = &mut self.memory.storage_mut(storage).written_by;
            if events.last() != Some(&id) {
                events.push(id);
                self.logged.push(view);
            }
        }
        for (index, output) in call.outputs.iter().enumerate() {
            let index = u32::try_from(index).expect("a call gives back fewer than 2^32 tensors");
            self.memory.view_mut(*output).produced_by.push((id, index));
            self.logged.push(*output);
            if self.is_made_by(call, *output) {
                let storage = self.memory.storage_of(*output);
                let events = &mut self.memory.storage_mut(storage).made_by;
                if events.last() != Some(&id) {
                    events.push(id);
                }
            }
        }
    }

    /// Executions that write a storage from outside for the first time.
    fn note_bases(&mut self, call: &Call<'_>, taint: &Taint, time: Time) {
        for written in call.writes {
            let view = call.reads[*written];
            let storage = self.memory.storage_of(view);
            let count = self.write_count(storage);
            for execution in taint {
                if self.is_constant(*execution, view) {
                    self.find_mut(*execution).bases.insert(storage, (time, count));
                }
            }
        }
    }

    /// See [`Event::shown`].
    fn shown(&self, call: &Call<'_>) -> SmallVec<[usize; 1]> {
        let only_views = call.writes.is_empty()
            && !call.may_alias
            && !call.blind
            && !call.outputs.iter().any(|output| self.is_made_by(call, *output));
        if !only_views {
            return SmallVec::new();
        }
        let on = |view: &ViewId| self.memory.storage_of(*view);
        let is_shown = |read: &ViewId| call.outputs.iter().any(|output| on(output) == on(read));
        (0..call.reads.len()).filter(|read| is_shown(&call.reads[*read])).collect()
    }

    fn apply_writes(&mut self, call: &Call<'_>, taint: &Taint, nodes: &[NodeId]) {
        let mut counted: SmallVec<[StorageId; 2]> = SmallVec::new();
        for written in call.writes {
            let view = call.reads[*written];
            let id = self.memory.storage_of(view);
            if !counted.contains(&id) {
                counted.push(id);
                let parts = self.written_parts(call, id);
                self.memory.count_write(id, &parts);
                self.reach(id, taint);
                if self.open.is_empty() {
                    let now = (self.clock, call.site);
                    self.memory.storage_mut(id).written_between = Some(now);
                }
            }
            if call.overwrites {
                self.memory.clear_derived(view);
            }
            let site = self.computed_at(call);
            for node in nodes {
                self.memory.derive(call.part.unwrap_or(view), *node, site, self.clock);
            }
        }
    }

    /// What a call writes of a storage.
    fn written_parts(&self, call: &Call<'_>, storage: StorageId) -> SmallVec<[ViewId; 2]> {
        let written = call.writes.iter().map(|written| call.reads[*written]);
        let on_storage = written.filter(|view| self.memory.storage_of(*view) == storage);
        on_storage.map(|view| call.part.unwrap_or(view)).collect()
    }

    fn apply_outputs(&mut self, call: &Call<'_>, taint: &Taint, nodes: &[NodeId], ragged: bool) {
        for output in call.outputs {
            self.memory.view_mut(*output).ragged |= ragged;
            if !self.is_made_by(call, *output) {
                continue;
            }
            let site = self.computed_at(call);
            for node in nodes {
                self.memory.derive(*output, *node, site, self.clock);
            }
            let storage = self.memory.storage_of(*output);
            self.reach(storage, taint);
            self.memory.storage_mut(storage).ragged |= ragged;
        }
    }

    /// The line that computed what a call gives: a plain copy computes nothing.
    fn computed_at(&self, call: &Call<'_>) -> SiteId {
        let copied = call.identity.map(|read| call.reads[read]);
        let glue = copied.filter(|view| self.memory.published(*view).is_none());
        let piece = glue.and_then(|view| self.memory.derived(view).next());
        piece.map_or(call.site, |piece| piece.site)
    }

    /// A plain copy of an output is that output. Of something that may still be marked as an output
    /// it is noted.
    fn carry(
        &mut self,
        call: &Call<'_>,
        read: usize,
        count: u32,
        published: Option<Published>,
        traced: bool,
    ) {
        let written = call.writes.first().map(|written| call.reads[*written]);
        let Some(copy) = call.part.or(written).or(call.outputs.first().copied()) else { return };
        let original = call.reads[read];
        let (source, copied) = (self.memory.view(original), self.memory.view(copy));
        let (from, to) = (&source.geometry, &copied.geometry);
        if from.sizes != to.sizes || from.element != to.element || original == copy {
            return;
        }
        match published {
            Some(published) => self.memory.publish(copy, published),
            None if traced && source.storage != copied.storage => {
                let first = self.memory.copied(original);
                let (source, count) =
                    first.map_or((original, count), |first| (first.source, first.source_count));
                self.memory.copy(copy, source, count);
                self.copies.push(copy);
            }
            None => {}
        }
    }

    /// Nodes from whose values the results of a call are computed, sorted. A value that an open
    /// execution reaches counts as that execution's: its inputs are its own business.
    fn nodes_behind(&self, call: &Call<'_>, taint: &Taint) -> SmallVec<[NodeId; 2]> {
        let mut nodes: SmallVec<[NodeId; 2]> = SmallVec::new();
        nodes.extend(taint.iter().filter_map(|id| self.find(*id)).map(|open| open.node));
        for (index, read) in call.reads.iter().enumerate() {
            let replaced = call.overwrites && call.writes.contains(&index);
            if !replaced && self.open_taint(&[*read]).is_empty() {
                nodes.extend(self.memory.derived(*read).map(|piece| piece.node));
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether an output lies on memory that is none of the arguments'.
    fn is_made_by(&self, call: &Call<'_>, output: ViewId) -> bool {
        let storage = self.memory.storage_of(output);
        call.reads.iter().all(|read| self.memory.storage_of(*read) != storage)
    }

    /// Whether a tensor is neither made in an execution nor one of its inputs, and was not written
    /// by it so far.
    pub(super) fn is_constant(&self, execution: ExecutionId, view: ViewId) -> bool {
        let Some(open) = self.find(execution) else { return false };
        let storage = self.memory.storage_of(view);
        let made_here = |event: &EventId| {
            self.log.get(*event).is_some_and(|event| event.concerns(execution) && !event.plain)
        };
        let is_input =
            |mark: &Mark| mark.storage == storage && self.memory.contains(mark.view, view);
        !open.bases.contains_key(&storage)
            && !open.marks.iter().any(is_input)
            && !self.memory.storage(storage).made_by.iter().any(made_here)
    }

    /// Open executions that reach one of these tensors.
    pub(super) fn open_taint(&self, views: &[ViewId]) -> Taint {
        let mut taint = Taint::new();
        for view in views {
            for execution in &self.memory.under(*view).taint {
                if !taint.contains(execution) && self.find(*execution).is_some() {
                    taint.push(*execution);
                }
            }
        }
        taint.sort_unstable();
        taint
    }

    /// Notes that executions reach a storage.
    pub(super) fn reach(&mut self, storage: StorageId, executions: &[ExecutionId]) {
        let mut taint = std::mem::take(&mut self.memory.storage_mut(storage).taint);
        // Those that ended have no meaning; they are swept out before they become many.
        if taint.len() > 4 {
            taint.retain(|execution| self.find(*execution).is_some());
        }
        add_taint(&mut taint, executions);
        self.memory.storage_mut(storage).taint = taint;
    }

    /// A use of a tensor now, by an event of these executions.
    pub(super) fn read(&self, view: ViewId, taint: &Taint) -> Read {
        let storage = self.memory.storage_of(view);
        let record = self.memory.storage(storage);
        let node_of = |id: &ExecutionId| self.find(*id).map(|open| (*id, open.node));
        let mut hazard = Hazard { unseen: record.birth == Birth::Unseen, ..Hazard::default() };
        if taint.len() > 1 {
            hazard.reached_by = record.taint.iter().filter_map(node_of).collect();
        }
        let own = |node: NodeId| taint.iter().filter_map(node_of).all(|(_, other)| other == node);
        let strange = self.memory.derived(view).map(|piece| piece.node).filter(|node| !own(*node));
        hazard.derived_from = strange.collect();
        let hazard = (hazard != Hazard::default()).then(|| Box::new(hazard));
        Read { view, storage, count: record.count, hazard }
    }
}
