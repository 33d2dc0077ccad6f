//! One call, from its arguments to the tape.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PySlice, PyTuple};
use veracity::trace::{Birth, Call, SiteId, ViewId};

use super::arguments::{Argument, Arguments, PathPart, Root, tensors_of_result};
use super::operations::{Kind, Operation, Parameter};
use super::sites::Owner;
use super::storages::version;
use super::{BUSY, Fault, Recorder, State, slices};

/// What is kept of a call to make it again.
pub(super) struct Payload {
    pub(super) func: Py<PyAny>,
    pub(super) positional: Vec<Argument>,
    pub(super) keywords: Vec<(Py<PyAny>, Argument)>,
    pub(super) outputs: Vec<Vec<PathPart>>,
}

/// A call whose arguments were looked at and that has not run yet.
struct Pending<'py> {
    arguments: Arguments<'py>,
    views: Vec<ViewId>,
    versions: Vec<Option<i64>>,
    writes: Vec<usize>,
    traced: bool,
    random: bool,
}

/// Holds the dispatch mode back while a handler of the function mode runs.
struct NetHeldBack<'py> {
    mode: Option<Bound<'py, PyAny>>,
    push: Bound<'py, PyAny>,
}

impl Drop for NetHeldBack<'_> {
    fn drop(&mut self) {
        BUSY.set(BUSY.get() - 1);
        if let Some(mode) = self.mode.take() {
            // Pushing a mode that was just popped cannot fail for want of anything.
            let _ = self.push.call1((mode,));
        }
    }
}

impl Recorder {
    pub(super) fn handle_call<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = func.py();
        // Function transforms hand out wrappers without memory, and autocast casts below this
        // level: there the dispatch mode sees what really runs.
        if BUSY.get() > 0 || self.left_to_dispatch(func)? {
            return func.call(args, kwargs);
        }
        if self.holds_scalar(args, kwargs) && !self.lock(py).operations.get(func)?.get().indexes() {
            return self.call_with_scalars(func, args, kwargs);
        }
        let _held = self.hold_net_back(py)?;
        self.record(func, args, kwargs, true)
    }

    /// A call with recording scalars, which are tensors to torch, or numbers where it insists. What
    /// makes tensors of them is recorded, so the dispatch mode must not look away yet.
    fn call_with_scalars<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = func.py();
        let known = |as_numbers: bool| {
            let found = self.torch.without_scalars.bind(py).call1((args, kwargs, as_numbers))?;
            found.extract::<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)>()
        };
        let (tensors, named) = known(false)?;
        match self.handle_call(func, &tensors, named.as_ref()) {
            // torch looks at its arguments first: nothing has run yet.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let (numbers, named) = known(true)?;
                self.handle_call(func, &numbers, named.as_ref())
            }
            result => result,
        }
    }

    fn left_to_dispatch(&self, func: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = func.py();
        if !self.torch.functorch_level.bind(py).call0()?.is_none() {
            return Ok(true);
        }
        if !self.torch.autocast_enabled.bind(py).call0()?.is_truthy()? {
            return Ok(false);
        }
        // What leaves for Python leaves from here.
        let operation = self.lock(py).operations.get(func)?;
        Ok(matches!(operation.get().kind, Kind::Compute | Kind::Refused | Kind::Metadata))
    }

    /// Takes the dispatch mode away when it is the only one; else it is told to look away.
    fn hold_net_back<'py>(&self, py: Python<'py>) -> PyResult<NetHeldBack<'py>> {
        let depth: usize = self.torch.dispatch_depth.bind(py).call0()?.extract()?;
        let mode = match depth {
            1 => Some(self.torch.pop_dispatch_mode.bind(py).call1((py.None(),))?),
            _ => None,
        };
        BUSY.set(BUSY.get() + 1);
        Ok(NetHeldBack { mode, push: self.torch.push_dispatch_mode.bind(py).clone() })
    }

    pub(super) fn record<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        above: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = func.py();
        let operation = self.lock(py).operations.get(func);
        let Ok(operation) = operation else {
            return func.call(args, kwargs);
        };
        let operation = operation.get();
        if operation.kind == Kind::Metadata {
            return func.call(args, kwargs);
        }
        let args = &self.known_to_torch(operation, args)?;
        let pending = match self.before(py, operation, args, kwargs, above) {
            Ok(pending) => Some(pending),
            Err(error) => {
                self.fault_of(py, &error, operation);
                None
            }
        };
        let result = match func.call(args, kwargs) {
            Ok(result) => result,
            Err(error) => {
                // The error is the user's to see, whatever becomes of the note.
                let _ = self.note_raise(py, operation, pending.as_ref());
                return Err(error);
            }
        };
        let Some(pending) = pending else { return Ok(result) };
        if let Err(error) = self.note_raise(py, operation, Some(&pending)) {
            self.fault_of(py, &error, operation);
        }
        match self.after(py, func, operation, pending, &result) {
            Ok(Some(replaced)) => Ok(replaced),
            Ok(None) => Ok(result),
            Err(error) => {
                self.fault_of(py, &error, operation);
                Ok(result)
            }
        }
    }

    /// A call that raises on some values and not on others may be in a `try` that goes on: whether
    /// it raised is then a decision, also where it did not this time.
    fn note_raise(
        &self,
        py: Python<'_>,
        operation: &Operation,
        pending: Option<&Pending<'_>>,
    ) -> PyResult<()> {
        let Some(pending) = pending.filter(|pending| pending.traced) else { return Ok(()) };
        let tensors = &pending.arguments.tensors;
        let by_index = operation.indexes() && tensors.len() > 1;
        let by_zero = operation.divides && tensors.iter().all(is_integer);
        // What is read of a result whose size depends on values may not be there.
        if !operation.may_raise && !operation.ragged && !by_index && !by_zero {
            return Ok(());
        }
        let mut state = self.lock(py);
        let traced = pending.views.iter().copied().find(|view| state.tape.is_traced(*view));
        let site = state.sites.here_with_callers(py)?;
        if let Some(view) = traced {
            state.tape.escape(view, slices::escape_number("may raise"), site.id, 0);
        }
        Ok(())
    }

    /// torch takes an array of a subclass that is an index for a sequence.
    fn known_to_torch<'py>(
        &self,
        operation: &Operation,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = args.py();
        let class = self.torch.array_class.bind(py);
        let is_array = |value: &Bound<'py, PyAny>| value.is_instance(class).unwrap_or(false);
        let holds_array = |value: Bound<'py, PyAny>| match value.cast::<PyTuple>() {
            Ok(items) => items.iter().any(|item| is_array(&item)),
            Err(_) => is_array(&value),
        };
        if !operation.indexes() || !args.iter().skip(1).any(holds_array) {
            return Ok(args.clone());
        }
        Ok(self.torch.without_arrays.bind(py).call1((args,))?.cast_into()?)
    }

    fn holds_scalar(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> bool {
        let class = self.torch.scalar_class.as_ptr();
        let is_scalar = |value: &Bound<'_, PyAny>| value.get_type().as_ptr() == class;
        let holds = |value: &Bound<'_, PyAny>| {
            is_scalar(value)
                || value.cast_exact::<PyTuple>().is_ok_and(|all| all.iter().any(|v| is_scalar(&v)))
                || value.cast_exact::<PyList>().is_ok_and(|all| all.iter().any(|v| is_scalar(&v)))
        };
        args.iter().any(|value| holds(&value))
            || kwargs.is_some_and(|named| named.iter().any(|(_, value)| holds(&value)))
    }

    /// Records a call whose result is already there.
    pub(super) fn record_assertion<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        result: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let py = func.py();
        let operation = self.lock(py).operations.get(func)?;
        let pending = self.before(py, operation.get(), args, None, false)?;
        let mut state = self.lock(py);
        self.record_computation(py, &mut state, func, operation.get(), pending, result)
    }

    /// What goes wrong in the recorder is told only when it may matter.
    fn fault_of(&self, py: Python<'_>, error: &PyErr, operation: &Operation) {
        let mut state = self.lock(py);
        if !state.tape.has_open() {
            return;
        }
        let location = match state.sites.here(py) {
            Ok(site) => state.sites.location(site.id).to_owned(),
            Err(_) => String::new(),
        };
        let message = format!("`{}` cannot be followed: {}", operation.name, error.value(py));
        state.faults.push(Fault { code: "VER0924", message, location });
    }

    fn before<'py>(
        &self,
        py: Python<'py>,
        operation: &Operation,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        above: bool,
    ) -> PyResult<Pending<'py>> {
        let arguments = Arguments::take_apart(&self.types, args, kwargs)?;
        let mut guard = self.lock(py);
        let state = &mut *guard;
        let mut views = Vec::with_capacity(arguments.tensors.len());
        for tensor in &arguments.tensors {
            views.push(state.view(tensor, Birth::Unseen)?);
        }
        let traced = views.iter().any(|view| state.tape.is_traced(*view));
        // Below autograd the counters move only after the operator returned.
        let versions =
            if above { arguments.tensors.iter().map(version).collect() } else { Vec::new() };
        let writes = written_reads(operation, &arguments, args, kwargs)?;
        let mut snapshots = Vec::new();
        for index in &writes {
            if state.tape.must_snapshot(views[*index], &views) {
                snapshots.push(*index);
            }
        }
        drop(guard);
        for index in snapshots {
            let flat = self.torch.snapshot.bind(py).call1((&arguments.tensors[index],))?;
            let mut state = self.lock(py);
            let (storage, _) = state.tape.geometry(views[index]);
            let count = state.tape.write_count(storage);
            state.constants.hold_snapshot(storage, count, flat.unbind());
        }
        let random = operation.random || draws(operation, args, kwargs)?;
        Ok(Pending { arguments, views, versions, writes, traced, random })
    }

    fn after<'py>(
        &self,
        py: Python<'py>,
        func: &Bound<'py, PyAny>,
        operation: &Operation,
        pending: Pending<'py>,
        result: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut guard = self.lock(py);
        let state = &mut *guard;
        for index in &pending.arguments.indices {
            let view = state.view(index, Birth::Unseen)?;
            state.note_value(py, view, "slice bound", result)?;
        }
        match operation.kind {
            Kind::Escape => {
                for view in &pending.views {
                    state.note_value(py, *view, &operation.name, result)?;
                }
                return Ok(None);
            }
            Kind::Memory => {
                for view in &pending.views {
                    state.note_escape(py, *view, &operation.name, result)?;
                }
                return Ok(None);
            }
            Kind::Shape => {
                for view in &pending.views {
                    if state.tape.is_ragged(*view) {
                        state.note_escape(py, *view, &operation.name, result)?;
                    }
                }
                return Ok(None);
            }
            Kind::Share => {
                state.share_memory(py, operation, &pending, result)?;
                return Ok(None);
            }
            Kind::Array => {
                return self.hand_out_array(py, guard, &pending, result);
            }
            Kind::Refused if pending.traced => state.refuse(py, operation)?,
            Kind::Refused | Kind::Compute | Kind::Metadata => {}
        }
        if counts_its_argument(operation) {
            for view in &pending.views {
                if state.tape.is_ragged(*view) {
                    state.note_escape(py, *view, "__len__", result)?;
                }
            }
        }
        self.record_computation(py, state, func, operation, pending, result)?;
        Ok(None)
    }

    /// Memory that goes to NumPy comes back as the same memory; the array records what is done.
    fn hand_out_array<'py>(
        &self,
        py: Python<'py>,
        mut guard: std::sync::MutexGuard<'_, State>,
        pending: &Pending<'py>,
        result: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = &mut *guard;
        let Some(tensor) = pending.arguments.tensors.first() else { return Ok(None) };
        let view = pending.views[0];
        if !state.tape.is_traced(view) && !state.tape.is_derived(view) {
            return Ok(None);
        }
        state.storages.share(&mut state.tape, tensor)?;
        drop(guard);
        let array = self.torch.array_from_tensor.bind(py).call1((tensor, result))?;
        Ok((!array.is_none()).then_some(array))
    }

    fn record_computation<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        func: &Bound<'py, PyAny>,
        operation: &Operation,
        mut pending: Pending<'py>,
        result: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let found = tensors_of_result(&self.types, result)?;
        let mut outputs = Vec::with_capacity(found.len());
        for (_, tensor) in &found {
            outputs.push(state.view(tensor, Birth::Seen)?);
        }
        state.add_unforeseen_writes(py, operation, &mut pending)?;
        let matters = pending.traced
            || pending.random
            || state.storages.has_fresh()
            || state.tape.is_watching()
            || pending.views.iter().any(|view| state.tape.is_derived(*view));
        let site = if matters { state.sites.here(py)?.id } else { SiteId(0) };
        state.storages.place_fresh(site);
        if pending.traced {
            for index in &pending.writes {
                let storage = state.tape.geometry(pending.views[*index]).0;
                state.written_at.insert(storage, site);
            }
        }
        if !pending.traced && state.tape.has_open() {
            state.note_draw(&pending, &outputs, site);
        }
        let counts: Vec<u32> = pending
            .views
            .iter()
            .map(|view| state.tape.write_count(state.tape.geometry(*view).0))
            .collect();
        let part = state.written_part(py, operation, &pending)?;
        let recorded = state.tape.call(&Call {
            op: veracity::trace::OpId(operation.number),
            site,
            literals: pending.arguments.literals,
            reads: &pending.views,
            writes: &pending.writes,
            outputs: &outputs,
            ragged: operation.ragged || is_sized_by_data(operation, &pending),
            identity: identity_source(operation, &pending, part.is_some()),
            part,
            may_alias: operation.may_alias,
            overwrites: overwrites(operation, &pending),
            blind: pending.random,
        });
        for index in recorded.constants {
            let (storage, _) = state.tape.geometry(pending.views[index]);
            let count = counts[index];
            let tensor = pending.arguments.tensors[index].clone().unbind();
            state.constants.hold_live(storage, count, tensor);
        }
        if let Some(event) = recorded.event {
            let payload = Payload {
                func: func.clone().unbind(),
                positional: pending.arguments.positional,
                keywords: pending.arguments.keywords,
                outputs: found.into_iter().map(|(path, _)| path).collect(),
            };
            state.payloads.insert(event, Arc::new(payload));
        }
        Ok(())
    }
}

fn same_storage(state: &State, left: ViewId, right: ViewId) -> bool {
    state.tape.geometry(left).0 == state.tape.geometry(right).0
}

impl State {
    /// torch's own counters tell of writes that the table of operations does not know.
    fn add_unforeseen_writes(
        &mut self,
        py: Python<'_>,
        operation: &Operation,
        pending: &mut Pending<'_>,
    ) -> PyResult<()> {
        for (index, before) in pending.versions.iter().enumerate() {
            let tensor = &pending.arguments.tensors[index];
            let unforeseen = before.is_some()
                && !pending.writes.contains(&index)
                && version(tensor) != *before
                && !pending
                    .writes
                    .iter()
                    .any(|w| same_storage(self, pending.views[*w], pending.views[index]));
            if !unforeseen {
                continue;
            }
            if self.tape.must_snapshot(pending.views[index], &pending.views) {
                let site = self.sites.here(py)?;
                let location = self.sites.location(site.id).to_owned();
                let message = format!("`{}` wrote into a constant unexpectedly", operation.name);
                self.faults.push(Fault { code: "VER0919", message, location });
            }
            pending.writes.push(index);
        }
        Ok(())
    }

    /// The part that an assignment writes, when its key has only numbers and slices in it.
    fn written_part(
        &mut self,
        py: Python<'_>,
        operation: &Operation,
        pending: &Pending<'_>,
    ) -> PyResult<Option<ViewId>> {
        let is_assignment = operation.name == "__setitem__" && pending.writes == [0];
        let Some(key) = pending.arguments.positional.get(1).filter(|_| is_assignment) else {
            return Ok(None);
        };
        let Some(key) = basic_key(py, key)?.filter(|_| !is_everything(key)) else {
            return Ok(None);
        };
        // What torch cannot show, such as a part of a sparse tensor, stays unknown.
        let Ok(part) = pending.arguments.tensors[0].get_item(key) else { return Ok(None) };
        let Ok(part) = self.view(&part, Birth::Unseen) else { return Ok(None) };
        Ok(same_storage(self, part, pending.views[0]).then_some(part))
    }

    /// Memory that torch hands to itself is found again; what others make of it is not seen.
    fn share_memory(
        &mut self,
        py: Python<'_>,
        operation: &Operation,
        pending: &Pending<'_>,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let by_torch = self.sites.here(py)?.caller == Owner::Torch;
        for (tensor, view) in pending.arguments.tensors.iter().zip(&pending.views) {
            self.storages.share(&mut self.tape, tensor)?;
            if !by_torch {
                self.note_escape(py, *view, &operation.name, result)?;
            }
        }
        Ok(())
    }

    /// Follows random numbers that are drawn inside of a node without its inputs.
    fn note_draw(&mut self, pending: &Pending<'_>, outputs: &[ViewId], site: SiteId) {
        let storage = |view: &ViewId| self.tape.geometry(*view).0;
        let source = pending.views.iter().find_map(|view| self.drawn.get(&storage(view)).copied());
        let Some(site) = (if pending.random { Some(site) } else { source }) else { return };
        let written = pending.writes.iter().map(|index| &pending.views[*index]);
        let touched: Vec<_> = outputs.iter().chain(written).map(storage).collect();
        self.drawn.extend(touched.into_iter().map(|storage| (storage, site)));
    }

    /// A value left for Python. One that no input reaches is fixed as well where it is of state,
    /// which is known later.
    fn note_value(
        &mut self,
        py: Python<'_>,
        view: ViewId,
        what: &str,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let traced = self.tape.is_traced(view);
        if traced || (self.tape.is_watching() && self.sites.here(py)?.caller != Owner::Torch) {
            self.keep_escape(py, view, what, result)?;
        }
        Ok(())
    }

    /// Memory left for Python, or how much there is of it.
    fn note_escape(
        &mut self,
        py: Python<'_>,
        view: ViewId,
        what: &str,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.tape.is_traced(view) {
            self.keep_escape(py, view, what, result)?;
        }
        Ok(())
    }

    /// What Python makes of a value is fixed in the export.
    fn keep_escape(
        &mut self,
        py: Python<'_>,
        view: ViewId,
        what: &str,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let site = self.sites.here_with_callers(py)?;
        // `copy` passes memory on, and makes nothing of the value.
        if site.caller == Owner::Copying {
            return Ok(());
        }
        // torch checks arguments: that matters only where the exception is caught.
        let is_check = site.caller == Owner::Torch && slices::is_check(what);
        let what = if is_check { "may raise" } else { what };
        let fingerprint = if is_check { 0 } else { fingerprint(result) };
        self.tape.escape(view, slices::escape_number(what), site.id, fingerprint);
        Ok(())
    }

    fn refuse(&mut self, py: Python<'_>, operation: &Operation) -> PyResult<()> {
        let site = self.sites.here(py)?;
        let location = self.sites.location(site.id).to_owned();
        let message = format!("`{}` cannot be exported: {}", operation.name, operation.reason);
        self.faults.push(Fault { code: "VER0920", message, location });
        Ok(())
    }
}

/// Equal values have equal fingerprints; what cannot be hashed is told apart by its text.
fn fingerprint(result: &Bound<'_, PyAny>) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    match result.hash() {
        Ok(hash) => hash.hash(&mut hasher),
        Err(_) => result.repr().map(|text| text.to_string()).unwrap_or_default().hash(&mut hasher),
    }
    hasher.finish()
}

/// Which of the tensors are written.
fn written_reads<'py>(
    operation: &Operation,
    arguments: &Arguments<'py>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<usize>> {
    let mut written = Vec::new();
    let on = match &operation.switch {
        None => true,
        Some(switch) => {
            argument(switch, args, kwargs)?.is_some_and(|v| v.is_truthy().unwrap_or(false))
        }
    };
    for (index, root) in arguments.roots.iter().enumerate() {
        let is = |(position, name): &Parameter| match root {
            Root::Position(found) => found == position,
            Root::Keyword(found) => found == name,
        };
        let out = matches!(root, Root::Keyword(name) if name == "out");
        if out || (on && operation.writes.iter().any(is)) {
            written.push(index);
        }
    }
    Ok(written)
}

fn argument<'py>(
    (position, name): &Parameter,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(kwargs) = kwargs
        && let Some(value) = kwargs.get_item(name)?
    {
        return Ok(Some(value));
    }
    Ok(args.get_item(*position).ok())
}

/// Whether the arguments make it draw random numbers.
fn draws(
    operation: &Operation,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<bool> {
    for (position, name, default) in &operation.random_when {
        let value = argument(&(*position, name.clone()), args, kwargs)?;
        let on = match value {
            Some(value) => value.is_truthy()?,
            None => *default,
        };
        if !on {
            return Ok(false);
        }
    }
    Ok(!operation.random_when.is_empty())
}

/// Whether these arguments make the size of the result depend on data: a mask as index, `where`
/// with nothing to choose from, classes that are counted, places to split at.
fn is_sized_by_data(operation: &Operation, pending: &Pending<'_>) -> bool {
    let arguments = &pending.arguments;
    let alone = arguments.positional.len() == 1 && arguments.keywords.is_empty();
    match operation.name.as_str() {
        "__getitem__" | "index" => arguments.tensors.iter().skip(1).any(|tensor| {
            tensor.getattr("dtype").is_ok_and(|dtype| dtype.to_string() == "torch.bool")
        }),
        "where" | "one_hot" => alone,
        "tensor_split" => arguments.tensors.len() > 1,
        _ => false,
    }
}

/// Whether the number of results is the size of the argument.
fn counts_its_argument(operation: &Operation) -> bool {
    matches!(operation.name.as_str(), "unbind" | "split" | "chunk" | "tensor_split" | "__iter__")
}

fn overwrites(operation: &Operation, pending: &Pending<'_>) -> bool {
    match operation.name.as_str() {
        "__setitem__" => pending.arguments.positional.get(1).is_some_and(is_everything),
        _ => operation.overwrites,
    }
}

/// The tensor that the result, or the written memory, is a plain copy of.
fn identity_source(operation: &Operation, pending: &Pending<'_>, in_part: bool) -> Option<usize> {
    if !operation.identity || pending.views.is_empty() {
        return None;
    }
    if operation.name == "__setitem__" {
        let key = pending.arguments.positional.get(1)?;
        let copies = in_part || is_everything(key);
        return copies.then(|| pending.views.len() - 1).filter(|index| *index > 0);
    }
    if pending.writes.is_empty() {
        Some(0)
    } else {
        Some(pending.views.len() - 1).filter(|index| *index > 0)
    }
}

/// A key that shows a part of a tensor, as Python has it; none for one that picks elements.
fn basic_key<'py>(py: Python<'py>, key: &Argument) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_basic = |item: &Bound<'py, PyAny>| {
        item.is_exact_instance_of::<PyInt>()
            || item.is_exact_instance_of::<PySlice>()
            || item.is_none()
            || item.is(py.Ellipsis())
    };
    let items: Vec<Bound<'py, PyAny>> = match key {
        Argument::Literal(key) => match key.bind(py).cast_exact::<PyTuple>() {
            Ok(items) => items.iter().collect(),
            Err(_) => vec![key.bind(py).clone()],
        },
        Argument::Tuple(None, items) => {
            let literal = |item: &Argument| match item {
                Argument::Literal(item) => Some(item.bind(py).clone()),
                _ => None,
            };
            match items.iter().map(literal).collect() {
                Some(items) => items,
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    if !items.iter().all(is_basic) {
        return Ok(None);
    }
    Ok(Some(PyTuple::new(py, items)?.into_any()))
}

/// `x[:]` and `x[...]`.
fn is_everything(key: &Argument) -> bool {
    let Argument::Literal(key) = key else { return false };
    Python::attach(|py| {
        let key = key.bind(py);
        key.is(py.Ellipsis()) || key.repr().is_ok_and(|text| text == "slice(None, None, None)")
    })
}

fn is_integer(tensor: &Bound<'_, PyAny>) -> bool {
    let floats = tensor.call_method0(pyo3::intern!(tensor.py(), "is_floating_point"));
    floats.is_ok_and(|floats| !floats.is_truthy().unwrap_or(true))
}
