"""Export a small policy; `--compressed` brings along a model whose weights were rounded.

python examples/ci_baseline/export_policy.py --out exports [--compressed]
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

import torch
import veracity
from torch import Tensor, nn
from veracity import annotate


def make_policy() -> nn.Module:
    """Return the network that training left; here it is drawn."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 64), nn.ELU(), nn.Linear(64, 4)).eval()


def compressed(policy: nn.Module) -> nn.Module:
    """Return the policy with its weights on a grid of 31 steps, to save room."""
    small = copy.deepcopy(policy)
    for weight in small.parameters():
        step = weight.detach().abs().max() / 15
        weight.data = (weight.data / step).round() * step
    return small


def main() -> None:
    """Run a few ticks in a session and export them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    parser.add_argument("--compressed", action="store_true", help="bring the rounded model")
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)

    policy = make_policy()
    model: dict[str, object] = {}
    if options.compressed:
        model = {"model_path": str(out / "compressed.onnx"), "copy_original_model": True}
        torch.onnx.export(
            compressed(policy),
            (torch.zeros(1, 12),),
            out / "compressed.onnx",
            input_names=["observation"],
            output_names=["action"],
            dynamo=True,
            external_data=False,
            verbose=False,
        )

    def step(observation: Tensor) -> None:
        observation = annotate.input_tensors("policy", {"observation": observation})
        outputs = {"action": policy(observation)}
        export_with = None if model else "onnx"
        annotate.output_tensors("policy", outputs, export_with=export_with, backend_params=model)

    with torch.no_grad(), veracity.session("policy", save_path=out):
        for _ in range(4):
            step(torch.randn(1, 12))
    # Whether the bundle is good enough is for the next step to say.
    veracity.compile_graph(strict=False)


if __name__ == "__main__":
    main()
