"""Python-held state: managers, modules, chunks, caches, schedules."""

from __future__ import annotations

import array
import collections
import concurrent.futures
import copy
import datetime
import decimal
import io
import itertools
import json
import logging
import types

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import normal, uniform
from attacks.registry import hostile


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=16)
class ChActionChunk:
    """ACT / LeRobot select_action: the queue of a chunk of eight is refilled when it is empty."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 16)
        self.queue: collections.deque[Tensor] = collections.deque([], maxlen=8)

    def __call__(self, obs: Tensor) -> Tensor:
        if not self.queue:
            self.queue.extend(self.net(obs).view(1, 8, 2).transpose(0, 1))
        return self.queue.popleft() + 0.01 * obs[:, :2]


@hostile("A", rec={"obs": normal(1, 4)}, passes=3, ticks=16)
class ChReceding:
    """Diffusion-policy horizon: replans every k ticks, where k grows after the first plan."""

    def __init__(self) -> None:
        self.net, self.plan, self.i, self.horizon = nn.Linear(4, 8), None, 0, 1
        self.plans = 0

    def __call__(self, obs: Tensor) -> Tensor:
        if self.plan is None or self.i >= self.horizon:
            self.plan, self.i = self.net(obs).view(4, 2), 0
            self.plans += 1
            self.horizon = 1 if self.plans < 5 else 4
        a = self.plan[self.i]
        self.i += 1
        return a[None]


class ObsTerm:
    """A term with a scale, and noise that is enabled later."""

    def __init__(self, scale: float, corrupt_after: int | None = None) -> None:
        self.scale, self.corrupt_after, self.n = scale, corrupt_after, 0

    def __call__(self, v: Tensor) -> Tensor:
        self.n += 1
        v = v * self.scale
        if self.corrupt_after is not None and self.n > self.corrupt_after:
            v = v + 0.1
        return v


class ObsGroup:
    def __init__(self, **terms: ObsTerm) -> None:
        self.terms = terms

    def compute(self, data: dict[str, Tensor]) -> Tensor:
        return torch.cat([t(data[k]) for k, t in self.terms.items()], -1)


class ObsManager:
    def __init__(self, **groups: ObsGroup) -> None:
        self.groups = groups


@hostile("A", rec={"q": normal(2, 3), "w": normal(2, 3)}, passes=4, ticks=12)
class ChObservationManager:
    """Manager, group, term: the innermost begins to corrupt after the seventh step."""

    def __init__(self) -> None:
        self.manager = ObsManager(policy=ObsGroup(q=ObsTerm(1.0), w=ObsTerm(0.25, 7)))

    def __call__(self, q: Tensor, w: Tensor) -> Tensor:
        return self.manager.groups["policy"].compute({"q": q, "w": w})


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12, style="module")
class ChSelfRemovingHook(nn.Module):
    """A forward hook for sensor warm-up, which takes itself off after six calls."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.seen = nn.Linear(4, 2), itertools.count(1)
        self.handle = self.net.register_forward_hook(self._damp)

    def _damp(self, module: nn.Module, args: tuple, out: Tensor) -> Tensor:
        if next(self.seen) == 6:
            self.handle.remove()
        return out * 0.1

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12, style="module", backends="pt2")
class ChHotSwapWeights(nn.Module):
    """The learner pushes new weights after the seventh tick."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        new = {k: v * -0.5 for k, v in self.net.state_dict().items()}
        self.inbox = iter([None] * 7 + [new])

    def forward(self, obs: Tensor) -> Tensor:
        sd = next(self.inbox, None)
        if sd is not None:
            self.net.load_state_dict(sd)
        return self.net(obs).tanh()


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12)
class ChModuleReplaced:
    """The safe policy in a ModuleDict gives way to the trained one."""

    def __init__(self) -> None:
        self.nets = nn.ModuleDict({"safe": nn.Linear(4, 2), "trained": nn.Linear(4, 2)})
        self.active, self.ok = "safe", 0

    def __call__(self, obs: Tensor) -> Tensor:
        self.ok += 1
        if self.ok == 7:
            self.active = "trained"
        return self.nets[self.active](obs)


@hostile("A", rec={"obs": normal(4, 3)}, passes=4, ticks=12, style="module")
class ChNormalizerFreeze(nn.Module):
    """rsl_rl's EmpiricalNormalization with `until`: stops to learn after so many samples."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, 3))
        self.count, self.until = 0, 24

    def forward(self, obs: Tensor) -> Tensor:
        if self.count < self.until:
            self.count += obs.shape[0]
            rate = obs.shape[0] / 24
            self.mean += rate * (obs.mean(0, keepdim=True) - self.mean)
        return obs - self.mean


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12)
class ChEpsilonScheduler:
    """torch's own learning-rate scheduler as the schedule of an action scale."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=1.0)
        self.sched = torch.optim.lr_scheduler.MultiStepLR(self.opt, [6, 9], gamma=0.3)

    def __call__(self, obs: Tensor) -> Tensor:
        y = self.net(obs) * self.opt.param_groups[0]["lr"]
        self.opt.step()
        self.sched.step()
        return y


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12, style="module")
class ChDropModeLater(nn.Module):
    """The gain of the exploration layer is only on in train mode, which ends by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.steps = nn.Linear(4, 2), 0
        self.train()

    def forward(self, obs: Tensor) -> Tensor:
        self.steps += 1
        if self.steps > 6 and self.training:
            self.eval()
        y = self.net(obs)
        return y * 1.5 if self.training else y


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChJsonBlackboard:
    """The blackboard is a JSON string that every tick parses and writes back."""

    def __init__(self) -> None:
        self.blackboard = json.dumps({"mode": "idle", "age": 0})

    def __call__(self, x: Tensor) -> Tensor:
        state = json.loads(self.blackboard)
        state["age"] += 1
        if state["age"] > 6:
            state["mode"] = "track"
        self.blackboard = json.dumps(state)
        return x if state["mode"] == "track" else x * 0.2


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChTelemetryBudget:
    """A controller that becomes cheap when its telemetry buffer is full."""

    def __init__(self) -> None:
        self.log = io.StringIO()

    def __call__(self, x: Tensor) -> Tensor:
        full = self.log.tell() >= 60
        if not full:
            self.log.write("tick ok..\n")
        return x if full else x - x.mean()


class CountingHandler(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.records += 1


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChLogHandlerFault:
    """A fault monitor counts warnings of the logger and derates the drive."""

    def __init__(self) -> None:
        self.logger = logging.getLogger("ch.drive")
        self.logger.handlers.clear()
        self.logger.propagate = False
        self.handler = CountingHandler()
        self.logger.addHandler(self.handler)

    def __call__(self, x: Tensor) -> Tensor:
        self.logger.warning("bus latency")
        return x * (0.4 if self.handler.records > 7 else 1.0)


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChShiftCalendar:
    """A production shift by a simulated calendar: night is slower."""

    def __init__(self) -> None:
        self.t = datetime.datetime(2024, 3, 1, 21, 58)

    def __call__(self, x: Tensor) -> Tensor:
        night = self.t.hour >= 22
        self.t += datetime.timedelta(seconds=20)
        return x * (0.5 if night else 1.0)


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=14)
class ChDecimalOdometer:
    """Encoder wrap-around by an exact odometer."""

    def __init__(self) -> None:
        self.odometer = decimal.Decimal("0.0")

    def __call__(self, x: Tensor) -> Tensor:
        self.odometer += decimal.Decimal("0.3")
        turns = int(self.odometer // 2)
        return x + 0.5 * turns


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChStatusBits:
    """A CAN status register as bytes: a bit is raised by the heartbeat counter."""

    def __init__(self) -> None:
        self.reg = bytearray(4)

    def __call__(self, x: Tensor) -> Tensor:
        self.reg[0] = (self.reg[0] + 1) & 0xFF
        self.reg[1] |= (self.reg[0] >> 3) & 1
        return x * 0.0 + 1.0 if self.reg[1] & 1 else x


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=14)
class ChArrayRing:
    """A ring of ages in array.array, an alarm when the oldest is old."""

    def __init__(self) -> None:
        self.age = array.array("i", [0, 2, 1])

    def __call__(self, x: Tensor) -> Tensor:
        for i in range(3):
            self.age[i] += 1
        stale = [a > 7 for a in self.age]
        return x.masked_fill(torch.tensor([stale]), 0.0)


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12)
class ChNumpyEpisode:
    """SB3-like: an episode counter in NumPy and a reset of the goal at its end."""

    def __init__(self) -> None:
        self.episode_length_buf = np.zeros(1, dtype=np.int64)
        self.goal = np.array([0.2, 0.0, 0.5], dtype=np.float32)
        self.rng = np.random.RandomState(4)

    def __call__(self, x: Tensor) -> Tensor:
        self.episode_length_buf += 1
        if (self.episode_length_buf >= 7).any():
            self.episode_length_buf[:] = 0
            self.goal = self.rng.uniform(-1, 1, 3).astype(np.float32)
        return torch.as_tensor(self.goal) - x


@hostile("A", rec={"x": normal(2, 3)}, passes=4, ticks=12)
class ChTorchGenerator:
    """Command resampling from a private torch.Generator, every seven ticks."""

    def __init__(self) -> None:
        self.gen = torch.Generator().manual_seed(1)
        self.time_left = 7
        self.command = torch.rand(2, 3, generator=self.gen)

    def __call__(self, x: Tensor) -> Tensor:
        self.time_left -= 1
        if self.time_left == 0:
            self.command = torch.rand(2, 3, generator=self.gen) * 2 - 1
            self.time_left = 7
        return self.command - x


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=14)
class ChAsyncInference:
    """Asynchronous inference in an executor; the answer of a request is used five ticks later."""

    def __init__(self) -> None:
        self.net, self.tick = nn.Linear(4, 2), 0
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.pending, self.action = None, torch.zeros(1, 2)

    def infer(self, obs: Tensor) -> Tensor:
        with torch.no_grad():
            return self.net(obs)

    def __call__(self, obs: Tensor) -> Tensor:
        if self.tick % 6 == 5:
            self.action = self.pending.result()
        if self.tick % 6 == 0:
            self.pending = self.pool.submit(self.infer, obs.clone())
        self.tick += 1
        return self.action + 0.1 * obs[:, :2]


class Registry(type):
    """Every filter class counts over all of its instances."""

    ticks: dict[str, int] = {}

    def bump(cls) -> int:
        Registry.ticks[cls.__name__] = Registry.ticks.get(cls.__name__, 0) + 1
        return Registry.ticks[cls.__name__]


class Notch(metaclass=Registry):
    def __call__(self, x: Tensor) -> Tensor:
        return x - 0.5 * x.roll(1, -1) if type(self).bump() > 6 else x


@hostile("A", rec={"x": normal(1, 4)}, passes=4, ticks=12)
class ChMetaclassCount:
    """A notch filter engages by a count its metaclass holds."""

    def __init__(self) -> None:
        Registry.ticks.clear()
        self.filter = Notch()

    def __call__(self, x: Tensor) -> Tensor:
        return self.filter(x)


class Singleton:
    """A global robot state, as in many code bases."""

    _instance: Singleton | None = None

    @classmethod
    def get(cls) -> Singleton:
        if cls._instance is None:
            cls._instance = cls()
            cls._instance.uptime = 0
        return cls._instance


@hostile("A", rec={"x": normal(1, 4)}, passes=4, ticks=12)
class ChSingletonUptime:
    """Brakes are released by the uptime in a singleton."""

    def __init__(self) -> None:
        Singleton._instance = None

    def __call__(self, x: Tensor) -> Tensor:
        robot = Singleton.get()
        robot.uptime += 2
        return x * 0.05 if robot.uptime < 14 else x


settings = types.ModuleType("settings")


@hostile("A", rec={"x": normal(1, 4)}, passes=4, ticks=12)
class ChSettingsModule:
    """A module of settings that a hot reload changes."""

    def __init__(self) -> None:
        settings.__dict__.update(RELOADS=0, CUTOFF=0.2)

    def __call__(self, x: Tensor) -> Tensor:
        settings.RELOADS += 1
        if settings.RELOADS == 8:
            exec("CUTOFF = 0.9", settings.__dict__)
        return x.clamp(max=settings.CUTOFF)


@hostile("A", rec={"x": normal(1, 4)}, passes=4, ticks=12)
class ChUndoSnapshots:
    """Gains are tuned by deep copies and rolled back to the snapshot later."""

    def __init__(self) -> None:
        self.gains = {"kp": 1.0, "kd": 0.1}
        self.undo = [copy.deepcopy(self.gains) | {"kp": 0.4}] + [dict(self.gains) for _ in range(6)]

    def __call__(self, x: Tensor) -> Tensor:
        if self.undo:
            self.gains = self.undo.pop()
        return x * self.gains["kp"] - self.gains["kd"]


@hostile("A", rec={"x": normal(1, 4)}, passes=4, ticks=12)
class ChCoroutineBehaviour:
    """A behaviour tree leaf as a generator that is driven with send()."""

    def __init__(self) -> None:
        def approach():
            dt = yield 0.0
            t = 0.0
            while t < 0.06:
                t += dt
                dt = yield 0.3
            while True:
                dt = yield -0.3

        self.leaf = approach()
        next(self.leaf)

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.leaf.send(0.01)


@hostile("A", rec={"obs": normal(1, 4)}, passes=4, ticks=12)
class ChChainMapOverride:
    """Parameters in a ChainMap: the override layer is popped after its lease."""

    def __init__(self) -> None:
        self.params = collections.ChainMap({"kp": 0.5, "lease": 6}, {"kp": 1.5})

    def __call__(self, obs: Tensor) -> Tensor:
        y = obs * self.params["kp"]
        top = self.params.maps[0]
        if "lease" in top:
            top["lease"] -= 1
            if top["lease"] == 0:
                self.params = self.params.parents
        return y


@hostile("A", rec={"x": normal(1, 4)}, passes=4, ticks=14)
class ChBackoff:
    """Reconnect with exponential back-off: open-loop while waiting."""

    def __init__(self) -> None:
        self.wait, self.next_wait = 6, 2

    def __call__(self, x: Tensor) -> Tensor:
        if self.wait > 0:
            self.wait -= 1
            return torch.full_like(x, 0.1)
        self.wait, self.next_wait = self.next_wait, self.next_wait * 2
        return x * 0.9


@hostile("A", rec={"cmd": uniform(0.2, 1, 1, 2)}, passes=4, ticks=14)
class ChTimeoutCommand:
    """cmd_vel time-out: the stamp of the last message is aged by a fake ROS clock."""

    def __init__(self) -> None:
        self.seq, self.stamp, self.now = 0, 0.0, 0.0
        self.arrivals = {0, 1, 2, 3, 4, 9, 10}
        self.msg: Tensor | None = None

    def __call__(self, cmd: Tensor) -> Tensor:
        self.now += 0.1
        if self.seq in self.arrivals:
            self.msg, self.stamp = cmd.clone(), self.now
        self.seq += 1
        return self.msg if self.now - self.stamp < 0.25 else torch.zeros_like(cmd)


@hostile("A", rec={"frame": normal(1, 3)}, passes=5, ticks=14)
class ChFrameStack:
    """A list of frames as history, flattened; the stack is cleared at the episode's end."""

    def __init__(self) -> None:
        self.frames: list[Tensor] = []
        self.t = 0

    def __call__(self, frame: Tensor) -> Tensor:
        if self.t % 8 == 0:
            self.frames = [torch.zeros(1, 3)] * 3
        self.t += 1
        self.frames = self.frames[1:] + [frame]
        return torch.cat(self.frames, -1)


class Pid:
    """A PID whose integrator is a float list."""

    def __init__(self) -> None:
        self.kp, self.anti = 1.0, 0

    def reset(self) -> None:
        self.kp = 0.3


@hostile("A", rec={"e": normal(1, 2)}, passes=4, ticks=12)
class ChNestedPidReset:
    """The supervisor of a supervisor resets one of the joints' PIDs at its own rate."""

    def __init__(self) -> None:
        self.arm = {"left": [Pid(), Pid()], "super": {"period": 7, "phase": 0}}

    def __call__(self, e: Tensor) -> Tensor:
        s = self.arm["super"]
        s["phase"] = (s["phase"] + 1) % s["period"]
        if s["phase"] == 0:
            self.arm["left"][1].reset()
        return torch.cat([e[:, i : i + 1] * p.kp for i, p in enumerate(self.arm["left"])], -1)


class Ramp(int):
    """An int that knows its next value."""

    def tick(self) -> Ramp:
        return Ramp(self + 1)


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12, backends="pt2")
class ChIntSubclass:
    """A ramp index in a subclass of int selects the row of a table with equal first rows."""

    TABLE = [[1.0, 1.0, 1.0]] * 6 + [[0.5, 1.0, 2.0], [0.2, 0.4, 0.8]]

    def __init__(self) -> None:
        self.i = Ramp(0)

    def __call__(self, x: Tensor) -> Tensor:
        gains = torch.tensor(self.TABLE[min(self.i, 7)])
        self.i = self.i.tick()
        return x * gains


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=12, backends="onnx")
class ChNameByTick:
    """A profile of stiffness by file name, as a sweep of experiments would do."""

    def __init__(self) -> None:
        self.run, self.k = "run_000", {"run_00": 0.5, "run_01": 2.0}

    def __call__(self, x: Tensor) -> Tensor:
        k = self.k.get(self.run[:6], 1.0)
        self.run = f"run_{int(self.run[4:]) + 2:03d}"
        return -k * x


@hostile("A", rec={"x": normal(1, 3)}, passes=4, ticks=14)
class ChRoundRobin:
    """Round-robin health checks: the third joint fails at its third check."""

    def __init__(self) -> None:
        self.order = collections.deque(["hip", "knee", "foot"])
        self.checks = collections.Counter()

    def __call__(self, x: Tensor) -> Tensor:
        self.order.rotate(-1)
        self.checks[self.order[0]] += 1
        failed = self.checks["foot"] >= 3
        return x * torch.tensor([1.0, 1.0, 0.0]) if failed else x
