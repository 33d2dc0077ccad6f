"""robomimic: policies at roll-out, re-stated: encoders, BC, BC-RNN, transformers, a hierarchy."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from attacks.draws import integers, normal, uniform
from torch import Tensor, distributions, nn
from veracity import annotate

from zoo.families.vision import lively
from zoo.register import policy

#: Names and sizes of what is seen besides pictures, in the order of their configuration.
LOW_DIM = OrderedDict(eef_pos=3, eef_quat=4, gripper_qpos=2)
_LOW_DIM_INPUTS = {key: normal(1, size) for key, size in LOW_DIM.items()}


def mlp(*sizes: int, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(sizes[:-1]):
        layers += [nn.Linear(fan_in, fan_out), act()]
    return nn.Sequential(*layers, nn.Linear(*sizes[-2:]))


class CropRandomizer(nn.Module):
    """Crops by chance in training, and the middle otherwise."""

    def __init__(self, height: int, width: int, crops: int = 1) -> None:
        super().__init__()
        self.height, self.width, self.crops = height, width, crops

    def forward_in(self, x: Tensor) -> Tensor:
        if self.training:
            raise NotImplementedError
        top, left = (x.shape[-2] - self.height) // 2, (x.shape[-1] - self.width) // 2
        x = x[..., top : top + self.height, left : left + self.width]
        if self.crops > 1:
            x = x.unsqueeze(1).expand(-1, self.crops, -1, -1, -1).flatten(0, 1)
        return x

    def forward_out(self, x: Tensor) -> Tensor:
        return x.view(-1, self.crops, *x.shape[1:]).mean(dim=1)


class SpatialSoftmax(nn.Module):
    """Expected places of features, with a temperature and the places' spread if wanted."""

    def __init__(self, shape: tuple[int, int, int], points: int, spread: bool = False) -> None:
        super().__init__()
        channels, self.height, self.width = shape
        self.nets = nn.Conv2d(channels, points, 1)
        self.spread, self.points = spread, points
        self.register_buffer("temperature", torch.ones(1) * 0.7)
        x, y = np.meshgrid(np.linspace(-1, 1, self.width), np.linspace(-1, 1, self.height))
        grids = {"pos_x": x, "pos_y": y}
        for name, grid in grids.items():
            self.register_buffer(name, torch.from_numpy(grid.reshape(1, -1)).float())
        self.kps: Tensor | None = None

    def forward(self, feature: Tensor) -> Tensor:
        assert feature.shape[2] == self.height and feature.shape[3] == self.width
        feature = self.nets(feature).reshape(-1, self.height * self.width)
        attention = F.softmax(feature / self.temperature, dim=-1)
        x = torch.sum(self.pos_x * attention, dim=1, keepdim=True)
        y = torch.sum(self.pos_y * attention, dim=1, keepdim=True)
        points = torch.cat([x, y], 1).view(-1, self.points, 2)
        if self.spread:
            xx = torch.sum(self.pos_x * self.pos_x * attention, dim=1, keepdim=True) - x * x
            yy = torch.sum(self.pos_y * self.pos_y * attention, dim=1, keepdim=True) - y * y
            points = torch.cat([points, torch.cat([xx, yy], 1).view(-1, self.points, 2)], -1)
        self.kps = points.detach()
        return points


class VisualCore(nn.Module):
    """A small ResNet, keypoints, a linear layer."""

    def __init__(self, size: int, out: int, spread: bool = False) -> None:
        super().__init__()
        from torchvision.models.resnet import BasicBlock

        skip = nn.Sequential(nn.Conv2d(16, 24, 1, 2, bias=False), nn.BatchNorm2d(24))
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 7, 2, 3, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            BasicBlock(16, 24, 2, skip),
        )
        self.pool = SpatialSoftmax((24, size // 4, size // 4), 8, spread)
        self.projection = nn.Sequential(nn.Flatten(1), nn.Linear(8 * (4 if spread else 2), out))

    def forward(self, image: Tensor) -> Tensor:
        return self.projection(self.pool(self.backbone(image)))


class ObservationEncoder(nn.Module):
    """What every key of the observation gives, one after the other."""

    def __init__(self, cameras: tuple[str, ...] = (), crops: int = 1) -> None:
        super().__init__()
        self.obs_nets = nn.ModuleDict({name: VisualCore(24, 16) for name in cameras})
        self.randomizers = nn.ModuleDict({n: CropRandomizer(24, 24, crops) for n in cameras})
        self.output_dim = 16 * len(cameras) + sum(LOW_DIM.values())

    def forward(self, obs_dict: dict[str, Tensor]) -> Tensor:
        feats = []
        for key in (*self.obs_nets, *LOW_DIM):
            assert key in obs_dict, key
            x = obs_dict[key]
            if key in self.obs_nets:
                x = self.obs_nets[key](self.randomizers[key].forward_in(x))
                x = F.relu(self.randomizers[key].forward_out(x))
            feats.append(torch.flatten(x, start_dim=1))
        return torch.cat(feats, dim=-1)


def process_frame(frame: Tensor) -> Tensor:
    """From a camera's bytes to channels first, in 0 to 1."""
    return (frame.float() / 255.0).permute(0, 3, 1, 2).clip(0.0, 1.0)


@policy("robomimic", inputs=_LOW_DIM_INPUTS, style="method", name="robomimic_bc")
class BC:
    """Observations are normalised by key; actions are squashed and scaled back."""

    def __init__(self) -> None:
        self.encoder = ObservationEncoder()
        self.net = lively(mlp(9, 48, 48, 7), 1.4)
        self.obs_stats = {
            key: {
                "offset": np.linspace(-0.3, 0.3, size, dtype=np.float32)[None],
                "scale": np.linspace(0.5, 1.5, size, dtype=np.float32)[None],
            }
            for key, size in LOW_DIM.items()
        }
        self.action_stats = {
            "offset": torch.tensor([[0.1, 0.0, -0.1, 0.0, 0.0, 0.2, 0.0]]),
            "scale": torch.tensor([[0.5, 0.5, 0.4, 1.0, 1.0, 1.5, 1.0]]),
        }

    def normalise(self, obs: dict[str, Tensor]) -> dict[str, Tensor]:
        out = {}
        for key, value in obs.items():
            stats = self.obs_stats[key]
            offset, scale = (torch.from_numpy(stats[name]) for name in ("offset", "scale"))
            out[key] = (value - offset) / scale
        return out

    def step(self, eef_pos: Tensor, eef_quat: Tensor, gripper_qpos: Tensor) -> Tensor:
        obs = {"eef_pos": eef_pos, "eef_quat": eef_quat, "gripper_qpos": gripper_qpos}
        latent = self.encoder(self.normalise(obs))
        action = torch.tanh(self.net(latent))
        ac = action * self.action_stats["scale"] + self.action_stats["offset"]
        return ac


@policy(
    "robomimic",
    inputs={"agentview": integers(0, 256, 1, 28, 28, 3, dtype=torch.uint8), **_LOW_DIM_INPUTS},
    needs=("torchvision",),
    passes=6,
    name="robomimic_bc_rnn_gmm",
)
class RnnGmm:
    """BC-RNN with a mixture: LSTM over pictures and more; the mode's mean is carried out.

    The hidden state starts anew when the horizon is reached, by a counter in a tensor.
    """

    def __init__(self, modes: int = 5, horizon: int = 10) -> None:
        self.encoder = lively(ObservationEncoder(("agentview",), crops=2))
        self.rnn = nn.LSTM(self.encoder.output_dim, 32, num_layers=2, batch_first=True).eval()
        self.mean, self.scale = nn.Linear(32, modes * 7), nn.Linear(32, modes * 7)
        self.logits = lively(nn.Linear(32, modes), 2.0)
        self.modes, self.horizon = modes, horizon
        self.state = (torch.zeros(2, 1, 32), torch.zeros(2, 1, 32))
        self.counter = torch.zeros((), dtype=torch.long)

    def distribution(self, features: Tensor) -> distributions.MixtureSameFamily:
        means = torch.tanh(self.mean(features).view(-1, self.modes, 7))
        scales = F.softplus(self.scale(features).view(-1, self.modes, 7)) + 1e-4
        component = distributions.Independent(distributions.Normal(means, scales), 1)
        mixture = distributions.Categorical(logits=self.logits(features))
        return distributions.MixtureSameFamily(mixture, component)

    def __call__(
        self, agentview: Tensor, eef_pos: Tensor, eef_quat: Tensor, gripper_qpos: Tensor
    ) -> dict[str, Tensor]:
        obs = {"agentview": process_frame(agentview), "eef_pos": eef_pos}
        obs |= {"eef_quat": eef_quat, "gripper_qpos": gripper_qpos}
        keep = (self.counter % self.horizon != 0).float()
        state = (self.state[0] * keep, self.state[1] * keep)
        features, self.state = self.rnn(self.encoder(obs).unsqueeze(1), state)
        self.counter = self.counter + 1
        dist = self.distribution(features[:, 0])
        mode = dist.mixture_distribution.logits.argmax(-1)
        action = dist.component_distribution.base_dist.loc[torch.arange(1), mode]
        return {"action": action, "mean": dist.mean}


@policy("robomimic", inputs=_LOW_DIM_INPUTS, passes=6, name="robomimic_bc_rnn")
class Rnn:
    """BC-RNN with GRU as it rolls out when its horizon is as long as the episode."""

    def __init__(self) -> None:
        self.encoder = ObservationEncoder()
        self.rnn = nn.GRU(9, 24, 2, batch_first=True, dropout=0.1).eval()
        self.decoder = lively(nn.Linear(24, 7), 2.0)
        self.reset()

    def reset(self) -> None:
        self._rnn_hidden_state = torch.zeros(2, 1, 24)
        self._open_loop_obs = None

    def __call__(self, eef_pos: Tensor, eef_quat: Tensor, gripper_qpos: Tensor) -> Tensor:
        obs = {"eef_pos": eef_pos, "eef_quat": eef_quat, "gripper_qpos": gripper_qpos}
        x = self.encoder(obs)[:, None]
        outputs, self._rnn_hidden_state = self.rnn(x, self._rnn_hidden_state)
        return torch.tanh(self.decoder(outputs))[:, 0]


@policy(
    "robomimic",
    inputs={"image": integers(0, 256, 1, 32, 32, 3, dtype=torch.uint8)},
    needs=("torchvision",),
)
def robomimic_visual_core():
    """Keypoints with their spread of the cropped middle."""
    crop, core = CropRandomizer(28, 28), lively(VisualCore(28, 12, spread=True))
    crop.eval()

    def step(image: Tensor) -> tuple[Tensor, Tensor]:
        out = core(crop.forward_in(process_frame(image)))
        return out, core.pool.kps.flatten(1)

    return step


class CausalSelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.nets = nn.ModuleDict(
            {
                "qkv": nn.Linear(dim, 3 * dim, bias=False),
                "attn_dropout": nn.Dropout(0.1),
                "output": nn.Sequential(nn.Linear(dim, dim), nn.Dropout(0.1)),
            }
        )
        mask = torch.tril(torch.ones(context, context)).view(1, 1, context, context)
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, dim = x.size()
        q, k, v = torch.chunk(self.nets["qkv"](x), 3, dim=-1)
        q, k, v = (
            one.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
            for one in (q, k, v)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / (dim // self.heads) ** 0.5)
        att = att.masked_fill(self.mask[..., :length, :length] == 0, float("-inf"))
        att = self.nets["attn_dropout"](F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(batch, length, dim)
        return self.nets["output"](y)


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, context: int) -> None:
        super().__init__()
        self.attention = CausalSelfAttention(dim, heads, context)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


@policy("robomimic", inputs=_LOW_DIM_INPUTS, passes=8, name="robomimic_bc_transformer")
class TransformerPolicy:
    """BC-Transformer behind the wrapper that stacks the last observations in queues."""

    def __init__(self, context: int = 5, dim: int = 32) -> None:
        self.context = context
        self.encoder, self.embed = ObservationEncoder(), nn.Linear(9, dim)
        self.time = nn.Embedding(context, dim)
        self.blocks = nn.Sequential(*(Block(dim, 4, context) for _ in range(2)))
        self.norm, self.decoder = nn.LayerNorm(dim), nn.Linear(dim, 7)
        lively(self.blocks)
        self.obs_history = {
            key: deque([torch.zeros(1, 1, size)] * context, maxlen=context)
            for key, size in LOW_DIM.items()
        }

    def __call__(self, eef_pos: Tensor, eef_quat: Tensor, gripper_qpos: Tensor) -> Tensor:
        for key, value in zip(LOW_DIM, (eef_pos, eef_quat, gripper_qpos), strict=True):
            self.obs_history[key].append(value[:, None])
        stacked = {key: torch.cat(list(past), dim=1) for key, past in self.obs_history.items()}
        flat = {key: value.flatten(0, 1) for key, value in stacked.items()}
        x = self.embed(self.encoder(flat)).view(1, self.context, -1)
        timesteps = torch.arange(0, self.context, dtype=x.dtype)[None].long()
        x = self.norm(self.blocks(x + self.time(timesteps)))
        return torch.tanh(self.decoder(x))[:, -1]


@policy("robomimic", inputs={"latent": normal(2, 16)}, name="robomimic_rotations")
class Rotations:
    """Actions whose rotation has six numbers: scaled back, then turned into axis and angle."""

    def __init__(self) -> None:
        self.net = lively(mlp(16, 32, 10), 1.5)
        self.low, self.high = np.full((1, 10), -0.8, np.float32), np.ones((1, 10), np.float32)

    def matrix(self, six: Tensor) -> Tensor:
        a, b = six[..., :3], six[..., 3:]
        first = F.normalize(a, dim=-1)
        second = F.normalize(b - (first * b).sum(-1, keepdim=True) * first, dim=-1)
        return torch.stack((first, second, torch.cross(first, second, dim=-1)), dim=-2)

    def quaternion(self, m: Tensor) -> Tensor:
        m00, m11, m22 = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
        signs = torch.tensor([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
        size = (1.0 + torch.stack([m00, m11, m22], -1) @ signs.T).clamp(min=0).sqrt()
        d, e, f = m[..., 2, 1], m[..., 0, 2], m[..., 1, 0]
        g, h, i = m[..., 1, 2], m[..., 2, 0], m[..., 0, 1]
        rows = [
            torch.stack([size[..., 0] ** 2, d - g, e - h, f - i], -1),
            torch.stack([d - g, size[..., 1] ** 2, f + i, e + h], -1),
            torch.stack([e - h, f + i, size[..., 2] ** 2, d + g], -1),
            torch.stack([f - i, e + h, d + g, size[..., 3] ** 2], -1),
        ]
        candidates = torch.stack(rows, -2) / (2.0 * size[..., None].clamp(min=0.1))
        best = F.one_hot(size.argmax(dim=-1), num_classes=4) > 0.5
        return candidates[best, :].reshape(*m.shape[:-2], 4)

    def axis_angle(self, quaternion: Tensor) -> Tensor:
        quaternion = torch.where(quaternion[..., :1] < 0, -quaternion, quaternion)
        norms = torch.norm(quaternion[..., 1:], p=2, dim=-1, keepdim=True)
        half = torch.atan2(norms, quaternion[..., :1])
        small = half.abs() < 1e-6
        ratio = torch.where(small, 0.5 - half**2 / 12, torch.sin(half) / (2 * half))
        return quaternion[..., 1:] / ratio

    def __call__(self, latent: Tensor) -> dict[str, Tensor]:
        action = torch.tanh(self.net(latent))
        low, high = torch.from_numpy(self.low), torch.from_numpy(self.high)
        action = (action + 1) / 2 * (high - low) + low
        rotation = self.matrix(action[..., 3:9])
        turned = self.axis_angle(self.quaternion(rotation))
        return {"action": torch.cat([action[:, :3], turned, action[:, 9:]], -1), "matrix": rotation}


@policy(
    "robomimic",
    inputs={"planner/obs": normal(1, 9), "actor/obs": normal(1, 9)},
    style="own",
    passes=6,
    name="robomimic_hierarchy",
)
class Hierarchy:
    """A planner gives a goal, renewed every few ticks; an actor with memory reaches for it."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.planner = lively(mlp(9, 32, 6), 1.4)
        self.actor, self.head = nn.LSTMCell(15, 24), lively(nn.Linear(24, 4), 2.0)
        self.goal, self.age = torch.zeros(1, 6), torch.zeros(1, 1, dtype=torch.int32)
        self.hidden = (torch.zeros(1, 24), torch.zeros(1, 24))

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("planner", {"obs": given["planner/obs"]})
        fresh = self.planner(obs)
        self.goal = torch.where(self.age % 3 == 0, fresh, self.goal)
        self.age = self.age + 1
        annotate.output_tensors("planner", {"goal": self.goal}, export_with=self.backend)
        obs, goal = annotate.input_tensors("actor", {"obs": given["actor/obs"], "goal": self.goal})
        self.hidden = self.actor(torch.cat([obs, goal], -1), self.hidden)
        action = torch.tanh(self.head(self.hidden[0]))
        annotate.output_tensors("actor", {"action": action}, export_with=self.backend)
        return {"actor/action": action}


@policy(
    "robomimic", inputs={"obs": normal(1, 9), "noise": uniform(-1, 1, 10, 4)}, name="robomimic_bcq"
)
class Bcq:
    """BCQ: some actions are proposed and shifted a little; the one with the best value is taken."""

    def __init__(self) -> None:
        self.proposals = lively(mlp(13, 32, 4), 1.5)
        self.perturbation = lively(mlp(13, 32, 4))
        self.critics = nn.ModuleList(lively(mlp(13, 32, 1), 1.5) for _ in range(2))

    def __call__(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        many = obs.repeat_interleave(noise.shape[0], dim=0)
        actions = torch.tanh(self.proposals(torch.cat([many, noise], -1)))
        shift = 0.05 * torch.tanh(self.perturbation(torch.cat([many, actions], -1)))
        actions = (actions + shift).clamp(-1.0, 1.0)
        values = torch.cat([critic(torch.cat([many, actions], -1)) for critic in self.critics], 1)
        value = values.min(dim=1)[0]
        best = torch.argmax(value)
        return actions[best].unsqueeze(0), value
