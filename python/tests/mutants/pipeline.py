"""A pipeline in three stages with every kind of port and flow, and the faults that can be in it.

`vision` looks at a picture, `memory` keeps a state and reads the last action, `head` decides. The
picture is positive, and so is what `vision` sees before its last activation: some faults do not
show on what was recorded.
"""

from __future__ import annotations

from pathlib import Path

import torch
import veracity
from torch import Tensor, nn
from torch.nn import functional
from veracity import annotate

TICKS = 4
#: Faults of the code, by the stage that they are in. What each means is where it is used.
FAULTS = {
    "vision": (
        "weight scaled by 1.001",
        "one bit of a weight flipped",
        "bias dropped",
        "epsilon of the batch norm changed",
        "channels last",
        "relu removed where inputs were positive",
        "average instead of maximum",
        "picture mirrored",
    ),
    "memory": (
        "epsilon of the layer norm changed",
        "square weight transposed",
        "tanh for sigmoid",
        "input frozen",
        "bounds of a clamp changed beyond the samples",
        "one weight is not a number",
        "computed in half precision",
        "state not updated",
        "outputs swapped",
        "sign of a gate",
    ),
    "head": (
        "softmax over the other axis",
        "leaky relu for relu",
        "index off by one",
        "truth value inverted",
        "scale forgotten",
        "sum for mean",
        "weights of two inputs exchanged",
    ),
    "wiring": (
        "edges swapped",
        "state a tick late",
        "initial value changed",
        "initial value zero",
        "action of the tick before last",
    ),
}
ALL_FAULTS = [fault for faults in FAULTS.values() for fault in faults]


class Vision(nn.Module):
    """A convolution, a batch norm, an activation, a pool."""

    def __init__(self, fault: str) -> None:
        """Make it, wrong in one way or right."""
        super().__init__()
        self.fault = fault
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        with torch.no_grad():
            self.conv.weight.abs_()
            self.conv.bias.fill_(0.25)
            self.norm.running_mean.copy_(torch.tensor([0.1, 0.0, -0.2, 0.05]))
            self.norm.running_var.copy_(torch.tensor([0.5, 1.5, 0.01, 1.0]))
            self.norm.bias.fill_(0.5)
            if fault == "weight scaled by 1.001":
                self.conv.weight.mul_(1.001)
            if fault == "one bit of a weight flipped":
                bits = self.conv.weight.view(torch.int32)
                bits[0, 0, 1, 1] ^= 1 << 20
            if fault == "bias dropped":
                self.conv.bias.zero_()
        if fault == "epsilon of the batch norm changed":
            self.norm.eps = 1e-3
        self.eval()

    def forward(self, picture: Tensor) -> Tensor:
        """Return 16 features."""
        if self.fault == "picture mirrored":
            picture = picture.flip(-1)
        seen = self.norm(self.conv(picture))
        if self.fault != "relu removed where inputs were positive":
            seen = functional.relu(seen)
        if self.fault == "average instead of maximum":
            pooled = functional.avg_pool2d(seen, 4)
        else:
            pooled = functional.max_pool2d(seen, 4)
        if self.fault == "channels last":
            pooled = pooled.permute(0, 2, 3, 1)
        return pooled.flatten(1)


class Memory(nn.Module):
    """A gated state over features, proprioception and the last action."""

    def __init__(self, fault: str) -> None:
        """Make it, wrong in one way or right."""
        super().__init__()
        self.fault = fault
        self.norm = nn.LayerNorm(16)
        self.mix = nn.Linear(16, 16)
        self.gate = nn.Linear(20, 16)
        with torch.no_grad():
            if fault == "square weight transposed":
                self.mix.weight.copy_(self.mix.weight.T.clone())
            if fault == "one weight is not a number":
                self.gate.weight[3, 5] = torch.nan
        if fault == "epsilon of the layer norm changed":
            self.norm.eps = 1e-2

    def forward(
        self, features: Tensor, joints: Tensor, last: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the mixture and the updated state."""
        if self.fault == "input frozen":
            joints = joints * 0 + 0.25
        bound = 8.0 if self.fault == "bounds of a clamp changed beyond the samples" else 4.0
        joined = self.norm(features) + joints.clamp(-bound, bound)
        if self.fault == "computed in half precision":
            joined = joined.half().float()
        squash = torch.tanh if self.fault == "tanh for sigmoid" else torch.sigmoid
        gate = squash(self.gate(torch.cat((joined, last), dim=1)))
        fresh = torch.tanh(self.mix(joined))
        if self.fault == "sign of a gate":
            gate = 1 - gate
        updated = gate * state + (1 - gate) * fresh
        mixed = updated + 0.5 * features
        if self.fault == "state not updated":
            updated = state + 0 * updated
        if self.fault == "outputs swapped":
            return updated, mixed
        return mixed, updated


class Head(nn.Module):
    """Decides: an action, its likelihoods, the best choice, and whether it is sure."""

    def __init__(self, fault: str) -> None:
        """Make it, wrong in one way or right."""
        super().__init__()
        self.fault = fault
        self.left = nn.Linear(16, 4)
        self.right = nn.Linear(16, 4)
        if fault == "weights of two inputs exchanged":
            self.left, self.right = self.right, self.left

    def forward(self, mixed: Tensor, features: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return action, likelihoods, choice and certainty."""
        activation = (
            functional.leaky_relu if self.fault == "leaky relu for relu" else functional.relu
        )
        raw = activation(self.left(mixed)) - self.right(features)
        if self.fault != "scale forgotten":
            raw = raw * 0.5
        axis = 0 if self.fault == "softmax over the other axis" else 1
        likelihoods = torch.softmax(raw, dim=axis)
        choice = raw.argmax(dim=1)
        if self.fault == "index off by one":
            choice = choice + 1
        level = mixed.sum(dim=1) if self.fault == "sum for mean" else mixed.mean(dim=1)
        sure = level > 0.5
        if self.fault == "truth value inverted":
            sure = ~sure
        return raw + level, likelihoods, choice, sure


class Pipeline:
    """The three stages and what goes round between ticks."""

    def __init__(self, fault: str = "") -> None:
        """Make it, wrong in one way or right."""
        torch.manual_seed(11)
        self.fault = fault
        self.vision, self.memory, self.head = Vision(fault), Memory(fault), Head(fault)
        start = torch.linspace(-0.5, 0.5, 16)[None]
        if fault == "initial value changed":
            start = start + 0.01
        if fault == "initial value zero":
            start = torch.zeros_like(start)
        self.state = start
        self.late = start.clone()
        self.action = torch.full((1, 4), 0.125)
        self.before = self.action.clone()

    def tick(self, picture: Tensor, joints: Tensor, backend: str) -> None:
        """Run once, marked as a user would mark it."""
        picture = annotate.input_tensors("vision", {"picture": picture})
        features = annotate.output_tensors(
            "vision", {"features": self.vision(picture)}, export_with=backend
        )
        state = self.late if self.fault == "state a tick late" else self.state
        last = self.before if self.fault == "action of the tick before last" else self.action
        inputs = {"features": features, "joints": joints, "last": last, "state": state}
        features_in, joints, last, state = annotate.input_tensors("memory", inputs)
        mixed, updated = self.memory(features_in, joints, last, state)
        outputs = {"mixed": mixed, "updated": updated}
        mixed, updated = annotate.output_tensors("memory", outputs, export_with=backend)
        pair = {"mixed": mixed, "features": features}
        if self.fault == "edges swapped":
            pair = {"mixed": features, "features": mixed}
        left, right = annotate.input_tensors("head", pair)
        action, likelihoods, choice, sure = self.head(left, right)
        outputs = {"action": action, "likelihoods": likelihoods, "choice": choice, "sure": sure}
        action, *_ = annotate.output_tensors("head", outputs, export_with=backend)
        self.late, self.state = self.state, updated
        self.before, self.action = self.action, action


def world(tick: int) -> tuple[Tensor, Tensor]:
    """Return a positive picture and joint angles."""
    random = torch.Generator(torch.get_default_device()).manual_seed(100 + tick)
    return torch.rand(1, 2, 8, 8, generator=random), torch.randn(1, 16, generator=random)


def export(folder: Path, backend: str, fault: str = "") -> Path:
    """Trace and export the pipeline with a fault, or without; return the bundle's folder."""
    pipeline = Pipeline(fault)
    with torch.no_grad(), veracity.session("arm", save_path=folder):
        for tick in range(TICKS):
            pipeline.tick(*world(tick), backend)
    veracity.compile_graph(visualize=False, strict=False)
    return folder / "arm"
