"""Clean robot maths, array code and code that only watches itself."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from contextlib import contextmanager
from functools import partial, reduce

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, double, flags, integers, normal, uniform
from attacks.registry import clean

three = ("jit", "onnx", "pt2")
log = logging.getLogger(__name__)


def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    w1, x1, y1, z1 = a.unbind(-1)
    w2, x2, y2, z2 = b.unbind(-1)
    return torch.stack(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ],
        -1,
    )


def quat_rotate(q: Tensor, v: Tensor) -> Tensor:
    t = 2 * torch.linalg.cross(q[..., 1:], v)
    return v + q[..., :1] * t + torch.linalg.cross(q[..., 1:], t)


@clean(rec={"q": normal(2, 4), "v": normal(2, 3)}, passes=3, backends=three)
def body_frame(q: Tensor, v: Tensor) -> dict[str, Tensor]:
    q = F.normalize(q, dim=-1)
    conj = q * torch.tensor([1.0, -1.0, -1.0, -1.0])
    gravity = quat_rotate(conj, torch.tensor([0.0, 0.0, -1.0]).expand(2, 3))
    return {"v": quat_rotate(conj, v), "gravity": gravity, "twice": quat_mul(q, q)}


@clean(rec={"m": normal(2, 6)}, passes=3, backends=three)
def rotation_from_six(m: Tensor) -> Tensor:
    a, b = m[:, :3], m[:, 3:]
    x = F.normalize(a, dim=-1)
    y = F.normalize(b - (x * b).sum(-1, keepdim=True) * x, dim=-1)
    return torch.stack([x, y, torch.cross(x, y, dim=-1)], dim=-1)


@clean(rec={"w": uniform(-1.0, 1.0, 3)}, passes=3)
def exponential_map(w: Tensor) -> Tensor:
    theta = (w * w).sum().sqrt() + 1e-8
    zero = torch.zeros(())
    k = (
        torch.stack(
            [
                torch.stack([zero, -w[2], w[1]]),
                torch.stack([w[2], zero, -w[0]]),
                torch.stack([-w[1], w[0], zero]),
            ]
        )
        / theta
    )
    return torch.eye(3) + theta.sin() * k + (1 - theta.cos()) * (k @ k)


@clean(
    rec={"q": uniform(-1.2, 1.2, 3)}, fresh={"q": uniform(-2.5, 2.5, 3)}, passes=4, backends=three
)
def planar_arm(q: Tensor) -> dict[str, Tensor]:
    lengths = torch.tensor([0.4, 0.3, 0.1])
    angles = torch.cumsum(q, 0)
    xy = torch.stack([(lengths * angles.cos()).sum(), (lengths * angles.sin()).sum()])
    jac = torch.stack(
        [
            -torch.flip(torch.cumsum(torch.flip(lengths * angles.sin(), [0]), 0), [0]),
            torch.flip(torch.cumsum(torch.flip(lengths * angles.cos(), [0]), 0), [0]),
        ]
    )
    return {"tip": xy, "jacobian": jac}


@clean(rec={"q": uniform(0.3, 1.2, 3), "dx": normal(2, s=0.1)}, passes=3, backends=("jit", "pt2"))
def damped_least_squares(q: Tensor, dx: Tensor) -> Tensor:
    s, c = q.cumsum(0).sin(), q.cumsum(0).cos()
    j = torch.stack([-s, c])
    return j.T @ torch.linalg.solve(j @ j.T + 0.05 * torch.eye(2), dx)


def _dh(theta: Tensor, d: float, a: float, alpha: float) -> Tensor:
    ct, st, ca, sa = theta.cos(), theta.sin(), math.cos(alpha), math.sin(alpha)
    z, o = torch.zeros_like(ct), torch.ones_like(ct)
    rows = [
        [ct, -st * ca, st * sa, a * ct],
        [st, ct * ca, -ct * sa, a * st],
        [z, o * sa, o * ca, o * d],
        [z, z, z, o],
    ]
    return torch.stack([torch.stack(r) for r in rows])


@clean(rec={"q": uniform(-1.0, 1.0, 4)}, passes=3, backends=three)
def chain_of_links(q: Tensor) -> Tensor:
    table = [(0.3, 0.0, math.pi / 2), (0.0, 0.4, 0.0), (0.1, 0.0, -math.pi / 2), (0.2, 0.05, 0.0)]
    return reduce(torch.matmul, [_dh(t, *row) for t, row in zip(q, table, strict=True)])


@clean(rec={"t": uniform(0, 1, 5)}, fresh={"t": uniform(0, 1, 5)}, passes=3, backends=three)
def cubic_spline(t: Tensor) -> Tensor:
    points = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0], [4.0, 4.0]])
    basis = torch.tensor([[-1.0, 3, -3, 1], [3, -6, 3, 0], [-3, 0, 3, 0], [1, 4, 1, 0]]) / 6
    powers = torch.stack([t**3, t**2, t, torch.ones_like(t)], -1)
    return powers @ basis @ points


@clean(
    rec={"t": uniform(0.0, 4.0, 3)}, fresh={"t": uniform(-1.0, 5.0, 3)}, passes=3, backends=three
)
def reference_between_knots(t: Tensor) -> Tensor:
    knots, values = torch.arange(5.0), torch.tensor([0.0, 1.0, 0.5, -1.0, 0.0])
    i = torch.searchsorted(knots, t.contiguous()).clamp(1, 4)
    u = ((t - knots[i - 1]) / (knots[i] - knots[i - 1])).clamp(0, 1)
    return torch.lerp(values[i - 1], values[i], u)


@clean(
    rec={"xy": uniform(0.1, 6.9, 4, 2)},
    fresh={"xy": uniform(0.1, 6.9, 4, 2)},
    passes=3,
    backends=three,
)
class HeightMap:
    def __init__(self) -> None:
        self.map = torch.rand(8, 8)

    def __call__(self, xy: Tensor) -> Tensor:
        low = xy.floor().long().clamp(0, 6)
        fx, fy = (xy - low).unbind(-1)
        ix, iy = low.unbind(-1)
        m = self.map
        top = m[iy, ix] * (1 - fx) + m[iy, ix + 1] * fx
        bottom = m[iy + 1, ix] * (1 - fx) + m[iy + 1, ix + 1] * fx
        return top * (1 - fy) + bottom * fy


@clean(
    rec={"x": normal(1, 2, 6, 6), "theta": uniform(-0.5, 0.5, 1, 2, 3)},
    fresh={"theta": uniform(-0.5, 0.5, 1, 2, 3)},
    passes=3,
)
def spatial_transformer(x: Tensor, theta: Tensor) -> Tensor:
    grid = F.affine_grid(theta, [1, 2, 4, 4], align_corners=True)
    return F.grid_sample(x, grid, align_corners=True)


@clean(rec={"a": normal(2, 3, 4), "b": normal(2, 4, 5), "c": normal(5)}, passes=3, backends=three)
def contracted(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return torch.einsum("bij,bjk,k->bi", a, b, c) + torch.tensordot(a, b.mean(0), 1).sum(-1)


@clean(rec={"x": normal(3, 4)}, passes=3, backends=three)
def logic_of_where(x: Tensor) -> Tensor:
    inside = (x > -1) & (x < 1) | x.isnan()
    far = x.abs().gt(2).logical_not()
    return torch.where(inside, x, torch.where(far, x.sign(), x * 0.1))


@clean(rec={"x": normal(5), "i": integers(0, 5, 3)}, passes=4, backends=three)
def gathered_and_scattered(x: Tensor, i: Tensor) -> dict[str, Tensor]:
    hot = F.one_hot(i, 5).float()
    return {
        "got": x.gather(0, i),
        "hot": hot @ x,
        "put": torch.zeros(3, 5).scatter(1, i[:, None], 1.0) * x,
        "sum": torch.zeros(5).scatter_add(0, i, torch.ones(3)),
    }


@clean(rec={"x": normal(6)}, passes=4)
def thresholds_of_a_mask(x: Tensor) -> Tensor:
    y = x.clone()
    y[x < -0.5] = 0.0
    y[x > 0.5] *= 2.0
    return y


@clean(rec={"q": array(normal(6)), "cmd": array(normal(3))}, passes=4)
def observation_vector(q: np.ndarray, cmd: np.ndarray) -> np.ndarray:
    default = np.array([0.1, -0.2, 0.3, 0.0, 0.5, -0.5], dtype=np.float32)
    obs = np.zeros(9, dtype=np.float32)
    obs[:6] = (q - default) * 2.0
    obs[6:9] = cmd * np.array([2.0, 2.0, 0.25], dtype=np.float32)
    return np.clip(obs, -100, 100)


@clean(rec={"image": array(integers(0, 256, 8, 8, 3, dtype=torch.uint8))}, passes=3)
def image_to_tensor(image: np.ndarray) -> Tensor:
    x = torch.from_numpy(np.ascontiguousarray(image[..., ::-1])).permute(2, 0, 1).float().div(255)
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    return F.interpolate(((x - mean) / std).unsqueeze(0), size=(4, 4), mode="area")


@clean(rec={"x": array(normal(4, 3))}, passes=3)
def numpy_linear_algebra(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=0, keepdims=True)
    gram = centred.T @ centred / np.float32(3)
    return np.einsum("ij,j->i", gram, x[0]) + np.linalg.norm(x, axis=1)[:3]


@clean(rec={"p": array(double(normal(3))), "yaw": array(double(uniform(-3, 3)))}, passes=3)
def world_to_body(p: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    c, s = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    return turn @ p


@clean(rec={"yaw": uniform(-9.0, 9.0, 3), "goal": uniform(-3.0, 3.0, 3)}, passes=4, backends=three)
def heading_error(yaw: Tensor, goal: Tensor) -> Tensor:
    error = goal - yaw
    return torch.atan2(torch.sin(error), torch.cos(error)) + 0.1 * (
        (error + math.pi) % (2 * math.pi)
    )


@clean("A", rec={"q": normal(1, 3), "target": normal(1, 3)}, passes=5, backends=three)
class PidOnTensors:
    def __init__(self) -> None:
        self.integral = torch.zeros(1, 3)
        self.last = torch.zeros(1, 3)

    def __call__(self, q: Tensor, target: Tensor) -> Tensor:
        error = target - q
        self.integral = (self.integral + error * 0.02).clamp(-1, 1)
        rate = (error - self.last) / 0.02
        self.last = error
        return 20.0 * error + 2.0 * self.integral + 0.1 * rate


@clean("A", rec={"gyro": normal(3, s=0.5), "acc": normal(3, m=1.0)}, passes=5)
class Complementary:
    def __init__(self) -> None:
        self.angle = torch.zeros(2)

    def __call__(self, gyro: Tensor, acc: Tensor) -> Tensor:
        tilt = torch.stack([torch.atan2(acc[1], acc[2]), torch.atan2(-acc[0], acc[1:].norm())])
        self.angle = 0.98 * (self.angle + gyro[:2] * 0.01) + 0.02 * tilt
        return self.angle


@clean("A", rec={"x": normal(2)}, passes=6)
class MovingAverage:
    def __init__(self) -> None:
        self.window = deque([torch.zeros(2)] * 4, maxlen=4)

    def __call__(self, x: Tensor) -> Tensor:
        self.window.append(x)
        return torch.stack(list(self.window)).mean(0)


@contextmanager
def stopwatch(into: list[float]):
    began = time.perf_counter()
    yield
    into.append(time.perf_counter() - began)


@clean(rec={"obs": normal(1, 4)}, passes=5)
class TimedPolicy:
    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.times: list[float] = []

    def __call__(self, obs: Tensor) -> Tensor:
        with stopwatch(self.times):
            action = self.net(obs).tanh()
        if len(self.times) % 2 == 0:
            log.debug("mean step %.6f s", sum(self.times) / len(self.times))
        return action


@clean(rec={"obs": normal(1, 4)}, passes=4)
class AssertedPolicy:
    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        assert obs.ndim == 2 and obs.shape[-1] == 4, f"got {obs.shape}"
        assert torch.isfinite(obs).all(), "observation is not finite"
        action = self.net(obs)
        if torch.isnan(action).any():
            raise RuntimeError("policy diverged")
        return action


@clean(rec={"obs": normal(1, 4)}, passes=5)
class RunningMetrics:
    """Metrics for the dashboard; nothing of them comes back."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.best, self.count, self.seen = -math.inf, 0, deque(maxlen=3)

    def __call__(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        self.count += 1
        size = action.norm().item()
        self.best = max(self.best, size)
        self.seen.append(action.detach().cpu().numpy().copy())
        return action


@clean(rec={"x": normal(4)}, passes=4)
def warned_once(x: Tensor) -> Tensor:
    y = x * 2
    saturated = (y.abs() > 1).sum().item()
    if saturated:
        log.warning("%d joints saturated", saturated)
    return y.clamp(-1, 1)


@clean(rec={"x": normal(2, 3), "mask": flags(0.5, 2, 3)}, passes=4, backends=three)
def masked_statistics(x: Tensor, mask: Tensor) -> dict[str, Tensor]:
    kept = torch.where(mask, x, torch.zeros_like(x))
    count = mask.sum(-1).clamp(min=1)
    mean = kept.sum(-1) / count
    return {"mean": mean, "var": torch.where(mask, (x - mean[:, None]) ** 2, 0.0).sum(-1) / count}


@clean(rec={"x": normal(3, 5)}, passes=3, backends=three)
def statistics_of_rows(x: Tensor) -> Tensor:
    return torch.stack(
        [
            x.std(-1),
            x.var(-1, unbiased=False),
            x.amax(-1) - x.amin(-1),
            torch.linalg.vector_norm(x, ord=1, dim=-1),
            x.prod(-1),
        ],
        -1,
    )


@clean(rec={"x": normal(8)}, passes=3)
def windowed_spectrum(x: Tensor) -> Tensor:
    window = torch.hann_window(8)
    k = torch.arange(8.0)
    angle = -2 * math.pi * torch.outer(k, k) / 8
    re, im = angle.cos() @ (x * window), angle.sin() @ (x * window)
    return (re**2 + im**2)[:5]


@clean(
    rec={"ranges": uniform(0.1, 10.0, 16)},
    fresh={"ranges": uniform(0.1, 12.0, 16)},
    passes=3,
    backends=three,
)
def lidar_sectors(ranges: Tensor) -> Tensor:
    r = ranges.clamp(0.2, 8.0).view(4, 4)
    return torch.cat([r.amin(1), r.mean(1), (r < 1.0).any(1).float()])


@clean(rec={"x": normal(3), "y": normal(3)}, passes=3, style="method")
def keyword_function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    scaled = partial(torch.mul, other=0.5)
    return scaled(x) + y, x - scaled(y)


@clean(rec={"x": {}.get("none", normal(3))}, passes=3, backends=three)
def typed_constants(x: Tensor) -> Tensor:
    a = x.new_tensor([1.0, 2.0, 3.0])
    b = torch.as_tensor(np.array([3, 2, 1]), dtype=x.dtype, device=x.device)
    return x * a + torch.zeros_like(x).fill_(0.5) - b / torch.full_like(x, 4)


@clean("D", rec={"x": normal(4, s=1e-6)}, fresh={"x": normal(4, s=1e-6)}, passes=3, backends=three)
def microvolts(x: Tensor) -> Tensor:
    return (x - x.mean()) * 3.0


@clean(
    "D",
    rec={"p": uniform(1e5, 1.1e5, 3)},
    fresh={"p": uniform(9e4, 1.1e5, 3)},
    passes=3,
    backends=three,
)
def pressure_to_height(p: Tensor) -> Tensor:
    return 44330.0 * (1.0 - (p / 101325.0) ** 0.1903)


@clean(
    "D",
    rec={"lat": double(uniform(47.0, 47.01, 2)), "lon": double(uniform(8.0, 8.01, 2))},
    fresh={"lat": double(uniform(47.0, 47.01, 2)), "lon": double(uniform(8.0, 8.01, 2))},
    passes=3,
    backends=three,
)
def local_metres(lat: Tensor, lon: Tensor) -> Tensor:
    r = 6378137.0
    x = torch.deg2rad(lon - 8.005) * r * math.cos(math.radians(47.005))
    return torch.stack([x, torch.deg2rad(lat - 47.005) * r], -1).float()


@clean("E", rec={"x": normal(2, 6)}, passes=3, backends=three, runner="cli")
def split_heads(x: Tensor) -> Tensor:
    h = x.view(2, 3, 2).transpose(1, 2)
    return (h @ h.mT).flatten(1)


@clean("E", rec={"obs": normal(1, 5)}, passes=3, backends=three, runner="cli")
class DeployedActor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.ELU(), nn.Linear(8, 3))
        self.register_buffer("limits", torch.tensor([[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]))

    def forward(self, obs: Tensor) -> Tensor:
        low, high = self.limits
        return torch.minimum(torch.maximum(self.net(obs), low), high)


@clean("F", rec={"x": uniform(-1, 1, 4)}, fresh={"x": normal(4)}, passes=4, backends=three)
def gripper_hysteresis_free(x: Tensor) -> dict[str, Tensor]:
    closed = (x > 0.25).float()
    return {"closed": closed, "width": 0.08 * (1 - closed), "level": (x * 4).floor().clamp(-4, 3)}


@clean("F", rec={"x": normal(4, 4)}, passes=4, backends=three)
def best_of_candidates(x: Tensor) -> Tensor:
    cost = x.square().sum(-1)
    return x.index_select(0, cost.argmin(keepdim=True)).squeeze(0)


@clean("F", rec={"x": normal(10)}, passes=3, backends=three)
def three_nearest(x: Tensor) -> Tensor:
    values, index = torch.topk(x.abs(), 3, largest=False)
    return torch.cat([values, x[index]])
