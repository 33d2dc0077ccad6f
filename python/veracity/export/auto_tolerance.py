"""Tolerances that follow from the computation: dtype, longest reduction, and a run in float64.

For an output of floats, with `eps` the distance from 1 to the next number of its dtype, `K` the
longest reduction of the node, and `e` the largest error of the recorded values against the same
program in float64:

    atol = max(8 e, 4 eps sqrt(K) max|y|)
    rtol = 8 eps sqrt(K)

Rounding errors of a sum of `K` terms grow like `sqrt(K)` when they are independent. The factors
leave room for another order of operations. Elements of one output that differ by orders of
magnitude have each an `e` and a `max|y|` of their own. Where the program cannot be run in float64,
only the part that needs no such run is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from veracity.export import scale
from veracity.export.bounds import Bound
from veracity.export.double import name_of, rounding, run_in_double
from veracity.tracing.nodes import Node

#: Samples that are run in float64.
MAX_SAMPLES = 5
#: Elements of one output whose sizes differ by more have tolerances of their own.
MIXED = 1e3
#: Larger samples are not run in float64, which takes twice their memory.
MAX_BYTES = 256 << 20


@dataclass
class Derived:
    """Tolerances of a node.

    Attributes:
        bounds: By output; integers and truth values have none.
        reduction: Length of the longest reduction.
        note: Why there was no run in float64, if so.
    """

    bounds: dict[str, Bound] = field(default_factory=dict)
    reduction: int = 1
    note: str | None = None


def derive(node: Node) -> Derived:
    """Return the tolerances of a node's outputs."""
    longest = _Longest()
    floats = [port.name for port in node.outputs if _is_float(node, port.name)]
    errors: dict[str, float] = {}
    note = None
    try:
        errors = _errors(node, floats, longest)
    except Exception as error:  # any: foreign operations raise what they like
        lines = str(error).strip().splitlines() or [""]
        note = f"not run in float64: {type(error).__name__}: {lines[0][:200]}"
    root = math.sqrt(longest.length)
    bounds = {}
    for name in floats:
        eps = float(torch.finfo(_values(node, name)[0].dtype).eps)
        size = max((_largest(value) for value in _values(node, name)), default=0.0)
        atol = max(8 * errors.get(name, 0.0), 4 * eps * root * size)
        bound = Bound(atol, 8 * eps * root)
        bounds[name] = _of_elements(node, name, bound, 4 * eps * root) or bound
    return Derived(bounds, longest.length, note)


def _of_elements(node: Node, name: str, bound: Bound, share: float) -> Bound | None:
    """Return tolerances of elements that differ by orders of magnitude; `None` if they do not.

    Of one element the largest error is a matter of luck, so that noise is tried as well.
    """
    values = _values(node, name)
    if len(values) < scale.ENOUGH or values[0].numel() == 0 or scale.is_large(values[0]):
        return None
    scales = torch.stack([value.detach().cpu().double().abs() for value in values]).amax(0)
    scales = torch.where(scales.isfinite(), scales, torch.zeros_like(scales))
    if not bool((scales > 0).any()) or float(scales.max()) <= MIXED * float(
        scales[scales > 0].min()
    ):
        return None
    try:
        moved = rounding(node, node.samples[:MAX_SAMPLES], [name])[name]
    except Exception:  # any: foreign operations raise what they like
        return None
    atols = torch.maximum(moved, share * scales).clamp(max=bound.atol)
    atols[scales == 0] = bound.atol
    return scale.of_elements(atols, torch.full_like(atols, bound.rtol))


def _errors(node: Node, names: list[str], longest: _Longest) -> dict[str, float]:
    """Return the largest distance of recorded values to those of the program in float64."""
    if not node.samples:
        raise ValueError("nothing was recorded")
    if sum(value.nbytes for value in node.samples[0].outputs.values()) > MAX_BYTES:
        raise ValueError("the outputs are too large")
    errors = dict.fromkeys(names, 0.0)
    for sample in node.samples[:MAX_SAMPLES]:
        wide = run_in_double(node, sample.inputs, longest.observe)
        for name in names:
            recorded = sample.outputs.get(name)
            if recorded is not None:
                errors[name] = max(errors[name], _largest(recorded.double() - wide[name]))
    return errors


def _values(node: Node, name: str) -> list[torch.Tensor]:
    static = node.static_outputs.get(name)
    values = [sample.outputs[name] for sample in node.samples if name in sample.outputs]
    return values if static is None else [static]


def _is_float(node: Node, name: str) -> bool:
    values = _values(node, name)
    return bool(values) and values[0].is_floating_point()


def _largest(value: torch.Tensor) -> float:
    value = value.detach()
    finite = value[torch.isfinite(value)].abs()
    return float(finite.max()) if finite.numel() else 0.0


class _Longest:
    """Finds the longest reduction among the steps of a program."""

    def __init__(self) -> None:
        self.length = 1

    def observe(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        self.length = max(self.length, reduction_of(name_of(name), args, kwargs, result))


def reduction_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return how many terms one element of a call's result sums up; 1 when it sums nothing."""
    tensors = [value for value in [*args, *kwargs.values()] if isinstance(value, torch.Tensor)]
    if name == "einsum" and isinstance(args[0], str):
        operands = args[1] if isinstance(args[1], Sequence) else args[1:]
        return _of_einsum(args[0], list(operands))
    if not tensors:
        return 1
    first = tensors[0]
    if name in _OVER_LAST:
        return _size(first, -1)
    if name in _SECOND_TIMES_THIRD and len(tensors) > 1:
        return _size(tensors[1], -1)
    if name.startswith("conv") and len(tensors) > 1:
        return _of_convolution(name, tensors[1])
    if name in _ALONG_ONE:
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        return _size(first, dim if isinstance(dim, int) else -1)
    if name == "scaled_dot_product_attention":
        return max(_size(first, -1), _size(tensors[1], -2))
    if name in _RECURRENT:
        return max(_size(tensor, -1) for tensor in tensors)
    if name in _NORMALISING:
        return max(1, first.numel() // max(_size(first, 0), 1))
    if name in _REDUCING and isinstance(result, torch.Tensor):
        return max(1, first.numel() // max(result.numel(), 1))
    return 1


_OVER_LAST = frozenset(
    {"linear", "matmul", "rmatmul", "mm", "bmm", "mv", "dot", "inner", "vdot", "cdist"}
)
_SECOND_TIMES_THIRD = frozenset({"addmm", "addmv", "baddbmm", "addbmm"})
_ALONG_ONE = frozenset({"softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "softmin"})
_RECURRENT = frozenset(
    {"gru", "lstm", "gru_cell", "lstm_cell", "rnn_tanh", "rnn_relu", "rnn_tanh_cell"}
)
_NORMALISING = frozenset({"layer_norm", "group_norm", "instance_norm", "rms_norm", "normalize"})
_REDUCING = frozenset(
    {
        "sum",
        "mean",
        "prod",
        "norm",
        "vector_norm",
        "linalg_vector_norm",
        "matrix_norm",
        "var",
        "std",
        "logsumexp",
        "nansum",
        "nanmean",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "trace",
    }
)


def _size(tensor: torch.Tensor, dim: int) -> int:
    return int(tensor.shape[dim]) if tensor.dim() and -tensor.dim() <= dim < tensor.dim() else 1


def _of_convolution(name: str, weight: torch.Tensor) -> int:
    kernel = math.prod(weight.shape[2:])
    # The weight of a transposed convolution has its input channels first.
    return int(kernel * weight.shape[0 if "transpose" in name else 1])


def _of_einsum(equation: str, operands: list[torch.Tensor]) -> int:
    terms, _, result = equation.replace(" ", "").partition("->")
    if "." in equation or not result:
        return max((value.numel() for value in operands), default=1)
    sizes = {
        label: int(size)
        for term, value in zip(terms.split(","), operands, strict=True)
        for label, size in zip(term, value.shape, strict=True)
    }
    return math.prod(size for label, size in sizes.items() if label not in result)
