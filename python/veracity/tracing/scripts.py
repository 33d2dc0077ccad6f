"""Scripted modules inside of a node, seen operator by operator.

TorchScript runs a module out of sight of function modes: what is seen below is what torch makes of
its operators (`mkldnn_rnn_layer` for an LSTM), which exporters do not know. A script says itself
what it computes, so on recorded passes its graph is walked here and every operator is called as the
script names it. Passes that are not recorded run the script itself, and both must agree.

A graph with anything that is not listed here is left to TorchScript.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from veracity.tracing.replaced import Replaced

#: Values of enumerations, which graphs hold as numbers.
_DTYPES: dict[int, Any] = dict(
    enumerate(
        (
            *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
            *(torch.float16, torch.float32, torch.float64),
            *(torch.complex32, torch.complex64, torch.complex128, torch.bool),
        )
    )
) | {15: torch.bfloat16}
_LAYOUTS: dict[int, Any] = {0: torch.strided}
_MEMORY_FORMATS: dict[int, Any] = {
    0: torch.contiguous_format,
    1: torch.preserve_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
}
_ENUMERATIONS = {"ScalarType": _DTYPES, "Layout": _LAYOUTS, "MemoryFormat": _MEMORY_FORMATS}
_DTYPE_NUMBERS = {dtype: number for number, dtype in _DTYPES.items()}


class _UnsupportedError(Exception):
    """The graph holds something that is left to TorchScript."""


def _same(value: Any) -> Any:
    return value


def _stop(message: str, kind: str | None = None) -> None:
    raise RuntimeError(f"{kind.rpartition('.')[2] if kind else 'Error'}: {message}")


def _sliced(items: list[Any], start: int | None, end: int | None, step: int) -> list[Any]:
    return items[start:end:step]


#: What graphs do with Python values, by the name of the operator up to its overload.
_PLAIN: dict[str, Callable[..., Any]] = {
    "aten::__contains__": operator.contains,
    "aten::__is__": operator.is_,
    "aten::__isnot__": operator.is_not,
    "aten::__not__": operator.not_,
    "aten::size": lambda tensor, *axis: tensor.size(*axis) if axis else list(tensor.size()),
    "aten::dim": lambda tensor: tensor.dim(),
    "aten::is_floating_point": lambda tensor: tensor.is_floating_point(),
    "aten::is_grad_enabled": torch.is_grad_enabled,
    "aten::format": lambda text, *values: text.format(*values),
    "aten::append": list.append,
    "aten::list": list,
    "aten::warn": lambda message, _level=2: warnings.warn(message, stacklevel=2),
    "prim::RaiseException": _stop,
    "prim::TupleIndex": operator.getitem,
    "prim::device": lambda tensor: tensor.device,
    "prim::dtype": lambda tensor: _DTYPE_NUMBERS[tensor.dtype],
    "prim::is_nested": lambda tensor: tensor.is_nested,
    "prim::layout": lambda _tensor: 0,
    "prim::max": max,
    "prim::min": min,
    "prim::requires_grad": lambda tensor: tensor.requires_grad,
    "prim::type": lambda device: device.type,
    "prim::unchecked_cast": _same,
    "prim::unchecked_unwrap_optional": _same,
    "prim::NumToTensor": torch.tensor,
}

#: Likewise, where the same name has overloads for tensors: these are for the other ones.
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "aten::Float": float,
    "aten::Int": int,
    "aten::Bool": bool,
    "aten::__and__": operator.and_,
    "aten::__getitem__": operator.getitem,
    "aten::__or__": operator.or_,
    "aten::add": operator.add,
    "aten::all": all,
    "aten::any": any,
    "aten::div": operator.truediv,
    "aten::eq": operator.eq,
    "aten::floordiv": operator.floordiv,
    "aten::ge": operator.ge,
    "aten::gt": operator.gt,
    "aten::le": operator.le,
    "aten::len": len,
    "aten::lt": operator.lt,
    "aten::mul": operator.mul,
    "aten::ne": operator.ne,
    "aten::neg": operator.neg,
    "aten::remainder": operator.mod,
    "aten::slice": _sliced,
    "aten::sqrt": lambda number: number**0.5,
    "aten::sub": operator.sub,
}

#: Operators that take a number out of a tensor: TorchScript runs them, and they are told there.
_LEAVE_FOR_PYTHON = {
    *("aten::Bool", "aten::Float", "aten::Int", "aten::item", "aten::is_nonzero"),
    *("aten::FloatImplicit", "aten::IntImplicit", "aten::ScalarImplicit", "prim::tolist"),
}

#: Blocks and values, which are walked below.
_STRUCTURE = {
    *("prim::Constant", "prim::GetAttr", "prim::SetAttr", "prim::If", "prim::Loop"),
    *("prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct", "prim::Uninitialized"),
    *("prim::ListUnpack", "prim::TupleUnpack"),
}


def install(
    replaced: Replaced, is_recorded: Callable[[], bool], tell_kept: Callable[[str, str], None]
) -> None:
    """Walk the graphs of scripted modules while `is_recorded`.

    `tell_kept` gets the class of a module and the name of what it keeps that is no tensor.
    """
    kind: Any = torch.jit.ScriptModule
    original = kind.__call__

    @functools.wraps(original)
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        if is_recorded():
            for name in _kept_by(module):
                tell_kept(str(module.original_name), name)
        program = _program_of(module) if is_recorded() and not _has_hooks(module) else None
        if program is None:
            return original(module, *args, **kwargs)
        return program.run(args, kwargs)

    replaced.put(kind, "__call__", call)


#: Operators that change a list or a dict.
_CHANGING = frozenset(
    f"aten::{name}"
    for name in ("append", "insert", "pop", "clear", "extend", "remove", "_set_item", "Delete")
)


def _kept_by(module: Any) -> set[str]:
    """Return attributes that a scripted module changes and that hold no tensor.

    A tensor is found by the tape. Nobody hears of a number or of a list.
    """
    found = set()
    for node in _nodes(module._c._get_method("forward").inlined_graph):
        given = list(node.inputs())
        if node.kind() == "prim::SetAttr" and given[1].type().kind() != "TensorType":
            found.add(str(node.s("name")))
        elif node.kind() in _CHANGING and given[0].node().kind() == "prim::GetAttr":
            found.add(str(given[0].node().s("name")))
    return found


def _has_hooks(module: torch.nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _program_of(module: Any) -> Program | None:
    try:
        method = module._c._get_method("forward")
        return Program(module, method.inlined_graph, method.schema)
    except (_UnsupportedError, RuntimeError, AttributeError):
        return None


class Program:
    """The graph of a method, ready to be walked."""

    def __init__(self, module: Any, graph: Any, schema: Any) -> None:
        """Refuse a graph that holds anything unknown, before anything of it is run."""
        self._module, self._graph, self._schema = module, graph, schema
        for node in _nodes(graph):
            _check(node)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call every operator of the graph."""
        _, *arguments = self._schema.arguments
        names = [argument.name for argument in arguments]
        defaults = {one.name: one.default_value for one in arguments if one.has_default_value()}
        given = defaults | dict(zip(names, args, strict=False)) | kwargs
        inputs = [self._module, *(given[name] for name in names)]
        slots = [slot.debugName() for slot in self._graph.inputs()]
        values = dict(zip(slots, inputs, strict=True))
        _walk(self._graph, values)
        results = [values[slot.debugName()] for slot in self._graph.outputs()]
        return results[0] if len(results) == 1 else tuple(results)


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _check(node: Any) -> None:
    """Refuse what cannot be walked, and what would be walked otherwise than TorchScript does."""
    kind = node.kind()
    if kind in _LEAVE_FOR_PYTHON and _takes_tensors(node):
        raise _UnsupportedError(kind)
    if kind == "aten::append" and next(node.inputs()).node().kind() == "prim::GetAttr":
        raise _UnsupportedError("a list of the module is written")
    known = kind in _STRUCTURE or kind in _PLAIN
    if not known and not (kind in _OF_NUMBERS and not _takes_tensors(node)):
        _operator(node)


def _takes_tensors(node: Any) -> bool:
    """Say whether the first argument is a tensor."""
    first = next(iter(node.inputs()), None)
    return first is not None and first.type().kind() == "TensorType"


def _operator(node: Any) -> Any:
    """Return torch's operator of a node."""
    namespace, _, name = node.kind().partition("::")
    head = node.schema().partition("(")[0]
    overload = head.partition("::")[2].partition(".")[2] or "default"
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except AttributeError:
        raise _UnsupportedError(node.kind()) from None


def _walk(block: Any, values: dict[str, Any]) -> None:
    for node in block.nodes():
        given = [values[slot.debugName()] for slot in node.inputs()]
        results = _results(node, given, values)
        for slot, value in zip(node.outputs(), results, strict=True):
            values[slot.debugName()] = value


def _results(node: Any, given: list[Any], values: dict[str, Any]) -> list[Any]:
    """Return what a node gives, in the order of its outputs."""
    kind = node.kind()
    count = node.outputsSize()
    if kind in ("prim::ListUnpack", "prim::TupleUnpack"):
        return list(given[0])
    if kind == "prim::If":
        taken, other = node.blocks()
        return _block(taken if given[0] else other, values)
    if kind == "prim::Loop":
        return _loop(node, given, values)
    if kind == "prim::SetAttr":
        setattr(given[0], node.s("name"), given[1])
        return []
    result = _result(node, kind, given)
    return [] if count == 0 else [result] if count == 1 else list(result)


def _result(node: Any, kind: str, given: list[Any]) -> Any:
    if kind == "prim::Constant":
        return node.output().toIValue()
    if kind == "prim::GetAttr":
        return getattr(given[0], node.s("name"))
    if kind == "prim::Uninitialized":
        return None
    if kind == "prim::ListConstruct":
        return given
    if kind == "prim::TupleConstruct":
        return tuple(given)
    if kind == "prim::DictConstruct":
        return dict(zip(given[::2], given[1::2], strict=True))
    if kind in _PLAIN:
        return _PLAIN[kind](*given)
    if kind in _OF_NUMBERS and not _takes_tensors(node):
        return _OF_NUMBERS[kind](*given)
    return _call(_operator(node), given)


def _block(block: Any, values: dict[str, Any]) -> list[Any]:
    _walk(block, values)
    return [values[slot.debugName()] for slot in block.outputs()]


def _loop(node: Any, given: list[Any], values: dict[str, Any]) -> list[Any]:
    most, goes_on, *carried = given
    (block,) = node.blocks()
    count = 0
    while goes_on and count < most:
        for slot, value in zip(block.inputs(), [count, *carried], strict=True):
            values[slot.debugName()] = value
        goes_on, *carried = _block(block, values)
        count += 1
    return carried


def _call(function: Any, given: list[Any]) -> Any:
    """Call an operator with values as its schema wants them."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for argument, value in zip(function._schema.arguments, given, strict=False):
        kind = str(argument.real_type).removeprefix("Optional[").removesuffix("]")
        if type(value) is int and kind in _ENUMERATIONS:
            value = _ENUMERATIONS[kind].get(value, value)
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    if function is torch.ops.aten._convolution.default:
        # Its last arguments choose kernels, and exporters know the operator without them.
        function, positional = torch.ops.aten.convolution.default, positional[:9]
    public = _public(function)
    if public is None:
        return function(*positional, **named)
    try:
        return public(*positional, **named)
    except TypeError:  # other parameters than the operator's
        return function(*positional, **named)


def _public(function: Any) -> Any:
    """Return the function or method that people write for an operator, and exporters know."""
    name = str(function._schema.name).partition("::")[2]
    if name.startswith("_"):
        return None
    return getattr(torch._C._VariableFunctions, name, None) or getattr(torch.Tensor, name, None)
