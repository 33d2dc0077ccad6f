"""roma: rotations and rigid transforms around a policy."""

from __future__ import annotations

import torch
from attacks.draws import normal, uniform
from torch import Tensor, nn

from zoo.register import policy


@policy(
    "roma",
    inputs={"rotvec": normal(2, 3, s=0.6), "target": normal(2, 4), "speed": uniform(0.2, 1.0, 1)},
    needs=("roma",),
    passes=6,
    name="roma_slerp_tracker",
)
class SlerpTracker:
    """Follows a target attitude: an error as a rotation vector, a slerp step, Euler angles."""

    def __init__(self):
        import roma

        self.roma = roma
        self.q = roma.identity_quat((2,))

    def __call__(self, rotvec: Tensor, target: Tensor, speed: Tensor) -> dict[str, Tensor]:
        roma = self.roma
        target = roma.quat_normalize(target)
        moved = roma.quat_product(self.q, roma.rotvec_to_unitquat(0.1 * rotvec))
        steps = (0.3 * speed).clamp(0.0, 0.5)
        self.q = roma.quat_normalize(roma.unitquat_slerp(moved, target, steps)[0])
        error = roma.unitquat_to_rotvec(roma.quat_product(roma.quat_conjugation(self.q), target))
        return {
            "quat": self.q,
            "error": error,
            "distance": roma.unitquat_geodesic_distance(self.q, target),
        }


@policy("roma", inputs={"obs": normal(1, 10)}, needs=("roma",))
def roma_procrustes_head():
    """A network's nine numbers made a rotation by the orthogonal Procrustes problem."""
    import roma

    net = nn.Sequential(nn.Linear(10, 32), nn.ELU(), nn.Linear(32, 9)).eval()
    tool = torch.tensor([0.0, 0.05, 0.12])

    def step(obs: Tensor) -> dict[str, Tensor]:
        raw = 3.0 * net(obs).reshape(-1, 3, 3) + torch.eye(3)
        rotation = roma.special_procrustes(raw)
        return {"rotation": rotation, "tip": rotation @ tool}

    return step


@policy("roma", inputs={"obs": normal(2, 8)}, needs=("roma",))
def roma_gramschmidt_head():
    """The six-dimensional head with Gram-Schmidt, as a quaternion and Euler angles."""
    import roma

    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 6)).eval()

    def step(obs: Tensor) -> tuple[Tensor, Tensor]:
        columns = net(obs).reshape(-1, 3, 2) + torch.eye(3)[:, :2]
        rotation = roma.special_gramschmidt(columns)
        quat = roma.rotmat_to_unitquat(rotation)
        return quat * torch.sign(quat[..., 3:]), roma.rotvec_to_rotmat(
            roma.rotmat_to_rotvec(rotation)
        )

    return step


@policy("roma", inputs={"angles": uniform(-0.5, 0.5, 3, 3)}, needs=("roma",), style="method")
def roma_euler_conversions():
    import roma

    def step(angles: Tensor) -> dict[str, Tensor]:
        quat = roma.euler_to_unitquat("ZYX", angles)
        degrees = roma.unitquat_to_euler("xyz", quat, degrees=True)
        matrix = roma.euler_to_rotmat("XYZ", angles)
        distance = roma.rotmat_geodesic_distance(matrix, roma.unitquat_to_rotmat(quat))
        return {"degrees": degrees, "matrix": matrix, "distance": distance}

    return step


@policy(
    "roma",
    inputs={"hand": normal(1, 7), "camera": normal(1, 7), "points": normal(1, 6, 3)},
    needs=("roma",),
    name="roma_rigid_frames",
)
class RigidFrames:
    """Points of a camera in the frame of a gripper, through rigid transforms."""

    def __init__(self):
        import roma

        self.roma = roma
        mount = roma.random_unitquat((1,))
        self.mount = roma.RigidUnitQuat(mount, torch.tensor([[0.02, -0.01, 0.07]]))

    def frame(self, pose: Tensor):
        return self.roma.RigidUnitQuat(pose[:, 3:], pose[:, :3]).normalize()

    def __call__(self, hand: Tensor, camera: Tensor, points: Tensor) -> dict[str, Tensor]:
        relative = self.frame(hand).inverse() @ self.frame(camera) @ self.mount
        matrix = relative.to_homogeneous()
        moved = relative[:, None].apply(points)
        return {"points": moved, "matrix": matrix, "twist": relative.to_rigid().linear[:, 0]}


@policy(
    "roma",
    inputs={
        "turn": normal(1, 3, s=0.4),
        "shift": normal(1, 1, 3),
        "noise": normal(1, 8, 3, s=0.02),
    },
    needs=("roma",),
)
def roma_registration():
    """The rigid motion between a known shape and what was measured, point by point."""
    import roma

    shape = torch.randn(1, 8, 3)

    def step(turn: Tensor, shift: Tensor, noise: Tensor) -> dict[str, Tensor]:
        seen = shape @ roma.rotvec_to_rotmat(turn).transpose(-1, -2) + shift + noise
        rotation, offset = roma.rigid_points_registration(shape.expand_as(seen), seen)
        return {"rotation": rotation, "offset": offset, "angle": roma.rotmat_to_rotvec(rotation)}

    return step
