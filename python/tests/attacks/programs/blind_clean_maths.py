"""Geometry, kinematics, control and tables without memory."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import integers, normal, uniform
from attacks.registry import ALL, clean


@clean(
    rec={"q0": normal(2, 4), "q1": normal(2, 4), "t": uniform(0, 1, 2, 1)}, backends=("jit", "onnx")
)
def BcSlerp(q0: Tensor, q1: Tensor, t: Tensor) -> Tensor:
    """Slerp along the short way, with a linear blend where the angle is small."""
    q0, q1 = F.normalize(q0, dim=-1), F.normalize(q1, dim=-1)
    dot = (q0 * q1).sum(-1, keepdim=True)
    q1 = torch.where(dot < 0, -q1, q1)
    theta = torch.acos(dot.abs().clamp(max=1 - 1e-6))
    sin = torch.sin(theta)
    a, b = torch.sin((1 - t) * theta) / sin, torch.sin(t * theta) / sin
    near = sin < 1e-3
    return F.normalize(torch.where(near, 1 - t, a) * q0 + torch.where(near, t, b) * q1, dim=-1)


@clean(rec={"rpy": normal(3, 3)}, style="method", backends="pt2")
def BcEulerToQuat(rpy: Tensor) -> Tensor:
    """Roll, pitch and yaw into a quaternion."""
    (cr, cp, cy), (sr, sp, sy) = ((f(rpy / 2)).unbind(-1) for f in (torch.cos, torch.sin))
    w = cr * cp * cy + sr * sp * sy
    x = sr * cp * cy - cr * sp * sy
    y = cr * sp * cy + sr * cp * sy
    z = cr * cp * sy - sr * sp * cy
    return torch.stack([w, x, y, z], dim=-1)


DH = ((0.0, 0.33, math.pi / 2), (0.3, 0.0, 0.0), (0.25, 0.0, -math.pi / 2), (0.0, 0.1, 0.0))


def _dh(theta: Tensor, a: float, d: float, alpha: float) -> Tensor:
    ct, st, ca, sa = theta.cos(), theta.sin(), math.cos(alpha), math.sin(alpha)
    zero, one = torch.zeros_like(theta), torch.ones_like(theta)
    rows = [
        torch.stack([ct, -st * ca, st * sa, a * ct], -1),
        torch.stack([st, ct * ca, -ct * sa, a * st], -1),
        torch.stack([zero, sa * one, ca * one, d * one], -1),
        torch.stack([zero, zero, zero, one], -1),
    ]
    return torch.stack(rows, -2)


def _fk(q: Tensor) -> Tensor:
    pose = torch.eye(4)
    for i, (a, d, alpha) in enumerate(DH):
        pose = pose @ _dh(q[..., i], a, d, alpha)
    return pose


@clean(rec={"q": normal(2, 4)}, backends=("jit", "onnx"))
def BcDhChain(q: Tensor) -> dict:
    """Forward kinematics by DH matrices: position and approach axis of the tool."""
    pose = _fk(q)
    return {"position": pose[..., :3, 3], "approach": pose[..., :3, 2]}


@clean(rec={"q": normal(4), "twist": normal(3)}, backends="jit")
def BcJacrevDls(q: Tensor, twist: Tensor) -> Tensor:
    """Damped least squares with the Jacobian from `torch.func.jacrev`."""
    jac = torch.func.jacrev(lambda x: _fk(x)[:3, 3])(q)
    return jac.T @ torch.linalg.solve(jac @ jac.T + 0.01 * torch.eye(3), twist)


@clean(rec={"x": normal(2, 4)}, style="method", backends="onnx")
class BcLqrDouble:
    """LQR: the gain comes from iterating Riccati's equation when it is made."""

    def __init__(self) -> None:
        eye, dt = torch.eye(2), 0.05
        a = torch.cat([torch.cat([eye, dt * eye], 1), torch.cat([0 * eye, eye], 1)])
        b = torch.cat([0.5 * dt**2 * eye, dt * eye])
        p = torch.eye(4)
        for _ in range(200):
            k = torch.linalg.solve(0.1 * eye + b.T @ p @ b, b.T @ p @ a)
            p = torch.eye(4) + a.T @ p @ (a - b @ k)
        self.k = k

    def step(self, x: Tensor) -> Tensor:
        return -x @ self.k.T


@clean(rec={"d": uniform(0.1, 3.0, 2, 5)}, backends=ALL)
def BcSmoothMin(d: Tensor) -> Tensor:
    """A smooth minimum of distances, and a barrier of it."""
    nearest = -torch.logsumexp(-8.0 * d, dim=-1) / 8.0
    return F.softplus(0.5 - nearest, beta=10.0)


@clean(rec={"speed": uniform(-1, 6, 4)}, backends="jit")
class BcLookupTable:
    """Linear interpolation in a motor's table by `searchsorted`, held at the ends."""

    def __init__(self) -> None:
        self.x = torch.tensor([0.0, 1.0, 2.5, 4.0, 5.0])
        self.y = torch.tensor([10.0, 9.5, 7.0, 3.0, 0.0])

    def __call__(self, speed: Tensor) -> Tensor:
        speed = speed.clamp(self.x[0], self.x[-1])
        i = torch.searchsorted(self.x, speed.contiguous(), right=True).clamp(1, len(self.x) - 1)
        x0, x1, y0, y1 = self.x[i - 1], self.x[i], self.y[i - 1], self.y[i]
        return y0 + (speed - x0) / (x1 - x0) * (y1 - y0)


@clean(rec={"ctrl": normal(2, 6, 3)}, backends="onnx", style="method")
class BcBezier:
    """A Bézier curve of fifth degree, and its hodograph."""

    def __init__(self) -> None:
        t = torch.linspace(0, 1, 7)
        self.b5 = torch.stack([math.comb(5, k) * t**k * (1 - t) ** (5 - k) for k in range(6)], -1)
        self.b4 = torch.stack([math.comb(4, k) * t**k * (1 - t) ** (4 - k) for k in range(5)], -1)

    def step(self, ctrl: Tensor) -> dict:
        velocity = 5 * (ctrl[:, 1:] - ctrl[:, :-1])
        return {
            "path": torch.einsum("tk,bkd->btd", self.b5, ctrl),
            "speed": torch.einsum("tk,bkd->btd", self.b4, velocity).norm(dim=-1),
        }


@clean(rec={"forces": normal(6, 3), "body": integers(0, 4, 6)}, backends="jit")
def BcScatterForces(forces: Tensor, body: Tensor) -> Tensor:
    """Contact forces summed by the body they act upon."""
    total = torch.zeros(4, 3)
    return total.scatter_add(0, body.unsqueeze(-1).expand(-1, 3), forces)


@clean(rec={"q": normal(1, 6)}, backends=("jit", "onnx"))
class BcJointReorder:
    """From the simulator's order of joints into the robot's, found by names."""

    SIM = ["FL_hip", "FR_hip", "FL_knee", "FR_knee", "FL_foot", "FR_foot"]
    REAL = ["FR_hip", "FR_knee", "FR_foot", "FL_hip", "FL_knee", "FL_foot"]

    def __init__(self) -> None:
        self.to_real = torch.tensor([self.SIM.index(name) for name in self.REAL])
        self.sign = torch.tensor(
            [-1.0 if n.startswith("FR") and "hip" in n else 1.0 for n in self.REAL]
        )

    def __call__(self, q: Tensor) -> Tensor:
        return torch.index_select(q, 1, self.to_real) * self.sign


@clean(rec={"obstacles": normal(8, 2), "at": normal(2)}, backends="pt2")
def BcNearestObstacles(obstacles: Tensor, at: Tensor) -> Tensor:
    """The three nearest obstacles relative to the robot, nearest first."""
    relative = obstacles - at
    distance, index = relative.norm(dim=-1).topk(3, largest=False, sorted=True)
    return torch.cat([relative[index], distance.unsqueeze(-1)], -1)


@clean(rec={"acc": normal(1, 10, 2), "v0": normal(1, 1, 2)}, backends=("onnx", "jit"))
def BcCumsumRollout(acc: Tensor, v0: Tensor) -> Tensor:
    """A double integrator rolled out by two sums."""
    v = v0 + 0.1 * torch.cumsum(acc, 1)
    return torch.cumsum(0.1 * v, 1)


@clean(rec={"grid": normal(1, 1, 6, 6), "xy": uniform(-0.35, 0.35, 1, 5, 2)}, backends="jit")
def BcElevationSamples(grid: Tensor, xy: Tensor) -> Tensor:
    """Heights of a map around the feet by `grid_sample`."""
    at = xy.view(1, 1, 5, 2)
    return F.grid_sample(grid, at, mode="bilinear", padding_mode="border", align_corners=True).view(
        1, 5
    )


@clean(rec={"q": normal(4, 3)}, backends="jit")
def BcVmapLegs():
    """One leg's kinematics, mapped over four legs with their own signs."""
    sides = torch.tensor([1.0, -1.0, 1.0, -1.0])

    def leg(q: Tensor, side: Tensor) -> Tensor:
        hip, thigh, calf = q
        reach = 0.2 * torch.cos(thigh) + 0.2 * torch.cos(thigh + calf)
        x = -0.2 * torch.sin(thigh) - 0.2 * torch.sin(thigh + calf)
        y = side * 0.08 * torch.cos(hip) + reach * torch.sin(hip)
        z = side * 0.08 * torch.sin(hip) - reach * torch.cos(hip)
        return torch.stack([x, y, z])

    return lambda q: torch.func.vmap(leg)(q, sides)


@clean(rec={"goal": normal(3, 2)}, backends="onnx")
def BcTwoLinkIk(goal: Tensor) -> Tensor:
    """Two links, elbow up; goals out of reach are taken to the edge."""
    l1, l2 = 0.4, 0.3
    r = goal.norm(dim=-1).clamp(0.15, 0.65)
    cos_elbow = ((r**2 - l1**2 - l2**2) / (2 * l1 * l2)).clamp(-1 + 1e-4, 1 - 1e-4)
    elbow = torch.acos(cos_elbow)
    heading = torch.atan2(goal[:, 1], goal[:, 0])
    shoulder = heading - torch.atan2(l2 * torch.sin(elbow), l1 + l2 * torch.cos(elbow))
    return torch.stack([shoulder, elbow], -1)


@clean(rec={"wrench": normal(1, 4)}, backends=("jit", "pt2"))
class BcQuadrotorMixer:
    """Thrust and torques into four rotors: a pseudo-inverse made once, then limits."""

    def __init__(self, arm: float = 0.17, drag: float = 0.02) -> None:
        xs, ys = [arm, -arm, arm, -arm], [-arm, arm, arm, -arm]
        self.inverse = torch.linalg.pinv(
            torch.tensor([[1.0] * 4, ys, xs, [drag, drag, -drag, -drag]])
        )

    def __call__(self, wrench: Tensor) -> Tensor:
        thrust = (wrench @ self.inverse.T).clamp(min=0.0)
        scale = torch.minimum(torch.ones(()), 6.0 / (thrust.amax(-1, keepdim=True) + 1e-6))
        return torch.sqrt(thrust * scale + 1e-8)


@clean(rec={"w": normal(1, 3), "v": normal(1, 3)}, backends="jit", style="method")
def BcSkewRodrigues(w: Tensor, v: Tensor) -> Tensor:
    """Rotates a vector by an axis-angle through a skew matrix that is filled in place."""
    k = torch.zeros(w.shape[0], 3, 3)
    k[:, 0, 1], k[:, 0, 2], k[:, 1, 2] = -w[:, 2], w[:, 1], -w[:, 0]
    k = k - k.transpose(1, 2)
    theta2 = (w * w).sum(-1)[:, None, None]
    theta = torch.sqrt(theta2 + 1e-8)
    r = (
        torch.eye(3)
        + torch.sin(theta) / theta * k
        + (1 - torch.cos(theta)) / (theta2 + 1e-8) * (k @ k)
    )
    return (r @ v.unsqueeze(-1)).squeeze(-1)


@clean(rec={"at": normal(2), "goal": normal(2), "obs": normal(5, 2, s=3.0)}, backends="onnx")
def BcPotentialField(at: Tensor, goal: Tensor, obs: Tensor) -> Tensor:
    """Attraction and repulsion, without dividing by zero."""
    away = at - obs
    d = away.norm(dim=-1, keepdim=True).clamp_min(1e-3)
    push = torch.where(d < 2.0, (1 / d - 0.5) / d**2 * (away / d), torch.zeros_like(away))
    force = 0.8 * (goal - at) + push.sum(0)
    return force / force.norm().clamp(min=1.0)


@clean(rec={"m": normal(1, 3, 3), "b": normal(1, 3)}, backends="jit")
def BcMassMatrixSolve(m: Tensor, b: Tensor) -> Tensor:
    """Accelerations from a mass matrix by Cholesky."""
    mass = m @ m.mT + 0.5 * torch.eye(3)
    factor = torch.linalg.cholesky(mass)
    return torch.cholesky_solve(b.unsqueeze(-1), factor).squeeze(-1)


@clean(rec={"p": normal(5, 3), "a": normal(3), "b": normal(3)}, backends=("pt2", "jit"))
def BcCapsuleDistance(p: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Signed distances of points to a capsule."""
    axis = b - a
    t = ((p - a) @ axis / (axis @ axis + 1e-9)).clamp(0, 1)
    return (p - (a + t[:, None] * axis)).norm(dim=-1) - 0.12


@clean(rec={"x": normal(2, 3)}, backends="onnx", style="module")
class BcFourierRbf(nn.Module):
    """Fourier and radial features, and a linear readout."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("freq", 2.0 ** torch.arange(3))
        self.register_buffer("centres", torch.randn(5, 3))
        self.out = nn.Linear(23, 2)

    def forward(self, x: Tensor) -> Tensor:
        angles = (x[..., None] * self.freq).flatten(-2)
        radial = torch.exp(-((x[:, None] - self.centres) ** 2).sum(-1))
        return self.out(torch.cat([angles.sin(), angles.cos(), radial], -1))


@clean(rec={"cost": normal(16), "noise": normal(16, 4, 2)}, backends="jit")
def BcCrossEntropyElite(cost: Tensor, noise: Tensor) -> dict:
    """The elite of a cross-entropy planner: sorted, gathered, mean and deviation."""
    order = torch.argsort(cost)
    elite = noise.index_select(0, order[:4])
    return {"mean": elite.mean(0), "std": elite.std(0, unbiased=False) + 1e-3}


@clean(rec={"cmd": normal(1, 3)}, backends=("jit", "onnx"))
class BcSwerve:
    """A swerve drive: angle and speed of four modules, speeds scaled to the limit."""

    def __init__(self) -> None:
        self.at = torch.tensor([[0.3, 0.2], [0.3, -0.2], [-0.3, 0.2], [-0.3, -0.2]])

    def __call__(self, cmd: Tensor) -> dict:
        vx, vy, wz = cmd[:, 0:1], cmd[:, 1:2], cmd[:, 2:3]
        mx, my = vx - wz * self.at[:, 1], vy + wz * self.at[:, 0]
        speed = torch.sqrt(mx**2 + my**2 + 1e-9)
        ratio = (speed.max(dim=-1, keepdim=True).values / 2.0).clamp(min=1.0)
        return {"angle": torch.atan2(my, mx), "speed": speed / ratio}
