//! State that nobody declared, as Python sees it.

use pyo3::prelude::*;
use veracity::trace::{Carry, Content, DoubtKind, ExecutionId, PortId, State as Carried};

use super::{State, slices};

/// A value that a node hands to its own next pass.
#[pyclass(frozen, module = "veracity._native")]
pub(crate) struct CarriedState {
    carried: Carried,
    /// `file:line` where it is read first.
    #[pyo3(get)]
    location: String,
    /// Equal for the same state on other passes.
    #[pyo3(get)]
    spot: String,
}

#[pymethods]
impl CarriedState {
    /// The memory, as `Recorder.view` numbers it, that holds it for the next pass.
    #[getter]
    fn next_view(&self) -> u32 {
        self.carried.next.0
    }
}

pub(super) type Doubt = (&'static str, String);
pub(super) type Promoted<'py> = (PyRef<'py, CarriedState>, u32, u32);

/// What the latest of three passes reads that the one before left to it: states, and
/// `(why, location)` where that cannot be told.
pub(super) fn carried(
    state: &mut State,
    first: u32,
    previous: u32,
    latest: u32,
) -> (Vec<CarriedState>, Vec<Doubt>) {
    let passes = (ExecutionId(first), ExecutionId(previous), ExecutionId(latest));
    let Carry { states, doubts } = state.tape.carried(passes.0, passes.1, passes.2);
    let states = states.into_iter().map(|carried| CarriedState {
        carried,
        location: state.sites.location(carried.site).to_owned(),
        spot: format!("{:?}", carried.spot),
    });
    let place = |site| state.sites.location(site).to_owned();
    let doubts = doubts.iter().map(|doubt| (reason(doubt.kind), place(doubt.site)));
    (states.collect(), doubts.collect())
}

/// Keeps the program of a pass with states as inputs and outputs.
pub(super) fn program_with(state: &mut State, pass: u32, states: &[Promoted<'_>]) -> usize {
    let states: Vec<_> = states
        .iter()
        .map(|(one, input, output)| (one.carried, PortId(*input), PortId(*output)))
        .collect();
    let slice = state.tape.program_with(ExecutionId(pass), &states);
    let opened_at = state.storages.next_id();
    state.keep_slice(slice, opened_at)
}

pub(super) fn first_value<'py>(
    py: Python<'py>,
    state: &State,
    carried: &CarriedState,
) -> PyResult<Bound<'py, PyAny>> {
    content_tensor(py, state, &carried.carried.first)
}

pub(super) fn value_at<'py>(
    py: Python<'py>,
    state: &State,
    pass: u32,
    carried: &CarriedState,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let found = state.tape.content_at(ExecutionId(pass), carried.carried.spot);
    found.map(|content| content_tensor(py, state, &content)).transpose()
}

fn content_tensor<'py>(
    py: Python<'py>,
    state: &State,
    content: &Content,
) -> PyResult<Bound<'py, PyAny>> {
    let (_, geometry) = state.tape.geometry(content.view);
    let place = (content.storage, content.count);
    slices::value_of_memory(py, state, place, Some(geometry), "a state")
}

fn reason(kind: DoubtKind) -> &'static str {
    match kind {
        DoubtKind::FilledFromInput => "filled",
        DoubtKind::MadeOnce => "once",
        DoubtKind::MadeOutside => "outside",
        DoubtKind::Scattered => "scattered",
        DoubtKind::NotFilled => "not filled",
    }
}
