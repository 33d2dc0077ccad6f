"""Python as it is written around policies: classes, wrappers, generators, containers."""

from __future__ import annotations

import abc
import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import integers, normal
from attacks.registry import clean


class PolicyOut(NamedTuple):
    action: Tensor
    value: Tensor
    latent: Tensor


@clean(rec={"obs": normal(1, 4)}, backends=("jit", "onnx"))
class BcNamedTupleOut(nn.Module):
    """The policy gives a NamedTuple."""

    def __init__(self) -> None:
        super().__init__()
        self.enc, self.pi, self.v = nn.Linear(4, 6), nn.Linear(6, 2), nn.Linear(6, 1)

    def forward(self, obs: Tensor) -> PolicyOut:
        z = self.enc(obs).tanh()
        return PolicyOut(action=self.pi(z), value=self.v(z).squeeze(-1), latent=z)


@dataclass(slots=True)
class Command:
    position: Tensor
    velocity: Tensor
    stiffness: Tensor

    def limited(self, low: float, high: float) -> Command:
        return Command(self.position.clamp(low, high), self.velocity, self.stiffness.abs())


@clean(rec={"x": normal(1, 9)}, backends="pt2")
def BcDataclassOut(x: Tensor) -> dict:
    """A dataclass with slots is filled, limited and taken apart into outputs."""
    command = Command(*x.split(3, dim=-1)).limited(-1.0, 1.0)
    return {f.name: getattr(command, f.name) for f in fields(command)}


@clean(rec={"x": normal(2, 4)}, backends="jit", style="module")
class BcLayerGenerator(nn.Module):
    """A generator walks over layers and yields what each gives."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def stages(self, x: Tensor) -> Iterator[Tensor]:
        for i, layer in enumerate(self.layers):
            x = layer(x) if i % 2 else F.relu(layer(x))
            yield x

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat(list(self.stages(x)), -1)


@clean(rec={"q": normal(3), "dq": normal(3), "target": normal(3)}, backends="onnx")
def BcKwargsPassing():
    """Arguments that go through wrappers as `*args` and `**kwargs`."""

    def pd(
        q: Tensor, dq: Tensor, *, target: Tensor, kp: float = 10.0, kd: float = 1.0, **_: Any
    ) -> Tensor:
        return kp * (target - q) - kd * dq

    def clipped(function: Callable[..., Tensor], limit: float) -> Callable[..., Tensor]:
        return lambda *args, **kwargs: function(*args, **kwargs).clamp(-limit, limit)

    controller = clipped(functools.partial(pd, kp=15.0), limit=20.0)
    options = {"kd": 0.7, "unused": "yes"}
    return lambda q, dq, target: controller(q, dq, target=target, **options)


class Transform(Protocol):
    def __call__(self, x: Tensor) -> Tensor: ...


class Compose:
    def __init__(self, *transforms: Transform) -> None:
        self.transforms = transforms

    def __call__(self, x: Tensor) -> Tensor:
        return functools.reduce(lambda value, t: t(value), self.transforms, x)

    def __or__(self, other: Transform) -> Compose:
        return Compose(*self.transforms, other)


@dataclass
class Scale:
    by: float

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.by


@clean(rec={"x": normal(1, 5)}, backends=("jit", "onnx"))
def BcComposedTransforms():
    """Transforms joined by an overloaded operator."""
    return Compose(Scale(0.5)) | torch.tanh | Scale(2.0) | (lambda x: x - x.amin(-1, keepdim=True))


class _Controller(abc.ABC):
    @abc.abstractmethod
    def law(self, x: Tensor) -> Tensor: ...

    def saturate(self, u: Tensor) -> Tensor:
        return u.clamp(-1, 1)

    def step(self, x: Tensor) -> Tensor:
        return self.saturate(self.law(x))


class _Feedback(_Controller):
    def __init__(self, k: Tensor) -> None:
        self.k = k

    def law(self, x: Tensor) -> Tensor:
        return -x @ self.k


@clean(rec={"x": normal(2, 3)}, backends="jit", style="method")
class BcTemplateMethod(_Feedback):
    """An abstract controller; the law and the saturation are overridden with `super()`."""

    def __init__(self) -> None:
        super().__init__(torch.tensor([[1.0], [0.5], [0.2]]))
        self.bias = 0.05

    def law(self, x: Tensor) -> Tensor:
        return super().law(x) + self.bias

    def saturate(self, u: Tensor) -> Tensor:
        return 2.0 * super().saturate(u / 2.0)


@clean(rec={"x": normal(1, 4)}, backends="onnx")
class BcConstantCache:
    """Constant tensors that are built at first use and kept by type and size."""

    def __init__(self) -> None:
        self._cache: dict[tuple, Tensor] = {}

    def _weights(self, n: int, like: Tensor) -> Tensor:
        key = (n, like.dtype, like.device)
        if key not in self._cache:
            self._cache[key] = torch.linspace(0.1, 1.0, n, dtype=like.dtype, device=like.device)
        return self._cache[key]

    def __call__(self, x: Tensor) -> Tensor:
        return x * self._weights(x.shape[-1], x)


@clean(rec={"x": normal(3, 2)}, backends="jit", style="method")
class BcCachedProperty:
    """A rotation that is a `cached_property`."""

    def __init__(self, yaw: float = 0.3) -> None:
        self.yaw = yaw

    @functools.cached_property
    def rotation(self) -> Tensor:
        c, s = np.cos(self.yaw), np.sin(self.yaw)
        return torch.tensor([[c, -s], [s, c]], dtype=torch.float32)

    def step(self, x: Tensor) -> Tensor:
        return x @ self.rotation.T


class _Wrapper:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


class _ClipObs(_Wrapper):
    def act(self, obs: Tensor) -> Tensor:
        return self.inner.act(obs.clamp(-3, 3))


class _ScaleAct(_Wrapper):
    def act(self, obs: Tensor) -> Tensor:
        return self.inner.act(obs) * self.action_scale


class _Agent:
    action_scale = 0.4

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)

    def act(self, obs: Tensor) -> Tensor:
        return self.net(obs).sin()


@clean(rec={"obs": normal(1, 4)}, backends=("jit", "pt2"))
def BcGymWrappers():
    """Wrappers around an agent that delegate what they do not have."""
    return _ScaleAct(_ClipObs(_Agent())).act


T = TypeVar("T")


class Registry(Generic[T]):
    def __init__(self) -> None:
        self.items: dict[str, type[T]] = {}

    def __call__(self, name: str):
        def add(cls: type[T]) -> type[T]:
            self.items[name] = cls
            return cls

        return add

    def make(self, name: str, **kwargs: Any) -> T:
        return self.items[name](**kwargs)


HEADS: Registry[nn.Module] = Registry()


@HEADS("beta")
class _BetaHead(nn.Module):
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.ab = nn.Linear(width, 2 * out)

    def forward(self, z: Tensor) -> Tensor:
        alpha, beta = (F.softplus(self.ab(z)) + 1.0).chunk(2, -1)
        return 2 * alpha / (alpha + beta) - 1


@clean(rec={"obs": normal(1, 4)}, backends="onnx", style="module")
class BcGenericRegistry(nn.Module):
    """A head made by a generic registry: the mean of a Beta."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 8), nn.SiLU())
        self.head = HEADS.make("beta", width=8, out=2)

    def forward(self, obs: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.trunk(obs)))


@clean(rec={"x": normal(6)}, backends="jit")
def BcItertools(x: Tensor) -> Tensor:
    """Pairs, chains and accumulations of unbound tensors."""
    joints = x.unbind()
    steps = [b - a for a, b in itertools.pairwise(joints)]
    reach = list(itertools.accumulate(joints, operator.add))
    crossed = [a * b for a, b in itertools.product(joints[:2], joints[4:])]
    return torch.stack(list(itertools.chain(steps, reversed(reach), crossed)))


@clean(rec={"x": normal(2, 4)}, backends="pt2", style="module")
class BcExitStack(nn.Module):
    """Contexts on a stack: no gradients, no autocast, a named range."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.profile = nn.Linear(4, 3), True

    def forward(self, x: Tensor) -> Tensor:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch.autocast("cpu", enabled=False))
            if self.profile:
                stack.enter_context(torch.profiler.record_function("policy"))
            return F.hardtanh(self.net(x))


@clean(rec={"image": normal(1, 2, 4, 6)}, backends=("jit", "onnx"))
def BcRearrange():
    """A helper like einops, for patches and back."""

    def patches(x: Tensor, p: int) -> Tensor:
        b, c, h, w = x.shape
        assert h % p == 0 and w % p == 0, (h, w, p)
        return (
            x.reshape(b, c, h // p, p, w // p, p)
            .permute(0, 2, 4, 3, 5, 1)
            .reshape(b, -1, p * p * c)
        )

    net = nn.Linear(8, 8)

    def step(image: Tensor) -> Tensor:
        tokens = patches(image, 2)
        tokens = tokens + net(F.layer_norm(tokens, tokens.shape[-1:]))
        return tokens.reshape(1, 2, 3, 2, 2, 2).permute(0, 5, 1, 3, 2, 4).reshape(image.shape)

    return step


@clean(rec={"value": normal(3), "count": integers(1, 9, 3)}, backends="jit")
def BcSingleDispatch():
    """Conversion by single dispatch on the type of a value."""

    @functools.singledispatch
    def to_float(value) -> Tensor:
        raise TypeError(type(value))

    @to_float.register
    def _(value: torch.Tensor) -> Tensor:
        return value if value.dtype == torch.float32 else value.to(torch.float32)

    @to_float.register
    def _(value: float) -> Tensor:
        return torch.tensor(value)

    return lambda value, count: to_float(value) / to_float(count) + to_float(0.25)


class _Joint:
    def __init__(self, name: str, index: int, gear: float) -> None:
        self.name, self.index, self.gear = name, index, gear


class _Limb:
    def __init__(self, *joints: _Joint) -> None:
        self.joints = {joint.name: joint for joint in joints}

    def __iter__(self) -> Iterator[_Joint]:
        return iter(self.joints.values())

    def __len__(self) -> int:
        return len(self.joints)

    def __getitem__(self, name: str) -> _Joint:
        return self.joints[name]


@clean(rec={"motor": normal(1, 3)}, backends="onnx", style="method")
class BcIterableLimb:
    """A limb that can be iterated, indexed and asked for its length; a coupled joint."""

    def __init__(self) -> None:
        self.limb = _Limb(_Joint("yaw", 2, 6.0), _Joint("pitch", 0, 9.0), _Joint("roll", 1, 6.0))

    def step(self, motor: Tensor) -> Tensor:
        assert motor.shape[-1] == len(self.limb)
        angles = torch.stack([motor[:, joint.index] / joint.gear for joint in self.limb], -1)
        coupling = motor[:, self.limb["roll"].index] / self.limb["roll"].gear
        return angles + torch.stack(
            [torch.zeros_like(coupling), 0.5 * coupling, torch.zeros_like(coupling)], -1
        )


@clean(rec={"x": normal(2, 3)}, backends="jit")
def BcInPlaceOnFresh(x: Tensor) -> Tensor:
    """In-place operators on tensors that were just made."""
    y = x.clone()
    y[:, 0].mul_(2.0)
    y[..., 1:] += 0.5
    out = torch.empty(2, 6)
    out[:, ::2] = y
    out[:, 1::2] = -y
    out.clamp_(-2, 2).masked_fill_(out.abs() < 0.1, 0.0)
    return out


@clean(rec={"obs": normal(1, 4)}, backends="jit", context="grad")
class BcNoGradDecorator(nn.Module):
    """`torch.no_grad()` as a decorator, outside gradients are on, outputs are detached."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)

    @torch.no_grad()
    def act(self, obs: Tensor) -> Tensor:
        return self.net(torch.as_tensor(obs).float())

    def forward(self, obs: Tensor) -> Tensor:
        return self.act(obs).detach().cpu()


@clean(rec={"x": normal(1, 4)}, backends="onnx", context="inference")
class BcWalrusAndDefaults:
    """Walrus, conditional expressions and defaults on configuration."""

    def __init__(self, clip: float | None = 1.5, gains: dict[str, float] | None = None) -> None:
        self.clip = clip
        self.gains = gains or {"x": 1.0, "tail": 0.1}

    def __call__(self, x: Tensor, scale: float = 0.8) -> Tensor:
        if (n := x.shape[-1]) > 2:
            x = torch.cat([x[..., :2] * self.gains["x"], x[..., 2:] * self.gains["tail"]], -1)
        y = x * scale / n
        return y if self.clip is None else y.clamp(-self.clip, self.clip)


@clean(rec={"pos": normal(2, 3), "vel": normal(2, 3), "cmd": normal(2, 3)}, backends=("jit", "pt2"))
class BcObservationManager:
    """Isaac Lab's observation manager: terms with scale, clip and a function by name."""

    TERMS = {
        "base_vel": {"func": "_vel", "scale": 2.0, "clip": (-10.0, 10.0)},
        "command": {"func": "_cmd", "scale": (2.0, 2.0, 0.25), "clip": None},
        "pos": {"func": "_pos", "scale": None, "clip": (-1.0, 1.0)},
    }

    def __init__(self) -> None:
        self.terms = []
        for name, cfg in self.TERMS.items():
            scale = None if cfg["scale"] is None else torch.tensor(cfg["scale"])
            self.terms.append((name, getattr(self, cfg["func"]), scale, cfg["clip"]))

    def _vel(self) -> Tensor:
        return self.data["vel"]

    def _cmd(self) -> Tensor:
        return self.data["cmd"]

    def _pos(self) -> Tensor:
        return self.data["pos"] - self.data["pos"].mean(-1, keepdim=True)

    def __call__(self, pos: Tensor, vel: Tensor, cmd: Tensor) -> Tensor:
        self.data = {"pos": pos, "vel": vel, "cmd": cmd}
        group = {}
        for name, function, scale, clip in self.terms:
            value = function().clone()
            if clip is not None:
                value = value.clip_(min=clip[0], max=clip[1])
            if scale is not None:
                value = value.mul_(scale)
            group[name] = value
        return torch.cat(list(group.values()), dim=-1)
