//! The events that open executions may still need.

use std::collections::VecDeque;

use crate::execution::Event;
use crate::ids::EventId;

/// Events by number; those before the first open execution are gone.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: VecDeque<Event>,
    first: u32,
}

impl Log {
    /// The number of the next event.
    pub(crate) fn next(&self) -> EventId {
        let kept = u32::try_from(self.events.len()).expect("event numbers have 32 bits");
        EventId(self.first.checked_add(kept).expect("a session has fewer than 2^32 events"))
    }

    pub(crate) fn push(&mut self, event: Event) -> EventId {
        let id = self.next();
        self.events.push_back(event);
        id
    }

    /// An event that is kept.
    pub(crate) fn get(&self, id: EventId) -> Option<&Event> {
        self.events.get(id.0.checked_sub(self.first)? as usize)
    }

    /// The events from this one on that are kept, in order.
    pub(crate) fn since(&self, id: EventId) -> impl Iterator<Item = (EventId, &Event)> {
        let skipped = id.0.saturating_sub(self.first) as usize;
        let numbers = (self.first..).map(EventId);
        numbers.zip(&self.events).skip(skipped)
    }

    /// Drops every event before this one.
    pub(crate) fn release(&mut self, until: EventId) {
        let gone = until.0.saturating_sub(self.first) as usize;
        self.events.drain(..gone.min(self.events.len()));
        self.first = self.first.max(until.0);
    }
}
