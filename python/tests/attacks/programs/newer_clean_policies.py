"""Policies as people train and deploy them; nothing in them is wrong."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import integers, normal, uniform
from attacks.registry import clean


def mlp(sizes: list[int], act: type[nn.Module] = nn.ELU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if i < len(sizes) - 2:
            layers.append(act())
    return nn.Sequential(*layers)


@clean("H", passes=3, style="module", rec={"obs": normal(1, 12)}, backends=("jit", "onnx"))
class NcActorCriticRsl(nn.Module):
    """rsl_rl's actor-critic; inference gives the mean and the value."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = mlp([12, 32, 16, 4])
        self.critic = mlp([12, 32, 1])
        self.std = nn.Parameter(torch.ones(4))
        self.eval()

    def act_inference(self, obs: Tensor) -> Tensor:
        return self.actor(obs)

    def evaluate(self, obs: Tensor) -> Tensor:
        return self.critic(obs)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        return self.act_inference(obs), self.evaluate(obs)


class EmpiricalNormalization(nn.Module):
    def __init__(self, shape: int, eps: float = 1e-2) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("_mean", torch.randn(1, shape) * 0.1)
        self.register_buffer("_var", torch.rand(1, shape) + 0.5)
        self.register_buffer("count", torch.tensor(1000, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.update(x)
        return (x - self._mean) / (torch.sqrt(self._var) + self.eps)

    @torch.jit.unused
    def update(self, x: Tensor) -> None:
        self.count += x.shape[0]
        rate = x.shape[0] / self.count
        self._mean += rate * (x.mean(dim=0, keepdim=True) - self._mean)


@clean("H", passes=4, style="module", rec={"obs": normal(2, 8)}, backends="onnx")
class NcEmpiricalNormEval(nn.Module):
    """A running normaliser in eval mode, in front of an actor."""

    def __init__(self) -> None:
        super().__init__()
        self.obs_normalizer = EmpiricalNormalization(8)
        self.actor = mlp([8, 24, 3], nn.Tanh)
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        return self.actor(self.obs_normalizer(obs))


@clean("A", passes=4, rec={"obs": normal(1, 6)}, backends=("jit", "onnx"))
class NcGruHiddenKept:
    """A GRU whose hidden state is kept in self from the constructor on."""

    def __init__(self) -> None:
        self.rnn = nn.GRU(6, 16)
        self.head = nn.Linear(16, 3)
        self.hidden = torch.zeros(1, 1, 16)

    def __call__(self, obs: Tensor) -> Tensor:
        out, self.hidden = self.rnn(obs.unsqueeze(0), self.hidden)
        return self.head(out.squeeze(0))


class Memory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(input_size=5, hidden_size=12, num_layers=2)
        self.hidden_states: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        out, self.hidden_states = self.rnn(x.unsqueeze(0), self.hidden_states)
        return out.squeeze(0)


@clean("A", passes=5, rec={"obs": normal(1, 5)}, backends="jit")
class NcLstmMemoryRsl:
    """rsl_rl's Memory: the state begins as None, which the LSTM takes as zeros."""

    def __init__(self) -> None:
        self.memory_a = Memory().eval()
        self.actor = mlp([12, 16, 2])

    def __call__(self, obs: Tensor) -> Tensor:
        return self.actor(self.memory_a(obs))


@clean("H", passes=3, style="method", rec={"obs": normal(1, 7)}, backends="jit")
class NcSacSquashed:
    """The deterministic action of a SAC actor, scaled from [-1, 1] to the bounds."""

    def __init__(self) -> None:
        self.latent_pi = mlp([7, 32, 32], nn.ReLU)
        self.mu = nn.Linear(32, 3)
        self.log_std = nn.Linear(32, 3)
        self.low = torch.tensor([-1.0, -2.0, 0.0])
        self.high = torch.tensor([1.0, 2.0, 5.0])

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        latent = F.relu(self.latent_pi(obs))
        log_std = self.log_std(latent).clamp(-20.0, 2.0)
        squashed = torch.tanh(self.mu(latent))
        action = self.low + 0.5 * (squashed + 1.0) * (self.high - self.low)
        return action, log_std


@clean("A", passes=4, rec={"obs": normal(1, 6)}, backends="jit")
class NcTransformerOverHistory:
    """A stock TransformerEncoder over a rolled window of observations."""

    def __init__(self) -> None:
        self.embed = nn.Linear(6, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2).eval()
        self.pos = torch.randn(1, 5, 16) * 0.02
        self.head = nn.Linear(16, 4)
        self.window = torch.zeros(1, 5, 6)

    def __call__(self, obs: Tensor) -> Tensor:
        self.window = torch.roll(self.window, -1, dims=1)
        self.window[:, -1] = obs
        tokens = self.encoder(self.embed(self.window) + self.pos)
        return self.head(tokens[:, -1])


class CausalAttention(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.register_buffer(
            "mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        )

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


@clean("H", passes=3, style="module", rec={"tokens": integers(0, 32, 1, 6)}, backends="onnx")
class NcGptPolicy(nn.Module):
    """A minGPT block over discretised observations, with learned positions."""

    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(32, 24)
        self.pos = nn.Parameter(torch.randn(1, 6, 24) * 0.1)
        self.ln1, self.ln2 = nn.LayerNorm(24), nn.LayerNorm(24)
        self.attn = CausalAttention(24, 3, 6)
        self.ff = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24), nn.Dropout(0.1))
        self.head = nn.Linear(24, 5, bias=False)
        self.eval()

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tok(tokens) + self.pos[:, : tokens.size(1)]
        x = x + self.attn(self.ln1(x))
        x = x + self.ff(self.ln2(x))
        return self.head(x)[:, -1]


@clean(
    "H",
    passes=3,
    rec={"image": uniform(0, 1, 1, 3, 32, 32), "proprio": normal(1, 4)},
    fresh={"image": uniform(0, 1, 1, 3, 32, 32)},
    backends="jit",
)
class NcNatureCnn:
    """SB3's CombinedExtractor: a CNN for the image, a flatten for the rest."""

    def __init__(self) -> None:
        self.cnn = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
        )
        with torch.no_grad():
            flat = self.cnn(torch.zeros(1, 3, 32, 32)).shape[1]
        self.linear = nn.Sequential(nn.Linear(flat, 16), nn.ReLU())
        self.extractors = {"image": lambda o: self.linear(self.cnn(o)), "proprio": nn.Flatten()}
        self.action_net = nn.Linear(20, 3)

    def __call__(self, image: Tensor, proprio: Tensor) -> Tensor:
        observations = {"image": image, "proprio": proprio}
        encoded = [extractor(observations[key]) for key, extractor in self.extractors.items()]
        return self.action_net(torch.cat(encoded, dim=1))


@clean("H", passes=3, rec={"cond": normal(1, 6)}, backends="jit")
class NcDdimDenoise:
    """DDIM with a fixed number of steps from a fixed noise."""

    def __init__(self) -> None:
        betas = torch.linspace(1e-4, 0.05, 20)
        self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
        self.timesteps = list(range(19, -1, -5))
        self.net = mlp([8 + 6 + 8, 48, 8], nn.Mish)
        self.noise = torch.randn(1, 8)
        self.freqs = torch.exp(torch.arange(4) * -(math.log(10000.0) / 3))

    def embed(self, t: int) -> Tensor:
        arg = t * self.freqs
        return torch.cat([arg.sin(), arg.cos()]).unsqueeze(0)

    def __call__(self, cond: Tensor) -> Tensor:
        x = self.noise
        for t in self.timesteps:
            prev = t - 5
            eps = self.net(torch.cat([x, cond, self.embed(t)], dim=-1))
            a_t = self.alphas_cumprod[t]
            a_prev = self.alphas_cumprod[prev] if prev >= 0 else torch.tensor(1.0)
            x0 = ((x - (1 - a_t).sqrt() * eps) / a_t.sqrt()).clamp(-1, 1)
            x = a_prev.sqrt() * x0 + (1 - a_prev).sqrt() * eps
        return x.view(1, 4, 2)


@clean("H", passes=3, style="module", rec={"obs": normal(1, 5)}, backends="pt2")
class NcFlowMatchingEuler(nn.Module):
    """A flow policy: ten Euler steps over a learned velocity field."""

    def __init__(self) -> None:
        super().__init__()
        self.velocity = mlp([5 + 6 + 1, 32, 6], nn.SiLU)
        self.register_buffer("x0", torch.randn(1, 6))
        self.steps = 10

    def forward(self, obs: Tensor) -> Tensor:
        x = self.x0.expand(obs.shape[0], -1)
        dt = 1.0 / self.steps
        for i in range(self.steps):
            t = torch.full((obs.shape[0], 1), i * dt, dtype=obs.dtype)
            x = x + dt * self.velocity(torch.cat((obs, x, t), dim=1))
        return x


@clean("A", passes=6, rec={"qpos": normal(1, 4)}, backends="jit")
class NcActTemporalEnsemble:
    """ACT's temporal ensemble: the last chunks, shifted each tick, averaged with fixed weights."""

    def __init__(self) -> None:
        self.chunk = 4
        self.net = mlp([4, 32, 4 * 3], nn.ReLU)
        self.all_chunks = torch.zeros(4, 4, 3)
        weights = torch.exp(-0.1 * torch.arange(4.0))
        self.weights = (weights / weights.sum()).view(4, 1)

    def __call__(self, qpos: Tensor) -> Tensor:
        chunk = self.net(qpos).view(1, self.chunk, 3)
        older = torch.cat([self.all_chunks[:, 1:], torch.zeros(4, 1, 3)], dim=1)
        self.all_chunks = torch.cat([older[1:], chunk], dim=0)
        return (self.all_chunks[:, 0] * self.weights).sum(dim=0, keepdim=True)


@clean(
    "H",
    passes=3,
    style="method",
    rec={"qpos": normal(1, 7), "feature": normal(1, 9, 16)},
    backends="jit",
)
class NcActDetrHead:
    """An ACT decoder: learned queries attend to image features and to the joints."""

    def __init__(self) -> None:
        self.queries = nn.Embedding(6, 16)
        self.proj = nn.Linear(7, 16)
        self.cross = nn.MultiheadAttention(16, 4, batch_first=True).eval()
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 7)

    @torch.no_grad()
    def step(self, qpos: Tensor, feature: Tensor) -> Tensor:
        memory = torch.cat([self.proj(qpos)[:, None], feature], dim=1)
        queries = self.queries.weight[None].expand(qpos.shape[0], -1, -1)
        attended, _ = self.cross(queries, memory, memory, need_weights=False)
        actions = self.head(self.norm(queries + attended))
        return actions


@clean("H", passes=4, rec={"obs": normal(1, 10)}, backends="onnx")
class NcMixtureOfExperts:
    """Experts that are blended by a softmax gate."""

    def __init__(self) -> None:
        self.experts = nn.ModuleList([mlp([10, 16, 4]) for _ in range(3)])
        self.gate = nn.Linear(10, 3)

    def __call__(self, obs: Tensor) -> Tensor:
        weights = F.softmax(self.gate(obs), dim=-1)
        answers = torch.stack([expert(obs) for expert in self.experts], dim=1)
        return torch.einsum("be,bea->ba", weights, answers)


@clean("A", passes=5, rec={"obs": normal(1, 6)}, backends="jit")
class NcRmaAdaptation:
    """RMA's student: a 1-d convolution over the history gives the latent."""

    def __init__(self) -> None:
        self.history = torch.zeros(1, 8, 6)
        self.channel = nn.Linear(6, 8)
        self.conv = nn.Sequential(nn.Conv1d(8, 8, 4, stride=2), nn.LeakyReLU(), nn.Flatten())
        self.latent = nn.Linear(24, 4)
        self.actor = mlp([10, 16, 3])

    def __call__(self, obs: Tensor) -> Tensor:
        z = self.conv(self.channel(self.history).permute(0, 2, 1))
        action = self.actor(torch.cat((obs, torch.tanh(self.latent(z))), dim=-1))
        self.history = torch.cat((self.history[:, 1:], obs.unsqueeze(1)), dim=1)
        return action


@clean("H", passes=3, rec={"obs": normal(2, 6)}, backends="jit")
class NcGmmModePolicy:
    """robomimic's GMM head: the mean of the likeliest mode, gathered."""

    def __init__(self) -> None:
        self.trunk = mlp([6, 24, 24], nn.ReLU)
        self.means, self.logits = nn.Linear(24, 5 * 3), nn.Linear(24, 5)

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        h = F.relu(self.trunk(obs))
        means = torch.tanh(self.means(h).view(-1, 5, 3))
        best = self.logits(h).argmax(dim=-1)
        index = best.view(-1, 1, 1).expand(-1, 1, 3)
        return {"action": means.gather(1, index).squeeze(1), "mode": best}


@clean("A", passes=4, style="module", rec={"embed": normal(1, 8)}, backends="jit")
class NcRssmWorldModel(nn.Module):
    """Dreamer's RSSM with the mode of the categorical latent; the states are buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(12, 16)
        self.posterior = nn.Linear(16 + 8, 12)
        self.actor = nn.Linear(16 + 12, 2)
        self.register_buffer("deter", torch.zeros(1, 16))
        self.register_buffer("stoch", torch.zeros(1, 12))

    def forward(self, embed: Tensor) -> Tensor:
        self.deter = self.cell(self.stoch, self.deter)
        logits = self.posterior(torch.cat([self.deter, embed], -1)).view(-1, 3, 4)
        self.stoch = F.one_hot(logits.argmax(-1), 4).float().flatten(1)
        return torch.tanh(self.actor(torch.cat([self.deter, self.stoch], -1)))


@clean("A", passes=5, rec={"u": normal(1, 4)}, backends="onnx")
class NcDiagonalSsm:
    """A diagonal state space layer (S4D, real) stepped once per tick."""

    def __init__(self) -> None:
        self.log_dt = torch.rand(4, 1) * 0.5 - 2.0
        self.a = -torch.arange(1.0, 9.0).expand(4, 8) * 0.5
        self.b, self.c = torch.randn(4, 8), torch.randn(4, 8)
        self.d = torch.randn(4)
        self.state = torch.zeros(1, 4, 8)

    def __call__(self, u: Tensor) -> Tensor:
        dt = self.log_dt.exp()
        a_bar = torch.exp(dt * self.a)
        b_bar = (a_bar - 1) / self.a * self.b
        self.state = a_bar * self.state + b_bar * u.unsqueeze(-1)
        return F.gelu((self.state * self.c).sum(-1) + self.d * u)


@clean("H", passes=3, style="method", rec={"obs": normal(3, 8)}, backends=("jit", "onnx"))
def NcDuelingQ():
    """A dueling Q network that gives the greedy action, as an integer."""
    trunk = mlp([8, 32, 32], nn.ReLU)
    advantage, value = nn.Linear(32, 6), nn.Linear(32, 1)

    def act(obs: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.relu(trunk(obs))
        adv = advantage(h)
        q_values = value(h) + adv - adv.mean(dim=1, keepdim=True)
        action = q_values.argmax(dim=1)
        return action, q_values

    return act


@clean(
    "H", passes=3, style="module", rec={"obs": normal(1, 9), "goal": normal(1, 3)}, backends="pt2"
)
class NcFilmGoal(nn.Module):
    """Residual blocks that a goal modulates by FiLM."""

    def __init__(self) -> None:
        super().__init__()
        self.inp = nn.Linear(9, 16)
        self.film = nn.ModuleList([nn.Linear(3, 32) for _ in range(2)])
        self.blocks = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])
        self.out = nn.Linear(16, 4)

    def forward(self, obs: Tensor, goal: Tensor) -> Tensor:
        h = self.inp(obs)
        for film, block in zip(self.film, self.blocks):
            gamma, beta = film(goal).chunk(2, dim=-1)
            h = h + F.silu((1 + gamma) * block(F.layer_norm(h, (16,))) + beta)
        return self.out(h)


@clean("A", passes=4, rec={"obs": normal(1, 5)}, backends="jit", context="inference")
class NcLayerNormLstmCell:
    """A hand-written LSTM cell with layer norm; states are copied in place."""

    def __init__(self) -> None:
        self.gates = nn.Linear(5 + 8, 32)
        self.norm_g, self.norm_c = nn.LayerNorm(32), nn.LayerNorm(8)
        self.h, self.c = torch.zeros(1, 8), torch.zeros(1, 8)
        self.mean = nn.Linear(8, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        i, f, g, o = self.norm_g(self.gates(torch.cat([obs, self.h], 1))).chunk(4, 1)
        self.c.copy_(torch.sigmoid(f + 1.0) * self.c + torch.sigmoid(i) * torch.tanh(g))
        self.h.copy_(torch.sigmoid(o) * torch.tanh(self.norm_c(self.c)))
        return self.mean(self.h)


@clean("H", passes=3, rec={"obs": normal(4, 6)}, backends="jit", context="grad")
class NcEnsembleUncertainty:
    """An ensemble of critics by vmap-free batched matmul; mean and spread, autograd left on."""

    def __init__(self) -> None:
        self.w1 = nn.Parameter(torch.randn(5, 6, 16) / 6**0.5)
        self.b1 = nn.Parameter(torch.zeros(5, 1, 16))
        self.w2 = nn.Parameter(torch.randn(5, 16, 1) / 4)

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        h = torch.relu(torch.baddbmm(self.b1, obs.expand(5, -1, -1), self.w1))
        q = torch.bmm(h, self.w2).squeeze(-1)
        return {"mean": q.mean(0), "pessimistic": q.min(dim=0).values, "std": q.std(dim=0)}
