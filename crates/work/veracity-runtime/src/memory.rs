//! The memory of every value of a plan.
//!
//! Each input and each value has one buffer that producer and consumers share. Values that the next
//! step reads have two banks used in turn; state that was set from outside (initial values, an
//! override) waits in a staging buffer of its own, because two consumers of one value may start
//! from different initial values.

use veracity_tensor::SharedTensor;

use crate::plan::{Plan, PlannedPort, Source, StateId, ValueId};

/// Which memory a step reads state from and writes it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Reads staging, writes bank 0: the first step after a reset or an override.
    Staged,
    /// Reads bank 0, writes bank 1.
    ReadZero,
    /// Reads bank 1, writes bank 0.
    ReadOne,
}

impl Phase {
    pub(crate) const ALL: [Self; 3] = [Self::Staged, Self::ReadZero, Self::ReadOne];

    /// The phase of the step after one that succeeded.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Staged | Self::ReadOne => Self::ReadZero,
            Self::ReadZero => Self::ReadOne,
        }
    }

    /// The bank that a step in this phase writes.
    fn written_bank(self) -> usize {
        match self {
            Self::Staged | Self::ReadOne => 0,
            Self::ReadZero => 1,
        }
    }
}

/// Every buffer of a runner.
pub(crate) struct Memory {
    pub(crate) inputs: Vec<SharedTensor>,
    staging: Vec<SharedTensor>,
    /// One bank, or two for values that the next step reads.
    values: Vec<Vec<SharedTensor>>,
    state_sources: Vec<ValueId>,
}

impl Memory {
    pub(crate) fn new(plan: &Plan) -> Self {
        let buffer = |port: &PlannedPort| SharedTensor::zeros(port.dtype, port.shape.clone());
        let banks = |carried: bool| if carried { 2 } else { 1 };
        Self {
            inputs: plan.inputs.iter().map(buffer).collect(),
            staging: plan.states.iter().map(|state| buffer(&state.port)).collect(),
            values: plan
                .values
                .iter()
                .map(|value| (0..banks(value.carried)).map(|_| buffer(&value.port)).collect())
                .collect(),
            state_sources: plan.states.iter().map(|state| state.source).collect(),
        }
    }

    /// The buffer that a step in `phase` writes a value to.
    pub(crate) fn written(&self, value: ValueId, phase: Phase) -> &SharedTensor {
        let banks = &self.values[value.0];
        &banks[phase.written_bank() % banks.len()]
    }

    /// The buffer that a step in `phase` reads a state from.
    pub(crate) fn state(&self, state: StateId, phase: Phase) -> &SharedTensor {
        let banks = &self.values[self.state_sources[state.0].0];
        match phase {
            Phase::Staged => &self.staging[state.0],
            Phase::ReadZero => &banks[0],
            Phase::ReadOne => &banks[1],
        }
    }

    /// The buffer that a step in `phase` reads an input of a stage from.
    pub(crate) fn source(&self, source: Source, phase: Phase) -> &SharedTensor {
        match source {
            Source::Input(input) => &self.inputs[input.0],
            Source::Value(value) => self.written(value, phase),
            Source::State(state) => self.state(state, phase),
        }
    }

    pub(crate) fn state_count(&self) -> usize {
        self.staging.len()
    }
}
