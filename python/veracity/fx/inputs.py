"""Makes inputs from those that were given: signed, wide, edge and not finite.

A drawn input has the shape, type and device of the given one. Integers are drawn between the least
and the largest that were given, because they may be indices. The seed decides everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from veracity.errors import refuse

Draw = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


@dataclass(frozen=True)
class Case:
    """One call of a model.

    Attributes:
        name: How the values were made.
        args: What is given by place.
        kwargs: What is given by name.
        finite: Whether values are compared; else only where they are not finite.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    finite: bool = True


def cases(inputs: object, seed: int) -> Iterator[Case]:
    """Yield the given inputs, then what is drawn in the form of the first of them."""
    given = list(_given(inputs))
    yield from given
    floats = any(_is_float(leaf) for leaf in _leaves(given[0]))
    for number, (name, draw) in enumerate(_DRAWS.items()):
        if floats or number == 0:
            yield _drawn(given[0], name, draw, seed + number)


def _given(inputs: object) -> Iterator[Case]:
    samples = inputs if isinstance(inputs, list) else [inputs]
    if not samples:
        raise refuse("VER1308", "no inputs were given")
    for number, sample in enumerate(samples):
        name = "given" if len(samples) == 1 else f"given {number}"
        if isinstance(sample, Mapping):
            yield Case(name, (), dict(sample))
        else:
            yield Case(name, sample if isinstance(sample, tuple) else (sample,), {})


def _leaves(case: Case) -> Iterable[Any]:
    return pytree.tree_leaves((case.args, case.kwargs))


def _is_float(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point


def _drawn(case: Case, name: str, draw: Draw, seed: int) -> Case:
    generator = torch.Generator("cpu").manual_seed(seed)

    def make(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.numel():
            return leaf
        if leaf.dtype.is_floating_point:
            drawn = draw(torch.empty(leaf.shape, dtype=torch.float64), generator)
            return clamped(drawn, leaf.dtype).to(leaf.device)
        return _integers(leaf, generator)

    with torch.device("cpu"):  # whatever the default is: the same draws on every device
        args, kwargs = pytree.tree_map(make, (case.args, case.kwargs))
    return Case(name, args, kwargs, finite=name != "not finite")


def clamped(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return float64 values in another type, the finite ones still finite."""
    limit = torch.finfo(dtype).max
    return torch.where(value.isfinite(), value.clamp(-limit, limit), value).to(dtype)


def _integers(leaf: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if leaf.dtype.is_complex:
        return leaf
    if leaf.dtype == torch.bool:
        drawn = torch.randint(0, 2, leaf.shape, generator=generator)
    else:
        low, high = int(leaf.min()), int(leaf.max())
        drawn = torch.randint(low, high + 1, leaf.shape, generator=generator)
    return drawn.to(leaf.device, leaf.dtype)


def _signed(empty: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(empty.shape, generator=generator, dtype=empty.dtype)


def _wide(empty: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return values of both signs from a thousand to a thousandth, with both ends among them."""
    magnitudes = 10 ** torch.linspace(3, -3, empty.numel(), dtype=empty.dtype)
    magnitudes[1::2] *= -1
    return _shuffled(magnitudes, empty, generator)


def _wide_turned(empty: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the same with the signs turned, for what is large and has few elements."""
    return -_wide(empty, generator)


def _shuffled(
    values: torch.Tensor, empty: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    order = torch.randperm(values.numel(), generator=generator)[: empty.numel()]
    return values[order].reshape(empty.shape)


def _edges(empty: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return values at which functions have their corners, and very small ones."""
    corners = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 0.5, -0.5, 2.0**-24, -(2.0**-14), 1e-38]
    repeats = -(-empty.numel() // len(corners))
    return _shuffled(torch.tensor(corners * repeats, dtype=empty.dtype), empty, generator)


def _not_finite(empty: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return values of which one is NaN and, where there is room, one infinite."""
    values = _signed(empty, generator).reshape(-1)
    values[-1] = float("inf")
    values[0] = float("nan")
    return values.reshape(empty.shape)


def _zeros(empty: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    return torch.zeros_like(empty)


_DRAWS: dict[str, Draw] = {
    "signed": _signed,
    "wide": _wide,
    "wide, turned": _wide_turned,
    "edge": _edges,
    "zeros": _zeros,
    "not finite": _not_finite,
}
