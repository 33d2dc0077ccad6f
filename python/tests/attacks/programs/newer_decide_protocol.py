"""Decisions on data that hide in protocols, containers, texts and bytes."""

from __future__ import annotations

import base64
import contextlib
import enum
import heapq
import io
import json
import logging
import operator
import re
import struct
import zlib
from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from functools import cmp_to_key, lru_cache, reduce
from itertools import accumulate, compress, groupby, takewhile

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, flags, integers, normal, row, uniform
from attacks.registry import hostile


@hostile(
    "C",
    passes=4,
    rec={"cost": row([0.1, 0.5, 0.9, 1.3], [0.2, 0.4, 0.8, 1.1])},
    fresh={"cost": uniform(0, 2, 4)},
    backends="jit",
)
class NdHeapPlan:
    """A heap of pairs compares tensors to find the cheapest plan."""

    def __init__(self) -> None:
        self.plans = torch.randn(4, 3)

    def __call__(self, cost: Tensor) -> Tensor:
        heap: list = []
        for number, value in enumerate(cost):
            heapq.heappush(heap, (value, number))
        return self.plans[heapq.heappop(heap)[1]] + 0.5 * self.plans[heapq.heappop(heap)[1]]


@dataclass(order=True)
class _Grasp:
    score: Tensor
    pose: Tensor = field(compare=False)


@hostile(
    "C",
    passes=5,
    rec={"scores": row([0.1, 0.2, 0.9], [0.3, 0.4, 0.8]), "poses": normal(3, 2)},
    fresh={"scores": uniform(0, 1, 3), "poses": normal(3, 2)},
    backends="jit",
)
def NdDataclassOrder(scores: Tensor, poses: Tensor) -> Tensor:
    """Data classes that are ordered by a tensor are sorted."""
    grasps = sorted((_Grasp(s, p) for s, p in zip(scores, poses, strict=True)), reverse=True)
    return grasps[0].pose * grasps[0].score


@hostile(
    "C",
    passes=4,
    rec={"cmd": uniform(0.2, 1.0, 1), "idle": normal(1)},
    fresh={"cmd": row([0.0], [0.5], [-0.3], [0.0]), "idle": normal(1)},
    backends="onnx",
)
def NdOrDefault(cmd: Tensor, idle: Tensor) -> Tensor:
    """`cmd or idle`: a command of zero is no command."""
    return (cmd or idle) * 2.0


@hostile(
    "C",
    passes=6,
    rec={"x": uniform(-0.4, 0.4, 1)},
    fresh={"x": normal(1)},
    style="method",
    backends="pt2",
)
class NdChainedCompare:
    """`lo < x < hi` is an `and` in disguise."""

    def step(self, x: Tensor) -> Tensor:
        inside = -0.5 < x < 0.5
        y = x * inside
        return y


@hostile(
    "C",
    passes=4,
    rec={"logits": row([[2.0, 0, 0], [1, 0, 0], [0, 3, 0]], [[0.0, 0, 0.5], [4, 0, 0], [2, 1, 0]])},
    fresh={"logits": normal(3, 3)},
    backends="jit",
)
class NdCounterVote:
    """An ensemble votes; Counter says who has won."""

    def __init__(self) -> None:
        self.actions = torch.randn(3, 2)

    def __call__(self, logits: Tensor) -> Tensor:
        winner, votes = Counter(logits.argmax(-1).tolist()).most_common(1)[0]
        return self.actions[winner] * votes


@hostile(
    "C",
    passes=4,
    rec={"speed": uniform(1.1, 1.9)},
    fresh={"speed": uniform(0.0, 6.0)},
    backends="jit",
)
class NdBisectTensor:
    """A gain schedule: `bisect` compares a tensor with floats."""

    def __init__(self) -> None:
        self.knots = [0.0, 1.0, 2.0, 4.0]
        self.gains = torch.tensor([0.1, 0.5, 1.5, 2.0, 4.0])

    def __call__(self, speed: Tensor) -> Tensor:
        return (self.gains[bisect_left(self.knots, speed)] * speed).reshape(1)


class _Mode(enum.IntEnum):
    IDLE = 0
    WALK = 1
    RUN = 2


@hostile(
    "C",
    passes=4,
    rec={"mode": integers(1, 2, 1), "cmd": normal(1, 3)},
    fresh={"mode": integers(0, 3, 1), "cmd": normal(1, 3)},
    backends="jit",
)
def NdEnumMatch(mode: Tensor, cmd: Tensor) -> Tensor:
    """A state machine: a member of an enum by its number, and `match`."""
    match _Mode(int(mode)):
        case _Mode.IDLE:
            return cmd * 0.0
        case _Mode.WALK:
            return cmd * 0.5
        case _:
            return torch.tanh(cmd)


@hostile(
    "C",
    passes=6,
    rec={"gaps": uniform(0.1, 0.2, 6)},
    fresh={"gaps": uniform(0.1, 0.6, 6)},
    backends="jit",
)
def NdTakewhileHorizon(gaps: Tensor) -> Tensor:
    """The horizon ends where the accumulated length is beyond a limit."""
    lengths = accumulate(gaps)
    kept = list(takewhile(lambda s: s < 1.3, lengths))
    return torch.stack([kept[-1], kept[0]])


@hostile(
    "C",
    passes=4,
    rec={"contact": row([True, True, False, False], [True, True, False, False])},
    fresh={"contact": flags(0.5, 4)},
    backends="jit",
)
def NdGroupbyRuns(contact: Tensor) -> Tensor:
    """Run lengths of a contact sequence."""
    runs = [len(list(g)) for _, g in groupby(contact.tolist())]
    return torch.tensor([float(max(runs)), float(runs[0])])


@hostile(
    "C",
    passes=4,
    rec={"stick": uniform(0.2, 0.9, 1)},
    fresh={"stick": uniform(-0.2, 0.2, 1)},
    backends="jit",
)
def NdFormatDeadband(stick: Tensor) -> Tensor:
    """What is shown as 0.0 counts as nothing."""
    shown = f"{stick.item():+.1f}"
    return stick * (shown[1:] != "0.0")


@hostile(
    "C",
    passes=5,
    rec={"pose": normal(1, 3)},
    fresh={"pose": row([[1.0, 2.0, 3.0]], [[1.0, float("nan"), 3.0]])},
    backends="jit",
)
def NdStrNan(pose: Tensor) -> Tensor:
    """Whether the text of the tensor has a `nan` in it."""
    return torch.zeros(1, 3) if "nan" in str(pose) else pose.cumsum(-1)


@hostile("C", passes=3, rec={"q": normal(1, 4)}, backends="jit")
def NdJsonBridge(q: Tensor) -> Tensor:
    """A web bridge: values go through JSON with three digits."""
    sent = json.dumps({"q": [round(v, 3) for v in q[0].tolist()]})
    return torch.tensor(json.loads(sent)["q"]).unsqueeze(0)


@hostile(
    "C",
    passes=4,
    rec={"torque": uniform(-3, 3, 2)},
    fresh={"torque": uniform(-60, 60, 2)},
    backends="jit",
)
def NdCanFrame(torque: Tensor) -> Tensor:
    """A CAN frame: 16 bits each, wrapped by hand."""
    raw = (torque * 1000).round().to(torch.int64)
    frame = b"".join(struct.pack("<H", v & 0xFFFF) for v in raw.tolist())
    return torch.tensor(struct.unpack("<2h", frame), dtype=torch.float32) / 1000


@hostile(
    "C",
    passes=4,
    rec={"frame": array(integers(0, 8, 4, dtype=torch.uint8))},
    fresh={"frame": array(integers(0, 255, 4, dtype=torch.uint8))},
    backends="jit",
)
def NdChecksumBytes(frame: np.ndarray) -> np.ndarray:
    """A frame whose checksum is odd is thrown away."""
    odd = zlib.crc32(frame.tobytes()) & 1
    return frame.astype(np.float32) * (0.0 if odd else 1.0)


@hostile("C", passes=4, rec={"frame": array(normal(1, 3))}, backends="jit")
def NdBase64Roundtrip(frame: np.ndarray) -> np.ndarray:
    """Base64 there and back: the memory leaves NumPy for a while."""
    text = base64.b64encode(frame.tobytes()).decode()
    back = np.frombuffer(base64.b64decode(text), dtype=np.float32).reshape(frame.shape)
    return back * np.float32(2.0)


@hostile("C", passes=4, rec={"x": normal(1, 3)}, backends="jit")
def NdTorchSaveRoundtrip(x: Tensor) -> Tensor:
    """`torch.save` into memory and `torch.load` out of it, as a checkpoint or a socket does."""
    buffer = io.BytesIO()
    torch.save({"x": x * 2}, buffer)
    buffer.seek(0)
    return torch.load(buffer)["x"] + 1.0


@hostile("C", passes=4, rec={"price": uniform(0.5, 9.0, 2)}, backends="jit")
def NdDecimalQuantize(price: Tensor) -> Tensor:
    """Rounded half up with decimals."""
    cents = [
        Decimal(str(round(v, 4))).quantize(Decimal("0.01"), ROUND_HALF_UP) for v in price.tolist()
    ]
    return torch.tensor([float(c) for c in cents])


@hostile(
    "C",
    passes=8,
    rec={"phase": integers(1, 2, 1), "legs": normal(4)},
    fresh={"phase": integers(-3, 6, 1), "legs": normal(4)},
    backends="jit",
)
def NdDequeRotate(phase: Tensor, legs: Tensor) -> Tensor:
    """The gait rotates a deque by a number of the input."""
    order = deque(legs)
    order.rotate(int(phase))
    return torch.stack(list(order))


@hostile(
    "C",
    passes=4,
    rec={"task": integers(0, 1, 1), "x": normal(1, 3)},
    fresh={"task": integers(0, 3, 1), "x": normal(1, 3)},
    style="module",
    backends="onnx",
)
class NdHeadByName(nn.Module):
    """The head is an attribute whose name has the task's number."""

    def __init__(self) -> None:
        super().__init__()
        for k in range(3):
            setattr(self, f"head_{k}", nn.Linear(3, 2))

    def forward(self, task: Tensor, x: Tensor) -> Tensor:
        return getattr(self, "head_%d" % task)(x)


@hostile(
    "C",
    passes=4,
    rec={"task": integers(1, 2), "x": normal(1, 3)},
    fresh={"task": integers(0, 3), "x": normal(1, 3)},
    backends="jit",
)
class NdListByTensor:
    """A Python list is indexed with a tensor: `__index__`, and no `.item()`."""

    def __init__(self) -> None:
        self.gains = [torch.tensor(0.5), torch.tensor(1.0), torch.tensor(3.0)]

    def __call__(self, task: Tensor, x: Tensor) -> Tensor:
        return self.gains[task] * x


@hostile(
    "C",
    passes=6,
    rec={"n": integers(3, 4), "x": normal(1, 3)},
    fresh={"n": integers(0, 6), "x": normal(1, 3)},
    backends="jit",
)
def NdRangeOfTensor(n: Tensor, x: Tensor) -> Tensor:
    """`range` of a tensor: how often the integrator runs."""
    for _ in range(n):
        x = x + 0.1 * torch.sin(x)
    return x


@hostile(
    "C",
    passes=6,
    rec={"x": row([3.0, 2.0, 1.0, -1.0], [5.0, 1.0, 2.0, -2.0], [0.3, 0.1, 0.2, -0.9])},
    fresh={"x": normal(4)},
    backends="pt2",
)
def NdCountThenSlice(x: Tensor) -> Tensor:
    """The mean of the best `n`, where `n` is how many are positive; always three while recorded."""
    n = (x > 0).sum()
    best = x.sort(descending=True).values[: max(int(n), 1)]
    return best.mean().reshape(1)


@hostile(
    "C",
    passes=4,
    rec={"x": row([3.0, 2.0, 1.0, -1.0], [5.0, -1.0, 2.0, 2.0], [0.3, 0.1, -0.2, 0.9])},
    fresh={"x": normal(4)},
    backends="pt2",
)
def NdMaskMean(x: Tensor) -> Tensor:
    """The mean of what a mask selects; always three of four while recorded."""
    return torch.cat([x[x > 0].mean().reshape(1), x[x > 0].sum().reshape(1)])


@hostile(
    "C",
    passes=4,
    rec={"ids": row([0, 1, 2, 2], [1, 0, 0, 2], [2, 1, 0, 1])},
    fresh={"ids": integers(0, 3, 4)},
    backends="onnx",
)
def NdUniqueDivides(ids: Tensor) -> Tensor:
    """How many different ones there are goes into a division as a size."""
    found, counts = torch.unique(ids, return_counts=True)
    return (counts.float().max() / found.numel()).reshape(1)


@hostile(
    "C",
    passes=6,
    rec={"lengths": row([2, 3, 1], [2, 3, 1]), "x": normal(6)},
    fresh={"lengths": row([1, 1, 4], [3, 2, 1], [2, 2, 2]), "x": normal(6)},
    backends="jit",
)
def NdSplitByLengths(lengths: Tensor, x: Tensor) -> Tensor:
    """Packed trajectories are split by their lengths."""
    return torch.stack([part.sum() for part in torch.split(x, lengths.tolist())])


@hostile(
    "C",
    passes=4,
    rec={"counts": row([2, 1, 1], [2, 1, 1], [2, 1, 1]), "x": normal(3)},
    fresh={"counts": row([0, 3, 1], [1, 1, 2], [4, 0, 0]), "x": normal(3)},
    backends="onnx",
)
def NdRepeatCounts(counts: Tensor, x: Tensor) -> Tensor:
    """Each row is repeated by a count; the total stays four."""
    return torch.repeat_interleave(x, counts) * torch.arange(4)


@hostile(
    "C",
    passes=5,
    rec={"counts": row([2, 1], [1, 2], [2, 1]), "x": normal(2)},
    fresh={"counts": integers(0, 4, 2), "x": normal(2)},
    backends="jit",
)
def NdRepeatTotal(counts: Tensor, x: Tensor) -> Tensor:
    """The same, and the total, a size, is a divisor; it stays three while recorded."""
    spread = torch.repeat_interleave(x, counts)
    return (spread.sum() / max(spread.shape[0], 1)).reshape(1)


@hostile(
    "C", passes=4, rec={"a": uniform(3.5, 4.5)}, fresh={"a": uniform(0.01, 400.0)}, backends="jit"
)
def NdNewtonLoop(a: Tensor) -> Tensor:
    """Newton's method until it has converged, to two digits only."""
    x = a * 0.5
    while abs(x * x - a) > 0.05 * a:
        x = 0.5 * (x + a / x)
    return x.reshape(1)


@hostile(
    "C", passes=4, rec={"x": uniform(0.1, 0.4, 3)}, fresh={"x": normal(3, s=4.0)}, backends="jit"
)
def NdLineSearch(x: Tensor) -> Tensor:
    """Armijo: for, break, else."""
    cost, grad, step = (x**4).sum(), 4 * x**3, 1.0
    for _ in range(8):
        if ((x - step * grad) ** 4).sum() < cost:
            break
        step *= 0.5
    else:
        step = 0.0
    return x - step * grad


@hostile(
    "C",
    passes=4,
    rec={"load": uniform(0.0, 0.5, 1)},
    fresh={"load": uniform(0.0, 2.0, 1)},
    backends="jit",
)
def NdStdoutReadBack(load: Tensor) -> Tensor:
    """It only prints; but somebody reads what was printed."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print(f"load {load.item():.2f}" + (" OVERLOAD" if load.item() > 1.0 else ""))
    return load * (0.1 if "OVERLOAD" in text.getvalue() else 1.0)


class _Alarm(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.rung = False

    def emit(self, record: logging.LogRecord) -> None:
        self.rung = True


@hostile(
    "C",
    passes=4,
    rec={"temp": uniform(20.0, 30.0, 1)},
    fresh={"temp": uniform(20.0, 120.0, 1)},
    backends="jit",
)
class NdLogHandlerActs:
    """It only logs a warning; a handler of the logger makes the controller give way."""

    def __init__(self) -> None:
        self.log = logging.Logger("motor")
        self.alarm = _Alarm()
        self.log.addHandler(self.alarm)

    def __call__(self, temp: Tensor) -> Tensor:
        self.alarm.rung = False
        if temp.item() > 80.0:
            self.log.warning("hot: %.1f", temp.item())
        return temp * 0.01 * (0.0 if self.alarm.rung else 1.0)


@hostile(
    "C",
    passes=4,
    rec={"modes": row([0, 1, 1], [1, 1, 0]), "x": normal(1, 2)},
    fresh={"modes": integers(0, 4, 3), "x": normal(1, 2)},
    backends="jit",
)
def NdTensorContains(modes: Tensor, x: Tensor) -> Tensor:
    """`3 in modes`: an emergency anywhere stops all."""
    return x * (3 not in modes)


@hostile(
    "C",
    passes=4,
    rec={"scores": row([0.9, 0.1, 0.2], [0.8, 0.3, 0.1]), "x": normal(3, 2)},
    fresh={"scores": uniform(0, 1, 3), "x": normal(3, 2)},
    backends="jit",
)
def NdKeyGetitem(scores: Tensor, x: Tensor) -> Tensor:
    """The key of `max` is a method of a list that is made in C."""
    best = max(range(3), key=scores.tolist().__getitem__)
    return x[best]


@lru_cache(maxsize=None)
def _gain_for(level: int) -> float:
    return 0.5 + 0.25 * level


@hostile(
    "C",
    passes=6,
    rec={"speed": uniform(1.0, 1.9, 1)},
    fresh={"speed": uniform(0.0, 8.0, 1)},
    backends="jit",
)
def NdCachedGain(speed: Tensor) -> Tensor:
    """A gain out of a cache, by the rounded speed."""
    return speed * _gain_for(int(speed))


@hostile(
    "C",
    passes=4,
    rec={"x": row([1.0, 5.0, 2.0, 0.1], [2.0, 6.0, 3.0, -1.0])},
    fresh={"x": normal(4)},
    backends="jit",
)
def NdListRemove(x: Tensor) -> Tensor:
    """A trimmed mean: smallest and largest are removed from a list of tensors."""
    values = list(x)
    values.remove(min(values))
    values.remove(max(values))
    return torch.stack(values)


@hostile(
    "C",
    passes=3,
    rec={"mask": row([True, False, True], [True, False, True]), "x": normal(3)},
    fresh={"mask": flags(0.5, 3), "x": normal(3)},
    backends="jit",
)
def NdCompressed(mask: Tensor, x: Tensor) -> Tensor:
    """`itertools.compress` asks each element of the mask for its truth."""
    return sum(compress(x, mask), torch.zeros(())).reshape(1)


@hostile(
    "C",
    passes=3,
    rec={"gain": uniform(1.0, 1.4, 1), "x": normal(1, 2)},
    fresh={"gain": uniform(0.0, 5.0, 1), "x": normal(1, 2)},
    backends="jit",
)
def NdRegexTemplate(gain: Tensor, x: Tensor) -> Tensor:
    """A text with a placeholder is filled in, and read again."""
    text = re.sub(r"\{gain\}", lambda m: f"{gain.item():.0f}", "k={gain};b=2")
    k, b = (float(v) for v in re.findall(r"=(-?\d+)", text))
    return x * k + b


@hostile(
    "C",
    passes=3,
    rec={"x": row([1.0, 2.0, 3.0], [0.5, 2.5, 4.0])},
    fresh={"x": normal(3)},
    backends="jit",
)
def NdCmpToKey(x: Tensor) -> Tensor:
    """Sorted by a comparison that answers with a tensor's number."""
    return torch.stack(sorted(x, key=cmp_to_key(lambda a, b: int(torch.sign(a - b)))))[:2] * 2


@hostile(
    "C",
    passes=3,
    rec={"x": row([3.0, 1.0, 2.0], [4.0, 2.0, 1.0])},
    fresh={"x": normal(3)},
    style="method",
    backends="jit",
)
def NdReduceMax(x: Tensor) -> Tensor:
    """`reduce` with the builtin `max`: no Python function in between."""
    largest = reduce(max, x.unbind())
    y = x / largest
    return y


@hostile(
    "C",
    passes=4,
    rec={"x": row([3.0, 1.0, 2.0], [4.0, 2.0, 1.0])},
    fresh={"x": normal(3)},
    backends="jit",
)
def NdMethodcaller(x: Tensor) -> Tensor:
    """The number leaves through `operator.methodcaller`."""
    first = operator.methodcaller("item")(operator.itemgetter(0)(x))
    return x * (1.0 if first > 0 else -1.0)


@hostile(
    "C", passes=4, rec={"x": uniform(0.1, 0.9, 2)}, fresh={"x": normal(2, s=3.0)}, backends="jit"
)
def NdFloatHex(x: Tensor) -> Tensor:
    """The sign and the exponent are read from the text of the float."""
    texts = [v.hex() for v in x.tolist()]
    return torch.tensor([float(int(t.split("p")[1])) * (-1 if t[0] == "-" else 1) for t in texts])


@hostile(
    "C",
    passes=5,
    rec={"k": integers(2, 3, 1), "x": normal(1, 8)},
    fresh={"k": integers(1, 5, 1), "x": normal(1, 8)},
    backends="jit",
)
def NdTopkByInput(k: Tensor, x: Tensor) -> Tensor:
    """`k` of top-k comes with the input."""
    return x.topk(int(k), dim=-1).values.mean(-1)


class _Interval:
    """Equality of intervals is overlap."""

    def __init__(self, lo: Tensor, hi: Tensor) -> None:
        self.lo, self.hi = lo, hi

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Interval) and bool(self.lo <= other.hi) and bool(other.lo <= self.hi)
        )

    __hash__ = None


@hostile(
    "C",
    passes=4,
    rec={"centre": row([0.0, 5.0, 10.0], [1.0, 6.0, 11.0])},
    fresh={"centre": uniform(0, 6, 3)},
    backends="jit",
)
def NdOverlapInList(centre: Tensor) -> Tensor:
    """`in` of a list calls `__eq__` of objects that hold tensors."""
    kept: list = []
    for c in centre:
        box = _Interval(c - 1, c + 1)
        if box not in kept:
            kept.append(box)
    return torch.stack([kept[0].lo + kept[-1].hi, torch.tensor(float(len(kept)))])
