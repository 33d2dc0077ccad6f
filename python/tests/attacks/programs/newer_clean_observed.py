"""Logs, metrics, timers and checks that only look at what happens."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import logging
import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, normal
from attacks.registry import clean

log = logging.getLogger("robot.policy")


@clean("H", passes=4, rec={"obs": normal(1, 6)}, backends="jit")
class NcLogsItem:
    """The norm of the action is logged as a float."""

    def __init__(self) -> None:
        self.net = nn.Linear(6, 3)

    def __call__(self, obs: Tensor) -> Tensor:
        action = torch.tanh(self.net(obs))
        log.debug("action norm %.3f, largest %s", action.norm().item(), action.abs().max())
        return action


@clean("H", passes=5, rec={"obs": normal(1, 6)}, backends="jit")
class NcCountsTicksForLog:
    """A tick counter decides only when something is logged."""

    def __init__(self) -> None:
        self.net = nn.Linear(6, 3)
        self.ticks = 0

    def __call__(self, obs: Tensor) -> Tensor:
        self.ticks += 1
        action = self.net(obs)
        if self.ticks % 2 == 0:
            log.info("tick %d: action %s", self.ticks, action.tolist())
        return action


@clean("A", passes=4, style="method", rec={"obs": normal(1, 4)}, backends="onnx")
class NcWarnsOnSaturation:
    """A warning is logged where the action saturates; the clamp happens in either case."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.last = torch.zeros(1, 2)

    def step(self, obs: Tensor) -> Tensor:
        raw = self.net(obs) + 0.5 * self.last
        if (raw.abs() > 1.0).any():
            log.warning("saturated by %.2f", float(raw.abs().max()) - 1.0)
        action = raw.clamp(-1.0, 1.0)
        self.last = action
        return action


@clean("H", passes=4, rec={"obs": normal(1, 5)}, backends="jit")
class NcMetricsLists:
    """Values of every tick go into lists that are plotted after the episode."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
        self.metrics: dict[str, list[float]] = defaultdict(list)

    def __call__(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        self.metrics["mean"].append(action.mean().item())
        self.metrics["effort"].append(float(action.square().sum()))
        self.metrics["obs_max"].append(obs.max().item())
        return action

    def summary(self) -> dict[str, float]:
        return {key: sum(values) / len(values) for key, values in self.metrics.items()}


class Profiler:
    def __init__(self) -> None:
        self.spans: dict[str, list[float]] = {}

    @contextlib.contextmanager
    def span(self, name: str):
        start = time.perf_counter()
        try:
            yield
        finally:
            self.spans.setdefault(name, []).append(time.perf_counter() - start)


@clean("A", passes=4, rec={"obs": normal(1, 5)}, backends="jit")
class NcProfilerSpans:
    """Parts of a tick are timed by a context manager; the times are only kept."""

    def __init__(self) -> None:
        self.profiler = Profiler()
        self.cell, self.head = nn.GRUCell(5, 8), nn.Linear(8, 2)
        self.h = torch.zeros(1, 8)

    def __call__(self, obs: Tensor) -> Tensor:
        with self.profiler.span("memory"):
            self.h = self.cell(obs, self.h)
        with self.profiler.span("head"):
            return self.head(self.h)


def timed(function):
    """Keeps how long calls take, as an attribute of the wrapper."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        start = time.monotonic()
        result = function(*args, **kwargs)
        wrapper.elapsed = time.monotonic() - start
        wrapper.calls += 1
        log.debug("%s took %.6f s (call %d)", function.__name__, wrapper.elapsed, wrapper.calls)
        return result

    wrapper.calls, wrapper.elapsed = 0, 0.0
    return wrapper


@clean("H", passes=4, rec={"q": normal(1, 4)}, backends="jit")
class NcTimedDecorator:
    """A decorated helper that counts and times its calls."""

    @timed
    def torque(self, q: Tensor) -> Tensor:
        return -30.0 * torch.sin(q)

    def __call__(self, q: Tensor) -> Tensor:
        return self.torque(q)


@clean("H", passes=3, rec={"obs": normal(2, 4)}, backends=("jit", "onnx"))
class NcAssertsFinite:
    """Shapes and finiteness are asserted, and a check raises where it is violated."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 4)

    def check(self, value: Tensor, name: str) -> Tensor:
        if not torch.isfinite(value).all():
            raise FloatingPointError(f"{name} is not finite: {value}")
        return value

    def __call__(self, obs: Tensor) -> Tensor:
        assert obs.ndim == 2 and obs.shape[1] == 4, obs.shape
        assert not torch.isnan(obs).any(), "NaN in the observation"
        return self.check(self.net(self.check(obs, "obs")), "action")


@dataclass
class EpisodeStats:
    steps: int = 0
    total: float = 0.0
    worst: float = float("-inf")
    histogram: Counter = field(default_factory=Counter)

    def update(self, reward: float) -> None:
        self.steps += 1
        self.total += reward
        self.worst = max(self.worst, reward)
        self.histogram[round(reward)] += 1


@clean("A", passes=5, rec={"q": normal(1, 3)}, backends="jit")
class NcEpisodeStats:
    """A dataclass of Python numbers follows a cost of every tick; nothing reads it back."""

    def __init__(self) -> None:
        self.stats = EpisodeStats()
        self.q_filtered = torch.zeros(1, 3)

    def __call__(self, q: Tensor) -> Tensor:
        self.q_filtered = 0.7 * self.q_filtered + 0.3 * q
        error = q - self.q_filtered
        self.stats.update(float(error.pow(2).sum()))
        return 4.0 * error


class SummaryWriter:
    """As TensorBoard's: scalars by tag and step."""

    def __init__(self) -> None:
        self.events: list[tuple[str, float, int]] = []

    def add_scalar(self, tag: str, value: float | Tensor, step: int) -> None:
        self.events.append((tag, float(value), step))


@clean("H", passes=4, rec={"obs": normal(1, 5)}, backends="jit")
class NcSummaryWriter:
    """Scalars go to a writer with the number of the step."""

    def __init__(self) -> None:
        self.writer, self.global_step = SummaryWriter(), 0
        self.net = nn.Linear(5, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        for i, name in enumerate(("steer", "throttle")):
            self.writer.add_scalar(f"action/{name}", action[0, i], self.global_step)
        self.global_step += 1
        return action


@clean("H", passes=4, rec={"obs": normal(1, 3)}, backends="jit")
class NcCsvRecorder:
    """A row of every tick goes to a CSV, with the time since the start."""

    def __init__(self) -> None:
        self.file = io.StringIO()
        self.csv = csv.writer(self.file)
        self.csv.writerow(["time", "x", "y", "z"])
        self.start = time.perf_counter()

    def __call__(self, obs: Tensor) -> Tensor:
        command = torch.cumsum(obs, dim=1) * 0.1
        self.csv.writerow(
            [f"{time.perf_counter() - self.start:.4f}", *(f"{v:.3f}" for v in command[0].tolist())]
        )
        return command


@clean("H", passes=4, style="module", rec={"obs": normal(1, 6)}, backends="jit")
class NcForwardHookActivations(nn.Module):
    """Forward hooks keep the activations of every layer for a viewer."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
        self.activations: dict[str, Tensor] = {}
        for name, layer in self.net.named_children():
            layer.register_forward_hook(functools.partial(self.keep, name))

    def keep(
        self, name: str, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor
    ) -> None:
        self.activations[name] = output.detach().clone()

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("A", passes=5, rec={"obs": normal(1, 4)}, backends="jit")
class NcSaturationCounter:
    """Python counts how many joints saturated; the number goes only into a status text."""

    def __init__(self) -> None:
        self.saturated, self.total = 0, 0
        self.last = torch.zeros(1, 4)

    @property
    def status(self) -> str:
        return f"{self.saturated} of {self.total} saturated"

    def __call__(self, obs: Tensor) -> Tensor:
        command = self.last + (obs - self.last).clamp(-0.3, 0.3)
        self.saturated += int(((obs - self.last).abs() > 0.3).sum())
        self.total += obs.numel()
        self.last = command
        log.info(self.status)
        return command


@clean("H", passes=4, rec={"obs": normal(1, 5)}, backends="pt2")
class NcStepCallbacks:
    """Callbacks are told about every step; they only keep things."""

    def __init__(self) -> None:
        self.net = nn.Linear(5, 2)
        self.seen: list[Tensor] = []
        self.norms: deque[float] = deque(maxlen=100)
        self.callbacks = [self.seen.append, lambda action: self.norms.append(action.norm().item())]

    def __call__(self, obs: Tensor) -> Tensor:
        action = self.net(obs).tanh()
        for callback in self.callbacks:
            callback(action.detach().cpu().clone())
        return action


@clean("H", passes=3, rec={"obs": normal(1, 4)}, backends="jit")
class NcPrintsVerbose:
    """Prints with a fixed verbosity into a stream."""

    def __init__(self, verbose: int = 2) -> None:
        self.verbose, self.stream = verbose, io.StringIO()
        self.net = nn.Linear(4, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        if self.verbose > 1:
            print("obs", obs.shape, f"{obs.mean():.3f}", file=self.stream)
        action = self.net(obs)
        if self.verbose:
            print("action", np.round(action.numpy(), 2), file=self.stream)
        return action


@clean("H", passes=3, rec={"obs": normal(1, 4)}, backends="jit")
class NcRecordFunctionRanges:
    """torch.profiler's record_function around the parts."""

    def __init__(self) -> None:
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        with torch.profiler.record_function("encode"):
            h = torch.relu(self.a(obs))
        with torch.profiler.record_function("act"):
            return self.b(h)


@clean("A", passes=4, rec={"q": array(normal(3)), "qd": array(normal(3))}, backends="jit")
class NcNumpyTelemetry:
    """A NumPy controller that keeps telemetry as dicts of floats, and an overrun check on the clock."""

    def __init__(self) -> None:
        self.telemetry: list[dict[str, float]] = []
        self.integral = np.zeros(3, dtype=np.float32)
        self.last_call = time.monotonic()

    def __call__(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        now = time.monotonic()
        if now - self.last_call > 5.0:
            log.warning("late by %.1f s", now - self.last_call)
        self.last_call = now
        self.integral = np.clip(self.integral + 0.01 * q, -1.0, 1.0).astype(np.float32)
        torque = -5.0 * q - 0.5 * qd - self.integral
        self.telemetry.append({"max": float(np.max(torque)), "power": float(np.dot(torque, qd))})
        return torque


@clean("H", passes=4, rec={"logits": normal(1, 5)}, backends="jit")
class NcModeHistogram:
    """Which action was chosen is counted by its name; the output stays the tensor."""

    NAMES = ("stand", "walk", "trot", "turn", "sit")

    def __init__(self) -> None:
        self.chosen: Counter[str] = Counter()

    def __call__(self, logits: Tensor) -> dict[str, Tensor]:
        index = logits.argmax(dim=-1)
        self.chosen[self.NAMES[index.item()]] += 1
        return {"index": index, "probability": logits.softmax(-1).max(dim=-1).values}


class LoggingMixin:
    """Keeps a line for each call; formats lazily."""

    def note(self, **values) -> None:
        self.__dict__.setdefault("lines", []).append(
            ", ".join(
                f"{key}={value if not isinstance(value, Tensor) else value.detach().mean().item():.3g}"
                for key, value in values.items()
            )
        )


@clean("A", passes=4, style="method", rec={"wrench": normal(1, 6)}, backends="jit")
class NcLoggingMixinController(LoggingMixin):
    """A controller that notes its values through a mixin."""

    def __init__(self) -> None:
        self.bias = torch.zeros(1, 6)

    def step(self, wrench: Tensor) -> Tensor:
        self.bias = 0.99 * self.bias + 0.01 * wrench
        compensated = wrench - self.bias
        self.note(wrench=wrench, bias=self.bias, gain=0.01)
        return compensated
