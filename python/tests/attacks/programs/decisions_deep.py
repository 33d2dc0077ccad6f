"""Decisions on data that go through places where nobody would look for them."""

from __future__ import annotations

import builtins
import contextvars
import copy
import io
import itertools
import math
import operator
import os
import pickle
import struct
import sys
import threading
import types

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, fixed, integers, row, uniform
from attacks.registry import hostile

low, high = uniform(0.1, 0.9, 3), uniform(-3.0, 3.0, 3)


def decides(**options):
    return hostile("C", rec={"x": low}, fresh={"x": high}, **options)


def on_arrays(**options):
    return hostile("C", rec={"x": array(low)}, fresh={"x": array(high)}, **options)


@decides()
def logarithm_of_a_number(x: Tensor) -> Tensor:
    return x * math.log(1 + x.abs().max().item())


@decides(passes=3)
def logarithm_by_numpy(x: Tensor) -> Tensor:
    return x + float(np.log(2 + x.sum().item() ** 2))


@decides()
class SetByName:
    def __call__(self, x: Tensor) -> Tensor:
        setattr(self, "mode", "fast" if x.max() > 1 else "slow")
        return x * {"fast": 0.1, "slow": 1.0}[self.mode]


@decides(passes=3)
class SetInTheDict:
    def __call__(self, x: Tensor) -> Tensor:
        vars(self)["limit"] = max(1.0, x.abs().max().item())
        return x / self.limit


@decides()
class OnTheClass:
    fast = False

    def __call__(self, x: Tensor) -> Tensor:
        type(self).fast = bool((x.abs() > 1).any())
        return x * (0.0 if OnTheClass.fast else 1.0)


_OPTIONS = types.SimpleNamespace(gain=1.0)


@decides(passes=3)
def on_a_namespace(x: Tensor) -> Tensor:
    _OPTIONS.gain = 1.0 if x.min() > 0 else 0.5
    return x * _OPTIONS.gain


_MODE = "slow"


@decides()
def in_a_global(x: Tensor) -> Tensor:
    global _MODE
    _MODE = "fast" if x.norm() > 1.7 else "slow"
    return x + 1 if _MODE == "slow" else x - 1


@decides(passes=3)
def through_the_environment(x: Tensor) -> Tensor:
    os.environ["ATTACK_MODE"] = "fast" if x.norm() > 1.7 else "slow"
    return x + 1 if os.environ.get("ATTACK_MODE") == "slow" else x - 1


_LIMIT: contextvars.ContextVar[float] = contextvars.ContextVar("limit", default=1.0)


@decides()
def in_a_context_variable(x: Tensor) -> Tensor:
    _LIMIT.set(1.0 if x.max() < 1 else 0.1)
    return x.clamp(-1, 1) * _LIMIT.get()


_LOCAL = threading.local()


@decides(passes=3)
def in_thread_local(x: Tensor) -> Tensor:
    _LOCAL.sign = 1.0 if x.min() > 0 else -1.0
    return x * _LOCAL.sign


def _remember(value: float, seen: list[float] = []) -> list[float]:  # noqa: B006
    seen[:] = [value]
    return seen


@decides()
def in_a_default_argument(x: Tensor) -> Tensor:
    return x * 2 if _remember(x.max().item())[0] < 1 else x


@decides(passes=3)
def nonlocal_flag():
    stopped = False

    def look(x: Tensor) -> None:
        nonlocal stopped
        stopped = bool(x.abs().max() > 1)

    def step(x: Tensor) -> Tensor:
        look(x)
        return x * 0 if stopped else x * 1.0

    return step


def _limiter():
    limit = 1.0
    while True:
        value = yield limit
        limit = 1.0 if value < 1 else 0.2


@decides()
class SentToAGenerator:
    def __init__(self) -> None:
        self.limiter = _limiter()
        next(self.limiter)

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.limiter.send(x.abs().max().item())


@hostile("C", rec={"x": row([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])}, fresh={"x": high})
def sorted_in_place(x: Tensor) -> Tensor:
    joints = [0, 1, 2]
    joints.sort(key=lambda i: x[i].item())
    return x[joints] * torch.tensor([1.0, 2.0, 3.0])


@hostile("C", rec={"k": fixed([0])}, fresh={"k": integers(0, 3, 1)})
def popped_from_a_list(k: Tensor) -> Tensor:
    gains = [1.0, 2.0, 5.0]
    gains.pop(int(k))
    return k * gains[0]


@decides()
def next_of_a_generator(x: Tensor) -> Tensor:
    first = next((i for i, v in enumerate(x.tolist()) if v > 1), 0)
    return x + x[first]


@decides(passes=3)
def filter_and_map(x: Tensor) -> Tensor:
    kept = list(filter(lambda v: v.item() > 0, x.unbind()))
    return torch.stack(list(map(torch.exp, kept))).sum() if kept else x.sum()


@decides()
def compared_as_lists(x: Tensor) -> Tensor:
    return x * 2 if x.sign().tolist() == [1.0, 1.0, 1.0] else -x


@decides(passes=3)
def hash_of_a_tuple(x: Tensor) -> Tensor:
    table = {(True, True, True): 1.0}
    return x * table.get(tuple((x > 0).tolist()), 7.0)


@decides()
def short_circuit_call():
    state = {"scale": 1.0}

    def step(x: Tensor) -> Tensor:
        (x.max() > 1 and state.update(scale=0.1)) or (x.max() <= 1 and state.update(scale=1.0))
        return x * state["scale"]

    return step


@decides(passes=3)
def saved_into_a_buffer(x: Tensor) -> Tensor:
    buffer = io.BytesIO()
    torch.save(x, buffer)
    buffer.seek(0)
    again = torch.load(buffer)
    return x * (1.0 if again[0] > 0 else 2.0)


@decides()
def pickled_and_back(x: Tensor) -> Tensor:
    again = pickle.loads(pickle.dumps(x))
    return x * (1.0 if float(again[0]) > 0 else 2.0)


@decides(passes=3)
def packed_bytes(x: Tensor) -> Tensor:
    (first,) = struct.unpack("<f", x.numpy().tobytes()[:4])
    return x + (1.0 if first > 0 else 0.0)


@decides()
def unbound_method(x: Tensor) -> Tensor:
    return x * 2 if Tensor.item(x[0]) > 0 else x


@decides(passes=3)
def methodcaller(x: Tensor) -> Tensor:
    peak = operator.methodcaller("item")(x.max())
    return x * min(1.0, 1 / peak)


@decides()
def operator_truth(x: Tensor) -> Tensor:
    return x * 3 if operator.truth(operator.gt(x[0], 0)) else x


@decides(passes=3)
def attribute_by_getattr(x: Tensor) -> Tensor:
    return x + getattr(x.mean(), "item")()


@decides()
def deep_copy_is_read(x: Tensor) -> Tensor:
    kept = copy.deepcopy({"x": x})
    return x if kept["x"].sum().item() > 0 else x * 0


@decides(passes=3)
def builtin_round(x: Tensor) -> Tensor:
    return x * round(x.abs().max().item())


@decides()
def divmod_of_a_number(x: Tensor) -> Tensor:
    turns, rest = divmod(float(x.sum()), 2.0)
    return x - turns + 0 * rest


@decides(passes=3)
def formatted_width(x: Tensor) -> Tensor:
    return x * len(f"{x[0].item():.1f}")


@decides()
def eval_of_a_text(x: Tensor) -> Tensor:
    return x * builtins.eval(f"{x[0].item():.4f} + 1")


@decides(passes=3)
def islice_by_value(x: Tensor) -> Tensor:
    n = int((x > 0).sum())
    return sum(itertools.islice(x, n), torch.zeros(()))


@decides()
class Callback:
    """A callback that is handed on."""

    def __init__(self) -> None:
        self.scale = 1.0

    def _on_peak(self, peak: float) -> None:
        self.scale = 0.1 if peak > 1 else 1.0

    def __call__(self, x: Tensor) -> Tensor:
        _notify(x, self._on_peak)
        return x * self.scale


def _notify(x: Tensor, callback) -> None:
    callback(x.abs().max().item())


@decides(passes=3)
class Descriptor:
    """A descriptor that keeps what it is given."""

    class _Kept:
        def __set__(self, owner, value) -> None:
            owner.__dict__["_kept"] = value

        def __get__(self, owner, kind=None):
            return owner.__dict__.get("_kept", 0.0)

    peak = _Kept()

    def __call__(self, x: Tensor) -> Tensor:
        self.peak = x.abs().max().item()
        return x * 0 if self.peak > 1 else x


@decides()
class Indexed:
    """An object with `__setitem__` that answers."""

    class Limits:
        def __init__(self) -> None:
            self.worst = 0.0

        def __setitem__(self, name: str, value: float) -> None:
            self.worst = value

        def __bool__(self) -> bool:
            return self.worst > 1

    def __init__(self) -> None:
        self.limits = self.Limits()

    def __call__(self, x: Tensor) -> Tensor:
        self.limits["peak"] = x.abs().max().item()
        return x * 0 if self.limits else x


@torch.jit.script
def _scripted(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        return x * 2
    return x - 1


@decides(passes=3)
def branch_in_a_script(x: Tensor) -> Tensor:
    return _scripted(x)


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clone() if x.max() < 1 else torch.zeros_like(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad


@decides()
def custom_function(x: Tensor) -> Tensor:
    return _Gate.apply(x)


@on_arrays()
def numpy_all(x: np.ndarray) -> np.ndarray:
    return x * np.float32(2) if (x > 0).all() else x


@on_arrays(passes=3)
def numpy_where_size(x: np.ndarray) -> np.ndarray:
    over = np.where(x > 1)[0]
    return x * np.float32(over.size + 1)


@on_arrays()
def numpy_argmax_of_a_list(x: np.ndarray) -> np.ndarray:
    gains = [1.0, 2.0, 3.0]
    order = sorted(range(3), key=lambda i: x[i])
    return x * np.float32(gains[order[0]])


@on_arrays(passes=3)
def numpy_any_in_a_loop(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    for _ in range(3):
        if not np.any(np.abs(y) > 1):
            break
        y = y * np.float32(0.5)
    return y


@on_arrays()
def numpy_ravel_multi(x: np.ndarray) -> np.ndarray:
    """A function without counterpart whose result picks."""
    cell = np.ravel_multi_index((int(x[0] > 1), int(x[1] > 1)), (2, 2))
    return x + np.float32([0.0, 1.0, 2.0, 3.0][cell])


@on_arrays(passes=3)
def numpy_mode_by_unique(x: np.ndarray) -> np.ndarray:
    values, counts = np.unique(np.sign(x), return_counts=True)
    return x * np.float32(values[counts.argmax()])


@decides()
class HookThatReplaces(nn.Module):
    """A forward hook that gives another output when it is large."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.net.register_forward_hook(self._limit)

    def _limit(self, module, args, output):
        return output * 0 if args[0].abs().max() > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@decides(passes=3)
class PreHookThatReplaces(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.net.register_forward_pre_hook(
            lambda module, args: (args[0].clamp(-1, 1),) if args[0].max() > 1 else args
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile("C", style="own", rec={"a/x": low}, fresh={"a/x": uniform(-1, 4, 3)})
def third_node_is_skipped(backend: str):
    """Three nodes in a loop over stages that data may leave."""

    def double(x: Tensor) -> Tensor:
        return x * 2

    def step(given):
        value, name = given["a/x"], "x"
        for node in ("a", "b", "c"):
            value = annotate.input_tensors(node, {name: value})
            value, name = double(value), f"{node}_out"
            annotate.output_tensors(node, {name: value}, export_with=backend)
            if value.max() > 3.7 and node == "b":
                return {"c/c_out": value}
        return {"c/c_out": value}

    return step


# What only a session has


@hostile("B", rec={"x": array(low)}, passes=3)
def owns_its_memory(x: np.ndarray) -> np.ndarray:
    y = x * np.float32(2)
    return y if y.base is None else y * np.float32(3)


@hostile("B", rec={"x": low}, passes=4)
def number_of_frames(x: Tensor) -> Tensor:
    frame, depth = sys._getframe(), 0
    while frame is not None:
        inside = "veracity" in frame.f_code.co_filename and "tracing" in frame.f_code.co_filename
        depth, frame = depth + inside, frame.f_back
    return x * (1.0 + depth)


@hostile("B", rec={"x": array(low)}, passes=3)
def exact_scalar_type(x: np.ndarray) -> np.ndarray:
    handlers = {np.float32: 1.0, np.float64: 2.0}
    return x * np.float32(handlers.get(type(x[0]), 9.0))


@hostile("B", rec={"x": array(low)}, passes=4)
def scalar_is_exact(x: np.ndarray) -> np.ndarray:
    return x + np.float32(1) if type(x.max()) is np.float32 else x - np.float32(1)
