//! One loaded session with the memory it works on.

use serde::Serialize;
use veracity_diag::{Place, Refusal, Result};
use veracity_engine::{Binding, Engine, Session};

use crate::memory::{Memory, Phase};
use crate::plan::PlannedStage;

/// What runs a part of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionFacts {
    /// The node, or the nodes of a merged group joined by `+`.
    pub nodes: String,
    /// Name of the engine.
    pub engine: &'static str,
    /// Version of the library behind it.
    pub engine_version: String,
    /// What it runs on.
    pub device: String,
}

/// A session bound to memory, ready to run in any phase.
pub(crate) struct Stage {
    facts: SessionFacts,
    session: Session,
    /// One binding per phase; all the same when the stage touches no state.
    bindings: [Binding; Phase::ALL.len()],
}

impl Stage {
    pub(crate) fn new(
        nodes: String,
        engine: &dyn Engine,
        mut session: Session,
        stage: &PlannedStage,
        memory: &Memory,
    ) -> Result<Self> {
        let mut bind = |phase| -> Result<Binding> {
            let inputs: Vec<_> = stage
                .inputs
                .iter()
                .map(|(_, source)| memory.source(*source, phase).clone())
                .collect();
            let outputs: Vec<_> =
                stage.outputs.iter().map(|value| memory.written(*value, phase).clone()).collect();
            session.bind(&inputs, &outputs)
        };
        let bindings = if Self::depends_on_phase(stage, memory) {
            [bind(Phase::Staged)?, bind(Phase::ReadZero)?, bind(Phase::ReadOne)?]
        } else {
            [bind(Phase::Staged)?; Phase::ALL.len()]
        };
        let facts = SessionFacts {
            nodes,
            engine: engine.name(),
            engine_version: engine.version(),
            device: session.device(),
        };
        Ok(Self { facts, session, bindings })
    }

    /// Whether the stage reads or writes memory that changes from step to step.
    fn depends_on_phase(stage: &PlannedStage, memory: &Memory) -> bool {
        let differs = |address: &dyn Fn(Phase) -> *mut u8| {
            address(Phase::Staged) != address(Phase::ReadZero)
                || address(Phase::Staged) != address(Phase::ReadOne)
        };
        stage
            .inputs
            .iter()
            .any(|(_, source)| differs(&|phase| memory.source(*source, phase).as_mut_ptr()))
            || stage
                .outputs
                .iter()
                .any(|value| differs(&|phase| memory.written(*value, phase).as_mut_ptr()))
    }

    pub(crate) fn run(&mut self, phase: Phase) -> Result<()> {
        let result = self.session.run(self.bindings[phase as usize]);
        result.map_err(|refusal| self.name_in(refusal))
    }

    pub(crate) fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    #[cold]
    fn name_in(&self, refusal: Refusal) -> Refusal {
        refusal.within(&Place::node(&self.facts.nodes))
    }
}
