//! The hot path of tracing: takes calls apart, runs them, and tells the tape what they did.
//!
//! A call of the user's never fails because of the recorder, and never runs twice: what goes wrong
//! in here is kept as a fault, and the plain result is handed back.

mod arguments;
mod call;
mod carrying;
mod constants;
mod function_mode;
mod operations;
mod plain_arrays;
mod sites;
mod slices;
mod storages;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList, PyTuple};
use veracity::trace::{
    Birth, ExecutionId, NodeId, Origin, PortId, SiteId, StorageId, Tape, ViewId,
};

use self::arguments::TensorTypes;
use self::call::Payload;
pub(crate) use self::carrying::CarriedState;
use self::constants::Constants;
pub(crate) use self::function_mode::FunctionMode;
pub(crate) use self::operations::Operation;
use self::operations::Operations;
use self::sites::Sites;
use self::slices::KeptSlice;
use self::storages::Storages;

thread_local! {
    /// How many handlers are running in this thread: what happens inside one is not recorded.
    static BUSY: Cell<u32> = const { Cell::new(0) };
}

/// Something that cannot be recorded, with its code and place.
pub(super) struct Fault {
    code: &'static str,
    message: String,
    location: String,
}

pub(super) struct State {
    tape: Tape,
    storages: Storages,
    sites: Sites,
    operations: Operations,
    payloads: HashMap<veracity::trace::EventId, std::sync::Arc<Payload>>,
    constants: Constants,
    slices: Vec<Option<KeptSlice>>,
    /// For each open execution, the first storage that was new to it.
    opened_at: HashMap<u32, StorageId>,
    /// Where storages were filled with random numbers that no input had a part in.
    drawn: HashMap<StorageId, SiteId>,
    /// Where storages were written last, while nodes are open.
    written_at: HashMap<StorageId, SiteId>,
    faults: Vec<Fault>,
}

/// The functions of torch that the recorder calls itself.
struct Torch {
    pop_dispatch_mode: Py<PyAny>,
    push_dispatch_mode: Py<PyAny>,
    dispatch_depth: Py<PyAny>,
    functorch_level: Py<PyAny>,
    autocast_enabled: Py<PyAny>,
    /// One flat copy of the whole storage of a tensor.
    snapshot: Py<PyAny>,
    /// A recording array for a tensor whose memory was handed to NumPy.
    array_from_tensor: Py<PyAny>,
    /// Arguments in which recording arrays are what torch knows: tensors, or plain arrays.
    without_arrays: Py<PyAny>,
    /// Positional and named arguments in which recording scalars are tensors, or numbers.
    without_scalars: Py<PyAny>,
    /// The class of recording arrays.
    array_class: Py<PyAny>,
    /// The class of recording scalars.
    scalar_class: Py<PyAny>,
}

/// Records calls; see `veracity.tracing.modes` for how it is called.
#[pyclass(frozen, module = "veracity._native")]
pub(crate) struct Recorder {
    state: Mutex<State>,
    types: TensorTypes,
    torch: Torch,
    /// Set when the session is over: threads may keep the modes for longer.
    closed: AtomicBool,
}

type PyOrigin = (u32, u32, u32);

fn origin_to_python(origin: Origin) -> PyOrigin {
    (origin.node.0, origin.execution, origin.port.0)
}

#[pymethods]
impl Recorder {
    /// `hooks` has `classify(func, number)`, `owner_of_file(name)`, `keep_trail(frame)`,
    /// `snapshot(tensor)`,
    /// `array_from_tensor(tensor, array)`, `without_arrays(arguments)`,
    /// `without_scalars(args, kwargs, as_numbers)`, `array_class` and `scalar_class`.
    #[new]
    fn new(py: Python<'_>, hooks: &Bound<'_, PyAny>) -> PyResult<Self> {
        let torch = py.import("torch")?;
        let native = torch.getattr("_C")?;
        let state = State {
            tape: Tape::new(),
            storages: Storages::new(torch.getattr("UntypedStorage")?.unbind()),
            sites: Sites::new(
                hooks.getattr("owner_of_file")?.unbind(),
                hooks.getattr("keep_trail")?.unbind(),
            ),
            operations: Operations::new(py, hooks.getattr("classify")?.unbind()),
            payloads: HashMap::new(),
            constants: Constants::default(),
            slices: Vec::new(),
            opened_at: HashMap::new(),
            drawn: HashMap::new(),
            written_at: HashMap::new(),
            faults: Vec::new(),
        };
        Ok(Self {
            state: Mutex::new(state),
            closed: AtomicBool::new(false),
            types: TensorTypes { tensor: torch.getattr("Tensor")?.unbind() },
            torch: Torch {
                pop_dispatch_mode: native.getattr("_pop_torch_dispatch_stack")?.unbind(),
                push_dispatch_mode: native.getattr("_push_on_torch_dispatch_stack")?.unbind(),
                dispatch_depth: native.getattr("_len_torch_dispatch_stack")?.unbind(),
                functorch_level: native
                    .getattr("_functorch")?
                    .getattr("maybe_current_level")?
                    .unbind(),
                autocast_enabled: native.getattr("_is_any_autocast_enabled")?.unbind(),
                snapshot: hooks.getattr("snapshot")?.unbind(),
                array_from_tensor: hooks.getattr("array_from_tensor")?.unbind(),
                without_arrays: hooks.getattr("without_arrays")?.unbind(),
                without_scalars: hooks.getattr("without_scalars")?.unbind(),
                array_class: hooks.getattr("array_class")?.unbind(),
                scalar_class: hooks.getattr("scalar_class")?.unbind(),
            },
        })
    }

    /// A call that the function mode saw.
    fn call<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.closed.load(Ordering::Relaxed) {
            return func.call(args, kwargs);
        }
        self.handle_call(func, args, kwargs)
    }

    /// A call that only the dispatch mode saw.
    fn dispatched<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if BUSY.get() > 0 || self.closed.load(Ordering::Relaxed) {
            return func.call(args, kwargs);
        }
        self.record(func, args, kwargs, false)
    }

    /// Begins an execution of a node.
    fn open(&self, py: Python<'_>, node: u32, light: bool) -> u32 {
        let mut state = self.lock(py);
        let execution = state.tape.open(NodeId(node), light).0;
        let next = state.storages.next_id();
        state.opened_at.insert(execution, next);
        execution
    }

    /// Marks the memory of a tensor as an input from now on.
    fn mark_input(
        &self,
        execution: u32,
        port: u32,
        tensor: &Bound<'_, PyAny>,
    ) -> PyResult<Option<PyOrigin>> {
        let mut state = self.lock(tensor.py());
        let view = state.view(tensor, Birth::Before)?;
        let origin = state.tape.mark_input(ExecutionId(execution), PortId(port), view);
        Ok(origin.map(origin_to_python))
    }

    /// Tells that nobody wrote into an input since it was published.
    fn confirm_origin(&self, py: Python<'_>, execution: u32, port: u32) {
        self.lock(py).tape.confirm_origin(ExecutionId(execution), PortId(port));
    }

    /// Takes an input mark back: the tensor is a constant after all.
    fn drop_input(&self, execution: u32, port: u32, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut state = self.lock(tensor.py());
        let view = state.view(tensor, Birth::Before)?;
        if state.tape.drop_input(ExecutionId(execution), PortId(port)) {
            let (storage, _) = state.tape.geometry(view);
            let count = state.tape.write_count(storage);
            state.constants.hold_live(storage, count, tensor.clone().unbind());
        }
        Ok(())
    }

    /// Marks the value of a tensor at this moment as an output.
    fn mark_output(&self, execution: u32, port: u32, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = tensor.py();
        let mut state = self.lock(py);
        let site = state.sites.here(py)?.id;
        let view = state.view(tensor, Birth::Unseen)?;
        if state.tape.mark_output(ExecutionId(execution), PortId(port), view, site) {
            let (storage, _) = state.tape.geometry(view);
            let count = state.tape.write_count(storage);
            state.constants.hold_live(storage, count, tensor.clone().unbind());
        }
        Ok(())
    }

    /// Ends an execution; see `slices.rs` for what comes back.
    fn close<'py>(&self, py: Python<'py>, execution: u32) -> PyResult<Bound<'py, PyDict>> {
        let mut state = self.lock(py);
        let state = &mut *state;
        let closed = state.tape.close(ExecutionId(execution));
        let opened_at = state.opened_at.remove(&execution).unwrap_or(StorageId(0));
        let answer = slices::closed_to_python(py, state, &closed, opened_at)?;
        let number = state.keep_slice(closed.slice, opened_at);
        answer.set_item("slice", number)?;
        state.settle(py)?;
        Ok(answer)
    }

    /// Ends an execution that came to nothing.
    fn abandon(&self, py: Python<'_>, execution: u32) -> PyResult<()> {
        let mut state = self.lock(py);
        state.tape.abandon(ExecutionId(execution));
        state.settle(py)
    }

    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    /// A kept slice as a `veracity.tracing.slice.Slice`.
    fn slice<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        input_names: Vec<String>,
        output_ports: Vec<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let state = self.lock(py);
        slices::slice_to_python(py, &state, number, &input_names, &output_ports)
    }

    /// Frees a kept slice.
    fn drop_slice(&self, py: Python<'_>, number: usize) {
        if let Some(slice) = self.lock(py).slices.get_mut(number) {
            *slice = None;
        }
    }

    /// How a later slice differs from the first: `(what, location, first, later)`, where the last
    /// two are positions of constants.
    fn differences(
        &self,
        py: Python<'_>,
        first: usize,
        later: usize,
    ) -> Vec<(String, String, usize, usize)> {
        slices::differences(&self.lock(py), first, later)
    }

    /// Which memory a tensor shows: equal for tensors that show the same.
    fn view(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u32> {
        self.ask(tensor, |_, view| view.0)
    }

    /// How often the memory of a tensor was written.
    fn write_count(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u32> {
        self.ask(tensor, |tape, view| tape.write_count(tape.geometry(view).0))
    }

    /// `file:line` of the last write into the memory of a tensor, while nodes are open.
    fn written_at(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let mut state = self.lock(tensor.py());
        let view = state.view(tensor, Birth::Unseen)?;
        let (storage, _) = state.tape.geometry(view);
        let site = state.written_at.get(&storage);
        Ok(site.map(|site| state.sites.location(*site).to_owned()))
    }

    /// Records that `result` is what `func(*args)` gives, although it came about in another way.
    fn assert_call<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        result: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.record_assertion(func, args, result)
    }

    /// Whether an unfinished node computed this tensor.
    fn is_traced(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.ask(tensor, Tape::is_traced)
    }

    /// Whether any node computed this tensor, or what it was made from.
    fn is_derived(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.ask(tensor, Tape::is_derived)
    }

    /// The output that this tensor is, as `(node, execution, port)`.
    fn origin(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<PyOrigin>> {
        self.ask(tensor, |tape, view| tape.origin(view).map(origin_to_python))
    }

    /// Lets a tensor pass for another.
    fn adopt_origin(&self, source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut state = self.lock(source.py());
        let source = state.view(source, Birth::Unseen)?;
        let target = state.view(target, Birth::Unseen)?;
        state.tape.adopt_origin(source, target);
        Ok(())
    }

    /// Notes that a value of a tensor left for Python.
    fn escape(&self, tensor: &Bound<'_, PyAny>, what: &str, fingerprint: u64) -> PyResult<bool> {
        let py = tensor.py();
        let mut state = self.lock(py);
        let state = &mut *state;
        let view = state.view(tensor, Birth::Unseen)?;
        if !state.tape.is_traced(view) {
            return Ok(false);
        }
        let site = state.sites.here_with_callers(py)?;
        let kind = slices::escape_number(what);
        Ok(state.tape.escape(view, kind, site.id, fingerprint))
    }

    /// Knows the storages of these tensors as older than the session.
    fn remember(&self, tensors: &Bound<'_, PyList>) {
        let mut state = self.lock(tensors.py());
        let state = &mut *state;
        for tensor in tensors {
            // Tensors without a storage of their own (sparse, nested) are no constants either.
            let _ = state.storages.remember(&mut state.tape, &tensor, Birth::Before);
        }
    }

    /// Shares the memory of a tensor with an array: a tensor made of the array is this tensor.
    fn share(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut state = self.lock(tensor.py());
        let state = &mut *state;
        state.storages.share(&mut state.tape, tensor)
    }

    /// Lets a listener hear what traced values do to plain arrays; see `plain_arrays.rs`.
    #[expect(clippy::unused_self, reason = "a method of the recorder in Python")]
    fn listen_to_plain_arrays(
        &self,
        listener: &Bound<'_, PyAny>,
        classes: &Bound<'_, PyList>,
        ufuncs: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        plain_arrays::listen(listener, classes, ufuncs)
    }

    /// Ends `listen_to_plain_arrays`.
    #[expect(clippy::unused_self, reason = "a method of the recorder in Python")]
    fn leave_plain_arrays_alone(&self, py: Python<'_>) {
        plain_arrays::stop(py);
    }

    /// Says whether plain arrays may hold traced values.
    #[expect(clippy::unused_self, reason = "a method of the recorder in Python")]
    fn set_plain_memory_reached(&self, reached: bool) {
        plain_arrays::set_reached(reached);
    }

    /// `(edges, problems, order)` of all nodes; see `slices.rs`.
    fn graph<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        slices::graph_to_python(py, &self.lock(py))
    }

    /// What could not be recorded since the last call, as `(code, message, location)`.
    fn take_faults(&self, py: Python<'_>) -> Vec<(&'static str, String, String)> {
        let faults = std::mem::take(&mut self.lock(py).faults);
        faults.into_iter().map(|fault| (fault.code, fault.message, fault.location)).collect()
    }

    /// `file:line` of the user's code that is running.
    fn here(&self, py: Python<'_>) -> PyResult<String> {
        let mut state = self.lock(py);
        let site = state.sites.here(py)?;
        Ok(state.sites.location(site.id).to_owned())
    }

    /// Whether a node is unfinished.
    fn has_open(&self, py: Python<'_>) -> bool {
        self.lock(py).tape.has_open()
    }

    /// Tells that calls were not seen for a while.
    fn resume(&self, py: Python<'_>) {
        self.lock(py).tape.resume();
    }

    /// The states that the last of these passes has from those before; see `carrying.rs`.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    fn carried<'py>(&self, py: Python<'py>, passes: Vec<u32>) -> PyResult<Bound<'py, PyDict>> {
        carrying::carried(py, &mut self.lock(py), &passes)
    }

    /// Whether a tensor is of an earlier pass of a node, and this one did not read it.
    fn is_waiting(&self, execution: u32, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.ask(tensor, |tape, view| tape.is_waiting(ExecutionId(execution), view))
    }

    /// Whether a tensor is memory that is older than a pass, or starts from such memory.
    fn is_older(&self, execution: u32, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.ask(tensor, |tape, view| tape.is_older(ExecutionId(execution), view))
    }

    /// Keeps the program of a pass with states as inputs and outputs, given with their ports.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    fn program_with(
        &self,
        py: Python<'_>,
        execution: u32,
        states: Vec<carrying::Promoted<'_>>,
    ) -> usize {
        carrying::program_with(&mut self.lock(py), execution, &states)
    }

    /// What one of the first passes read in the place of a state; `None` if nobody saw it.
    fn first_value<'py>(
        &self,
        py: Python<'py>,
        carried: &CarriedState,
        pass: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        carrying::first_value(py, &self.lock(py), carried, pass)
    }

    /// The value of a state when a pass read it; `None` when the pass did not.
    fn value_at<'py>(
        &self,
        py: Python<'py>,
        execution: u32,
        carried: &CarriedState,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        carrying::value_at(py, &self.lock(py), execution, carried)
    }

    /// Where a state was written between passes, after the first of these had begun.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    fn written_between(
        &self,
        py: Python<'_>,
        executions: Vec<u32>,
        carried: &CarriedState,
    ) -> Option<String> {
        carrying::written_between(&self.lock(py), &executions, carried)
    }

    /// Forgets the calls of a pass.
    fn let_go(&self, py: Python<'_>, execution: u32) -> PyResult<()> {
        let mut state = self.lock(py);
        state.tape.let_go(ExecutionId(execution));
        state.settle(py)
    }

    /// Records nothing more; what was recorded stays.
    fn finish(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

impl Recorder {
    /// The state; while waiting, other threads of Python go on.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        match self.state.lock_py_attached(py) {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    fn ask<T>(&self, tensor: &Bound<'_, PyAny>, ask: impl Fn(&Tape, ViewId) -> T) -> PyResult<T> {
        let mut state = self.lock(tensor.py());
        let view = state.view(tensor, Birth::Unseen)?;
        Ok(ask(&state.tape, view))
    }
}

impl State {
    fn view(&mut self, tensor: &Bound<'_, PyAny>, birth: Birth) -> PyResult<ViewId> {
        self.storages.view(&mut self.tape, tensor, birth)
    }

    /// When no node is open and no pass is held, nothing needs the calls and constants that no slice
    /// kept.
    fn settle(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.tape.has_open() {
            return Ok(());
        }
        self.drawn.clear();
        self.written_at.clear();
        if self.tape.is_busy() {
            let kept = self.tape.first_kept();
            self.payloads.retain(|event, _| *event >= kept);
        } else {
            self.payloads.clear();
            self.constants.keep_only(&self.slices);
        }
        self.storages.sweep(py, &mut self.tape)
    }
}
