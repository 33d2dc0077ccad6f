"""More clean code in which Python sees values that decide nothing."""

from __future__ import annotations

import collections
import contextlib
import csv
import dataclasses
import functools
import io
import itertools
import json
import logging
import math
import pickle
import queue
import statistics
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, normal, uniform
from attacks.registry import clean

log = logging.getLogger(__name__)
x3 = {"x": normal(3)}
bounded = {"x": uniform(-1, 1, 3)}


class Wandb:
    """What a run looks like to the code that logs to it."""

    def __init__(self) -> None:
        self.rows: list[dict] = []
        self.step = 0
        self.summary: dict = {}

    def log(self, row: dict, step: int | None = None, commit: bool = True) -> None:
        self.rows.append({"step": self.step if step is None else step, **row})
        self.step += commit


@clean("C", rec=x3, passes=4)
class LogsToARun:
    def __init__(self, run: Wandb | None = None) -> None:
        self.run = run or Wandb()
        self.net = nn.Linear(3, 2)

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x)
        if self.run is not None:
            self.run.log({"y/mean": y.mean().item(), "y/max": y.abs().max().item()})
            self.run.summary["best"] = max(self.run.summary.get("best", -1e9), y.max().item())
        return y


class Bar:
    """A progress bar."""

    def __init__(self) -> None:
        self.text, self.n = "", 0

    def set_postfix(self, **values) -> None:
        self.text = ", ".join(f"{k}={v:.3f}" for k, v in values.items())

    def update(self, n: int = 1) -> None:
        self.n += n


@clean("C", rec=x3, passes=5)
class ProgressBar:
    def __init__(self) -> None:
        self.bar = Bar()

    def __call__(self, x: Tensor) -> Tensor:
        y = x.tanh() * 2
        self.bar.set_postfix(mean=float(y.mean()), worst=float(y.min()))
        self.bar.update()
        return y


@clean("C", rec=x3)
class AverageMeter:
    """The meter of every training script."""

    def __init__(self) -> None:
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value: float, n: int = 1) -> None:
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count

    def __call__(self, x: Tensor) -> Tensor:
        y = x.square().cumsum(0)
        self.update(y.sum().item(), x.shape[0])
        return y


@clean("C", rec=x3)
class RewardsInADeque:
    def __init__(self) -> None:
        self.rewards = collections.deque(maxlen=100)
        self.best = -math.inf

    def __call__(self, x: Tensor) -> Tensor:
        self.rewards.append(-x.norm().item())
        if len(self.rewards) > 1:
            self.best = max(self.best, statistics.fmean(self.rewards))
        return x.relu() - 0.1


@clean("C", rec=bounded, fresh=bounded)
def finite_or_raise(x: Tensor) -> Tensor:
    y = x.atan()
    if torch.isnan(y).any() or torch.isinf(y).any():
        bad = torch.nonzero(~torch.isfinite(y)).flatten().tolist()
        raise FloatingPointError(f"elements {bad} of the action are not finite: {y}")
    return y


@clean("C", rec=bounded, fresh=bounded, style="method")
def asserts_of_every_kind(x: Tensor) -> Tensor:
    assert torch.isfinite(x).all()
    assert x.abs().max().item() < 10, f"too large: {x.abs().max():.2f}"
    assert isinstance(x, Tensor) and x.dtype == torch.float32 and x.shape == (3,)
    torch.testing.assert_close(x, x.clone())
    np.testing.assert_array_less(x.detach().numpy(), 10.0)
    out = x.sinh()
    return out


def checked(function):
    """A decorator that raises on NaN."""

    @functools.wraps(function)
    def inner(*args, **kwargs):
        result = function(*args, **kwargs)
        if torch.isnan(result).any():
            raise ValueError(f"{function.__name__} gave NaN")
        return result

    return inner


@clean("C", rec=bounded, fresh=bounded, passes=3)
@checked
def decorated_check(x: Tensor) -> Tensor:
    return torch.cosh(x) - 1


def timed(function):
    """A decorator that measures."""
    times: list[float] = []

    @functools.wraps(function)
    def inner(x: Tensor) -> Tensor:
        began = time.perf_counter()
        try:
            return function(x)
        finally:
            times.append(time.perf_counter() - began)
            if times[-1] > 0.5:
                warnings.warn(f"{function.__name__} is slow", stacklevel=2)

    return inner


@clean("C", rec=x3)
@timed
def decorated_timer(x: Tensor) -> Tensor:
    return x.sigmoid().log()


@contextlib.contextmanager
def section(name: str, into: dict):
    began = time.monotonic()
    yield
    into.setdefault(name, []).append(time.monotonic() - began)


@clean("C", rec=x3)
class Sections:
    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())

    def __call__(self, x: Tensor) -> Tensor:
        with section("net", self.times):
            y = self.net(x)
        with section("post", self.times):
            y = y * 0.5
        log.debug("%s", {k: sum(v) / len(v) for k, v in self.times.items()})
        return y


@clean("C", rec=x3)
class Verbose:
    """A debug flag that nobody turns on."""

    debug = False

    def __call__(self, x: Tensor) -> Tensor:
        y = x.pow(2).sum().sqrt() + x
        if self.debug:
            print("norm", y.norm().item())
            if y.norm() > 3:
                print("large")
        return y


@clean("C", rec=x3, passes=3)
class VerboseOn:
    """A debug flag that is on."""

    def __init__(self) -> None:
        self.debug = True

    def __call__(self, x: Tensor) -> Tensor:
        y = x.pow(2).sum().sqrt() + x
        if self.debug and y.norm() > 1:
            print(f"large: {y.norm().item():.3f}", file=sys.stderr)
        return y


@clean("C", rec={"x": normal(1, 4)})
class ActivationRecorder(nn.Module):
    """Hooks that keep statistics of every layer."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
        self.stats: dict[str, dict[str, float]] = {}
        for name, module in self.net.named_children():
            module.register_forward_hook(functools.partial(self._keep, name))

    def _keep(self, name: str, module: nn.Module, args, output: Tensor) -> None:
        self.stats[name] = {
            "mean": output.mean().item(),
            "std": float(output.std()),
            "dead": int((output == 0).sum()),
        }

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean("C", rec={"x": normal(1, 4)}, style="module")
class PreHookThatChecks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.calls = 0
        self.net.register_forward_pre_hook(self._check)

    def _check(self, module: nn.Module, args) -> None:
        self.calls += 1
        if not torch.isfinite(args[0]).all():
            raise ValueError(f"call {self.calls}: not finite")

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).softmax(-1)


@clean("C", rec={"x": normal(1, 4)})
class KeepsActivations(nn.Module):
    """A hook that stores tensors for later inspection."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 3), nn.ELU())
        self.seen: dict[str, Tensor] = {}

        def keep(module, args, output):
            self.seen["elu"] = output.detach().cpu()

        self.net[1].register_forward_hook(keep)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) * 2


@dataclasses.dataclass
class Record:
    step: int
    norm: float
    saturated: bool
    note: str = ""


@clean("C", rec=x3)
class Records:
    def __init__(self) -> None:
        self.records: list[Record] = []

    def __call__(self, x: Tensor) -> Tensor:
        y = x.clamp(-1, 1)
        record = Record(len(self.records), y.norm().item(), bool((y != x).any()))
        if record.saturated:
            record.note = "saturated"
        self.records.append(record)
        return y


@clean("C", rec=x3)
class TextLog:
    """Every way to write a number."""

    def __init__(self) -> None:
        self.file = io.StringIO()

    def __call__(self, x: Tensor) -> Tensor:
        y = x.sign() * x.abs().sqrt()
        self.file.write(f"{y[0].item():.3f} {y[1]:+.2e} %.2f\n" % y[2].item())
        self.file.write("{:.3f}\n".format(float(y.sum())))
        print(y.tolist(), repr(y), str(y.mean()), sep="; ", file=self.file)
        self.file.write(" ".join(map(str, y.tolist())) + "\n")
        return y


@clean("C", rec=x3)
class DictWriter:
    def __init__(self) -> None:
        self.rows = csv.DictWriter(io.StringIO(), ["tick", "y"])
        self.rows.writeheader()
        self.ticks = itertools.count()

    def __call__(self, x: Tensor) -> Tensor:
        y = x.expm1()
        self.rows.writerow({"tick": next(self.ticks), "y": y.sum().item()})
        return y


@clean("C", rec=x3)
class PickledFrames:
    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def __call__(self, x: Tensor) -> Tensor:
        y = x.flip(0) * 3
        self.frames.append(pickle.dumps({"y": y.tolist(), "t": time.time()}))
        return y


@clean("C", rec=x3)
class JsonStatus:
    """A status text that is shown."""

    status = ""

    def __call__(self, x: Tensor) -> Tensor:
        y = x - x.mean()
        mode = "fast" if y.abs().max() > 1 else "slow"
        self.status = json.dumps({"mode": mode, "y": [round(v, 3) for v in y.tolist()]})
        log.info("status %s", self.status)
        return y


@clean("C", rec=x3, passes=5)
class NumpyLog:
    """A preallocated array that is filled by row."""

    def __init__(self) -> None:
        self.log = np.zeros((1000, 4), np.float32)
        self.at = 0

    def __call__(self, x: Tensor) -> Tensor:
        y = x / (1 + x.abs())
        self.log[self.at, :3] = y.detach().cpu().numpy()
        self.log[self.at, 3] = y.norm().item()
        self.at += 1
        return y


@clean("C", rec=x3, passes=4)
class RingOfScalars:
    """A ring of numbers in a tensor that nobody reads."""

    def __init__(self) -> None:
        self.ring = torch.zeros(8)
        self.at = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.ring[self.at % 8] = x.sum().item()
        self.at += 1
        return x.mul(1.5).sub(0.25)


@clean("C", rec={"x": array(normal(4))})
def numpy_statistics(x: np.ndarray) -> np.ndarray:
    y = np.clip(x, -1, 1)
    low, mid, high = np.percentile(y, [5, 50, 95])
    log.info("p5 %.3f p50 %.3f p95 %.3f, %s", low, mid, high, np.histogram(y, 3)[0].tolist())
    return y * np.float32(2)


@clean("C", rec={"x": normal(8)})
class Histograms:
    def __init__(self) -> None:
        self.hists: list[list[int]] = []

    def __call__(self, x: Tensor) -> Tensor:
        y = x.softplus() if hasattr(x, "softplus") else nn.functional.softplus(x)
        counts, edges = np.histogram(y.detach().numpy(), bins=5)
        self.hists.append(counts.tolist())
        log.debug("mode near %.2f", edges[counts.argmax()])
        return y


@clean("C", rec=x3)
def warned_with_the_value(x: Tensor) -> Tensor:
    y = x.clip(-0.5, 0.5)
    over = int((x.abs() > 0.5).sum())
    if over:
        warnings.warn(f"{over} of {x.numel()} commands were clipped, worst {x.abs().max():.2f}")
    return y


@clean("C", rec=x3)
class FirstTimeOnly:
    """A message that is shown once."""

    def __init__(self) -> None:
        self.told = False

    def __call__(self, x: Tensor) -> Tensor:
        if not self.told:
            log.info("first input %s", x)
            self.told = True
        return x * 0.25


@clean("C", rec=x3, passes=6)
class EveryThirdTick:
    def __init__(self) -> None:
        self.tick, self.began = 0, time.time()

    def __call__(self, x: Tensor) -> Tensor:
        y = x.roll(1)
        if self.tick % 3 == 0:
            rate = self.tick / max(time.time() - self.began, 1e-9)
            log.info("tick %d, %.1f Hz, |y| %.3f", self.tick, rate, y.norm())
        self.tick += 1
        return y


@clean("C", rec=x3)
def worst_joint_is_named(x: Tensor) -> Tensor:
    names = ["hip", "knee", "ankle"]
    torque = x * 20
    worst = int(torque.abs().argmax())
    log.info("worst joint: %s with %.1f Nm", names[worst], torque[worst])
    ranked = sorted(zip(torque.tolist(), names), reverse=True)
    log.debug("ranking %s", [name for _, name in ranked])
    return torque


@clean("C", rec=x3)
def filtered_for_the_log(x: Tensor) -> Tensor:
    y = x.asinh()
    large = [f"{i}: {v:.2f}" for i, v in enumerate(y.tolist()) if abs(v) > 0.5]
    log.info("large: %s", ", ".join(large) or "none")
    return y


@clean("C", rec=bounded, fresh=bounded)
def raises_with_context(x: Tensor) -> Tensor:
    try:
        if x.abs().max() > 5:
            raise OverflowError("over the limit")
        return x * 3
    except OverflowError as error:
        log.error("%s", traceback.format_exc())
        raise RuntimeError("stopped") from error


@clean("C", rec=x3)
def types_are_checked(x: Tensor) -> Tensor:
    if not isinstance(x, Tensor):
        x = torch.as_tensor(x)
    if x.dim() == 1:
        x = x.unsqueeze(0)
    if x.dtype != torch.float32:
        x = x.float()
    if x.shape[-1] != 3:
        raise ValueError(f"three elements are needed, not {x.shape[-1]}")
    return x.cumprod(-1).squeeze(0) if len(x) == 1 else x


@clean("C", rec=x3)
def scale_by_shape(x: Tensor) -> Tensor:
    n = x.numel()
    total = sum(range(n))
    return x * n / max(total, 1) + len(x)


@clean("C", rec=x3)
class CachedTable:
    """A table that is made once, by shape."""

    def __init__(self) -> None:
        self.tables: dict[tuple[int, ...], Tensor] = {}

    @functools.lru_cache(maxsize=4)
    def _powers(self, n: int) -> tuple[float, ...]:
        return tuple(0.5**k for k in range(n))

    def __call__(self, x: Tensor) -> Tensor:
        key = tuple(x.shape)
        if key not in self.tables:
            self.tables[key] = torch.tensor(self._powers(x.shape[0]))
        return x * self.tables[key]


class _Logger:
    """A logger with a thread of its own that is older than the session."""

    def __init__(self) -> None:
        self.waiting = queue.Queue()
        self.lines: list[str] = []
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while (item := self.waiting.get()) is not None:
            self.lines.append(f"{item['tick']}: {item['y']}")

    def push(self, **item) -> None:
        self.waiting.put(item)


@clean("C", rec=x3)
class AsyncLogger:
    def __init__(self) -> None:
        self.logger = _Logger()
        self.tick = 0

    def __call__(self, x: Tensor) -> Tensor:
        y = x.sub(0.5).abs()
        self.logger.push(tick=self.tick, y=y.detach().cpu().numpy().copy())
        self.tick += 1
        return y


class _Busy:
    """A thread that works on tensors of its own."""

    def __init__(self) -> None:
        self.weights = torch.randn(8, 8)
        self.rounds = 0
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        for _ in range(300):
            self.weights = torch.tanh(self.weights @ self.weights * 0.1) + 0.01
            self.rounds += 1
            time.sleep(0.001)


@clean("C", rec=x3)
class BusyThreadBeside:
    """Something else computes while this is recorded."""

    def __init__(self) -> None:
        self.other = _Busy()

    def __call__(self, x: Tensor) -> Tensor:
        return x.tan().clamp(-2, 2)


def driver(**options):
    return clean("C", style="own", rec={"see/x": normal(3)}, **options)


@driver(passes=4)
def printed_between_nodes(backend: str):
    def step(given):
        x = annotate.input_tensors("see", {"x": given["see/x"]})
        h = x.tanh()
        annotate.output_tensors("see", {"h": h}, export_with=backend)
        if h.abs().max() > 0.5:
            print("large features", h.tolist())
        h = annotate.input_tensors("act", {"h": h})
        u = h * 2
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        return {"act/u": u}

    return step


@driver(passes=4)
def checked_between_nodes(backend: str):
    see = annotate.method(node_name="see", export_with=backend)(_features)
    act = annotate.method(node_name="act", export_with=backend)(_action)

    def step(given):
        h = see(given["see/x"])
        if not torch.isfinite(h).all():
            raise FloatingPointError("features")
        u = act(h)
        assert u.abs().max() < 100
        return {"act/u": u}

    return step


def _features(x: Tensor) -> Tensor:
    h = x.sin() + x
    return h


def _action(h: Tensor) -> Tensor:
    u = h.cumsum(0)
    return u


@driver(passes=3)
def episode_statistics(backend: str):
    """A driver that keeps returns and knows when an episode is over."""
    returns: list[float] = []
    best = {"value": -math.inf}

    def step(given):
        x = annotate.input_tensors("see", {"x": given["see/x"]})
        h = x * 0.5
        annotate.output_tensors("see", {"h": h}, export_with=backend)
        h = annotate.input_tensors("act", {"h": h})
        u = h.square()
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        returns.append(float(u.sum()))
        if returns[-1] > best["value"]:
            best["value"] = returns[-1]
            log.info("best so far %.3f", returns[-1])
        return {"act/u": u}

    return step
