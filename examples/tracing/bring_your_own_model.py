"""A stage whose model exists already: it is checked against the traced code and put in the bundle.

python examples/tracing/bring_your_own_model.py --out exports
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import veracity
from torch import Tensor, nn
from veracity import annotate


def act(encoder: nn.Module, policy: nn.Module, raw: Tensor, model: Path) -> Tensor:
    """Run both stages."""
    raw = annotate.input_tensors("encode", {"raw": raw})
    features = torch.tanh(encoder(raw))
    annotate.output_tensors("encode", {"features": features}, export_with="onnx")

    features = annotate.input_tensors("policy", {"features": features})
    action = policy(features)
    # Nothing is exported here. The given model is run on what was recorded, and has to agree.
    annotate.output_tensors(
        "policy",
        {"action": action},
        export_with=None,
        backend_params={"model_path": str(model), "copy_original_model": True},
    )
    result: Tensor = action
    return result


def main() -> None:
    """Make a model as if somebody had sent it, then export a pipeline around it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    encoder, policy = nn.Linear(8, 4), nn.Sequential(nn.Linear(4, 4), nn.ELU(), nn.Linear(4, 2))
    sent = out / "sent_policy.pt"
    torch.jit.script(policy).save(str(sent))  # type: ignore[no-untyped-call]

    veracity.start(name="own_model", save_path=str(out))
    with torch.no_grad():
        act(encoder, policy, torch.randn(1, 8), sent)
    veracity.stop()
    veracity.compile_graph(visualize=False)

    manager = veracity.InferenceManager(out / "own_model")
    raw = torch.randn(1, 8)
    found = manager.run_policy({"encode/raw": raw})["policy/action"]
    with torch.no_grad():
        expected = act(encoder, policy, raw, sent)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    print("the pipeline around the given model computes what PyTorch computes")


if __name__ == "__main__":
    main()
