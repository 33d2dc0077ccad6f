//! A loaded bundle that can be stepped.
#![expect(unsafe_code, reason = "reads and writes memory that sessions share, between runs")]

use std::collections::BTreeMap;

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes, nearest};
use veracity_spec::{PortRef, ReorderMap};
use veracity_tensor::{DType, Shape, Tensor, TensorView};

use crate::memory::{Memory, Phase};
use crate::plan::{InputId, OutputId, Plan, PlannedPort, Source, StateId};
use crate::reorder::Reordered;
use crate::stage::{SessionFacts, Stage};

/// A loaded bundle.
///
/// Write every input, [`Runner::step`], read the outputs. State persists between steps until
/// [`Runner::reset`].
pub struct Runner {
    plan: Plan,
    memory: Memory,
    stages: Vec<Stage>,
    /// What each state starts from; `None` is zeros.
    initial: Vec<Option<Tensor>>,
    /// Phase of the next step.
    phase: Phase,
    /// Phase of the last step that succeeded; `None` before one did, and after one failed.
    finished: Option<Phase>,
    /// Which inputs were written since the last step.
    written: Vec<bool>,
    warnings: Vec<Diagnostic>,
    /// Inputs and outputs that the caller has in another order than the bundle.
    reordered: Reordered,
}

impl Runner {
    pub(crate) fn assemble(
        plan: Plan,
        memory: Memory,
        stages: Vec<Stage>,
        initial: Vec<Option<Tensor>>,
        warnings: Vec<Diagnostic>,
    ) -> Self {
        let written = vec![false; plan.inputs.len()];
        let phase = Phase::Staged;
        let (finished, reordered) = (None, Reordered::default());
        let mut runner =
            Self { plan, memory, stages, initial, phase, finished, written, warnings, reordered };
        runner.reset();
        runner
    }

    /// The pipeline's inputs, in the order of [`InputId`].
    pub fn inputs(&self) -> &[PlannedPort] {
        &self.plan.inputs
    }

    /// The pipeline's outputs, in the order of [`OutputId`].
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = &PlannedPort> {
        self.plan.outputs.iter().map(|value| &self.plan.values[value.0].port)
    }

    /// The feedback inputs, in the order of [`StateId`].
    pub fn states(&self) -> impl ExactSizeIterator<Item = &PlannedPort> {
        self.plan.states.iter().map(|state| &state.port)
    }

    /// What was noticed while loading and did not stop it.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// From here on takes inputs and gives outputs in the order of a map that fits the bundle.
    pub(crate) fn reorder(&mut self, map: &ReorderMap) {
        self.reordered = Reordered::new(map, &self.plan);
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The phase of the last step, if it succeeded.
    pub(crate) fn finished(&self) -> Option<Phase> {
        self.finished
    }

    pub(crate) fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    /// What runs the bundle, in the order in which it runs.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = &SessionFacts> {
        self.stages.iter().map(Stage::facts)
    }

    /// Copies row-major elements into an input. Refused when dtype or shape differ from the
    /// port's; nothing is converted.
    pub fn write_input(
        &mut self,
        input: InputId,
        dtype: DType,
        dims: &[usize],
        bytes: &[u8],
    ) -> Result<()> {
        check_fits(&self.plan.inputs[input.0], dtype, dims)?;
        check_filled(&self.plan.inputs[input.0], bytes)?;
        check_bools(&self.plan.inputs[input.0], bytes)?;
        self.input_mut(input).copy_from_slice(bytes);
        Ok(())
    }

    /// Copies a view, strided or not, into an input.
    pub fn write_input_view(&mut self, input: InputId, view: &TensorView<'_>) -> Result<()> {
        let bytes = view.to_bytes();
        self.write_input(input, view.dtype(), view.shape().dims(), &bytes)
    }

    /// The memory of an input, for writing in place. Counts as writing the input.
    pub fn input_mut(&mut self, input: InputId) -> &mut [u8] {
        self.written[input.0] = true;
        if let Some(given) = self.reordered.input_mut(input) {
            return given;
        }
        // SAFETY: `&mut self` means that no session of this runner runs, and no other slice of
        // this memory is alive.
        unsafe { self.memory.inputs[input.0].bytes_mut() }
    }

    /// Forgets which inputs were written, so that the next step needs all of them again.
    pub fn forget_inputs(&mut self) {
        self.written.fill(false);
    }

    /// Runs every node once.
    ///
    /// Refused when an input was not written since the last step. When a node fails, the state is
    /// as it was before the step, the inputs still count as written, and there are no outputs to
    /// read until a step succeeds.
    pub fn step(&mut self) -> Result<()> {
        if !self.written.iter().all(|&written| written) {
            return Err(self.missing_inputs());
        }
        self.finished = None;
        for (input, given) in self.reordered.inputs() {
            // SAFETY: `&mut self` means that no session of this runner runs, and no other slice of
            // this memory is alive.
            given.put_into(unsafe { self.memory.inputs[input.0].bytes_mut() });
        }
        for stage in &mut self.stages {
            stage.run(self.phase)?;
        }
        for (output, given) in self.reordered.outputs_mut() {
            let written = self.memory.written(self.plan.outputs[output.0], self.phase);
            // SAFETY: the sessions of this runner have run, and `&mut self` keeps them from
            // running again.
            given.take_from(unsafe { written.bytes() });
        }
        self.finished = Some(self.phase);
        self.phase = self.phase.next();
        self.written.fill(false);
        Ok(())
    }

    /// The elements of an output of the last step, row-major.
    pub fn output_bytes(&self, output: OutputId) -> Result<&[u8]> {
        let finished = self.finished.ok_or_else(no_step_finished)?;
        if let Some(given) = self.reordered.output(output) {
            return Ok(given);
        }
        let buffer = self.memory.written(self.plan.outputs[output.0], finished);
        // SAFETY: `&self` keeps `step` from running while the slice lives.
        Ok(unsafe { buffer.bytes() })
    }

    /// A copy of the value at an input of a node, in the bundle's own order: what was given, the state that the next step
    /// will read, or what an earlier node wrote in the last step. `None` for a name that is not
    /// there, for inputs inside of a merged group, and for written values before a step finished.
    pub fn input_value(&self, node: &str, port: &str) -> Option<Tensor> {
        let mut inputs = self.plan.stages.iter().flat_map(|stage| &stage.inputs);
        let named = |key: &PortRef| key.node == node && key.port == port;
        let (_, source) = inputs.find(|(planned, _)| named(&planned.key))?;
        let phase = match source {
            Source::Value(_) => self.finished?,
            Source::Input(_) | Source::State(_) => self.phase,
        };
        // SAFETY: `&self` keeps `step` from running while the copy is made.
        Some(unsafe { self.memory.source(*source, phase).to_tensor() })
    }

    /// Puts every state back to its initial value. Memory that was handed out is not touched.
    pub fn reset(&mut self) {
        self.phase = Phase::Staged;
        self.finished = None;
        self.written.fill(false);
        for index in 0..self.memory.state_count() {
            let staged = self.memory.state(StateId(index), Phase::Staged);
            // SAFETY: `&mut self` means that no session of this runner runs.
            let staged = unsafe { staged.bytes_mut() };
            match &self.initial[index] {
                Some(tensor) => staged.copy_from_slice(tensor.bytes()),
                None => staged.fill(0),
            }
        }
    }

    /// Replaces a state: the next step reads this value instead.
    pub fn write_state(&mut self, state: StateId, view: &TensorView<'_>) -> Result<()> {
        let port = &self.plan.states[state.0].port;
        check_fits(port, view.dtype(), view.shape().dims())?;
        let bytes = view.to_bytes();
        check_bools(port, &bytes)?;
        self.stage_states();
        let staged = self.memory.state(state, Phase::Staged);
        // SAFETY: `&mut self` means that no session of this runner runs.
        unsafe { staged.bytes_mut().copy_from_slice(&bytes) };
        Ok(())
    }

    /// A copy of every state that the next step will read.
    pub fn save_states(&self) -> Vec<Tensor> {
        (0..self.memory.state_count())
            .map(|index| {
                let buffer = self.memory.state(StateId(index), self.phase);
                // SAFETY: `&self` keeps `step` from running while the copy is made.
                unsafe { buffer.to_tensor() }
            })
            .collect()
    }

    /// Moves every state into staging, so that one of them can be replaced.
    fn stage_states(&mut self) {
        for index in 0..self.memory.state_count() {
            let current = self.memory.state(StateId(index), self.phase);
            let staged = self.memory.state(StateId(index), Phase::Staged);
            if current.as_mut_ptr() != staged.as_mut_ptr() {
                // SAFETY: `&mut self` means that no session runs, and the two buffers differ.
                unsafe { staged.bytes_mut().copy_from_slice(current.bytes()) };
            }
        }
        self.phase = Phase::Staged;
    }

    /// One step with named tensors. Every pipeline input must be there; feedback inputs may be,
    /// and then replace the state. Allocates; control loops use [`Runner::write_input`].
    pub fn run(&mut self, inputs: &BTreeMap<String, Tensor>) -> Result<BTreeMap<String, Tensor>> {
        let saved = self.save_states();
        self.run_unsaved(inputs).inspect_err(|_| self.restore_states(&saved))
    }

    fn run_unsaved(
        &mut self,
        inputs: &BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>> {
        self.written.fill(false);
        for (key, tensor) in inputs {
            match self.find_target(key)? {
                Target::Input(input) => self.write_input_view(input, &tensor.view())?,
                Target::State(state) => self.write_state(state, &tensor.view())?,
            }
        }
        self.step()?;
        let keys: Vec<String> = self.outputs().map(|port| port.key.to_string()).collect();
        keys.into_iter()
            .enumerate()
            .map(|(index, key)| Ok((key, self.output_tensor(OutputId(index))?)))
            .collect()
    }

    /// Puts back what [`Runner::save_states`] gave.
    pub fn restore_states(&mut self, saved: &[Tensor]) {
        self.stage_states();
        for (index, tensor) in saved.iter().enumerate() {
            let staged = self.memory.state(StateId(index), Phase::Staged);
            // SAFETY: `&mut self` means that no session of this runner runs.
            unsafe { staged.bytes_mut().copy_from_slice(tensor.bytes()) };
        }
    }

    /// A copy of an output of the last step.
    pub fn output_tensor(&self, output: OutputId) -> Result<Tensor> {
        let port = &self.plan.values[self.plan.outputs[output.0].0].port;
        Tensor::from_bytes(port.dtype, port.shape.clone(), self.output_bytes(output)?)
    }

    /// What a key `node/port` may be written to. Refused with the nearest known key.
    pub fn find_target(&self, key: &str) -> Result<Target> {
        let is_key = |port: &PlannedPort| port.has_key(key);
        if let Some(index) = self.plan.inputs.iter().position(is_key) {
            return Ok(Target::Input(InputId(index)));
        }
        if let Some(index) = self.states().position(is_key) {
            return Ok(Target::State(StateId(index)));
        }
        Err(self.unknown_input(key))
    }

    #[cold]
    fn unknown_input(&self, key: &str) -> Refusal {
        let mut stage_inputs = self.plan.stages.iter().flat_map(|stage| &stage.inputs);
        if stage_inputs.any(|(port, _)| port.has_key(key)) {
            return Diagnostic::error(
                codes::INPUT_NOT_SETTABLE,
                format!("{key:?} is computed by another node of the pipeline"),
            )
            .hint("give the pipeline's inputs only")
            .into();
        }
        let known: Vec<String> =
            self.plan.inputs.iter().chain(self.states()).map(|port| port.key.to_string()).collect();
        let hint = match nearest(key, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("the inputs are {}", known.join(", ")),
        };
        let message = format!("there is no input {key:?}");
        Diagnostic::error(codes::INPUT_UNKNOWN, message).hint(hint).into()
    }

    #[cold]
    fn missing_inputs(&self) -> Refusal {
        let missing = self.plan.inputs.iter().zip(&self.written).filter(|(_, written)| !**written);
        let diagnostics = missing.map(|(port, _)| {
            Diagnostic::error(codes::INPUT_MISSING, format!("input \"{}\" was not given", port.key))
                .at(Place::port(&port.key.node, &port.key.port))
                .hint("every input must be given on every step; old values are never reused")
        });
        Refusal::from_errors_in(diagnostics.collect()).expect("an input is missing")
    }
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.sessions()).finish()
    }
}

/// What a key given by a caller means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A pipeline input.
    Input(InputId),
    /// A feedback input.
    State(StateId),
}

#[cold]
fn no_step_finished() -> Refusal {
    Diagnostic::error(codes::STEP_FAILED, "there are no outputs: no step has finished").into()
}

fn check_fits(port: &PlannedPort, dtype: DType, dims: &[usize]) -> Result<()> {
    if port.dtype == dtype && port.shape.dims() == dims {
        return Ok(());
    }
    Err(misfit(port, dtype, dims))
}

fn check_filled(port: &PlannedPort, bytes: &[u8]) -> Result<()> {
    let wanted = port.shape.elements() * port.dtype.size();
    if bytes.len() == wanted {
        return Ok(());
    }
    let message = format!("input \"{}\" takes {wanted} bytes, got {}", port.key, bytes.len());
    Err(Diagnostic::error(codes::TENSOR_SIZE_MISMATCH, message).into())
}

/// Engines compute with the bits of a bool, so any other byte than 0 and 1 gives nonsense.
fn check_bools(port: &PlannedPort, bytes: &[u8]) -> Result<()> {
    if port.dtype != DType::Bool || bytes.iter().all(|&byte| byte <= 1) {
        return Ok(());
    }
    let message = format!("input \"{}\" has a bool that is neither 0 nor 1", port.key);
    let place = Place::port(&port.key.node, &port.key.port);
    Err(Diagnostic::error(codes::INPUT_BOOL, message).at(place).into())
}

#[cold]
fn misfit(port: &PlannedPort, dtype: DType, dims: &[usize]) -> Refusal {
    let place = Place::port(&port.key.node, &port.key.port);
    if port.dtype != dtype {
        return Diagnostic::error(
            codes::INPUT_DTYPE,
            format!("input \"{}\" is {}, got {dtype}", port.key, port.dtype),
        )
        .at(place)
        .hint(format!("convert it to {} first; nothing is converted silently", port.dtype))
        .into();
    }
    let given = Shape::new(dims).map_or_else(|| "an impossible shape".into(), |s| s.to_string());
    Diagnostic::error(
        codes::INPUT_SHAPE,
        format!("input \"{}\" has shape {}, got {given}", port.key, port.shape),
    )
    .at(place)
    .into()
}
