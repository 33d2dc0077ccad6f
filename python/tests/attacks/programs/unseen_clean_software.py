"""Plain Python around the maths: configs, registries, mixins, hooks, logs, timers, caches."""

from __future__ import annotations

import abc
import contextlib
import functools
import json
import logging
import time
import warnings
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from types import SimpleNamespace
from typing import Any, Callable, Iterator, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, normal, uniform
from attacks.registry import ALL, clean

try:
    import wandb_that_is_not_installed as wandb
except ImportError:
    wandb = None

logger = logging.getLogger("cc.software")


class Config(dict):
    """omegaconf in ten lines: nested, attributes, interpolation of other keys."""

    def __getattr__(self, key: str) -> Any:
        try:
            value = self[key]
        except KeyError as error:
            raise AttributeError(key) from error
        if isinstance(value, dict) and not isinstance(value, Config):
            value = self[key] = Config(value)
        return value


MODELS: dict[str, Callable[..., nn.Module]] = {}


def register(name: str) -> Callable:
    def inner(cls: type) -> type:
        MODELS[name] = cls
        return cls

    return inner


@register("mlp")
class Mlp(nn.Module):
    def __init__(self, in_dim: int, out_dim: int, hidden: list[int], act: str = "ReLU") -> None:
        super().__init__()
        dims = [in_dim, *hidden]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.act, self.out = getattr(nn, act)(), nn.Linear(dims[-1], out_dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(functools.reduce(lambda h, layer: self.act(layer(h)), self.layers, x))


@register("residual")
class Residual(Mlp):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + x.sum(-1, keepdim=True)


def instantiate(cfg: Config, **overrides: Any) -> nn.Module:
    kwargs = {k: v for k, v in cfg.items() if k != "_target_"} | overrides
    return MODELS[cfg["_target_"]](**kwargs)


@clean("H", style="method", rec={"obs": normal(1, 4)}, backends=("jit", "onnx"))
class CcHydraConfig:
    """A hydra-like tree of configs, targets instantiated from a registry, read in the loop."""

    def __init__(self) -> None:
        text = '{"policy": {"_target_": "residual", "hidden": [8, 8], "act": "ELU"}, "env": {"obs": {"clip": 5.0, "scale": [1, 2, 0.5, 1]}, "action": {"scale": 0.5, "clip": null}}}'
        self.cfg = Config(json.loads(text))
        self.net = instantiate(self.cfg.policy, in_dim=4, out_dim=2).eval()

    def step(self, obs: Tensor) -> Tensor:
        cfg = self.cfg.env
        obs = torch.clamp(obs * torch.tensor(cfg.obs.scale), -cfg.obs.clip, cfg.obs.clip)
        action = self.net(obs) * cfg.action.scale
        if cfg.action.get("clip") is not None:
            action = action.clamp(-cfg.action.clip, cfg.action.clip)
        return action


@dataclass
class NoiseCfg:
    std: float = 0.0


@dataclass
class TermCfg:
    func: Callable[[dict], Tensor]
    scale: float = 1.0
    clip: tuple[float, float] | None = None
    history: int = 0
    noise: NoiseCfg | None = field(default_factory=NoiseCfg)


@clean("H", rec={"lin": normal(1, 3), "joint": normal(1, 4)}, backends=("jit", "pt2"), passes=5)
class CcObservationManager:
    """Terms with scale, clip, noise switched off, and a history kept for some of them."""

    def __init__(self) -> None:
        base = TermCfg(func=lambda env: env["lin"], scale=2.0)
        self.terms = {
            "lin": base,
            "joint": TermCfg(func=lambda env: env["joint"], clip=(-2.0, 2.0), history=3),
        }
        self.terms["lin_again"] = replace(base, scale=0.1, func=lambda env: env["lin"].square())
        self.enable_corruption = False
        self.histories = {
            k: torch.zeros(1, t.history, 4) for k, t in self.terms.items() if t.history > 0
        }

    def compute(self, env: dict[str, Tensor]) -> Tensor:
        out = []
        for name, term in self.terms.items():
            value = term.func(env).clone()
            if self.enable_corruption and term.noise is not None and term.noise.std > 0:
                value = value + torch.randn_like(value) * term.noise.std
            if term.clip:
                value.clip_(min=term.clip[0], max=term.clip[1])
            value.mul_(term.scale)
            if term.history > 0:
                self.histories[name] = torch.cat(
                    [self.histories[name][:, 1:], value[:, None]], dim=1
                )
                value = self.histories[name].reshape(1, -1)
            out.append(value)
        return torch.cat(out, dim=-1)

    def __call__(self, lin: Tensor, joint: Tensor) -> Tensor:
        return self.compute({"lin": lin, "joint": joint})


class Timer:
    """Measures with a context, keeps totals by name."""

    totals: dict[str, float] = defaultdict(float)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "Timer":
        self.start = time.perf_counter()
        return self

    def __exit__(self, *exc: object) -> None:
        self.elapsed = time.perf_counter() - self.start
        Timer.totals[self.name] += self.elapsed


@clean("H", rec={"obs": normal(1, 4)}, backends="jit", style="method")
class CcTimed:
    """Timers around the parts; a slow step is logged and nothing else."""

    def __init__(self) -> None:
        self.encoder, self.head = nn.Linear(4, 6), nn.Linear(6, 2)
        self.deadline_ms, self.overruns, self.mean_ms = 5.0, 0, 0.0

    def step(self, obs: Tensor) -> Tensor:
        with Timer("encode"):
            z = F.relu(self.encoder(obs))
        with Timer("head") as t:
            action = self.head(z)
        ms = t.elapsed * 1e3
        self.mean_ms = 0.9 * self.mean_ms + 0.1 * ms
        if ms > self.deadline_ms:
            self.overruns += 1
            logger.warning("step took %.2f ms (%d overruns)", ms, self.overruns)
        return action


@clean("H", style="module", rec={"obs": normal(1, 4)}, backends=("jit", "onnx"), passes=5)
class CcRecordingHooks(nn.Module):
    """Forward hooks that note the mean and the share of dead units of each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.stats: dict[str, list[float]] = defaultdict(list)
        self.activations: dict[str, Tensor] = {}
        for name, module in self.net.named_modules():
            if name:
                module.register_forward_hook(functools.partial(self._record, name))

    def _record(self, name: str, module: nn.Module, args: tuple, output: Tensor) -> None:
        self.activations[name] = output.detach()
        self.stats[name].append(output.mean().item())
        self.stats[f"{name}/dead"].append((output == 0).float().mean().item())

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("H", rec={"obs": normal(1, 4)}, backends="jit")
class CcOptionalLogger(nn.Module):
    """wandb where it is installed, otherwise a dict; logging must never stop the robot."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.step, self.fallback = 0, {}

    def log(self, **metrics: float) -> None:
        try:
            if wandb is not None:
                wandb.log(metrics, step=self.step)
            else:
                self.fallback.update({f"{self.step}/{k}": v for k, v in metrics.items()})
        except Exception:
            logger.exception("logging failed")

    def forward(self, obs: Tensor) -> Tensor:
        action = torch.tanh(self.net(obs))
        self.log(action_max=action.abs().max().item(), obs_norm=obs.norm().item())
        self.step += 1
        return action


@clean("H", style="method", rec={"obs": normal(1, 4)}, backends=("jit", "pt2"))
class CcOddValueWarning:
    """Warns about large observations once in a while, and goes on as before."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.warned = 0

    def check(self, name: str, value: Tensor, limit: float = 3.0) -> None:
        if torch.any(value.abs() > limit):
            self.warned += 1
            if self.warned <= 2:
                warnings.warn(
                    f"{name} is unusually large: {value.abs().max().item():.2f}", stacklevel=2
                )

    def step(self, obs: Tensor) -> Tensor:
        self.check("obs", obs)
        action = self.net(obs).clamp(-1, 1)
        self.check("action", action, limit=0.99)
        return action


@clean("H", rec={"obs": normal(1, 4), "goal": normal(1, 2)}, backends=ALL, passes=3)
class CcAssertions(nn.Module):
    """Checks of shape, dtype and finiteness before and after."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ELU(), nn.Linear(8, 2))

    def forward(self, obs: Tensor, goal: Tensor) -> Tensor:
        assert obs.ndim == 2 and obs.shape[-1] == 4, f"bad obs {tuple(obs.shape)}"
        assert obs.shape[0] == goal.shape[0]
        if obs.dtype != torch.float32:
            raise TypeError(f"expected float32, got {obs.dtype}")
        assert torch.isfinite(obs).all(), "obs has NaN or infinity"
        action = self.net(torch.cat([obs, goal], -1))
        assert not torch.isnan(action).any(), "the network diverged"
        return action


@clean("H", style="method", rec={"obs": normal(1, 4)}, backends="jit", passes=5)
class CcProgressCounter:
    """A progress line every second step, with an estimate of what is left."""

    def __init__(self) -> None:
        self.net, self.total, self.done, self.started = nn.Linear(4, 2), 100, 0, time.monotonic()
        self.episode_rewards: list[float] = []

    def step(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        self.done += 1
        self.episode_rewards.append(float(-action.square().sum()))
        if self.done % 2 == 0:
            left = (time.monotonic() - self.started) / self.done * (self.total - self.done)
            best, mean = (
                max(self.episode_rewards),
                sum(self.episode_rewards) / len(self.episode_rewards),
            )
            print(
                f"\r{self.done}/{self.total} best {best:.2f} mean {mean:.2f} eta {left:.1f}s",
                end="",
            )
        return action


class Base(abc.ABC):
    """A controller: `compute` is a template that subclasses fill in."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.setup()

    def setup(self) -> None:
        self.gain = torch.ones(self.dim)

    def compute(self, x: Tensor) -> Tensor:
        return self.post(self.control(self.pre(x)))

    def pre(self, x: Tensor) -> Tensor:
        return x

    @abc.abstractmethod
    def control(self, x: Tensor) -> Tensor: ...

    def post(self, u: Tensor) -> Tensor:
        return u * self.gain


class ClampMixin:
    limit = 1.0

    def post(self, u: Tensor) -> Tensor:
        return super().post(u).clamp(-self.limit, self.limit)


class DeadzoneMixin:
    def pre(self, x: Tensor) -> Tensor:
        x = super().pre(x)
        return torch.sign(x) * F.relu(x.abs() - 0.1)


@clean("H", rec={"x": normal(1, 3)}, backends=("jit", "onnx"))
class CcMixinController(ClampMixin, DeadzoneMixin, Base):
    """Mixins over an abstract base, by super() all the way."""

    limit = 0.8

    def __init__(self) -> None:
        super().__init__(3)

    def setup(self) -> None:
        super().setup()
        self.gain = self.gain * 0.5

    def control(self, x: Tensor) -> Tensor:
        return torch.tanh(2.0 * x)

    def __call__(self, x: Tensor) -> Tensor:
        return self.compute(x)


@clean("H", style="module", rec={"x": normal(1, 6, 8)}, backends=("jit", "pt2"))
class CcLazyBuffers(nn.Module):
    """A positional table and a causal mask, made in the first forward as buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.register_buffer("mask", None, persistent=False)
        self.pe: Tensor | None = None

    def build(self, n: int, d: int) -> None:
        if self.mask is None or self.mask.shape[0] < n:
            self.mask = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        if self.pe is None:
            position = torch.arange(n).unsqueeze(1)
            div = torch.exp(torch.arange(0, d, 2) * (-np.log(10000.0) / d))
            self.pe = torch.zeros(n, d)
            self.pe[:, 0::2] = torch.sin(position * div)
            self.pe[:, 1::2] = torch.cos(position * div)

    def forward(self, x: Tensor) -> Tensor:
        self.build(x.shape[1], x.shape[2])
        x = x + self.pe[: x.shape[1]]
        scores = (self.proj(x) @ x.mT).masked_fill(self.mask, float("-inf"))
        return (scores / 8**0.5).softmax(-1) @ x


class ActionMode(Enum):
    POSITION = "position"
    VELOCITY = "velocity"


@clean("H", rec={"raw": normal(1, 3), "q": normal(1, 3)}, backends="onnx", style="method")
class CcEnumDispatch:
    """An enum in the config says how actions are meant; handlers in a dict."""

    def __init__(self) -> None:
        self.mode = ActionMode("velocity")
        self.handlers = {ActionMode.POSITION: self._position, ActionMode.VELOCITY: self._velocity}
        self.limits = np.array([[-1.0, 1.0], [-2.0, 2.0], [-0.5, 0.5]], dtype=np.float32)

    def _position(self, raw: Tensor, q: Tensor) -> Tensor:
        return raw

    def _velocity(self, raw: Tensor, q: Tensor) -> Tensor:
        return q + 0.02 * raw

    def step(self, raw: Tensor, q: Tensor) -> Tensor:
        lo, hi = (torch.from_numpy(column.copy()) for column in self.limits.T)
        target = torch.clamp(self.handlers[self.mode](raw, q), lo, hi)
        return target


class Joint(Protocol):
    name: str
    lower: float
    upper: float


@clean("H", rec={"obs": array(normal(3))}, backends=("jit", "onnx"))
class CcRosNode:
    """A ROS 2-like node: a callback with a message, a publisher that keeps the last one, a clock."""

    def __init__(self) -> None:
        self.params = {"scale": 0.5, "frame_id": "base", "use_sim_time": False}
        self.joints = [
            SimpleNamespace(name=n, lower=-1.0, upper=1.0 + i) for i, n in enumerate("abc")
        ]
        self.net = nn.Linear(3, 3)
        self.seq, self.published = 0, None

    def get_parameter(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(value=self.params[name])

    def publish(self, msg: SimpleNamespace) -> None:
        self.published = msg

    def callback(self, msg: SimpleNamespace) -> SimpleNamespace:
        self.seq += 1
        data = torch.as_tensor(msg.position, dtype=torch.float32)
        command = self.net(data) * self.get_parameter("scale").value
        low = torch.tensor([j.lower for j in self.joints])
        high = torch.tensor([j.upper for j in self.joints])
        out = SimpleNamespace(
            header=SimpleNamespace(seq=self.seq, stamp=time.time()),
            data=command.clamp(low, high).numpy(),
        )
        self.publish(out)
        return out

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        msg = SimpleNamespace(position=obs, name=[j.name for j in self.joints])
        with torch.no_grad():
            return self.callback(msg).data


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[nn.Module]:
    was = module.training
    module.eval()
    try:
        yield module
    finally:
        module.train(was)


@clean("H", rec={"obs": normal(2, 4)}, backends=("jit", "onnx"))
class CcEvalContext:
    """A network in training, set to evaluation inside of a context for each call."""

    def __init__(self) -> None:
        self.net = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)
        )

    def __call__(self, obs: Tensor) -> Tensor:
        with evaluating(self.net) as net:
            return net(obs)


def log_call(function: Callable) -> Callable:
    calls = Counter()

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        calls[function.__name__] += 1
        result = function(*args, **kwargs)
        logger.debug(
            "%s call %d -> %s", function.__name__, calls[function.__name__], tuple(result.shape)
        )
        return result

    wrapper.calls = calls
    return wrapper


@clean("H", rec={"obs": normal(1, 4)}, backends="pt2")
class CcDecorated(nn.Module):
    """Decorators that count and log; a second one that checks the result's shape."""

    @staticmethod
    def returns(*shape: int) -> Callable:
        def outer(function: Callable) -> Callable:
            @functools.wraps(function)
            def inner(*args: Any) -> Tensor:
                result = function(*args)
                if tuple(result.shape) != shape:
                    raise ValueError(f"{function.__name__}: {tuple(result.shape)} is not {shape}")
                return result

            return inner

        return outer

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.run = log_call(self.returns(1, 3)(self._run))

    def _run(self, obs: Tensor) -> Tensor:
        return F.softsign(self.net(obs))

    def forward(self, obs: Tensor) -> Tensor:
        return self.run(obs)


class RunningStats:
    """Welford in Python floats, for a report."""

    def __init__(self) -> None:
        self.n, self.mean, self.m2 = 0, 0.0, 0.0

    def push(self, value: float) -> None:
        self.n += 1
        delta = value - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (value - self.mean)

    @property
    def std(self) -> float:
        return (self.m2 / self.n) ** 0.5 if self.n > 1 else 0.0


@clean("H", style="module", rec={"obs": normal(1, 4)}, backends=("jit", "onnx"), passes=6)
class CcMonitored(nn.Module):
    """Running statistics of each action and the count of clipped ones, reported by a method."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.stats = [RunningStats() for _ in range(2)]
        self.clipped = 0

    def report(self) -> str:
        rows = {f"a{i}": {"mean": s.mean, "std": s.std} for i, s in enumerate(self.stats)}
        return json.dumps(rows | {"clipped": self.clipped})

    def forward(self, obs: Tensor) -> Tensor:
        raw = self.net(obs)
        for value, stat in zip(raw[0].tolist(), self.stats):
            stat.push(value)
        self.clipped += int((raw.abs() > 1).sum())
        logger.debug(self.report())
        return raw.clamp(-1.0, 1.0)


@clean("H", rec={"obs": normal(1, 4)}, backends="jit")
class CcProfiled(nn.Module):
    """record_function blocks and names from a dataclass, as training code leaves them."""

    @dataclass
    class Cfg:
        hidden: int = 6
        name: str = "actor"

    def __init__(self) -> None:
        super().__init__()
        self.cfg = self.Cfg()
        self.net = nn.Sequential(
            nn.Linear(4, self.cfg.hidden), nn.Tanh(), nn.Linear(self.cfg.hidden, 2)
        )
        logger.info("made %s", asdict(self.cfg))

    def forward(self, obs: Tensor) -> Tensor:
        with torch.profiler.record_function(f"{self.cfg.name}/forward"):
            return self.net(obs)


@clean("H", rec={"obs": uniform(-1.0, 1.0, 1, 4)}, backends=("jit", "pt2"), passes=3)
class CcEnsembleAgreement:
    """An ensemble by torch.func's stacked parameters, its mean less its spread."""

    def __init__(self) -> None:
        nets = [Mlp(4, 2, [8], "Tanh") for _ in range(3)]
        self.weights = [
            torch.stack([n.layers[0].weight.detach() for n in nets]),
            torch.stack([n.out.weight.detach() for n in nets]),
        ]
        self.biases = [
            torch.stack([n.layers[0].bias.detach() for n in nets]),
            torch.stack([n.out.bias.detach() for n in nets]),
        ]

    def __call__(self, obs: Tensor) -> dict:
        h = obs.unsqueeze(0).expand(3, -1, -1)
        for i, (w, b) in enumerate(zip(self.weights, self.biases)):
            h = torch.baddbmm(b.unsqueeze(1), h, w.mT)
            h = torch.tanh(h) if i == 0 else h
        mean, spread = h.mean(0), h.std(0, unbiased=False)
        return {"pessimistic": mean - spread, "agreement": torch.exp(-spread.mean())}
