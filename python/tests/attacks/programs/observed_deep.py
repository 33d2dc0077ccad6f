"""Clean code of robots and training scripts, as it is written when nobody thinks of an export."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import io
import logging
import math
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, normal, uniform
from attacks.registry import clean

log = logging.LoggerAdapter(logging.getLogger(__name__), {"robot": "one"})
METRICS: list[float] = []
x3 = {"x": normal(3)}
bounded = {"x": uniform(-1, 1, 3)}


class Timer:
    """A context manager that only measures."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def __enter__(self) -> Timer:
        self.began = time.perf_counter()
        return self

    def __exit__(self, *problem) -> None:
        self.total += time.perf_counter() - self.began
        self.count += 1


@clean("C", rec=bounded, fresh=bounded)
class CheckedInATimer:
    def __init__(self) -> None:
        self.timer = Timer()

    def __call__(self, x: Tensor) -> Tensor:
        with self.timer, torch.no_grad():
            if not torch.isfinite(x).all():
                raise ValueError("not finite")
            y = x.mul(3).sin()
        if self.timer.count % 100 == 0:
            log.info("%.3f ms", 1e3 * self.timer.total / self.timer.count)
        return y


@clean("C", rec=bounded, fresh=bounded)
def checked_with_a_file(x: Tensor) -> Tensor:
    with io.StringIO() as file, contextlib.redirect_stdout(file):
        print("input", x, x.sum().item())
        assert x.abs().max() < 5
        text = file.getvalue()
    log.debug("wrote %d characters", len(text))
    return x.tan()


@clean("C", rec=x3)
def logging_never_stops_the_robot(x: Tensor) -> Tensor:
    y = x * 1.25
    try:
        log.info("|y| = %.3f, worst %d", y.norm().item(), int(y.abs().argmax()))
    except Exception:  # noqa: BLE001
        pass
    return y


class Kind(enum.Enum):
    SOFT = "soft"
    HARD = "hard"


@dataclasses.dataclass
class Config:
    kind: Kind = Kind.SOFT
    gain: float = 2.0
    limits: tuple[float, float] = (-1.0, 1.0)
    names: list[str] = dataclasses.field(default_factory=lambda: ["a", "b", "c"])
    debug: bool = False


@clean("C", rec=x3)
class Configured:
    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()

    def __call__(self, x: Tensor) -> Tensor:
        match self.config.kind:
            case Kind.SOFT:
                y = x.tanh() * self.config.gain
            case Kind.HARD:
                y = x.clamp(*self.config.limits)
        if self.config.debug:
            print(dict(zip(self.config.names, y.tolist())))
        return y


@clean("C", rec=x3)
def global_metrics(x: Tensor) -> Tensor:
    y = x.square() - 1
    METRICS.append(y.mean().item())
    if len(METRICS) > 1000:
        METRICS.clear()
    return y


@clean("C", rec=x3)
class Statistics:
    """Welford's running mean and variance, for the log."""

    def __init__(self) -> None:
        self.n, self.mean, self.m2 = 0, 0.0, 0.0

    def push(self, value: float) -> None:
        self.n += 1
        delta = value - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (value - self.mean)

    @property
    def std(self) -> float:
        return math.sqrt(self.m2 / self.n) if self.n > 1 else 0.0

    def __call__(self, x: Tensor) -> Tensor:
        y = x.exp().log1p()
        self.push(y.mean().item())
        log.debug("%.3f +- %.3f", self.mean, self.std)
        return y


@clean("C", rec={"x": array(normal(4))})
class NumpyMetrics:
    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def __call__(self, x: np.ndarray) -> np.ndarray:
        y = np.tanh(x) * np.float32(0.5)
        self.rows.append(
            {
                "mean": float(y.mean()),
                "p90": float(np.percentile(y, 90)),
                "median": float(np.median(y)),
                "unique": len(np.unique(np.round(y, 1))),
                "correlation": float(np.corrcoef(x, y)[0, 1]),
            }
        )
        return y


@clean("C", rec={"x": array(normal(4))})
def numpy_binned_for_the_log(x: np.ndarray) -> np.ndarray:
    y = x - x.mean()
    hist, edges = np.histogram(y, bins=4)
    for count, left, right in zip(hist, edges[:-1], edges[1:]):
        log.debug("%5.2f .. %5.2f: %s", left, right, "#" * int(count))
    return y


@clean("C", rec={"x": normal(2, 3)})
def shapes_are_unpacked(x: Tensor) -> Tensor:
    batch, width = x.shape
    rows = [row * (1 + i) for i, row in enumerate(x)]
    total = sum(rows[1:], rows[0])
    if batch > 1 and width == 3 and x.ndim == 2 and x.numel():
        total = total / batch
    return torch.stack([v * w for v, w in zip(total, (1.0, 0.5, 0.25))])


@clean("C", rec={"x": normal(1, 4)})
class Trained(nn.Module):
    """Code for training that does not run here."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2))
        self.losses = collections.deque(maxlen=10)
        self.eval()

    def forward(self, x: Tensor, target: Tensor | None = None) -> Tensor:
        y = self.net(x)
        if self.training and target is not None:
            loss = (y - target).pow(2).mean()
            if loss.item() > 10:
                warnings.warn("diverging")
            self.losses.append(loss.item())
            return loss
        return y


@clean("C", rec={"x": normal(1, 4)})
class Profiled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        with torch.profiler.record_function("net"):
            y = self.net(x)
        with torch.autograd.profiler.record_function("tail"):
            return y.sigmoid()


@functools.singledispatch
def as_tensor(value) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float32)


@as_tensor.register
def _(value: Tensor) -> Tensor:
    return value.float()


@clean("C", rec=x3)
def single_dispatch(x: Tensor) -> Tensor:
    return as_tensor(x) + as_tensor([1.0, 2.0, 3.0])


class Lazy:
    """A text that is made when somebody wants it."""

    def __init__(self, make) -> None:
        self.make = make

    def __str__(self) -> str:
        return str(self.make())


@clean("C", rec=x3)
def lazy_log(x: Tensor) -> Tensor:
    y = x.rsqrt() if False else x.abs().add(1).rsqrt()
    log.debug("%s", Lazy(lambda: y.sum().item()))
    print(Lazy(lambda: y.max().item()), file=io.StringIO())
    return y


@clean("C", rec=x3)
class Metrics:
    """Metrics behind an interface of their own."""

    class Board:
        def __init__(self) -> None:
            self.values: dict[str, list[float]] = collections.defaultdict(list)

        def __setitem__(self, name: str, value: float) -> None:
            self.values[name].append(value)

        def __getitem__(self, name: str) -> float:
            return self.values[name][-1]

        def update(self, **values: float) -> None:
            for name, value in values.items():
                self[name] = value

    def __init__(self) -> None:
        self.board = self.Board()

    def __call__(self, x: Tensor) -> Tensor:
        y = x.cos() * x
        self.board["norm"] = y.norm().item()
        self.board.update(low=y.min().item(), high=y.max().item())
        log.info("norm %.2f", self.board["norm"])
        return y


@clean("C", rec=x3)
class Publisher:
    """A node of a robot that publishes what it did."""

    class Message:
        def __init__(self) -> None:
            self.data: list[float] = []
            self.stamp = 0.0

    def __init__(self) -> None:
        self.sent: list = []

    def publish(self, message) -> None:
        self.sent.append(message)

    def __call__(self, x: Tensor) -> Tensor:
        y = x.clamp(-0.8, 0.8)
        message = self.Message()
        message.data = y.tolist()
        message.stamp = time.time()
        self.publish(message)
        return y


class _Spinning:
    """A thread of the robot's that has nothing to do with the policy."""

    def __init__(self) -> None:
        self.battery, self.beats = 1.0, 0
        threading.Thread(target=self._spin, daemon=True).start()

    def _spin(self) -> None:
        for _ in range(200):
            self.battery -= 1e-4
            self.beats += 1
            time.sleep(0.002)


@clean("C", rec=x3)
class RobotThatSpins:
    def __init__(self) -> None:
        self.robot = _Spinning()
        self.beats = 0  # of the policy, not of the robot

    def __call__(self, x: Tensor) -> Tensor:
        self.beats += 1
        log.debug("%d %s", self.beats, self.robot.battery)
        return x.mul(0.3).add(0.1)


@clean("C", rec=x3)
class BestIsKept:
    """The best action so far, for a report."""

    def __init__(self) -> None:
        self.best, self.best_action = -math.inf, None

    def __call__(self, x: Tensor) -> Tensor:
        y = x.sinh()
        score = -y.abs().sum().item()
        if score > self.best:
            self.best, self.best_action = score, y.detach().clone()
            log.info("new best %.3f", score)
        return y

    def report(self, path: Path) -> None:
        torch.save({"best": self.best, "action": self.best_action}, path)


@clean("C", rec=x3)
def limits_are_reported(x: Tensor) -> Tensor:
    limits = {"hip": 0.5, "knee": 1.0, "ankle": 1.5}
    over = {
        name: round(float(v), 3) for (name, limit), v in zip(limits.items(), x) if abs(v) > limit
    }
    if over:
        log.warning("over the limit: %s", over)
    return x.clamp(-1.5, 1.5)


@clean("C", rec=x3)
def progress_in_words(x: Tensor) -> Tensor:
    y = x.erf()
    level = y.abs().mean().item()
    word = "high" if level > 0.8 else "middle" if level > 0.3 else "low"
    stars = "*" * int(10 * level)
    print(f"{word:>8} {stars:<10} {level:6.1%}")
    return y


def driver(**options):
    return clean("C", style="own", rec={"see/x": normal(3)}, **options)


@driver(passes=4)
def loop_until_done(backend: str):
    """An environment in torch that says when it is done; the driver resets it."""
    env = {"position": torch.zeros(3), "resets": 0}

    def step(given):
        x = annotate.input_tensors("see", {"x": given["see/x"]})
        h = x.atan()
        annotate.output_tensors("see", {"h": h}, export_with=backend)
        h = annotate.input_tensors("act", {"h": h})
        u = h * 0.5
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        env["position"] = env["position"] + u
        if env["position"].norm() > 0.5:
            env["position"] = torch.zeros(3)
            env["resets"] += 1
        return {"act/u": u}

    return step


@driver(passes=3)
def stops_when_it_falls(backend: str):
    """Every node runs, or none."""
    fallen = False

    def tick(given):
        x = annotate.input_tensors("see", {"x": given["see/x"]})
        h = x.relu()
        annotate.output_tensors("see", {"h": h}, export_with=backend)
        h = annotate.input_tensors("act", {"h": h})
        u = h + 1
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        return u

    def step(given):
        nonlocal fallen
        if fallen:
            raise RuntimeError("it has fallen")
        u = tick(given)
        fallen = bool(u.abs().max() > 1e6)
        return {"act/u": u}

    return step


@driver(passes=4)
def commands_are_sent(backend: str):
    """Limits of the hardware, behind the nodes."""
    sent: list[float] = []

    def send(value: float) -> None:
        sent.append(max(-1.0, min(1.0, value)))

    def step(given):
        x = annotate.input_tensors("see", {"x": given["see/x"]})
        h = x - x.mean()
        annotate.output_tensors("see", {"h": h}, export_with=backend)
        h = annotate.input_tensors("act", {"h": h})
        u = h.tanh()
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        for value in u.tolist():
            if abs(value) > 1e-3:
                send(value)
        return {"act/u": u}

    return step


@clean("C", rec=x3)
def flag_with_two_meanings(x: Tensor) -> Tensor:
    """Python's truth of what is no tensor."""
    options = {"bias": 0.5, "clip": None}
    y = x + (options["bias"] or 0.0)
    if options["clip"] is not None:
        y = y.clamp(-options["clip"], options["clip"])
    return y if options else x


@clean("C", rec=x3)
class OnFirstUse:
    """Weights that are made on first use."""

    def __init__(self) -> None:
        self.weight: Tensor | None = None
        self.ready = False

    def __call__(self, x: Tensor) -> Tensor:
        if not self.ready:
            self.weight = torch.linspace(0.1, 0.3, 3)
            self.ready = True
        return x * self.weight
