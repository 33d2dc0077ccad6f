"""Three stages, two ways to annotate: a decorated function, and marks around inline code.

    python examples/tracing/worked_example.py --out exports

Writes `exports/complete_pipeline/`: the description, one TorchScript model a stage, and the log.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import veracity
from torch import Tensor, nn
from veracity import annotate


class SimpleNet(nn.Module):
    """Stands for the network that you trained."""

    def __init__(self) -> None:
        """Make the one layer."""
        super().__init__()
        self.linear = nn.Linear(10, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class."""
        scores: Tensor = self.linear(x)
        return scores


# A function that is a stage of its own needs one line. Parameters become inputs, the returned
# variable names the output. Outside a session this is a plain call.
@annotate.method(export_with="jit", node_name="preprocess")
def preprocess(raw_data: Tensor) -> Tensor:
    """Bring the input to mean 0 and deviation 1."""
    normalized = (raw_data - raw_data.mean()) / (raw_data.std() + 1e-6)
    return normalized


def classify(model: nn.Module, raw: Tensor) -> Tensor:
    """Run the pipeline once. The annotations change nothing about what it computes."""
    preprocessed = preprocess(raw)

    # Inline code becomes a stage by marking what goes in and what comes out.
    features = annotate.input_tensors("inference", {"features": preprocessed})
    predictions = model(features)
    annotate.output_tensors("inference", {"predictions": predictions}, export_with="jit")

    # `predictions` is an output above and an input here: that is how stages get connected.
    predictions = annotate.input_tensors("postprocess", {"predictions": predictions})
    probabilities = torch.softmax(predictions, dim=1)
    final_output = torch.argmax(probabilities, dim=1)
    annotate.output_tensors("postprocess", {"final_output": final_output}, export_with="jit")
    return final_output


def main() -> None:
    """Export the pipeline, then run it without the Python code above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out

    torch.manual_seed(0)
    model = SimpleNet().eval()
    veracity.start(name="complete_pipeline", save_path=str(out), verbose=True)
    with torch.no_grad():
        classify(model, torch.randn(1, 10))
    veracity.stop()
    veracity.compile_graph(visualize=True)

    manager = veracity.InferenceManager(out / "complete_pipeline")
    fresh = torch.randn(1, 10)
    found = manager.run_policy({"preprocess/raw_data": fresh})["postprocess/final_output"]
    with torch.no_grad():
        expected = classify(model, fresh)
    assert torch.equal(found, expected)
    print(f"class {found.item()}, as in PyTorch")


if __name__ == "__main__":
    main()
