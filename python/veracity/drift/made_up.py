"""Further arguments, made from those that were given.

Those that were given read few rows of a table, have a mask one way, and may never reach a clip.
Indices are drawn over the range that the graph shows, masks both ways, and floats are made wider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

#: How much wider floats become in each set.
_WIDTHS = (1.0, 8.0, 64.0)
_HALF = (torch.float16, torch.bfloat16)


def arguments(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    ranges: list[tuple[int, int] | None],
    *,
    reach: float | None,
    is_half: bool,
) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Give further arguments, and what they are.

    Args:
        args: What was given.
        kwargs: The same, by name.
        ranges: Of each tensor among them in the order of the pytree, where it is an index.
        reach: How far floats should reach; `None` where nothing clips, rounds or chooses.
        is_half: Whether the module holds half precision, which wide values overflow.
    """
    leaves: list[Any] = []
    tree_map(leaves.append, (args, dict(kwargs)))
    tensors = [each for each in leaves if isinstance(each, Tensor)]
    is_whole = any(not each.is_floating_point() and not each.is_complex() for each in tensors)
    narrow = is_half or any(each.dtype in _HALF for each in tensors)
    for number, width in enumerate(_WIDTHS):
        if (width == 1.0 and not is_whole) or (width > 1.0 and (narrow or reach is None)):
            continue
        generator = torch.Generator().manual_seed(number)
        following = iter(ranges)
        least = 2.0 * (reach or 0.0) if number == len(_WIDTHS) - 1 else 0.0

        def changed(
            value: Any,
            following: Any = following,
            width: float = width,
            least: float = least,
            generator: torch.Generator = generator,
        ) -> Any:
            if not isinstance(value, Tensor):
                return value
            return _changed(value, next(following, None), (width, least), generator)

        made_args, made_kwargs = tree_map(changed, (args, dict(kwargs)))
        said = f"floats {width:g} times as wide, indices over their range, masks both ways"
        yield said, made_args, made_kwargs


def _changed(
    value: Tensor,
    known: tuple[int, int] | None,
    widths: tuple[float, float],
    generator: torch.Generator,
) -> Tensor:
    if value.is_floating_point() or value.is_complex():
        sizes = value.detach().abs().nan_to_num(0, 0, 0)
        typical = float(sizes.mean()) if value.numel() else 0.0
        return value.detach() * max(widths[0], widths[1] / typical if typical > 0 else 0.0)
    if value.numel() == 0:
        return value
    if value.dtype == torch.bool:
        drawn = torch.randint(0, 2, value.shape, generator=generator)
        return drawn.to(torch.bool).to(value.device)
    low, high = known if known is not None else (int(value.min()), int(value.max()))
    drawn = torch.randint(low, high + 1, value.shape, generator=generator)
    if drawn.numel() >= 2:  # both ends are where rows are forgotten
        drawn.view(-1)[0], drawn.view(-1)[-1] = low, high
    return drawn.to(value.dtype).to(value.device)
