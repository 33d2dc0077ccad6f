"""Writes exported programs so that torch's own runner reads them as Python does.

The runner reads a constant from the start of its memory, so a constant lies alone in memory that
begins with it. And it passes arguments as they stand in the file: where an operator takes a tensor
and Python lets it have a number, the overload for numbers is written instead.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from veracity.errors import refuse


@contextlib.contextmanager
def packed_constants(module: torch.nn.Module) -> Iterator[None]:
    """Let no constant of a module be a part of other memory, in the body."""
    before = dict(module._buffers)
    try:
        for name, value in before.items():
            if value is not None and not _is_packed(value):
                module._buffers[name] = value.detach().clone()
        yield
    finally:
        module._buffers.update(before)


def _is_packed(value: torch.Tensor) -> bool:
    """Say whether a tensor is all of its memory."""
    if value.layout != torch.strided:
        return True
    whole = value.untyped_storage().nbytes() == value.numel() * value.element_size()
    return whole and value.storage_offset() == 0 and not _overlaps(value)


def _overlaps(value: torch.Tensor) -> bool:
    expanded = zip(value.shape, value.stride(), strict=True)
    return any(size > 1 and stride == 0 for size, stride in expanded)


def fit_for_runner(program: torch.export.ExportedProgram, node: str) -> None:
    """Change the calls of a program that the runner cannot make; refuse what it cannot be given.

    Args:
        program: The program, which is changed.
        node: Name of the pipeline's node.
    """
    for part in program.graph_module.modules():
        if isinstance(part, fx.GraphModule):
            for call in part.graph.nodes:
                if isinstance(call.target, torch._ops.OpOverload):
                    _take_overload_for_numbers(call)
                    _refuse_complex_numbers(call, node)


def _take_overload_for_numbers(call: fx.Node) -> None:
    target: Any = call.target
    given = _arguments(call)
    numbers = {
        position
        for position, argument in enumerate(target._schema.arguments)
        if isinstance(argument.type, torch.TensorType)
        and isinstance(given.get(argument.name), (bool, int, float, complex))
    }
    if not numbers:
        return
    packet = target.overloadpacket
    for name in packet.overloads():
        other = getattr(packet, name)
        if _takes_numbers(other._schema, target._schema, numbers):
            call.target = other
            return


def _takes_numbers(found: Any, schema: Any, numbers: set[int]) -> bool:
    """Say whether a schema is another one but for numbers in the place of these tensors."""
    if [one.name for one in found.arguments] != [one.name for one in schema.arguments]:
        return False
    pairs = enumerate(zip(found.arguments, schema.arguments, strict=True))
    return all(
        isinstance(here.type, torch.NumberType) if position in numbers else here.type == there.type
        for position, (here, there) in pairs
    )


def _arguments(call: fx.Node) -> dict[str, Any]:
    schema = call.target._schema  # type: ignore[union-attr]
    names = [argument.name for argument in schema.arguments]
    return dict(zip(names, call.args, strict=False)) | dict(call.kwargs)


def _refuse_complex_numbers(call: fx.Node, node: str) -> None:
    for value in _arguments(call).values():
        if isinstance(value, complex):
            raise refuse(
                "VER1130",
                f"node '{node}' cannot be exported: torch's own runner, which runs pt2 where "
                f"Python is not, cannot be given the complex number {value} of '{call.target}'",
                location=_location(call),
                hints=(
                    'export the node with `export_with="jit"`',
                    "or compute with real and imaginary parts",
                ),
            )


def _location(call: fx.Node) -> str:
    places = re.findall(r'File "([^"]+)", line (\d+)', call.meta.get("stack_trace") or "")
    return ":".join(places[-1]) if places else ""
