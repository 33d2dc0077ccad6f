"""Operators that ONNX Runtime computes otherwise than torch on corners, written anew.

Its `MaxPool`, `ReduceMax`, `ReduceMin`, `ArgMax` and `ArgMin` drop NaN, some of them by the place
that it is at; `TopK` leaves it anywhere, and `GridSample` reads zero there, and anything where a
place is far outside; its `Clip` without an upper limit makes the largest float of infinity; and its
`Max`, `Min` and `Clip` of 64-bit integers are wrong from 2**31 on; its `MatMul` of a transposed
matrix and a vector is wrong from the first value on. A NaN that a camera or a
division makes has to arrive, or nobody notices it. Values keep their names: what is added stands
behind or in the place of an operator.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

#: A place in a picture of two that lies outside of every picture, in whatever padding.
_FAR = 1e4
_FLOATS = frozenset({"FLOAT", "FLOAT16", "DOUBLE"})


def guarded(model: Any) -> None:
    """Rewrite such operators of a model."""
    for node in list(model.graph):
        rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        kind = None if rule is None else _kind(node)
        if rule is not None and kind is not None:
            rule(_Place(model.graph, node, kind))


def _kind(node: Any) -> str | None:
    """Return the type of an operator's values, where it is known."""
    given, made = node.inputs[0], node.outputs[0]
    for value in (given,) if node.op_type.startswith("Arg") else (given, made):
        if value is not None and value.dtype is not None:
            return str(value.dtype.name)
    return None


class _Place:
    """Where an operator stands, with what it takes to write others around it."""

    def __init__(self, graph: Any, node: Any, kind: str) -> None:
        self.graph, self.node, self.kind = graph, node, kind
        self.given, self.made = node.inputs[0], node.outputs[0]
        self.attributes = dict(node.attributes)

    def add(self, op_type: str, *inputs: Any, **attributes: Any) -> Any:
        """Put an operator in front of the one that is looked at; return its result."""
        import onnx_ir

        origin = dict(self.node.metadata_props)
        made = onnx_ir.node(op_type, list(inputs), attributes, metadata_props=origin)
        self.graph.insert_before(self.node, made)
        return made.outputs[0]

    def constant(self, value: Any, kind: str | None = None) -> Any:
        """Return a constant, of the operator's type if no other is named."""
        import numpy as np
        import onnx_ir

        dtype = onnx_ir.DataType[kind or self.kind]
        array = np.array(value, dtype=dtype.numpy())
        name = f"{self.made.name}_constant_{len(self.graph.initializers)}"
        made = onnx_ir.Value(name=name, const_value=onnx_ir.tensor(array, name=name))
        made.dtype, made.shape = dtype, onnx_ir.Shape(array.shape)
        self.graph.register_initializer(made)
        return made

    def integer(self, name: str, default: int) -> int:
        """Return an attribute."""
        return int(self.attributes[name].as_int()) if name in self.attributes else default

    def is_float(self) -> bool:
        return self.kind in _FLOATS

    def is_nan(self) -> Any:
        if self.kind == "DOUBLE":  # the embedded engine has no other way
            return self.add("Not", self.add("Equal", self.given, self.given))
        return self.add("IsNaN", self.given)

    def again(self, given: Any) -> Any:
        """Apply the same operator to something else."""
        rest = self.node.inputs[1:]
        return self.add(self.node.op_type, given, *rest, **self.attributes)

    def replace(self, result: Any) -> None:
        """Let the operator's readers read something else, under the same name."""
        from onnx_ir import convenience

        name, self.made.name = self.made.name, None
        result.name = name
        _like(result, self.made)
        result.metadata_props.update(self.made.metadata_props)
        convenience.replace_all_uses_with(self.made, result, replace_graph_outputs=True)

    def instead(self, result: Any) -> None:
        """Replace the operator."""
        self.replace(result)
        self.graph.remove(self.node, safe=True)

    def behind(self, made: Any, op_type: str, *inputs: Any, **attributes: Any) -> None:
        """Let the readers of one of the operator's results read what is made behind it."""
        import onnx_ir
        from onnx_ir import convenience

        # The new operator may read what it stands behind.
        kept = onnx_ir.Value(name=f"{made.name}_before")
        convenience.replace_all_uses_with(made, kept, replace_graph_outputs=True)
        origin = dict(self.node.metadata_props)
        node = onnx_ir.node(op_type, list(inputs), attributes, metadata_props=origin)
        self.graph.insert_after(self.node, node)
        result = node.outputs[0]
        result.name, made.name = made.name, f"{made.name}_before"
        _like(result, made)
        convenience.replace_all_uses_with(kept, result, replace_graph_outputs=True)

    def around(self, write: Callable[[Any], Any]) -> None:
        """Replace the operator by what is made of its own result."""
        raw = self.again(self.given)
        _like(raw, self.made)
        self.instead(write(raw))


def _like(made: Any, other: Any) -> None:
    """Take over what is known about another value; a type that is half known cannot be written."""
    if other.shape is not None and other.dtype is not None:
        made.shape, made.dtype = other.shape, other.dtype


def _pool(place: _Place) -> None:
    if not place.is_float() or len(place.node.outputs) > 1:
        return
    flags = place.add("Cast", place.is_nan(), to=_code(place.kind))
    met = place.add("Greater", place.again(flags), place.constant(0.0))
    place.around(lambda raw: place.add("Where", met, place.constant(math.nan), raw))


def _reduce(place: _Place) -> None:
    if not place.is_float():
        return
    only = place.add("Where", place.is_nan(), place.given, place.constant(0.0))
    others, rest = dict(place.attributes), place.node.inputs[1:]
    if "axes" in others:  # where operator sets below 18 have them
        rest = (place.constant(list(others.pop("axes").as_ints()), "INT64"),)
    carried = place.add("ReduceSum", only, *rest, **others)
    place.around(lambda raw: place.add("Add", raw, carried))


def _position(place: _Place) -> None:
    """Give the place of the first NaN, where there is one."""
    if not place.is_float():
        return
    flags = place.add("Cast", place.is_nan(), to=_code("INT32"))
    first = place.add("ArgMax", flags, **place.attributes)
    axes = place.constant([place.integer("axis", 0)], "INT64")
    count = place.add("ReduceSum", flags, axes, keepdims=place.integer("keepdims", 1))
    some = place.add("Cast", count, to=_code("BOOL"))
    place.around(lambda raw: place.add("Where", some, first, raw))


def _sorted(place: _Place) -> None:
    """Sort NaN as what is larger than everything, as torch does."""
    if not place.is_float():
        return
    keys = place.add("Where", place.is_nan(), place.constant(math.inf), place.given)
    place.node.replace_input_with(0, keys)
    values, indices = place.node.outputs
    axis = place.integer("axis", -1)
    place.behind(values, "GatherElements", place.given, indices, axis=axis)


def _recurrent(place: _Place) -> None:
    """Let NaN through a cell, whose activations make numbers of it: to its step and all after."""
    shape = place.given.shape
    if not place.is_float() or place.integer("layout", 0):
        return
    steps = _nan_or_zero(place, place.given)
    starts = [_nan_or_zero(place, value) for value in place.node.inputs[5:7] if value is not None]
    started = functools.reduce(lambda *both: place.add("Add", *both), starts) if starts else None
    over_time = _over_time(place, steps, is_one=shape is not None and shape[0] == 1)
    in_the_end = place.add("ReduceSum", steps, place.constant([0], "INT64"), keepdims=1)
    nan, last = place.constant(math.nan), place.constant([-1], "INT64")
    for number, made in enumerate(place.node.outputs):
        if made.name:
            flags = in_the_end if number else over_time
            flags = flags if started is None else place.add("Add", flags, started)
            some = place.add("IsNaN", place.add("Unsqueeze", flags, last))
            place.behind(made, "Where", some, nan, made)


def _nan_or_zero(place: _Place, value: Any) -> Any:
    """Return NaN for every row that holds one, and zero for the others."""
    only = place.add("Where", place.add("IsNaN", value), value, place.constant(0.0))
    return place.add("ReduceSum", only, place.constant([2], "INT64"), keepdims=0)


def _over_time(place: _Place, steps: Any, *, is_one: bool) -> Any:
    """Return what the steps up to each one hold, by direction: [steps, directions, batch]."""
    direction = _text(place, "direction", "forward")
    ways = (0, 1) if direction == "bidirectional" else (int(direction == "reverse"),)
    found = [
        steps if is_one else place.add("CumSum", steps, place.constant(0, "INT64"), reverse=way)
        for way in ways
    ]
    columns = [place.add("Unsqueeze", one, place.constant([1], "INT64")) for one in found]
    return columns[0] if len(columns) == 1 else place.add("Concat", *columns, axis=1)


def _sampled(place: _Place) -> None:
    padding = _text(place, "padding_mode", "zeros")
    if not place.is_float() or padding == "reflection" or place.given.shape is None:
        return
    where, mode = place.node.inputs[1], _text(place, "mode", "linear")
    near = place.add("Clip", where, place.constant(-_FAR), place.constant(_FAR))
    if mode == "nearest":
        near = place.add("Where", place.add("IsNaN", where), place.constant(_FAR), near)
    place.node.replace_input_with(1, near)
    if padding == "zeros" and mode != "nearest":
        # Zero times what is not finite is NaN.
        none = place.add("Mul", where, place.constant(0.0))
        total = place.add("ReduceSum", none, place.constant([-1], "INT64"), keepdims=0)
        some = place.add("IsNaN", place.add("Unsqueeze", total, place.constant([1], "INT64")))
        place.around(lambda raw: place.add("Where", some, place.constant(math.nan), raw))


def _text(place: _Place, name: str, default: str) -> str:
    return str(place.attributes[name].as_string()) if name in place.attributes else default


def _limit(place: _Place) -> None:
    low, high = ([*place.node.inputs[1:], None, None])[:2]
    if place.kind == "INT64":
        found = place.given
        for limit, operator in ((low, "Less"), (high, "Greater")):
            if limit is not None:
                found = place.add("Where", place.add(operator, found, limit), limit, found)
        place.instead(found if found is not place.given else place.add("Identity", found))
    elif place.is_float() and (low is None) != (high is None):
        name, limit = ("Max", low) if high is None else ("Min", high)
        place.instead(place.add(name, place.given, limit))


def _product(place: _Place) -> None:
    """Multiply with a vector as with a matrix of one column or row.

    ONNX Runtime fuses a transposition with the product behind it, and then takes the wrong
    dimension of a vector.
    """
    ranks = [None if one.shape is None else len(one.shape) for one in place.node.inputs]
    if 1 not in ranks or None in ranks:
        return
    left, right = place.node.inputs
    flat = []
    if ranks[0] == 1:
        left = place.add("Unsqueeze", left, place.constant([0], "INT64"))
        flat.append(-2)
    if ranks[1] == 1:
        right = place.add("Unsqueeze", right, place.constant([1], "INT64"))
        flat.append(-1)
    found = place.add("MatMul", left, right)
    place.instead(place.add("Squeeze", found, place.constant(flat, "INT64")))


def _choose(place: _Place) -> None:
    if place.kind != "INT64" or len(place.node.inputs) != 2:
        return
    left, right = place.node.inputs
    operator = "Greater" if place.node.op_type == "Max" else "Less"
    place.instead(place.add("Where", place.add(operator, left, right), left, right))


def _code(kind: str) -> int:
    import onnx_ir

    return int(onnx_ir.DataType[kind])


_RULES: dict[str, Callable[[_Place], None]] = {
    "MaxPool": _pool,
    "ReduceMax": _reduce,
    "ReduceMin": _reduce,
    "ArgMax": _position,
    "ArgMin": _position,
    "TopK": _sorted,
    "GridSample": _sampled,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "RNN": _recurrent,
    "Clip": _limit,
    "Max": _choose,
    "Min": _choose,
    "MatMul": _product,
}
