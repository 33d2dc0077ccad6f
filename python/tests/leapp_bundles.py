"""Pipelines that real LEAPP exports, one function each: the peer in the interop tests.

Each function runs its pipeline under LEAPP's tracing; `export` turns it into a bundle.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import leapp
import torch
from leapp import InputKindEnum, OutputKindEnum, TensorSemantics, annotate
from torch import nn


def mixed_chain() -> None:
    """Three nodes, TorchScript and ONNX mixed, nested inputs."""
    torch.manual_seed(0)
    encoder, policy = (
        nn.Linear(18, 32),
        nn.Sequential(nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 6)),
    )
    imu = [torch.randn(1, 3), torch.randn(1, 3)]
    sensors = {"pos": torch.randn(1, 6), "vel": torch.randn(1, 6), "imu": imu}
    state = annotate.input_tensors("obs", {"state": sensors})
    joined = torch.cat([state["pos"], state["vel"], *state["imu"]], dim=-1)
    encoded = torch.tanh(encoder(joined))
    annotate.output_tensors("obs", {"encoded": encoded}, export_with="jit")
    encoded = annotate.input_tensors("policy", {"encoded": encoded})
    action = policy(encoded)
    annotate.output_tensors("policy", {"action": action}, export_with="onnx")
    action, scale = annotate.input_tensors("post", {"action": action, "scale": torch.rand(6)})
    annotate.output_tensors("post", {"target": (action * scale).clamp(-1, 1)}, export_with="jit")


class GruPolicy(nn.Module):
    """A GRU that keeps its memory in a buffer."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.gru, self.head = nn.GRU(4, 8), nn.Linear(8, 2)
        self.register_buffer("h_state", torch.full((1, 1, 8), 0.25))

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the action and replace the memory."""
        out, self.h_state = self.gru(observation.unsqueeze(0), self.h_state)
        return self.head(out.squeeze(0))


def gru_feedback() -> None:
    """A GRU whose memory is a feedback edge with an initial value."""
    torch.manual_seed(1)
    model = GruPolicy().eval()
    observation = annotate.input_tensors("policy", {"obs": torch.randn(1, 4)})
    annotate.module("policy", model)
    with torch.no_grad():
        action = model(observation)
    annotate.output_tensors("policy", {"action": action}, export_with="onnx-torchscript")


def semantics() -> None:
    """Ports with kinds, element names and extra fields, and a static output."""
    position, command = annotate.input_tensors(
        "policy",
        [
            TensorSemantics(
                name="joint_pos",
                ref=torch.randn(1, 3),
                kind=InputKindEnum.JOINT_POSITION,
                element_names=["a", "b", "c"],
                extra={"units": "rad"},
            ),
            TensorSemantics(name="cmd", ref=torch.randn(1, 3), kind="custom/thing"),
        ],
    )
    annotate.output_tensors(
        "policy",
        [
            TensorSemantics(
                name="actions", ref=position * 2 + command, kind=OutputKindEnum.JOINT_POSITION
            )
        ],
        static_outputs=[TensorSemantics(name="kd", ref=torch.arange(3.0), kind=OutputKindEnum.KD)],
        export_with="jit",
    )


def fan_out() -> None:
    """One output into two consumers, which meet again."""
    torch.manual_seed(2)
    left_layer, right_layer = nn.Linear(5, 5), nn.Linear(5, 5)
    x = annotate.input_tensors("source", {"x": torch.randn(2, 5)})
    features = torch.relu(x) + 0.5
    annotate.output_tensors("source", {"features": features}, export_with="onnx")
    seen = annotate.input_tensors("left", {"features": features})
    left = left_layer(seen)
    annotate.output_tensors("left", {"left": left}, export_with="jit")
    seen = annotate.input_tensors("right", {"features": features})
    right = torch.sigmoid(right_layer(seen))
    annotate.output_tensors("right", {"right": right}, export_with="onnx")
    left, right = annotate.input_tensors("join", {"left": left, "right": right})
    annotate.output_tensors("join", {"out": left * right}, export_with="jit")


def integers_and_bools() -> None:
    """Index, mask and counter ports."""
    torch.manual_seed(3)
    table = torch.randn(4, 3)
    index, mask = annotate.input_tensors(
        "select",
        {"index": torch.tensor([1, 0, 1]), "mask": torch.tensor([True, False, True])},
    )
    rows = torch.where(mask.unsqueeze(-1), torch.index_select(table, 0, index), torch.zeros(3))
    annotate.output_tensors(
        "select",
        {"rows": rows, "chosen": index * 2, "inverse": torch.logical_not(mask)},
        export_with="jit",
    )


def two_loops() -> None:
    """A counter that feeds itself, and feedback from a later node to an earlier one."""
    count, previous = torch.full((1,), 5.0), torch.full((1, 2), -1.0)
    for _ in range(3):
        seen, x, last = annotate.input_tensors(
            "first", {"count": count, "x": torch.randn(1, 2), "last": previous}
        )
        count = seen + 1
        mixed = x + 0.5 * last
        annotate.output_tensors("first", {"count_next": count, "mixed": mixed}, export_with="onnx")
        mixed = annotate.input_tensors("second", {"mixed": mixed})
        previous = torch.tanh(mixed)
        annotate.output_tensors(
            "second", {"action": previous, "plain": mixed * 3}, export_with="jit"
        )


PIPELINES: dict[str, Callable[[], None]] = {
    pipeline.__name__: pipeline
    for pipeline in (mixed_chain, gru_feedback, semantics, fan_out, integers_and_bools, two_loops)
}


def export(name: str, folder: Path) -> Path:
    """Export a pipeline with LEAPP and return the bundle's YAML file."""
    leapp.start(name, save_path=str(folder))
    try:
        PIPELINES[name]()
    finally:
        leapp.stop()
    leapp.compile_graph(visualize=False)
    return folder / name / f"{name}.yaml"
