"""A policy that knows what the motors do now: the action of two ticks ago, as sending takes time.

    python examples/leapp_bundle/delayed_policy.py exports/leapp

This is a script for LEAPP; it knows nothing of Veracity. It also writes down what the Python code
itself does over 50 ticks: `inputs.npz` and `python.npz`.
"""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path
from typing import Any

import leapp
import numpy as np
import torch
from leapp import annotate
from torch import Tensor, nn

DELAY = 2


class Controller:
    """The policy, and the actions that are on their way to the motors."""

    def __init__(self) -> None:
        """Start with nothing sent."""
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(6, 32), nn.ELU(), nn.Linear(32, 2))
        self.sent = deque([torch.zeros(1, 2) for _ in range(DELAY)], maxlen=DELAY)

    @torch.no_grad()
    def step(self, state: Tensor) -> Tensor:
        """Run one tick."""
        given = {"state": state, "moving": self.sent[0]}
        state, moving = annotate.input_tensors("policy", given)
        action = torch.tanh(self.network(torch.cat([state, moving], dim=-1)))
        target: Tensor = 0.3 + 0.5 * action
        annotate.output_tensors("policy", {"action": action, "target": target}, export_with="onnx")
        self.sent.append(action)
        return target


def states(ticks: int, seed: int) -> Tensor:
    """Return what the robot measures, a row a tick."""
    return torch.randn(ticks, 1, 4, generator=torch.Generator().manual_seed(seed))


def main() -> None:
    """Export with whatever answers to the name of LEAPP, then write down an episode."""
    folder = Path(sys.argv[1])
    leapp.start("delayed_policy", save_path=str(folder))
    controller = Controller()
    for state in states(6, seed=1):
        controller.step(state)
    leapp.stop()
    print("compile_graph:", leapp.compile_graph(visualize=False))

    controller, episode = Controller(), states(50, seed=2)
    targets = torch.stack([controller.step(state) for state in episode])
    for file, key, values in (
        ("inputs.npz", "policy/state", episode),
        ("python.npz", "policy/target", targets),
    ):
        arrays: dict[str, Any] = {key: values.numpy()}
        np.savez(folder / file, **arrays)


if __name__ == "__main__":
    main()
