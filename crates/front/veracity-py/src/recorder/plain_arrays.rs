//! Plain NumPy arrays while a session lasts: what traced values do to them is heard.
//!
//! NumPy copies a traced array into a plain one without asking anybody, and a plain array does not
//! know what was written into it. A class in C cannot be patched from Python, so the slots through
//! which every read, write, attribute and elementwise operation of a plain array goes are replaced
//! here for the time of a session. They hand over to Python only where a traced value is in play; else
//! they do what they did.
//!
//! No slot is touched whose place was not confirmed by the interpreter first.
#![expect(unsafe_code, reason = "the slots of classes in C can only be reached through pointers")]

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyNotImplementedError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

type Object = *mut ffi::PyObject;
type Read = unsafe extern "C" fn(Object, Object) -> Object;
type Write = unsafe extern "C" fn(Object, Object, Object) -> c_int;
type Iterate = unsafe extern "C" fn(Object) -> Object;
type Expose = unsafe extern "C" fn(Object, *mut c_void, c_int) -> c_int;
type Apply = unsafe extern "C" fn(Object, *const Object, usize, Object) -> Object;

/// A slot: where it lies in a class or in one of its tables, and its number in the stable ABI.
#[derive(Clone, Copy)]
struct Slot {
    /// Where the class keeps the table, if the slot is in one.
    table: Option<usize>,
    offset: usize,
    number: c_int,
}

/// Bytes before a field that so many words lie before.
const fn words(count: usize) -> usize {
    count * size_of::<usize>()
}

const MAPPING: Option<usize> = Some(words(14));
const READ: Slot = Slot { table: MAPPING, offset: words(1), number: 5 };
const WRITE: Slot = Slot { table: MAPPING, offset: words(2), number: 3 };
const ATTRIBUTE: Slot = Slot { table: None, offset: words(18), number: 58 };
const BUFFER: Slot = Slot { table: Some(words(20)), offset: 0, number: 1 };
const ITERATE: Slot = Slot { table: None, offset: words(27), number: 62 };
/// Where a class says at which byte of its objects the function is that calls them.
const CALLED_THROUGH: usize = words(7);

/// What the slots held before.
static READ_BEFORE: AtomicUsize = AtomicUsize::new(0);
static WRITE_BEFORE: AtomicUsize = AtomicUsize::new(0);
static FLAT_WRITE_BEFORE: AtomicUsize = AtomicUsize::new(0);
static ATTRIBUTE_BEFORE: AtomicUsize = AtomicUsize::new(0);
static ITERATE_BEFORE: AtomicUsize = AtomicUsize::new(0);
static BUFFER_BEFORE: AtomicUsize = AtomicUsize::new(0);
static FUNCTION_ATTRIBUTE_BEFORE: AtomicUsize = AtomicUsize::new(0);
static APPLY_BEFORE: AtomicUsize = AtomicUsize::new(0);

/// The classes that matter: addresses of types that live as long as the process.
static PLAIN: AtomicUsize = AtomicUsize::new(0);
static TRACED_ARRAY: AtomicUsize = AtomicUsize::new(0);
static TRACED_SCALAR: AtomicUsize = AtomicUsize::new(0);

/// Whether plain memory may hold traced values: then everything is asked about.
static REACHED: AtomicBool = AtomicBool::new(false);
/// What to call in Python; nothing outside of a session.
static LISTENER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);
/// The slots that are replaced, with what they held.
static REPLACED: Mutex<Vec<(usize, usize, usize)>> = Mutex::new(Vec::new());

/// Lists nested deeper than this are not searched.
const MOST_DEPTH: u32 = 4;

/// Listens to plain arrays until `stop`. `listener` has the methods `read`, `write`, `write_flat`,
/// `attribute`, `iterate`, `apply`, `function_attribute` and `expose`, which answer `NotImplemented` to what is none of their business.
pub(super) fn listen(
    listener: &Bound<'_, PyAny>,
    classes: &Bound<'_, PyList>,
    ufuncs: &Bound<'_, PyList>,
) -> PyResult<()> {
    let [plain, flat, ufunc, traced, scalar]: [Bound<'_, PyType>; 5] = classes.extract()?;
    PLAIN.store(plain.as_ptr() as usize, Ordering::Relaxed);
    TRACED_ARRAY.store(traced.as_ptr() as usize, Ordering::Relaxed);
    TRACED_SCALAR.store(scalar.as_ptr() as usize, Ordering::Relaxed);
    let mut found = vec![
        (place(&plain, READ)?, read as Read as usize, &READ_BEFORE),
        (place(&plain, WRITE)?, write as Write as usize, &WRITE_BEFORE),
        (place(&plain, ATTRIBUTE)?, attribute as Read as usize, &ATTRIBUTE_BEFORE),
        (place(&plain, ITERATE)?, iterate as Iterate as usize, &ITERATE_BEFORE),
        (place(&plain, BUFFER)?, expose as Expose as usize, &BUFFER_BEFORE),
        (place(&traced, BUFFER)?, expose as Expose as usize, &BUFFER_BEFORE),
        (
            place(&ufunc, ATTRIBUTE)?,
            function_attribute as Read as usize,
            &FUNCTION_ATTRIBUTE_BEFORE,
        ),
        (place(&flat, WRITE)?, write_flat as Write as usize, &FLAT_WRITE_BEFORE),
    ];
    for called in places_of_calls(ufuncs)? {
        found.push((called, apply as Apply as usize, &APPLY_BEFORE));
    }
    let mut replaced = REPLACED.lock().unwrap_or_else(PoisonError::into_inner);
    for (place, hook, before) in found {
        // SAFETY: `place` and `places_of_calls` give places that hold a function of this kind.
        let held = unsafe { *(place as *const usize) };
        if held != hook {
            before.store(held, Ordering::Relaxed);
            // SAFETY: as above; slots are read and written under the lock of the interpreter.
            unsafe { *(place as *mut usize) = hook };
            replaced.push((place, hook, held));
        }
    }
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener.clone().unbind());
    forget_lookups(&plain);
    Ok(())
}

/// Puts back what is still ours.
pub(super) fn stop(py: Python<'_>) {
    for (place, hook, held) in
        REPLACED.lock().unwrap_or_else(PoisonError::into_inner).drain(..).rev()
    {
        // SAFETY: the place is the one that `listen` found, in a class that is never freed.
        unsafe {
            if *(place as *const usize) == hook {
                *(place as *mut usize) = held;
            }
        }
    }
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner).take();
    REACHED.store(false, Ordering::Relaxed);
    let plain = PLAIN.load(Ordering::Relaxed) as Object;
    if !plain.is_null() {
        // SAFETY: the address of a class that is never freed.
        if let Ok(plain) = unsafe { Bound::from_borrowed_ptr(py, plain) }.cast::<PyType>() {
            forget_lookups(plain);
        }
    }
}

/// Says whether plain memory may hold traced values.
pub(super) fn set_reached(reached: bool) {
    REACHED.store(reached, Ordering::Relaxed);
}

/// The address of a slot, once the interpreter agrees that it is that slot.
fn place(class: &Bound<'_, PyType>, slot: Slot) -> PyResult<usize> {
    let start = class.as_type_ptr();
    // SAFETY: any class may be asked for any slot.
    let held = unsafe { ffi::PyType_GetSlot(start, slot.number) } as usize;
    // SAFETY: the layout of classes up to these fields has been the same since Python 3.8.
    let table =
        slot.table.map_or(start as usize, |at| unsafe { *((start as usize + at) as *const usize) });
    if table == 0 || held == 0 {
        return Err(unknown_layout());
    }
    let place = table + slot.offset;
    // SAFETY: inside of the class, or of its table, by the same layout.
    if unsafe { *(place as *const usize) } == held { Ok(place) } else { Err(unknown_layout()) }
}

/// Where objects that are called keep the function for it: the same function for all of them.
fn places_of_calls(objects: &Bound<'_, PyList>) -> PyResult<Vec<usize>> {
    let mut places = Vec::with_capacity(objects.len());
    let mut functions = Vec::new();
    for object in objects {
        let class = object.get_type();
        let size: usize = class.getattr("__basicsize__")?.extract()?;
        // SAFETY: a field of the class, by the layout that `place` confirmed for others.
        let offset = unsafe { *((class.as_type_ptr() as usize + CALLED_THROUGH) as *const usize) };
        if offset == 0 || offset + words(1) > size || offset % words(1) != 0 {
            return Err(unknown_layout());
        }
        let place = object.as_ptr() as usize + offset;
        // SAFETY: inside of the object, whose size was just asked.
        functions.push(unsafe { *(place as *const usize) });
        places.push(place);
    }
    functions.dedup();
    if functions.len() > 1 || functions.contains(&0) { Err(unknown_layout()) } else { Ok(places) }
}

fn unknown_layout() -> PyErr {
    PyNotImplementedError::new_err("the classes of this NumPy are laid out in an unknown way")
}

/// The interpreter remembers what attributes of a class are; that is over.
fn forget_lookups(class: &Bound<'_, PyType>) {
    // SAFETY: a class, under the lock of the interpreter.
    unsafe { ffi::PyType_Modified(class.as_type_ptr()) };
}

fn class_of(object: &Bound<'_, PyAny>) -> usize {
    object.get_type_ptr() as usize
}

fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    class_of(object) == PLAIN.load(Ordering::Relaxed)
}

/// Whether a value is traced, or a list or tuple that a traced value is in.
fn holds_traced(value: &Bound<'_, PyAny>, depth: u32) -> bool {
    let class = class_of(value);
    if class == TRACED_ARRAY.load(Ordering::Relaxed)
        || class == TRACED_SCALAR.load(Ordering::Relaxed)
    {
        return true;
    }
    if depth == MOST_DEPTH {
        return false;
    }
    if let Ok(items) = value.cast_exact::<PyTuple>() {
        return items.iter().any(|item| holds_traced(&item, depth + 1));
    }
    let items = value.cast_exact::<PyList>();
    items.is_ok_and(|items| items.iter().any(|item| holds_traced(&item, depth + 1)))
}

fn reached() -> bool {
    REACHED.load(Ordering::Relaxed)
}

/// The answer of the listener; none when it leaves the matter to NumPy.
fn ask<'py>(
    py: Python<'py>,
    method: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let listener = match LISTENER.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        Some(listener) => listener.clone_ref(py),
        None => return Ok(None),
    };
    let answer = listener.bind(py).call_method1(method, arguments)?;
    Ok((!answer.is(py.NotImplemented())).then_some(answer))
}

/// Hands an answer to the interpreter, or asks NumPy when there is none.
fn give(
    py: Python<'_>,
    answer: PyResult<Option<Bound<'_, PyAny>>>,
    original: impl FnOnce() -> Object,
) -> Object {
    match answer {
        Ok(Some(answer)) => answer.into_ptr(),
        Ok(None) => original(),
        Err(error) => {
            error.restore(py);
            null_mut()
        }
    }
}

/// # Safety
/// Called by the interpreter as the slot that reads a part.
unsafe extern "C" fn read(array: Object, key: Object) -> Object {
    // SAFETY: the interpreter holds its lock and owns the arguments; the original has this type.
    unsafe {
        let original: Read = transmute(READ_BEFORE.load(Ordering::Relaxed) as *const c_void);
        let py = Python::assume_attached();
        let (of, by) = (Bound::from_borrowed_ptr(py, array), Bound::from_borrowed_ptr(py, key));
        if !is_plain(&of) || !(reached() || holds_traced(&by, 0)) {
            return original(array, key);
        }
        give(py, ask(py, "read", (&of, &by)), || original(array, key))
    }
}

/// # Safety
/// Called by the interpreter as the slot that writes a part.
unsafe extern "C" fn write(array: Object, key: Object, value: Object) -> c_int {
    // SAFETY: see `write_with`.
    unsafe { write_with(&WRITE_BEFORE, "write", array, key, value) }
}

/// # Safety
/// Called by the interpreter as the slot that writes through an iterator over all elements.
unsafe extern "C" fn write_flat(flat: Object, key: Object, value: Object) -> c_int {
    // SAFETY: see `write_with`.
    unsafe { write_with(&FLAT_WRITE_BEFORE, "write_flat", flat, key, value) }
}

/// # Safety
/// The arguments are those of the slot that `before` was in.
unsafe fn write_with(
    before: &AtomicUsize,
    method: &str,
    target: Object,
    key: Object,
    value: Object,
) -> c_int {
    // SAFETY: the interpreter holds its lock and owns the arguments; the original has this type.
    unsafe {
        let original: Write = transmute(before.load(Ordering::Relaxed) as *const c_void);
        if value.is_null() {
            return original(target, key, value);
        }
        let py = Python::assume_attached();
        let into = Bound::from_borrowed_ptr(py, target);
        let by = Bound::from_borrowed_ptr(py, key);
        let new = Bound::from_borrowed_ptr(py, value);
        let ours = method == "write_flat" || is_plain(&into);
        if !ours || !(reached() || holds_traced(&new, 0) || holds_traced(&by, 0)) {
            return original(target, key, value);
        }
        match ask(py, method, (&into, &by, &new)) {
            Ok(Some(_)) => 0,
            Ok(None) => original(target, key, value),
            Err(error) => {
                error.restore(py);
                -1
            }
        }
    }
}

/// # Safety
/// Called by the interpreter as the slot that looks attributes up.
unsafe extern "C" fn attribute(array: Object, name: Object) -> Object {
    // SAFETY: the interpreter holds its lock and owns the arguments; the original has this type.
    unsafe {
        let original: Read = transmute(ATTRIBUTE_BEFORE.load(Ordering::Relaxed) as *const c_void);
        let py = Python::assume_attached();
        let of = Bound::from_borrowed_ptr(py, array);
        if !is_plain(&of) {
            return original(array, name);
        }
        let name_of = Bound::from_borrowed_ptr(py, name);
        if !reached() && !takes_values(&name_of) {
            return original(array, name);
        }
        give(py, ask(py, "attribute", (&of, &name_of)), || original(array, name))
    }
}

/// Methods of a plain array that read their arguments without asking them.
fn takes_values(name: &Bound<'_, PyAny>) -> bool {
    const NAMES: [&str; 12] = [
        "put",
        "take",
        "searchsorted",
        "repeat",
        "choose",
        "compress",
        "dot",
        "fill",
        "partition",
        "argpartition",
        "__getitem__",
        "__setitem__",
    ];
    name.extract::<&str>().is_ok_and(|name| NAMES.contains(&name))
}

/// # Safety
/// Called by the interpreter as the slot that looks attributes of elementwise functions up.
unsafe extern "C" fn function_attribute(function: Object, name: Object) -> Object {
    // SAFETY: the interpreter holds its lock and owns the arguments; the original has this type.
    unsafe {
        let before = FUNCTION_ATTRIBUTE_BEFORE.load(Ordering::Relaxed);
        let original: Read = transmute(before as *const c_void);
        if !reached() {
            return original(function, name);
        }
        let py = Python::assume_attached();
        let of = Bound::from_borrowed_ptr(py, function);
        let name_of = Bound::from_borrowed_ptr(py, name);
        give(py, ask(py, "function_attribute", (&of, &name_of)), || original(function, name))
    }
}

/// # Safety
/// Called by the interpreter as the slot that gives the memory away.
unsafe extern "C" fn expose(array: Object, view: *mut c_void, flags: c_int) -> c_int {
    // SAFETY: the interpreter holds its lock and owns the arguments; the original has this type.
    unsafe {
        let original: Expose = transmute(BUFFER_BEFORE.load(Ordering::Relaxed) as *const c_void);
        let py = Python::assume_attached();
        let of = Bound::from_borrowed_ptr(py, array);
        let traced = class_of(&of) == TRACED_ARRAY.load(Ordering::Relaxed);
        if (traced || reached() && is_plain(&of))
            && let Err(error) = ask(py, "expose", (&of,))
        {
            error.restore(py);
            return -1;
        }
        original(array, view, flags)
    }
}

/// # Safety
/// Called by the interpreter as the slot that begins an iteration.
unsafe extern "C" fn iterate(array: Object) -> Object {
    // SAFETY: the interpreter holds its lock and owns the argument; the original has this type.
    unsafe {
        let original: Iterate = transmute(ITERATE_BEFORE.load(Ordering::Relaxed) as *const c_void);
        let py = Python::assume_attached();
        let of = Bound::from_borrowed_ptr(py, array);
        if !is_plain(&of) || !reached() {
            return original(array);
        }
        give(py, ask(py, "iterate", (&of,)), || original(array))
    }
}

/// # Safety
/// Called by the interpreter to call an elementwise function; operators come through here as well.
unsafe extern "C" fn apply(
    function: Object,
    arguments: *const Object,
    count: usize,
    names: Object,
) -> Object {
    // SAFETY: the interpreter holds its lock and owns the arguments; the original has this type.
    unsafe {
        let original: Apply = transmute(APPLY_BEFORE.load(Ordering::Relaxed) as *const c_void);
        let py = Python::assume_attached();
        // The highest bit says that the caller lends the place before the arguments.
        let positional = count & (usize::MAX >> 1);
        let given = |index: usize| Bound::from_borrowed_ptr(py, *arguments.add(index));
        let wanted = |value: &Bound<'_, PyAny>| {
            let listed =
                value.is_exact_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>();
            reached() && is_plain(value) || listed && holds_traced(value, 0)
        };
        let names_of = if names.is_null() {
            PyTuple::empty(py)
        } else {
            Bound::from_borrowed_ptr(py, names).cast_into_unchecked()
        };
        let all = positional + names_of.len();
        if !(0..all).any(|index| wanted(&given(index))) {
            return original(function, arguments, count, names);
        }
        let asked = (|| {
            let listed = PyTuple::new(py, (0..positional).map(given))?;
            let keywords = PyDict::new(py);
            for (index, name) in names_of.iter().enumerate() {
                keywords.set_item(name, given(positional + index))?;
            }
            ask(py, "apply", (Bound::from_borrowed_ptr(py, function), listed, keywords))
        })();
        give(py, asked, || original(function, arguments, count, names))
    }
}
