"""A small locomotion policy in three stages, and the bundle that is made from it.

The stages are plain PyTorch: observations are normalised and joined, a GRU cell with memory
decides, and the decision becomes joint targets. `Pipeline.step` is the code that runs on the robot
in Python; its annotations mark the stages, and cost nothing without a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import veracity
from torch import Tensor, nn
from veracity import GraphConfigs, InputKindEnum, OutputKindEnum, TensorSemantics, annotate

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
        position, velocity, command = annotate.input_tensors("observation", _meaning(sensors))
        observation = self.observation(position, velocity, command)
        annotate.output_tensors("observation", {"observation": observation}, export_with="onnx")

        observation = annotate.input_tensors("policy", {"observation": observation})
        memory = annotate.state_tensors("policy", {"memory": self.memory})
        action, self.memory = self.policy(observation, memory)
        annotate.update_state("policy", {"memory": self.memory})
        annotate.output_tensors("policy", {"action": action}, export_with="onnx")

        action = annotate.input_tensors("actuation", {"action": action})
        target: Tensor = self.actuation(action)
        kind = OutputKindEnum.JOINT_POSITION
        meaning = TensorSemantics("joint_target", target, kind=kind, element_names=list(JOINTS))
        annotate.output_tensors("actuation", meaning, export_with="onnx")
        return target


SENSORS = {"joint_position": len(JOINTS), "joint_velocity": len(JOINTS), "command": 3}


def _meaning(sensors: dict[str, Tensor]) -> list[TensorSemantics]:
    """Say what each sensor value means to the robot."""
    names = list(JOINTS)
    position, velocity = InputKindEnum.JOINT_POSITION, InputKindEnum.JOINT_VELOCITY
    return [
        TensorSemantics("joint_position", sensors["joint_position"], position, names),
        TensorSemantics("joint_velocity", sensors["joint_velocity"], velocity, names),
        TensorSemantics("command", sensors["command"], InputKindEnum.COMMAND_BODY_VELOCITY),
    ]


def sensor_values(steps: int, seed: int) -> Iterator[dict[str, Tensor]]:
    """Draw what the sensors say, step by step."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield {name: torch.randn(1, size, generator=generator) for name, size in SENSORS.items()}


def record_episode(pipeline: Pipeline, steps: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Run the pipeline in PyTorch and return every input and output, a row a step."""
    rows: dict[str, list[Tensor]] = {}
    pipeline.reset()
    for sensors in sensor_values(steps, seed):
        for name, value in sensors.items():
            rows.setdefault(f"observation/{name}", []).append(value)
        rows.setdefault("actuation/joint_target", []).append(pipeline.step(sensors))
    return {key: torch.stack(values).numpy() for key, values in rows.items()}


def export_bundle(pipeline: Pipeline, folder: Path) -> Path:
    """Run a few steps in a session and export what they did; return the bundle's YAML file."""
    pipeline.reset()
    with veracity.session(folder.name, save_path=folder.parent):
        for sensors in sensor_values(5, seed=2):
            pipeline.step(sensors)
    veracity.compile_graph(graph_configs=GraphConfigs(frequency=FREQUENCY))
    return folder / f"{folder.name}.yaml"
