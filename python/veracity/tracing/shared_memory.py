"""Memory of a node's tensors that code writes without torch: through arrays, bytes and buffers.

`torch.from_numpy(table)` and `weights.numpy()` make two names for one memory. What NumPy, `struct`
or `array` write there is seen by nobody while it rests. So a constant that shares its memory is
looked for among the objects that the code of its node can reach; if the source writes into one of
those, the constant is a state.
"""

from __future__ import annotations

import array
import ast
import mmap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy
import torch

from veracity.errors import Diagnostic
from veracity.tracing import arrays, findings, replaying, source
from veracity.tracing.heap import Walk
from veracity.tracing.node import TracedNode
from veracity.tracing.reached import Reached
from veracity.tracing.reads import Region, region_of

if TYPE_CHECKING:
    from veracity.tracing.session import Session

_BUFFERS = (bytearray, array.array, memoryview, mmap.mmap)
#: Functions and methods that write into what they are given, or belong to.
_WRITING = frozenset(
    {
        *("putmask", "place", "copyto", "put", "fill_diagonal", "at", "fill", "sort", "partition"),
        *("itemset", "pack_into", "readinto", "recv_into", "write", "resize", "shuffle", "append"),
        *("extend", "insert", "byteswap", "put_along_axis", "memmove", "memset", "setfield"),
    }
)


def written_elsewhere(
    session: Session, node: TracedNode, code: list[Reached], walk: Walk
) -> list[Diagnostic]:
    """Return findings for tensors whose memory the code writes by another name."""
    assert node.first_slice is not None
    reached = list(walk)
    tensors = [value for _, key, value in reached if _is_tensor(value) and not key.startswith("=")]
    program = replaying.recorded(session, node, node.first_slice)
    tensors += [use.tensor for use in program.constants]
    shared = [region for one in tensors if _is_shared(one) and (region := region_of(one))]
    found: dict[str, Diagnostic] = {}
    for path, key, value in reached if shared else ():
        other = _region(value)
        if other is None or not any(
            other.start < region.end and region.start < other.end for region in shared
        ):
            continue
        for place in _writes(code, key.lstrip("=@.")):
            found[place] = findings.written_elsewhere(node.name, path, place)
    return list(found.values())


def _is_tensor(value: Any) -> bool:
    return issubclass(type(value), torch.Tensor) and value.layout == torch.strided


def _is_shared(tensor: torch.Tensor) -> bool:
    """Say whether something else than torch may have the memory of a tensor."""
    try:
        return tensor.device.type == "cpu" and not tensor.untyped_storage().resizable()
    except (NotImplementedError, RuntimeError):  # of a function transform: it has no memory
        return False


def _region(value: Any) -> Region | None:
    if arrays.is_traced(value):
        value = arrays.state_of(value).tensor
    if isinstance(value, numpy.ndarray) and value.size:
        return region_of(value)
    if isinstance(value, _BUFFERS) and len(value):
        try:
            return region_of(numpy.frombuffer(value, numpy.uint8))
        except (ValueError, BufferError):
            return None
    return None


def _writes(code: list[Reached], name: str) -> Iterator[str]:
    """Give the places at which code writes into what has a name."""
    for scope, _ in code:
        for node in source.own_nodes(scope):
            written: list[ast.expr] = []
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                written.append(node.value)
            elif isinstance(node, ast.AugAssign):
                written.append(node.target)
            elif isinstance(node, ast.Call):
                written += _given_to_write(node)
            if any(_mentions(one, name) for one in written):
                yield f"{source.file_of(scope)}:{getattr(node, 'lineno', 0)}"


def _given_to_write(node: ast.Call) -> list[ast.expr]:
    out = [one.value for one in node.keywords if one.arg == "out"]
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name not in _WRITING:
        return out
    owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [*owner, *node.args, *out]


def _mentions(expression: ast.expr, name: str) -> bool:
    return any(
        getattr(one, "attr", getattr(one, "id", None)) == name for one in ast.walk(expression)
    )
