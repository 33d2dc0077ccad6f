"""Imitation learning: robomimic, LeRobot (ACT, diffusion, VQ), in miniature."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, integers, normal, uniform
from attacks.registry import ALL, clean


def sinusoidal_table(n: int, dim: int) -> Tensor:
    """ACT's create_sinusoidal_pos_embedding, with NumPy."""

    def angle(position: int) -> list[float]:
        return [position / np.power(10000, 2 * (j // 2) / dim) for j in range(dim)]

    table = np.array([angle(i) for i in range(n)])
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    return torch.from_numpy(table).float()


@dataclass(frozen=True)
class ACTConfig:
    chunk_size: int = 6
    dim_model: int = 16
    n_heads: int = 4
    latent_dim: int = 4
    action_dim: int = 3
    use_vae: bool = True


@clean(
    "H",
    style="module",
    rec={"state": normal(1, 5), "env": normal(1, 4)},
    backends=("jit", "onnx"),
    passes=3,
)
class CcActChunk(nn.Module):
    """ACT at inference: a zero latent, an encoder, a decoder of learned queries, a chunk out."""

    def __init__(self) -> None:
        super().__init__()
        self.cfg = cfg = ACTConfig()
        d = cfg.dim_model
        self.state_proj, self.env_proj, self.latent_proj = (
            nn.Linear(5, d),
            nn.Linear(4, d),
            nn.Linear(cfg.latent_dim, d),
        )
        self.encoder = nn.TransformerEncoderLayer(d, cfg.n_heads, 32, dropout=0.1)
        self.decoder = nn.TransformerDecoderLayer(d, cfg.n_heads, 32, dropout=0.1)
        self.decoder_pos_embed = nn.Embedding(cfg.chunk_size, d)
        self.register_buffer("pos", sinusoidal_table(3, d).unsqueeze(1))
        self.action_head = nn.Linear(d, cfg.action_dim)
        self.eval()

    def forward(self, state: Tensor, env: Tensor) -> Tensor:
        batch_size = state.shape[0]
        if self.cfg.use_vae and self.training:
            raise NotImplementedError("training needs actions")
        latent = torch.zeros([batch_size, self.cfg.latent_dim], dtype=torch.float32).to(
            state.device
        )
        tokens = [self.latent_proj(latent), self.state_proj(state), self.env_proj(env)]
        memory = self.encoder(torch.stack(tokens, dim=0) + self.pos)
        queries = torch.zeros(
            (self.cfg.chunk_size, batch_size, self.cfg.dim_model), dtype=memory.dtype
        )
        out = self.decoder(queries + self.decoder_pos_embed.weight.unsqueeze(1), memory)
        return self.action_head(out.transpose(0, 1))


@clean("H", rec={"state": normal(1, 4)}, backends="jit", passes=4)
class CcActTemporalWeights(nn.Module):
    """A chunk, averaged over its time with ACT's fixed exponential weights."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 5 * 2)
        self.weights = torch.exp(-0.01 * torch.arange(5))
        self.cumsum = torch.cumsum(self.weights, dim=0)

    def forward(self, state: Tensor) -> Tensor:
        chunk = self.net(state).view(-1, 5, 2)
        return (chunk * self.weights[None, :, None]).sum(1) / self.cumsum[-1]


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        half = self.dim // 2
        emb = math.log(10000) / (half - 1)
        emb = torch.exp(torch.arange(half, device=x.device) * -emb)
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


@clean("H", rec={"obs": normal(1, 4)}, backends=("jit", "pt2"), passes=3)
class CcDdimPolicy(nn.Module):
    """A diffusion policy with DDIM steps unrolled, from zeros, without noise."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(SinusoidalPosEmb(8), nn.Linear(8, 8), nn.Mish())
        self.eps = nn.Sequential(nn.Linear(4 + 8 + 4, 32), nn.Mish(), nn.Linear(32, 4))
        betas = torch.linspace(1e-4, 0.02, 20)
        self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
        self.timesteps = list(range(19, -1, -5))

    def forward(self, obs: Tensor) -> Tensor:
        sample = torch.zeros(obs.shape[0], 4)
        for i, t in enumerate(self.timesteps):
            prev = self.timesteps[i + 1] if i + 1 < len(self.timesteps) else 0
            emb = self.time(torch.full((obs.shape[0],), float(t)))
            eps = self.eps(torch.cat([sample, emb, obs], dim=-1))
            at, ap = self.alphas_cumprod[t], self.alphas_cumprod[prev]
            x0 = ((sample - (1 - at).sqrt() * eps) / at.sqrt()).clamp(-1, 1)
            sample = ap.sqrt() * x0 + (1 - ap).sqrt() * eps
        return sample.view(-1, 2, 2)


@clean("H", rec={"obs": normal(1, 4), "start": normal(1, 6)}, backends="onnx", passes=3)
class CcFlowMatching(nn.Module):
    """pi0-like flow matching: Euler steps over a while loop in a Python float."""

    def __init__(self) -> None:
        super().__init__()
        self.velocity = nn.Sequential(nn.Linear(4 + 6 + 1, 24), nn.SiLU(), nn.Linear(24, 6))
        self.num_steps = 4

    def forward(self, obs: Tensor, start: Tensor) -> Tensor:
        dt = -1.0 / self.num_steps
        x_t, time = start, 1.0
        while time >= -dt / 2:
            t = torch.full((obs.shape[0], 1), time)
            x_t = x_t + dt * self.velocity(torch.cat([obs, x_t, t], dim=-1))
            time += dt
        return x_t.unflatten(-1, (3, 2))


@clean("H", style="module", rec={"z": normal(2, 4)}, backends=ALL, passes=4)
class CcVectorQuantize(nn.Module):
    """VQ: nearest code by expanded distances, the lookup by a product with one-hot."""

    def __init__(self) -> None:
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(8, 4))
        self.decoder = nn.Linear(4, 3)

    def forward(self, z: Tensor) -> dict:
        dist = (
            z.pow(2).sum(1, keepdim=True) - 2 * z @ self.codebook.t() + self.codebook.pow(2).sum(1)
        )
        idx = dist.argmin(dim=-1)
        onehot = F.one_hot(idx, num_classes=8).type(z.dtype)
        quantized = onehot @ self.codebook
        quantized = z + (quantized - z).detach()
        return {"code": idx, "action": self.decoder(quantized)}


@clean("H", rec={"z": normal(1, 6)}, backends="jit", passes=4)
class CcResidualVq(nn.Module):
    """Residual VQ: three codebooks, each for what the last one left over."""

    def __init__(self) -> None:
        super().__init__()
        self.codebooks = nn.ParameterList(
            nn.Parameter(torch.randn(5, 6) / (i + 1)) for i in range(3)
        )

    def forward(self, z: Tensor) -> dict:
        residual, total, indices = z, torch.zeros_like(z), []
        for book in self.codebooks:
            idx = torch.cdist(residual, book, compute_mode="donot_use_mm_for_euclid_dist").argmin(
                -1
            )
            picked = F.embedding(idx, book)
            total, residual = total + picked, residual - picked
            indices.append(idx)
        return {"quantized": total, "indices": torch.stack(indices, -1)}


@clean("H", rec={"z": normal(1, 3)}, backends="jit", passes=3)
class CcFiniteScalar:
    """FSQ: bounded, rounded with a straight-through estimate, and an index by a basis."""

    def __init__(self) -> None:
        self._levels = torch.tensor([7, 5, 5], dtype=torch.int32)
        self._basis = torch.cumprod(torch.tensor([1] + self._levels.tolist()[:-1]), dim=0)

    def __call__(self, z: Tensor) -> dict:
        half_l = (self._levels - 1) * (1 - 1e-3) / 2
        bounded = torch.tanh(z) * half_l
        quantized = bounded + (bounded.round() - bounded).detach()
        half_width = self._levels // 2
        codes = quantized / half_width
        index = ((codes * half_width + half_width).round() * self._basis).sum(-1).to(torch.int64)
        return {"codes": codes, "index": index}


@clean(
    "H",
    rec={"eef": normal(1, 3), "quat": normal(1, 4), "grip": normal(1, 2)},
    backends="jit",
    passes=4,
)
class CcRobomimicObsEncoder(nn.Module):
    """robomimic's ObservationGroupEncoder: an OrderedDict of modalities, each with its own net."""

    def __init__(self) -> None:
        super().__init__()
        self.obs_shapes = OrderedDict(eef=(3,), quat=(4,), grip=(2,))
        self.obs_nets = nn.ModuleDict()
        for k, shape in self.obs_shapes.items():
            self.obs_nets[k] = (
                nn.Sequential(nn.Linear(shape[0], 6), nn.ReLU()) if k != "quat" else nn.Identity()
            )
        self.mlp = nn.Linear(6 + 4 + 6, 5)

    def encode(self, obs_dict: dict[str, Tensor]) -> Tensor:
        assert set(self.obs_shapes) <= set(obs_dict), (
            f"missing {set(self.obs_shapes) - set(obs_dict)}"
        )
        feats = []
        for k in self.obs_shapes:
            x = self.obs_nets[k](obs_dict[k])
            feats.append(torch.flatten(x, start_dim=1))
        return torch.cat(feats, dim=-1)

    def forward(self, eef: Tensor, quat: Tensor, grip: Tensor) -> Tensor:
        return torch.tanh(self.mlp(self.encode({"grip": grip, "quat": quat, "eef": eef})))


@clean("H", rec={"obs": normal(1, 5)}, backends="jit", passes=4)
class CcGmmActor(nn.Module):
    """robomimic's GMM head in low-noise evaluation: the mean of the likeliest mode."""

    def __init__(self) -> None:
        super().__init__()
        self.num_modes, self.ac_dim = 3, 2
        self.means, self.logits = nn.Linear(5, 6), nn.Linear(5, 3)

    def forward(self, obs: Tensor) -> dict:
        means = torch.tanh(self.means(obs)).view(-1, self.num_modes, self.ac_dim)
        logits = self.logits(obs)
        best = logits.argmax(-1)
        picked = torch.take_along_dim(means, best.view(-1, 1, 1), dim=1).squeeze(1)
        mixture = (logits.softmax(-1).unsqueeze(-1) * means).sum(1)
        return {"best": picked, "mixture": mixture}


@clean("H", rec={"obs": normal(1, 4)}, backends=("jit", "onnx"), passes=5)
class CcObservationQueue(nn.Module):
    """LeRobot's observation queue: a deque of fixed length, filled with zeros at reset."""

    def __init__(self) -> None:
        super().__init__()
        self.n_obs_steps = 3
        self.net = nn.Linear(12, 4)
        self._queues: dict[str, deque] = {}
        self.reset()

    def reset(self) -> None:
        zeros = [torch.zeros(1, 4) for _ in range(self.n_obs_steps)]
        self._queues = {"observation.state": deque(zeros, maxlen=self.n_obs_steps)}

    def forward(self, obs: Tensor) -> Tensor:
        self._queues["observation.state"].append(obs)
        stacked = torch.stack(list(self._queues["observation.state"]), dim=1)
        return self.net(stacked.flatten(1))


@clean("H", rec={"state": normal(1, 4)}, backends="pt2", passes=3)
class CcLeRobotNormalize(nn.Module):
    """LeRobot's Normalize and Unnormalize modules with stats in parameter dicts."""

    def __init__(self) -> None:
        super().__init__()
        stats = {
            "state": {"min": [-1.0, -2, -3, -4], "max": [1.0, 2, 3, 4]},
            "action": {"mean": [0.1, 0.2], "std": [2.0, 3.0]},
        }
        for key, entry in stats.items():
            buffer = nn.ParameterDict(
                {k: nn.Parameter(torch.tensor(v), requires_grad=False) for k, v in entry.items()}
            )
            setattr(self, "buffer_" + key.replace(".", "_"), buffer)
        self.net = nn.Linear(4, 2)

    def normalize(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        batch = dict(batch)
        buffer = self.buffer_state
        lo, hi = buffer["min"], buffer["max"]
        assert not torch.isinf(lo).any(), "stats are missing"
        batch["state"] = (batch["state"] - lo) / (hi - lo + 1e-8) * 2 - 1
        return batch

    def forward(self, state: Tensor) -> Tensor:
        action = self.net(self.normalize({"state": state})["state"])
        return action * self.buffer_action["std"] + self.buffer_action["mean"]


@clean(
    "H",
    rec={"image": integers(0, 256, 12, 12, 3, dtype=torch.uint8), "pos": normal(3)},
    backends="jit",
    passes=3,
)
class CcVisionPolicy(nn.Module):
    """A small visuomotor policy: image to float, spatial softmax keypoints, joined with the state."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.GroupNorm(2, 4), nn.ReLU()
        )
        xs, ys = np.meshgrid(np.linspace(-1.0, 1.0, 6), np.linspace(-1.0, 1.0, 6))
        grid = torch.from_numpy(np.stack([xs.reshape(-1), ys.reshape(-1)], -1)).float()
        self.register_buffer("pos_grid", grid)
        self.head = nn.Linear(8 + 3, 2)

    def forward(self, image: Tensor, pos: Tensor) -> Tensor:
        x = image.permute(2, 0, 1).unsqueeze(0).to(torch.float32).div(255)
        feats = self.conv(x).reshape(-1, 36)
        keypoints = (F.softmax(feats, dim=-1) @ self.pos_grid).view(-1, 8)
        return self.head(torch.cat([keypoints, pos[None]], dim=1)).squeeze(0)


@clean("H", rec={"latent": normal(1, 8, 4)}, backends=("onnx", "jit"), passes=3)
class CcConditionalUnet1d(nn.Module):
    """One down and one up stage of the diffusion policy's 1-D U-Net with a skip."""

    def __init__(self) -> None:
        super().__init__()

        def block(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv1d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.Mish())

        self.enter, self.down, self.mid = block(8, 8), nn.Conv1d(8, 8, 3, 2, 1), block(8, 8)
        self.up, self.leave = nn.ConvTranspose1d(8, 8, 4, 2, 1), block(16, 8)

    def forward(self, latent: Tensor) -> Tensor:
        skips = []
        x = self.enter(latent)
        skips.append(x)
        x = self.up(self.mid(self.down(x)))
        x = torch.cat((x, skips.pop()), dim=1)
        return self.leave(x).transpose(1, 2)


@clean("H", rec={"obs": array(uniform(-1.0, 1.0, 6))}, backends="jit", style="method", passes=4)
class CcBinarizeGripper:
    """Post-processing in NumPy: rotations clipped, the gripper squashed, put together again."""

    def __init__(self) -> None:
        self.net = nn.Linear(6, 7)
        self.action_scale = np.array([0.05] * 3 + [0.1] * 3, dtype=np.float32)

    def step(self, obs: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            raw = self.net(torch.from_numpy(obs)[None])[0].numpy()
        motion = np.clip(raw[:6], -1.0, 1.0) * self.action_scale
        gripper = np.tanh(3.0 * raw[6:])
        action = np.concatenate([motion, gripper]).astype(np.float32)
        return action
