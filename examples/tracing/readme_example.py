"""One stage whose inputs are read in two helper functions, and a second stage in another format.

python examples/tracing/readme_example.py --out exports
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import veracity
from torch import Tensor
from veracity import annotate


class Env:
    """Stands for the environment that your observations come from."""

    def get_from_env(self, name: str) -> Tensor:
        """Return an observation."""
        return torch.randn(1, 8) * {"obs": 1.0, "obs2": 10.0}[name]


env = Env()
WEIGHTS = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))


def get_obs1_from_env() -> Tensor:
    """Read the first observation."""
    obs1 = env.get_from_env("obs")
    obs1 = annotate.input_tensors("preprocess", {"obs1_name": obs1})  # inserted annotation
    return torch.clamp(obs1, -3, 3)


def get_obs2_from_env() -> Tensor:
    """Read the second observation, somewhere else."""
    obs2 = env.get_from_env("obs2")
    obs2 = annotate.input_tensors("preprocess", {"obs2_name": obs2})  # inserted annotation
    return torch.mul(obs2, 0.1)


def run() -> Tensor:
    """Run both stages once."""
    obs1 = get_obs1_from_env()
    obs2 = get_obs2_from_env()
    obs1_centered = obs1 - obs1.mean()
    obs2_scaled = obs2 / (obs2.abs().max() + 1e-6)
    features = torch.cat([obs1_centered, obs2_scaled], dim=-1)
    # inserted annotations
    annotate.output_tensors("preprocess", {"processed_features": features}, export_with="jit")
    features = annotate.input_tensors("predict", {"features": features})
    output = torch.relu(features @ WEIGHTS)
    annotate.output_tensors("predict", {"output": output}, export_with="onnx")
    return output


def main() -> None:
    """Export, and run the bundle on its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out

    veracity.start(name="my_pipeline", save_path=str(out))
    run()
    veracity.stop()
    veracity.compile_graph()

    manager = veracity.InferenceManager(out / "my_pipeline")
    print("inputs:", manager.inputs)
    print("outputs:", manager.outputs)
    print(manager.run_policy(manager.get_mock_input(seed=1)))


if __name__ == "__main__":
    main()
