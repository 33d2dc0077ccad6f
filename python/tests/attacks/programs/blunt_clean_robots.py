"""Clean code as people write it: estimators, controllers, gaits, safety layers and nodes of robots."""

from __future__ import annotations

import abc
import collections
import enum
import functools
import itertools
import json
import logging
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from veracity import annotate

from attacks.draws import array, double, flags, normal, uniform
from attacks.registry import clean

log = logging.getLogger("bringup")

GRAVITY = 9.81


# Quaternions, scalar first.


def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    aw, ax, ay, az = a.unbind(-1)
    bw, bx, by, bz = b.unbind(-1)
    return torch.stack(
        (
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ),
        dim=-1,
    )


def quat_conj(q: Tensor) -> Tensor:
    return torch.cat((q[..., :1], -q[..., 1:]), dim=-1)


def quat_apply(q: Tensor, v: Tensor) -> Tensor:
    xyz = q[..., 1:]
    t = 2 * torch.linalg.cross(xyz, v, dim=-1)
    return v + q[..., :1] * t + torch.linalg.cross(xyz, t, dim=-1)


def skew(v: Tensor) -> Tensor:
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack((o, -z, y, z, o, -x, -y, x, o), dim=-1).unflatten(-1, (3, 3))


# Estimators.


@clean("A", rec={"z": normal(2)}, passes=4, backends=("jit", "onnx"))
class BkKalmanConstantVelocity:
    """A Kalman filter with constant velocity in the plane, its covariance updated in Joseph's form."""

    def __init__(self, dt: float = 0.05, q: float = 0.5, r: float = 0.1) -> None:
        eye, zero = torch.eye(2), torch.zeros(2, 2)
        self.F = torch.cat((torch.cat((eye, dt * eye), 1), torch.cat((zero, eye), 1)))
        self.H = torch.cat((eye, zero), 1)
        g = torch.cat((0.5 * dt**2 * eye, dt * eye))
        self.Q, self.R = q * g @ g.T, r * eye
        self.x, self.P = torch.zeros(4), torch.eye(4)

    def predict(self) -> None:
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z: Tensor) -> Tensor:
        y = z - self.H @ self.x
        S = self.H @ self.P @ self.H.T + self.R  # noqa: N806
        K = torch.linalg.solve(S, self.H @ self.P).T  # noqa: N806
        self.x = self.x + K @ y
        A = torch.eye(4) - K @ self.H  # noqa: N806
        self.P = A @ self.P @ A.T + K @ self.R @ K.T
        return y

    def __call__(self, z: Tensor) -> dict[str, Tensor]:
        self.predict()
        innovation = self.update(z)
        return {"state": self.x.clone(), "sigma": self.P.diagonal().sqrt(), "y": innovation}


class _Noise(NamedTuple):
    process: Tensor
    measurement: Tensor


@clean(
    "A",
    style="method",
    rec={"u": normal(2, s=0.3), "z": normal(2, m=3.0, s=0.3)},
    passes=4,
    backends=("jit", "pt2"),
)
class BkEkfUnicycle:
    """An extended Kalman filter of a unicycle that measures range and bearing to a beacon."""

    BEACON: ClassVar[tuple[float, float]] = (4.0, 1.0)

    def __init__(self) -> None:
        self.noise = _Noise(torch.diag(torch.tensor([0.01, 0.01, 0.02])), 0.2 * torch.eye(2))
        self.mu, self.sigma = torch.zeros(3), 0.1 * torch.eye(3)
        self.beacon, self.dt = torch.tensor(self.BEACON), 0.1

    @staticmethod
    def wrap(angle: Tensor) -> Tensor:
        return torch.atan2(torch.sin(angle), torch.cos(angle))

    def step(self, u: Tensor, z: Tensor) -> dict[str, Tensor]:
        v, w = u
        x, y, th = self.mu
        mu = torch.stack((x + self.dt * v * th.cos(), y + self.dt * v * th.sin(), th + self.dt * w))
        G = torch.eye(3)  # noqa: N806
        G[0, 2] = -self.dt * v * th.sin()
        G[1, 2] = self.dt * v * th.cos()
        sigma = G @ self.sigma @ G.mT + self.noise.process

        delta = self.beacon - mu[:2]
        q = delta.square().sum() + 1e-6
        expected = torch.stack((q.sqrt(), torch.atan2(delta[1], delta[0]) - mu[2]))
        zero = torch.zeros(())
        H = torch.stack(  # noqa: N806
            (
                torch.stack((-delta[0] / q.sqrt(), -delta[1] / q.sqrt(), zero)),
                torch.stack((delta[1] / q, -delta[0] / q, zero - 1.0)),
            )
        )
        error = z - expected
        error = torch.stack((error[0], self.wrap(error[1])))
        K = sigma @ H.mT @ torch.linalg.inv(H @ sigma @ H.mT + self.noise.measurement)  # noqa: N806
        self.mu = mu + K @ error
        self.sigma = (torch.eye(3) - K @ H) @ sigma
        return {"mu": self.mu, "trace": self.sigma.trace()}


@clean("A", rec={"z": double(normal(1))}, passes=6, backends=("jit", "onnx"))
class BkUnscentedPendulum:
    """An unscented filter of a pendulum in float64, its sigma points by Cholesky."""

    def __init__(self, n: int = 2, alpha: float = 0.5, kappa: float = 1.0) -> None:
        lam = alpha**2 * (n + kappa) - n
        self.spread = math.sqrt(n + lam)
        wm = torch.full((2 * n + 1,), 0.5 / (n + lam), dtype=torch.float64)
        wm[0] = lam / (n + lam)
        self.wm, self.wc = wm, wm.clone()
        self.wc[0] += 1 - alpha**2 + 2
        self.q = torch.diag(torch.tensor([1e-4, 1e-2], dtype=torch.float64))
        self.x = torch.tensor([0.2, 0.0], dtype=torch.float64)
        self.p = 0.1 * torch.eye(2, dtype=torch.float64)

    @staticmethod
    def motion(points: Tensor, dt: float = 0.02) -> Tensor:
        th, om = points[:, 0], points[:, 1]
        return torch.stack((th + dt * om, om - dt * (GRAVITY * th.sin() + 0.1 * om)), dim=1)

    def __call__(self, z: Tensor) -> Tensor:
        root = self.spread * torch.linalg.cholesky(self.p)
        points = torch.cat((self.x[None], self.x + root.T, self.x - root.T))
        points = self.motion(points)
        mean = self.wm @ points
        d = points - mean
        p = torch.einsum("i,ij,ik->jk", self.wc, d, d) + self.q
        measured = points[:, 0].sin()
        zhat = self.wm @ measured
        dz = measured - zhat
        s = (self.wc * dz * dz).sum() + 0.05
        k = torch.einsum("i,ij,i->j", self.wc, d, dz) / s
        self.x = mean + k * (z[0] - zhat)
        p = p - s * torch.outer(k, k)
        self.p = 0.5 * (p + p.T)
        return self.x * 1.0


@clean("A", rec={"gyro": normal(3), "acc": normal(3, m=1.0)}, passes=4, backends=("jit", "onnx"))
class BkMadgwick:
    """Madgwick's filter: a quaternion that a gradient step corrects."""

    def __init__(self, beta: float = 0.1, rate: float = 200.0) -> None:
        self.beta, self.dt = beta, 1.0 / rate
        self.q = torch.tensor([1.0, 0.0, 0.0, 0.0])

    def __call__(self, gyro: Tensor, acc: Tensor) -> dict[str, Tensor]:
        q, a = self.q, acc / torch.linalg.vector_norm(acc)
        w, x, y, z = q
        f = torch.stack(
            (
                2 * (x * z - w * y) - a[0],
                2 * (w * x + y * z) - a[1],
                2 * (0.5 - x**2 - y**2) - a[2],
            )
        )
        zero = torch.zeros_like(w)
        jac = torch.stack(
            (
                torch.stack((-2 * y, 2 * z, -2 * w, 2 * x)),
                torch.stack((2 * x, 2 * w, 2 * z, 2 * y)),
                torch.stack((zero, -4 * x, -4 * y, zero)),
            )
        )
        step = F.normalize(jac.T @ f, dim=0)
        rate = 0.5 * quat_mul(q, F.pad(gyro, (1, 0))) - self.beta * step
        self.q = F.normalize(q + rate * self.dt, dim=0)
        return {"q": self.q, "up": quat_apply(quat_conj(self.q), torch.tensor([0.0, 0.0, 1.0]))}


class _Node(abc.ABC):
    """The base of the nodes: a name, a logger, a lock, a count of what went through."""

    def __init__(self, name: str, backend: str, **parameters: Any) -> None:
        self.name, self.backend = name, backend
        self._parameters = {"rate": 100.0, **parameters}
        self._lock, self._count, self._last_log = threading.Lock(), 0, 0.0
        self.get_logger().info("%s starts with %s", name, json.dumps(self._parameters))

    def get_logger(self) -> logging.Logger:
        return log.getChild(self.name)

    def get_parameter(self, name: str) -> Any:
        return self._parameters[name]

    @abc.abstractmethod
    def compute(self, **inputs: Tensor) -> dict[str, Tensor]: ...

    def publish(self, **inputs: Any) -> dict[str, Tensor]:
        with self._lock:
            marked = annotate.input_tensors(self.name, inputs)
            values = marked if isinstance(marked, (tuple, list)) else (marked,)
            results = self.compute(**dict(zip(inputs, values)))
            annotate.output_tensors(self.name, results, export_with=self.backend)
            self._count += 1
        if time.monotonic() - self._last_log > 1.0:
            self._last_log = time.monotonic()
            self.get_logger().info("published %d messages", self._count)
        return results


class _ImuNode(_Node):
    def __init__(self, backend: str) -> None:
        super().__init__("imu", backend, alpha=0.98)
        self.alpha, self.dt = self.get_parameter("alpha"), 1.0 / self.get_parameter("rate")
        self.attitude = torch.zeros(1, 2)

    def compute(self, gyro: Tensor, acc: Tensor) -> dict[str, Tensor]:
        roll = torch.atan2(acc[:, 1], acc[:, 2])
        pitch = torch.atan2(-acc[:, 0], torch.hypot(acc[:, 1], acc[:, 2]))
        measured = torch.stack((roll, pitch), dim=1)
        predicted = self.attitude + gyro[:, :2] * self.dt
        self.attitude = self.alpha * predicted + (1 - self.alpha) * measured
        return {"attitude": self.attitude}


@clean(
    "A",
    style="own",
    rec={"imu/gyro": normal(1, 3), "imu/acc": normal(1, 3, s=0.5, m=3.0)},
    passes=6,
    backends=("jit", "onnx"),
)
class BkComplementaryNode:
    """A complementary filter in a node class with a logger, a lock and parameters."""

    def __init__(self, backend: str) -> None:
        self.node = _ImuNode(backend)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        out = self.node.publish(gyro=given["imu/gyro"], acc=given["imu/acc"])
        return {"imu/attitude": out["attitude"]}


@clean(
    "A",
    rec={"q": normal(4), "qd": normal(4), "tau": normal(4)},
    passes=4,
    backends=("jit", "onnx"),
)
class BkMomentumObserver:
    """A momentum observer of outside torques, its integral kept in a tensor."""

    def __init__(self, gain: float = 20.0, dt: float = 0.004) -> None:
        self.gain, self.dt = gain, dt
        self.inertia = torch.tensor([1.2, 0.9, 0.4, 0.1])
        self.integral, self.residual = torch.zeros(4), torch.zeros(4)
        self.threshold = torch.tensor([3.0, 3.0, 1.5, 0.5])

    def gravity(self, q: Tensor) -> Tensor:
        reach = torch.cumsum(q, dim=0).cos() * torch.tensor([0.4, 0.3, 0.2, 0.05])
        return GRAVITY * reach.flip(0).cumsum(0).flip(0)

    def __call__(self, q: Tensor, qd: Tensor, tau: Tensor) -> dict[str, Tensor]:
        momentum = self.inertia * qd
        self.integral = self.integral + self.dt * (tau - self.gravity(q) + self.residual)
        self.residual = self.gain * (momentum - self.integral)
        return {"external": self.residual, "contact": self.residual.abs() > self.threshold}


@clean("A", rec={"phi": normal(3), "y": normal(1)}, passes=4, backends=("onnx", "jit"))
class BkRecursiveLeastSquares:
    """Recursive least squares with forgetting, for a payload."""

    def __init__(self, n: int = 3, forget: float = 0.99) -> None:
        self.theta, self.p, self.forget = torch.zeros(n), 10.0 * torch.eye(n), forget

    def __call__(self, phi: Tensor, y: Tensor) -> Tensor:
        p_phi = self.p @ phi
        gain = p_phi / (self.forget + phi.dot(p_phi))
        self.theta = self.theta + gain * (y - phi.dot(self.theta))
        self.p = (self.p - torch.outer(gain, p_phi)) / self.forget
        return self.theta.clone()


@clean(
    "A",
    rec={"odom": normal(3, s=0.1), "ranges": uniform(1.0, 4.0, 3)},
    passes=4,
    backends=("jit", "onnx"),
)
class BkParticleLocaliser:
    """A particle filter with offsets drawn once and systematic resampling by a cumulative sum."""

    def __init__(self, count: int = 32) -> None:
        rng = torch.Generator().manual_seed(11)
        self.particles = torch.randn(count, 3, generator=rng) * torch.tensor([1.0, 1.0, 0.3])
        self.jitter = 0.02 * torch.randn(count, 3, generator=rng)
        self.landmarks = torch.tensor([[3.0, 0.0], [0.0, 3.0], [-2.0, -2.0]])
        self.comb = (torch.arange(count) + 0.5) / count

    def __call__(self, odom: Tensor, ranges: Tensor) -> dict[str, Tensor]:
        c, s = self.particles[:, 2].cos(), self.particles[:, 2].sin()
        move = torch.stack((c * odom[0] - s * odom[1], s * odom[0] + c * odom[1]), dim=1)
        moved = self.particles + torch.cat((move, odom[2].expand(32, 1)), dim=1) + self.jitter
        expected = torch.cdist(moved[:, :2], self.landmarks)
        weights = torch.softmax(-0.5 * ((expected - ranges) / 0.8).square().sum(1), dim=0)
        mean = (weights[:, None] * moved).sum(0)
        picked = torch.searchsorted(weights.cumsum(0), self.comb).clamp(max=31)
        self.particles = moved[picked]
        return {"pose": mean, "effective": 1.0 / weights.square().sum()}


# Filters.


class _Biquad:
    """One section in the transposed second form."""

    def __init__(self, b: Sequence[float], a: Sequence[float], width: int) -> None:
        self.b, self.a = tuple(b), tuple(a)
        self.z1, self.z2 = torch.zeros(width), torch.zeros(width)

    def __call__(self, x: Tensor) -> Tensor:
        y = self.b[0] * x + self.z1
        self.z1 = self.b[1] * x - self.a[0] * y + self.z2
        self.z2 = self.b[2] * x - self.a[1] * y
        return y


def butterworth(
    cutoff: float, rate: float, order: int
) -> Iterator[tuple[list[float], list[float]]]:
    """Yield the sections of a low-pass filter of even order."""
    k = math.tan(math.pi * cutoff / rate)
    for index in range(order // 2):
        q = 1 / (2 * math.sin(math.pi * (2 * index + 1) / (2 * order)))
        norm = 1 / (1 + k / q + k * k)
        b0 = k * k * norm
        yield [b0, 2 * b0, b0], [2 * (k * k - 1) * norm, (1 - k / q + k * k) * norm]


@clean("A", rec={"x": normal(6)}, passes=6, backends=("jit", "onnx", "pt2"))
class BkButterworthCascade:
    """A Butterworth filter of fourth order, sections from a generator."""

    def __init__(self) -> None:
        self.sections = [_Biquad(b, a, 6) for b, a in butterworth(20.0, 200.0, 4)]

    def __call__(self, x: Tensor) -> Tensor:
        for section in self.sections:
            x = section(x)
        return x


@clean("A", rec={"force": normal(1, 6)}, passes=6, backends=("jit", "onnx"))
class BkMedianOfFive:
    """A median over the last five wrenches in a deque, then a mean over three in another."""

    def __init__(self) -> None:
        zero = torch.zeros(1, 6)
        self.raw: collections.deque[Tensor] = collections.deque([zero] * 5, maxlen=5)
        self.smooth: collections.deque[Tensor] = collections.deque(maxlen=3)
        self.smooth.extend(torch.zeros(1, 6) for _ in range(3))

    def __call__(self, force: Tensor) -> dict[str, Tensor]:
        self.raw.append(force)
        self.smooth.append(torch.stack(tuple(self.raw)).median(dim=0)[0])
        return {"force": sum(self.smooth) / len(self.smooth)}


@clean("A", style="method", rec={"command": uniform(-2, 2, 3)}, passes=4, backends=("onnx", "pt2"))
class BkCommandSmoother:
    """A joystick's commands: dead band, exponent, low pass, slew limit, limits."""

    @dataclass(frozen=True)
    class Config:
        deadband: float = 0.08
        expo: float = 0.4
        alpha: float = 0.35
        slew: tuple[float, float, float] = (0.1, 0.1, 0.2)
        limit: tuple[float, float, float] = (1.0, 0.6, 1.2)

    def __init__(self) -> None:
        self.cfg = replace(self.Config(), alpha=0.3)
        self.slew, self.limit = torch.tensor(self.cfg.slew), torch.tensor(self.cfg.limit)
        self.filtered, self.sent = torch.zeros(3), torch.zeros(3)

    def shape(self, x: Tensor) -> Tensor:
        x = torch.where(x.abs() < self.cfg.deadband, torch.zeros_like(x), x)
        return (1 - self.cfg.expo) * x + self.cfg.expo * x.pow(3)

    def step(self, command: Tensor) -> Tensor:
        wanted = self.shape(command.clamp(-1.0, 1.0)) * self.limit
        self.filtered = torch.lerp(self.filtered, wanted, self.cfg.alpha)
        self.sent = self.sent + torch.clamp(self.filtered - self.sent, -self.slew, self.slew)
        sent = self.sent.clone()
        return sent


# Joint and arm controllers.


@clean("A", rec={"target": normal(3), "measured": normal(3)}, passes=4, backends=("jit", "onnx"))
class BkPidAntiWindup:
    """A PID with back-calculation and a filtered derivative on the measurement."""

    def __init__(self, dt: float = 0.01) -> None:
        self.kp, self.ki, self.kd = (torch.tensor(v) for v in ([4.0] * 3, [1.5] * 3, [0.2] * 3))
        self.dt, self.limit, self.back = dt, 5.0, 2.0
        self.i = torch.zeros(3)
        self.d = torch.zeros(3)
        self.before = torch.zeros(3)

    def __call__(self, target: Tensor, measured: Tensor) -> dict[str, Tensor]:
        error = target - measured
        self.d += 0.2 * ((self.before - measured) / self.dt - self.d)
        self.before.copy_(measured)
        wanted = self.kp * error + self.i + self.kd * self.d
        sent = wanted.clamp(-self.limit, self.limit)
        self.i += self.dt * (self.ki * error + self.back * (sent - wanted))
        return {"u": sent, "saturated": (sent != wanted).any()}


class _Link(NamedTuple):
    a: float
    d: float
    alpha: float


PANDA_LIKE = (
    _Link(0.0, 0.333, 0.0),
    _Link(0.0, 0.0, -math.pi / 2),
    _Link(0.0, 0.316, math.pi / 2),
    _Link(0.0825, 0.0, math.pi / 2),
    _Link(-0.0825, 0.384, -math.pi / 2),
    _Link(0.0, 0.0, math.pi / 2),
)


@functools.lru_cache(maxsize=None)
def _constants(alpha: float, a: float) -> tuple[float, float, float]:
    return math.cos(alpha), math.sin(alpha), a


def forward_kinematics(q: Tensor) -> list[Tensor]:
    """Return the frames of all links."""
    frame, frames = torch.eye(4), []
    last = torch.tensor([0.0, 0.0, 0.0, 1.0])
    for angle, link in zip(q.unbind(), PANDA_LIKE):
        ca, sa, a = _constants(link.alpha, link.a)
        c, s, zero, one = angle.cos(), angle.sin(), angle * 0, angle * 0 + 1
        rows = (
            torch.stack((c, -s, zero, one * a)),
            torch.stack((s * ca, c * ca, -one * sa, -one * sa * link.d)),
            torch.stack((s * sa, c * sa, one * ca, one * ca * link.d)),
            last,
        )
        frame = frame @ torch.stack(rows)
        frames.append(frame)
    return frames


def geometric_jacobian(frames: list[Tensor]) -> Tensor:
    tip = frames[-1][:3, 3]
    columns = []
    for frame in frames:
        axis = frame[:3, 2]
        columns.append(torch.cat((torch.linalg.cross(axis, tip - frame[:3, 3]), axis)))
    return torch.stack(columns, dim=1)


@clean("B", rec={"q": normal(6), "twist": normal(6, s=0.2)}, passes=3, backends=("jit", "onnx"))
class BkDampedLeastSquares:
    """Resolved rates of an arm by damped least squares, towards the middle in the null space."""

    def __init__(self, damping: float = 0.15) -> None:
        self.damping2 = damping**2
        self.middle = torch.tensor([0.0, 0.3, 0.0, -1.4, 0.0, 1.6])
        self.limit = torch.full((6,), 1.5)

    def __call__(self, q: Tensor, twist: Tensor) -> dict[str, Tensor]:
        frames = forward_kinematics(q)
        jac = geometric_jacobian(frames)
        gram = jac @ jac.T + self.damping2 * torch.eye(6)
        pinv = torch.linalg.solve(gram, jac).T
        null = torch.eye(6) - pinv @ jac
        qd = pinv @ twist + null @ (0.5 * (self.middle - q))
        scale = (self.limit / qd.abs().clamp(min=1e-6)).min().clamp(max=1.0)
        return {"qd": qd * scale, "tip": frames[-1][:3, 3]}


@clean(
    "B",
    style="method",
    rec={"q": normal(6), "qd": normal(6), "goal": normal(3, s=0.3)},
    passes=3,
    backends=("jit", "pt2"),
)
class BkOperationalSpace:
    """Operational space control of a position, with the mass of the task by an inverse."""

    def __init__(self) -> None:
        self.mass = torch.diag(torch.tensor([2.0, 1.8, 1.0, 0.8, 0.3, 0.2]))
        self.minv = torch.linalg.inv(self.mass)
        self.kp, self.kd = 120.0, 2 * math.sqrt(120.0)
        self.tau_max = torch.tensor([87.0, 87.0, 87.0, 87.0, 12.0, 12.0])

    def step(self, q: Tensor, qd: Tensor, goal: Tensor) -> dict[str, Tensor]:
        frames = forward_kinematics(q)
        jac = geometric_jacobian(frames)[:3]
        lam = torch.linalg.inv(jac @ self.minv @ jac.T + 1e-2 * torch.eye(3))
        acc = self.kp * (goal - frames[-1][:3, 3]) - self.kd * (jac @ qd)
        tau = jac.T @ (lam @ acc)
        jbar = self.minv @ jac.T @ lam
        tau = tau + (torch.eye(6) - jac.T @ jbar.T) @ (-2.0 * qd)
        return {"tau": torch.maximum(torch.minimum(tau, self.tau_max), -self.tau_max)}


def riccati(a: Tensor, b: Tensor, q: Tensor, r: Tensor, rounds: int = 200) -> Tensor:
    """Return the gain of the discrete linear quadratic regulator."""
    p = q
    for _ in range(rounds):
        k = torch.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        p = q + a.T @ p @ (a - b @ k)
    return k


@clean("A", style="module", rec={"y": normal(2)}, passes=4, backends=("jit", "onnx"))
class BkLqgCartPole(nn.Module):
    """A regulator with an observer: the gain is computed once, the estimate is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        dt, a = 0.02, torch.zeros(4, 4)
        a[0, 1] = a[2, 3] = 1.0
        a[1, 2], a[3, 2] = -0.98, 10.78
        b = torch.tensor([[0.0], [1.0], [0.0], [-1.0]])
        self.register_buffer("a", torch.eye(4) + dt * a)
        self.register_buffer("b", dt * b)
        self.register_buffer("c", torch.eye(4)[[0, 2]])
        weights = torch.diag(torch.tensor([1.0, 0.1, 10.0, 0.1]))
        self.register_buffer("k", riccati(self.a, self.b, weights, torch.eye(1)))
        l = riccati(self.a.T, self.c.T, torch.eye(4), 0.1 * torch.eye(2))  # noqa: E741
        self.register_buffer("l", l.T)
        self.register_buffer("estimate", torch.zeros(4))

    def forward(self, y: Tensor) -> Tensor:
        u = -(self.k @ self.estimate).clamp(-10.0, 10.0)
        error = y - self.c @ self.estimate
        self.estimate.copy_(self.a @ self.estimate + self.b @ u + self.l @ error)
        return u


# Planning by fixed numbers of steps.


@clean("A", rec={"state": normal(1, 4), "goal": normal(1, 2)}, passes=4, backends=("jit", "onnx"))
class BkMppiFixedNoise:
    """Path integral control with noise drawn once: a plan that shifts by one step a tick."""

    def __init__(self, samples: int = 24, horizon: int = 5) -> None:
        rng = np.random.default_rng(5)
        noise = rng.normal(scale=0.4, size=(samples, horizon, 2)).astype(np.float32)
        self.noise = torch.from_numpy(noise)
        self.plan = torch.zeros(horizon, 2)
        self.horizon, self.dt, self.temperature = horizon, 0.1, 0.7

    def rollout(self, state: Tensor, controls: Tensor, goal: Tensor) -> Tensor:
        s = state.expand(controls.shape[0], -1)
        cost = torch.zeros(controls.shape[0])
        for t in range(self.horizon):
            velocity = s[:, 2:] + self.dt * controls[:, t]
            s = torch.cat((s[:, :2] + self.dt * velocity, velocity), dim=1)
            cost = cost + (s[:, :2] - goal).norm(dim=1) + 0.05 * controls[:, t].square().sum(1)
        return cost

    def __call__(self, state: Tensor, goal: Tensor) -> dict[str, Tensor]:
        controls = (self.plan + self.noise).clamp(-2.0, 2.0)
        cost = self.rollout(state, controls, goal)
        weights = F.softmin(cost / self.temperature, dim=0)
        plan = torch.einsum("k,ktu->tu", weights, controls)
        self.plan = torch.cat((plan[1:], plan[-1:]))
        return {"u": plan[0], "cost": (weights * cost).sum()}


@clean("B", rec={"x0": normal(2)}, passes=3, backends=("jit", "onnx"))
class BkAdmmMpc:
    """A box-constrained MPC by twenty rounds of ADMM, its matrix factored once."""

    def __init__(self, horizon: int = 8, rho: float = 1.0, rounds: int = 20) -> None:
        a, b = torch.tensor([[1.0, 0.1], [0.0, 1.0]]), torch.tensor([[0.005], [0.1]])
        powers = list(itertools.accumulate([a] * horizon, torch.mm))
        phi = torch.cat(powers)
        gamma = torch.zeros(2 * horizon, horizon)
        for i, j in itertools.product(range(horizon), repeat=2):
            if j <= i:
                block = torch.matrix_power(a, i - j) @ b
                gamma[2 * i : 2 * i + 2, j : j + 1] = block
        weight = torch.diag(torch.tensor([10.0, 1.0]).repeat(horizon))
        hessian = gamma.T @ weight @ gamma + 0.1 * torch.eye(horizon)
        self.linear = gamma.T @ weight @ phi
        self.kkt = torch.linalg.inv(hessian + rho * torch.eye(horizon))
        self.rho, self.rounds, self.umax = rho, rounds, 1.0

    def __call__(self, x0: Tensor) -> dict[str, Tensor]:
        f = self.linear @ x0
        z = torch.zeros_like(f)
        dual = torch.zeros_like(f)
        for _ in range(self.rounds):
            u = self.kkt @ (self.rho * (z - dual) - f)
            z = (u + dual).clamp(-self.umax, self.umax)
            dual = dual + u - z
        return {"u": z[:1], "plan": z}


# Gaits.


@clean("A", rec={"frequency": uniform(1, 3, 1)}, passes=6, backends=("jit", "onnx"))
class BkHopfGait:
    """Four coupled Hopf oscillators, stepped by Heun's rule."""

    def __init__(self, dt: float = 0.01) -> None:
        self.dt, self.alpha, self.mu = dt, 10.0, 1.0
        phases = torch.tensor([0.0, math.pi, math.pi, 0.0])
        delta = phases[None, :] - phases[:, None]
        self.c, self.s = delta.cos(), delta.sin()
        self.xy = torch.stack((phases.cos(), phases.sin() + 0.1), dim=1)

    def derivative(self, xy: Tensor, omega: Tensor) -> Tensor:
        x, y = xy[:, 0], xy[:, 1]
        r2 = x * x + y * y
        dx = self.alpha * (self.mu - r2) * x - omega * y
        dy = self.alpha * (self.mu - r2) * y + omega * x + 0.3 * (self.c @ y - self.s @ x)
        return torch.stack((dx, dy), dim=1)

    def __call__(self, frequency: Tensor) -> dict[str, Tensor]:
        omega = 2 * math.pi * torch.sigmoid(frequency) * 3
        first = self.derivative(self.xy, omega)
        second = self.derivative(self.xy + self.dt * first, omega)
        self.xy = self.xy + 0.5 * self.dt * (first + second)
        return {"hip": 0.3 * self.xy[:, 0], "knee": 0.4 * self.xy[:, 1].clamp(min=0.0)}


class Gait(enum.Enum):
    TROT = (0.0, 0.5, 0.5, 0.0)
    PACE = (0.0, 0.5, 0.0, 0.5)
    WALK = (0.0, 0.5, 0.25, 0.75)


@clean(
    "A",
    style="own",
    rec={"gait/commands": uniform(-1, 1, 1, 3), "gait/height": normal(1, 1, s=0.02, m=0.08)},
    passes=12,
    backends=("jit", "onnx"),
)
class BkGaitClock:
    """A gait clock in a tensor with offsets by an enum, and swing feet on a parabola."""

    def __init__(self, backend: str, gait: str = "trot") -> None:
        self.backend = backend
        self.gait_indices = torch.zeros(1)
        self.offsets = torch.tensor([Gait[gait.upper()].value])
        self.dt, self.frequency, self.duty = 0.02, 2.5, 0.55

    def clock(self) -> tuple[Tensor, Tensor]:
        self.gait_indices = torch.remainder(self.gait_indices + self.dt * self.frequency, 1.0)
        phase = torch.remainder(self.gait_indices.unsqueeze(1) + self.offsets, 1.0)
        swing = ((phase - self.duty) / (1.0 - self.duty)).clamp(0.0, 1.0)
        return phase, swing

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        commands, height = annotate.input_tensors(
            "gait", {"commands": given["gait/commands"], "height": given["gait/height"]}
        )
        phase, swing = self.clock()
        z = 4.0 * height * swing * (1.0 - swing)
        x = commands[:, :1] * self.duty / self.frequency * (0.5 - phase)
        moving = (commands.norm(dim=1, keepdim=True) > 0.1).float()
        out = {
            "feet": torch.stack((x, z), dim=-1) * moving.unsqueeze(-1),
            "clock": torch.sin(2 * math.pi * phase),
            "stance": phase < self.duty,
        }
        annotate.output_tensors("gait", out, export_with=self.backend)
        return {f"gait/{key}": value for key, value in out.items()}


@clean(
    "B",
    rec={"velocity": normal(1, 2), "command": normal(1, 2), "yaw_rate": normal(1, 1)},
    passes=3,
    backends=("onnx", "jit"),
)
def BkRaibertFootholds() -> Callable[..., Tensor]:  # noqa: N802
    """Footholds by Raibert's rule with a capture term and the turn of the hips."""
    hips = torch.tensor([[0.19, 0.11], [0.19, -0.11], [-0.19, 0.11], [-0.19, -0.11]])
    stance, height = 0.25, 0.3
    capture = math.sqrt(height / GRAVITY)
    reach = {"x": 0.15, "y": 0.1}
    limit = torch.tensor([reach["x"], reach["y"]])

    def place(velocity: Tensor, command: Tensor, yaw_rate: Tensor) -> Tensor:
        half = 0.5 * stance * velocity
        correction = 0.03 * (velocity - command) + 0.5 * capture * torch.cat(
            (velocity[:, 1:] * yaw_rate, -velocity[:, :1] * yaw_rate), dim=1
        )
        angle = 0.5 * stance * yaw_rate
        c, s = torch.cos(angle), torch.sin(angle)
        turn = torch.cat((torch.cat((c, -s), 1), torch.cat((s, c), 1)))
        offset = torch.clamp(half + correction, -limit, limit)
        return (hips @ turn.T + offset).unsqueeze(0)

    return place


# Safety layers and machines of states in tensors.


@clean(
    "B",
    rec={"u": normal(1, 2), "p": normal(1, 2), "obstacles": normal(3, 2, s=3.0)},
    passes=3,
    backends=("jit", "onnx"),
)
class BkBarrierFilter:
    """A control barrier filter in closed form, one obstacle after the other, nearest first."""

    def __init__(self, radius: float = 0.6, gamma: float = 2.0) -> None:
        self.r2, self.gamma = radius**2, gamma

    def __call__(self, u: Tensor, p: Tensor, obstacles: Tensor) -> dict[str, Tensor]:
        distance = (p - obstacles).norm(dim=-1)
        order = distance.argsort()
        safe = u
        for obstacle in obstacles[order].split(1):
            away = p - obstacle
            h = away.square().sum(-1, keepdim=True) - self.r2
            lf = 2 * (away * safe).sum(-1, keepdim=True) + self.gamma * h
            push = torch.relu(-lf) / (4 * away.square().sum(-1, keepdim=True) + 1e-6)
            safe = safe + push * 2 * away
        return {"u": safe.clamp(-3, 3), "active": (safe - u).abs().sum(-1) > 1e-3}


@clean(
    "A",
    style="own",
    rec={"fsm/force": normal(1, 4, s=30.0, m=30.0), "fsm/phase": uniform(0, 1, 1, 4)},
    passes=12,
    backends=("jit", "onnx"),
)
class BkContactMachine:
    """A machine of three states for each foot, as one-hot tensors and a timer."""

    SWING, EARLY, STANCE = range(3)

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.state = torch.full((1, 4), self.STANCE, dtype=torch.long)
        self.timer = torch.zeros(1, 4)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        force, phase = annotate.input_tensors(
            "fsm", {"force": given["fsm/force"], "phase": given["fsm/phase"]}
        )
        touch, planned = force > 25.0, phase < 0.5
        after = torch.where(
            self.state == self.SWING,
            torch.where(touch, torch.where(planned, self.STANCE, self.EARLY), self.SWING),
            torch.where(
                self.state == self.EARLY,
                torch.where(planned | (self.timer > 0.05), self.STANCE, self.EARLY),
                torch.where(~planned & ~touch, self.SWING, self.STANCE),
            ),
        )
        self.timer = torch.where(after == self.state, self.timer + 0.01, torch.zeros_like(phase))
        self.state = after
        gains = torch.tensor([20.0, 40.0, 80.0])[self.state]
        out = {"state": self.state, "kp": gains * (1 - torch.exp(-self.timer / 0.02))}
        annotate.output_tensors("fsm", out, export_with=self.backend)
        names = [("swing", "early", "stance")[int(s)] for s in after.flatten()]
        log.debug("feet: %s", ", ".join(names))
        return {f"fsm/{key}": value for key, value in out.items()}


@clean(
    "A",
    rec={"tilt": normal(1, 2, s=0.4), "estop": flags(0.1, 1, 1), "action": normal(1, 6)},
    passes=6,
    backends=("onnx", "jit"),
)
class BkDebouncedStop:
    """A stop that debounces, latches while the trouble lasts, and blends to damping."""

    def __init__(self, need: int = 3, release: int = 8) -> None:
        self.bad = torch.zeros(1, 1, dtype=torch.int32)
        self.good = torch.zeros(1, 1, dtype=torch.int32)
        self.latched = torch.zeros(1, 1, dtype=torch.bool)
        self.blend = torch.zeros(1, 1)
        self.need, self.release = need, release

    def __call__(self, tilt: Tensor, estop: Tensor, action: Tensor) -> dict[str, Tensor]:
        trouble = (tilt.abs() > 0.7).any(dim=1, keepdim=True) | estop
        self.bad = torch.where(trouble, self.bad + 1, torch.zeros_like(self.bad))
        self.good = torch.where(trouble, torch.zeros_like(self.good), self.good + 1)
        self.latched = (self.latched | (self.bad >= self.need) | estop) & (self.good < self.release)
        self.blend = (self.blend + torch.where(self.latched, 0.25, -0.1)).clamp(0.0, 1.0)
        return {"action": action * (1.0 - self.blend), "latched": self.latched}


# Mobile bases, aircraft, trajectories.


@clean("B", rec={"twist": normal(1, 3), "angles": normal(1, 4)}, passes=3, backends=("jit", "onnx"))
class BkSwerveModules:
    """A swerve drive: the shorter turn, the speeds scaled down together."""

    def __init__(self, length: float = 0.5, width: float = 0.4, top: float = 2.0) -> None:
        corners = itertools.product((length / 2, -length / 2), (width / 2, -width / 2))
        rows = [row for x, y in corners for row in ((1.0, 0.0, -y), (0.0, 1.0, x))]
        self.matrix, self.top = torch.tensor(rows), top

    def __call__(self, twist: Tensor, angles: Tensor) -> dict[str, Tensor]:
        wheels = (twist @ self.matrix.T).reshape(-1, 4, 2)
        speed, angle = wheels.norm(dim=-1), torch.atan2(wheels[..., 1], wheels[..., 0])
        turn = torch.remainder(angle - angles + math.pi, 2 * math.pi) - math.pi
        back = turn.abs() > math.pi / 2
        turn = torch.where(back, turn - math.pi * torch.sign(turn), turn)
        speed = torch.where(back, -speed, speed) * turn.cos()
        peak = speed.abs().amax(dim=-1, keepdim=True)
        return {"speed": speed * (self.top / peak.clamp(min=self.top)), "angle": angles + turn}


@clean(
    "B",
    rec={"p": normal(3), "v": normal(3), "quat": normal(4), "omega": normal(3)},
    passes=3,
    backends=("jit", "onnx", "pt2"),
)
class BkGeometricQuadrotor:
    """Lee's geometric controller and the mixer of a quadrotor."""

    def __init__(self, mass: float = 1.2, arm: float = 0.17) -> None:
        self.mass, self.j = mass, torch.diag(torch.tensor([0.01, 0.01, 0.02]))
        self.e3, self.yaw = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([1.0, 0.0, 0.0])
        a, k = arm / math.sqrt(2), 0.016
        allocation = [[1, 1, 1, 1], [a, -a, -a, a], [-a, -a, a, a], [k, -k, k, -k]]
        self.mixer = torch.linalg.inv(torch.tensor(allocation, dtype=torch.float32))

    def __call__(self, p: Tensor, v: Tensor, quat: Tensor, omega: Tensor) -> dict[str, Tensor]:
        w, xyz = quat.div(quat.norm()).split([1, 3])
        s = skew(xyz)
        rotation = torch.eye(3) + 2 * w * s + 2 * s @ s
        force = -4.0 * p - 3.0 * v + self.mass * GRAVITY * self.e3
        b3 = F.normalize(force, dim=0)
        b2 = F.normalize(torch.linalg.cross(b3, self.yaw), dim=0)
        desired = torch.stack((torch.linalg.cross(b2, b3), b2, b3), dim=1)
        e = 0.5 * (desired.T @ rotation - rotation.T @ desired)
        error = torch.stack((e[2, 1], e[0, 2], e[1, 0]))
        moment = -2.0 * error - 0.3 * omega + torch.linalg.cross(omega, self.j @ omega)
        thrust = force @ rotation[:, 2]
        motors = self.mixer @ torch.cat((thrust.reshape(1), moment))
        return {"motors": motors.clamp(0.0, 8.0).sqrt(), "error": error}


@clean(
    "A",
    style="method",
    rec={"goal": normal(1, 4), "start": normal(1, 4)},
    passes=4,
    backends=("jit", "onnx"),
)
class BkSlerpServo:
    """An orientation that goes the shorter way to a goal by slerp, with its clock in a tensor."""

    def __init__(self, duration: float = 0.2, dt: float = 0.01) -> None:
        self.rate = dt / duration
        self.u = torch.zeros(1, 1)

    @staticmethod
    def minimum_jerk(u: Tensor) -> Tensor:
        return u**3 * (10.0 + u * (6.0 * u - 15.0))

    def step(self, goal: Tensor, start: Tensor) -> Tensor:
        a, b = (F.normalize(q, dim=-1) for q in (start, goal))
        dot = (a * b).sum(dim=-1, keepdim=True)
        b, dot = torch.where(dot < 0, -b, b), dot.abs().clamp(max=1.0 - 1e-6)
        self.u = (self.u + self.rate).clamp(max=1.0)
        t, angle = self.minimum_jerk(self.u), torch.acos(dot)
        mixed = torch.sin((1 - t) * angle) * a + torch.sin(t * angle) * b
        quat = F.normalize(mixed / torch.sin(angle), dim=-1)
        return quat


@clean("B", rec={"speed": uniform(0, 4, 5)}, passes=3, backends=("jit", "onnx"))
class BkGainTable:
    """Gains from a table by bucketize and linear interpolation."""

    def __init__(self) -> None:
        self.at = torch.tensor([0.0, 0.5, 1.5, 3.0, 6.0])
        self.gains = torch.tensor([[8.0, 0.4], [6.0, 0.5], [4.5, 0.7], [3.0, 0.9], [2.0, 1.2]])

    def __call__(self, speed: Tensor) -> Tensor:
        s = speed.clamp(self.at[0], self.at[-1])
        upper = torch.bucketize(s, self.at).clamp(1, len(self.at) - 1)
        lower = upper - 1
        t = (s - self.at[lower]) / (self.at[upper] - self.at[lower])
        return torch.lerp(self.gains[lower], self.gains[upper], t.unsqueeze(-1))


# Sensors.


@clean("D", rec={"ranges": uniform(0.05, 8, 72)}, passes=3, backends=("jit", "onnx"))
class BkLidarSectors:
    """A scan in sectors: the nearest and the second nearest, holes ignored, a gap to follow."""

    def __init__(self, sectors: int = 12) -> None:
        angles = torch.linspace(-math.pi, math.pi, 73)[:-1]
        self.direction = torch.stack((angles.cos(), angles.sin()), dim=-1)
        self.centres = angles.view(sectors, -1).mean(dim=1)
        self.sectors = sectors

    def __call__(self, ranges: Tensor) -> dict[str, Tensor]:
        valid = (ranges > 0.1) & (ranges < 7.5)
        clean_ranges = ranges.masked_fill(~valid, 7.5).view(self.sectors, -1)
        near = clean_ranges.sort(dim=1).values[:, :2]
        window = F.pad(near[:, :1].T.unsqueeze(0), (1, 1), mode="circular")
        open_ = F.avg_pool1d(window, 3, stride=1).flatten()
        weights = torch.softmax(2.0 * open_, dim=0)
        heading = torch.atan2(
            (weights * self.centres.sin()).sum(), (weights * self.centres.cos()).sum()
        )
        repel = -(self.direction / ranges.clamp(min=0.2).square()[:, None] * valid[:, None]).sum(0)
        return {"near": near, "heading": heading, "repel": repel}


@clean(
    "D",
    rec={"depth": uniform(0.2, 5, 1, 8, 10), "tilt": normal(1, s=0.2)},
    passes=3,
    backends=("jit", "onnx", "pt2"),
)
class BkDepthToHeights:
    """A depth image through its intrinsics to a cloud, and by scatter to a map of heights."""

    def __init__(self, fx: float = 9.0, fy: float = 9.0) -> None:
        v, u = torch.meshgrid(torch.arange(8.0), torch.arange(10.0), indexing="ij")
        self.rays = torch.stack(((u - 4.5) / fx, (v - 3.5) / fy, torch.ones_like(u)), dim=-1)

    def __call__(self, depth: Tensor, tilt: Tensor) -> dict[str, Tensor]:
        points = (depth.squeeze(0).unsqueeze(-1) * self.rays).reshape(-1, 3)
        c, s = tilt.cos(), tilt.sin()
        height = 0.6 - c * points[:, 1] - s * points[:, 2]
        ahead = c * points[:, 2] - s * points[:, 1]
        ix = (ahead / 0.5).floor().long().clamp(0, 7)
        iy = ((points[:, 0] + 2.0) / 0.5).floor().long().clamp(0, 7)
        cell = ix * 8 + iy
        count = torch.zeros(64).scatter_add_(0, cell, torch.ones_like(height))
        total = torch.zeros(64).scatter_add_(0, cell, height)
        highest = torch.full((64,), -1.0).scatter_reduce(0, cell, height, "amax")
        mean = total / count.clamp(min=1.0)
        return {"mean": mean.view(8, 8), "highest": highest.view(8, 8), "seen": count > 0}


@clean("A", rec={"hits": flags(0.3, 8, 8), "shift": uniform(-1, 1, 2)}, backends=("jit", "onnx"))
class BkOccupancyGrid:
    """Log-odds that decay, moved with the base by grid_sample."""

    def __init__(self) -> None:
        self.log_odds = torch.zeros(1, 1, 8, 8)
        self.hit, self.miss = math.log(0.8 / 0.2), math.log(0.4 / 0.6)
        self.theta = torch.eye(2, 3).unsqueeze(0)
        self.base_grid = F.affine_grid(self.theta, [1, 1, 8, 8], align_corners=True)

    def __call__(self, hits: Tensor, shift: Tensor) -> Tensor:
        grid = self.base_grid + 0.2 * torch.tanh(shift)
        moved = F.grid_sample(
            self.log_odds, grid, mode="bilinear", padding_mode="zeros", align_corners=True
        )
        seen = torch.where(hits, self.hit, self.miss)
        self.log_odds = (0.95 * moved + seen).clamp(-4.0, 4.0)
        return torch.sigmoid(self.log_odds).squeeze()


# Nodes that work together.


class _Perception(_Node):
    def __init__(self, backend: str) -> None:
        super().__init__("perception", backend)
        self.net = nn.Sequential(nn.Conv1d(1, 4, 5, stride=2), nn.ReLU(), nn.Flatten()).eval()
        self.out = nn.Linear(4 * 14, 6).eval()

    def compute(self, scan: Tensor) -> dict[str, Tensor]:
        features = self.out(self.net(scan.clamp(0, 10).reciprocal().unsqueeze(1)))
        return {"features": features, "nearest": scan.amin(dim=1, keepdim=True)}


class _Policy(_Node):
    def __init__(self, backend: str) -> None:
        super().__init__("policy", backend)
        self.gru, self.head = nn.GRU(8, 12, batch_first=True).eval(), nn.Linear(12, 2).eval()
        self.hidden: Tensor | None = None

    def compute(self, features: Tensor, goal: Tensor) -> dict[str, Tensor]:
        x = torch.cat((features, goal), dim=-1).unsqueeze(1)
        out, self.hidden = self.gru(x, self.hidden)
        return {"command": torch.tanh(self.head(out.squeeze(1)))}


class _Safety(_Node):
    def __init__(self, backend: str) -> None:
        super().__init__("safety", backend, stop=0.3, slow=1.0)
        self.last = torch.zeros(1, 2)

    def compute(self, command: Tensor, nearest: Tensor) -> dict[str, Tensor]:
        stop, slow = self.get_parameter("stop"), self.get_parameter("slow")
        scale = ((nearest - stop) / (slow - stop)).clamp(0.0, 1.0)
        limited = torch.cat((command[:, :1] * scale, command[:, 1:]), dim=-1)
        self.last = self.last + (limited - self.last).clamp(-0.2, 0.2)
        return {"velocity": self.last}


class _Metrics:
    """Sums that a dashboard shows."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = collections.defaultdict(list)

    def update(self, **values: float) -> None:
        for name, value in values.items():
            self.values[name].append(value)

    def summary(self) -> str:
        return ", ".join(f"{k}={sum(v) / len(v):.3f}" for k, v in sorted(self.values.items()))


@clean(
    "G",
    style="own",
    rec={"perception/scan": uniform(0.1, 10, 1, 32), "policy/goal": normal(1, 2)},
    passes=6,
    backends=("jit", "onnx"),
)
class BkNavigationStack:
    """Perception, a recurrent policy and a safety layer, with metrics beside them."""

    def __init__(self, backend: str) -> None:
        self.perception, self.policy = _Perception(backend), _Policy(backend)
        self.safety, self.metrics = _Safety(backend), _Metrics()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        seen = self.perception.publish(scan=given["perception/scan"])
        wanted = self.policy.publish(features=seen["features"], goal=given["policy/goal"])
        sent = self.safety.publish(command=wanted["command"], nearest=seen["nearest"])
        self.metrics.update(
            latency_ms=1e3 * (time.perf_counter() - began),
            nearest=seen["nearest"].item(),
            speed=float(sent["velocity"][0, 0]),
        )
        if len(self.metrics.values["speed"]) % 3 == 0:
            print(self.metrics.summary())
        return {"safety/velocity": sent["velocity"]}


@clean(
    "G",
    style="own",
    rec={
        "odometry/wheels": normal(1, 2),
        "odometry/gyro": normal(1, 1),
        "tracker/path": normal(1, 2),
    },
    passes=6,
    backends=("jit", "onnx"),
)
class BkOdometryAndTracker:
    """Odometry with a state, and a path tracker whose command goes back to the odometry."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.pose, self.command = torch.zeros(1, 3), torch.zeros(1, 2)

    def odometry(self, wheels: Tensor, gyro: Tensor, command: Tensor) -> Tensor:
        wheels, gyro, command = annotate.input_tensors(
            "odometry", {"wheels": wheels, "gyro": gyro, "command": command}
        )
        v = 0.8 * 0.5 * (wheels[:, :1] + wheels[:, 1:]) + 0.2 * command[:, :1]
        w = 0.9 * gyro + 0.1 * command[:, 1:]
        x, y, th = self.pose.split(1, dim=1)
        middle = th + 0.5 * w * 0.05
        self.pose = torch.cat(
            (x + v * middle.cos() * 0.05, y + v * middle.sin() * 0.05, th + w * 0.05), dim=1
        )
        annotate.output_tensors("odometry", {"pose": self.pose}, export_with=self.backend)
        return self.pose

    def tracker(self, pose: Tensor, path: Tensor) -> Tensor:
        pose, path = annotate.input_tensors("tracker", {"pose": pose, "path": path})
        away = path - pose[:, :2]
        bearing = torch.atan2(away[:, 1:], away[:, :1]) - pose[:, 2:]
        bearing = torch.atan2(bearing.sin(), bearing.cos())
        forward = away.norm(dim=1, keepdim=True).clamp(max=1.0) * bearing.cos().clamp(min=0.0)
        command = torch.cat((forward, 1.5 * bearing), dim=1)
        annotate.output_tensors("tracker", {"command": command}, export_with=self.backend)
        return command

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        pose = self.odometry(given["odometry/wheels"], given["odometry/gyro"], self.command)
        self.command = self.tracker(pose, given["tracker/path"])
        return {"tracker/command": self.command}


@clean("H", rec={"q": array(normal(6)), "qd": array(normal(6))}, passes=4, backends=("jit", "onnx"))
class BkNumpyImpedance:
    """Impedance in NumPy around a small network in torch, limits by np.clip."""

    def __init__(self) -> None:
        self.home = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4], dtype=np.float32)
        self.kp = np.diag([60, 60, 40, 40, 20, 20]).astype(np.float32)
        self.kd = np.sqrt(self.kp) * np.float32(1.4)
        self.net = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 6)).eval()
        self.limits = np.array([87, 87, 50, 50, 12, 12], dtype=np.float32)

    def __call__(self, q: np.ndarray, qd: np.ndarray) -> dict[str, Any]:
        state = np.concatenate([q - self.home, qd * np.float32(0.1)])
        with torch.no_grad():
            offset = self.net(torch.from_numpy(state).unsqueeze(0)).squeeze(0).numpy()
        tau = self.kp @ (self.home + np.float32(0.1) * offset - q) - self.kd @ qd
        return {"tau": np.clip(tau, -self.limits, self.limits)}


@clean(
    "A",
    style="own",
    rec={"delay/action": normal(1, 4)},
    passes=6,
    backends=("jit", "onnx"),
)
class BkActionLatency:
    """Actions that leave two ticks late through a deque, with a motor model behind them."""

    def __init__(self, backend: str, delay: int = 2) -> None:
        self.backend = backend
        self.queue = collections.deque(
            (torch.zeros(1, 4) for _ in range(delay + 1)), maxlen=delay + 1
        )
        self.motor = torch.zeros(1, 4)
        self.slow_steps = 0

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        began = time.monotonic()
        action = annotate.input_tensors("delay", {"action": given["delay/action"]})
        self.queue.append(action.clamp(-1, 1))
        late = self.queue[0]
        self.motor = self.motor + 0.3 * (late - self.motor)
        torque = 20.0 * torch.tanh(self.motor)
        annotate.output_tensors("delay", {"torque": torque}, export_with=self.backend)
        if time.monotonic() - began > 0.02:
            self.slow_steps += 1
            warnings.warn(f"missed the deadline {self.slow_steps} times", stacklevel=2)
        return {"delay/torque": torque}


class _Controller:
    """A base whose hooks the robots override."""

    gains: ClassVar[dict[str, float]] = {"hip": 40.0, "thigh": 50.0, "calf": 60.0}

    def __init__(self) -> None:
        self.kp = torch.tensor(list(self.gains.values())).repeat(4)
        self.kd = 0.02 * self.kp
        self.strength = torch.ones(12)

    def targets(self, action: Tensor) -> Tensor:
        return 0.25 * action

    def torques(self, action: Tensor, q: Tensor, qd: Tensor) -> Tensor:
        return self.kp * (self.targets(action) - q) - self.kd * qd

    def __call__(self, action: Tensor, q: Tensor, qd: Tensor) -> Tensor:
        assert action.shape[-1] == q.shape[-1] == qd.shape[-1] == 12, "twelve joints"
        return self.strength * self.torques(action, q, qd)


@clean(
    "B",
    rec={"action": normal(1, 12), "q": normal(1, 12), "qd": normal(1, 12, s=5.0)},
    passes=3,
    backends=("jit", "onnx", "pt2"),
)
class BkInheritedActuator(_Controller):
    """A legged robot's PD through inheritance, clipped by the curve of its motors."""

    gains: ClassVar[dict[str, float]] = {**_Controller.gains, "calf": 70.0}

    def __init__(self) -> None:
        super().__init__()
        self.default = torch.tensor([0.0, 0.8, -1.6]).repeat(4)
        self.saturation, self.velocity_limit, self.effort = 35.0, 21.0, 28.0

    def targets(self, action: Tensor) -> Tensor:
        return self.default + super().targets(action.clip(-4, 4))

    def torques(self, action: Tensor, q: Tensor, qd: Tensor) -> Tensor:
        tau = super().torques(action, q, qd)
        top = (self.saturation * (1.0 - qd / self.velocity_limit)).clip(min=0.0, max=self.effort)
        low = (self.saturation * (-1.0 - qd / self.velocity_limit)).clip(min=-self.effort, max=0.0)
        return torch.clip(tau, min=low, max=top)


@dataclass
class _Side:
    name: str
    mirror: float
    filtered: Tensor = field(default_factory=lambda: torch.zeros(1, 7))


@clean(
    "G",
    style="own",
    rec={
        "left_arm/wrench": normal(1, 6),
        "left_arm/q": normal(1, 7),
        "right_arm/wrench": normal(1, 6),
        "right_arm/q": normal(1, 7),
    },
    passes=4,
    backends=("jit", "onnx"),
)
class BkTwoArmAdmittance:
    """Two arms in a loop with one function for both, each with its own memory; then a coupling."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.sides = [_Side("left_arm", 1.0), _Side("right_arm", -1.0)]
        self.map = torch.randn(6, 7) * 0.1

    def admit(self, side: _Side, wrench: Tensor, q: Tensor) -> Tensor:
        wrench, q = annotate.input_tensors(side.name, {"wrench": wrench, "q": q})
        dead = F.softshrink(wrench, 0.3)
        step = torch.tanh(dead @ self.map) * torch.tensor([side.mirror] + [1.0] * 6)
        side.filtered = 0.85 * side.filtered + 0.15 * step
        target = q + 0.1 * side.filtered
        annotate.output_tensors(side.name, {"target": target}, export_with=self.backend)
        return target

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        targets = {
            s.name: self.admit(s, given[f"{s.name}/wrench"], given[f"{s.name}/q"])
            for s in self.sides
        }
        left, right = annotate.input_tensors(
            "couple", {"left": targets["left_arm"], "right": targets["right_arm"]}
        )
        gap = (left - right).clamp(-0.5, 0.5)
        out = {"left_target": left - 0.1 * gap, "right_target": right + 0.1 * gap}
        annotate.output_tensors("couple", out, export_with=self.backend)
        return {f"couple/{key}": value for key, value in out.items()}


# Python's own functions on tensors that are kept.


@clean("A", rec={"wrench": normal(1, 6)}, passes=4, backends=("jit", "onnx"))
class BkMovingAverage:
    """A moving average of wrenches: the sum of a deque by the length of it."""

    def __init__(self, size: int = 3) -> None:
        self.window = collections.deque([torch.zeros(1, 6) for _ in range(size)], maxlen=size)

    def __call__(self, wrench: Tensor) -> Tensor:
        self.window.append(wrench)
        return sum(self.window) / len(self.window)


@clean("A", rec={"tau": normal(1, 4)}, passes=4, backends=("jit", "onnx"))
class BkFrictionModel:
    """A joint with viscous and quadratic friction, the velocity kept in a tensor."""

    def __init__(self) -> None:
        self.velocity = torch.zeros(1, 4)
        self.viscous, self.quadratic = 0.4, 0.15

    def __call__(self, tau: Tensor) -> Tensor:
        drag = (self.viscous + self.quadratic * abs(self.velocity)) * self.velocity
        self.velocity = self.velocity + 0.05 * (tau - drag)
        return self.velocity.clone()


@clean("B", rec={"patches": normal(6, 5)}, passes=3, backends=("jit", "onnx"))
class BkFootholdCandidates:
    """Footholds scored by a linear layer: the three best, with their numbers."""

    def __init__(self) -> None:
        self.score = nn.Linear(5, 1).eval()
        self.at = torch.randn(6, 2)

    def __call__(self, patches: Tensor) -> dict[str, Tensor]:
        values, index = torch.topk(self.score(patches).squeeze(-1), k=3)
        return {"at": self.at[index], "score": values, "index": index}
