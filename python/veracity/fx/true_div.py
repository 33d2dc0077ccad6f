"""Turns the division of a tensor by a number into a product with its inverse, and back.

Exact for powers of two; otherwise the result is rounded twice and may differ in the last place. The
divisor itself is written down, because the inverse of the inverse is often another number. Python
numbers, such as sizes, are left alone: there a last place decides what `int` makes of it.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from veracity.fx.transformation import ReversibleTransformation

_FUNCTIONS = {operator.truediv, torch.div, torch.true_divide, torch.divide}
_METHODS = {"div", "true_divide", "divide"}
#: Inverses outside of this are not normal numbers in float32.
_SMALLEST, _LARGEST = 2.0**-126, 2.0**126
#: Methods and attributes of tensors that give Python numbers.
_NUMBERS = {"size", "shape", "dim", "ndim", "ndimension", "numel", "nelement", "item", "stride"}
_NUMBERS |= {"tolist", "element_size", "storage_offset", "itemsize", "nbytes"}


@dataclass(frozen=True)
class _Division:
    """Written down at a product: the division that it was."""

    op: str
    target: Any
    divisor: float


class ChangeTrueDivToMulByInverse(ReversibleTransformation):
    """Multiplies tensors by 1 / y instead of dividing them by the number y."""

    preserves_computation = True

    def transform(self, graph_module: GraphModule) -> GraphModule:
        """Change every division whose divisor is a number."""
        for node in graph_module.graph.nodes:
            if not _divides_by_number(node):
                continue
            value, divisor = node.args
            reason = _unfit(value, divisor)
            if reason:
                self.decline(graph_module, node, reason)
                continue
            record = _Division(node.op, node.target, divisor)
            node.op, node.target = "call_function", operator.mul
            node.args = (value, 1 / divisor)
            self.mark_as_transformed(node, record=record)
        return graph_module

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        """Bring every division back, with the divisor that it had."""
        nodes = self.get_transformed_nodes(graph_module)
        for node in nodes:
            factor = 1 / self._record(node).divisor
            if node.target is not operator.mul or node.args[1:] != (factor,):
                raise self._cannot_reverse(node, "the product was changed since")
        for node in nodes:
            record = self._record(node)
            node.op, node.target = record.op, record.target
            node.args = (node.args[0], record.divisor)
            self.mark_as_restored(node)
        return graph_module


def _divides_by_number(node: Node) -> bool:
    divides = (node.op == "call_function" and node.target in _FUNCTIONS) or (
        node.op == "call_method" and node.target in _METHODS
    )
    plain = divides and len(node.args) == 2 and not node.kwargs
    return plain and isinstance(node.args[0], Node) and not isinstance(node.args[1], Node)


def _unfit(value: Any, divisor: Any) -> str:
    """Return why a division must stay one, or nothing."""
    if type(divisor) not in (int, float):
        return f"the divisor is a {type(divisor).__name__}"
    if not math.isfinite(divisor) or not _SMALLEST <= abs(divisor) <= _LARGEST:
        return f"{divisor} has no inverse that is a normal number"
    if _gives_number(value):
        return "a Python number is divided, not a tensor"
    return ""


def _gives_number(value: object) -> bool:
    """Return whether a value of the graph is known to be a Python number."""
    if not isinstance(value, Node):
        return isinstance(value, int | float)
    example = value.meta.get("val", value.meta.get("example_value"))
    if example is not None:
        return not isinstance(example, torch.Tensor)
    if value.op == "call_method":
        return value.target in _NUMBERS
    if value.op != "call_function":
        return False
    if value.target is getattr:
        return value.args[1] in _NUMBERS
    if value.target is len:
        return True
    if getattr(value.target, "__module__", "") not in ("_operator", "math", "builtins"):
        return False
    parts = value.args[:1] if value.target is operator.getitem else value.args
    return bool(parts) and all(_gives_number(part) for part in parts)
