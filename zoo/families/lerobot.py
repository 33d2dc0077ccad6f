"""lerobot: its processors and policies, re-stated small: what stands between robot and network."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import torch
import torch.nn.functional as F  # noqa: N812
from attacks.draws import integers, normal, uniform
from torch import Tensor, nn

from zoo.families.vision import conv_block, lively
from zoo.register import policy

OBS_STATE, OBS_IMAGE, ACTION = "observation.state", "observation.image", "action"


class Mode(str, Enum):
    MEAN_STD = "MEAN_STD"
    MIN_MAX = "MIN_MAX"
    IDENTITY = "IDENTITY"


@dataclass(frozen=True)
class PolicyFeature:
    type: str
    shape: tuple[int, ...]


FEATURES = {
    OBS_STATE: PolicyFeature("STATE", (6,)),
    OBS_IMAGE: PolicyFeature("VISUAL", (3, 24, 24)),
    ACTION: PolicyFeature("ACTION", (4,)),
}
MODES = {"STATE": Mode.MIN_MAX, "VISUAL": Mode.MEAN_STD, "ACTION": Mode.MEAN_STD}


def statistics() -> dict[str, dict[str, Tensor]]:
    """What a dataset says of itself."""
    stats = {}
    for key, feature in FEATURES.items():
        shape = (3, 1, 1) if feature.type == "VISUAL" else feature.shape
        stats[key] = {
            "mean": torch.rand(shape) * 0.5,
            "std": torch.rand(shape) * 0.5 + 0.25,
            "min": -torch.rand(shape) - 1.5,
            "max": torch.rand(shape) + 1.5,
        }
    return stats


class Normalize(nn.Module):
    """The first kind of normaliser: buffers by feature, and a check that they were filled."""

    def __init__(self, keys: tuple[str, ...], stats: dict[str, dict[str, Tensor]]) -> None:
        super().__init__()
        self.keys = keys
        for key in keys:
            buffer = {name: nn.Parameter(value, False) for name, value in stats[key].items()}
            setattr(self, "buffer_" + key.replace(".", "_"), nn.ParameterDict(buffer))

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        batch = dict(batch)
        for key in self.keys:
            if key not in batch:
                continue
            mode = MODES[FEATURES[key].type]
            buffer = getattr(self, "buffer_" + key.replace(".", "_"))
            if mode is Mode.MEAN_STD:
                mean, std = buffer["mean"], buffer["std"]
                assert not torch.isinf(mean).any(), "the mean was never set"
                assert not torch.isinf(std).any(), "the deviation was never set"
                batch[key] = self.by_mean(batch[key], mean, std)
            elif mode is Mode.MIN_MAX:
                low, high = buffer["min"], buffer["max"]
                assert not torch.isinf(low).any() and not torch.isinf(high).any()
                batch[key] = self.by_range(batch[key], low, high)
        return batch

    def by_mean(self, x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        return (x - mean) / (std + 1e-8)

    def by_range(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return (x - low) / (high - low + 1e-8) * 2 - 1


class Unnormalize(Normalize):
    def by_mean(self, x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        return x * std + mean

    def by_range(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return (x + 1) / 2 * (high - low) + low


_ROBOT = {"state": normal(1, 6), "image": integers(0, 256, 1, 24, 24, 3, dtype=torch.uint8)}


@policy("lerobot", inputs=_ROBOT, name="lerobot_normalize")
class WithBuffers:
    """A policy that normalises for itself, with an encoder for the camera."""

    def __init__(self) -> None:
        stats = statistics()
        self.normalize_inputs = Normalize((OBS_IMAGE, OBS_STATE), stats)
        self.unnormalize_outputs = Unnormalize((ACTION,), stats)
        self.vision = lively(
            nn.Sequential(conv_block(3, 12, 2), conv_block(12, 16, 2), nn.AdaptiveAvgPool2d(1))
        )
        self.net = lively(nn.Sequential(nn.Linear(22, 48), nn.ReLU(), nn.Linear(48, 4)))

    def __call__(self, state: Tensor, image: Tensor) -> Tensor:
        picture = image.permute(0, 3, 1, 2).contiguous().type(torch.float32) / 255
        batch = self.normalize_inputs({OBS_STATE: state, OBS_IMAGE: picture})
        features = torch.cat([self.vision(batch[OBS_IMAGE]).flatten(1), batch[OBS_STATE]], dim=-1)
        return self.unnormalize_outputs({ACTION: self.net(features)})[ACTION]


@dataclass(frozen=True)
class Transition:
    observation: dict[str, Tensor]
    action: Tensor | None = None
    complementary: dict[str, Any] = field(default_factory=dict)


class Step(Protocol):
    def __call__(self, transition: Transition) -> Transition: ...


@dataclass
class RenameObservations:
    rename_map: dict[str, str]

    def __call__(self, transition: Transition) -> Transition:
        seen = transition.observation
        renamed = {self.rename_map.get(key, key): value for key, value in seen.items()}
        return replace(transition, observation=renamed)


@dataclass
class AddBatchDimension:
    def __call__(self, transition: Transition) -> Transition:
        seen = {
            key: value.unsqueeze(0) if value.dim() in (1, 3) else value
            for key, value in transition.observation.items()
        }
        return replace(transition, observation=seen)


@dataclass
class ImagesToFloat:
    def __call__(self, transition: Transition) -> Transition:
        seen = dict(transition.observation)
        for key, value in seen.items():
            if value.dtype == torch.uint8:
                seen[key] = value.movedim(-1, -3).to(torch.float32).div(255.0)
        return replace(transition, observation=seen)


@dataclass
class ToDevice:
    device: str = "cpu"
    float_dtype: str | None = "float32"

    def __post_init__(self) -> None:
        self.tensor_device = torch.device(self.device)

    def moved(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        value = value.to(self.tensor_device, non_blocking=False)
        if self.float_dtype and value.is_floating_point():
            value = value.to(getattr(torch, self.float_dtype))
        return value

    def __call__(self, transition: Transition) -> Transition:
        seen = {key: self.moved(value) for key, value in transition.observation.items()}
        return replace(transition, observation=seen, action=self.moved(transition.action))


@dataclass
class Normalizer:
    stats: dict[str, dict[str, Tensor]]
    modes: dict[str, Mode]
    inverse: bool = False
    eps: float = 1e-8

    def apply(self, key: str, value: Tensor) -> Tensor:
        mode = self.modes.get(FEATURES[key].type, Mode.IDENTITY)
        if mode is Mode.IDENTITY or key not in self.stats:
            return value
        stats = {name: s.to(value.device, value.dtype) for name, s in self.stats[key].items()}
        if mode is Mode.MEAN_STD:
            mean, std = stats["mean"], stats["std"]
            return value * std + mean if self.inverse else (value - mean) / (std + self.eps)
        low, span = stats["min"], stats["max"] - stats["min"]
        span = torch.where(span == 0, torch.tensor(self.eps), span)
        return (value + 1) / 2 * span + low if self.inverse else 2 * (value - low) / span - 1

    def __call__(self, transition: Transition) -> Transition:
        if self.inverse:
            return replace(transition, action=self.apply(ACTION, transition.action))
        seen = {key: self.apply(key, value) for key, value in transition.observation.items()}
        return replace(transition, observation=seen)


@dataclass
class Pipeline:
    steps: list[Step]
    name: str = "pipeline"

    def __call__(self, transition: Transition) -> Transition:
        for step in self.steps:
            transition = step(transition)
            if not isinstance(transition, Transition):
                raise TypeError(f"{type(step).__name__} does not give a transition")
        return transition


@policy(
    "lerobot",
    inputs={
        "joints": normal(6),
        "front": integers(0, 256, 24, 24, 3, dtype=torch.uint8),
    },
    name="lerobot_processors",
    style="method",
)
class WithProcessors:
    """A policy between a preprocessor and a postprocessor, each a list of steps."""

    def __init__(self) -> None:
        stats = statistics()
        names = {"joints": OBS_STATE, "front": OBS_IMAGE}
        self.pre = Pipeline(
            [
                RenameObservations(names),
                ImagesToFloat(),
                AddBatchDimension(),
                ToDevice(),
                Normalizer(stats, MODES),
            ]
        )
        self.post = Pipeline([Normalizer(stats, MODES, inverse=True), ToDevice(float_dtype=None)])
        self.vision = lively(
            nn.Sequential(conv_block(3, 12, 2), nn.AdaptiveMaxPool2d(2), nn.Flatten())
        )
        self.net = lively(nn.Sequential(nn.Linear(54, 48), nn.GELU(), nn.Linear(48, 4)))

    def step(self, joints: Tensor, front: Tensor) -> Tensor:
        seen = self.pre(Transition({"joints": joints, "front": front})).observation
        features = torch.cat([self.vision(seen[OBS_IMAGE]), seen[OBS_STATE]], dim=-1)
        action = self.post(Transition({}, self.net(features))).action.squeeze(0)
        return action


def simnorm(x: Tensor, groups: int = 4) -> Tensor:
    return F.softmax(x.view(*x.shape[:-1], -1, groups), dim=-1).flatten(-2)


class Tdmpc(nn.Module):
    """Latent dynamics, reward, an ensemble of values over bins, and a policy."""

    def __init__(self, obs: int = 8, actions: int = 3, latent: int = 24) -> None:
        super().__init__()

        def net(size: int, out: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Linear(size, 48), nn.LayerNorm(48), nn.Mish(), nn.Linear(48, out)
            )

        self.encode, self.dynamics = net(obs, latent), net(latent + actions, latent)
        self.reward, self.pi = net(latent + actions, 1), net(latent, actions)
        self.values = nn.ModuleList(net(latent + actions, 11) for _ in range(3))
        self.register_buffer("bins", torch.linspace(-3, 3, 11))
        lively(self, 1.3)

    def value(self, z: Tensor, action: Tensor) -> Tensor:
        x = torch.cat([z, action], -1)
        found = torch.stack([(net(x).softmax(-1) * self.bins).sum(-1) for net in self.values])
        found = torch.sign(found) * (torch.exp(found.abs()) - 1)
        return found.sort(0).values[:2].mean(0)

    def returns(self, z: Tensor, actions: Tensor) -> Tensor:
        total, discount = torch.zeros(z.shape[0]), 1.0
        for action in actions:
            x = torch.cat([z, action], -1)
            total = total + discount * self.reward(x).squeeze(-1)
            z, discount = simnorm(self.dynamics(x)), discount * 0.9
        return total + discount * self.value(z, torch.tanh(self.pi(z)))


@policy(
    "lerobot",
    inputs={"state": normal(1, 8), "noise": normal(2, 4, 32, 3)},
    fresh={"noise": normal(2, 4, 32, 3)},
    passes=6,
    name="lerobot_tdmpc",
)
class TdmpcPlanner:
    """MPPI in the latent space, two rounds with given noise, from the last plan moved on."""

    def __init__(self, horizon: int = 4, samples: int = 32, elites: int = 8) -> None:
        self.model, self.horizon = Tdmpc(), horizon
        self.samples, self.elites = samples, elites
        self._prev_mean = torch.zeros(horizon, 3)

    def __call__(self, state: Tensor, noise: Tensor) -> Tensor:
        z = simnorm(self.model.encode(state)).expand(self.samples, -1)
        mean = torch.zeros_like(self._prev_mean)
        mean[:-1] = self._prev_mean[1:]
        std = torch.full_like(mean, 0.8)
        for k in range(2):
            actions = (mean.unsqueeze(1) + std.unsqueeze(1) * noise[k]).clamp(-1, 1)
            values = self.model.returns(z, actions).nan_to_num(0)
            best = values.topk(self.elites, dim=0).indices
            kept, scores = actions[:, best], values[best]
            score = torch.exp(0.5 * (scores - scores.max(0).values))
            score = (score / score.sum()).view(1, -1, 1)
            mean = (score * kept).sum(1) / (score.sum(1) + 1e-9)
            std = ((score * (kept - mean.unsqueeze(1)) ** 2).sum(1)).sqrt().clamp(0.05, 0.8)
        self._prev_mean = mean
        return mean[:1]


class ResidualVq(nn.Module):
    """A codebook for what the one before left over; the nearest codes, and their sum."""

    def __init__(self, layers: int = 2, codes: int = 8, dim: int = 12) -> None:
        super().__init__()
        self.codebooks = nn.Parameter(torch.randn(layers, codes, dim) * 0.6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        residual, total, indices = x, torch.zeros_like(x), []
        for codebook in self.codebooks:
            index = torch.cdist(residual, codebook).argmin(dim=-1)
            code = F.embedding(index, codebook)
            residual, total = residual - code, total + code
            indices.append(index)
        return total, torch.stack(indices, dim=-1)

    def look_up(self, indices: Tensor) -> Tensor:
        codes = [F.embedding(indices[..., n], book) for n, book in enumerate(self.codebooks)]
        return torch.stack(codes).sum(0)


@policy(
    "lerobot", inputs={"state": normal(1, 6), "last": uniform(-1, 1, 1, 12)}, name="lerobot_vqbet"
)
class VqBet(nn.Module):
    """VQ-BeT: the codes of the last chunk, those of the next one, and an offset they choose."""

    def __init__(self) -> None:
        super().__init__()
        self.vq, self.act_encode = ResidualVq(), nn.Linear(12, 12)
        self.act_decode = nn.Linear(12, 12)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
        self.gpt = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.state, self.codes = nn.Linear(6, 32), nn.Linear(12, 32)
        self.token = nn.Parameter(torch.randn(1, 3, 32))
        self.code_logits, self.offsets = nn.Linear(32, 16), nn.Linear(32, 2 * 8 * 12)
        lively(self)

    def forward(self, state: Tensor, last: Tensor) -> dict[str, Tensor]:
        codes, before = self.vq(self.act_encode(last))
        tokens = torch.stack([self.state(state), self.codes(codes)], dim=1)
        tokens = torch.cat([tokens, self.token], dim=1)
        mask = nn.Transformer.generate_square_subsequent_mask(5)
        x = self.gpt(tokens, mask=mask, is_causal=True)[:, -1]
        chosen = self.code_logits(x).view(-1, 2, 8).argmax(-1)
        offsets = self.offsets(x).view(-1, 2, 8, 12)
        offsets = offsets[torch.arange(1).unsqueeze(1), torch.arange(2).unsqueeze(0), chosen]
        chunk = self.act_decode(self.vq.look_up(chosen)) + 0.1 * offsets.sum(dim=1)
        return {"chunk": chunk.view(-1, 3, 4), "codes": chosen, "before": before}


@policy("lerobot", inputs=_ROBOT, passes=6, name="lerobot_queues")
class Queues:
    """Observations go through queues by name, as in LeRobot's diffusion policy."""

    def __init__(self) -> None:
        self.vision = lively(
            nn.Sequential(conv_block(3, 8, 4), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        )
        self.net = lively(nn.Sequential(nn.Linear(2 * 38, 48), nn.Mish(), nn.Linear(48, 4)))
        self.reset()

    def reset(self) -> None:
        self._queues = {OBS_STATE: deque(maxlen=2), OBS_IMAGE: deque(maxlen=2)}
        for _ in range(2):
            self._queues[OBS_STATE].append(torch.zeros(1, 6))
            self._queues[OBS_IMAGE].append(torch.zeros(1, 3, 24, 24))

    def __call__(self, state: Tensor, image: Tensor) -> Tensor:
        batch = {OBS_STATE: state, OBS_IMAGE: image.permute(0, 3, 1, 2) / 255.0}
        for key in batch:
            if key in self._queues:
                self._queues[key].append(batch[key])
        batch = {key: torch.stack(list(self._queues[key]), dim=1) for key in batch}
        pictures = self.vision(batch[OBS_IMAGE].flatten(0, 1)).unflatten(0, (1, 2))
        return self.net(torch.cat([pictures, batch[OBS_STATE]], dim=-1).flatten(1))


@policy(
    "lerobot",
    inputs={"state": normal(1, 6), "env": normal(1, 4)},
    style="method",
    name="lerobot_sac",
)
class Sac:
    """SAC's actor: the mode of a squashed Gaussian, and a discrete critic for the gripper."""

    def __init__(self) -> None:
        self.encoders = nn.ModuleDict(
            {
                name: nn.Sequential(nn.Linear(size, 16), nn.LayerNorm(16), nn.Tanh())
                for name, size in (("state", 6), ("env", 4))
            }
        )
        self.trunk = nn.Sequential(nn.Linear(32, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.mean, self.std, self.gripper = nn.Linear(48, 3), nn.Linear(48, 3), nn.Linear(48, 3)
        for part in (self.encoders, self.trunk, self.mean, self.gripper):
            lively(part, 1.5)

    def step(self, state: Tensor, env: Tensor) -> dict[str, Tensor]:
        seen = {"state": state, "env": env}
        x = torch.cat([self.encoders[key](seen[key]) for key in sorted(seen)], dim=-1)
        x = self.trunk(x)
        std = self.std(x).exp().clamp(1e-5, 5.0)
        base = torch.distributions.MultivariateNormal(self.mean(x), torch.diag_embed(std))
        squash = torch.distributions.transforms.TanhTransform(cache_size=1)
        dist = torch.distributions.TransformedDistribution(base, [squash])
        action = dist.base_dist.mean
        for transform in dist.transforms:
            action = transform(action)
        discrete = self.gripper(x).argmax(dim=-1, keepdim=True)
        return {"action": torch.cat([action, discrete.float() - 1.0], dim=-1), "std": std}
