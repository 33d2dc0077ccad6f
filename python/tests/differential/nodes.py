"""Shapes of pipelines that many scripts share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from differential.registry import Step, Values

BACKENDS = ("jit", "jit-trace", "onnx", "onnx-torchscript", "pt2")


def one_node(api: Any, compute: Callable[..., Any], export_with: str | None = "jit") -> Step:
    """Return the tick of a pipeline with one node `n` whose only output is `y`, or a dict of them.

    The inputs are handed to `compute` in their order.
    """

    def step(given: Values) -> Values:
        named = {key.removeprefix("n/"): value for key, value in given.items()}
        values = api.annotate.input_tensors("n", named)
        result = compute(*values) if isinstance(values, tuple) else compute(values)
        outputs = result if isinstance(result, dict) else {"y": result}
        api.annotate.output_tensors("n", outputs, export_with=export_with)
        return {f"n/{name}": value for name, value in outputs.items()}

    return step


def two_nodes(api: Any, between: Callable[[Tensor], Any], export_with: str = "jit") -> Step:
    """Return the tick of a chain `a` -> `b` with something happening in between."""

    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        out = x * 2 + 1
        api.annotate.output_tensors("a", {"out": out}, export_with=export_with)
        seen = api.annotate.input_tensors("b", {"seen": between(out)})
        y = seen * 3
        api.annotate.output_tensors("b", {"y": y}, export_with=export_with)
        return {"b/y": y}

    return step
