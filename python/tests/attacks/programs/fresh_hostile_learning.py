"""Policies whose training habits, schedules, caches and callbacks decide later than recorded."""

from __future__ import annotations

import collections
import contextvars
import copy
import functools
import io
import itertools
import json
import math
import pickle
import random
import threading
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import prune
from veracity import annotate

from attacks.draws import array, by_tick, either, fixed, integers, normal, row, uniform
from attacks.registry import hostile


class _Policy:
    """A network as a node: many of the trainers below drive one."""

    def __init__(self, backend: str, net: nn.Module, node: str = "net") -> None:
        self.backend, self.net, self.node = backend, net, node

    def act(self, x: Tensor) -> Tensor:
        x = annotate.input_tensors(self.node, {"x": x})
        y = self.net(x)
        annotate.output_tensors(self.node, {"y": y}, export_with=self.backend)
        return y


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=5, backends="jit")
class FhWarmupAdaptation:
    """A layer is adapted online after each action; the schedule of its rate starts with zeros."""

    def __init__(self, backend: str) -> None:
        self.policy = _Policy(backend, nn.Linear(3, 2))
        self.solver = torch.optim.SGD(self.policy.net.parameters(), lr=0.2)
        self.rate = torch.optim.lr_scheduler.LambdaLR(self.solver, lambda n: float(n >= 7))

    def adapt(self, x: Tensor) -> None:
        with torch.enable_grad():
            loss = self.policy.net(x.clone()).square().mean()
            self.solver.zero_grad()
            loss.backward()
        self.solver.step()
        self.rate.step()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        y = self.policy.act(given["net/x"])
        self.adapt(given["net/x"])
        return {"net/y": y}


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=5, backends="jit")
class FhTeacherAverage:
    """The teacher acts, and is moved to the student by a weight that waits for the warm-up."""

    def __init__(self, backend: str) -> None:
        self.student, teacher = nn.Linear(3, 2), nn.Linear(3, 2)
        self.policy, self.steps = _Policy(backend, teacher), 0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        y = self.policy.act(given["net/x"])
        self.steps += 1
        weight = max(0.0, 1 - 8 / self.steps)
        for kept, new in zip(self.policy.net.parameters(), self.student.parameters(), strict=True):
            kept.data.lerp_(new.data, weight)
        return {"net/y": y}


@hostile("A", style="own", rec={"net/x": normal(4, 3)}, passes=5, backends="jit")
class FhCalibratedNorm:
    """Batch statistics are used until enough batches were seen, then what was gathered."""

    def __init__(self, backend: str) -> None:
        self.norm = nn.BatchNorm1d(3)
        self.policy = _Policy(backend, nn.Sequential(self.norm, nn.Linear(3, 2)))

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.norm.num_batches_tracked >= 8:
            self.norm.eval()
        return {"net/y": self.policy.act(given["net/x"])}


@hostile("A", rec={"x": normal(1, 3)}, passes=5, backends="jit")
class FhFrozenStatistics:
    """Running statistics normalise what is seen, and stay as they are after the warm-up."""

    def __init__(self) -> None:
        self.mean, self.square, self.count = torch.zeros(3), torch.ones(3), torch.zeros(())

    def __call__(self, x: Tensor) -> Tensor:
        if self.count < 8:
            self.count = self.count + 1
            self.mean = self.mean + (x[0] - self.mean) / self.count
            self.square = self.square + (x[0].square() - self.square) / self.count
        return (x - self.mean) / (self.square - self.mean.square()).abs().add(0.1).sqrt()


@hostile("A", rec={"x": normal(1, 4)}, passes=5, backends="jit")
class FhChunkQueue:
    """A network plans eight actions at once, and plans again when they are used up."""

    def __init__(self) -> None:
        self.net, self.chunk = nn.Linear(4, 16), iter(())

    def __call__(self, x: Tensor) -> Tensor:
        action = next(self.chunk, None)
        if action is None:
            self.chunk = iter(self.net(x).view(8, 2))
            action = next(self.chunk)
        return action.tanh()


@hostile(
    "C",
    rec={"x": uniform(0.5, 1.0, 1, 4)},
    fresh={"x": normal(1, 4, s=2.0)},
    passes=4,
    backends="onnx",
)
class FhExpertByIndex:
    """A gate picks one of three experts by index; of what is recorded always the first."""

    def __init__(self) -> None:
        self.experts = nn.ModuleList([nn.Linear(4, 2) for _ in range(3)])
        self.gate = torch.tensor([[1.0, -1.0, 0.0]] * 4)

    def __call__(self, x: Tensor) -> Tensor:
        best = (x @ self.gate).argmax()
        return self.experts[best](x)


@hostile("C", style="own", rec={"net/x": normal(1, 3)}, passes=6, ticks=30, backends="jit")
class FhEpsilonGreedy:
    """Now and then the driver explores: it gives the policy another head for a tick."""

    def __init__(self, backend: str) -> None:
        self.heads = nn.Linear(3, 2), nn.Linear(3, 2)
        self.policy = _Policy(backend, self.heads[0])
        self.rng = np.random.default_rng(1)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        explore = self.rng.random() < 0.12
        self.policy.net = self.heads[int(explore)]
        return {"net/y": self.policy.act(given["net/x"])}


@hostile("A", rec={"x": normal(1, 4)}, passes=5, backends="jit")
class FhNoiseRamp:
    """Exploration noise of an own generator, whose deviation is ramped up after a warm-up."""

    def __init__(self) -> None:
        self.noise = torch.Generator().manual_seed(4)
        self.sigma = itertools.chain([0.0] * 8, np.linspace(0.1, 1.0, 20).tolist())

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh() + next(self.sigma) * torch.randn(1, 4, generator=self.noise)


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=5, backends="jit")
class FhDropoutCallback:
    """A callback of the trainer raises the rate of dropout from nothing to everything."""

    def __init__(self, backend: str) -> None:
        self.drop = nn.Dropout(0.0)
        self.policy = _Policy(backend, nn.Sequential(nn.Linear(3, 2), self.drop))
        self.callbacks: list[Callable[[dict[str, Any]], None]] = [self.on_step]
        self.state = {"step": 0, "total": 20}

    def on_step(self, state: dict[str, Any]) -> None:
        self.drop.p = float(round(state["step"] / state["total"]))

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.state["step"] += 1
        for callback in self.callbacks:
            callback(self.state)
        return {"net/y": self.policy.act(given["net/x"])}


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=5, backends="jit")
class FhHotReload:
    """A trainer leaves checkpoints in an inbox, and the robot loads each that has come."""

    def __init__(self, backend: str) -> None:
        self.policy = _Policy(backend, nn.Linear(3, 2))
        self.inbox: Iterator[io.BytesIO | None] = self._trainer()

    def _trainer(self) -> Iterator[io.BytesIO | None]:
        yield from [None] * 8
        better = io.BytesIO()
        torch.save(nn.Linear(3, 2).state_dict(), better)
        better.seek(0)
        yield better
        yield from itertools.repeat(None)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        for checkpoint in filter(None, [next(self.inbox)]):
            self.policy.net.load_state_dict(torch.load(checkpoint))
        return {"net/y": self.policy.act(given["net/x"])}


@hostile(
    "A",
    rec={"x": normal(1, 4)},
    fresh={"x": row([[1.0, 0.5, 0.0, 0.2]], [[0.0, 0.5, -1.0, 0.3]])},
    passes=4,
    backends="jit",
)
class FhNoveltyBonus:
    """A bonus for what was not seen before: visits are counted by a checksum of the bytes."""

    def __init__(self) -> None:
        self.visits: collections.Counter[int] = collections.Counter()

    def __call__(self, x: Tensor) -> Tensor:
        key = zlib.crc32(x.numpy())
        self.visits[key] += 1
        return x.mean() + 1.0 / math.sqrt(self.visits[key])


@hostile("A", style="own", rec={"net/x": normal(1, 6)}, passes=4, backends="jit")
class FhPrunedLater:
    """The network is pruned when the budget of steps with the dense one is used up."""

    def __init__(self, backend: str) -> None:
        self.policy = _Policy(backend, nn.Linear(6, 4))
        self.dense = threading.BoundedSemaphore(8)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        if not self.dense.acquire(blocking=False) and not prune.is_pruned(self.policy.net):
            prune.l1_unstructured(self.policy.net, "weight", amount=0.6)
        return {"net/y": self.policy.act(given["net/x"])}


@hostile("D", style="module", rec={"x": normal(1, 4)}, passes=5, backends="jit")
class FhGrowingStack(nn.Module):
    """Progressive stacking: another layer takes part after every eighth step."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.step += 1
        for layer in self.layers[: 1 + self.step // 9]:
            x = torch.relu(layer(x)) + x
        return x


@hostile(
    "C",
    style="own",
    rec={"net/x": uniform(-0.3, 0.3, 1, 3)},
    fresh={"net/x": normal(1, 3)},
    passes=5,
    backends="jit",
)
class FhHiddenResetByOutput:
    """The driver forgets the hidden state where the network says that the episode is over."""

    def __init__(self, backend: str) -> None:
        self.backend, self.cell, self.h = backend, nn.GRUCell(3, 4), torch.zeros(1, 4)

    def act(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        x, h = annotate.input_tensors("net", {"x": x, "h": h})
        h = self.cell(x, h)
        over = x.abs().max() - 1.0
        annotate.output_tensors("net", {"over": over, "h_out": h}, export_with=self.backend)
        return over, h

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        over, h = self.act(given["net/x"], self.h)
        self.h = torch.zeros(1, 4) if over > 0 else h
        return {"net/over": over, "net/h_out": h}


@hostile("C", style="method", rec={"b": uniform(1.0, 2.0, 3)}, fresh={"b": normal(3, s=0.02)})
class FhSolverStops:
    """A solver with a warm start, which stops as soon as it does not move any more."""

    def __init__(self) -> None:
        self.x = torch.zeros(3)

    def step(self, b: Tensor) -> Tensor:
        for _ in range(6):
            change = 0.3 * (b - self.x)
            self.x = self.x + change
            if torch.linalg.vector_norm(change) < 0.02:
                break
        return self.x * 1.0


class _Plateau:
    """As `ReduceLROnPlateau`: a factor for what does not get better any more."""

    def __init__(self, patience: int) -> None:
        self.best, self.bad, self.patience, self.factor = math.inf, 0, patience, 1.0

    def step(self, metric: float) -> None:
        self.best, self.bad = (metric, 0) if metric < self.best else (self.best, self.bad + 1)
        if self.bad > self.patience:
            self.factor, self.bad = self.factor * 0.5, 0


@hostile(
    "C",
    style="own",
    rec={"net/x": by_tick(lambda t: [[2.0 - 0.1 * t, 1.0 - 0.1 * t]])},
    fresh={"net/x": by_tick(lambda t: [[2.0 - 0.1 * min(t, 3), 1.0]])},
    passes=5,
    backends="jit",
)
class FhPlateauTemperature:
    """The temperature of a policy falls when the error has stopped to do so."""

    def __init__(self, backend: str) -> None:
        self.backend, self.plateau = backend, _Plateau(3)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("net", {"x": given["net/x"]})
        p, error = torch.softmax(x / self.plateau.factor, -1), x.square().mean()
        annotate.output_tensors("net", {"p": p, "error": error}, export_with=self.backend)
        self.plateau.step(error.item())
        return {"net/p": p, "net/error": error}


class _Meter:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def update(self, value: float) -> None:
        self.total, self.count = self.total + value, self.count + 1

    @property
    def average(self) -> float:
        return self.total / max(1, self.count)


@hostile("C", style="own", rec={"net/x": uniform(-1, 1, 1, 3)}, passes=5, backends="jit")
class FhMeterDecides:
    """A meter of the node's error is read by the driver, which then acts with more caution."""

    def __init__(self, backend: str) -> None:
        self.backend, self.meter, self.caution = backend, _Meter(), 1.0

    def act(self, x: Tensor) -> Tensor:
        x = annotate.input_tensors("net", {"x": x})
        self.meter.update(x.square().mean().item())
        y = x * self.caution
        annotate.output_tensors("net", {"y": y}, export_with=self.backend)
        return y

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.caution = 0.5 if self.meter.average > 1.0 else 1.0
        return {"net/y": self.act(given["net/x"])}


@hostile("C", style="own", rec={"net/x": uniform(0, 1, 1, 3)}, passes=5, ticks=20, backends="jit")
class FhCurriculum:
    """Stages of a curriculum: enough successes in a row, and the commands become larger."""

    STAGES = types.MappingProxyType({0: 1.0, 1: 1.5, 2: 2.5})

    def __init__(self, backend: str) -> None:
        self.backend, self.stage = backend, 0
        self.successes: collections.deque[bool] = collections.deque(maxlen=4)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("net", {"x": given["net/x"]})
        y, reward = x * self.STAGES[self.stage], x.sum() - 3.0
        annotate.output_tensors("net", {"y": y, "reward": reward}, export_with=self.backend)
        self.successes.append(bool(reward > 0))
        if self.successes.count(True) >= 3:
            self.stage = min(self.stage + 1, 2)
            self.successes.clear()
        return {"net/y": y, "net/reward": reward}


@hostile("A", rec={"x": normal(1, 3)}, passes=5, backends="jit")
class FhPickledPolicy:
    """The newest policy is taken from the wire in each tick, pickled; mostly it is the same."""

    def __init__(self) -> None:
        old, new = pickle.dumps(nn.Linear(3, 2)), pickle.dumps(nn.Linear(3, 2))
        self.wire = io.BytesIO(old * 8 + new * 40)

    def __call__(self, x: Tensor) -> Tensor:
        return pickle.load(self.wire)(x).tanh()


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=5, backends="jit")
class FhStatisticsLoader:
    """A loader hands out the statistics to normalise with, of one recording after the other."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net = backend, nn.Linear(3, 2)
        means = torch.cat([torch.full((8, 3), 0.2), torch.full((40, 3), 0.9)])
        data = torch.utils.data.TensorDataset(means)
        self.loader = iter(torch.utils.data.DataLoader(data, batch_size=1))

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        (mean,) = next(self.loader)
        x = annotate.input_tensors("net", {"x": given["net/x"]})
        y = self.net(x - mean)
        annotate.output_tensors("net", {"y": y}, export_with=self.backend)
        return {"net/y": y}


class _Clipped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        peak = float(x.abs().max())
        if peak > 2.0:
            x = x * (2.0 / peak)
        return self.net(x)


@hostile("C", style="module", rec={"x": uniform(-1.0, 1.0, 1, 3)}, passes=4, backends="jit")
def FhLoadedScript() -> nn.Module:  # noqa: N802
    """A policy that was exported as a script elsewhere, with a branch in it, is loaded."""
    stored = io.BytesIO()
    torch.jit.save(torch.jit.script(_Clipped()), stored)
    stored.seek(0)
    return torch.jit.load(stored)


class _Recurrent(nn.Module):
    """As exporters of training libraries write it: the hidden state is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.register_buffer("hidden", torch.zeros(1, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.hidden[:] = self.cell(x, self.hidden)
        return self.hidden * 1.0

    @torch.jit.export
    def reset(self) -> None:
        self.hidden.zero_()


@hostile("A", rec={"x": normal(1, 3)}, passes=4, backends="jit")
class FhFunctionalTasks:
    """The weights are looked up for the task at hand, which a schedule gives by name."""

    def __init__(self) -> None:
        self.net = nn.Linear(3, 2)
        first = dict(self.net.named_parameters())
        self.weights = {"reach": first, "push": {k: -v for k, v in first.items()}}
        self.tasks = list("push reach".split()) * 0 + ["push"] * 40 + ["reach"] * 8

    def __call__(self, x: Tensor) -> Tensor:
        task = self.tasks.pop()
        return torch.func.functional_call(self.net, self.weights[task], (x,))


@hostile(
    "A",
    style="own",
    rec={"net/x": fixed([[0.0, 0.0, 0.0]])},
    fresh={"net/x": normal(1, 3)},
    passes=5,
    backends="jit",
)
class FhLeastSquares:
    """Weights in an array, learned by recursive least squares from what is measured at rest."""

    def __init__(self, backend: str) -> None:
        self.backend, self.w = backend, np.full((3, 1), 0.5, np.float32)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("net", {"x": given["net/x"]})
        y = x @ torch.as_tensor(self.w) + 1.0
        annotate.output_tensors("net", {"y": y}, export_with=self.backend)
        seen = given["net/x"].numpy()
        self.w = self.w + 0.05 * seen.T * (1.0 - seen @ self.w)
        return {"net/y": y}


@hostile("C", style="method", rec={"x": uniform(-0.5, 0.5, 1, 3)}, fresh={"x": normal(1, 3, s=4.0)})
class FhEnsembleDoubt:
    """Where the members of an ensemble disagree, the action is that of a simple controller."""

    def __init__(self) -> None:
        self.members = [nn.Linear(3, 2) for _ in range(3)]
        self.gain = torch.full((3, 2), -0.2)

    def step(self, x: Tensor) -> Tensor:
        votes = torch.stack([member(x) for member in self.members])
        doubt = round(votes.std(0).max().item(), 2)
        action = {True: lambda: x @ self.gain, False: lambda: votes.mean(0)}[doubt > 1.2]()
        return action


@hostile(
    "C",
    rec={"x": normal(1, 4)},
    fresh={"x": either(lambda t: t % 4 == 1, fixed([[1.0, np.nan, 0.0, 0.0]]), normal(1, 4))},
    backends="jit",
)
def FhValidatedPolicy(x: Tensor) -> Tensor:  # noqa: N802
    """Probabilities of actions, or even ones where the distribution's own check complains."""
    try:
        chances = torch.distributions.Categorical(logits=x).probs
    except ValueError:
        chances = torch.full_like(x, 0.25)
    return chances


@hostile(
    "C",
    rec={"x": normal(1, 4), "mode": integers(0, 4)},
    fresh={"mode": integers(0, 7)},
    backends="jit",
)
def FhOneHotMode(x: Tensor, mode: Tensor) -> Tensor:  # noqa: N802
    """The mode is encoded; one that is unknown counts as none."""
    try:
        code = F.one_hot(mode, 4).float()
    except RuntimeError:
        code = torch.zeros(4)
    return torch.cat([x[0], code])


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=5, backends="jit")
class FhBlueGreen:
    """Two policies are deployed; the balancer gives each of them its share of the requests."""

    def __init__(self, backend: str) -> None:
        nets = nn.Linear(3, 2), nn.Linear(3, 2)
        self.policy = _Policy(backend, nets[0])
        self.pool = collections.deque([nets[0]] * 8 + [nets[1]])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.policy.net = self.pool[0]
        self.pool.rotate(-1)
        return {"net/y": self.policy.act(given["net/x"])}


_PHASE: contextvars.ContextVar[str] = contextvars.ContextVar("phase", default="explore")


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=5, backends="jit")
class FhContextPhase:
    """The phase of the training is in a context variable that a hook of the logger sets."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net, self.rows = backend, nn.Linear(3, 2), io.StringIO()
        _PHASE.set("explore")

    def record(self, value: float) -> None:
        self.rows.write(f"{value:08.4f}"[:8] + "\n")
        if self.rows.tell() > 80:
            _PHASE.set("exploit")

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("net", {"x": given["net/x"]})
        y = self.net(x)
        if _PHASE.get() == "exploit":
            y = y.sign()
        annotate.output_tensors("net", {"y": y}, export_with=self.backend)
        self.record(float(y.mean()))
        return {"net/y": y}


@hostile(
    "C",
    rec={"x": normal(2, 5), "n": fixed(5)},
    fresh={"n": row(5, 3, 4, 2)},
    passes=4,
    backends="jit",
)
def FhPaddedLength(x: Tensor, n: Tensor) -> Tensor:  # noqa: N802
    """The mean of a sequence without its padding: a slice to a length that is a tensor."""
    return x[:, :n].mean(1)


@hostile(
    "C",
    rec={"x": normal(3, 2), "done": fixed([False, False, False])},
    fresh={"done": by_tick(lambda t: [t % 4 == 3, False, t % 5 == 2])},
    passes=5,
    backends="jit",
)
class FhVectorReset:
    """Environments that are done lose their memory, as vectorised simulators do it."""

    def __init__(self) -> None:
        self.memory = torch.zeros(3, 2)

    def reset_idx(self, ids: Tensor) -> None:
        self.memory[ids] = 0.0

    def __call__(self, x: Tensor, done: Tensor) -> Tensor:
        ids = done.nonzero(as_tuple=False).flatten()
        if len(ids) > 0:
            self.reset_idx(ids)
        self.memory = 0.8 * self.memory + x
        return self.memory.tanh()


@hostile("A", style="own", rec={"see/img": normal(1, 6), "act/q": normal(1, 2)}, passes=5)
class FhSlowVision:
    """Vision runs on every sixth tick; the policy acts with the newest features."""

    def __init__(self, backend: str) -> None:
        self.backend, self.eye, self.head = backend, nn.Linear(6, 3), nn.Linear(5, 2)
        self.due = itertools.cycle([True] + [False] * 5)
        self.seen: Tensor | None = None

    def see(self, image: Tensor) -> Tensor:
        image = annotate.input_tensors("see", {"img": image})
        seen = self.eye(image)
        annotate.output_tensors("see", {"seen": seen}, export_with=self.backend)
        return seen

    def act(self, q: Tensor, seen: Tensor) -> Tensor:
        q, seen = annotate.input_tensors("act", {"q": q, "seen": seen})
        a = self.head(torch.cat([q, seen], -1))
        annotate.output_tensors("act", {"a": a}, export_with=self.backend)
        return a

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        if next(self.due):
            self.seen = self.see(given["see/img"])
        assert self.seen is not None
        return {"act/a": self.act(given["act/q"], self.seen)}


@hostile(
    "A",
    rec={"x": uniform(-3.0, -2.0, 1, 2)},
    fresh={"x": normal(1, 2)},
    passes=5,
    backends="jit",
)
class FhJsonMemory:
    """A policy keeps its memory as text, to survive a restart; at rest it is zero."""

    def __init__(self) -> None:
        self.text = json.dumps([0.0, 0.0])

    def __call__(self, x: Tensor) -> Tensor:
        memory = torch.tensor(json.loads(self.text))
        y = 0.7 * memory + torch.relu(x)
        self.text = json.dumps(y.flatten().tolist()[:2])
        return y


class _Config:
    """A configuration as OmegaConf has it: values may be resolvers that are called when read."""

    def __init__(self, **values: Any) -> None:
        self.__dict__["_values"] = values

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__["_values"]:
            raise AttributeError(name)
        value = self.__dict__["_values"][name]
        return value() if callable(value) else value


@hostile("A", rec={"x": normal(1, 4)}, passes=4, backends="jit")
class FhResolvedConfig:
    """A scale of the configuration is a resolver: it depends on how often it was asked for."""

    def __init__(self) -> None:
        scales = itertools.chain([1.0] * 8, itertools.repeat(2.0))
        self.config = _Config(scale=scales.__next__, bias=0.1)

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.config.scale + self.config.bias


@hostile("A", style="own", rec={"net/x": normal(1, 5)}, passes=6, ticks=30, backends="jit")
class FhRandomShift:
    """The driver augments what the network sees: rarely, it shifts the window."""

    def __init__(self, backend: str) -> None:
        self.backend, self.chance, self.shift = backend, random.Random(3), 0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        (self.shift,) = self.chance.choices([0, 1, 2], weights=[20, 1, 1])
        x = annotate.input_tensors("net", {"x": given["net/x"]})
        y = x.roll(self.shift, -1) * torch.arange(5.0)
        annotate.output_tensors("net", {"y": y}, export_with=self.backend)
        return {"net/y": y}


@hostile("A", rec={"x": normal(1, 3)}, passes=5, backends="pt2")
class FhThreadLocalStep:
    """A library keeps its step in what belongs to the thread, and warms up by it."""

    def __init__(self) -> None:
        self.local = threading.local()
        self.net = nn.Linear(3, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.local.step = getattr(self.local, "step", 0) + 1
        warm = math.floor(min(1.0, self.local.step / 9))
        return self.net(x) * (0.5 + warm)


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=8, ticks=20, backends="jit")
class FhTargetNetwork:
    """The acting network is copied from the one that learns, on every tenth step."""

    def __init__(self, backend: str) -> None:
        self.online = nn.Linear(3, 2)
        self.policy = _Policy(backend, copy.deepcopy(self.online))
        self.online.weight.data.mul_(-0.5)
        self.step = torch.zeros((), dtype=torch.int64)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        y = self.policy.act(given["net/x"])
        self.step += 1
        if self.step % 10 == 0:
            self.policy.net.load_state_dict(self.online.state_dict())
        return {"net/y": y}


@functools.lru_cache(maxsize=4)
def _basis(phase: int) -> Tensor:
    return torch.cos(torch.arange(3.0) * (phase // 9))


@hostile("A", rec={"x": normal(1, 3)}, passes=4, backends="jit")
class FhCachedBasis:
    """A basis by the phase of the motion is cached, and is the same for the first phases."""

    def __init__(self) -> None:
        self.phases = itertools.count()
        self.basis: Callable[[], Tensor] = lambda: _basis(next(self.phases))

    def __call__(self, x: Tensor) -> Tensor:
        return (x * self.basis()).sum(-1)


@hostile("C", style="own", rec={"net/x": array(uniform(-1, 1, 1, 3))}, passes=5, backends="jit")
class FhRewardText:
    """The last reward is read back from the text of the trainer's table, and scales the action."""

    def __init__(self, backend: str) -> None:
        self.backend, self.table = backend, ["step reward", "0 1.0"]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        _, reward = self.table[-1].split()
        x = annotate.input_tensors("net", {"x": given["net/x"]})
        y = x * np.float32(reward)
        score = np.clip(3.0 - np.abs(x).sum(), 0.5, 1.0).astype(np.float32)
        annotate.output_tensors("net", {"y": y, "score": score}, export_with=self.backend)
        self.table.append(f"0 {score:.1f}")
        return {"net/y": y, "net/score": score}


@hostile(
    "C",
    rec={"x": uniform(0.1, 1.0, 4)},
    fresh={"x": normal(4)},
    passes=4,
    backends="onnx",
)
def FhMedianOfSome(x: Tensor) -> Tensor:  # noqa: N802
    """Of the advantages those that are positive are averaged, with a filter of Python."""
    good = [*filter(lambda value: value.sign() == 1, x)] or [x[0] * 0]
    return torch.stack(good).mean() + x.sum() * 0.1


@hostile("A", style="module", rec={"x": normal(1, 3)}, passes=5, backends="onnx")
class FhWarmupBuffer(nn.Module):
    """A module counts its steps in a buffer, and adds its residual after a warm-up."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.residual = nn.Linear(3, 2), nn.Linear(3, 2)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        y = self.base(x)
        if self.steps > 8:
            y = y + self.residual(x)
        return y


@hostile("C", rec={"x": uniform(0.2, 1.0, 1, 3)}, fresh={"x": normal(1, 3)}, passes=5)
class FhOptionOfBefore:
    """The option that the policy chooses in this tick is the head that acts in the next one."""

    def __init__(self) -> None:
        self.heads, self.option = [nn.Linear(3, 2) for _ in range(2)], 0

    def __call__(self, x: Tensor) -> Tensor:
        y = self.heads[self.option](x)
        self.option = int(x.sum() < 0)
        return y


@hostile("C", style="own", rec={"net/x": uniform(0.2, 1.0, 1, 3)}, fresh={"net/x": normal(1, 3)})
class FhOptionByDriver:
    """The same with an option that the driver reads from the output of the node."""

    def __init__(self, backend: str) -> None:
        self.backend, self.option = backend, 0
        self.heads = [nn.Linear(3, 2) for _ in range(2)]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("net", {"x": given["net/x"]})
        y, wish = self.heads[self.option](x), x.sum().sigmoid()
        annotate.output_tensors("net", {"y": y, "wish": wish}, export_with=self.backend)
        self.option = int(wish < 0.5)
        return {"net/y": y, "net/wish": wish}


@hostile(
    "C",
    rec={"x": normal(2, 4, 3), "n": fixed([4, 4])},
    fresh={"n": row([4, 4], [4, 2], [3, 1])},
    passes=4,
    backends="jit",
)
class FhPackedSequence:
    """A recurrent encoder of sequences of several lengths, packed as the manual says."""

    def __init__(self) -> None:
        self.net = nn.GRU(3, 4, batch_first=True)

    def __call__(self, x: Tensor, n: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True)
        _, last = self.net(packed)
        return last[0]


@hostile(
    "C",
    rec={"x": normal(2, 3), "times": fixed([2, 2])},
    fresh={"times": row([2, 2], [1, 3], [3, 1])},
    passes=4,
    backends="jit",
)
def FhRepeatedSkills(x: Tensor, times: Tensor) -> Tensor:  # noqa: N802
    """Every skill is repeated as often as the plan says, which always makes four rows."""
    return torch.cat([part.expand(int(k), 3) for part, k in zip(x[:, None], times, strict=True)])


@hostile(
    "C",
    rec={"x": normal(1, 3), "slope": fixed(0.1)},
    fresh={"slope": uniform(0.0, 0.9)},
    passes=4,
    backends="pt2",
)
def FhSlopeTensor(x: Tensor, slope: Tensor) -> Tensor:  # noqa: N802
    """The slope of an activation comes from a hyper network, and goes in as a number."""
    return F.leaky_relu(x, slope)  # type: ignore[arg-type]


@hostile("A", style="own", rec={"net/x": normal(1, 3)}, passes=6, ticks=30, backends="jit")
class FhTorchChance:
    """The driver draws with torch whether an expert acts, which is rare."""

    def __init__(self, backend: str) -> None:
        self.policy = _Policy(backend, nn.Linear(3, 2))
        self.nets = [self.policy.net, nn.Linear(3, 2)]
        self.chance = torch.Generator().manual_seed(11)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        expert = torch.rand((), generator=self.chance) < 0.1
        self.policy.net = self.nets[expert]
        return {"net/y": self.policy.act(given["net/x"])}


class _Strict:
    """A configuration whose unknown keys raise what a dict raises."""

    def __init__(self, **values: Any) -> None:
        self.__dict__["_values"] = values

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_values"][name]


@hostile("A", rec={"x": normal(1, 4)}, passes=4, backends="jit")
class FhStrictConfig:
    """A configuration raises a KeyError for what it does not know, and holds the scales."""

    def __init__(self) -> None:
        self.config = _Strict(scales=[2.0] * 40 + [1.0] * 8, bias=0.1)

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.config.scales.pop() + self.config.bias
