"""State as it stands in other people's code: queues, timers, latches, holds, counters."""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import functools
import itertools
import types

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import by_tick, either, fixed, flags, integers, normal, row, uniform
from attacks.registry import ALL, hostile


def _mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ELU()]
    return nn.Sequential(*layers[:-1])


@hostile("A", rec={"obs": normal(1, 6)}, passes=3, backends=("jit", "onnx"))
class OutsideActionChunks(nn.Module):
    """LeRobot: the network runs when the queue is empty, and all recorded passes eat one chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.model = _mlp(6, 16, 5 * 2)
        self.queue: collections.deque[Tensor] = collections.deque(maxlen=5)

    def forward(self, obs: Tensor) -> Tensor:
        if len(self.queue) == 0:
            chunk = self.model(obs).view(1, 5, 2)
            self.queue.extend(chunk.transpose(0, 1))
        return self.queue.popleft()


@hostile("A", rec={"obs": normal(1, 6)}, passes=6)
class OutsideActionChunksTwice(nn.Module):
    """The same with chunks of two, refilled while recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.model = _mlp(6, 16, 4)
        self.queue: list[Tensor] = []

    def forward(self, obs: Tensor) -> Tensor:
        if not self.queue:
            self.queue = list(self.model(obs).view(2, 1, 2).unbind(0))
        return self.queue.pop(0)


@hostile("A", rec={"obs": normal(1, 4)}, passes=5)
class OutsideTemporalEnsemble(nn.Module):
    """ACT: chunks of several ticks are blended; the blend starts as None."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Linear(4, 3 * 2)
        self.weights = torch.exp(-0.1 * torch.arange(3))
        self.blend: Tensor | None = None

    def forward(self, obs: Tensor) -> Tensor:
        actions = self.model(obs).view(3, 2)
        if self.blend is None:
            self.blend = actions.clone()
        else:
            w = self.weights[:2, None]
            self.blend = torch.cat([self.blend * (1 - w) + actions[:2] * w, actions[2:]])
        first, self.blend = self.blend[0], self.blend[1:]
        return first


@hostile("A", rec={"cmd": normal(1, 3)}, passes=4)
class OutsideRateLimiter:
    """The first command passes as it is."""

    def __init__(self) -> None:
        self.prev: Tensor | None = None

    def __call__(self, cmd: Tensor) -> Tensor:
        if self.prev is None:
            self.prev = cmd
        self.prev = self.prev + (cmd - self.prev).clamp(-0.1, 0.1)
        return self.prev


@hostile("A", rec={"q": normal(1, 3)}, passes=4, backends=ALL)
class OutsideHomePose:
    """The pose of the first tick is the reference of all later ones."""

    def __init__(self) -> None:
        self.home = None

    def __call__(self, q: Tensor) -> Tensor:
        if self.home is None:
            self.home = q.clone()
        return q - self.home


@hostile("A", rec={"q": fixed([[0.2, -0.1, 0.4]])}, fresh={"q": normal(1, 3)}, passes=4)
class OutsideHomePoseAtRest:
    """The same while the robot stands still."""

    def __init__(self) -> None:
        self.home = None

    def __call__(self, q: Tensor) -> Tensor:
        if self.home is None:
            self.home = q.clone()
        return q - self.home


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, backends=("jit", "pt2"))
class OutsideDecimation:
    """The policy runs in every second tick; the action is held between."""

    def __init__(self) -> None:
        self.net = _mlp(4, 8, 2)
        self.tick = 0
        self.action = torch.zeros(1, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        if self.tick % 2 == 0:
            self.action = self.net(obs)
        self.tick += 1
        return self.action


@hostile("A", rec={"obs": normal(1, 4)}, passes=3)
class OutsideDecimationLong:
    """The policy runs in every fourth tick: only once while recorded."""

    def __init__(self) -> None:
        self.net = _mlp(4, 8, 2)
        self.tick = 0
        self.action = torch.zeros(1, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        if self.tick % 4 == 0:
            self.action = self.net(obs)
        self.tick += 1
        return self.action + 0.0 * obs[:, :2]


@hostile("A", rec={"obs": normal(1, 3)}, passes=4)
class OutsideStandAfterEight:
    """A count of steps switches to standing after the recorded passes."""

    def __init__(self) -> None:
        self.walk, self.stand = nn.Linear(3, 2), nn.Linear(3, 2)
        self.episode_length = 0

    def __call__(self, obs: Tensor) -> Tensor:
        self.episode_length += 1
        net = self.stand if self.episode_length > 8 else self.walk
        return net(obs)


@hostile("A", rec={"obs": normal(1, 3)}, passes=6)
class OutsideSoftStart:
    """Blends in over three ticks, and is through while it is recorded."""

    def __init__(self) -> None:
        self.net = nn.Linear(3, 2)
        self.tick = 0

    def __call__(self, obs: Tensor) -> Tensor:
        self.tick += 1
        return min(self.tick / 3, 1.0) * self.net(obs)


@hostile("A", rec={"obs": normal(1, 3)}, passes=4)
class OutsideNoSoftStartYet:
    """Nothing happens for five ticks, then the command is let in."""

    def __init__(self) -> None:
        self.net = nn.Linear(3, 2)
        self.ticks = itertools.count()

    def __call__(self, obs: Tensor) -> Tensor:
        gain = 0.0 if next(self.ticks) < 5 else 1.0
        return torch.tanh(self.net(obs)) * gain + obs[:, :2]


@hostile("A", rec={"obs": normal(1, 4)}, passes=4)
class OutsideGaitTable:
    """A gait table that `itertools.cycle` walks through."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 4)
        table = torch.tensor([[1.0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0]])
        self.gait = itertools.cycle(table)

    def __call__(self, obs: Tensor) -> Tensor:
        return self.net(obs) * next(self.gait)


@hostile("A", rec={"obs": normal(1, 2)}, passes=4)
def outside_generator():
    """The state lives in the frame of a generator."""

    def filtered():
        y = torch.zeros(1, 2)
        while True:
            x = yield y
            y = 0.8 * y + 0.2 * x

    machine = filtered()
    next(machine)
    return lambda obs: machine.send(obs)


@hostile("A", rec={"obs": fixed([[0.0, 0.0]])}, fresh={"obs": normal(1, 2)}, passes=4)
def outside_generator_at_rest():
    """The same, recorded with zeros."""

    def filtered():
        y = torch.zeros(1, 2)
        while True:
            x = yield y
            y = 0.8 * y + 0.2 * x

    machine = filtered()
    next(machine)
    return lambda obs: machine.send(obs)


def _leaky(x: Tensor, memory: dict[str, Tensor]) -> Tensor:
    memory["h"] = torch.tanh(0.5 * memory["h"] + x)
    return memory["h"] * 2


@hostile("A", rec={"x": fixed([[0.0, 0.0]])}, fresh={"x": normal(1, 2)}, passes=3, backends=ALL)
def outside_closure_dict_at_rest():
    return functools.partial(_leaky, memory={"h": torch.zeros(1, 2)})


@hostile("A", rec={"obs": normal(1, 3)}, passes=5)
class OutsideRunningMeanPythonCount:
    """rsl_rl's normaliser with a count that is a Python number."""

    def __init__(self) -> None:
        self.mean, self.var, self.count = torch.zeros(3), torch.ones(3), 0

    def __call__(self, obs: Tensor) -> Tensor:
        self.count += obs.shape[0]
        rate = obs.shape[0] / self.count
        delta = obs.mean(0) - self.mean
        self.mean = self.mean + rate * delta
        self.var = self.var + rate * (obs.var(0, unbiased=False) - self.var + delta**2 * (1 - rate))
        return (obs - self.mean) / (self.var.sqrt() + 0.01)


@hostile("A", rec={"obs": normal(2, 3)}, passes=4)
class OutsideVecNormalize:
    """stable-baselines3: the running mean is a NumPy array that training updates."""

    def __init__(self) -> None:
        self.mean, self.var, self.count = np.zeros(3), np.ones(3), 1e-4

    def __call__(self, obs: Tensor) -> Tensor:
        batch = obs.numpy().astype(np.float64)
        delta, total = batch.mean(0) - self.mean, self.count + len(batch)
        self.mean = self.mean + delta * len(batch) / total
        m2 = self.var * self.count + batch.var(0) * len(batch)
        self.var = (m2 + delta**2 * self.count * len(batch) / total) / total
        self.count = total
        scaled = np.clip((batch - self.mean) / np.sqrt(self.var + 1e-8), -10, 10)
        return torch.from_numpy(scaled.astype(np.float32))


@hostile("A", rec={"x": normal(1, 3)}, passes=5)
class OutsideCircularBuffer:
    """Isaac Lab: a Python pointer into a ring, and a first push that fills all of it."""

    def __init__(self) -> None:
        self.buffer, self.pointer = None, -1
        self.pushes = torch.zeros(1, dtype=torch.long)

    def append(self, data: Tensor) -> None:
        if self.buffer is None:
            self.pointer = -1
            self.buffer = torch.empty((3, *data.shape))
        self.pointer = (self.pointer + 1) % 3
        self.buffer[self.pointer] = data
        first = self.pushes == 0
        if torch.any(first):
            self.buffer[:, first] = data[first]
        self.pushes += 1

    def __call__(self, x: Tensor) -> Tensor:
        self.append(x)
        return torch.roll(self.buffer, shifts=2 - self.pointer, dims=0).flatten()


@hostile("A", rec={"x": normal(3)}, passes=4, backends=ALL)
class OutsideRingByTensor:
    """`ring[i] = x` with a tensor as the index: torch reads the number from it."""

    def __init__(self) -> None:
        self.ring, self.at = torch.zeros(4, 3), torch.tensor(0)

    def __call__(self, x: Tensor) -> Tensor:
        self.ring[self.at] = x
        self.at = (self.at + 1) % 4
        return self.ring.mean(0) + self.ring[self.at]


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideDelayLine:
    """An actuator whose delay is drawn once in an episode."""

    def __init__(self) -> None:
        self.lag = int(np.random.randint(1, 3))  # noqa: NPY002
        self.line: list[Tensor] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.line.insert(0, x)
        del self.line[4:]
        return self.line[min(self.lag, len(self.line) - 1)] * 1.5


@hostile(
    "A",
    rec={"force": uniform(0.0, 1.0, 4)},
    fresh={"force": either(lambda t: t in (3, 4), uniform(8, 9, 4), uniform(0, 1, 4))},
    passes=4,
    backends=ALL,
)
class OutsideStumbleMemory:
    """Remembers for five ticks that a foot stumbled; none does while recorded."""

    def __init__(self) -> None:
        self.timer = torch.zeros(4)

    def __call__(self, force: Tensor) -> Tensor:
        hit = force > 5.0
        self.timer = torch.where(
            hit, torch.full_like(self.timer, 5.0), (self.timer - 1).clamp(min=0.0)
        )
        return (self.timer > 0).float() * 0.2


@hostile(
    "A",
    rec={"bump": flags(0.0, 1)},
    fresh={"bump": by_tick(lambda t: torch.tensor([t == 4]))},
    passes=5,
)
class OutsideEmergency:
    """A Python flag that latches by a tensor's truth."""

    def __init__(self) -> None:
        self.stopped = False

    def __call__(self, bump: Tensor) -> Tensor:
        self.stopped = self.stopped or bool(bump)
        return torch.zeros(2) if self.stopped else torch.ones(2)


@hostile(
    "A",
    rec={"z": normal(1, 2, s=0.1)},
    fresh={"z": either(lambda t: t % 3 == 2, fixed([[float("nan")] * 2]), normal(1, 2))},
    passes=4,
    backends=("jit", "onnx"),
)
class OutsideHoldLastGood:
    """Lidar gives NaN at times; the last good value is held."""

    def __init__(self) -> None:
        self.good = torch.zeros(1, 2)

    def __call__(self, z: Tensor) -> Tensor:
        self.good = torch.where(torch.isnan(z), self.good, z)
        return self.good * 3


@dataclasses.dataclass
class _Odometry:
    pose: Tensor = dataclasses.field(default_factory=lambda: torch.zeros(3))
    stamp: float = 0.0


@hostile("A", rec={"v": normal(3), "stamp": by_tick(lambda t: float(t) * 0.1)}, passes=4)
class OutsideStampedOdometry:
    """The time step is the difference of two stamps, kept as a Python number."""

    def __init__(self) -> None:
        self.odom = _Odometry()

    def __call__(self, v: Tensor, stamp: Tensor) -> Tensor:
        now = float(stamp)
        dt = now - self.odom.stamp
        self.odom = _Odometry(self.odom.pose + v * dt, now)
        return self.odom.pose


@hostile("A", rec={"v": normal(3)}, passes=4)
class OutsideSimClock:
    """A simulated clock drives a gait."""

    class Clock:
        def __init__(self) -> None:
            self.ticks = 0

        @property
        def now(self) -> float:
            self.ticks += 1
            return self.ticks * 0.02

    def __init__(self) -> None:
        self.clock = self.Clock()

    def __call__(self, v: Tensor) -> Tensor:
        phase = 2 * np.pi * 1.5 * self.clock.now
        return v * float(np.sin(phase))


@hostile("A", rec={"v": normal(3)}, passes=5, backends=ALL)
class OutsideCurriculum:
    """The scale of the commands grows a little in every step, and is clipped."""

    def __init__(self) -> None:
        self.cfg = types.SimpleNamespace(scale=1.0)

    def __call__(self, v: Tensor) -> Tensor:
        self.cfg.scale = min(self.cfg.scale + 1e-7, 2.0) if self.cfg.scale < 1.5 else 2.0
        self.cfg.scale *= 1.02
        return v * self.cfg.scale


_MODE: contextvars.ContextVar[int] = contextvars.ContextVar("mode", default=0)


@hostile("A", rec={"v": normal(3)}, passes=4)
def outside_context_variable():
    """A mode in a context variable that changes after six ticks."""
    _MODE.set(0)

    def step(v: Tensor) -> Tensor:
        _MODE.set(_MODE.get() + 1)
        return v if _MODE.get() < 7 else -v

    return step


@hostile("A", rec={"v": normal(3)}, passes=4, style="method")
class OutsideFunctionWithCount:
    """A count as the attribute of the class, not of the instance."""

    count = 0

    def __init__(self) -> None:
        type(self).count = 0

    def step(self, v: Tensor) -> Tensor:
        OutsideFunctionWithCount.count += 1
        y = v * (0.5 if OutsideFunctionWithCount.count > 6 else 1.0)
        return y


@hostile("A", rec={"x": normal(1, 4)}, passes=3)
class OutsidePingPong:
    """Two buffers that change places: the delay is one tick, through a Python index."""

    def __init__(self) -> None:
        self.bufs, self.flip = [torch.zeros(1, 4), torch.zeros(1, 4)], 0

    def __call__(self, x: Tensor) -> Tensor:
        self.bufs[self.flip].copy_(x)
        self.flip ^= 1
        return x - self.bufs[self.flip]


@hostile("A", rec={"x": normal(1, 3, s=1e-4)}, fresh={"x": normal(1, 3)}, passes=4)
class OutsideSlowBias:
    """A gyro bias that moves by millionths in a tick."""

    def __init__(self) -> None:
        self.bias = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        rate = x - self.bias
        self.bias = self.bias + 1e-3 * rate
        return rate


@hostile("A", rec={"x": fixed([0.4, 0.2])}, fresh={"x": normal(2)}, passes=4, backends=ALL)
class OutsideFirstDifference:
    """A velocity from two positions; the robot stands, and the first tick had the pose already."""

    def __init__(self) -> None:
        self.last = torch.tensor([0.4, 0.2])

    def __call__(self, x: Tensor) -> Tensor:
        v = (x - self.last) / 0.02
        self.last = x
        return v


@hostile("A", rec={"x": normal(2)}, fresh={"x": normal(2)}, passes=4)
class OutsideSetBack:
    """What is kept is used once and set back to its first value, unless it was large."""

    def __init__(self) -> None:
        self.pending = torch.zeros(2)

    def __call__(self, x: Tensor) -> Tensor:
        y = x + self.pending
        self.pending = torch.where(x.abs() > 2.5, x, torch.zeros(2))
        return y


@hostile("A", rec={"x": normal(1, 3)}, passes=6)
class OutsideSlidingMedian:
    """Median of what a deque holds: fewer values at the start."""

    def __init__(self) -> None:
        self.window: collections.deque[Tensor] = collections.deque(maxlen=3)

    def __call__(self, x: Tensor) -> Tensor:
        self.window.append(x)
        return torch.stack(list(self.window)).median(0).values


@hostile("A", rec={"k": integers(0, 3, 1)}, passes=5)
class OutsideVisits:
    """A dict that counts how often a mode was seen."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = collections.defaultdict(int)

    def __call__(self, k: Tensor) -> Tensor:
        key = int(k)
        self.seen[key] += 1
        return k.float() / self.seen[key]


@hostile("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideLateMemory:
    """The memory is attached in the third pass."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        if self.n == 3:
            self.kept = x * 0.5
        return x + getattr(self, "kept", torch.zeros(1, 3))


@hostile("A", rec={"x": normal(1, 3)}, passes=1)
class OutsideOnePass:
    """One pass only."""

    def __init__(self) -> None:
        self.h = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.h = 0.5 * self.h + x
        return self.h


@hostile("A", rec={"x": normal(1, 3)}, passes=2)
class OutsideTwoPasses:
    """Two passes: a warm-up of two ticks cannot be seen."""

    def __init__(self) -> None:
        self.n = torch.tensor(0)
        self.h = torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.n += 1
        self.h = torch.where(self.n > 3, 0.5 * self.h + x, x)
        return self.h


@hostile(
    "A", rec={"x": normal(1, 3), "mode": row(0, 0, 0, 0)}, fresh={"mode": row(0, 0, 0, 1)}, passes=4
)
class OutsideModeDict:
    """A mode picks one of two hidden states."""

    def __init__(self) -> None:
        self.memory = {0: torch.zeros(1, 3), 1: torch.zeros(1, 3)}

    def __call__(self, x: Tensor, mode: Tensor) -> Tensor:
        m = int(mode)
        self.memory[m] = self.memory[m] * 0.5 + x
        return self.memory[m]
