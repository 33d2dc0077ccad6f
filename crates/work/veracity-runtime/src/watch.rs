//! Looking at values between nodes while a bundle runs, without copying or searching.
#![expect(unsafe_code, reason = "reads memory that sessions share, between runs")]

use veracity_diag::{Diagnostic, Result, codes};
use veracity_spec::Direction;

use crate::plan::{Plan, Source, ValueId};
use crate::runner::Runner;

/// A port that can be looked at after every step. Only valid for the runner that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch(Watched);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Read(Source),
    Written(ValueId),
}

impl Runner {
    /// A port to look at. `None` for a name that is not there, and inside of a merged group.
    pub fn watch(&self, node: &str, port: &str, direction: Direction) -> Option<Watch> {
        let plan = self.plan();
        let found = match direction {
            Direction::Input => read_at(plan, node, port).map(Watched::Read),
            Direction::Output => written_at(plan, node, port).map(Watched::Written),
        };
        found.map(Watch)
    }

    /// What the last step read or wrote at a port, row-major.
    pub fn watched(&self, watch: Watch) -> Result<&[u8]> {
        let finished = self.finished().ok_or_else(no_step)?;
        let buffer = match watch.0 {
            Watched::Read(source) => self.memory().source(source, finished),
            Watched::Written(value) => self.memory().written(value, finished),
        };
        // SAFETY: `&self` keeps `step` from running while the slice lives. A step writes another
        // bank than the one it reads, so that what was read is still there.
        Ok(unsafe { buffer.bytes() })
    }
}

fn read_at(plan: &Plan, node: &str, port: &str) -> Option<Source> {
    let mut inputs = plan.stages.iter().flat_map(|stage| &stage.inputs);
    let found = inputs.find(|(planned, _)| planned.key.node == node && planned.key.port == port);
    found.map(|(_, source)| *source)
}

fn written_at(plan: &Plan, node: &str, port: &str) -> Option<ValueId> {
    let is_it = |value: &crate::plan::PlannedValue| {
        value.port.key.node == node && value.port.key.port == port
    };
    plan.values.iter().position(is_it).map(ValueId)
}

#[cold]
fn no_step() -> Diagnostic {
    Diagnostic::error(codes::STEP_FAILED, "there is nothing to look at: no step has finished")
}
