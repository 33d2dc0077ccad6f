"""Runs many samples at once, where torch can, and one after the other where it cannot.

At once, the kernels are others and round otherwise: what differs is looked at again, alone.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from veracity.tracing.versions import rows_of

Tensors = dict[str, torch.Tensor]
#: From values in the order of the ports to values in the order of the ports.
Call = Callable[[list[torch.Tensor]], list[torch.Tensor]]


class Many:
    """Samples along the first axis of each input and output, by port."""

    def __init__(self, inputs: Tensors, outputs: Tensors) -> None:
        """Keep both; they have the same number of rows."""
        self.inputs, self.outputs = inputs, outputs

    def __len__(self) -> int:
        """Count the samples."""
        return next((len(value) for value in self.inputs.values()), 0)

    def rows(self, chosen: torch.Tensor | list[int]) -> Many:
        """Return some of them."""
        wanted = torch.as_tensor(chosen)
        wanted = wanted.nonzero()[:, 0] if wanted.dtype == torch.bool else wanted.long()
        return Many(_taken(self.inputs, wanted), _taken(self.outputs, wanted))

    def row(self, number: int) -> tuple[Tensors, Tensors]:
        """Return inputs and outputs of one."""
        return (
            {name: value[number] for name, value in self.inputs.items()},
            {name: value[number] for name, value in self.outputs.items()},
        )

    @staticmethod
    def joined(parts: list[Many]) -> Many:
        """Return several as one."""
        first = parts[0]
        return Many(
            {name: torch.cat([part.inputs[name] for part in parts]) for name in first.inputs},
            {name: torch.cat([part.outputs[name] for part in parts]) for name in first.outputs},
        )


def _taken(values: Tensors, wanted: torch.Tensor) -> Tensors:
    return {name: rows_of(value, wanted.to(value.device)) for name, value in values.items()}


def run_at_once(call: Call, inputs: list[torch.Tensor]) -> list[torch.Tensor] | None:
    """Return stacks of outputs for stacks of inputs; `None` when torch cannot run them at once."""
    if not inputs:
        return None
    with warnings.catch_warnings(), _without_a_word():
        warnings.simplefilter("ignore")
        try:
            with torch.no_grad():
                found = torch.func.vmap(lambda *given: tuple(call(list(given))))(*inputs)
        except Exception:  # any: what cannot be batched raises what it likes
            return None
    count = len(inputs[0])
    stacked = all(isinstance(one, torch.Tensor) and len(one) == count for one in found)
    return list(found) if stacked else None


@contextlib.contextmanager
def _without_a_word() -> Iterator[None]:
    """Keep torch from saying that it loops over an operation: that is slow, and not wrong."""
    functorch: Any = torch._C._functorch
    functorch._set_vmap_fallback_warning_enabled(False)
    try:
        yield
    finally:
        functorch._set_vmap_fallback_warning_enabled(True)


def run_each(
    call: Call, inputs: list[torch.Tensor], seconds: float
) -> tuple[list[torch.Tensor], list[int]]:
    """Run samples one after the other; return stacks of outputs, and the rows that could be run.

    Args:
        call: What is run.
        inputs: Stacks of inputs.
        seconds: How long it may take; rows that were not reached are left out.
    """
    found: list[list[torch.Tensor]] = []
    rows: list[int] = []
    end = time.thread_time() + seconds
    for row in range(len(inputs[0]) if inputs else 0):
        if time.thread_time() > end:
            break
        try:
            with torch.no_grad():
                results = call([value[row] for value in inputs])
        except Exception:  # any: values that a program does not take
            continue
        if found and [one.shape for one in results] != [one.shape for one in found[0]]:
            continue
        found.append(results)
        rows.append(row)
    return [torch.stack(list(column)) for column in zip(*found, strict=True)], rows
