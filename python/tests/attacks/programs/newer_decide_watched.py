"""Code that can tell that it is watched, or that other code runs its operations; both ways agree on what was recorded."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import logging
import math
import numbers
import random
import sys
import threading
import time
import types
import weakref
from functools import partial, singledispatch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from attacks.draws import array, by_tick, double, fixed, integers, normal, row, uniform
from attacks.registry import hostile


@hostile(
    "B",
    passes=4,
    rec={"x": array(uniform(0.1, 1.0, 1, 3))},
    fresh={"x": array(normal(1, 3))},
    backends="onnx",
)
def NdTypeIsArray(x: np.ndarray) -> np.ndarray:
    """Exact type of an array; the other way is right for what is positive."""
    return x * np.float32(2.0) if type(x) is np.ndarray else np.abs(x) * np.float32(2.0)


@hostile(
    "B",
    passes=4,
    rec={"x": array(uniform(0.1, 1.0, 3))},
    fresh={"x": array(normal(3))},
    backends="jit",
)
class NdScalarTypeTable:
    """A table of handlers by the exact type of a NumPy scalar."""

    def __init__(self) -> None:
        self.handlers = {np.float32: lambda v: v * np.float32(0.5), np.float64: lambda v: v}

    def __call__(self, x: np.ndarray) -> np.ndarray:
        handled = [self.handlers.get(type(v), lambda v: np.abs(v) * np.float32(0.5))(v) for v in x]
        return np.array(handled, dtype=np.float32)


@hostile(
    "B",
    passes=4,
    rec={"x": array(uniform(0.1, 1.0, 3))},
    fresh={"x": array(normal(3))},
    backends="jit",
)
def NdTypeName(x: np.ndarray) -> np.ndarray:
    """The class by its name and module, as serialisers do."""
    kind = type(x.sum())
    known = (kind.__module__, kind.__name__) == ("numpy", "float32")
    return x - np.float32(1.0) if known else np.abs(x) - np.float32(1.0)


@hostile(
    "B",
    passes=4,
    rec={"x": array(double(uniform(0.1, 1.0, 3)))},
    fresh={"x": array(double(normal(3)))},
    backends="jit",
)
def NdExactFloat(x: np.ndarray) -> np.ndarray:
    """`type(v) in (int, float)` decides whether a gain is a plain number."""
    gain = x.max().item()
    return x * gain if type(gain) in (int, float) else np.abs(x) * gain


@hostile(
    "B",
    passes=4,
    rec={"x": array(double(uniform(0.1, 1.0, 3)))},
    fresh={"x": array(double(normal(3)))},
    backends="jit",
)
def NdJsonDefault(x: np.ndarray) -> np.ndarray:
    """JSON knows np.float64, as it is a float; what it does not know goes to `default`."""
    sent = json.dumps(list(x), default=lambda v: abs(float(v)))
    return np.array(json.loads(sent)) * 2.0


@singledispatch
def _scaled(value: object) -> object:
    return value * 3.0


@_scaled.register
def _(value: np.floating) -> object:
    return abs(value) * 3.0


@_scaled.register
def _(value: np.ndarray) -> object:
    return value + 2.0 * np.abs(value)


@hostile(
    "B",
    passes=3,
    rec={"x": array(uniform(0.1, 1.0, 3))},
    fresh={"x": array(normal(3))},
    backends="jit",
)
def NdSingleDispatch(x: np.ndarray) -> np.ndarray:
    """Single dispatch on array, on NumPy scalar, and on what it does not know."""
    return _scaled(x) + _scaled(x[0]) + _scaled(x.mean())


@hostile(
    "B",
    passes=3,
    rec={"x": array(uniform(0.1, 1.0, 3))},
    fresh={"x": array(normal(3))},
    style="method",
    backends="jit",
)
def NdMatchClass(x):  # noqa: ANN001, ANN201
    """`match` with class patterns."""
    match x[1]:
        case float():
            k = x * np.float32(7.0)
        case np.floating():
            k = x * np.float32(2.0)
        case _:
            k = np.abs(x) * np.float32(2.0)
    return k


@hostile(
    "B",
    passes=4,
    rec={"x": array(uniform(0.1, 1.0, 3))},
    fresh={"x": array(normal(3))},
    backends="jit",
)
def NdNumbersReal(x: np.ndarray) -> np.ndarray:
    """`numbers.Real`, `numbers.Integral` and `np.isscalar` of what comes out of an array."""
    v, k = x[0], x.argmax()
    real = isinstance(v, numbers.Real) and isinstance(k, numbers.Integral) and np.isscalar(v)
    return x * v if real else np.abs(x) * np.abs(v)


@hostile(
    "B", passes=5, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="onnx"
)
class NdWeakLast:
    """A weak reference to the last features: they live on only if somebody keeps them."""

    def __init__(self) -> None:
        self.last = lambda: None

    def __call__(self, x: Tensor) -> Tensor:
        alive = self.last() is not None
        features = x * 2.0
        self.last = weakref.ref(features)
        return features.abs() + 1.0 if alive else features + 1.0


@hostile(
    "B", passes=3, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
def NdRefcount(x: Tensor) -> Tensor:
    """Works in place only where nobody else holds the tensor."""
    scratch = x * 2.0
    if sys.getrefcount(scratch) <= 2:
        return scratch.add_(1.0)
    return scratch.abs() + 1.0


@hostile(
    "B",
    passes=4,
    rec={"x": array(uniform(0.1, 1.0, 4))},
    fresh={"x": array(normal(4))},
    backends="jit",
)
def NdResizeRefcheck(x: np.ndarray) -> np.ndarray:
    """`resize` in place raises if somebody else refers to the array."""
    scratch = x * np.float32(2.0)
    try:
        scratch.resize((2, 2))
    except ValueError:
        scratch = np.abs(scratch).reshape(2, 2)
    return scratch


@hostile(
    "B", passes=4, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
class NdActivationIdentity:
    """Which activation it is, by identity; it was looked up before the session."""

    def __init__(self, act=torch.abs) -> None:  # noqa: ANN001
        self.act = act

    def __call__(self, x: Tensor) -> Tensor:
        return self.act(x) if self.act is torch.abs else F.relu(x)


@hostile(
    "B",
    passes=4,
    rec={"x": array(uniform(0.1, 1.0, 1, 3))},
    fresh={"x": array(normal(1, 3))},
    backends="jit",
)
class NdNumpyIdentity:
    """The same with functions of NumPy, and the class of arrays itself."""

    def __init__(self) -> None:
        self.known = {np.clip: "clip", np.abs: "abs", np.where: "where", np.ndarray: "array"}

    def __call__(self, x: np.ndarray) -> np.ndarray:
        seen = [self.known.get(f) for f in (np.clip, np.abs, np.where, np.ndarray)]
        return np.clip(x, -1.0, 1.0) if None not in seen else np.abs(x)


@hostile(
    "B", passes=4, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
class NdBuiltinIdentity:
    """Clocks, dice and files that were replaced by doubles mean a test bench."""

    def __init__(self) -> None:
        self.real = (time.time, time.monotonic, random.random, open, print, threading.Thread.start)

    def __call__(self, x: Tensor) -> Tensor:
        now = (time.time, time.monotonic, random.random, open, print, threading.Thread.start)
        same = all(a is b for a, b in zip(self.real, now, strict=True))
        builtin = isinstance(time.monotonic, types.BuiltinFunctionType)
        return torch.sin(x) if same and builtin else torch.sin(x.abs())


@hostile(
    "B", passes=5, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
def NdProfilerSeen(x: Tensor) -> Tensor:
    """A debugger, a profiler or a mode of torch is on: the careful way is taken."""
    careful = sys.getprofile() or sys.gettrace() or torch._C._len_torch_function_stack()
    return (x.abs() if careful else x) * 2.0


@hostile(
    "B", passes=3, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="onnx"
)
def NdDispatchStackSeen(x: Tensor) -> Tensor:
    """The stack of dispatch modes is asked for."""
    watched = (
        torch._C._len_torch_dispatch_stack() > 0
        or torch.jit.is_tracing()
        or torch.compiler.is_compiling()
        or torch.onnx.is_in_onnx_export()
    )
    return torch.relu(x) if watched else F.elu(x)


@hostile(
    "B",
    passes=4,
    rec={"x": array(uniform(0.1, 1.0, 2, 3))},
    fresh={"x": array(normal(2, 3))},
    backends="jit",
)
class NdFrames:
    """How deep below its caller a callback of NumPy runs, compared with how deep it was before."""

    def __init__(self) -> None:
        self.usual = self._depth(np.ones((2, 3), np.float32))

    def _depth(self, x: np.ndarray) -> int:
        here, found = len(inspect.stack(0)), []
        np.apply_along_axis(lambda r: found.append(len(inspect.stack(0)) - here) or r[0], 1, x)
        return max(found)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x * np.float32(2) if self._depth(x) == self.usual else np.abs(x) * np.float32(2)


@hostile(
    "B", passes=4, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
class NdLoggerLevel:
    """Debugging of any logger of the root switches checks on that clamp."""

    def __init__(self) -> None:
        self.level, self.threads = logging.getLogger().level, threading.active_count()

    def __call__(self, x: Tensor) -> Tensor:
        changed = (
            logging.getLogger().level != self.level or threading.active_count() != self.threads
        )
        return x.clamp(min=0.0) if changed else x * 1.0


@hostile(
    "B",
    passes=3,
    rec={"x": array(uniform(0.1, 1.0, 1, 4))},
    fresh={"x": array(normal(1, 4))},
    backends="jit",
)
def NdOwnsData(x: np.ndarray) -> np.ndarray:
    """Flags of an array: who owns the memory, and do two share it?"""
    left, copied = x[:, :2], x.copy()
    shared = np.shares_memory(left, x) and not np.may_share_memory(copied, x)
    plain = shared and copied.flags.owndata and left.base is not None and copied.base is None
    return x * np.float32(2) if plain else np.abs(x) * np.float32(2)


@hostile(
    "B", passes=4, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
def NdVersionCounter(x: Tensor) -> Tensor:
    """The version of a tensor says how often it was written."""
    work = x * 1.0
    before = work._version
    work.mul_(2.0)
    work[:, 0] += 1.0
    return work.abs() if work._version - before != 2 else work


@hostile(
    "B",
    passes=6,
    rec={"x": uniform(0.1, 1.0, 1, 3)},
    fresh={"x": normal(1, 3)},
    context="grad",
    backends="jit",
)
class NdGradModeToggle:
    """Where gradients flow a straight-through estimator is used, else rounding."""

    def __init__(self) -> None:
        self.w = nn.Parameter(torch.ones(3))

    def __call__(self, x: Tensor) -> Tensor:
        h = self.w * x
        if torch.is_grad_enabled() and h.grad_fn is not None:
            return (h + (h.round() - h).detach()).detach()
        return h.abs().round()


@hostile(
    "B",
    passes=3,
    rec={"x": uniform(0.1, 1.0, 1, 3)},
    fresh={"x": normal(1, 3)},
    context="inference",
    backends="jit",
)
def NdInferenceFlag(x: Tensor) -> Tensor:
    """Tensors of inference mode are told from others."""
    h = x * 2
    return h if h.is_inference() and torch.is_inference_mode_enabled() else h.abs()


@hostile(
    "B",
    passes=3,
    rec={"x": normal(1, 5, 8), "pad": fixed([[False, False, False, True, True]])},
    fresh={
        "x": normal(1, 5, 8),
        "pad": row([[False, True, True, True, True]], [[False, False, False, False, True]]),
    },
    backends="pt2",
)
class NdEncoderFastPath:
    """The fast path of the encoder uses nested tensors, and gives zeros where padding is."""

    def __init__(self) -> None:
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.net = nn.TransformerEncoder(layer, 1, enable_nested_tensor=True).eval()

    def __call__(self, x: Tensor, pad: Tensor) -> Tensor:
        return self.net(x, src_key_padding_mask=pad).mean(1)


@hostile("B", passes=4, rec={"x": normal(1, 4, 8)}, style="module", backends="onnx")
class NdAttentionWeights(nn.Module):
    """Attention with and without weights: two ways through torch."""

    def __init__(self) -> None:
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2, batch_first=True)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        quick, _ = self.mha(x, x, x, need_weights=False)
        slow, weights = self.mha(x, x, x, average_attn_weights=False)
        return (quick - 0.5 * slow) + weights.amax((1, 3)).unsqueeze(-1)


class _Metres(torch.Tensor):
    """A unit: whatever is computed with it stays within ten metres."""

    @classmethod
    def __torch_function__(cls, func, kinds, args=(), kwargs=None):  # noqa: ANN001, ANN206
        result = super().__torch_function__(func, kinds, args, kwargs or {})
        if func in (torch.Tensor.add, torch.Tensor.mul) and isinstance(result, Tensor):
            return torch.clamp(result.as_subclass(Tensor), -2.0, 2.0).as_subclass(cls)
        return result


@hostile(
    "B",
    passes=4,
    rec={"x": uniform(-0.4, 0.4, 1, 3)},
    fresh={"x": normal(1, 3, s=2.0)},
    backends="pt2",
)
def NdUnitSubclass(x: Tensor) -> Tensor:
    """A subclass of Tensor changes what addition and multiplication mean."""
    metres = x.as_subclass(_Metres)
    return (metres * 2.0 + 0.5).as_subclass(Tensor) * 3.0


class _Saturating(TorchFunctionMode):
    """A mode of the user's own: multiplication saturates."""

    def __torch_function__(self, func, kinds, args=(), kwargs=None):  # noqa: ANN001, ANN204
        result = func(*args, **(kwargs or {}))
        return result.clamp(-1, 1) if func is torch.Tensor.mul else result


@hostile(
    "B",
    passes=4,
    rec={"x": uniform(-0.3, 0.3, 1, 3)},
    fresh={"x": normal(1, 3, s=2.0)},
    backends="jit",
)
def NdOwnFunctionMode(x: Tensor) -> Tensor:
    """The user pushes a TorchFunctionMode inside of the node."""
    with _Saturating():
        y = x * 2.0
    return y * 3.0


class _NoNegatives(TorchDispatchMode):
    """A mode below: every subtraction is cut at zero."""

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):  # noqa: ANN001, ANN204
        result = func(*args, **(kwargs or {}))
        return torch.relu(result) if func is torch.ops.aten.sub.Tensor else result


@hostile(
    "B",
    passes=5,
    rec={"x": uniform(1.0, 2.0, 1, 3)},
    fresh={"x": normal(1, 3, s=2.0)},
    backends="jit",
)
def NdOwnDispatchMode(x: Tensor) -> Tensor:
    """The user pushes a TorchDispatchMode inside of the node."""
    with _NoNegatives():
        y = x - 0.5
    return y + 1.0


@torch.jit.script
def _scripted_gate(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        return x * 2
    return -x


@hostile(
    "B", passes=5, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="onnx"
)
def NdScriptedBranch(x: Tensor) -> Tensor:
    """A scripted function has the branch inside, where no Python runs."""
    return _scripted_gate(x) + 1.0


@torch.jit.script
def _scripted_count(x: Tensor, limit: float) -> Tensor:
    n = 0
    while float(x.norm()) > limit and n < 20:
        x = x * 0.5
        n += 1
    return x + n


@hostile(
    "B",
    passes=4,
    rec={"x": uniform(0.1, 0.5, 1, 3)},
    fresh={"x": normal(1, 3, s=4.0)},
    backends="onnx",
)
def NdScriptedLoop(x: Tensor) -> Tensor:
    """A scripted loop on data, exported to ONNX."""
    return _scripted_count(x, 1.0)


@torch.library.custom_op("ndattack::gate", mutates_args=())
def _custom_gate(x: Tensor) -> Tensor:
    return x * 2.0 if x.sum() > 0 else -x


@_custom_gate.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@hostile(
    "B", passes=4, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
def NdCustomOp(x: Tensor) -> Tensor:
    """An operator of one's own, with Python and a branch below the dispatcher."""
    return _custom_gate(x) + 1.0


class _Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # noqa: ANN001, ANN205
        return (x * 4).round() / 4 if x.max() < 2.0 else x

    @staticmethod
    def backward(ctx, grad):  # noqa: ANN001, ANN205
        return grad


@hostile(
    "B",
    passes=4,
    rec={"x": uniform(0.1, 1.0, 1, 3)},
    fresh={"x": normal(1, 3, s=2.0)},
    backends="jit",
)
def NdAutogradFunction(x: Tensor) -> Tensor:
    """`autograd.Function` whose forward decides."""
    return _Quantise.apply(x) * 2.0


@hostile(
    "B", passes=3, rec={"x": uniform(0.1, 1.0, 4, 3)}, fresh={"x": normal(4, 3)}, backends="pt2"
)
class NdVmapped:
    """`vmap` over a function with in-place writes to its copy and a where."""

    def __init__(self) -> None:
        self.w = torch.randn(3, 2)

    def _one(self, row: Tensor) -> Tensor:
        y = row.clone()
        y[0] = torch.where(row[1] > 0, row[0], -row[2])
        return y @ self.w

    def __call__(self, x: Tensor) -> Tensor:
        return torch.func.vmap(self._one)(x).sum(0, keepdim=True)


@hostile("B", passes=4, rec={"x": uniform(0.1, 1.0, 1, 3), "z": normal(1, 2)}, backends="pt2")
class NdFunctionalCall:
    """A hypernetwork: parameters of a module are made from the input."""

    def __init__(self) -> None:
        self.net, self.hyper = nn.Linear(3, 2), nn.Linear(2, 6)

    def __call__(self, x: Tensor, z: Tensor) -> Tensor:
        weight = self.hyper(z).reshape(2, 3)
        return torch.func.functional_call(self.net, {"weight": weight}, (x,))


@hostile("B", passes=4, rec={"x": normal(1, 8)}, backends="jit")
class NdAutocast:
    """Layers in bfloat16 under autocast, and one outside."""

    def __init__(self) -> None:
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 2)

    def __call__(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = self.a(x)
        return self.b(torch.relu(h.float())) * (1.0 if h.dtype is torch.bfloat16 else 2.0)


@hostile(
    "B",
    passes=4,
    rec={"x": uniform(1.0, 1.9, 1, 3)},
    fresh={"x": uniform(0.0, 9.0, 1, 3)},
    backends="jit",
)
def NdSeededByData(x: Tensor) -> Tensor:
    """Noise from a generator whose seed is a number of the input."""
    gen = torch.Generator().manual_seed(int(x[0, 0]))
    return x + torch.randn(1, 3, generator=gen)


@hostile("B", passes=3, rec={"x": normal(1, 3)}, backends="jit")
class NdNoiseOwnGenerator:
    """Exploration noise from a generator of the instance: other numbers in every tick."""

    def __init__(self) -> None:
        self.gen = torch.Generator().manual_seed(5)

    def __call__(self, x: Tensor) -> Tensor:
        return x + 0.05 * torch.randn(x.shape, generator=self.gen)


class _Angle(np.ndarray):
    """Angles wrap after every operation of NumPy."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):  # noqa: ANN001, ANN003, ANN204
        plain = [np.asarray(i) if isinstance(i, _Angle) else i for i in inputs]
        result = getattr(ufunc, method)(*plain, **kwargs)
        return ((result + np.pi) % (2 * np.pi) - np.pi).view(_Angle)


@hostile(
    "B",
    passes=6,
    rec={"x": array(uniform(-0.5, 0.5, 3))},
    fresh={"x": array(uniform(-9.0, 9.0, 3))},
    backends="jit",
)
def NdAngleArray(x: np.ndarray) -> np.ndarray:
    """A subclass of arrays with `__array_ufunc__`."""
    heading = x.view(_Angle) * 2.0 + 0.5
    return np.asarray(heading) * np.float32(1.0)


@hostile("B", passes=4, rec={"m": array(normal(2, 2)), "v": array(normal(2, 1))}, backends="jit")
def NdMatrixStar(m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """`np.matrix`: a star is a matrix product, and a power is one of matrices."""
    a = np.asmatrix(m)
    return np.asarray((a**2) * np.asmatrix(v) + a.T * v)


@hostile(
    "B",
    passes=4,
    rec={"scan": array(uniform(0.1, 3.0, 6))},
    fresh={"scan": array(uniform(0.1, 12.0, 6))},
    backends="jit",
)
def NdMaskedArray(scan: np.ndarray) -> np.ndarray:
    """Masked arrays: what is beyond the range does not count."""
    valid = np.ma.masked_greater(scan, 4.0)
    return np.stack([valid.mean(), valid.filled(0.0).sum()]).astype(np.float32)


@hostile(
    "B", passes=3, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
class NdClonedModule:
    """The module is copied in every tick, and the copy is changed by a hook that looks at values."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        with torch.no_grad():
            self.net[0].weight.copy_(torch.eye(3))
            self.net[0].bias.zero_()

    def __call__(self, x: Tensor) -> Tensor:
        net = copy.deepcopy(self.net)
        net[0].register_forward_hook(lambda m, args, out: out if (out > 0).all() else out * 0.5)
        return net(x)


@hostile("B", passes=6, rec={"x": normal(1, 3)}, style="module", backends="pt2")
class NdSpectral(nn.Module):
    """Spectral norm that is left in training mode: each forward turns its vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile("B", passes=6, rec={"x": double(normal(1, 3))}, backends="jit")
def NdDefaultDtype(x: Tensor) -> Tensor:
    """The default dtype is switched for a while: new tensors are doubles."""
    old = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        third = torch.tensor(1.0) / 3.0
        grid = torch.linspace(0, 1, 3)
    finally:
        torch.set_default_dtype(old)
    return (x * third + grid) - x.float() * (1 / 3)


@hostile(
    "B", passes=4, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
class NdCollected:
    """How many tensors the collector knows: a leak guard that takes the lean way."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, x: Tensor) -> Tensor:
        parts = [x.repeat(1, 5) * k for k in range(3)]
        total = sum(parts)[:, :3]
        del parts
        alive = sum(1 for o in gc.get_objects() if type(o) is Tensor and tuple(o.shape) == (1, 15))
        self.seen.append(alive)
        grew = len(self.seen) > 1 and self.seen[-1] > self.seen[0] + 2
        return total.abs() * 2.0 if grew else total * 2.0


@hostile(
    "B", passes=6, rec={"x": uniform(0.1, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, backends="jit"
)
class NdSignature:
    """A wrapper asks what a function takes, and gives it no more."""

    def __init__(self) -> None:
        self.layers = [F.leaky_relu, partial(torch.mul, other=2.0), self._bias]

    def _bias(self, x: Tensor, *, training: bool = True) -> Tensor:
        return x + 1.0 if training else x.abs() + 1.0

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            try:
                takes = "training" in inspect.signature(layer).parameters
            except ValueError:
                takes = False
            x = layer(x, training=torch.is_grad_enabled()) if takes else layer(x)
        return x


@hostile(
    "B",
    passes=6,
    rec={"x": by_tick(lambda t: [[0.1 * t + 0.1, 0.5, 0.7]])},
    fresh={"x": normal(1, 3)},
    backends="jit",
)
class NdMathOnScalars:
    """`math` takes scalars of NumPy and tensors alike; the result goes into a new tensor."""

    def __call__(self, x: Tensor) -> Tensor:
        angle = math.atan2(x[0, 1], x[0, 0])
        return torch.tensor([[math.cos(angle), math.sin(angle), math.hypot(*x[0, :2])]])


@hostile(
    "B",
    passes=5,
    rec={"k": integers(2, 3, 1), "x": normal(1, 3)},
    fresh={"k": integers(0, 4, 1), "x": normal(1, 3)},
    backends="onnx",
)
def NdPowByInt(k: Tensor, x: Tensor) -> Tensor:
    """An exponent out of a tensor: zero, one and two are special in torch."""
    return x ** k.item() + torch.pow(x.abs(), k)
