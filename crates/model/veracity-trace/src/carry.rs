//! Memory that one execution of a node leaves to the next: state that nobody declared.
//!
//! Who made the memory decides, not what is in it. What an execution reads from outside is *carried
//! over* when an execution before it made it, wrote it, had it as an input or an output, or read it
//! in another place (a queue that moves on). A value that is carried over is an input of the node
//! and, as many executions later as it takes to be read, an output of it.
//!
//! Two executions are held beside each other by their calls: the same operation on the same line,
//! the same number of times before. What stands in the one for a value of the other is its
//! *counterpart*.

mod inference;
mod provenance;
mod side;

use std::collections::HashSet;

use self::inference::Inference;
use self::side::Side;
use crate::execution::{Mark, OutputMark, Read, Time};
use crate::ids::{EventId, ExecutionId, OpId, PortId, SiteId, StorageId, ViewId};
use crate::memory::Birth;
use crate::report::Escape;
use crate::slice::Slice;
use crate::slicer::{Liveness, slice};
use crate::tape::Tape;

/// The end of an execution comes after all its calls.
const END: Time = Time::MAX;

/// A place in the code of a node where memory is read, the same in every execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spot {
    /// An argument of a call.
    Argument {
        /// The user's line.
        site: SiteId,
        /// What is called.
        op: OpId,
        /// How often the execution called it on that line before.
        nth: u32,
        /// Which of the tensors among the arguments.
        read: usize,
    },
    /// An output that is handed on as it is, by its place among the output marks.
    Output(usize),
}

/// The content of memory at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// The storage.
    pub storage: StorageId,
    /// How often it had been written.
    pub count: u32,
    /// The tensor on it.
    pub view: ViewId,
}

/// A value that an execution hands to a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Where it is read first.
    pub spot: Spot,
    /// The line of that.
    pub site: SiteId,
    /// What the executions read there that came before the first value arrived: one for each
    /// execution that a value is under way. `None` where nobody saw it.
    pub beginning: Vec<Option<Content>>,
    /// What the latest one read there.
    pub latest: Content,
    /// The tensor of the latest one that a later one will read there.
    pub next: ViewId,
}

impl State {
    /// How many executions later a value is read.
    pub fn delay(&self) -> usize {
        self.beginning.len()
    }
}

/// A state with its ports: the value that is read now, then those that are read later, the newest
/// last. Each is an input and an output.
pub type Promoted = (State, Vec<(PortId, PortId)>);

/// Memory that is carried over, and what becomes of it cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doubt {
    /// The line that reads it.
    pub site: SiteId,
    /// Why.
    pub kind: DoubtKind,
}

/// Why a state cannot be inferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DoubtKind {
    /// The first execution computed it from its inputs.
    FilledFromInput,
    /// The call that made it was not made again.
    MadeOnce,
    /// It was computed from values of the node, outside of it.
    MadeOutside,
    /// It shows parts of one storage that none of them contains.
    Scattered,
    /// It is memory that was there before, as in places that have their values from earlier
    /// executions by now, or another one than an earlier execution read there.
    NotFilled,
    /// The executions read it after unlike numbers of executions.
    Irregular,
}

/// What a node carries over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carry {
    /// In the order in which they are read.
    pub states: Vec<State>,
    /// Sorted.
    pub doubts: Vec<Doubt>,
    /// Memory that has nothing to do with the node and was made anew since the execution before, and
    /// the line that reads it.
    pub made_anew: Vec<(SiteId, ViewId)>,
    /// Values of the latest execution that left for Python, and that earlier ones have to do with.
    pub escapes: Vec<Escape>,
}

impl Tape {
    /// What the last of these executions reads that earlier ones left to it. All are held executions
    /// of one node, from its first on, in their order; some in between may be missing.
    pub fn carried(&mut self, executions: &[ExecutionId]) -> Carry {
        let side = |id: &ExecutionId| Some(Side::new(self, *id, self.held(*id)?.clone()));
        let sides: Vec<Side> = executions.iter().filter_map(side).collect();
        match sides.split_last() {
            Some((latest, earlier)) if !earlier.is_empty() && sides.len() == executions.len() => {
                Inference::new(self, earlier, latest).run()
            }
            _ => Carry::default(),
        }
    }

    /// The program of a held execution with these states as inputs and outputs.
    pub fn program_with(&mut self, execution: ExecutionId, states: &[Promoted]) -> Slice {
        let Some(held) = self.held(execution) else { return Slice::default() };
        let mut changed = held.clone();
        let mut storages = HashSet::new();
        for (state, ports) in states {
            let chain = self.chain(state);
            storages.insert(state.latest.storage);
            storages.insert(self.memory.storage_of(state.next));
            for (index, (input, output)) in ports.iter().enumerate() {
                let Some(now) = chain.get(index) else { break };
                changed.marks.insert(0, mark(*input, now, changed.opened_at));
                let next = chain.get(index + 1).map_or(state.next, |later| later.view);
                changed.outputs.push(at_end(self, *output, next, state.site));
            }
        }
        slice(self, execution, &changed, Liveness::Carried(&storages)).slice
    }

    /// The memory of a state and of the values behind it, which no call has touched.
    fn chain(&mut self, state: &State) -> Vec<Content> {
        let (_, geometry) = self.geometry(state.latest.view);
        let geometry = geometry.clone();
        let behind = (1..state.delay()).map(|_| {
            let storage = self.storage(Birth::Before);
            Content { storage, count: 0, view: self.view(storage, &geometry) }
        });
        let behind: Vec<Content> = behind.collect();
        std::iter::once(state.latest).chain(behind).collect()
    }

    /// Whether what the first execution read in the place of a state was there when the session began.
    pub fn begins_before(&self, state: &State) -> bool {
        let first = state.beginning.first().copied().flatten();
        first.is_some_and(|first| self.memory.storage(first.storage).birth == Birth::Before)
    }

    /// What an execution, open or held, read in a place.
    pub fn content_at(&self, execution: ExecutionId, spot: Spot) -> Option<Content> {
        let held = self.held(execution)?;
        Side::new(self, execution, held.clone()).read(self, spot).map(|(read, _)| content(&read))
    }

    /// Where the memory that an execution read in a place was written after the first of these
    /// executions had begun, while none was open.
    pub fn written_between(&self, executions: &[ExecutionId], spot: Spot) -> Option<SiteId> {
        let (first, latest) = (executions.first()?, executions.last()?);
        let content = self.content_at(*latest, spot)?;
        let (time, site) = self.memory.storage(content.storage).written_between?;
        let began = self.held(*first)?.opened_at;
        (time >= began).then_some(site)
    }

    /// Whether a tensor is of an earlier held execution of the node, and this one, which is held as
    /// well, does not read it.
    pub fn is_waiting(&self, execution: ExecutionId, view: ViewId) -> bool {
        let storage = self.memory.storage_of(view);
        let Some(latest) = self.held(execution) else { return false };
        let own = |event: &EventId, id: ExecutionId| {
            self.log.get(*event).is_some_and(|event| event.concerns(id))
        };
        let record = self.memory.storage(storage);
        let before = self.held_of(latest.node).filter(|(id, _)| *id < execution);
        let left = before.into_iter().any(|(id, held)| {
            held.marks.iter().any(|mark| mark.storage == storage)
                || record.made_by.iter().any(|event| own(event, id))
        });
        let mut events = self.log.since(latest.first_event);
        left && !events
            .any(|(_, event)| event.concerns(execution) && event.reads_on(storage).next().is_some())
    }

    /// Whether a tensor is memory that is older than an open execution, or starts from such memory.
    pub fn is_older(&self, execution: ExecutionId, view: ViewId) -> bool {
        let Some(open) = self.find(execution) else { return false };
        let (mut waiting, mut seen) = (vec![self.memory.storage_of(view)], HashSet::new());
        while let Some(storage) = waiting.pop().filter(|storage| seen.insert(*storage)) {
            let record = self.memory.storage(storage);
            if record.born < open.opened_at {
                return true;
            }
            let makers = record.made_by.iter().filter_map(|id| self.log.get(*id));
            waiting.extend(makers.flat_map(|event| event.reads.iter().map(|read| read.storage)));
        }
        false
    }
}

fn content(read: &Read) -> Content {
    Content { storage: read.storage, count: read.count, view: read.view }
}

fn mark(port: PortId, now: &Content, time: Time) -> Mark {
    let Content { storage, count, view } = *now;
    Mark { port, view, storage, time, count, published: None, confirmed: false, glue: None }
}

fn at_end(tape: &Tape, port: PortId, view: ViewId, site: SiteId) -> OutputMark {
    let storage = tape.memory.storage_of(view);
    let count = tape.memory.storage(storage).count;
    OutputMark { port, site, time: END, read: Read { view, storage, count, hazard: None } }
}
