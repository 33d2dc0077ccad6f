"""One recorded call becomes nodes of an fx graph that every exporter can run.

The exporters run the graph's Python code and record what it does, so most calls are kept as the
user made them: torch knows their meaning best. This module holds the exceptions: calls whose
meaning would be lost (`torch.tensor` of a list of tensors becomes a literal), calls that Python
code cannot spell (getters, descriptors) and calls that no exporter can take, which are refused
with the user's line.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx

from veracity.errors import VeracityError, refuse

#: Key of `fx.Node.meta` with the `file:line` of the user's code.
LOCATION = "veracity_location"

_GETTER_TYPES = (types.MethodWrapperType,)
_DESCRIPTOR_TYPES = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.FunctionType,
)
#: What an fx graph can hold as it is.
_PLAIN_TYPES = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    range,
    type(...),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


class Operation(NamedTuple):
    """What was called.

    Attributes:
        kind: `"getter"`, `"setter"`, `"method"` or `"function"`.
        name: Name without its namespace.
    """

    kind: str
    name: str


class Lowered(NamedTuple):
    """What to call instead.

    Attributes:
        operation: What the user called.
        target: A method name (`str`) or a function.
    """

    operation: Operation
    target: str | Callable[..., Any]


def unsupported(what: str, location: str, *hints: str) -> VeracityError:
    """Return the refusal of one operation; the caller raises it."""
    return refuse("VER0920", what, location=location, hints=hints)


@functools.lru_cache(maxsize=4096)
def identify(func: Callable[..., Any]) -> Operation:
    """Say what a recorded function is."""
    if isinstance(func, _GETTER_TYPES):
        kind = "getter" if func.__name__ == "__get__" else "setter"
        return Operation(kind, getattr(func.__self__, "__name__", "?"))
    if isinstance(func, torch._ops.OpOverload):
        return Operation("function", func._schema.name.split("::")[-1])
    name = getattr(func, "__name__", type(func).__name__)
    method = _tensor_methods().get(func)
    return Operation("function", name) if method is None else Operation("method", method)


@functools.cache
def _tensor_methods() -> dict[Callable[..., Any], str]:
    """Map the methods of tensors to names; an operator may be a wrapper with another `__name__`."""
    found: dict[Callable[..., Any], str] = {}
    # A session may have put functions of its own before methods of the class, not of its base.
    for owner in (torch._C.TensorBase, torch.Tensor):
        for name in dir(owner):
            method = getattr(owner, name)
            if isinstance(method, _DESCRIPTOR_TYPES) and found.get(method) != method.__name__:
                found[method] = name
    return found


def literal(value: Any, called: str, location: str) -> Any:
    """Return an argument that is neither tensor nor container in a form that a graph can hold."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, enum.Enum):
        return literal(value.value, called, location)
    if isinstance(value, _PLAIN_TYPES):
        return value
    if callable(value):
        raise unsupported(
            f"{called} takes the Python function {getattr(value, '__name__', value)!r}",
            location,
            "write branches with torch.where and unroll loops, so that only tensors are passed",
        )
    raise unsupported(
        f"{called} takes a {type(value).__module__}.{type(value).__qualname__}", location
    )


class Uses(NamedTuple):
    """What later steps do with the result of a call.

    Attributes:
        hidden_view: It may share memory that is written later, and its schema does not say so.
        live_view: It was read through an index, and a copy of it would not do.
        put_back: It is changed in place, assigned to where it was read and not used otherwise.
    """

    hidden_view: bool = False
    live_view: bool = False
    put_back: bool = False


def lower(
    graph: fx.Graph,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    location: str,
    uses: Uses | None = None,
) -> fx.Node:
    """Add the nodes of one call and return the one that holds its result."""
    uses = uses or Uses()
    target = _target(func, location)
    name = target.operation.name
    _check_arguments(name, args, kwargs, location)
    if target.target is getitem:
        options: dict[str, Any] = {
            "live_view": uses.live_view,
            "put_back": uses.put_back,
            "location": location,
        }
        return graph.call_function(getitem, args, options)
    if kwargs.get("out") is not None and callable(target.target):
        return _lower_out(graph, target.target, args, kwargs, location)
    if not uses.hidden_view or target.operation in _REPLACED or name in _CONVERSIONS:
        return _plain_call(graph, target, args, kwargs)
    if name in _DROPOUTS and _training(args, kwargs) is False:
        return graph.call_function(same, args[:1] or (kwargs["input"],))
    if name in _VIEWS:
        return graph.call_function(_VIEWS[name], args, kwargs | {"location": location})
    made = _plain_call(graph, target, args, kwargs)
    return graph.call_function(
        certainly_new, (made, (args, kwargs)), {"called": name, "location": location}
    )


def _plain_call(
    graph: fx.Graph, target: Lowered, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> fx.Node:
    if isinstance(target.target, str):
        return graph.call_method(target.target, args, kwargs)
    if target.operation.kind == "getter" and target.target is getattr:
        return graph.call_function(getattr, (args[0], target.operation.name))
    if target.operation.kind == "getter":
        args = args[:1]
    return graph.call_function(target.target, args, kwargs)


def _target(func: Callable[..., Any], location: str) -> Lowered:
    try:
        return _find_target(func)
    except _UnsupportedError as refused:
        raise unsupported(refused.what, location, *refused.hints) from None


class _UnsupportedError(Exception):
    """A function that is refused; the caller knows the place."""

    def __init__(self, what: str, *hints: str) -> None:
        super().__init__(what)
        self.what = what
        self.hints = hints


@functools.lru_cache(maxsize=4096)
def _find_target(func: Callable[..., Any]) -> Lowered:
    operation = identify(func)
    if operation.kind == "setter":
        raise _UnsupportedError(
            f"assignment to .{operation.name}", "copy the value with copy_() instead"
        )
    if operation in _REFUSED:
        raise _UnsupportedError(f"{operation.name} cannot be exported", _REFUSED[operation])
    if isinstance(func, torch._ops.HigherOrderOperator):
        raise _UnsupportedError(
            f"{operation.name} takes Python functions",
            "compute both branches and choose with torch.where, or unroll the loop",
        )
    if operation in _REPLACED:
        return Lowered(operation, _REPLACED[operation])
    if operation.kind == "getter":
        return Lowered(operation, getattr)
    if operation.name in RESHAPING_IN_PLACE and not isinstance(func, torch._ops.OpOverload):
        return Lowered(operation, operation.name.removesuffix("_"))
    if operation.kind == "method":
        return Lowered(operation, operation.name)
    return Lowered(operation, _spellable(func, operation.name))


def _spellable(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return `func` if generated code can name it, else a public function that is the same."""
    for candidate in (func, *_public_candidates(name)):
        if _names_itself(candidate) and (candidate is func or _same_builtin(candidate, func)):
            return candidate
    raise _UnsupportedError(f"{name} has no name that exported code could use")


def _names_itself(func: Callable[..., Any]) -> bool:
    """Tell whether fx would print a name for `func` that leads back to it."""
    try:
        path = fx.node._get_qualified_name(func).split(".")
    except (RuntimeError, AttributeError):
        return False
    if path[0] != "torch":
        return True
    found: Any = torch
    for part in path[1:]:
        found = getattr(found, part, None)
    return found is func or (found is not None and found == func)


def _public_candidates(name: str) -> Iterator[Callable[..., Any]]:
    for namespace in (torch, torch.nn.functional, torch._C._nn, torch._C._VariableFunctions):
        found = getattr(namespace, name, None)
        if found is not None:
            yield found


def _same_builtin(candidate: Callable[..., Any], func: Callable[..., Any]) -> bool:
    return isinstance(func, types.BuiltinFunctionType) and candidate == func


def _check_arguments(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], location: str
) -> None:
    """Refuse tensors where the exporters would put the value of today into the model."""
    suspects = [kwargs[key] for key in _STATIC_KEYWORDS if key in kwargs]
    if name == "roll":
        suspects += args[1:]
    if any(isinstance(found, fx.Node) for found in _leaves(suspects)):
        raise unsupported(
            f"{name} gets its dimensions or shifts from a tensor",
            location,
            "pass Python integers, or gather with computed indices",
        )


_STATIC_KEYWORDS = ("dim", "dims", "shifts", "axis")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _lower_out(
    graph: fx.Graph,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    location: str,
) -> fx.Node:
    """Compute into new memory and copy: the tracer of torch crashes on tuples of `out`."""
    out = kwargs["out"]
    if isinstance(function, torch._ops.OpOverload) or not isinstance(out, (tuple, list)):
        return graph.call_function(function, args, kwargs)
    plain = {key: value for key, value in kwargs.items() if key != "out"}
    made = graph.call_function(function, args, plain)
    return graph.call_function(copied_out, (made, tuple(out)), {"location": location})


_DROPOUTS = frozenset(
    [
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_dropout",
        "feature_alpha_dropout",
    ]
)


#: Methods that the tracer records as `to`, whose schema marks the view.
_CONVERSIONS = frozenset(
    [
        "float",
        "double",
        "half",
        "bfloat16",
        "int",
        "long",
        "short",
        "char",
        "byte",
        "bool",
        "cpu",
        "cuda",
    ]
)


def _training(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
    return given.get("training", given.get("train", True))


# Replacements. Each is plain torch code that an exporter runs while it records.


def copied_out(made: Any, out: Sequence[torch.Tensor], location: str) -> tuple[torch.Tensor, ...]:
    """Fill the tensors given as `out=`."""
    for source, target in zip(made, out, strict=True):
        if source.shape != target.shape or source.dtype != target.dtype:
            raise unsupported(
                f"out= has the shape {tuple(target.shape)} for a result of {tuple(source.shape)}",
                location,
                "use what the call returns instead of out=",
            )
        target.copy_(source)
    return tuple(out)


def certainly_new(made: Any, given: Any, called: str, location: str) -> Any:
    """Refuse results on the memory of an argument: TorchScript would take them for new memory."""
    if torch._C._get_tracing_state() is not None:
        memories = {_memory(tensor) for tensor in _tensors(given)}
        if any(_memory(tensor) in memories for tensor in _tensors(made)):
            raise unsupported(
                f"{called} gives a view of its argument, and the memory is written later",
                location,
                "take a copy with clone() or a view with indexing, view() or expand()",
            )
    return made


def _memory(tensor: torch.Tensor) -> Any:
    return tensor.untyped_storage()._cdata


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _listed(tensors: tuple[Any, ...]) -> list[torch.Tensor]:
    """Return what was given one by one or as a sequence."""
    one = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
    return list(tensors[0] if one else tensors)


def like_type(tensor: torch.Tensor, other: torch.Tensor, location: str) -> torch.Tensor:
    """Do what `Tensor.type_as` does, with the call whose schema marks the view."""
    return tensor.to(device=other.device, dtype=other.dtype)


def broadcast_views(*tensors: Any, location: str) -> tuple[torch.Tensor, ...]:
    """Do what `torch.broadcast_tensors` does, with views that are seen as such."""
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in _listed(tensors)))
    return tuple(tensor.expand(shape) for tensor in _listed(tensors))


def meshgrid_views(
    *tensors: Any, indexing: str | None = None, location: str
) -> tuple[torch.Tensor, ...]:
    """Do what `torch.meshgrid` does, with views that are seen as such."""
    parts = [tensor.view(-1) for tensor in _listed(tensors)]
    if indexing == "xy" and len(parts) > 1:
        parts[:2] = parts[1::-1]
    shape = [part.numel() for part in parts]
    made = [
        part.view([-1 if dim == number else 1 for dim in range(len(parts))]).expand(shape)
        for number, part in enumerate(parts)
    ]
    if indexing == "xy" and len(parts) > 1:
        made[:2] = made[1::-1]
    return tuple(made)


def at_least(count: int, *tensors: Any) -> Any:
    """Add dimensions of size one as `torch.atleast_2d` and its like do."""
    if len(tensors) == 1 and isinstance(tensors[0], torch.Tensor):
        tensor = tensors[0]
        while tensor.dim() < count:
            tensor = tensor.unsqueeze(-1 if tensor.dim() == _FILLED_BEHIND else 0)
        return tensor
    return tuple(at_least(count, tensor) for tensor in _listed(tensors))


#: A matrix becomes three-dimensional at its end.
_FILLED_BEHIND = 2


def at_least_1d(*tensors: Any, location: str) -> Any:
    """Do what `torch.atleast_1d` does, with views that are seen as such."""
    return at_least(1, *tensors)


def at_least_2d(*tensors: Any, location: str) -> Any:
    """Do what `torch.atleast_2d` does, with views that are seen as such."""
    return at_least(2, *tensors)


def at_least_3d(*tensors: Any, location: str) -> Any:
    """Do what `torch.atleast_3d` does, with views that are seen as such."""
    return at_least(3, *tensors)


def einsum_view(equation: str, *operands: Any, location: str) -> torch.Tensor:
    """Do what `torch.einsum` does; what only turns its operand or takes a diagonal is a view."""
    tensors = _listed(operands)
    view = _einsum_as_view(equation, tensors[0]) if len(tensors) == 1 else None
    if view is not None:
        return view
    made: torch.Tensor = torch.einsum(equation, *tensors)
    return certainly_new(made, tensors, "einsum", location)  # type: ignore[no-any-return]


def _einsum_as_view(equation: Any, tensor: torch.Tensor) -> torch.Tensor | None:
    if not isinstance(equation, str) or "." in equation:
        return None
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    if not arrow:
        wanted = "".join(sorted(label for label in given if given.count(label) == 1))
    if set(given) != set(wanted):
        return None  # it sums
    labels = list(given)
    for label in wanted:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            tensor = tensor.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return tensor.permute([labels.index(label) for label in wanted])


def stacked(data: Any, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    """Do what `torch.tensor` does with (lists of) tensors, with operations that are recorded."""
    made = _stack(data)
    if dtype is None and device is None:
        return made.clone()
    return made.detach().to(
        device=made.device if device is None else device,
        dtype=made.dtype if dtype is None else dtype,
        copy=True,
    )


def _stack(data: Any) -> torch.Tensor:
    if isinstance(data, torch.Tensor):
        return data.detach()
    if isinstance(data, (list, tuple)):
        return _stack_promoted([_stack(item) for item in data])
    return torch.tensor(data)


def _stack_promoted(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Stack after bringing all parts to one dtype; exporters do not all promote in `stack`."""
    if not parts:
        return torch.tensor([])
    dtype = functools.reduce(torch.promote_types, (part.dtype for part in parts))
    return torch.stack([part.to(dtype) for part in parts])


def as_tensor(data: Any, dtype: Any = None, device: Any = None, **options: Any) -> torch.Tensor:
    """Do what `torch.as_tensor` does; a tensor that already fits is handed on."""
    if not isinstance(data, torch.Tensor):
        return stacked(data, dtype, device)
    return data.to(
        device=data.device if device is None else device,
        dtype=data.dtype if dtype is None else dtype,
    )


def same(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Stand for calls that matter to autograd only."""
    return tensor


def copied(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Stand for copies that Python makes (`copy.deepcopy`)."""
    return tensor.clone()


def detached(tensor: torch.Tensor) -> torch.Tensor:
    """Stand for `.data`: the same memory."""
    return tensor.detach()


def reversed_dimensions(tensor: torch.Tensor) -> torch.Tensor:
    """Stand for `.T`."""
    return tensor.permute(tuple(reversed(range(tensor.dim()))))


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Stand for `.mT`."""
    return tensor.transpose(-2, -1)


def adjoint(tensor: torch.Tensor) -> torch.Tensor:
    """Stand for `.mH` and `.H`."""
    turned = tensor if tensor.dim() == 0 else tensor.transpose(-2, -1)
    return turned.conj() if tensor.is_complex() else turned


def converted(tensor: torch.Tensor, dtype: Any = None, *_: Any, **__: Any) -> torch.Tensor:
    """Do what `Tensor.type` does, for dtypes and for names such as `"torch.FloatTensor"`."""
    if isinstance(dtype, str):
        dtype = getattr(torch, _LEGACY_TYPES[dtype.rsplit(".", 1)[-1]])
    return tensor.to(dtype)


_LEGACY_TYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}


def to_copy(tensor: torch.Tensor, **options: Any) -> torch.Tensor:
    """Do what `aten._to_copy` does, with the call that every exporter knows."""
    kept = {key: options[key] for key in ("dtype", "device") if options.get(key) is not None}
    return tensor.to(copy=True, **kept) if kept else tensor.clone()


def addmm(
    bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    """Multiply and add; as a layer where it is one, since TorchScript rounds between the two."""
    if bias.dim() == 1 and beta == 1 and alpha == 1:
        return torch.nn.functional.linear(left, right.t(), bias)
    return torch.addmm(bias, left, right, beta=beta, alpha=alpha)


def getitem(
    tensor: torch.Tensor,
    index: Any,
    *,
    live_view: bool = False,
    put_back: bool = False,
    location: str = "",
) -> Any:
    """Index; a single integer tensor stays a tensor, where torch would read it as a number."""
    if _masks(index):
        return _masked_part(tensor, index, put_back, location)
    plain, chosen = _without_scalars(tensor, index)
    if not chosen:
        return tensor[index]
    if live_view:
        return _selected_view(tensor[plain], chosen, location)
    return torch.ops.aten.index.Tensor(tensor[plain], _as_index_list(chosen))


def _masked_part(tensor: torch.Tensor, index: Any, put_back: bool, location: str) -> torch.Tensor:
    """Read through a mask of one element, where the size does not depend on its value.

    That is so in `x[mask] += v`: what is assigned where the mask is false is not looked at.
    """
    view = _where_mask_is_true(tensor, index) if put_back else None
    if view is None:
        raise unsupported(
            "indexing with a mask of one element gives a size that depends on the mask",
            location,
            "choose between two values with torch.where",
        )
    return view.clone()


def _selected_view(
    tensor: torch.Tensor, chosen: dict[int, torch.Tensor], location: str
) -> torch.Tensor:
    """Select with integer tensors without copying, since the memory is written later."""
    if torch.compiler.is_exporting() or torch.onnx.is_in_onnx_export():
        raise unsupported(
            "a part chosen by an integer tensor is written, or its base is, while both are in use",
            location,
            "write with x[i] = value, or copy the part with clone()",
        )
    for dimension in sorted(chosen, reverse=True):
        part: torch.Tensor = tensor.narrow(dimension, chosen[dimension], 1)
        tensor = part.squeeze(dimension)
    return tensor


def setitem(tensor: torch.Tensor, index: Any, value: Any) -> None:
    """Assign through an index, with the same care for single integer tensors."""
    masks = _masks(index)
    if masks:
        _set_masked(tensor, index, functools.reduce(torch.logical_and, masks), value)
        return
    plain, chosen = _without_scalars(tensor, index)
    if not chosen:
        tensor[index] = value
        return
    view = tensor[plain]
    value = _fitting(value, view, view.dim() - len(chosen))
    torch.ops.aten.index_put_.default(view, _as_index_list(chosen), value)


def _set_masked(tensor: torch.Tensor, index: Any, mask: torch.Tensor, value: Any) -> None:
    """Assign through masks of one element: everywhere, then take back where the mask is false."""
    view = _where_mask_is_true(tensor, index)
    if view is not None:
        view.copy_(torch.where(mask, _fitting(value, view, view.dim()), view))
        return
    assigned = tensor.clone()
    setitem(assigned, tuple(True if _is_mask(item) else item for item in _items(index)), value)
    tensor.copy_(torch.where(mask, assigned, tensor))


def _where_mask_is_true(tensor: torch.Tensor, index: Any) -> torch.Tensor | None:
    """Return the indexed part as a view as if the mask was true; none when it is no view."""
    items = _items(index)
    plain = tuple(None if _is_mask(item) else item for item in items)
    if len(_masks(index)) > 1 or not all(map(_is_basic, plain)):
        return None
    return tensor[plain]


def _fitting(value: Any, view: torch.Tensor, dimensions: int) -> torch.Tensor:
    """Return a value as torch assigns it: in the element type of the target, without spare ones."""
    if isinstance(value, torch.Tensor):
        value = value.to(device=view.device, dtype=view.dtype)
    else:
        value = torch.tensor(value, dtype=view.dtype, device=view.device)
    while value.dim() > dimensions:
        value = value.squeeze(0)  # leading dimensions of size one; others are refused by torch
    fitted: torch.Tensor = value
    return fitted


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _masks(index: Any) -> list[torch.Tensor]:
    return [item != 0 for item in _items(index) if _is_mask(item)]


def _is_mask(item: Any) -> bool:
    """Recognise a mask of one element, which torch would read as a Python value."""
    is_scalar = isinstance(item, torch.Tensor) and item.dim() == 0
    return is_scalar and item.dtype in (torch.bool, torch.uint8)


def _without_scalars(
    tensor: torch.Tensor, index: Any
) -> tuple[tuple[Any, ...], dict[int, torch.Tensor]]:
    """Split an index into its basic part and integer scalars by the dimension they choose from.

    The scalars are empty when there are none, or when the rest is not basic.
    """
    items = _items(index)
    scalars = [number for number, item in enumerate(items) if _is_scalar_index(item)]
    rest = [item for number, item in enumerate(items) if number not in scalars]
    if not scalars or not all(_is_basic(item) for item in rest):
        return (), {}
    used = sum(1 for item in items if item is not None and item is not ...)
    plain: list[Any] = []
    chosen: dict[int, torch.Tensor] = {}
    dimension = 0
    for number, item in enumerate(items):
        if number in scalars:
            chosen[dimension] = item
        plain.append(slice(None) if number in scalars else item)
        if item is ...:
            dimension += tensor.dim() - used
        elif number in scalars or not isinstance(item, int):
            dimension += 1
    return tuple(plain), chosen


def _is_scalar_index(item: Any) -> bool:
    return (
        isinstance(item, torch.Tensor)
        and item.dim() == 0
        and item.dtype not in (torch.bool, torch.uint8)
    )


def _is_basic(item: Any) -> bool:
    if item is None or item is ... or isinstance(item, slice):
        return True
    return isinstance(item, int) and not isinstance(item, bool)


def _as_index_list(chosen: dict[int, torch.Tensor]) -> list[torch.Tensor | None]:
    return [chosen.get(dimension) for dimension in range(max(chosen) + 1)]


def _function(name: str) -> Operation:
    return Operation("function", name)


def _method(name: str) -> Operation:
    return Operation("method", name)


#: Methods that change how a tensor lies on its memory, and write nothing.
RESHAPING_IN_PLACE = frozenset(
    [
        "t_",
        "transpose_",
        "squeeze_",
        "unsqueeze_",
        "swapaxes_",
        "swapdims_",
        "detach_",
        "as_strided_",
    ]
)

#: How to spell calls as views where the schema hides that they are, by name.
_VIEWS: dict[str, Callable[..., Any]] = {
    "broadcast_tensors": broadcast_views,
    "meshgrid": meshgrid_views,
    "atleast_1d": at_least_1d,
    "atleast_2d": at_least_2d,
    "atleast_3d": at_least_3d,
    "einsum": einsum_view,
    "type_as": like_type,
}

_REPLACED: dict[Operation, Callable[..., Any]] = {
    _function("tensor"): stacked,
    _function("as_tensor"): as_tensor,
    _function("asarray"): as_tensor,
    _function("_to_copy"): to_copy,
    _function("addmm"): addmm,
    _method("__deepcopy__"): copied,
    _method("__copy__"): copied,
    _method("requires_grad_"): same,
    _method("type"): converted,
    _method("__getitem__"): getitem,
    _method("__setitem__"): setitem,
    # A session puts functions of the same name in their place.
    _function("__getitem__"): getitem,
    _function("__setitem__"): setitem,
    Operation("getter", "data"): detached,
    Operation("getter", "T"): reversed_dimensions,
    Operation("getter", "mT"): transposed,
    Operation("getter", "H"): adjoint,
    Operation("getter", "mH"): adjoint,
}

_NO_GRADIENTS = (
    "gradients are not part of an exported model: compute what you need without autograd"
)
_NO_MEMORY_TRICKS = "copy the values with copy_() instead"
_REFUSED: dict[Operation, str] = {
    _function("grad"): _NO_GRADIENTS,
    _method("backward"): _NO_GRADIENTS,
    Operation("getter", "grad"): _NO_GRADIENTS,
    _method("set_"): _NO_MEMORY_TRICKS,
    _method("resize_"): _NO_MEMORY_TRICKS,
    _function("set_"): _NO_MEMORY_TRICKS,
    _function("resize_"): _NO_MEMORY_TRICKS,
    _method("to_sparse"): "keep the tensor dense",
    _method("to_sparse_csr"): "keep the tensor dense",
    _function("sparse_coo_tensor"): "keep the tensor dense",
    _function("sparse_csr_tensor"): "keep the tensor dense",
}
