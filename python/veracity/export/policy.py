"""What counts as equal, as `compile_graph` was told it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from veracity._places import user_line
from veracity.errors import refuse
from veracity.export import auto_tolerance
from veracity.export.describe import as_json
from veracity.export.fresh import Bound
from veracity.export.log import ExportLog
from veracity.export.models import Made


@dataclass(frozen=True)
class Asked:
    """The options, unchecked.

    Attributes:
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether NaN equals NaN.
        tolerance: `"auto"` to derive tolerances from the computation.
        tolerances: Tolerances of single outputs, `{"node/port": {"atol": ..., "rtol": ...}}`.
    """

    rtol: float = 1e-3
    atol: float = 1e-5
    equal_nan: bool = False
    tolerance: str | None = None
    tolerances: Mapping[str, Mapping[str, float]] | None = None


@dataclass
class Policy:
    """What counts as equal, for each output of a bundle by `node/port`.

    Attributes:
        default: For outputs that have nothing of their own.
        ports: For single outputs.
        equal_nan: Whether NaN equals NaN.
        auto: Whether tolerances were derived from the computation.
    """

    default: Bound
    ports: dict[str, Bound] = field(default_factory=dict)
    equal_nan: bool = False
    auto: bool = False

    def of(self, made: Made) -> dict[str, Bound]:
        """Return what counts as equal for the outputs of a node, by the names of the recording."""
        return {
            port.name: self.ports.get(f"{made.node.name}/{name}", self.default)
            for port, name in zip(made.node.outputs, made.output_names(), strict=True)
        }

    def json(self) -> str:
        """Return the policy as proofs hold it."""
        return as_json(
            {
                "basis": "auto" if self.auto else "given",
                "default": self.default._asdict(),
                "ports": {port: bound._asdict() for port, bound in sorted(self.ports.items())},
                "equal_nan": self.equal_nan,
            }
        )


def check_options(asked: Asked) -> None:
    """Refuse options that mean nothing, before anything is exported."""
    if asked.tolerance not in (None, "auto"):
        hints = ('use "auto", or `rtol` and `atol`',)
        message = f"`tolerance` is {asked.tolerance!r}"
        raise refuse("VER0803", message, location=user_line(), hints=hints)
    _bound("compile_graph", {"atol": asked.atol, "rtol": asked.rtol}, Bound(0, 0))
    for port, given in (asked.tolerances or {}).items():
        _bound(port, given, Bound(0, 0))


def resolve(asked: Asked, made: list[Made], log: ExportLog) -> Policy:
    """Return the policy for the nodes of a bundle. Refused when an output is not known."""
    default = Bound(float(asked.atol), float(asked.rtol))
    policy = Policy(default, {}, bool(asked.equal_nan), asked.tolerance == "auto")
    if policy.auto:
        for one in made:
            policy.ports |= _derived(one, log)
    names = _names(made)
    for port, given in (asked.tolerances or {}).items():
        if port not in names:
            close = difflib.get_close_matches(port, names, n=1)
            known = ", ".join(names)
            hint = f"did you mean {close[0]!r}?" if close else f"the outputs are {known}"
            message = f"there is no output {port!r} to have a tolerance"
            raise refuse("VER1112", message, location=user_line(), hints=(hint,))
        key = names[port]
        policy.ports[key] = _bound(port, given, policy.ports.get(key, default))
    return policy


def _derived(made: Made, log: ExportLog) -> dict[str, Bound]:
    node = made.node
    derived = auto_tolerance.derive(node)
    if derived.note is not None:
        log.caution(f"{node.name}: the tolerance is derived from the dtype alone: {derived.note}")
    names = {
        port.name: f"{node.name}/{name}"
        for port, name in zip(node.outputs, made.output_names(), strict=True)
    }
    for name, bound in derived.bounds.items():
        log.note(
            f"{names[name]}: atol {bound.atol:.3g}, rtol {bound.rtol:.3g} "
            f"(longest reduction {derived.reduction})"
        )
    return {names[name]: bound for name, bound in derived.bounds.items()}


def _names(made: list[Made]) -> dict[str, str]:
    """Return the outputs in the bundle, by their names there and in the recording."""
    found = {}
    for one in made:
        for port, name in zip(one.node.outputs, one.output_names(), strict=True):
            found[f"{one.node.name}/{port.name}"] = f"{one.node.name}/{name}"
            found[f"{one.node.name}/{name}"] = f"{one.node.name}/{name}"
    return found


def _bound(port: str, given: Any, otherwise: Bound) -> Bound:
    """Return a tolerance; what is not given is what would hold otherwise."""
    if not isinstance(given, Mapping) or not given or set(given) - {"atol", "rtol"}:
        message = f"the tolerance of {port!r} is {given!r}"
        hints = ("give `dict(atol=..., rtol=...)`",)
        raise refuse("VER0803", message, location=user_line(), hints=hints)
    for name, value in given.items():
        if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            message = f"{name} of {port!r} must be finite and at least 0, got {value!r}"
            raise refuse("VER0803", message, location=user_line())
    return Bound(float(given.get("atol", otherwise.atol)), float(given.get("rtol", otherwise.rtol)))
