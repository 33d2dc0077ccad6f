"""Networks as they come out of training code, and the habits of that code."""

from __future__ import annotations

import copy
import math

import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from attacks.draws import flags, integers, normal, uniform
from attacks.registry import clean


def mlp(*sizes: int, act: type[nn.Module] = nn.ELU) -> nn.Sequential:
    layers = [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), act())]
    return nn.Sequential(*layers[:-1])


@clean(rec={"obs": normal(1, 6), "base": normal(1, 3)}, backends=("jit", "onnx"), style="module")
class BcResidualPolicy(nn.Module):
    """A learned residual, bounded, on top of a base controller."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(9, 16, 3)
        nn.init.orthogonal_(self.net[-1].weight, gain=0.1)
        nn.init.zeros_(self.net[-1].bias)

    @torch.no_grad()
    def forward(self, obs: Tensor, base: Tensor) -> Tensor:
        return base + 0.2 * torch.tanh(self.net(torch.cat((obs, base), dim=-1)))


@clean(rec={"obs": normal(2, 5)}, backends="pt2")
class BcBlendedWeights(nn.Module):
    """MANN's mode-adaptive network: the weights themselves are blended by a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = mlp(5, 8, 4)
        self.w = nn.Parameter(torch.randn(4, 3, 5) * 0.3)
        self.b = nn.Parameter(torch.zeros(4, 3))

    def forward(self, obs: Tensor) -> Tensor:
        g = self.gate(obs).softmax(-1)
        w, b = torch.einsum("be,eoi->boi", g, self.w), g @ self.b
        return torch.baddbmm(b.unsqueeze(-1), w, obs.unsqueeze(-1)).squeeze(-1)


@clean(
    rec={"depth": uniform(0.2, 4.0, 1, 1, 12, 12), "proprio": normal(1, 5)},
    backends=("onnx", "jit"),
)
class BcDepthPolicy(nn.Module):
    """A depth image in eval mode with batch normalisation and dropout, and proprioception."""

    def __init__(self) -> None:
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Dropout2d(0.2),
            nn.Flatten(),
            nn.Linear(36, 6),
        )
        self.head = mlp(11, 8, 2)
        self.eval()

    def forward(self, depth: Tensor, proprio: Tensor) -> Tensor:
        depth = (depth.clamp(0.3, 3.0) - 0.3) / 2.7 - 0.5
        return self.head(torch.cat([self.cnn(depth), proprio], 1))


@clean(rec={"tokens": normal(1, 4, 8)}, backends=("jit", "pt2"), style="module")
class BcEncoderTokens(nn.Module):
    """PyTorch's transformer encoder in eval mode with a readout token."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.readout, self.pos = (
            nn.Parameter(torch.randn(1, 1, 8)),
            nn.Parameter(torch.randn(1, 5, 8) * 0.02),
        )
        self.head = nn.Linear(8, 2)
        self.eval()

    def forward(self, tokens: Tensor) -> Tensor:
        x = torch.cat([self.readout.expand(tokens.shape[0], -1, -1), tokens], 1) + self.pos
        return self.head(self.encoder(x)[:, 0])


@clean(rec={"arm": normal(1, 4), "base": normal(1, 3)}, backends="onnx")
class BcModuleDictHeads(nn.Module):
    """Encoders and heads in ModuleDicts, walked by sorted keys."""

    def __init__(self) -> None:
        super().__init__()
        self.enc = nn.ModuleDict({"arm": nn.Linear(4, 6), "base": nn.Linear(3, 6)})
        self.heads = nn.ModuleDict({"gripper": nn.Linear(12, 1), "wheels": nn.Linear(12, 2)})

    def forward(self, arm: Tensor, base: Tensor) -> dict:
        obs = {"base": base, "arm": arm}
        z = torch.cat([F.relu(self.enc[key](obs[key])) for key in sorted(obs)], -1)
        return {name: head(z) for name, head in self.heads.items()}


@clean(rec={"obs": normal(2, 4), "act": normal(2, 2)}, backends="jit")
class BcStackedEnsemble(nn.Module):
    """Critics with stacked parameters through `functional_call` and `vmap`."""

    def __init__(self) -> None:
        super().__init__()
        members = [mlp(6, 8, 1) for _ in range(4)]
        self.params, self.buffers_ = torch.func.stack_module_state(members)
        self.base = copy.deepcopy(members[0]).to("meta")

    def forward(self, obs: Tensor, act: Tensor) -> Tensor:
        x = torch.cat([obs, act], -1)
        call = lambda p, b: torch.func.functional_call(self.base, (p, b), (x,))
        q = torch.func.vmap(call)(self.params, self.buffers_)
        return q.mean(0) - q.std(0)


@clean(rec={"obs": normal(1, 5)}, backends=("jit", "onnx"), style="module")
class BcTanhNormalMode(nn.Module):
    """SAC's actor for deployment: an Independent Normal's mean, squashed and scaled."""

    LOG_STD = (-5, 2)

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.mu, self.log_std = mlp(5, 16, 16), nn.Linear(16, 2), nn.Linear(16, 2)
        self.register_buffer("action_scale", torch.tensor([1.0, 0.5]))
        self.register_buffer("action_bias", torch.tensor([0.0, 0.1]))

    def dist(self, obs: Tensor) -> D.Distribution:
        h = self.trunk(obs)
        lo, hi = self.LOG_STD
        log_std = lo + 0.5 * (hi - lo) * (torch.tanh(self.log_std(h)) + 1)
        return D.Independent(
            D.Normal(self.mu(h), log_std.exp(), validate_args=False), 1, validate_args=False
        )

    def forward(self, obs: Tensor, deterministic: bool = True) -> Tensor:
        dist = self.dist(obs)
        raw = dist.mean if deterministic else dist.rsample()
        return torch.tanh(raw) * self.action_scale + self.action_bias


@clean(rec={"obs": normal(2, 5)}, backends="jit")
class BcGmmMean(nn.Module):
    """Robomimic's mixture head: mean of the mixture and probabilities of its modes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(5, 3 + 3 * 2)

    def forward(self, obs: Tensor) -> dict:
        out = self.net(obs)
        logits, means = out[:, :3], out[:, 3:].view(-1, 3, 2).tanh()
        mix = D.Categorical(logits=logits, validate_args=False)
        parts = D.Independent(D.Normal(means, torch.full_like(means, 1e-4), validate_args=False), 1)
        gmm = D.MixtureSameFamily(mix, parts, validate_args=False)
        return {"action": gmm.mean, "probs": mix.probs}


@clean(rec={"x": normal(1, 3, 16)}, backends=("onnx", "pt2"), style="module")
class BcUnet1d(nn.Module):
    """A small U-net: skips are kept in a list and popped on the way up."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv1d(3, 4, 3, padding=1), nn.Conv1d(4, 6, 3, padding=1)])
        self.mid = nn.Conv1d(6, 6, 3, padding=1)
        self.up = nn.ModuleList([nn.Conv1d(12, 4, 3, padding=1), nn.Conv1d(8, 3, 3, padding=1)])

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for conv in self.down:
            x = F.mish(conv(x))
            skips.append(x)
            x = F.avg_pool1d(x, 2)
        x = F.mish(self.mid(x))
        for conv in self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = conv(torch.cat([x, skips.pop()], 1))
        return x


@clean(rec={"noisy": normal(1, 4), "obs": normal(1, 3)}, backends="jit", passes=3)
class BcDdimSampler(nn.Module):
    """DDIM from given noise over a fixed schedule of five steps."""

    def __init__(self) -> None:
        super().__init__()
        self.eps = mlp(8, 16, 4, act=nn.Mish)
        self.alphas = torch.cos(torch.linspace(0.1, 1.4, 20)).square()
        self.steps = list(range(19, -1, -4))

    def forward(self, noisy: Tensor, obs: Tensor) -> Tensor:
        x = noisy
        for i, t in enumerate(self.steps):
            a = self.alphas[t]
            last = i == len(self.steps) - 1
            b = torch.tensor(1.0) if last else self.alphas[self.steps[i + 1]]
            time = torch.full((x.shape[0], 1), t / 20)
            e = self.eps(torch.cat([x, obs, time], -1))
            x0 = ((x - (1 - a).sqrt() * e) / a.sqrt()).clamp(-1, 1)
            x = b.sqrt() * x0 + (1 - b).sqrt() * e
        return x


@clean(rec={"noise": normal(1, 6), "obs": normal(1, 3)}, backends="onnx", passes=3)
class BcFlowMatching(nn.Module):
    """Pi-zero's kind of action expert: Euler steps along a learned flow."""

    def __init__(self) -> None:
        super().__init__()
        self.v = mlp(13, 16, 6, act=nn.SiLU)
        self.register_buffer("freq", torch.tensor([1.0, 4.0]))

    def forward(self, noise: Tensor, obs: Tensor, steps: int = 4) -> Tensor:
        x, dt = noise, 1.0 / steps
        for k in range(steps):
            t = torch.tensor([[k * dt]])
            emb = torch.cat([(t * self.freq).sin(), (t * self.freq).cos()], -1)
            x = x + dt * self.v(torch.cat([x, obs, emb], -1))
        return x.view(1, 3, 2)


class _Lora(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 2, alpha: float = 4.0) -> None:
        super().__init__()
        self.base, self.scaling, self.merged = base.requires_grad_(False), alpha / rank, False
        self.A = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.B = nn.Parameter(torch.randn(base.out_features, rank) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        if self.merged:
            return self.base(x)
        return self.base(x) + (x @ self.A.T @ self.B.T) * self.scaling


@clean(rec={"x": normal(2, 4)}, backends=("jit", "onnx"), style="module")
class BcLoraInjected(nn.Module):
    """Linear layers that were replaced by LoRA versions after the network was made."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(4, 8, 2)
        for name, child in list(self.net.named_children()):
            if isinstance(child, nn.Linear):
                setattr(self.net, name, _Lora(child))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean(rec={"nodes": normal(5, 4)}, backends="jit")
class BcMessagePassing(nn.Module):
    """Two rounds of messages along the robot's kinematic tree, by `index_add`."""

    EDGES = ((0, 1), (1, 2), (0, 3), (3, 4), (1, 0), (2, 1), (3, 0), (4, 3))

    def __init__(self) -> None:
        super().__init__()
        self.msg, self.upd = nn.Linear(8, 6), nn.Linear(10, 4)
        src, dst = zip(*self.EDGES)
        self.register_buffer("src", torch.tensor(src))
        self.register_buffer("dst", torch.tensor(dst))

    def forward(self, nodes: Tensor) -> Tensor:
        for _ in range(2):
            m = F.relu(self.msg(torch.cat([nodes[self.src], nodes[self.dst]], -1)))
            agg = torch.zeros(nodes.shape[0], 6, dtype=nodes.dtype).index_add(0, self.dst, m)
            nodes = nodes + self.upd(torch.cat([nodes, agg], -1))
        return nodes


@clean(rec={"obs": normal(1, 6)}, backends="pt2", style="module")
class BcSimNormSymlog(nn.Module):
    """TD-MPC2's SimNorm and two-hot values in symlog space."""

    def __init__(self) -> None:
        super().__init__()
        self.enc, self.q = nn.Linear(6, 8), nn.Linear(8, 11)
        self.register_buffer("bins", torch.linspace(-5, 5, 11))

    def forward(self, obs: Tensor) -> dict:
        x = torch.sign(obs) * torch.log1p(obs.abs())
        z = F.softmax(self.enc(x).view(1, -1, 4), -1).view(1, -1)
        value = (self.q(z).softmax(-1) * self.bins).sum(-1)
        return {"z": z, "value": torch.sign(value) * torch.expm1(value.abs())}


@clean(
    rec={"query": normal(1, 2, 8), "memory": normal(1, 6, 8), "valid": flags(0.8, 1, 6)},
    backends="jit",
)
class BcCrossAttention(nn.Module):
    """Cross-attention to entities with a mask; the first entity always counts."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.train(False)

    def forward(self, query: Tensor, memory: Tensor, valid: Tensor) -> Tensor:
        first = torch.arange(6) == 0
        out, _ = self.attn(
            query, memory, memory, key_padding_mask=~(valid | first), need_weights=False
        )
        return self.norm(query + out)


@clean(rec={"obs": normal(4, 5)}, backends=("onnx", "jit"))
class BcFrozenNormaliser(nn.Module):
    """rl_games' running mean and deviation: not in training, so they stay."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.randn(5, dtype=torch.float64))
        self.register_buffer("running_var", torch.rand(5, dtype=torch.float64) + 0.5)
        self.register_buffer("count", torch.ones((), dtype=torch.float64))
        self.net = mlp(5, 8, 2)
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        if self.training:
            self.count += obs.shape[0]
            self.running_mean += (obs.mean(0) - self.running_mean) / self.count
        scaled = (obs - self.running_mean.float()) / torch.sqrt(self.running_var.float() + 1e-5)
        return self.net(torch.clamp(scaled, min=-5.0, max=5.0))


@clean(rec={"obs": normal(1, 4)}, backends="jit", style="module")
class BcCheckpointRoundTrip(nn.Module):
    """Weights that come through a state dict with a prefix that is taken off."""

    def __init__(self) -> None:
        super().__init__()
        trained = nn.ModuleDict({"actor": mlp(4, 8, 2), "critic": mlp(4, 8, 1)})
        state = {f"module.{k}": v.clone() for k, v in trained.state_dict().items()}
        wanted = {k.removeprefix("module.actor."): v for k, v in state.items() if ".actor." in k}
        self.actor = mlp(4, 8, 2)
        missing, unexpected = self.actor.load_state_dict(wanted, strict=False)
        assert not missing and not unexpected
        self.requires_grad_(False).eval()

    def forward(self, obs: Tensor) -> Tensor:
        return self.actor(obs)


@clean(rec={"x": normal(2, 4)}, backends="onnx")
class BcSharedRecurrence(nn.Module):
    """One block is used again and again, and its embedding's weight read out tied."""

    def __init__(self) -> None:
        super().__init__()
        self.inp, self.block = nn.Linear(4, 8), nn.Linear(8, 8)
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x: Tensor) -> Tensor:
        z = self.inp(x)
        for _ in range(3):
            z = z + F.glu(torch.cat([self.block(z), self.norm(z)], -1), dim=-1)
        return F.linear(z, self.inp.weight.t())


@clean(rec={"obs": normal(2, 5)}, backends=("jit", "pt2"), style="module")
class BcNoisyEval(nn.Module):
    """A noisy layer in eval mode: only its means count."""

    class Noisy(nn.Module):
        def __init__(self, a: int, b: int) -> None:
            super().__init__()
            self.mu_w, self.mu_b = (
                nn.Parameter(torch.randn(b, a) * 0.3),
                nn.Parameter(torch.zeros(b)),
            )
            self.sigma_w = nn.Parameter(torch.full((b, a), 0.5 / math.sqrt(a)))
            self.register_buffer("eps_w", torch.randn(b, a))

        def forward(self, x: Tensor) -> Tensor:
            if self.training:
                return F.linear(x, self.mu_w + self.sigma_w * self.eps_w, self.mu_b)
            return F.linear(x, self.mu_w, self.mu_b)

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = self.Noisy(5, 8), self.Noisy(8, 3)
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        return self.b(self.a(obs).relu())


@clean(rec={"points": normal(1, 10, 3)}, backends="onnx", style="module")
class BcSetTransformerPool(nn.Module):
    """Learned seeds attend to points; einsum spelled out for two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.seed = nn.Parameter(torch.randn(2, 8))
        self.k, self.v, self.o = nn.Linear(3, 8), nn.Linear(3, 8), nn.Linear(8, 4)

    def forward(self, points: Tensor) -> Tensor:
        b, n, _ = points.shape
        k, v = (f(points).view(b, n, 2, 4) for f in (self.k, self.v))
        q = self.seed.view(2, 2, 4)
        att = torch.einsum("shd,bnhd->bhsn", q, k).div(math.sqrt(4)).softmax(-1)
        return self.o(torch.einsum("bhsn,bnhd->bshd", att, v).flatten(2))


@clean(rec={"obs": normal(1, 4)}, backends="jit", passes=4)
class BcLipschitz(nn.Module):
    """Spectral norm in eval, weight norm, and a smooth activation."""

    def __init__(self) -> None:
        super().__init__()
        self.a = parametrizations.spectral_norm(nn.Linear(4, 8), n_power_iterations=2)
        self.b = parametrizations.weight_norm(nn.Linear(8, 2), dim=0)
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        return 0.5 * self.b(F.softplus(self.a(obs)))


@clean(rec={"obs": normal(1, 4), "task": integers(0, 5, 1)}, backends=("jit", "onnx"))
class BcHyperNetwork(nn.Module):
    """A task's embedding makes the weights of the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks, self.body = nn.Embedding(5, 4), mlp(4, 6, 6)
        self.hyper = nn.Linear(4, 6 * 2 + 2)

    def forward(self, obs: Tensor, task: Tensor) -> Tensor:
        w, b = self.hyper(self.tasks(task)).split([12, 2], -1)
        return torch.bmm(self.body(obs).unsqueeze(1), w.view(-1, 6, 2)).squeeze(1) + b


@clean(rec={"image": integers(0, 256, 1, 12, 12, 3, dtype=torch.uint8)}, backends="onnx")
class BcSpatialSoftmax(nn.Module):
    """A camera's image into keypoints by a spatial softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 3))
        gy, gx = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
        self.register_buffer("grid", torch.stack([gx, gy], -1).view(-1, 2))

    def forward(self, image: Tensor) -> Tensor:
        x = image.to(torch.float32).div(127.5).sub(1.0).permute(0, 3, 1, 2).contiguous()
        heat = self.conv(x).flatten(2).softmax(-1)
        return (heat @ self.grid).flatten(1)
