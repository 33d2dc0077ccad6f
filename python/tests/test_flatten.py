"""Nested values as named leaves, and back."""

from __future__ import annotations

import collections
import dataclasses
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from leapp.utils.tensor_description import flatten_io_structure
from veracity.tracing.flatten import flatten, rebuild


class Pair(NamedTuple):
    """Two values."""

    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Sensors:
    """A tensor and a number."""

    imu: Any
    gain: float = 2.0


class TensorDict:
    """What code for torch calls a TensorDict: items, a batch size, item assignment."""

    def __init__(self, values: dict[str, Any], batch_size: list[int]) -> None:
        """Hold values."""
        self.values, self.batch_size = dict(values), batch_size

    def items(self) -> Any:
        """Return names and values."""
        return self.values.items()

    def __setitem__(self, key: str, value: Any) -> None:
        """Replace a value."""
        self.values[key] = value

    def __copy__(self) -> TensorDict:
        """Copy the container, not the values."""
        return TensorDict(self.values, self.batch_size)


T = [torch.full((1,), float(number)) for number in range(8)]

CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({"x": T[0]}, ["x"]),
    ({"state": {"pos": T[0], "imu": [T[1], T[2]]}}, ["state_pos", "state_imu_0", "state_imu_1"]),
    ({"a": (T[0], {"b": T[1]}), "c": T[2]}, ["a_0", "a_1_b", "c"]),
    ({"p": Pair(T[0], [T[1]])}, ["p_left", "p_right_0"]),
    ({"s": Sensors(imu=(T[0], T[1]))}, ["s_imu_0", "s_imu_1"]),
    ({"t": TensorDict({"obs": T[0]}, [1])}, ["t_obs"]),
    ({"o": collections.OrderedDict(b=T[0], a=T[1])}, ["o_b", "o_a"]),
    ({"r": types.MappingProxyType({"k": T[0]})}, ["r_k"]),
    ({"n": np.zeros(2)}, ["n"]),
    ({"e": {}, "f": []}, []),
    ({"k": {0: T[0], 1: T[1]}}, ["k_0", "k_1"]),
]


@pytest.mark.parametrize(("value", "names"), CASES)
def test_names_are_the_parts_of_the_path_in_the_order_of_the_containers(
    value: dict[str, Any], names: list[str]
) -> None:
    leaves = [leaf for leaf in flatten(value) if not isinstance(leaf.value, float)]
    assert [leaf.name for leaf in leaves] == names


@pytest.mark.parametrize("value", [case[0] for case in (CASES[0], CASES[1], CASES[2], CASES[10])])
def test_names_of_plain_containers_are_those_of_leapp(value: dict[str, Any]) -> None:
    theirs: dict[str, Any] = {}
    for name, part in value.items():
        theirs |= flatten_io_structure(part, name)
    ours = {leaf.name: leaf.value for leaf in flatten(value)}
    assert list(ours) == list(theirs)
    assert all(ours[name] is theirs[name] for name in ours)


@pytest.mark.parametrize(("value", "names"), CASES)
def test_rebuilding_replaces_every_leaf_and_changes_nothing_that_was_given(
    value: dict[str, Any], names: list[str]
) -> None:
    before = [(leaf.name, id(leaf.value)) for leaf in flatten(value)]
    made = rebuild(value, lambda name, leaf: (name,) if hasattr(leaf, "shape") else leaf)
    assert [(leaf.name, id(leaf.value)) for leaf in flatten(value)] == before
    for key, part in value.items():
        if not isinstance(part, types.MappingProxyType | torch.Tensor | np.ndarray):
            assert type(made[key]) is type(part)
    # The replacement is a tuple of the name, so that it is found one level below.
    found = [leaf for leaf in flatten(made) if isinstance(leaf.value, str)]
    assert [leaf.value for leaf in found] == names


def test_what_has_no_changed_leaf_is_handed_back_itself() -> None:
    value = {"a": {"b": [T[0]]}, "c": Sensors(T[1])}
    made = rebuild(value, lambda name, leaf: leaf)
    assert made["a"] is value["a"]
    assert made["c"] is value["c"]


def test_rebuilding_keeps_what_is_no_leaf() -> None:
    made = rebuild(
        {"s": Sensors(T[0], gain=7.0)}, lambda name, leaf: T[1] if name == "s_imu" else leaf
    )
    assert made["s"] == Sensors(T[1], gain=7.0)
    made = rebuild({"t": TensorDict({"a": T[0]}, [4])}, lambda name, leaf: T[2])
    assert made["t"].batch_size == [4]
    assert made["t"].values == {"a": T[2]}


def test_names_that_collide_are_refused_with_the_line() -> None:
    with pytest.raises(ValueError, match="'a_b'") as found:
        flatten({"a": {"b": T[0]}, "a_b": T[1]}, location="policy.py:3")
    assert found.value.diagnostics[0].code == "VER0903"  # type: ignore[attr-defined]
    assert found.value.diagnostics[0].location == "policy.py:3"  # type: ignore[attr-defined]
    # Only tensors become ports.
    flatten({"a": {"b": "text"}, "a_b": T[1]})


def test_loops_and_names_that_are_no_text_are_refused() -> None:
    loop: list[Any] = [T[0]]
    loop.append(loop)
    with pytest.raises(TypeError, match="64 levels"):
        flatten({"x": loop})
    with pytest.raises(TypeError, match="not str"):
        flatten({3: T[0]})  # type: ignore[dict-item]
