"""Reading and writing by index, spelled so that every exporter keeps views and masks.

Each function is plain torch code that an exporter runs while it records.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from veracity.export.unsupported import unsupported
from veracity.tracing.versions import is_exporting


def getitem(
    tensor: torch.Tensor,
    index: Any,
    *,
    live_view: bool = False,
    put_back: bool = False,
    location: str = "",
) -> Any:
    """Index; a single integer tensor stays a tensor, where torch would read it as a number."""
    if _masks(index):
        return _masked_part(tensor, index, put_back, location)
    plain, chosen = _without_scalars(tensor, index)
    if not chosen:
        return tensor[index]
    if live_view:
        return _selected_view(tensor[plain], chosen, location)
    return torch.ops.aten.index.Tensor(tensor[plain], _as_index_list(chosen))


def _masked_part(tensor: torch.Tensor, index: Any, put_back: bool, location: str) -> torch.Tensor:
    """Read through a mask of one element, where the size does not depend on its value.

    That is so in `x[mask] += v`: what is assigned where the mask is false is not looked at.
    """
    view = _where_mask_is_true(tensor, index) if put_back else None
    if view is None:
        raise unsupported(
            "indexing with a mask of one element gives a size that depends on the mask",
            location,
            "choose between two values with torch.where",
        )
    return view.clone()


def _selected_view(
    tensor: torch.Tensor, chosen: dict[int, torch.Tensor], location: str
) -> torch.Tensor:
    """Select with integer tensors without copying, since the memory is written later."""
    if is_exporting() or torch.onnx.is_in_onnx_export():
        raise unsupported(
            "a part chosen by an integer tensor is written, or its base is, while both are in use",
            location,
            "write with x[i] = value, or copy the part with clone()",
        )
    for dimension in sorted(chosen, reverse=True):
        part: torch.Tensor = tensor.narrow(dimension, chosen[dimension], 1)
        tensor = part.squeeze(dimension)
    return tensor


def setitem(tensor: torch.Tensor, index: Any, value: Any) -> None:
    """Assign through an index, with the same care for single integer tensors."""
    masks = _masks(index)
    if masks:
        _set_masked(tensor, index, functools.reduce(torch.logical_and, masks), value)
        return
    items = _items(index)
    if len(items) == 1 and _is_long_mask(items[0]) and isinstance(value, torch.Tensor):
        # Python's assignment takes off an axis of one element, which the tracer would keep doing.
        value = _fitting(value, tensor, tensor.dim() - items[0].dim() + 1)
        torch.ops.aten.index_put_.default(tensor, [items[0]], value)
        return
    if _set_among_others(tensor, items, value):
        return
    plain, chosen = _without_scalars(tensor, index)
    if not chosen:
        tensor[index] = value
        return
    view = tensor[plain]
    value = _fitting(value, view, view.dim() - len(chosen))
    torch.ops.aten.index_put_.default(view, _as_index_list(chosen), value)


def _set_among_others(tensor: torch.Tensor, items: tuple[Any, ...], value: Any) -> bool:
    """Assign where a mask stands among slices, `None` and `...`: the same for every place it picks.

    Says whether it did; a value for each place has a size that depends on the mask.
    """
    masks = [number for number, item in enumerate(items) if _is_long_mask(item)]
    others = [item for number, item in enumerate(items) if number not in masks]
    if len(masks) != 1 or not others or not all(map(_is_basic, others)):
        return False
    mask = items[masks[0]]
    plain = [*items[: masks[0]], *[slice(None)] * mask.dim(), *items[masks[0] + 1 :]]
    view = tensor[tuple(plain)]
    used = sum(1 for item in plain if item is not None and item is not ...)
    before = sum(
        tensor.dim() - used if item is ... else not isinstance(item, int)
        for item in items[: masks[0]]
    )
    behind = view.dim() - before - mask.dim()
    value = _fitting(value, view, view.dim() - mask.dim() + 1)
    if value.dim() > behind:
        *front, picked = value.shape[: value.dim() - behind]
        if picked != 1:
            return False
        value = value.reshape(*front, *[1] * mask.dim(), *value.shape[value.dim() - behind :])
    place = mask.reshape(*[1] * before, *mask.shape, *[1] * behind)
    view.copy_(torch.where(place, value, view))
    return True


def _set_masked(tensor: torch.Tensor, index: Any, mask: torch.Tensor, value: Any) -> None:
    """Assign through masks of one element: everywhere, then take back where the mask is false."""
    view = _where_mask_is_true(tensor, index)
    if view is not None:
        view.copy_(torch.where(mask, _fitting(value, view, view.dim()), view))
        return
    assigned = tensor.clone()
    setitem(assigned, tuple(True if _is_mask(item) else item for item in _items(index)), value)
    tensor.copy_(torch.where(mask, assigned, tensor))


def _where_mask_is_true(tensor: torch.Tensor, index: Any) -> torch.Tensor | None:
    """Return the indexed part as a view as if the mask was true; none when it is no view."""
    items = _items(index)
    plain = tuple(None if _is_mask(item) else item for item in items)
    if len(_masks(index)) > 1 or not all(map(_is_basic, plain)):
        return None
    return tensor[plain]


def _fitting(value: Any, view: torch.Tensor, dimensions: int) -> torch.Tensor:
    """Return a value as torch assigns it: in the element type of the target, without spare ones."""
    if isinstance(value, torch.Tensor):
        value = value.to(device=view.device, dtype=view.dtype)
    else:
        value = torch.tensor(value, dtype=view.dtype, device=view.device)
    while value.dim() > dimensions:
        value = value.squeeze(0)  # leading dimensions of size one; others are refused by torch
    fitted: torch.Tensor = value
    return fitted


def _items(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _masks(index: Any) -> list[torch.Tensor]:
    return [item != 0 for item in _items(index) if _is_mask(item)]


def _is_mask(item: Any) -> bool:
    """Recognise a mask of one element, which torch would read as a Python value."""
    is_scalar = isinstance(item, torch.Tensor) and item.dim() == 0
    return is_scalar and item.dtype in (torch.bool, torch.uint8)


def _is_long_mask(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.dtype == torch.bool and item.dim() > 0


def _without_scalars(
    tensor: torch.Tensor, index: Any
) -> tuple[tuple[Any, ...], dict[int, torch.Tensor]]:
    """Split an index into its basic part and integer scalars by the dimension they choose from.

    The scalars are empty when there are none, or when the rest is not basic.
    """
    items = _items(index)
    scalars = [number for number, item in enumerate(items) if _is_scalar_index(item)]
    rest = [item for number, item in enumerate(items) if number not in scalars]
    if not scalars or not all(_is_basic(item) for item in rest):
        return (), {}
    used = sum(1 for item in items if item is not None and item is not ...)
    plain: list[Any] = []
    chosen: dict[int, torch.Tensor] = {}
    dimension = 0
    for number, item in enumerate(items):
        if number in scalars:
            chosen[dimension] = item
        plain.append(slice(None) if number in scalars else item)
        if item is ...:
            dimension += tensor.dim() - used
        elif number in scalars or not isinstance(item, int):
            dimension += 1
    return tuple(plain), chosen


def _is_scalar_index(item: Any) -> bool:
    return (
        isinstance(item, torch.Tensor)
        and item.dim() == 0
        and item.dtype not in (torch.bool, torch.uint8)
    )


def _is_basic(item: Any) -> bool:
    if item is None or item is ... or isinstance(item, slice):
        return True
    return isinstance(item, int) and not isinstance(item, bool)


def _as_index_list(chosen: dict[int, torch.Tensor]) -> list[torch.Tensor | None]:
    return [chosen.get(dimension) for dimension in range(max(chosen) + 1)]
