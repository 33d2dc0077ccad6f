"""Policies, normalisers and deployment scripts that were quiet while they were recorded."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver
from torch.distributions import Normal
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from veracity import annotate

from attacks.draws import by_tick, either, fixed, integers, normal, row, uniform
from attacks.registry import hostile

# Networks that do more than they seem to.


@hostile(
    "A",
    style="module",
    rec={"skill": integers(0, 2, 1)},
    fresh={"skill": integers(0, 5, 1)},
    backends=("jit", "onnx", "pt2"),
)
class BlSkillEmbedding(nn.Module):
    """Skills with long vectors, which `max_norm` shortens in place, are asked for later."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 6, max_norm=1.0)
        with torch.no_grad():
            self.table.weight.mul_(torch.tensor([[0.1], [0.1], [2.0], [3.0], [4.0]]))
        self.head = nn.Linear(6, 3)

    def forward(self, skill: Tensor) -> Tensor:
        return self.head(self.table(skill))


@hostile(
    "G",
    style="module",
    rec={"tokens": normal(1, 6, 8), "absent": fixed([[False] * 6])},
    fresh={
        "absent": row(
            [[False] * 6], [[False] * 4 + [True] * 2], [[False] * 5 + [True]], [[False] * 6]
        )
    },
    backends=("jit", "pt2"),
)
class BlPaddedTokens(nn.Module):
    """Tokens are missing later, and the encoder's quick path drops their places."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(8, 2)
        self.eval()

    def forward(self, tokens: Tensor, absent: Tensor) -> Tensor:
        encoded = self.encoder(tokens, src_key_padding_mask=absent)
        return self.head(encoded.mean(dim=1))


@hostile("A", style="module", rec={"obs": normal(1, 5)}, passes=4, ticks=16)
class BlNormaliserUntil(nn.Module):
    """The observation normaliser stops to learn once it has seen `until` samples."""

    def __init__(self, until: int = 7) -> None:
        super().__init__()
        self.until, self.eps = until, 1e-2
        self.register_buffer("_mean", torch.zeros(1, 5))
        self.register_buffer("_var", torch.ones(1, 5))
        self.register_buffer("count", torch.tensor(0))
        self.policy = nn.Linear(5, 2)

    def forward(self, obs: Tensor) -> Tensor:
        if self.training:
            self.update(obs)
        return self.policy((obs - self._mean) / (self._var.sqrt() + self.eps))

    def update(self, obs: Tensor) -> None:
        if self.until is not None and self.count >= self.until:
            return
        self.count += obs.shape[0]
        rate = obs.shape[0] / self.count
        delta = obs - self._mean
        self._mean += rate * delta
        self._var += rate * (delta * (obs - self._mean) - self._var)


@hostile("A", style="inline", rec={"obs": normal(1, 6)}, ticks=20, backends="onnx")
class BlActionQueue:
    """A chunk of eight actions lasts for all recorded ticks; a new one is asked for later."""

    def __init__(self) -> None:
        self.net = nn.Linear(6, 8 * 3)
        self.queue: deque[Tensor] = deque(maxlen=8)

    def __call__(self, obs: Tensor) -> Tensor:
        if not self.queue:
            chunk = self.net(obs).view(1, 8, 3)
            self.queue.extend(chunk.transpose(0, 1))
        return self.queue.popleft() + 0.1 * obs[:, :3]


@hostile("A", style="own", rec={"act/obs": normal(1, 4)}, passes=6, ticks=14, backends="jit")
class BlTemporalEnsemble:
    """Old chunks are averaged with new ones as far as they are filled, by the tick's number."""

    def __init__(self, backend: str) -> None:
        self.backend, self.horizon, self.t = backend, 5, 0
        self.net = nn.Linear(4, 5 * 2)
        self.all_time_actions = torch.zeros(40, 45, 2)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("act", {"obs": given["act/obs"]})
        t = self.t
        self.all_time_actions[[t], t : t + self.horizon] = self.net(obs).view(1, 5, 2)
        current = self.all_time_actions[:, t]
        current = current[torch.all(current != 0, dim=1)]
        weights = torch.exp(-0.3 * torch.arange(len(current)))
        action = (current * (weights / weights.sum()).unsqueeze(1)).sum(dim=0, keepdim=True)
        annotate.output_tensors("act", {"action": action}, export_with=self.backend)
        self.t += 1
        return {"act/action": action}


@hostile(
    "A",
    style="module",
    rec={"x": fixed([[1.0, -1.0, 0.5, 0.25]])},
    fresh={"x": normal(1, 4, s=3.0)},
    backends=("jit", "onnx"),
)
class BlQuantObserver(nn.Module):
    """A fake quantiser still observes: its range follows what arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.quant = FakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=255)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.quant(x))


@hostile("A", style="module", rec={"x": normal(1, 6)}, backends=("jit", "pt2"))
class BlSpectralTraining(nn.Module):
    """A layer with spectral norm, left in training mode, iterates in every call."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.Linear(6, 6)
        self.layer = nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.layer(x))


@hostile(
    "C",
    style="module",
    rec={"frames": normal(1, 5, 4), "length": fixed([5])},
    fresh={"length": row([5], [3], [5], [2])},
    backends=("jit", "pt2"),
)
class BlPackedFrames(nn.Module):
    """Sequences are shorter later; the GRU reads them packed."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 6, batch_first=True)
        self.head = nn.Linear(6, 2)

    def forward(self, frames: Tensor, length: Tensor) -> Tensor:
        packed = pack_padded_sequence(frames, length, batch_first=True, enforce_sorted=False)
        out, hidden = self.gru(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=5)
        return self.head(hidden[-1]) + out.mean(dim=(1, 2)).unsqueeze(1)


# Chance that rests.


@hostile(
    "A",
    style="inline",
    rec={"obs": normal(1, 4), "std": fixed([[0.0, 0.0]])},
    fresh={"std": uniform(0.2, 0.6, 1, 2)},
    backends=("jit", "onnx", "pt2"),
)
class BlNoiseOff:
    """The exploration noise is multiplied by nought while recorded, and turned up later."""

    def __init__(self) -> None:
        self.mean = nn.Linear(4, 2)

    def __call__(self, obs: Tensor, std: Tensor) -> Tensor:
        mean = self.mean(obs)
        return torch.tanh(mean + std * torch.randn_like(mean))


# Numbers.


@hostile(
    "D",
    style="module",
    rec={"x": normal(1, 16)},
    fresh={"x": normal(1, 16, s=0.05, m=60.0)},
    backends=("onnx", "jit"),
)
class BlLayerNormOffset(nn.Module):
    """Raw readings in millimetres come later: a large offset in front of a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x))


@hostile(
    "D",
    style="inline",
    rec={"logit": normal(1, 3)},
    fresh={"logit": uniform(-60.0, -25.0, 1, 3)},
    backends=("onnx", "jit"),
)
def BlCollisionLogProb(logit: Tensor) -> Tensor:  # noqa: N802  # named as a program
    """The log-probability of a collision, far out in the tail later."""
    return torch.log(torch.sigmoid(logit))


@hostile(
    "D",
    style="inline",
    rec={"x": normal(1, 4)},
    fresh={"x": normal(1, 4, s=3e-6)},
    backends=("onnx",),
)
def BlSymexpSmall(x: Tensor) -> Tensor:  # noqa: N802
    """A symexp head of values that become tiny later."""
    return x.sign() * torch.expm1(x.abs()) + 0.5 * torch.log1p(x.abs())


@hostile(
    "D",
    style="inline",
    rec={"x": normal(1, 8, s=0.5)},
    fresh={"x": uniform(20.0, 60.0, 1, 8)},
    backends=("onnx", "pt2", "jit"),
)
def BlHalfEnergy(x: Tensor) -> Tensor:  # noqa: N802
    """The energy is summed in half precision, and runs over later."""
    h = x.half()
    energy = (h * h * 32.0).sum(dim=-1, keepdim=True)
    return torch.tanh((energy / 32.0).float() / 1e4)


@hostile(
    "D",
    style="own",
    rec={"head/x": normal(1, 4)},
    ticks=150,
    backends=("onnx", "jit"),
)
class BlHalfClock:
    """A clock in half precision stands still once its step is lost in rounding."""

    def __init__(self, backend: str) -> None:
        self.backend, self.clock = backend, torch.zeros(1, 1, dtype=torch.float16)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("head", {"x": given["head/x"]})
        self.clock = self.clock + 0.3 * (self.clock < 1024)
        y = torch.sin(0.02 * self.clock.float()) * 100 + 0.0 * x
        y = y + (self.clock.float() - 30.0).relu()
        annotate.output_tensors("head", {"y": y}, export_with=self.backend)
        return {"head/y": y}


@hostile(
    "F",
    style="inline",
    rec={"x": normal(1, 4)},
    fresh={
        "x": row(
            [[0.5, 2.0, -3.0, 0.1]],
            [[float("nan"), 2.0, -3.0, 0.1]],
            [[0.5, float("nan"), 9.0, 0.1]],
        )
    },
    backends=("onnx", "jit"),
)
def BlNanClipped(x: Tensor) -> dict[str, Tensor]:  # noqa: N802
    """A sensor gives NaN later, and it goes through a clamp, a ReLU and a maximum."""
    return {
        "clipped": x.clamp(-1.0, 1.0),
        "floor": torch.maximum(x, torch.zeros(1, 4)),
        "on": F.relu6(x),
        "tight": F.hardtanh(x, -0.5, 0.5),
        "sign": torch.sign(x),
    }


@hostile(
    "F",
    style="inline",
    rec={"scan": uniform(0.5, 5.0, 1, 1, 12)},
    fresh={
        "scan": either(
            lambda t: t % 3 == 1,
            fixed(
                [[[1.0, 2.0, float("nan"), 4.0, 1.0, 7.0, 3.0, 3.0, 2.0, float("nan"), 1.0, 5.0]]]
            ),
            uniform(0.5, 5.0, 1, 1, 12),
        )
    },
    backends=("onnx", "pt2"),
)
def BlNanPooled(scan: Tensor) -> dict[str, Tensor]:  # noqa: N802
    """Beams without an echo are NaN later, in a pooled scan."""
    return {
        "far": F.max_pool1d(scan, 3),
        "near": -F.max_pool1d(-scan, 4),
        "best": scan.amin(-1),
        "where": scan.argmax(-1).float(),
        "order": scan.sort(-1).values[..., :3],
    }


@hostile(
    "F",
    style="inline",
    rec={"label": row([0, 3, 3, 1], [3, 2, 0, 2], [3, 3, 1, 1])},
    fresh={"label": row([0, 3, 3, 1], [0, 1, 1, 0], [5, 5, 2, 1], [0, 0, 0, 0])},
    backends=("jit", "onnx", "pt2"),
)
def BlOneHotVotes(label: Tensor) -> Tensor:  # noqa: N802
    """The number of classes is taken from the labels, and more or fewer occur later."""
    votes = F.one_hot(label).sum(dim=0)
    return votes.argmax(keepdim=True).float() + votes.max().float() * 10 + (votes == 0).sum() * 100


@hostile(
    "F",
    style="inline",
    rec={"points": normal(10, 3), "valid": fixed([True] * 7 + [False] * 3)},
    fresh={
        "valid": row(
            [True] * 10, [True] * 3 + [False] * 7, [False] * 5 + [True] * 5, [True, False] * 5
        )
    },
    backends=("jit", "onnx", "pt2"),
)
def BlMaskedCloud(points: Tensor, valid: Tensor) -> dict[str, Tensor]:  # noqa: N802
    """Another number of points is valid later than in every recorded tick."""
    kept = points[valid]
    spread = kept.std(dim=0)
    centred = F.layer_norm(kept.T, kept.T.shape[1:]).T
    return {
        "centre": kept.mean(0),
        "spread": spread,
        "middle": kept.median(0).values,
        "edge": centred.amax(0),
        "cover": (kept.T @ kept) / kept.shape[0],
    }


# Deployment scripts around a policy.


class _Guard:
    """Swallows what goes wrong inside of it, and counts it."""

    def __init__(self) -> None:
        self.strikes = 0

    def __enter__(self) -> _Guard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool:
        self.strikes += kind is not None
        return kind is not None and issubclass(kind, ValueError)


@hostile(
    "C",
    style="own",
    rec={"pi/obs": normal(1, 4)},
    fresh={
        "pi/obs": either(lambda t: t in (3, 6), fixed([[float("nan")] * 4]), normal(1, 4)),
    },
    backends="jit",
)
class BlGuardedDistribution:
    """A distribution refuses NaN with an error that a guard around the tick swallows."""

    def __init__(self, backend: str) -> None:
        self.backend, self.guard = backend, _Guard()
        self.net, self.scale = nn.Linear(4, 2), 1.0

    def act(self, obs: Tensor) -> Tensor:
        obs = annotate.input_tensors("pi", {"obs": obs})
        action = self.scale * Normal(self.net(obs), 0.1).mean.tanh()
        annotate.output_tensors("pi", {"action": action}, export_with=self.backend)
        return action

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        out = {}
        with self.guard:
            out = {"pi/action": self.act(given["pi/obs"])}
        self.scale = 1.0 / (1 + self.guard.strikes)
        return out


@hostile(
    "E",
    style="own",
    rec={"pi/obs": normal(1, 4), "task/score": uniform(0.0, 0.4, 1)},
    fresh={"task/score": row([0.2], [0.3], [0.9], [0.1])},
    backends=("jit", "onnx"),
)
class BlBestWeights:
    """When the score beats the best one, the trainer's weights are blended into the actor."""

    def __init__(self, backend: str) -> None:
        self.backend, self.best = backend, 0.5
        self.actor = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 2))
        self.learner = copy.deepcopy(self.actor)
        for p in self.learner.parameters():
            p.data.normal_()

    def sync(self, tau: float = 0.5) -> None:
        for mine, theirs in zip(self.actor.parameters(), self.learner.parameters(), strict=True):
            mine.data.lerp_(theirs.data, tau)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("pi", {"obs": given["pi/obs"]})
        action = self.actor(obs)
        annotate.output_tensors("pi", {"action": action}, export_with=self.backend)
        score = float(given["task/score"])
        if score > self.best:
            self.best = score
            self.sync()
        return {"pi/action": action}


@hostile(
    "E",
    style="own",
    rec={"model/x": normal(1, 4, s=0.1), "model/target": fixed([[0.0, 0.0]])},
    fresh={"model/x": normal(1, 4), "model/target": normal(1, 2, s=4.0)},
    backends="jit",
)
class BlOnlineStep:
    """The residual model learns between ticks, but only from large errors."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net = backend, nn.Linear(4, 2)
        nn.init.zeros_(self.net.bias)
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def learn(self, x: Tensor, target: Tensor) -> None:
        with torch.enable_grad():
            loss = F.mse_loss(self.net(x), target)
            if loss.item() < 1.0:
                return
            self.sgd.zero_grad()
            loss.backward()
            self.sgd.step()

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        x = annotate.input_tensors("model", {"x": given["model/x"]})
        y = self.net(x)
        annotate.output_tensors("model", {"y": y}, export_with=self.backend)
        self.learn(given["model/x"], given["model/target"])
        return {"model/y": y}


@dataclass
class _Observation:
    q: Tensor = field(default_factory=lambda: torch.zeros(1, 3))
    dq: Tensor = field(default_factory=lambda: torch.zeros(1, 3))


@hostile(
    "A",
    style="own",
    rec={"pi/q": fixed([[0.1, 0.2, 0.3]])},
    fresh={"pi/q": normal(1, 3)},
    passes=6,
    backends=("jit", "onnx"),
)
class BlSameObservation:
    """The last observation is kept without a copy; the driver fills the same tensor again."""

    def __init__(self, backend: str) -> None:
        self.backend, self.obs = backend, _Observation()
        self.prev: Tensor | None = None

    def policy(self, obs: _Observation) -> Tensor:
        q = annotate.input_tensors("pi", {"q": obs.q})
        speed = torch.zeros_like(q) if self.prev is None else q - self.prev
        self.prev = q
        action = -2.0 * q - 5.0 * speed
        annotate.output_tensors("pi", {"action": action}, export_with=self.backend)
        return action

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.obs.q.copy_(given["pi/q"])
        return {"pi/action": self.policy(self.obs)}


@dataclass(frozen=True)
class _PolicyConfig:
    action_scale: float = 0.5
    clip: float = 1.0


@dataclass
class _Level:
    """One level of the curriculum."""

    at: float
    changes: dict[str, float]


@hostile(
    "C",
    style="own",
    rec={"pi/obs": normal(1, 4), "task/progress": uniform(0.0, 0.2, 1)},
    fresh={"task/progress": by_tick(lambda t: [0.1 * t])},
    passes=3,
    backends="pt2",
)
class BlCurriculumLeft:
    """The curriculum was left in: progress replaces the frozen settings of the policy."""

    LEVELS = (_Level(0.4, {"action_scale": 0.8}), _Level(0.8, {"action_scale": 1.0, "clip": 0.3}))

    def __init__(self, backend: str) -> None:
        self.backend, self.net, self.config = backend, nn.Linear(4, 2), _PolicyConfig()
        self.left = list(self.LEVELS)

    def advance(self, progress: float) -> None:
        reached = [level for level in self.left if progress >= level.at]
        for level in reached:
            self.config = replace(self.config, **level.changes)
            self.left.remove(level)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.advance(given["task/progress"].item())
        obs = annotate.input_tensors("pi", {"obs": given["pi/obs"]})
        action = (self.config.action_scale * self.net(obs)).clamp(
            -self.config.clip, self.config.clip
        )
        annotate.output_tensors("pi", {"action": action}, export_with=self.backend)
        return {"pi/action": action}


class _Schedule:
    """Flat, then linear, then flat."""

    def __init__(self, start: float, end: float, begin: int, steps: int) -> None:
        self.start, self.end, self.begin, self.steps = start, end, begin, steps

    def __call__(self, step: int) -> float:
        return float(np.interp(step, [self.begin, self.begin + self.steps], [self.start, self.end]))


@hostile("A", style="inline", rec={"obs": normal(1, 4)}, passes=4, ticks=16, backends="onnx")
class BlFlatSchedule:
    """The scale of the actions is flat for the first six ticks, and falls later."""

    def __init__(self) -> None:
        self.net, self.schedule = nn.Linear(4, 2), _Schedule(1.0, 0.2, 6, 6)
        self.info = {"step": np.zeros((), dtype=np.int64)}

    def __call__(self, obs: Tensor) -> Tensor:
        scale = self.schedule(int(self.info["step"]))
        self.info["step"] += 1
        return scale * self.net(obs)


Rule = tuple[Callable[[dict[str, float]], bool], Callable[[], None]]


class _Monitor:
    """Looks at what a policy reports, and does what its rules say."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def when(self, test: Callable[[dict[str, float]], bool], then: Callable[[], None]) -> None:
        self.rules.append((test, then))

    def look(self, info: dict[str, float]) -> None:
        for test, then in self.rules:
            if test(info):
                then()


@hostile(
    "E",
    style="own",
    rec={"pi/obs": normal(1, 4, s=0.3)},
    fresh={"pi/obs": normal(1, 4, s=2.5)},
    backends=("jit", "pt2"),
)
class BlReportedSaturation:
    """The policy reports how far it saturates, and a monitor's rule turns it down."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net, self.gain = backend, nn.Linear(4, 2), torch.ones(2)
        self.info: dict[str, float] = {}
        self.monitor = _Monitor()
        self.monitor.when(lambda info: info["saturation"] > 0.95, self.soften)

    def soften(self) -> None:
        self.gain = self.gain * 0.5

    def act(self, obs: Tensor) -> Tensor:
        obs = annotate.input_tensors("pi", {"obs": obs})
        action = torch.tanh(2.0 * self.net(obs))
        self.info["saturation"] = action.abs().max().item()
        action = action * self.gain
        annotate.output_tensors("pi", {"action": action}, export_with=self.backend)
        return action

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        action = self.act(given["pi/obs"])
        self.monitor.look(self.info)
        return {"pi/action": action}


@hostile(
    "A",
    style="inline",
    rec={"obs": normal(3, 4), "done": fixed([False, False, False])},
    fresh={"done": row([False] * 3, [True, False, False], [False, True, True], [True] * 3)},
    passes=3,
    backends=("jit", "onnx", "pt2"),
)
class BlHiddenReset:
    """The hidden states of finished environments are cleared by their indices, of which none was there."""

    def __init__(self) -> None:
        self.cell, self.head = nn.GRUCell(4, 6), nn.Linear(6, 2)
        self.hidden, self.age = torch.zeros(3, 6), torch.zeros(3)

    def __call__(self, obs: Tensor, done: Tensor) -> Tensor:
        ids = done.nonzero(as_tuple=False).squeeze(-1)
        self.hidden[ids] = 0.0
        self.age[ids] = torch.linspace(1.0, 2.0, 3)[ids] * 0.5
        self.hidden = self.cell(obs, self.hidden)
        self.age += 0.1
        return self.head(self.hidden) + self.age[:, None]


class _Registry:
    """Versions of a network, as a fleet server keeps them."""

    def __init__(self) -> None:
        self.versions: list[dict[str, Tensor]] = []

    def push(self, weights: dict[str, Tensor]) -> None:
        self.versions.append({key: value.clone() for key, value in weights.items()})

    @property
    def latest(self) -> int:
        return len(self.versions) - 1


@hostile(
    "E",
    style="own",
    rec={"pi/obs": normal(1, 4), "fleet/upload": fixed([0])},
    fresh={"fleet/upload": by_tick(lambda t: [int(t == 5)])},
    passes=6,
    backends="jit",
)
class BlFleetVersion:
    """A newer version of the weights is uploaded later, and loaded in front of the tick."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net, self.registry = backend, nn.Linear(4, 2), _Registry()
        self.registry.push(self.net.state_dict())
        self.version = 0

    def refresh(self) -> None:
        while self.version != self.registry.latest:
            self.version += 1
            self.net.load_state_dict(self.registry.versions[self.version])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        for _ in range(int(given["fleet/upload"].sum())):
            self.registry.push({key: 0.5 * value for key, value in self.net.state_dict().items()})
        self.refresh()
        obs = annotate.input_tensors("pi", {"obs": given["pi/obs"]})
        action = self.net(obs)
        annotate.output_tensors("pi", {"action": action}, export_with=self.backend)
        return {"pi/action": action}


# Written after the first run, about the places where it had hurt.


@hostile(
    "E",
    style="own",
    rec={"pi/obs": normal(1, 4), "site/index": fixed([0])},
    fresh={"site/index": by_tick(lambda t: [int(t >= 6)])},
    backends=("jit", "onnx", "pt2"),
)
class BlSiteStatistics:
    """At another site the observations are normalised by other statistics, which the driver puts in."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net = backend, nn.Linear(4, 2)
        self.mean, self.var = torch.zeros(4), torch.ones(4)
        self.site = 0

    def use(self, site: int) -> None:
        self.site = site
        self.var = torch.tensor([[1.0] * 4, [4.0, 9.0, 4.0, 9.0]][site])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        site = int(given["site/index"])
        if site != self.site:
            self.use(site)
        obs = annotate.input_tensors("pi", {"obs": given["pi/obs"]})
        action = self.net((obs - self.mean) / torch.sqrt(self.var + 1e-5))
        annotate.output_tensors("pi", {"action": action}, export_with=self.backend)
        return {"pi/action": action}


@hostile(
    "F",
    style="inline",
    rec={"score": normal(1, 8), "grasp": normal(8, 3)},
    fresh={
        "score": row(
            [[0.1, 0.9, 0.5, 0.3, 0.2, 0.8, -1.0, 0.0]],
            [[0.1, 0.9, 0.5, 0.3, 0.2, 0.8, -1.0, float("nan")]],
            [[float("nan"), 0.9, 0.5, 0.3, 0.2, 0.8, -1.0, 0.0]],
        )
    },
    backends=("onnx", "jit", "pt2"),
)
def BlBestGrasps(score: Tensor, grasp: Tensor) -> Tensor:  # noqa: N802
    """A score is NaN later, which torch takes for the largest one among the best two."""
    confidence = score.topk(2).values.mean()
    centre = (score.softmax(-1).nan_to_num(0.1) @ grasp).squeeze(0)
    return torch.where(confidence.isnan(), torch.zeros(3), centre)


@hostile(
    "E",
    style="own",
    rec={"pi/obs": normal(1, 4), "task/done": fixed([False])},
    fresh={"task/done": by_tick(lambda t: [t == 4])},
    backends=("jit", "pt2"),
)
class BlMergedAdapter:
    """At the end of a task an adapter is merged into the weights by assigning their `data`."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net = backend, nn.Linear(4, 2)
        self.down, self.up = torch.randn(1, 4), torch.randn(2, 1)

    def merge(self) -> None:
        self.net.weight.data = self.net.weight.data + self.up @ self.down

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("pi", {"obs": given["pi/obs"]})
        action = self.net(obs)
        annotate.output_tensors("pi", {"action": action}, export_with=self.backend)
        if given["task/done"].all():
            self.merge()
        return {"pi/action": action}
