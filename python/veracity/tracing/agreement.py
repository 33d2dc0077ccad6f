"""When two results of the same computation count as the same value.

A later pass is explained by the first if its program, run on the later inputs, gives the later
outputs. Both ran the same operations, but not always in the same kernels: NumPy's sine is not
torch's, and a graph may hold a layer where the code multiplied and added. So they differ by
rounding, and only by that.

A fixed absolute tolerance is wrong on both sides. A position of some kilometres has a rounding
error of its own that is larger than 1e-6, and so has a small difference of two such positions; a
state that creeps by 1e-7 a tick is another value each time. Therefore:

- `same_value` holds each element against itself, and against the rounding of the largest element
  of the tensor: a rotation that leaves a small number leaves it with the rounding of the large
  ones. Nothing is forgiven for being small.
- `rounding_explains` is asked where that does not hold. It runs the program again, with the result
  of every operation moved by one unit in the last place, and looks how far the outputs go. What
  cancels (`gravity - acceleration`) or jumps (`atan2` at half a turn, a floor, a wrapped angle)
  goes as far as the two differ; what computes something else does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves, tree_map

#: Units in the last place of an element that a chain of operations may lose.
_OWN_UNITS = 64
#: Units in the last place of the largest element.
_SHARED_UNITS = 4
#: How many times a program is run with other roundings.
_RUNS = 8
#: How much farther than those runs two results may be apart.
_SLACK = 8.0


def same_value(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Say whether two tensors are equal up to rounding; integers and truth values are equal."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if not (got.dtype.is_floating_point or got.dtype.is_complex):
        return torch.equal(got, want)
    if got.numel() == 0:
        return True
    unit = torch.finfo(got.dtype).eps
    distance, size = _distance(got, want)
    allowed = unit * (_OWN_UNITS * size + _SHARED_UNITS * size.max())
    return bool((distance <= allowed).all())


def rounding_explains(
    module: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    got: Sequence[torch.Tensor],
    want: Sequence[torch.Tensor],
) -> bool:
    """Say whether rounding alone can move the results of a program from one to the other.

    Args:
        module: The program; it must not change its inputs.
        inputs: What it was run on.
        got: What it gave.
        want: What it is held against.
    """
    pairs = list(zip(got, want, strict=True))
    if any(one.shape != other.shape or one.dtype != other.dtype for one, other in pairs):
        return False
    reach = [_distance(one, one)[0] for one in got]
    for seed in range(_RUNS):
        with torch.no_grad():
            found = _Rounding(module, seed).run(*inputs)
        found = [found] if isinstance(found, torch.Tensor) else list(found)
        distances = [_distance(one, other)[0] for one, other in zip(found, got, strict=True)]
        reach = [torch.maximum(*pair) for pair in zip(reach, distances, strict=True)]
    return all(
        bool((_distance(one, other)[0] <= _SLACK * far).all()) or same_value(one, other)
        for (one, other), far in zip(pairs, reach, strict=True)
    )


class _Rounding(fx.Interpreter):
    """Runs a graph in which every operation that makes new memory rounds otherwise."""

    def __init__(self, module: fx.GraphModule, seed: int) -> None:
        super().__init__(module)
        self._source = torch.Generator().manual_seed(seed)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._moved(super().call_function(target, args, kwargs), args, kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._moved(super().call_method(target, args, kwargs), args, kwargs)

    def _moved(self, result: Any, args: Any, kwargs: Any) -> Any:
        """Move what was computed; views and what was written in place stay where they are."""
        taken = {_memory(leaf) for leaf in _tensors((args, kwargs))}

        def move(leaf: Any) -> Any:
            new = isinstance(leaf, torch.Tensor) and _memory(leaf) not in taken
            return _nudged(leaf, self._source) if new else leaf

        return tree_map(move, result)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _nudged(tensor: torch.Tensor, source: torch.Generator) -> torch.Tensor:
    """Return a copy with each element moved by one unit in the last place, up or down."""
    if not tensor.dtype.is_floating_point or tensor.layout is not torch.strided:
        return tensor
    plain = tensor.detach()
    up = torch.rand(plain.shape, generator=source, device="cpu").to(plain.device) < 0.5
    unit = torch.finfo(plain.dtype).eps
    return plain * (1.0 + unit * torch.where(up, 1, -1).to(plain.dtype))


def _distance(got: torch.Tensor, want: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return how far elements are apart and how large they are, in double precision.

    Equal infinities and two NaN are no distance apart; one alone is infinitely far.
    """
    wide = torch.complex128 if got.dtype.is_complex else torch.float64
    got, want = got.detach().to(wide), want.detach().to(wide)
    equal = (got == want) | (got.isnan() & want.isnan())
    distance = torch.where(equal, 0.0, (got - want).abs())
    size = torch.where(want.isfinite(), want.abs(), 0.0)
    return torch.nan_to_num(distance, nan=torch.inf, posinf=torch.inf), size
