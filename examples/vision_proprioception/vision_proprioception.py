"""A camera and joint sensors, each with an encoder of its own, and a head that joins them.

    python examples/vision_proprioception/vision_proprioception.py --out exports

Each stage says how it is exported: the camera and the head as ONNX, the small network for the
joints as TorchScript. They end up in one bundle.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import veracity
from torch import Tensor, nn
from veracity import GraphConfigs, InputKindEnum, OutputKindEnum, TensorSemantics, annotate

JOINTS = [f"{joint}_{side}" for side in ("l", "r") for joint in ("hip", "knee", "ankle")]
HEIGHT, WIDTH = 48, 64


class CameraEncoder(nn.Module):
    """Turns an image, as a camera delivers it, into 32 features."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2, padding=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(4),
            nn.Flatten(),
            nn.Linear(16 * HEIGHT * WIDTH // 256, 32),
        )

    def forward(self, image: Tensor) -> Tensor:
        """Bytes in rows, columns and colours in, features out."""
        features: Tensor = self.layers(image.permute(0, 3, 1, 2).float() / 255)
        return features


class Policy:
    """The three stages, as a robot would run them in Python."""

    def __init__(self) -> None:
        """Draw the weights, and let batch norm see a few images, as training would have done."""
        torch.manual_seed(0)
        self.camera = CameraEncoder()
        self.joints = nn.Sequential(nn.Linear(2 * len(JOINTS), 32), nn.ELU(), nn.Linear(32, 16))
        self.head = nn.Sequential(nn.Linear(48, 32), nn.ELU(), nn.Linear(32, len(JOINTS)))
        with torch.no_grad():
            self.camera(camera_image(8))
        self.camera.eval()

    @torch.no_grad()
    def step(self, image: Tensor, position: Tensor, velocity: Tensor) -> Tensor:
        """Run one tick."""
        image = annotate.input_tensors("camera", {"image": image})
        seen = self.camera(image)
        annotate.output_tensors("camera", {"seen": seen}, export_with="onnx")

        kinds = (InputKindEnum.JOINT_POSITION, InputKindEnum.JOINT_VELOCITY)
        position, velocity = annotate.input_tensors(
            "joints",
            [
                TensorSemantics("position", position, kind=kinds[0], element_names=JOINTS),
                TensorSemantics("velocity", velocity, kind=kinds[1], element_names=JOINTS),
            ],
        )
        felt = self.joints(torch.cat([position, 0.1 * velocity], dim=-1))
        annotate.output_tensors("joints", {"felt": felt}, export_with="jit")

        seen, felt = annotate.input_tensors("head", {"seen": seen, "felt": felt})
        target: Tensor = 0.5 * torch.tanh(self.head(torch.cat([seen, felt], dim=-1)))
        meaning = TensorSemantics(
            "target", target, kind=OutputKindEnum.JOINT_POSITION, element_names=JOINTS
        )
        annotate.output_tensors("head", meaning, export_with="onnx")
        return target


def camera_image(count: int = 1) -> Tensor:
    """Return images as a camera delivers them: bytes."""
    return torch.randint(0, 256, (count, HEIGHT, WIDTH, 3), dtype=torch.uint8)


def main() -> None:
    """Run a few ticks in a session, and export them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("exports"), help="where to write")
    out: Path = parser.parse_args().out

    policy = Policy()
    with veracity.session("vision", save_path=out):
        for _ in range(4):
            policy.step(camera_image(), torch.randn(1, len(JOINTS)), torch.randn(1, len(JOINTS)))
    veracity.compile_graph(graph_configs=GraphConfigs(frequency=30))


if __name__ == "__main__":
    main()
