//! What a pass found in a graph.

use veracity_onnx::{NodeId, Patch};

/// A change that a pass proposes.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The node that the match is about, by which it is known from sweep to sweep.
    pub anchor: NodeId,
    /// The change.
    pub patch: Patch,
}

/// A match that a pass left alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Declined {
    /// The node that the match is about.
    pub anchor: NodeId,
    /// The precondition that does not hold, for people: "the convolution has 2 readers".
    pub reason: String,
}

/// Collects what one sweep of a pass finds.
#[derive(Debug, Default)]
pub struct Found {
    pub(crate) proposals: Vec<Proposal>,
    pub(crate) declined: Vec<Declined>,
}

impl Found {
    /// Proposes a change. Of two that touch the same node in one sweep the first is applied; the
    /// pass is asked again afterwards.
    pub fn propose(&mut self, anchor: NodeId, patch: Patch) {
        self.proposals.push(Proposal { anchor, patch });
    }

    /// Says why something that looks like a match was left alone.
    pub fn decline(&mut self, anchor: NodeId, reason: impl Into<String>) {
        self.declined.push(Declined { anchor, reason: reason.into() });
    }

    /// Proposes or declines, for matchers written with `?`: `Ok(None)` is no match at all.
    pub fn settle(&mut self, anchor: NodeId, outcome: Result<Option<Patch>, String>) {
        match outcome {
            Ok(Some(patch)) => self.propose(anchor, patch),
            Ok(None) => {}
            Err(reason) => self.decline(anchor, reason),
        }
    }
}
