"""Configuration in all the shapes people have it; nothing of it changes while it runs."""

from __future__ import annotations

import argparse
import collections
import configparser
import enum
import functools
import json
import math
import os
import tempfile
import types
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, flags, integers, normal, uniform
from attacks.registry import clean

DEFAULT_JOINT_POS = {"hip": 0.1, "thigh": 0.8, "calf": -1.5}
ACTION_SCALE = 0.25
CONTROL_DT = 1 / 50


@dataclass(frozen=True)
class Gains:
    kp: float = 20.0
    kd: float = 0.5


@dataclass(frozen=True)
class LegCfg:
    gains: Gains = field(default_factory=Gains)
    torque_limit: float = 23.7
    stand: tuple[float, ...] = (0.1, 0.8, -1.5)


@clean(
    rec={"action": normal(1, 3), "q": normal(1, 3), "dq": normal(1, 3)}, backends=("jit", "onnx")
)
class BcFrozenDataclassPd:
    """PD torques with gains from nested frozen dataclasses."""

    def __init__(self, cfg: LegCfg = LegCfg()) -> None:
        self.cfg = cfg
        self.stand = torch.tensor([cfg.stand])

    def __call__(self, action: Tensor, q: Tensor, dq: Tensor) -> Tensor:
        gains = self.cfg.gains
        tau = gains.kp * (ACTION_SCALE * action + self.stand - q) - gains.kd * dq
        return tau.clamp(-self.cfg.torque_limit, self.cfg.torque_limit)


def _args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, nargs="+", default=[16, 8])
    parser.add_argument("--activation", choices=["elu", "relu", "tanh"], default="elu")
    parser.add_argument("--layer-norm", action="store_true")
    parser.add_argument("--clip", type=float, default=1.0)
    return parser.parse_args(["--layer-norm", "--clip", "0.8"])


@clean(rec={"obs": normal(1, 6)}, style="module", backends="onnx")
class BcArgparsePolicy(nn.Module):
    """A policy whose layers come from parsed arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.args = _args()
        layers, width = [], 6
        for hidden in self.args.hidden:
            layers.append(nn.Linear(width, hidden))
            if self.args.layer_norm:
                layers.append(nn.LayerNorm(hidden))
            layers.append({"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh}[self.args.activation]())
            width = hidden
        self.body, self.head = nn.Sequential(*layers), nn.Linear(width, 2)

    def forward(self, obs: Tensor) -> Tensor:
        action = self.head(self.body(obs))
        if self.args.clip > 0:
            action = action.clamp(-self.args.clip, self.args.clip)
        return action


YAML = {
    "policy": {"encoder": {"type": "mlp", "units": [8, 8]}, "head": {"type": "linear", "out": 2}},
    "obs": {"scales": {"lin_vel": 2.0, "ang_vel": 0.25}, "clip": 5.0, "noise": None},
}


@clean(rec={"lin_vel": normal(2, 3), "ang_vel": normal(2, 3)}, backends="pt2")
class BcNestedYaml(nn.Module):
    """Scales, sizes and optional entries from nested dicts."""

    def __init__(self, cfg: dict[str, Any] = YAML) -> None:
        super().__init__()
        self.cfg = cfg
        units = [6, *cfg["policy"]["encoder"]["units"]]
        self.encoder = nn.ModuleList(nn.Linear(a, b) for a, b in zip(units[:-1], units[1:]))
        self.head = nn.Linear(units[-1], cfg["policy"]["head"]["out"])

    def forward(self, lin_vel: Tensor, ang_vel: Tensor) -> Tensor:
        obs_cfg = self.cfg["obs"]
        x = torch.cat(
            [lin_vel * obs_cfg["scales"]["lin_vel"], ang_vel * obs_cfg["scales"]["ang_vel"]], -1
        )
        if obs_cfg.get("noise") is not None:
            x = x + obs_cfg["noise"] * torch.randn_like(x)
        x = x.clamp(-obs_cfg["clip"], obs_cfg["clip"])
        for layer in self.encoder:
            x = F.silu(layer(x))
        return self.head(x)


class ControlMode(enum.Enum):
    POSITION = "position"
    VELOCITY = "velocity"
    TORQUE = "torque"


@clean(rec={"cmd": normal(4), "q": normal(4), "dq": normal(4)}, style="method", backends="jit")
class BcEnumMode:
    """A joint controller that branches on an enum mode."""

    def __init__(self, mode: ControlMode = ControlMode.VELOCITY) -> None:
        self.mode = mode

    def step(self, cmd: Tensor, q: Tensor, dq: Tensor) -> Tensor:
        if self.mode is ControlMode.POSITION:
            tau = 30.0 * (cmd - q) - dq
        elif self.mode is ControlMode.VELOCITY:
            tau = 5.0 * (cmd - dq)
        else:
            tau = cmd
        return tau.clip(-10, 10)


@clean(rec={"action": normal(1, 4)}, backends="jit")
class BcEnvironmentScale:
    """Environment variables that are read when the policy is made."""

    def __init__(self) -> None:
        self.scale = float(os.environ.get("BC_ACTION_SCALE", "0.5"))
        self.debug = os.environ.get("BC_DEBUG", "0") == "1"
        self.offset = torch.full((1, 4), float(os.getenv("BC_OFFSET", "0.1")))

    def __call__(self, action: Tensor) -> Tensor:
        target = action * self.scale + self.offset
        if self.debug:
            print("target", target)
        return target


@clean(rec={"x": normal(2, 5)}, style="module", backends="onnx")
class BcPartialActivations(nn.Module):
    """Activations are partials that are kept in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(5, 8), nn.Linear(8, 8), nn.Linear(8, 3)])
        self.acts = [
            functools.partial(F.leaky_relu, negative_slope=0.2),
            functools.partial(F.softplus, beta=2.0),
            functools.partial(torch.clamp, min=-1.0, max=1.0),
        ]

    def forward(self, x: Tensor) -> Tensor:
        for layer, act in zip(self.layers, self.acts, strict=True):
            x = act(layer(x))
        return x


@functools.lru_cache(maxsize=None)
def _cosine_basis(n: int, order: int) -> Tensor:
    t = torch.linspace(0, math.pi, n)
    return torch.stack([torch.cos(k * t) for k in range(order)], -1)


@clean(rec={"w": normal(1, 4)}, backends=("jit", "pt2"))
def BcLruCachedBasis(w: Tensor) -> Tensor:
    """A trajectory from weights and a basis that is cached by its size."""
    return w @ _cosine_basis(10, w.shape[-1]).T


@clean(rec={"action": normal(1, 12)}, style="method", backends="onnx")
def BcModuleConstants(action: Tensor) -> Tensor:
    """Offsets from a dict of module constants, repeated for the four legs."""
    default = torch.tensor(list(DEFAULT_JOINT_POS.values()) * 4)
    target = default + ACTION_SCALE * action
    lower, upper = default - math.pi / 4, default + math.pi / 4
    return torch.max(torch.min(target, upper), lower)


@clean(rec={"obs": normal(1, 3)}, backends="jit")
class BcJsonFile:
    """Mean and deviation come from a JSON file that is read once."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "norm.json"
            path.write_text(
                json.dumps({"mean": [0.1, -0.2, 0.3], "std": [1.0, 2.0, 0.5], "eps": 1e-5})
            )
            self.cfg = json.loads(path.read_text())
        self.mean, self.std = torch.tensor(self.cfg["mean"]), torch.tensor(self.cfg["std"])

    def __call__(self, obs: Tensor) -> Tensor:
        return (obs - self.mean) / (self.std + self.cfg["eps"])


@clean(rec={"d6": normal(1, 6)}, style="method", backends="jit")
class BcMatchRepresentation:
    """`match` on the configured way to write a rotation."""

    def __init__(self, rotation: str = "matrix") -> None:
        self.rotation = rotation

    def step(self, d6: Tensor) -> Tensor:
        a = F.normalize(d6[:, :3] + 2.0, dim=-1)
        b = F.normalize(d6[:, 3:] - (a * d6[:, 3:]).sum(-1, keepdim=True) * a, dim=-1)
        c = torch.linalg.cross(a, b)
        match self.rotation:
            case "matrix":
                return torch.stack([a, b, c], -1)
            case "flat":
                return torch.cat([a, b, c], -1)
            case other:
                raise ValueError(f"unknown rotation {other!r}")


_TERMS: dict[str, Any] = {}


def _term(name: str, weight: float = 1.0):
    def register(function):
        _TERMS[name] = (function, weight)
        return function

    return register


@_term("tracking", 1.5)
def _tracking(v: Tensor, c: Tensor) -> Tensor:
    return torch.exp(-((v - c) ** 2).sum(-1) / 0.25)


@_term("upright", 0.2)
def _upright(v: Tensor, c: Tensor) -> Tensor:
    return -v[..., 2].square()


@_term("smooth")
def _smooth(v: Tensor, c: Tensor) -> Tensor:
    return -0.01 * v.abs().sum(-1)


@clean(rec={"v": normal(2, 3), "c": normal(2, 3)}, backends=("jit", "onnx"))
def BcRegisteredTerms(v: Tensor, c: Tensor) -> dict:
    """Reward terms from a registry filled by decorators, and their weighted sum."""
    terms = {name: weight * function(v, c) for name, (function, weight) in _TERMS.items()}
    return {"total": torch.stack(list(terms.values())).sum(0), **terms}


class _Robot:
    NUM_DOF: ClassVar[int] = 3
    KP: ClassVar[float] = 10.0
    LIMITS: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def __call__(self, target: Tensor, q: Tensor) -> Tensor:
        assert target.shape[-1] == self.NUM_DOF
        return (self.KP * (target - q)).clamp(*self.LIMITS)


@clean(rec={"target": normal(1, 4), "q": normal(1, 4)}, backends="pt2")
class BcClassConstants(_Robot):
    """Class constants that a subclass overrides."""

    NUM_DOF = 4
    LIMITS = (-2.5, 2.5)


@clean(rec={"scan": uniform(0.0, 12.0, 16)}, style="method", backends="jit")
class BcIniFile:
    """Limits of a laser from an ini file."""

    def __init__(self) -> None:
        parser = configparser.ConfigParser()
        parser.read_string("[laser]\nnear = 0.15\nfar = 8\ninvert = yes\nbins = 4\n")
        self.cfg = parser["laser"]

    def step(self, scan: Tensor) -> Tensor:
        near, far = self.cfg.getfloat("near"), self.cfg.getfloat("far")
        ranges = scan.clamp(near, far).view(self.cfg.getint("bins"), -1).amin(1)
        return 1.0 - ranges / far if self.cfg.getboolean("invert") else ranges / far


@clean(rec={"joint": array(normal(3)), "imu": normal(4)}, backends="jit")
def BcIsinstanceToTensor():
    """A helper that takes arrays, tensors and numbers alike."""

    def to_tensor(value: Any) -> Tensor:
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value).float()
        if isinstance(value, (int, float)):
            return torch.tensor([float(value)])
        return value

    def step(joint: np.ndarray, imu: Tensor) -> Tensor:
        return torch.cat([to_tensor(v).reshape(-1) for v in (joint, imu, 9.81)]) * 0.5

    return step


@clean(rec={"obs": normal(1, 4)}, style="module", backends="pt2")
class BcGetattrHeads(nn.Module):
    """Heads that are found by `getattr`, and options that may be missing."""

    def __init__(self) -> None:
        super().__init__()
        for name, size in (("actor", 2), ("critic", 1), ("cost", 1)):
            setattr(self, f"{name}_head", nn.Linear(8, size))
        self.trunk = getattr(nn, "Sequential")(nn.Linear(4, 8), getattr(nn, "GELU")())

    def forward(self, obs: Tensor) -> dict:
        z = self.trunk(obs)
        if hasattr(self, "film"):
            z = self.film(z)
        scale = getattr(self, "temperature", 1.0)
        return {n: getattr(self, f"{n}_head")(z) / scale for n in ("actor", "critic", "cost")}


class Feature(enum.Flag):
    POSITION = enum.auto()
    VELOCITY = enum.auto()
    NORM = enum.auto()
    SQUARE = enum.auto()


@clean(rec={"q": normal(1, 3), "dq": normal(1, 3)}, backends=("jit", "onnx"))
class BcFeatureFlags:
    """Which features are built is a set of flags."""

    def __init__(self) -> None:
        self.features = Feature.POSITION | Feature.NORM | Feature.VELOCITY

    def __call__(self, q: Tensor, dq: Tensor) -> Tensor:
        parts = []
        if Feature.POSITION in self.features:
            parts.append(torch.sin(q))
        if Feature.VELOCITY in self.features:
            parts.append(0.05 * dq)
        if Feature.NORM in self.features:
            parts.append(q.norm(dim=-1, keepdim=True))
        if Feature.SQUARE in self.features:
            parts.append(q**2)
        return torch.cat(parts, -1)


class LimitCfg(TypedDict, total=False):
    lower: float
    upper: float
    soft: bool


@clean(rec={"u": normal(3)}, backends="jit")
class BcChainMapDefaults:
    """Defaults, overridden by a robot's file, overridden by the command line."""

    def __init__(self) -> None:
        base: LimitCfg = {"lower": -1.0, "upper": 1.0, "soft": False}
        self.cfg = collections.ChainMap({"soft": True}, {"upper": 1.5}, dict(base))

    def __call__(self, u: Tensor) -> Tensor:
        lower, upper = self.cfg["lower"], self.cfg["upper"]
        if self.cfg["soft"]:
            return lower + (upper - lower) * torch.sigmoid(u)
        return u.clamp(lower, upper)


@dataclass
class Morphology:
    joints: tuple[str, ...] = ("hip", "knee", "ankle", "toe")
    mirrored: tuple[str, ...] = ("hip", "ankle")
    signs: Tensor = field(init=False)
    order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.signs = torch.tensor([-1.0 if j in self.mirrored else 1.0 for j in self.joints])
        self.order = sorted(range(len(self.joints)), key=self.joints.__getitem__)


@clean(rec={"left": normal(2, 4)}, style="method", backends="onnx")
class BcPostInitMirror:
    """Mirrors a leg's joints with tables made in `__post_init__`."""

    def __init__(self) -> None:
        self.morphology = Morphology()

    def step(self, left: Tensor) -> Tensor:
        return (left * self.morphology.signs)[:, self.morphology.order]


@clean(rec={"x": normal(1, 4), "contact": flags(0.5, 1, 4)}, backends="jit")
class BcSimpleNamespaceReward:
    """Weights in a `SimpleNamespace` made from a dataclass."""

    def __init__(self) -> None:
        self.w = types.SimpleNamespace(**asdict(Gains(kp=2.0)), slip=-0.3)

    def __call__(self, x: Tensor, contact: Tensor) -> Tensor:
        slip = (x.square() * contact.float()).sum(-1)
        return self.w.kp * torch.exp(-x.abs().sum(-1)) + self.w.slip * slip + self.w.kd


@clean(rec={"obs": normal(1, 5), "skill": integers(0, 3, 1)}, backends="onnx")
class BcFactoryBuilt(nn.Module):
    """A factory builds every part from a list of specs with a type and arguments."""

    SPECS = [
        {"type": "linear", "in_features": 9, "out_features": 8},
        {"type": "act", "name": "Tanh"},
        {"type": "linear", "in_features": 8, "out_features": 2, "bias": False},
    ]

    @staticmethod
    def build(spec: dict[str, Any]) -> nn.Module:
        kind, rest = spec["type"], {k: v for k, v in spec.items() if k != "type"}
        return nn.Linear(**rest) if kind == "linear" else getattr(nn, rest["name"])()

    def __init__(self) -> None:
        super().__init__()
        self.skills = nn.Embedding(3, 4)
        self.net = nn.Sequential(*map(self.build, self.SPECS))

    def forward(self, obs: Tensor, skill: Tensor) -> Tensor:
        return self.net(torch.cat([obs, self.skills(skill)], -1))
