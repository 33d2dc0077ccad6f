"""Values that nobody recorded: where in the inputs of a node they lie.

Each draw of an input is of a kind: somewhere in the recorded range or in one three times as wide,
at the ends, zeros of both signs, ties, one element changed, signs turned around. Ranges are those
of each element where enough was recorded, so that a tensor of torques and positions gets both.
Integers are drawn over all that the program accepts. The same seed gives the same draws.

Nothing here runs anything: what the program accepts is asked for (`Accepts`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from veracity.tracing.nodes import Node, Port

Tensors = dict[str, torch.Tensor]
Array = np.ndarray[Any, Any]
#: Says whether a program takes this value in every element of an input.
Accepts = Callable[[str, int], bool]

#: Fewer recorded values say little about the range of one element.
ENOUGH = 3
#: An index into more entries than this is taken for a plain number.
MOST_ENTRIES = 1 << 20
#: What 32 bits do not hold: nanoseconds since a start, identifiers.
LARGE = 3 << 32


class Values(NamedTuple):
    """What is known about an input.

    Attributes:
        recorded: Its recorded values, along a first axis.
        low: The smallest value of each element.
        high: The largest value of each element.
        other: Values that are not finite and were recorded or declared.
    """

    recorded: Array
    low: Array
    high: Array
    other: tuple[float, ...] = ()


Kind = Callable[[Values, int, np.random.Generator], Array]


def _between(low: Any, high: Any, count: int, source: np.random.Generator, shape: Any) -> Array:
    part = source.random((count, *shape))
    return np.asarray(low * (1 - part) + high * part)


def _inside(values: Values, count: int, source: np.random.Generator) -> Array:
    return _between(values.low, values.high, count, source, values.low.shape)


def _wider_ends(values: Values) -> tuple[Array, Array]:
    middle = values.low / 2 + values.high / 2
    reach = 1.5 * (values.high - values.low)
    reach = np.where(reach > 0, reach, 1.0)
    return middle - reach, middle + reach


def _wider(values: Values, count: int, source: np.random.Generator) -> Array:
    return _between(*_wider_ends(values), count, source, values.low.shape)


def _lopsided(values: Values, count: int, source: np.random.Generator) -> Array:
    """All low, or all high: values all over a range cancel in sums and win every maximum."""
    low, high = _wider_ends(values)
    start = source.random((count, *(1 for _ in values.low.shape))) * 0.8
    part = start + 0.2 * source.random((count, *values.low.shape))
    return np.asarray(low * (1 - part) + high * part)


def _ends(values: Values, count: int, source: np.random.Generator) -> Array:
    upper = source.integers(0, 2, (count, *values.low.shape)) > 0
    return np.asarray(np.where(upper, values.high, values.low))


def _wide_ends(values: Values, count: int, source: np.random.Generator) -> Array:
    low, high = _wider_ends(values)
    upper = source.integers(0, 2, (count, *values.low.shape)) > 0
    return np.asarray(np.where(upper, high, low))


def _some(values: Values, count: int, source: np.random.Generator) -> Array:
    chosen = source.integers(0, len(values.recorded), count)
    return np.array(values.recorded[chosen], copy=True)


def _zeros(values: Values, count: int, source: np.random.Generator) -> Array:
    """Zeros of both signs in the place of some elements; of all elements every other time."""
    found = np.where(source.integers(0, 2, (count, *values.low.shape)) > 0, 0.0, -0.0)
    kept = source.integers(0, 2, found.shape) > 0
    kept[::2] = False
    return np.asarray(np.where(kept, _some(values, count, source), found))


def _ties(values: Values, count: int, source: np.random.Generator) -> Array:
    """Few different values, each in several elements."""
    low, high = _wider_ends(values)
    levels = source.integers(0, 3, (count, *values.low.shape)) / 2
    # Elements tie only if their ranges are one.
    return np.asarray(low.min(initial=0.0) * (1 - levels) + high.max(initial=0.0) * levels)


def _repeated(values: Values, count: int, source: np.random.Generator) -> Array:
    low, high = _wider_ends(values)
    level = source.random((count, *(1 for _ in values.low.shape)))
    found = low.min(initial=0.0) * (1 - level) + high.max(initial=0.0) * level
    return np.asarray(np.broadcast_to(found, (count, *values.low.shape)).copy())


def _one_changed(values: Values, count: int, source: np.random.Generator) -> Array:
    found = _some(values, count, source)
    return _with_one(found, _wider(values, count, source), source)


def _one_hot(values: Values, count: int, source: np.random.Generator) -> Array:
    found = np.zeros((count, *values.low.shape))
    return _with_one(found, _wide_ends(values, count, source), source)


def _with_one(found: Array, other: Array, source: np.random.Generator) -> Array:
    flat, changed = found.reshape(len(found), -1), other.reshape(len(found), -1)
    if flat.shape[1]:
        rows, chosen = np.arange(len(flat)), source.integers(0, flat.shape[1], len(flat))
        flat[rows, chosen] = changed[rows, chosen]
    return np.asarray(flat.reshape(found.shape))


def _turned(values: Values, count: int, source: np.random.Generator) -> Array:
    """Recorded values with other signs: of all elements every other time."""
    signs = 1.0 - 2.0 * source.integers(0, 2, (count, *values.low.shape))
    signs[::2] = -1.0
    return np.asarray(_some(values, count, source) * signs)


def _not_finite(values: Values, count: int, source: np.random.Generator) -> Array:
    found = _inside(values, count, source)
    if not values.other:
        return found
    places = np.asarray(source.random(found.shape) < 0.2)
    flat = places.reshape(count, -1)
    if flat.shape[1]:
        flat[np.arange(count), source.integers(0, flat.shape[1], count)] = True
    return np.where(places, source.choice(values.other, found.shape), found)


#: Every kind, in the order in which draws take turns.
KINDS: dict[str, Kind] = {
    "inside": _inside,
    "wider": _wider,
    "lopsided": _lopsided,
    "ends": _ends,
    "wide ends": _wide_ends,
    "zeros": _zeros,
    "ties": _ties,
    "repeated": _repeated,
    "one changed": _one_changed,
    "one hot": _one_hot,
    "turned": _turned,
    "not finite": _not_finite,
}
_NAMES = list(KINDS)
#: Kinds whose values are corners that engines are known to differ on.
CORNERS = frozenset({"zeros", "ties", "repeated", "one hot"})


def source_of(*label: Any) -> np.random.Generator:
    """Return the numbers that belong to a label."""
    text = "/".join(map(str, label)).encode()
    number = int.from_bytes(hashlib.sha256(text).digest(), "big")
    return np.random.Generator(np.random.PCG64(number))


def kinds_of(count: int, port: int) -> list[str]:
    """Return the kinds of draws of an input: those of all inputs together, then all mixed."""
    rounds = [(number, number // len(_NAMES)) for number in range(count)]
    return [_NAMES[(number + turn * port) % len(_NAMES)] for number, turn in rounds]


def many(node: Node, seed: int, count: int, accepts: Accepts, reach: float = 1.0) -> Tensors:
    """Return draws for all inputs of a node, along a new first axis of each.

    Args:
        node: The node; its samples say which ranges are meant.
        seed: Seed of the bundle.
        count: How many.
        accepts: Says which integers the program takes.
        reach: What ranges are multiplied by.
    """
    found = {}
    for number, port in enumerate(node.inputs):
        source = source_of(seed, node.name, "many", reach, port.name)
        like = node.samples[0].inputs[port.name]
        if like.dtype == torch.bool:
            drawn: Any = _bools(like, count, source)
        elif like.is_floating_point():
            drawn = _floats(_values(node, port, reach), kinds_of(count, number), source, like)
        else:
            drawn = _integers(node, port, count, accepts, source, reach)
        found[port.name] = torch.from_numpy(np.ascontiguousarray(drawn)).to(like.device, like.dtype)
    return found


def not_finite(node: Node, seed: int, count: int, chosen: tuple[float, ...]) -> Tensors:
    """Return draws with these values, NaN or infinities, in some elements of every float input."""
    found = {}
    for port in node.inputs:
        source = source_of(seed, node.name, "not finite", chosen, port.name)
        like = node.samples[0].inputs[port.name]
        if like.is_floating_point():
            drawn = _not_finite(_values(node, port, 1.0)._replace(other=chosen), count, source)
        else:
            recorded = [sample.inputs[port.name].cpu().numpy() for sample in node.samples]
            drawn = np.stack([recorded[row] for row in source.integers(0, len(recorded), count)])
        found[port.name] = torch.from_numpy(np.ascontiguousarray(drawn)).to(like.device, like.dtype)
    return found


def declares(node: Node, value: float) -> bool:
    """Say whether some input declares NaN or infinity, or had it while recording."""
    for port in node.inputs:
        stack = [sample.inputs[port.name] for sample in node.samples]
        if stack[0].is_floating_point():
            array = torch.stack(stack).detach().cpu().double().numpy()
            found = _declared(port, array)
            if value in found or (math.isnan(value) and any(map(math.isnan, found))):
                return True
    return False


def _floats(
    values: Values, kinds: list[str], source: np.random.Generator, like: torch.Tensor
) -> Array:
    drawn = np.empty((len(kinds), *like.shape))
    for name in _NAMES:
        rows = [row for row, kind in enumerate(kinds) if kind == name]
        if rows:
            drawn[rows] = KINDS[name](values, len(rows), source)
    if values.other:
        return drawn
    most = float(torch.finfo(like.dtype).max)
    return np.clip(drawn, -most, most)


def _values(node: Node, port: Port, reach: float) -> Values:
    recorded = torch.stack([sample.inputs[port.name] for sample in node.samples])
    array = recorded.detach().cpu().double().numpy()
    finite = np.isfinite(array)
    low = np.where(finite, array, np.inf).min(0)
    high = np.where(finite, array, -np.inf).max(0)
    least, most = low.min(initial=np.inf), high.max(initial=-np.inf)
    if not math.isfinite(least):
        least, most = 0.0, 0.0
    if len(array) < ENOUGH:
        low, high = np.full(low.shape, least), np.full(high.shape, most)
    low, high = np.where(low <= high, low, least), np.where(low <= high, high, most)
    plain = np.where(finite, array, 0.0)
    return Values(plain * reach, low * reach, high * reach, _declared(port, array))


def _declared(port: Port, recorded: Array) -> tuple[float, ...]:
    """Return the values that are not finite and belong to an input.

    They were recorded, or the port declares them: `extra={"allow_nan": True, "allow_inf": True}`.
    """
    nan = bool(port.extra.get("allow_nan")) or bool(np.isnan(recorded).any())
    up = bool(port.extra.get("allow_inf")) or bool(np.isposinf(recorded).any())
    down = bool(port.extra.get("allow_inf")) or bool(np.isneginf(recorded).any())
    found = ((math.nan, nan), (math.inf, up), (-math.inf, down))
    return tuple(value for value, there in found if there)


def _bools(like: torch.Tensor, count: int, source: np.random.Generator) -> Array:
    drawn = source.random((count, *like.shape)) < source.choice([0.1, 0.5, 0.9], count).reshape(
        count, *(1 for _ in like.shape)
    )
    drawn[0::8], drawn[1::8] = False, True
    return drawn


def _integers(
    node: Node,
    port: Port,
    count: int,
    accepts: Accepts,
    source: np.random.Generator,
    reach: float = 1.0,
) -> Array:
    """Return integers over all that the program takes, some of them all the same or at the ends."""
    like = node.samples[0].inputs[port.name]
    low, high = integer_range(node, port, accepts)
    if reach > 1 and like.dtype == torch.int64 and accepts(port.name, LARGE):
        low, high = (-LARGE if accepts(port.name, -LARGE) else low), LARGE
    kind = np.dtype(str(like.dtype).removeprefix("torch.")).type
    drawn = source.integers(low, high, (count, *like.shape), dtype=kind, endpoint=True)
    drawn[0::8], drawn[1::8] = low, high
    chosen = source.integers(0, len(node.samples), count)
    recorded = [sample.inputs[port.name].cpu().numpy() for sample in node.samples]
    for row in range(2, count, 8):
        drawn[row] = recorded[chosen[row]]
    return drawn


def integer_range(node: Node, port: Port, accepts: Accepts) -> tuple[int, int]:
    """Return the range that integers of an input are drawn from.

    An index has a last entry, which the program says by refusing what lies behind it. Bytes are
    drawn from all that there are. Other numbers come from a range three times as wide.
    """
    arrays = [sample.inputs[port.name].cpu().numpy() for sample in node.samples]
    arrays = [array for array in arrays if array.size]
    least = min((int(array.min()) for array in arrays), default=0)
    most = max((int(array.max()) for array in arrays), default=0)
    limits = np.iinfo(str(node.samples[0].inputs[port.name].dtype).removeprefix("torch."))
    if limits.bits == 8:
        wide = (int(limits.min), int(limits.max))
    else:
        reach = max(most - least, 1)
        wide = (max(least - reach, int(limits.min)), min(most + reach, int(limits.max)))
    far = min(MOST_ENTRIES, int(limits.max))
    high = wide[1] if accepts(port.name, far) else _last_taken(port.name, most, far, accepts)
    low = wide[0] if accepts(port.name, wide[0]) else _first_taken(port.name, least, accepts)
    return low, high


def _last_taken(port: str, taken: int, refused: int, accepts: Accepts) -> int:
    while refused - taken > 1:
        middle = (taken + refused) // 2
        taken, refused = (middle, refused) if accepts(port, middle) else (taken, middle)
    return taken


def _first_taken(port: str, least: int, accepts: Accepts) -> int:
    """Indices that count from the end are not drawn: engines differ, and code seldom means them."""
    return 0 if least > 0 and accepts(port, 0) else least
