"""What a session may change, or not see: other paths, stand-ins, weights written between passes."""

from __future__ import annotations

import copy
import sys

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, fixed, normal, uniform
from attacks.registry import ALL, clean, hostile


@hostile(
    "B",
    rec={
        "x": normal(2, 4, 8),
        "pad": fixed([[False, False, False, False], [False, False, False, True]]),
    },
    fresh={"pad": fixed([[False, False, False, False], [False, True, True, True]])},
    passes=3,
)
class PaddedEncoder(nn.Module):
    """The fast path of TransformerEncoder zeroes padded rows."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.eval()

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        return self.enc(x, src_key_padding_mask=pad)


@hostile(
    "B",
    rec={
        "x": normal(2, 4, 8),
        "pad": fixed([[False, False, False, True], [False, False, True, True]]),
    },
    passes=4,
)
class PaddedLayerPooled(nn.Module):
    """One layer with a mask and a mean over all rows, padded ones too."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.1, batch_first=True, norm_first=False
        )
        self.enc = nn.TransformerEncoder(layer, 1)
        self.eval()

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        return self.enc(x, src_key_padding_mask=pad).mean(1)


@hostile("B", rec={"x": array(normal(4))}, in_tests=True)
def is_scalar(x: np.ndarray) -> np.ndarray:
    total = x.sum()
    return x * np.float32(2) if np.isscalar(total) else x * np.float32(3)


@hostile("B", rec={"x": array(normal(4))}, passes=3, in_tests=True)
def is_numpy_number(x: np.ndarray) -> np.ndarray:
    peak = np.max(x)
    if isinstance(peak, np.number):
        return x + peak
    return x - peak


@hostile("B", rec={"x": array(normal(4))})
def exact_array_type(x: np.ndarray) -> np.ndarray:
    y = np.tanh(x)
    return y * np.float32(0.5) if type(y) is np.ndarray else y


@hostile("B", rec={"x": array(normal(4))})
def is_np_float32(x: np.ndarray) -> np.ndarray:
    first = x[0]
    return x + np.float32(1) if type(first) is np.float32 else x


@hostile("B", rec={"x": array(normal(4))}, passes=3)
def has_item(x: np.ndarray) -> np.ndarray:
    mean = x.mean()
    return x - mean if isinstance(mean, np.floating) and not isinstance(mean, np.ndarray) else x


@hostile("B", rec={"x": normal(4)}, passes=3)
def numpy_view_of_tensor(x: Tensor) -> Tensor:
    a = x.numpy()
    k = 2.0 if a.__class__.__module__ == "numpy" else 1.0
    return x * k


@hostile("B", rec={"x": array(normal(4))}, passes=3)
def dispatch_on_type(x: np.ndarray) -> np.ndarray:
    y = x * np.float32(2)
    handlers = {np.ndarray: lambda v: v + np.float32(1)}
    return handlers.get(type(y), lambda v: v)(y)


@hostile("B", rec={"x": normal(1, 3)}, passes=4)
def is_a_debugger_on(x: Tensor) -> Tensor:
    """Modes of torch that only a session has."""
    if torch.overrides._get_current_function_mode() is not None:
        return x * 2
    return x * 5


@hostile("B", rec={"x": normal(1, 3)}, passes=3)
def dispatch_mode_checked(x: Tensor) -> Tensor:
    on = torch.utils._python_dispatch._get_current_dispatch_mode() is not None
    return x * (1.0 if on else 4.0)


@hostile("B", rec={"x": normal(1, 3)}, passes=3)
def profiled(x: Tensor) -> Tensor:
    """A tracer of Python decides."""
    return x + (1.0 if sys.gettrace() or sys.getprofile() else 2.0)


def _between(name: str, change, passes: int = 4, **options):
    """A policy whose weights are changed by `change(net, tick)` after each tick."""

    def make(backend: str):
        net = nn.Linear(3, 2)
        box = {"net": net}
        tick = 0

        def step(given):
            nonlocal tick
            x = annotate.input_tensors("n", {"x": given["n/x"]})
            y = box["net"](x)
            annotate.output_tensors("n", {"y": y}, export_with=backend)
            change(box, tick)
            tick += 1
            return {"n/y": y}

        return step

    make.__doc__ = change.__doc__
    hostile("B", name=name, style="own", rec={"n/x": normal(1, 3)}, passes=passes, **options)(make)


def data_add(box, tick):
    """A write through `.data` after every pass."""
    box["net"].weight.data += 0.1


def data_after_some(box, tick):
    """A write through `.data` between passes that are looked at closely."""
    if tick == 8:
        box["net"].weight.data.mul_(-1)


def replaced_weight(box, tick):
    """Another parameter in the place of the first."""
    if tick == 5:
        box["net"].weight = nn.Parameter(torch.ones(2, 3))


def replaced_module(box, tick):
    """Another module: a checkpoint is loaded while running."""
    if tick == 4:
        box["net"] = copy.deepcopy(box["net"])
        box["net"].bias.data.fill_(3.0)


def loaded_state(box, tick):
    """load_state_dict after two passes."""
    if tick == 1:
        box["net"].load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})


def numpy_write(box, tick):
    """A write through NumPy's memory."""
    if tick == 6:
        box["net"].bias.detach().numpy()[:] = 7.0


def polyak(box, tick):
    """A slow average towards a target."""
    with torch.no_grad():
        box["net"].weight.lerp_(torch.ones(2, 3), 1e-6 if tick < 4 else 0.5)


_between("data_written_every_pass", data_add, in_tests=True)
_between("data_written_late", data_after_some, passes=12, in_tests=True)
_between("weight_replaced", replaced_weight, passes=7, in_tests=True)
_between("module_replaced", replaced_module, passes=6)
_between("state_dict_loaded", loaded_state)
_between("bias_written_by_numpy", numpy_write, passes=9)
_between("polyak_average", polyak, passes=4)


@clean("B", rec={"x": normal(2, 4, 8)}, passes=3)
class UnpaddedEncoder(nn.Module):
    """The same encoder without a mask."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.enc(x)


@clean("B", rec={"x": normal(1, 3)}, passes=3, backends=ALL)
class CheckpointBeforeSession(nn.Module):
    """Weights that are written before it is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.net.weight.data.normal_(0, 0.5)
        self.net.load_state_dict(copy.deepcopy(self.net.state_dict()))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean("B", rec={"x": uniform(-1, 1, 3)}, passes=3)
def is_tensor_checks(x: Tensor) -> Tensor:
    assert torch.is_tensor(x) and isinstance(x, Tensor) and type(x) is Tensor
    return x * 2 if x.is_floating_point() else x.float()


@clean("B", rec={"x": array(normal(3))}, passes=3)
def is_array_checks(x: np.ndarray) -> np.ndarray:
    y = np.asarray(x)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32 and y.ndim == 1
    return y * np.float32(2)
