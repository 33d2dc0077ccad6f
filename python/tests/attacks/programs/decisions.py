"""Decisions on data that go one way while recorded and another way later."""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import io
import json
import queue
import re
import threading

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, by_tick, fixed, integers, normal, row, uniform
from attacks.registry import ALL, hostile

low, high = uniform(0.1, 0.9, 3), uniform(-3.0, 3.0, 3)


def decides(**options):
    return hostile("C", rec={"x": low}, fresh={"x": high}, **options)


@decides(in_tests=True)
def plain_branch(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x * 2
    return x - 1


@decides(backends=ALL, in_tests=True)
def guard_that_raises_inside_try(x: Tensor) -> Tensor:
    try:
        if x.min() < 0:
            raise ValueError("negative range")
        return x.sqrt()
    except ValueError:
        return torch.zeros_like(x)


@decides(passes=3, in_tests=True)
def assert_with_fallback(x: Tensor) -> Tensor:
    y = x * 3
    try:
        assert torch.all(x < 1.0), "out of range"
    except AssertionError:
        y = y * 0.0
    return y


@decides(passes=5, in_tests=True)
def walrus(x: Tensor) -> Tensor:
    return x / n if (n := float(x.norm())) > 10.0 else x + 1 if n < 1.8 else x * 0.1


@decides()
def several_on_a_line(x: Tensor) -> Tensor:
    m = x.max().item(); y = x * 2; y = y if m < 1 else -y  # fmt: skip
    return y


def _checked(x: Tensor, limit: float) -> None:
    if (x.abs() > limit).any():
        raise OverflowError("over the limit")


@decides(passes=4, in_tests=True)
def guard_in_a_helper(x: Tensor) -> Tensor:
    try:
        _checked(x, 1.0)
    except OverflowError:
        return x.clamp(-1, 1) * 0.5
    return x * 1.0


@hostile(
    "C",
    backends="jit",
    rec={"a": normal(3, 3)},
    fresh={"a": by_tick(lambda t: torch.eye(3) * (t + 1.0) if t % 3 else torch.ones(3, 3))},
)
def solve_or_fall_back(a: Tensor) -> Tensor:
    try:
        return torch.linalg.solve(a, torch.ones(3))
    except torch.linalg.LinAlgError:
        return torch.zeros(3)


@hostile(
    "C",
    backends="jit",
    rec={"m": by_tick(lambda t: torch.eye(3) * (2.0 + t))},
    fresh={"m": by_tick(lambda t: torch.eye(3) * (2.0 - t) + 0.1)},
    passes=3,
    in_tests=True,
)
def cholesky_or_jitter(m: Tensor) -> Tensor:
    try:
        return torch.linalg.cholesky(m)
    except RuntimeError:
        return torch.eye(3) * 1e-3


@decides(passes=3)
def cholesky_info(x: Tensor) -> Tensor:
    m = torch.diag(x)
    factor, info = torch.linalg.cholesky_ex(m)
    return factor.sum(0) if not info else torch.zeros(3)


@decides()
def comprehension_filter(x: Tensor) -> Tensor:
    kept = [v for v in x if v > 0]
    return torch.stack(kept).sum() if kept else x.sum()


@decides()
def sum_over_filtered(x: Tensor) -> Tensor:
    return sum(v * w for v, w in zip(x, (1.0, 2.0, 3.0)) if v < 1.0) + x.mean()


@decides(passes=4, in_tests=True)
def while_too_long(x: Tensor) -> Tensor:
    y = x.clone()
    while y.norm() > 2.0:
        y = y * 0.5
    return y


@decides(passes=4)
def while_with_a_count(x: Tensor) -> Tensor:
    k = 0
    while k < 5 and (x * 2**k).max() < 1.0:
        k += 1
    return x + k * 0.0 if k < 1 else x * 2.0


@hostile(
    "C", rec={"x": row([1.0, 2.0, 3.0], [1.5, 2.5, 3.5])}, fresh={"x": normal(3)}, in_tests=True
)
def builtin_max(x: Tensor) -> Tensor:
    return max(x[0], x[1], x[2]) * 2 + x


@hostile("C", rec={"x": row([1.0, 2.0, 3.0], [1.5, 2.5, 3.5])}, fresh={"x": normal(3)})
def builtin_min_with_key(x: Tensor) -> Tensor:
    best = min(range(3), key=lambda i: float(x[i]))
    return x[best] - x


@hostile("C", rec={"x": row([1.0, 2.0, 3.0], [1.5, 2.5, 3.5])}, fresh={"x": normal(3)}, passes=3)
def builtin_sorted(x: Tensor) -> Tensor:
    return torch.stack(sorted(x))


@hostile("C", rec={"x": row([1.0, 2.0, 3.0], [1.5, 2.5, 3.5])}, fresh={"x": normal(3)})
def sorted_list_of_floats(x: Tensor) -> Tensor:
    order = sorted(range(3), key=x.tolist().__getitem__)
    return x[order]


@hostile("C", rec={"k": fixed([1])}, fresh={"k": integers(0, 3, 1)})
def dict_key(k: Tensor) -> Tensor:
    gains = {0: 0.1, 1: 1.0, 2: -2.0}
    return k.float() + gains[int(k)]


@hostile("C", rec={"k": fixed([1]), "x": normal(1, 3)}, fresh={"k": integers(0, 3, 1)})
class HeadByTask(nn.Module):
    """A head for each task, chosen by an index."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(3, 2) for _ in range(3))

    def forward(self, k: Tensor, x: Tensor) -> Tensor:
        return self.heads[k.item()](x) + 0.0 * k


@hostile("C", rec={"n": fixed([3]), "x": normal(6)}, fresh={"n": integers(1, 6, 1)})
def int_as_slice(n: Tensor, x: Tensor) -> Tensor:
    return x[: int(n)].sum() + x * 0.1


@hostile("C", rec={"n": fixed([3]), "x": normal(6)}, fresh={"n": integers(1, 6, 1)})
def int_as_index(n: Tensor, x: Tensor) -> Tensor:
    return x[int(n[0])] * 2.0


@hostile("C", rec={"n": fixed([2]), "x": normal(3)}, fresh={"n": integers(1, 5, 1)})
def int_as_range(n: Tensor, x: Tensor) -> Tensor:
    for _ in range(n.item()):
        x = x * 1.1 + 0.1
    return x


@hostile("C", rec={"n": fixed([2]), "x": normal(3)}, fresh={"n": integers(0, 5, 1)})
def int_as_shift(n: Tensor, x: Tensor) -> Tensor:
    return torch.roll(x, n.tolist(), dims=[0]) + 0.5


@hostile("C", rec={"n": fixed([4]), "x": normal(8)}, fresh={"n": integers(1, 8, 1)}, passes=3)
def int_as_shape(n: Tensor, x: Tensor) -> Tensor:
    pad = torch.zeros(int(n))
    return torch.cat([x, pad]).sum() / (8 + pad.shape[0])


@hostile("C", rec={"x": normal(3)}, passes=3, fresh={"x": normal(3, s=4)})
def bool_of_all(x: Tensor) -> Tensor:
    inside = bool((x.abs() < 6).all())
    return torch.stack([x.sum() * inside, x.mean()])


@hostile("C", rec={"x": uniform(0, 1, 3)}, fresh={"x": uniform(-2, 2, 3)})
def float_as_constant(x: Tensor) -> Tensor:
    lowest = min(0.0, *x.tolist())
    return x - lowest


@hostile("C", rec={"x": uniform(1, 2, 3)}, fresh={"x": uniform(-2, 2, 3)}, in_tests=True)
def rounded_float(x: Tensor) -> Tensor:
    bucket = int(x.mean().item() // 4)
    return x + bucket


@hostile("C", rec={"x": uniform(1, 2, 3)}, fresh={"x": uniform(-2, 9, 3)})
def bisected(x: Tensor) -> Tensor:
    at = bisect.bisect([0.0, 3.0, 6.0], float(x.max()))
    return x * (at + 1)


@hostile(
    "C", rec={"x": array(uniform(1, 2, 3))}, fresh={"x": array(uniform(-2, 2, 3))}, in_tests=True
)
def numpy_branch(x: np.ndarray) -> np.ndarray:
    if np.any(x < 0):
        return np.abs(x) * np.float32(0.5)
    return x * np.float32(2.0)


@hostile("C", rec={"x": array(uniform(1, 2, 4))}, fresh={"x": array(uniform(-2, 2, 4))})
def numpy_nditer(x: np.ndarray) -> np.ndarray:
    hits = 0
    for v in np.nditer(x):
        hits += int(v < 0)
    return x * np.float32(1 + hits)


@hostile("C", rec={"x": array(uniform(1, 2, 4))}, fresh={"x": array(uniform(-2, 2, 4))})
def numpy_ndenumerate(x: np.ndarray) -> np.ndarray:
    worst = 0
    for (i,), v in np.ndenumerate(x):
        if v < x[worst] and v < 0:
            worst = i
    return x - x[worst]


@hostile("C", rec={"x": uniform(1, 2, 4)}, fresh={"x": uniform(-2, 2, 4)}, in_tests=True)
def memory_view(x: Tensor) -> Tensor:
    seen = memoryview(x.numpy())
    return x * (1.0 if all(v > 0 for v in seen) else -1.0)


@hostile("C", rec={"x": uniform(1, 2, 4)}, fresh={"x": uniform(-2, 2, 4)})
def bytes_of_array(x: Tensor) -> Tensor:
    first = np.frombuffer(x.numpy().tobytes(), np.float32)[0]
    return x + (0.0 if first > 0 else 5.0)


@hostile("C", rec={"x": uniform(1, 2, 4)}, fresh={"x": uniform(-2, 2, 4)})
def dlpack_consumer(x: Tensor) -> Tensor:
    other = np.from_dlpack(x)
    return x * 2 if float(other.min()) > 0 else x * 3


@hostile("C", rec={"x": uniform(1, 2, 4)}, fresh={"x": uniform(-2, 2, 4)})
def dlpack_back(x: Tensor) -> Tensor:
    again = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    return x * 2 if again[0] > 0 else x * 3


@hostile("C", rec={"x": uniform(1, 2, 4)}, fresh={"x": uniform(-2, 2, 4)}, in_tests=True)
def pointer_reader(x: Tensor) -> Tensor:
    first = ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float))[0]
    return x - 1 if first > 0 else x + 1


@hostile("C", rec={"x": uniform(1, 2, 3)}, fresh={"x": uniform(-2, 2, 3)}, in_tests=True)
def printed_and_parsed(x: Tensor) -> Tensor:
    text = io.StringIO()
    print(x, file=text)
    return x * (0.5 if "-" in text.getvalue() else 1.0)


@hostile("C", rec={"x": uniform(1, 2, 3)}, fresh={"x": uniform(-2, 2, 3)})
def formatted_number(x: Tensor) -> Tensor:
    sign = f"{x[0]:+.1f}"[0]
    return x + (1.0 if sign == "+" else 0.0)


@hostile("C", rec={"x": uniform(1, 2, 3)}, fresh={"x": uniform(-2, 2, 3)})
def through_json(x: Tensor) -> Tensor:
    values = json.loads(json.dumps({"v": x.tolist()}))["v"]
    return x * (2.0 if max(values) < 2.5 and min(values) > 0 else 1.0)


@hostile("C", rec={"x": uniform(1, 2, 3)}, fresh={"x": uniform(-2, 2, 3)})
def regex_on_repr(x: Tensor) -> Tensor:
    negative = re.search(r"-\d", repr(x)) is not None
    return -x if negative else x * 1.0


@hostile("C", rec={"x": uniform(1, 2, 3)}, fresh={"x": uniform(-2, 2, 3)}, passes=3)
def numpy_to_string(x: Tensor) -> Tensor:
    text = np.array2string(x.numpy(), precision=2)
    return x * (1.0 if "-" not in text else 4.0)


class _Monitor:
    """A thread that was started before the session and reads what it is handed."""

    def __init__(self) -> None:
        self.asked, self.answers = queue.Queue(), queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while (value := self.asked.get()) is not None:
            with torch.no_grad():
                self.answers.put(
                    bool(value.max() > 2.0)
                    if isinstance(value, Tensor)
                    else float(np.max(value)) > 2
                )

    def ask(self, value) -> bool:
        self.asked.put(value)
        return self.answers.get(timeout=5)


@hostile("C", rec={"x": uniform(0, 1, 3)}, fresh={"x": uniform(-1, 4, 3)})
class ThreadDecides:
    """A safety monitor on a thread of its own that answers by a flag."""

    def __init__(self) -> None:
        self.monitor = _Monitor()

    def __call__(self, x: Tensor) -> Tensor:
        return x * 0.0 if self.monitor.ask(x) else x * 1.0


@hostile("C", rec={"x": uniform(0, 1, 3)}, fresh={"x": uniform(-1, 4, 3)})
class ThreadDecidesOnArray:
    def __init__(self) -> None:
        self.monitor = _Monitor()

    def __call__(self, x: Tensor) -> Tensor:
        return x - 1.0 if self.monitor.ask(x.numpy()) else x + 1.0


@hostile("C", rec={"x": uniform(0, 1, 3)}, fresh={"x": uniform(-1, 4, 3)}, passes=3)
def suppressed_guard(x: Tensor) -> Tensor:
    y = x * 0.5
    with contextlib.suppress(ValueError):
        if x.max().item() > 2:
            raise ValueError
        y = y + 1
    return y


@hostile(
    "C",
    rec={"x": uniform(0.1, 1, 3)},
    fresh={"x": uniform(-1, 4, 3)},
    style="method",
    in_tests=True,
)
def early_return(x: Tensor) -> Tensor:
    out = x.log1p()
    if not torch.isfinite(out).all() or out.max() > 1:
        out = torch.zeros(3)
    return out


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)}, style="method")
def match_statement(x: Tensor) -> Tensor:
    match int(x.max()):
        case 0:
            out = x * 1.0
        case 1 | 2:
            out = x * 2.0
        case _:
            out = x * 3.0
    return out


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)})
def any_all_of_python(x: Tensor) -> Tensor:
    bad = any(v > 2 for v in x)
    return torch.zeros(3) if bad else x.exp()


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)}, passes=6)
def and_or_chain(x: Tensor) -> Tensor:
    scale = (x[0] < 2 and x[1] < 2 and 1.0) or 0.25
    return x * scale


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)})
def nonzero_count(x: Tensor) -> Tensor:
    over = (x > 1.5).nonzero()
    return x * (1 + len(over))


@hostile(
    "C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)}, backends=("jit", "onnx")
)
def masked_select_mean(x: Tensor) -> Tensor:
    inside = x[x < 2]
    return inside.mean() if inside.numel() else torch.tensor(0.0)


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)})
def equal_to_last(x: Tensor) -> Tensor:
    return x * 2 if torch.equal(x.clamp(0, 2), x) else x * -1


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)})
def allclose_to_clip(x: Tensor) -> Tensor:
    return x + 1 if torch.allclose(x, x.clip(-2, 2)) else x.clip(-2, 2)


@hostile(
    "C",
    rec={"x": fixed([0.0, 1.0, 0.0])},
    fresh={"x": row([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])},
    in_tests=True,
)
def argmax_as_key(x: Tensor) -> Tensor:
    names = ("left", "ahead", "right")
    turn = {"left": 1.0, "ahead": 0.0, "right": -1.0}[names[int(x.argmax())]]
    return x.sum() * turn + x


@hostile("C", style="own", rec={"see/x": uniform(0.1, 1, 3)}, fresh={"see/x": uniform(-1, 4, 3)})
def node_that_is_skipped(backend: str):
    """A second node that runs only when the first says so; always, while recorded."""

    def step(given):
        x = annotate.input_tensors("see", {"x": given["see/x"]})
        score = x.sum() * 0.5
        annotate.output_tensors("see", {"score": score}, export_with=backend)
        if score > 1.5:
            return {"act/u": torch.zeros(1)}
        score = annotate.input_tensors("act", {"score": score})
        u = score.reshape(1) * 2
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        return {"act/u": u}

    return step


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)})
def logged_and_decided(x: Tensor) -> Tensor:
    """A value that is logged as well as looked at."""
    metrics = []
    peak = x.max().item()
    metrics.append(peak)
    return x / (metrics[-1] if metrics[-1] > 2 else 2.0)


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)}, passes=3)
def exception_carries_the_value(x: Tensor) -> Tensor:
    try:
        if (m := x.max()) > 2:
            raise RuntimeError(m)
        return x * 1.0
    except RuntimeError as error:
        return x - error.args[0]


@hostile("C", rec={"x": uniform(0.1, 1, 3)}, fresh={"x": uniform(-1, 4, 3)})
class CachedByValue:
    """A cache that is keyed by what the value rounds to."""

    def __init__(self) -> None:
        self.cache: dict[int, Tensor] = {}

    def __call__(self, x: Tensor) -> Tensor:
        key = round(float(x.mean()) / 2)
        if key not in self.cache:
            self.cache[key] = torch.tensor(float(key))
        return x + self.cache[key] * 10
