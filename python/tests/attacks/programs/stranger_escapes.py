"""Tensors that turn into numbers without a word, threads, callbacks, exceptions, hidden state."""

from __future__ import annotations

import _thread
import contextvars
import functools
import itertools
import math
import multiprocessing.dummy
import os
import re
import sqlite3
import subprocess
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Normal

from attacks.draws import array, either, fixed, integers, normal, row, uniform
from attacks.registry import hostile

calm = {"x": uniform(-1.0, 1.0, 4)}
rough = {"x": normal(4, s=4.0)}


def knob(value: float):
    """A knob that nobody turned while it was recorded."""
    return {"x": normal(4), "k": fixed(value)}


turned = {"k": lambda tick, gen: torch.tensor(float(tick % 5) + 0.5)}
counted = {"k": lambda tick, gen: torch.tensor(tick % 4 + 1)}


# Tensors as arguments where an operator wants a number.


@hostile("C", rec=knob(1.0), fresh=turned, backends=("jit", "onnx", "pt2"))
def alpha_is_a_tensor(x: Tensor, k: Tensor) -> Tensor:
    return torch.add(x, torch.ones(4), alpha=k)


@hostile("C", rec=knob(1.0), fresh=turned)
def beta_of_addmm(x: Tensor, k: Tensor) -> Tensor:
    return torch.addmv(x, torch.eye(4), x, beta=k, alpha=2)


@hostile("C", rec=knob(1.0), fresh=turned)
def slope_is_a_tensor(x: Tensor, k: Tensor) -> Tensor:
    return F.leaky_relu(x, k)


@hostile("C", rec=knob(1.0), fresh=turned)
def limits_are_tensors(x: Tensor, k: Tensor) -> Tensor:
    return F.hardtanh(x, -k, k)


@hostile("C", rec=knob(1.0), fresh=turned)
def filled_with_a_tensor(x: Tensor, k: Tensor) -> Tensor:
    return x + torch.full((4,), k) + torch.full_like(x, k)


@hostile("C", rec=knob(1.0), fresh=turned)
def tensor_of_tensors(x: Tensor, k: Tensor) -> Tensor:
    return x * torch.tensor([k, 2 * k, k, 1.0])


@hostile("C", rec=knob(1.0), fresh=turned)
def old_constructor(x: Tensor, k: Tensor) -> Tensor:
    return x * torch.Tensor([k, k, 1.0, 1.0])


@hostile("C", rec=knob(1.0), fresh=turned)
def array_of_tensors(x: Tensor, k: Tensor) -> Tensor:
    return x * torch.from_numpy(np.array([k, k, 1.0, 2.0], dtype=np.float32))


@hostile("C", rec=knob(2), fresh=counted, backends=("jit", "onnx", "pt2"))
def window_by_tensor(x: Tensor, k: Tensor) -> Tensor:
    return x[:k].sum() * x


@hostile("C", rec=knob(2), fresh=counted)
def rolled_by_tensor(x: Tensor, k: Tensor) -> Tensor:
    return torch.roll(x, k)


@hostile("C", rec=knob(2), fresh=counted)
def range_of_tensor(x: Tensor, k: Tensor) -> Tensor:
    return x * torch.arange(0, k).sum()


@hostile("C", rec=knob(1), fresh={"k": lambda tick, gen: torch.tensor(tick % 3)})
def narrowed(x: Tensor, k: Tensor) -> Tensor:
    return torch.narrow(x, 0, k, 2)


@hostile("C", rec=knob(1), fresh=counted)
def triangle_by_tensor(x: Tensor, k: Tensor) -> Tensor:
    return torch.tril(torch.outer(x, x), diagonal=k)


@hostile("C", rec=knob(2), fresh=counted)
def padded_by_tensor(x: Tensor, k: Tensor) -> Tensor:
    return F.pad(x, (k, 0))[:4]


@hostile("C", rec=knob(1), fresh=counted)
def correction_by_tensor(x: Tensor, k: Tensor) -> Tensor:
    return x.var(correction=k - 1).expand(2)


@hostile("C", rec=knob(1.0), fresh=turned)
def beta_of_softplus(x: Tensor, k: Tensor) -> Tensor:
    return F.softplus(x, beta=k)


@hostile("C", rec=knob(1.0), fresh=turned)
def stored_into_numpy(x: Tensor, k: Tensor) -> Tensor:
    weights = np.ones(4, np.float32)
    weights[2] = k
    return x @ torch.from_numpy(weights).expand(4).clone() * torch.ones(2)


@hostile(
    "C",
    rec={"x": normal(4), "n": fixed([1, 1, 1, 1])},
    fresh={"n": row([2, 0, 1, 1], [0, 0, 0, 4])},
)
def repeated_by_counts(x: Tensor, n: Tensor) -> Tensor:
    return torch.repeat_interleave(x, n)


@hostile("C", rec={"x": normal(4), "n": fixed([1, 3])}, fresh={"n": row([2, 2], [3, 1])})
def split_by_counts(x: Tensor, n: Tensor) -> Tensor:
    a, b = x.split(n.tolist())
    return torch.stack([a.mean(), b.mean()])


# Other threads and other processes.


@hostile("C", rec=calm, fresh=rough)
class PoolFromBefore:
    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.pool.submit(int).result()

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.pool.submit(self.gain, x).result()

    @staticmethod
    def gain(x: Tensor) -> float:
        return 1.0 if x.abs().max() < 2 else 0.1


@hostile("C", rec=calm, fresh=rough)
def thread_of_its_own(x: Tensor) -> Tensor:
    result: list[float] = []

    def work() -> None:
        result.append(0.5 if float(x[0]) > 1.5 else 1.0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return x * result[0]


@hostile("C", rec=calm, fresh=rough)
def bare_thread(x: Tensor) -> Tensor:
    done, said = threading.Event(), {}

    def work(value: Tensor) -> None:
        said["ok"] = bool((value.abs() < 2).all())
        done.set()

    _thread.start_new_thread(work, (x,))
    done.wait()
    return x if said["ok"] else torch.zeros_like(x)


@hostile("C", rec=calm, fresh=rough)
def pool_map(x: Tensor) -> Tensor:
    with multiprocessing.dummy.Pool(2) as pool:
        kept = pool.map(lambda v: v if v < 1.5 else v * 0.0, list(x))
    return torch.stack(kept)


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4.0))})
def array_in_a_pool(x: np.ndarray) -> np.ndarray:
    with ThreadPoolExecutor(1) as pool:
        worst = pool.submit(lambda: np.abs(x).max() > 2).result()
    return x * np.float32(0.5) if worst else x


@hostile("C", rec=calm, fresh=rough, ticks=4)
def other_process(x: Tensor) -> Tensor:
    code = (
        "import sys, array; a = array.array('f', sys.stdin.buffer.read()); print(int(max(a) > 1.5))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], input=x.numpy().tobytes(), capture_output=True, check=True
    )
    return -x if int(said.stdout) else x


@hostile("C", rec=calm, fresh=rough)
def called_by_sqlite(x: Tensor) -> Tensor:
    base = sqlite3.connect(":memory:")
    base.create_function("peak", 0, lambda: float(x.max()))
    (peak,) = base.execute("select min(peak(), 1.5)").fetchone()
    return x.clamp(max=peak)


@hostile("C", rec=calm, fresh=rough)
def called_by_re(x: Tensor) -> Tensor:
    text = re.sub(r"[01]", lambda m: "1" if x[int(m.group())] > 1.5 else "0", "01")
    return x * (1 + int(text, 2))


@hostile("C", rec=calm, fresh=rough)
def ordered_by_comparison(x: Tensor) -> Tensor:
    order = sorted(range(4), key=functools.cmp_to_key(lambda a, b: int(torch.sign(x[a] - x[b]))))
    return x[order]


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4.0))})
def from_iterator(x: np.ndarray) -> np.ndarray:
    return np.fromiter((v if v < 1.5 else 0.0 for v in x), np.float32, 4) + x


@hostile("C", rec={"x": array(uniform(-1, 1, 3, 4))}, fresh={"x": array(normal(3, 4, s=4.0))})
def applied_along_axis(x: np.ndarray) -> np.ndarray:
    return np.apply_along_axis(lambda r: r / r.max() if r.max() > 1.5 else r, 1, x)


# Exceptions that data raises.


@hostile("C", rec={"x": uniform(0.1, 1.0, 3)}, fresh={"x": normal(3)})
def distribution_that_checks(x: Tensor) -> Tensor:
    try:
        return Normal(torch.zeros(3), x).log_prob(torch.ones(3))
    except ValueError:
        return torch.zeros(3)


@hostile("C", rec={"i": integers(0, 3, 2)}, fresh={"i": integers(0, 6, 2)})
class UnknownWord(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(3, 4)

    def forward(self, i: Tensor) -> Tensor:
        try:
            return self.words(i)
        except IndexError:
            return torch.zeros(2, 4)


@hostile("C", rec={"i": integers(0, 3, 2), "x": normal(2, 3)}, fresh={"i": integers(0, 6, 2)})
def one_hot_or_nothing(i: Tensor, x: Tensor) -> Tensor:
    try:
        hot = F.one_hot(i, 3)
    except RuntimeError:
        hot = torch.zeros(2, 3, dtype=torch.long)
    return x * hot


@hostile("C", rec={"x": array(uniform(0.1, 1, 3))}, fresh={"x": array(normal(3))})
def strange_warning_as_error(x: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.sqrt(x)
        except RuntimeWarning:
            return np.zeros_like(x)


@hostile("C", rec={"x": array(uniform(0.1, 1, 3))}, fresh={"x": array(normal(3))})
def warning_counted(x: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = np.log(x)
    return np.zeros_like(x) if seen else y


@hostile("C", rec={"x": array(uniform(0.1, 1, 3))}, fresh={"x": array(row([0.0, 1.0, 2.0]))})
def error_callback(x: np.ndarray) -> np.ndarray:
    seen: list[str] = []
    before = np.seterrcall(lambda kind, flag: seen.append(kind))
    with np.errstate(divide="call"):
        y = np.float32(1) / x
    np.seterrcall(before)
    return np.zeros_like(x) if seen else y


@hostile(
    "C",
    rec={"x": array(normal(3, 3))},
    fresh={"x": array(either(lambda t: t % 2 == 0, normal(3, 3), fixed(torch.ones(3, 3))))},
)
def numpy_singular(x: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return np.eye(3, dtype=np.float32)


@hostile("C", rec={"x": uniform(0.1, 1.0, 3)}, fresh={"x": normal(3)})
def domain_error(x: Tensor) -> Tensor:
    try:
        root = math.sqrt(x.min())
    except ValueError:
        return torch.zeros(3)
    return x if root > -1 else -x


@hostile("C", rec=calm, fresh=rough)
def asserted_close(x: Tensor) -> Tensor:
    try:
        torch.testing.assert_close(x, torch.zeros(4), atol=2.0, rtol=0.0)
    except AssertionError:
        return x * 0.0
    return x + 1


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4))})
def numpy_asserted(x: np.ndarray) -> np.ndarray:
    try:
        np.testing.assert_array_less(np.abs(x), 2.0)
    except AssertionError:
        return x * np.float32(0)
    return x


@hostile("C", rec={"x": row([1.0, 0.0, 2.0])}, fresh={"x": row([2.0, 1.0, 0.0], [1.0, 1.0, 1.0])})
def position_in_list(x: Tensor) -> Tensor:
    try:
        at = x.tolist().index(0.0)
    except ValueError:
        at = 2
    return x.cumsum(0)[at] * torch.ones(2)


# State where nobody looks, at rest while recorded.


@hostile("A", rec=calm, fresh=rough, passes=4)
class Coroutine:
    def __init__(self) -> None:
        self.run = self.controller()
        next(self.run)

    def __call__(self, x: Tensor) -> Tensor:
        return self.run.send(x)

    def controller(self):
        tripped = False
        y = None
        while True:
            x = yield y
            tripped = tripped or bool(x.abs().max() > 2)
            y = x * 0 if tripped else x * 2


_gain: contextvars.ContextVar[float] = contextvars.ContextVar("gain")


@hostile("A", rec=calm, fresh=rough)
class InContext:
    def __init__(self) -> None:
        _gain.set(1.0)

    def __call__(self, x: Tensor) -> Tensor:
        y = x * _gain.get()
        if x.norm() > 4:
            _gain.set(0.1)
        return y


@hostile("A", rec=calm, fresh=rough)
class InEnvironment:
    def __init__(self) -> None:
        os.environ["STRANGER_MODE"] = "walk"

    def __call__(self, x: Tensor) -> Tensor:
        if x[0] > 3:
            os.environ["STRANGER_MODE"] = "fall"
        return x if os.environ["STRANGER_MODE"] == "walk" else -x


@hostile("A", rec=calm, fresh=rough, ticks=16)
class Schedule:
    """The schedule is flat while it is recorded."""

    def __init__(self) -> None:
        self.gains = itertools.chain([1.0] * 6, itertools.repeat(0.25))

    def __call__(self, x: Tensor) -> Tensor:
        return x * next(self.gains)


@hostile("A", rec=calm, fresh=rough)
class MutableDefault:
    def __call__(self, x: Tensor) -> Tensor:
        return self.limit(x)

    def __init__(self) -> None:
        def limit(x: Tensor, seen: list = []) -> Tensor:  # noqa: B006
            if x.max() > 3:
                seen.append(1)
            return x / (1 + len(seen))

        self.limit = limit


class _Shared:
    pass


@hostile("A", rec=calm, fresh=rough, passes=5)
class WeakTable:
    def __init__(self) -> None:
        self.key, self.table = _Shared(), weakref.WeakKeyDictionary()

    def __call__(self, x: Tensor) -> Tensor:
        before = self.table.get(self.key, torch.zeros(4))
        self.table[self.key] = torch.where(x.abs() > 2, x, before)
        return x + before


@hostile("A", rec=calm, fresh=rough, passes=5)
class LocalStorage:
    def __init__(self) -> None:
        self.mine = threading.local()
        self.mine.worst = torch.ones(())

    def __call__(self, x: Tensor) -> Tensor:
        self.mine.worst = torch.maximum(self.mine.worst, x.abs().max())
        return x / self.mine.worst


@hostile("A", rec={"x": normal(6, 3)}, passes=4)
class BatchNormInTraining(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"y": self.norm(x), "mean": self.norm.running_mean * 1.0}


@hostile("A", rec={"x": normal(3)}, passes=4, context="grad")
class LearnsOnline(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.optim = torch.optim.SGD(self.parameters(), lr=1e-4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        loss = (y - x).square().mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return y.detach()
