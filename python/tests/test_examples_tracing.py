"""Every example of an annotation runs silently, and leaves a bundle that works on its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
import veracity
from support.findings import OF_EVERY_SHORT_RECORDING

EXAMPLES_FOLDER = Path(__file__).resolve().parents[2] / "examples" / "tracing"


class Example(NamedTuple):
    """What an example leaves behind.

    Attributes:
        bundle: Its bundle.
        inputs: What the pipeline needs from outside.
        outputs: What it gives.
        state: What it keeps between ticks, of the nodes that the example names.
        says: Part of what it prints.
    """

    bundle: str
    inputs: set[str]
    outputs: set[str]
    state: set[str]
    says: str


EXAMPLES = {
    "worked_example": Example(
        "complete_pipeline",
        {"preprocess/raw_data"},
        {"postprocess/final_output"},
        set(),
        "as in PyTorch",
    ),
    "readme_example": Example(
        "my_pipeline",
        {"preprocess/obs1_name", "preprocess/obs2_name"},
        {"predict/output"},
        set(),
        "outputs: ['predict/output']",
    ),
    "gru_tracing": Example(
        "gru",
        {"policy/observation"},
        {"policy/action"},
        {"policy/memory_in"},
        "50 ticks as in PyTorch",
    ),
    "feedback": Example(
        "feedback",
        {"filter/measured"},
        {"send/torque"},
        {"filter/filtered", "control/last_action", "control/sent_before"},
        "20 ticks as in PyTorch",
    ),
    "nested_data": Example(
        "nested",
        {
            "observe/state_joints_position",
            "observe/state_joints_velocity",
            "observe/state_imus_0",
            "observe/state_imus_1",
        },
        {"observe/features_body", "observe/features_joints"},
        set(),
        "observe/state_imus_1",
    ),
    "buffers": Example(
        "buffers",
        {"observe/raw"},
        {"observe/stacked"},
        {"observe/history"},
        "20 ticks as in PyTorch",
    ),
    "semantics": Example(
        "semantics",
        {"policy/joint_position", "policy/command"},
        {"policy/plan", "policy/kp"},
        set(),
        "50.0 Hz; feed policy/joint_position with hip, knee, ankle",
    ),
    "bring_your_own_model": Example(
        "own_model",
        {"encode/raw"},
        {"policy/action"},
        set(),
        "what PyTorch computes",
    ),
}


def test_every_example_that_traces_is_in_the_table() -> None:
    assert {path.stem for path in EXAMPLES_FOLDER.glob("*.py")} == EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_silently_and_its_bundle_works(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    done = subprocess.run(
        [sys.executable, EXAMPLES_FOLDER / f"{name}.py", "--out", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert example.says in done.stdout
    told = set(re.findall(r"(?<!note)\[(VER\d+)\]", said))
    assert told <= OF_EVERY_SHORT_RECORDING, "a diagnostic on clean code"
    assert "Warning" not in said

    manager = veracity.InferenceManager(tmp_path / example.bundle)
    assert set(manager.inputs) == example.inputs
    outputs = set(manager.outputs)
    assert example.outputs <= outputs, outputs
    assert example.state <= set(manager.feedback_inputs)
    first, second = (_run(manager, seed) for seed in (1, 2))
    changing = [key for key in example.outputs if not torch.equal(first[key], second[key])]
    assert changing or name == "worked_example", "the outputs must depend on the inputs"
    assert all(np.isfinite(value.double().numpy()).all() for value in second.values())


def _run(manager: veracity.InferenceManager, seed: int) -> dict[str, torch.Tensor]:
    manager.reset()
    found: dict[str, torch.Tensor] = manager.run_policy(manager.get_mock_input(seed))
    return found
