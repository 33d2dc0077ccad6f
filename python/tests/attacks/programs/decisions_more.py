"""More decisions on data, in the ways in which people hide them without meaning to."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import enum
import functools
import heapq
import itertools
import logging
import math
import operator
import string
import threading
import warnings

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, fixed, integers, normal, row, uniform
from attacks.registry import hostile

log = logging.getLogger("attacks.programs")
low, high = uniform(0.1, 0.9, 3), uniform(-3.0, 3.0, 3)


def decides(**options):
    return hostile("C", rec={"x": low}, fresh={"x": high}, **options)


def two_nodes(**options):
    """Two nodes in a driver that the program writes itself."""
    return hostile(
        "C", style="own", rec={"see/x": low}, fresh={"see/x": uniform(-1, 4, 3)}, **options
    )


# Guards and exceptions


@decides(passes=3)
def guard_logs_and_falls_back(x: Tensor) -> Tensor:
    y = x * 2
    try:
        torch.testing.assert_close(x, x.clamp(0, 1))
    except AssertionError as problem:
        log.warning("clamped: %s", problem)
        y = x.clamp(0, 1) * 2
    return y


@decides()
def else_of_a_try(x: Tensor) -> Tensor:
    try:
        math.log(x.min().item())
    except ValueError:
        y = x * 0.0
    else:
        y = x.abs().log()
    return y


@decides(passes=4)
def finally_with_a_flag(x: Tensor) -> Tensor:
    fine = False
    try:
        if (x < 0).any():
            raise ArithmeticError
        fine = True
    except ArithmeticError:
        pass
    finally:
        scale = 1.0 if fine else -1.0
    return x * scale


class _Limited:
    """A context manager that swallows what is raised in it."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace) -> bool:
        return kind is ValueError


@decides()
def swallowed_by_a_context(x: Tensor) -> Tensor:
    y = x + 1
    with _Limited():
        if x.max() > 1.0:
            raise ValueError("too fast")
        y = y * 3
    return y


@contextlib.contextmanager
def _falling_back():
    try:
        yield
    except RuntimeError:
        log.info("falling back")


@decides(passes=3)
def swallowed_by_a_generator(x: Tensor) -> Tensor:
    y = x.neg()
    with _falling_back():
        if not bool((x > 0).all()):
            raise RuntimeError("negative")
        y = x.exp()
    return y


@hostile("C", backends="jit", rec={"k": fixed([1, 0])}, fresh={"k": integers(0, 5, 2)})
def index_error_is_caught(k: Tensor) -> Tensor:
    table = [0.5, 1.5]
    try:
        gain = table[k[0]]
    except IndexError:
        gain = 9.0
    return k.float() * gain


@hostile("C", rec={"k": fixed([1])}, fresh={"k": integers(0, 4, 1)})
def key_error_is_caught(k: Tensor) -> Tensor:
    try:
        gain = {1: 2.0}[k.item()]
    except KeyError:
        gain = -1.0
    return k.float() * gain


@decides(passes=3)
def division_by_zero(x: Tensor) -> Tensor:
    try:
        scale = 1 / max(0.0, x.min().item())
    except ZeroDivisionError:
        scale = 100.0
    return x * min(scale, 1.0)


# Python's own machinery


@functools.lru_cache(maxsize=32)
def _gain(step: int) -> float:
    return 1.0 if step < 1 else 0.1


@decides()
def cached_function(x: Tensor) -> Tensor:
    return x * _gain(int(x.abs().max()))


@decides(passes=3)
def partial_with_a_value(x: Tensor) -> Tensor:
    clip = functools.partial(torch.clamp, max=max(1.0, x.max().item()))
    return clip(x) * 0.5 + (0.0 if x.max() < 1 else 1.0)


def _retrying(function):
    @functools.wraps(function)
    def inner(x: Tensor) -> Tensor:
        y = function(x)
        return y if torch.isfinite(y).all() else torch.zeros_like(y)

    return inner


@decides()
@_retrying
def decorated_with_a_fallback(x: Tensor) -> Tensor:
    return x.log()


def _positives(x: Tensor):
    for value in x:
        if value > 0:
            yield value


@decides()
def generator_that_filters(x: Tensor) -> Tensor:
    return sum(_positives(x), torch.zeros(()))


class _Reading:
    """A property that looks."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    @property
    def is_safe(self) -> bool:
        return self.x.abs().max().item() < 1.0


@decides(passes=4)
def property_that_looks(x: Tensor) -> Tensor:
    return x * 2 if _Reading(x).is_safe else x * 0


class _Forwarding:
    def __init__(self, inner) -> None:
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


@decides()
def through_getattr(x: Tensor) -> Tensor:
    return x - 1 if _Forwarding(_Reading(x)).is_safe else x + 1


@dataclasses.dataclass
class _State:
    x: Tensor
    fast: bool = False

    def __post_init__(self) -> None:
        self.fast = bool(self.x.norm() > 1.7)


@decides(passes=3)
def dataclass_looks_after_init(x: Tensor) -> Tensor:
    return x * (0.2 if _State(x).fast else 1.0)


class _Gait(enum.IntEnum):
    WALK = 0
    TROT = 1
    PACE = 2


@hostile("C", rec={"k": fixed([1.0])}, fresh={"k": row([0.0], [2.0], [1.0])})
def enum_of_a_value(k: Tensor) -> Tensor:
    gait = _Gait(int(k))
    return k * {_Gait.WALK: 0.5, _Gait.TROT: 1.0, _Gait.PACE: 2.0}[gait]


@hostile("C", rec={"x": fixed([0.2, 0.7, 0.5])}, fresh={"x": uniform(0, 1, 3)})
def heap_of_values(x: Tensor) -> Tensor:
    heap = [(v.item(), i) for i, v in enumerate(x)]
    heapq.heapify(heap)
    return x[heapq.heappop(heap)[1]] * 4 + x


@decides()
def takewhile(x: Tensor) -> Tensor:
    kept = list(itertools.takewhile(lambda v: v > 0, x))
    return x * len(kept)


@decides(passes=3)
def counter_of_signs(x: Tensor) -> Tensor:
    signs = collections.Counter("pos" if v > 0 else "neg" for v in x.tolist())
    return x / signs["pos"] if signs["pos"] else x


@decides()
def reduce_by_operator(x: Tensor) -> Tensor:
    positive = functools.reduce(operator.and_, (v > 0 for v in x))
    return x.exp() if positive else -x


@decides(passes=3)
def match_with_a_guard(x: Tensor) -> Tensor:
    match x.tolist():
        case [a, _, _] if a < 0:
            return x * -1
        case [_, b, c] if b + c > 2:
            return x * 5
        case _:
            return x * 1.0


@decides()
def text_template(x: Tensor) -> Tensor:
    text = string.Template("$v").substitute(v=round(x[0].item(), 1))
    return x if not text.startswith("-") else x.abs()


@decides(passes=5)
def sorted_by_attribute(x: Tensor) -> Tensor:
    legs = [_Reading(v.reshape(1)) for v in x]
    best = max(legs, key=lambda leg: leg.x.item())
    return best.x - x.mean() + 0 * x


@decides()
def slice_object(x: Tensor) -> Tensor:
    end = slice(0, 1 + int((x > 0).sum()) % 3)
    return x[end].sum() + x


@decides(passes=3)
def dict_comprehension(x: Tensor) -> Tensor:
    over = {i: v for i, v in enumerate(x.unbind()) if v > 1}
    return x - sum(over.values(), torch.zeros(()))


@decides()
def nested_walrus_in_any(x: Tensor) -> Tensor:
    if any((bad := v) < 0 for v in x):
        return x - bad
    return x * 1.0


@decides(passes=3)
def loop_with_else(x: Tensor) -> Tensor:
    for v in x:
        if v < 0:
            y = x * 0
            break
    else:
        y = x * 2
    return y


@decides()
def chained_comparison(x: Tensor) -> Tensor:
    return x if 0 < x[0] < 1 and -1 < x[1] else torch.full_like(x, 7.0)


@decides()
def assert_message_has_the_value(x: Tensor) -> Tensor:
    try:
        assert x[0] > 0, float(x[0])
    except AssertionError as error:
        return x + error.args[0]
    return x


@decides()
def nan_is_replaced(x: Tensor) -> Tensor:
    y = x.sqrt()
    if y.isnan().any():
        log.error("NaN in the output")
        y = torch.nan_to_num(y, nan=3.0)
    return y


class _Meter:
    """Looks like a logger; its answer is used."""

    def __init__(self) -> None:
        self.tripped = False

    def warning(self, value: float) -> None:
        if value > 1.0:
            self.tripped = True

    def write(self, value: float) -> float:
        return min(value, 1.0)


@decides()
class LoggerThatTrips:
    def __init__(self) -> None:
        self.meter = _Meter()

    def __call__(self, x: Tensor) -> Tensor:
        self.meter.warning(x.max().item())
        return x * 0.0 if self.meter.tripped else x


@decides(passes=3)
class LoggerInADict:
    def __init__(self) -> None:
        self.parts = {"meter": _Meter()}

    def __call__(self, x: Tensor) -> Tensor:
        meter = self.parts["meter"]
        meter.warning(x.max().item())
        return x - 1 if meter.tripped else x


@decides()
class WriterThatAnswers:
    def __init__(self) -> None:
        self.meters = [_Meter()]

    def __call__(self, x: Tensor) -> Tensor:
        return x / self.meters[0].write(x.abs().max().item())


@decides(passes=4)
class MetricsThatAreRead:
    """Metrics that a second method looks at."""

    def __init__(self) -> None:
        self.history = collections.deque(maxlen=1)

    def _cautious(self) -> bool:
        return bool(self.history) and self.history[-1] > 1.2

    def __call__(self, x: Tensor) -> Tensor:
        self.history.append(x.norm().item() / 2)
        return x * (0.3 if self._cautious() else 1.0)


@decides()
def warning_as_error(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            if x.min() < 0:
                warnings.warn("negative", stacklevel=1)
            y = x * 2
        except UserWarning:
            y = x * 0.5
    return y


class _Recent(logging.Handler):
    """A handler that keeps the last message."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()


@decides()
class ReadsItsOwnLog:
    def __init__(self) -> None:
        self.recent = _Recent()
        self.log = logging.Logger("own")
        self.log.addHandler(self.recent)

    def __call__(self, x: Tensor) -> Tensor:
        self.log.warning("%.3f", x.min().item())
        return x if not self.recent.last.startswith("-") else -x


# Readers that nobody listens to


@decides(passes=3)
def pool_of_threads(x: Tensor) -> Tensor:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        fast = pool.submit(lambda: bool(x.max() > 1.0)).result()
    return x * 0.1 if fast else x


class _Watchdog:
    """A thread that is older than the session and looks at an attribute."""

    def __init__(self) -> None:
        self.latest = None
        self.stop = False
        self.ready, self.done = threading.Event(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while self.ready.wait(60):
            self.ready.clear()
            self.stop = float(abs(self.latest).max()) > 1.0
            self.done.set()

    def look(self, x) -> bool:
        self.latest = x
        self.done.clear()
        self.ready.set()
        self.done.wait(5)
        return self.stop


@decides(passes=3)
class WatchdogOnAnAttribute:
    def __init__(self) -> None:
        self.watchdog = _Watchdog()

    def __call__(self, x: Tensor) -> Tensor:
        return x * 0.0 if self.watchdog.look(x) else x * 2.0


@hostile("C", rec={"x": array(low)}, fresh={"x": array(high)})
class WatchdogOnAnArray:
    def __init__(self) -> None:
        self.watchdog = _Watchdog()

    def __call__(self, x: np.ndarray) -> np.ndarray:
        np.copyto(box := np.empty(3, np.float32), x)
        return x * np.float32(0) if self.watchdog.look(box) else x * np.float32(2)


@hostile("C", rec={"x": array(low)}, fresh={"x": array(high)})
def histogram_decides(x: np.ndarray) -> np.ndarray:
    counts, _ = np.histogram(x, bins=2, range=(-3, 3))
    return x * np.float32(2) if counts[0] == 0 else x


@hostile("C", rec={"x": array(low)}, fresh={"x": array(high)})
def histogram_in_the_output(x: np.ndarray) -> np.ndarray:
    counts, _ = np.histogram(x, bins=3, range=(-3, 3))
    return x + counts.astype(np.float32)


@hostile("C", rec={"x": array(low)}, fresh={"x": array(high)})
def length_of_a_set_operation(x: np.ndarray) -> np.ndarray:
    common = np.intersect1d(np.floor(x), np.array([0.0, 1.0], np.float32))
    return x * np.float32(len(common))


@decides()
def dlpack_protocol(x: Tensor) -> Tensor:
    seen = np.from_dlpack(x.detach())
    return x * 2 if seen[0] > 0 else x * 3


# Nodes that data skips


@two_nodes()
def skipped_by_a_number_of_the_node(backend: str):
    def step(given):
        x = annotate.input_tensors("see", {"x": given["see/x"]})
        score = x.sum() * 0.5
        ready = score.item() < 1.5
        annotate.output_tensors("see", {"score": score}, export_with=backend)
        u = torch.zeros(1)
        if ready:
            score = annotate.input_tensors("act", {"score": score})
            u = score.reshape(1) * 2
            annotate.output_tensors("act", {"u": u}, export_with=backend)
        return {"act/u": u}

    return step


@two_nodes(passes=3)
def skipped_in_a_helper(backend: str):
    see = annotate.method(node_name="see", export_with=backend)(_score)
    act = annotate.method(node_name="act", export_with=backend)(_doubled)

    def worth_it(score: Tensor) -> bool:
        return float(score) < 1.5

    def step(given):
        score = see(given["see/x"])
        return {"act/u": act(score) if worth_it(score) else torch.zeros(1)}

    return step


def _score(x: Tensor) -> Tensor:
    score = x.sum() * 0.5
    return score


def _doubled(score: Tensor) -> Tensor:
    u = score.reshape(1) * 2
    return u


@two_nodes()
def skipped_by_an_exception(backend: str):
    def step(given):
        u = torch.zeros(1)
        try:
            x = annotate.input_tensors("see", {"x": given["see/x"]})
            score = x.sum() * 0.5
            annotate.output_tensors("see", {"score": score}, export_with=backend)
            if score > 1.5:
                raise OverflowError
            score = annotate.input_tensors("act", {"score": score})
            u = score.reshape(1) * 2
            annotate.output_tensors("act", {"u": u}, export_with=backend)
        except OverflowError:
            pass
        return {"act/u": u}

    return step


@two_nodes(passes=3)
def repeated_until_it_is_good(backend: str):
    """A refinement that runs once while recorded, and more often later."""

    def step(given):
        x = annotate.input_tensors("see", {"x": given["see/x"]})
        u = x.abs().sum().reshape(1)
        annotate.output_tensors("see", {"u0": u}, export_with=backend)
        while True:
            u = annotate.input_tensors("act", {"u0": u})
            u = u * 0.5
            annotate.output_tensors("act", {"u": u}, export_with=backend)
            if u < 2.0:
                return {"act/u": u}

    return step


@decides(passes=3)
class ThresholdFromCalibration(nn.Module):
    """A module that picks its branch by a number it looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.soft, self.hard = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        heads = {False: self.soft, True: self.hard}
        return heads[(x.abs() > 1).any().item()](x)


@hostile("C", rec={"x": normal(2, 3, s=0.1)}, fresh={"x": normal(2, 3, s=2.0)})
def rows_that_are_kept(x: Tensor) -> Tensor:
    rows = [row for row in x if row.norm() < 1]
    return torch.stack(rows).mean(0) if len(rows) == 2 else x.sum(0)
