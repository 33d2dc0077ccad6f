"""Tables that are read by index, compared as a whole: inputs read few of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

_READS = ("aten.embedding.", "aten.index_select.", "aten.index.Tensor", "aten.gather.")
_CHOOSE = ("Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod")
#: Numbers beyond this are masks or ends of a type.
_FARTHEST = 1e6
_GATHERS = ("Gather", "GatherElements", "GatherND")


def differing(exported: Any, onnx: Any, targets: Mapping[str, Sequence[str]]) -> list[str]:
    """Say which tables of an ONNX model are not those of the program."""
    held = _state(exported)
    producers = {value.name: node for node in onnx.graph for value in node.outputs}
    found: list[str] = []
    for node in exported.graph.nodes:
        ours = _table(node, held)
        for name in targets.get(node.name, ()) if ours is not None else ():
            theirs = _constant(producers.get(name))
            place = None if theirs is None else _first_difference(ours, theirs)
            if place is not None:
                found.append(
                    f"the table that '{name}' is read from is not the module's: the first element "
                    f"that differs is at {place}"
                )
    return found


def other_limits(original: Any, given: Any) -> list[str]:
    """Say where a file clips or compares at another number than a fresh export."""
    ours = {value.name: node for node in original.graph for value in node.outputs}
    found: list[str] = []
    for node in given.graph:
        there = ours.get(node.outputs[0].name) if node.outputs else None
        if there is None or there.op_type != node.op_type or node.op_type not in _CHOOSE:
            continue
        for mine, theirs in zip(there.inputs, node.inputs, strict=False):
            was, now = _number(mine), _number(theirs)
            is_end = was is not None and now is not None and min(abs(was), abs(now)) >= _FARTHEST
            if was is None or now is None or (is_end and was * now > 0):
                continue
            if abs(was - now) > 1e-5 * max(abs(was), abs(now)):
                found.append(
                    f"'{node.outputs[0].name}' ({node.op_type}) goes by {now:g} where the module "
                    f"goes by {was:g}, and no value that was seen shows whether that matters"
                )
    return found


def _number(value: Any) -> float | None:
    held = None if value is None else value.const_value
    if held is None:
        return None
    array = np.asarray(held.numpy())
    return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind == "f" else None


def _state(exported: Any) -> dict[str, Tensor]:
    """Return weights, buffers and constants by the names of their placeholders."""
    stored = {**exported.state_dict, **exported.constants}
    specs = exported.graph_signature.input_specs
    return {
        spec.arg.name: stored[spec.target]
        for spec in specs
        if spec.target is not None and isinstance(stored.get(spec.target), Tensor)
    }


def _table(node: fx.Node, held: Mapping[str, Tensor]) -> Any:
    if node.op != "call_function" or not str(node.target).startswith(_READS):
        return None
    first = node.args[0] if node.args else None
    tensor = held.get(first.name) if isinstance(first, fx.Node) else None
    return None if tensor is None else tensor.detach().cpu()


def _constant(node: Any) -> np.ndarray[Any, Any] | None:
    if node is None or node.op_type not in _GATHERS or not node.inputs or node.inputs[0] is None:
        return None
    value = node.inputs[0].const_value
    return None if value is None else np.asarray(value.numpy())


def _first_difference(ours: Tensor, theirs: np.ndarray[Any, Any]) -> list[int] | None:
    """Return where two tables differ by more than the rounding of the narrower type."""
    if ours.dtype == torch.bfloat16 or tuple(ours.shape) != theirs.shape:
        return None
    mine = ours.numpy()
    if theirs.dtype.kind == "f" and mine.dtype.kind == "f":
        epsilon = max(np.finfo(mine.dtype).eps, np.finfo(theirs.dtype).eps)
        wide, other = mine.astype(np.float64), theirs.astype(np.float64)
        off = ~((wide == other) | (np.abs(wide - other) <= epsilon * np.abs(wide)))
    else:
        off = mine != theirs
    places = np.argwhere(off)
    return [int(index) for index in places[0]] if len(places) else None
