"""Code that writes into buffers: slices, masks, and a history that a module shifts in place.

    python examples/tracing/buffers.py --out exports

Writes are recorded as they are made, through whatever view. What has to survive until the next tick
is state and must be declared: here `annotate.module` does that for the module's buffers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import veracity
from torch import Tensor, nn
from veracity import annotate

TICKS = 20


class History(nn.Module):
    """Keeps the last three observations in one buffer and shifts it in place."""

    history: Tensor

    def __init__(self) -> None:
        """Start with an empty history."""
        super().__init__()
        self.register_buffer("history", torch.zeros(3, 4))

    def forward(self, observation: Tensor) -> Tensor:
        """Return the history with this observation at its end."""
        self.history[:-1] = self.history[1:].clone()
        self.history[-1] = observation
        return self.history.flatten()


def step(model: History, raw: Tensor) -> Tensor:
    """Run one tick."""
    raw = annotate.input_tensors("observe", {"raw": raw})
    annotate.module("observe", model)
    # A buffer that is filled anew in every tick needs no mark; naming it is allowed.
    clean = annotate.register_buffer("observe", torch.zeros(4))
    clean[:] = raw
    clean[clean.abs() > 2] = 0.0  # outliers
    stacked: Tensor = model(clean) * 1.0
    annotate.output_tensors("observe", {"stacked": stacked}, export_with="jit")
    return stacked


def main() -> None:
    """Export, and compare with PyTorch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out

    torch.manual_seed(0)
    model = History()
    veracity.start(name="buffers", save_path=str(out))
    for _ in range(3):
        step(model, torch.randn(4) * 2)
    veracity.stop()
    veracity.compile_graph(visualize=False)

    manager = veracity.InferenceManager(out / "buffers")
    model = History()
    for _ in range(TICKS):
        raw = torch.randn(4) * 2
        found = manager.run_policy({"observe/raw": raw})["observe/stacked"]
        torch.testing.assert_close(found, step(model, raw))
    print(f"{TICKS} ticks as in PyTorch; state: {manager.feedback_inputs}")


if __name__ == "__main__":
    main()
