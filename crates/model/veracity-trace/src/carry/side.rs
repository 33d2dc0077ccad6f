//! A held execution, with its calls by their place in the code.

use std::collections::HashMap;

use super::Spot;
use crate::execution::{Execution, Read, Time};
use crate::ids::{EventId, ExecutionId, OpId, SiteId};
use crate::slicer::Place;
use crate::tape::Tape;

/// The place of a call in the code: its line, what is called, and how often it was before.
pub(super) type CallKey = (SiteId, OpId, u32);

/// A held execution, with its calls by place.
pub(super) struct Side {
    pub(super) id: ExecutionId,
    pub(super) execution: Execution,
    pub(super) calls: HashMap<CallKey, EventId>,
    pub(super) keys: HashMap<EventId, CallKey>,
}

impl Side {
    pub(super) fn new(tape: &Tape, id: ExecutionId, execution: Execution) -> Self {
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

    pub(super) fn spot(&self, place: Place) -> Option<Spot> {
        match place {
            Place::Output(index) => Some(Spot::Output(index)),
            Place::Read(event, read) => {
                let (site, op, nth) = *self.keys.get(&event)?;
                Some(Spot::Argument { site, op, nth, read })
            }
        }
    }

    /// What it read in a place, and when.
    pub(super) fn read(&self, tape: &Tape, spot: Spot) -> Option<(Read, Time)> {
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

    /// Which of the node's executions it is.
    pub(super) fn number(&self) -> u32 {
        self.execution.number.unwrap_or_default()
    }

    pub(super) fn owns(&self, tape: &Tape, event: EventId) -> bool {
        tape.log.get(event).is_some_and(|event| event.concerns(self.id))
    }
}
