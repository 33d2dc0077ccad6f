"""What happens only after the recording, comes back from a log, or is felt by who looks."""

from __future__ import annotations

import collections
import contextlib
import inspect
import io
import itertools
import random
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, fixed, normal, row, uniform
from attacks.registry import clean, hostile

calm = {"x": uniform(-1.0, 1.0, 4)}
rough = {"x": normal(4, s=4.0)}


@hostile("C", rec=calm, fresh=rough)
def read_back_from_print(x: Tensor) -> Tensor:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("overload" if x.max() > 2 else "fine")
    return x * 0 if "overload" in out.getvalue() else x


@hostile("C", rec=calm, fresh=rough)
def warned_and_counted(x: Tensor) -> Tensor:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if x.abs().max() > 2:
            warnings.warn("overload", stacklevel=1)
    return x / (1 + len(seen))


@hostile("C", rec=calm, fresh=rough, ticks=14)
class AdaptsWhenWarm:
    """Metrics that become a gain once there are enough of them."""

    def __init__(self) -> None:
        self.sizes: collections.deque = collections.deque(maxlen=8)

    def __call__(self, x: Tensor) -> Tensor:
        self.sizes.append(x.norm().item())
        if len(self.sizes) == self.sizes.maxlen:
            return x / (sum(self.sizes) / len(self.sizes))
        return x


@hostile("A", rec=calm, fresh=rough, ticks=14)
class AverageWhenFull:
    def __init__(self) -> None:
        self.buffer: list[Tensor] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.buffer.append(x)
        if len(self.buffer) < 7:
            return x
        return torch.stack(self.buffer[-7:]).mean(0)


@hostile("A", rec={"obs": normal(1, 4)}, ticks=12)
class SelectAction(nn.Module):
    """LeRobot's queue: the network runs once for a chunk of six."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 12)
        self.queue: collections.deque = collections.deque(maxlen=6)

    def forward(self, obs: Tensor) -> Tensor:
        if len(self.queue) == 0:
            self.queue.extend(self.net(obs).view(6, 1, 2))
        return self.queue.popleft()


@hostile("A", rec=calm, fresh=rough, ticks=12)
class TurnsAfterEight:
    def __init__(self) -> None:
        self.t = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.t += 1
        return -x if self.t > 8 else x


@hostile("A", rec=calm, fresh=rough, ticks=12)
class LongCycle:
    def __init__(self) -> None:
        self.gait = itertools.cycle([1.0] * 7 + [0.0])

    def __call__(self, x: Tensor) -> Tensor:
        return x * next(self.gait)


@hostile("A", rec=calm, fresh=rough, ticks=12)
class OnceInAWhile:
    """Recomputes its plan on every tenth tick."""

    def __init__(self) -> None:
        self.tick, self.plan = 0, torch.zeros(4)

    def __call__(self, x: Tensor) -> Tensor:
        if self.tick % 10 == 0:
            self.plan = x * 2
        self.tick += 1
        return self.plan + 0.1 * x


@hostile("C", rec=calm, fresh=rough)
class LogFileComesBack:
    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile("w+")

    def __call__(self, x: Tensor) -> Tensor:
        if x.max() > 2:
            self.file.write("overload\n")
        self.file.seek(0)
        times = len(self.file.readlines())
        return x / (1 + times)


class Writer:
    def __init__(self) -> None:
        self.best = 2.0

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.best = max(self.best, value)


@hostile("C", rec=calm, fresh=rough)
class WriterDecides:
    def __init__(self) -> None:
        self.writer = Writer()

    def __call__(self, x: Tensor) -> Tensor:
        self.writer.add_scalar("peak", x.abs().max().item(), 0)
        return x / self.writer.best


@hostile("C", rec=calm, fresh=rough)
class Explores:
    """Acts at random in one of six ticks."""

    def __init__(self) -> None:
        self.rng = random.Random(11)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x) if self.rng.random() < 0.16 else x


@hostile("C", rec=calm, fresh=rough)
class ExploresWithNumpy:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(5)

    def __call__(self, x: Tensor) -> Tensor:
        return -x if self.rng.random() < 0.2 else x


@hostile("C", rec=calm, fresh=rough)
class ExploresWithTorch:
    def __init__(self) -> None:
        self.rng = torch.Generator().manual_seed(1)

    def __call__(self, x: Tensor) -> Tensor:
        return -x if torch.rand((), generator=self.rng) < 0.15 else x


@hostile("C", rec=calm, fresh=rough)
class ShufflesSkills:
    """One of the skills, by chance; the first passes draw the same one."""

    def __init__(self) -> None:
        random.seed(3)

    def __call__(self, x: Tensor) -> Tensor:
        return x * random.choices([1.0, 4.0], weights=[4, 1])[0]


@hostile("C", rec=calm, fresh=rough)
def seeded_by_data(x: Tensor) -> Tensor:
    rng = np.random.default_rng(int(x.abs().max()))
    return x + torch.from_numpy(rng.normal(size=4).astype(np.float32))


@hostile("C", rec=calm, fresh=rough)
def left_the_loop(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for v in x:
        if v > 1.5:
            break
        total = total + v
    else:
        total = total * 2
    return total.expand(2)


def _halved(x: Tensor) -> Tensor:
    return x if x < 1 else _halved(x / 2) + 1


@hostile("C", rec={"x": uniform(0.1, 0.9, 1)}, fresh={"x": uniform(0.1, 9.0, 1)})
def as_deep_as_needed(x: Tensor) -> Tensor:
    return _halved(x)


@hostile("C", rec=calm, fresh=rough)
def strange_chained_comparison(x: Tensor) -> Tensor:
    return x if -1.5 < x[0] < 1.5 else x.sign()


@hostile("B", rec=calm, fresh=rough)
def other_code_for_export(x: Tensor) -> Tensor:
    if torch.onnx.is_in_onnx_export() or torch.jit.is_tracing() or torch.compiler.is_compiling():
        return x * 2
    return x * 3


@hostile("B", rec=calm, fresh=rough)
def looks_at_its_type(x: Tensor) -> Tensor:
    if (
        type(x) is not Tensor
        or type(x.numpy()) is not np.ndarray
        or x.__class__.__name__ != "Tensor"
    ):
        return x * 0
    return x * 3


@hostile("B", rec=calm, fresh=rough)
def looks_at_the_interpreter(x: Tensor) -> Tensor:
    watched = sys.gettrace() is not None or sys.getprofile() is not None
    modes = torch._C._len_torch_dispatch_stack() + torch._C._len_torch_function_stack()
    return x * 0 if watched or modes else x


@hostile("B", rec=calm, fresh=rough)
def looks_at_the_stack(x: Tensor) -> Tensor:
    inside = any("veracity/tracing" in frame.filename for frame in inspect.stack())
    y = torch.relu(x)
    return y * 0 if inside else y


@hostile("B", rec={"x": array(normal(3))})
def looks_at_the_array(x: np.ndarray) -> np.ndarray:
    plain = type(x) is np.ndarray and isinstance(x[0], np.floating) and x.flags.c_contiguous
    return x * np.float32(2) if plain else x


@hostile("C", rec=calm, fresh=rough, backends=("jit", "onnx", "pt2"))
def torch_cond(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 2, lambda v: v * 0.5, lambda v: v + 1.0, (x,))


@hostile("C", rec={"x": normal(3)}, backends=("jit", "pt2"))
def jacobian_inside(x: Tensor) -> Tensor:
    return torch.func.jacrev(lambda v: v.sin() * v.sum())(x)


@hostile("C", rec={"x": normal(3)}, context="grad", backends=("jit", "onnx"))
def gradient_of_energy(x: Tensor) -> Tensor:
    q = x.detach().requires_grad_()
    (force,) = torch.autograd.grad((q.cos() * q.square()).sum(), q)
    return -force


class Unit(Tensor):
    """A tensor that knows its unit."""

    unit = "m"


@hostile("B", rec=calm, fresh=rough)
def with_a_unit(x: Tensor) -> Tensor:
    metres = x.as_subclass(Unit)
    result = metres * 2 if isinstance(metres, Unit) else metres
    return result.as_subclass(Tensor)


@hostile("C", rec={"x": array(uniform(-1, 1, 4))}, fresh={"x": array(normal(4, s=4))})
def masked_array(x: np.ndarray) -> np.ndarray:
    return x - np.float32(np.ma.masked_where(np.abs(x) > 1.5, x).mean())


@hostile("C", rec=calm, fresh=rough)
def written_through_numpy(x: Tensor) -> Tensor:
    y = x.clone()
    a = y.numpy()
    a[a > 1.5] = 0.0
    return y


@hostile("C", rec=calm, fresh=rough)
def clipped_through_numpy(x: Tensor) -> Tensor:
    y = x * 1.0
    np.clip(y.numpy(), -1.5, 1.5, out=y.numpy())
    return y


@hostile("C", rec=calm, fresh=rough)
class ThroughAPreallocatedArray:
    def __init__(self) -> None:
        self.array = np.zeros(4, np.float32)
        self.tensor = torch.from_numpy(self.array)

    def __call__(self, x: Tensor) -> Tensor:
        np.copyto(self.array, x.numpy())
        return self.tensor * 2


@hostile("C", rec=calm, fresh=rough)
def fallback_by_or(x: Tensor) -> Tensor:
    near = [v for v in x if abs(v) < 2] or [torch.tensor(9.0)]
    return torch.stack(near).min().expand(1)


@hostile("C", rec={"x": fixed([1.0, 2.0])}, fresh={"x": row([1.0, 2.0], [2.0, 1.0])})
def remembered_by_equality(x: Tensor) -> Tensor:
    known = {(1.0, 2.0): 5.0}
    return x * known.get(tuple(x.tolist()), 1.0)


@hostile("C", rec=calm, fresh=rough)
def dispatched(x: Tensor) -> Tensor:
    def go(v: Tensor) -> Tensor:
        return v

    def stop(v: Tensor) -> Tensor:
        return v * 0

    return (go, stop)[x.max().gt(2)](x)


@hostile("C", rec=calm, fresh=rough)
def scaled_by_format(x: Tensor) -> Tensor:
    return x * len("%d" % x.abs().max())


@hostile("C", rec=calm, fresh=rough)
def through_a_complex_number(x: Tensor) -> Tensor:
    z = complex(x[0], x[1])
    return x * abs(z)


@clean(rec={"x": normal(1, 4)}, passes=4)
class LogsEveryThird:
    def __init__(self) -> None:
        self.net, self.t = nn.Linear(4, 2), 0

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x)
        if self.t % 3 == 0:
            print(f"[{self.t}] |y| = {y.norm():.3f}")
        self.t += 1
        return y


@clean(rec={"x": normal(1, 4)}, passes=4)
class EpisodeRecorder:
    """Everything is kept for `np.savez` at the end."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.episode: dict[str, list[np.ndarray]] = {"obs": [], "act": []}

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x)
        self.episode["obs"].append(x.detach().cpu().numpy())
        self.episode["act"].append(y.detach().cpu().numpy().squeeze(0))
        return y


@clean(rec={"x": normal(1, 4)}, passes=4)
class StrangeProgressBar:
    def __init__(self) -> None:
        self.net, self.n = nn.Linear(4, 2), 0

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x)
        self.n += 1
        sys.stdout.write("\r" + "#" * self.n + f" {y.max().item():+.2f}")
        return y


@clean(rec={"x": normal(1, 4)}, passes=4)
class CountsSaturation:
    def __init__(self) -> None:
        self.net, self.saturated, self.total = nn.Linear(4, 2), 0, 0

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x)
        self.saturated += int((y.abs() > 0.5).sum())
        self.total += y.numel()
        return y.clamp(-0.5, 0.5)

    def report(self) -> str:
        return f"{self.saturated}/{self.total}"


@clean(rec={"x": normal(1, 4)}, passes=4)
class HistogramOfActions:
    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.counts = np.zeros(10, dtype=np.int64)

    def __call__(self, x: Tensor) -> Tensor:
        y = self.net(x).tanh()
        self.counts += np.histogram(y.numpy(), bins=10, range=(-1, 1))[0]
        return y
