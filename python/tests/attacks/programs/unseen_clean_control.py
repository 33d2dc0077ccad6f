"""Controllers, filters, delays, clocks and recurrent state, all of it in tensors."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, flags, integers, normal, uniform
from attacks.registry import ALL, clean


@clean("H", rec={"error": normal(1, 3)}, backends=("jit", "onnx"), passes=5, style="method")
class CcPidAntiWindup:
    """A PID with clamped integral and filtered derivative."""

    def __init__(self, kp=2.0, ki=0.5, kd=0.1, dt=0.02) -> None:
        self.kp, self.ki, self.kd, self.dt = kp, ki, kd, dt
        self.reset()

    def reset(self) -> None:
        self.integral, self.previous, self.slope = (
            torch.zeros(1, 3),
            torch.zeros(1, 3),
            torch.zeros(1, 3),
        )

    def step(self, error: Tensor) -> Tensor:
        self.integral = (self.integral + error * self.dt).clamp(-0.1, 0.1)
        raw = (error - self.previous) / self.dt
        self.slope = 0.8 * self.slope + 0.2 * raw
        self.previous = error
        command = self.kp * error + self.ki * self.integral + self.kd * self.slope
        return command


@clean("H", style="method", rec={"x": normal(1, 4)}, backends="jit", passes=4)
class CcButterworth:
    """A second-order low-pass in direct form II, coefficients worked out once in Python."""

    def __init__(self, cutoff: float = 5.0, rate: float = 50.0) -> None:
        c = 1.0 / math.tan(math.pi * cutoff / rate)
        a0 = 1 + math.sqrt(2) * c + c * c
        self.b = (1 / a0, 2 / a0, 1 / a0)
        self.a = (2 * (1 - c * c) / a0, (1 - math.sqrt(2) * c + c * c) / a0)
        self.w1, self.w2 = torch.zeros(1, 4), torch.zeros(1, 4)

    def step(self, x: Tensor) -> Tensor:
        w0 = x - self.a[0] * self.w1 - self.a[1] * self.w2
        y = self.b[0] * w0 + self.b[1] * self.w1 + self.b[2] * self.w2
        self.w1, self.w2 = w0, self.w1
        return y


@clean("H", rec={"action": normal(1, 3)}, backends="onnx", passes=5)
class CcDelayLine:
    """Isaac Lab's delay buffer with a fixed lag, as a list of tensors that is shifted."""

    def __init__(self, lag: int = 3) -> None:
        self.lag = lag
        self.buffer = [torch.zeros(1, 3) for _ in range(lag + 1)]

    def __call__(self, action: Tensor) -> Tensor:
        self.buffer.insert(0, action)
        self.buffer.pop()
        return self.buffer[self.lag] * 0.5 + self.buffer[1]


@clean("H", rec={"obs": normal(2, 3), "done": flags(0.3, 2)}, backends=("jit", "pt2"), passes=6)
class CcCircularReset:
    """A rolled history of several environments, some of which are reset by a mask."""

    def __init__(self) -> None:
        self.buffer = torch.zeros(2, 4, 3)

    def __call__(self, obs: Tensor, done: Tensor) -> Tensor:
        self.buffer = self.buffer * (~done).float().view(-1, 1, 1)
        self.buffer = torch.roll(self.buffer, shifts=1, dims=1)
        self.buffer[:, 0] = obs
        return self.buffer.reshape(2, -1)


@clean("H", rec={"freq": uniform(1.0, 2.0, 1, 1)}, backends="jit", passes=5, style="method")
class CcGaitClock:
    """A gait's phase in a tensor: advanced by the frequency, wrapped, legs with offsets."""

    def __init__(self) -> None:
        self.gait_indices = torch.zeros(1, 1)
        self.offsets = torch.tensor([[0.0, 0.5, 0.5, 0.0]])
        self.dt = 0.02

    def step(self, freq: Tensor) -> Tensor:
        self.gait_indices = torch.remainder(self.gait_indices + self.dt * freq, 1.0)
        clock = torch.sin(2 * np.pi * (self.gait_indices + self.offsets))
        return clock


@clean("H", rec={"x": normal(1, 4)}, backends="jit", passes=5, style="module")
class CcEmaBuffers(nn.Module):
    """An exponential mean and variance in buffers, with a step count in a tensor for the bias."""

    def __init__(self) -> None:
        super().__init__()
        self.decay = 0.9
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("var", torch.ones(4))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.steps.add_(1.0)
        self.mean.mul_(self.decay).add_(x[0], alpha=1 - self.decay)
        self.var.lerp_((x[0] - self.mean).square(), 1 - self.decay)
        unbiased = self.mean / (1 - self.decay**self.steps)
        return (x - unbiased) * torch.rsqrt(self.var + 1e-3)


class LstmState(NamedTuple):
    h: Tensor
    c: Tensor


@clean("H", style="module", rec={"x": normal(1, 4)}, backends=("jit", "onnx"), passes=4)
class CcNamedTupleState(nn.Module):
    """An LSTM cell whose state is a named tuple, None until the first step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTMCell(4, 6), nn.Linear(6, 2)
        self.state: LstmState | None = None

    def initial(self, batch: int) -> LstmState:
        return LstmState(torch.zeros(batch, 6), torch.zeros(batch, 6))

    def forward(self, x: Tensor) -> Tensor:
        state = self.initial(x.shape[0]) if self.state is None else self.state
        self.state = LstmState(*self.cell(x, (state.h, state.c)))
        return self.out(self.state.h)


@clean(
    "H",
    style="module",
    rec={"x": normal(1, 4), "reset": flags(0.25, 1)},
    backends=("jit", "pt2"),
    passes=5,
)
class CcMaskedGru(nn.Module):
    """A two-layer GRU in cells: states in a list, zeroed by a mask where the episode ended."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(4, 5), nn.GRUCell(5, 5)])
        self.states = [torch.zeros(1, 5) for _ in self.cells]

    def forward(self, x: Tensor, reset: Tensor) -> Tensor:
        keep = 1.0 - reset.float().unsqueeze(-1)
        for i, cell in enumerate(self.cells):
            self.states[i] = cell(x, self.states[i] * keep)
            x = self.states[i]
        return torch.tanh(x)


@clean(
    "H",
    rec={"q": normal(1, 3), "dq": normal(1, 3), "target": normal(1, 3)},
    backends="onnx",
    passes=3,
)
class CcDcMotor:
    """Isaac Lab's DC motor: PD, effort clipped by speed-dependent limits."""

    def __init__(self) -> None:
        self.stiffness = {"hip": 20.0, "thigh": 25.0, "calf": 30.0}
        self.kp = torch.tensor(list(self.stiffness.values()))
        self.kd = torch.full((3,), 0.5)
        self.saturation, self.limit, self.max_vel = 23.7, 20.0, 30.0

    def clip_effort(self, effort: Tensor, vel: Tensor) -> Tensor:
        top = (self.saturation * (1.0 - vel / self.max_vel)).clip(min=0.0, max=self.limit)
        low = (self.saturation * (-1.0 - vel / self.max_vel)).clip(min=-self.limit, max=0.0)
        return torch.clip(effort, min=low, max=top)

    def __call__(self, q: Tensor, dq: Tensor, target: Tensor) -> dict:
        computed = self.kp * (target - q) + self.kd * (0.0 - dq)
        return {"computed": computed, "applied": self.clip_effort(computed, dq)}


@clean("H", style="module", rec={"q": normal(4, 3), "dq": normal(4, 3)}, backends="jit", passes=4)
class CcActuatorNet(nn.Module):
    """The LSTM actuator net: hidden state written in place, error and speed as inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(2, 4, num_layers=2, batch_first=True), nn.Linear(4, 1)
        self.sea_hidden_state, self.sea_cell_state = torch.zeros(2, 12, 4), torch.zeros(2, 12, 4)
        self.sea_input = torch.zeros(12, 1, 2)

    def forward(self, q: Tensor, dq: Tensor) -> Tensor:
        self.sea_input[:, 0, 0] = (0.3 - q).flatten()
        self.sea_input[:, 0, 1] = dq.flatten()
        y, (h, c) = self.lstm(self.sea_input, (self.sea_hidden_state, self.sea_cell_state))
        self.sea_hidden_state[:], self.sea_cell_state[:] = h, c
        return self.out(y[:, 0]).view(4, 3).clip(-20.0, 20.0)


@clean("H", rec={"z": normal(2, 1)}, backends="jit", passes=5)
class CcKalman:
    """A Kalman filter of constant velocity: state and covariance as tensors."""

    def __init__(self, dt: float = 0.1) -> None:
        self.A = torch.tensor([[1.0, 0, dt, 0], [0, 1, 0, dt], [0, 0, 1, 0], [0, 0, 0, 1]])
        self.H = torch.eye(2, 4)
        self.Q, self.R = torch.eye(4) * 0.01, torch.eye(2) * 0.5
        self.x, self.P = torch.zeros(4, 1), torch.eye(4)

    def predict(self) -> None:
        self.x = self.A @ self.x
        self.P = self.A @ self.P @ self.A.T + self.Q

    def update(self, z: Tensor) -> None:
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T @ torch.linalg.inv(S)
        self.x = self.x + K @ (z - self.H @ self.x)
        self.P = (torch.eye(4) - K @ self.H) @ self.P

    def __call__(self, z: Tensor) -> dict:
        self.predict()
        self.update(z)
        return {"state": self.x.flatten(), "spread": torch.diagonal(self.P)}


@clean("H", rec={"gyro": normal(1, 3), "acc": normal(1, 3)}, backends="jit", passes=4)
class CcComplementary:
    """A complementary filter of roll and pitch, from the gyroscope and the accelerometer."""

    def __init__(self) -> None:
        self.angles = torch.zeros(1, 2)
        self.alpha, self.dt = 0.98, 0.01

    def __call__(self, gyro: Tensor, acc: Tensor) -> Tensor:
        ax, ay, az = (acc + torch.tensor([0.0, 0.0, 9.81])).unbind(-1)
        from_acc = torch.stack(
            [torch.atan2(ay, az.abs() + 1.0), torch.atan2(-ax, torch.hypot(ay, az))], dim=-1
        )
        self.angles = (
            self.alpha * (self.angles + gyro[:, :2] * self.dt) + (1 - self.alpha) * from_acc
        )
        return self.angles


@clean("H", rec={"target": normal(1, 3)}, backends=ALL, passes=4)
class CcRateLimiter:
    """A slew-rate limit from the default pose, with per-joint speeds."""

    def __init__(self) -> None:
        self.current = torch.tensor([[0.0, 0.8, -1.5]])
        self.max_delta = torch.tensor([0.1, 0.2, 0.15])

    def __call__(self, target: Tensor) -> Tensor:
        delta = torch.clamp(target - self.current, -self.max_delta, self.max_delta)
        self.current = self.current + delta
        return self.current


@clean("H", style="method", rec={"action": normal(1, 3)}, backends="pt2", passes=4)
class CcActionTerm:
    """Isaac Lab's JointPositionAction: raw actions written in place, processed, smoothed."""

    def __init__(self) -> None:
        self._raw_actions, self._processed = torch.zeros(1, 3), torch.zeros(1, 3)
        self._scale, self._offset = 0.25, torch.tensor([[0.1, 0.8, -1.5]])
        self._prev_applied = torch.zeros(1, 3)
        self._clip = torch.tensor([[[-1.0, 1.0], [-0.5, 2.5], [-2.7, -0.8]]])

    @property
    def processed_actions(self) -> Tensor:
        return self._processed

    def process_actions(self, actions: Tensor) -> None:
        self._raw_actions[:] = actions
        self._processed = self._raw_actions * self._scale + self._offset
        self._processed = torch.clamp(
            self._processed, min=self._clip[:, :, 0], max=self._clip[:, :, 1]
        )

    def step(self, action: Tensor) -> Tensor:
        self.process_actions(action)
        ema = 0.7 * self.processed_actions + 0.3 * self._prev_applied
        self._prev_applied[:] = ema
        return ema


@clean("H", rec={"x": normal(1, 2)}, backends="jit", passes=5)
class CcMovingAverageDeque:
    """A moving average over a deque of fixed length that starts with zeros."""

    def __init__(self, window: int = 4) -> None:
        self.values: deque[Tensor] = deque([torch.zeros(1, 2)] * window, maxlen=window)

    def __call__(self, x: Tensor) -> dict:
        self.values.append(x)
        stacked = torch.cat(tuple(self.values), dim=0)
        return {
            "mean": stacked.mean(0),
            "median": stacked.median(dim=0).values,
            "oldest": self.values[0] * 1.0,
        }


@clean("H", rec={"theta": normal(1, 4)}, backends="jit", passes=4)
class CcHopfOscillators:
    """Coupled Hopf oscillators as a pattern generator, four substeps for each tick."""

    def __init__(self) -> None:
        self.r, self.phase = torch.full((1, 4), 0.5), torch.tensor([[0.0, math.pi, math.pi, 0.0]])
        self.bias = self.phase.transpose(0, 1) - self.phase
        self.dt = 0.005

    def __call__(self, theta: Tensor) -> Tensor:
        mu = 1.0 + 0.2 * torch.tanh(theta)
        for _ in range(4):
            coupling = torch.sin(self.phase - self.phase.mT - self.bias).sum(-1, keepdim=True).mT
            self.r = self.r + self.dt * 8.0 * (mu - self.r**2) * self.r
            self.phase = self.phase + self.dt * (2 * math.pi * 1.5 + 0.5 * coupling)
        return torch.cat([self.r * torch.cos(self.phase), self.r * torch.sin(self.phase)], -1)


@clean("H", rec={"obs": array(normal(3)), "cmd": array(normal(3))}, backends="jit", passes=4)
class CcNumpyFilterState:
    """A first-order filter whose memory is a NumPy array, replaced in every tick."""

    def __init__(self) -> None:
        self.state = np.zeros(3, dtype=np.float32)
        self.alpha = np.float32(0.3)

    def __call__(self, obs: np.ndarray, cmd: np.ndarray) -> np.ndarray:
        error = np.clip(cmd - obs, -1.0, 1.0)
        self.state = (1 - self.alpha) * self.state + self.alpha * error
        return np.concatenate([self.state, np.abs(error)])


@dataclass
class ControllerState:
    integral: Tensor
    last: Tensor

    @classmethod
    def zeros(cls, n: int) -> "ControllerState":
        return cls(torch.zeros(n), torch.zeros(n))


@clean("H", style="method", rec={"e": normal(2)}, backends="onnx", passes=4)
class CcDataclassState:
    """A pure update with the state in a dataclass that is replaced as a whole."""

    def __init__(self) -> None:
        self.state = ControllerState.zeros(2)

    @staticmethod
    def update(state: ControllerState, e: Tensor) -> tuple[ControllerState, Tensor]:
        integral = 0.95 * state.integral + e
        u = 0.4 * e + 0.1 * integral + 0.2 * (e - state.last)
        return ControllerState(integral=integral, last=e), u

    def step(self, e: Tensor) -> Tensor:
        self.state, u = self.update(self.state, e)
        return u


@clean("H", rec={"wrench": normal(1, 6), "pose": normal(1, 6)}, backends=("jit", "onnx"), passes=5)
class CcAdmittance:
    """An admittance: a virtual mass, damper and spring for each axis, semi-implicit steps."""

    def __init__(self) -> None:
        self.M, self.D, self.K = (
            torch.diag(torch.full((6,), 2.0)),
            torch.full((6,), 12.0),
            torch.full((6,), 20.0),
        )
        self.M_inv = torch.inverse(self.M)
        self.x, self.v = torch.zeros(1, 6), torch.zeros(1, 6)

    def __call__(self, wrench: Tensor, pose: Tensor) -> dict:
        a = (wrench - self.D * self.v - self.K * (self.x - 0.1 * pose)) @ self.M_inv.T
        self.v = self.v + 0.01 * a
        self.x = self.x + 0.01 * self.v
        return {"offset": self.x, "rate": self.v}


@clean("H", rec={"u": normal(1, 1), "mode": integers(0, 3, 1)}, backends="jit", passes=4)
class CcModeBank:
    """Filters for each mode all advance; the one that is wanted is picked by one-hot."""

    def __init__(self) -> None:
        self.poles = torch.tensor([[0.5, 0.8, 0.95]])
        self.bank = torch.zeros(1, 3)

    def __call__(self, u: Tensor, mode: Tensor) -> Tensor:
        self.bank = torch.lerp(u.expand(-1, 3), self.bank, self.poles)
        return (F.one_hot(mode, 3) * self.bank).sum(-1)
