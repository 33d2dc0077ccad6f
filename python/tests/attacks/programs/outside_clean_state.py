"""Controllers, filters, estimators and policies with memory that any engineer would call clean."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attacks.draws import either, fixed, flags, normal, uniform
from attacks.registry import ALL, clean


@clean("A", rec={"target": normal(1, 3), "q": normal(1, 3)}, passes=5, backends=ALL)
class OutsidePid:
    def __init__(
        self, kp: float = 4.0, ki: float = 0.3, kd: float = 0.05, dt: float = 0.02
    ) -> None:
        self.kp, self.ki, self.kd, self.dt = kp, ki, kd, dt
        self.integral = torch.zeros(1, 3)
        self.last_error = torch.zeros(1, 3)

    def __call__(self, target: Tensor, q: Tensor) -> Tensor:
        error = target - q
        self.integral = torch.clamp(self.integral + error * self.dt, -0.5, 0.5)
        derivative = (error - self.last_error) / self.dt
        self.last_error = error
        return self.kp * error + self.ki * self.integral + self.kd * derivative


class _JointPid:
    def __init__(self, gain: float) -> None:
        self.gain, self.i = gain, torch.zeros(())

    def update(self, error: Tensor) -> Tensor:
        self.i = self.i + 0.01 * error
        return self.gain * error + self.i


@clean("A", rec={"e": normal(3)}, passes=4)
class OutsidePidPerJoint:
    """A controller object for each joint."""

    def __init__(self) -> None:
        self.joints = [_JointPid(g) for g in (1.0, 2.0, 3.0)]

    def __call__(self, e: Tensor) -> Tensor:
        return torch.stack([pid.update(e[i]) for i, pid in enumerate(self.joints)])


@clean("A", rec={"z": normal(2)}, passes=5, backends=ALL)
class OutsideKalman:
    def __init__(self) -> None:
        dt = 0.05
        self.F = torch.eye(4)
        self.F[0, 2] = self.F[1, 3] = dt
        self.H = torch.eye(2, 4)
        self.Q, self.R = 0.01 * torch.eye(4), 0.1 * torch.eye(2)
        self.x, self.P = torch.zeros(4), torch.eye(4)

    def predict(self) -> None:
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def __call__(self, z: Tensor) -> dict:
        self.predict()
        s = self.H @ self.P @ self.H.T + self.R
        k = self.P @ self.H.T @ torch.linalg.inv(s)
        self.x = self.x + k @ (z - self.H @ self.x)
        self.P = (torch.eye(4) - k @ self.H) @ self.P
        return {"state": self.x, "sigma": self.P.diagonal().sqrt()}


@clean("A", rec={"gyro": normal(3), "acc": normal(3, m=1.0)}, passes=4)
class OutsideComplementary:
    def __init__(self) -> None:
        self.angles = torch.zeros(2)

    def __call__(self, gyro: Tensor, acc: Tensor) -> Tensor:
        roll = torch.atan2(acc[1], acc[2] + 3.0)
        pitch = torch.atan2(-acc[0], torch.sqrt(acc[1] ** 2 + acc[2] ** 2 + 0.1))
        measured = torch.stack([roll, pitch])
        self.angles = 0.98 * (self.angles + gyro[:2] * 0.01) + 0.02 * measured
        return self.angles


def _quat_mul(a: Tensor, b: Tensor) -> Tensor:
    w1, x1, y1, z1 = a.unbind(-1)
    w2, x2, y2, z2 = b.unbind(-1)
    return torch.stack(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ],
        -1,
    )


@clean("A", rec={"gyro": normal(1, 3, s=0.3)}, passes=4, backends=("jit", "onnx"))
class OutsideAttitude:
    """Integrates a gyro into a quaternion that stays normalised."""

    def __init__(self) -> None:
        self.q = torch.tensor([[1.0, 0.0, 0.0, 0.0]])

    def __call__(self, gyro: Tensor) -> Tensor:
        rate = torch.cat([torch.zeros(1, 1), gyro], -1)
        q = self.q + 0.005 * _quat_mul(self.q, rate)
        self.q = q / q.norm(dim=-1, keepdim=True)
        return self.q


@clean("A", rec={"x": normal(1, 2)}, passes=5)
class OutsideBiquad:
    """Direct form II transposed, its two delays in a tuple."""

    def __init__(self) -> None:
        self.b, self.a = (0.2, 0.4, 0.2), (-0.6, 0.3)
        self.z = (torch.zeros(1, 2), torch.zeros(1, 2))

    def __call__(self, x: Tensor) -> Tensor:
        y = self.b[0] * x + self.z[0]
        self.z = (self.b[1] * x - self.a[0] * y + self.z[1], self.b[2] * x - self.a[1] * y)
        return y


@clean("A", rec={"drive": uniform(0.5, 1.5, 4)}, passes=4)
class OutsideHopf:
    """Four coupled oscillators make a trot."""

    def __init__(self) -> None:
        self.x, self.y = torch.full((4,), 0.1), torch.zeros(4)
        phase = torch.tensor([0.0, math.pi, math.pi, 0.0])
        self.coupling = torch.cos(phase[:, None] - phase[None, :]) * 0.1

    def __call__(self, drive: Tensor) -> Tensor:
        r2 = self.x**2 + self.y**2
        dx = (1.0 - r2) * self.x - 6.28 * drive * self.y
        dy = (1.0 - r2) * self.y + 6.28 * drive * self.x + self.coupling @ self.y
        self.x, self.y = self.x + 0.01 * dx, self.y + 0.01 * dy
        return torch.cat([self.x, self.y])


class _Filter(NamedTuple):
    mean: Tensor
    var: Tensor


@clean("A", rec={"x": normal(1, 3)}, passes=4)
class OutsideNamedTuple:
    def __init__(self) -> None:
        self.filter = _Filter(torch.zeros(1, 3), torch.ones(1, 3))

    def __call__(self, x: Tensor) -> Tensor:
        mean = 0.9 * self.filter.mean + 0.1 * x
        var = 0.9 * self.filter.var + 0.1 * (x - mean) ** 2
        self.filter = self.filter._replace(mean=mean, var=var)
        return (x - mean) / (var.sqrt() + 1e-3)


@dataclasses.dataclass(frozen=True)
class _Belief:
    position: Tensor
    velocity: Tensor


@clean("A", rec={"u": normal(2)}, passes=4, backends=ALL)
class OutsideFrozenBelief:
    """A frozen dataclass that is replaced in every tick."""

    def __init__(self) -> None:
        self.belief = _Belief(torch.zeros(2), torch.zeros(2))

    def __call__(self, u: Tensor) -> dict:
        velocity = 0.95 * self.belief.velocity + 0.1 * u
        position = self.belief.position + 0.1 * velocity
        self.belief = dataclasses.replace(self.belief, position=position, velocity=velocity)
        return {"position": position, "velocity": velocity}


@clean("A", rec={"x": normal(1, 2)}, passes=4)
def outside_closure_filter():
    state = torch.zeros(1, 2)

    def step(x: Tensor) -> Tensor:
        nonlocal state
        state = torch.lerp(state, x, 0.25)
        return state

    return step


@clean("A", rec={"x": normal(1, 2)}, passes=4)
def outside_partial_memory():
    def step(x: Tensor, *, memory: list[Tensor], decay: float) -> Tensor:
        memory[0] = memory[0] * decay + x
        return memory[0].tanh()

    return functools.partial(step, memory=[torch.zeros(1, 2)], decay=0.7)


@clean("A", rec={"obs": normal(2, 5)}, passes=5, backends=("jit", "onnx"))
class OutsideObservationHistory:
    """Isaac Lab: three frames of history, newest last."""

    def __init__(self) -> None:
        self.net = nn.Linear(15, 4)
        self.history = torch.zeros(2, 3, 5)

    def __call__(self, obs: Tensor) -> Tensor:
        self.history = torch.cat([self.history[:, 1:], obs[:, None]], dim=1)
        return self.net(self.history.flatten(1))


@clean("A", rec={"obs": normal(2, 5)}, passes=5)
class OutsideHistoryInPlace:
    def __init__(self) -> None:
        self.history = torch.zeros(2, 15)

    def __call__(self, obs: Tensor) -> Tensor:
        self.history[:, :-5] = self.history[:, 5:].clone()
        self.history[:, -5:] = obs
        return self.history * 0.5


@clean("A", rec={"dof_pos": normal(1, 4), "dof_vel": normal(1, 4)}, passes=4)
class OutsideLeggedObservations:
    """legged_gym's compute_observations, with the last actions in a buffer."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(12, 16), nn.ELU(), nn.Linear(16, 4))
        self.default = torch.tensor([[0.1, 0.8, -1.5, 0.0]])
        self.actions = torch.zeros(1, 4)

    def __call__(self, dof_pos: Tensor, dof_vel: Tensor) -> Tensor:
        obs = torch.cat(((dof_pos - self.default) * 1.0, dof_vel * 0.05, self.actions), dim=-1)
        obs = torch.clip(obs, -100.0, 100.0)
        self.actions[:] = torch.clip(self.net(obs), -5.0, 5.0)
        return self.actions * 0.25 + self.default


@clean("A", rec={"contact": flags(0.5, 4)}, passes=5, backends=("jit", "onnx"))
class OutsideAirTime:
    """legged_gym's feet_air_time."""

    def __init__(self) -> None:
        self.air_time, self.last = torch.zeros(4), torch.zeros(4, dtype=torch.bool)

    def __call__(self, contact: Tensor) -> Tensor:
        filtered = torch.logical_or(contact, self.last)
        self.last = contact
        first = (self.air_time > 0.0) * filtered
        self.air_time += 0.02
        reward = torch.sum((self.air_time - 0.5) * first)
        self.air_time *= ~filtered
        return reward.reshape(1)


@clean(
    "A",
    rec={"load": uniform(0.0, 0.5, 3)},
    fresh={"load": either(lambda t: t == 5, uniform(2.0, 3.0, 3), uniform(0.0, 0.5, 3))},
    passes=4,
)
class OutsideLatch:
    """A protective stop that nothing trips while it is recorded."""

    def __init__(self) -> None:
        self.tripped = torch.zeros(3, dtype=torch.bool)

    def __call__(self, load: Tensor) -> Tensor:
        self.tripped = self.tripped | (load > 1.0)
        return torch.where(self.tripped, torch.zeros(3), load)


@clean("A", rec={"obs": normal(1, 6), "done": flags(0.3, 1)}, passes=5)
class OutsideResetByMask(nn.Module):
    """A recurrent policy whose memory a done flag clears."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(6, 8), nn.Linear(8, 2)
        self.h, self.c = torch.zeros(1, 8), torch.zeros(1, 8)

    def forward(self, obs: Tensor, done: Tensor) -> Tensor:
        keep = (~done).float().unsqueeze(-1)
        self.h, self.c = self.cell(obs, (self.h * keep, self.c * keep))
        return self.head(self.h)


@clean("A", rec={"err": normal(1, 3), "vel": normal(1, 3)}, passes=4, backends=("jit", "onnx"))
class OutsideActuatorNet(nn.Module):
    """The actuator network of ANYmal: an LSTM whose state is written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(2, 4, batch_first=True), nn.Linear(4, 1)
        self.hidden, self.cell = torch.zeros(1, 3, 4), torch.zeros(1, 3, 4)

    def forward(self, err: Tensor, vel: Tensor) -> Tensor:
        given = torch.stack([err.flatten(), vel.flatten()], dim=1).unsqueeze(1)
        y, (h, c) = self.lstm(given, (self.hidden, self.cell))
        self.hidden[:], self.cell[:] = h, c
        return self.out(y).view(1, 3)


@clean("A", rec={"obs": normal(4, 3)}, passes=4, style="module")
class OutsideEmpiricalNormalization(nn.Module):
    """rsl_rl's normaliser with its count in a buffer, updating."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, 3))
        self.register_buffer("var", torch.ones(1, 3))
        self.register_buffer("count", torch.tensor(0.0))

    def forward(self, obs: Tensor) -> Tensor:
        self.count += obs.shape[0]
        rate = obs.shape[0] / self.count
        var, mean = torch.var_mean(obs, dim=0, unbiased=False, keepdim=True)
        delta = mean - self.mean
        self.mean += rate * delta
        self.var += rate * (var - self.var + delta * (mean - self.mean))
        return (obs - self.mean) / (torch.sqrt(self.var) + 1e-2)


@clean("A", rec={"obs": normal(4, 3)}, passes=4)
class OutsideRunningScaler(nn.Module):
    """skrl's RunningStandardScaler in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(3, dtype=torch.float64))
        self.register_buffer("running_variance", torch.ones(3, dtype=torch.float64))
        self.register_buffer("current_count", torch.ones((), dtype=torch.float64))

    def _update(self, x: Tensor) -> None:
        mean, var = torch.mean(x, dim=0), torch.var(x, dim=0)
        count = x.shape[0]
        delta, total = mean - self.running_mean, self.current_count + count
        m2 = self.running_variance * self.current_count + var * count
        m2 = m2 + delta**2 * self.current_count * count / total
        self.running_mean = self.running_mean + delta * count / total
        self.running_variance = m2 / total
        self.current_count = total

    def forward(self, obs: Tensor) -> Tensor:
        self._update(obs)
        z = (obs - self.running_mean.float()) / (torch.sqrt(self.running_variance.float()) + 1e-4)
        return torch.clamp(z, -5.0, 5.0)


@clean("A", rec={"x0": normal(4)}, passes=4)
class OutsideWarmStartedMpc:
    """Projected gradient over a horizon, started from the shifted plan of the tick before."""

    def __init__(self) -> None:
        torch.manual_seed(4)
        self.A = torch.eye(4) + 0.05 * torch.randn(4, 4)
        self.B = 0.1 * torch.randn(4, 2)
        self.plan = torch.zeros(5, 2)

    def _rollout(self, x: Tensor, plan: Tensor) -> Tensor:
        states = []
        for u in plan:
            x = self.A @ x + self.B @ u
            states.append(x)
        return torch.stack(states)

    def __call__(self, x0: Tensor) -> Tensor:
        plan = torch.cat([self.plan[1:], self.plan[-1:]])
        for _ in range(4):
            states = self._rollout(x0, plan)
            plan = torch.clamp(plan - 0.3 * (states @ self.B + 0.01 * plan), -1.0, 1.0)
        self.plan = plan
        return plan[0]


@clean("A", rec={"x": normal(1, 3)}, passes=5)
class OutsideStepsInTensor:
    """The running mean with its count in a tensor."""

    def __init__(self) -> None:
        self.n, self.mean = torch.zeros(()), torch.zeros(1, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.n = self.n + 1
        self.mean = self.mean + (x - self.mean) / self.n
        return self.mean


@clean("A", rec={"command": normal(1, 2)}, passes=4, backends=ALL)
class OutsidePhaseClock:
    """A gait clock of rank 0 that is written in place."""

    def __init__(self) -> None:
        self.phase = torch.zeros(())

    def __call__(self, command: Tensor) -> Tensor:
        self.phase += 0.02
        angle = 2 * math.pi * self.phase
        return torch.cat([command, torch.stack([angle.sin(), angle.cos()]).unsqueeze(0)], -1)


@clean("A", rec={"x": normal(3)}, passes=6)
class OutsideRingByIndexCopy:
    """A ring whose place is a tensor, written by `index_copy_`."""

    def __init__(self) -> None:
        self.ring, self.at = torch.zeros(4, 3), torch.zeros(1, dtype=torch.long)

    def __call__(self, x: Tensor) -> Tensor:
        self.ring.index_copy_(0, self.at, x.unsqueeze(0))
        self.at = (self.at + 1) % 4
        return self.ring.mean(0)


@clean("A", rec={"x": normal(1, 2)}, passes=6)
class OutsideDelayDeque:
    """Two ticks of delay, filled with zeros."""

    def __init__(self) -> None:
        self.line = collections.deque([torch.zeros(1, 2), torch.zeros(1, 2)], maxlen=2)

    def __call__(self, x: Tensor) -> Tensor:
        late = self.line[0]
        self.line.append(x)
        return x - late


@clean("A", rec={"x": normal(1, 2)}, passes=4)
class OutsideCascade:
    """A low pass after a low pass, each an object, and the second is a copy of the first."""

    class LowPass:
        def __init__(self) -> None:
            self.y = torch.zeros(1, 2)

        def __call__(self, x: Tensor) -> Tensor:
            self.y = self.y + 0.3 * (x - self.y)
            return self.y

    def __init__(self) -> None:
        self.first = self.LowPass()
        self.second = copy.deepcopy(self.first)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


@clean("A", rec={"x": normal(1, 2)}, passes=4)
class OutsideSwappedBuffers:
    """Two buffers are swapped by assignment, without a Python index."""

    def __init__(self) -> None:
        self.now, self.before = torch.zeros(1, 2), torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.now, self.before = x * 1.0, self.now
        return self.now - self.before


@clean("A", rec={"x": normal(1, 4)}, passes=4)
class OutsideHookRemembers(nn.Module):
    """A hook keeps the features for the next tick."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 3), nn.Linear(6, 2)
        self.features = torch.zeros(1, 3)
        self.latest = torch.zeros(1, 3)
        self.encoder.register_forward_hook(self._keep)

    def _keep(self, module: nn.Module, given: tuple, out: Tensor) -> None:
        self.latest = out

    def forward(self, x: Tensor) -> Tensor:
        y = self.head(torch.cat([self.encoder(x), self.features], -1))
        self.features = self.latest
        return y


@clean(
    "A",
    rec={"x": fixed([[0.0, 0.0]])},
    fresh={"x": normal(1, 2)},
    passes=4,
    backends=("jit", "onnx"),
)
class OutsideRestingFilter:
    """A filter recorded at rest."""

    def __init__(self) -> None:
        self.y = torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        self.y = 0.5 * (self.y + x)
        return self.y


@clean("A", rec={"lin": normal(1, 3), "ang": normal(1, 3)}, passes=4, style="method")
class OutsideMethodWithMemory:
    """A method is the node, and gives two results by name."""

    def __init__(self) -> None:
        self.v = torch.zeros(1, 3)

    def step(self, lin: Tensor, ang: Tensor) -> tuple[Tensor, Tensor]:
        self.v = self.v + 0.1 * lin
        speed = self.v.norm(dim=-1)
        twist = torch.cat([self.v, ang], -1)
        return speed, twist
