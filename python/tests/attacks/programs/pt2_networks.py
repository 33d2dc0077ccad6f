"""Networks in pt2 models, run by torch's own runner."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import integers, normal
from attacks.registry import clean


def in_runner(**options):
    options = {"rec": {"x": normal(1, 8)}, "passes": 3, "backends": "pt2", "ticks": 5} | options
    return lambda code: clean(
        "E", name=f"pt2_{code.__name__}", runner="cli", style="module", **options
    )(code)


@in_runner(rec={"x": normal(1, 3, 12, 12)})
class Encoder(nn.Module):
    """Convolutions with a norm, pooling and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 6, 3, stride=2, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 6, 3, padding=1, groups=2),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(6, 4),
        ).eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@in_runner(rec={"x": normal(1, 2, 10)})
class CausalConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (2, 0)))[:, :, ::2]


@in_runner(rec={"x": normal(1, 4, 4, 4)})
class Upsampled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 2, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(self.up(x), scale_factor=0.5, mode="bilinear")


@in_runner(rec={"x": normal(1, 5, 8)})
class Recurrent(nn.Module):
    """A GRU over a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(8, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.gru(x)[0][:, -1])


@in_runner(rec={"x": normal(1, 5, 8)})
class TwoWays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 4, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out, (h, _) = self.lstm(x)
        return out[:, -1, :4] + h[0]


@in_runner(passes=4)
class StatefulCell(nn.Module):
    """A GRU cell whose state is fed back."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, 6), nn.Linear(3, 2)
        self.h = torch.zeros(1, 6)

    def forward(self, x: Tensor) -> Tensor:
        self.h = self.cell(x, self.h)
        return self.head(self.h[:, ::2])


@in_runner(rec={"x": normal(1, 5, 8)})
class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


@in_runner(rec={"x": normal(1, 5, 8)})
class AttentionWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.attention(x[:, :2], x, x)


@in_runner(rec={"x": normal(1, 6, 8)})
class FusedProjection(nn.Module):
    """Query, key and value are parts of one product."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24, bias=False), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


@in_runner(rec={"x": normal(1, 6, 8)})
class MaskedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.ones(8, 8).tril()[2:, 2:].bool())

    def forward(self, x: Tensor) -> Tensor:
        weights = (x @ x.mT / math.sqrt(8)).masked_fill(~self.mask, float("-inf")).softmax(-1)
        return weights @ x


@in_runner(rec={"x": normal(1, 5, 8)})
class TransformerLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True).eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


@in_runner()
class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.group = nn.LayerNorm(4), nn.GroupNorm(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.group(self.norm(x[:, ::2])) * x[:, 1::2]


@in_runner(rec={"k": integers(0, 7, 5)})
class Tokens(nn.Module):
    """Words and their places, from one table each."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(7, 6), nn.Embedding(16, 6)

    def forward(self, k: Tensor) -> Tensor:
        return self.words(k) + self.places.weight[3 : 3 + k.shape[0]]


def _sinusoidal(length: int, width: int) -> Tensor:
    angles = torch.arange(length).unsqueeze(1) / 10000 ** (torch.arange(0, width, 2) / width)
    table = torch.zeros(length, width)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


@in_runner(rec={"image": normal(1, 3, 16, 16), "state": normal(1, 6)})
class ActionChunking(nn.Module):
    """A policy in the manner of ACT: image and state tokens, an encoder, a decoder of queries."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), nn.ReLU())
        self.state, self.latent = nn.Linear(6, 16), nn.Linear(4, 16)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1) for _ in range(2)
        )
        self.decoder = nn.TransformerDecoderLayer(16, 4, 32, dropout=0.1)
        self.queries = nn.Embedding(5, 16)
        self.register_buffer("places", _sinusoidal(32, 16)[2:20])
        self.head = nn.Linear(16, 6)
        self.eval()

    def forward(self, image: Tensor, state: Tensor) -> Tensor:
        features = self.backbone(image).flatten(2).permute(2, 0, 1)
        latent = self.latent(torch.zeros(image.shape[0], 4))
        tokens = torch.cat([torch.stack([latent, self.state(state)]), features])
        tokens = tokens + self.places.unsqueeze(1)
        for layer in self.encoder:
            tokens = layer(tokens)
        queries = self.queries.weight.unsqueeze(1).expand(-1, image.shape[0], -1)
        return self.head(self.decoder(queries, tokens).transpose(0, 1))


@in_runner(rec={"x": normal(1, 8)})
class Mixture(nn.Module):
    """Experts as one stack of matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = nn.Parameter(torch.randn(3, 8, 4) / 3)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(-1)
        return torch.einsum("be,bi,eij->bj", weights, x, self.experts)


@in_runner(rec={"q": normal(2, 4), "v": normal(2, 3)})
class RotatesVectors(nn.Module):
    """A quaternion that turns a vector, as in simulators."""

    def forward(self, q: Tensor, v: Tensor) -> Tensor:
        q = F.normalize(q, dim=-1)
        w, xyz = q[:, :1], q[:, 1:]
        t = 2.0 * torch.linalg.cross(xyz, v)
        return v + w * t + torch.linalg.cross(xyz, t)
