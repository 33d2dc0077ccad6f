"""What arrives from outside in a tick: values drawn by the number of the tick and a generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

Draw = Callable[[int, torch.Generator], Any]


def normal(*shape: int, s: float = 1.0, m: float = 0.0) -> Draw:
    """Normally distributed, with this deviation and mean."""
    return lambda tick, gen: torch.randn(shape, generator=gen) * s + m


def uniform(lo: float, hi: float, *shape: int) -> Draw:
    """Evenly between two ends."""
    return lambda tick, gen: torch.rand(shape, generator=gen) * (hi - lo) + lo


def integers(lo: int, hi: int, *shape: int, dtype: torch.dtype = torch.int64) -> Draw:
    """Integers from `lo` to below `hi`."""
    return lambda tick, gen: torch.randint(lo, hi, shape, generator=gen).to(dtype)


def flags(p: float, *shape: int) -> Draw:
    """Booleans that are true with this probability."""
    return lambda tick, gen: torch.rand(shape, generator=gen) < p


def fixed(value: Any) -> Draw:
    """The same in every tick."""
    return lambda tick, gen: torch.as_tensor(value).clone()


def by_tick(function: Callable[[int], Any]) -> Draw:
    """What a function makes of the tick's number."""
    return lambda tick, gen: torch.as_tensor(function(tick))


def row(*values: Any) -> Draw:
    """These values one after the other, again from the start when they are used up."""
    return lambda tick, gen: torch.as_tensor(values[tick % len(values)]).clone()


def either(chosen: Callable[[int], bool], then: Draw, other: Draw) -> Draw:
    """One of two draws, by the tick's number."""
    return lambda tick, gen: (then if chosen(tick) else other)(tick, gen)


def double(draw: Draw) -> Draw:
    """The same in float64."""
    return lambda tick, gen: draw(tick, gen).double()


def array(draw: Draw) -> Draw:
    """The same as a NumPy array."""
    return lambda tick, gen: _numpy(draw(tick, gen))


def _numpy(value: Tensor) -> np.ndarray:
    return value.numpy().copy()


def wider(draw: Draw, factor: float = 2.5) -> Draw:
    """The same with floats made larger; integers and booleans as they are."""

    def drawn(tick: int, gen: torch.Generator) -> Any:
        value = draw(tick, gen)
        real = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        real = real or (isinstance(value, Tensor) and value.is_floating_point())
        return value * factor if real else value

    return drawn
