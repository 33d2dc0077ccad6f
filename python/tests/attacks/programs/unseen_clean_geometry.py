"""Isaac Lab's observation terms and math helpers, kinematics, whole-body helpers."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attacks.draws import array, double, flags, normal, uniform
from attacks.registry import ALL, clean


def normalize(x: Tensor, eps: float = 1e-9) -> Tensor:
    return x / x.norm(p=2, dim=-1).clamp(min=eps, max=None).unsqueeze(-1)


def quat_conjugate(q: Tensor) -> Tensor:
    shape = q.shape
    q = q.reshape(-1, 4)
    return torch.cat((q[..., 0:1], -q[..., 1:]), dim=-1).view(shape)


def quat_mul(q1: Tensor, q2: Tensor) -> Tensor:
    if q1.shape != q2.shape:
        raise ValueError(f"Expected same shape: {q1.shape} != {q2.shape}.")
    shape = q1.shape
    q1, q2 = q1.reshape(-1, 4), q2.reshape(-1, 4)
    w1, x1, y1, z1 = q1[:, 0], q1[:, 1], q1[:, 2], q1[:, 3]
    w2, x2, y2, z2 = q2[:, 0], q2[:, 1], q2[:, 2], q2[:, 3]
    ww = (z1 + x1) * (x2 + y2)
    yy = (w1 - y1) * (w2 + z2)
    zz = (w1 + y1) * (w2 - z2)
    xx = ww + yy + zz
    qq = 0.5 * (xx + (z1 - x1) * (x2 - y2))
    w = qq - ww + (z1 - y1) * (y2 - z2)
    x = qq - xx + (x1 + w1) * (x2 + w2)
    y = qq - yy + (w1 - x1) * (y2 + z2)
    z = qq - zz + (z1 + y1) * (w2 - x2)
    return torch.stack([w, x, y, z], dim=-1).view(shape)


def quat_apply(quat: Tensor, vec: Tensor) -> Tensor:
    shape = vec.shape
    quat, vec = quat.reshape(-1, 4), vec.reshape(-1, 3)
    xyz = quat[:, 1:]
    t = xyz.cross(vec, dim=-1) * 2
    return (vec + quat[:, 0:1] * t + xyz.cross(t, dim=-1)).view(shape)


def matrix_from_quat(q: Tensor) -> Tensor:
    r, i, j, k = torch.unbind(q, -1)
    two_s = 2.0 / (q * q).sum(-1)
    o = torch.stack(
        (
            1 - two_s * (j * j + k * k),
            two_s * (i * j - k * r),
            two_s * (i * k + j * r),
            two_s * (i * j + k * r),
            1 - two_s * (i * i + k * k),
            two_s * (j * k - i * r),
            two_s * (i * k - j * r),
            two_s * (j * k + i * r),
            1 - two_s * (i * i + j * j),
        ),
        -1,
    )
    return o.reshape(q.shape[:-1] + (3, 3))


@clean("H", rec={"q": normal(2, 4), "p": normal(2, 4)}, backends=ALL, passes=3)
def CcQuatError(q: Tensor, p: Tensor) -> Tensor:
    """The rotation vector between two quaternions, short way around, safe at zero."""
    q, p = normalize(q), normalize(p)
    e = quat_mul(q, quat_conjugate(p))
    e = e * (1.0 - 2.0 * (e[..., 0:1] < 0.0))
    mag = torch.linalg.norm(e[..., 1:], dim=-1)
    half = torch.atan2(mag, e[..., 0])
    angle = 2.0 * half
    ratio = torch.where(angle.abs() > 1e-6, torch.sin(half) / angle, 0.5 - angle * angle / 48)
    return e[..., 1:4] / ratio.unsqueeze(-1)


@clean("H", rec={"q": normal(3, 4)}, backends=("jit", "onnx"), passes=3)
def CcEulerXyz(q: Tensor) -> dict:
    """Roll, pitch and yaw from a quaternion, pitch with the gimbal corner."""
    q = normalize(q)
    q_w, q_x, q_y, q_z = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
    roll = torch.atan2(2.0 * (q_w * q_x + q_y * q_z), 1 - 2 * (q_x * q_x + q_y * q_y))
    sin_pitch = 2.0 * (q_w * q_y - q_z * q_x)
    pitch = torch.where(
        torch.abs(sin_pitch) >= 1,
        math.pi / 2.0 * torch.sign(sin_pitch),
        torch.asin(sin_pitch.clamp(-1, 1)),
    )
    yaw = torch.atan2(2.0 * (q_w * q_z + q_x * q_y), 1 - 2 * (q_y * q_y + q_z * q_z))
    return {"roll": torch.sin(roll), "pitch": pitch, "yaw": torch.cos(yaw)}


@clean(
    "H", rec={"quat": normal(2, 4), "vec": normal(2, 3)}, backends="jit", style="method", passes=4
)
def CcYawQuat(quat: Tensor, vec: Tensor) -> Tensor:
    """Rotation by the yaw alone, as a function annotated as a node."""
    quat = normalize(quat)
    shape = quat.shape
    q = quat.view(-1, 4)
    qw, qx, qy, qz = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
    yaw = torch.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))
    quat_yaw = torch.zeros_like(q)
    quat_yaw[:, 3] = torch.sin(yaw / 2)
    quat_yaw[:, 0] = torch.cos(yaw / 2)
    rotated = quat_apply(normalize(quat_yaw).view(shape), vec)
    return rotated


@clean("H", rec={"rpy": uniform(-1.5, 1.5, 2, 3)}, backends="pt2", passes=3)
def CcQuatFromEuler(rpy: Tensor) -> Tensor:
    """Isaac's quat_from_euler_xyz, made unique by the sign of the real part."""
    roll, pitch, yaw = rpy.unbind(-1)
    cy, sy = torch.cos(yaw * 0.5), torch.sin(yaw * 0.5)
    cr, sr = torch.cos(roll * 0.5), torch.sin(roll * 0.5)
    cp, sp = torch.cos(pitch * 0.5), torch.sin(pitch * 0.5)
    q = torch.stack(
        [
            cy * cr * cp + sy * sr * sp,
            cy * sr * cp - sy * cr * sp,
            cy * cr * sp + sy * sr * cp,
            sy * cr * cp - cy * sr * sp,
        ],
        -1,
    )
    return torch.where(q[..., 0:1] < 0, -q, q)


@clean("H", rec={"d6": normal(3, 6)}, backends=("jit", "onnx"), passes=3)
def CcRotation6d(d6: Tensor) -> Tensor:
    """pytorch3d's rotation_6d_to_matrix by Gram-Schmidt."""
    a1, a2 = d6[..., :3], d6[..., 3:]
    b1 = F.normalize(a1, dim=-1)
    b2 = a2 - (b1 * a2).sum(-1, keepdim=True) * b1
    b2 = F.normalize(b2, dim=-1)
    b3 = torch.cross(b1, b2, dim=-1)
    return torch.stack((b1, b2, b3), dim=-2)


@clean("H", rec={"aa": normal(2, 3)}, backends=("jit", "pt2"), passes=3)
def CcAxisAngleExp(aa: Tensor) -> Tensor:
    """Rodrigues with a Taylor series for small angles, in a where."""
    angle = torch.linalg.norm(aa, dim=-1, keepdim=True).unsqueeze(-1)
    zeros = torch.zeros_like(aa[..., 0])
    rx, ry, rz = aa.unbind(-1)
    K = torch.stack([zeros, -rz, ry, rz, zeros, -rx, -ry, rx, zeros], dim=-1).view(-1, 3, 3)
    small = angle < 1e-4
    safe = torch.where(small, torch.ones_like(angle), angle)
    a = torch.where(small, 1 - angle**2 / 6, torch.sin(safe) / safe)
    b = torch.where(small, 0.5 - angle**2 / 24, (1 - torch.cos(safe)) / safe**2)
    return torch.eye(3) + a * K + b * (K @ K)


@clean(
    "H",
    rec={"pos": normal(2, 3), "quat": normal(2, 4), "target": normal(2, 3)},
    backends="jit",
    passes=3,
)
def CcSubtractFrame(pos: Tensor, quat: Tensor, target: Tensor) -> dict:
    """subtract_frame_transforms with its optional arguments, and the way back."""

    def subtract(t01: Tensor, q01: Tensor, t02: Tensor | None = None, q02: Tensor | None = None):
        q10 = quat_conjugate(q01)
        q12 = quat_mul(q10, q02) if q02 is not None else q10
        t12 = quat_apply(q10, t02 - t01) if t02 is not None else quat_apply(q10, -t01)
        return t12, q12

    quat = normalize(quat)
    t, q = subtract(pos, quat, target)
    return {"in_body": t, "inverse": q, "back": quat_apply(quat, t) + pos}


@clean(
    "H",
    rec={"quat": normal(2, 4), "lin": normal(2, 3), "points": normal(2, 4, 3)},
    backends=("jit", "onnx"),
    passes=3,
)
def CcFootPositions(quat: Tensor, lin: Tensor, points: Tensor) -> dict:
    """Feet in the body frame by matrices, and velocities through a transposed product."""
    R = matrix_from_quat(normalize(quat))
    feet = torch.einsum("nij,nkj->nki", R.transpose(-2, -1), points)
    vel = torch.bmm(R.mT, lin.unsqueeze(-1)).squeeze(-1)
    return {"feet": feet.flatten(1), "vel": vel, "height": -feet[..., 2].min(dim=1).values}


class Articulation:
    """A robot's data as Isaac Lab has it, reduced to what the terms look at."""

    def __init__(self) -> None:
        self.joint_names = ["hip", "thigh", "calf"]
        self.default_joint_pos = torch.tensor([[0.1, 0.8, -1.5]])
        self.soft_joint_pos_limits = torch.tensor([[[-1.0, 1.0], [-0.5, 2.5], [-2.7, -0.8]]])
        self.joint_pos: Tensor | None = None
        self.joint_vel: Tensor | None = None

    def update(self, **values: Tensor) -> None:
        for key, value in values.items():
            if not hasattr(self, key):
                raise AttributeError(key)
            setattr(self, key, value)

    def find_joints(self, *names: str) -> list[int]:
        return [self.joint_names.index(n) for n in names]


@clean("H", rec={"pos": normal(1, 3), "vel": normal(1, 3)}, backends="jit", passes=4)
class CcJointTerms:
    """Isaac Lab's joint terms read from an articulation that is updated in every step."""

    def __init__(self) -> None:
        self.asset = Articulation()
        self.joint_ids = self.asset.find_joints("calf", "hip")

    def joint_pos_rel(self) -> Tensor:
        a = self.asset
        return a.joint_pos[:, self.joint_ids] - a.default_joint_pos[:, self.joint_ids]

    def joint_pos_limit_normalized(self) -> Tensor:
        lo, hi = self.asset.soft_joint_pos_limits[..., 0], self.asset.soft_joint_pos_limits[..., 1]
        offset = (lo + hi) * 0.5
        return 2 * (self.asset.joint_pos - offset) / (hi - lo)

    def __call__(self, pos: Tensor, vel: Tensor) -> Tensor:
        self.asset.update(joint_pos=pos, joint_vel=vel)
        terms = [
            self.joint_pos_rel(),
            self.joint_pos_limit_normalized(),
            self.asset.joint_vel * 0.05,
        ]
        return torch.cat(terms, dim=-1).clip(-100.0, 100.0)


@clean(
    "H",
    rec={"heading": uniform(-3.0, 3.0, 2), "target": uniform(-3.0, 3.0, 2)},
    backends=("jit", "onnx"),
    passes=3,
)
def CcHeadingCommand(heading: Tensor, target: Tensor) -> Tensor:
    """A heading command: the error wrapped by atan2, stiffness, clip to the ranges."""
    ranges = {"ang_vel_z": (-1.0, 1.0)}
    error = target - heading
    wrapped = torch.atan2(torch.sin(error), torch.cos(error))
    return torch.clip(0.5 * wrapped, min=ranges["ang_vel_z"][0], max=ranges["ang_vel_z"][1])


@clean("H", rec={"scan": normal(1, 11), "base_z": normal(1, 1)}, backends="onnx", passes=3)
def CcHeightScan(scan: Tensor, base_z: Tensor) -> Tensor:
    """height_scan: relative to the sensor, an offset, a clip, then a scale."""
    offset = 0.5
    heights = base_z - scan - offset
    return heights.clip(-1.0, 1.0) * torch.linspace(1.0, 0.5, heights.shape[-1])


@clean("H", rec={"q": normal(1, 3), "ee": normal(1, 3)}, backends="jit", passes=3)
class CcPlanarIk:
    """Damped least squares steps on a planar arm, Jacobian by hand, five fixed iterations."""

    lengths = (0.5, 0.4, 0.3)

    def fk(self, q: Tensor) -> tuple[Tensor, Tensor]:
        angles = torch.cumsum(q, dim=-1)
        lengths = torch.tensor(self.lengths)
        x, y = lengths * torch.cos(angles), lengths * torch.sin(angles)
        pos = torch.stack([x.sum(-1), y.sum(-1)], -1)
        dx = -torch.flip(torch.cumsum(torch.flip(y, [-1]), -1), [-1])
        dy = torch.flip(torch.cumsum(torch.flip(x, [-1]), -1), [-1])
        return pos, torch.stack([dx, dy], dim=-2)

    def __call__(self, q: Tensor, ee: Tensor) -> Tensor:
        goal = torch.tanh(ee[:, :2])
        for _ in range(5):
            pos, J = self.fk(q)
            JT = J.transpose(1, 2)
            lam = (0.3**2) * torch.eye(2)
            dq = JT @ torch.inverse(J @ JT + lam) @ (goal - pos).unsqueeze(-1)
            q = q + dq.squeeze(-1).clamp(-0.3, 0.3)
        return q


@clean("H", rec={"v": normal(2, 3), "n": normal(2, 3)}, backends="jit", passes=3)
def CcTangentFrame(v: Tensor, n: Tensor) -> dict:
    """A friction cone's projection: normal part, tangent part, scaled into the cone."""
    n = normalize(n + 0.01)
    vn = torch.sum(v * n, dim=-1, keepdim=True)
    vt = v - vn * n
    limit = 0.6 * vn.clamp(min=0.0)
    scale = torch.minimum(
        torch.ones_like(limit), limit / vt.norm(dim=-1, keepdim=True).clamp_min(1e-6)
    )
    return {"force": vn.clamp(min=0.0) * n + scale * vt, "slip": (scale < 1.0).float()}


@clean(
    "H",
    rec={"com": normal(1, 2), "feet": normal(1, 4, 2), "contact": flags(0.5, 1, 4)},
    backends="jit",
    passes=3,
)
def CcCapturePoint(com: Tensor, feet: Tensor, contact: Tensor) -> dict:
    """Whole-body balance: centre of the feet on the ground, or of all where none is."""
    w = contact.float()
    w = w + (w.sum(-1, keepdim=True) < 0.5).float()
    centre = (feet * w.unsqueeze(-1)).sum(1) / w.sum(-1, keepdim=True)
    omega = math.sqrt(9.81 / 0.9)
    return {"cop": centre, "xcom": com + (com - centre) / omega}


@clean("H", rec={"q": array(double(normal(4)))}, backends=("jit", "pt2"), passes=3)
def CcNumpyRotation(q: np.ndarray) -> np.ndarray:
    """A rotation matrix from a quaternion in NumPy's double precision."""
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@clean(
    "H",
    rec={"a": normal(1, 4), "b": normal(1, 4), "tau": uniform(0.0, 0.4, 1, 1)},
    backends="jit",
    passes=3,
)
def CcSlerp(a: Tensor, b: Tensor, tau: Tensor) -> Tensor:
    """Slerp with the short way and a linear blend near zero, all in where."""
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    dot = (a * b).sum(-1, keepdim=True)
    b = torch.where(dot < 0, -b, b)
    dot = dot.abs().clamp(max=1.0)
    theta = torch.acos(dot.clamp(max=1.0 - 1e-6))
    s = torch.sin(theta)
    slerp = (torch.sin((1 - tau) * theta) * a + torch.sin(tau * theta) * b) / s
    lerp = (1 - tau) * a + tau * b
    return F.normalize(torch.where(dot > 0.9995, lerp, slerp), dim=-1)


def convert_quat(quat: Tensor, to: Literal["xyzw", "wxyz"] = "xyzw") -> Tensor:
    if quat.shape[-1] != 4:
        raise ValueError(f"Expected a quaternion with shape (..., 4), got: {quat.shape}.")
    if to == "xyzw":
        return torch.roll(quat, -1, dims=-1)
    if to == "wxyz":
        return torch.roll(quat, 1, dims=-1)
    raise ValueError(f"Expected input argument `to` to be 'xyzw' or 'wxyz'. Received: {to}.")


@clean("H", rec={"quat": normal(2, 4), "omega": normal(2, 3)}, backends=("onnx", "jit"), passes=3)
def CcConvertAndIntegrate(quat: Tensor, omega: Tensor) -> Tensor:
    """xyzw to wxyz, one step of integration with the body rate, normalised, and back."""
    q = normalize(convert_quat(quat, to="wxyz"))
    pure = torch.cat([torch.zeros_like(omega[:, :1]), omega], dim=-1)
    q = normalize(q + 0.5 * 0.02 * quat_mul(q, pure))
    return convert_quat(q, to="xyzw")


@clean("H", rec={"depth": uniform(0.2, 4.0, 1, 6, 8)}, backends="jit", passes=3)
class CcUnproject:
    """Depth to points: intrinsics inverted once and kept, pixel grid cached by size."""

    _grids: dict[tuple[int, int], Tensor]

    def __init__(self) -> None:
        self._grids = {}
        self.K = torch.tensor([[8.0, 0.0, 4.0], [0.0, 8.0, 3.0], [0.0, 0.0, 1.0]])
        self.K_inv = torch.linalg.inv(self.K)

    def pixels(self, h: int, w: int) -> Tensor:
        if (h, w) not in self._grids:
            v, u = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
            self._grids[(h, w)] = torch.stack([u, v, torch.ones_like(u)], dim=0).reshape(3, -1)
        return self._grids[(h, w)]

    def __call__(self, depth: Tensor) -> Tensor:
        rays = self.K_inv @ self.pixels(*depth.shape[-2:])
        return (rays.unsqueeze(0) * depth.reshape(1, 1, -1)).transpose(1, 2)
