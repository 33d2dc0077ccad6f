"""A part of the zoo: policies as robot teams write them. `make zoo` runs all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from zoo.register import TICKS, load
from zoo.run import RIGHT, kind_of, tried

POLICIES = load()

#: Of each family that needs no package, some, with one backend each.
CASES = [
    ("act_queue_each_tick", "jit"),
    ("actuators_lstm", "onnx"),
    ("actuators_lstm", "pt2"),
    ("diffusion_flow_euler", "pt2"),
    ("filters_ema_actions", "jit"),
    ("filters_ema_actions", "onnx"),
    ("filters_kalman", "onnx"),
    ("isaac_lab_buffers", "onnx"),
    ("isaac_lab_gait_clock", "pt2"),
    ("kinematics_quadruped_trot", "jit"),
    ("rotations_euler_round_trip", "onnx"),
]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> Iterator[None]:
    monkeypatch.setenv("VERACITY_PROGRESS", "0")
    yield


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_a_policy_runs_as_its_code_does(name: str, backend: str) -> None:
    outcome = tried(POLICIES[name], backend)
    assert kind_of(outcome) == RIGHT, str(outcome)


def test_the_zoo_is_large_enough() -> None:
    backends = Counter(name for one in POLICIES.values() for name in one.program.backends)
    assert len(POLICIES) >= 120
    assert all(backends[name] >= 120 for name in ("jit", "onnx", "pt2"))
    assert all(policy.program.ticks >= TICKS for policy in POLICIES.values())
