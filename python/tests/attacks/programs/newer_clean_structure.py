"""Configurations, hierarchies, registries, decorators, closures and caches of constants."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import enum
import functools
import itertools
import operator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import normal
from attacks.registry import clean


@dataclass(frozen=True)
class ControlCfg:
    stiffness: dict[str, float] = field(default_factory=lambda: {"hip": 20.0, "knee": 30.0})
    damping: dict[str, float] = field(default_factory=lambda: {"hip": 0.5, "knee": 0.8})
    action_scale: float = 0.25
    clip: float = 3.0


@dataclass(frozen=True)
class RobotCfg:
    joints: tuple[str, ...] = ("FL_hip", "FL_knee", "FR_hip", "FR_knee")
    control: ControlCfg = field(default_factory=ControlCfg)


@clean(
    "H",
    passes=3,
    rec={"action": normal(1, 4), "q": normal(1, 4), "qd": normal(1, 4)},
    backends="jit",
)
class NcNestedDataclassCfg:
    """Gains by names that match joints, looked up in nested dataclasses each tick."""

    def __init__(self) -> None:
        self.cfg = RobotCfg()

    def gains(self, table: dict[str, float]) -> Tensor:
        return torch.tensor(
            [value for joint in self.cfg.joints for key, value in table.items() if key in joint]
        )

    def __call__(self, action: Tensor, q: Tensor, qd: Tensor) -> Tensor:
        control = self.cfg.control
        target = action.clamp(-control.clip, control.clip) * control.action_scale
        return self.gains(control.stiffness) * (target - q) - self.gains(control.damping) * qd


ACTIVATIONS = {"elu": nn.ELU, "tanh": nn.Tanh, "silu": nn.SiLU}
NETWORKS: dict[str, type[nn.Module]] = {}


def register(name: str):
    def wrap(cls):
        NETWORKS[name] = cls
        return cls

    return wrap


@register("mlp")
class MlpNet(nn.Module):
    def __init__(self, sizes: list[int], activation: str) -> None:
        super().__init__()
        pairs = itertools.pairwise(sizes)
        layers = itertools.chain.from_iterable(
            (nn.Linear(a, b), ACTIVATIONS[activation]()) for a, b in pairs
        )
        self.layers = nn.ModuleList(list(layers)[:-1])

    def forward(self, x: Tensor) -> Tensor:
        return functools.reduce(lambda value, layer: layer(value), self.layers, x)


@clean("H", passes=3, rec={"obs": normal(1, 6)}, backends=("jit", "onnx"))
def NcRegistryFromDict():
    """A network from a registry and a config dict, as rl_games builds them."""
    cfg = {"name": "mlp", "params": {"sizes": [6, 16, 16, 2], "activation": "silu"}}
    net = NETWORKS[cfg["name"]](**cfg["params"]).eval()
    return lambda obs: net(obs)


class Controller(abc.ABC):
    """A template method: pre, law, post."""

    limit = 10.0

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.state = torch.zeros(1, 3)

    @abc.abstractmethod
    def law(self, error: Tensor) -> Tensor: ...

    def __call__(self, error: Tensor) -> Tensor:
        return self.post(self.law(self.pre(error)))

    def pre(self, error: Tensor) -> Tensor:
        return error

    def post(self, command: Tensor) -> Tensor:
        return command.clamp(-self.limit, self.limit)


class Integrating(Controller):
    def pre(self, error: Tensor) -> Tensor:
        self.state = self.state + 0.05 * error
        return super().pre(error)


@clean("A", passes=4, rec={"error": normal(1, 3)}, backends="jit")
class NcTemplateMethodController(Integrating):
    """A law at the bottom of a hierarchy; the state is moved in the middle class."""

    limit = 4.0

    def law(self, error: Tensor) -> Tensor:
        return 3.0 * error + self.state


@functools.lru_cache(maxsize=None)
def hann(n: int) -> Tensor:
    return torch.hann_window(n, periodic=False)


@functools.cache
def dct_matrix(n: int) -> Tensor:
    k = torch.arange(n, dtype=torch.float64)
    m = torch.cos(torch.pi / n * (k + 0.5) * k[:, None]) * (2.0 / n) ** 0.5
    m[0] /= 2.0**0.5
    return m.float()


@clean("A", passes=5, rec={"sample": normal(1, 2)}, backends="jit")
class NcCachedWindowAndDct:
    """A spectrum over a window; the window and the DCT are constants in an lru_cache."""

    def __init__(self) -> None:
        self.samples = torch.zeros(2, 8)

    def __call__(self, sample: Tensor) -> Tensor:
        self.samples = torch.cat([self.samples[:, 1:], sample.T], dim=1)
        return (self.samples * hann(8)) @ dct_matrix(8).T


@clean("H", passes=4, rec={"points": normal(5, 3)}, backends="jit")
class NcCachedPropertyTransform:
    """A camera-to-base transform as a cached_property, made on first use from constants."""

    roll, offset = 0.4, (0.1, 0.0, 0.5)

    @functools.cached_property
    def transform(self) -> Tensor:
        c, s = np.cos(self.roll), np.sin(self.roll)
        pose = np.eye(4)
        pose[1:3, 1:3] = [[c, -s], [s, c]]
        pose[:3, 3] = self.offset
        return torch.tensor(pose, dtype=torch.float32)

    def __call__(self, points: Tensor) -> Tensor:
        return points @ self.transform[:3, :3].T + self.transform[:3, 3]


class PolicyState(NamedTuple):
    hidden: Tensor
    action: Tensor


@clean("A", passes=4, style="method", rec={"obs": normal(1, 4)}, backends="jit")
class NcNamedTupleState:
    """The state is a NamedTuple that a pure function maps to the next one."""

    def __init__(self) -> None:
        self.cell, self.out = nn.GRUCell(6, 8), nn.Linear(8, 2)
        self.state = PolicyState(torch.zeros(1, 8), torch.zeros(1, 2))

    def transition(self, state: PolicyState, obs: Tensor) -> PolicyState:
        hidden = self.cell(torch.cat([obs, state.action], 1), state.hidden)
        return PolicyState(hidden, torch.tanh(self.out(hidden)))

    def step(self, obs: Tensor) -> Tensor:
        self.state = self.transition(self.state, obs)
        action = self.state.action
        return action


@dataclass
class EkfState:
    x: Tensor
    P: Tensor


@clean("A", passes=4, rec={"odom": normal(2, s=0.3), "beacon": normal(1)}, backends="jit")
class NcDataclassReplaceEkf:
    """An EKF with range to a beacon; each step makes a new dataclass by replace."""

    def __init__(self) -> None:
        self.state = EkfState(torch.tensor([1.0, 1.0]), torch.eye(2))
        self.beacon = torch.tensor([4.0, 3.0])

    def predict(self, state: EkfState, odom: Tensor) -> EkfState:
        return dataclasses.replace(state, x=state.x + 0.1 * odom, P=state.P + 0.02 * torch.eye(2))

    def correct(self, state: EkfState, measured: Tensor) -> EkfState:
        delta = state.x - self.beacon
        distance = delta.norm().clamp(min=1e-3)
        H = (delta / distance).unsqueeze(0)
        S = H @ state.P @ H.T + 0.1
        K = state.P @ H.T / S
        x = state.x + (K * (measured - distance)).squeeze(-1)
        return dataclasses.replace(state, x=x, P=(torch.eye(2) - K @ H) @ state.P)

    def __call__(self, odom: Tensor, beacon: Tensor) -> dict[str, Tensor]:
        self.state = self.correct(self.predict(self.state, odom), 3.6 + 0.1 * beacon)
        return {"x": self.state.x, "P": self.state.P}


@clean("A", passes=4, style="method", rec={"x": normal(1, 3)}, backends="onnx")
def NcClosureNonlocal():
    """A filter as a closure: the state is a nonlocal tensor."""
    y = torch.zeros(1, 3)

    def smooth(x: Tensor) -> Tensor:
        nonlocal y
        y = y + 0.25 * (x - y)
        out = y * 2.0
        return out

    return smooth


class Mode(enum.Enum):
    POSITION = "position"
    VELOCITY = "velocity"
    TORQUE = "torque"


@clean(
    "H",
    passes=3,
    rec={"action": normal(1, 3), "q": normal(1, 3), "qd": normal(1, 3)},
    backends="jit",
)
class NcControlModeEnum:
    """A control mode that the constructor fixes, matched in every tick."""

    def __init__(self, mode: Mode = Mode.POSITION) -> None:
        self.mode = mode

    def __call__(self, action: Tensor, q: Tensor, qd: Tensor) -> Tensor:
        match self.mode:
            case Mode.POSITION:
                return 20.0 * (action - q) - 0.5 * qd
            case Mode.VELOCITY:
                return 2.0 * (action - qd)
            case Mode.TORQUE:
                return action
        raise ValueError(self.mode)


def clipped(limit: float):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return torch.clamp(function(*args, **kwargs), -limit, limit)

        return wrapper

    return decorate


def batched(function):
    @functools.wraps(function)
    def wrapper(self, x: Tensor) -> Tensor:
        return function(self, x.unsqueeze(0)).squeeze(0)

    return wrapper


@clean("H", passes=3, rec={"obs": normal(5)}, backends="jit")
class NcStackedDecorators:
    """A batch axis and a clip, added by decorators."""

    def __init__(self) -> None:
        self.net = nn.Linear(5, 3)

    @clipped(0.8)
    @batched
    def act(self, x: Tensor) -> Tensor:
        assert x.ndim == 2
        return self.net(x)

    def __call__(self, obs: Tensor) -> Tensor:
        return self.act(obs)


@contextlib.contextmanager
def evaluating(*modules: nn.Module):
    """Switches to eval mode and back, as people do around a rollout."""
    before = [module.training for module in modules]
    for module in modules:
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in zip(modules, before):
            module.train(training)


@clean("H", passes=4, rec={"obs": normal(3, 5)}, backends="jit", context="grad")
class NcEvalContextManager:
    """Dropout and batch norm under a context manager that evaluates and restores."""

    def __init__(self) -> None:
        self.net = nn.Sequential(
            nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)
        )

    def __call__(self, obs: Tensor) -> Tensor:
        with contextlib.ExitStack() as stack:
            stack.enter_context(evaluating(self.net))
            return self.net(obs)


@clean("H", passes=3, rec={"obs": normal(1, 6)}, backends="jit")
class NcPipelineOfPartials:
    """Transforms as partials in a list, composed by reduce."""

    def __init__(self) -> None:
        self.transforms = [
            functools.partial(torch.clamp, min=-4.0, max=4.0),
            functools.partial(F.layer_norm, normalized_shape=(6,)),
            operator.methodcaller("mul", 0.5),
            operator.itemgetter((slice(None), slice(0, 4))),
            torch.tanh,
        ]

    def __call__(self, obs: Tensor) -> Tensor:
        return functools.reduce(lambda value, transform: transform(value), self.transforms, obs)


class Vector:
    """A thin wrapper with operators, as small robotics libraries have it."""

    __slots__ = ("data",)

    def __init__(self, data: Tensor) -> None:
        self.data = data

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.data + other.data)

    def __rmul__(self, factor: float) -> Vector:
        return Vector(factor * self.data)

    def __matmul__(self, other: Vector) -> Tensor:
        return (self.data * other.data).sum(-1, keepdim=True)


@clean("A", passes=4, rec={"force": normal(1, 3)}, backends="jit")
class NcVectorOperators:
    """A point mass written with a vector class; position and velocity are kept in wrappers."""

    def __init__(self) -> None:
        self.p, self.v = Vector(torch.zeros(1, 3)), Vector(torch.zeros(1, 3))

    def __call__(self, force: Tensor) -> dict[str, Tensor]:
        self.v = 0.98 * self.v + 0.02 * Vector(force)
        self.p = self.p + 0.02 * self.v
        return {"position": self.p.data, "power": self.v @ Vector(force)}


@clean("A", passes=4, rec={"obs": normal(1, 4)}, backends="jit")
class NcPropertySetterState:
    """The state is behind a property whose setter limits it."""

    def __init__(self) -> None:
        self._level = torch.zeros(1, 4)

    @property
    def level(self) -> Tensor:
        return self._level

    @level.setter
    def level(self, value: Tensor) -> None:
        self._level = value.clamp(-1.0, 1.0)

    def __call__(self, obs: Tensor) -> Tensor:
        self.level = self.level + 0.2 * obs
        return self.level.sin()


@clean("A", passes=5, rec={"touch": normal(1, 3)}, backends="jit")
class NcDictOfFilters:
    """A bank of filters in a dict of namespaces, one per channel, each with its own constant."""

    def __init__(self) -> None:
        cutoffs = {"slow": 0.1, "mid": 0.4, "fast": 0.9}
        self.bank = {
            name: SimpleNamespace(alpha=alpha, y=torch.zeros(1, 3))
            for name, alpha in cutoffs.items()
        }

    def __call__(self, touch: Tensor) -> Tensor:
        for channel in self.bank.values():
            channel.y = torch.lerp(channel.y, touch, channel.alpha)
        return torch.cat([self.bank[name].y for name in sorted(self.bank)], dim=-1)


@clean("H", passes=3, style="module", rec={"obs": normal(1, 5)}, backends="onnx")
class NcLoadedCheckpoint(nn.Module):
    """Weights loaded from a state dict with a renamed prefix, a ModuleDict by head."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(5, 8)
        self.heads = nn.ModuleDict({"arm": nn.Linear(8, 3), "gripper": nn.Linear(8, 1)})
        checkpoint = {
            f"module.{key}": torch.randn_like(value) * 0.3
            for key, value in self.state_dict().items()
        }
        self.load_state_dict(
            {key.removeprefix("module."): value for key, value in checkpoint.items()}
        )
        self.requires_grad_(False).eval()

    def forward(self, obs: Tensor) -> dict[str, Tensor]:
        h = F.mish(self.body(obs))
        return {name: head(h) for name, head in self.heads.items()}


@functools.singledispatch
def as_features(value) -> Tensor:
    raise TypeError(type(value))


@as_features.register
def _(value: Tensor) -> Tensor:
    return value.flatten(1)


@as_features.register
def _(value: dict) -> Tensor:
    return torch.cat([as_features(value[key]) for key in sorted(value)], dim=-1)


@as_features.register
def _(value: tuple) -> Tensor:
    return torch.cat([as_features(part) for part in value], dim=-1)


@clean("H", passes=3, rec={"pose": normal(1, 3), "map": normal(1, 2, 4)}, backends="jit")
class NcSingleDispatchFeatures:
    """Nested observations flattened by singledispatch."""

    def __init__(self) -> None:
        self.net = nn.Linear(14, 2)

    def __call__(self, pose: Tensor, height: Tensor) -> Tensor:
        return self.net(as_features({"state": (pose, pose.square()), "map": height}))


class LazyMeta(type):
    """Collects the observation terms of a class by the prefix of their names."""

    def __new__(mcs, name, bases, body):
        cls = super().__new__(mcs, name, bases, body)
        cls.terms = sorted(key for key in body if key.startswith("obs_"))
        return cls


@clean("A", passes=4, rec={"q": normal(1, 3), "qd": normal(1, 3)}, backends="pt2")
class NcMetaclassTerms(metaclass=LazyMeta):
    """Observation terms found by a metaclass and called by getattr; the last observation is kept."""

    def __init__(self) -> None:
        self.last = torch.zeros(1, 9)

    def obs_position(self, q: Tensor, qd: Tensor) -> Tensor:
        return q.sin()

    def obs_velocity(self, q: Tensor, qd: Tensor) -> Tensor:
        return 0.05 * qd

    def obs_energy(self, q: Tensor, qd: Tensor) -> Tensor:
        return 0.5 * qd * qd + 1.0 - q.cos()

    def __call__(self, q: Tensor, qd: Tensor) -> Tensor:
        obs = torch.cat([getattr(self, term)(q, qd) for term in self.terms], dim=-1)
        change = obs - self.last
        self.last = obs
        return torch.cat([obs, change], dim=-1)
