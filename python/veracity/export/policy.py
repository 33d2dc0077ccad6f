"""What counts as equal, as `compile_graph` was told it, or as the scale of an output demands it.

Tolerances that were given hold as they are. Where they say nothing about an output, that is told.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from veracity._places import user_line
from veracity.errors import Diagnostic, refuse
from veracity.export import auto_tolerance, scale
from veracity.export.bounds import Bound
from veracity.export.describe import as_json
from veracity.export.double import rounding
from veracity.export.log import ExportLog
from veracity.export.models import Made
from veracity.tracing.nodes import Node

Tensors = dict[str, torch.Tensor]
#: Samples that are run in float64 with noise.
MAX_ROUNDED = 3


@dataclass(frozen=True)
class Asked:
    """The options, unchecked.

    Attributes:
        rtol: Relative tolerance; `None` takes 1e-3, finer where the scale of an output demands it.
        atol: Absolute tolerance; `None` takes 1e-5, finer where the scale of an output demands it.
        equal_nan: Whether NaN equals NaN.
        tolerance: `"auto"` to derive tolerances from the computation.
        tolerances: Tolerances of single outputs, `{"node/port": {"atol": ..., "rtol": ...}}`.
    """

    rtol: float | None = None
    atol: float | None = None
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
        basis: `"given"`, `"auto"` when derived from the computation, `"scaled"` when the defaults
            are made finer for the scale of outputs.
        given: Outputs whose tolerance somebody gave.
    """

    default: Bound
    ports: dict[str, Bound] = field(default_factory=dict)
    equal_nan: bool = False
    basis: str = "given"
    given: frozenset[str] = frozenset()

    def of(self, made: Made) -> dict[str, Bound]:
        """Return what counts as equal for the outputs of a node, by the names of the recording."""
        return {
            port.name: self.ports.get(f"{made.node.name}/{name}", self.default)
            for port, name in zip(made.node.outputs, made.output_names(), strict=True)
        }

    def fit(self, made: Made, fresh: Tensors) -> dict[str, Bound]:
        """Make tolerances finer where the scale of an output demands it; return them all.

        Args:
            made: The node.
            fresh: Stacks of its outputs on fresh inputs.
        """
        if self.basis == "scaled":
            fitting = _Fitting(made.node)
            for port, name in zip(made.node.outputs, made.output_names(), strict=True):
                key = f"{made.node.name}/{name}"
                if key not in self.given:
                    bound = fitting.bound(port.name, fresh.get(port.name))
                    self.ports |= {} if bound is scale.DEFAULT else {key: bound}
        return self.of(made)

    def json(self) -> str:
        """Return the policy as proofs hold it."""
        parts = {port: bound.parts() for port, bound in sorted(self.ports.items())}
        return as_json(
            {
                "basis": self.basis,
                "default": self.default.json(),
                "ports": {port: bound.json() for port, bound in sorted(self.ports.items())},
                "parts": {port: runs for port, runs in parts.items() if runs},
                "equal_nan": self.equal_nan,
            }
        )


class _Fitting:
    """Fits tolerances to the scale of the outputs of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._rounding: Tensors | None = None

    def bound(self, name: str, fresh: torch.Tensor | None) -> Bound:
        values = [one.outputs[name] for one in self._node.samples if name in one.outputs]
        if not values or not values[0].is_floating_point() or scale.is_large(values[0]):
            return scale.DEFAULT
        return scale.fitted(torch.stack(values), fresh, lambda: self._of(name))

    def _of(self, name: str) -> torch.Tensor | None:
        if self._rounding is None:
            node = self._node
            floats = [
                port.name
                for port in node.outputs
                if all(
                    port.name in one.outputs and one.outputs[port.name].is_floating_point()
                    for one in node.samples
                )
            ]
            try:
                self._rounding = rounding(node, node.samples[:MAX_ROUNDED], floats)
            except Exception:  # any: foreign operations raise what they like
                self._rounding = {}
        return self._rounding.get(name)


def says_nothing(made: Made, policy: Policy, values: dict[str, torch.Tensor]) -> list[Diagnostic]:
    """Return a finding for each output that a tolerance says nothing about.

    Args:
        made: The node.
        policy: What counts as equal.
        values: All values of its outputs that are compared, along a first axis.
    """
    node, found = made.node, []
    for port, bound in policy.of(made).items():
        stack = values.get(port)
        if stack is None or not stack.is_floating_point() or stack.numel() == 0:
            continue
        # Derived tolerances are as fine as rounding lets them be: single elements may be noise.
        derived = policy.basis != "given" and f"{node.name}/{port}" not in policy.given
        if derived and scale.surely_judges(stack, bound):
            continue
        unjudged = scale.unjudged(stack, bound)
        count, elements = int(unjudged.sum()), unjudged.numel()
        if count == 0 or (derived and count < elements):
            continue
        about = f"`{port}`" if count == elements else f"{count} of {elements} elements of `{port}`"
        size = float(torch.where(stack.isfinite(), stack, 0).abs()[:, unjudged].max())
        message = (
            f"the tolerance of `{node.name}` (rtol {bound.rtol:.3g}, atol {bound.atol:.3g}) says "
            f"nothing about {about}, at most {size:.3g}: zeros or a constant would pass"
        )
        hint = "leave `rtol` and `atol` away, or give a finer one in `tolerances`"
        found.append(Diagnostic("VER1126", "warning", message, node.location, (hint,), node.name))
    return found


def check_options(asked: Asked) -> None:
    """Refuse options that mean nothing, before anything is exported."""
    if asked.tolerance not in (None, "auto"):
        hints = ('use "auto", or `rtol` and `atol`',)
        message = f"`tolerance` is {asked.tolerance!r}"
        raise refuse("VER0803", message, location=user_line(), hints=hints)
    both = {"atol": asked.atol, "rtol": asked.rtol}
    told = {name: value for name, value in both.items() if value is not None}
    if told:
        _bound("compile_graph", told, Bound(0, 0))
    for port, given in (asked.tolerances or {}).items():
        _bound(port, given, Bound(0, 0))


def resolve(asked: Asked, made: list[Made], log: ExportLog) -> Policy:
    """Return the policy for the nodes of a bundle. Refused when an output is not known."""
    atol = scale.DEFAULT.atol if asked.atol is None else float(asked.atol)
    rtol = scale.DEFAULT.rtol if asked.rtol is None else float(asked.rtol)
    default = Bound(atol, rtol)
    scaled = asked.atol is None and asked.rtol is None
    basis = "auto" if asked.tolerance == "auto" else "scaled" if scaled else "given"
    policy = Policy(default, {}, bool(asked.equal_nan), basis)
    if basis == "auto":
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
        policy.given |= {key}
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
