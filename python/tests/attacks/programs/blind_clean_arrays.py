"""NumPy before, after and instead of torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, double, normal, uniform
from attacks.registry import clean


@clean(
    rec={"joint_pos": array(normal(6)), "joint_vel": array(normal(6)), "imu": array(normal(4))},
    backends=("jit", "onnx"),
)
class BcSortedObservation:
    """An observation in float32 from a dict of arrays in the order of its keys."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(16, 8), nn.ELU(), nn.Linear(8, 6))

    def __call__(self, joint_pos: np.ndarray, joint_vel: np.ndarray, imu: np.ndarray) -> np.ndarray:
        obs = {"joint_vel": joint_vel * 0.05, "joint_pos": joint_pos, "imu": imu}
        flat = np.concatenate([obs[key].ravel() for key in sorted(obs)]).astype(np.float32)
        action = self.net(torch.from_numpy(flat).unsqueeze(0))
        return action.squeeze(0).numpy() * 0.25


@clean(rec={"action": normal(1, 3)}, backends="jit", style="method")
class BcScaleToLimits:
    """From [-1, 1] to the limits of joints, in NumPy, clipped."""

    def __init__(self) -> None:
        self.low = np.array([-1.5, 0.0, -2.0], dtype=np.float32)
        self.high = np.array([1.5, 2.5, 0.0], dtype=np.float32)

    def step(self, action: Tensor) -> np.ndarray:
        a = np.clip(action.detach().cpu().numpy()[0], -1.0, 1.0)
        return self.low + 0.5 * (a + 1.0) * (self.high - self.low)


@clean(rec={"q": array(normal(4))}, backends="jit")
def BcQuatToMatrix(q: np.ndarray) -> np.ndarray:
    """A quaternion into a matrix, as everybody writes it."""
    w, x, y, z = q / (np.linalg.norm(q) + 1e-9)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ],
        dtype=np.float32,
    )


@clean(rec={"scan": array(uniform(0.0, 6.0, 24))}, backends="onnx")
class BcScanToPoints:
    """A scan into points; angles are made once, far returns are put to zero."""

    def __init__(self) -> None:
        angles = np.linspace(-np.pi, np.pi, 24, endpoint=False, dtype=np.float32)
        self.rays = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def __call__(self, scan: np.ndarray) -> np.ndarray:
        points = scan[:, None] * self.rays
        return np.where((scan < 5.5)[:, None], points, np.float32(0.0))


@clean("A", rec={"x": array(normal(3))}, backends="jit", passes=5)
class BcNumpyLowPass:
    """A low-pass whose memory is an array."""

    def __init__(self, cutoff: float = 5.0, dt: float = 0.02) -> None:
        tau = 1 / (2 * np.pi * cutoff)
        self.alpha = np.float32(dt / (dt + tau))
        self.y = np.zeros(3, np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.y = self.y + self.alpha * (x - self.y)
        return self.y.copy()


@clean("A", rec={"x": array(normal(2))}, backends="jit", passes=5)
class BcNumpyShift:
    """A window of four samples that is shifted in an array, and its least-squares slope."""

    def __init__(self) -> None:
        self.window = np.zeros((4, 2), np.float32)
        t = np.arange(4, dtype=np.float32)
        self.weights = (t - t.mean()) / ((t - t.mean()) ** 2).sum()

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.window[:-1] = self.window[1:].copy()
        self.window[-1] = x
        return self.weights @ self.window


@clean(rec={"p": double(normal(5, 3))}, backends="jit")
def BcDoubleInside(p: Tensor) -> Tensor:
    """Doubles come in; a frame is built, and the result is single."""
    centred = p.numpy() - p.numpy().mean(axis=0, keepdims=True)
    frame = np.eye(3) + 0.1 * np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]])
    return torch.as_tensor(centred @ frame.T).float()


@clean(rec={"target": array(normal(2, 3)), "q": normal(2, 3)}, backends=("jit", "pt2"))
def BcMixedArrayTensor(target: np.ndarray, q: Tensor) -> Tensor:
    """An array that becomes a tensor in the middle of torch code."""
    error = torch.as_tensor(target, dtype=q.dtype, device=q.device) - q
    gain = torch.from_numpy(np.diag([3.0, 2.0, 1.0]).astype(np.float32))
    return error @ gain


@clean(rec={"v": array(normal(4, 2))}, backends="jit")
def BcClippedNorm(v: np.ndarray) -> np.ndarray:
    """Velocities limited by their norm, with `np.divide` and `np.minimum`."""
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    return v * np.minimum(1.0, np.divide(1.2, np.maximum(norm, 1e-6))).astype(np.float32)


@clean(rec={"grid": array(uniform(0, 1, 6, 6))}, backends="jit")
def BcCostmap(grid: np.ndarray) -> np.ndarray:
    """A costmap blown up by shifted maxima over a padded copy."""
    padded = np.pad(grid, 1)
    out = grid.copy()
    for dy in (0, 1, 2):
        for dx in (0, 1, 2):
            np.maximum(out, 0.8 * padded[dy : dy + 6, dx : dx + 6], out=out)
    return out
