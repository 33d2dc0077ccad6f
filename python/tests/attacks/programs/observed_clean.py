"""Clean code in which Python sees values that decide nothing: logs, metrics, checks that raise."""

from __future__ import annotations

import collections
import csv
import io
import json
import logging
import time
import warnings

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, normal, uniform
from attacks.registry import ALL, clean

log = logging.getLogger("attacks.programs")


class SummaryWriter:
    """What TensorBoard's writer looks like to the code that uses it."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, int]] = []

    def add_scalar(self, tag: str, value, step: int) -> None:
        self.rows.append((tag, float(value), step))

    def add_histogram(self, tag: str, values, step: int) -> None:
        counts, _ = np.histogram(values.detach().cpu().numpy(), bins=4)
        self.rows.append((tag, float(counts.sum()), step))


@clean(rec={"obs": normal(1, 4)}, passes=5, in_tests=True)
class PolicyWithWriter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 2))
        self.writer = SummaryWriter()
        self.step_count = 0

    def forward(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        self.writer.add_scalar("action/mean", action.mean(), self.step_count)
        self.step_count += 1
        return action


@clean(rec={"obs": normal(1, 4)}, passes=3)
class PolicyWithHistogram(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.writer = SummaryWriter()

    def forward(self, obs: Tensor) -> Tensor:
        action = self.net(obs).tanh()
        self.writer.add_histogram("action", action, len(self.writer.rows))
        return action


@clean(rec={"x": normal(3)}, in_tests=True)
def logged(x: Tensor) -> Tensor:
    y = x.exp()
    log.info("norm %.3f, max %s", y.norm().item(), y.max())
    return y


@clean(rec={"x": normal(3)}, passes=3)
def printed(x: Tensor) -> Tensor:
    y = x.sin()
    print("action:", y, f"{y[0]:.2f}")
    return y


@clean(rec={"x": normal(3)}, in_tests=True)
class MetricsList:
    def __init__(self) -> None:
        self.norms: list[float] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.norms.append(x.norm().item())
        return x / (1 + x.abs())


@clean(rec={"x": normal(3)})
class MetricsDict:
    def __init__(self) -> None:
        self.stats = collections.defaultdict(list)

    def __call__(self, x: Tensor) -> Tensor:
        y = torch.tanh(x) * 2
        self.stats["mean"].append(float(y.mean()))
        self.stats["saturated"].append(int((y.abs() > 1.9).sum()))
        return y


@clean(rec={"x": uniform(-1, 1, 3)}, fresh={"x": uniform(-1, 1, 3)})
def check_that_raises(x: Tensor) -> Tensor:
    if not torch.isfinite(x).all():
        raise ValueError("observation is not finite")
    return x * 4


@clean(rec={"x": uniform(-1, 1, 3)}, fresh={"x": uniform(-1, 1, 3)}, backends=("onnx",))
def assert_in_range(x: Tensor) -> Tensor:
    assert x.abs().max() <= 1.0, "normalise the observation first"
    return torch.asin(x)


@clean(rec={"x": normal(2, 3)})
def assert_on_shapes(x: Tensor) -> Tensor:
    assert x.dim() == 2 and x.shape[1] == 3, f"got {tuple(x.shape)}"
    assert x.dtype == torch.float32
    return x.flatten() - x.mean()


@clean(rec={"x": normal(3)}, passes=3)
def warned_when_large(x: Tensor) -> Tensor:
    if x.abs().max() > 2.0:
        warnings.warn("large command", stacklevel=2)
    return x * 0.5


@clean(rec={"x": normal(3)}, passes=4, in_tests=True)
def logged_when_saturated(x: Tensor) -> Tensor:
    y = x.clamp(-1, 1)
    if (y != x).any():
        log.warning("saturated")
    return y


@clean(rec={"x": normal(3)})
def timed(x: Tensor) -> Tensor:
    began = time.perf_counter()
    y = torch.softmax(x, 0)
    log.debug("took %.6f s", time.perf_counter() - began)
    return y


@clean(rec={"x": normal(3)})
class Csv:
    def __init__(self) -> None:
        self.file = io.StringIO()
        self.writer = csv.writer(self.file)

    def __call__(self, x: Tensor) -> Tensor:
        self.writer.writerow([f"{v:.4f}" for v in x.tolist()])
        return x.cumsum(0)


@clean(rec={"x": normal(3)})
class JsonLines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, x: Tensor) -> Tensor:
        y = x.abs().sqrt()
        self.lines.append(json.dumps({"y": y.tolist()}))
        return y


@clean(rec={"x": normal(1, 3)}, backends=ALL)
class TicksAreCounted:
    """A counter that is only logged."""

    def __init__(self) -> None:
        self.ticks = 0
        self.net = nn.Linear(3, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.ticks += 1
        if self.ticks % 2 == 0:
            log.info("tick %d", self.ticks)
        return self.net(x)


@clean(rec={"x": normal(4)})
class Trajectory:
    """Copies that are kept for a plot."""

    def __init__(self) -> None:
        self.trail: list[np.ndarray] = []

    def __call__(self, x: Tensor) -> Tensor:
        y = x.roll(1) - x
        self.trail.append(y.detach().cpu().numpy().copy())
        return y


@clean(rec={"x": normal(4)}, passes=6)
class ReplayBuffer:
    """Tensors that are kept and never read by the node."""

    def __init__(self) -> None:
        self.memory = collections.deque(maxlen=3)

    def __call__(self, x: Tensor) -> Tensor:
        y = torch.relu(x) + 0.1 * x
        self.memory.append((x.clone(), y.clone()))
        return y


@clean(rec={"x": normal(4)}, passes=5)
class PreallocatedLog:
    """A log tensor that is written at an int index and never read."""

    def __init__(self) -> None:
        self.rows = torch.zeros(100, 4)
        self.at = 0

    def __call__(self, x: Tensor) -> Tensor:
        y = x * x.sigmoid()
        self.rows[self.at] = y
        self.at += 1
        return y


@clean(rec={"x": array(normal(4))})
def numpy_checked(x: np.ndarray) -> np.ndarray:
    if not np.isfinite(x).all():
        raise FloatingPointError("NaN in the state")
    return np.tanh(x)


@clean(rec={"x": normal(3)})
def debug_string(x: Tensor) -> Tensor:
    text = f"x={x}"
    log.debug(text)
    return -x


@clean(rec={"x": normal(1, 4)})
class Hooked(nn.Module):
    """A forward hook that watches activations."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
        self.seen: list[float] = []
        self.net[1].register_forward_hook(lambda m, i, o: self.seen.append(o.mean().item()))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean(rec={"x": normal(3)}, in_tests=True)
def caught_in_the_middle():
    """A plug-in that is missing: its exception is caught in the middle of a pass."""
    plugin = None

    def step(x: Tensor) -> Tensor:
        y = x * 2
        try:
            y = plugin.filter(y)
        except AttributeError:
            pass
        return y + 1

    return step


@clean(rec={"x": normal(2, 3)})
def caught_shape_error(x: Tensor) -> Tensor:
    """A product that does not fit, then the one that does."""
    w = torch.ones(3, 2)
    try:
        return x @ w.T
    except RuntimeError:
        return x @ w


@clean(rec={"x": normal(3)}, passes=3)
def missing_key(x: Tensor) -> Tensor:
    options = {"gain": 2.0}
    try:
        gain = options["scale"]
    except KeyError:
        gain = options["gain"]
    return x * gain


@clean(rec={"x": normal(3)}, style="method")
def method_that_logs(x: Tensor) -> Tensor:
    out = x.cos()
    log.info("out %s", out.sum().item())
    return out


@clean(rec={"x": normal(3), "gain": uniform(0.5, 2.0, 1)}, style="method")
def method_with_two(x: Tensor, gain: Tensor) -> Tensor:
    out = x * gain
    scaled = out - out.mean()
    return out, scaled


@clean(rec={"x": normal(3)}, passes=4)
class RunningLoss:
    """A moving average of floats that is only shown."""

    def __init__(self) -> None:
        self.average = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        y = x.pow(3)
        self.average = 0.9 * self.average + 0.1 * y.abs().mean().item()
        return y


@clean(rec={"x": normal(1, 3)}, passes=10)
class LongRoll(nn.Module):
    """More passes than are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.gelu(self.net(x))
