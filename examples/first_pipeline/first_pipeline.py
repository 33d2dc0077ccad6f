"""Two stages: what is measured becomes features, and features become an action."""

from __future__ import annotations

import torch
import veracity
from torch import Tensor, nn
from veracity import annotate

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2)).eval()


def step(position: Tensor) -> Tensor:
    """Run one tick. Without a session the annotations do nothing."""
    position = annotate.input_tensors("observe", {"position": position})
    features = (position - position.mean()) / (position.std() + 1e-6)
    annotate.output_tensors("observe", {"features": features}, export_with="onnx")

    features = annotate.input_tensors("policy", {"features": features})
    action: Tensor = network(features)
    annotate.output_tensors("policy", {"action": action}, export_with="onnx")
    return action


with torch.no_grad(), veracity.session("first", save_path="exports"):
    for _ in range(5):
        step(torch.randn(1, 6))
print(veracity.compile_graph())
