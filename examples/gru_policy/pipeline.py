"""A small locomotion policy in three stages, and the bundle that is made from it.

The stages are plain PyTorch: observations are normalised and joined, a GRU cell with memory
decides, and the decision becomes joint targets. Until tracing exists, the stages are exported one
by one and wired by hand with `veracity.write_bundle`.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import veracity
from torch import Tensor, nn

JOINTS = ("hip_l", "hip_r", "knee_l", "knee_r", "ankle_l", "ankle_r")
HIDDEN = 64
FREQUENCY = 50.0


class Observation(nn.Module):
    """Joins and normalises what the sensors say."""

    mean: Tensor
    deviation: Tensor

    def __init__(self) -> None:
        """Fix the statistics that training would have collected."""
        super().__init__()
        size = 2 * len(JOINTS) + 3
        self.register_buffer("mean", torch.linspace(-0.3, 0.3, size))
        self.register_buffer("deviation", torch.linspace(0.5, 1.5, size))

    def forward(self, joint_position: Tensor, joint_velocity: Tensor, command: Tensor) -> Tensor:
        """Return the normalised observation."""
        joined = torch.cat([joint_position, 0.1 * joint_velocity, command], dim=-1)
        return ((joined - self.mean) / self.deviation).clamp(-5.0, 5.0)


class Policy(nn.Module):
    """Decides, and remembers."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.memory = nn.GRUCell(2 * len(JOINTS) + 3, HIDDEN)
        self.head = nn.Sequential(
            nn.Linear(HIDDEN, HIDDEN), nn.ELU(), nn.Linear(HIDDEN, len(JOINTS))
        )

    def forward(self, observation: Tensor, memory_in: Tensor) -> tuple[Tensor, Tensor]:
        """Return the action and the memory for the next step."""
        memory = self.memory(observation, memory_in)
        return self.head(memory), memory


class Actuation(nn.Module):
    """Turns actions into joint targets."""

    rest: Tensor

    def __init__(self) -> None:
        """Fix scale and rest pose."""
        super().__init__()
        self.register_buffer("rest", torch.tensor([0.0, 0.0, 0.6, 0.6, -0.3, -0.3]))

    def forward(self, action: Tensor) -> Tensor:
        """Return joint targets within reach."""
        return (self.rest + 0.25 * torch.tanh(action)).clamp(-1.0, 1.0)


class Pipeline:
    """The three stages with their memory, as a robot would run them in Python."""

    def __init__(self, seed: int = 0) -> None:
        """Make the stages from a seed."""
        torch.manual_seed(seed)
        self.observation, self.policy, self.actuation = Observation(), Policy(), Actuation()
        # The memory starts from something that zeros would be caught by.
        self.initial_memory = 0.1 * torch.randn(1, HIDDEN)
        self.memory = self.initial_memory

    def reset(self) -> None:
        """Forget."""
        self.memory = self.initial_memory

    @torch.no_grad()
    def step(self, sensors: dict[str, Tensor]) -> Tensor:
        """Run one tick in PyTorch: the reference that an export is held to."""
        observation = self.observation(*(sensors[name] for name in SENSORS))
        action, self.memory = self.policy(observation, self.memory)
        target: Tensor = self.actuation(action)
        return target


SENSORS = {"joint_position": len(JOINTS), "joint_velocity": len(JOINTS), "command": 3}


def record_episode(pipeline: Pipeline, steps: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Run the pipeline in PyTorch and return every input and output, a row a step."""
    generator = torch.Generator().manual_seed(seed)
    rows: dict[str, list[Tensor]] = {}
    pipeline.reset()
    for _ in range(steps):
        sensors = {
            name: torch.randn(1, size, generator=generator) for name, size in SENSORS.items()
        }
        for name, value in sensors.items():
            rows.setdefault(f"observation/{name}", []).append(value)
        rows.setdefault("actuation/joint_target", []).append(pipeline.step(sensors))
    return {key: torch.stack(values).numpy() for key, values in rows.items()}


#: What each port means to the robot; the rest of a port is in the model.
MEANING: dict[str, dict[str, Any]] = {
    "joint_position": {"kind": "state/joint/position", "element_names": [JOINTS]},
    "joint_velocity": {"kind": "state/joint/velocity", "element_names": [JOINTS]},
    "command": {"kind": "command/body/velocity"},
    "joint_target": {"kind": "target/joint/position", "element_names": [JOINTS]},
}


def export_bundle(pipeline: Pipeline, folder: Path) -> Path:
    """Export the stages to ONNX and write the bundle; return its YAML file."""
    models = folder.parent / "models"
    models.mkdir(parents=True, exist_ok=True)
    sensors = [torch.zeros(1, width) for width in SENSORS.values()]
    observation, memory = torch.zeros(1, sum(SENSORS.values())), torch.zeros(1, HIDDEN)
    action = torch.zeros(1, len(JOINTS))
    nodes = [
        _export(
            "observation", pipeline.observation, sensors, list(SENSORS), ["observation"], models
        ),
        _export(
            "policy",
            pipeline.policy,
            [observation, memory],
            ["observation", "memory_in"],
            ["action", "memory_out"],
            models,
        ),
        _export("actuation", pipeline.actuation, [action], ["action"], ["joint_target"], models),
    ]
    return veracity.write_bundle(
        folder,
        nodes=nodes,
        data_flow={
            "observation/observation": ["policy/observation"],
            "policy/action": ["actuation/action"],
        },
        feedback_flow={"policy/memory_out": ["policy/memory_in"]},
        initial_values={"policy/memory_in": pipeline.initial_memory},
        frequency=FREQUENCY,
    )


def _export(
    name: str,
    module: nn.Module,
    arguments: list[Tensor],
    inputs: list[str],
    outputs: list[str],
    models: Path,
) -> dict[str, Any]:
    """Export one stage and return its node."""
    path = models / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own deprecations
        torch.onnx.export(
            module.eval(),
            tuple(arguments),
            path,
            input_names=inputs,
            output_names=outputs,
            dynamo=True,
            external_data=False,
            verbose=False,
        )

    def ports(names: list[str]) -> list[dict[str, Any]]:
        return [{"name": name} | MEANING.get(name, {}) for name in names]

    return {"name": name, "model": path, "inputs": ports(inputs), "outputs": ports(outputs)}
