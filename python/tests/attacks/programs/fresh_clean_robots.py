"""Controllers, estimators, kinematics and drivers of robots, all of them clean."""

from __future__ import annotations

import abc
import argparse
import functools
import json
import logging
import math
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import array, double, flags, normal, uniform
from attacks.registry import clean

logger = logging.getLogger("robot")


def wrap_to_pi(angle: Tensor) -> Tensor:
    return torch.remainder(angle + math.pi, 2.0 * math.pi) - math.pi


def quat_conjugate(q: Tensor) -> Tensor:
    return torch.cat([q[..., :1], -q[..., 1:]], dim=-1)


def quat_multiply(a: Tensor, b: Tensor) -> Tensor:
    aw, av = a[..., :1], a[..., 1:]
    bw, bv = b[..., :1], b[..., 1:]
    w = aw * bw - (av * bv).sum(-1, keepdim=True)
    v = aw * bv + bw * av + torch.linalg.cross(av, bv)
    return torch.cat([w, v], dim=-1)


def quat_apply(q: Tensor, v: Tensor) -> Tensor:
    t = 2.0 * torch.linalg.cross(q[..., 1:], v)
    return v + q[..., :1] * t + torch.linalg.cross(q[..., 1:], t)


def skew(v: Tensor) -> Tensor:
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=-1).reshape(*v.shape[:-1], 3, 3)


class MetricLogger:
    """Means of scalars by name, as everybody has one."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = defaultdict(list)

    def add(self, **scalars: Tensor | float) -> None:
        for name, value in scalars.items():
            self.values[name].append(float(value))

    def report(self) -> str:
        return ", ".join(f"{k}={sum(v) / len(v):.3f}" for k, v in self.values.items())


# --- PID and friends ------------------------------------------------------------------------------


@dataclass
class FcPidGains:
    kp: tuple[float, ...] = (4.0, 4.0, 2.0)
    ki: tuple[float, ...] = (0.5, 0.5, 0.1)
    kd: tuple[float, ...] = (0.02, 0.02, 0.0)
    i_limit: float = 0.3
    dt: float = 0.004


class FcVectorPid:
    def __init__(self, gains: FcPidGains) -> None:
        self.kp, self.ki, self.kd = (torch.tensor(g) for g in (gains.kp, gains.ki, gains.kd))
        self.limit, self.dt = gains.i_limit, gains.dt
        self.reset()

    def reset(self) -> None:
        self.integral = torch.zeros(3)
        self.last_measurement = torch.zeros(3)

    def update(self, error: Tensor, measurement: Tensor) -> Tensor:
        self.integral = torch.clamp(self.integral + error * self.dt, -self.limit, self.limit)
        derivative = -(measurement - self.last_measurement) / self.dt
        self.last_measurement = measurement
        return self.kp * error + self.ki * self.integral + self.kd * derivative


@clean(
    "H",
    passes=5,
    rec={"attitude": normal(3, s=0.3), "rates": normal(3), "setpoint": normal(3, s=0.3)},
    backends=("jit", "onnx"),
)
class FcPidCascadeDrone:
    """A quadrotor's angle loop around its rate loop, then a mixer."""

    def __init__(self) -> None:
        self.angle = FcVectorPid(FcPidGains(kp=(6.0, 6.0, 3.0), ki=(0.0,) * 3, kd=(0.0,) * 3))
        self.rate = FcVectorPid(FcPidGains(kp=(0.15, 0.15, 0.2)))
        self.mixer = torch.tensor(
            [[-1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, -1.0]]
        )

    def __call__(self, attitude: Tensor, rates: Tensor, setpoint: Tensor) -> dict[str, Tensor]:
        rate_sp = self.angle.update(wrap_to_pi(setpoint - attitude), attitude).clamp(-3.5, 3.5)
        torque = self.rate.update(rate_sp - rates, rates)
        motors = (0.5 + self.mixer @ torque).clamp(0.0, 1.0)
        return {"motors": motors, "rate_setpoint": rate_sp}


@clean(
    "H",
    style="own",
    passes=4,
    rec={"pid/error": normal(1, 6), "pid/velocity": normal(1, 6)},
    backends="jit",
)
class FcOwnPidWithMetrics:
    """A PID whose driver keeps metrics, prints timings and counts its ticks."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend = backend
        self.integral = torch.zeros(1, 6)
        self.metrics, self.ticks = MetricLogger(), 0

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        began = time.perf_counter()
        error, velocity = annotate.input_tensors(
            "pid", {"error": given["pid/error"], "velocity": given["pid/velocity"]}
        )
        self.integral = (self.integral + 0.01 * error).clamp(-1.0, 1.0)
        effort = 12.0 * error + 3.0 * self.integral - 0.8 * velocity
        annotate.output_tensors("pid", {"effort": effort}, export_with=self.backend)
        self.ticks += 1
        self.metrics.add(rms=error.pow(2).mean().sqrt(), peak=effort.abs().max())
        elapsed_ms = 1e3 * (time.perf_counter() - began)
        print(f"[{self.ticks:04d}] {elapsed_ms:.2f} ms {self.metrics.report()}")
        return {"pid/effort": effort}


@clean(
    "H",
    style="own",
    passes=4,
    rec={"estimator/accel": normal(3, s=0.3), "estimator/gyro": normal(3, s=0.5)},
    backends="jit",
)
class FcOwnImuThenControl:
    """A complementary filter is one node, the attitude controller the next."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend = backend
        self.rpy = torch.zeros(2)
        self.gravity = torch.tensor([0.0, 0.0, 9.81])
        self.history: list[np.ndarray] = []

    def estimate(self, accel: Tensor, gyro: Tensor) -> Tensor:
        a = accel + self.gravity
        roll = torch.atan2(a[1], a[2])
        pitch = torch.atan2(-a[0], torch.sqrt(a[1] ** 2 + a[2] ** 2))
        measured = torch.stack([roll, pitch])
        self.rpy = 0.98 * (self.rpy + gyro[:2] * 0.005) + 0.02 * measured
        return self.rpy

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        accel, gyro = annotate.input_tensors(
            "estimator",
            {"accel": given["estimator/accel"], "gyro": given["estimator/gyro"]},
        )
        tilt = self.estimate(accel, gyro)
        annotate.output_tensors("estimator", {"tilt": tilt}, export_with=self.backend)
        self.history.append(tilt.numpy().copy())  # for the plot at the end

        tilt = annotate.input_tensors("control", {"tilt": tilt})
        torque = torch.clamp(-8.0 * tilt, -1.0, 1.0)
        annotate.output_tensors("control", {"torque": torque}, export_with=self.backend)
        return {"control/torque": torque}


class FcCartPoleSim:
    """A cart-pole in torch, the world of the tests."""

    def __init__(self) -> None:
        self.state = torch.tensor([[0.0, 0.0, 0.05, 0.0]])
        self.dt = 0.02

    def observe(self) -> Tensor:
        return self.state.clone()

    def step(self, force: Tensor) -> Tensor:
        x, xd, th, thd = self.state.unbind(-1)
        temp = (force[:, 0] + 0.05 * thd**2 * torch.sin(th)) / 1.1
        thdd = (9.8 * torch.sin(th) - torch.cos(th) * temp) / (0.5 * (4 / 3 - 0.1 / 1.1))
        xdd = temp - 0.05 * thdd * torch.cos(th) / 1.1
        self.state = self.state + self.dt * torch.stack([xd, xdd, thd, thdd], dim=-1)
        return 1.0 - th.abs()


@clean(
    "H",
    style="own",
    passes=5,
    rec={"kick/force": normal(1, 1)},
    fresh={"policy/obs": normal(1, 4)},
    backends=("jit", "onnx"),
)
class FcOwnCartPoleClosedLoop:
    """A simulator in torch beside the policy; a log, where there is one, is replayed instead."""

    def __init__(self, backend: str = "jit") -> None:
        torch.manual_seed(3)
        self.backend = backend
        self.env = FcCartPoleSim()
        self.policy = nn.Sequential(nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 1)).eval()
        self.episode_return = 0.0

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = given["policy/obs"] if "policy/obs" in given else self.env.observe()
        obs = annotate.input_tensors("policy", {"obs": obs})
        force = 10.0 * torch.tanh(self.policy(obs))
        annotate.output_tensors("policy", {"force": force}, export_with=self.backend)
        reward = self.env.step(force + given["kick/force"])
        self.episode_return += reward.item()
        logger.info("return %.2f", self.episode_return)
        return {"policy/force": force}


@clean(
    "H",
    style="own",
    passes=5,
    rec={"kick/torque": normal(2, s=0.2)},
    fresh={"controller/q": normal(2), "controller/qd": normal(2)},
    backends="jit",
)
class FcOwnNumpyArmSim:
    """The dynamics of a two-link arm in NumPy feed the next measurement."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend = backend
        self.q, self.qd = np.array([0.3, -0.2]), np.zeros(2)
        self.goal = torch.tensor([0.8, 0.4])
        self.trace: list[tuple[float, float]] = []

    def integrate(self, tau: np.ndarray, dt: float = 0.01) -> None:
        c2 = np.cos(self.q[1])
        mass = np.array([[1.2 + 0.4 * c2, 0.3 + 0.2 * c2], [0.3 + 0.2 * c2, 0.3]])
        coriolis = 0.2 * np.sin(self.q[1]) * np.array([-(self.qd[1] ** 2), self.qd[0] ** 2])
        qdd = np.linalg.solve(mass, tau - coriolis - 0.1 * self.qd)
        self.qd = self.qd + dt * qdd
        self.q = self.q + dt * self.qd

    def sense(self, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        if "controller/q" in given:
            return given["controller/q"], given["controller/qd"]
        return torch.from_numpy(self.q).float(), torch.from_numpy(self.qd).float()

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        q, qd = self.sense(given)
        q, qd = annotate.input_tensors("controller", {"q": q, "qd": qd})
        tau = 25.0 * (self.goal - q) - 4.0 * qd
        tau = torch.max(torch.min(tau, torch.tensor([20.0, 10.0])), torch.tensor([-20.0, -10.0]))
        annotate.output_tensors("controller", {"tau": tau}, export_with=self.backend)
        self.integrate(tau.numpy().astype(np.float64) + given["kick/torque"].numpy())
        self.trace.append((float(self.q[0]), float(self.q[1])))
        return {"controller/tau": tau}


@dataclass(frozen=True)
class FcLqrConfig:
    dt: float = 0.02
    q_diag: tuple[float, ...] = (10.0, 1.0, 100.0, 1.0)
    r: float = 0.1
    iterations: int = 80
    u_max: float = 15.0


@clean(
    "H",
    passes=3,
    style="method",
    rec={"state": normal(1, 4), "reference": normal(1, 4)},
    backends=("jit", "pt2"),
)
class FcLqrFromDataclass:
    """LQR by value iteration in the constructor, from a frozen dataclass."""

    def __init__(self, cfg: FcLqrConfig = FcLqrConfig()) -> None:
        self.cfg = cfg
        a = torch.eye(4) + cfg.dt * torch.tensor(
            [[0.0, 1, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1], [0, 0, 11, 0]]
        )
        b = cfg.dt * torch.tensor([[0.0], [1.0], [0.0], [-1.0]])
        p = q = torch.diag(torch.tensor(cfg.q_diag))
        for _ in range(cfg.iterations):
            k = torch.linalg.inv(cfg.r + b.T @ p @ b) @ b.T @ p @ a
            p = q + a.T @ p @ (a - b @ k)
        self.k = k
        assert self.k.shape == (1, 4), "one input, four states"

    def step(self, state: Tensor, reference: Tensor) -> Tensor:
        u = -F.linear(state - reference, self.k)
        u = u.clamp(-self.cfg.u_max, self.cfg.u_max)
        return u


@clean(
    "H",
    style="own",
    passes=4,
    rec={"lqi/y": double(normal(2)), "lqi/r": double(normal(2))},
    backends="jit",
)
class FcOwnLqiFloat64:
    """LQR with integral action in float64 and back-calculation against wind-up."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend, self.dtype = backend, torch.float64
        self.kx = torch.tensor([[2.1, 0.3], [0.2, 1.9]], dtype=self.dtype)
        self.ki = torch.tensor([[0.8, 0.0], [0.0, 0.7]], dtype=self.dtype)
        self.integral = torch.zeros(2, dtype=self.dtype)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        y, r = annotate.input_tensors("lqi", {"y": given["lqi/y"], "r": given["lqi/r"]})
        if y.dtype != self.dtype or y.shape != (2,):
            raise TypeError(f"wanted two doubles, got {y.dtype} {tuple(y.shape)}")
        wanted = -self.kx @ y + self.ki @ self.integral
        u = wanted.clamp(-1.5, 1.5)
        self.integral += 0.05 * (r - y) + 0.2 * (u - wanted)
        annotate.output_tensors("lqi", {"u": u}, export_with=self.backend)
        return {"lqi/u": u}


@clean(
    "H",
    passes=3,
    rec={"q": normal(7, s=0.4), "qd": normal(7), "x_err": normal(6, s=0.1)},
    backends="jit",
)
class FcImpedanceNullspace:
    """Cartesian impedance of a seven-axis arm with a damped null-space posture task."""

    def __init__(self) -> None:
        self.stiffness = torch.diag(torch.tensor([400.0, 400, 400, 30, 30, 30]))
        self.damping = 2.0 * 0.7 * torch.sqrt(self.stiffness)
        self.rest = torch.tensor([0.0, -0.78, 0.0, -2.35, 0.0, 1.57, 0.78])
        self.axes = torch.tensor([[0.0, 0, 1], [0, 1, 0]]).repeat(4, 1)[:7]
        self.arms = torch.linspace(0.9, 0.1, 7)

    def jacobian(self, q: Tensor) -> Tensor:
        angles = torch.cumsum(q, 0)
        lever = torch.stack([torch.cos(angles), torch.sin(angles), torch.ones(7)], 1)
        linear = torch.linalg.cross(self.axes, lever * self.arms[:, None])
        return torch.cat([linear, self.axes], dim=1).T

    def __call__(self, q: Tensor, qd: Tensor, x_err: Tensor) -> Tensor:
        j = self.jacobian(q)
        wrench = self.stiffness @ x_err - self.damping @ (j @ qd)
        jjt = j @ j.T + 1e-2 * torch.eye(6)
        j_bar = torch.linalg.solve(jjt, j).T
        posture = 5.0 * (self.rest - q) - 1.0 * qd
        null = posture - j.T @ (j_bar.T @ posture)
        return j.T @ wrench + null


# --- Model predictive control ---------------------------------------------------------------------


def condensed(a: Tensor, b: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    """The prediction matrices of a linear system."""
    n, m = b.shape
    powers = [torch.eye(n)]
    for _ in range(horizon):
        powers.append(a @ powers[-1])
    phi = torch.cat(powers[1:])
    gamma = torch.zeros(n * horizon, m * horizon)
    for row in range(horizon):
        for col in range(row + 1):
            gamma[n * row : n * (row + 1), m * col : m * (col + 1)] = powers[row - col] @ b
    return phi, gamma


@clean("A", passes=4, rec={"x0": normal(2), "goal": normal(2)}, backends=("jit", "onnx"))
class FcMpcAdmm:
    """Box-constrained MPC by twenty ADMM sweeps; the splitting variables are kept warm."""

    def __init__(self, horizon: int = 8) -> None:
        a, b = torch.tensor([[1.0, 0.1], [0.0, 0.98]]), torch.tensor([[0.0], [0.1]])
        self.phi, self.gamma = condensed(a, b, horizon)
        self.rho = 1.0
        hessian = self.gamma.T @ self.gamma + 0.05 * torch.eye(horizon)
        self.kkt_inverse = torch.linalg.inv(hessian + self.rho * torch.eye(horizon))
        self.z, self.dual = torch.zeros(horizon), torch.zeros(horizon)
        self.horizon = horizon

    def __call__(self, x0: Tensor, goal: Tensor) -> dict[str, Tensor]:
        error = self.phi @ x0 - goal.repeat(self.horizon)
        linear = self.gamma.T @ error
        z, dual = self.z, self.dual
        for _ in range(20):
            u = self.kkt_inverse @ (self.rho * (z - dual) - linear)
            z = torch.clamp(u + dual, -1.0, 1.0)
            dual = dual + u - z
        self.z, self.dual = z, dual
        return {"u": z[:1], "residual": (u - z).norm()}


@clean(
    "H",
    style="own",
    passes=4,
    rec={"mppi/state": normal(4, s=0.5), "mppi/goal": normal(2, s=0.5)},
    backends="jit",
)
class FcOwnMppiFixedNoise:
    """MPPI over perturbations drawn once from a seeded generator; the plan shifts every tick."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend, self.horizon, self.samples = backend, 6, 32
        generator = torch.Generator().manual_seed(11)
        self.noise = 0.5 * torch.randn(self.samples, self.horizon, 2, generator=generator)
        self.plan = torch.zeros(self.horizon, 2)

    def rollout(self, state: Tensor, controls: Tensor, goal: Tensor) -> Tensor:
        pos = state[:2].expand(self.samples, 2)
        vel = state[2:].expand(self.samples, 2)
        cost = torch.zeros(self.samples)
        for k in range(self.horizon):
            vel = vel + 0.1 * controls[:, k]
            pos = pos + 0.1 * vel
            cost = cost + ((pos - goal) ** 2).sum(-1) + 0.01 * (controls[:, k] ** 2).sum(-1)
        return cost

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        state, goal = annotate.input_tensors(
            "mppi", {"state": given["mppi/state"], "goal": given["mppi/goal"]}
        )
        controls = (self.plan + self.noise).clamp(-2.0, 2.0)
        cost = self.rollout(state, controls, goal)
        weights = torch.softmax(-(cost - cost.min()) / 0.7, dim=0)
        plan = torch.einsum("s,sha->ha", weights, controls)
        action = plan[0].clone()
        self.plan = torch.cat([plan[1:], torch.zeros(1, 2)])
        annotate.output_tensors("mppi", {"action": action}, export_with=self.backend)
        logger.debug("best %.3f, effective %.1f", cost.min(), 1.0 / weights.pow(2).sum())
        return {"mppi/action": action}


# --- Estimators -----------------------------------------------------------------------------------


@clean(
    "A", passes=4, rec={"odom": normal(2, s=0.3), "ranges": uniform(0.5, 5.0, 3)}, backends="jit"
)
class FcEkfBeacons:
    """An EKF of a unicycle with ranges to three beacons."""

    def __init__(self) -> None:
        self.beacons = torch.tensor([[5.0, 0.0], [0.0, 5.0], [-4.0, -4.0]])
        self.mean = torch.tensor([0.1, -0.2, 0.0])
        self.cov = torch.diag(torch.tensor([0.5, 0.5, 0.1]))
        self.q = torch.diag(torch.tensor([0.02, 0.02, 0.01]))
        self.r = 0.5 * torch.eye(3)

    def __call__(self, odom: Tensor, ranges: Tensor) -> dict[str, Tensor]:
        v, w, theta = odom[0], odom[1], self.mean[2]
        dt = 0.1
        mean = self.mean + dt * torch.stack([v * theta.cos(), v * theta.sin(), w])
        jac = torch.eye(3)
        jac[0, 2] = -dt * v * theta.sin()
        jac[1, 2] = dt * v * theta.cos()
        cov = jac @ self.cov @ jac.T + self.q
        offset = mean[:2] - self.beacons
        predicted = offset.norm(dim=1)
        h = torch.cat([offset / predicted.clamp(min=0.1)[:, None], torch.zeros(3, 1)], dim=1)
        gain = torch.linalg.solve(h @ cov @ h.T + self.r, h @ cov).T
        self.mean = mean + gain @ (0.1 * (ranges - predicted))
        self.cov = (torch.eye(3) - gain @ h) @ cov
        self.cov = 0.5 * (self.cov + self.cov.T)
        return {"pose": self.mean, "sigma": torch.sqrt(torch.diagonal(self.cov).clamp(min=1e-9))}


@clean("A", passes=4, rec={"z": double(normal(1))}, backends="jit")
class FcUkfPendulum:
    """An unscented filter of a pendulum, with Cholesky, in float64."""

    def __init__(self, alpha: float = 0.5, kappa: float = 0.0, beta: float = 2.0) -> None:
        n, f = 2, torch.float64
        lam = alpha**2 * (n + kappa) - n
        self.scale = n + lam
        self.wm = torch.full((2 * n + 1,), 0.5 / (n + lam), dtype=f)
        self.wc = self.wm.clone()
        self.wm[0] = lam / (n + lam)
        self.wc[0] = self.wm[0] + (1 - alpha**2 + beta)
        self.x, self.P = torch.tensor([0.1, 0.0], dtype=f), 0.1 * torch.eye(n, dtype=f)
        self.Q, self.R = 1e-3 * torch.eye(n, dtype=f), torch.tensor([[0.05]], dtype=f)

    def sigma_points(self) -> Tensor:
        root = torch.linalg.cholesky(self.scale * self.P)
        return torch.cat([self.x[None], self.x + root.T, self.x - root.T])

    @staticmethod
    def dynamics(s: Tensor) -> Tensor:
        theta, omega = s[:, 0], s[:, 1]
        return torch.stack([theta + 0.05 * omega, omega - 0.05 * 9.81 * torch.sin(theta)], dim=1)

    def __call__(self, z: Tensor) -> Tensor:
        points = self.dynamics(self.sigma_points())
        mean = self.wm @ points
        spread = points - mean
        cov = torch.einsum("i,ij,ik->jk", self.wc, spread, spread) + self.Q
        measured = torch.sin(points[:, :1])
        expected = self.wm @ measured
        dz = measured - expected
        s = torch.einsum("i,ij,ik->jk", self.wc, dz, dz) + self.R
        cross = torch.einsum("i,ij,ik->jk", self.wc, spread, dz)
        k = cross / s
        self.x = mean + k @ (0.2 * z - expected)
        self.P = cov - k @ s @ k.T
        return self.x


@clean(
    "H",
    style="own",
    passes=4,
    rec={"ahrs/gyro": normal(1, 3, s=0.5), "ahrs/accel": normal(1, 3, s=0.3)},
    backends=("jit", "onnx"),
)
class FcOwnMadgwick:
    """Madgwick's filter, with a check of the quaternion's norm that raises."""

    def __init__(self, backend: str = "jit", beta: float = 0.1, rate_hz: int = 100) -> None:
        self.backend, self.beta, self.dt = backend, beta, 1.0 / rate_hz
        self.q = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
        self.warned = 0

    def gradient(self, q: Tensor, a: Tensor) -> Tensor:
        w, x, y, z = q.unbind(-1)
        f1 = 2 * (x * z - w * y) - a[:, 0]
        f2 = 2 * (w * x + y * z) - a[:, 1]
        f3 = 2 * (0.5 - x**2 - y**2) - a[:, 2]
        return torch.stack(
            [
                -2 * y * f1 + 2 * x * f2,
                2 * z * f1 + 2 * w * f2 - 4 * x * f3,
                -2 * w * f1 + 2 * z * f2 - 4 * y * f3,
                2 * x * f1 + 2 * y * f2,
            ],
            dim=-1,
        )

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        gyro, accel = annotate.input_tensors(
            "ahrs", {"gyro": given["ahrs/gyro"], "accel": given["ahrs/accel"]}
        )
        accel = F.normalize(accel + torch.tensor([0.0, 0.0, 9.81]), dim=-1)
        step = F.normalize(self.gradient(self.q, accel), dim=-1, eps=1e-3)
        rate = 0.5 * quat_multiply(self.q, F.pad(gyro, (1, 0))) - self.beta * step
        self.q = F.normalize(self.q + rate * self.dt, dim=-1)
        if not torch.allclose(self.q.norm(dim=-1), torch.ones(1), atol=1e-3):
            raise RuntimeError("the attitude is no unit quaternion any more")
        annotate.output_tensors("ahrs", {"quat": self.q}, export_with=self.backend)
        return {"ahrs/quat": self.q}


@clean(
    "H",
    passes=3,
    rec={"rotvec": normal(2, 3), "omega": normal(2, 3), "target": normal(2, 3)},
    backends="jit",
)
class FcSo3GeometricControl:
    """Lee's geometric attitude controller: exponential map and the vee of the error."""

    def __init__(self) -> None:
        self.inertia = torch.diag(torch.tensor([0.02, 0.02, 0.04]))

    @staticmethod
    def exp(rotvec: Tensor) -> Tensor:
        angle = rotvec.norm(dim=-1, keepdim=True).clamp(min=1e-6).unsqueeze(-1)
        k = skew(rotvec) / angle
        return torch.eye(3) + torch.sin(angle) * k + (1 - torch.cos(angle)) * (k @ k)

    @staticmethod
    def vee(m: Tensor) -> Tensor:
        return torch.stack([m[..., 2, 1], m[..., 0, 2], m[..., 1, 0]], dim=-1)

    def __call__(self, rotvec: Tensor, omega: Tensor, target: Tensor) -> Tensor:
        r, rd = self.exp(rotvec), self.exp(target)
        error = 0.5 * self.vee(rd.mT @ r - r.mT @ rd)
        gyroscopic = torch.linalg.cross(omega, omega @ self.inertia)
        return -8.0 * error - 1.5 * omega + gyroscopic


@clean("H", passes=3, style="method", rec={"ee_rot6d": normal(4, 6)}, backends="onnx")
def FcRotation6dToMatrix(ee_rot6d: Tensor) -> tuple[Tensor, Tensor]:
    """Zhou's six numbers to a rotation matrix by Gram-Schmidt, and its quaternion's real part."""
    a1, a2 = ee_rot6d[..., :3], ee_rot6d[..., 3:]
    b1 = F.normalize(a1, dim=-1)
    b2 = F.normalize(a2 - (b1 * a2).sum(-1, keepdim=True) * b1, dim=-1)
    b3 = torch.cross(b1, b2, dim=-1)
    matrix = torch.stack((b1, b2, b3), dim=-2)
    trace = matrix.diagonal(dim1=-2, dim2=-1).sum(-1)
    real = 0.5 * torch.sqrt(torch.clamp(1.0 + trace, min=1e-6))
    return matrix, real


@clean(
    "H",
    style="own",
    passes=4,
    rec={"slerp/goal": normal(1, 4), "slerp/blend": uniform(0.0, 1.0, 1, 1)},
    fresh={"slerp/blend": uniform(0.0, 1.0, 1, 1)},
    backends="jit",
)
class FcOwnSlerpTarget:
    """Moves an orientation target by slerp; the shorter way is taken with torch.where."""

    def __init__(self, backend: str = "jit") -> None:
        self.current = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
        self.node = functools.partial(annotate.output_tensors, "slerp", export_with=backend)

    @staticmethod
    def slerp(a: Tensor, b: Tensor, t: Tensor) -> Tensor:
        dot = (a * b).sum(-1, keepdim=True)
        b = torch.where(dot < 0, -b, b)
        theta = torch.acos(dot.abs().clamp(max=0.9999))
        s = torch.sin(theta)
        mixed = torch.sin((1 - t) * theta) / s * a + torch.sin(t * theta) / s * b
        return mixed / mixed.norm(dim=-1, keepdim=True)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        goal, blend = annotate.input_tensors(
            "slerp", {"goal": given["slerp/goal"], "blend": given["slerp/blend"]}
        )
        goal = F.normalize(goal, dim=-1)
        self.current = self.slerp(self.current, goal, 0.1 * blend)
        error = quat_multiply(goal, quat_conjugate(self.current))
        self.node({"target": self.current, "error": error[:, 1:]})
        return {"slerp/target": self.current, "slerp/error": error[:, 1:]}


# --- NumPy beside torch ---------------------------------------------------------------------------


@clean(
    "H",
    style="own",
    passes=4,
    rec={"scan/ranges": array(uniform(0.1, 12.0, 64))},
    backends=("jit", "onnx"),
)
class FcOwnNumpyLidarBins:
    """A laser scan is clipped and binned in NumPy, and goes into a small network."""

    def __init__(self, backend: str = "jit") -> None:
        torch.manual_seed(1)
        self.backend, self.max_range = backend, 10.0
        self.net = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 2)).eval()

    def __call__(self, given: dict[str, np.ndarray]) -> dict[str, Tensor]:
        ranges = annotate.input_tensors("scan", {"ranges": given["scan/ranges"]})
        assert isinstance(ranges, np.ndarray) and ranges.shape == (64,)
        ranges = np.clip(ranges, 0.15, self.max_range)
        bins = ranges.reshape(16, 4).min(axis=1) / self.max_range
        features = torch.from_numpy(1.0 - bins).float().unsqueeze(0)
        with torch.no_grad():
            twist = torch.tanh(self.net(features))
        annotate.output_tensors("scan", {"twist": twist}, export_with=self.backend)
        return {"scan/twist": twist}


@clean(
    "H",
    style="own",
    passes=4,
    rec={
        "obs/joint_pos": array(normal(12)),
        "obs/joint_vel": array(normal(12)),
        "obs/gravity": array(normal(3)),
        "obs/command": array(normal(3)),
    },
    backends="jit",
)
class FcOwnNumpyObsBuilder:
    """The deploy script of a quadruped: the observation is written into slices of an array."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend = backend
        self.default = np.array([0.1, 0.8, -1.5] * 4, dtype=np.float32)
        self.action = np.zeros(12, dtype=np.float32)
        torch.manual_seed(5)
        self.policy = nn.Sequential(nn.Linear(42, 32), nn.ELU(), nn.Linear(32, 12)).eval()

    def __call__(self, given: dict[str, np.ndarray]) -> dict[str, Tensor]:
        names = ("joint_pos", "joint_vel", "gravity", "command")
        pos, vel, grav, cmd = annotate.input_tensors("obs", {n: given[f"obs/{n}"] for n in names})
        obs = np.zeros(42, dtype=np.float32)
        obs[:3] = grav
        obs[3:6] = cmd * np.array([2.0, 2.0, 0.25], dtype=np.float32)
        obs[6:18] = pos - self.default
        obs[18:30] = vel * 0.05
        obs[30:] = self.action
        with torch.inference_mode():
            action = self.policy(torch.from_numpy(obs).unsqueeze(0)).squeeze(0)
        self.action = action.numpy()
        target = torch.from_numpy(self.default) + 0.25 * action
        annotate.output_tensors("obs", {"target": target}, export_with=self.backend)
        return {"obs/target": target}


@clean("H", style="own", passes=4, rec={"notch/x": array(double(normal(3)))}, backends="jit")
class FcOwnNumpyBiquad:
    """A notch filter in NumPy whose two delays are arrays."""

    def __init__(self, backend: str = "jit", f0: float = 12.0, fs: float = 200.0) -> None:
        self.backend = backend
        w, q = 2 * np.pi * f0 / fs, 2.0
        alpha = np.sin(w) / (2 * q)
        self.b = np.array([1.0, -2 * np.cos(w), 1.0]) / (1 + alpha)
        self.a = np.array([1 + alpha, -2 * np.cos(w), 1 - alpha]) / (1 + alpha)
        self.z1, self.z2 = np.zeros(3), np.zeros(3)

    def __call__(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        x = annotate.input_tensors("notch", {"x": given["notch/x"]})
        y = self.b[0] * x + self.z1
        self.z1 = self.b[1] * x - self.a[1] * y + self.z2
        self.z2 = self.b[2] * x - self.a[2] * y
        annotate.output_tensors("notch", {"y": y}, export_with=self.backend)
        return {"notch/y": y}


# --- Histories and windows ------------------------------------------------------------------------


@clean("H", style="own", passes=8, rec={"policy/obs": normal(1, 5)}, backends=("jit", "onnx"))
class FcOwnDequeHistory:
    """The last three observations in a deque that starts with zeros."""

    def __init__(self, backend: str = "jit", length: int = 3) -> None:
        torch.manual_seed(2)
        self.backend = backend
        self.queue: deque[Tensor] = deque([torch.zeros(1, 5)] * length, maxlen=length)
        self.net = nn.Sequential(nn.Linear(5 * length, 16), nn.Tanh(), nn.Linear(16, 3)).eval()

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("policy", {"obs": given["policy/obs"]})
        self.queue.append(obs)
        action = self.net(torch.cat(list(self.queue), dim=-1))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


@clean("A", passes=5, style="method", rec={"obs": normal(2, 6)}, backends=("jit", "pt2"))
class FcRolledHistoryInPlace:
    """A history that is rolled and written at its end, flattened newest last."""

    def __init__(self) -> None:
        self.buffer = torch.zeros(2, 4, 6)
        self.head = nn.Linear(24, 4)

    def step(self, obs: Tensor) -> Tensor:
        self.buffer = torch.roll(self.buffer, shifts=-1, dims=1)
        self.buffer[:, -1] = obs
        action = self.head(self.buffer.flatten(1)).tanh()
        return action


@clean("A", passes=6, rec={"x": normal(4)}, backends="jit")
class FcMovingMedian:
    """A median over a window of five, against spikes of a range finder."""

    def __init__(self) -> None:
        self.window = torch.zeros(5, 4)

    def __call__(self, x: Tensor) -> dict[str, Tensor]:
        self.window = torch.cat([self.window[1:], x.unsqueeze(0)])
        median = self.window.median(dim=0).values
        mad = (self.window - median).abs().median(dim=0).values
        outlier = (x - median).abs() > 3.0 * mad + 1e-3
        return {"filtered": torch.where(outlier, median, x), "mad": mad}


@clean(
    "H",
    style="own",
    passes=6,
    rec={"decimated/obs": normal(1, 4)},
    backends="jit",
)
class FcOwnDecimatedPolicy:
    """A policy that acts every fourth tick; the tick is a tensor and the last action is held."""

    def __init__(self, backend: str = "jit") -> None:
        torch.manual_seed(9)
        self.backend, self.decimation = backend, 4
        self.tick = torch.zeros(1, dtype=torch.int64)
        self.held = torch.zeros(1, 2)
        self.net = nn.Linear(4, 2).eval()
        self.actions: list[list[float]] = []

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("decimated", {"obs": given["decimated/obs"]})
        due = (self.tick % self.decimation == 0).unsqueeze(-1)
        self.held = torch.where(due, self.net(obs), self.held)
        self.tick += 1
        annotate.output_tensors("decimated", {"action": self.held}, export_with=self.backend)
        self.actions.append(self.held[0].tolist())
        return {"decimated/action": self.held}


# --- Mobile robots --------------------------------------------------------------------------------


@clean(
    "H",
    style="own",
    passes=4,
    rec={"odometry/ticks": normal(2, s=20.0)},
    backends=("jit", "pt2"),
)
class FcOwnOdometryWithPlot:
    """Wheel odometry in float64, with the trajectory kept for a plot."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend = backend
        self.pose = torch.zeros(3, dtype=torch.float64)
        self.trajectory: list[tuple[float, ...]] = []

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        ticks = annotate.input_tensors("odometry", {"ticks": given["odometry/ticks"]})
        left, right = ticks.double() * (2 * math.pi * 0.035 / 360)
        centre, turn = (left + right) / 2, (right - left) / 0.23
        middle = self.pose[2] + turn / 2
        delta = torch.stack([centre * middle.cos(), centre * middle.sin(), turn])
        self.pose = self.pose + delta
        self.pose[2] = wrap_to_pi(self.pose[2])
        annotate.output_tensors("odometry", {"pose": self.pose}, export_with=self.backend)
        self.trajectory.append(tuple(self.pose.tolist()))
        return {"odometry/pose": self.pose}


@clean("H", passes=3, rec={"pose": normal(3), "speed": uniform(0.2, 2.0, 1)}, backends="jit")
class FcPurePursuit:
    """Pure pursuit: the nearest way point by argmin, the look-ahead by an index from tensors."""

    def __init__(self) -> None:
        s = torch.linspace(0.0, 6.0, 60)
        self.path = torch.stack([s - 3.0, torch.sin(s)], dim=-1)

    def __call__(self, pose: Tensor, speed: Tensor) -> dict[str, Tensor]:
        distance = torch.cdist(pose[None, :2], self.path)[0]
        nearest = distance.argmin()
        ahead = torch.clamp(nearest + 5, max=self.path.shape[0] - 1)
        target = self.path.index_select(0, ahead.reshape(1))[0] - pose[:2]
        local_y = -torch.sin(pose[2]) * target[0] + torch.cos(pose[2]) * target[1]
        curvature = 2.0 * local_y / target.square().sum().clamp(min=0.05)
        steer = torch.atan(0.33 * curvature).clamp(-0.5, 0.5)
        return {"steer": steer.reshape(1), "speed": speed / (1.0 + curvature.abs())}


@clean("H", passes=3, rec={"twist": normal(1, 3)}, backends=("onnx", "jit"))
class FcSwerveModules:
    """Swerve-drive inverse kinematics with desaturation of the wheel speeds."""

    MODULES = ((0.3, 0.3), (0.3, -0.3), (-0.3, 0.3), (-0.3, -0.3))

    def __init__(self, max_speed: float = 3.0) -> None:
        rows = []
        for x, y in self.MODULES:
            rows += [[1.0, 0.0, -y], [0.0, 1.0, x]]
        self.matrix = torch.tensor(rows)
        self.max_speed = max_speed

    def __call__(self, twist: Tensor) -> tuple[Tensor, Tensor]:
        velocity = (twist @ self.matrix.T).view(-1, 4, 2)
        speed = velocity.norm(dim=-1)
        scale = (self.max_speed / speed.amax(dim=1, keepdim=True).clamp(min=1e-6)).clamp(max=1.0)
        return speed * scale, torch.atan2(velocity[..., 1], velocity[..., 0])


FC_MECANUM = """
{"radius": 0.05, "lx": 0.2, "ly": 0.25, "max_rad_s": 30.0, "ramp": 2.5, "signs": [1, -1, 1, -1]}
"""


@clean("H", style="own", passes=4, rec={"base/cmd_vel": normal(3)}, backends="jit")
class FcOwnMecanumFromJson:
    """A mecanum base whose geometry is read from a JSON file before the loop."""

    def __init__(self, backend: str = "jit") -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "base.json"
            path.write_text(FC_MECANUM)
            cfg = json.loads(path.read_text())
        self.backend, self.cfg = backend, cfg
        lever = cfg["lx"] + cfg["ly"]
        self.inverse = torch.tensor(
            [[1.0, s, s * lever] for s in map(float, cfg["signs"])], dtype=torch.float32
        )
        self.inverse[2:, 2] *= -1
        self.last = torch.zeros(4)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        cmd = annotate.input_tensors("base", {"cmd_vel": given["base/cmd_vel"]})
        wanted = torch.mv(self.inverse, cmd) / self.cfg["radius"]
        wanted = wanted.clamp(-self.cfg["max_rad_s"], self.cfg["max_rad_s"])
        self.last = self.last + (wanted - self.last).clamp(-self.cfg["ramp"], self.cfg["ramp"])
        annotate.output_tensors("base", {"wheels": self.last}, export_with=self.backend)
        return {"base/wheels": self.last}


# --- Legs -----------------------------------------------------------------------------------------


@clean(
    "H",
    passes=4,
    rec={"velocity": normal(1, 2, s=0.5), "command": normal(1, 2, s=0.5)},
    backends=("jit", "onnx"),
)
class FcRaibertGait:
    """A gait clock in a tensor, stance by its phase, feet placed after Raibert."""

    def __init__(self) -> None:
        self.phase = torch.zeros(1, 1)
        self.offsets = torch.tensor([[0.0, 0.5, 0.5, 0.0]])
        hips = [[0.2, 0.13], [0.2, -0.13], [-0.2, 0.13], [-0.2, -0.13]]
        self.hips = torch.tensor(hips)

    def __call__(self, velocity: Tensor, command: Tensor) -> dict[str, Tensor]:
        self.phase = torch.fmod(self.phase + 0.02 * 1.7, 1.0)
        leg = torch.fmod(self.phase + self.offsets, 1.0)
        stance = leg < 0.6
        landing = 0.5 * 0.35 * velocity + 0.03 * (velocity - command)
        swing = torch.clamp((leg - 0.6) / 0.4, 0.0, 1.0)
        height = torch.where(stance, torch.zeros_like(leg), 0.08 * torch.sin(math.pi * swing))
        feet = self.hips + landing[:, None] * swing[..., None]
        return {"feet": torch.cat([feet, height[..., None]], dim=-1), "stance": stance.float()}


@clean(
    "H",
    passes=3,
    rec={"q": normal(6, s=0.5), "com_task": normal(2), "foot_task": normal(2)},
    backends="jit",
)
class FcTaskPriority:
    """Two tasks in strict priority, with damped inverses and a projector."""

    def __init__(self) -> None:
        torch.manual_seed(4)
        self.mix_com = torch.randn(2, 6)
        self.mix_foot = torch.randn(2, 6)
        self.limits = torch.tensor([2.0, 2.0, 2.0, 3.0, 3.0, 3.0])

    @staticmethod
    def damped_pinv(j: Tensor, damping: float = 0.05) -> Tensor:
        return j.mT @ torch.linalg.inv(j @ j.mT + damping**2 * torch.eye(j.shape[0]))

    def __call__(self, q: Tensor, com_task: Tensor, foot_task: Tensor) -> Tensor:
        j1, j2 = self.mix_com * torch.cos(q), self.mix_foot * torch.sin(q + 0.3)
        inv1 = self.damped_pinv(j1)
        null = torch.eye(6) - inv1 @ j1
        qd = inv1 @ com_task
        qd = qd + null @ self.damped_pinv(j2 @ null, 0.3) @ (foot_task - j2 @ qd)
        return torch.minimum(torch.maximum(qd, -self.limits), self.limits)


@clean(
    "H",
    style="own",
    passes=5,
    rec={"contact/tau": normal(1, 4), "contact/qd": normal(1, 4), "stance/height": normal(1, 4)},
    backends="jit",
)
class FcOwnContactThenStance:
    """A momentum observer estimates contacts in one node; another makes stance forces of them."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend = backend
        self.residual, self.integral = torch.zeros(1, 4), torch.zeros(1, 4)
        self.inertia = torch.tensor([[0.4, 0.4, 0.5, 0.5]])
        self.counts = np.zeros(4, dtype=int)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        tau, qd = annotate.input_tensors(
            "contact", {"tau": given["contact/tau"], "qd": given["contact/qd"]}
        )
        momentum = self.inertia * qd
        self.integral = self.integral + 0.01 * (tau + self.residual)
        self.residual = 30.0 * (momentum - self.integral)
        probability = torch.sigmoid(0.2 * self.residual.abs() - 1.0)
        annotate.output_tensors("contact", {"probability": probability}, export_with=self.backend)

        touching = (probability > 0.5).squeeze(0).numpy()
        self.counts += touching  # only for the summary
        print("contacts so far:", self.counts.tolist())

        probability, height = annotate.input_tensors(
            "stance", {"probability": probability, "height": given["stance/height"]}
        )
        share = probability / probability.sum(-1, keepdim=True).clamp_min(1e-3)
        force = share * (120.0 - 300.0 * height)
        annotate.output_tensors("stance", {"force": force}, export_with=self.backend)
        return {"stance/force": force}


# --- Actuators and limits -------------------------------------------------------------------------


@clean("A", passes=4, rec={"torque": normal(6, s=10.0)}, backends="jit")
class FcThermalDerating:
    """A thermal model of the motors derates the torque limits as they warm up."""

    def __init__(self) -> None:
        self.temperature = torch.full((6,), 25.0)
        self.rated = torch.tensor([40.0, 40.0, 60.0, 40.0, 40.0, 60.0])

    def __call__(self, torque: Tensor) -> dict[str, Tensor]:
        margin = ((90.0 - self.temperature) / 40.0).clamp(0.1, 1.0)
        limit = margin * self.rated
        applied = torch.clamp(torque, min=-limit, max=limit)
        heating = 0.05 * applied.square() - 0.2 * (self.temperature - 25.0)
        self.temperature = self.temperature + 0.01 * heating
        return {"applied": applied, "temperature": self.temperature}


@clean("A", passes=5, rec={"pressure": normal(2, s=2.0)}, backends=("jit", "onnx"))
class FcGripperHysteresis:
    """A gripper that closes above one pressure and opens below another; the flag is a tensor."""

    def __init__(self) -> None:
        self.closed = torch.zeros(2, dtype=torch.bool)

    def __call__(self, pressure: Tensor) -> dict[str, Tensor]:
        self.closed = (pressure > 1.0) | (self.closed & (pressure > -0.5))
        command = torch.where(self.closed, torch.tensor(1.0), torch.tensor(-1.0))
        return {"command": command, "closed": self.closed}


@clean("A", passes=4, rec={"u": normal(3), "x": normal(3)}, backends="pt2")
class FcDeadbandSlew:
    """A dead band, an exponential curve of the stick, and a slew rate by copysign."""

    def __init__(self) -> None:
        self.state = torch.zeros(3)

    def __call__(self, u: Tensor, x: Tensor) -> Tensor:
        magnitude = F.relu(u.abs() - 0.08) / 0.92
        shaped = torch.copysign(0.6 * magnitude + 0.4 * magnitude**3, u)
        rate = torch.tensor([0.1, 0.1, 0.3])
        self.state = self.state + torch.maximum(torch.minimum(shaped - self.state, rate), -rate)
        return self.state - 0.1 * x


@clean(
    "H",
    style="own",
    passes=4,
    rec={"filter/position": normal(1, 2), "filter/velocity": normal(1, 2)},
    backends=("jit", "pt2"),
)
class FcOwnBarrierFilter:
    """A control barrier function in closed form, with sanity checks that raise."""

    def __init__(self, backend: str = "jit", radius: float = 0.5, alpha: float = 1.5) -> None:
        self.backend, self.radius, self.alpha = backend, radius, alpha
        self.obstacle = torch.tensor([[1.0, 0.5]])
        self.corrections = 0

    def check(self, **tensors: Tensor) -> None:
        for name, value in tensors.items():
            if not torch.isfinite(value).all():
                raise ValueError(f"{name} is not finite: {value}")
            assert value.ndim == 2, f"{name} has {value.ndim} axes"

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        position, wanted = annotate.input_tensors(
            "filter",
            {"position": given["filter/position"], "velocity": given["filter/velocity"]},
        )
        self.check(position=position, velocity=wanted)
        offset = position - self.obstacle
        h = offset.square().sum(-1, keepdim=True) - self.radius**2
        normal_ = 2.0 * offset
        slack = (normal_ * wanted).sum(-1, keepdim=True) + self.alpha * h
        push = F.relu(-slack) / normal_.square().sum(-1, keepdim=True).clamp(min=1e-4)
        safe = wanted + push * normal_
        self.check(safe=safe)
        annotate.output_tensors("filter", {"safe": safe}, export_with=self.backend)
        if (push > 0).any():
            self.corrections += 1
            logger.info("corrected %d times", self.corrections)
        return {"filter/safe": safe}


# --- Kinematics and dynamics ----------------------------------------------------------------------


class FcSolver(abc.ABC):
    """What turns a task-space error into joint velocities."""

    registry: dict[str, type[FcSolver]] = {}

    def __init_subclass__(cls, key: str, **options: object) -> None:
        super().__init_subclass__(**options)
        FcSolver.registry[key] = cls

    @abc.abstractmethod
    def solve(self, jacobian: Tensor, error: Tensor) -> Tensor: ...

    @property
    def name(self) -> str:
        return type(self).__name__.lower()


class FcTransposeSolver(FcSolver, key="transpose"):
    def solve(self, jacobian: Tensor, error: Tensor) -> Tensor:
        jte = jacobian.mT @ error
        image = jacobian @ jte
        alpha = (error * image).sum() / (image * image).sum().clamp(min=1e-6)
        return alpha * jte


class FcDampedSolver(FcSolver, key="dls"):
    def solve(self, jacobian: Tensor, error: Tensor) -> Tensor:
        gram = jacobian @ jacobian.mT + 0.01 * torch.eye(jacobian.shape[0])
        return jacobian.mT @ torch.linalg.solve(gram, error)


@clean("H", style="own", passes=4, rec={"ik/target": normal(2, s=0.4)}, backends="jit")
class FcOwnIkFromRegistry:
    """Iterative inverse kinematics: the solver comes out of a registry, the joints are a state."""

    def __init__(self, backend: str = "jit", solver: str = "dls") -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--solver", choices=sorted(FcSolver.registry), default="transpose")
        parser.add_argument("--iterations", type=int, default=3)
        self.args = parser.parse_args(["--solver", solver])
        self.solver = FcSolver.registry[self.args.solver]()
        self.backend, self.links = backend, torch.tensor([0.4, 0.3, 0.2])
        self.q = torch.tensor([0.3, 0.4, -0.2])

    def forward(self, q: Tensor) -> tuple[Tensor, Tensor]:
        angle = q.cumsum(0)
        x, y = self.links * angle.cos(), self.links * angle.sin()
        upper = torch.triu(torch.ones(3, 3))
        return torch.stack([x.sum(), y.sum()]), torch.stack([-(upper @ y), upper @ x])

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        target = annotate.input_tensors("ik", {"target": given["ik/target"]})
        q = self.q
        for _ in range(self.args.iterations):
            tip, jacobian = self.forward(q)
            q = q + 0.5 * self.solver.solve(jacobian, target - tip).clamp(-0.3, 0.3)
        self.q = q
        annotate.output_tensors("ik", {"q": q}, export_with=self.backend)
        logger.info("%s: %.4f m off", self.solver.name, (target - self.forward(q)[0]).norm().item())
        return {"ik/q": q}


@clean(
    "H",
    passes=3,
    style="method",
    rec={"q": normal(5, 2), "qd": normal(5, 2), "qdd": normal(5, 2)},
    backends="pt2",
)
class FcComputedTorque:
    """Computed torque of a batch of two-link arms: mass matrix, Coriolis and gravity."""

    def __init__(self) -> None:
        m1, m2, l1, l2, g = 1.5, 1.0, 0.4, 0.3, 9.81
        self.alpha = m1 * (l1 / 2) ** 2 + m2 * (l1**2 + (l2 / 2) ** 2) + 0.02
        self.beta, self.delta = m2 * l1 * l2 / 2, m2 * (l2 / 2) ** 2 + 0.01
        self.g1, self.g2 = (m1 / 2 + m2) * l1 * g, m2 * l2 / 2 * g

    def step(self, q: Tensor, qd: Tensor, qdd: Tensor) -> Tensor:
        c2, s2 = torch.cos(q[:, 1]), torch.sin(q[:, 1])
        m = torch.empty(q.shape[0], 2, 2)
        m[:, 0, 0] = self.alpha + 2 * self.beta * c2
        m[:, 0, 1] = m[:, 1, 0] = self.delta + self.beta * c2
        m[:, 1, 1] = self.delta
        coriolis = (
            self.beta
            * s2[:, None]
            * torch.stack([-qd[:, 1] * (2 * qd[:, 0] + qd[:, 1]), qd[:, 0] ** 2], dim=-1)
        )
        tip = self.g2 * torch.cos(q.sum(-1))
        gravity = torch.stack([self.g1 * torch.cos(q[:, 0]) + tip, tip], dim=-1)
        torque = torch.einsum("bij,bj->bi", m, qdd) + coriolis + gravity
        return torque


@clean(
    "H",
    passes=3,
    rec={"features": normal(4, 2, s=0.3), "depth": uniform(0.5, 2.0, 4)},
    backends="jit",
)
class FcVisualServoing:
    """Image-based visual servoing: an interaction matrix of four points, least squares."""

    def __init__(self) -> None:
        self.desired = torch.tensor([[-0.2, -0.2], [0.2, -0.2], [0.2, 0.2], [-0.2, 0.2]])

    def interaction(self, p: Tensor, z: Tensor) -> Tensor:
        x, y = p[:, 0], p[:, 1]
        o = torch.zeros_like(x)
        rows_x = torch.stack([-1 / z, o, x / z, x * y, -(1 + x * x), y], dim=-1)
        rows_y = torch.stack([o, -1 / z, y / z, 1 + y * y, -x * y, -x], dim=-1)
        return torch.stack([rows_x, rows_y], dim=1).reshape(8, 6)

    def __call__(self, features: Tensor, depth: Tensor) -> Tensor:
        jac = self.interaction(features, depth)
        error = (features - self.desired).reshape(8)
        twist = -torch.linalg.solve(jac.T @ jac + 1e-2 * torch.eye(6), jac.T @ error)
        return 0.5 * twist


@clean(
    "H",
    style="own",
    passes=4,
    rec={"observer/u": double(normal(1)), "observer/y": double(normal(1))},
    backends="jit",
)
class FcOwnDisturbanceObserver:
    """An extended state observer; gains by pole placement in NumPy before the loop."""

    def __init__(self, backend: str = "jit", bandwidth: float = 15.0) -> None:
        self.backend, self.dt = backend, 0.01
        gains = np.poly([-bandwidth] * 3)[1:]
        self.l = torch.from_numpy(gains)
        self.a = torch.from_numpy(np.diag([1.0, 1.0], k=1))
        self.z = torch.zeros(3, dtype=torch.float64)
        np.testing.assert_allclose(gains[0], 3 * bandwidth)

    @property
    def disturbance(self) -> Tensor:
        return self.z[2:]

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        u, y = annotate.input_tensors(
            "observer", {"u": given["observer/u"], "y": given["observer/y"]}
        )
        drive = torch.cat([torch.zeros(1, dtype=u.dtype), 2.0 * u, torch.zeros(1, dtype=u.dtype)])
        self.z = self.z + self.dt * (self.a @ self.z + drive + self.l * (y - self.z[0]))
        command = u - self.disturbance / 2.0
        annotate.output_tensors("observer", {"command": command}, export_with=self.backend)
        return {"observer/command": command}


@clean("A", passes=4, rec={"start": normal(3), "goal": normal(3)}, backends=("jit", "onnx"))
class FcQuinticTimeScaling:
    """A quintic between two poses; time runs in a tensor, saturates and never comes back."""

    def __init__(self, duration: float = 0.1, dt: float = 0.02) -> None:
        self.duration, self.dt = duration, dt
        self.t = torch.zeros(())

    def __call__(self, start: Tensor, goal: Tensor) -> dict[str, Tensor]:
        s = (self.t / self.duration).clamp(0.0, 1.0)
        blend = s**3 * (10 + s * (-15 + 6 * s))
        speed = 30 * s**2 * (1 - s) ** 2 / self.duration
        self.t = self.t + self.dt
        return {"position": torch.lerp(start, goal, blend), "velocity": (goal - start) * speed}


@clean("H", passes=3, rec={"x": normal(4, 3)}, backends="jit")
class FcTensorsInEveryPass:
    """A hand-eye transform that is written down anew in every call."""

    def __call__(self, x: Tensor) -> dict[str, Tensor]:
        device, dtype = x.device, x.dtype
        rotation = torch.tensor(
            [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], device=device, dtype=dtype
        )
        translation = torch.tensor([0.05, -0.02, 0.31], device=device, dtype=dtype)
        bounds = torch.as_tensor([[-1.0, 1.0], [-1.0, 1.0], [0.0, 1.5]]).to(x)
        points = x @ rotation.T + translation
        inside = ((points >= bounds[:, 0]) & (points <= bounds[:, 1])).all(dim=-1)
        return {"points": points.clip(bounds[:, 0], bounds[:, 1]), "inside": inside}


@dataclass
class FcSafetyStats:
    steps: int = 0
    saturated: int = 0
    worst: float = 0.0
    notes: list[str] = field(default_factory=list)


@clean(
    "H",
    style="own",
    passes=4,
    rec={"joint_limits/q": normal(1, 7), "joint_limits/dq": normal(1, 7)},
    backends="onnx",
)
class FcOwnJointLimitScaling:
    """Scales a velocity command so that no joint passes its limits, and keeps statistics."""

    def __init__(self, backend: str = "onnx") -> None:
        self.backend, self.stats = backend, FcSafetyStats()
        self.lower = torch.tensor([-2.9, -1.8, -2.9, -3.1, -2.9, 0.0, -2.9])
        self.upper = torch.tensor([2.9, 1.8, 2.9, 0.0, 2.9, 3.8, 2.9])
        self.speed = torch.full((7,), 2.2)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        q, dq = annotate.input_tensors(
            "joint_limits", {"q": given["joint_limits/q"], "dq": given["joint_limits/dq"]}
        )
        q = q.clamp(self.lower, self.upper)
        up = ((self.upper - q) / 0.1).clamp(max=1.0) * self.speed
        down = ((q - self.lower) / 0.1).clamp(max=1.0) * self.speed
        bounded = torch.where(dq > 0, torch.minimum(dq, up), torch.maximum(dq, -down))
        ratio = (bounded.abs() / dq.abs().clamp(min=1e-6)).amin(dim=-1, keepdim=True).clamp(max=1.0)
        safe = dq * ratio
        annotate.output_tensors("joint_limits", {"safe": safe}, export_with=self.backend)
        self.stats.steps += 1
        self.stats.saturated += int((ratio < 1).sum())
        self.stats.worst = max(self.stats.worst, float(dq.abs().max()))
        if self.stats.steps % 2 == 0:
            self.stats.notes.append(
                json.dumps({k: v for k, v in asdict(self.stats).items() if k != "notes"})
            )
        return {"joint_limits/safe": safe}


@clean(
    "H",
    style="own",
    passes=4,
    rec={"fusion/pose_a": normal(3), "fusion/pose_b": normal(3), "fusion/valid": flags(0.7, 2)},
    backends=("jit", "onnx"),
)
class FcOwnSensorFusionMask:
    """Two pose sources are fused by weights; an invalid one is masked, and none holds the last."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend = backend
        self.last = torch.zeros(3)
        self.weights = torch.tensor([4.0, 1.0])
        self.dropouts = 0

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        names = ("pose_a", "pose_b", "valid")
        a, b, valid = annotate.input_tensors("fusion", {n: given[f"fusion/{n}"] for n in names})
        weights = self.weights * valid.float()
        total = weights.sum()
        mean = (weights[:, None] * torch.stack([a, b])).sum(0) / total.clamp(min=1e-6)
        self.last = torch.where(total > 0, mean, self.last)
        annotate.output_tensors("fusion", {"pose": self.last}, export_with=self.backend)
        self.dropouts += int((~valid).sum())
        return {"fusion/pose": self.last}


def fc_compose(*stages: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """One function of several."""
    return functools.reduce(lambda f, g: lambda x: g(f(x)), stages)


@clean("H", style="own", passes=4, rec={"joystick/axes": normal(4)}, backends=("jit", "pt2"))
class FcOwnTeleopPipeline:
    """A pipeline of partials: dead band, scale, and a first-order filter that is a state."""

    def __init__(self, backend: str = "jit") -> None:
        self.backend = backend
        self.state = torch.zeros(4)
        self.pipeline = fc_compose(
            functools.partial(torch.clamp, min=-1.0, max=1.0),
            functools.partial(F.softshrink, lambd=0.05),
            functools.partial(torch.mul, other=torch.tensor([1.0, 0.5, 1.2, 0.3])),
            self.smooth,
        )

    def smooth(self, x: Tensor) -> Tensor:
        self.state.lerp_(x, 0.3)
        return self.state.clone()

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        axes = annotate.input_tensors("joystick", {"axes": given["joystick/axes"]})
        twist = self.pipeline(axes)
        annotate.output_tensors("joystick", {"twist": twist}, export_with=self.backend)
        return {"joystick/twist": twist}
