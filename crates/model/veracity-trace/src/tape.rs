//! The tape: what the front tells goes in here, programs and edges come out.
//!
//! An event is kept only when one of its operands depends on an input of an open execution, so the
//! list of events is what those inputs reach. It is dropped as executions end. Whatever is not an
//! event leaves its traces on the memory: how often it was written, whether it was computed from
//! values of nodes, which output it is.

mod calls;

use smallvec::SmallVec;

use crate::edges::{Graph, History, Observation};
use crate::execution::{Execution, Mark, OutputMark, Read, Taint, Time};
use crate::geometry::Geometry;
use crate::ids::{EventId, ExecutionId, NodeId, PortId, SiteId, StorageId, ViewId};
use crate::log::Log;
use crate::memory::{Birth, Memory, Published};
use crate::report::{Closed, InputFact, Origin};
use crate::slicer::{Liveness, Sliced, slice};

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
    /// Ended executions whose events are kept, in the order in which they ended.
    held: Vec<(ExecutionId, Execution)>,
    /// Storages and views on which the log has left its events.
    logged: Vec<ViewId>,
    /// Plain copies of values that may become outputs, made while executions are open.
    copies: Vec<ViewId>,
    /// Storages whose memory is gone while somebody may still need the record.
    forgotten: Vec<StorageId>,
    /// Counts the stretches of seen calls.
    stretch: u32,
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
        self.memory.add_storage(birth, self.clock)
    }

    /// Tells that a storage was there before what is recorded from here on: a mark may have shown it
    /// while calls were not seen.
    pub fn was_there(&mut self, storage: StorageId) {
        let storage = self.memory.storage_mut(storage);
        if storage.birth == Birth::Unseen {
            storage.birth = Birth::Before;
        }
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
        if self.open.is_empty() && self.held.is_empty() {
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

    /// Tells that calls were not seen for a while: what was published before may have been written
    /// since, and is no evidence for an edge.
    pub fn resume(&mut self) {
        self.stretch += 1;
    }

    /// Begins an execution. A light one keeps marks and origins, and has no program.
    pub fn open(&mut self, node: NodeId, light: bool) -> ExecutionId {
        let id = ExecutionId(self.next_execution);
        self.next_execution += 1;
        let execution = Execution {
            node,
            light,
            opened_at: self.tick(),
            number: None,
            first_event: self.log.next(),
            marks: Vec::new(),
            outputs: Vec::new(),
            escapes: Vec::new(),
            plain_escapes: Vec::new(),
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
        marked.marks.push(Mark {
            port,
            view,
            storage,
            time,
            count,
            published,
            confirmed: false,
            glue,
        });
        if !marked.light {
            self.reach(storage, &[execution]);
            self.logged.push(view);
        }
        published.map(|published| published.origin)
    }

    /// Tells that nobody wrote into the memory of an input since it was published, although calls
    /// were not seen in between.
    pub fn confirm_origin(&mut self, execution: ExecutionId, port: PortId) {
        for mark in self.find_mut(execution).marks.iter_mut().filter(|mark| mark.port == port) {
            mark.confirmed = true;
        }
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

    /// The value of this tensor, as of now, is this output. True when it is a constant so far: the
    /// front has to keep its value.
    pub fn mark_output(
        &mut self,
        execution: ExecutionId,
        port: PortId,
        view: ViewId,
        site: SiteId,
    ) -> bool {
        let mut taint = self.open_taint(&[view]);
        add_taint(&mut taint, &[execution]);
        let read = self.read(view, &taint);
        let time = self.tick();
        self.find_mut(execution).outputs.push(OutputMark { port, site, time, read });
        let constant = !self.find(execution).is_some_and(|open| open.light)
            && self.is_constant(execution, view);
        if constant {
            let storage = self.memory.storage_of(view);
            let storage = self.memory.storage_mut(storage);
            storage.constant_at = Some(storage.count);
        }
        constant
    }

    /// Ends an execution: makes its program, publishes its outputs.
    pub fn close(&mut self, execution: ExecutionId) -> Closed {
        let place = self.place(execution);
        let Sliced { slice, problems, used_marks } = if self.open[place].1.light {
            Sliced::default()
        } else {
            slice(self, execution, &self.open[place].1, Liveness::Inputs)
        };
        let (_, mut ended) = self.open.remove(place);
        let facts = ended.marks.iter().enumerate().map(|(index, mark)| InputFact {
            port: mark.port,
            origin: mark.published.map(|published| published.origin),
            glue: mark.glue,
            used: used_marks.contains(&index),
        });
        let inputs = facts.collect();
        let number = self.complete(&ended);
        let escapes = std::mem::take(&mut ended.escapes);
        if !ended.light {
            ended.number = Some(number);
            self.held.push((execution, ended));
        }
        Closed { execution: number, slice, problems, escapes, inputs, released: self.release() }
    }

    /// Lets go of an execution that ended; nothing more is asked about it.
    pub fn let_go(&mut self, execution: ExecutionId) -> EventId {
        self.held.retain(|(id, _)| *id != execution);
        self.release()
    }

    /// The first event that is kept.
    pub fn first_kept(&self) -> EventId {
        let full = self.open.iter().filter(|(_, execution)| !execution.light).chain(&self.held);
        full.map(|(_, execution)| execution.first_event).min().unwrap_or_else(|| self.log.next())
    }

    /// Whether an execution is open that is recorded in full.
    pub fn is_watching(&self) -> bool {
        self.open.iter().any(|(_, execution)| !execution.light)
    }

    /// Whether executions are open, or held.
    pub fn is_busy(&self) -> bool {
        !self.open.is_empty() || !self.held.is_empty()
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
            origin: mark.published.map(|published| {
                let unseen = ended.light || published.light || published.stretch < self.stretch;
                let stale = unseen && !mark.confirmed;
                (published.origin, stale)
            }),
        });
        let number = self.history.complete(ended.node, ended.light, observations);
        for output in &ended.outputs {
            let view = output.read.view;
            self.memory.derive(view, ended.node, output.site, self.clock);
            if self.memory.under(view).count == output.read.count {
                let origin = Origin { node: ended.node, execution: number, port: output.port };
                let (count, light, stretch) = (output.read.count, ended.light, self.stretch);
                let published = Published { origin, count, light, stretch };
                self.memory.publish(view, published);
            }
            self.publish_copies(&output.read, ended, number, output.port);
        }
        number
    }

    /// What was copied from an output before it was marked, and not written since, is that output.
    fn publish_copies(&mut self, read: &Read, ended: &Execution, execution: u32, port: PortId) {
        let origin = Origin { node: ended.node, execution, port };
        for copy in self.copies.clone() {
            let of = self.memory.copied(copy).filter(|_| self.memory.published(copy).is_none());
            if of.is_some_and(|of| (of.source, of.source_count) == (read.view, read.count)) {
                let (light, stretch) = (ended.light, self.stretch);
                self.memory.publish(copy, Published { origin, count: 0, light, stretch });
            }
        }
    }

    /// Drops what no open execution needs; gives the first event that is kept.
    fn release(&mut self) -> EventId {
        let until = self.first_kept();
        if self.held.is_empty() && !self.is_watching() {
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
        self.log.release(until);
        if self.open.is_empty() {
            for copy in std::mem::take(&mut self.copies) {
                self.memory.forget_copy(copy);
            }
        }
        if !self.is_busy() {
            for storage in std::mem::take(&mut self.forgotten) {
                self.memory.remove(storage);
            }
        }
        until
    }

    pub(crate) fn find(&self, execution: ExecutionId) -> Option<&Execution> {
        self.open.iter().find(|(id, _)| *id == execution).map(|(_, execution)| execution)
    }

    /// An execution that ended and is held.
    pub(crate) fn held(&self, execution: ExecutionId) -> Option<&Execution> {
        self.held.iter().find(|(id, _)| *id == execution).map(|(_, execution)| execution)
    }

    /// The held executions of a node.
    pub(crate) fn held_of(&self, node: NodeId) -> impl Iterator<Item = (ExecutionId, &Execution)> {
        let held = self.held.iter().filter(move |(_, execution)| execution.node == node);
        held.map(|(id, execution)| (*id, execution))
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

fn add_taint(taint: &mut Taint, more: &[ExecutionId]) {
    for execution in more {
        if let Err(place) = taint.binary_search(execution) {
            taint.insert(place, *execution);
        }
    }
}
