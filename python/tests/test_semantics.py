"""What people say about tensors: as LEAPP writes it, and refused where LEAPP writes nonsense."""

from __future__ import annotations

from typing import Any

import leapp
import numpy as np
import pytest
import torch
import yaml
from leapp.utils.tensor_description import TEMPORAL_AXIS_SENTINEL
from veracity.errors import VeracityError
from veracity.export.describe import plain
from veracity.kinds import InputKindEnum, OutputKindEnum
from veracity.semantics import (
    TEMPORAL_AXIS,
    GraphConfigs,
    TemporalAxis,
    TensorSemantics,
    element_names_problem,
    is_normal,
)

REF = torch.zeros(1, 3)


def written(semantics: Any) -> Any:
    """Return what stands in the YAML of a port, as a reader sees it."""
    kind = semantics.to_dict()
    kind = {k: v.value if hasattr(v, "value") else v for k, v in kind.items()}
    return yaml.safe_load(yaml.dump(kind))


def test_every_kind_of_leapp_is_a_kind_here() -> None:
    for ours, theirs in (
        (InputKindEnum, leapp.InputKindEnum),
        (OutputKindEnum, leapp.OutputKindEnum),
    ):
        assert {k: v.value for k, v in ours.__members__.items()}.items() >= {
            k: v.value for k, v in theirs.__members__.items()
        }.items()
    assert len(leapp.InputKindEnum) == 20
    assert len(leapp.OutputKindEnum) == 11


@pytest.mark.parametrize(
    "kind",
    [
        "state/camera/image",
        "command/body/velocity_height",
        "command/body/target_position",
        "command/body/target_rotation",
        "state/body/projected_gravity",
    ],
)
def test_kinds_that_runtimes_read_and_leapp_lacks(kind: str) -> None:
    assert InputKindEnum(kind)
    with pytest.raises(ValueError, match=kind):
        leapp.InputKindEnum(kind)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {}),
        ({"kind": "custom/thing"}, {"kind": "custom/thing"}),
        ({"kind": "KIND"}, {"kind": "state/joint/position"}),
        ({"element_names": "a"}, {"element_names": [["a"]]}),
        ({"element_names": ["a", "b", "c"]}, {"element_names": [["a", "b", "c"]]}),
        ({"element_names": [["a", "b", "c"]]}, {"element_names": [["a", "b", "c"]]}),
        ({"element_names": [None, ["a", "b"]]}, {"element_names": [None, ["a", "b"]]}),
        (
            {"element_names": ["TIME", ["a"]]},
            {"element_names": ["__temporal_axis__", ["a"]], "temporal_period_ms": 100},
        ),
        ({"element_names": []}, {"element_names": [[]]}),
        ({"extra": {"units": "rad", "scale": [1, 2]}}, {"units": "rad", "scale": [1, 2]}),
        (
            {"kind": "k", "element_names": "a", "extra": {"z": 1, "a": None}},
            {"kind": "k", "element_names": [["a"]], "z": 1, "a": None},
        ),
    ],
)
def test_semantics_are_written_as_leapp_writes_them(
    arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    def given(module: Any, kinds: Any) -> dict[str, Any]:
        made = dict(arguments)
        if made.get("kind") == "KIND":
            made["kind"] = kinds.JOINT_POSITION
        if "TIME" in (made.get("element_names") or []):
            made["element_names"] = [module.TemporalAxis(100), *made["element_names"][1:]]
        return made

    import veracity.semantics

    theirs = leapp.TensorSemantics(name="x", ref=REF, **given(leapp, leapp.InputKindEnum))
    ours = TensorSemantics(name="x", ref=REF, **given(veracity.semantics, InputKindEnum))
    assert written(ours) == written(theirs) == expected
    assert list(ours.to_dict()) == list(theirs.to_dict())


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda m: m.TemporalAxis(0), ValueError),
        (lambda m: m.TemporalAxis(-1.5), ValueError),
        (lambda m: m.GraphConfigs(frequency=-1), ValueError),
        (lambda m: m.GraphConfigs(frequency=0), ValueError),
        (lambda m: m.TensorSemantics(name="x", ref=3.0), TypeError),
        (lambda m: m.TensorSemantics(name="x", ref=[REF]), TypeError),
        (lambda m: m.TensorSemantics(name="x"), TypeError),
        (lambda m: _named(m, [m.TemporalAxis(1), m.TemporalAxis(2)]), ValueError),
        (lambda m: _named(m, [["a", m.TemporalAxis(1)]]), ValueError),
        (lambda m: _named(m, "__temporal_axis__"), ValueError),
        (lambda m: _named(m, ["__temporal_axis__", ["a"]]), ValueError),
        (lambda m: _named(m, [["__temporal_axis__"]]), ValueError),
    ],
)
def test_what_leapp_refuses_is_refused_with_the_same_type(make: Any, error: type) -> None:
    import veracity.semantics

    with pytest.raises(error):
        make(leapp)
    with pytest.raises(error) as found:
        make(veracity.semantics)
    assert isinstance(found.value, VeracityError)
    assert found.value.diagnostics[0].location.startswith(f"{__file__}:")


def _named(module: Any, names: Any) -> Any:
    return module.TensorSemantics(name="x", ref=REF, element_names=names)


@pytest.mark.parametrize("key", ["name", "shape", "dtype", "type"])
def test_extra_may_not_overwrite_what_a_port_is(key: str) -> None:
    leapp.TensorSemantics(name="x", ref=REF, extra={key: "other"})  # LEAPP lets it through
    with pytest.raises(ValueError, match=f"would overwrite `{key}`"):
        TensorSemantics(name="x", ref=REF, extra={key: "other"})


def test_extra_may_not_contradict_what_was_said_beside_it() -> None:
    with pytest.raises(ValueError, match="would overwrite `kind`"):
        TensorSemantics(name="x", ref=REF, kind="a", extra={"kind": "b"})
    assert TensorSemantics(name="x", ref=REF, extra={"kind": "b"}).to_dict() == {"kind": "b"}
    with pytest.raises(ValueError, match="would overwrite `frequency`"):
        GraphConfigs(50, extra={"frequency": 5})
    with pytest.raises(TypeError, match="must be a dict"):
        GraphConfigs(extra=[1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {}),
        ({"frequency": 50}, {"frequency": 50}),
        ({"extra": {"runtime": "isaac_lab"}}, {"runtime": "isaac_lab"}),
        ({"frequency": 50.5, "extra": {"b": 1, "a": 2}}, {"frequency": 50.5, "b": 1, "a": 2}),
    ],
)
def test_graph_configs_are_flat_as_in_leapp(
    arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    ours = GraphConfigs(**arguments).to_dict()
    assert ours == leapp.GraphConfigs(**arguments).to_dict() == expected
    assert list(ours) == list(expected)


def test_updating_keeps_the_temporal_axis_as_in_leapp() -> None:
    ours = TensorSemantics(name="x", ref=REF, element_names=[TemporalAxis(20), ["a", "b", "c"]])
    theirs = leapp.TensorSemantics(
        name="x", ref=REF, element_names=[leapp.TemporalAxis(20), ["a", "b", "c"]]
    )
    for semantics in (ours, theirs):
        semantics.update({"kind": "k", "units": "m"})
    assert written(ours) == written(theirs)
    assert ours.temporal_period_ms == 20
    assert TEMPORAL_AXIS == TEMPORAL_AXIS_SENTINEL


def test_arrays_are_refs_and_tuples_are_lists() -> None:
    semantics = TensorSemantics(name="x", ref=np.zeros(2), element_names=("a", "b"))
    assert semantics.element_names == [["a", "b"]]


@pytest.mark.parametrize(
    ("names", "shape", "fits"),
    [
        (None, (1, 3), True),
        ([["a", "b", "c"]], (1, 3), True),
        ([["a", "b", "c"]], (3,), True),
        ([None, ["a", "b", "c"]], (1, 3), True),
        ([TEMPORAL_AXIS, ["a", "b", "c"]], (4, 3), True),
        ([["a", "b"]], (1, 3), False),
        ([None, ["a", "b"]], (1, 3), False),
        ([None, None, ["a", "b", "c"]], (1, 3), False),
        ([1, 2, 3], (1, 3), False),
        ("abc", (3,), False),
    ],
)
def test_names_are_held_against_the_shape(names: Any, shape: tuple[int, ...], fits: bool) -> None:
    assert (element_names_problem(names, shape) is None) == fits


def test_only_one_list_per_axis_is_normal() -> None:
    assert is_normal([None, ["a"], TEMPORAL_AXIS])
    assert not is_normal(["a"])
    assert not is_normal([["a", 1]])
    assert not is_normal(("a",))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.arange(2), [0, 1]),
        (torch.ones(2), [1.0, 1.0]),
        ({1: (True, None)}, {"1": [True, None]}),
        (InputKindEnum.WRENCH, "state/wrench"),
        ({"b", "a"}, ["a", "b"]),
    ],
)
def test_extra_values_become_what_yaml_holds(value: Any, expected: Any) -> None:
    assert plain(value, "x", "") == expected


@pytest.mark.parametrize("value", [object(), float("nan"), [float("inf")], {"a": print}])
def test_extra_values_that_yaml_cannot_hold_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="holds") as found:
        plain(value, "`extra` of a/x", "policy.py:7")
    assert found.value.diagnostics[0].location == "policy.py:7"  # type: ignore[attr-defined]
