"""Say what ports mean, so that a robot can connect them without knowing this code.

python examples/tracing/semantics.py --out exports
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import veracity
from torch import Tensor, nn
from veracity import (
    GraphConfigs,
    InputKindEnum,
    OutputKindEnum,
    TemporalAxis,
    TensorSemantics,
    annotate,
)

JOINTS = ["hip", "knee", "ankle"]
HORIZON = 4


def act(policy: nn.Module, position: Tensor, command: Tensor, gains: Tensor) -> Tensor:
    """Plan the joint targets of the next four ticks."""
    position, command = annotate.input_tensors(
        "policy",
        [
            TensorSemantics(
                name="joint_position",
                ref=position,
                kind=InputKindEnum.JOINT_POSITION,
                element_names=[None, JOINTS],
                extra={"units": "rad"},
            ),
            # Any string is a kind; the enumerations are those that others know.
            TensorSemantics(name="command", ref=command, kind="command/body/velocity_height"),
        ],
    )
    plan = policy(torch.cat([position, command], dim=-1)).reshape(HORIZON, len(JOINTS))
    annotate.output_tensors(
        "policy",
        TensorSemantics(
            name="plan",
            ref=plan,
            kind=OutputKindEnum.JOINT_POSITION,
            element_names=[TemporalAxis(period_ms=20), JOINTS],
        ),
        # Constants that whoever runs the policy needs as well.
        static_outputs=TensorSemantics(name="kp", ref=gains, kind=OutputKindEnum.KP),
        export_with="onnx",
    )
    result: Tensor = plan
    return result


def main() -> None:
    """Export, and find the ports by what they mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out

    torch.manual_seed(0)
    policy = nn.Linear(6, HORIZON * len(JOINTS))
    gains = torch.tensor([80.0, 60.0, 20.0])
    veracity.start(name="semantics", save_path=str(out))
    with torch.no_grad():
        act(policy, torch.randn(1, 3), torch.randn(1, 3), gains)
    veracity.stop()
    configs = GraphConfigs(frequency=50, extra={"robot": "hopper"})
    veracity.compile_graph(visualize=False, graph_configs=configs)

    manager = veracity.InferenceManager(out / "semantics")
    position = manager.input_by_kind("state/joint/position")
    plan = manager.output_by_kind("target/joint/position")
    assert position is not None
    assert plan is not None
    print(f"{manager.frequency} Hz; feed {position.key} with {', '.join(position.element_names)}")
    print(f"read {plan.key}: {plan.shape}, {plan.temporal_period_ms} ms between the rows")


if __name__ == "__main__":
    main()
