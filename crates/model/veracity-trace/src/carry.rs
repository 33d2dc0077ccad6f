//! Memory that one execution of a node leaves to the next: state that nobody declared.
//!
//! Who made the memory decides, not what is in it. What an execution reads from outside is *carried
//! over* when the execution before it made it, wrote it, had it as an input or an output, or read it
//! in another place (a queue that moves on). A value that is carried over is an input of the node
//! and, one execution later, an output of it.
//!
//! Two executions are held beside each other by their calls: the same operation on the same line,
//! the same number of times before. What stands in the one for a value of the other is its
//! *counterpart*.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::execution::{Execution, Mark, OutputMark, Read, Time};
use crate::geometry::Geometry;
use crate::ids::{EventId, ExecutionId, OpId, PortId, SiteId, StorageId, ViewId};
use crate::memory::Derived;
use crate::slice::Slice;
use crate::slicer::{Leaf, Liveness, Place, comes_from_inputs, leaves, slice};
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

/// A value that an execution hands to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Where it is read first.
    pub spot: Spot,
    /// The line of that.
    pub site: SiteId,
    /// What the first execution of the node read there.
    pub first: Content,
    /// What the latest one read there.
    pub latest: Content,
    /// The tensor of the latest one that the next one will read there.
    pub next: ViewId,
}

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
    /// It is one of several places that began with the same memory, and has not moved on yet.
    NotFilled,
}

/// What a node carries over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carry {
    /// In the order in which they are read.
    pub states: Vec<State>,
    /// Sorted.
    pub doubts: Vec<Doubt>,
}

impl Tape {
    /// What `latest` reads that `previous` left to it. All three are held executions of one node,
    /// the last two in a row.
    pub fn carried(
        &mut self,
        first: ExecutionId,
        previous: ExecutionId,
        latest: ExecutionId,
    ) -> Carry {
        let executions = (self.held(first), self.held(previous), self.held(latest));
        let (Some(one), Some(two), Some(three)) = executions else { return Carry::default() };
        let sides = [
            Side::new(self, first, one.clone()),
            Side::new(self, previous, two.clone()),
            Side::new(self, latest, three.clone()),
        ];
        Inference::new(self, &sides).run()
    }

    /// The program of a held execution with these states as inputs and outputs.
    pub fn program_with(
        &self,
        execution: ExecutionId,
        states: &[(State, PortId, PortId)],
    ) -> Slice {
        let Some(held) = self.held(execution) else { return Slice::default() };
        let mut changed = held.clone();
        let mut storages = HashSet::new();
        for (state, input, output) in states {
            let Content { storage, count, view } = state.latest;
            storages.insert(storage);
            let time = held.opened_at;
            changed.marks.insert(
                0,
                Mark {
                    port: *input,
                    view,
                    storage,
                    time,
                    count,
                    published: None,
                    confirmed: false,
                    glue: None,
                },
            );
            changed.outputs.push(at_end(self, *output, state.next, state.site));
        }
        slice(self, execution, &changed, Liveness::Carried(&storages)).slice
    }

    /// What an execution, open or held, read in a place.
    pub fn content_at(&self, execution: ExecutionId, spot: Spot) -> Option<Content> {
        let held = self.held(execution)?;
        Side::new(self, execution, held.clone()).read(self, spot).map(|(read, _)| content(&read))
    }
}

fn content(read: &Read) -> Content {
    Content { storage: read.storage, count: read.count, view: read.view }
}

fn at_end(tape: &Tape, port: PortId, view: ViewId, site: SiteId) -> OutputMark {
    let storage = tape.memory.storage_of(view);
    let count = tape.memory.storage(storage).count;
    OutputMark { port, site, time: END, read: Read { view, storage, count, hazard: None } }
}

type CallKey = (SiteId, OpId, u32);

/// A held execution, with its calls by place.
struct Side {
    id: ExecutionId,
    execution: Execution,
    calls: HashMap<CallKey, EventId>,
    keys: HashMap<EventId, CallKey>,
}

impl Side {
    fn new(tape: &Tape, id: ExecutionId, execution: Execution) -> Self {
        let mut counts: HashMap<(SiteId, OpId), u32> = HashMap::new();
        let (mut calls, mut keys) = (HashMap::new(), HashMap::new());
        for (number, event) in tape.log.since(execution.first_event) {
            if event.concerns(id) {
                let nth = counts.entry((event.site, event.op)).or_default();
                let key = (event.site, event.op, *nth);
                *nth += 1;
                calls.insert(key, number);
                keys.insert(number, key);
            }
        }
        Self { id, execution, calls, keys }
    }

    fn spot(&self, place: Place) -> Option<Spot> {
        match place {
            Place::Output(index) => Some(Spot::Output(index)),
            Place::Read(event, read) => {
                let (site, op, nth) = *self.keys.get(&event)?;
                Some(Spot::Argument { site, op, nth, read })
            }
        }
    }

    /// What it read in a place, and when.
    fn read(&self, tape: &Tape, spot: Spot) -> Option<(Read, Time)> {
        match spot {
            Spot::Output(index) => {
                let mark = self.execution.outputs.get(index)?;
                Some((mark.read.clone(), mark.time))
            }
            Spot::Argument { site, op, nth, read } => {
                let event = tape.log.get(*self.calls.get(&(site, op, nth))?)?;
                Some((event.reads.get(read)?.clone(), event.time))
            }
        }
    }

    fn owns(&self, tape: &Tape, event: EventId) -> bool {
        tape.log.get(event).is_some_and(|event| event.concerns(self.id))
    }
}

/// What an execution got from the one before it.
enum Provenance {
    /// Nothing that the one before it had to do with.
    Fixed,
    /// The counterpart of what it read, which the next one will read.
    Next(StorageId, Geometry),
    Doubt(DoubtKind),
}

struct Inference<'a> {
    tape: &'a mut Tape,
    first: &'a Side,
    previous: &'a Side,
    latest: &'a Side,
    states: Vec<State>,
    doubts: Vec<Doubt>,
}

impl<'a> Inference<'a> {
    fn new(tape: &'a mut Tape, sides: &'a [Side; 3]) -> Self {
        let [first, previous, latest] = sides;
        Self { tape, first, previous, latest, states: Vec::new(), doubts: Vec::new() }
    }

    /// What the state becomes may itself start from state: until nothing new is found.
    fn run(mut self) -> Carry {
        let mut settled: HashSet<StorageId> = HashSet::new();
        loop {
            let found = self.leaves();
            let mut by_storage: BTreeMap<StorageId, Vec<Leaf>> = BTreeMap::new();
            for leaf in &found {
                by_storage.entry(leaf.storage).or_default().push(*leaf);
            }
            let open = by_storage.into_iter().filter(|(storage, _)| !settled.contains(storage));
            let open: Vec<_> = open.collect();
            if open.is_empty() {
                self.check_filled(&found);
                break;
            }
            for (storage, leaves) in open {
                settled.insert(storage);
                self.settle(&leaves);
            }
        }
        self.doubts.sort_unstable();
        self.doubts.dedup();
        self.states.sort_by_key(|state| (state.latest.count, state.spot));
        Carry { states: self.states, doubts: self.doubts }
    }

    fn leaves(&self) -> Vec<Leaf> {
        let mut execution = self.latest.execution.clone();
        for (number, state) in self.states.iter().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let port = PortId(u32::MAX - number);
            execution.outputs.push(at_end(self.tape, port, state.next, state.site));
        }
        let mut found = leaves(self.tape, self.latest.id, &execution);
        // What becomes of a state is no place of the code.
        let real = self.latest.execution.outputs.len();
        found.retain(|leaf| !matches!(leaf.place, Place::Output(index) if index >= real));
        found
    }

    /// Judges one storage by the places that read it.
    fn settle(&mut self, found: &[Leaf]) {
        let contains = |outer: &Leaf| {
            found.iter().all(|inner| self.tape.memory.contains(outer.view, inner.view))
        };
        let Some(whole) = found.iter().find(|leaf| contains(leaf)).copied() else {
            let touched =
                found.iter().find(|leaf| !matches!(self.provenance(leaf), Provenance::Fixed));
            if let Some(leaf) = touched {
                self.doubts.push(Doubt { site: leaf.site, kind: DoubtKind::Scattered });
            }
            return;
        };
        let kind = match self.provenance(&whole) {
            Provenance::Fixed => return,
            Provenance::Doubt(kind) => kind,
            Provenance::Next(on, geometry) => match self.beginning(&whole) {
                Ok((spot, first)) => {
                    let next = self.tape.memory.intern(on, &geometry);
                    let Leaf { storage, count, view, site, .. } = whole;
                    let latest = Content { storage, count, view };
                    self.states.push(State { spot, site, first, latest, next });
                    return;
                }
                Err(kind) => kind,
            },
        };
        self.doubts.push(Doubt { site: whole.site, kind });
    }

    /// What the first execution read in the place of a state.
    fn beginning(&self, leaf: &Leaf) -> Result<(Spot, Content), DoubtKind> {
        let spot = self.latest.spot(leaf.place).ok_or(DoubtKind::MadeOnce)?;
        let (read, time) = self.first.read(self.tape, spot).ok_or(DoubtKind::MadeOnce)?;
        let Side { id, execution, .. } = self.first;
        if comes_from_inputs(self.tape, *id, execution, &read, time) {
            return Err(DoubtKind::FilledFromInput);
        }
        Ok((spot, content(&read)))
    }

    fn provenance(&self, leaf: &Leaf) -> Provenance {
        let found = self.made(leaf).or_else(|| self.written(leaf)).or_else(|| self.given(leaf));
        found.or_else(|| self.returned(leaf)).or_else(|| self.moved(leaf)).unwrap_or_else(|| {
            let Execution { node, opened_at, .. } = self.latest.execution;
            let before = |piece: &Derived| piece.node == node && piece.since < opened_at;
            let derived = self.tape.memory.derived(leaf.view).any(before);
            if derived { Provenance::Doubt(DoubtKind::MadeOutside) } else { Provenance::Fixed }
        })
    }

    /// The execution before made it: the counterpart is what the same call made.
    fn made(&self, leaf: &Leaf) -> Option<Provenance> {
        let memory = &self.tape.memory;
        let makers = memory.storage(leaf.storage).made_by.iter().rev();
        let maker = makers.copied().find(|event| self.previous.owns(self.tape, *event))?;
        let event = self.tape.log.get(maker)?;
        let on_storage = |view: &ViewId| memory.storage_of(*view) == leaf.storage;
        let output = event.outputs.iter().position(on_storage)?;
        let key = self.previous.keys.get(&maker)?;
        let counterpart = self.latest.calls.get(key).and_then(|id| self.tape.log.get(*id));
        let Some(made) = counterpart.and_then(|event| event.outputs.get(output)) else {
            return Some(Provenance::Doubt(DoubtKind::MadeOnce));
        };
        Some(self.like(leaf.view, memory.storage_of(*made), 0))
    }

    /// The execution before wrote into it: it is the same memory all the time.
    fn written(&self, leaf: &Leaf) -> Option<Provenance> {
        let memory = &self.tape.memory;
        let writes = &memory.storage(leaf.storage).written_by;
        let into = |id: &EventId| {
            let event = self.tape.log.get(*id).filter(|event| event.concerns(self.previous.id));
            event.is_some_and(|event| {
                let on = event.written().filter(|read| read.storage == leaf.storage);
                on.into_iter().any(|read| memory.overlaps(read.view, leaf.view))
            })
        };
        writes.iter().any(into).then(|| self.like(leaf.view, leaf.storage, 0))
    }

    /// It was an input of the execution before.
    fn given(&self, leaf: &Leaf) -> Option<Provenance> {
        let memory = &self.tape.memory;
        let shows =
            |mark: &&Mark| mark.storage == leaf.storage && memory.contains(mark.view, leaf.view);
        let mark = self.previous.execution.marks.iter().find(shows)?;
        let marks = &self.latest.execution.marks;
        let Some(now) = marks.iter().find(|other| other.port == mark.port) else {
            return Some(Provenance::Doubt(DoubtKind::MadeOnce));
        };
        let offset = |view: ViewId| memory.view(view).geometry.offset;
        let shift = i128::from(offset(now.view)) - i128::from(offset(mark.view));
        Some(self.like(leaf.view, now.storage, shift))
    }

    /// It is an output of the execution before, or a copy that was made of it afterwards.
    fn returned(&self, leaf: &Leaf) -> Option<Provenance> {
        let origin = self.tape.memory.published(leaf.view)?.origin;
        let before = &self.previous.execution;
        if (origin.node, Some(origin.execution)) != (before.node, before.number) {
            return None;
        }
        let outputs = &self.latest.execution.outputs;
        let output = outputs.iter().rfind(|output| output.port == origin.port)?;
        Some(self.like(output.read.view, output.read.storage, 0))
    }

    /// The execution before read it in another place.
    fn moved(&self, leaf: &Leaf) -> Option<Provenance> {
        let spot = self.latest.spot(leaf.place)?;
        let (before, _) = self.previous.read(self.tape, spot)?;
        if before.storage == leaf.storage {
            return None;
        }
        let events = self.tape.log.since(self.previous.execution.first_event);
        for (id, event) in events.filter(|(_, event)| event.concerns(self.previous.id)) {
            let read = event
                .reads
                .iter()
                .position(|read| (read.storage, read.count) == (leaf.storage, leaf.count));
            let Some(read) = read else { continue };
            let elsewhere = self.previous.spot(Place::Read(id, read))?;
            let (now, _) = self.latest.read(self.tape, elsewhere)?;
            return Some(self.like(leaf.view, now.storage, 0));
        }
        None
    }

    /// The tensor on another storage that lies there as this one lies on its own.
    fn like(&self, view: ViewId, storage: StorageId, shift: i128) -> Provenance {
        let mut geometry = self.tape.memory.view(view).geometry.clone();
        let Ok(offset) = u64::try_from(i128::from(geometry.offset) + shift) else {
            return Provenance::Doubt(DoubtKind::MadeOnce);
        };
        geometry.offset = offset;
        Provenance::Next(storage, geometry)
    }

    /// Places of one call that began with the same memory move on one after the other.
    fn check_filled(&mut self, found: &[Leaf]) {
        let began: Vec<(Spot, StorageId)> =
            self.states.iter().map(|state| (state.spot, state.first.storage)).collect();
        for leaf in found {
            let is_state = self.states.iter().any(|state| state.latest.storage == leaf.storage);
            let Some(Spot::Argument { site, op, nth, .. }) = self.latest.spot(leaf.place) else {
                continue;
            };
            let beside = |(spot, storage): &(Spot, StorageId)| {
                *storage == leaf.storage
                    && matches!(*spot, Spot::Argument { site: s, op: o, nth: n, .. }
                        if (s, o, n) == (site, op, nth))
            };
            if !is_state && began.iter().any(beside) {
                self.doubts.push(Doubt { site: leaf.site, kind: DoubtKind::NotFilled });
            }
        }
    }
}
