"""A small vision transformer, its export, and an export in which one operator was made faster.

    python examples/vit_drift/vit_drift.py --out exports/vit

Weights are drawn from a seed; nothing is downloaded.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import Tensor, nn

WIDTH, PATCH, IMAGE = 64, 8, 32


class Block(nn.Module):
    """Attention and two layers, each beside a path that goes around it."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return the tokens, changed."""
        seen = self.norm1(x)
        x = x + self.attention(seen, seen, seen, need_weights=False)[0]
        hidden = self.up(self.norm2(x))
        hidden = nn.functional.gelu(hidden)
        out: Tensor = x + self.down(hidden)
        return out


class VisionTransformer(nn.Module):
    """Patches of an image as tokens, four blocks, a class."""

    def __init__(self) -> None:
        """Draw everything that training would have found, positions and class token included."""
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.position = nn.Parameter(torch.randn(1, (IMAGE // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(4)))
        self.norm, self.head = nn.LayerNorm(WIDTH, eps=1e-6), nn.Linear(WIDTH, 10)

    def forward(self, image: Tensor) -> Tensor:
        """Return a score for each class."""
        tokens = self.patches(image).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token, tokens], dim=1) + self.position
        scores: Tensor = self.head(self.norm(self.blocks(tokens))[:, 0])
        return scores


def build() -> tuple[nn.Module, Tensor]:
    """Return the network and an image: what `veracity parity FILE:build` asks for."""
    torch.manual_seed(0)
    return VisionTransformer().eval(), torch.randn(1, 3, IMAGE, IMAGE)


def main() -> None:
    """Export the network, and again with the GELU of the third block approximated by tanh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports/vit"), help="where to write")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    model, image = build()
    torch.onnx.export(
        model, (image,), out / "vit.onnx", dynamo=True, external_data=False, verbose=False
    )
    file = onnx.load(out / "vit.onnx")
    gelu = [node for node in file.graph.node if node.op_type == "Gelu"][2]
    del gelu.attribute[:]
    gelu.attribute.append(onnx.helper.make_attribute("approximate", "tanh"))
    onnx.save(file, out / "vit_fast.onnx")

    # What one usually does: look at the outputs.
    session = onnxruntime.InferenceSession(out / "vit_fast.onnx")
    scores = session.run(None, {"image": image.numpy()})[0]
    equal = np.allclose(scores, model(image).detach().numpy(), rtol=1e-3, atol=1e-5)
    print(f"scores of vit_fast.onnx equal within rtol 1e-3, atol 1e-5: {equal}")


if __name__ == "__main__":
    main()
