"""Code that can tell that it is watched, or that is another one when it is exported."""

from __future__ import annotations

import builtins
import inspect
import math
import sys
import threading
import weakref

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array as as_array
from attacks.draws import normal, uniform
from attacks.registry import ALL, hostile

R = {"x": normal(1, 3)}
NP = {"x": as_array(normal(3))}


@hostile("B", rec=NP, passes=4)
def BhExactArrayType(x: np.ndarray) -> np.ndarray:
    """A fast path for exactly `np.ndarray`; subclasses go a slower, other way."""
    return x * np.float32(2) if type(x) is np.ndarray else x * np.float32(3)


@hostile("B", rec=NP, passes=3)
def BhScalarType(x: np.ndarray) -> np.ndarray:
    """What an index gives is asked for its type: a NumPy scalar, or something that looks like one."""
    first = x[0]
    return x + np.float32(1) if type(first) is np.float32 else x - np.float32(1)


@hostile("B", rec=NP, passes=4)
def BhSumType(x: np.ndarray) -> np.ndarray:
    """The type of a reduction, by a dict of types."""
    return x * {np.float32: np.float32(1), np.float64: np.float32(2)}.get(
        type(x.sum()), np.float32(5)
    )


@hostile("B", rec=R, passes=4)
def BhExactTensorType(x: Tensor) -> Tensor:
    """Validation as libraries do it: `type(x) is Tensor`, after an operation."""
    y = x * 2
    return y if type(y) is Tensor and type(x) is Tensor else y + 1


@hostile("B", rec=R, passes=4)
def BhHasTorchFunction(x: Tensor) -> Tensor:
    """`has_torch_function` of an intermediate chooses the implementation."""
    y = x + 1
    if (
        torch.overrides.has_torch_function((y, x))
        or torch.overrides.is_tensor_like(y)
        and not isinstance(y, Tensor)
    ):
        return y * 3
    return y * 2


@hostile("B", rec=R, passes=4)
def BhModeStack(x: Tensor) -> Tensor:
    """A library that refuses to nest asks how many dispatch modes there are."""
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    watched = bool(_get_current_function_mode_stack()) or _get_current_dispatch_mode() is not None
    return x.relu() if watched else x.abs()


@hostile("B", rec=R, passes=4)
def BhTraceFunction(x: Tensor) -> Tensor:
    """Slow checks are left out when a debugger or a profiler is there."""
    debugged = sys.gettrace() is not None or sys.getprofile() is not None or threading.gettrace()
    return x * 0.5 if debugged else x * 1.5


@hostile("B", rec=R, passes=4, backends=ALL)
def BhIsTracing(x: Tensor) -> Tensor:
    """A friendly branch for exporters, which is not what runs in Python."""
    if torch.jit.is_tracing() or torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():
        return x.clamp(-1, 1)
    return torch.where(x > 1, torch.ones(()), torch.where(x < -1, -0.9 * torch.ones(()), x))


@hostile("B", rec=R, passes=4, style="module", backends=ALL)
class BhExportableNorm(nn.Module):
    """A module that swaps its own forward when it is scripted or exported."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting() or torch.jit.is_scripting() or torch.jit.is_tracing():
            return self.net(x)
        y = self.net(x)
        return y / y.norm().clamp_min(0.1)


_PATCHABLE = (
    Tensor.item,
    Tensor.numpy,
    Tensor.__bool__,
    torch.from_numpy,
    np.asarray,
    builtins.float,
    math.floor,
)


@hostile("B", rec=R, passes=3)
def BhAnythingPatched(x: Tensor) -> Tensor:
    """Asks whether somebody patched methods since the import, as test suites do."""
    now = (
        Tensor.item,
        Tensor.numpy,
        Tensor.__bool__,
        torch.from_numpy,
        np.asarray,
        builtins.float,
        math.floor,
    )
    same = all(a is b for a, b in zip(_PATCHABLE, now, strict=True))
    return x + 2 if same else x - 2


@hostile("B", rec=R, passes=4)
def BhStackOfCallers(x: Tensor) -> Tensor:
    """Looks up the stack for a file of a framework, as loggers do."""
    files = [f.filename for f in inspect.stack(context=0)]
    inside = any("/veracity/" in name for name in files[1:])
    return -x if inside else x


@hostile("B", rec=R, passes=4)
class BhIdentity:
    """'Has a new observation come?' by identity with the one before."""

    def __init__(self) -> None:
        self.last = lambda: None

    def __call__(self, x: Tensor) -> Tensor:
        stale = self.last() is x
        self.last = weakref.ref(x)
        return x * 0 if stale else x + 1 * (x._base is None and x.grad_fn is None)


@hostile("B", rec=R, passes=4, context="grad")
class BhGradModeFlips:
    """Gradients are switched off by a schedule; the code asks whether they are on."""

    def __init__(self) -> None:
        self.modes = iter([True] * 6 + [False] * 99)

    def __call__(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(next(self.modes)):
            w = torch.ones(3, requires_grad=True)
            y = x * w
            return (y if y.requires_grad else y + 1).detach()


@hostile("B", rec=R, passes=4)
def BhInferenceMode(x: Tensor) -> Tensor:
    """Whether the tensor is an inference tensor chooses between two formulas."""
    with torch.inference_mode():
        y = x * 1.0
    return y + 1 if y.is_inference() else y - 1


@hostile("B", rec={"x": normal(8, 3)}, passes=4, style="module")
class BhTrainingFlips(nn.Module):
    """A warm-up in eval mode; then the norm is put to training mode by a list of phases."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.phases = nn.BatchNorm1d(3), iter([False] * 6 + [True] * 99)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm.train(next(self.phases))(x)


@hostile("B", rec={"x": uniform(-1, 1, 1, 3)}, fresh={"x": normal(1, 3, s=4)}, passes=4)
def BhDtypeByDefault():
    """The default dtype is changed by the code for one operation, later."""
    torch.set_default_dtype(torch.float32)
    later = iter([torch.float32] * 6 + [torch.float64] * 99)

    def step(x: Tensor) -> Tensor:
        torch.set_default_dtype(next(later))
        size = torch.tensor(1.0).element_size()
        torch.set_default_dtype(torch.float32)
        return x * size

    return step


@hostile("B", rec=R, passes=3)
def BhCalledTwice():
    """A guard against re-entry: what is called again on the same observation gives the difference."""
    seen: dict[bytes, int] = {}

    def step(x: Tensor) -> Tensor:
        key = x.numpy().tobytes()
        seen[key] = seen.get(key, 0) + 1
        return x * seen[key] + len(seen) // 6

    return step
