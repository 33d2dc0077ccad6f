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
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx

from veracity.export.flags import as_values, masked_fill, masked_fill_
from veracity.export.indexing import getitem, setitem
from veracity.export.replacements import (
    addmm,
    adjoint,
    as_tensor,
    at_least_1d,
    at_least_2d,
    at_least_3d,
    broadcast_views,
    certainly_new,
    converted,
    copied,
    copied_out,
    detached,
    einsum_view,
    filled_diagonal,
    fraction,
    like_type,
    lstm,
    meshgrid_views,
    reversed_dimensions,
    same,
    stacked,
    to_copy,
    transposed,
    where,
)
from veracity.export.unchecked import (
    combinations,
    correlation,
    covariance,
    distances,
    least_squares,
    nanquantile,
    quantile,
)
from veracity.export.unsupported import unsupported

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
    if isinstance(getattr(value, "dtype", None), torch.dtype):  # `torch.FloatTensor`
        return value.dtype
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
    args, kwargs = as_values(graph, name, args, kwargs)
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
    # While a session lasts, some functions are wrapped; programs are replayed there, too.
    found = inspect.unwrap(found) if callable(found) else found
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
    _function("where"): where,
    _function("masked_fill"): masked_fill,
    _method("masked_fill"): masked_fill,
    _method("masked_fill_"): masked_fill_,
    _function("frac"): fraction,
    _function("lstm"): lstm,
    _method("frac"): fraction,
    _function("quantile"): quantile,
    _method("quantile"): quantile,
    _function("nanquantile"): nanquantile,
    _method("nanquantile"): nanquantile,
    _function("combinations"): combinations,
    _function("cov"): covariance,
    _method("cov"): covariance,
    _function("corrcoef"): correlation,
    _method("corrcoef"): correlation,
    _function("pdist"): distances,
    _function("linalg_lstsq"): least_squares,
    _method("fill_diagonal_"): filled_diagonal,
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
    "what autograd computes is not recorded: write it with torch.func (grad, jacrev, jacfwd), "
    "which is, or write the derivative down"
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
