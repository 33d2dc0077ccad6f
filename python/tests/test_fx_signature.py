"""A signature says what a transformation is: the same everywhere, another for what differs."""

from __future__ import annotations

import enum
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.fx import GraphModule
from veracity import TransformError
from veracity.fx import FuseBiasInLinear, MergeLinears, Transformation, compose


class _Named(Transformation):
    """Has the attributes that it is given."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)

    def transform(self, graph_module: GraphModule) -> GraphModule:
        return graph_module


class Colour(enum.IntEnum):
    """Is an int, and more than that."""

    RED = 1


class Point(NamedTuple):
    """Is a tuple, and more than that."""

    x: int


@dataclass
class Options:
    """Is equal by value."""

    depth: int = 1


DIFFERENT: list[Any] = [
    *(-1, -2, 0, 1, True, 1.0, 1 + 0j, 2**80, "1", b"1", None, 0.0, -0.0, float("nan")),
    *([1], (1,), {1}, frozenset({1}), {1: 1}, {"1": 1}, [], [[1]], Colour.RED, Point(1), Options()),
    *(torch.ones(1), torch.ones(1, 1), torch.ones(1).int(), torch.ones(1).bfloat16()),
    *(np.ones(1), np.ones(1, np.float32), np.float32(1), torch.float32, torch.device("cpu")),
    *(slice(1), range(1), ..., int, torch.relu, torch.tanh, PurePosixPath("1"), torch.Size([1])),
    *(torch.nn.Linear(1, 1), MergeLinears(), FuseBiasInLinear()),
]


def test_values_that_differ_in_anything_have_different_signatures() -> None:
    digests = [_Named(value=value).signature_digest for value in DIFFERENT]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (torch.arange(6.0), torch.arange(12.0)[::2] / 2),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({3, 1, 2}, {1, 2, 3}),
        (Options(2), Options(2)),
        (torch.tensor(1.0, requires_grad=True), torch.tensor(1.0)),
    ],
    ids=["tensors", "dicts", "sets", "dataclasses", "trained"],
)
def test_values_that_are_equal_have_one_signature(left: object, right: object) -> None:
    assert _Named(value=left).signature == _Named(value=right).signature


def test_reading_a_signature_changes_nothing() -> None:
    named = _Named(a=1)
    first = named.signature
    assert vars(named) == {"a": 1}
    assert named.signature == first
    named.b = 2  # type: ignore[attr-defined]
    assert named.signature == _Named(b=2, a=1).signature


def test_a_signature_survives_pickling() -> None:
    merge = compose(MergeLinears(), FuseBiasInLinear())
    assert pickle.loads(pickle.dumps(merge)).signature == merge.signature


def test_the_version_is_part_of_the_signature() -> None:
    class Newer(_Named):
        version = 2

    Newer.__qualname__ = _Named.__qualname__
    assert Newer().signature != _Named().signature


@pytest.mark.parametrize(
    "value", [lambda: 1, object(), [].append, np.array([object()])], ids=lambda v: type(v).__name__
)
def test_what_has_no_stable_value_is_refused(value: object) -> None:
    with pytest.raises(TransformError, match="VER1302"):
        _ = _Named(value=value).signature


def test_what_contains_itself_is_refused() -> None:
    knot: list[object] = []
    knot.append(knot)
    with pytest.raises(TransformError, match="VER1302"):
        _ = _Named(value=knot).signature


def test_two_processes_agree() -> None:
    script = (
        "import torch; from veracity.fx import *; m = MergeLinears(); m.x = [torch.ones(2), {'a'}];"
        "print(compose(m, FuseBiasInLinear()).signature)"
    )
    merge = MergeLinears()
    merge.x = [torch.ones(2), {"a"}]  # type: ignore[attr-defined]
    for seed in ("0", "4711"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout) == compose(merge, FuseBiasInLinear()).signature
