"""NumPy before and behind a policy, and whole nodes in NumPy."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, double, normal, uniform
from attacks.registry import clean


@clean("H", passes=3, rec={"obs": array(normal(6))}, backends="jit")
class NcNumpyPreTorchPost:
    """Scale and clip in NumPy, a policy in torch, back to NumPy: a ROS node's callback."""

    def __init__(self) -> None:
        self.scale = np.array([0.25, 0.25, 0.25, 2.0, 2.0, 1.0], dtype=np.float32)
        self.policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        scaled = np.clip(obs * self.scale, -5.0, 5.0)
        with torch.no_grad():
            action = self.policy(torch.from_numpy(scaled).unsqueeze(0))
        return action.squeeze(0).numpy() * 0.5


@clean("A", passes=4, rec={"gyro": array(double(normal(3)))}, backends="jit")
class NcNumpyLowPass:
    """An exponential filter in float64, kept in an array."""

    def __init__(self) -> None:
        self.alpha = 0.3
        self.value = np.zeros(3)

    def __call__(self, gyro: np.ndarray) -> np.ndarray:
        self.value = self.alpha * gyro + (1.0 - self.alpha) * self.value
        return self.value


@clean("A", passes=5, rec={"obs": array(normal(4))}, backends="jit")
class NcNumpyHistoryConcat:
    """A history as a 2-d array: np.concatenate of the tail and the newest row."""

    def __init__(self) -> None:
        self.history = np.zeros((3, 4), dtype=np.float32)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        self.history = np.concatenate([self.history[1:], obs[None, :]], axis=0)
        return self.history.reshape(-1)


@clean("A", passes=4, rec={"obs": array(normal(4))}, backends="onnx")
class NcNumpyRollInto:
    """np.roll and a write of the newest row."""

    def __init__(self) -> None:
        self.buffer = np.zeros((5, 4), dtype=np.float32)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        self.buffer = np.roll(self.buffer, -1, axis=0)
        self.buffer[-1] = obs
        return self.buffer.mean(axis=0)


def quat_to_matrix(q: np.ndarray) -> np.ndarray:
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@clean("H", passes=3, rec={"quat": array(double(normal(4)))}, backends="jit")
class NcNumpyProjectedGravity:
    """Gravity in the body frame by a rotation matrix made of scalars."""

    def __call__(self, quat: np.ndarray) -> np.ndarray:
        return quat_to_matrix(quat).T @ np.array([0.0, 0.0, -1.0])


@clean("A", passes=5, rec={"z": array(double(normal(1)))}, backends="jit")
class NcNumpyKalman1d:
    """A small Kalman filter with np.linalg.inv and in-place arrays."""

    def __init__(self) -> None:
        self.A = np.array([[1.0, 0.05], [0.0, 1.0]])
        self.C = np.array([[1.0, 0.0]])
        self.x, self.P = np.zeros((2, 1)), np.eye(2)

    def __call__(self, z: np.ndarray) -> dict[str, np.ndarray]:
        self.x = self.A @ self.x
        self.P = self.A @ self.P @ self.A.T + 1e-2 * np.eye(2)
        gain = self.P @ self.C.T @ np.linalg.inv(self.C @ self.P @ self.C.T + 0.1 * np.eye(1))
        self.x = self.x + gain @ (z.reshape(1, 1) - self.C @ self.x)
        self.P = (np.eye(2) - gain @ self.C) @ self.P
        return {"estimate": self.x[:, 0], "gain": gain[:, 0]}


@clean(
    "H",
    passes=3,
    style="method",
    rec={"action": array(normal(12)), "joint_pos": array(normal(12))},
    backends="jit",
)
class NcNumpyActionPost:
    """Action post-processing: scale, add the default pose, reorder, clip to the limits."""

    def __init__(self) -> None:
        self.default = np.tile(np.array([0.0, 0.8, -1.5], dtype=np.float32), 4)
        self.order = np.array([3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8])
        self.lower, self.upper = self.default - 0.9, self.default + 0.9

    def step(self, action: np.ndarray, joint_pos: np.ndarray) -> np.ndarray:
        target = (0.25 * action + self.default)[self.order]
        target = np.clip(target, joint_pos - 0.6, joint_pos + 0.6)
        limited = np.minimum(np.maximum(target, self.lower), self.upper)
        return limited


@clean("A", passes=4, rec={"obs": array(normal(5))}, backends="jit")
class NcNumpyObsTorchGru:
    """NumPy observation with the last action in an array, a GRU in torch between."""

    def __init__(self) -> None:
        self.cell, self.head = nn.GRUCell(7, 8), nn.Linear(8, 2)
        self.h = torch.zeros(1, 8)
        self.last_action = np.zeros(2, dtype=np.float32)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        full = np.concatenate((obs, self.last_action))
        self.h = self.cell(torch.as_tensor(full)[None], self.h)
        self.last_action = torch.tanh(self.head(self.h))[0].numpy()
        return self.last_action


@clean(
    "H",
    passes=3,
    rec={"scan": array(uniform(0.1, 8.0, 36))},
    fresh={"scan": array(uniform(0.1, 12.0, 36))},
    backends="jit",
)
class NcNumpyScanPool:
    """A laser scan in NumPy: clipped, pooled by minimum, normalised."""

    def __call__(self, scan: np.ndarray) -> np.ndarray:
        ranges = np.where(scan > 6.0, np.float32(6.0), scan)
        return np.min(ranges.reshape(9, 4), axis=1) / np.float32(6.0)


@clean("H", passes=3, rec={"q": array(double(normal(2)))}, backends="onnx")
class NcNumpyPlanarKinematics:
    """Forward kinematics and Jacobian of two links with np.cos, np.stack."""

    def __call__(self, q: np.ndarray) -> dict[str, np.ndarray]:
        total = np.cumsum(q)
        c, s = np.cos(total), np.sin(total)
        lengths = np.array([0.4, 0.3])
        tip = np.stack([np.sum(lengths * c), np.sum(lengths * s)])
        jacobian = np.array([[-tip[1], -0.3 * s[1]], [tip[0], 0.3 * c[1]]])
        return {"tip": tip, "jacobian": jacobian}


@clean("H", passes=3, rec={"points": array(normal(10, 3))}, backends="jit")
class NcNumpyPointCloudFrame:
    """A point cloud into the base frame by a constant transform, centred and sized."""

    def __init__(self) -> None:
        angle = 0.3
        self.T = np.eye(4, dtype=np.float32)
        self.T[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        self.T[:3, 3] = [0.1, 0.0, 0.4]

    def __call__(self, points: np.ndarray) -> np.ndarray:
        homogeneous = np.hstack([points, np.ones((points.shape[0], 1), dtype=np.float32)])
        base = (homogeneous @ self.T.T)[:, :3]
        centred = base - base.mean(axis=0, keepdims=True)
        return centred / (np.abs(centred).max() + np.float32(1e-6))


@clean("A", passes=6, rec={"torque": array(normal(3))}, backends="jit")
class NcNumpyThermalModel:
    """A motor's temperature by squared torque, and a derating factor without branches."""

    def __init__(self) -> None:
        self.temperature = np.full(3, 25.0, dtype=np.float32)

    def __call__(self, torque: np.ndarray) -> np.ndarray:
        self.temperature = (
            self.temperature
            + np.float32(0.1) * np.square(torque)
            - np.float32(0.01) * (self.temperature - np.float32(25.0))
        )
        derating = np.clip((45.0 - self.temperature) / 20.0, 0.2, 1.0)
        return torque * derating


@clean("H", passes=3, rec={"rpy": array(double(normal(3, s=0.4)))}, backends="jit")
class NcNumpyEulerToQuat:
    """Euler angles to a quaternion with half angles in NumPy, then a float32 tensor."""

    def __call__(self, rpy: np.ndarray) -> Tensor:
        (cr, cp, cy), (sr, sp, sy) = np.cos(rpy / 2), np.sin(rpy / 2)
        quat = np.array(
            [
                cr * cp * cy + sr * sp * sy,
                sr * cp * cy - cr * sp * sy,
                cr * sp * cy + sr * cp * sy,
                cr * cp * sy - sr * sp * cy,
            ]
        )
        return torch.tensor(quat, dtype=torch.float32)


@clean("A", passes=4, rec={"encoder": array(double(normal(4)))}, backends="pt2")
class NcNumpyMedianOfThree:
    """A median of the last three readings per channel, by np.sort over a kept array."""

    def __init__(self) -> None:
        self.window = np.zeros((3, 4))

    def __call__(self, encoder: np.ndarray) -> np.ndarray:
        self.window = np.vstack([self.window[1:], encoder])
        return np.sort(self.window, axis=0)[1]
