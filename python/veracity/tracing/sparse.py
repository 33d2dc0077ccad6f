"""Sparse matrices that are constants of a node.

A sparse tensor has no memory of its own that the tape could know. Where one that holds nothing
traced is multiplied with a traced tensor, torch computes what the caller gets, and the tape is told
the same product with the dense matrix. Sparse tensors that are made of traced values go the usual
way and are told as what cannot be followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from veracity._native import Recorder
from veracity.tracing.array_table import words

_MAKERS = frozenset(
    words(
        "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc coalesce "
        "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor "
        "sparse_bsc_tensor sparse_compressed_tensor"
    )
)
#: Products, with what is called for dense matrices.
_PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": torch.matmul,
    "__matmul__": torch.matmul,
    "__rmatmul__": torch.matmul,
    "mm": torch.mm,
    "spmm": torch.mm,
    "_sparse_mm": torch.mm,
    "mv": torch.mv,
}


class Sparse:
    """The sparse constants of a session."""

    def __init__(self, recorder: Recorder) -> None:
        """Know none."""
        self._recorder = recorder
        self._dense: Any = WeakTensorKeyDictionary()

    @staticmethod
    def may_concern(func: Callable[..., Any]) -> bool:
        """Say whether a function makes sparse constants, or multiplies matrices."""
        name = getattr(func, "__name__", "")
        return name in _MAKERS or name in _PRODUCTS

    def concerns(self, func: Callable[..., Any]) -> bool:
        """Say whether a call may make a sparse constant, or multiply one."""
        name = getattr(func, "__name__", "")
        return name in _MAKERS or (bool(self._dense) and name in _PRODUCTS)

    def remember(self, tensors: Iterable[torch.Tensor]) -> None:
        """Take sparse tensors that are there for constants."""
        for one in tensors:
            if _is_sparse(one):
                self._dense[one] = None

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """Make a call in which sparse constants are made or multiplied; else `NotImplemented`."""
        name = getattr(func, "__name__", "")
        if name in _PRODUCTS and kwargs:
            return NotImplemented
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        sparse = [one for one in tensors if _is_sparse(one)]
        if any(one not in self._dense for one in sparse):
            return NotImplemented
        if name in _MAKERS:
            return self._made(func, args, kwargs, [one for one in tensors if not _is_sparse(one)])
        if not sparse:
            return NotImplemented
        result = func(*args)
        if not _is_sparse(result):
            operands = tuple(map(self._as_dense, args))
            operands = operands[::-1] if name == "__rmatmul__" else operands
            self._recorder.assert_call(_PRODUCTS[name], operands, result)
        return result

    def _made(self, func: Any, args: Any, kwargs: Any, given: list[torch.Tensor]) -> Any:
        recorder = self._recorder
        if any(recorder.is_traced(one) or recorder.is_derived(one) for one in given):
            return NotImplemented
        made = func(*args, **(kwargs or {}))
        self.remember([made])
        return made

    def _as_dense(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not _is_sparse(value):
            return value
        dense = self._dense[value]
        if dense is None:
            dense = self._dense[value] = value.detach().to_dense()
            self._recorder.remember([dense])
        return dense


def _is_sparse(tensor: torch.Tensor) -> bool:
    return tensor.layout is not torch.strided and str(tensor.layout).startswith("torch.sparse")
