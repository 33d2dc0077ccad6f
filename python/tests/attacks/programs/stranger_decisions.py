"""Values that leave for Python by ways that people really use, and come back as decisions."""

from __future__ import annotations

import array as array_module
import asyncio
import bisect
import concurrent.futures
import contextlib
import copy
import ctypes
import functools
import heapq
import io
import json
import math
import os
import pickle
import queue
import random
import re
import sqlite3
import statistics
import struct
import tempfile
import threading
import zlib
from multiprocessing import shared_memory

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, either, fixed, normal, row, uniform
from attacks.registry import hostile

calm = {"x": uniform(-1.0, 1.0, 4)}
rough = {"x": normal(4, s=4.0)}


@hostile(
    "C",
    rec={"a": lambda tick, gen: torch.eye(3) * (1.0 + torch.rand((), generator=gen))},
    fresh={"a": lambda tick, gen: torch.eye(3) * (1.0 - 2.0 * (tick % 2))},
)
def cholesky_or_diagonal(a: Tensor) -> Tensor:
    try:
        return torch.linalg.cholesky(a)
    except RuntimeError:
        return torch.diag(a.diagonal().abs().sqrt())


@hostile("C", rec=calm, fresh=rough)
def gain_table(x: Tensor) -> Tensor:
    gains = {0: 0.5, 1: 2.0, 2: 8.0}
    return x * gains.get(min(int(x.abs().max()), 2), 1.0)


@hostile("C", rec=calm, fresh=rough)
def packed(x: Tensor) -> Tensor:
    raw = struct.pack("<4f", *x)
    a, b, c, d = struct.unpack("<4f", raw)
    return x + torch.tensor([b, a, d, c])


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4.0))})
def looked_at_through_memoryview(x: np.ndarray) -> np.ndarray:
    view = memoryview(x)
    return x * 2.0 if view[0] < 1.5 else -x


@hostile("C", rec=calm, fresh=rough)
def array_of_floats(x: Tensor) -> Tensor:
    wire = array_module.array("f", x.tolist())
    wire.byteswap()
    wire.byteswap()
    return torch.frombuffer(wire, dtype=torch.float32).clone() + 0.5 * x


@hostile("C", rec=calm, fresh=rough)
def by_pointer(x: Tensor) -> Tensor:
    c = x.contiguous()
    first = ctypes.cast(c.data_ptr(), ctypes.POINTER(ctypes.c_float))[0]
    return x if first < 1.5 else torch.zeros_like(x)


@hostile("C", rec=calm, fresh=rough)
class ThroughSharedMemory:
    def __init__(self) -> None:
        self.block = shared_memory.SharedMemory(create=True, size=16)

    def __call__(self, x: Tensor) -> Tensor:
        mine = np.ndarray((4,), np.float32, buffer=self.block.buf)
        mine[:] = x.numpy()
        other = np.frombuffer(self.block.buf, np.float32, 4)
        total = float(other.sum())
        del mine, other
        return x * (1.0 if total < 4.0 else 0.25)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.block.close()
            self.block.unlink()


@hostile("C", rec={"x": uniform(-0.4, 0.4, 2)}, fresh={"x": normal(2, s=2.0)})
class CachedByCell:
    """A planner that is asked once for every cell."""

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.plan(tuple(int(v) for v in x.round()))

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def plan(cell: tuple[int, int]) -> Tensor:
        return torch.tensor([cell[0] * 2.0, cell[1] - 1.0])


@hostile("C", rec=calm, fresh=rough)
def json_there_and_back(x: Tensor) -> Tensor:
    message = json.dumps({"cmd": x.tolist()})
    return torch.tensor(json.loads(message)["cmd"]) * 2.0


@hostile("C", rec={"x": fixed([0.5, 1.0])}, fresh={"x": normal(2)})
def json_of_a_still_robot(x: Tensor) -> Tensor:
    """The robot stood still while it was recorded."""
    return torch.tensor(json.loads(json.dumps({"cmd": x.tolist()}))["cmd"]) * 2.0


@hostile("C", rec=calm, fresh=rough)
def printed_number(x: Tensor) -> Tensor:
    return x * float(f"{x[0]:.0f}") + x


@hostile("C", rec={"x": uniform(0.0, 0.4, 3)}, fresh={"x": uniform(0.0, 9.0, 3)})
def representation(x: Tensor) -> Tensor:
    text = repr(x)
    big = re.search(r"[1-9]\.\d+", text)
    return x if big is None else x * 10.0


@hostile("C", rec={"x": row([1.0, 2.0, 3.0])}, fresh={"x": normal(3)})
def sorted_joints(x: Tensor) -> Tensor:
    return torch.stack(sorted(x.unbind(), key=float))


@hostile("C", rec={"x": row([3.0, 1.0, 2.0], [4.0, 0.0, 1.0])}, fresh={"x": normal(3)})
def strongest_foot(x: Tensor) -> Tensor:
    return max(x, key=lambda f: f.abs()) * 2.0


@hostile(
    "C", rec={"x": row([3.0, 1.0], [4.0, 0.0]), "y": fixed([5.0, 6.0])}, fresh={"x": normal(2)}
)
def python_min_of_rows(x: Tensor, y: Tensor) -> Tensor:
    low = min(x[0], x[1])
    return y - low


@hostile("C", rec=calm, fresh=rough)
def gain_by_bisection(x: Tensor) -> Tensor:
    edges, values = [-1.5, 0.0, 1.5], [4.0, 1.0, 1.0, 4.0]
    return x * values[bisect.bisect(edges, x[0].item())]


@hostile(
    "C",
    rec={"x": normal(3), "n": fixed(2)},
    fresh={"n": lambda tick, gen: torch.tensor(tick % 5)},
)
def as_many_as_asked(x: Tensor, n: Tensor) -> Tensor:
    for _ in range(int(n)):
        x = x * 0.5 + 1.0
    return x


@hostile("C", rec={"x": uniform(0.9, 1.1, 3)}, fresh={"x": uniform(0.1, 50.0, 3)})
def newton_until_done(x: Tensor) -> Tensor:
    r = torch.ones_like(x)
    while (r * r - x).abs().max() > 0.05:
        r = 0.5 * (r + x / r)
    return r


@hostile("C", rec={"x": uniform(0.1, 1.0, 5)}, fresh={"x": normal(5)})
def mean_of_the_positive(x: Tensor) -> Tensor:
    kept = x[x > 0]
    return kept.mean() if kept.numel() else torch.zeros(())


@hostile("C", rec={"c": fixed(1), "x": normal(3)}, fresh={"c": lambda t, g: torch.tensor(t % 4)})
def mode_matched(c: Tensor, x: Tensor) -> Tensor:
    match c.item():
        case 0:
            return torch.zeros_like(x)
        case 1 | 2:
            return x.tanh()
        case _:
            return -x


@hostile("C", rec=calm, fresh=rough)
def any_of_them(x: Tensor) -> Tensor:
    if any(v > 3 for v in x):
        return x.clamp(-3, 3)
    return x


@hostile("C", rec={"x": fixed([0.0, 0.0]), "y": normal(2)}, fresh={"x": normal(2)})
def nothing_commanded(x: Tensor, y: Tensor) -> Tensor:
    return y if torch.allclose(x, torch.zeros(2)) else y + x


@hostile("C", rec=calm, fresh=rough)
def checked_by_assert(x: Tensor) -> Tensor:
    try:
        assert (x.abs() < 2).all(), "out of range"
    except AssertionError:
        return x.clamp(-2, 2) * 0.5
    return x


@hostile("C", rec=calm, fresh=rough)
def suppressed(x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    with contextlib.suppress(ValueError):
        if not -2 < x.min().item():
            raise ValueError("low")
        y = x * 2
    return y


@hostile("C", rec={"x": normal(4)}, passes=1)
def rounded_number(x: Tensor) -> Tensor:
    return x + round(x[0].item(), 1)


@hostile("C", rec=calm, fresh=rough)
def heading_of_command(x: Tensor) -> Tensor:
    heading = math.atan2(x[1], x[0])
    return torch.tensor([math.cos(heading), math.sin(heading)]) * x[2:]


@hostile("C", rec={"x": row([0.1, 3.0, 0.2], [0.3, 2.0, 0.1])}, fresh={"x": normal(3)})
class Skills(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.skills = nn.ModuleList(nn.Linear(3, 2) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.skills[x.argmax()](x)


@hostile("C", rec=calm, fresh=rough)
def asked_in_a_pool(x: Tensor) -> Tensor:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        safe = pool.submit(lambda: bool(x.abs().max() < 2)).result()
    return x if safe else x * 0.1


class _Worker:
    """A safety monitor with a thread of its own, alive before any session."""

    def __init__(self) -> None:
        self.ask: queue.Queue = queue.Queue()
        self.answer: queue.Queue = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            values = self.ask.get()
            self.answer.put(max(abs(v) for v in values.tolist()))


@hostile("C", rec=calm, fresh=rough)
class MonitorThread:
    def __init__(self) -> None:
        self.worker = _Worker()

    def __call__(self, x: Tensor) -> Tensor:
        self.worker.ask.put(x)
        peak = self.worker.answer.get()
        return x / peak if peak > 2 else x


@hostile("C", rec=calm, fresh=rough)
def awaited(x: Tensor) -> Tensor:
    async def judge(values: Tensor) -> float:
        await asyncio.sleep(0)
        return 1.0 if values.norm() < 3 else 0.2

    return x * asyncio.run(judge(x))


@hostile("C", rec=calm, fresh=rough)
def pickled(x: Tensor) -> Tensor:
    return pickle.loads(pickle.dumps(x)) * 3.0


@hostile("C", rec={"x": fixed([0.25, -0.5])}, fresh={"x": normal(2)})
def saved_and_loaded(x: Tensor) -> Tensor:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file) - 1.0


@hostile("C", rec={"x": array(normal(3))})
def bytes_and_back(x: np.ndarray) -> np.ndarray:
    return np.frombuffer(x.tobytes(), np.float32) * np.float32(2)


@hostile("C", rec=calm, fresh=rough)
def numpy_by_dlpack(x: Tensor) -> Tensor:
    seen = np.from_dlpack(x)
    return x if seen.max() < 1.5 else x - 10.0


@hostile("C", rec=calm, fresh=rough)
def checksum(x: Tensor) -> Tensor:
    return x * float(zlib.crc32(x.numpy().tobytes()) % 7)


@torch.jit.script
def _branching(x: Tensor) -> Tensor:
    if bool(x.sum() > 4.0):
        x = x * 0.0
    return x + 1.0


@hostile("C", rec=calm, fresh={"x": normal(4, s=4.0, m=1.0)}, backends=("jit", "onnx", "pt2"))
def scripted_branch(x: Tensor) -> Tensor:
    return _branching(x)


@torch.library.custom_op("stranger::safe_scale", mutates_args=())
def safe_scale(x: Tensor) -> Tensor:
    return x.clone() if x.abs().max() < 2 else x * 0.0


@safe_scale.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@hostile("C", rec=calm, fresh=rough, backends=("jit", "pt2"))
def custom_operator(x: Tensor) -> Tensor:
    return safe_scale(x) + 1.0


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return torch.from_numpy(np.floor(x.detach().numpy() * 4) / 4)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad


@hostile("C", rec={"x": uniform(0.0, 0.2, 3)}, fresh={"x": normal(3)})
def straight_through(x: Tensor) -> Tensor:
    return _Rounded.apply(x) + x


@hostile("C", rec=calm, fresh=rough)
class HookedLimiter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.net.register_forward_hook(self.limit)

    @staticmethod
    def limit(module: nn.Module, args: tuple, out: Tensor) -> Tensor | None:
        return out.clamp(-1, 1) if out.abs().max() > 2.5 else None

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile("C", rec=calm, fresh=rough)
def storage_bytes(x: Tensor) -> Tensor:
    sign = bytes(x.untyped_storage())[3] & 0x40
    return x * (3.0 if sign else 1.0)


@hostile("C", rec=calm, fresh=rough)
def through_a_file(x: Tensor) -> Tensor:
    with tempfile.TemporaryFile() as file:
        np.save(file, x.numpy())
        file.seek(0)
        back = np.load(file)
    return torch.from_numpy(back) + 1.0


@hostile("C", rec=calm, fresh=rough)
def through_a_pipe(x: Tensor) -> Tensor:
    out, into = os.pipe()
    os.write(into, struct.pack("d", x[0]))
    (first,) = struct.unpack("d", os.read(out, 8))
    os.close(out)
    os.close(into)
    return x + first


@hostile("C", rec=calm, fresh=rough)
def asked_a_database(x: Tensor) -> Tensor:
    base = sqlite3.connect(":memory:")
    base.execute("create table q (v real)")
    base.executemany("insert into q values (?)", [(v,) for v in x.tolist()])
    (mean,) = base.execute("select avg(v) from q where v > -1.5").fetchone()
    base.close()
    return x - (mean or 0.0)


@hostile("C", rec=calm, fresh=rough)
def median_of_statistics(x: Tensor) -> Tensor:
    return x - statistics.median(x.tolist())


@hostile("C", rec={"x": row([4.0, 3.0, 1.0], [5.0, 2.0, 0.0])}, fresh={"x": normal(3)})
def two_largest_by_heap(x: Tensor) -> Tensor:
    return torch.stack(heapq.nlargest(2, list(x)))


@hostile("C", rec={"x": uniform(0.0, 0.09, 3)}, fresh={"x": normal(3)})
def number_of_cells(x: Tensor) -> Tensor:
    return x * len(set((x * 10).int().tolist()))


@hostile("C", rec={"x": array(uniform(0.5, 1.0, 3))}, fresh={"x": array(row([1.0, 0.0, 2.0]))})
def floating_point_error(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="raise"):
        try:
            return np.float32(1.0) / x
        except FloatingPointError:
            return np.zeros_like(x)


@hostile(
    "C", rec={"a": normal(2, 2)}, fresh={"a": row([[1.0, 2.0], [2.0, 4.0]], [[1.0, 0], [0, 2]])}
)
def inverse_with_information(a: Tensor) -> Tensor:
    inverse, info = torch.linalg.inv_ex(a)
    return inverse if info == 0 else torch.zeros_like(a)


@hostile("A", rec=calm, fresh=rough)
class ScaledByFirst:
    def __call__(self, x: Tensor) -> Tensor:
        return x / self.scale(x)

    def scale(self, x: Tensor) -> Tensor:
        if not hasattr(self, "_scale"):
            self._scale = x.abs().max()
        return self._scale


@hostile("C", rec={"x": normal(3)})
def noise_of_python(x: Tensor) -> Tensor:
    return x + random.gauss(0.0, 1.0)


@hostile("C", rec={"x": normal(3)})
class NoiseOfGenerator:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def __call__(self, x: Tensor) -> Tensor:
        return x + torch.from_numpy(self.rng.normal(size=3).astype(np.float32))


@hostile("C", rec={"x": normal(3)})
class DropoutInTraining(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.Dropout(0.5), nn.Linear(16, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile("C", rec=calm, fresh=rough)
def copied_aside(x: Tensor) -> Tensor:
    aside = copy.deepcopy(x).numpy().astype(np.float64)
    return x * (1.0 if np.linalg.norm(aside) < 2.5 else 0.0)


@hostile(
    "C",
    rec={"x": normal(6, 3)},
    fresh={"x": either(lambda t: t % 2 == 0, normal(6, 3), fixed(torch.zeros(6, 3)))},
)
def points_in_front(x: Tensor) -> Tensor:
    """Index of the first point in front of the camera, or the centre."""
    near = (x[:, 2] > 0).nonzero()
    return x[near[0, 0]] if len(near) else x.mean(0)


@hostile("C", rec=calm, fresh=rough)
def exponent_by_format(x: Tensor) -> Tensor:
    scale = 10.0 ** int(f"{x.abs().max().item():e}".split("e")[1])
    return x / scale


@hostile("C", rec={"x": uniform(0.0, 1.0, 3)}, fresh={"x": uniform(0.0, 3.0, 3)})
def table_row_by_array(x: Tensor) -> Tensor:
    table = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    return x + torch.from_numpy(table[int(x.sum()) % 4])


@hostile("C", rec={"x": array(uniform(-1, 1, 3))}, fresh={"x": array(normal(3, s=3.0))})
def numpy_scalar_decides(x: np.ndarray) -> np.ndarray:
    peak = np.max(np.abs(x))
    gain = np.float32(1.0) if peak <= 1.5 else np.float32(1.5) / peak
    return x * gain


@hostile("C", rec=calm, fresh=rough, style="method")
class RemembersWorst:
    def __init__(self) -> None:
        self.worst = 1.0

    def step(self, x: Tensor) -> Tensor:
        self.worst = max(self.worst, x.abs().max().item())
        return x / self.worst
