"""Observations in dicts, lists and dataclasses: every tensor inside becomes a port of its own.

    python examples/tracing/nested_data.py --out exports

The names of the ports are the path through the containers: `state_joints_position`,
`state_imus_0`. The code gets its containers back as they were.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import veracity
from torch import Tensor
from veracity import annotate


@dataclass
class Joints:
    """What the joints say."""

    position: Tensor
    velocity: Tensor


def read_sensors() -> dict[str, Any]:
    """Return what a robot's driver would return."""
    joints = Joints(position=torch.randn(1, 6), velocity=torch.randn(1, 6))
    return {"joints": joints, "imus": [torch.randn(1, 3), torch.randn(1, 3)]}


def observe(state: dict[str, Any]) -> dict[str, Tensor]:
    """Run the one stage."""
    state = annotate.input_tensors("observe", {"state": state})
    joints: Joints = state["joints"]
    features = {
        "body": torch.cat(state["imus"], dim=-1),
        "joints": joints.position + 0.02 * joints.velocity,
    }
    annotate.output_tensors("observe", {"features": features}, export_with="jit")
    return features


def main() -> None:
    """Export, and run with flat names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out

    torch.manual_seed(0)
    veracity.start(name="nested", save_path=str(out))
    observe(read_sensors())
    veracity.stop()
    veracity.compile_graph(visualize=False)

    manager = veracity.InferenceManager(out / "nested")
    sensors = read_sensors()
    found = manager.run_policy(
        {
            "observe/state_joints_position": sensors["joints"].position,
            "observe/state_joints_velocity": sensors["joints"].velocity,
            "observe/state_imus_0": sensors["imus"][0],
            "observe/state_imus_1": sensors["imus"][1],
        }
    )
    for name, value in observe(sensors).items():
        torch.testing.assert_close(found[f"observe/features_{name}"], value)
    print("ports:", ", ".join(manager.inputs))


if __name__ == "__main__":
    main()
