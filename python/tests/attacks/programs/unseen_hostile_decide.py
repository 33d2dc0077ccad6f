"""Decisions on data."""

from __future__ import annotations

import bisect
import contextlib
import enum
import math

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import either, fixed, flags, integers, normal, row, uniform
from attacks.registry import hostile

small = uniform(-0.4, 0.4, 1, 4)
late = either(lambda t: t >= 5, uniform(-3, 3, 1, 4), small)


@hostile("C", rec={"q": small}, fresh={"q": late})
class ChJointLimitStop:
    """A safety monitor returns early when a joint is beyond its limit."""

    def __call__(self, q: Tensor) -> Tensor:
        if (q.abs() > 1.2).any():
            return torch.zeros_like(q)
        return -2.0 * q


@hostile(
    "C",
    rec={"P": fixed([[2.0, 0.1], [0.1, 1.0]])},
    fresh={"P": row([[2.0, 0.1], [0.1, 1.0]], [[1.0, 2.0], [2.0, 1.0]])},
)
class ChCholeskyRepair:
    """A filter repairs a covariance whose factorisation fails."""

    def __call__(self, P: Tensor) -> Tensor:
        try:
            return torch.linalg.cholesky(P)
        except torch.linalg.LinAlgError:
            return torch.linalg.cholesky(P + 2.0 * torch.eye(2))


@hostile(
    "C",
    rec={"P": fixed([[2.0, 0.1], [0.1, 1.0]])},
    fresh={"P": row([[2.0, 0.1], [0.1, 1.0]], [[1.0, 2.0], [2.0, 1.0]])},
)
class ChCholeskyInfo:
    """The same by the info of cholesky_ex."""

    def __call__(self, P: Tensor) -> Tensor:
        L, info = torch.linalg.cholesky_ex(P)
        return L if not info else torch.eye(2) * P.diagonal().sqrt()


class Terrain(str, enum.Enum):
    FLAT = "flat"
    STAIRS = "stairs"
    ROUGH = "rough"


@hostile(
    "C",
    rec={"height": uniform(-0.02, 0.02, 1, 9)},
    fresh={
        "height": either(lambda t: t % 3 == 2, uniform(-0.5, 0.5, 1, 9), uniform(-0.02, 0.02, 1, 9))
    },
)
class ChTerrainEnum:
    """A terrain class from the spread of a height scan picks the swing height."""

    SWING = {Terrain.FLAT: 0.05, Terrain.STAIRS: 0.15, Terrain.ROUGH: 0.25}

    def classify(self, height: Tensor) -> Terrain:
        spread = float(height.max() - height.min())
        return Terrain("flat" if spread < 0.1 else "stairs" if spread < 0.7 else "rough")

    def __call__(self, height: Tensor) -> Tensor:
        return height.mean(-1, keepdim=True) + self.SWING[self.classify(height)]


@hostile(
    "C",
    rec={"scores": row([[0.1, 0.9, 0.2]], [[0.3, 0.8, 0.1]]), "obs": normal(1, 3)},
    fresh={"scores": uniform(0, 1, 1, 3)},
)
class ChSkillSelector:
    """The best of three skills, by the index of the largest score."""

    def __init__(self) -> None:
        self.skills = [nn.Linear(3, 2) for _ in range(3)]

    def __call__(self, scores: Tensor, obs: Tensor) -> Tensor:
        return self.skills[scores.argmax(-1)[0]](obs)


@hostile(
    "C",
    rec={"imu": normal(1, 6)},
    fresh={"imu": either(lambda t: t in (4, 8), fixed([[float("nan")] * 6]), normal(1, 6))},
)
class ChNanDropout:
    """An IMU dropout is a row of NaN; NumPy looks for it."""

    def __init__(self) -> None:
        self.fallback = torch.full((1, 6), 0.2)

    def __call__(self, imu: Tensor) -> Tensor:
        if np.isnan(imu.numpy()).any():
            return self.fallback * 1.0
        return imu * 0.5


@hostile("C", rec={"x": uniform(0, 0.9, 1, 3)}, fresh={"x": uniform(-1, 3, 1, 3)})
class ChBuiltinClamp:
    """Python's min and max on elements."""

    def __call__(self, x: Tensor) -> Tensor:
        return torch.stack([max(0.0 * v, min(v, v * 0 + 1.0)) for v in x[0]])


@hostile("C", rec={"v": row([0.1], [0.2], [0.15])}, fresh={"v": uniform(0, 2, 1)})
class ChGainSchedule:
    """Gain scheduling by bisect on the speed."""

    def __call__(self, v: Tensor) -> Tensor:
        k = [1.0, 0.6, 0.3, 0.1][bisect.bisect([0.5, 1.0, 1.5], v)]
        return v * k + 0.1


@hostile("C", rec={"t": fixed([0.3])}, fresh={"t": uniform(0, 1, 1)})
class ChNumpyInterp:
    """A look-up table of torque by np.interp on a float."""

    def __call__(self, t: Tensor) -> Tensor:
        torque = np.interp(float(t), [0.0, 0.5, 1.0], [0.0, 2.0, 1.0])
        return t + float(torque)


@hostile(
    "C",
    rec={"pts": normal(5, 2, s=0.3)},
    fresh={"pts": either(lambda t: t % 2 == 1, normal(5, 2, m=4.0), normal(5, 2, s=0.3))},
    backends="onnx",
)
class ChNearestObstacle:
    """Obstacles within reach are kept; without any the path is free."""

    def __call__(self, pts: Tensor) -> Tensor:
        near = [p for p in pts if p.norm() < 2.5]
        if not near:
            return torch.zeros(2)
        return -torch.stack(near).mean(0)


@hostile("C", rec={"x": uniform(0.5, 1.0, 1, 2)}, fresh={"x": uniform(0.5, 60.0, 1, 2)})
class ChNewtonUntil:
    """Newton iterations until converged, at least three."""

    def __call__(self, x: Tensor) -> Tensor:
        y = torch.ones_like(x)
        for i in range(20):
            new = 0.5 * (y + x / y)
            done = torch.allclose(new, y, atol=1e-1)
            y = new
            if done and i >= 2:
                break
        return y


@hostile(
    "C", rec={"btn": fixed([0, 0, 1]), "joy": uniform(-1, 1, 3)}, fresh={"btn": integers(0, 2, 3)}
)
class ChDeadman:
    """Teleoperation with a dead-man button and a turbo button, read as a list."""

    def __call__(self, btn: Tensor, joy: Tensor) -> Tensor:
        a, b, deadman = btn.tolist()
        if not deadman:
            return joy * 0
        return joy * (2.0 if a else 1.0) * (-1.0 if b else 1.0)


@hostile("C", rec={"mode": fixed(2), "x": normal(1, 3)}, fresh={"mode": integers(0, 4)})
class ChMatchMode:
    """A match statement over the number of a mode."""

    def __call__(self, mode: Tensor, x: Tensor) -> Tensor:
        match int(mode):
            case 0:
                return x * 0
            case 1:
                return x.relu()
            case 2 | 5:
                return x.tanh()
        return -x


@hostile("C", rec={"mode": fixed(1), "x": normal(1, 3)}, fresh={"mode": integers(0, 3)})
class ChDictByItem:
    """Controllers by the item of a tensor, with a fallback for unknown keys."""

    def __init__(self) -> None:
        self.table = {0: torch.sin, 1: torch.tanh}

    def __call__(self, mode: Tensor, x: Tensor) -> Tensor:
        try:
            return self.table[mode.item()](x)
        except KeyError:
            return torch.zeros_like(x)


@hostile("C", rec={"x": row([[3.0, 2.0, 1.0]], [[5.0, 1.5, 0.5]])}, fresh={"x": normal(1, 3)})
class ChPrioritySort:
    """Tasks in order of their priority, sorted in Python."""

    def __call__(self, x: Tensor) -> Tensor:
        order = sorted(range(3), key=lambda i: x[0, i], reverse=True)
        w = torch.tensor([1.0, 0.5, 0.25])
        return torch.stack([x[0, j] * w[k] for k, j in enumerate(order)])


@hostile(
    "C",
    rec={"contact": fixed([True, True, True, True]), "f": normal(4, 3)},
    fresh={"contact": flags(0.5, 4)},
    backends="pt2",
)
class ChStanceSubset:
    """The mean force over the legs in stance, by a Boolean index."""

    def __call__(self, contact: Tensor, f: Tensor) -> Tensor:
        stance = f[contact]
        return stance.sum(0) / max(len(stance), 1)


@hostile("C", rec={"n": fixed(3), "x": normal(6)}, fresh={"n": integers(1, 6)})
class ChWindowBySlice:
    """A mean over the last n samples, where n comes as a message."""

    def __call__(self, n: Tensor, x: Tensor) -> Tensor:
        return x[-n.item() :].mean()


@hostile("C", rec={"x": uniform(0.1, 1, 1, 3)}, fresh={"x": uniform(-1, 1, 1, 3)})
class ChAssertGuard:
    """An assertion about the input that a supervisor catches."""

    def check(self, x: Tensor) -> Tensor:
        assert x.min() > 0, "range finder gave a negative distance"
        return 1.0 / (x + 1)

    def __call__(self, x: Tensor) -> Tensor:
        try:
            return self.check(x)
        except AssertionError:
            return x.clamp(min=0.0) * 0.1


@hostile("C", rec={"x": uniform(0.1, 1, 1, 3)}, fresh={"x": uniform(-1, 1, 1, 3)})
class ChSuppressed:
    """contextlib.suppress around math.sqrt of a reading."""

    def __call__(self, x: Tensor) -> Tensor:
        y = x * 1.0
        with contextlib.suppress(ValueError):
            math.sqrt(x[0, 0])
            y = y + 1.0
        return y


@hostile(
    "C",
    rec={"x": normal(1, 3)},
    fresh={"x": either(lambda t: t in (3, 7, 8), fixed([[0.0, 0.0, 0.0]]), normal(1, 3))},
)
class ChStuckSensor:
    """An encoder that reads exactly zero is stuck."""

    def __call__(self, x: Tensor) -> Tensor:
        if not x.count_nonzero():
            return torch.full_like(x, -1.0)
        return x


@hostile(
    "C",
    rec={"goal": fixed([1.0, 2.0]), "pos": uniform(-0.2, 0.2, 2)},
    fresh={
        "pos": either(lambda t: t > 4, normal(2, s=0.05, m=1.5), uniform(-0.2, 0.2, 2)),
        "goal": fixed([1.5, 1.5]),
    },
)
class ChGoalReached:
    """Stops at the goal, by a distance in math.hypot."""

    def __call__(self, goal: Tensor, pos: Tensor) -> Tensor:
        dx, dy = goal - pos
        if math.hypot(dx, dy) < 0.3:
            return torch.zeros(2)
        return torch.stack([dx, dy]) / math.pi


@hostile(
    "C",
    rec={"depth": uniform(1, 2, 6, 6)},
    fresh={"depth": either(lambda t: t % 3 == 1, uniform(0.0, 0.6, 6, 6), uniform(1, 2, 6, 6))},
)
class ChDepthHoles:
    """Too many holes in a depth image: the frame is inpainted by its mean."""

    def __call__(self, depth: Tensor) -> Tensor:
        holes = torch.nonzero(depth < 0.3)
        if len(holes) > 6:
            return torch.where(depth < 0.3, depth[depth >= 0.3].mean(), depth)
        return depth.clamp(max=1.8)


@hostile("C", rec={"x": uniform(0, 0.4, 2, 2)}, fresh={"x": uniform(0, 2, 2, 2)})
class ChUniqueCells:
    """An occupancy by the number of different cells."""

    def __call__(self, x: Tensor) -> Tensor:
        cells = torch.unique(x.floor())
        return x * float(len(cells))


@hostile("C", rec={"x": uniform(-0.3, 0.3, 3)}, fresh={"x": normal(3, s=1.0)})
class ChFormattedKey:
    """A cache of the look-up by a formatted value."""

    TABLE = {"0": 0.5, "1": 1.0, "2": 3.0}

    def __call__(self, x: Tensor) -> Tensor:
        key = f"{x.abs().max():.0f}"
        return x * self.TABLE.get(key, 5.0)


@hostile("C", rec={"x": uniform(0.1, 0.4, 3)}, fresh={"x": uniform(0.1, 1.2, 3)}, style="method")
class ChAnyGenerator:
    """any() over a generator of named limits."""

    LIMITS = {"hip": 0.5, "knee": 0.8, "foot": 1.0}

    def step(self, x: Tensor) -> Tensor:
        if any(v > lim for v, lim in zip(x, self.LIMITS.values())):
            return x * 0.5
        return x + 0.25


@hostile(
    "C",
    rec={"est": normal(3, s=0.1), "ref": normal(3, s=0.1)},
    fresh={
        "est": normal(3, s=0.1),
        "ref": either(lambda t: t % 4 == 3, normal(3, s=3.0), normal(3, s=0.1)),
    },
)
class ChInnovationGate:
    """A Mahalanobis gate rejects an outlier in the update of a filter."""

    def __call__(self, est: Tensor, ref: Tensor) -> Tensor:
        nu = ref - est
        d2 = (nu @ (nu / 0.04)).item()
        return est if d2 > 30.0 else est + 0.6 * nu


@hostile(
    "C",
    rec={"vol": uniform(24, 26, 1), "u": normal(3)},
    fresh={"vol": uniform(18, 26, 1), "u": normal(3)},
)
class ChBatteryWord:
    """A battery status word, found by comparisons that end in a string."""

    def __call__(self, vol: Tensor, u: Tensor) -> Tensor:
        status = "crit" if vol < 20 else ("low" if vol < 23 else "ok")
        return u * {"crit": 0.0, "low": 0.5, "ok": 1.0}[status]


@hostile("C", rec={"lidar": uniform(2, 5, 8)}, fresh={"lidar": uniform(0.3, 5, 8)})
class ChArgminSide:
    """The nearest beam decides the side on which to turn, in NumPy."""

    def __call__(self, lidar: Tensor) -> Tensor:
        ranges = lidar.numpy()
        i = int(np.argmin(ranges))
        turn = 0.0 if ranges[i] > 1.5 else (1.0 if i < 4 else -1.0)
        return torch.tensor([0.5, turn]) * lidar.mean()
