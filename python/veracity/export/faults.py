"""Small faults that can be planted into a recorded program: what exporters and people get wrong.

A fault changes one step: a weight, a row, a bias, a literal, an index, an axis, an operator, the
order of operands, an activation that is lost, a value that is taken from elsewhere. Which of them
a program gets follows from a seed. Nothing here runs a program.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx

from veracity.export.double import name_of

#: Computes the value of a step from its arguments.
Compute = Callable[[tuple[Any, ...], dict[str, Any]], Any]


#: Elements of a constant that are changed, one at a time.
ELEMENTS = 4


class NoFaultError(Exception):
    """A change that cannot be made here."""


@dataclass(frozen=True)
class Fault:
    """A fault in one step of a program.

    Attributes:
        node: The step.
        what: What is changed, for people.
        compute: Gives the wrong value of the step.
    """

    node: fx.Node
    what: str
    compute: Compute


#: Operators that are taken for one another.
_SIBLINGS = {
    "add": "sub",
    "sub": "add",
    "mul": "add",
    "truediv": "mul",
    "div": "mul",
    "maximum": "minimum",
    "minimum": "maximum",
    "max": "min",
    "min": "max",
    "amax": "amin",
    "amin": "amax",
    "lt": "gt",
    "gt": "lt",
    "le": "ge",
    "ge": "le",
    "sin": "cos",
    "cos": "sin",
    "sum": "mean",
    "mean": "sum",
    "argmax": "argmin",
    "argmin": "argmax",
    "floor": "ceil",
    "ceil": "floor",
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "logical_and": "logical_or",
    "logical_or": "logical_and",
    "any": "all",
    "all": "any",
    "cumsum": "cumprod",
    "softmax": "log_softmax",
}
#: Steps whose first argument may stand for their result when they are lost.
_DROPPABLE = frozenset(
    {
        "relu",
        "elu",
        "selu",
        "gelu",
        "silu",
        "tanh",
        "sigmoid",
        "softplus",
        "leaky_relu",
        "hardtanh",
        "clamp",
        "clip",
        "abs",
        "neg",
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "round",
        "floor",
        "ceil",
        "sign",
        "softmax",
        "layer_norm",
        "normalize",
        "flip",
        "roll",
        "cumsum",
        "masked_fill",
    }
)
_SWAPPABLE = frozenset({"sub", "truediv", "div", "pow", "matmul", "atan2", "gt", "lt", "cross"})
#: Steps whose whole numbers are numbers; those of others are sizes.
_ARITHMETIC = frozenset({"add", "sub", "mul", "truediv", "div", "pow", "clamp", "clip"})
#: Steps with an index or a shift as their last whole number.
_INDEXING = frozenset({"getitem", "select", "roll", "narrow"})


def name(node: fx.Node) -> str:
    """Return the plain name of a step."""
    target = node.target
    return target.strip("_") if isinstance(target, str) else name_of(target)


def all_of(module: fx.GraphModule, source: np.random.Generator) -> list[Fault]:
    """Return the faults of a program, in an order that follows from `source`."""
    weights: list[Fault] = []
    others: list[Fault] = []
    for node in module.graph.nodes:
        if node.op == "get_attr":
            weights += _of_constant(node, getattr(module, node.target), source)
        elif node.op in ("call_function", "call_method"):
            others += _of_step(node)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    others += _of_inputs(placeholders)
    weights = [weights[index] for index in source.permutation(len(weights))]
    others = [others[index] for index in source.permutation(len(others))]
    # In turns, so that a cut leaves both kinds.
    turns = [one for pair in zip(weights, others, strict=False) for one in pair]
    shorter = min(len(weights), len(others))
    return turns + weights[shorter:] + others[shorter:]


def _fixed(value: Any) -> Compute:
    return lambda args, kwargs: value


def _of_constant(
    node: fx.Node, value: torch.Tensor, source: np.random.Generator
) -> Iterator[Fault]:
    if value.numel() == 0 or not value.is_floating_point():
        return
    size = float(torch.where(value.isfinite(), value, 0).abs().max()) or 1.0
    places = source.integers(0, value.numel(), ELEMENTS)
    label = f"a constant of shape {list(value.shape)}"
    for place in map(int, places):
        index = tuple(int(part) for part in np.unravel_index(place, tuple(value.shape)))
        changed = value.clone()
        old = float(value[index])
        # What is nearly nothing turned around is still nearly nothing.
        changed[index] = -old if abs(old) > 0.1 * size else old + 0.5 * size
        yield Fault(node, f"element {list(index)} of {label} changed", _fixed(changed))
    yield Fault(node, f"{label} negated", _fixed(-value))
    if value.dim() >= 2:
        row = int(source.integers(0, value.shape[0]))
        changed = value.clone()
        changed[row] = changed[row] * 1.5
        yield Fault(node, f"row {row} of {label} times 1.5", _fixed(changed))
    else:
        yield Fault(node, f"{label} shifted", _fixed(value + 0.5 * size))


def _of_step(node: fx.Node) -> Iterator[Fault]:
    called = name(node)
    sibling = _SIBLINGS.get(called)
    replaced = None if sibling is None else _callable(node, sibling)
    if replaced is not None:
        yield Fault(node, f"`{called}` became `{sibling}`", _calling(replaced))
    if called in _DROPPABLE:
        yield Fault(node, f"`{called}` lost", _first_argument)
    if called in _SWAPPABLE and len(node.args) >= 2:
        yield Fault(node, f"operands of `{called}` swapped", _swapped(node, 0, 1))
    if called == "where" and len(node.args) == 3:
        yield Fault(node, "branches of `where` swapped", _swapped(node, 1, 2))
    yield from _of_literals(node, called)


def _of_literals(node: fx.Node, called: str) -> Iterator[Fault]:
    for key in [*range(len(node.args)), *node.kwargs]:
        value = node.args[key] if isinstance(key, int) else node.kwargs[key]
        changed = _changed(value, called, key)
        if changed is not None:
            what = f"{_shown(value)} of `{called}` became {_shown(changed)}"
            yield Fault(node, what, _with(node, key, changed))


def _changed(value: Any, called: str, key: int | str) -> Any:
    """Return another literal in the place of one; `None` where that would say nothing."""
    if isinstance(value, bool) or key == 0:
        return None
    if isinstance(value, float):
        return value * 1.5 if value not in (0.0, float("inf"), float("-inf")) else 0.5
    if isinstance(value, int):
        if called in _ARITHMETIC or called in _INDEXING:
            return value + 1
        return None if key != "dim" else (value - 1 if value > 0 else value + 1)
    if called == "getitem" and isinstance(value, slice):
        return _shifted(value)
    if called == "getitem" and isinstance(value, tuple):
        return _shifted_in(value)
    if called == "roll" and isinstance(value, tuple | list) and key == 1:
        return type(value)(one + 1 for one in value if isinstance(one, int))
    return None


def _shifted(value: slice) -> slice | None:
    """Return a slice that is one off, with as many elements."""
    start, stop = value.start, value.stop
    plain = all(one is None or isinstance(one, int) for one in (start, stop, value.step))
    if not plain or (start is None and stop is None):
        return None
    if start is None and isinstance(stop, int):
        return slice(1, stop + 1, value.step)
    if isinstance(start, int) and start > 0:
        return slice(start - 1, None if stop is None else stop - 1, value.step)
    return slice(start + 1, None if stop is None else stop + 1, value.step)


def _shifted_in(value: tuple[Any, ...]) -> tuple[Any, ...] | None:
    for place in reversed(range(len(value))):
        one = value[place]
        other: Any = _shifted(one) if isinstance(one, slice) else None
        if isinstance(one, int) and not isinstance(one, bool):
            other = one + 1 if one >= 0 else one - 1
        if other is not None:
            return (*value[:place], other, *value[place + 1 :])
    return None


def _of_inputs(placeholders: list[fx.Node]) -> Iterator[Fault]:
    """Yield inputs that are taken for one another; only those of one shape can be."""
    for node, other in itertools.pairwise(placeholders):
        what = f"input `{other.name}` in the place of `{node.name}`"
        yield Fault(node, what, _taking(other))


def _taking(other: fx.Node) -> Compute:
    def compute(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError  # the program hands the other value over

    compute.other = other  # type: ignore[attr-defined]
    return compute


def _callable(node: fx.Node, sibling: str) -> Callable[..., Any] | None:
    if node.op == "call_method":
        return getattr(torch.Tensor, sibling, None)
    for module in (operator, torch, torch.nn.functional):
        if getattr(module, str(getattr(node.target, "__name__", "")), None) is node.target:
            return getattr(module, sibling, None) or getattr(torch, sibling, None)
    return getattr(torch, sibling, None)


def _calling(function: Callable[..., Any]) -> Compute:
    return lambda args, kwargs: function(*args, **kwargs)


def _run(node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    return node.target(*args, **kwargs)


def _first_argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs["input"]


def _swapped(node: fx.Node, first: int, second: int) -> Compute:
    def compute(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        listed = list(args)
        listed[first], listed[second] = listed[second], listed[first]
        if node.op == "call_method" and not isinstance(listed[0], torch.Tensor):
            raise NoFaultError
        return _run(node, tuple(listed), kwargs)

    return compute


def _with(node: fx.Node, key: int | str, value: Any) -> Compute:
    def compute(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(key, int):
            return _run(node, (*args[:key], value, *args[key + 1 :]), kwargs)
        return _run(node, args, {**kwargs, key: value})

    return compute


def _shown(value: Any) -> str:
    if isinstance(value, slice):
        return ":".join("" if one is None else str(one) for one in (value.start, value.stop))
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
