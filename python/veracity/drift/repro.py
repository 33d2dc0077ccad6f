"""Runs a repro again: the folder that `parity(repro=...)` writes. Torch is not needed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from veracity import _native
from veracity.inference import site_packages


@dataclass(frozen=True)
class Rerun:
    """What running a repro again showed.

    Attributes:
        value: Name of the value.
        engine: What ran it, with its version.
        shows: Whether the operator is wrong again.
        repeats: Whether it gives bit for bit what it gave when the repro was written.
        error: How far it is off; infinite when it gives another shape.
        budget: The most that it may be off.
    """

    value: str
    engine: str
    shows: bool
    repeats: bool
    error: float
    budget: float

    def __str__(self) -> str:
        """Say in a line what was seen."""
        verdict = "the fault shows again" if self.shows else "the fault does not show"
        same = "the same bits as before" if self.repeats else "other bits than before"
        return (
            f"{self.value} on {self.engine}: {verdict}: off by {self.error:.3e}, "
            f"{self.budget:.3e} is allowed; {same}"
        )


def rerun(folder: str | os.PathLike[str], *, engine: str = "auto") -> Rerun:
    """Run a repro again.

    Args:
        folder: What `parity(repro=...)` wrote.
        engine: What runs it: `"auto"`, `"ort"` or `"embedded"`.
    """
    found = json.loads(_native.rerun(folder, engine, site_packages()))
    return Rerun(
        value=found["value"],
        engine=f"{found['engine']} {found['engine_version']}",
        shows=found["shows"],
        repeats=found["repeats"],
        error=float(found["error"]),
        budget=float(found["budget"]),
    )
