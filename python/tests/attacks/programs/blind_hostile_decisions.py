"""Decisions on data by roads that a recorder has to guard one by one."""

from __future__ import annotations

import bisect
import contextlib
import contextvars
import ctypes
import decimal
import enum
import fractions
import functools
import heapq
import io
import itertools
import json
import logging
import math
import multiprocessing.dummy
import operator
import string
import struct
import threading
import types
import warnings

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from attacks.draws import array as as_array
from attacks.draws import fixed, integers, normal, row, uniform
from attacks.registry import ALL, hostile

CALM = {"x": uniform(-1.0, 1.0, 4)}
ROUGH = {"x": normal(4, s=4.0)}
NP_CALM = {"x": as_array(uniform(-1.0, 1.0, 4))}
NP_ROUGH = {"x": as_array(normal(4, s=4.0))}
POSITIVE = {"x": uniform(0.1, 1.0, 4)}


@hostile("C", rec=CALM, fresh=ROUGH, passes=5)
def BhMatchSequence(x: Tensor) -> Tensor:
    """A match statement over the list of values, with guards."""
    match x.tolist():
        case [a, *_] if a > 2:
            return x * 0.5
        case [_, b, _, d] if b < -2 or d < -2:
            return -x
        case _:
            return x


class _Mode(enum.IntEnum):
    IDLE = 0
    RUN = 1


@hostile("C", rec=CALM, fresh=ROUGH)
def BhUnknownMode(x: Tensor) -> Tensor:
    """An enum is looked up by the value; an unknown one raises, and a fallback is taken."""
    try:
        return x * (2.0 + _Mode(abs(int(x[0]))) * 0)
    except ValueError:
        return x * 0.5


@hostile(
    "C",
    rec={"x": uniform(1.0, 2.0, 4)},
    fresh={"x": row([1.0, 0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 2.0], [4.0, 2.0, 1.0, 1.0])},
)
def BhIntegerOfInfinity(x: Tensor) -> Tensor:
    """`int` of inf and of NaN raise two different errors, each with its own answer."""
    try:
        int(x[0] / x[1])
    except OverflowError:
        return x + 100
    except ValueError:
        return x - 100
    return x


@hostile("C", rec=POSITIVE, fresh={"x": normal(4)})
def BhMathDomain(x: Tensor) -> Tensor:
    """`math.sqrt` of a tensor's element raises for negative ones; a constant otherwise."""
    try:
        math.sqrt(x[2])
    except ValueError:
        return x.abs().sqrt()
    return x.sqrt().nan_to_num(0.0)


@hostile("C", rec=CALM, fresh={"x": normal(4, s=200.0)})
def BhDoesNotFitByte(x: Tensor) -> Tensor:
    """A command is packed for a CAN bus; what does not fit a byte raises struct.error."""
    try:
        struct.pack("<4b", *(int(v) for v in x))
    except struct.error:
        return x.clamp(-128, 127)
    return x


@hostile("C", rec=POSITIVE, fresh={"x": normal(4)})
def BhDistributionValidates(x: Tensor) -> Tensor:
    """torch.distributions refuses a scale that is not positive."""
    try:
        return torch.distributions.Normal(x, x, validate_args=True).mean * 2
    except ValueError:
        return torch.zeros_like(x)


@hostile("C", rec={"i": integers(0, 4, 2), "x": normal(2)}, fresh={"i": integers(0, 9, 2)})
def BhOneHotRefuses(i: Tensor, x: Tensor) -> Tensor:
    """`one_hot` raises for a class that there is not; then nothing is selected."""
    try:
        return x @ nn.functional.one_hot(i, 4).float()
    except RuntimeError:
        return x.new_zeros(4) + x.sum()


@hostile(
    "C",
    rec={"a": lambda t, g: torch.eye(2) + 0.1 * torch.rand(2, 2, generator=g), "b": normal(2)},
    fresh={"a": row([[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 1.0]])},
)
def BhSingularSolve(a: Tensor, b: Tensor) -> Tensor:
    """`linalg.solve` raises on a singular matrix; then the least-squares answer is taken."""
    try:
        return torch.linalg.solve(a, b)
    except torch.linalg.LinAlgError:
        return b * 0.5


@hostile(
    "C", rec={"i": integers(0, 5), "x": normal(3)}, fresh={"i": integers(0, 9)}, style="module"
)
class BhEmbeddingRange(nn.Module):
    """An embedding raises IndexError for an unknown word; the last one is taken instead."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 3)

    def forward(self, i: Tensor, x: Tensor) -> Tensor:
        try:
            return x + self.words(i)
        except IndexError:
            return x - self.words.weight[4]


@hostile("C", rec=CALM, fresh=ROUGH)
def BhAssertClose(x: Tensor) -> Tensor:
    """`torch.testing.assert_close` in a try."""
    try:
        torch.testing.assert_close(x, x.clamp(-2, 2))
    except AssertionError:
        return x.sign()
    return x


@hostile("C", rec=NP_CALM, fresh=NP_ROUGH)
def BhNumpyTesting(x: np.ndarray) -> np.ndarray:
    """`np.testing.assert_array_less` guards, and the guard's failure is the other path."""
    try:
        np.testing.assert_array_less(np.abs(x), 2.0)
    except AssertionError:
        return np.tanh(x)
    return x * 2


@hostile("C", rec={"x": as_array(uniform(0.2, 1.0, 4))}, fresh={"x": as_array(normal(4))})
def BhWarningAsError(x: np.ndarray) -> np.ndarray:
    """NumPy warns of the root of a negative number; the warning is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return np.sqrt(x)
        except RuntimeWarning:
            return np.zeros_like(x) - x


@hostile(
    "C",
    rec={"x": as_array(uniform(0.2, 1.0, 4))},
    fresh={"x": as_array(row([1.0, 0.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0]))},
)
def BhErrorCall(x: np.ndarray) -> np.ndarray:
    """NumPy calls a function on division by zero; the call is what decides."""
    seen: list = []
    with np.errstate(divide="call"):
        before = np.seterrcall(lambda kind, flag: seen.append(kind))
        y = np.float32(1) / x
        np.seterrcall(before)
    return x if seen else y


@hostile("C", rec=CALM, fresh=ROUGH)
class BhLogRecordDecides:
    """A monitor logs values; a filter of the handler reads the record's argument, and trips."""

    def __init__(self) -> None:
        self.log, self.tripped = logging.Logger("bh"), []
        handler = logging.NullHandler()
        self.log.addFilter(lambda r: self.tripped.append(float(r.args[0]) > 3) or True)
        self.log.addHandler(handler)

    def __call__(self, x: Tensor) -> Tensor:
        self.log.info("peak %s", x.abs().max())
        return x * 0.1 if self.tripped.pop() else x


@hostile("C", rec=CALM, fresh=ROUGH)
def BhTemplateText(x: Tensor) -> Tensor:
    """The value is put into a template and the text is compared."""
    text = string.Template("v=$v").substitute(v=x[0].abs())
    return x if text.startswith("v=tensor(0.") else x + 3


@hostile("C", rec={"x": uniform(1.1, 9.0, 3)}, fresh={"x": uniform(0.001, 900.0, 3)})
def BhExponentOfFormat(x: Tensor) -> Tensor:
    """The exponent is cut from the scientific notation."""
    exponent = int(f"{x.max():e}".split("e")[1])
    return x / 10.0**exponent


@hostile("C", rec={"x": uniform(0.6, 0.99, 3)}, fresh={"x": uniform(0.01, 30.0, 3)})
def BhFrexp(x: Tensor) -> Tensor:
    """Normalisation by the exponent of `math.frexp` and `int.bit_length`."""
    _, exponent = math.frexp(x[0])
    bits = int(x.max()).bit_length()
    return torch.ldexp(x, torch.tensor(-exponent)) + bits


@hostile("C", rec={"x": uniform(0.0, 0.2, 3)}, fresh={"x": uniform(0.0, 3.0, 3)})
def BhQuantized(x: Tensor) -> Tensor:
    """A currency-like rounding by Decimal, which the recorded values never leave."""
    cents = decimal.Decimal(x[0].item()).quantize(decimal.Decimal("1"), decimal.ROUND_HALF_UP)
    ratio = fractions.Fraction(x[1].item()).limit_denominator(2)
    return x + float(cents) + float(ratio)


@hostile("C", rec=CALM, fresh=ROUGH)
def BhBisectTensors(x: Tensor) -> Tensor:
    """`bisect` compares tensors inside C."""
    edges = list(torch.tensor([-3.0, -1.5, 1.5, 3.0]))
    return x * [0.0, 0.5, 1.0, 0.5, 0.0][bisect.bisect(edges, x[0])]


@hostile("C", rec={"x": row([1.0, 2.0, 3.0, 4.0], [0.0, 0.5, 2.0, 3.0])}, fresh={"x": normal(4)})
def BhHeapOfPairs(x: Tensor) -> Tensor:
    """A* frontier: a heap of pairs (cost, name), compared in C."""
    heap = [(cost, i) for i, cost in enumerate(x)]
    heapq.heapify(heap)
    cost, first = heapq.heappop(heap)
    return x * (first + 1.0) + cost


@hostile("C", rec={"x": uniform(0.0, 1.0, 5)}, fresh={"x": normal(5, s=2.0)}, passes=6)
def BhTakeWhile(x: Tensor) -> Tensor:
    """The prefix below a bound is summed, by `itertools.takewhile`."""
    return sum(itertools.takewhile(lambda v: v < 1.5, x), torch.zeros(()))


@hostile("C", rec=POSITIVE, fresh={"x": normal(4)})
def BhCompress(x: Tensor) -> Tensor:
    """`itertools.compress` takes the truth of tensors as selectors."""
    kept = list(itertools.compress(x, x > 0))
    return torch.stack([*kept, x.sum()]).sum() * len(kept)


@hostile("C", rec={"k": fixed(1), "x": normal(4)}, fresh={"k": integers(0, 4)})
def BhTensorAsIndex(k: Tensor, x: Tensor) -> Tensor:
    """An integer tensor indexes a Python list, a string and a range."""
    gain = [0.5, 1.0, 2.0, 4.0][k]
    sign = {"a": 1.0, "b": 1.0, "c": -1.0, "d": -1.0}["abcd"[k]]
    return x * gain * sign


@hostile(
    "C",
    rec={"x": fixed([0.0, 1.0, 0.0, 0.0])},
    fresh={"x": row([0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])},
)
def BhPositionInList(x: Tensor) -> Tensor:
    """`list.index` asks each tensor whether it is one."""
    return x + [float(i) for i in range(4)][list(x).index(1)]


@hostile(
    "C", rec={"x": fixed([2.0, 0.0, 0.0])}, fresh={"x": integers(0, 3, 3, dtype=torch.float32)}
)
def BhIsAmong(x: Tensor) -> Tensor:
    """`in` of a tuple of numbers."""
    return -x if x.sum() in (3, 4, 5) else x


@functools.singledispatch
def _effect(reading: object, x: Tensor) -> Tensor:
    return x


class _Hot(float):
    pass


@_effect.register
def _(reading: _Hot, x: Tensor) -> Tensor:
    return x * 0.0


@hostile("C", rec=CALM, fresh=ROUGH)
def BhSingleDispatch(x: Tensor) -> Tensor:
    """A reading becomes a type by its value, and the type dispatches."""
    kinds = {False: float, True: _Hot}
    return _effect(kinds[operator.gt(x[0], 2.0).item()](0.0), x)


@hostile("C", rec=CALM, fresh=ROUGH)
def BhFinallyReturns(x: Tensor) -> Tensor:
    """A `finally` that returns swallows what an index out of range raised."""
    y = x * 0.0
    try:
        y = x * [1.0, 2.0, 3.0][abs(int(x[0] * 1.5))]
    finally:
        return y  # noqa: B012


class _Swallow:
    def __init__(self) -> None:
        self.caught = 0

    def __enter__(self):
        self.caught = 0
        return self

    def __exit__(self, kind, value, trace) -> bool:
        self.caught = 0 if kind is None else 1
        return True


@hostile("C", rec=CALM, fresh=ROUGH)
class BhContextSwallows:
    """A context manager swallows a KeyError of a table that lacks the cell."""

    def __init__(self) -> None:
        self.guard, self.table = _Swallow(), {0: 1.0, 1: 2.0}

    def __call__(self, x: Tensor) -> Tensor:
        y = x - 5
        with self.guard:
            y = y + x * self.table[round(abs(x[3].item()) / 4)]
        return y + self.guard.caught


@hostile("C", rec=CALM, fresh={"x": normal(4, s=2.0)}, context="grad")
def BhGradientHook(x: Tensor) -> Tensor:
    """One step of test-time adaptation; a tensor hook clips the gradient when it is large."""
    w = torch.ones(4, requires_grad=True)
    (w * x).square().sum().backward()
    grad = w.grad
    if grad.norm() > 8:
        grad = grad / grad.norm()
    return (x * (w - 0.1 * grad)).detach()


@hostile("C", rec=CALM, fresh=ROUGH, style="module")
class BhPreHookWithKwargs(nn.Module):
    """A forward pre-hook replaces the argument when it looks like an outlier."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.net.register_forward_pre_hook(self.guard)

    @staticmethod
    def guard(module: nn.Module, args: tuple) -> tuple | None:
        (x,) = args
        return (x.clamp(-1, 1),) if np.abs(x.numpy()).max() > 3 else None

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class _Limited(Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        plain = out.as_subclass(Tensor) if isinstance(out, Tensor) else None
        if func is torch.Tensor.mul and plain is not None and plain.abs().max() > 5:
            return (plain * 0.5).as_subclass(cls)
        return out


@hostile("C", rec=CALM, fresh=ROUGH)
def BhSubclassLimits(x: Tensor) -> Tensor:
    """A subclass with `__torch_function__` halves products that are too large."""
    limited = x.as_subclass(_Limited)
    return (limited.mul(2.0) + 1).as_subclass(Tensor)


class _Saturating(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func is torch.exp and float(out.max()) > 10:
            return out.clamp(max=1.0)
        return out


@hostile("C", rec=CALM, fresh=ROUGH)
def BhFunctionMode(x: Tensor) -> Tensor:
    """A TorchFunctionMode of the user saturates `exp` when it blows up."""
    with _Saturating():
        return torch.exp(x) + 1


class _Spying(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.large = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor) and out.is_floating_point():
            self.large |= bool((out > 6).any())
        return out


@hostile("C", rec=CALM, fresh=ROUGH)
def BhDispatchMode(x: Tensor) -> Tensor:
    """A TorchDispatchMode of the user looks for large intermediates; they decide."""
    with _Spying() as spy:
        y = x * 2
    return y * 0.1 if spy.large else y


@hostile("C", rec=CALM, fresh=ROUGH)
def BhPoolOfThreads(x: Tensor) -> Tensor:
    """`multiprocessing.dummy` maps a check over the elements in threads."""
    with multiprocessing.dummy.Pool(2) as pool:
        safe = all(pool.map(lambda v: abs(v.item()) < 3, list(x)))
    return x if safe else x * 0.5


@hostile("C", rec=CALM, fresh=ROUGH)
def BhThreadWritesBack(x: Tensor) -> Tensor:
    """A thread writes its result into a tensor that it was given."""
    gain = torch.ones(1)

    def judge(values: np.ndarray, out: np.ndarray) -> None:
        out[0] = 0.5 if values.max() > 2.5 else 1.0

    thread = threading.Thread(target=judge, args=(x.numpy(), gain.numpy()))
    thread.start()
    thread.join()
    return x * gain


@hostile("C", rec=CALM, fresh=ROUGH)
def BhCopiedContext(x: Tensor) -> Tensor:
    """A callback in a copied context sets a variable there by the value."""
    flag: contextvars.ContextVar[float] = contextvars.ContextVar("flag", default=1.0)
    context = contextvars.copy_context()
    context.run(lambda: flag.set(-1.0) if x.max() > 3 else None)
    return x * context.get(flag, 1.0)


@hostile("C", rec=CALM, fresh=ROUGH)
class BhSentValues:
    """A generator gets peaks by `send`, and yields a gain; it never forgets an alarm."""

    def __init__(self) -> None:
        self.watch = self.watching()
        next(self.watch)

    def watching(self):
        peak, gain = 0.0, 1.0
        while True:
            peak = yield gain
            if peak > 5:
                gain *= 0.5

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.watch.send(x.abs().max())


@hostile("C", rec=CALM, fresh=ROUGH)
def BhRecursiveHalving(x: Tensor) -> Tensor:
    """Line search by recursion: halve until it is small."""

    def search(v: Tensor) -> Tensor:
        return v + 1 if v.norm() < 4 else search(v / 2)

    return search(x)


@hostile("C", rec={"x": row([0.1, 0.2, 0.3, 0.4], [1.0, 2.0, 3.0, 4.0])}, fresh={"x": normal(4)})
def BhSortedAlready(x: Tensor) -> Tensor:
    """Is the list sorted? by pairwise `map(operator.le)`."""
    values = x.unbind()
    return x if all(map(operator.le, values, values[1:])) else x.sort().values * 2


@hostile("C", rec=CALM, fresh=ROUGH)
def BhChainedComparison(x: Tensor) -> Tensor:
    """`-2 < a < 2` hides a truth test between the two comparisons."""
    inside = -2 < x[1] < 2
    return torch.where(inside, x, -x)


@hostile(
    "C", rec={"x": fixed([0.0, 0.0]), "y": normal(2)}, fresh={"x": row([0.0, 0.0], [3.0, 1.0])}
)
def BhShortCircuitOr(x: Tensor, y: Tensor) -> Tensor:
    """`a or b` of tensors is one of them, by truth."""
    return (x[0] or y[0]) + y


@hostile("C", rec=NP_CALM, fresh=NP_ROUGH, passes=5)
def BhVectorized(x: np.ndarray) -> np.ndarray:
    """`np.vectorize` of a Python function with a branch."""
    squash = np.vectorize(
        lambda v: v if abs(v) < 2 else 2.0 + math.log(abs(v)), otypes=[np.float32]
    )
    return squash(x)


@hostile("C", rec=NP_CALM, fresh=NP_ROUGH)
def BhFromPyFunction(x: np.ndarray) -> np.ndarray:
    """`np.frompyfunc` reduces with a Python function that compares."""
    safer = np.frompyfunc(lambda a, b: a if abs(a) > abs(b) or a > -2 else b, 2, 1)
    return x * np.float32(safer.reduce(x))


@hostile(
    "C",
    rec={"x": as_array(uniform(-1.0, 1.0, 6))},
    fresh={"x": as_array(normal(6, s=3.0))},
    style="method",
)
def BhOutliersRemoved(x: np.ndarray) -> np.ndarray:
    """Outliers by `np.delete` and `flatnonzero`, before the mean."""
    bad = np.flatnonzero(np.abs(x) > 4)
    y = x - np.delete(x, bad).mean(dtype=np.float32)
    return y


@hostile(
    "C", rec={"x": row([5.0, 0.0, 1.0], [3.0, 1.0, 0.0])}, fresh={"x": normal(3)}, style="module"
)
class BhArgmaxOfNumpy(nn.Module):
    """Which expert: `np.argmax` of an array protocol, into a dict of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleDict({str(i): nn.Linear(3, 2) for i in range(3)})

    def forward(self, x: Tensor) -> Tensor:
        return self.experts[str(np.argmax(np.asarray(x)))](x)


@hostile("C", rec={"x": uniform(0.1, 0.9, 4)}, fresh={"x": normal(4, s=3)})
def BhJsonKeys(x: Tensor) -> Tensor:
    """A message of JSON whose keys are rounded values; duplicates fall together."""
    message = json.loads(json.dumps({int(v): i for i, v in enumerate(x.tolist())}))
    return x * len(message)


@hostile("C", rec={"n": fixed(3), "x": normal(5)}, fresh={"n": integers(1, 6)})
def BhRepeatsSum(n: Tensor, x: Tensor) -> Tensor:
    """The size of a tensor is data: `torch.arange(n)` and its sum of gains."""
    return x * torch.arange(n.item(), dtype=torch.float32).sum()


@hostile("C", rec={"x": uniform(0.1, 1.0, 4), "w": normal(4)}, fresh={"x": normal(4)}, backends=ALL)
def BhMaskedShape(x: Tensor, w: Tensor) -> Tensor:
    """The mean over a mask by `masked_select().size(0)`, which was always four."""
    kept = w.masked_select(x > 0)
    return kept.sum() / max(kept.size(0), 1)


@hostile("C", rec=CALM, fresh=ROUGH)
def BhLocalScalar(x: Tensor) -> Tensor:
    """A value leaves by the raw operator `_local_scalar_dense`."""
    value = torch.ops.aten._local_scalar_dense(x.abs().max())
    return x / value if value > 3 else x


@hostile("C", rec=CALM, fresh=ROUGH)
def BhRawTruth(x: Tensor) -> Tensor:
    """Truth by `torch.is_nonzero` and `torch.ops.aten.equal`."""
    if torch.is_nonzero((x > 3).sum()) or not torch.ops.aten.equal(x.clamp(-3, 9), x):
        return x.tanh()
    return x


_ITEM, _BOOL, _TOLIST = Tensor.item, Tensor.__bool__, torch._C.TensorBase.tolist


@hostile("C", rec=CALM, fresh=ROUGH)
def BhMethodsTakenEarly(x: Tensor) -> Tensor:
    """`item`, truth and `tolist` were taken from the class when the file was imported."""
    if _BOOL(x[0] > 2) or _ITEM(x[1]) > 2 or max(_TOLIST(x)) > 4:
        return x * 0.5
    return x


@hostile("C", rec=CALM, fresh=ROUGH)
def BhMethodCaller(x: Tensor) -> Tensor:
    """`operator.methodcaller`, `attrgetter` and `truth` do what methods do."""
    peak = operator.methodcaller("item")(operator.attrgetter("T")(x.abs().max().reshape(1, 1)))
    return -x if operator.truth(x[2] > 3) or peak > 6 else x


@hostile("C", rec=CALM, fresh=ROUGH)
def BhStringAt(x: Tensor) -> Tensor:
    """The sign bit is read from memory by `ctypes.string_at`."""
    raw = ctypes.string_at(x.contiguous().data_ptr(), 16)
    exponents = [(raw[4 * i + 3] & 0x7F) >= 0x40 for i in range(4)]
    return x * (2.0 if any(exponents) else 1.0)


@hostile("C", rec=CALM, fresh=ROUGH)
def BhPrintedToFile(x: Tensor) -> Tensor:
    """What `print` writes of a tensor is searched."""
    out = io.StringIO()
    print(x.abs().max() > 3, file=out)
    return x if "False" in out.getvalue() else x - x.mean()


@hostile("C", rec=CALM, fresh=ROUGH)
def BhArrayProtocol(x: Tensor) -> Tensor:
    """NumPy asks the tensor for `__array__`; `np.isclose`, `ptp` and `any` decide."""
    spread = np.ptp(x)
    return x if spread < 3 and not np.any(np.abs(np.asarray(x)) > 3) else x / 4


@hostile("C", rec=CALM, fresh=ROUGH)
def BhCallbackByName(x: Tensor) -> Tensor:
    """Listeners are called until one claims the event; a claim is a truth of a tensor."""
    listeners = types.SimpleNamespace(
        fall=lambda v: v[2] < -3, bump=lambda v: v[0] > 3, calm=lambda v: True
    )
    name = next(n for n, ask in vars(listeners).items() if ask(x))
    return {"fall": x * 0, "bump": -x, "calm": x}[name]


@hostile("C", rec=CALM, fresh=ROUGH)
def BhCompareKey(x: Tensor) -> Tensor:
    """Rows are sorted by a comparison function of tensors."""
    rows = [x, torch.arange(4.0) * 3 - 4, torch.ones(4) * 5]
    rows.sort(key=functools.cmp_to_key(lambda a, b: -1 if a.amax() < b.amax() else 1))
    return rows[0] + x


@hostile("C", rec=CALM, fresh=ROUGH)
def BhSuppressInBinding(x: Tensor) -> Tensor:
    """`contextlib.suppress` around an unpacking that fails when the filter keeps another number."""
    a, b, c, d = x
    with contextlib.suppress(ValueError):
        a, b, c, d = [v for v in x if v < 3]
        a = a + 10
    return torch.stack([a, b, c, d])
