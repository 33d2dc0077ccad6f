"""Controllers, filters and kinematics whose states are all tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attacks.draws import double, normal, uniform
from attacks.registry import clean


@clean(
    "H",
    passes=3,
    rec={"q": normal(1, 6), "qd": normal(1, 6), "target": normal(1, 6)},
    backends=("jit", "onnx"),
)
class NcPdTorqueLimits:
    """legged_gym's P controller with per-joint gains and a clip at the torque limits."""

    def __init__(self) -> None:
        self.p_gains = torch.tensor([20.0, 20.0, 30.0, 20.0, 20.0, 30.0])
        self.d_gains = 0.5 * torch.ones(6)
        self.default_dof_pos = torch.linspace(-0.5, 0.5, 6)
        self.torque_limits = torch.full((6,), 33.5)

    def __call__(self, q: Tensor, qd: Tensor, target: Tensor) -> Tensor:
        torques = self.p_gains * (target * 0.25 + self.default_dof_pos - q) - self.d_gains * qd
        return torch.clip(torques, -self.torque_limits, self.torque_limits)


@clean("A", passes=5, rec={"error": normal(1, 3)}, backends="jit")
class NcPidAntiWindup:
    """A PID with a clamped integral and a filtered derivative."""

    def __init__(self, dt: float = 0.01) -> None:
        self.dt, self.tau = dt, 0.05
        self.integral = torch.zeros(1, 3)
        self.previous = torch.zeros(1, 3)
        self.derivative = torch.zeros(1, 3)

    def __call__(self, error: Tensor) -> Tensor:
        self.integral = (self.integral + error * self.dt).clamp(-0.5, 0.5)
        raw = (error - self.previous) / self.dt
        alpha = self.dt / (self.tau + self.dt)
        self.derivative = self.derivative + alpha * (raw - self.derivative)
        self.previous = error
        return 2.0 * error + 0.8 * self.integral + 0.1 * self.derivative


def _dare(a: Tensor, b: Tensor, q: Tensor, r: Tensor, n: int = 60) -> Tensor:
    p = q.clone()
    for _ in range(n):
        k = torch.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        p = q + a.T @ p @ (a - b @ k)
    return torch.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)


@clean(
    "H",
    passes=3,
    style="method",
    rec={"state": double(normal(1, 4)), "reference": double(normal(1, 4))},
    backends="jit",
)
class NcLqrGainAtInit:
    """An LQR of a cart-pole; the Riccati equation is iterated in the constructor."""

    def __init__(self) -> None:
        dt = 0.02
        a = torch.eye(4, dtype=torch.float64)
        a[0, 1] = a[2, 3] = dt
        a[1, 2], a[3, 2] = -0.98 * dt, 10.8 * dt
        b = torch.tensor([[0.0], [dt], [0.0], [-dt]], dtype=torch.float64)
        q = torch.diag(torch.tensor([1.0, 0.1, 10.0, 0.1], dtype=torch.float64))
        self.gain = _dare(a, b, q, torch.eye(1, dtype=torch.float64))

    def step(self, state: Tensor, reference: Tensor) -> Tensor:
        force = -(state - reference) @ self.gain.T
        return force


@clean(
    "H",
    passes=4,
    rec={"q": normal(1, 2), "qd": normal(1, 2), "goal": normal(1, 2, s=0.3)},
    backends="jit",
)
class NcImpedancePlanarArm:
    """Cartesian impedance on a planar arm: forward kinematics and Jacobian by hand."""

    L1, L2 = 0.4, 0.3

    def forward_kinematics(self, q: Tensor) -> Tensor:
        s = torch.cumsum(q, dim=-1)
        x = self.L1 * torch.cos(s[..., 0]) + self.L2 * torch.cos(s[..., 1])
        y = self.L1 * torch.sin(s[..., 0]) + self.L2 * torch.sin(s[..., 1])
        return torch.stack((x, y), dim=-1)

    def jacobian(self, q: Tensor) -> Tensor:
        q1, q12 = q[..., 0], q[..., 0] + q[..., 1]
        j = torch.zeros(*q.shape[:-1], 2, 2)
        j[..., 0, 0] = -self.L1 * torch.sin(q1) - self.L2 * torch.sin(q12)
        j[..., 0, 1] = -self.L2 * torch.sin(q12)
        j[..., 1, 0] = self.L1 * torch.cos(q1) + self.L2 * torch.cos(q12)
        j[..., 1, 1] = self.L2 * torch.cos(q12)
        return j

    def __call__(self, q: Tensor, qd: Tensor, goal: Tensor) -> Tensor:
        j = self.jacobian(q)
        velocity = (j @ qd.unsqueeze(-1)).squeeze(-1)
        wrench = 200.0 * (goal - self.forward_kinematics(q)) - 15.0 * velocity
        return (j.transpose(-1, -2) @ wrench.unsqueeze(-1)).squeeze(-1)


@clean("A", passes=4, rec={"x0": normal(1, 2)}, backends="jit")
class NcMpcProjectedGradient:
    """A condensed MPC: thirty projected gradient steps, warm-started from the shifted plan."""

    def __init__(self, horizon: int = 6) -> None:
        a, b = torch.tensor([[1.0, 0.1], [0.0, 1.0]]), torch.tensor([[0.005], [0.1]])
        powers = [torch.matrix_power(a, k) for k in range(horizon + 1)]
        self.phi = torch.cat(powers[1:])
        gamma = torch.zeros(2 * horizon, horizon)
        for i in range(horizon):
            for j in range(i + 1):
                gamma[2 * i : 2 * i + 2, j : j + 1] = powers[i - j] @ b
        self.hessian = gamma.T @ gamma + 0.1 * torch.eye(horizon)
        self.gamma = gamma
        self.rate = 1.0 / float(torch.linalg.matrix_norm(self.hessian, 2))
        self.plan = torch.zeros(horizon, 1)

    def __call__(self, x0: Tensor) -> Tensor:
        linear = self.gamma.T @ (self.phi @ x0.T)
        u = torch.cat([self.plan[1:], self.plan[-1:]])
        for _ in range(30):
            u = (u - self.rate * (self.hessian @ u + linear)).clamp(-2.0, 2.0)
        self.plan = u
        return u[:1]


@clean("A", passes=5, rec={"z": double(normal(2))}, backends=("jit", "onnx"))
class NcKalmanConstantVelocity:
    """A textbook Kalman filter with covariance, by solve and in Joseph form."""

    def __init__(self) -> None:
        f = torch.float64
        self.F = torch.eye(4, dtype=f) + 0.1 * torch.diag(torch.ones(2, dtype=f), 2)
        self.H = torch.eye(2, 4, dtype=f)
        self.Q, self.R = 0.01 * torch.eye(4, dtype=f), 0.25 * torch.eye(2, dtype=f)
        self.x, self.P = torch.zeros(4, dtype=f), torch.eye(4, dtype=f)

    def predict(self) -> None:
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z: Tensor) -> None:
        s = self.H @ self.P @ self.H.T + self.R
        k = torch.linalg.solve(s, self.H @ self.P).T
        self.x = self.x + k @ (z - self.H @ self.x)
        left = torch.eye(4, dtype=self.P.dtype) - k @ self.H
        self.P = left @ self.P @ left.T + k @ self.R @ k.T

    def __call__(self, z: Tensor) -> dict[str, Tensor]:
        self.predict()
        self.update(z)
        return {"state": self.x, "variance": torch.diagonal(self.P)}


@clean(
    "A",
    passes=4,
    style="method",
    rec={"gyro": normal(1, s=0.3), "accel": normal(3, s=0.5, m=0.0)},
    fresh={"gyro": normal(1, s=0.5)},
    backends="jit",
)
class NcComplementaryTilt:
    """A complementary filter of one tilt angle from a gyroscope and an accelerometer."""

    def __init__(self) -> None:
        self.angle = torch.zeros(1)

    def step(self, gyro: Tensor, accel: Tensor) -> Tensor:
        tilt = torch.atan2(accel[0:1], accel[2:3] + 9.81)
        angle = 0.98 * (self.angle + gyro * 0.01) + 0.02 * tilt
        self.angle = angle
        return angle


def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    w1, x1, y1, z1 = a.unbind(-1)
    w2, x2, y2, z2 = b.unbind(-1)
    return torch.stack(
        (
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ),
        dim=-1,
    )


def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    q_w, q_vec = q[:, 0:1], q[:, 1:]
    a = v * (2.0 * q_w**2 - 1.0)
    b = torch.cross(q_vec, v, dim=-1) * q_w * 2.0
    c = q_vec * torch.bmm(q_vec.view(-1, 1, 3), v.view(-1, 3, 1)).squeeze(-1) * 2.0
    return a - b + c


@clean("A", passes=5, rec={"gyro": normal(1, 3), "accel": normal(1, 3)}, backends="jit")
class NcMahonyFilter:
    """Mahony's attitude filter: quaternion and gyro bias are states."""

    def __init__(self) -> None:
        self.q = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
        self.bias = torch.zeros(1, 3)
        self.up = torch.tensor([[0.0, 0.0, 1.0]])

    def __call__(self, gyro: Tensor, accel: Tensor) -> dict[str, Tensor]:
        a = accel + 9.81 * self.up
        a = a / a.norm(dim=-1, keepdim=True).clamp_min(1e-6)
        error = torch.linalg.cross(a, quat_rotate_inverse(self.q, self.up))
        self.bias = self.bias + 0.05 * error * 0.01
        omega = gyro + self.bias + 1.0 * error
        dq = 0.5 * quat_mul(self.q, torch.nn.functional.pad(omega, (1, 0)))
        q = self.q + dq * 0.01
        self.q = q / q.norm(dim=-1, keepdim=True)
        return {"quat": self.q, "bias": self.bias}


@clean(
    "H",
    passes=3,
    style="method",
    rec={"q_current": normal(2, 4), "q_goal": normal(2, 4)},
    backends="onnx",
)
def NcQuaternionError(q_current: Tensor, q_goal: Tensor) -> tuple[Tensor, Tensor]:
    """Axis-angle error between two orientations, without branches (the shorter way by sign)."""
    a = torch.nn.functional.normalize(q_current, dim=-1)
    b = torch.nn.functional.normalize(q_goal, dim=-1)
    conj = a * torch.tensor([1.0, -1.0, -1.0, -1.0])
    d = quat_mul(b, conj)
    d = torch.where(d[:, :1] < 0, -d, d)
    sin_half = d[:, 1:].norm(dim=-1, keepdim=True)
    angle = 2.0 * torch.atan2(sin_half, d[:, :1])
    rotvec = d[:, 1:] / sin_half.clamp_min(1e-8) * angle
    return rotvec, angle


@clean("A", passes=4, rec={"omega": normal(1, 3)}, backends="jit")
class NcQuaternionExpIntegrator:
    """Integrates angular velocity by the exponential map, with a safe sinc."""

    def __init__(self) -> None:
        self.q = torch.tensor([[1.0, 0.0, 0.0, 0.0]])

    def __call__(self, omega: Tensor) -> Tensor:
        half = omega * (0.5 * 0.02)
        theta = torch.sqrt((half * half).sum(-1, keepdim=True) + 1e-12)
        dq = torch.cat([torch.cos(theta), torch.sin(theta) / theta * half], dim=-1)
        self.q = torch.nn.functional.normalize(quat_mul(self.q, dq), dim=-1)
        return self.q


@clean("H", passes=3, rec={"q": normal(1, 3), "twist": normal(1, 3)}, backends="jit")
class NcDampedLeastSquaresIk:
    """Differential inverse kinematics with damping, three planar joints."""

    def __init__(self) -> None:
        self.links = torch.tensor([0.4, 0.35, 0.2])

    def __call__(self, q: Tensor, twist: Tensor) -> Tensor:
        angles = torch.cumsum(q, dim=1)
        x, y = self.links * angles.cos(), self.links * angles.sin()
        # column j: what links j.. contribute
        jx = -torch.flip(torch.cumsum(torch.flip(y, [1]), 1), [1])
        jy = torch.flip(torch.cumsum(torch.flip(x, [1]), 1), [1])
        jac = torch.stack([jx, jy, torch.ones_like(jx)], dim=1)
        jt = jac.transpose(1, 2)
        damped = jac @ jt + 0.05**2 * torch.eye(3)
        return (jt @ torch.linalg.solve(damped, twist.unsqueeze(-1))).squeeze(-1)


@clean("H", passes=3, rec={"theta": uniform(-1.2, 1.2, 6)}, backends="onnx")
class NcDhForwardKinematics:
    """A six-axis arm by DH parameters: a chain of homogeneous transforms."""

    def __init__(self) -> None:
        self.dh = [
            (0.0, 0.3, math.pi / 2),
            (0.4, 0.0, 0.0),
            (0.05, 0.0, math.pi / 2),
            (0.0, 0.4, -math.pi / 2),
            (0.0, 0.0, math.pi / 2),
            (0.0, 0.1, 0.0),
        ]

    @staticmethod
    def link(theta: Tensor, a: float, d: float, alpha: float) -> Tensor:
        c, s = torch.cos(theta), torch.sin(theta)
        ca, sa = math.cos(alpha), math.sin(alpha)
        zero, one = torch.zeros_like(theta), torch.ones_like(theta)
        rows = [
            c,
            -s * ca,
            s * sa,
            a * c,
            s,
            c * ca,
            -c * sa,
            a * s,
            zero,
            sa * one,
            ca * one,
            d * one,
            zero,
            zero,
            zero,
            one,
        ]
        return torch.stack(rows).reshape(4, 4)

    def __call__(self, theta: Tensor) -> dict[str, Tensor]:
        pose = torch.eye(4)
        for angle, parameters in zip(theta.unbind(0), self.dh):
            pose = pose @ self.link(angle, *parameters)
        return {"position": pose[:3, 3], "rotation": pose[:3, :3]}


@clean("A", passes=4, rec={"target": normal(1, 6)}, backends="jit")
class NcSlewRateLimiter:
    """Limits how far a command may go in a tick; the last command is written in place."""

    def __init__(self) -> None:
        self.last = torch.zeros(1, 6)
        self.max_step = 0.05

    def __call__(self, target: Tensor) -> Tensor:
        delta = torch.clamp(target - self.last, min=-self.max_step, max=self.max_step)
        self.last += delta
        return self.last.clone()


@clean("A", passes=5, style="module", rec={"x": normal(1, 4)}, backends="jit")
class NcBiquadCascade(nn.Module):
    """A fourth-order Butterworth as two biquads, direct form II transposed."""

    def __init__(self) -> None:
        super().__init__()
        sos = [
            [0.0048, 0.0096, 0.0048, 1.0, -1.0549, 0.3050],
            [1.0, 2.0, 1.0, 1.0, -1.3209, 0.6327],
        ]
        self.register_buffer("sos", torch.tensor(sos))
        self.register_buffer("z", torch.zeros(2, 2, 1, 4))

    def forward(self, x: Tensor) -> Tensor:
        z = []
        for section, memory in zip(self.sos, self.z):
            b0, b1, b2, _, a1, a2 = section.unbind()
            y = b0 * x + memory[0]
            z.append(torch.stack([b1 * x - a1 * y + memory[1], b2 * x - a2 * y]))
            x = y
        self.z = torch.stack(z)
        return x


@clean("A", passes=5, rec={"command": normal(1, 1)}, backends="onnx")
class NcCpgOscillators:
    """Coupled phase oscillators of a quadruped; the phases wrap in a tensor."""

    def __init__(self) -> None:
        self.phase = torch.tensor([[0.0, 0.5, 0.5, 0.0]])
        self.offset = torch.tensor([[0.0, 0.5, 0.5, 0.0]])

    def __call__(self, command: Tensor) -> Tensor:
        frequency = 1.5 + torch.sigmoid(command)
        difference = (
            self.phase.unsqueeze(1)
            - self.phase.unsqueeze(2)
            - (self.offset.unsqueeze(1) - self.offset.unsqueeze(2))
        )
        coupling = torch.sin(2 * math.pi * difference).sum(dim=2)
        self.phase = torch.remainder(self.phase + 0.02 * (frequency + 0.3 * coupling), 1.0)
        return torch.cat(
            [torch.sin(2 * math.pi * self.phase), torch.cos(2 * math.pi * self.phase)], dim=1
        )


@clean("A", passes=4, rec={"wheels": normal(1, 2)}, backends="jit")
class NcDiffDriveOdometry:
    """Wheel odometry with a wrapped heading."""

    def __init__(self) -> None:
        self.pose = torch.zeros(1, 3)

    def __call__(self, wheels: Tensor) -> Tensor:
        left, right = wheels[:, 0], wheels[:, 1]
        v, w = 0.05 * (left + right) / 2, 0.05 * (right - left) / 0.3
        theta = self.pose[:, 2] + 0.5 * w * 0.02
        step = torch.stack([v * torch.cos(theta), v * torch.sin(theta), w], dim=1) * 0.02
        pose = self.pose + step
        pose[:, 2] = torch.atan2(torch.sin(pose[:, 2]), torch.cos(pose[:, 2]))
        self.pose = pose
        return pose


@clean("A", passes=6, rec={"u": normal(1, 2)}, backends="jit")
class NcSmithPredictorDelay:
    """A Smith predictor: the model's output is delayed by a rolled line of four."""

    def __init__(self) -> None:
        self.line = torch.zeros(4, 1, 2)
        self.model = torch.zeros(1, 2)

    def __call__(self, u: Tensor) -> dict[str, Tensor]:
        delayed = self.line[-1]
        self.model = 0.9 * self.model + 0.1 * u
        self.line = torch.cat((self.model.unsqueeze(0), self.line[:-1]), dim=0)
        return {"feedback": self.model - delayed, "delayed": delayed}


@clean(
    "H",
    passes=3,
    rec={"t": uniform(0.0, 1.0, 1), "points": normal(5, 3)},
    fresh={"t": uniform(0.0, 1.0, 1)},
    backends="jit",
)
class NcBezierSwingFoot:
    """A swing-foot curve: Bernstein polynomials by de Casteljau, fixed depth."""

    def __call__(self, t: Tensor, points: Tensor) -> dict[str, Tensor]:
        degree = points.shape[0] - 1
        velocity = self.casteljau(t, degree * (points[1:] - points[:-1]))
        return {"position": self.casteljau(t, points), "velocity": velocity}

    @staticmethod
    def casteljau(t: Tensor, points: Tensor) -> Tensor:
        while points.shape[0] > 1:
            points = torch.lerp(points[:-1], points[1:], t)
        return points[0]


@clean("A", passes=5, rec={"force": normal(1, 3)}, backends="pt2")
class NcAdmittance:
    """Admittance control: mass, damper and spring integrated semi-implicitly."""

    def __init__(self) -> None:
        self.x, self.v = torch.zeros(1, 3), torch.zeros(1, 3)

    def __call__(self, force: Tensor) -> Tensor:
        acceleration = (force - 20.0 * self.v - 50.0 * self.x) / 2.0
        self.v = self.v + 0.01 * acceleration
        self.x = self.x + 0.01 * self.v
        return self.x


@clean(
    "A",
    passes=4,
    style="method",
    rec={"joint_pos": normal(1, 4), "joint_vel": normal(1, 4), "action": normal(1, 4)},
    backends="jit",
)
class NcActuatorNetHistory:
    """ANYmal's actuator network: errors and velocities of the last three ticks per joint."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(6, 16), nn.Softsign(), nn.Linear(16, 1))
        self.error_history = torch.zeros(3, 1, 4)
        self.velocity_history = torch.zeros(3, 1, 4)

    def step(self, joint_pos: Tensor, joint_vel: Tensor, action: Tensor) -> Tensor:
        self.error_history = self.error_history.roll(1, 0)
        self.error_history[0] = 0.5 * action - joint_pos
        self.velocity_history = self.velocity_history.roll(1, 0)
        self.velocity_history[0] = joint_vel
        features = torch.cat([self.error_history, self.velocity_history]).permute(1, 2, 0)
        torque = 20.0 * self.net(features).squeeze(-1)
        return torque
