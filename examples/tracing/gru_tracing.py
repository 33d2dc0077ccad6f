"""A recurrent policy: its memory is a buffer of the module, and becomes a feedback edge.

    python examples/tracing/gru_tracing.py --out exports

`annotate.module` watches the buffers of the module. Those that the forward pass replaces, or writes
in place, become state with the value they had as initial value; the others become constants.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import veracity
from torch import Tensor, nn
from veracity import annotate

TICKS = 50


class Policy(nn.Module):
    """A GRU that keeps its memory between calls."""

    memory: Tensor
    mean: Tensor

    def __init__(self) -> None:
        """Make the layers; the memory starts from something that zeros would be caught by."""
        super().__init__()
        self.gru, self.head = nn.GRU(12, 32), nn.Linear(32, 6)
        self.register_buffer("memory", torch.full((1, 1, 32), 0.1))
        self.register_buffer("mean", torch.linspace(-1, 1, 12))

    def forward(self, observation: Tensor) -> Tensor:
        """Return the action and replace the memory."""
        out, self.memory = self.gru((observation - self.mean).unsqueeze(0), self.memory)
        action: Tensor = self.head(out.squeeze(0))
        return action


def main() -> None:
    """Export after one pass, then compare 50 ticks with PyTorch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out

    torch.manual_seed(0)
    policy = Policy().eval()
    veracity.start(name="gru", save_path=str(out))
    with torch.no_grad():
        observation = annotate.input_tensors("policy", {"observation": torch.randn(1, 12)})
        annotate.module("policy", policy)
        action = policy(observation)
        annotate.output_tensors("policy", {"action": action}, export_with="onnx")
    veracity.stop()
    veracity.compile_graph(visualize=False)

    manager = veracity.InferenceManager(out / "gru")
    print("state:", manager.feedback_inputs)
    policy.memory = torch.full((1, 1, 32), 0.1)  # as the exported policy starts
    for _ in range(TICKS):
        observation = torch.randn(1, 12)
        found = manager.run_policy({"policy/observation": observation})["policy/action"]
        with torch.no_grad():
            torch.testing.assert_close(found, policy(observation), atol=1e-5, rtol=1e-4)
    print(f"{TICKS} ticks as in PyTorch")


if __name__ == "__main__":
    main()
