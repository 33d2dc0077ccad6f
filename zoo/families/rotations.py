"""Rotations as pytorch3d and its many copies have them: matrices, quaternions, angles, 6D."""

from __future__ import annotations

import torch
from attacks.draws import normal
from torch import Tensor, nn
from torch.nn import functional

from zoo.register import policy


def sqrt_of_positive(x: Tensor) -> Tensor:
    """The square root where it exists, through a mask, for the sake of gradients."""
    root = torch.zeros_like(x)
    mask = x > 0
    if torch.is_grad_enabled():
        root[mask] = torch.sqrt(x[mask])
    else:
        root = torch.where(mask, torch.sqrt(x), root)
    return root


def standardize(quat: Tensor) -> Tensor:
    return torch.where(quat[..., 0:1] < 0, -quat, quat)


def matrix_to_quaternion(matrix: Tensor) -> Tensor:
    """All four candidates, and the one with the largest divisor by a one-hot mask."""
    if matrix.size(-1) != 3 or matrix.size(-2) != 3:
        raise ValueError(f"Invalid rotation matrix shape {matrix.shape}.")
    batch = matrix.shape[:-2]
    m = torch.unbind(matrix.reshape(*batch, 9), dim=-1)
    size = sqrt_of_positive(
        torch.stack(
            [
                1.0 + m[0] + m[4] + m[8],
                1.0 + m[0] - m[4] - m[8],
                1.0 - m[0] + m[4] - m[8],
                1.0 - m[0] - m[4] + m[8],
            ],
            dim=-1,
        )
    )
    candidates = torch.stack(
        [
            torch.stack([size[..., 0] ** 2, m[7] - m[5], m[2] - m[6], m[3] - m[1]], dim=-1),
            torch.stack([m[7] - m[5], size[..., 1] ** 2, m[3] + m[1], m[2] + m[6]], dim=-1),
            torch.stack([m[2] - m[6], m[3] + m[1], size[..., 2] ** 2, m[5] + m[7]], dim=-1),
            torch.stack([m[3] - m[1], m[6] + m[2], m[7] + m[5], size[..., 3] ** 2], dim=-1),
        ],
        dim=-2,
    )
    floor = torch.tensor(0.1).to(dtype=size.dtype, device=size.device)
    candidates = candidates / (2.0 * size[..., None].max(floor))
    chosen = functional.one_hot(size.argmax(dim=-1), num_classes=4) > 0.5
    return standardize(candidates[chosen, :].reshape(*batch, 4))


def matrix_to_quaternion_gathered(matrix: Tensor) -> Tensor:
    """The newer version: the candidate by an index."""
    m = matrix.reshape(-1, 9).unbind(-1)
    one = torch.ones_like(m[0])
    size = torch.stack(
        [
            one + m[0] + m[4] + m[8],
            one + m[0] - m[4] - m[8],
            one - m[0] + m[4] - m[8],
            one - m[0] - m[4] + m[8],
        ],
        -1,
    )
    size = size.clamp_min(0).sqrt()
    rows = [
        [size[:, 0] ** 2, m[7] - m[5], m[2] - m[6], m[3] - m[1]],
        [m[7] - m[5], size[:, 1] ** 2, m[3] + m[1], m[2] + m[6]],
        [m[2] - m[6], m[3] + m[1], size[:, 2] ** 2, m[5] + m[7]],
        [m[3] - m[1], m[6] + m[2], m[7] + m[5], size[:, 3] ** 2],
    ]
    table = torch.stack([torch.stack(row, -1) for row in rows], -2)
    table = table / (2.0 * size[..., None].clamp_min(0.1))
    index = size.argmax(-1, keepdim=True)[..., None].expand(-1, 1, 4)
    return standardize(torch.gather(table, -2, index).squeeze(-2)).reshape(*matrix.shape[:-2], 4)


def quaternion_to_matrix(quat: Tensor) -> Tensor:
    r, i, j, k = torch.unbind(quat, -1)
    two = 2.0 / (quat * quat).sum(-1)
    entries = (
        1 - two * (j * j + k * k),
        two * (i * j - k * r),
        two * (i * k + j * r),
        two * (i * j + k * r),
        1 - two * (i * i + k * k),
        two * (j * k - i * r),
        two * (i * k - j * r),
        two * (j * k + i * r),
        1 - two * (i * i + j * j),
    )
    return torch.stack(entries, -1).reshape(*quat.shape[:-1], 3, 3)


def axis_angle_to_quaternion(axis_angle: Tensor) -> Tensor:
    """With a Taylor series for small angles, chosen by indices as older versions do."""
    angles = torch.norm(axis_angle, p=2, dim=-1, keepdim=True)
    half = angles * 0.5
    small = angles.abs() < 1e-6
    ratio = torch.empty_like(angles)
    ratio[~small] = torch.sin(half[~small]) / angles[~small]
    ratio[small] = 0.5 - (angles[small] * angles[small]) / 48
    return torch.cat([torch.cos(half), axis_angle * ratio], dim=-1)


def quaternion_to_axis_angle(quat: Tensor) -> Tensor:
    norms = torch.norm(quat[..., 1:], p=2, dim=-1, keepdim=True)
    half = torch.atan2(norms, quat[..., :1])
    return quat[..., 1:] / (0.5 * torch.sinc(half / torch.pi))


def quaternion_multiply(a: Tensor, b: Tensor) -> Tensor:
    aw, ax, ay, az = torch.unbind(a, -1)
    bw, bx, by, bz = torch.unbind(b, -1)
    return standardize(
        torch.stack(
            (
                aw * bw - ax * bx - ay * by - az * bz,
                aw * bx + ax * bw + ay * bz - az * by,
                aw * by - ax * bz + ay * bw + az * bx,
                aw * bz + ax * by - ay * bx + az * bw,
            ),
            -1,
        )
    )


def rotation_6d_to_matrix(d6: Tensor) -> Tensor:
    a1, a2 = d6[..., :3], d6[..., 3:]
    b1 = functional.normalize(a1, dim=-1)
    b2 = functional.normalize(a2 - (b1 * a2).sum(-1, keepdim=True) * b1, dim=-1)
    return torch.stack((b1, b2, torch.cross(b1, b2, dim=-1)), dim=-2)


def axis_rotation(axis: str, angle: Tensor) -> Tensor:
    cos, sin = torch.cos(angle), torch.sin(angle)
    one, zero = torch.ones_like(angle), torch.zeros_like(angle)
    if axis == "X":
        flat = (one, zero, zero, zero, cos, -sin, zero, sin, cos)
    elif axis == "Y":
        flat = (cos, zero, sin, zero, one, zero, -sin, zero, cos)
    elif axis == "Z":
        flat = (cos, -sin, zero, sin, cos, zero, zero, zero, one)
    else:
        raise ValueError("letter must be either X, Y or Z.")
    return torch.stack(flat, -1).reshape((*angle.shape, 3, 3))


def euler_to_matrix(angles: Tensor, convention: str) -> Tensor:
    pairs = zip(convention, torch.unbind(angles, -1), strict=True)
    first, second, third = (axis_rotation(axis, angle) for axis, angle in pairs)
    return torch.matmul(torch.matmul(first, second), third)


def matrix_to_euler_xyz(matrix: Tensor) -> Tensor:
    middle = torch.asin(matrix[..., 0, 2].clamp(-1, 1))
    first = torch.atan2(-matrix[..., 1, 2], matrix[..., 2, 2])
    last = torch.atan2(-matrix[..., 0, 1], matrix[..., 0, 0])
    return torch.stack((first, middle, last), -1)


@policy("rotations", inputs={"obs": normal(2, 10)})
def rotations_6d_policy():
    """A 6D rotation head, as a quaternion by the mask of the best candidate."""
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 9)).eval()

    def step(obs: Tensor) -> dict[str, Tensor]:
        out = 2 * net(obs)
        matrix = rotation_6d_to_matrix(out[..., 3:])
        return {"position": out[..., :3], "quat": matrix_to_quaternion(matrix)}

    return step


@policy("rotations", inputs={"obs": normal(2, 10)}, style="method", context="grad")
def rotations_gathered_policy():
    """The same with gradients left on, and the candidate gathered by its index."""
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 6)).eval()

    def step(obs: Tensor) -> dict[str, Tensor]:
        matrix = rotation_6d_to_matrix(net(obs))
        quat = matrix_to_quaternion_gathered(matrix)
        same = matrix_to_quaternion(matrix)
        axis = quaternion_to_axis_angle(same)
        return {"quat": quat, "axis": axis}

    return step


@policy(
    "rotations",
    inputs={"delta": normal(3, 3, s=0.3), "reset_to": normal(3, 3, s=0.5), "gain": normal(3, 1)},
    passes=6,
    name="rotations_delta_pose",
)
class DeltaPose:
    """Turns a target by small rotation vectors: a diffusion policy's relative actions."""

    def __init__(self):
        self.quat = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(3, 1)

    def __call__(self, delta: Tensor, reset_to: Tensor, gain: Tensor) -> dict[str, Tensor]:
        turned = quaternion_multiply(axis_angle_to_quaternion(0.2 * delta), self.quat)
        home = matrix_to_quaternion(euler_to_matrix(reset_to, "ZYX"))
        sign = torch.where((turned * home).sum(-1, keepdim=True) < 0, -1.0, 1.0)
        pull = 0.05 * torch.sigmoid(gain)
        self.quat = functional.normalize(turned + pull * (sign * home - turned), dim=-1)
        matrix = quaternion_to_matrix(self.quat)
        return {"quat": self.quat, "d6": matrix[..., :2, :].flatten(-2), "home": home}


@policy("rotations", inputs={"angles": normal(4, 3, s=0.35)})
def rotations_euler_round_trip(angles: Tensor) -> dict[str, Tensor]:
    matrix = euler_to_matrix(angles, "XYZ")
    quat = matrix_to_quaternion(matrix)
    spin = quaternion_to_axis_angle(quat)
    again = quaternion_to_matrix(axis_angle_to_quaternion(spin))
    return {"spin": spin, "angles": matrix_to_euler_xyz(again), "trace": again.diagonal(0, -2, -1)}
