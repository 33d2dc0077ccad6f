//! From the events of an execution to its program.
//!
//! Two passes. The first goes back from the outputs with a work list and finds which events are
//! needed and where each operand comes from (this file, [`roots`] and [`writes`]). The second goes
//! forward and puts the steps down (`assemble`).
//!
//! What makes a program right is this. Every tensor lies on a *root*: memory that the program has
//! from an input, from a constant, or from a call that made it. A use of a tensor is right when it
//! is reached from its root, and when every recorded write to that root, from its beginning to the
//! use, is in the program. Roots of one storage are separate memory in the program, so a write that
//! one root has and another should see is a problem, not a program.

mod assemble;
mod live;
mod overlap;
mod roots;
mod writes;

use std::collections::{BTreeSet, HashMap, HashSet};

use self::live::Live;
pub(crate) use self::live::Liveness;
use self::roots::Root;
use self::writes::Scans;
use crate::execution::{Event, Execution, Read, Time};
use crate::ids::{EventId, ExecutionId, SiteId, StorageId, ViewId};
use crate::report::Problem;
use crate::slice::Slice;
use crate::tape::Tape;

/// A program, and what came to light when it was made.
#[derive(Debug, Default)]
pub(crate) struct Sliced {
    pub(crate) slice: Slice,
    pub(crate) problems: Vec<Problem>,
    /// Input marks that the program reads, as indices.
    pub(crate) used_marks: BTreeSet<usize>,
}

/// Makes the program of an execution.
pub(crate) fn slice(
    tape: &Tape,
    id: ExecutionId,
    execution: &Execution,
    liveness: Liveness<'_>,
) -> Sliced {
    let mut slicer = Slicer::new(tape, id, execution, liveness);
    slicer.trace();
    slicer.assemble()
}

/// Where an execution uses a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A read of an event.
    Read(EventId, usize),
    /// An output mark, as index.
    Output(usize),
}

/// A use of memory that the execution did not make, where its first content matters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf {
    pub(crate) place: Place,
    pub(crate) site: SiteId,
    pub(crate) storage: StorageId,
    pub(crate) count: u32,
    pub(crate) view: ViewId,
}

/// What the outputs of an execution start from beside its inputs, with every call taken as part of
/// the program; in the order of the calls.
pub(crate) fn leaves(tape: &Tape, id: ExecutionId, execution: &Execution) -> Vec<Leaf> {
    let mut slicer = Slicer::new(tape, id, execution, Liveness::Everything);
    slicer.trace();
    slicer.leaves()
}

/// Whether a read of an execution starts from one of its inputs.
pub(crate) fn comes_from_inputs(
    tape: &Tape,
    id: ExecutionId,
    execution: &Execution,
    read: &Read,
    time: Time,
) -> bool {
    let slicer = Slicer::new(tape, id, execution, Liveness::Inputs);
    !matches!(slicer.root(read, time), Ok(Root::Base(..)))
}

/// A place in the recording.
#[derive(Debug, Clone, Copy)]
struct At {
    time: Time,
    site: SiteId,
}

/// Where the tensor of a use comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Source {
    /// An input mark, as index.
    Mark(usize),
    /// An output of an event.
    Output(EventId, usize),
    /// A storage as it was at a write count.
    Constant(StorageId, u32),
}

/// A use of a tensor, resolved.
#[derive(Debug, Clone, Copy)]
struct Use {
    source: Source,
    root: Root,
    view: ViewId,
    /// Whether the value matters, and not only the memory.
    looked_at: bool,
}

/// The state of the first pass.
struct Slicer<'a> {
    tape: &'a Tape,
    id: ExecutionId,
    execution: &'a Execution,
    /// Calls that no input reaches and that are part of the program all the same.
    live: Live,
    /// Input marks by storage, in the order in which they were made.
    marks: HashMap<StorageId, Vec<usize>>,
    /// For each needed event, one use for each of its reads.
    uses: HashMap<EventId, Vec<Use>>,
    output_uses: Vec<Use>,
    pending: Vec<EventId>,
    needed: HashSet<EventId>,
    scans: Scans,
    /// Roots whose first content matters.
    looked_at: HashSet<Root>,
    /// With the time at which each appears.
    problems: BTreeSet<(Time, Problem)>,
    /// How many events were looked at, some of them several times. Tests hold it to be linear.
    visits: usize,
}

impl<'a> Slicer<'a> {
    fn new(
        tape: &'a Tape,
        id: ExecutionId,
        execution: &'a Execution,
        liveness: Liveness<'_>,
    ) -> Self {
        let mut marks: HashMap<StorageId, Vec<usize>> = HashMap::new();
        for (index, mark) in execution.marks.iter().enumerate() {
            marks.entry(mark.storage).or_default().push(index);
        }
        Self {
            tape,
            id,
            execution,
            live: Live::of(tape, id, execution, liveness),
            marks,
            uses: HashMap::new(),
            output_uses: Vec::new(),
            pending: Vec::new(),
            needed: HashSet::new(),
            scans: Scans::default(),
            looked_at: HashSet::new(),
            problems: BTreeSet::new(),
            visits: 0,
        }
    }

    /// Finds the events that the outputs need.
    fn trace(&mut self) {
        for output in &self.execution.outputs {
            let found =
                self.resolve(&output.read, At { time: output.time, site: output.site }, true);
            self.output_uses.push(found);
        }
        while let Some(id) = self.pending.pop() {
            let event = self.event(id);
            self.visits += 1;
            if event.blind {
                let problem = Problem::Random { site: event.site, op: event.op };
                self.problems.insert((event.time, problem));
            }
            let at = At { time: event.time, site: event.site };
            let resolve =
                |(index, read): (usize, &Read)| self.resolve(read, at, event.looks_at(index));
            let uses = event.reads.iter().enumerate().map(resolve).collect();
            self.uses.insert(id, uses);
        }
    }

    fn event(&self, id: EventId) -> &'a Event {
        self.tape.log.get(id).expect("events of an open execution are kept")
    }

    /// An event of this execution; `None` when it belongs to others or came earlier.
    fn own_event(&self, id: EventId) -> Option<&'a Event> {
        let kept = id >= self.execution.first_event;
        let event = kept.then(|| self.event(id)).filter(|event| event.concerns(self.id));
        event.filter(|event| !event.plain || self.live.includes(id))
    }

    /// See [`leaves`].
    #[expect(clippy::iter_over_hash_type, reason = "what is found is sorted by its place")]
    fn leaves(&self) -> Vec<Leaf> {
        let mut found = Vec::new();
        let mut note = |place, site, used: &Use| {
            if let Source::Constant(storage, count) = used.source
                && self.looked_at.contains(&used.root)
            {
                found.push(Leaf { place, site, storage, count, view: used.view });
            }
        };
        for (id, uses) in &self.uses {
            for (read, used) in uses.iter().enumerate() {
                note(Place::Read(*id, read), self.event(*id).site, used);
            }
        }
        for (index, used) in self.output_uses.iter().enumerate() {
            note(Place::Output(index), self.execution.outputs[index].site, used);
        }
        found.sort_by_key(|leaf| leaf.place);
        found
    }

    fn need(&mut self, id: EventId) {
        if self.needed.insert(id) {
            self.pending.push(id);
        }
    }

    /// Finds where a tensor comes from, and needs what it takes.
    fn resolve(&mut self, read: &Read, at: At, looked_at: bool) -> Use {
        let root = self.root(read, at.time).unwrap_or_else(|port| {
            self.problems.insert((at.time, Problem::PartlyInput { site: at.site, port }));
            Root::Base(read.storage, read.count)
        });
        // Where the value is not looked at, everything before now is as good as overwritten.
        let alive_since =
            if looked_at { self.need_writes(root, read, at.time) } else { Some(at.time) };
        if alive_since.is_none() {
            self.looked_at.insert(root);
            self.check_hazards(root, read, at);
        }
        let source = self.source(root, read, at, alive_since);
        if let Source::Output(event, _) = source {
            self.need(event);
        }
        Use { source, root, view: read.view, looked_at }
    }

    /// Whether a tensor may be a constant.
    fn check_hazards(&mut self, root: Root, read: &Read, at: At) {
        let At { time, site } = at;
        let (Root::Base(..), Some(hazard)) = (root, &read.hazard) else { return };
        let others = hazard.reached_by.iter().filter(|(id, _)| *id != self.id);
        let mixed: Vec<Problem> =
            others.map(|(_, other)| Problem::Mixed { site, other: *other }).collect();
        let derived = hazard.derived_from.iter().filter(|node| **node != self.execution.node);
        let unmarked = derived.map(|node| Problem::UnmarkedUse { site, origin_node: Some(*node) });
        let unseen = hazard.unseen.then_some(Problem::BornUnseen { site });
        // The value of a node that still runs is derived from it as well: one line says enough.
        let problems = if mixed.is_empty() { unmarked.chain(unseen).collect() } else { mixed };
        self.problems.extend(problems.into_iter().map(|problem| (time, problem)));
    }

    /// The tensor to start from: the latest call that gave back exactly this one, else the root.
    fn source(&mut self, root: Root, read: &Read, at: At, alive_since: Option<Time>) -> Source {
        if let Root::Mark(mark) = root
            && self.execution.marks[mark].view == read.view
        {
            return Source::Mark(mark);
        }
        let produced_by = &self.tape.memory.view(read.view).produced_by;
        let last = produced_by.partition_point(|(id, _)| self.is_before(*id, at.time));
        for (id, output) in produced_by[..last].iter().rev() {
            self.visits += 1;
            let Some(event) = self.own_event(*id) else { continue };
            if event.time <= self.begin(root) && !root.is_made_by(*id) {
                break;
            }
            let is_alive = alive_since.is_none_or(|since| event.time >= since);
            let is_cheap = event.only_views() || root.is_made_by(*id);
            if (is_alive || is_cheap) && self.lies_on(event, *id, root) {
                return Source::Output(*id, *output as usize);
            }
        }
        self.root_source(root, read, at)
    }

    /// Whether what an event gave back on the storage of a root is surely on that root. It may be
    /// memory of any of its arguments.
    fn lies_on(&self, event: &Event, id: EventId, root: Root) -> bool {
        let mut reads = event.reads_on(self.storage_of(root)).peekable();
        let all_on_root =
            reads.peek().is_some() && reads.all(|read| self.root(read, event.time) == Ok(root));
        all_on_root || root.is_made_by(id)
    }

    /// The root itself, or the output of its maker that contains the tensor.
    fn root_source(&mut self, root: Root, read: &Read, at: At) -> Source {
        match root {
            Root::Mark(mark) => Source::Mark(mark),
            Root::Base(storage, count) => Source::Constant(storage, count),
            Root::Made(maker, storage) => {
                let memory = &self.tape.memory;
                let on_root = |view: &ViewId| {
                    memory.storage_of(*view) == storage && memory.contains(*view, read.view)
                };
                let found = self.event(maker).outputs.iter().position(on_root);
                found.map_or_else(
                    || self.out_of_reach(read, at),
                    |output| Source::Output(maker, output),
                )
            }
        }
    }

    /// The tensor shows more memory than the call that made it gave back.
    fn out_of_reach(&mut self, read: &Read, at: At) -> Source {
        self.problems.insert((at.time, Problem::BornUnseen { site: at.site }));
        Source::Constant(read.storage, read.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Birth, Call, Geometry, NodeId, OpId, PortId};

    const LENGTH: usize = 100_000;

    /// A tape with an input and `LENGTH` calls; the calls see it all.
    fn long(
        mut next: impl FnMut(&mut Tape, usize, ViewId, ViewId) -> ([ViewId; 2], bool, ViewId),
    ) -> (Tape, ExecutionId) {
        let mut tape = Tape::new();
        let input = fresh(&mut tape, Birth::Before);
        let execution = tape.open(NodeId(0), false);
        tape.mark_input(execution, PortId(0), input);
        let mut last = input;
        for step in 0..LENGTH {
            let (reads, writes, output) = next(&mut tape, step, input, last);
            tape.call(&Call {
                op: OpId(0),
                site: SiteId(0),
                literals: 0,
                reads: &reads,
                writes: if writes { &[0] } else { &[] },
                outputs: &[output],
                ragged: false,
                identity: None,
                part: None,
                overwrites: false,
                may_alias: false,
                blind: false,
            });
            last = output;
        }
        tape.mark_output(execution, PortId(1), last, SiteId(0));
        (tape, execution)
    }

    fn fresh(tape: &mut Tape, birth: Birth) -> ViewId {
        let storage = tape.storage(birth);
        at(tape, storage, 0)
    }

    fn at(tape: &mut Tape, storage: StorageId, offset: u64) -> ViewId {
        let one = [1].into_iter().collect();
        let strides = [1].into_iter().collect();
        tape.view(storage, &Geometry { offset, sizes: one, strides, element: 0 })
    }

    /// The number of steps of the program, and of visits that it took.
    fn measure(tape: &Tape, execution: ExecutionId) -> (usize, usize) {
        let open = tape.find(execution).expect("it is open");
        let mut slicer = Slicer::new(tape, execution, open, Liveness::Inputs);
        slicer.trace();
        let visits = slicer.visits;
        (slicer.assemble().slice.steps.len(), visits)
    }

    #[test]
    fn long_programs_take_linear_work() {
        let chain = long(|tape, _, input, last| ([last, input], false, fresh(tape, Birth::Seen)));
        let in_place = long(|_, _, input, last| ([last, input], true, last));
        // Every step writes one part of a buffer, and reads another that was written before.
        let mut buffer = None;
        let parts = long(|tape, step, input, last| {
            let storage = *buffer.get_or_insert_with(|| tape.storage(Birth::Unseen));
            let part = at(tape, storage, step as u64 % 1000);
            ([part, if step == 0 { input } else { last }], true, part)
        });
        // The parts are first taken from the buffer, each by a view of its own.
        let cases = [("chain", chain, 0), ("in place", in_place, 0), ("parts", parts, 1000)];
        for (name, (tape, execution), views) in cases {
            let (steps, visits) = measure(&tape, execution);
            assert_eq!(steps, LENGTH + views, "{name}");
            assert!(visits <= 6 * LENGTH, "{name}: {visits} visits");
        }
    }
}
