"""Clean networks and observation code as robot learning has them."""

from __future__ import annotations

import math
import typing

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Normal

from attacks.draws import flags, integers, normal, uniform
from attacks.registry import ALL, clean


@clean("F", rec={"obs": normal(1, 12)}, backends=ALL, in_tests=True)
class ActorCritic(nn.Module):
    """rsl_rl: act_inference."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(12, 16), nn.ELU(), nn.Linear(16, 8), nn.ELU(), nn.Linear(8, 3)
        )
        self.critic = nn.Sequential(nn.Linear(12, 16), nn.ELU(), nn.Linear(16, 1))
        self.std = nn.Parameter(torch.ones(3))

    def forward(self, obs: Tensor) -> Tensor:
        return self.actor(obs)


@clean("F", rec={"obs": normal(1, 6)}, passes=3)
class SquashedGaussian(nn.Module):
    """The mean of a distribution, squashed."""

    def __init__(self) -> None:
        super().__init__()
        self.mu, self.log_std = nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, obs: Tensor) -> Tensor:
        dist = Normal(self.mu(obs), self.log_std(obs).clamp(-5, 2).exp())
        return torch.tanh(dist.mean) * 1.5


@clean("F", rec={"obs": normal(1, 6)})
class EmpiricalNormalization(nn.Module):
    """A normaliser that is not updated in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_mean", torch.randn(1, 6))
        self.register_buffer("_std", torch.rand(1, 6) + 0.5)
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        if self.training:
            self._mean += 0.1 * (obs - self._mean)
        return (obs - self._mean) / (self._std + 1e-2)


@clean(rec={"obs": normal(1, 6)}, in_tests=True)
class Lazy(nn.Module):
    """LazyLinear that finds its size in the first pass."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2))
        self.net(torch.zeros(1, 6))

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean(rec={"obs": normal(1, 6)}, passes=3)
class LazyInSession(nn.Module):
    """LazyLinear whose weights are made while it is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LazyLinear(3)

    def forward(self, obs: Tensor) -> Tensor:
        if isinstance(self.net, nn.LazyLinear):
            torch.manual_seed(5)
        return self.net(obs)


@clean(
    "F",
    rec={"img": uniform(0, 1, 1, 3, 12, 12)},
    fresh={"img": uniform(0, 1, 1, 3, 12, 12)},
    backends=ALL,
)
class CnnEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten()
        )
        self.fc = nn.Linear(6 * 9, 4)

    def forward(self, img: Tensor) -> Tensor:
        return self.fc(self.conv(img * 2 - 1))


@clean("F", rec={"img": integers(0, 256, 1, 8, 8, 3, dtype=torch.uint8)})
class ByteImage(nn.Module):
    """HWC bytes to CHW floats."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, img: Tensor) -> Tensor:
        x = img.permute(0, 3, 1, 2).float() / 255.0
        return F.adaptive_avg_pool2d(self.conv(x), 1).flatten(1)


@clean("F", rec={"x": normal(1, 5, 8)}, passes=3)
class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.attn(x, x, x, need_weights=False)
        return self.norm(x + y).mean(1)


@clean("F", rec={"x": normal(1, 4, 8)}, passes=3, backends=("onnx",))
class Encoder(nn.Module):
    """A TransformerEncoder in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.enc(x)


@clean("F", rec={"t": integers(0, 7, 1, 3)}, passes=4)
class TokenPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(7, 6)
        self.pos = nn.Parameter(torch.randn(3, 6))
        self.out = nn.Linear(6, 2)

    def forward(self, t: Tensor) -> Tensor:
        return self.out((self.emb(t) + self.pos).mean(1))


@clean("F", rec={"x": normal(1, 6)})
class MixtureOfExperts(nn.Module):
    """A soft gate over experts in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 3) for _ in range(3))
        self.gate = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        w = self.gate(x).softmax(-1)
        return sum(w[:, i : i + 1] * e(x) for i, e in enumerate(self.experts))


@clean("F", rec={"x": normal(1, 4), "t": uniform(0, 1, 1)})
class TimeEmbedding(nn.Module):
    """A diffusion step's embedding, with t as an input."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(12, 4)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        freqs = torch.exp(-math.log(1e4) * torch.arange(4) / 4)
        e = torch.cat([(t[:, None] * freqs).sin(), (t[:, None] * freqs).cos()], -1)
        return self.net(torch.cat([x, e], -1))


@clean("F", rec={"x": normal(1, 4)}, passes=3)
class Denoiser(nn.Module):
    """A fixed number of steps in a Python loop."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        for k in range(5):
            t = torch.full((1, 1), k / 5)
            x = x + 0.2 * self.net(torch.cat([x, t], 1)).tanh()
        return x


class Obs(typing.NamedTuple):
    lin_vel: Tensor
    ang_vel: Tensor
    gravity: Tensor


@clean(
    "F",
    rec={"quat": normal(1, 4, m=0.3), "vel": normal(1, 6), "q": normal(1, 4), "cmd": normal(1, 3)},
    in_tests=True,
)
class LocomotionObs:
    """Isaac Lab's observation terms: rotate into the body frame, scale, concatenate."""

    scale = torch.tensor([2.0, 2.0, 0.25])

    def __init__(self) -> None:
        self.default_q = torch.tensor([[0.1, 0.8, -1.5, 0.0]])

    @staticmethod
    def rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
        w, xyz = q[:, :1], q[:, 1:]
        a = v * (2.0 * w**2 - 1.0)
        b = torch.cross(xyz, v, dim=-1) * w * 2.0
        c = xyz * (xyz * v).sum(-1, keepdim=True) * 2.0
        return a - b + c

    def __call__(self, quat: Tensor, vel: Tensor, q: Tensor, cmd: Tensor) -> Tensor:
        quat = F.normalize(quat, dim=-1)
        down = torch.tensor([[0.0, 0.0, -1.0]])
        obs = Obs(
            self.rotate_inverse(quat, vel[:, :3]),
            self.rotate_inverse(quat, vel[:, 3:]),
            self.rotate_inverse(quat, down),
        )
        terms = [
            obs.lin_vel * 2.0,
            obs.ang_vel * 0.25,
            obs.gravity,
            cmd * self.scale,
            q - self.default_q,
        ]
        return torch.cat(terms, dim=-1).clip(-100, 100)


@clean("F", rec={"q": normal(1, 4), "qd": normal(1, 4), "a": normal(1, 4)})
class PdTorques:
    def __init__(self) -> None:
        self.kp, self.kd = (
            torch.tensor([20.0, 20.0, 30.0, 10.0]),
            torch.tensor([0.5, 0.5, 0.8, 0.2]),
        )
        self.limit = torch.tensor([33.5, 33.5, 40.0, 12.0])

    def __call__(self, q: Tensor, qd: Tensor, a: Tensor) -> Tensor:
        tau = self.kp * (0.25 * a - q) - self.kd * qd
        return torch.clip(tau, -self.limit, self.limit)


@clean("F", rec={"x": normal(1, 3)})
def rotation_6d(x: Tensor) -> Tensor:
    angle = x.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    axis = x / angle
    half = angle / 2
    return torch.cat([half.cos(), axis * half.sin()], -1)


@clean("F", rec={"p": normal(2, 3), "m": normal(3, 3)})
def homogeneous(p: Tensor, m: Tensor) -> Tensor:
    rows = torch.cat([p, torch.ones(2, 1)], 1)
    pose = torch.eye(4)
    pose[:3, :3] = m
    pose[:3, 3] = m.sum(0)
    return rows @ pose.T


@clean("F", rec={"s": normal(1, 16)}, passes=3)
def height_scan(s: Tensor) -> Tensor:
    grid = s.view(1, 1, 4, 4)
    up = F.interpolate(grid, scale_factor=2, mode="bilinear", align_corners=False)
    return (0.5 - up).clamp(-1, 1).flatten(1)


@clean("F", rec={"x": normal(1, 8)}, passes=3, backends=("onnx", "pt2"))
class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.SiLU()) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


@clean("F", rec={"x": normal(1, 2, 9)})
class TemporalConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, dilation=2, padding=2)
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x)).mean(-1)


@clean("F", rec={"x": normal(1, 5)}, passes=3)
class VaeMean(nn.Module):
    """An encoder whose variance is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.enc, self.dec = nn.Linear(5, 4), nn.Linear(2, 5)

    def forward(self, x: Tensor) -> Tensor:
        mean, _log_var = self.enc(x).chunk(2, dim=-1)
        return self.dec(mean)


@clean("F", rec={"a": normal(1, 3), "mask": flags(0.5, 1, 3)})
def where_masked(a: Tensor, mask: Tensor) -> Tensor:
    y = a.clone()
    y[mask] = 0.0
    return y + torch.where(mask, 1.0, -1.0)


@clean("F", rec={"logits": normal(1, 5), "allowed": flags(0.7, 1, 5)})
def masked_softmax(logits: Tensor, allowed: Tensor) -> Tensor:
    return logits.masked_fill(~allowed, -1e9).softmax(-1)


@clean("F", rec={"x": normal(4)})
def dict_of_outputs(x: Tensor) -> dict[str, Tensor]:
    return {"torque": x * 3, "stiffness": x.abs() + 1}


@clean("F", rec={"x": normal(1, 6)}, passes=3)
class Dueling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.v, self.a = nn.Linear(6, 1), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        adv = self.a(x)
        return self.v(x) + adv - adv.mean(1, keepdim=True)


@clean("F", rec={"x": normal(1, 6)}, context="inference")
class InferenceMode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 6), nn.Mish(), nn.Linear(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean("F", rec={"x": normal(1, 6)}, context="grad")
class WithGradients(nn.Module):
    """Nobody said no_grad."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).detach()


@clean("F", rec={"x": normal(1, 6)})
class WeightNormed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.utils.parametrizations.weight_norm(nn.Linear(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean("F", rec={"x": normal(2, 6)})
def einsum_and_outer(x: Tensor) -> Tensor:
    gram = torch.einsum("bi,bj->ij", x, x)
    return torch.diagonal(gram) + torch.triu(gram).sum(0)


@clean("F", rec={"x": normal(1, 6)}, session={"max_cached_io": 3}, passes=6)
def polynomial_features(x: Tensor) -> Tensor:
    return torch.cat([x**k for k in range(1, 4)], -1)


@clean("F", rec={"p": normal(1, 2)})
class KinematicChain:
    """Forward kinematics of two links in a loop."""

    lengths = (0.4, 0.3)

    def __call__(self, p: Tensor) -> Tensor:
        x = y = total = torch.zeros(1)
        for i, length in enumerate(self.lengths):
            total = total + p[:, i]
            x = x + length * torch.cos(total)
            y = y + length * torch.sin(total)
        return torch.stack([x, y], -1)


@clean("F", rec={"x": normal(1, 4)}, passes=3)
class CopiedModel(nn.Module):
    """A target network made by deepcopy."""

    def __init__(self) -> None:
        super().__init__()
        import copy

        self.online = nn.Linear(4, 3)
        self.target = copy.deepcopy(self.online)

    def forward(self, x: Tensor) -> Tensor:
        return torch.minimum(self.online(x), self.target(x) + 0.1)


@clean("F", rec={"x": normal(1, 4)}, passes=3)
class Tied(nn.Module):
    """Two layers that share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.enc, self.dec = nn.Linear(4, 4), nn.Linear(4, 4)
        self.dec.weight = self.enc.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.dec(self.enc(x).relu())


@clean("F", rec={"x": normal(1, 4)}, passes=3)
class Bilinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.b, self.p = nn.Bilinear(4, 4, 2), nn.PReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.p(self.b(x, x.flip(-1)))
