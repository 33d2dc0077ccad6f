"""vla: pictures, words and joints in one transformer, and experts that make actions of it."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from attacks.draws import by_tick, integers, normal, uniform
from torch import Tensor, nn
from veracity import annotate

from zoo.families.vision import lively
from zoo.register import policy

_WORDS = integers(0, 48, 1, 6)
_IMAGE = uniform(-1, 1, 1, 3, 32, 32)


class RMSNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (self.weight * x).to(dtype)


def rotate(x: Tensor, positions: Tensor, base: float = 10_000.0) -> Tensor:
    """Turn pairs of features by angles that grow with the position."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = positions[:, None, :, None].float() * rates
    first, second = x.split(half, dim=-1)
    sin, cos = angles.sin(), angles.cos()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Layer(nn.Module):
    """Attention of fewer key heads than query heads, and a gated MLP."""

    def __init__(self, dim: int, heads: int = 4, groups: int = 2, size: int = 8) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, size
        self.q = nn.Linear(dim, heads * size, bias=False)
        self.k, self.v = (nn.Linear(dim, groups * size, bias=False) for _ in range(2))
        self.o = nn.Linear(heads * size, dim, bias=False)
        self.gate, self.up = (nn.Linear(dim, 2 * dim, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * dim, dim, bias=False)
        self.norm1, self.norm2 = RMSNorm(dim), RMSNorm(dim)

    def qkv(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, _ = x.shape
        x = self.norm1(x)
        q = self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        v = self.v(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        return rotate(q, positions), rotate(k, positions), v

    def finish(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        k, v = (one.repeat_interleave(self.heads // self.groups, dim=1) for one in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Embedder(nn.Module):
    """Patches of the picture, words and the state, one after the other."""

    def __init__(self, dim: int = 32) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, dim, 8, 8)
        self.place = nn.Parameter(torch.randn(1, 16, dim) * 0.3)
        self.words, self.state = nn.Embedding(48, dim), nn.Linear(6, dim)

    def forward(self, image: Tensor, words: Tensor, state: Tensor) -> Tensor:
        seen = self.patches(image).flatten(2).transpose(1, 2) + self.place
        told = self.words(words) * math.sqrt(32) * 0.3
        return torch.cat([seen, told, self.state(state)[:, None]], dim=1)


@policy(
    "vla",
    inputs={"image": _IMAGE, "words": _WORDS, "state": normal(1, 6)},
    fresh={"image": _IMAGE},
    style="module",
    name="vla_action_queries",
)
class ActionQueries(nn.Module):
    """Learned queries at the end of all tokens see everything; each becomes an action."""

    def __init__(self, dim: int = 32, chunk: int = 4) -> None:
        super().__init__()
        self.embed, self.chunk = Embedder(dim), chunk
        self.queries = nn.Parameter(torch.randn(1, chunk, dim))
        self.layers = nn.ModuleList(Layer(dim) for _ in range(2))
        self.norm, self.head = RMSNorm(dim), nn.Linear(dim, 5)
        lively(self)

    def forward(self, image: Tensor, words: Tensor, state: Tensor) -> dict[str, Tensor]:
        x = self.embed(image, words, state)
        x = torch.cat([x, self.queries.expand(x.shape[0], -1, -1)], dim=1)
        block = torch.zeros(x.shape[1], dtype=torch.int32)
        block[-self.chunk :] = 1
        mask = block[None, :] <= block[:, None]
        positions = torch.arange(x.shape[1])[None]
        for layer in self.layers:
            q, k, v = layer.qkv(x, positions)
            x = layer.finish(x, q, k, v, mask[None, None])
        out = self.head(self.norm(x[:, -self.chunk :]))
        return {"delta": torch.tanh(out[..., :4]), "gripper": out[..., 4:].sigmoid()}


@policy(
    "vla",
    inputs={
        "image": _IMAGE,
        "words": _WORDS,
        "mask": by_tick(lambda tick: (torch.arange(6) < 2 + tick % 5)[None]),
        "state": normal(1, 6),
        "noise": normal(1, 5, 4),
    },
    fresh={"image": _IMAGE},
    passes=4,
    name="vla_flow_expert",
)
class FlowExpert:
    """As pi0: keys and values of the prefix are made once, then four steps of the expert's flow."""

    def __init__(self, layers: int = 2) -> None:
        self.embed = lively(Embedder(32))
        self.prefix = nn.ModuleList(Layer(32) for _ in range(layers))
        self.expert = nn.ModuleList(Layer(24) for _ in range(layers))
        self.action_in, self.action_out = nn.Linear(4, 24), nn.Linear(24, 4)
        self.time_mlp = nn.Sequential(nn.Linear(48, 24), nn.SiLU(), nn.Linear(24, 24))
        self.norm = RMSNorm(24)
        for part in (self.prefix, self.expert, self.action_in, self.action_out, self.time_mlp):
            lively(part)

    def time(self, t: Tensor) -> Tensor:
        periods = torch.linspace(0.0, 1.0, 12, dtype=torch.float64)
        angles = 2 * math.pi / (4e-3 * 1e3**periods) * t[:, None].double()
        return torch.cat([angles.sin(), angles.cos()], dim=1).float()

    def __call__(
        self, image: Tensor, words: Tensor, mask: Tensor, state: Tensor, noise: Tensor
    ) -> Tensor:
        x = self.embed(image, words, state)
        kept = torch.cat([torch.ones(1, 16, dtype=torch.bool), mask, torch.ones(1, 1).bool()], 1)
        positions = torch.cumsum(kept, dim=1) - 1
        cache = []
        for layer in self.prefix:
            q, k, v = layer.qkv(x, positions)
            x = layer.finish(x, q, k, v, (kept[:, None, :] & kept[:, :, None])[:, None])
            cache.append((k, v))
        offset = kept.sum(dim=-1, keepdim=True) + torch.arange(5)
        seen = torch.cat([kept, torch.ones(1, 5, dtype=torch.bool)], dim=1)[:, None, None]
        actions, steps = noise, 4
        for n in range(steps):
            t = torch.tensor([1.0 - n / steps])
            actions = actions - self.velocity(actions, t, cache, offset, seen) / steps
        return actions

    def velocity(
        self,
        actions: Tensor,
        t: Tensor,
        cache: list[tuple[Tensor, Tensor]],
        positions: Tensor,
        seen: Tensor,
    ) -> Tensor:
        y = self.action_in(actions)
        y = self.time_mlp(torch.cat([y, self.time(t)[:, None].expand_as(y)], dim=-1))
        for layer, (k0, v0) in zip(self.expert, cache, strict=True):
            q, k, v = layer.qkv(y, positions)
            y = layer.finish(y, q, torch.cat([k0, k], 2), torch.cat([v0, v], 2), seen)
        return self.action_out(self.norm(y))


@policy(
    "vla",
    inputs={"image": _IMAGE, "words": _WORDS, "state": uniform(-1, 1, 1, 6)},
    fresh={"image": _IMAGE},
    name="vla_action_bins",
)
class ActionBins:
    """As OpenVLA: the state is told in bins, actions are read one token after the other."""

    def __init__(self, bins: int = 16, dim: int = 32) -> None:
        edges = np.linspace(-1, 1, bins)
        self.edges = torch.from_numpy(edges[1:-1]).float()
        self.centres = torch.from_numpy((edges[:-1] + edges[1:]) / 2.0).float()
        self.low, self.high = torch.tensor([-0.1, -0.2, 0.0]), torch.tensor([0.1, 0.2, 1.0])
        self.embed = lively(Embedder(dim))
        self.tokens = lively(nn.Embedding(bins, dim))
        self.layers = nn.ModuleList(lively(Layer(dim)) for _ in range(2))
        self.head = lively(nn.Linear(dim, bins - 1), 1.5)

    def __call__(self, image: Tensor, words: Tensor, state: Tensor) -> dict[str, Tensor]:
        told = self.tokens(torch.bucketize(state.clamp(-1, 1), self.edges))
        prompt = torch.cat([self.embed(image, words, state), told], dim=1)
        chosen: list[Tensor] = []
        for _ in range(3):
            x = torch.cat([prompt, *(self.tokens(one) for one in chosen)], dim=1)
            positions = torch.arange(x.shape[1])[None]
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
            for layer in self.layers:
                x = layer.finish(x, *layer.qkv(x, positions), mask)
            chosen.append(self.head(x[:, -1:]).argmax(-1))
        tokens = torch.cat(chosen, dim=1)
        normalised = self.centres[tokens]
        action = 0.5 * (normalised + 1) * (self.high - self.low) + self.low
        return {"action": action, "tokens": tokens}


@policy(
    "vla", inputs={"state": normal(1, 6), "recent": uniform(-1, 1, 1, 8, 3)}, name="vla_fast_dct"
)
class FastTokens:
    """As FAST: recent actions as rounded cosines; those of the next chunk, and back."""

    def __init__(self, chunk: int = 8, scale: float = 6.0) -> None:
        n = np.arange(chunk)
        dct = np.sqrt(2 / chunk) * np.cos(np.pi / chunk * (n[None] + 0.5) * n[:, None])
        dct[0] *= np.sqrt(0.5)
        self.dct, self.scale, self.least = torch.from_numpy(dct), scale, -20
        self.words = lively(nn.Embedding(41, 16))
        self.mix = lively(nn.Sequential(nn.Linear(16 * 24 + 6, 64), nn.GELU(), nn.Linear(64, 24)))

    def __call__(self, state: Tensor, recent: Tensor) -> dict[str, Tensor]:
        coefficients = torch.einsum("kt,bta->bka", self.dct, recent.double())
        rounded = torch.round(coefficients * self.scale).long().clamp(self.least, -self.least)
        tokens = (rounded - self.least).flatten(1)
        x = torch.cat([self.words(tokens).flatten(1), state], dim=-1)
        following = torch.round(4 * self.mix(x)).view(1, 8, 3).double() / self.scale
        actions = torch.einsum("kt,bka->bta", self.dct, following).float()
        return {"actions": actions, "tokens": tokens.int()}


@policy(
    "vla",
    inputs={"vlm/image": _IMAGE, "vlm/words": _WORDS, "expert/state": normal(1, 6)},
    fresh={"vlm/image": _IMAGE},
    style="own",
    passes=6,
    name="vla_two_systems",
)
class TwoSystems:
    """A slow system that sees, whose latent is smoothed, and a quick one with its last actions."""

    def __init__(self, backend: str, dim: int = 32) -> None:
        self.backend = backend
        self.embed = lively(Embedder(dim))
        self.layers = nn.ModuleList(lively(Layer(dim)) for _ in range(2))
        self.expert = lively(nn.Sequential(nn.Linear(dim + 10, 48), nn.SiLU(), nn.Linear(48, 4)))
        self.latent, self.last = torch.zeros(1, dim), torch.zeros(1, 4)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        image, words = annotate.input_tensors(
            "vlm", {"image": given["vlm/image"], "words": given["vlm/words"]}
        )
        x = self.embed(image, words, torch.zeros(1, 6))
        for layer in self.layers:
            x = layer.finish(x, *layer.qkv(x, torch.arange(x.shape[1])[None]), None)
        self.latent = 0.6 * self.latent + 0.4 * x.mean(dim=1)
        annotate.output_tensors("vlm", {"latent": self.latent}, export_with=self.backend)
        latent, state, last = annotate.input_tensors(
            "expert", {"latent": self.latent, "state": given["expert/state"], "last": self.last}
        )
        action = torch.tanh(self.expert(torch.cat([latent, state, last], dim=-1)))
        annotate.output_tensors("expert", {"action": action}, export_with=self.backend)
        self.last = action
        return {"expert/action": action}


@policy(
    "vla",
    inputs={"state": normal(1, 6), "noise": normal(1, 6, 4)},
    passes=6,
    name="vla_real_time_chunks",
)
class RealTimeChunks:
    """The start of a new chunk is held to what the last one planned, less and less."""

    def __init__(self) -> None:
        self.net = lively(nn.Sequential(nn.Linear(31, 64), nn.SiLU(), nn.Linear(64, 24)))
        self.weights = torch.tensor([1.0, 1.0, 0.7, 0.4, 0.1, 0.0]).view(1, 6, 1)
        self.chunk = torch.zeros(1, 6, 4)

    def __call__(self, state: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        before = F.pad(self.chunk[:, 1:], (0, 0, 0, 1))
        x, steps = noise, 4
        for n in range(steps):
            t = n / steps
            features = torch.cat([x.flatten(1), state, torch.full((1, 1), t)], dim=-1)
            velocity = self.net(features).view_as(x)
            guess = x + (1 - t) * velocity
            velocity = velocity + self.weights * (before - guess) * min(2.0, 1 / (1 - t + 1e-3))
            x = x + velocity / steps
        self.chunk = x
        return x[:, 0], x
