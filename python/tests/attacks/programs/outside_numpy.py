"""NumPy as it is used around policies: its types, its defaults, its way with copies."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attacks.draws import array, flags, integers, normal, uniform
from attacks.registry import clean, hostile


@clean("H", rec={"x": array(normal(1, 4))}, passes=3)
def outside_double_scale(x: np.ndarray) -> np.ndarray:
    """A NumPy scalar of double precision makes the result double; a Python number does not."""
    return np.concatenate([x * 0.5, (x * np.float64(0.5)).astype(np.float32)], axis=-1)


@clean("H", rec={"x": array(normal(1, 4))}, passes=3)
def outside_stays_double(x: np.ndarray) -> np.ndarray:
    return x * np.float64(0.5) + np.arange(4) / 3


@clean("H", rec={"n": array(integers(1, 9, 4, dtype=torch.int32))}, passes=3)
def outside_integer_means(n: np.ndarray) -> dict:
    return {"share": n / n.sum(), "mean": np.array([n.mean(), n.std()]), "half": n // 2}


@clean("H", rec={"x": array(normal(6))}, passes=3)
def outside_median(x: np.ndarray) -> np.ndarray:
    """NumPy's median of an even number is between the two in the middle."""
    return x - np.median(x)


@clean("H", rec={"x": array(normal(3, 4))}, passes=3)
def outside_spread(x: np.ndarray) -> np.ndarray:
    """NumPy's deviation is that of the whole, torch's that of a sample."""
    return (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-3)


@clean("H", rec={"x": array(normal(2, 3))}, passes=3)
def outside_repeat_and_tile(x: np.ndarray) -> np.ndarray:
    return np.repeat(x, 2, axis=0) + np.tile(x, (2, 1))


@clean("H", rec={"x": array(uniform(-3.0, 3.0, 5))}, passes=3)
def outside_rounding(x: np.ndarray) -> dict:
    return {
        "even": np.round(x * 2) / 2,
        "down": np.floor(x),
        "mod": np.mod(x, 1.0),
        "fmod": np.fmod(x, 1.0),
    }


@clean("H", rec={"x": array(uniform(0.0, 4.0, 5))}, passes=3)
def outside_torque_curve(x: np.ndarray) -> np.ndarray:
    """A motor's curve by interpolation."""
    return np.interp(x, [0.0, 1.0, 2.0, 3.0], [10.0, 9.0, 5.0, 0.0]).astype(np.float32)


@clean("H", rec={"hit": array(flags(0.4, 6))}, passes=3)
def outside_counts_of_flags(hit: np.ndarray) -> np.ndarray:
    """Booleans are summed to integers."""
    return np.array([hit.sum(), np.count_nonzero(~hit)]) + hit[:2]


@clean("H", rec={"x": array(normal(2, 5))}, passes=3)
def outside_differences(x: np.ndarray) -> np.ndarray:
    jerk = np.diff(x, n=2, axis=-1)
    return np.hstack([jerk, np.cumsum(x, axis=-1), np.sort(x, axis=-1)[:, ::-1]])


@clean("H", rec={"x": array(normal(4))}, passes=3)
def outside_rotation_matrix(x: np.ndarray) -> np.ndarray:
    """A quaternion to a matrix, entry by entry."""
    w, i, j, k = x / np.linalg.norm(x)
    return np.array(
        [
            [1 - 2 * (j * j + k * k), 2 * (i * j - k * w), 2 * (i * k + j * w)],
            [2 * (i * j + k * w), 1 - 2 * (i * i + k * k), 2 * (j * k - i * w)],
            [2 * (i * k - j * w), 2 * (j * k + i * w), 1 - 2 * (i * i + j * j)],
        ]
    )


@clean("H", rec={"obs": normal(1, 4)}, passes=4)
def outside_gym_round_trip(obs: Tensor) -> Tensor:
    """Out to an array, through a wrapper, back to a tensor."""
    raw = obs.cpu().numpy()
    scaled = np.clip((raw - 0.5) / 2.0, -5.0, 5.0)
    return torch.as_tensor(scaled, dtype=torch.float32)


@clean("H", rec={"cloud": array(normal(8, 3))}, passes=3)
def outside_point_features(cloud: np.ndarray) -> np.ndarray:
    centred = cloud - cloud.mean(0, keepdims=True)
    distance = np.sqrt((centred**2).sum(-1))
    return np.array([distance.min(), distance.max(), np.argmax(distance)], dtype=np.float32)


@clean("H", rec={"J": array(normal(2, 3)), "dx": array(normal(2))}, passes=3)
def outside_pseudo_inverse(J: np.ndarray, dx: np.ndarray) -> np.ndarray:  # noqa: N803
    return J.T @ np.linalg.solve(J @ J.T + 0.5 * np.eye(2, dtype=np.float32), dx)


@clean("H", rec={"img": array(integers(0, 256, 4, 4, dtype=torch.uint8))}, passes=3)
def outside_uint8_wraps(img: np.ndarray) -> dict:
    """Eight bits wrap around."""
    return {"wrapped": img + np.uint8(100), "shade": (img.astype(np.float32) / 255.0).mean(axis=0)}


@clean("H", rec={"x": array(normal(4))}, passes=3)
def outside_where_and_masks(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[y < 0] *= 0.1
    y[np.abs(x) < 0.2] = 0.0
    return np.where(x > 1.0, 1.0, y)


@clean("H", rec={"x": array(normal(3))}, passes=3)
def outside_stacked_terms(x: np.ndarray) -> np.ndarray:
    terms = {"sin": np.sin(x), "cos": np.cos(x), "norm": np.full(3, np.linalg.norm(x), np.float32)}
    return np.stack(list(terms.values())).ravel()


@hostile("B", rec={"x": array(normal(4))}, passes=4)
def outside_float_is_float(x: np.ndarray) -> np.ndarray:
    """A double scalar is a Python float, a single one is not."""
    largest = x.max()
    wide = x.astype(np.float64).max()
    gain = (2.0 if isinstance(wide, float) else 3.0) + (0.0 if isinstance(largest, float) else 5.0)
    return x * np.float32(gain)


@hostile("B", rec={"x": array(normal(4))}, passes=4)
def outside_key_by_value(x: np.ndarray) -> np.ndarray:
    """A value as the key of a dict."""
    gains = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    return x * np.float32(gains[np.argmax(x)])


@hostile("B", rec={"x": array(normal(4))}, passes=4)
def outside_sorted_by_python(x: np.ndarray) -> np.ndarray:
    return np.array(sorted(x)[:2], dtype=np.float32)


@hostile("B", rec={"x": array(normal(4))}, passes=4)
def outside_formatted(x: np.ndarray) -> np.ndarray:
    """Rounded by way of a text."""
    return np.array([float(f"{v:.1f}") for v in x], dtype=np.float32) + x


@hostile("B", rec={"x": normal(4)}, passes=4)
def outside_version_counter(x: Tensor) -> Tensor:
    """Code that asks torch how often its own tensor was written."""
    y = x * 1.0
    y.add_(1.0)
    return y * (2.0 if y._version == 1 else 3.0) + (1.0 if y.is_leaf else 0.0)


@hostile("B", rec={"x": normal(4)}, passes=4)
def outside_same_memory(x: Tensor) -> Tensor:
    """`contiguous` gives back the same tensor where it can."""
    y = x.contiguous()
    z = x.view(2, 2).t().contiguous()
    same = y is x or y.data_ptr() == x.data_ptr()
    return y * (2.0 if same else 3.0) + (1.0 if z.data_ptr() == x.data_ptr() else 0.0)
