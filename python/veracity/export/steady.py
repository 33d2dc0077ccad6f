"""Tells apart the answers that no engine can be held to: those that jump with the rounding.

Torch itself gives another one on another processor. The order of equal values and the sign of a
zero that is chosen are no matter of rounding, but engines have ways of their own there: samples
that are kept, and run wherever a bundle goes, are free of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

from veracity.export.bounds import Bound, differs, near
from veracity.export.double import Widened
from veracity.export.ties import FirstOfEqualsFirst
from veracity.export.zeros import ChosenZerosArePositive
from veracity.tracing.nodes import Node, Sample

Tensors = dict[str, torch.Tensor]
Run = Callable[[Tensors], Tensors]

#: What engines do in a way of their own, by what is said of it.
WAYS = {"values tie in it": FirstOfEqualsFirst, "it chooses a -0.0": ChosenZerosArePositive}
#: Roundings that an answer is tried with.
ROUNDINGS = 8
#: What is no jump, however fine a tolerance is: this share of a value, and of the largest one.
#: It is more where a type has no steps that fine.
SMALL = 1e-3
#: Samples that take more are not run in float64, and neither are nodes with as many constants.
MAX_BYTES = 16 << 20


class Steadiness:
    """Looks at the answers of one node."""

    def __init__(self, node: Node, program: Run, bounds: Mapping[str, Bound]) -> None:
        """Look at this program, with what counts as equal by output."""
        self._node, self._program, self._bounds = node, program, bounds
        self._widened: Widened | None = None

    def holds(self, sample: Sample) -> bool:
        """Say whether every engine has to give this answer."""
        if any(self._parts(sample, found, self._bounds) for _, found in self._ways(sample)):
            return False
        return not self.jumps(sample)

    def jumps(self, sample: Sample) -> bool:
        """Say whether rounding decides this answer."""
        if sum(use.tensor.nbytes for use in self._node.slice.constants) > MAX_BYTES:
            return False
        jumps = {name: _jump(bound, sample.outputs[name]) for name, bound in self._bounds.items()}
        try:
            return any(self._parts(sample, one, jumps) for one in self._rounded(sample))
        except Exception:  # any: not every program can be widened
            return False

    def way_to(self, sample: Sample, is_right: Callable[[Tensors], bool]) -> str | None:
        """Return the way of engines in which the program gives what is right."""
        return next((words for words, found in self._ways(sample) if is_right(found)), None)

    def allows(self, sample: Sample, found: Tensors) -> bool:
        """Say whether the program gives what was found when its values are rounded otherwise."""
        right = {name: self._is_same(name, sample.outputs[name], found[name]) for name in found}
        try:
            for other in self._rounded(sample):
                for name, got in found.items():
                    want = other[name].to(sample.outputs[name].dtype)
                    right[name] = right[name] | self._is_same(name, want, got)
        except Exception:  # any: not every program can be widened
            return False
        return all(bool(one.all()) for one in right.values())

    def _rounded(self, sample: Sample) -> Iterator[Tensors]:
        self._widened = self._widened or Widened(self._node)
        return self._widened.rounded_otherwise(sample, ROUNDINGS)

    def _ways(self, sample: Sample) -> Iterator[tuple[str, Tensors]]:
        """Give what the program gives in the ways of engines, where those matter."""
        for words, kind in WAYS.items():
            try:
                with kind() as way:
                    found = self._program(sample.inputs)
            except Exception:  # any: not every program can be run in another way
                continue
            if way.matters:
                yield words, {name: found[name].detach().clone() for name in sample.outputs}

    def _is_same(self, name: str, want: torch.Tensor, got: torch.Tensor) -> torch.Tensor:
        """Say for each element whether two values are the same but for the tolerance of floats."""
        if want.shape != got.shape or want.dtype != got.dtype:
            return torch.tensor(False)
        want, got = want.cpu(), got.cpu()
        return near(want, got, self._bounds[name], 1) if want.is_floating_point() else want == got

    @staticmethod
    def _parts(sample: Sample, found: Tensors, bounds: Mapping[str, Bound]) -> bool:
        """Say whether values are another answer."""
        return any(
            differs(want, found[name].to(want.dtype), bounds[name], 1)
            for name, want in sample.outputs.items()
        )


def _jump(bound: Bound, value: torch.Tensor) -> Bound:
    if not value.is_floating_point():
        return Bound(bound.atol, max(bound.rtol, SMALL))
    finite = value[value.isfinite()].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    share = max(SMALL, ROUNDINGS * torch.finfo(value.dtype).eps)
    return Bound(max(bound.atol, share * largest), max(bound.rtol, share))
