"""Tensors by the memory they show: snapshots of storages, and views of them."""

from __future__ import annotations

import torch


def snapshot(tensor: torch.Tensor) -> torch.Tensor:
    """Return a flat copy of the whole storage of `tensor`, in its dtype."""
    return whole_storage(tensor).clone()


def whole_storage(tensor: torch.Tensor) -> torch.Tensor:
    """Return the whole storage of `tensor` as one flat tensor on the same memory."""
    plain = tensor.detach()
    length = plain.untyped_storage().nbytes() // max(plain.element_size(), 1)
    return plain.as_strided((length,), (1,), 0)


def view_of_memory(
    held: torch.Tensor,
    flat: bool,
    offset: int,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: torch.dtype,
    flags: int,
) -> torch.Tensor:
    """Return the tensor that lies at `offset` in the storage of `held`.

    Args:
        held: Any tensor on the storage, or a flat copy of it.
        flat: Whether `held` is a flat copy.
        offset: First element, counted in `dtype`.
        sizes: Sizes of the axes.
        strides: Strides of the axes.
        dtype: Element type.
        flags: 2 when the values are shown conjugated, 1 when negated.
    """
    plain = held.detach()
    if not flat and _shows(plain, offset, sizes, strides, dtype):
        return plain
    memory = whole_storage(plain) if plain.dtype == dtype else _retyped(plain, dtype)
    found = memory.as_strided(sizes, strides, offset)
    if flags & 2:
        found = found.conj()
    return torch._neg_view(found) if flags & 1 else found


def _retyped(plain: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the storage with other elements; trailing bytes that fill none are left out."""
    storage = plain.untyped_storage()
    return torch.empty(0, dtype=dtype, device=plain.device).set_(storage)


def _shows(
    tensor: torch.Tensor,
    offset: int,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: torch.dtype,
) -> bool:
    return (
        tensor.dtype == dtype
        and tensor.storage_offset() == offset
        and tuple(tensor.shape) == sizes
        and tensor.stride() == strides
    )


def overlap(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Say whether two tensors share an element of memory."""
    if left.untyped_storage()._cdata != right.untyped_storage()._cdata:
        return False
    if left.numel() == 0 or right.numel() == 0:
        return False
    (first, last), (other_first, other_last) = _reach(left), _reach(right)
    if last <= other_first or other_last <= first:
        return False
    if left.dtype != right.dtype:
        return True
    length = max(last, other_last) // left.element_size()
    touched = torch.zeros(length, dtype=torch.bool, device="cpu")
    touched.as_strided(left.shape, left.stride(), left.storage_offset()).fill_(True)
    return bool(touched.as_strided(right.shape, right.stride(), right.storage_offset()).any())


def _reach(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the bytes of the storage that a tensor lies within."""
    width = tensor.element_size()
    axes = zip(tensor.shape, tensor.stride(), strict=True)
    span = sum((int(size) - 1) * int(stride) for size, stride in axes)
    first = int(tensor.storage_offset())
    return first * width, (first + span + 1) * width
