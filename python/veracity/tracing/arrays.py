"""NumPy arrays whose operations are recorded.

A traced array is the user's array, seen through a subclass that keeps a torch tensor on the same
memory. Every operation is done twice: NumPy computes what the caller gets, bit for bit, and torch
computes the same on the tensors, which is what the recorder sees. Both must agree. The result of
NumPy is then put into the memory of torch's result, so that later operations read the same bits.

What is a NumPy scalar in NumPy is a `TracedScalar` here. It is no array, so that code which turns
it into a number has to ask for it, and is heard.

There is no silent constant: what has no counterpart in torch is refused with the user's line, and a
value that leaves for Python is reported. C code which reads the memory of an array without asking
NumPy (`Generator.shuffle`) is not seen. Plain arrays that traced values are written into are the
business of `veracity.tracing.array_plain`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch

from veracity.errors import VeracityError, refuse
from veracity.tracing.array_table import Unmapped, torch_dtype
from veracity.tracing.replaced import Replaced

#: Attribute of functions that take traced scalars for numbers: the function of torch.
TAKES_NUMBERS = "_veracity_takes_numbers"

# ----------------------------------------------------------------------------------------- hooks

_LIBRARIES = tuple(
    str(Path(module.__file__).parent) + "/"
    for module in (numpy, torch, sys.modules["veracity"])
    if module.__file__
)


def _first_user_line() -> str:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _nobody_listens(tensor: torch.Tensor, how: str) -> None:
    """Report nothing."""


# The session sets these while it runs and sets them back when it is over.
pause: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
escaped: Callable[[torch.Tensor, str], None] = _nobody_listens
active: Callable[[], bool] = bool
#: Whether a refusal waits until somebody uses the result; see `array_unfollowed`.
defers: Callable[[], bool] = bool
user_location: Callable[[], str] = _first_user_line


class Watch:
    """What arrays ask the recorder; here, nobody records."""

    def has_open(self) -> bool:
        """Whether a node is open."""
        return False

    def follows(self, tensor: torch.Tensor) -> bool:
        """Whether an open node reaches the memory of a tensor."""
        return False

    def reaches(self, tensor: torch.Tensor) -> bool:
        """Whether any node, open or not, reaches the memory of a tensor; when in doubt, yes."""
        return True

    def writes(self, tensor: torch.Tensor) -> int:
        """Count the recorded writes into the memory of a tensor."""
        return 0

    def share(self, tensor: torch.Tensor) -> None:
        """Make known that plain arrays show the memory of a tensor."""

    def reach_plain(self, reached: bool) -> None:
        """Say whether plain arrays may hold traced values."""


watch = Watch()


def refusal(name: str, reason: str) -> VeracityError:
    """Return the exception for an operation that cannot be recorded."""
    return refuse(
        "VER0922",
        f"{name} has no counterpart in torch that can be recorded: {reason}",
        location=user_location(),
        hints=(
            "write it with functions that are recorded, or with torch",
            "compute it outside of the node and annotate the result as an input",
        ),
    )


def leave(value: Any, how: str) -> None:
    """Report that a value becomes a Python object. A constant may: it is one already."""
    if active() and not is_constant(value):
        refused = refused_memory(value)
        escaped(state_of(value).tensor if refused is None else refused[1], how)


# ----------------------------------------------------------------------------------------- state


#: Why memory cannot be followed, and a recorded tensor that its elements were computed from.
Refused = tuple[VeracityError, torch.Tensor]


class Memory:
    """One piece of memory that arrays share.

    It is `derived` when a traced value may have come into it. What was only computed from constants
    need not be recorded.

    Attributes:
        given: Of a constant: a tensor on it that torch has, and may write into.
        whole: A tensor on all of it, when it is the user's own.
        frozen: For a copy of what NumPy shows as a view: the copy and the view. They must stay
            equal.
        told: Of a constant: the tensor on all of it, and the elements that the recorder knows.
        aliases: Plain arrays that show it, as long as they live.
        lost: Whether torch has a tensor on it that the recorder takes for another memory.
        written: Of plain arrays that traced values may come into: how many writes were recorded,
            and the elements after the last of them.
        refused: Of what NumPy alone could compute: why, and what it was computed from.
    """

    __slots__ = (
        *("__weakref__", "_derived", "aliases", "frozen", "given", "lost", "told", "whole"),
        *("refused", "written"),
    )

    def __init__(self, derived: bool) -> None:
        """Start with nobody else on it."""
        self._derived = derived
        self.given: torch.Tensor | None = None
        self.whole: torch.Tensor | None = None
        self.frozen: tuple[Any, Any] | None = None
        self.told: tuple[torch.Tensor, Any | None] | None = None
        self.aliases: list[weakref.ref[Any]] = []
        self.lost = False
        self.written: tuple[int, Any] | None = None
        self.refused: Refused | None = None

    @property
    def derived(self) -> bool:
        """Whether a traced value may have come into it."""
        if not self._derived and self.given is not None:
            self._derived = watch.reaches(self.given)
        return self._derived

    @derived.setter
    def derived(self, derived: bool) -> None:
        self._derived = derived


@dataclass(frozen=True)
class State:
    """What an array is to torch.

    Attributes:
        tensor: On the same memory, each axis in the direction of growing addresses.
        reversed_axes: The axes that the array reads backwards.
        memory: Shared by all views.
        ragged: Whether the shape of the array came from elements.
    """

    tensor: torch.Tensor
    reversed_axes: tuple[int, ...]
    memory: Memory
    ragged: bool = False

    @functools.cached_property
    def array(self) -> Any:
        """The memory of the tensor."""
        return array_of(self.tensor)


class _Kind(type):
    """Counts scalars as traced arrays: to the recorder they are arrays of rank 0.

    Equal to the class of plain arrays, so that `type(array) == numpy.ndarray` holds as it does
    without a session; of `type(array) is numpy.ndarray` nobody can be asked.
    """

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is numpy.ndarray

    def __hash__(cls) -> int:
        return hash(numpy.ndarray)

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or type(instance) is TracedScalar


class TracedArray(numpy.ndarray[Any, numpy.dtype[Any]], metaclass=_Kind):
    """An array whose operations are recorded. Made by `trace_array` and `array_from_tensor`."""

    _state: State | None = None
    _parent: TracedArray | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What `isinstance` and `singledispatch` ask for: the class without a session."""
        return numpy.ndarray

    def __array_finalize__(self, obj: Any) -> None:
        """Remember the array that this one was made from; it is asked when a tensor is needed."""
        if is_array(obj):
            self._parent = obj


# What `type(array).__name__` gives without a session: tables are made by it.
TracedArray.__name__ = TracedArray.__qualname__ = "ndarray"


class TracedScalar:
    """A NumPy scalar whose operations are recorded. Immutable."""

    __array_priority__ = 2000.0  # torch gives way to it

    def __init__(self, value: numpy.generic, state: State) -> None:
        """Keep a value and the tensor of rank 0 that stands for it."""
        self._value = value
        self._state = state

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What `isinstance` asks for: the class that the scalar has without a session."""
        return type(self._value)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Take part in a call of torch: where torch takes a number or a tensor, this is one."""
        if active():
            changed, named = tensors_for_scalars(args, kwargs or {})
            with contextlib.suppress(
                TypeError
            ):  # torch insists on a number, before it does a thing
                return func(*changed, **named)
        changed, named = numbers_for_scalars(args, kwargs or {})
        return func(*changed, **named)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Become a number of NumPy, which is reported."""
        leave(self, "__array__")
        return new_array(self._value, dtype)


def is_array(value: object) -> bool:
    """Whether a value is a traced array, and no scalar."""
    return type(value) is TracedArray


def is_traced(value: object) -> bool:
    """Whether a value is a traced array or scalar."""
    kind = type(value)
    return kind is TracedArray or kind is TracedScalar


def plain_array(value: Any) -> Any:
    """Return a traced value as NumPy alone would have it: on the same memory."""
    if type(value) is TracedScalar:
        return value._value
    return numpy.ndarray.view(value, numpy.ndarray)


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Change the leaves of nested lists, tuples and dicts."""
    if type(value) in (list, tuple):
        return type(value)(map_leaves(one, change) for one in value)
    if type(value) is dict:
        return {name: map_leaves(one, change) for name, one in value.items()}
    if type(value) is slice:
        return slice(*(map_leaves(one, change) for one in (value.start, value.stop, value.step)))
    return change(value)


def plain(value: Any) -> Any:
    """Return nested values with every traced one as NumPy alone would have it."""
    return map_leaves(value, lambda leaf: plain_array(leaf) if is_traced(leaf) else leaf)


def traced_in(*values: Any) -> list[Any]:
    """Return the traced values in nested lists, tuples and dicts."""
    found: list[Any] = []
    map_leaves(values, lambda leaf: found.append(leaf) if is_traced(leaf) else None)
    return found


def is_constant(value: Any) -> bool:
    """Whether a traced value holds nothing traced: then it is to behave as NumPy alone."""
    state, parent = value._state, getattr(value, "_parent", None)
    if state is not None:
        return not state.memory.derived
    return parent is None or is_constant(parent)


def only_constants(*values: Any) -> bool:
    """Whether nothing traced takes part in an operation on nested lists, tuples and dicts."""
    return all(map(_is_untraced, _leaves(*values)))


def _leaves(*values: Any) -> list[Any]:
    found: list[Any] = []
    map_leaves(values, found.append)
    return found


def _is_untraced(leaf: Any) -> bool:
    if is_traced(leaf):
        return is_constant(leaf)
    if isinstance(leaf, numpy.ndarray):
        known = known_memory(leaf)
        return known is None or not known.memory.derived
    return not isinstance(leaf, torch.Tensor)


def part_of(array: Any, source: Any) -> Any:
    """Return a view of a traced array; what it is to torch is found out when it is asked for."""
    part = numpy.ndarray.view(array, TracedArray)
    part._state, part._parent = None, source
    return part


def exposed(value: Any) -> Any:
    """Return a constant array as a plain one that may be kept: who has it may write unseen."""
    if not is_array(value):
        return plain_array(value) if is_traced(value) else value
    try:
        state = state_of(value)
    except VeracityError:  # nothing that a recorded operation could read either
        return plain_array(value)
    alias = array_of(state.tensor)
    aliases = state.memory.aliases
    aliases[:] = [one for one in aliases if one() is not None]
    aliases.append(weakref.ref(alias))
    return _flip(alias, state.reversed_axes) if state.reversed_axes else alias


def memory_of(value: Any) -> Memory | None:
    """Return the memory of a traced array, also where torch cannot show the array."""
    while value is not None and value._state is None:
        value = value._parent
    return None if value is None else value._state.memory


def refused_memory(value: Any) -> Refused | None:
    """Return why a traced value cannot be followed, if it cannot."""
    state = value._state if type(value) is TracedScalar else None
    memory = memory_of(value) if state is None else state.memory
    return None if memory is None else memory.refused


def lose_if_outdated(value: Any) -> bool:
    """Give a constant up that was written unseen, while nothing can be recorded."""
    memory = memory_of(value)
    if active() or memory is None or memory.derived or memory.told is None:
        return False
    tensor, known = memory.told
    if known is not None and array_of(tensor).tobytes() == known.tobytes():
        return False
    memory.derived = memory.lost = True
    return True


def tell(memory: Memory) -> None:
    """Record what was written into a constant without being seen."""
    if memory.derived or memory.told is None or not active():
        return
    tensor, known = memory.told
    array = array_of(tensor)
    if known is not None and array.tobytes() == known.tobytes():
        return
    now = array.copy()
    if known is not None:
        with pause():
            array[...] = known
    memory.told = (tensor, now)
    tensor.copy_(new_constant(now))


def taint(name: str, memory: Memory) -> None:
    """Prepare for a traced value to be written into memory that may hold a constant."""
    if memory.refused is not None:
        raise memory.refused[0]
    if memory.derived:
        return
    if any(one() is not None for one in memory.aliases):
        raise refusal(name, "it writes into memory that an array which is not recorded shows too")
    tell(memory)
    memory.derived = True


def state_of(value: Any) -> State:
    """Return what a traced value is to torch."""
    state: State | None = value._state
    if type(value) is TracedScalar:
        assert state is not None
        return state
    array = plain_array(value)
    if state is not None and state.array.shape == array.shape:
        return state
    # A view that C code made (or a new `.shape`): the memory tells what it shows.
    source = state or (None if value._parent is None else state_of(value._parent))
    if source is not None and not source.memory.derived and not overlap(array, source.array):
        value._state = state = _alias(array, derived=False)  # a copy that C code made
        state.memory.told = (state.tensor, None)
        return state
    if source is None or not overlap(array, source.array):
        raise refusal("this array", "it was made by an operation that is not recorded")
    value._state = state = shown(array, source)
    value._parent = None
    return state


def array_of(tensor: torch.Tensor) -> Any:
    """Return the memory of a tensor; to the recorder nobody asked for it."""
    with pause():
        return torch.Tensor.numpy(tensor.detach().resolve_conj().resolve_neg())


# Held from before a session puts its own in their places.
_may_share_memory = numpy.may_share_memory
_shares_memory: Callable[..., bool] = numpy.shares_memory
_flip = numpy.flip


def overlap(one: Any, other: Any) -> bool:
    """Whether two arrays lie on the same memory."""
    return bool(_may_share_memory(one, other))


def reading_tensor(value: Any) -> torch.Tensor:
    """Return the tensor that reads what an array reads."""
    state = state_of(value)
    if state.memory.refused is not None:
        raise state.memory.refused[0]
    tell(state.memory)
    if state.memory.lost:
        raise refusal("this array", "torch has its memory, and it was written unseen before")
    frozen = state.memory.frozen
    if frozen is not None and frozen[0].tobytes() != frozen[1].tobytes():
        raise refusal("a part that a traced number picked", "the array was written since")
    if state.reversed_axes:
        return torch.flip(state.tensor, state.reversed_axes)
    return state.tensor


# ------------------------------------------------------------------------------------ public part


def trace_array(array: numpy.ndarray[Any, Any]) -> TracedArray:
    """Return a traced array on the memory of the user's array, which is not changed."""
    if type(array) is TracedScalar or is_array(array):
        return array  # type: ignore[return-value]
    if isinstance(array, numpy.matrix | numpy.ma.MaskedArray):
        raise refusal(type(array).__name__, "its operators are not those of an array")
    known = known_memory(array)
    if known is not None:
        known.memory.derived = True
        return wrap(array, shown(array, known))
    state = _alias(array, derived=True)
    _remember(array, state)
    return wrap(array, state)


def array_from_tensor(tensor: torch.Tensor) -> TracedArray:
    """Return a traced array on the memory of a tensor."""
    with pause():
        array = torch.Tensor.numpy(tensor)
    return wrap(array, State(tensor, (), Memory(derived=True)))


def tensor_of(array: Any) -> torch.Tensor:
    """Return the tensor on the memory of a traced array; of a reversed array, a recorded copy."""
    found = reading_tensor(array)
    state_of(array).memory.given = found  # who has the tensor may write into it
    return found


def forwards(value: Any) -> Any:
    """Return a value whose tensor lies on its memory: of a reversed array, a copy."""
    return value.copy() if is_array(value) and state_of(value).reversed_axes else value


def install_patches(replaced: Replaced) -> None:
    """Make NumPy's and torch's constructors keep traced arrays traced."""
    from veracity.tracing import array_patches

    array_patches.install(replaced)


def forget() -> None:
    """Let go of what was remembered of arrays."""
    _constants.clear()
    _memories.clear()
    kept_memories.clear()


# ----------------------------------------------------------------------------- arrays and tensors


def wrap(array: Any, state: State) -> TracedArray:
    """Return a traced array on the memory of an array."""
    wrapped = numpy.ndarray.view(array, TracedArray)
    wrapped._parent = None
    wrapped._state = state
    return wrapped


def _forwards(array: Any) -> tuple[Any, tuple[int, ...]]:
    """Return a view that reads every axis forwards, and the axes that were turned for it."""
    turned = tuple(
        axis
        for axis, (count, stride) in enumerate(zip(array.shape, array.strides, strict=True))
        if stride < 0
    )
    return _flip(array, turned) if turned else array, turned


def _alias(array: Any, *, derived: bool) -> State:
    """Return a state for an array that no traced memory holds."""
    forwards, turned = _forwards(array)
    try:
        torch_dtype(array.dtype)
        with pause(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of arrays that are read-only
            tensor = _new_alias(forwards)
    except (Unmapped, TypeError, ValueError) as error:
        raise refusal(f"an array of {array.dtype}", str(error)) from None
    return State(tensor, turned, Memory(derived))


def unseen_state(array: Any, memory: Memory) -> State:
    """Return a state on memory that no recorded operation will read; its shape may be data."""
    with pause():
        return State(_new_alias(array), (), memory, ragged=True)


def shown(array: Any, source: State) -> State:
    """Return the state of a view of traced memory, told by its place in the memory alone."""
    forwards, turned = _forwards(array)
    tensor = source.tensor
    if not same_place(forwards, tensor):
        if torch_dtype(array.dtype) != tensor.dtype:
            raise refusal("a view with another dtype", "torch has no such view")
        size = array.itemsize
        with pause():
            start, offset = tensor.data_ptr(), tensor.storage_offset()
        away = (_address(forwards) - start) // size + offset
        strides = [stride // size for stride in forwards.strides]
        tensor = torch.as_strided(tensor, forwards.shape, strides, away)
    return State(tensor, turned, source.memory, source.ragged)


def _address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def same_place(array: Any, tensor: torch.Tensor) -> bool:
    """Whether an array and a tensor show the same elements of the same memory."""
    other = array_of(tensor)
    return (
        array.dtype == other.dtype
        and array.shape == other.shape
        and (array.size == 0 or _address(array) == _address(other))
        and same_strides(array, other)
    )


def same_strides(one: Any, other: Any) -> bool:
    """Whether the axes of two arrays of one shape lie alike in memory."""
    steps = zip(one.shape, one.strides, other.strides, strict=True)
    return one.size == 0 or all(a == b for count, a, b in steps if count > 1)


# Memory of the user's own arrays that traced arrays look at: an untraced name of the same memory
# is as traced as the traced one. The last traced array takes the entry with it.
_memories: dict[int, tuple[int, int, weakref.ref[Memory]]] = {}
# Memory that only untraced names show, kept until the session is over.
kept_memories: list[Memory] = []
_byte_bounds: Callable[[Any], tuple[int, int]] = getattr(
    numpy.lib, "array_utils", numpy
).byte_bounds


def _remember(array: Any, state: State) -> None:
    memory, key = state.memory, id(state.memory)
    memory.whole = state.tensor
    gone = weakref.ref(memory, lambda _: _memories.pop(key, None))
    _memories[key] = (*_byte_bounds(array), gone)


def known_memory(array: Any) -> State | None:
    """Return the traced memory that an untraced array lies in."""
    if not _memories or array.size == 0:
        return None
    start, end = _byte_bounds(array)
    for low, high, reference in reversed(list(_memories.values())):
        memory = reference()
        if low <= start and end <= high and memory is not None and memory.whole is not None:
            state = State(memory.whole, (), memory)
            if _shares(array, state.array):
                _check_written(memory, state)
                return state
    return None


def _check_written(memory: Memory, state: State) -> None:
    """Notice elements of a plain array that were written where nobody could hear it."""
    if memory.written is None or not active():
        return
    count, elements = memory.written
    if watch.writes(state.tensor) == count and state.array.tobytes() != elements.tobytes():
        if watch.follows(state.tensor):
            raise refusal("this array", "it holds traced values and was written unseen")
        state.tensor.copy_(new_constant(state.array.copy()))
    note_written(memory)


def note_written(memory: Memory) -> None:
    """Remember the elements that a recorded write has left in a plain array."""
    if memory.written is not None and memory.whole is not None:
        memory.written = (watch.writes(memory.whole), array_of(memory.whole).copy())


def _shares(one: Any, other: Any) -> bool:
    """Whether two arrays have an element in common: columns of one table have none."""
    try:
        return _shares_memory(one, other, max_work=1000)
    except RuntimeError:  # too hard to tell
        return True


# Untraced arrays that took part in an operation, and the constant that stands for each.
_constants: dict[int, tuple[weakref.ref[Any], torch.Tensor]] = {}


def constant_of(array: Any) -> torch.Tensor:
    """Return an untraced array as a constant, the same one as long as its elements are the same."""
    key = id(array)
    known = _constants.get(key)
    if known is not None and id(known[0]()) == key:
        kept = array_of(known[1])
        same = kept.shape == array.shape and kept.dtype == array.dtype
        if same and kept.tobytes() == array.tobytes():
            return known[1]
    constant = new_constant(array)
    _constants[key] = (weakref.ref(array, lambda _: _constants.pop(key, None)), constant)
    return constant


def known_constant(array: Any) -> torch.Tensor | None:
    """Return the constant that stands for an untraced array, if it took part in an operation."""
    known = _constants.get(id(array))
    return known[1] if known is not None and known[0]() is array else None


# Held from before a session puts its own in their places.
_new_alias = torch.from_numpy
_new_tensor = torch.tensor
_in_c_order = numpy.ascontiguousarray
new_array = numpy.array


def new_constant(array: Any) -> torch.Tensor:
    """Return a copy; not `torch.from_numpy`, so that the recorder sees where it comes from.

    It lies where arrays do, whatever the default device is.
    """
    dtype = torch_dtype(array.dtype)
    return _new_tensor(_in_c_order(array).reshape(array.shape), dtype=dtype, device="cpu")


def operand(value: Any) -> Any:
    """Return what torch computes with in place of an argument of a NumPy function."""
    if is_traced(value):
        return reading_tensor(value)
    if isinstance(value, numpy.ndarray):
        known = known_memory(value)
        return (
            constant_of(value)
            if known is None
            else reading_tensor(wrap(value, shown(value, known)))
        )
    return value


def numbers_for_scalars(*arguments: Any) -> tuple[Any, ...]:
    """Return arguments of torch with numbers for traced scalars, which is reported."""

    def number(value: Any) -> Any:
        if type(value) is not TracedScalar:
            return value
        leave(value, "item")
        return plain_array(value)

    return tuple(map_leaves(one, number) for one in arguments)


def _category(dtype: torch.dtype) -> tuple[bool, bool, bool]:
    return dtype.is_complex, dtype.is_floating_point, dtype == torch.bool


def tensors_for_scalars(*arguments: Any) -> tuple[Any, ...]:
    """Return arguments of torch with tensors for traced scalars, of the dtype of a number there."""
    tensors = [leaf for leaf in _leaves(*arguments) if isinstance(leaf, torch.Tensor)]

    def tensor(value: Any) -> Any:
        if type(value) is not TracedScalar:
            return value
        found = reading_tensor(value)
        with pause():
            number = plain_array(value).item()
            kinds = [torch.result_type(one, number) for one in tensors]
        wanted = functools.reduce(torch.promote_types, kinds) if kinds else found.dtype
        if wanted == found.dtype or _category(wanted) != _category(found.dtype):
            return found
        return found.to(wanted)

    return tuple(map_leaves(one, tensor) for one in arguments)


# Last, since it builds on everything above: it gives both classes their operations.
from veracity.tracing import array_protocols  # noqa: E402, F401
