"""NumPy on traced arrays: the caller gets NumPy's bits, and torch is told the whole computation."""

from __future__ import annotations

import copy
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import veracity
from torch.overrides import TorchFunctionMode
from veracity.errors import TraceError
from veracity.tracing import array_table, arrays
from veracity.tracing.array_table import words
from veracity.tracing.replaced import Replaced


class Log(TorchFunctionMode):
    """Keeps every call, so that it can be done again on other inputs."""

    def __init__(self) -> None:
        """Start with no call."""
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        self.paused = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Make the call and keep it."""
        if any(type(one) is arrays.TracedScalar for one in [*args, *(kwargs or {}).values()]):
            with self:  # what makes tensors of scalars is a call as well
                args, kwargs = arrays.tensors_for_scalars(args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if not self.paused:
            self.calls.append((func, copy_lists(args), copy_lists(kwargs or {}), result))
        return result

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Keep nothing for a while."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def replay(self, known: dict[int, torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
        """Do all calls again, with other tensors for the known ones."""

        def other(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            if id(leaf) not in known:
                raise AssertionError("a tensor of unknown origin takes part: a silent constant")
            return known[id(leaf)]

        for func, args, kwargs, result in self.calls:
            if func is torch.Tensor.copy_:  # the user's own array, which is overwritten as a whole
                known.setdefault(id(args[0]), torch.empty_like(args[0]))
            again = func(*leaves(args, other), **leaves(kwargs, other))
            pairs = zip(tensors_in(result), tensors_in(again), strict=True)
            known.update({id(old): new for old, new in pairs if id(old) not in known})
        return lambda tensor: known[id(tensor)]


def leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([leaves(one, change) for one in value])
    if isinstance(value, dict):
        return {name: leaves(one, change) for name, one in value.items()}
    return change(value)


def copy_lists(value: Any) -> Any:
    return leaves(value, lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf)


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return (
        [one for item in value for one in tensors_in(item)]
        if isinstance(value, list | tuple)
        else []
    )


class Session:
    """A recorder of its own around the traced arrays."""

    def __init__(self) -> None:
        """Prepare, without touching anything."""
        self.log = Log()
        self.escapes: list[str] = []
        self.running = True
        self.before = {name: getattr(arrays, name) for name in ("pause", "escaped", "active")}

    def __enter__(self) -> Session:
        """Set the hooks."""
        arrays.pause = self.log.pause
        arrays.escaped = lambda tensor, how: self.escapes.append(how)
        arrays.active = lambda: self.running
        self.replaced = Replaced()
        arrays.install_patches(self.replaced)
        self.log.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """Set them back."""
        self.running = False
        self.log.__exit__(None, None, None)
        self.replaced.remove()
        arrays.forget()
        for name, hook in self.before.items():
            setattr(arrays, name, hook)


def inputs(seed: int) -> SimpleNamespace:
    """Return arrays of every kind, other ones for every seed."""
    random = np.random.default_rng(seed)
    return SimpleNamespace(
        x=random.normal(size=(3, 4)),
        y=random.normal(size=(3, 4)),
        v=random.normal(size=4).astype(np.float32),
        h=random.normal(size=4).astype(np.float16),
        p=random.uniform(0.1, 0.9, size=(3, 4)),
        i=random.integers(-9, 9, size=(3, 4)),
        j=random.integers(1, 5, size=(3, 4)),
        k=random.integers(0, 3, size=4).astype(np.int32),
        u=random.integers(0, 255, size=4).astype(np.uint8),
        w=random.integers(0, 60000, size=4).astype(np.uint16),
        b=random.integers(0, 2, size=(3, 4)).astype(bool),
        m=random.normal(size=(4, 4)) + 4 * np.eye(4),
        t=random.normal(size=(2, 3, 4)).astype(np.float32),
        e=random.normal(size=(1, 3, 1)),
        c=random.normal(size=4) + 1j * random.normal(size=4),
        f=random.permutation(12).astype(np.float64),
        n=np.where(random.uniform(size=(3, 4)) < 0.3, np.nan, 1.5) * random.normal(size=(3, 4)),
        s=np.array(random.normal()),
    )


Case = Callable[[SimpleNamespace], Any]


def compare(wanted: Any, found: Any, *, exact: bool) -> None:
    """Hold a result to NumPy's: type of container, shape, dtype and values."""
    if isinstance(wanted, list | tuple):
        assert type(found) is type(wanted)
        assert len(found) == len(wanted)
        for one, other in zip(wanted, found, strict=True):
            compare(one, other, exact=exact)
        return
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    if exact:
        assert found.tobytes() == wanted.tobytes()
    else:
        loose = (
            {2: 2e-2, 4: 2e-4}.get(np.finfo(wanted.dtype).bits // 8, 1e-8)
            if (wanted.dtype.kind in "fc")
            else 0
        )
        np.testing.assert_allclose(found, wanted, rtol=loose, atol=loose)


def run_case(case: Case) -> Session:
    """Hold one computation to NumPy: for the caller, and for fresh inputs in torch."""
    wanted = case(inputs(1))
    given = inputs(1)
    with Session() as session:
        traced = SimpleNamespace(
            **{name: arrays.trace_array(array) for name, array in vars(given).items()}
        )
        aliases = {name: arrays.tensor_of(array) for name, array in vars(traced).items()}
        found = case(traced)
        flat = leaves(found, lambda leaf: arrays.tensor_of(leaf))
        session.running = False
    compare(wanted, leaves(found, arrays.plain), exact=True)
    compare(
        [*vars(given).values()],
        [arrays.plain(array) for array in vars(traced).values()],
        exact=True,
    )

    fresh = inputs(2)
    wanted = case(inputs(2))
    known = {id(aliases[name]): torch.from_numpy(array) for name, array in vars(fresh).items()}
    lookup = session.log.replay(known)
    compare(wanted, leaves(flat, lambda tensor: lookup(tensor).detach().numpy()), exact=False)
    return session


BINARY: dict[str, Case] = {
    f"numpy.{name}": lambda a, name=name: getattr(np, name)(a.x, a.y)
    for name in words("""
    add subtract multiply divide floor_divide remainder fmod arctan2 hypot greater
    greater_equal less less_equal equal not_equal maximum minimum fmax fmin logical_and logical_or
    logical_xor copysign heaviside logaddexp logaddexp2 divmod nextafter""")
}
INTEGER: dict[str, Case] = {
    f"numpy.{name} of integers": lambda a, name=name: getattr(np, name)(a.i, a.j)
    for name in words("""
    add subtract multiply divide floor_divide remainder fmod power bitwise_and
    bitwise_or bitwise_xor left_shift right_shift maximum gcd lcm less float_power""")
}
UNARY: dict[str, Case] = {
    f"numpy.{name}": lambda a, name=name: getattr(np, name)(a.p)
    for name in words("""
    negative positive absolute fabs sign sqrt cbrt square reciprocal exp exp2 expm1
    log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh floor ceil
    trunc rint logical_not isnan isinf isfinite signbit deg2rad rad2deg radians degrees conjugate
    modf""")
}
REDUCTIONS: dict[str, Case] = {
    f"numpy.{name}, axis {axis}": lambda a, name=name, axis=axis: getattr(np, name)(a.x, axis=axis)
    for name in words("sum prod mean std var min max argmin argmax cumsum cumprod any all median")
    for axis in (None, 0, -1)
}


def table(*cases: tuple[str, Case]) -> dict[str, Case]:
    return dict(cases)


SIGNALS = table(
    ("digitize", lambda a: np.digitize(a.x, [-1.0, 0.0, 0.5])),
    ("digitize to the right", lambda a: np.digitize(a.i, [-4, 0, 4], right=True)),
    ("digitize falling", lambda a: np.digitize(a.x, [0.5, 0.0, -1.0])),
    ("linspace of numbers", lambda a: np.linspace(a.x[0, 0], a.x[0, 1], 7)),
    ("linspace of rows", lambda a: np.linspace(a.x[0], a.x[1], 4, axis=1)),
    ("linspace without its end", lambda a: np.linspace(0.0, a.x[0, 0], 4, endpoint=False)),
    ("vectorize", lambda a: np.vectorize(lambda v, w: v * 2 + w)(a.x, a.y[0])),
    ("vectorize with otypes", lambda a: np.vectorize(lambda v: v + 1, otypes=[float])(a.i)),
    ("cov", lambda a: np.cov(a.x)),
    ("cov of columns", lambda a: np.cov(a.x, rowvar=False, bias=True)),
    ("cov of two", lambda a: np.cov(a.x[0], a.y[0])),
    ("corrcoef", lambda a: np.corrcoef(a.x)),
    ("unwrap", lambda a: np.unwrap(a.x * 9)),
    ("unwrap along rows", lambda a: np.unwrap(a.x * 9, axis=0)),
    ("unwrap degrees", lambda a: np.unwrap(a.x * 400, period=360)),
    ("gradient", lambda a: np.gradient(a.f)),
    ("gradient by a step", lambda a: np.gradient(a.f, 0.1, edge_order=2)),
    ("gradient over places", lambda a: np.gradient(a.v, np.array([0.0, 1.0, 3.0, 4.0]))),
    ("gradient of a field", lambda a: np.gradient(a.x)),
    ("gradient along an axis", lambda a: np.gradient(a.x, axis=1)),
    ("convolve", lambda a: np.convolve(a.f, [0.25, 0.5, 0.25])),
    ("convolve, the same size", lambda a: np.convolve(a.f, [0.25, 0.5, 0.25, 1.0], "same")),
    ("convolve, where both are", lambda a: np.convolve(a.v, a.f, "valid")),
    ("correlate", lambda a: np.correlate(a.f, [1.0, 2.0], "full")),
    ("polyval", lambda a: np.polyval([2.0, -1.0, 0.5], a.x)),
    ("polyval of traced coefficients", lambda a: np.polyval(a.f[:3], 0.5)),
    ("ediff1d", lambda a: np.ediff1d(a.f, to_begin=0.0)),
    ("diff with ends", lambda a: np.diff(a.x, prepend=0.0, append=a.x[:, :1])),
    ("piecewise", lambda a: np.piecewise(a.f, [a.f < 4, a.f > 8], [lambda v: -v, 1, np.sqrt])),
    ("apply_along_axis", lambda a: np.apply_along_axis(lambda row: row - row.mean(), 0, a.x)),
    ("apply_along_axis to numbers", lambda a: np.apply_along_axis(np.max, 1, a.x)),
    ("pad with the edge", lambda a: np.pad(a.x, ((1, 0), (2, 1)), mode="edge")),
    ("interp", lambda a: np.interp(a.x, [-1.0, 0.0, 1.0], [0.0, 5.0, 2.0])),
    ("searchsorted", lambda a: np.searchsorted([-1.0, 0.0, 1.0], a.x)),
    ("a number with an axis", lambda a: a.x.sum()[None]),
)
DTYPES = table(
    ("float32 with a Python float", lambda a: a.v * 2.5 + 1),
    ("float32 with float64", lambda a: a.v + a.x),
    ("float32 with int64", lambda a: a.v * a.i),
    ("int32 with a Python float", lambda a: a.k * 0.5),
    ("int32 with a Python int", lambda a: a.k + 7),
    ("int32 divided", lambda a: a.k / 3),
    ("uint8 wraps", lambda a: a.u + np.uint8(200)),
    ("uint16 wraps", lambda a: a.w * a.w + a.w),
    ("uint16 with float32", lambda a: a.w * a.v),
    ("float16 stays", lambda a: a.h * 2 + a.h),
    ("float16 with a strong scalar", lambda a: a.h + np.float32(1)),
    ("sqrt of integers", lambda a: np.sqrt(a.j)),
    ("sum of int32", lambda a: a.k.sum()),
    ("sum of bool", lambda a: a.b.sum(axis=1)),
    ("mean of integers", lambda a: a.i.mean(axis=0)),
    ("bool plus bool", lambda a: a.b + a.b),
    ("not", lambda a: ~a.b & (a.x > 0) | (a.y < 0)),
    ("invert integers", lambda a: ~a.i),
    ("dtype=", lambda a: np.add(a.v, 1, dtype=np.float64)),
    ("sum dtype=", lambda a: a.v.sum(dtype=np.float64)),
    ("astype", lambda a: a.x.astype(np.float32)),
    ("astype int", lambda a: (a.x * 5).astype(int)),
    ("astype bool", lambda a: a.i.astype(bool)),
    ("astype without copy", lambda a: a.x.astype(np.float64, copy=False)),
    ("complex", lambda a: np.abs(a.c * (1 + 2j)) + a.c.real - a.c.imag),
    ("0-d array", lambda a: a.s * a.v),
)
MIXED = table(
    ("untraced array", lambda a: a.x * np.arange(4.0) + np.ones((3, 1))),
    ("untraced first", lambda a: np.arange(4.0) - a.x),
    ("list operand", lambda a: a.x * [1, 2, 3, 4]),
    ("number first", lambda a: 1 / (2 - a.x)),
    ("numpy scalar first", lambda a: np.float64(3) * a.x),
    ("matmul operator", lambda a: a.x @ a.m @ a.x.T),
    ("untraced matmul", lambda a: np.ones((2, 3)) @ a.x),
    ("power operators", lambda a: a.x**2 + a.p**0.5 + 2**a.x),
    ("where with numbers", lambda a: np.where(a.x > 0, a.x, 0.0)),
    ("where mixed dtypes", lambda a: np.where(a.b, a.v, a.i)),
    ("clip", lambda a: np.clip(a.x, -0.5, 0.5)),
    ("clip arrays", lambda a: np.clip(a.x, a.y - 1, a.y + 1)),
    ("clip one side", lambda a: a.x.clip(min=0)),
)
SHAPES = table(
    ("reshape", lambda a: a.x.reshape(2, 6) + a.x.reshape((2, -1)) + np.reshape(a.x, (2, 6))),
    ("ravel", lambda a: a.x.ravel() * a.x.flatten()),
    ("T", lambda a: a.x.T + a.x.transpose() + np.transpose(a.x, (1, 0)) + a.x.transpose(1, 0)),
    ("transpose 3", lambda a: a.t.transpose(2, 0, 1)),
    ("squeeze", lambda a: np.squeeze(a.e) + a.e.squeeze(axis=(0, 2)) + a.e.squeeze()),
    ("expand_dims", lambda a: np.expand_dims(a.x, (0, 2)) * a.x[:, None]),
    ("swapaxes", lambda a: a.t.swapaxes(0, 2) + np.swapaxes(a.t, 0, 2)),
    ("moveaxis", lambda a: np.moveaxis(a.t, 0, -1)),
    ("flip", lambda a: np.flip(a.x) + np.flip(a.x, 0) + np.flipud(a.x) + np.fliplr(a.x)),
    ("rot90", lambda a: np.rot90(a.x)),
    ("roll", lambda a: np.roll(a.x, 1) + np.roll(a.x, 2, axis=1)),
    ("concatenate", lambda a: np.concatenate([a.x, a.y, np.zeros((1, 4))])),
    ("concatenate promotes", lambda a: np.concatenate([a.v, a.k], axis=None)),
    ("stack", lambda a: np.stack([a.x, a.y], axis=1)),
    ("vstack", lambda a: np.vstack([a.v, a.k])),
    ("hstack", lambda a: np.hstack([a.v, a.k, [1.0]])),
    ("dstack", lambda a: np.dstack([a.x, a.y])),
    ("column_stack", lambda a: np.column_stack([a.v, a.k])),
    ("append", lambda a: np.append(a.v, a.k)),
    ("split", lambda a: np.split(a.x, 2, axis=1)),
    ("split at", lambda a: np.split(a.v, [1, 3])),
    ("array_split", lambda a: np.array_split(a.v, 3)),
    ("hsplit", lambda a: np.hsplit(a.x, 2)),
    ("vsplit", lambda a: np.vsplit(a.x, 3)),
    ("broadcast_to", lambda a: np.broadcast_to(a.v, (3, 4)) + 1),
    ("broadcast_arrays", lambda a: [one * 2 for one in np.broadcast_arrays(a.v, a.x)]),
    ("atleast", lambda a: np.atleast_2d(a.v) + np.atleast_1d(a.s) + np.atleast_3d(a.v)),
    ("tile", lambda a: np.tile(a.v, (2, 3))),
    ("repeat", lambda a: np.repeat(a.x, 2, axis=1)),
    ("repeat counts", lambda a: a.v.repeat([1, 2, 0, 3])),
    ("meshgrid", lambda a: list(np.meshgrid(a.v, a.k))),
    ("r_", lambda a: np.r_[a.v, np.float32(1) * a.v]),
    ("c_", lambda a: np.c_[a.v, a.v * 2]),
    ("pad", lambda a: np.pad(a.x, ((1, 0), (0, 2)), constant_values=3)),
    ("zeros_like", lambda a: np.zeros_like(a.x) + np.ones_like(a.x) + np.full_like(a.x, 3)),
    ("copy", lambda a: np.copy(a.x) + a.x.copy() + copy.deepcopy(a.x)),
    ("tril", lambda a: np.tril(a.m) - np.triu(a.m, 1)),
    ("diagonal", lambda a: np.diagonal(a.m) + np.diag(a.m, 0) + a.m.diagonal()),
    ("diag of a vector", lambda a: np.diag(a.v)),
)  # fmt: skip
ALGEBRA = table(
    ("dot", lambda a: np.dot(a.x, a.v) + a.x.dot(a.v)),
    ("dot of vectors", lambda a: np.dot(a.v, a.v)),
    ("dot with 3 axes", lambda a: np.dot(a.x, a.t.swapaxes(1, 2))),
    ("vdot", lambda a: np.vdot(a.x, a.y)),
    ("inner", lambda a: np.inner(a.x, a.y)),
    ("outer", lambda a: np.outer(a.v, a.k)),
    ("ufunc outer", lambda a: np.multiply.outer(a.v, a.x)),
    ("kron", lambda a: np.kron(a.v, a.x)),
    ("tensordot", lambda a: np.tensordot(a.t, a.x, axes=([1, 2], [0, 1]))),
    ("einsum", lambda a: np.einsum("tij,jk->tik", a.t, a.m)),
    ("cross", lambda a: np.cross(a.x[:, :3], a.y[:, 1:])),
    ("trace", lambda a: np.trace(a.m) + a.m.trace()),
    ("norm", lambda a: np.linalg.norm(a.x)),
    ("norm of rows", lambda a: a.x / np.linalg.norm(a.x, axis=-1, keepdims=True)),
    ("norm 1", lambda a: np.linalg.norm(a.v, 1)),
    ("inv", lambda a: np.linalg.inv(a.m)),
    ("det", lambda a: np.linalg.det(a.m)),
    ("solve", lambda a: np.linalg.solve(a.m, a.x.T)),
    ("pinv", lambda a: np.linalg.pinv(a.x)),
    ("cholesky", lambda a: np.linalg.cholesky(a.m @ a.m.T + np.eye(4))),
    ("matrix_power", lambda a: np.linalg.matrix_power(a.m, 3)),
    ("multi_dot", lambda a: np.linalg.multi_dot([a.x, a.m, a.m])),
    ("fft", lambda a: np.fft.fft(a.x)),
    ("rfft", lambda a: np.abs(np.fft.rfft(a.x, axis=0))),
    ("irfft", lambda a: np.fft.irfft(np.fft.rfft(a.x))),
)
NUMBERS = table(
    ("round", lambda a: np.round(a.x, 2) + a.x.round(1) + np.around(a.x)),
    ("fix", lambda a: np.fix(a.x * 3)),
    ("sinc", lambda a: np.sinc(a.x)),
    ("arccosh", lambda a: np.arccosh(1 + a.p)),
    ("nan_to_num", lambda a: np.nan_to_num(a.n, nan=7.0)),
    ("isnan", lambda a: np.where(np.isnan(a.n), 0, a.n)),
    ("isclose", lambda a: np.isclose(a.x, a.x + 1e-9)),
    ("nansum", lambda a: np.nansum(a.n, axis=0)),
    ("nanmax", lambda a: np.nanmax(np.concatenate([a.n, a.x]), axis=0)),
    ("nanmin", lambda a: np.nanmin(np.concatenate([a.n, a.x]), axis=0)),
    ("nanmean", lambda a: np.nanmean(np.concatenate([a.n, a.x]), axis=0)),
    ("sort", lambda a: np.sort(a.x, axis=0)),
    ("argsort", lambda a: np.argsort(a.f) + a.f.argsort()),
    ("diff", lambda a: np.diff(a.x, axis=0)),
    ("select", lambda a: np.select([a.x > 1, a.x > 0], [a.x, a.y * 2], 5.0)),
    ("quantile", lambda a: np.quantile(a.x, 0.3, axis=0)),
    ("percentile", lambda a: np.percentile(a.x, [10, 60])),
    ("argmax keepdims", lambda a: np.argmax(a.x, axis=1, keepdims=True)),
    ("argmin keepdims", lambda a: np.argmin(a.x, keepdims=True)),
    ("ptp", lambda a: np.ptp(a.x, axis=1)),
    ("average", lambda a: np.average(a.x, axis=1, weights=a.p)),
    ("average by row", lambda a: np.average(a.x, axis=1, weights=[1, 2, 3, 4])),
    ("count_nonzero", lambda a: np.count_nonzero(a.b, axis=1)),
    ("std ddof", lambda a: a.x.std(axis=0, ddof=1, keepdims=True)),
    ("sum of axes", lambda a: a.t.sum(axis=(0, 2), keepdims=True)),
    ("trapezoid", lambda a: getattr(np, "trapezoid", getattr(np, "trapz", None))(a.x, dx=0.1)),
    ("interp", lambda a: np.interp(a.x, [-1.0, 0.0, 1.0], [3.0, 5.0, -2.0])),
    ("searchsorted", lambda a: np.searchsorted(np.sort(a.f), a.x)),
    ("reduce", lambda a: np.add.reduce(a.x) + np.maximum.reduce(a.x, axis=0)),
    ("accumulate", lambda a: np.add.accumulate(a.x) + np.maximum.accumulate(a.x, axis=1)),
)
INDEXING = table(
    ("element", lambda a: a.x[1, 2]),
    ("element from the end", lambda a: a.x[-1, -2] * a.v[-1]),
    ("row", lambda a: a.x[1] + a.x[:, 0].sum()),
    ("slices", lambda a: a.x[1:, ::2] + a.x[:2, 1::2]),
    ("dots", lambda a: a.t[..., 0] + a.t[0, ..., 1][:, None].sum()),
    ("new axes", lambda a: a.v[None, :, None]),
    ("backwards", lambda a: a.x[::-1] + a.x[:, ::-1]),
    ("backwards by two", lambda a: a.x[::-2, 3:0:-2]),
    ("backwards twice", lambda a: a.x[::-1][::-1][:2] - a.x[::-1, ::-1][1:, ::-1]),
    ("backwards element", lambda a: a.v[::-1][0] + a.v[::-1][1:][0]),
    ("backwards and on", lambda a: a.x[::-1].T.reshape(-1) + a.x[::-1].ravel().sum()),
    ("index list", lambda a: a.x[[0, 2, 0]]),
    ("index lists", lambda a: a.x[[0, 2], [1, 3]]),
    ("index array", lambda a: a.x[:, a.k]),
    ("index array before", lambda a: a.t[:, a.k[:2], 1:]),
    ("traced number beside array", lambda a: a.t[a.k[0] % 2, :, a.k]),
    ("number and array apart", lambda a: a.t[0, :, a.k]),
    ("number beside array", lambda a: a.t[:, 1, a.k]),
    ("negative indices", lambda a: a.x[[-1, -2]]),
    ("traced number", lambda a: a.x[a.k[0]] + a.v[a.k[1]]),
    ("traced number in the middle", lambda a: a.t[:, a.k[0], 1:]),
    ("argmax as index", lambda a: a.v[np.argmax(a.v)] + a.x[:, a.v.argmin()]),
    ("mask", lambda a: a.x[a.x > 0].sum()),
    ("mask rows", lambda a: a.x[a.b[:, 0] | True, 1]),
    ("nonzero", lambda a: a.x[np.nonzero(a.x > 0)].sum() + a.x[np.where(a.b)].sum()),
    ("flatnonzero", lambda a: np.flatnonzero(a.x > 0).sum() + np.argwhere(a.b).sum()),
    ("unique", lambda a: np.unique(a.k * 0)),
    ("take", lambda a: np.take(a.x, a.k, axis=0) + a.v.take([0, -1, 2, 1])),
    ("take_along_axis", lambda a: np.take_along_axis(a.x, np.argsort(a.x, axis=1), axis=1)),
    ("unpack", lambda a: (lambda p, q, r, s: p * q - r / s)(*a.v)),
    ("rows", lambda a: sum(row * 2 for row in a.x)),
    ("list of scalars", lambda a: np.array([a.v[0], a.x[0, 1], 3.0])),
    ("nested lists", lambda a: np.array([[a.x[0, 0], 1], [2, a.x[1, 1]]])),
    ("array of arrays", lambda a: np.asarray([a.x[0], a.y[1]])),
    ("scalar functions", lambda a: np.sqrt(np.abs(a.x.sum())) + np.sin(a.x[0, 0])),
    ("scalar methods", lambda a: a.x.sum().astype(np.float32).round(2)),
    ("scalar arithmetic", lambda a: 2 - a.v[0] * np.float64(3) / (1 + a.v[1]) ** 2),
    ("scalar comparisons", lambda a: (a.v[0] > 0) & (a.v[1] <= a.v[2])),
    ("mean of a list", lambda a: np.mean([a.x, a.y, np.ones((3, 4))], axis=0)),
    ("max of scalars", lambda a: np.max([a.v[0], a.v[1], 0.5])),
    ("norm of a list", lambda a: np.linalg.norm([a.x[0, 0], a.x[0, 1]])),
    ("stack of lists", lambda a: np.stack([[a.x[0, 0], 1.0], [2.0, a.x[1, 0]]])),
    ("dot with a list", lambda a: np.dot(np.ones((2, 2)), [a.x[0, 0], a.x[0, 1]])),
    ("where of lists", lambda a: np.where([True, False], [a.x[0, 0], 1], [0, a.x[0, 1]])),
    ("asarray", lambda a: np.asarray(a.x) + np.asarray(a.v, dtype=np.float64)),
    ("ascontiguousarray", lambda a: np.ascontiguousarray(a.x.T)),
    ("empty", lambda a: a.x[0:0] * 2),
)  # fmt: skip


def case_of(statements: str) -> Case:
    """Return statements that end in `r` as a function; in-place forms are no expressions."""
    code = compile(statements, "<case>", "exec")

    def case(a: SimpleNamespace) -> Any:
        space: dict[str, Any] = {"a": a, "np": np}
        exec(code, space)
        return space["r"]

    return case


WRITES = {
    text: case_of(text)
    for text in (
        "r = a.x; r += a.y; r *= 2; r -= 1; r /= 3",
        "r = a.i; r //= a.j; r %= 4; r <<= 1; r |= 1; r &= 7; r ^= 2",
        "r = a.v; r += a.k",
        "r = a.x.copy(); r **= 2; r @= a.m",
        "r = a.x; a.x[0] = 5",
        "r = a.x; row = r[1]; row += 1; r[0, 2] = row.sum()",
        "r = a.x; r[1:, ::2] = a.y[:2, 1::2]",
        "r = a.x; r[:, 0] = a.y[:, 1] * 2",
        "r = a.x; r[r > 0] = 0",
        "r = a.x; r[a.b] = a.y[a.b]",
        "r = a.x; r[[0, 2]] = a.y[[2, 0]]",
        "r = a.x; r[:, a.k[:1]] = 7",
        "r = a.x; r[a.k[0]] = a.y[0]",
        "r = a.x; r[a.k[0], 1] = a.y[0, 0]",
        "r = a.x; r[::-1] = a.y",
        "r = a.x; r[:, ::-2] = a.y[:, :2]",
        "r = a.x; back = r[::-1]; back[0] = 3; back += 1; back[[1, 2]] = a.y[:2]",
        "r = a.x; back = r[::-1]; r[0] = 3; r = back * 2",
        "r = a.x; r.T[1] = 9",
        "r = a.x; r.reshape(-1)[3:5] = a.v[:2]",
        "r = a.x; flat = r.flatten(); flat[0] = 5; r = r + flat.sum()",
        "r = a.x; r[...] = a.v",
        "r = a.i; r[0] = a.x[0] * 3",
        "r = a.x; r.fill(2.5)",
        "r = a.x; r.sort(axis=0)",
        "r = a.x; np.add(a.x, a.y, out=r)",
        "r = np.zeros((3, 4)); np.exp(a.x, out=r)",
        "r = np.empty(3); a.x.sum(axis=1, out=r)",
        "r = np.zeros((3, 4)); np.divide(a.x, a.y, out=r, where=a.b)",
        "r = a.x; np.copyto(r, a.y)",
        "r = a.x; np.copyto(r, 0.0, where=a.b)",
        "r = a.x; np.clip(r, -1, 1, out=r)",
        "r = a.x; np.add.at(r, [0, 0, 2], a.y)",
        "r = np.zeros(3); r[0] = a.x[0, 0]; r[1:] = a.v[:2]",
        "r = np.ones((2, 4), dtype=np.float32); r[0] = a.x[1]",
        "r = np.full(3, a.v[0]); r[1] += a.v[1]",
        "r = np.array([0.0, 0.0]); r[0] = a.v[0] * 2",
        "s = a.x.sum(); r = s; s += 1; r = r * 3",
        "s = a.v[0]; a.v[0] = 100; r = s + 1",
        "r = np.linspace(0, 1, 4); r *= a.v",
        "noise = np.random.default_rng(0).normal(size=4); noise += a.v; r = noise * 2",
        "r = a.x; r[0], r[1] = r[1].copy(), r[0].copy()",
        "r = np.zeros(4); r += np.arange(4); r[1:] += a.v[1:]",
        "c = np.zeros((3, 4)); d = np.diagonal(c); c[0, 0] = a.v[0]; r = d * 2",
        "r = np.roll(a.x.T, 1, axis=0); flat = r.T.reshape(-1); flat[0] = 7",
        "r = np.argsort(np.zeros(40) * 1) * a.x[0, 0]",
        "r = a.t; r[0, :, [1, 2]] = 4",
        "r = a.x[1]; r.shape = (2, 2); r = r @ r",
        "quotient, rest = divmod(a.i, a.j); r = quotient * 10 + rest",
    )
}

EXPRESSIONS: dict[str, Case] = {
    **BINARY,
    **INTEGER,
    **UNARY,
    **REDUCTIONS,
    **SIGNALS,
    **DTYPES,
    **MIXED,
    **SHAPES,
    **ALGEBRA,
    **NUMBERS,
    **INDEXING,
}


def test_the_sweep_is_as_broad_as_promised() -> None:
    assert len(EXPRESSIONS) >= 240
    assert len(array_table.UFUNCS) >= 62
    assert len(array_table.FUNCTIONS) >= 61


def test_every_function_leapp_records_is_recorded() -> None:
    ufuncs = words("""
        add subtract multiply divide true_divide floor_divide power negative positive mod remainder
        fmod absolute abs sign sqrt square exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin
        arccos arctan arctan2 hypot sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc rint
        greater greater_equal less less_equal equal not_equal maximum minimum matmul logical_and
        logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor invert left_shift
        right_shift isnan isinf isfinite
    """)
    functions = words("""
        clip sum prod mean std var min max argmin argmax cumsum cumprod all any concatenate stack
        vstack hstack split array_split squeeze expand_dims reshape transpose swapaxes moveaxis flip
        roll rot90 sort argsort where nonzero round around dot tensordot einsum trace diagonal tril
        triu zeros_like ones_like full_like empty_like
    """)
    assert [name for name in ufuncs if getattr(np, name) not in array_table.UFUNCS] == []
    assert [name for name in functions if getattr(np, name) not in array_table.FUNCTIONS] == []


# --- random programs


def program(seed: int) -> Case:
    """Return a random program of views, writes and computations; its shapes come from the seed."""

    def run(a: SimpleNamespace) -> Any:
        random = np.random.default_rng(seed)
        values = [a.x, a.y, a.m, a.t.astype(np.float64)]
        for _ in range(12):
            one, other = (values[int(random.integers(len(values)))] for _ in range(2))
            values.append(STEPS[int(random.integers(len(STEPS)))](one, other, random))
        return [value * 1 for value in values]

    return run


def random_key(shape: tuple[int, ...], random: np.random.Generator) -> tuple[Any, ...]:
    def item(count: int) -> Any:
        first, last = sorted(int(cut) for cut in random.integers(0, count + 1, 2))
        return [
            slice(None),
            slice(None, None, -1),
            slice(first, last),
            slice(None, None, 2),
            slice(last, None, -2),
            slice(first, None),
        ][int(random.integers(6))]

    return tuple(item(count) for count in shape[: int(random.integers(len(shape) + 1))])


def fitting(one: Any, other: Any) -> Any:
    return other if other.shape == one.shape else other.sum()


def write_part(one: Any, other: Any, random: np.random.Generator) -> Any:
    key = random_key(one.shape, random)
    one[key] = fitting(one[key], other) * 0.5
    return one


def add_in_place(one: Any, other: Any, random: np.random.Generator) -> Any:
    part = one[random_key(one.shape, random)]
    part += fitting(part, other) * 0.25
    return part


def write_masked(one: Any, other: Any, random: np.random.Generator) -> Any:
    one[one > 0.5] *= 0.5
    return one


STEPS: list[Callable[[Any, Any, np.random.Generator], Any]] = [
    lambda one, other, random: one[random_key(one.shape, random)],
    lambda one, other, random: one[random_key(one.shape, random)],
    lambda one, other, random: one.T,
    lambda one, other, random: one.reshape(-1),
    lambda one, other, random: np.flip(one, int(random.integers(one.ndim))),
    lambda one, other, random: np.tanh(one) + fitting(one, other) * 0.1,
    lambda one, other, random: np.concatenate([one, one[::-1]])[: one.shape[0] + 1],
    lambda one, other, random: one.copy(),
    write_part,
    write_part,
    add_in_place,
    add_in_place,
    write_masked,
]


@pytest.mark.parametrize("seed", range(60))
def test_any_program_of_views_and_writes_is_recorded(seed: int) -> None:
    run_case(program(seed))


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_caller_gets_numpys_bits_and_torch_the_computation(name: str) -> None:
    assert run_case(EXPRESSIONS[name]).escapes == []


@pytest.mark.parametrize("statements", WRITES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_writes_are_recorded(statements: str) -> None:
    assert run_case(WRITES[statements]).escapes == []


# --- what is not silent


def run_here(statements: str, **values: Any) -> tuple[dict[str, Any], list[str]]:
    """Run statements in a session on traced arrays; return their names and the escapes."""
    with Session() as session:
        space: dict[str, Any] = {"np": np, "torch": torch, "math": math}
        space |= {name: arrays.trace_array(value) for name, value in values.items()}
        exec(compile(statements, "user.py", "exec"), space)
    return space, session.escapes


VECTOR = np.array([0.5, -1.5, 2.5])
MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("np.linalg.eig(m)", "numpy.linalg.eig"),
        ("np.linalg.qr(m)", "numpy.linalg.qr"),
        ("np.histogram(x)", "numpy.histogram"),
        ("np.histogram([x, x])", "numpy.histogram"),
        ("np.insert(x, 0, 1)", "numpy.insert"),
        ("np.spacing(x)", "numpy.spacing"),
        ("np.frexp(x)", "numpy.frexp"),
        ("np.add.reduceat(x, [0, 1])", "numpy.add.reduceat"),
        ("np.multiply.at(x, [0], 2)", "numpy.multiply.at"),
        ("np.put(x, [0], 1)", "numpy.put"),
        ("np.histogram(x)", "numpy.histogram"),
        ("np.quantile(m, 0.5, axis=(0, 1))", "numpy.quantile"),
        ("np.random.shuffle(x)", "numpy.random.shuffle"),
        ("np.random.normal(x)", "numpy.random.normal"),
        ("np.pad(x, 1, mode='reflect')", "numpy.pad"),
        ("np.sum(x, where=[True, False, True])", "numpy.sum"),
        ("np.sum(x, initial=3.0)", "numpy.sum"),
        ("np.add(x, 1, where=[True, False, True])", "numpy.add"),
        ("np.nan_to_num(x, copy=False)", "numpy.nan_to_num"),
        ("x.partition(1)", "numpy.ndarray.partition"),
        ("x.put([0], 1)", "numpy.ndarray.put"),
        ("x.flat", "numpy.ndarray.flat"),
        ("x.view(np.int64)", "numpy.ndarray.view"),
        ("x.resize(2)", "numpy.ndarray.resize"),
        ("x.sum().as_integer_ratio()", "numpy.ndarray.as_integer_ratio"),
        ("x.astype(str)", "numpy.ndarray.astype"),
        ("x.reshape(3, 1, order='F')", "numpy.ndarray.reshape"),
    ],
)
@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
def test_what_has_no_counterpart_is_refused_with_name_and_line(statement: str, name: str) -> None:
    with pytest.raises(TraceError) as caught:
        run_here(f"y = x\n{statement}", x=VECTOR.copy(), m=MATRIX.copy())
    (found,) = caught.value.diagnostics
    assert found.code == "VER0922"
    assert found.message.startswith(name + " ")
    assert found.location == "user.py:2"
    assert found.hints


@pytest.mark.parametrize(
    "statement",
    ["np.linalg.qr(c)", "np.histogram(c)", "np.fill_diagonal(c, 0)", "np.poly(c)"],
)
def test_constants_may_be_computed_with_anything(statement: str) -> None:
    space, _ = run_here(f"c = np.ones((3, 3)); k = {statement}; y = x + c", x=VECTOR.copy())
    plain: dict[str, Any] = {"np": np, "x": VECTOR.copy()}
    exec(f"c = np.ones((3, 3)); k = {statement}; y = x + c", plain)
    compare(plain["y"], arrays.plain(space["y"]), exact=True)


def test_a_write_without_counterpart_into_a_constant_is_recorded() -> None:
    run_case(case_of("r = np.zeros((4, 4)); np.fill_diagonal(r, 2); r = r * a.v"))


@pytest.mark.parametrize(
    ("statement", "how"),
    [
        ("float(x[0])", "__float__"),
        ("float(x.sum())", "__float__"),
        ("int(x[1])", "__int__"),
        ("bool(x[0] > 0)", "__bool__"),
        ("1 if x.max() > 0 else 2", "__bool__"),
        ("x[0].item()", "item"),
        ("x.item(1)", "item"),
        ("x.tolist()", "tolist"),
        ("range(k[0])", "__index__"),
        ("[1, 2, 3, 4][k[0]]", "__index__"),
        ("x[: k[0]]", "__index__"),
        ("math.sin(x[0])", "__float__"),
        ("f'{x[0]:.2f}'", "__format__"),
        ("round(x[0])", "__round__"),
        ("0.5 in x", "__contains__"),
        ("x.tobytes()", "tobytes"),
        ("x.view(np.ndarray)", "view"),
        ("x.data", "data"),
        ("x.__array_interface__", "__array_interface__"),
        ("np.allclose(x, 1.0)", "numpy.allclose"),
        ("np.array_equal(x, [1.0])", "numpy.array_equal"),
        ("hash(x[0])", "__hash__"),
        ("x[x > 0].shape", "shape"),
        ("len(x[x > 0])", "__len__"),
        ("x[x > 0].size", "size"),
        ("np.nonzero(x)[0].shape", "shape"),
        ("np.shape(x[x > 0] * 2)", "numpy.shape"),
        ("[v for v in x[x > 0]]", "__iter__"),
    ],
)
def test_a_value_that_leaves_for_python_is_reported(statement: str, how: str) -> None:
    space, escapes = run_here(f"r = {statement}", x=VECTOR.copy(), k=np.array([2]))
    assert escapes == [how]
    plain: dict[str, Any] = {"np": np, "math": math, "x": VECTOR.copy(), "k": np.array([2])}
    exec(f"r = {statement}", plain)
    if how not in ("data", "__array_interface__"):
        assert np.array_equal(arrays.plain(space["r"]), plain["r"])


@pytest.mark.parametrize(
    "statement",
    ["p[0] = x[0]", "p[:] = [x[0], x[1], 0]", "np.exp([x[0], x[1]])", "sorted(x)"],
)
def test_a_scalar_that_compiled_code_reads_is_reported(statement: str) -> None:
    old = np.zeros(3)
    with Session() as session:
        x = arrays.trace_array(VECTOR.copy())
        exec(statement, {"np": np, "x": x, "p": old})
    assert session.escapes


@pytest.mark.parametrize(
    ("statement", "ways"),
    [
        ("str(x)", ["__str__"]),
        ("repr(x)", ["__str__"]),
        ("f'{x}'", ["__format__"]),
        ("str(x[0])", ["__str__"]),
        ("x.shape", []),
        ("len(x)", []),
    ],
)
def test_text_is_an_escape_and_a_shape_is_none(statement: str, ways: list[str]) -> None:
    space, escapes = run_here(f"r = {statement}", x=VECTOR.copy())
    plain: dict[str, Any] = {"x": VECTOR.copy()}
    exec(f"r = {statement}", plain)
    assert (space["r"], escapes) == (plain["r"], ways)


@pytest.mark.parametrize(
    "statements",
    [
        "row = m[k[0]]; row += 1",
        "row = m[k[0]]; row[0] = 1",
        "row = m[k[0]]; m[0] = 5; y = row * 2",
    ],
)
def test_a_view_at_a_traced_place_is_not_written_or_outdated(statements: str) -> None:
    with pytest.raises(TraceError, match="a traced number picked"):
        run_here(statements, m=MATRIX.copy(), k=np.array([0]))


# --- the constructors


def test_constructors_keep_identity() -> None:
    with Session():
        x = arrays.trace_array(VECTOR.copy())
        assert np.asarray(x) is x
        assert np.asanyarray(x) is x
        assert np.asarray(x, dtype=np.float64) is x
        assert np.array(x) is not x
        assert not np.shares_memory(arrays.plain(np.array(x)), arrays.plain(x))
        assert torch.from_numpy(x) is arrays.tensor_of(x)
        assert torch.as_tensor(x) is arrays.tensor_of(x)
        assert torch.tensor(x).data_ptr() != arrays.tensor_of(x).data_ptr()
        assert torch.as_tensor(x, dtype=torch.float32).dtype == torch.float32
        assert torch.tensor([x[0], x[1] * 2]).tolist() == [0.5, -3.0]
        assert torch.tensor([x[0], 2.0]).dtype == torch.float64


def test_a_scalar_is_a_traced_array_but_no_array() -> None:
    with Session():
        total = arrays.trace_array(VECTOR.copy()).sum()
        assert isinstance(total, arrays.TracedArray)
        assert not isinstance(total, np.ndarray)
        assert arrays.tensor_of(total).shape == ()
        assert (total.dtype, total.shape, total.ndim) == (np.float64, (), 0)
        with pytest.raises(TypeError):
            iter(total)


def test_constructors_are_put_back_exactly() -> None:
    names = [
        (np, name) for name in words("array asarray asanyarray ascontiguousarray zeros full mean")
    ]
    names += [(torch, name) for name in words("from_numpy as_tensor tensor")]
    before = [getattr(*name) for name in names]
    replaced = Replaced()
    arrays.install_patches(replaced)
    ours = [getattr(*name) for name in names]
    assert all(new is not old for new, old in zip(ours, before, strict=True))
    for back in (replaced.withdraw, replaced.withdraw, replaced.remove, replaced.remove):
        back()
        assert [getattr(*name) for name in names] == before


def test_constructors_that_were_withdrawn_are_put_back_but_not_over_others() -> None:
    replaced = Replaced()
    arrays.install_patches(replaced)
    ours = np.asarray
    replaced.withdraw()
    theirs, before = (lambda value: value), np.zeros
    np.zeros = theirs
    try:
        replaced.put_back()
        assert np.asarray is ours
        assert np.zeros is theirs
    finally:
        np.zeros = before
        replaced.remove()


def test_arrays_of_libraries_and_other_dtypes_stay_plain() -> None:
    with Session():
        assert type(np.random.default_rng(0).normal(size=3)) is np.ndarray
        assert type(np.array(["a"])) is np.ndarray
        assert type(np.array([None])) is np.ndarray
        assert arrays.is_traced(np.zeros(3))


def test_scripting_works_in_a_session() -> None:
    def scripted(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([1.0])

    with Session():
        found = torch.jit.script(scripted)
    assert found(torch.zeros(1)).tolist() == [1.0]


def test_torch_and_numpy_meet_in_torch() -> None:
    tensor = torch.ones(3)
    wanted = [tensor * VECTOR, tensor * VECTOR[0]]
    with Session() as session:
        x = arrays.trace_array(VECTOR.copy())
        alias = arrays.tensor_of(x)
        found = [tensor * x, tensor * x[0]]
    assert all(isinstance(one, torch.Tensor) for one in found)
    assert [one.dtype for one in found] == [one.dtype for one in wanted]
    assert all(map(torch.equal, found, wanted))
    again = session.log.replay({id(alias): alias * 2, id(tensor): tensor})
    assert all(torch.equal(again(one), old * 2) for one, old in zip(found, wanted, strict=True))


def test_a_tensor_as_an_array_shares_its_memory() -> None:
    with Session():
        tensor = torch.arange(4.0)
        array = arrays.array_from_tensor(tensor)
        array[1:] *= 2
        assert arrays.tensor_of(array) is tensor
    assert tensor.tolist() == [0, 2, 4, 6]


def test_a_reversed_array_is_copied_where_one_tensor_must_stand_for_it() -> None:
    with Session():
        x = arrays.trace_array(VECTOR.copy())
        back = arrays.forwards(x[::-1])
        assert arrays.forwards(x) is x
        assert arrays.tensor_of(back) is arrays.tensor_of(back)
        assert arrays.tensor_of(back).tolist() == VECTOR[::-1].tolist()


def test_an_untraced_name_of_traced_memory_is_traced() -> None:
    mine = VECTOR.copy()
    with Session() as session:
        x = arrays.trace_array(mine)
        alias = arrays.tensor_of(x)
        y = arrays.tensor_of(np.zeros(3) + mine * x)
    again = session.log.replay({id(alias): torch.full((3,), 3.0, dtype=torch.float64)})
    assert again(y).tolist() == [9, 9, 9]


def test_a_neighbour_of_traced_memory_is_a_constant() -> None:
    table = np.arange(6.0).reshape(3, 2)
    with Session() as session:
        x = arrays.trace_array(table[:, 0])
        alias = arrays.tensor_of(x)
        y = arrays.tensor_of(x * table[:, 1])
    again = session.log.replay({id(alias): torch.ones(3, dtype=torch.float64)})
    assert again(y).tolist() == [1, 3, 5]


def test_a_changed_constant_is_another_constant() -> None:
    table = np.ones(3)
    with Session() as session:
        x = arrays.trace_array(VECTOR.copy())
        alias = arrays.tensor_of(x)
        first = arrays.tensor_of(x * table)
        table[:] = 5
        second = arrays.tensor_of(x * table)
    again = session.log.replay({id(alias): torch.ones(3, dtype=torch.float64)})
    assert (again(first).tolist(), again(second).tolist()) == ([1, 1, 1], [5, 5, 5])


def test_a_wrong_entry_of_the_table_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(array_table.UFUNCS, np.sin, torch.cos)
    with pytest.raises(TraceError, match=r"numpy\.sin gives other values"):
        run_here("np.sin(x)", x=VECTOR.copy())


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"]),
        np.array([1, None]),
        np.ones(2, np.longdouble),
        np.ones(2, ">f8"),
        np.ma.masked_array([1.0, 2.0], [True, False]),
    ],
    ids=str,
)
def test_arrays_that_torch_cannot_hold_are_refused(array: Any) -> None:
    with Session(), pytest.raises(TraceError, match="VER0922"):
        arrays.trace_array(array)


@pytest.mark.parametrize(
    "array",
    [
        MATRIX[::-1],
        MATRIX.T,
        MATRIX[:, ::-1][:, :1],
        np.broadcast_to(VECTOR, (2, 3)),
        np.ones((0, 2)),
    ],
    ids=["reversed", "transposed", "reversed part", "broadcast", "empty"],
)
def test_arrays_of_any_layout_can_be_traced(array: Any) -> None:
    with Session():
        found = arrays.trace_array(array) * 2
        assert arrays.tensor_of(found).tolist() == (array * 2).tolist()


# --- after the session


def test_after_the_session_arrays_are_plain() -> None:
    with Session() as session:
        x = arrays.trace_array(VECTOR.copy())
        total = x.sum()
    calls = len(session.log.calls)
    x[0] = 9
    x += 1
    x.sort()
    assert type(x * 2) is np.ndarray
    assert type(x[0]) is np.float64
    assert type(np.sin(x)) is np.ndarray
    assert type(x.reshape(3, 1)) is np.ndarray
    assert type(x.T) is np.ndarray
    assert type(total + 1) is np.float64
    assert float(total) == 1.5
    assert x.tolist() == [-0.5, 3.5, 10]
    assert np.histogram(x)[0].sum() == 3
    assert (len(session.log.calls), session.escapes) == (calls, [])


def test_a_user_error_is_numpys_error() -> None:
    with Session(), pytest.raises(ValueError, match="could not be broadcast"):
        arrays.trace_array(VECTOR.copy()) + np.ones(2)
    with Session(), pytest.raises(IndexError):
        arrays.trace_array(VECTOR.copy())[7]


# --- constants: NumPy without any traced value is NumPy alone


PLAIN_IDIOMS = [
    line.strip()
    for line in """
    np.array([1.5, 2])[0]
    np.zeros(2)[1]
    np.arange(3)[-1]
    np.ones((2, 2))[0, 1]
    np.arange(6).reshape(2, 3)[:, 1]
    np.arange(6)[::-1][1:3]
    np.arange(6)[[1, 2]]
    np.arange(6)[np.arange(6) > 2]
    np.eye(3)[np.array([0, 2])]
    np.ones(3, bool)[0]
    isinstance(np.array([1.0])[0], np.floating)
    isinstance(np.array([1.0])[0], float)
    isinstance(np.arange(2)[0], np.integer)
    isinstance(np.zeros(2).sum(), float)
    np.zeros(3).sum()
    np.arange(4).max()
    np.array(3.0)[()]
    np.linspace(0, 1, 5).mean()
    np.array([1, 2]).tolist()
    np.array([7]).item()
    list(np.arange(3))
    np.arange(3) + 1
    (np.random.seed(0), np.random.choice(np.arange(5)))[1]
    (np.random.seed(0), np.random.choice(np.arange(5), 3))[1]
    (np.random.seed(0), np.random.permutation(np.arange(5)))[1]
    (np.random.seed(0), np.random.normal(np.zeros(2), np.ones(2)))[1]
    (np.random.seed(0), c := np.arange(5), np.random.shuffle(c), c * 2)[3]
    np.random.default_rng(0).choice(np.arange(5), 2)
    (c := np.arange(5), np.random.default_rng(0).shuffle(c), c + 0)[2]
    (c := np.arange(5.0), np.random.default_rng(0).permutation(c))[1]
    list(np.zeros(2).flat)
    np.arange(4).reshape(2, 2).flat[3]
    np.zeros(2).view(np.int64)
    (c := np.zeros(2), c.view(np.int64).fill(1), c * 1)[2]
    np.ones(2).view(np.ndarray)
    (c := np.zeros((2, 2)), c.flat.__setitem__(1, 5.0), c * 2)[2]
    np.vectorize(lambda v: v + 1)(np.arange(3))
    np.matrix(np.ones((2, 2)))
    np.matrix(np.ones((2, 2))) * 2
    list(np.ndenumerate(np.array([[1, 2], [3, 4]])))
    list(np.ndindex(*np.array([2, 2])))
    np.unravel_index(3, tuple(np.array([2, 2])))
    [int(v) for v in np.nditer(np.arange(3))]
    np.apply_along_axis(sum, 0, np.ones((2, 2)))
    np.lib.stride_tricks.sliding_window_view(np.arange(4), 2)
    np.histogram(np.arange(4.0))
    np.linalg.qr(np.eye(2))
    np.linalg.svd(np.eye(2))
    np.linalg.norm(np.ones(2))
    np.convolve(np.ones(3), np.ones(2))
    np.polyfit(np.arange(4.0), np.arange(4.0), 1)
    np.array([1 + 2j, 3]).real
    np.array([1 + 2j]).imag[0]
    np.arange(3).astype(str)
    np.arange(3).astype(object)
    np.arange(4).tobytes()
    np.split(np.arange(4), 2)
    np.unique(np.array([3, 1, 3]), return_counts=True)
    np.argsort(np.array([2, 1]))
    divmod(np.arange(1, 4), 2)
    np.add.reduceat(np.arange(4), [0, 2])
    hash(np.ones(1)[0])
    (c := np.arange(3), np.add.at(c, [0, 0], 1), c + 0)[2]
    np.ones(2)[0].as_integer_ratio()
    (c := np.array([3, 1, 2]), c.sort(), c.partition(1), c + 0)[3]
    (c := np.zeros(3), c.put([0], 4), np.put(c, [1], 2), np.copyto(c[2:], 7), c + 0)[4]
    np.arange(3.0).__array_interface__['typestr']
    bytes(np.zeros(1, np.uint8).data)
    copy.deepcopy(np.arange(3))
    pickle.loads(pickle.dumps(np.arange(3)))
    2 in np.arange(3)
    max(np.array([1, 5]))
    sorted(np.array([3, 1]))
    sum(np.arange(4))
    [5, 6][np.arange(2)[1]]
    f'{np.array([1.5])[0]:.1f}'
    {np.arange(2)[1]: 1}
    math.floor(np.array([2.5])[0])
    np.add(np.ones(2), 1, out=np.zeros(2))
    np.ones(2).dot(np.ones(2))
    json.dumps(np.arange(3).tolist())
    np.ma.masked_array(np.arange(3), [1, 0, 0]).sum()
    np.broadcast_to(np.arange(2), (2, 2))
    np.meshgrid(np.arange(2), np.arange(2))
    torch.arange(4)[np.array([1])[0]]
    torch.arange(4).view(*np.array([2, 2]))
    torch.zeros(tuple(np.array([2, 2])))
    torch.full((2,), np.array([3.0])[0])
    torch.arange(np.array([3])[0])
    torch.arange(4.0).clamp(*np.array([1.0, 2.0]))
    (torch.manual_seed(0), torch.randint(np.array([9])[0], (2,)))[1]
    (t := torch.zeros(2), t.__setitem__(0, np.array([3.0])[0]), t)[2]
    torch.nn.functional.pad(torch.ones(2), tuple(np.array([1, 1])))
    torch.arange(4)[: np.array([2])[0]]
    torch.arange(4)[np.array([0, 1])]
    torch.arange(4)[np.arange(2)]
    torch.eye(3)[:, np.array([2, 0])]
    torch.arange(3)[np.ones(3, bool)]
    (t := torch.zeros(3), t.__setitem__(np.array([0, 2]), 2.0), t)[2]
    torch.arange(3)[np.argsort(np.array([2, 0, 1]))]
    torch.arange(4).reshape(*np.array([2, 2]))
    torch.from_numpy(np.arange(3))
    torch.tensor(np.ones(2))
    torch.as_tensor(np.arange(2))
    (c := np.zeros(3), c.__setitem__(0, 5), torch.from_numpy(c))[2]
    (c := np.zeros(3), c.flat.__setitem__(0, 5), torch.from_numpy(c))[2]
    torch.ones(2) * np.array([2.0, 3.0])
    torch.ones(2) * np.array([2.0])[0]
    np.array([2.0])[0] * torch.ones(2)
    torch.mul(torch.ones(2), np.array([2.0])[0])
    torch.tensor([np.arange(2)[1], 5])
    torch.Tensor(np.array([1.0, 2.0]))
    """.strip().splitlines()
]


def evaluate(expression: str) -> Any:
    space = {name: sys.modules[name] for name in ("copy", "json", "math", "pickle", "torch")}
    return eval(compile(expression, "user.py", "eval"), {**space, "np": np, "__name__": "user"})


def attempt(expression: str) -> Any:
    try:
        return evaluate(expression)
    except Exception as error:
        return error


def assert_same(wanted: Any, found: Any) -> None:
    """Hold a value to the one without a session: of the same type, and equal."""
    assert type(arrays.plain(found)) is type(wanted)
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(wanted, found, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, torch.Tensor):
        assert found.dtype == wanted.dtype
        assert torch.equal(found, wanted)
    elif isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        assert found.tolist() == wanted.tolist()
    else:
        assert type(found) is type(wanted)
        assert found == wanted


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Evaluate all idioms in one session; one that raises has its exception as its value."""
    found: dict[str, Any] = {}
    with (
        warnings.catch_warnings(),
        veracity.session("plain", save_path=str(tmp_path_factory.mktemp("plain"))),
    ):
        warnings.simplefilter("ignore")
        for expression in PLAIN_IDIOMS:
            found[expression] = attempt(expression)
    return found


@pytest.mark.parametrize("expression", PLAIN_IDIOMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_numpy_without_traced_values_is_numpy_alone(
    expression: str, evaluated: dict[str, Any]
) -> None:
    assert_same(evaluate(expression), evaluated[expression])


@pytest.mark.parametrize(
    "statements",
    [
        "c = np.zeros(4); c[1] = 5; c.flat[2] = 7; r = a.v * c",
        "c = np.zeros(4); c.view(np.int64)[:] = 3; c[0] = 2; r = a.v + c",
        "c = np.arange(4.0); np.random.seed(0); np.random.shuffle(c); r = c * a.v",
        "c = np.arange(4.0)[::-1]; c[0] = 9; d = c[1:3]; d[0] = a.v[2]; r = c * 2",
        "c = np.zeros(4); c.flat[1] = 3; c[0] = a.v[0]; r = c * 1",
        "c = np.zeros(4); row = c[1:]; c.put([1], 4); row[1] = a.v[1]; r = c + row.sum()",
        "c = np.zeros(4, complex); c.real[1] = 2; r = a.v * c.real",
        "c = np.zeros(4); s = c[0]; c += a.v; r = c + s",
        "c = np.arange(4); r = a.v[c[1:]] * c[2] + a.v[c[0]]",
        "r = np.asarray(np.matrix(np.ones((4, 4)))) @ a.v",
    ],
)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_constant_is_recorded_with_what_it_holds_when_a_traced_value_meets_it(
    statements: str,
) -> None:
    assert run_case(case_of(statements)).escapes == []


@pytest.mark.parametrize("alias", ["c.flat", "c.view(np.int64)", "c.data", "np.asmatrix(c)[:, 1:]"])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_traced_value_is_not_written_where_an_unrecorded_name_would_show_it(alias: str) -> None:
    with pytest.raises(TraceError, match="not recorded shows too"):
        run_here(f"c = np.zeros(3)\nk = {alias}\nc[0] = x[0]", x=VECTOR.copy())
    run_here(f"c = np.zeros(3)\nk = {alias}\ndel k\nc[0] = x[0]", x=VECTOR.copy())


@pytest.mark.parametrize(
    "statement",
    [
        "torch.arange(x[2])",
        "torch.linspace(0, x[2], 3)",
        "torch.zeros((k[0], 2))",
        "torch.arange(4).view(k[0], 2)",
        "torch.arange(4)[: k[0]]",
    ],
)
def test_a_traced_scalar_is_a_number_to_torch_and_is_reported(statement: str) -> None:
    space, escapes = run_here(f"r = {statement}", x=VECTOR.copy(), k=np.array([2]))
    assert escapes
    plain = {"torch": torch, "x": VECTOR, "k": np.array([2])}
    assert_same(eval(statement, plain), space["r"])


@pytest.mark.parametrize(
    "statement",
    [
        "torch.full((2,), x[0])",
        "torch.mul(torch.ones(2), x[0])",
        "torch.ones(2).mul(x[0])",
        "torch.ones(2).sub_(x[0])",
        "torch.ones(2).add(torch.ones(2), alpha=x[0])",
        "torch.ones(2).clamp(x[0], 3)",
        "torch.ones(2).clamp(max=x[0])",
        "torch.full((2,), 1.5).pow(x[0])",
        "torch.where(torch.ones(2) > 2, torch.ones(2), x[0])",
        "torch.nn.functional.leaky_relu(-torch.ones(2), x[0])",
        "torch.ones(2).masked_fill(torch.ones(2) > 0, x[0])",
        "torch.ones(2) * x[0] - x[0]",
        "torch.ones(()).mul(x[0])",
        "torch.arange(2).mul(x[0])",
        "torch.ones(2).mul(k[0])",
        "torch.arange(3, dtype=torch.int32).sum(dtype=torch.int32).mul(k[0])",
        "torch.ones(2).new_tensor([x[0], x[2]])",
    ],
)
def test_a_traced_scalar_in_a_call_of_torch_is_recorded(statement: str) -> None:
    """It has the dtype that a number has: the dtype of the tensors decides."""
    with Session() as session:
        x, k = arrays.trace_array(VECTOR.copy()), arrays.trace_array(np.array([2]))
        aliases = [arrays.tensor_of(x), arrays.tensor_of(k)]
        found = eval(statement, {"torch": torch, "x": x, "k": k})
    assert session.escapes == []
    again = session.log.replay({id(one): one * 3 for one in aliases})

    def expected(factor: int) -> Any:
        known = {"torch": torch, "x": VECTOR * factor, "k": np.array([2]) * factor}
        return eval(statement, known)

    assert_same(expected(1), found)
    assert_same(expected(3), again(found))


def test_a_traced_scalar_that_is_written_into_a_tensor_is_recorded() -> None:
    with Session() as session:
        x = arrays.trace_array(VECTOR.copy())
        alias = arrays.tensor_of(x)
        target = torch.zeros(2)
        target[1] = x[0]
        found = target * 1
    assert session.escapes == []
    again = session.log.replay({id(alias): alias * 3})
    assert again(found).tolist() == [0, 1.5]


def test_the_class_of_tensors_is_put_back_exactly() -> None:
    before = dict(vars(torch.Tensor))
    replaced = Replaced()
    arrays.install_patches(replaced)
    replaced.remove()
    assert dict(vars(torch.Tensor)) == before
