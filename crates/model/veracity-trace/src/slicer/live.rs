//! Calls that no input reaches, and that are part of a program all the same.
//!
//! What such a call gives is a constant of the program, as long as what it starts from is. Once the
//! memory it starts from is known to be carried over from an earlier execution, the call has to be
//! made again on every pass, like a call on an input.

use std::collections::{HashMap, HashSet};

use crate::execution::{Event, Execution, Time};
use crate::ids::{EventId, ExecutionId, StorageId};
use crate::tape::Tape;

/// Which calls are part of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Liveness<'a> {
    /// Those that inputs reach.
    Inputs,
    /// Those that inputs or these storages reach, and those that make one of these.
    Carried(&'a HashSet<StorageId>),
    /// Every recorded call.
    Everything,
}

/// The calls that are part of a program although no input reaches them.
#[derive(Debug, Default)]
pub(super) struct Live {
    events: HashSet<EventId>,
    /// As [`Execution::bases`], with the writes of these calls.
    bases: Option<HashMap<StorageId, (Time, u32)>>,
}

impl Live {
    pub(super) fn of(
        tape: &Tape,
        id: ExecutionId,
        execution: &Execution,
        liveness: Liveness<'_>,
    ) -> Self {
        let mut reached = match liveness {
            Liveness::Inputs => return Self::default(),
            Liveness::Carried(storages) => storages.clone(),
            Liveness::Everything => HashSet::new(),
        };
        let everything = matches!(liveness, Liveness::Everything);
        let mut live = Self { events: HashSet::new(), bases: Some(HashMap::new()) };
        let mut made: HashSet<StorageId> = HashSet::new();
        for (number, event) in tape.log.since(execution.first_event) {
            if !event.concerns(id) {
                continue;
            }
            let outputs = event.outputs.iter().map(|view| tape.memory.storage_of(*view));
            let outputs: Vec<StorageId> = outputs.collect();
            let read = event.reads.iter().map(|read| read.storage);
            let is_reached = read.chain(outputs.iter().copied()).any(|on| reached.contains(&on));
            if event.plain && !everything && !is_reached {
                continue;
            }
            live.note_bases(execution, event, &made);
            made.extend(outputs.iter().filter(|made| event.reads_on(**made).next().is_none()));
            if event.plain {
                live.events.insert(number);
                reached.extend(outputs);
                reached.extend(event.written().map(|read| read.storage));
            }
        }
        live
    }

    pub(super) fn includes(&self, event: EventId) -> bool {
        self.events.contains(&event)
    }

    /// Storages from outside that the program writes; `None` when no call was added.
    pub(super) fn bases(&self) -> Option<&HashMap<StorageId, (Time, u32)>> {
        self.bases.as_ref()
    }

    fn note_bases(&mut self, execution: &Execution, event: &Event, made: &HashSet<StorageId>) {
        let Some(bases) = self.bases.as_mut() else { return };
        for written in event.written() {
            let marked = execution.marks.iter().any(|mark| mark.storage == written.storage);
            // Beside a mark the recorded base counts: it knows which part is the input.
            let base = match execution.bases.get(&written.storage) {
                Some(base) if marked => *base,
                None if marked => continue,
                _ => (event.time, written.count),
            };
            if !made.contains(&written.storage) {
                bases.entry(written.storage).or_insert(base);
            }
        }
    }
}
