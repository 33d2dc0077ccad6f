"""Checks on data that raise, warn or call back, and are swallowed by something that is not a plain try."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, double, either, integers, normal, row, uniform
from attacks.registry import hostile


class _LimitError(RuntimeError):
    pass


class _Guard:
    """Swallows what is out of limits, as a safety layer does."""

    def __enter__(self) -> _Guard:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> bool:
        return isinstance(value, _LimitError)


def _within(x: Tensor, limit: float) -> Tensor:
    if float(x.abs().max()) > limit:
        raise _LimitError("out of limits")
    return x


@hostile(
    "C",
    passes=6,
    rec={"obs": uniform(-1, 1, 1, 4)},
    fresh={"obs": normal(1, 4, s=1.6)},
    backends="onnx",
)
class NdGuardExit:
    """The check raises, and `__exit__` of a guard says that it is handled."""

    def __init__(self) -> None:
        self.w = torch.randn(4, 3)
        self.safe = torch.full((1, 3), 0.25)

    def __call__(self, obs: Tensor) -> Tensor:
        out = self.safe * 1.0
        with _Guard():
            out = _within(obs, 2.0) @ self.w
        return out


@hostile(
    "C",
    passes=4,
    rec={"obs": uniform(-1, 1, 1, 4)},
    fresh={"obs": normal(1, 4, s=1.6)},
    style="method",
    backends="jit",
)
class NdFinallyReturn:
    """`finally` with a `return` throws the exception away."""

    def __init__(self) -> None:
        self.w = torch.randn(4, 2)

    def step(self, obs: Tensor) -> Tensor:
        action = obs[:, :2] * 0.1
        try:
            _within(obs, 2.0)
            action = torch.tanh(obs @ self.w)
        finally:
            return action  # noqa: B012


class _Reading:
    """A reading whose range does not exist when the sensor saturates."""

    def __init__(self, raw: Tensor) -> None:
        self.raw = raw

    @property
    def metres(self) -> Tensor:
        if self.raw.max() > 4.0:
            raise AttributeError("saturated")
        return self.raw * 0.01


@hostile(
    "C",
    passes=8,
    rec={"scan": uniform(0.5, 3.0, 1, 6)},
    fresh={"scan": uniform(0.5, 6.0, 1, 6)},
    backends="jit",
)
def NdHasattrProperty(scan: Tensor) -> Tensor:
    """`hasattr` runs the property, and swallows the AttributeError."""
    reading = _Reading(scan)
    return (
        reading.metres.min(-1, keepdim=True).values
        if hasattr(reading, "metres")
        else torch.full((1, 1), 9.9) * scan[:, :1]
    )


@hostile(
    "C",
    passes=5,
    rec={"scan": uniform(0.5, 3.0, 1, 6)},
    fresh={"scan": uniform(0.5, 4.4, 1, 6)},
    backends="onnx",
)
def NdGetattrDefault(scan: Tensor) -> Tensor:
    """`getattr` with a default does the same, without a branch in sight."""
    return getattr(_Reading(scan), "metres", scan * 0.0 + 5.0) + 1.0


class _Lazy:
    """A property that fails falls through to `__getattr__`."""

    def __init__(self, twist: Tensor) -> None:
        self.twist = twist

    @property
    def heading(self) -> Tensor:
        speed = self.twist[0, :2].norm()
        if speed < 0.5:
            raise AttributeError("no heading at rest")
        return torch.atan2(self.twist[:, 1:2], self.twist[:, 0:1])

    def __getattr__(self, name: str) -> Tensor:
        return self.__dict__["twist"][:, 2:3] * 0.1


@hostile(
    "C",
    passes=4,
    rec={"twist": uniform(1.0, 2.0, 1, 3)},
    fresh={"twist": uniform(-0.6, 0.6, 1, 3)},
    backends="jit",
)
def NdDunderGetattr(twist: Tensor) -> Tensor:
    """The fallback is a special method that nobody calls by name."""
    return _Lazy(twist).heading * 2.0


class _Path:
    """The old protocol of sequences: iteration ends with IndexError."""

    def __init__(self, points: Tensor, reach: float) -> None:
        self.points, self.reach = points, reach

    def __getitem__(self, number: int) -> Tensor:
        if number >= 5:
            raise IndexError(number)
        point = self.points[0, number]
        if point.norm() > self.reach:
            raise IndexError("out of reach")
        return point


@hostile(
    "C",
    passes=8,
    rec={"points": uniform(-1, 1, 1, 5, 2)},
    fresh={"points": normal(1, 5, 2, s=2.0)},
    backends="jit",
)
def NdIndexProtocol(points: Tensor) -> Tensor:
    """The sum ends at the first point that is out of reach."""
    total = torch.zeros(2)
    for point in _Path(points, 2.5):
        total = total + point
    return total.unsqueeze(0)


@hostile(
    "C",
    passes=3,
    rec={"points": uniform(-1, 1, 5, 2)},
    fresh={"points": normal(5, 2, s=2.0)},
    backends="jit",
)
class NdMapStops:
    """A function that raises StopIteration ends `map` silently."""

    def __init__(self) -> None:
        self.gain = torch.rand(2) + 0.5

    def _weigh(self, point: Tensor) -> Tensor:
        if point[0].abs() > 2.0:
            raise StopIteration
        return point * self.gain

    def __call__(self, points: Tensor) -> Tensor:
        return sum(map(self._weigh, points.unbind(0)), torch.zeros(2))


@hostile(
    "C",
    passes=3,
    rec={"costs": uniform(0.0, 0.9, 6)},
    fresh={"costs": uniform(0.0, 3.0, 6)},
    backends="jit",
)
def NdNextDefault(costs: Tensor) -> Tensor:
    """The first candidate that is cheap enough, else a default: `next` of a generator."""
    cheap = (c * 2.0 + i for i, c in enumerate(costs) if c < 1.0)
    return next(cheap, costs.max() * -1.0).reshape(1)


@hostile(
    "C",
    passes=8,
    rec={"obs": uniform(-1, 1, 1, 4)},
    fresh={"obs": normal(1, 4, s=1.6)},
    backends="jit",
)
class NdFutureException:
    """A worker's exception is asked for, not raised."""

    def __init__(self) -> None:
        self.w = torch.randn(4, 3)

    def _plan(self, obs: Tensor) -> Tensor:
        return _within(obs, 2.0) @ self.w

    def __call__(self, obs: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(self._plan, obs)
        return obs[:, :3] if done.exception() is not None else done.result()


@hostile(
    "C",
    passes=5,
    rec={"obs": uniform(-1, 1, 1, 4)},
    fresh={"obs": normal(1, 4, s=1.6)},
    backends="jit",
)
class NdGatherExceptions:
    """`asyncio.gather(return_exceptions=True)` gives the exception as a value."""

    def __init__(self) -> None:
        self.w = torch.randn(4, 4)

    async def _left(self, obs: Tensor) -> Tensor:
        return _within(obs, 2.0) @ self.w

    async def _right(self, obs: Tensor) -> Tensor:
        return torch.sin(obs)

    async def _both(self, obs: Tensor) -> list:
        return await asyncio.gather(self._left(obs), self._right(obs), return_exceptions=True)

    def __call__(self, obs: Tensor) -> Tensor:
        found = asyncio.run(self._both(obs))
        return sum((f for f in found if isinstance(f, Tensor)), torch.zeros(1, 4))


@hostile(
    "C",
    passes=3,
    rec={"obs": uniform(-1, 1, 1, 4)},
    fresh={"obs": normal(1, 4, s=1.6)},
    backends="pt2",
)
class NdExitStackSuppress:
    """Several layers, all of them optional, under an ExitStack."""

    def __init__(self) -> None:
        self.limits = (1.5, 3.0, 5.0)

    def __call__(self, obs: Tensor) -> Tensor:
        total = obs * 0.1
        for limit in self.limits:
            with contextlib.ExitStack() as stack:
                stack.enter_context(contextlib.suppress(_LimitError))
                total = total + torch.tanh(_within(obs, limit) / limit)
        return total


def _or_last(function):  # noqa: ANN001, ANN202
    @functools.wraps(function)
    def tried(self, x):  # noqa: ANN001, ANN202
        try:
            return function(self, x)
        except Exception:  # noqa: BLE001
            return self.rest + x.mean() * 0.0

    return tried


@hostile(
    "C",
    passes=8,
    rec={"obs": uniform(-1, 1, 1, 4)},
    fresh={"obs": normal(1, 4, s=1.6)},
    backends="jit",
)
class NdFallbackDecorator:
    """The `try` stands in a decorator, the `assert` in the method."""

    def __init__(self) -> None:
        self.rest = torch.tensor([[0.1, -0.2, 0.3, 0.4]])

    @_or_last
    def __call__(self, obs: Tensor) -> Tensor:
        assert torch.isfinite(obs).all() and obs.abs().amax() <= 2.0, "not plausible"
        return obs * 0.5


@hostile(
    "C",
    passes=4,
    rec={"ranges": array(uniform(0.5, 2.0, 1, 4))},
    fresh={
        "ranges": array(row([[1.0, 2.0, 0.5, 1.5]], [[1.0, 0.0, 2.0, 3.0]], [[0.0, 1.0, 1.0, 4.0]]))
    },
    backends="jit",
)
class NdErrCall:
    """NumPy calls back when a division by zero happens; nobody compares a value."""

    def __init__(self) -> None:
        self.faults = 0

    def _saw(self, kind: str, flag: int) -> None:
        self.faults += 1

    def __call__(self, ranges: np.ndarray) -> np.ndarray:
        self.faults = 0
        with np.errstate(divide="call", call=self._saw):
            inverse = 1.0 / ranges
        inverse = np.where(np.isinf(inverse), np.float32(0.0), inverse)
        return inverse * np.float32(0.0) - np.float32(1.0) if self.faults else inverse


@hostile(
    "C",
    passes=5,
    rec={"ranges": array(uniform(0.5, 2.0, 1, 4))},
    fresh={"ranges": array(row([[1.0, 2.0, 0.5, 1.5]], [[1.0, 0.0, 2.0, 3.0]]))},
    backends="pt2",
)
def NdErrRaise(ranges: np.ndarray) -> np.ndarray:
    """NumPy raises FloatingPointError, and the code goes on with something else."""
    try:
        with np.errstate(all="raise"):
            return np.float32(1.0) / ranges
    except FloatingPointError:
        return np.full_like(ranges, -1.0)


@hostile(
    "C",
    passes=6,
    rec={"exponent": array(uniform(0.0, 3.0, 1, 3))},
    fresh={"exponent": array(uniform(60.0, 120.0, 1, 3))},
    backends="onnx",
)
def NdErrOverflow(exponent: np.ndarray) -> np.ndarray:
    """Overflow of exp raises; the fallback is a line."""
    old = np.seterr(over="raise")
    try:
        rate = np.exp(exponent)
    except FloatingPointError:
        rate = exponent * np.float32(2.0)
    np.seterr(**old)
    return np.log(rate)


@hostile(
    "C",
    passes=6,
    rec={"area": array(uniform(0.5, 2.0, 1, 3))},
    fresh={"area": array(normal(1, 3))},
    backends="onnx",
)
def NdWarningsCaught(area: np.ndarray) -> np.ndarray:
    """How many warnings there were says which result is taken."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        side = np.sqrt(area)
    return np.zeros_like(area) if seen else side


@hostile(
    "C",
    passes=4,
    rec={"area": array(double(uniform(0.5, 2.0, 1, 3)))},
    fresh={"area": array(double(normal(1, 3)))},
    style="method",
    backends="jit",
)
class NdWarningsError:
    """A warning is made an error, and caught."""

    def step(self, area):  # noqa: ANN001, ANN201
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                level = np.log(area)
            except RuntimeWarning:
                level = area - 1.0
        return level


@hostile(
    "C",
    passes=4,
    rec={"mean": normal(1, 2), "std": uniform(0.2, 1.0, 1, 2)},
    fresh={"mean": normal(1, 2), "std": normal(1, 2)},
    backends="jit",
)
def NdDistributionChecks(mean: Tensor, std: Tensor) -> Tensor:
    """torch.distributions checks its arguments, and the code catches that."""
    try:
        return torch.distributions.Normal(mean, std).log_prob(torch.zeros(2))
    except ValueError:
        return -mean.square()


@hostile(
    "C",
    passes=5,
    rec={"conf": uniform(0.6, 1.0, 8)},
    fresh={"conf": either(lambda t: t % 2 == 0, uniform(0.2, 1.0, 8), uniform(0.0, 0.4, 8))},
    backends="jit",
)
def NdEmptyMax(conf: Tensor) -> Tensor:
    """The maximum of nothing raises: no detection is above the threshold."""
    try:
        best = conf[conf > 0.5].max()
    except RuntimeError:
        best = conf.sum() * 0.0 - 1.0
    return best.reshape(1)


@hostile(
    "C",
    passes=3,
    rec={"cov": double(uniform(0.0, 0.2, 3, 3))},
    fresh={"cov": double(normal(3, 3))},
    backends="jit",
)
def NdCholeskyJitter(cov: Tensor) -> Tensor:
    """A Gaussian process adds jitter until the factorisation works."""
    k = 0.5 * (cov + cov.T) + torch.eye(3, dtype=cov.dtype)
    jitter = 0.0
    for _ in range(8):
        try:
            return torch.linalg.cholesky(k + jitter * torch.eye(3, dtype=k.dtype))
        except torch.linalg.LinAlgError:
            jitter = 10 * jitter if jitter else 0.1
    return torch.eye(3, dtype=k.dtype)


@hostile(
    "C",
    passes=4,
    rec={"m": array(double(uniform(0.5, 1.0, 2, 2)))},
    fresh={"m": array(double(row([[1.0, 2.0], [3.0, 5.0]], [[1.0, 2.0], [2.0, 4.0]])))},
    backends="jit",
)
def NdInvFallback(m: np.ndarray) -> np.ndarray:
    """The Jacobian is inverted, at a singularity its pseudo-inverse is taken."""
    try:
        return np.linalg.inv(m)
    except np.linalg.LinAlgError:
        return m.T * 0.04


@hostile(
    "C",
    passes=3,
    rec={"token": integers(0, 6, 1, 3)},
    fresh={"token": integers(0, 9, 1, 3)},
    backends="jit",
)
class NdEmbeddingRange(nn.Module):
    """A token that the table does not know raises IndexError."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 4)
        self.unknown = nn.Parameter(torch.randn(4))

    def forward(self, token: Tensor) -> Tensor:
        try:
            found = self.table(token).mean(1)
        except IndexError:
            found = self.unknown.unsqueeze(0) * 1.0
        return found


@hostile(
    "C",
    passes=3,
    rec={"label": integers(0, 4, 3)},
    fresh={"label": integers(0, 6, 3)},
    backends="onnx",
)
def NdOneHotRange(label: Tensor) -> Tensor:
    """A class beyond the last raises in one_hot; it is then counted nowhere."""
    try:
        votes = F.one_hot(label, 4).sum(0)
    except RuntimeError:
        votes = torch.zeros(4, dtype=torch.int64) - 1
    return votes


class _Table(dict):
    def __missing__(self, key: int) -> Tensor:
        return torch.tensor([float(key), -1.0])


@hostile(
    "C",
    passes=3,
    rec={"gear": integers(1, 3, 1)},
    fresh={"gear": integers(0, 6, 1)},
    backends="jit",
)
class NdMissingKey:
    """A gear that the table has not is made by `__missing__`."""

    def __init__(self) -> None:
        self.table = _Table({1: torch.tensor([1.0, 0.1]), 2: torch.tensor([2.0, 0.2])})

    def __call__(self, gear: Tensor) -> Tensor:
        return self.table[gear.item()] + gear.float()


@hostile(
    "C",
    passes=4,
    rec={"x": uniform(0.5, 2.0, 1, 3)},
    fresh={"x": row([[1.0, 2.0, 3.0]], [[1.0, float("nan"), 3.0]], [[float("inf"), 1.0, 1.0]])},
    backends="jit",
)
def NdIntOfNan(x: Tensor) -> Tensor:
    """`int()` of NaN and of infinity raise different errors."""
    try:
        steps = [int(v) for v in x[0] * 10]
    except (ValueError, OverflowError) as error:
        steps = [-1 if isinstance(error, ValueError) else -2] * 3
    return torch.tensor(steps)
