"""Code as robot policies are written, with values that reach Python.

A function with lines that end in `# told` must be told there, with one of its codes; one without
must be silent: the value is only observed.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import io
import json
import logging
import math
import pickle
import queue
import statistics
import sys
import threading
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from veracity.tracing import arrays

log = logging.getLogger(__name__)
log.setLevel(logging.CRITICAL)
Compute = Callable[[Tensor], Tensor]
TOLD: dict[str, tuple[Compute, tuple[str, ...]]] = {}
SILENT: dict[str, Compute] = {}
TABLE = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}


def told(*codes: str) -> Callable[[Compute], Compute]:
    """Register a function that must be told, VER0911 unless said otherwise."""

    def register(compute: Compute) -> Compute:
        TOLD[compute.__name__] = (compute, codes or ("VER0911",))
        return compute

    return register


def silent(compute: Compute) -> Compute:
    """Register a function about which nothing may be said."""
    SILENT[compute.__name__] = compute
    return compute


# ------------------------------------------------------------------------------ told: branches


@told()
def branch_of_values(x: Tensor) -> Tensor:
    if x.max() > 5:  # told
        return x * 2
    return x


@told()
def branch_that_assigns(x: Tensor) -> Tensor:
    gain = 1.0
    if x.sum().item() > 100:  # told
        gain = 0.5
    return x * gain


@told()
def branch_by_a_flag(x: Tensor) -> Tensor:
    moving = bool((x.abs() > 0.1).any())  # told
    scale = 2.0
    if not moving:
        scale = 0.0
    return x * scale


@told()
def ternary(x: Tensor) -> Tensor:
    return x * 2 if x.mean() > 10 else x  # told


@told()
def walrus(x: Tensor) -> Tensor:
    if (peak := x.max().item()) > 0.1:  # told
        x = x / peak
    return x


@told()
def two_statements_on_a_line(x: Tensor) -> Tensor:
    s = x.sum().item(); print(s); x = x * s  # fmt: skip  # noqa: E702  # told
    return x


@told()
def printed_and_used(x: Tensor) -> Tensor:
    norm = float(x.norm())  # told
    print("norm", norm)
    return x / norm


@told()
def boolean_operators(x: Tensor) -> Tensor:
    return ((x.sum() < 100) and x) * 1  # told


@told()
def early_return(x: Tensor) -> Tensor:
    if not torch.isfinite(x).all():  # told
        return torch.zeros_like(x)
    return x * 3


@told()
def early_return_of_a_helper(x: Tensor) -> Tensor:
    return _clean(x) * 3


def _clean(x: Tensor) -> Tensor:
    if torch.isnan(x).any():
        return torch.nan_to_num(x)
    return x


@told()
def match_on_a_mode(x: Tensor) -> Tensor:
    match int(x.argmax()):  # told
        case 99:
            return x * 2
        case _:
            return x


@told()
def negation(x: Tensor) -> Tensor:
    idle = not (x > 0).any()  # told
    return x * (1 - int(idle))


@told()
def chained_comparison(x: Tensor) -> Tensor:
    y = x
    if -100 < x.sum() < 100:  # told
        y = x + 1
    return y


@told()
def membership(x: Tensor) -> Tensor:
    return x * 2 if 7.0 in x else x  # told


@told()
def torch_equal(x: Tensor) -> Tensor:
    same = torch.equal(x, x.round())  # told
    return x * (2 if same else 1)


# ------------------------------------------------------------------------------ told: loops


@told()
def while_on_data(x: Tensor) -> Tensor:
    while x.norm() > 100:  # told
        x = x * 0.5
    return x


@told()
def range_of_data(x: Tensor) -> Tensor:
    for _ in range(int(x.sum())):  # told
        x = x + 0.1
    return x


@told()
def break_on_data(x: Tensor) -> Tensor:
    y = x
    for _ in range(5):
        if y.norm() > 1000:  # told
            break
        y = y * 1.1
    return y


@told()
def continue_on_data(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for row in x:
        if row < -100:  # told
            continue
        total = total + row
    return total.reshape(1)


@told()
def filter_of_a_comprehension(x: Tensor) -> Tensor:
    return torch.stack([v for v in x if v > -100])  # told


@told()
def any_over_tensors(x: Tensor) -> Tensor:
    return x * (2 if any(v > 50 for v in x) else 1)  # told


@told()
def largest_of_several(x: Tensor) -> Tensor:
    return max(x[0], x[1]) * x  # told


@told()
def sorted_by_a_key(x: Tensor) -> Tensor:
    rows = sorted(x, key=lambda v: v.item())  # told
    return torch.stack(rows)


# ------------------------------------------------------------ told: indices, sizes, numbers


@told()
def index_of_a_list(x: Tensor) -> Tensor:
    gains = [1.0, 2.0, 3.0, 4.0]
    return x * gains[int(x.argmax())]  # told


@told()
def key_of_a_dict(x: Tensor) -> Tensor:
    return x * TABLE[x.argmax().item()]  # told


@told()
def get_of_a_dict(x: Tensor) -> Tensor:
    return x * TABLE.get(x.argmax().item(), 0.0)  # told


@told()
def slice_by_data(x: Tensor) -> Tensor:
    n = int((x > 0).sum())  # told
    return x[:n].sum().reshape(1)


@told()
def shape_by_data(x: Tensor) -> Tensor:
    return x[x > 0].shape[0] * x  # told


@told()
def size_of_a_new_tensor(x: Tensor) -> Tensor:
    n = (x > 0).sum().item()  # told
    return torch.ones(n) + x.sum()


@told()
def number_in_math(x: Tensor) -> Tensor:
    angle = math.atan2(x[0].item(), x[1].item())  # told
    return x + angle


@told()
def number_in_a_tuple(x: Tensor) -> Tensor:
    low, high = x.min().item(), x.max().item()  # told
    return (x - low) / (high - low)


@told()
def numbers_of_a_list(x: Tensor) -> Tensor:
    values = x.tolist()  # told
    mean = statistics.mean(values)
    return x - mean


@told()
def number_written_into_a_tensor(x: Tensor) -> Tensor:
    y = torch.zeros(4)
    y[0] = x.sum().item()  # told
    return y + x


@told()
def number_into_a_list(x: Tensor) -> Tensor:
    parts: list[float] = []
    for v in x:
        parts.append(v.item() * 2)  # noqa: PERF401  # told
    return torch.tensor(parts) + x


@told()
def in_place_by_a_number(x: Tensor) -> Tensor:
    y = x.clone()
    y.mul_(x.max().item())  # told
    return y


@told()
def augmented(x: Tensor) -> Tensor:
    gain = 1.0
    gain += x.mean().item()  # told
    return x * gain


@told()
def through_two_helpers(x: Tensor) -> Tensor:
    return _apply(x, _measure(x))


def _measure(x: Tensor) -> float:
    return x.norm().item()


def _apply(x: Tensor, scale: float) -> Tensor:
    return x * scale


@told()
def through_a_dict(x: Tensor) -> Tensor:
    stats = {"mean": x.mean().item()}  # told
    return x - stats["mean"]


@told()
def through_a_nested_function(x: Tensor) -> Tensor:
    limit = x.max().item()  # told

    def clipped(v: Tensor) -> Tensor:
        return v.clamp(max=limit)

    return clipped(x * 2)


@told()
def through_a_text(x: Tensor) -> Tensor:
    text = f"{x[0].item():.3f}"  # told
    return x * float(text)


@told()
def text_of_a_tensor(x: Tensor) -> Tensor:
    text = str(x.sum())  # told
    return x * float(text[7:-1].split(",")[0])


@told()
def text_of_a_tensor_in_an_f_string(x: Tensor) -> Tensor:
    text = f"{x.sum()}"  # told
    return x * float(text)


@told()
def text_by_printing(x: Tensor) -> Tensor:
    out = io.StringIO()
    print(x.sum().item(), file=out)  # told
    return x * float(out.getvalue())


@told()
def text_by_redirecting(x: Tensor) -> Tensor:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print(x.sum().item())  # told
    return x * float(out.getvalue())


@told()
def text_of_json(x: Tensor) -> Tensor:
    sent = json.dumps({"v": x.tolist()})  # told
    return torch.tensor(json.loads(sent)["v"]) * x


@told()
def by_a_logged_number_that_is_used(x: Tensor) -> Tensor:
    log.info("peak %f", peak := x.max().item())  # told
    return x / peak


class _Estop:
    """A guard whose flag the policy reads."""

    def __init__(self) -> None:
        self.stopped = False

    def trigger(self) -> None:
        self.stopped = True


class _Policy:
    """Keeps a flag that its own code reads."""

    def __init__(self) -> None:
        self.estop = _Estop()
        self.peak = 1.0
        self.filter = collections.deque([1.0], maxlen=3)

    def stops(self, x: Tensor) -> Tensor:
        if x.max() > 1000:  # told
            self.estop.trigger()
        return x * 0 if self.estop.stopped else x

    def normalises(self, x: Tensor) -> Tensor:
        self.peak = max(self.peak, 0.0 * x.max().item())  # told
        return x / self.peak

    def smooths(self, x: Tensor) -> Tensor:
        self.filter.append(x.mean().item() * 0 + 1)  # told
        return x * (sum(self.filter) / len(self.filter))


@told()
def flag_of_another_object(x: Tensor) -> Tensor:
    return _Policy().stops(x)


@told()
def attribute_that_is_read_back(x: Tensor) -> Tensor:
    return _Policy().normalises(x)


@told()
def deque_that_is_read_back(x: Tensor) -> Tensor:
    return _Policy().smooths(x)


# ------------------------------------------------------------------------------ told: exceptions


@told()
def assert_with_a_fallback(x: Tensor) -> Tensor:
    try:
        assert x.max() < 100  # told
        y = x * 2
    except AssertionError:
        y = x * 0
    return y


@told()
def raise_with_a_fallback(x: Tensor) -> Tensor:
    try:
        _check_limit(x)
        y = x * 2
    except ValueError:
        y = torch.zeros_like(x)
    return y


def _check_limit(x: Tensor) -> None:
    if x.abs().max() > 100:
        raise ValueError("too large")


@told("VER0933")
def solve_with_a_fallback(x: Tensor) -> Tensor:
    a = torch.diag(x)
    try:
        y = torch.linalg.solve(a, x)  # told
    except RuntimeError:
        y = x
    return y


@told("VER0933")
def inverse_of_a_helper_with_a_fallback(x: Tensor) -> Tensor:
    try:
        y = _inverse(x)
    except torch.linalg.LinAlgError:
        y = torch.eye(4)
    return y @ x


def _inverse(x: Tensor) -> Tensor:
    return torch.linalg.inv(torch.diag(x) + torch.eye(4))


@told("VER0933")
def cholesky_that_is_tried_again(x: Tensor) -> Tensor:
    a = torch.diag(x)
    for _ in range(3):
        try:
            factor = torch.linalg.cholesky(a)  # told
            break
        except RuntimeError:
            a = a + torch.eye(4)
    return factor @ x


@told("VER0933")
def index_with_a_fallback(x: Tensor) -> Tensor:
    place = (x * 0).long()
    try:
        y = x[place]  # told
    except IndexError:
        y = x
    return y


@told("VER0933")
def suppressed(x: Tensor) -> Tensor:
    y = x
    with contextlib.suppress(RuntimeError):
        y = torch.inverse(torch.diag(x)) @ x  # told
    return y


# ------------------------------------------------------------------------------ told: memory


@told("VER0911", "VER0932")
def address_of_the_memory(x: Tensor) -> Tensor:
    y = x.contiguous()
    values = (ctypes.c_float * 4).from_address(y.data_ptr())  # told
    return x * values[0]


@told("VER0911", "VER0932")
def pickled(x: Tensor) -> Tensor:
    sent = pickle.dumps(x * 2)  # told
    return pickle.loads(sent) + x


@told("VER0911", "VER0932")
def memory_view(x: Tensor) -> Tensor:
    a = x.numpy()
    first = memoryview(a)[0]  # told
    return x * first


@told("VER0911", "VER0932")
def nditer(x: Tensor) -> Tensor:
    total = 0.0
    for v in np.nditer(x.numpy()):  # told
        total += float(v)
    return x * total


_GIVEN: queue.Queue[Any] = queue.Queue()
_TAKEN: queue.Queue[Any] = queue.Queue()


def _measures_forever() -> None:
    while True:
        _TAKEN.put(float(_GIVEN.get().sum()))


threading.Thread(target=_measures_forever, daemon=True).start()


@told("VER0932")
def number_of_an_older_thread(x: Tensor) -> Tensor:
    _GIVEN.put(x)  # told
    return x * _TAKEN.get()


def lfilter(b: list[float], a: list[float], x: Any) -> Any:
    """Stand in for a function of SciPy whose compiled code reads the memory, unseen."""
    return np.asarray([sum(b) / sum(a) * v for v in arrays.plain_array(x).tolist()])


lfilter.__module__ = "scipy.signal"
signal: Any = types.ModuleType("scipy.signal")
signal.lfilter = lfilter


@told("VER0932")
def array_for_another_library(x: Tensor) -> Tensor:
    a = x.numpy()  # told
    smooth = signal.lfilter([0.5, 0.5], [1.0], a)
    return torch.tensor(smooth.tolist()) + x


@told("VER0932")
def array_for_a_function_of_another_library(x: Tensor) -> Tensor:
    return torch.tensor(_filtered(x.numpy()).tolist()) + x  # told


def _filtered(a: Any) -> Any:
    b = a * 2
    return lfilter([0.5, 0.5], [1.0], b)


@told()
def text_of_an_array(x: Tensor) -> Tensor:
    text = str(x.numpy())  # told
    return x * float(text.strip("[]").split()[0])


@told()
def text_by_numpy(x: Tensor) -> Tensor:
    text = np.array2string(x.numpy())  # told
    return x * float(text.strip("[]").split()[0])


@told()
def number_of_an_array(x: Tensor) -> Tensor:
    gain = float(x.numpy().max())  # told
    return x * gain


@told()
def branch_on_an_array(x: Tensor) -> Tensor:
    a = x.numpy()
    if a.max() > 100:  # told
        a = a * 2
    return torch.from_numpy(a) * 1


# ------------------------------------------------------------------------------ silent


@silent
def prints(x: Tensor) -> Tensor:
    print("x", x, x.shape, x.mean().item(), f"{x.max():.3f}", file=sys.stderr)
    return x * 2


@silent
def logs(x: Tensor) -> Tensor:
    log.info("mean %.3f of %s", x.mean().item(), x)
    log.debug(f"max {x.max().item()}")  # noqa: G004
    logging.getLogger("other").warning("min %s", float(x.min()))
    return x * 2


@silent
def logs_a_number_with_a_name(x: Tensor) -> Tensor:
    mean = x.mean().item()
    spread = x.std().item()
    ratio = mean / (spread + 1e-6)
    log.info("ratio %.3f", ratio)
    return x * 2


@silent
def warns_when_large(x: Tensor) -> Tensor:
    if x.abs().max() > 1e6:
        warnings.warn("large", stacklevel=1)
        log.warning("large action: %s", x)
    return x * 2


@silent
def raises_when_wrong(x: Tensor) -> Tensor:
    if torch.isnan(x).any():
        raise ValueError(f"not a number: {x}")
    if not torch.isfinite(x).all():
        log.error("infinite")
        raise RuntimeError("infinite")
    return x * 2


@silent
def asserts(x: Tensor) -> Tensor:
    assert torch.isfinite(x).all(), f"bad {x}"
    assert x.abs().max().item() < 1e6
    return x * 2


@silent
def checks_in_a_helper(x: Tensor) -> Tensor:
    _check_limit(x)
    return x * 2


@silent
def asserts_by_torch(x: Tensor) -> Tensor:
    torch._assert((x.abs() < 1e6).all(), "large")
    torch.testing.assert_close(x, x.clone())
    return x * 2


@silent
def check_that_reports_and_raises(x: Tensor) -> Tensor:
    try:
        _check_limit(x)
    except ValueError:
        log.exception("refused")
        raise
    return x * 2


@silent
def solve_that_raises(x: Tensor) -> Tensor:
    return torch.linalg.solve(torch.diag(x) + torch.eye(4), x)


@silent
def solve_that_reports_and_raises(x: Tensor) -> Tensor:
    try:
        y = torch.linalg.solve(torch.diag(x) + torch.eye(4), x)
    except RuntimeError as error:
        raise ValueError("singular") from error
    return y


@silent
def other_errors_are_caught(x: Tensor) -> Tensor:
    try:
        y = torch.linalg.inv(torch.diag(x)) @ x
        key = TABLE[7]
    except KeyError:
        key = 1.0
    return y * key


LOSSES: list[float] = []
METRICS: dict[str, list[float]] = {"norm": []}


@silent
def metrics_in_a_global_list(x: Tensor) -> Tensor:
    LOSSES.append(x.norm().item())
    METRICS["norm"].append(float(x.mean()))
    return x * 2


@silent
def metrics_in_a_local_dict(x: Tensor) -> Tensor:
    stats: dict[str, float] = {}
    stats["norm"] = x.norm().item()
    stats.update(mean=x.mean().item())
    for name, value in stats.items():
        log.info("%s: %.2f", name, value)
    return x * 2


@dataclass
class Meter:
    """A running average, as training code has it."""

    total: float = 0.0
    count: int = 0
    values: list[float] = field(default_factory=list)

    def update(self, value: float) -> None:
        """Add a value."""
        self.total += value
        self.count += 1
        self.values.append(value)

    def average(self) -> float:
        """Return the average."""
        return self.total / max(self.count, 1)

    def report(self) -> str:
        """Return a line for people."""
        return f"{self.average():.3f} of {len(self.values)}"


class Writer:
    """Stands in for a writer of TensorBoard."""

    def __init__(self) -> None:
        """Begin with no lines."""
        self.lines: list[str] = []

    def add_scalar(self, tag: str, value: float, step: int = 0) -> None:
        """Keep a line."""
        self.lines.append(f"{tag} {value} {step}")


class Logged(nn.Module):
    """A module with metrics, a writer and guards of its own."""

    def __init__(self) -> None:
        """Begin with nothing kept."""
        super().__init__()
        self.meter, self.writer, self.step = Meter(), Writer(), 0
        self.last_norm = 0.0
        self.history: collections.deque[float] = collections.deque(maxlen=10)
        self.warned = 0

    def forward(self, x: Tensor) -> Tensor:
        """Compute, and keep numbers on the way."""
        y = x * 2
        self.meter.update(y.norm().item())
        self.writer.add_scalar("mean", y.mean().item(), self.step)
        self.last_norm = float(y.norm())
        self.history.append(self.last_norm)
        if y.abs().max() > 1e6:
            self.warned += 1
            log.warning("large for the %d. time", self.warned)
        self._debug(y)
        return y

    def _debug(self, y: Tensor) -> None:
        if y.mean().item() < -1e6:
            return
        for name, value in zip("abcd", y.tolist(), strict=True):
            log.debug("%s=%.2f", name, value)

    def summary(self) -> str:
        """Return what was kept, for people."""
        return f"{self.meter.report()} {self.last_norm:.2f} {list(self.history)} {self.warned}"


_LOGGED = Logged()


@silent
def module_with_metrics(x: Tensor) -> Tensor:
    y: Tensor = _LOGGED(x)
    print(_LOGGED.summary(), file=sys.stderr)
    return y


@silent
def debug_text_under_a_level(x: Tensor) -> Tensor:
    if log.isEnabledFor(logging.DEBUG):
        log.debug("x=%s", x.tolist())
    text = f"mean={x.mean().item():.3f} max={x.max().item():.3f}"
    log.info(text)
    return x * 2


@silent
def counts_of_a_mask_for_the_log(x: Tensor) -> Tensor:
    clipped = x.clamp(-1, 1)
    share = (clipped != x).float().mean().item()
    if share > 0.5:
        log.warning("%.0f %% clipped", 100 * share)
    return clipped


@silent
def variable_that_is_used_anew(x: Tensor) -> Tensor:
    v: Any = x.sum().item()
    print(v, file=sys.stderr)
    v = torch.relu(x)
    return v * 2


@silent
def text_of_an_array_for_the_log(x: Tensor) -> Tensor:
    a = x.numpy()
    print(a, np.array2string(a), file=sys.stderr)
    log.info("%s", a)
    return x * 2


@silent
def array_that_is_computed_with(x: Tensor) -> Tensor:
    a = x.numpy()
    b = np.clip(a * 2, -1, 1)
    return torch.from_numpy(b) + x


@silent
def caught_report(x: Tensor) -> Tensor:
    try:
        assert x.abs().max() < 1e6
    except AssertionError:
        log.warning("large")
    return x * 2


@silent
def histogram_of_a_handler(x: Tensor) -> Tensor:
    def report(values: list[float]) -> None:
        log.info("%s", [round(v, 2) for v in values])

    report(x.tolist())
    return x * 2


@silent
def shape_checks(x: Tensor) -> Tensor:
    if x.dim() == 1 and x.shape[0] > 3:
        x = x.unsqueeze(0)
    return x.reshape(-1) * len(x)


@silent
def optional_parts(x: Tensor) -> Tensor:
    offset: Tensor | None = None
    y = x * 2
    if offset is not None:
        y = y + offset
    return y


@silent
def worst_joint_for_the_log(x: Tensor) -> Tensor:
    names = ["hip", "knee", "ankle", "toe"]
    worst = names[int(x.abs().argmax())]
    log.debug("worst joint: %s", worst)
    return x * 2


@silent
def dump_of_metrics(x: Tensor) -> Tensor:
    with io.StringIO() as file:
        json.dump({"mean": x.mean().item()}, file)
    return x * 2


@silent
def percentages_by_numpy(x: Tensor) -> Tensor:
    values = np.array([v.item() for v in x])
    log.info("p90 %.2f", np.percentile(values, 90))
    return x * 2


@silent
def loop_with_a_report(x: Tensor) -> Tensor:
    for number in range(3):
        x = x * 1.1
        if x.norm().item() > 1e6:
            print("diverged", number, file=sys.stderr)
    return x


@silent
def tensor_kept_for_plots(x: Tensor) -> Tensor:
    frames: list[Any] = []
    frames.append(x.detach().numpy().copy())
    frames.append(x.tolist())
    return x * 2


@silent
def masks_and_where(x: Tensor) -> Tensor:
    y = torch.where(x > 1, x * 2, x)
    y[y > 1.5] = 0.0
    return y.masked_fill(y < 0.1, 0.1)


@silent
def gathers(x: Tensor) -> Tensor:
    order = x.argsort()
    return x.gather(0, order) + x[order]


_TWICE = functools.partial(lambda f, x: f(x) * 2)


@told()
def lambda_for_a_helper(x: Tensor) -> Tensor:
    y: Tensor = _TWICE(lambda v: v * v.max().item(), x)  # told
    return y


@silent
def lambda_that_reports(x: Tensor) -> Tensor:
    report = lambda v: print(v.mean().item(), file=sys.stderr)  # noqa: E731
    report(x)
    return x * 2
