"""What people say about tensors and graphs beyond shape and dtype.

Checked where it is said: what cannot be written into a bundle, or would overwrite what the bundle
itself says about a port, is refused here. Whether element names fit the shape is only a finding
(`element_names_problem`), since bundles with names that do not fit are in use.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from numbers import Real
from typing import Any

from veracity import _native
from veracity._places import user_line
from veracity.errors import VeracityError, refuse
from veracity.kinds import InputKindEnum, OutputKindEnum

#: What stands in a bundle for an axis along which time runs.
TEMPORAL_AXIS = "__temporal_axis__"

#: What a bundle says about a port by itself; `extra` may not say it again.
_PORT_KEYS = frozenset({"name", "dtype", "shape", "type"})


@dataclass(frozen=True)
class TemporalAxis:
    """Marks an axis of `element_names` along which time runs.

    Attributes:
        period_ms: Time between two elements, in milliseconds.
    """

    period_ms: float

    def __post_init__(self) -> None:
        """Refuse a period that no clock has."""
        if not _is_positive(self.period_ms):
            raise _refuse(
                "VER0903", f"the period of a temporal axis must be positive: {self.period_ms!r}"
            )


@dataclass
class GraphConfigs:
    """Settings of a pipeline as a whole.

    Attributes:
        frequency: Steps per second that the pipeline was made for.
        extra: Further settings; their keys stand beside `frequency` in the bundle.
    """

    frequency: float | None = None
    extra: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what a runtime could not keep to."""
        if self.frequency is not None and not _is_positive(self.frequency):
            raise _refuse("VER0903", f"the frequency must be positive: {self.frequency!r}")
        taken = frozenset() if self.frequency is None else frozenset({"frequency"})
        _check_extra(self.extra, taken, "GraphConfigs")

    def to_dict(self) -> dict[str, Any]:
        """Return what is set, with the keys of `extra` beside the others."""
        given = {} if self.frequency is None else {"frequency": self.frequency}
        return given | (self.extra or {})


@dataclass
class TensorSemantics:
    """A named tensor and what it means.

    Attributes:
        name: Name of the port.
        ref: The tensor or array.
        kind: What the values mean: a kind of the enums, or any text.
        element_names: A name, names along the last axis, or an entry per axis: names, `None` or a
            `TemporalAxis`. Kept as one entry per axis.
        temporal_period_ms: Period of the temporal axis; follows from `element_names`.
        extra: Further keys for the port's entry in the bundle.
    """

    name: str = None  # type: ignore[assignment]  # required; LEAPP's signature has a default
    ref: Any = None
    kind: InputKindEnum | OutputKindEnum | str | None = None
    element_names: list[Any] | str | None = None
    temporal_period_ms: float | None = field(default=None, init=False)
    extra: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check what was given and bring the element names into one form."""
        if not is_tensor(self.ref):
            kind = type(self.ref).__name__
            raise _refuse(
                "VER0902",
                f"`ref` of TensorSemantics must be a tensor or an array, not {kind}",
                hints=("name each tensor of a nested value by a TensorSemantics of its own",),
            )
        if self.element_names is not None:
            self._normalise_names()
        taken = _PORT_KEYS | self._given().keys()
        _check_extra(self.extra, taken, f"TensorSemantics {self.name!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return what is set, as it stands in a bundle."""
        return self._given() | (self.extra or {})

    def update(self, values: Mapping[str, Any]) -> None:
        """Set fields by name; other keys go into `extra`."""
        settable = {each.name for each in fields(self) if each.init} - {"name", "ref"}
        for key, value in values.items():
            if key in settable:
                setattr(self, key, value)
            else:
                self.extra = (self.extra or {}) | {key: value}
        self.__post_init__()

    def kind_text(self) -> str | None:
        """Return the kind as it is written."""
        return str(self.kind.value) if isinstance(self.kind, Enum) else self.kind

    def _given(self) -> dict[str, Any]:
        fields_of_port = {
            "kind": self.kind_text(),
            "element_names": self.element_names,
            "temporal_period_ms": self.temporal_period_ms,
        }
        return {key: value for key, value in fields_of_port.items() if value is not None}

    def _normalise_names(self) -> None:
        # Names that were normalised before carry the sentinel; `update` comes back here.
        known = self.temporal_period_ms
        names, period = _normalised(self.element_names, sentinel_is_ours=known is not None)
        self.element_names = names
        self.temporal_period_ms = period if period is not None else known


def is_tensor(value: Any) -> bool:
    """Say whether a value is a torch tensor or a NumPy array, importing neither."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return (torch is not None and isinstance(value, torch.Tensor)) or (
        numpy is not None and isinstance(value, numpy.ndarray)
    )


def element_names_problem(element_names: Any, shape: tuple[int, ...]) -> str | None:
    """Say why element names do not fit a shape, or that they are in no form that readers know."""
    if element_names is None:
        return None
    if not is_normal(element_names):
        return "element names are not one list of names for each axis"
    port = {"name": "port", "dtype": "float32", "shape": shape, "element_names": element_names}
    return _native.element_names_problem(json.dumps(port))


def is_normal(element_names: Any) -> bool:
    """Say whether names have one entry per axis: names, `None` or the temporal sentinel."""
    return isinstance(element_names, list) and all(
        axis is None
        or axis == TEMPORAL_AXIS
        or (isinstance(axis, list) and all(isinstance(name, str) for name in axis))
        for axis in element_names
    )


def _normalised(names: Any, *, sentinel_is_ours: bool) -> tuple[Any, float | None]:
    """Return names with an entry per axis, and the period of the temporal axis.

    What has no such form is returned as it is; `element_names_problem` tells about it.
    """
    if isinstance(names, str):
        if names == TEMPORAL_AXIS and not sentinel_is_ours:
            raise _reserved()
        return [names] if names == TEMPORAL_AXIS else [[names]], None
    if not isinstance(names, list | tuple):
        return names, None
    axes = [_axis(item, sentinel_is_ours=sentinel_is_ours) for item in names]
    periods = [item.period_ms for item in names if isinstance(item, TemporalAxis)]
    if len(periods) > 1:
        raise _refuse("VER0903", "element names have more than one temporal axis")
    flat = bool(axes) and all(isinstance(item, str) and item != TEMPORAL_AXIS for item in axes)
    return [axes] if flat or not axes else axes, periods[0] if periods else None


def _axis(item: Any, *, sentinel_is_ours: bool) -> Any:
    if isinstance(item, TemporalAxis):
        return TEMPORAL_AXIS
    if isinstance(item, list | tuple):
        if any(isinstance(name, TemporalAxis) for name in item):
            raise _refuse("VER0903", "a temporal axis stands for an axis, not within its names")
        if TEMPORAL_AXIS in item:
            raise _reserved()
        return list(item)
    if item == TEMPORAL_AXIS and not sentinel_is_ours:
        raise _reserved()
    return item


def _reserved() -> VeracityError:
    return _refuse(
        "VER0903",
        f"{TEMPORAL_AXIS!r} is reserved",
        hints=("write `TemporalAxis(period_ms)` in its place",),
    )


def _refuse(code: str, message: str, *, hints: tuple[str, ...] = ()) -> VeracityError:
    return refuse(code, message, location=user_line(), hints=hints)


def _check_extra(extra: Any, taken: frozenset[str], what: str) -> None:
    if extra is None:
        return
    if not isinstance(extra, Mapping):
        raise _refuse("VER0902", f"`extra` of {what} must be a dict, not {type(extra).__name__}")
    clash = sorted(taken & {str(key) for key in extra})
    if clash:
        raise _refuse(
            "VER0903",
            f"`extra` of {what} would overwrite {', '.join(f'`{key}`' for key in clash)}",
            hints=("give these as arguments of their own, or rename the keys",),
        )


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < float("inf")
