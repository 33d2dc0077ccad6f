//! The tape: what the front tells goes in here, programs and edges come out.
//!
//! An event is kept only when one of its operands depends on an input of an open execution, so the
//! list of events is what those inputs reach. It is dropped as executions end. Whatever is not an
//! event leaves its traces on the memory: how often it was written, whether it was computed from
//! values of nodes, which output it is.

use smallvec::SmallVec;

use crate::call::{Call, Recorded};
use crate::edges::{Graph, History, Observation};
use crate::execution::{Event, Execution, Hazard, Mark, OutputMark, Read, Taint, Time};
use crate::geometry::Geometry;
use crate::ids::{EventId, ExecutionId, NodeId, PortId, SiteId, StorageId, ViewId};
use crate::log::Log;
use crate::memory::{Birth, Memory, Published};
use crate::report::{Closed, Escape, InputFact, Origin};
use crate::slicer::{Sliced, slice};

const OPEN: &str = "the front names executions that it opened and has not ended";

/// The tape.
#[derive(Debug, Default)]
pub struct Tape {
    pub(crate) memory: Memory,
    pub(crate) log: Log,
    clock: Time,
    next_execution: u32,
    /// Sorted by number; there are never many.
    open: Vec<(ExecutionId, Execution)>,
    /// Storages and views on which the log has left its events.
    logged: Vec<ViewId>,
    /// Storages whose memory is gone while somebody may still need the record.
    forgotten: Vec<StorageId>,
    history: History,
}

/// Memory.
impl Tape {
    /// An empty tape.
    pub fn new() -> Self {
        Self::default()
    }

    /// Numbers a new storage.
    pub fn storage(&mut self, birth: Birth) -> StorageId {
        self.memory.add_storage(birth)
    }

    /// The number of a view; the same for the same storage and geometry.
    pub fn view(&mut self, storage: StorageId, geometry: &Geometry) -> ViewId {
        self.memory.intern(storage, geometry)
    }

    /// What a view is.
    pub fn geometry(&self, view: ViewId) -> (StorageId, &Geometry) {
        let view = self.memory.view(view);
        (view.storage, &view.geometry)
    }

    /// Tells that the memory of a storage is gone. Its number and those of its views must not be
    /// used any more, except in marks and calls that were told before.
    pub fn forget(&mut self, storage: StorageId) {
        if self.open.is_empty() {
            self.memory.remove(storage);
        } else {
            self.forgotten.push(storage);
        }
    }

    /// How often a storage was written.
    pub fn write_count(&self, storage: StorageId) -> u32 {
        self.memory.storage(storage).count
    }

    /// Whether it depends on an input of an open execution.
    pub fn is_traced(&self, view: ViewId) -> bool {
        self.memory.under(view).taint.iter().any(|execution| self.find(*execution).is_some())
    }

    /// Whether it was computed from values of nodes, now or before.
    pub fn is_derived(&self, view: ViewId) -> bool {
        self.memory.derived(view).next().is_some()
    }

    /// Whether its size depends on data.
    pub fn is_ragged(&self, view: ViewId) -> bool {
        let record = self.memory.view(view);
        let ragged = record.ragged || self.memory.storage(record.storage).ragged;
        ragged && !record.geometry.sizes.is_empty()
    }

    /// The output that it is, unchanged.
    pub fn origin(&self, view: ViewId) -> Option<Origin> {
        self.memory.published(view).map(|published| published.origin)
    }

    /// Gives a tensor the origin of another that it mirrors.
    pub fn adopt_origin(&mut self, from: ViewId, to: ViewId) {
        if let Some(published) = self.memory.published(from) {
            self.memory.publish(to, published);
        }
    }
}

/// Executions.
impl Tape {
    /// Whether any execution is open.
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The pipeline as it was seen so far.
    pub fn graph(&self) -> Graph {
        self.history.graph()
    }

    /// Begins an execution. A light one keeps marks and origins, and has no program.
    pub fn open(&mut self, node: NodeId, light: bool) -> ExecutionId {
        let id = ExecutionId(self.next_execution);
        self.next_execution += 1;
        let execution = Execution {
            node,
            light,
            first_event: self.log.next(),
            marks: Vec::new(),
            outputs: Vec::new(),
            escapes: Vec::new(),
            bases: std::collections::HashMap::new(),
        };
        self.open.push((id, execution));
        id
    }

    /// From now on, for this execution, this memory is this port. Gives the output that it is.
    pub fn mark_input(
        &mut self,
        execution: ExecutionId,
        port: PortId,
        view: ViewId,
    ) -> Option<Origin> {
        let storage = self.memory.storage_of(view);
        let published = self.memory.published(view);
        let glue = self.memory.derived(view).next().map(|piece| piece.site);
        let glue = glue.filter(|_| published.is_none());
        let count = self.write_count(storage);
        let time = self.tick();
        let marked = self.find_mut(execution);
        marked.marks.push(Mark { port, view, storage, time, count, published, glue });
        if !marked.light {
            self.reach(storage, &[execution]);
            self.logged.push(view);
        }
        published.map(|published| published.origin)
    }

    /// Takes an input mark back: the tensor is a constant after all, and the front keeps its memory
    /// alive. Not done, and false, when the memory was written since the mark.
    pub fn drop_input(&mut self, execution: ExecutionId, port: PortId) -> bool {
        let memory = &self.memory;
        let place = self.place(execution);
        let (_, marked) = &mut self.open[place];
        let untouched = |mark: &Mark| memory.storage(mark.storage).count == mark.count;
        let (taken, kept): (Vec<Mark>, Vec<Mark>) =
            std::mem::take(&mut marked.marks).into_iter().partition(|mark| mark.port == port);
        if !taken.iter().all(untouched) {
            marked.marks = taken.into_iter().chain(kept).collect();
            marked.marks.sort_by_key(|mark| mark.time);
            return false;
        }
        marked.marks = kept;
        for mark in taken {
            self.memory.storage_mut(mark.storage).constant_at = Some(mark.count);
        }
        true
    }

    /// The value of this tensor, as of now, is this output.
    pub fn mark_output(
        &mut self,
        execution: ExecutionId,
        port: PortId,
        view: ViewId,
        site: SiteId,
    ) {
        let mut taint = self.open_taint(&[view]);
        add_taint(&mut taint, &[execution]);
        let read = self.read(view, &taint);
        let time = self.tick();
        self.find_mut(execution).outputs.push(OutputMark { port, site, time, read });
    }

    /// Ends an execution: makes its program, publishes its outputs.
    pub fn close(&mut self, execution: ExecutionId) -> Closed {
        let place = self.place(execution);
        let Sliced { slice, problems, used_marks } = if self.open[place].1.light {
            Sliced::default()
        } else {
            slice(self, execution, &self.open[place].1)
        };
        let (_, ended) = self.open.remove(place);
        let facts = ended.marks.iter().enumerate().map(|(index, mark)| InputFact {
            port: mark.port,
            origin: mark.published.map(|published| published.origin),
            glue: mark.glue,
            used: used_marks.contains(&index),
        });
        let inputs = facts.collect();
        let number = self.complete(&ended);
        Closed {
            execution: number,
            slice,
            problems,
            escapes: ended.escapes,
            inputs,
            released: self.release(),
        }
    }

    /// Ends an execution that has no result. The front may let go of the calls kept under numbers
    /// smaller than the one that it gives.
    pub fn abandon(&mut self, execution: ExecutionId) -> EventId {
        self.open.retain(|(id, _)| *id != execution);
        self.release()
    }

    /// Counts the completion, and publishes what was marked as output.
    fn complete(&mut self, ended: &Execution) -> u32 {
        let observations = ended.marks.iter().map(|mark| Observation {
            port: mark.port,
            origin: mark.published.map(|published| (published.origin, published.light)),
        });
        let number = self.history.complete(ended.node, ended.light, observations);
        for output in &ended.outputs {
            let view = output.read.view;
            self.memory.derive(view, ended.node, output.site);
            if self.memory.under(view).count == output.read.count {
                let origin = Origin { node: ended.node, execution: number, port: output.port };
                let published = Published { origin, count: output.read.count, light: ended.light };
                self.memory.publish(view, published);
            }
        }
        number
    }

    /// Drops what no open execution needs; gives the first event that is kept.
    fn release(&mut self) -> EventId {
        let full = self.open.iter().filter(|(_, execution)| !execution.light);
        let until = full.map(|(_, execution)| execution.first_event).min();
        if until.is_none() {
            for view in std::mem::take(&mut self.logged) {
                let record = self.memory.view_mut(view);
                record.produced_by = SmallVec::new();
                let storage = record.storage;
                let storage = self.memory.storage_mut(storage);
                storage.made_by = SmallVec::new();
                storage.written_by = Vec::new();
                storage.taint.clear();
            }
        }
        let until = until.unwrap_or_else(|| self.log.next());
        self.log.release(until);
        if self.open.is_empty() {
            for storage in std::mem::take(&mut self.forgotten) {
                self.memory.remove(storage);
            }
        }
        until
    }

    pub(crate) fn find(&self, execution: ExecutionId) -> Option<&Execution> {
        self.open.iter().find(|(id, _)| *id == execution).map(|(_, execution)| execution)
    }

    fn place(&self, execution: ExecutionId) -> usize {
        self.open.iter().position(|(id, _)| *id == execution).expect(OPEN)
    }

    fn find_mut(&mut self, execution: ExecutionId) -> &mut Execution {
        let place = self.place(execution);
        &mut self.open[place].1
    }

    fn tick(&mut self) -> Time {
        self.clock += 1;
        self.clock
    }
}

/// Calls.
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
        // The call may read the storage through one view as a constant and write it through another.
        let on_storage = reads.iter().filter(|read| self.memory.storage_of(**read) == id);
        on_storage
            .chain([&written])
            .any(|view| taint.iter().any(|execution| self.is_constant(*execution, *view)))
    }

    /// A value left for Python; true if that concerns an open execution.
    pub fn escape(&mut self, view: ViewId, kind: u16, site: SiteId, fingerprint: u64) -> bool {
        let taint = self.open_taint(&[view]);
        for execution in &taint {
            let escape = Escape { view, kind, site, fingerprint };
            self.find_mut(*execution).escapes.push(escape);
        }
        !taint.is_empty()
    }

    /// Records a call that ran.
    pub fn call(&mut self, call: &Call<'_>) -> Recorded {
        let taint = self.open_taint(call.reads);
        let nodes = self.nodes_behind(call, &taint);
        let ragged = (call.ragged && !taint.is_empty())
            || call.reads.iter().any(|read| self.is_ragged(*read));
        let carried = call.identity.and_then(|read| self.memory.published(call.reads[read]));
        let recorded =
            if taint.is_empty() { Recorded::default() } else { self.record(call, &taint) };
        self.apply_writes(call, &taint, &nodes);
        self.apply_outputs(call, &taint, &nodes, ragged);
        if let (Some(published), Some(read)) = (carried, call.identity) {
            self.carry(call, read, published);
        }
        recorded
    }

    /// Keeps a call as an event.
    fn record(&mut self, call: &Call<'_>, taint: &Taint) -> Recorded {
        let constants: Vec<usize> = (0..call.reads.len())
            .filter(|read| taint.iter().any(|id| self.is_constant(*id, call.reads[*read])))
            .collect();
        for read in &constants {
            let storage = self.memory.storage_of(call.reads[*read]);
            let storage = self.memory.storage_mut(storage);
            storage.constant_at = Some(storage.count);
        }
        let time = self.tick();
        self.note_bases(call, taint, time);
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
                self.memory.storage_mut(id).count += 1;
                self.reach(id, taint);
            }
            if call.overwrites {
                self.memory.clear_derived(view);
            }
            for node in nodes {
                self.memory.derive(view, *node, call.site);
            }
        }
    }

    fn apply_outputs(&mut self, call: &Call<'_>, taint: &Taint, nodes: &[NodeId], ragged: bool) {
        for output in call.outputs {
            self.memory.view_mut(*output).ragged |= ragged;
            if !self.is_made_by(call, *output) {
                continue;
            }
            for node in nodes {
                self.memory.derive(*output, *node, call.site);
            }
            let storage = self.memory.storage_of(*output);
            self.reach(storage, taint);
            self.memory.storage_mut(storage).ragged |= ragged;
        }
    }

    /// A plain copy of an output is that output.
    fn carry(&mut self, call: &Call<'_>, read: usize, published: Published) {
        let written = call.writes.first().map(|written| &call.reads[*written]);
        let Some(copy) = written.or(call.outputs.first()).copied() else { return };
        let (source, copied) = (self.memory.view(call.reads[read]), self.memory.view(copy));
        let (source, copied) = (&source.geometry, &copied.geometry);
        if source.sizes == copied.sizes && source.element == copied.element {
            self.memory.publish(copy, published);
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
    fn is_constant(&self, execution: ExecutionId, view: ViewId) -> bool {
        let Some(open) = self.find(execution) else { return false };
        let storage = self.memory.storage_of(view);
        let made_here =
            |event: &EventId| self.log.get(*event).is_some_and(|event| event.concerns(execution));
        let is_input =
            |mark: &Mark| mark.storage == storage && self.memory.contains(mark.view, view);
        !open.bases.contains_key(&storage)
            && !open.marks.iter().any(is_input)
            && !self.memory.storage(storage).made_by.iter().any(made_here)
    }

    /// Open executions that reach one of these tensors.
    fn open_taint(&self, views: &[ViewId]) -> Taint {
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
    fn reach(&mut self, storage: StorageId, executions: &[ExecutionId]) {
        let mut taint = std::mem::take(&mut self.memory.storage_mut(storage).taint);
        // Those that ended have no meaning; they are swept out before they become many.
        if taint.len() > 4 {
            taint.retain(|execution| self.find(*execution).is_some());
        }
        add_taint(&mut taint, executions);
        self.memory.storage_mut(storage).taint = taint;
    }

    /// A use of a tensor now, by an event of these executions.
    fn read(&self, view: ViewId, taint: &Taint) -> Read {
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

fn add_taint(taint: &mut Taint, more: &[ExecutionId]) {
    for execution in more {
        if let Err(place) = taint.binary_search(execution) {
            taint.insert(place, *execution);
        }
    }
}
