"""Code that is watched: timings, logs, metrics, checks that raise. None of it decides anything."""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import logging
import queue
import statistics
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, normal, uniform
from attacks.registry import clean

logger = logging.getLogger("bc.watch")


class Stats:
    def __init__(self) -> None:
        self.calls: dict[str, list[float]] = collections.defaultdict(list)


STATS = Stats()


def timed(name: str):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                STATS.calls[name].append((time.perf_counter() - start) * 1e3)

        return wrapper

    return decorate


@clean(rec={"obs": normal(1, 4)}, backends=("jit", "onnx"), passes=5)
class BcTimingDecorator(nn.Module):
    """Encoder and head are timed by a decorator with a `finally`."""

    def __init__(self) -> None:
        super().__init__()
        self.enc, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    @timed("encode")
    def encode(self, obs: Tensor) -> Tensor:
        return F.elu(self.enc(obs))

    @timed("act")
    def forward(self, obs: Tensor) -> Tensor:
        return self.head(self.encode(obs))


@clean(rec={"obs": normal(1, 4)}, backends="jit", style="method")
class BcTimerContext:
    """`with self.timer("stage")` around each stage."""

    def __init__(self) -> None:
        self.net, self.total = nn.Linear(4, 3), collections.Counter()

    @contextlib.contextmanager
    def timer(self, name: str):
        start = time.perf_counter_ns()
        yield
        self.total[name] += time.perf_counter_ns() - start

    def step(self, obs: Tensor) -> Tensor:
        with self.timer("norm"):
            x = (obs - obs.mean(-1, keepdim=True)) / (obs.std(-1, keepdim=True) + 1e-6)
        with self.timer("net"):
            return self.net(x).tanh()


@clean(rec={"obs": normal(2, 4)}, backends=("jit", "pt2"), style="module")
class BcRecordFunction(nn.Module):
    """Named ranges for the profiler."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, obs: Tensor) -> Tensor:
        with torch.profiler.record_function("backbone"):
            x = self.a(obs).relu()
        with torch.autograd.profiler.record_function("head"):
            return self.b(x)


@clean(rec={"q": normal(3), "dq": normal(3)}, backends="onnx")
class BcGuardedDebug:
    """Debug lines behind `isEnabledFor`, through an adapter."""

    def __init__(self) -> None:
        self.log = logging.LoggerAdapter(logger, {"robot": "arm0"})

    def __call__(self, q: Tensor, dq: Tensor) -> Tensor:
        tau = -12.0 * q - 0.8 * dq
        if self.log.isEnabledFor(logging.DEBUG):
            self.log.debug("tau %s", tau.tolist())
        self.log.info("energy %.3f", (tau * dq).sum().item())
        return tau


@clean(rec={"x": normal(1, 6)}, passes=7, backends="jit")
class BcEveryNth(nn.Module):
    """Prints a line every third tick."""

    def __init__(self, every: int = 3) -> None:
        super().__init__()
        self.net, self.every, self.n = nn.Linear(6, 2), every, 0

    def forward(self, x: Tensor) -> Tensor:
        u = self.net(x)
        if self.n % self.every == 0:
            print(f"[{self.n:05d}] |u| = {u.norm():.3f}, max = {u.abs().max().item():.2f}")
        self.n += 1
        return u


class Writer:
    def __init__(self) -> None:
        self.data: dict[str, list] = {}

    def add_scalars(self, main: str, values: dict[str, float], step: int) -> None:
        for key, value in values.items():
            self.data.setdefault(f"{main}/{key}", []).append((step, value))

    def add_text(self, tag: str, text: str, step: int) -> None:
        self.data.setdefault(tag, []).append((step, text))


@clean(rec={"obs": normal(1, 5)}, passes=5, style="method", backends="pt2")
class BcScalarsWriter:
    """A writer gets min, mean and max of every stage."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
        self.writer, self.global_step = Writer(), 0

    def step(self, obs: Tensor) -> Tensor:
        x = obs
        for i, layer in enumerate(self.net):
            x = layer(x)
            values = {"min": x.min().item(), "mean": x.mean().item(), "max": x.max().item()}
            self.writer.add_scalars(f"layer{i}", values, self.global_step)
        self.writer.add_text("shape", str(tuple(x.shape)), self.global_step)
        self.global_step += 1
        return x


@clean(rec={"e": normal(4)}, passes=6, backends="jit")
class BcWelfordLogged:
    """Welford's running mean and variance in Python floats, only logged."""

    def __init__(self) -> None:
        self.n, self.mean, self.m2 = 0, 0.0, 0.0

    def __call__(self, e: Tensor) -> Tensor:
        value = float(e.norm())
        self.n += 1
        delta = value - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (value - self.mean)
        logger.info("error %.3f +- %.3f", self.mean, (self.m2 / self.n) ** 0.5)
        return -3.0 * e / (1.0 + e.norm())


@clean(rec={"q": uniform(-2, 2, 1, 3)}, backends="onnx")
class BcLimitWarnings:
    """Warns of each joint that comes near its limit, by name."""

    NAMES = ("shoulder", "elbow", "wrist")

    def __call__(self, q: Tensor) -> Tensor:
        for name, value in zip(self.NAMES, q[0].tolist()):
            if abs(value) > 1.8:
                warnings.warn(
                    f"{name} is near its limit: {value:.2f} rad", RuntimeWarning, stacklevel=2
                )
        return q.clamp(-1.9, 1.9) * 0.95


def _finite(name: str, value: Tensor) -> Tensor:
    if torch.isnan(value).any().item() or torch.isinf(value).any().item():
        raise RuntimeError(f"{name} has NaN or Inf: {value}")
    return value


@clean(rec={"obs": normal(1, 4), "goal": normal(1, 2)}, backends=("jit", "pt2"))
class BcFiniteEverywhere(nn.Module):
    """Every stage goes through a check that raises."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.out = nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, obs: Tensor, goal: Tensor) -> Tensor:
        x = _finite("input", torch.cat([_finite("obs", obs), _finite("goal", goal)], -1))
        return _finite("action", self.out(_finite("hidden", F.relu(self.net(x)))))


@clean(rec={"u": normal(2)}, passes=5, backends="jit", style="method")
class BcThrottledLog:
    """Like ROS's throttled logger: at most one line per period of the wall clock."""

    def __init__(self) -> None:
        self.last = float("-inf")

    def step(self, u: Tensor) -> Tensor:
        v = u * 0.7 + 0.1
        now = time.monotonic()
        if now - self.last > 0.5:
            logger.info("cmd_vel %s", v.numpy().round(3))
            self.last = now
        return v


@dataclass
class Peaks:
    torque: float = 0.0
    power: float = 0.0
    at: int = -1
    history: list[float] = field(default_factory=list)


@clean(rec={"tau": normal(6, s=5.0), "dq": normal(6)}, passes=6, backends="jit")
class BcPeakTracker:
    """The largest torque and power so far, for the report at the end."""

    def __init__(self) -> None:
        self.peaks, self.tick = Peaks(), 0

    def __call__(self, tau: Tensor, dq: Tensor) -> Tensor:
        limited = tau.clamp(-8.0, 8.0)
        largest = limited.abs().max().item()
        if largest > self.peaks.torque:
            self.peaks.torque, self.peaks.at = largest, self.tick
        self.peaks.power = max(self.peaks.power, float((limited * dq).sum()))
        self.peaks.history.append(largest)
        self.tick += 1
        return limited


@clean(rec={"obs": normal(1, 4)}, passes=5, backends="onnx", style="module")
class BcChosenModes(nn.Module):
    """Counts which expert has the largest gate; the mixture itself is soft."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))
        self.used = collections.Counter()

    def forward(self, obs: Tensor) -> Tensor:
        weights = self.gate(obs).softmax(-1)
        self.used[int(weights.argmax(-1)[0])] += 1
        return sum(weights[:, i : i + 1] * e(obs) for i, e in enumerate(self.experts))


@clean(rec={"x": normal(4)}, passes=4, backends="jit")
class BcEpisodeDump:
    """Copies of inputs and outputs that are written into an npz in the last tick of a chunk."""

    def __init__(self) -> None:
        self.rows: dict[str, list[np.ndarray]] = {"x": [], "y": []}
        self.file = io.BytesIO()

    def __call__(self, x: Tensor) -> Tensor:
        y = torch.sin(x) * x
        self.rows["x"].append(x.numpy().copy())
        self.rows["y"].append(y.cpu().detach().numpy().copy())
        if len(self.rows["x"]) == 3:
            np.savez(self.file, **{k: np.stack(v) for k, v in self.rows.items()})
            for rows in self.rows.values():
                rows.clear()
        return y


@clean(rec={"q": array(normal(3))}, backends="jit", passes=5)
class BcSaveTxt:
    """A line of text for every tick of a NumPy controller."""

    def __init__(self) -> None:
        self.file = io.StringIO()

    def __call__(self, q: np.ndarray) -> np.ndarray:
        u = (-2.0 * q).astype(np.float32)
        np.savetxt(self.file, u[None], fmt="%.4f", delimiter=",")
        return u


@clean(rec={"obs": normal(1, 4)}, passes=5, backends="pt2")
class BcCallbacks:
    """Observers that were registered get every action."""

    def __init__(self) -> None:
        self.net, self.callbacks, self.trace = nn.Linear(4, 2), [], []
        self.subscribe(lambda tick, a: self.trace.append((tick, a.detach().clone())))
        self.subscribe(lambda tick, a: logger.debug("%d: %s", tick, a))
        self.tick = 0

    def subscribe(self, callback) -> None:
        self.callbacks.append(callback)

    def __call__(self, obs: Tensor) -> Tensor:
        action = self.net(obs).clamp(-1, 1)
        for callback in self.callbacks:
            callback(self.tick, action)
        self.tick += 1
        return action


@clean(rec={"temp": uniform(20, 90, 4), "tau": normal(4)}, passes=6, backends="jit")
class BcHealthMonitor:
    """Complains after three hot ticks in a row; torques go through as they are."""

    def __init__(self) -> None:
        self.hot = 0

    def __call__(self, temp: Tensor, tau: Tensor) -> Tensor:
        if temp.max() > 80.0:
            self.hot += 1
        else:
            self.hot = 0
        if self.hot >= 3:
            logger.error("motor %d is hot", int(temp.argmax()))
        return tau * torch.sigmoid((90.0 - temp) / 5.0)


@clean(rec={"x": normal(8)}, passes=6, backends="onnx", style="method")
class BcLatencyPercentiles:
    """The last latencies in a deque, their median and worst in the log."""

    def __init__(self) -> None:
        self.latencies: collections.deque[float] = collections.deque(maxlen=4)

    def step(self, x: Tensor) -> Tensor:
        began = time.time()
        y = F.avg_pool1d(x.view(1, 1, -1), 2).flatten()
        self.latencies.append(time.time() - began)
        if len(self.latencies) == self.latencies.maxlen:
            logger.info(
                "p50 %.6f, worst %.6f", statistics.median(self.latencies), max(self.latencies)
            )
        return y


@clean(rec={"rot": normal(1, 3)}, backends="jit")
def BcOrthonormalAssert(rot: Tensor) -> Tensor:
    """A rotation matrix that is asserted to be one."""
    angle = rot.norm(dim=-1, keepdim=True) + 1e-6
    x, y, z = (rot / angle).unbind(-1)
    o = torch.zeros_like(x)
    k = torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).view(-1, 3, 3)
    s, c = angle.sin()[..., None], angle.cos()[..., None]
    r = torch.eye(3) + s * k + (1 - c) * (k @ k)
    assert torch.allclose(r @ r.transpose(-1, -2), torch.eye(3), atol=1e-3), "not a rotation"
    return r


try:
    import bc_accelerated_kernels as kernels  # type: ignore
except ImportError:
    kernels = None


@clean(rec={"x": normal(2, 8)}, backends="pt2")
def BcOptionalImport(x: Tensor) -> Tensor:
    """A fast kernel that is not installed here, and what is used instead."""
    if kernels is not None:
        return kernels.rms_norm(x)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


@clean(rec={"obs": normal(1, 4)}, passes=5, backends="jit")
class BcDroppingQueue(nn.Module):
    """A bounded queue to the telemetry; what is old is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.queue = nn.Linear(4, 2), queue.Queue(maxsize=2)

    def forward(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        if self.queue.full():
            self.queue.get_nowait()
        self.queue.put_nowait({"t": time.time(), "action": action.tolist()})
        return action


@clean(rec={"obs": normal(3, 4)}, passes=4, backends="onnx", style="module")
class BcHookStatistics(nn.Module):
    """Hooks on every layer keep the fraction of dead units."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)
        )
        self.dead: dict[str, float] = {}
        for name, layer in self.net.named_modules():
            if isinstance(layer, nn.ReLU):
                layer.register_forward_hook(functools.partial(self._watch, name))

    def _watch(self, name: str, layer: nn.Module, args: tuple, output: Tensor) -> None:
        self.dead[name] = (output == 0).float().mean().item()

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean(rec={"u": normal(1, 3), "q": normal(1, 3)}, passes=5, backends="jit")
class BcMeters:
    """AverageMeter objects, as in every training script."""

    class AverageMeter:
        def __init__(self) -> None:
            self.val = self.avg = self.sum = 0.0
            self.count = 0

        def update(self, val: float, n: int = 1) -> None:
            self.val, self.sum, self.count = val, self.sum + val * n, self.count + n
            self.avg = self.sum / self.count

    def __init__(self) -> None:
        self.meters = {k: self.AverageMeter() for k in ("effort", "error")}

    def __call__(self, u: Tensor, q: Tensor) -> Tensor:
        command = u - 0.5 * q
        self.meters["effort"].update(command.abs().mean().item(), u.shape[0])
        self.meters["error"].update((u - q).square().mean().sqrt().item())
        return command


@clean(rec={"x": normal(1, 4)}, passes=4, backends="jit")
def BcTracebackFriendly():
    """A decorator that adds context to exceptions, and prints shapes in the first call only."""
    net, shown = nn.Linear(4, 2), set()

    def explain(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            shapes = tuple(tuple(a.shape) for a in args if isinstance(a, Tensor))
            if shapes not in shown:
                print(function.__name__, "gets", shapes)
                shown.add(shapes)
            try:
                return function(*args, **kwargs)
            except RuntimeError as error:
                raise RuntimeError(f"in {function.__name__} with {shapes}") from error

        return inner

    @explain
    def policy(x: Tensor) -> Tensor:
        return net(x).sin()

    return policy


@clean(rec={"force": normal(4, 3, s=10.0)}, passes=5, backends="onnx")
class BcContactLog:
    """Logs touch-downs and lift-offs of feet; the output is a soft contact."""

    def __init__(self) -> None:
        self.before = [False] * 4

    def __call__(self, force: Tensor) -> Tensor:
        soft = torch.sigmoid(force[:, 2] - 5.0)
        now = [v > 0.5 for v in soft.tolist()]
        for leg, (was, is_now) in enumerate(zip(self.before, now)):
            if was != is_now:
                logger.info("leg %d: %s", leg, "touch-down" if is_now else "lift-off")
        self.before = now
        return soft
