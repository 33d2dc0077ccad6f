//! State that nobody declared, as Python sees it.

use pyo3::prelude::*;
use pyo3::types::PyDict;
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
    /// Whether what the first pass read there was there when the session began.
    #[pyo3(get)]
    begins_before: bool,
}

#[pymethods]
impl CarriedState {
    /// The memory, as `Recorder.view` numbers it, that holds it for the next pass.
    #[getter]
    fn next_view(&self) -> u32 {
        self.carried.next.0
    }

    /// The memory that holds it on the latest pass.
    #[getter]
    fn latest_view(&self) -> u32 {
        self.carried.latest.view.0
    }

    /// How many passes later a value is read.
    #[getter]
    fn delay(&self) -> usize {
        self.carried.delay()
    }
}

/// A state, and the input and output of each value that is under way.
pub(super) type Promoted<'py> = (PyRef<'py, CarriedState>, Vec<(u32, u32)>);

/// What the last of these passes reads that those before left to it: `{"states": [CarriedState],
/// "doubts": [(why, location)]` where that cannot be told, `"made_anew": [(location, view)]` of what
/// others made since the pass before, `"escapes"` and `"trails"` as of a pass that is closed, but of
/// values of state`}`.
pub(super) fn carried<'py>(
    py: Python<'py>,
    state: &mut State,
    passes: &[u32],
) -> PyResult<Bound<'py, PyDict>> {
    let passes: Vec<_> = passes.iter().copied().map(ExecutionId).collect();
    let Carry { states, doubts, made_anew, escapes } = state.tape.carried(&passes);
    let place = |site| state.sites.location(site).to_owned();
    let states = states.into_iter().map(|carried| CarriedState {
        location: place(carried.site),
        spot: format!("{:?}", carried.spot),
        begins_before: state.tape.begins_before(&carried),
        carried,
    });
    let doubts = doubts.iter().map(|doubt| (reason(doubt.kind), place(doubt.site)));
    let made_anew = made_anew.iter().map(|(site, view)| (place(*site), view.0));
    let answer = PyDict::new(py);
    answer.set_item("states", states.collect::<Vec<_>>())?;
    answer.set_item("doubts", doubts.collect::<Vec<_>>())?;
    answer.set_item("made_anew", made_anew.collect::<Vec<_>>())?;
    slices::set_escapes(py, state, &escapes, &answer)?;
    Ok(answer)
}

/// Keeps the program of a pass with states as inputs and outputs.
pub(super) fn program_with(state: &mut State, pass: u32, states: &[Promoted<'_>]) -> usize {
    let promoted = |(one, ports): &Promoted<'_>| {
        let ports = ports.iter().map(|(input, output)| (PortId(*input), PortId(*output)));
        (one.carried.clone(), ports.collect())
    };
    let states: Vec<_> = states.iter().map(promoted).collect();
    let slice = state.tape.program_with(ExecutionId(pass), &states);
    let opened_at = state.storages.next_id();
    state.keep_slice(slice, opened_at)
}

/// What a pass read in the place of a state, counted from the first; `None` if nobody saw it.
pub(super) fn first_value<'py>(
    py: Python<'py>,
    state: &State,
    carried: &CarriedState,
    pass: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let found = carried.carried.beginning.get(pass).copied().flatten();
    found.map(|content| content_tensor(py, state, &content)).transpose()
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

pub(super) fn written_between(
    state: &State,
    passes: &[u32],
    carried: &CarriedState,
) -> Option<String> {
    let passes: Vec<ExecutionId> = passes.iter().copied().map(ExecutionId).collect();
    let site = state.tape.written_between(&passes, carried.carried.spot)?;
    Some(state.sites.location(site).to_owned())
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
        DoubtKind::Irregular => "irregular",
    }
}
