"""Keeps the exporter's tables of known operations between exports.

torch builds them anew for each model, which costs more than the export of a small node. They are
private, so each is replaced only where it is found, and only while an export runs; without them
exports are slower, not different.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

_EXPORTER = "torch.onnx._internal.exporter"


@contextlib.contextmanager
def kept_tables() -> Iterator[None]:
    """Let exports inside the block share their tables."""
    with contextlib.ExitStack() as stack:
        registry = _find(f"{_EXPORTER}._registration", "ONNXRegistry")
        if isinstance(getattr(registry, "__dict__", {}).get("from_torchlib"), classmethod):
            stack.enter_context(_replaced(registry, "from_torchlib", _kept_registry))
        decompositions = _find_module(f"{_EXPORTER}._decomp")
        if hasattr(decompositions, _DECOMPOSITIONS):
            stack.enter_context(_replaced(decompositions, _DECOMPOSITIONS, _kept_decompositions))
        yield


_DECOMPOSITIONS = "create_onnx_friendly_decomposition_table"


def _find_module(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _find(module: str, name: str) -> Any:
    return getattr(_find_module(module), name, None)


@contextlib.contextmanager
def _replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    before = owner.__dict__[name]
    setattr(owner, name, make(before))
    try:
        yield
    finally:
        setattr(owner, name, before)


@functools.cache
def _kept_registry(original: Any) -> Any:
    """Wrap `ONNXRegistry.from_torchlib`: one registry for each operator set."""

    @functools.cache
    def build(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return original.__func__(cls, *args, **kwargs)

    def from_torchlib(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return build(cls, *args, **kwargs)

    return classmethod(from_torchlib)


@functools.cache
def _kept_decompositions(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap the maker of decomposition tables: one for each set of operations."""
    made: dict[frozenset[Any], Any] = {}

    def create(operations: Any) -> Any:
        key = frozenset(operations)
        if key not in made:
            made[key] = original(operations)
        return dict(made[key])

    return create
