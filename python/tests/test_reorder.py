"""A bundle in a robot's order: from two declarations to a map to values that are right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
import veracity
from conftest import save_onnx
from onnx import helper

BINARY = Path(__file__).resolve().parents[2] / "target" / "debug" / "veracity"
BUNDLE_ORDER = ["hip", "knee", "ankle"]
ROBOT_ORDER = ["ankle", "hip", "knee"]
#: Where each of the robot's joints stands in the bundle.
BUNDLE_OF_ROBOT = [BUNDLE_ORDER.index(name) for name in ROBOT_ORDER]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return `total = total + obs`, with a total for each joint, starting from 1, 2 and 3."""
    port = ("float32", [1, 3])
    model = save_onnx(
        tmp_path / "walker.onnx",
        [
            helper.make_node("Add", ["obs", "total"], ["total_out"]),
            helper.make_node("Neg", ["total_out"], ["action"]),
        ],
        {"obs": port, "total": port},
        {"action": port, "total_out": port},
    )

    def named(name: str) -> dict[str, object]:
        extra = {"units": ["rad", "rad", "deg"]}
        return {"name": name, "element_names": [BUNDLE_ORDER], "extra": extra}

    return veracity.write_bundle(
        tmp_path / "walker",
        nodes=[
            {
                "name": "policy",
                "model": model,
                "inputs": [named("obs"), {"name": "total"}],
                "outputs": [named("action"), {"name": "total_out"}],
            }
        ],
        feedback_flow={"policy/total_out": ["policy/total"]},
        initial_values={"policy/total": np.array([[1, 2, 3]], np.float32)},
    )


@pytest.fixture
def robot_map(bundle: Path, tmp_path: Path) -> Path:
    """Return the map that the command line writes."""
    assert BINARY.exists(), "no command line binary: run `make build` first"
    ports = {"element_names": "joints"}
    robot = {
        "joints": {"names": ROBOT_ORDER},
        "inputs": {"obs": ports},
        "outputs": {"policy/action": ports},
    }
    (tmp_path / "robot.yaml").write_text(json.dumps(robot))  # JSON is YAML
    written = tmp_path / "map.yaml"
    options = ["--robot", tmp_path / "robot.yaml", "--write-map", written]
    done = subprocess.run(
        [BINARY, "verify", bundle, *options], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("VER1415") == 2
    return written


@pytest.mark.parametrize("library", [np, torch])
def test_values_go_in_and_out_in_the_order_of_the_robot(
    bundle: Path, robot_map: Path, library: object
) -> None:
    plain = veracity.InferenceManager(bundle)
    robot = veracity.InferenceManager(bundle, reorder=robot_map)
    generator = np.random.default_rng(0)
    for _ in range(3):
        obs = generator.standard_normal((1, 3)).astype(np.float32)
        of_robot = np.ascontiguousarray(obs[:, BUNDLE_OF_ROBOT])
        given = torch.from_numpy(of_robot) if library is torch else of_robot
        expected = plain({"policy/obs": obs})["policy/action"][:, BUNDLE_OF_ROBOT]
        assert np.array_equal(np.asarray(robot({"policy/obs": given})["policy/action"]), expected)
    state = robot.value_dict["policy"]["total"]
    assert np.array_equal(np.asarray(state), np.asarray(plain.value_dict["policy"]["total"]))


def test_strided_values_and_values_given_in_advance_are_reordered(
    bundle: Path, robot_map: Path
) -> None:
    robot = veracity.InferenceManager(bundle, reorder=str(robot_map))
    wide = np.zeros((1, 6), np.float32)
    wide[:, ::2] = [[30, 10, 20]]
    expected = [[-33, -11, -22]]
    assert robot({"policy/obs": wide[:, ::2]})["policy/action"].tolist() == expected
    robot.reset()
    robot.set_input_value("policy", "obs", np.array([[30, 10, 20]], np.float32))
    assert robot({})["policy/action"].tolist() == expected
    assert robot.value_dict["==out=="]["policy/action"].tolist() == expected


def test_ports_say_their_names_in_the_order_of_the_robot(bundle: Path, robot_map: Path) -> None:
    robot = veracity.InferenceManager(bundle, reorder=robot_map)
    plain = veracity.InferenceManager(bundle)
    for ports, bundles in (
        (robot.input_ports["policy/obs"], plain.input_ports["policy/obs"]),
        (robot.output_ports["policy/action"], plain.output_ports["policy/action"]),
    ):
        assert list(ports.element_names) == ROBOT_ORDER
        assert list(bundles.element_names) == BUNDLE_ORDER
        assert ports.extra["units"] == ["deg", "rad", "rad"]
        assert bundles.extra["units"] == ["rad", "rad", "deg"]


def test_a_map_that_does_not_fit_is_refused(bundle: Path, robot_map: Path, tmp_path: Path) -> None:
    text = robot_map.read_text()
    for old, new in (("take: [1, 2, 0]", "take: [1, 2, 2]"), ("policy/obs", "policy/observed")):
        assert old in text
        (tmp_path / "wrong.yaml").write_text(text.replace(old, new))
        with pytest.raises(veracity.VeracityError, match="VER1424"):
            veracity.InferenceManager(bundle, reorder=tmp_path / "wrong.yaml")
    with pytest.raises(veracity.VeracityError, match="nowhere"):
        veracity.InferenceManager(bundle, reorder=tmp_path / "nowhere.yaml")
