"""Policies and encoders of the usual families, written in the ways their authors write them."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from attacks.draws import integers, normal, uniform
from attacks.registry import clean


@clean("H", rec={"obs": normal(2, 6)}, passes=3)
class OutsideMixtureOfExperts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(6, 8), nn.ELU(), nn.Linear(8, 2)) for _ in range(3)
        )

    def forward(self, obs: Tensor) -> Tensor:
        weight = self.gate(obs).softmax(-1)
        return torch.einsum("be,bea->ba", weight, torch.stack([e(obs) for e in self.experts], 1))


@clean(
    "H", rec={"history": normal(1, 5, 6), "obs": normal(1, 6)}, passes=3, backends=("jit", "onnx")
)
class OutsideAdaptation(nn.Module):
    """RMA: a convolution over the history gives the latent that a policy takes."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU())
        self.conv = nn.Sequential(nn.Conv1d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 4))
        self.policy = nn.Sequential(nn.Linear(10, 16), nn.ELU(), nn.Linear(16, 3))

    def forward(self, history: Tensor, obs: Tensor) -> dict:
        latent = self.conv(self.embed(history).transpose(1, 2))
        return {"action": self.policy(torch.cat([obs, latent], -1)), "latent": latent}


@clean("H", rec={"history": normal(2, 12)}, passes=3)
class OutsideVariationalEstimator(nn.Module):
    """DreamWaQ: in evaluation the latent is its mean."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.mu, self.log_var = nn.Linear(12, 8), nn.Linear(8, 3), nn.Linear(8, 3)
        self.eval()

    def reparameterise(self, mu: Tensor, log_var: Tensor) -> Tensor:
        if self.training:
            return mu + torch.randn_like(mu) * (0.5 * log_var).exp()
        return mu

    def forward(self, history: Tensor) -> Tensor:
        h = F.elu(self.body(history))
        return self.reparameterise(self.mu(h), self.log_var(h).clamp(-5, 5))


@clean("H", rec={"obs": normal(1, 4)}, passes=3)
class OutsideDuelling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.value, self.advantage = nn.Linear(4, 1), nn.Linear(4, 5)

    def forward(self, obs: Tensor) -> Tensor:
        a = self.advantage(obs)
        return self.value(obs) + a - a.mean(-1, keepdim=True)


@clean("H", rec={"obs": normal(1, 4)}, passes=3, backends=("jit", "pt2"))
class OutsideDistributional(nn.Module):
    """C51: an expectation over a fixed support."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 3 * 11)
        self.register_buffer("support", torch.linspace(-10, 10, 11))

    def forward(self, obs: Tensor) -> Tensor:
        return (self.net(obs).view(-1, 3, 11).softmax(-1) * self.support).sum(-1)


@clean(
    "H", rec={"noise": normal(1, 4, 2), "cond": normal(1, 6)}, passes=3, backends=("jit", "onnx")
)
class OutsideDiffusion(nn.Module):
    """Four steps of DDIM; the noise is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Embedding(20, 4)
        self.net = nn.Sequential(nn.Linear(8 + 6 + 4, 32), nn.Mish(), nn.Linear(32, 8))
        self.alphas = torch.cumprod(1 - torch.linspace(1e-3, 0.2, 20), 0)

    def forward(self, noise: Tensor, cond: Tensor) -> Tensor:
        x = noise
        for t, after in zip((15, 10, 5, 0), (10, 5, 0, None), strict=True):
            step = self.time(torch.full((1,), t))
            eps = self.net(torch.cat([x.flatten(1), cond, step], -1)).view_as(x)
            a = self.alphas[t]
            b = self.alphas[after] if after is not None else torch.tensor(1.0)
            start = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-2, 2)
            x = b.sqrt() * start + (1 - b).sqrt() * eps
        return x


@clean("H", rec={"z": normal(3, 4)}, passes=3)
class OutsideCodebook(nn.Module):
    """A vector-quantised latent."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = nn.Embedding(8, 4)

    def forward(self, z: Tensor) -> dict:
        distance = (z.unsqueeze(1) - self.codes.weight).square().sum(-1)
        index = distance.argmin(-1)
        return {"code": self.codes(index), "index": index}


@clean("H", rec={"tokens": normal(1, 6, 8)}, passes=3, backends=("jit", "onnx"))
class OutsideCausal(nn.Module):
    """A decoder of actions with a causal mask, by `scaled_dot_product_attention`."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 2), nn.LayerNorm(8)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(tokens)).view(1, 6, 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(1, 6, 8))[:, -1]


@clean("H", rec={"image": uniform(0.0, 1.0, 1, 3, 16, 16), "state": normal(1, 4)}, passes=3)
class OutsideFilm(nn.Module):
    """A picture modulated by a state; group normalisation, spatial soft-argmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8)
        self.film = nn.Linear(4, 16)

    def forward(self, image: Tensor, state: Tensor) -> Tensor:
        gamma, beta = self.film(state).view(1, 2, 8, 1, 1).unbind(1)
        x = F.relu(self.norm(self.conv(image)) * gamma + beta)
        weight = x.flatten(2).softmax(-1).view_as(x)
        line = torch.linspace(-1, 1, 16)
        across = (weight.sum(2) * line).sum(-1)
        down = (weight.sum(3) * line).sum(-1)
        return torch.cat([across, down], -1)


@clean("H", rec={"cloud": normal(2, 16, 3)}, passes=3)
class OutsidePointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.local = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8))
        self.head = nn.Linear(8, 2)

    def forward(self, cloud: Tensor) -> Tensor:
        return self.head(self.local(cloud).amax(1))


@clean("B", rec={"obs": normal(2, 4)}, passes=3)
class OutsidePruned(nn.Module):
    """Pruning computes the weight anew in a pre-hook of every call."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)
        prune.l1_unstructured(self.net, "weight", amount=0.4)

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("B", rec={"obs": normal(2, 4)}, passes=4)
class OutsideOldWeightNorm(nn.Module):
    """The old weight norm sets an attribute in a pre-hook of every call."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.utils.weight_norm(nn.Linear(4, 3))

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("B", rec={"obs": normal(2, 4)}, passes=4)
class OutsideOrthogonal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = parametrizations.orthogonal(nn.Linear(4, 4))
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("B", rec={"obs": normal(2, 4)}, passes=4)
class OutsideAveraged:
    """A model of averaged weights, as `swa_utils` makes it."""

    def __init__(self) -> None:
        base = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        self.model = torch.optim.swa_utils.AveragedModel(base)
        self.model.update_parameters(base)
        self.model.eval()

    def __call__(self, obs: Tensor) -> Tensor:
        return self.model(obs)


@clean("B", rec={"obs": normal(2, 4)}, passes=4, context="inference")
class OutsideAllInference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.GRU(4, 6, batch_first=True)

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs.unsqueeze(1))[0][:, 0]


@clean("B", rec={"obs": normal(2, 4)}, passes=5, context="inference")
class OutsideMemoryInInference(nn.Module):
    """A recurrent policy that is run under inference mode."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(4, 6), nn.Linear(6, 2)
        self.h = torch.zeros(2, 6)

    def forward(self, obs: Tensor) -> Tensor:
        self.h = self.cell(obs, self.h)
        return self.head(self.h)


@clean("B", rec={"obs": normal(2, 4)}, passes=5, context="grad")
class OutsideMemoryWithGradients(nn.Module):
    """Gradients are on, and the memory is detached."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(4, 6), nn.Linear(6, 2)
        self.h = torch.zeros(2, 6)

    def forward(self, obs: Tensor) -> Tensor:
        h = self.cell(obs, self.h)
        self.h = h.detach()
        return self.head(h)


def _logged(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        wrapped.calls += 1
        return function(*args, **kwargs)

    wrapped.calls = 0
    return wrapped


@clean("B", rec={"obs": normal(2, 4)}, passes=4)
class OutsideDecorated(nn.Module):
    """A decorator counts the calls, and nobody asks."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)

    @_logged
    def act(self, obs: Tensor) -> Tensor:
        return self.net(obs)

    @torch.no_grad()
    def forward(self, obs: Tensor) -> Tensor:
        return self.act(obs)


@dataclass
class _Config:
    hidden: int = 8
    activation: str = "elu"
    clip: float | None = 1.0
    layers: tuple[int, ...] = (8, 8)


@clean("H", rec={"obs": normal(2, 4)}, passes=3, backends=("jit", "onnx"))
class OutsideConfigured(nn.Module):
    """Everything hangs on a config: names of activations, optional clip, layers."""

    def __init__(self, cfg: _Config | None = None) -> None:
        super().__init__()
        self.cfg = cfg or _Config()
        sizes = (4, *self.cfg.layers, 2)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))

    def forward(self, obs: Tensor) -> Tensor:
        act = getattr(F, self.cfg.activation)
        for i, layer in enumerate(self.layers):
            obs = layer(obs)
            if i < len(self.layers) - 1:
                obs = act(obs)
        return obs.clamp(-self.cfg.clip, self.cfg.clip) if self.cfg.clip is not None else obs


@clean("H", rec={"word": integers(0, 10, 1, 5), "q": normal(1, 3)}, passes=3)
class OutsideInstruction(nn.Module):
    """Words and joints: an LSTM over an instruction, and its last output."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm = nn.Embedding(10, 6, padding_idx=0), nn.LSTM(6, 8, batch_first=True)
        self.head = nn.Linear(11, 3)

    def forward(self, word: Tensor, q: Tensor) -> Tensor:
        y, _ = self.lstm(self.words(word))
        return self.head(torch.cat([y[:, -1], q], -1))


@clean("H", rec={"obs": normal(2, 4)}, passes=3)
class OutsideTwinCritics(nn.Module):
    """A deep copy, weights tied in one layer, the smaller of two values."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
        self.two = copy.deepcopy(self.one)
        self.two[2] = self.one[2]
        nn.init.orthogonal_(self.two[0].weight)

    def forward(self, obs: Tensor) -> Tensor:
        return torch.min(self.one(obs), self.two(obs))
