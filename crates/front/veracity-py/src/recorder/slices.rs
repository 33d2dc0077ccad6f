//! What the tape found, as Python objects: slices, problems, escapes, edges.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use veracity::trace::{
    self, Closed, Constant, DifferenceKind, EdgeProblemKind, EventId, Geometry, Operand, Problem,
    SiteId, Slice, Step,
};

use super::State;
use super::arguments::PathPart;
use super::call::Payload;
use super::constants::Held;
use super::origin_to_python;

/// A slice with the calls it is made of.
pub(super) struct KeptSlice {
    pub(super) slice: Slice,
    /// The first storage that was new to the pass.
    opened_at: trace::StorageId,
    payloads: HashMap<EventId, Arc<Payload>>,
}

/// The ways in which a value leaves for Python; what is not listed is a read of its memory.
const ESCAPES: [&str; 32] = [
    "its memory",
    "item",
    "__bool__",
    "__float__",
    "__int__",
    "__index__",
    "__contains__",
    "__complex__",
    "tolist",
    "numpy",
    "__array__",
    "equal",
    "allclose",
    "is_nonzero",
    "slice bound",
    "shape",
    "size",
    "numel",
    "__len__",
    "_local_scalar_dense",
    "data_ptr",
    "untyped_storage",
    "storage",
    "__format__",
    "__reversed__",
    "numpy value",
    "__dlpack__",
    "__repr__",
    "__str__",
    "may raise",
    "another thread",
    "another library",
];

/// The number that stands for a way out on the tape.
pub(super) fn escape_number(what: &str) -> u16 {
    let position = ESCAPES.iter().position(|known| *known == what).unwrap_or(0);
    u16::try_from(position).unwrap_or(0)
}

/// Whether a way out is one that torch uses to check arguments.
pub(super) fn is_check(what: &str) -> bool {
    matches!(what, "__bool__" | "equal" | "allclose" | "is_nonzero" | "__repr__" | "__format__")
}

impl State {
    /// Keeps a slice, with the calls it needs; returns its number.
    pub(super) fn keep_slice(&mut self, slice: Slice, opened_at: trace::StorageId) -> usize {
        let events = slice.steps.iter().filter_map(|step| match step {
            Step::Call { event, .. } => Some(*event),
            Step::View { .. } | Step::Copy { .. } => None,
        });
        let payloads = events
            .filter_map(|event| Some((event, Arc::clone(self.payloads.get(&event)?))))
            .collect();
        self.slices.push(Some(KeptSlice { slice, opened_at, payloads }));
        self.slices.len() - 1
    }

    fn location(&self, site: SiteId) -> &str {
        self.sites.location(site)
    }
}

/// `{"problems": [(code, message, location)], "escapes": [(what, location, fingerprint)],
/// "trails": [what Python kept of the place of each escape],
/// "inputs": [(port, origin, glue location, used)]}`.
pub(super) fn closed_to_python<'py>(
    py: Python<'py>,
    state: &State,
    closed: &Closed,
    opened_at: trace::StorageId,
) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    let problems = PyList::empty(py);
    for problem in &closed.problems {
        problems.append(problem_to_python(py, state, problem)?)?;
    }
    for constant in &closed.slice.constants {
        if constant.storage >= opened_at
            && let Some(site) = state.drawn.get(&constant.storage)
        {
            let none: Option<u32> = None;
            problems.append(("random", state.location(*site), none, Vec::<u32>::new()))?;
        }
    }
    let inputs: Vec<_> = closed
        .inputs
        .iter()
        .map(|input| {
            let glue = input.glue.map(|site| state.location(site));
            (input.port.0, input.origin.map(origin_to_python), glue, input.used)
        })
        .collect();
    answer.set_item("problems", problems)?;
    set_escapes(py, state, &closed.escapes, &answer)?;
    answer.set_item("inputs", inputs)?;
    Ok(answer)
}

/// `"escapes": [(what, location, fingerprint)], "trails": [what Python kept of the place of each]`.
pub(super) fn set_escapes(
    py: Python<'_>,
    state: &State,
    escapes: &[trace::Escape],
    answer: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let described = escapes.iter().map(|escape| {
        let what = ESCAPES.get(usize::from(escape.kind)).unwrap_or(&ESCAPES[0]);
        (*what, state.location(escape.site), escape.fingerprint)
    });
    let trails = escapes.iter().map(|escape| state.sites.trail(py, escape.site));
    answer.set_item("escapes", described.collect::<Vec<_>>())?;
    answer.set_item("trails", trails.collect::<Vec<_>>())
}

/// `(what, location, node, ports)`: the front gives it a code and words.
fn problem_to_python<'py>(
    py: Python<'py>,
    state: &State,
    problem: &Problem,
) -> PyResult<Bound<'py, PyTuple>> {
    let (what, site, node, ports): (&str, Option<SiteId>, Option<u32>, Vec<u32>) = match problem {
        Problem::Mixed { site, other } => ("mixed", Some(*site), Some(other.0), vec![]),
        Problem::OutputUntraced { port } => ("untraced", None, None, vec![port.0]),
        Problem::UnmarkedUse { site, origin_node } => {
            ("unmarked", Some(*site), origin_node.map(|node| node.0), vec![])
        }
        Problem::BornUnseen { site } => ("unseen", Some(*site), None, vec![]),
        Problem::InputsOverlap { site, ports } => {
            ("overlap", Some(*site), None, vec![ports.0.0, ports.1.0])
        }
        Problem::PartlyInput { site, port } => ("partly", Some(*site), None, vec![port.0]),
        Problem::Random { site, .. } => ("random", Some(*site), None, vec![]),
    };
    let location = site.map_or("", |site| state.location(site));
    (what, location, node, ports).into_pyobject(py)
}

/// The pieces of `veracity.tracing.slice`.
struct Classes<'py> {
    reference: Bound<'py, PyAny>,
    geometry: Bound<'py, PyAny>,
    call: Bound<'py, PyAny>,
    view: Bound<'py, PyAny>,
    copy: Bound<'py, PyAny>,
    input: Bound<'py, PyAny>,
    constant: Bound<'py, PyAny>,
    slice: Bound<'py, PyAny>,
}

impl<'py> Classes<'py> {
    fn import(py: Python<'py>) -> PyResult<Self> {
        let module = py.import("veracity.tracing.slice")?;
        Ok(Self {
            reference: module.getattr("Ref")?,
            geometry: module.getattr("Geometry")?,
            call: module.getattr("Call")?,
            view: module.getattr("View")?,
            copy: module.getattr("Copy")?,
            input: module.getattr("InputUse")?,
            constant: module.getattr("ConstantUse")?,
            slice: module.getattr("Slice")?,
        })
    }

    fn reference(&self, operand: &Operand) -> PyResult<Bound<'py, PyAny>> {
        match operand {
            Operand::Input(index) => self.reference.call1(("input", *index)),
            Operand::Constant(index) => self.reference.call1(("constant", *index)),
            Operand::Step { step, output } => self.reference.call1(("step", *step, *output)),
        }
    }

    fn geometry(&self, geometry: &Geometry) -> PyResult<Bound<'py, PyAny>> {
        let py = self.geometry.py();
        let sizes = PyTuple::new(py, geometry.sizes.iter().copied())?;
        let strides = PyTuple::new(py, geometry.strides.iter().copied())?;
        self.geometry.call1((geometry.offset, sizes, strides))
    }
}

pub(super) fn slice_to_python<'py>(
    py: Python<'py>,
    state: &State,
    number: usize,
    input_names: &[String],
    output_ports: &[u32],
) -> PyResult<Bound<'py, PyAny>> {
    let classes = Classes::import(py)?;
    let kept = state
        .slices
        .get(number)
        .and_then(Option::as_ref)
        .ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(format!("no slice {number}")))?;
    let inputs = PyList::empty(py);
    for input in &kept.slice.inputs {
        let name = input_names.get(input.port.0 as usize).map_or("", String::as_str);
        inputs.append(classes.input.call1((name, input.written))?)?;
    }
    let constants = PyList::empty(py);
    for constant in &kept.slice.constants {
        let mut tensor = constant_tensor(py, state, constant)?;
        if !constant.read {
            // Whatever is in it is overwritten before anybody looks: the same bytes every time.
            tensor = blank(&tensor)?;
        }
        let lasting = constant.written && constant.read && constant.storage < kept.opened_at;
        let location = state.location(constant.site);
        let arguments = (tensor, constant.written, lasting, location);
        constants.append(classes.constant.call1(arguments)?)?;
    }
    let steps = PyList::empty(py);
    for step in &kept.slice.steps {
        steps.append(step_to_python(py, state, kept, &classes, step)?)?;
    }
    let outputs = PyList::empty(py);
    for port in output_ports {
        // The last mark of a port counts: a state may be updated more than once.
        let found = kept.slice.outputs.iter().rfind(|(marked, _)| marked.0 == *port);
        if let Some((_, operand)) = found {
            outputs.append(classes.reference(operand)?)?;
        }
    }
    classes.slice.call1((inputs, constants, steps, outputs))
}

fn step_to_python<'py>(
    py: Python<'py>,
    state: &State,
    kept: &KeptSlice,
    classes: &Classes<'py>,
    step: &Step,
) -> PyResult<Bound<'py, PyAny>> {
    match step {
        Step::Call { event, site, operands, .. } => {
            let payload = &kept.payloads[event];
            let refs: Vec<_> =
                operands.iter().map(|o| classes.reference(o)).collect::<PyResult<_>>()?;
            call_to_python(py, classes, payload, &refs, state.location(*site))
        }
        Step::View { base, base_geometry, geometry, site, .. } => {
            let base_geometry = match base_geometry {
                Some(base_geometry) => classes.geometry(base_geometry)?,
                None => flat_geometry(py, classes, geometry)?,
            };
            let dtype = state.storages.dtype(geometry.element).bind(py);
            classes.view.call1((
                classes.reference(base)?,
                base_geometry,
                classes.geometry(geometry)?,
                dtype,
                state.location(*site),
            ))
        }
        Step::Copy { source, site } => {
            classes.copy.call1((classes.reference(source)?, state.location(*site)))
        }
    }
}

fn call_to_python<'py>(
    py: Python<'py>,
    classes: &Classes<'py>,
    payload: &Payload,
    refs: &[Bound<'py, PyAny>],
    location: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let positional: Vec<_> =
        payload.positional.iter().map(|a| a.to_python(py, refs)).collect::<PyResult<_>>()?;
    let keywords = PyDict::new(py);
    for (key, argument) in &payload.keywords {
        keywords.set_item(key, argument.to_python(py, refs)?)?;
    }
    let mut outputs = Vec::with_capacity(payload.outputs.len());
    for path in &payload.outputs {
        outputs.push(path_to_python(py, path)?);
    }
    classes.call.call1((
        payload.func.bind(py),
        PyTuple::new(py, positional)?,
        keywords,
        PyTuple::new(py, outputs)?,
        location,
    ))
}

fn path_to_python<'py>(py: Python<'py>, path: &[PathPart]) -> PyResult<Bound<'py, PyTuple>> {
    let parts = path.iter().map(|part| match part {
        PathPart::Index(index) => Ok(index.into_pyobject(py)?.into_any()),
        PathPart::Key(key) => Ok(key.into_pyobject(py)?.into_any()),
    });
    PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)
}

/// The flat form of a whole storage: as long as the snapshot of it.
fn flat_geometry<'py>(
    py: Python<'py>,
    classes: &Classes<'py>,
    geometry: &Geometry,
) -> PyResult<Bound<'py, PyAny>> {
    let reach: u64 = geometry
        .sizes
        .iter()
        .zip(geometry.strides.iter())
        .map(|(size, stride)| size.saturating_sub(1) * stride.unsigned_abs())
        .sum();
    let length = geometry.offset + reach + 1;
    classes.geometry.call1((0, PyTuple::new(py, [length])?, PyTuple::new(py, [1])?))
}

fn blank<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    tensor.py().import("torch")?.call_method1("zeros_like", (tensor,))
}

/// The value that a constant had when it was recorded.
fn constant_tensor<'py>(
    py: Python<'py>,
    state: &State,
    constant: &Constant,
) -> PyResult<Bound<'py, PyAny>> {
    let place = (constant.storage, constant.count);
    let what = format!("a constant (read at {})", state.location(constant.site));
    value_of_memory(py, state, place, constant.geometry.as_ref(), &what)
}

/// The value that a tensor on a storage had at a write count; without geometry, all of the storage.
pub(super) fn value_of_memory<'py>(
    py: Python<'py>,
    state: &State,
    (storage, count): (trace::StorageId, u32),
    geometry: Option<&Geometry>,
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let held = state.constants.get(storage, count).ok_or_else(|| {
        pyo3::exceptions::PyRuntimeError::new_err(format!("the value of {what} is gone"))
    })?;
    let (tensor, flat) = match held {
        Held::Live(tensor) => (tensor.bind(py), false),
        Held::Snapshot(tensor) => (tensor.bind(py), true),
    };
    let module = py.import("veracity.tracing.memory")?;
    match geometry {
        None => module.getattr("whole_storage")?.call1((tensor,)),
        Some(geometry) => {
            let sizes = PyTuple::new(py, geometry.sizes.iter().copied())?;
            let strides = PyTuple::new(py, geometry.strides.iter().copied())?;
            let dtype = state.storages.dtype(geometry.element).bind(py);
            let flags = geometry.element & 3;
            let arguments = (tensor, flat, geometry.offset, sizes, strides, dtype, flags);
            module.getattr("view_of_memory")?.call1(arguments)
        }
    }
}

pub(super) fn differences(
    state: &State,
    first: usize,
    later: usize,
) -> Vec<(String, String, usize, usize)> {
    let slice = |number: usize| state.slices.get(number).and_then(Option::as_ref);
    let (Some(first), Some(later)) = (slice(first), slice(later)) else { return Vec::new() };
    let found = trace::differences(&first.slice, &later.slice);
    found
        .into_iter()
        .map(|difference| {
            let (what, first, second) = match difference.kind {
                DifferenceKind::Length => ("length", 0, 0),
                DifferenceKind::Op => ("op", 0, 0),
                DifferenceKind::Literals => ("literals", 0, 0),
                DifferenceKind::Wiring => ("wiring", 0, 0),
                DifferenceKind::Constant { first, later } => ("constant", first, later),
            };
            let made_at = match difference.kind {
                DifferenceKind::Constant { later: position, .. } => {
                    state.storages.made_at(later.slice.constants[position].storage)
                }
                _ => None,
            };
            let location = made_at.or(difference.site).map_or("", |site| state.location(site));
            (what.to_owned(), location.to_owned(), first, second)
        })
        .collect()
}

/// `{"edges": [((node, port), (node, port), delay)], "problems": [((node, port), what)],
/// "reused": [((node, port), (node, port))],
/// "order": [node]}`.
pub(super) fn graph_to_python<'py>(py: Python<'py>, state: &State) -> PyResult<Bound<'py, PyDict>> {
    let graph = state.tape.graph();
    let edges: Vec<_> = graph
        .edges
        .iter()
        .map(|edge| {
            let (source, target) = (edge.source, edge.target);
            ((source.0.0, source.1.0), (target.0.0, target.1.0), edge.delay)
        })
        .collect();
    let problems: Vec<_> = graph
        .problems
        .iter()
        .map(|problem| ((problem.target.0.0, problem.target.1.0), edge_problem(&problem.kind)))
        .collect();
    let order: Vec<u32> = graph.order.iter().map(|node| node.0).collect();
    let answer = PyDict::new(py);
    answer.set_item("edges", edges)?;
    let reused: Vec<_> = graph
        .reused
        .iter()
        .map(|edge| ((edge.source.0.0, edge.source.1.0), (edge.target.0.0, edge.target.1.0)))
        .collect();
    answer.set_item("problems", problems)?;
    answer.set_item("reused", reused)?;
    answer.set_item("order", order)?;
    Ok(answer)
}

/// `(what, the outputs concerned, two numbers)`: the front gives it words.
fn edge_problem(kind: &EdgeProblemKind) -> (&'static str, Vec<(u32, u32)>, (u32, u32)) {
    let number = |(node, port): (trace::NodeId, trace::PortId)| (node.0, port.0);
    match *kind {
        EdgeProblemKind::DelayVaries { source, delays, .. } => {
            ("delay", vec![number(source)], delays)
        }
        EdgeProblemKind::SourceVaries { sources, executions } => {
            ("source", vec![number(sources.0), number(sources.1)], executions)
        }
        EdgeProblemKind::SourceLost { source, execution } => {
            ("lost", vec![number(source)], (execution, execution))
        }
    }
}
