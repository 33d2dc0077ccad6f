"""Clean networks and policies in the styles of the field."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import (
    Categorical,
    Independent,
    Normal,
    TanhTransform,
    TransformedDistribution,
)

from attacks.draws import fixed, flags, integers, normal, row, uniform
from attacks.registry import clean

three = ("jit", "onnx", "pt2")


def mlp(*sizes: int, act: type[nn.Module] = nn.SiLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Block(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.mlp = mlp(d, 2 * d, d, act=nn.GELU)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.norm1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


@clean(rec={"obs": normal(1, 6, 8)}, passes=3, backends=three)
class CausalTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 6, 16) * 0.02)
        self.inp = nn.Linear(8, 16)
        self.blocks = nn.ModuleList(Block(16, 4) for _ in range(2))
        self.head = nn.Linear(16, 3)
        self.register_buffer("mask", torch.triu(torch.ones(6, 6, dtype=torch.bool), 1))
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        x = self.inp(obs) + self.pos
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(x[:, -1])


@clean(rec={"obs": normal(1, 5), "noise": normal(1, 4, 2)}, passes=3, backends=three)
class FlowMatching(nn.Module):
    """Euler steps of a velocity field; the noise is an input."""

    steps = 8

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(8 + 5 + 16, 32, 8)
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 4, 8)))

    def embed(self, t: float) -> Tensor:
        angle = t * self.freqs
        return torch.cat([angle.sin(), angle.cos()]).unsqueeze(0)

    def forward(self, obs: Tensor, noise: Tensor) -> Tensor:
        a = noise.flatten(1)
        dt = 1.0 / self.steps
        for k in range(self.steps):
            a = a + dt * self.net(torch.cat([a, obs, self.embed(k * dt)], -1))
        return a.view(1, 4, 2).clamp(-1, 1)


@clean(rec={"obs": normal(1, 5), "noise": normal(1, 8)}, passes=3, backends="onnx")
class DdimPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(8 + 5 + 1, 32, 8)
        beta = torch.linspace(1e-4, 0.02, 50)
        self.register_buffer("alpha_bar", torch.cumprod(1 - beta, 0))
        self.timesteps = list(range(49, -1, -10))

    def forward(self, obs: Tensor, noise: Tensor) -> Tensor:
        x = noise
        for i, t in enumerate(self.timesteps):
            a = self.alpha_bar[t]
            prev = (
                self.alpha_bar[self.timesteps[i + 1]]
                if i + 1 < len(self.timesteps)
                else torch.tensor(1.0)
            )
            eps = self.net(torch.cat([x, obs, torch.full((1, 1), t / 50)], -1))
            x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-3, 3)
            x = prev.sqrt() * x0 + (1 - prev).sqrt() * eps
        return x


@clean(
    rec={"image": uniform(0, 1, 1, 3, 32, 32)},
    fresh={"image": uniform(0, 1, 1, 3, 32, 32)},
    passes=3,
    backends=three,
)
class ConvEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2, padding=2),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(8, 16, 3, padding=1, groups=4),
            nn.GroupNorm(4, 16),
            nn.Mish(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(64, 4)
        self.eval()

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.conv(image - 0.5).flatten(1))


@clean(rec={"image": integers(0, 256, 1, 24, 24, 3, dtype=torch.uint8)}, passes=3, backends=three)
class SpatialSoftmax(nn.Module):
    """Keypoints of a camera image as it arrives: HWC bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 5, stride=2)
        xs = torch.linspace(-1, 1, 10)
        self.register_buffer(
            "grid", torch.stack(torch.meshgrid(xs, xs, indexing="xy"), -1).reshape(-1, 2)
        )
        self.temperature = nn.Parameter(torch.ones(()))

    def forward(self, image: Tensor) -> Tensor:
        x = image.permute(0, 3, 1, 2).float() / 255.0
        h = self.conv(x).flatten(2)
        return (h / self.temperature).softmax(-1) @ self.grid


@clean("A", rec={"obs": normal(1, 4)}, passes=5, backends=three)
class GruPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 8, num_layers=2)
        self.head = nn.Linear(8, 2)
        self.hidden = torch.zeros(2, 1, 8)

    def forward(self, obs: Tensor) -> Tensor:
        out, self.hidden = self.gru(obs.unsqueeze(0), self.hidden)
        return self.head(out[0]).tanh()


@clean("A", rec={"obs": normal(1, 4)}, passes=5)
class LstmCellPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 6)
        self.head = nn.Linear(6, 2)
        self.state = (torch.zeros(1, 6), torch.zeros(1, 6))

    def forward(self, obs: Tensor) -> Tensor:
        self.state = self.cell(obs, self.state)
        return self.head(self.state[0])


@clean(
    rec={"x": normal(1, 5, 8), "valid": row([[True, True, True, False, False]], [[True] * 5])},
    passes=4,
    backends=three,
)
class PooledAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, 1, 8))
        self.kv = nn.Linear(8, 16)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        k, v = self.kv(x).chunk(2, -1)
        w = (self.query @ k.mT) / math.sqrt(8)
        w = w.masked_fill(~valid[:, None], -1e9).softmax(-1)
        return (w @ v).squeeze(1)


@clean(rec={"cloud": normal(1, 40, 3)}, passes=3, backends=three)
class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.local = nn.Sequential(
            nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 1)
        )
        self.head = mlp(32, 16, 4)
        self.eval()

    def forward(self, cloud: Tensor) -> Tensor:
        centred = cloud - cloud.mean(1, keepdim=True)
        return self.head(self.local(centred.transpose(1, 2)).amax(-1))


@clean(rec={"obs": normal(2, 6)}, passes=3, backends=three)
class SquashedActor(nn.Module):
    """SAC's actor, as it is deployed."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = mlp(6, 32, 8)

    def forward(self, obs: Tensor) -> dict[str, Tensor]:
        mean, log_std = self.trunk(obs).chunk(2, -1)
        std = log_std.clamp(-5, 2).exp()
        base = Normal(mean, std)
        Independent(TransformedDistribution(base, [TanhTransform(cache_size=1)]), 1)
        return {"action": mean.tanh(), "std": base.stddev, "entropy": base.entropy().sum(-1)}


@clean(rec={"obs": normal(1, 6)}, passes=3)
class CategoricalMode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(6, 16, 5)

    def forward(self, obs: Tensor) -> dict[str, Tensor]:
        dist = Categorical(logits=self.net(obs))
        return {"action": dist.mode, "probs": dist.probs, "entropy": dist.entropy()}


@clean(rec={"obs": normal(1, 6), "goal": integers(0, 7, 1)}, passes=4, backends=three)
class FilmPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.goals = nn.Embedding(7, 8)
        self.a, self.b = nn.Linear(6, 16), nn.Linear(16, 2)
        self.film = nn.Linear(8, 32)

    def forward(self, obs: Tensor, goal: Tensor) -> Tensor:
        gamma, beta = self.film(self.goals(goal)).chunk(2, -1)
        return self.b(F.relu(self.a(obs) * (1 + gamma) + beta))


@clean(rec={"x": normal(3, 6)}, passes=3, backends=three)
class SoftExperts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 4)
        self.w = nn.Parameter(torch.randn(4, 6, 3) * 0.3)
        self.bias = nn.Parameter(torch.randn(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        experts = torch.einsum("bi,eio->beo", x, self.w) + self.bias
        return torch.einsum("be,beo->bo", self.gate(x).softmax(-1), experts)


@clean(rec={"obs": normal(1, 3)}, passes=3, backends=three)
class TokenisedObservation(nn.Module):
    """Every number becomes one of 32 tokens (Gato, RT-1)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.linspace(-2, 2, 31))
        self.tokens = nn.Embedding(32, 8)
        self.head = nn.Linear(24, 2)

    def forward(self, obs: Tensor) -> Tensor:
        return self.head(self.tokens(torch.bucketize(obs, self.edges)).flatten(1))


@clean(rec={"obs": normal(1, 6)}, passes=3)
class ChunkedActions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(6, 24, 4 * 2)
        self.register_buffer("weights", torch.exp(-0.1 * torch.arange(4.0)))

    def forward(self, obs: Tensor) -> dict[str, Tensor]:
        chunk = self.net(obs).unflatten(-1, (4, 2))
        w = self.weights / self.weights.sum()
        return {"chunk": chunk, "first": chunk[:, 0], "blend": (chunk * w[:, None]).sum(1)}


@clean("A", rec={"obs": normal(1, 4)}, passes=6)
class TemporalEnsemble(nn.Module):
    """ACT's blend of the chunks of the last three ticks."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(4, 16, 6)
        self.memory = torch.zeros(3, 3, 2)
        self.register_buffer("w", torch.tensor([0.6, 0.3, 0.1]))

    def forward(self, obs: Tensor) -> Tensor:
        chunk = self.net(obs).view(1, 3, 2)
        self.memory = torch.cat([chunk, self.memory[:-1]], 0)
        aligned = torch.stack([self.memory[k, k] for k in range(3)])
        return (aligned * self.w[:, None]).sum(0)


@dataclass
class Stats:
    mean: Tensor
    std: Tensor


@clean(rec={"q": normal(1, 3), "dq": normal(1, 3, s=5.0)}, passes=3, backends=three)
class NormalisedInputs:
    def __init__(self) -> None:
        self.stats = {
            "q": Stats(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1.0, 2.0, 3.0])),
            "dq": Stats(torch.zeros(3), torch.full((3,), 5.0)),
        }
        self.net = mlp(6, 12, 2, act=nn.ELU)

    def __call__(self, q: Tensor, dq: Tensor) -> Tensor:
        given = {"q": q, "dq": dq}
        normed = [
            ((v - self.stats[k].mean) / (self.stats[k].std + 1e-8)).clip(-5, 5)
            for k, v in given.items()
        ]
        return self.net(torch.cat(normed, dim=-1))


@clean(rec={"x": normal(5, 4)}, passes=3, backends=("jit", "pt2"))
class EnsembleByVmap:
    def __init__(self) -> None:
        nets = [nn.Linear(4, 2) for _ in range(3)]
        self.weights = torch.stack([n.weight.detach() for n in nets])
        self.biases = torch.stack([n.bias.detach() for n in nets])

    def __call__(self, x: Tensor) -> Tensor:
        one = torch.vmap(lambda w, b: x @ w.T + b)
        return one(self.weights, self.biases).mean(0)


@clean(rec={"x": normal(6, 3)}, passes=3)
def pairwise_by_vmap(x: Tensor) -> Tensor:
    dist = torch.vmap(torch.vmap(lambda a, b: (a - b).square().sum(), (None, 0)), (0, None))
    return dist(x, x).sqrt()


@clean(rec={"x": normal(1, 10, 8)}, passes=3, backends=three)
class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24, bias=False)
        t = torch.outer(torch.arange(10.0), 1 / 10000 ** (torch.arange(0, 4, 2) / 4))
        self.register_buffer("cos", torch.cat([t, t], -1).cos())
        self.register_buffer("sin", torch.cat([t, t], -1).sin())

    def turn(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(1, 10, 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        return y.transpose(1, 2).reshape(1, 10, 8)


@clean(rec={"src": normal(1, 5, 8), "tgt": normal(1, 3, 8)}, passes=3)
class EncoderDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Transformer(8, 2, 1, 1, 16, batch_first=True, dropout=0.1)
        self.eval()

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        return self.net(src, tgt)


@clean(rec={"x": normal(2, 4, 12)}, passes=3, backends=three)
class TemporalConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=2**i) for i in range(3))
        self.norm = nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        for i, conv in enumerate(self.conv):
            x = x + F.leaky_relu(conv(F.pad(x, (2 * 2**i, 0))), 0.1)
        return self.norm(x[..., -1])


@clean(rec={"x": normal(1, 1, 12, 12)}, passes=3, backends=three)
class SmallUnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, 2, 1)
        self.mid = nn.Conv2d(4, 4, 3, padding=1)
        self.up = nn.ConvTranspose2d(4, 4, 2, 2)
        self.out = nn.Conv2d(5, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.mid(F.relu(self.down(x))))
        h = self.up(h) + F.interpolate(h, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(torch.cat([x, h], 1)).sigmoid()


@clean(rec={"obs": normal(1, 4)}, passes=3, style="method")
class AsymmetricActor:
    """`annotate.method` on a method with keyword and default."""

    def __init__(self) -> None:
        self.net = mlp(4, 16, 2)

    @torch.no_grad()
    def step(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        return torch.clamp(action, min=-1.0, max=1.0)


@clean(rec={"obs": normal(1, 4)}, passes=3, style="module", backends=three)
class DuelingQ(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.v, self.a = mlp(4, 16), nn.Linear(16, 1), nn.Linear(16, 5)

    def forward(self, obs: Tensor) -> dict[str, Tensor]:
        h = F.silu(self.trunk(obs))
        q = self.v(h) + self.a(h) - self.a(h).mean(-1, keepdim=True)
        return {"q": q, "action": q.argmax(-1)}


@clean(
    rec={"nodes": normal(5, 4), "edges": fixed([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])},
    passes=3,
    backends=three,
)
class MessagePassing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(8, 8), nn.Linear(12, 4)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        src, dst = edges
        m = F.relu(self.message(torch.cat([nodes[src], nodes[dst]], -1)))
        pooled = torch.zeros(5, 8).index_add_(0, dst, m)
        return nodes + self.update(torch.cat([nodes, pooled], -1))


@clean(rec={"x": normal(1, 6)}, passes=3)
class SimNorm(nn.Module):
    """TD-MPC2's simplicial latent and two-hot decoding."""

    def __init__(self) -> None:
        super().__init__()
        self.enc = nn.Linear(6, 16)
        self.value = nn.Linear(16, 21)
        self.register_buffer("bins", torch.linspace(-5, 5, 21))

    def forward(self, x: Tensor) -> Tensor:
        z = F.softmax(self.enc(x).view(1, -1, 4), -1).view(1, -1)
        v = (self.value(z).softmax(-1) * self.bins).sum(-1, keepdim=True)
        return v.sign() * (v.abs().exp() - 1)


@clean(rec={"x": normal(1, 8)}, passes=3, backends=three)
class VectorQuantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc = nn.Linear(8, 4)
        self.codes = nn.Parameter(torch.randn(16, 4))
        self.dec = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        z = self.enc(x)
        nearest = torch.cdist(z, self.codes).argmin(-1)
        q = self.codes[nearest]
        return self.dec(z + (q - z).detach())


@clean(rec={"x": normal(4, 6), "keep": flags(0.6, 4)}, passes=5, backends=three)
class MaskedMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(6, 8, 3)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        w = keep.unsqueeze(-1).float()
        return (self.net(x) * w).sum(0) / w.sum().clamp(min=1.0)


@clean("A", rec={"obs": normal(1, 3)}, passes=6)
class StackedFrames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frames", torch.zeros(1, 4, 3))
        self.net = mlp(12, 16, 2)

    def forward(self, obs: Tensor) -> Tensor:
        self.frames = torch.roll(self.frames, -1, dims=1)
        self.frames[:, -1] = obs
        return self.net(self.frames.flatten(1))


@clean(rec={"x": normal(1, 4)}, passes=3)
class SpectralPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.utils.parametrizations.spectral_norm(nn.Linear(4, 8)), nn.Tanh(), nn.Linear(8, 2)
        )
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean(rec={"x": normal(1, 16)}, passes=3)
class StateSpace(nn.Module):
    """A diagonal state-space layer over a window, by cumulative sums."""

    def __init__(self) -> None:
        super().__init__()
        self.log_a = nn.Parameter(-torch.rand(4))
        self.b, self.c = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(1, 4)
        out = []
        for t in range(x.shape[1]):
            h = h * self.log_a.exp() + x[:, t, None] * self.b
            out.append((h * self.c).sum(-1))
        return torch.stack(out, -1)
