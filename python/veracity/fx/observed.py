"""What the original gave for one input, and how others compare with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule

from veracity.fx import judge, running
from veracity.fx.inputs import Case
from veracity.fx.running import Run
from veracity.fx.verdict import Compared

#: Seeds of the runs on moved values.
MOVES = (1, 2, 3)
UNSTABLE = "the original disagrees with itself here"


@dataclass
class Observed:
    """An input and what the original gave for it, twice.

    Attributes:
        original: The graph that was run.
        case: The input.
        run: What it gave.
        tolerance: Largest absolute difference, if one was given.
        noise: By how much each output differs from itself, within what is allowed.
        unstable: What differs from itself by more.
    """

    original: GraphModule
    case: Case
    run: Run
    tolerance: float | None
    noise: dict[str, float] = field(default_factory=dict)
    unstable: set[str] = field(default_factory=set)
    _wide: list[Run] = field(default_factory=list)

    def control(self, again: Run) -> None:
        """Take in a second run of the original."""
        rows = self.rows(self.run.outputs, again.outputs)
        rows += self.rows(self.run.nodes, again.nodes)
        self.unstable = {row.name for row in rows if row.verdict == "disproved"}
        self.noise = {row.name: row.largest for row in rows if row.verdict == "proved"}

    def rows(self, original: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[Compared]:
        """Compare values by name; what one side lacks is a difference."""
        rows = [
            self._row(name, self._difference(name, original[name], candidate[name]))
            if name in candidate
            else self._row(name, _differs("is missing"))
            for name in original
        ]
        extra = [name for name in candidate if name not in original]
        return rows + [self._row(name, _differs("is new")) for name in extra]

    def _difference(self, name: str, left: Any, right: Any) -> judge.Difference:
        if name in self.unstable:
            return judge.Difference("not_comparable", 0.0, 0.0, 0.0, UNSTABLE)
        if not (isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)):
            return _plain_difference(left, right)
        return judge.compare(
            left,
            right,
            tolerance=self.tolerance,
            noise=self.noise.get(name, 0.0),
            finite=self.case.finite,
            float64=lambda: self._in_float64(name, left.dtype),
        )

    def _in_float64(self, name: str, dtype: torch.dtype) -> judge.Wide | None:
        """Return an output or node of the original in float64, and how far it moves."""
        if not self._wide:
            step = judge.step(dtype)
            self._wide = [running.in_float64(self.original, self.case)]
            self._wide += [
                running.in_float64(self.original, self.case, step, seed) for seed in MOVES
            ]
        plain, *moved = [one.nodes.get(name, one.outputs.get(name)) for one in self._wide]
        if not isinstance(plain, torch.Tensor):
            return None
        there = [one for one in moved if isinstance(one, torch.Tensor) and one.shape == plain.shape]
        if len(there) < len(moved):
            return None
        distances = torch.stack([(one.double() - plain.double()).abs() for one in there])
        return judge.Wide(plain, distances.amax(0))

    def _row(self, name: str, found: judge.Difference) -> Compared:
        return compared(self.case.name, name, found)


def compared(case: str, name: str, found: judge.Difference) -> Compared:
    """Return a difference with its place."""
    return Compared(
        case, name, found.verdict, found.largest, found.allowed, found.scale, found.problem
    )


def _differs(problem: str) -> judge.Difference:
    return judge.Difference("disproved", float("inf"), 0.0, 0.0, problem)


def _plain_difference(left: object, right: object) -> judge.Difference:
    simple = (int, float, str, bool, bytes, type(None))
    if not isinstance(left, simple):
        return judge.Difference("not_comparable", 0.0, 0.0, 0.0, f"it is a {type(left).__name__}")
    if type(left) is type(right) and (left == right or (left != left and right != right)):
        return judge.Difference("proved", 0.0, 0.0, 0.0)
    return _differs(f"is {right!r} instead of {left!r}")
