"""Runs a recorded program in double precision: the yardstick for rounding.

Constants, inputs and every dtype that the program asks for are widened. What cannot be widened, a
foreign operation or a view of bits, raises whatever torch raises. With noise of the size of a
rounding error on every value, two such runs show what another order of operations may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from veracity.export import graph
from veracity.export.models import program_of
from veracity.tracing.nodes import Node, Sample
from veracity.tracing.operations import words

Tensors = dict[str, torch.Tensor]
#: Called with each step of a program: its name, arguments and result.
Observe = Callable[[str, tuple[Any, ...], dict[str, Any], Any], None]

#: What each narrow dtype becomes.
_WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}
#: Methods that name a dtype.
_CASTS = frozenset({"float", "half", "bfloat16"})


#: Sums of products, and of many values: whether a zero that comes of one is -0.0 depends on the
#: kernel, which may start with 0.0.
_SUMS = words(
    """
    matmul rmatmul mm bmm mv dot inner vdot outer tensordot einsum linear bilinear addmm addmv
    addbmm baddbmm conv1d conv2d conv3d convolution sum mean cumsum multi_dot chain_matmul
    """
)

#: Runs with noise for each sample.
NOISY_RUNS = 2
#: Room that is left above the largest rounding error that was seen.
ROOM = 8.0


def run_in_double(node: Node, inputs: Tensors, observe: Observe | None = None) -> Tensors:
    """Return the outputs of a node's recorded program, computed in float64.

    Integers and truth values stay what they are. Raises when the program cannot be widened.
    """
    return Widened(node).run(inputs, observe)


def rounding(node: Node, samples: list[Sample], names: list[str]) -> Tensors:
    """Return what rounding may move each element of these outputs by, in float64.

    That is the largest distance between what was recorded and the program in float64, and between
    that and runs in which every value is off by about a rounding error; with room above it. Raises
    when the program cannot be widened.
    """
    program = Widened(node)
    source = torch.Generator().manual_seed(0)
    found: Tensors = {}
    for sample in samples:
        exact = program.run(sample.inputs)
        noise = _Noise(_eps(sample.outputs[name] for name in names), source)
        noisy = [program.run(sample.inputs, noise=noise) for _ in range(NOISY_RUNS)]
        others = [sample.outputs, *noisy]
        for name in names:
            for other in others:
                if name in other:
                    error = _finite((other[name].double() - exact[name]).abs().cpu())
                    found[name] = torch.maximum(found.get(name, error), error)
    return {name: ROOM * error for name, error in found.items()}


def _eps(values: Iterable[torch.Tensor]) -> float:
    """Return the coarsest rounding of these values; that of float32 where none is a float."""
    floats = [value.dtype for value in values if value.is_floating_point()]
    return max(float(torch.finfo(dtype).eps) for dtype in floats or [torch.float32])


def _finite(error: torch.Tensor) -> torch.Tensor:
    return torch.where(error.isfinite(), error, torch.zeros_like(error))


class _Noise:
    """Moves values by about a rounding error."""

    def __init__(self, eps: float, source: torch.Generator) -> None:
        self._eps, self._source = eps, source

    def __call__(self, value: Any, name: str = "") -> Any:
        """Return what may come of an operation, or of an input, in the place of this value."""
        if not isinstance(value, torch.Tensor) or value.dtype not in _WIDE.values():
            return value
        if value.is_complex():  # each part is rounded by itself
            return torch.complex(self(value.real, name), self(value.imag, name))
        drawn = self._drawn(value)
        moved = value * (1 + self._eps * drawn)
        return torch.where(value == 0, 0.0 * drawn, moved) if name in _SUMS else moved

    def _drawn(self, value: torch.Tensor) -> torch.Tensor:
        drawn = torch.rand(value.shape, generator=self._source, dtype=torch.float64)
        return (2 * drawn - 1).to(value.device)


class Widened:
    """The program of a node in float64, put together once."""

    def __init__(self, node: Node) -> None:
        """Put it together."""
        self._names = [port.name for port in node.outputs]
        self._ports = [use.port for use in node.slice.inputs]
        self._module = graph.build(program_of(node), self._names)

    def rounded_otherwise(self, sample: Sample, runs: int) -> Iterator[Tensors]:
        """Give what comes out when every value is off by about a rounding error.

        Where that is something else, rounding decides: where a range wraps, on an edge.
        """
        values = [*sample.inputs.values(), *sample.outputs.values()]
        noise = _Noise(_eps(values), torch.Generator().manual_seed(0))
        for _ in range(runs):
            yield self.run(sample.inputs, noise=noise)

    def run(
        self, inputs: Tensors, observe: Observe | None = None, noise: _Noise | None = None
    ) -> Tensors:
        """Return the outputs, by port."""
        given = [_wide(inputs[name]) for name in self._ports]
        if noise is not None:
            given = [noise(value) for value in given]
        with torch.no_grad():
            found = _InDouble(self._module, observe, noise).run(*given)
        found = (found,) if isinstance(found, torch.Tensor) else found
        return dict(zip(self._names, found, strict=True))


class _InDouble(fx.Interpreter):
    """Runs a graph with every narrow float widened."""

    def __init__(
        self, module: fx.GraphModule, observe: Observe | None, noise: _Noise | None = None
    ) -> None:
        super().__init__(module)
        self._observe, self._noise = observe, noise

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        value = _wide(super().get_attr(target, args, kwargs))
        return value if self._noise is None else self._noise(value)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = _widened(args), _widened(kwargs)
        return self._seen(
            name_of(target), args, kwargs, super().call_function(target, args, kwargs)
        )

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = _widened(args), _widened(kwargs)
        method = "double" if target in _CASTS else target
        return self._seen(
            target.strip("_"), args, kwargs, super().call_method(method, args, kwargs)
        )

    def _seen(self, name: str, args: Any, kwargs: Any, result: Any) -> Any:
        if self._observe is not None:
            self._observe(name, args, kwargs, result)
        if self._noise is not None and _is_new(result, (*args, *kwargs.values())):
            result.copy_(self._noise(result, name))  # in place: others may look at it, and write
        return result


def _is_new(result: Any, args: Iterable[Any]) -> bool:
    """Say whether a result has memory of its own, each element once."""
    if not isinstance(result, torch.Tensor) or result.dtype not in _WIDE.values():
        return False
    given = [value for value in pytree.tree_leaves(list(args)) if isinstance(value, torch.Tensor)]
    memory = result.untyped_storage().data_ptr()
    dense = result.numel() * result.element_size() <= result.untyped_storage().nbytes()
    return dense and all(value.untyped_storage().data_ptr() != memory for value in given)


def name_of(target: Any) -> str:
    """Return the plain name of a function, without its namespace, overload and underscores."""
    name = getattr(target, "__name__", str(target))
    return name.removeprefix("aten.").split(".")[0].strip("_")


def _wide(value: Any) -> Any:
    narrow = isinstance(value, torch.Tensor) and value.dtype in _WIDE
    return value.to(_WIDE[value.dtype]) if narrow else value


def _widened(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return _WIDE.get(value, value)
    if isinstance(value, dict):
        return {key: _widened(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_widened(item) for item in value)
    return value
