//! From two or more executions to the states of their node.

use std::collections::{BTreeMap, HashSet};

use super::provenance::{Origin, Provenance};
use super::side::Side;
use super::{Carry, Content, Doubt, DoubtKind, Spot, State, at_end, content};
use crate::execution::{OutputMark, Read, Time};
use crate::ids::{PortId, SiteId, StorageId, ViewId};
use crate::memory::Birth;
use crate::report::Escape;
use crate::slicer::{Leaf, Place, comes_from_inputs, leaves};
use crate::tape::Tape;

pub(super) struct Inference<'a> {
    pub(super) tape: &'a mut Tape,
    /// The first execution, and others between it and the latest.
    pub(super) earlier: &'a [Side],
    pub(super) latest: &'a Side,
    states: Vec<State>,
    doubts: Vec<Doubt>,
    made_anew: Vec<(SiteId, ViewId)>,
    /// Memory that no execution has to do with.
    fixed: HashSet<StorageId>,
}

impl<'a> Inference<'a> {
    pub(super) fn new(tape: &'a mut Tape, earlier: &'a [Side], latest: &'a Side) -> Self {
        let (states, doubts, made_anew, fixed) = Default::default();
        Self { tape, earlier, latest, states, doubts, made_anew, fixed }
    }

    /// What the state becomes may itself start from state: until nothing new is found.
    pub(super) fn run(mut self) -> Carry {
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
                self.check_fixed(&found);
                break;
            }
            for (storage, leaves) in open {
                settled.insert(storage);
                self.settle(&leaves);
            }
        }
        let escapes = self.escapes_of_state();
        self.doubts.sort_unstable();
        self.doubts.dedup();
        self.states.sort_by_key(|state| (state.latest.count, state.spot));
        Carry { states: self.states, doubts: self.doubts, made_anew: self.made_anew, escapes }
    }

    /// Values that no input reaches and that left for Python, where an earlier execution made or
    /// wrote what they start from.
    fn escapes_of_state(&self) -> Vec<Escape> {
        let mut alone = self.latest.execution.clone();
        let plain = std::mem::take(&mut alone.plain_escapes);
        let mut is_of_state = |mark: &OutputMark| {
            alone.outputs = vec![mark.clone()];
            let found = leaves(self.tape, self.latest.id, &alone);
            found.iter().any(|leaf| self.have_to_do_with(self.earlier, leaf.storage, leaf.view))
        };
        plain.into_iter().filter(|(_, mark)| is_of_state(mark)).map(|(escape, _)| escape).collect()
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
            Provenance::Fixed => {
                self.fixed.insert(whole.storage);
                return;
            }
            Provenance::Doubt(kind) => kind,
            Provenance::Next { storage: on, geometry, delay, origin } => {
                match self.beginning(&whole, delay, origin) {
                    Ok((spot, beginning)) => {
                        let next = self.tape.memory.intern(on, &geometry);
                        let Leaf { storage, count, view, site, .. } = whole;
                        let latest = Content { storage, count, view };
                        self.states.push(State { spot, site, beginning, latest, next });
                        return;
                    }
                    Err(kind) => kind,
                }
            }
        };
        self.doubts.push(Doubt { site: whole.site, kind });
    }

    /// What the executions read in the place of a state before the first value arrived there, when
    /// all of them read it after the same number of executions.
    fn beginning(
        &self,
        leaf: &Leaf,
        delay: u32,
        origin: Origin,
    ) -> Result<(Spot, Vec<Option<Content>>), DoubtKind> {
        let spot = self.latest.spot(leaf.place).ok_or(DoubtKind::MadeOnce)?;
        let mut beginning = vec![None; delay as usize];
        for (index, side) in self.earlier.iter().enumerate() {
            let Some((read, time)) = side.read(self.tape, spot) else { continue };
            if side.number() >= delay {
                self.check_regular(index, &read, delay, origin)?;
                continue;
            }
            let own = comes_from_inputs(self.tape, side.id, &side.execution, &read, time);
            let own = own || (self.fills(side, &read, time) && !self.latest_fills(spot));
            if own || (origin != Origin::Moved && self.is_left_by(&self.earlier[..index], &read)) {
                return Err(DoubtKind::FilledFromInput);
            }
            beginning[side.number() as usize] = Some(content(&read));
        }
        Ok((spot, beginning))
    }

    /// Whether an execution wrote memory from its inputs before it read it.
    ///
    /// Two names of one memory may part after the first execution: then its writes by the one name
    /// are no beginning of the other.
    fn fills(&self, side: &Side, read: &Read, time: Time) -> bool {
        let memory = &self.tape.memory;
        memory.storage(read.storage).written_by.iter().any(|id| {
            let event = self.tape.log.get(*id).filter(|event| event.concerns(side.id));
            event.is_some_and(|event| {
                let mut on = event.written().filter(|written| written.storage == read.storage);
                event.time < time
                    && !event.plain
                    && on.any(|written| memory.overlaps(written.view, read.view))
            })
        })
    }

    fn latest_fills(&self, spot: Spot) -> bool {
        let read = self.latest.read(self.tape, spot);
        read.is_some_and(|(read, time)| self.fills(self.latest, &read, time))
    }

    /// Whether one of these executions has to do with what a later one reads.
    fn is_left_by(&self, sides: &[Side], read: &Read) -> bool {
        self.have_to_do_with(sides, read.storage, read.view)
    }

    fn have_to_do_with(&self, sides: &[Side], storage: StorageId, view: ViewId) -> bool {
        sides.iter().any(|side| {
            let origin = self.origin(side, storage, view);
            origin.is_some_and(|origin| !self.is_for_good(side, origin))
        })
    }

    /// Holds what an execution read against what the latest one did.
    fn check_regular(
        &self,
        index: usize,
        read: &Read,
        delay: u32,
        origin: Origin,
    ) -> Result<(), DoubtKind> {
        if matches!(origin, Origin::Moved | Origin::Written) {
            return Ok(());
        }
        let from = self.earlier[index].number() - delay;
        let Some(maker) = self.earlier.iter().find(|side| side.number() == from) else {
            return Ok(()); // it was not recorded
        };
        let found = self.origin(maker, read.storage, read.view);
        let regular = match found {
            Some(found) => delay == 1 || found == origin || matches!(origin, Origin::Filled(..)),
            // The code may begin anew, with memory that nobody has to do with.
            None => delay == 1 && !self.is_left_by(&self.earlier[..index], read),
        };
        if regular { Ok(()) } else { Err(DoubtKind::Irregular) }
    }

    /// Tells about places that have not moved on yet: memory from the beginning, where a value of the
    /// node is read one day. And notes memory that somebody else makes anew each time: it may hold
    /// another value next time.
    fn check_fixed(&mut self, found: &[Leaf]) {
        for leaf in found.iter().filter(|leaf| self.fixed.contains(&leaf.storage)) {
            let Some(spot) = self.latest.spot(leaf.place) else { continue };
            if self.is_beside_a_state(leaf, spot) || self.has_moved(leaf, spot) {
                self.doubts.push(Doubt { site: leaf.site, kind: DoubtKind::NotFilled });
            } else if self.is_made_anew(leaf, spot) {
                self.made_anew.push((leaf.site, leaf.view));
            }
        }
    }

    /// Whether the execution before read other memory in this place, and this one was made after that
    /// and before the latest began.
    fn is_made_anew(&self, leaf: &Leaf, spot: Spot) -> bool {
        // What a pass left that was not recorded was made between two that were, too.
        let is_next = |side: &&Side| side.number() + 1 == self.latest.number();
        let Some(before) = self.earlier.last().filter(is_next) else { return false };
        let between = before.execution.opened_at..self.latest.execution.opened_at;
        let record = self.tape.memory.storage(leaf.storage);
        let was_other =
            before.read(self.tape, spot).is_some_and(|(read, _)| read.storage != leaf.storage);
        let by_nobody = record.made_by.is_empty() && record.birth == Birth::Seen;
        was_other && by_nobody && between.contains(&record.born)
    }

    /// Places of one call that began with the same memory move on one after the other.
    fn is_beside_a_state(&self, leaf: &Leaf, spot: Spot) -> bool {
        let Spot::Argument { site, op, nth, .. } = spot else { return false };
        self.states.iter().any(|state| {
            let began = state
                .beginning
                .first()
                .is_some_and(|first| first.is_some_and(|first| first.storage == leaf.storage));
            began
                && matches!(state.spot, Spot::Argument { site: s, op: o, nth: n, .. }
                    if (s, o, n) == (site, op, nth))
        })
    }

    /// Whether the execution before read other memory in this place, all of it from the beginning.
    fn has_moved(&self, leaf: &Leaf, spot: Spot) -> bool {
        let second = self.earlier.get(1).unwrap_or(self.latest).execution.opened_at;
        let is_old = |storage: StorageId| self.tape.memory.storage(storage).born < second;
        let other = |side: &Side| {
            let read = side.read(self.tape, spot).map(|(read, _)| read.storage);
            read.is_some_and(|storage| storage != leaf.storage && is_old(storage))
        };
        is_old(leaf.storage) && self.earlier.last().is_some_and(other)
    }
}
