"""State in three forms: declared, found by running the loop, and older than one tick.

    python examples/tracing/feedback.py --out exports

Run a loop at least twice: only then can it be seen that a value of one tick is an input of a later
one. How many ticks later is observed as well.
"""

from __future__ import annotations

import argparse
from collections import deque
from pathlib import Path

import torch
import veracity
from torch import Tensor
from veracity import annotate

TICKS = 20
DELAY = 3


class Controller:
    """Filters a measurement, and knows what it commanded a few ticks ago."""

    def __init__(self) -> None:
        """Start from values that zeros would be caught by."""
        self.filtered = torch.full((1, 2), 0.5)
        self.last_action = torch.full((1, 2), -0.25)
        self.sent = deque([torch.full((1, 2), float(i)) for i in range(DELAY)], maxlen=DELAY)

    def step(self, measured: Tensor) -> Tensor:
        """Run one tick."""
        measured = annotate.input_tensors("filter", {"measured": measured})
        # Declared: one pass is enough to know that this is state.
        filtered = annotate.state_tensors("filter", {"filtered": self.filtered})
        self.filtered = 0.8 * filtered + 0.2 * measured
        annotate.update_state("filter", {"filtered": self.filtered})
        smooth = self.filtered * 1.0
        annotate.output_tensors("filter", {"smooth": smooth}, export_with="jit")

        # Not declared: the second pass shows that `last_action` is what this stage gave one tick
        # before, and that `sent_before` is three ticks old.
        smooth, last_action, sent_before = annotate.input_tensors(
            "control",
            {"smooth": smooth, "last_action": self.last_action, "sent_before": self.sent[0]},
        )
        action = torch.tanh(smooth - 0.5 * last_action + 0.1 * sent_before)
        annotate.output_tensors("control", {"action": action}, export_with="jit")
        self.last_action = action

        action = annotate.input_tensors("send", {"action": action})
        command = action * 2 - 0.1
        torque: Tensor = command * 30
        # What a later tick reads is not an output of the pipeline; what the motors get is.
        outputs = {"command": command, "torque": torque}
        annotate.output_tensors("send", outputs, export_with="jit")
        self.sent.append(command)
        return torque


def main() -> None:
    """Export after a few ticks, then compare with PyTorch from the start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out

    torch.manual_seed(0)
    controller = Controller()
    veracity.start(name="feedback", save_path=str(out))
    for _ in range(DELAY + 3):
        controller.step(torch.randn(1, 2))
    veracity.stop()
    veracity.compile_graph(visualize=False)

    manager = veracity.InferenceManager(out / "feedback")
    controller = Controller()
    for _ in range(TICKS):
        measured = torch.randn(1, 2)
        found = manager.run_policy({"filter/measured": measured})["send/torque"]
        torch.testing.assert_close(found, controller.step(measured))
    print(f"{TICKS} ticks as in PyTorch; state: {manager.feedback_inputs}")


if __name__ == "__main__":
    main()
