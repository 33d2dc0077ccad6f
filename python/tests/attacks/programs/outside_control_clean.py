"""Classical control, estimation and signal processing, with memory that is a tensor."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attacks.draws import flags, integers, normal, uniform
from attacks.registry import clean


@clean("A", rec={"y": normal(1), "u": normal(1)}, passes=4)
class OutsideLuenberger:
    def __init__(self) -> None:
        self.A = torch.tensor([[1.0, 0.1], [-0.2, 0.95]])
        self.B, self.C, self.L = (
            torch.tensor([0.0, 0.1]),
            torch.tensor([1.0, 0.0]),
            torch.tensor([0.5, 0.3]),
        )
        self.xhat = torch.zeros(2)

    def __call__(self, y: Tensor, u: Tensor) -> Tensor:
        innovation = y - self.C @ self.xhat
        self.xhat = self.A @ self.xhat + self.B * u + self.L * innovation
        return self.xhat.clone()


@clean("A", rec={"x": uniform(-1.0, 1.0, 2)}, passes=5, backends=("jit", "onnx"))
class OutsideSchmitt:
    """Hysteresis: on above 0.6, off below 0.2."""

    def __init__(self) -> None:
        self.on = torch.zeros(2, dtype=torch.bool)

    def __call__(self, x: Tensor) -> Tensor:
        self.on = torch.where(x > 0.6, True, torch.where(x < 0.2, False, self.on))
        return self.on.float() * x


@clean("A", rec={"pressed": flags(0.7, 1)}, passes=6)
class OutsideDebounce:
    """A button counts when it was pressed for three ticks."""

    def __init__(self) -> None:
        self.held = torch.zeros(1, dtype=torch.int64)

    def __call__(self, pressed: Tensor) -> Tensor:
        self.held = torch.where(pressed, self.held + 1, torch.zeros_like(self.held))
        return self.held >= 3


@clean("A", rec={"enc": uniform(-3.1, 3.1, 2)}, passes=4)
class OutsideUnwrapEncoder:
    """Turns of an encoder are counted."""

    def __init__(self) -> None:
        self.last, self.turns = torch.zeros(2), torch.zeros(2)

    def __call__(self, enc: Tensor) -> Tensor:
        delta = enc - self.last
        self.turns = self.turns - torch.round(delta / (2 * math.pi))
        self.last = enc.clone()
        return enc + 2 * math.pi * self.turns


@clean("A", rec={"x": normal(1, 2)}, passes=4)
class OutsideSlewRate:
    def __init__(self) -> None:
        self.out = torch.zeros(1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        step = torch.clamp(x - self.out, -0.2, 0.2)
        self.out = self.out + step
        return torch.cat([self.out, step], -1)


@clean("A", rec={"x": normal(2)}, passes=5, backends=("jit", "pt2"))
class OutsideOneEuro:
    """The one-euro filter from a zero start."""

    def __init__(self) -> None:
        self.x, self.dx = torch.zeros(2), torch.zeros(2)

    @staticmethod
    def _alpha(cutoff: Tensor, dt: float = 0.02) -> Tensor:
        tau = 1.0 / (2 * math.pi * cutoff)
        return 1.0 / (1.0 + tau / dt)

    def __call__(self, x: Tensor) -> Tensor:
        rate = (x - self.x) / 0.02
        self.dx = self.dx + self._alpha(torch.tensor(1.0)) * (rate - self.dx)
        cutoff = 1.0 + 0.01 * self.dx.abs()
        self.x = self.x + self._alpha(cutoff) * (x - self.x)
        return self.x * 1.0


@clean("A", rec={"x": normal(3)}, passes=6)
class OutsideRolledMedian:
    """A median over five ticks in a buffer that is rolled."""

    def __init__(self) -> None:
        self.window = torch.zeros(5, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.window = torch.roll(self.window, -1, dims=0)
        self.window[-1] = x
        return self.window.median(dim=0).values


@clean("A", rec={"x": normal(2)}, passes=5)
class OutsideFir:
    """A moving window and its taps by `conv1d`."""

    def __init__(self) -> None:
        self.taps = torch.tensor([0.1, 0.2, 0.4, 0.2, 0.1]).view(1, 1, 5)
        self.past = torch.zeros(2, 4)

    def __call__(self, x: Tensor) -> Tensor:
        window = torch.cat([self.past, x.unsqueeze(-1)], -1)
        self.past = window[:, 1:]
        return F.conv1d(window.unsqueeze(1), self.taps).flatten()


@clean("A", rec={"force": normal(3), "q": normal(3)}, passes=4)
class OutsideAdmittance:
    def __init__(self) -> None:
        self.offset = torch.zeros(3)
        self.rate = torch.zeros(3)

    def __call__(self, force: Tensor, q: Tensor) -> dict:
        acc = (force - 8.0 * self.rate - 20.0 * self.offset) / 2.0
        self.rate = self.rate + 0.01 * acc
        self.offset = self.offset + 0.01 * self.rate
        return {"target": q + self.offset, "active": force.abs() > 0.5}


@clean("A", rec={"tau": normal(2), "dq": normal(2)}, passes=4, backends=("jit", "onnx"))
class OutsideMomentumObserver:
    """Contact torque from the generalised momentum."""

    def __init__(self) -> None:
        self.M = torch.tensor([[2.0, 0.3], [0.3, 1.0]])
        self.integral, self.residual = torch.zeros(2), torch.zeros(2)

    def __call__(self, tau: Tensor, dq: Tensor) -> Tensor:
        self.integral = self.integral + 0.01 * (tau + self.residual)
        self.residual = 10.0 * (self.M @ dq - self.integral)
        return (self.residual.abs() > 1.0).float() * self.residual


@clean("A", rec={"x0": normal(4)}, passes=3)
class OutsideMppi:
    """Sampled rollouts with noise that was drawn once, and a plan that is kept."""

    def __init__(self) -> None:
        gen = torch.Generator().manual_seed(2)
        self.noise = 0.3 * torch.randn(16, 4, 2, generator=gen)
        self.plan = torch.zeros(4, 2)

    def __call__(self, x0: Tensor) -> Tensor:
        controls = self.plan + self.noise
        position, velocity = x0[:2].expand(16, 2), x0[2:].expand(16, 2)
        cost = torch.zeros(16)
        for k in range(4):
            velocity = velocity + 0.1 * controls[:, k]
            position = position + 0.1 * velocity
            cost = cost + (position**2).sum(-1) + 0.01 * (controls[:, k] ** 2).sum(-1)
        weights = torch.softmax(-cost, 0)
        plan = (weights[:, None, None] * controls).sum(0)
        self.plan = torch.cat([plan[1:], torch.zeros(1, 2)])
        return plan[0]


@clean("H", rec={"pose": normal(3)}, passes=3)
class OutsidePurePursuit:
    """Nearest point of a path, then the one a few places ahead."""

    def __init__(self) -> None:
        s = torch.linspace(0, 6.28, 32)
        self.path = torch.stack([s, s.sin()], -1)

    def __call__(self, pose: Tensor) -> Tensor:
        nearest = (self.path - pose[:2]).square().sum(-1).argmin()
        goal = self.path.index_select(0, (nearest + 4).clamp(max=31).reshape(1))[0]
        heading = torch.atan2(goal[1] - pose[1], goal[0] - pose[0] + 8.0)
        return torch.stack([heading - pose[2], torch.hypot(goal[0] - pose[0], goal[1] - pose[1])])


@clean("H", rec={"u": normal(2), "h": normal(1)}, passes=3)
def outside_barrier_filter(u: Tensor, h: Tensor) -> Tensor:
    """A control barrier function, solved in closed form."""
    g = torch.tensor([1.0, 0.5])
    slack = torch.relu(-(g @ u + 2.0 * h))
    return u + slack * g / (g @ g)


@clean("H", rec={"H": normal(3, 3), "g": normal(3)}, passes=3, backends=("jit", "pt2"))
def outside_admm(H: Tensor, g: Tensor) -> Tensor:  # noqa: N803
    """A box-constrained quadratic programme by twelve steps of ADMM."""
    P = H @ H.T + torch.eye(3)
    L = torch.linalg.cholesky(P + torch.eye(3))
    z = y = torch.zeros(3)
    for _ in range(12):
        x = torch.cholesky_solve((z - y - g).unsqueeze(-1), L).squeeze(-1)
        z = torch.clamp(x + y, -0.5, 0.5)
        y = y + x - z
    return z


@clean(
    "H",
    rec={"phase": uniform(0.0, 1.0, 4), "foot": normal(4, 3)},
    passes=3,
    backends=("jit", "onnx"),
)
def outside_swing_legs(phase: Tensor, foot: Tensor) -> Tensor:
    """Bezier swing, Raibert placement."""
    t = ((phase - 0.5) / 0.5).clamp(0.0, 1.0).unsqueeze(-1)
    control = torch.stack(
        [
            foot,
            foot + torch.tensor([0.0, 0.0, 0.1]),
            foot + torch.tensor([0.1, 0.0, 0.1]),
            foot + torch.tensor([0.1, 0.0, 0.0]),
        ]
    )
    weights = torch.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    return torch.where((phase > 0.5).unsqueeze(-1), (weights * control).sum(0), foot)


@clean("H", rec={"rot": normal(2, 3)}, passes=3)
def outside_exponential_map(rot: Tensor) -> Tensor:
    """Axis-angle to a matrix, safe near zero."""
    angle = rot.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    x, y, z = (rot / angle).unbind(-1)
    o = torch.zeros_like(x)
    K = torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).view(-1, 3, 3)
    s, c = angle.sin().unsqueeze(-1), angle.cos().unsqueeze(-1)
    return torch.eye(3) + s * K + (1 - c) * (K @ K)


@clean("H", rec={"d6": normal(2, 6)}, passes=3)
def outside_six_d_rotation(d6: Tensor) -> Tensor:
    a1, a2 = d6[..., :3], d6[..., 3:]
    b1 = F.normalize(a1 + 0.2, dim=-1)
    b2 = F.normalize(a2 - (b1 * a2).sum(-1, keepdim=True) * b1, dim=-1)
    return torch.stack((b1, b2, torch.linalg.cross(b1, b2)), dim=-2)


@clean("H", rec={"points": normal(6, 3), "target": normal(6, 3)}, passes=3, backends="jit")
def outside_icp_step(points: Tensor, target: Tensor) -> Tensor:
    """The matched points' covariance, and the shift between their centres."""
    nearest = torch.cdist(points, target).argmin(-1)
    matched = target[nearest]
    centre, other = points.mean(0), matched.mean(0)
    return torch.cat([((points - centre).T @ (matched - other)).flatten(), other - centre])


@clean("A", rec={"hits": integers(0, 8, 3, 2)}, passes=4)
class OutsideOccupancy:
    """An occupancy grid in log-odds; several hits may fall into one cell."""

    def __init__(self) -> None:
        self.grid = torch.zeros(8, 8)

    def __call__(self, hits: Tensor) -> Tensor:
        self.grid = self.grid * 0.98
        self.grid.index_put_((hits[:, 0], hits[:, 1]), torch.full((3,), 0.4), accumulate=True)
        self.grid.clamp_(-2.0, 2.0)
        return torch.sigmoid(self.grid)[2:6, 2:6]


@clean(
    "A", rec={"acc": normal(3, m=0.5), "gyro": normal(3, s=0.2)}, passes=4, backends=("jit", "onnx")
)
class OutsideMahony:
    """Attitude with a bias estimate."""

    def __init__(self) -> None:
        self.q, self.bias = torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.zeros(3)

    def __call__(self, acc: Tensor, gyro: Tensor) -> dict:
        w, x, y, z = self.q
        down = torch.stack(
            [2 * (x * z - w * y), 2 * (w * x + y * z), w * w - x * x - y * y + z * z]
        )
        error = torch.linalg.cross(acc / (acc.norm() + 1e-3), down)
        self.bias = self.bias - 0.01 * error
        p, q, r = gyro + error - self.bias
        dq = torch.stack(
            [
                -x * p - y * q - z * r,
                w * p + y * r - z * q,
                w * q - x * r + z * p,
                w * r + x * q - y * p,
            ]
        )
        new = self.q + 0.005 * dq
        self.q = new / new.norm()
        return {"attitude": self.q, "bias": self.bias * 1.0}


@clean("A", rec={"cmd": normal(1, 2)}, passes=4)
class OutsideTrajectory:
    """A minimum-jerk blend whose time is a tensor, restarted by large commands."""

    def __init__(self) -> None:
        self.t = torch.ones(1, 1)
        self.start, self.goal = torch.zeros(1, 2), torch.zeros(1, 2)

    def __call__(self, cmd: Tensor) -> Tensor:
        fresh = (cmd - self.goal).norm(dim=-1, keepdim=True) > 1.5
        s = self.t.clamp(0, 1)
        blend = 10 * s**3 - 15 * s**4 + 6 * s**5
        now = self.start + (self.goal - self.start) * blend
        self.start = torch.where(fresh, now, self.start)
        self.goal = torch.where(fresh, cmd, self.goal)
        self.t = torch.where(fresh, torch.zeros_like(self.t), self.t + 0.1)
        return now
