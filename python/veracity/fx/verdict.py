"""What `veracity.fx.validate` found out, in one object."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from veracity.errors import Diagnostic
from veracity.fx.audit import Audit


@dataclass(frozen=True)
class Compared:
    """One tensor of the original beside the same of the transformed graph.

    Attributes:
        case: Which input.
        name: Name of the output, or of the node.
        verdict: `"proved"`, `"disproved"` or `"not_comparable"`.
        largest: Largest absolute difference.
        allowed: What was allowed.
        scale: Largest value of the original.
        problem: What is wrong, or why nothing can be said.
    """

    case: str
    name: str
    verdict: str
    largest: float
    allowed: float
    scale: float
    problem: str = ""


@dataclass(frozen=True)
class Validation:
    """The verdict on one transformation of one model.

    Attributes:
        verdict: `"proved"`: on these inputs the outputs are the same, every change is marked, and
            it can be undone if it is said to be. `"disproved"`: one of that is shown to be wrong.
            `"not_comparable"`: it could not be found out, or nothing is claimed.
        reasons: Why it is not proved, the worst first.
        transformation: Name of its class.
        signature: Its signature, as sha256.
        claims: Whether it says that it preserves the computation.
        audit: What became of the nodes.
        outputs: Every output on every input.
        nodes: Every node that is not marked, on every input, as far as it was compared.
        restored: Every output, parameter and buffer after undoing; empty if it cannot be undone.
        cases: Names of the inputs that were used.
        not_run: Inputs on which the original says nothing, with the reason.
        seed: What the drawn inputs were made with.
    """

    verdict: str
    reasons: tuple[Diagnostic, ...]
    transformation: str
    signature: str
    claims: bool
    audit: Audit | None
    outputs: tuple[Compared, ...]
    nodes: tuple[Compared, ...]
    restored: tuple[Compared, ...]
    cases: tuple[str, ...]
    not_run: Mapping[str, str]
    seed: int

    @property
    def first_difference(self) -> Compared | None:
        """The first node, in the order of the graph, that no longer has its value."""
        return next((row for row in self.nodes if row.verdict == "disproved"), None)

    @property
    def largest(self) -> float:
        """The largest difference of an output."""
        return max((row.largest for row in self.outputs), default=math.nan)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values; numbers that JSON has not are text."""
        found: dict[str, Any] = _plain(dataclasses.asdict(self))
        return found

    def __str__(self) -> str:
        """Return a screen of text."""
        lines = [f"{self.verdict}: {self.transformation} on {len(self.cases)} inputs"]
        if self.audit is not None:
            found = self.audit
            lines.append(
                f"  nodes: {len(found.marked)} marked, {len(found.added)} added, "
                f"{len(found.removed)} removed, {len(found.changed)} changed, "
                f"{len(found.unmarked)} unaccounted for, {len(found.declined)} declined"
            )
        if self.outputs:
            lines.append(f"  outputs: largest difference {self.largest:.3g}")
        lines += [f"  {line}" for reason in self.reasons for line in str(reason).splitlines()]
        return "\n".join(lines)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
