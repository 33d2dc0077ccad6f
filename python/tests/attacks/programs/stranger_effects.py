"""Decisions that only call something, and are felt later or elsewhere."""

from __future__ import annotations

import bisect
import collections
import enum
import logging
import queue
import threading
import types

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Categorical, MultivariateNormal

from attacks.draws import array, either, fixed, normal, row, uniform
from attacks.registry import hostile

calm = {"x": uniform(-1.0, 1.0, 4)}
rough = {"x": normal(4, s=4.0)}


class Limiter:
    def __init__(self) -> None:
        self.gain = 1.0

    def reduce(self) -> None:
        self.gain *= 0.5


@hostile("C", rec=calm, fresh=rough)
class CallsALimiter:
    def __init__(self) -> None:
        self.limiter = Limiter()

    def __call__(self, x: Tensor) -> Tensor:
        if x.norm() > 4:
            self.limiter.reduce()
        return x * self.limiter.gain


@hostile("C", rec=calm, fresh=rough)
class PutsIntoAQueue:
    def __init__(self) -> None:
        self.events: queue.SimpleQueue = queue.SimpleQueue()

    def __call__(self, x: Tensor) -> Tensor:
        if x.abs().max() > 3:
            self.events.put("overload")
        return x if self.events.empty() else torch.zeros_like(x)


@hostile("C", rec=calm, fresh=rough)
class AppendsAnEvent:
    """The list looks like a log, and its length is a gain."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def __call__(self, x: Tensor) -> Tensor:
        if x.max() > 3:
            self.log.append(f"max {x.max():.2f}")
        return x / (1 + len(self.log))


class Mode(enum.Enum):
    WALK = 1
    FALL = 2


@hostile("C", rec=calm, fresh=rough)
class StateMachine:
    def __init__(self) -> None:
        self.handlers = {Mode.WALK: self.walk, Mode.FALL: self.fall}
        self.mode = Mode.WALK

    def to(self, mode: Mode) -> None:
        self.mode = mode

    def walk(self, x: Tensor) -> Tensor:
        if x[0] > 3:
            self.to(Mode.FALL)
        return x

    def fall(self, x: Tensor) -> Tensor:
        return x * 0.0

    def __call__(self, x: Tensor) -> Tensor:
        return self.handlers[self.mode](x)


@hostile("C", rec=calm, fresh=rough)
class SetsAnEvent:
    def __init__(self) -> None:
        self.stop = threading.Event()

    def __call__(self, x: Tensor) -> Tensor:
        if (x.abs() > 4).any():
            self.stop.set()
        return torch.where(torch.tensor(self.stop.is_set()), torch.zeros(4), x)


@hostile("C", rec=calm, fresh=rough)
class SetsAttribute:
    def __init__(self) -> None:
        self.robot = types.SimpleNamespace(gain=1.0)

    def __call__(self, x: Tensor) -> Tensor:
        (x.sum() > 4) and setattr(self.robot, "gain", 0.0)
        return x * self.robot.gain


class Watchdog(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.tripped = False

    def emit(self, record: logging.LogRecord) -> None:
        self.tripped = True


@hostile("C", rec=calm, fresh=rough)
class LoggingStopsIt:
    """A handler of the log is the emergency stop."""

    def __init__(self) -> None:
        self.log, self.dog = logging.getLogger(f"stranger.{id(self)}"), Watchdog()
        self.log.addHandler(self.dog)
        self.log.propagate = False

    def __call__(self, x: Tensor) -> Tensor:
        if x.abs().max() > 3:
            self.log.warning("overload")
        return x * 0.0 if self.dog.tripped else x


@hostile("C", rec=calm, fresh=rough)
class CounterOfLabels:
    def __init__(self) -> None:
        self.counts: collections.Counter = collections.Counter()

    def __call__(self, x: Tensor) -> Tensor:
        self.counts["high" if x.mean() > 1 else "low"] += 1
        return x * (1.0 + self.counts["high"])


@hostile("C", rec=calm, fresh=rough)
class ReplacesAModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.spare = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        if y.abs().max() > 2:
            self.net = self.spare
        return y


@hostile("C", rec=calm, fresh=rough)
class FreezesItself(nn.Module):
    """Dropout layers are switched by what the network sees."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        self.norm.train(bool(x.std() > 3))
        return self.norm(torch.stack([x, 2 * x]))[0]


def checked(x: Tensor, limit: float) -> Tensor:
    if not (x.abs() < limit).all():
        raise OverflowError("too large")
    return x


def passes_on(x: Tensor) -> Tensor:
    return checked(x, 2.0) * 2.0


@hostile("C", rec=calm, fresh=rough)
def caught_two_frames_up(x: Tensor) -> Tensor:
    try:
        return passes_on(x)
    except OverflowError:
        return torch.zeros_like(x)


@hostile("C", rec=calm, fresh=rough)
class CaughtByAMiddleware:
    """A decorator makes every failure a stop."""

    @staticmethod
    def guarded(function):
        def inner(*args):
            try:
                return function(*args)
            except Exception:
                return torch.full((4,), -1.0)

        return inner

    def __init__(self) -> None:
        self.run = self.guarded(passes_on)

    def __call__(self, x: Tensor) -> Tensor:
        return self.run(x)


class _Stop:
    def __enter__(self) -> _Stop:
        self.failed = False
        return self

    def __exit__(self, kind, error, trace) -> bool:
        self.failed = kind is not None
        return True


@hostile("C", rec=calm, fresh=rough)
def strange_swallowed_by_a_context(x: Tensor) -> Tensor:
    with _Stop() as stop:
        assert torch.all(x.abs() < 2)
    return x * 0.5 if stop.failed else x


@hostile("C", rec=calm, fresh=rough)
def cleaned_up_in_finally(x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    try:
        checked(x, 2.0)
        y = x
    finally:
        return y  # noqa: B012


@hostile(
    "C",
    rec={"x": normal(3, 3)},
    fresh={"x": either(lambda t: t % 2 == 0, normal(3, 3), fixed(torch.zeros(3, 3)))},
)
def covariance_that_checks(x: Tensor) -> Tensor:
    try:
        return MultivariateNormal(torch.zeros(3), x @ x.T).log_prob(torch.ones(3)).expand(1)
    except ValueError:
        return torch.zeros(1)


@hostile("C", rec={"p": uniform(0.1, 1.0, 3)}, fresh={"p": normal(3)})
def probabilities_that_check(p: Tensor) -> Tensor:
    try:
        return Categorical(probs=p).logits
    except ValueError:
        return torch.zeros(3)


@hostile("C", rec={"i": fixed([0, 2]), "x": normal(3)}, fresh={"i": row([0, 5], [1, 2])})
def gathered_or_not(i: Tensor, x: Tensor) -> Tensor:
    try:
        return x[i]
    except IndexError:
        return torch.zeros(2)


@hostile("C", rec={"i": fixed([0, 2]), "x": normal(3)}, fresh={"i": row([0, 5], [1, 2])})
def selected_or_not(i: Tensor, x: Tensor) -> Tensor:
    try:
        return x.index_select(0, i) + torch.take(x, i) + x.gather(0, i)
    except (IndexError, RuntimeError):
        return torch.zeros(2)


@hostile(
    "C",
    rec={"i": array(fixed([0, 2])), "x": array(normal(3))},
    fresh={"i": array(row([0, 5], [1, 2]))},
)
def array_index_error(i: np.ndarray, x: np.ndarray) -> np.ndarray:
    try:
        return x[i]
    except IndexError:
        return np.zeros(2, np.float32)


@hostile("C", rec={"x": normal(4), "n": fixed(4)}, fresh={"n": row(3, 4)})
def reshaped_or_not(x: Tensor, n: Tensor) -> Tensor:
    try:
        return x.reshape(int(n)) * 2
    except RuntimeError:
        return x


@hostile(
    "C",
    rec={"a": normal(3, 3)},
    fresh={"a": either(lambda t: t % 2 == 0, normal(3, 3), fixed(torch.zeros(3, 3)))},
)
def regularised_on_failure(a: Tensor) -> Tensor:
    """Retries with more and more of the identity."""
    gram, eps = a @ a.T, 0.0
    while True:
        try:
            return torch.linalg.cholesky(gram + eps * torch.eye(3))
        except torch.linalg.LinAlgError:
            eps = max(10 * eps, 1e-3)


@hostile("C", rec={"x": uniform(0.0, 0.9, 3)}, fresh={"x": uniform(-1.0, 3.0, 3)})
def cross_entropy_of_labels(x: Tensor) -> Tensor:
    try:
        return F.nll_loss(torch.eye(3).log_softmax(-1), x.long(), reduction="none")
    except IndexError:
        return torch.zeros(3)


@hostile("C", rec={"x": row([1.0, 2.0, 4.0])}, fresh={"x": row([4.0, 2.0, 1.0], [2.0, 9.0, 3.0])})
def inserted_in_order(x: Tensor) -> Tensor:
    kept: list[Tensor] = []
    for v in x:
        bisect.insort(kept, v)
    return torch.stack(kept)


@hostile("C", rec={"x": row([1.0, 2.0, 4.0])}, fresh={"x": normal(3)})
def set_of_tensors(x: Tensor) -> Tensor:
    return x * len({round(v, 0) for v in x.tolist()})


@hostile("C", rec=calm, fresh=rough)
def first_that_fits(x: Tensor) -> Tensor:
    limit = next((v for v in (1.5, 3.0, 6.0) if x.abs().max() <= v), 9.0)
    return x / limit


@hostile("C", rec=calm, fresh=rough)
def filtered(x: Tensor) -> Tensor:
    kept = list(filter(lambda v: v < 1.5, x))
    return torch.stack(kept).sum().expand(1) if kept else torch.zeros(1)


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4))})
def nonzero_of_array(x: np.ndarray) -> np.ndarray:
    far = np.flatnonzero(np.abs(x) > 1.5)
    return x if far.size == 0 else x - x[far[0]]


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4))})
def counted_by_numpy(x: np.ndarray) -> np.ndarray:
    return x * np.float32(1 + np.count_nonzero(x > 1.5))


@hostile(
    "C",
    rec={"x": array(fixed([1.0, 0.0, 0.0]))},
    fresh={"x": array(row([0.0, 1.0, 0.0], [1.0, 1.0, 0.0]))},
)
def compared_arrays(x: np.ndarray) -> np.ndarray:
    return x + 1 if np.array_equal(x, [1, 0, 0]) else x - 1


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4))})
def text_of_array(x: np.ndarray) -> np.ndarray:
    return (
        -x if np.array2string(np.abs(x).max(), precision=0).startswith(("2", "3", "4", "5")) else x
    )


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4))})
def structured_array(x: np.ndarray) -> np.ndarray:
    message = np.zeros(1, dtype=[("head", "i4"), ("data", "f4", (4,))])
    message["data"] = x
    wire = message.tobytes()
    return np.frombuffer(wire[4:], "<f4").copy() * np.float32(0.5)


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4))})
def object_array(x: np.ndarray) -> np.ndarray:
    things = np.array([v for v in x], dtype=object)
    return np.array([max(t, 0.5) for t in things], dtype=np.float32)
