"""act: action chunking with transformers, how its chunks are used, and what stands around it."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from attacks.draws import by_tick, integers, normal, uniform
from torch import Tensor, nn

from zoo.families.vision import lively
from zoo.register import policy

_TORCHVISION = ("torchvision",)


class SinePositions2d(nn.Module):
    """DETR's positions of a feature map: waves of the row, then of the column."""

    def __init__(self, half: int) -> None:
        super().__init__()
        self.half = half

    def forward(self, features: Tensor) -> Tensor:
        ones = torch.ones_like(features[:1, 0])
        rows, columns = ones.cumsum(1), ones.cumsum(2)
        rows = rows / (rows[:, -1:, :] + 1e-6) * 2 * math.pi
        columns = columns / (columns[:, :, -1:] + 1e-6) * 2 * math.pi
        power = torch.arange(self.half, dtype=torch.float32, device=features.device)
        frequency = 10000 ** (2 * (power // 2) / self.half)
        parts = []
        for place in (rows, columns):
            angle = place.unsqueeze(-1) / frequency
            waves = torch.stack((angle[..., 0::2].sin(), angle[..., 1::2].cos()), dim=-1)
            parts.append(waves.flatten(3))
        return torch.cat(parts, dim=3).permute(0, 3, 1, 2)


class EncoderLayer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, dropout=0.1)
        self.linear1, self.linear2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, positions: Tensor, padding: Tensor | None = None) -> Tensor:
        key = x + positions
        x = x + self.dropout(self.attention(key, key, value=x, key_padding_mask=padding)[0])
        x = self.norm1(x)
        x = x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x)))))
        return self.norm2(x)


class DecoderLayer(EncoderLayer):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__(dim, heads)
        self.across = nn.MultiheadAttention(dim, heads, dropout=0.1)
        self.norm3 = nn.LayerNorm(dim)

    def decode(self, x: Tensor, queries: Tensor, memory: Tensor, positions: Tensor) -> Tensor:
        key = x + queries
        x = self.norm1(x + self.dropout(self.attention(key, key, value=x)[0]))
        found = self.across(x + queries, memory + positions, value=memory)[0]
        x = self.norm2(x + self.dropout(found))
        return self.norm3(x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x))))))


class ACT(nn.Module):
    """The policy at inference: the latent is zero, pictures are optional."""

    def __init__(
        self, state: int = 7, actions: int = 4, chunk: int = 8, dim: int = 32, cameras: int = 0
    ) -> None:
        super().__init__()
        self.dim, self.chunk, self.cameras, self.latent = dim, chunk, cameras, 6
        self.encoder = nn.ModuleList(EncoderLayer(dim, 4) for _ in range(2))
        self.decoder = nn.ModuleList(DecoderLayer(dim, 4) for _ in range(1))
        self.state_proj, self.latent_proj = nn.Linear(state, dim), nn.Linear(self.latent, dim)
        self.token_positions = nn.Embedding(2, dim)
        self.queries = nn.Embedding(chunk, dim)
        self.head = nn.Linear(dim, actions)
        if cameras:
            self.backbone = small_resnet()
            self.image_proj = nn.Conv2d(32, dim, 1)
            self.image_positions = SinePositions2d(dim // 2)
        lively(self)

    def forward(self, state: Tensor, images: list[Tensor] | None = None) -> Tensor:
        batch = state.shape[0]
        latent = torch.zeros([batch, self.latent], dtype=torch.float32).to(state.device)
        tokens = [self.latent_proj(latent), self.state_proj(state)]
        places = list(self.token_positions.weight.unsqueeze(1))
        for image in images or []:
            features = self.backbone(image)["features"]
            place = self.image_positions(features).to(dtype=features.dtype)
            tokens.extend(self.image_proj(features).flatten(2).permute(2, 0, 1))
            places.extend(place.flatten(2).permute(2, 0, 1))
        x, positions = torch.stack(tokens), torch.stack(places)
        for layer in self.encoder:
            x = layer(x, positions)
        out = torch.zeros((self.chunk, batch, self.dim), dtype=x.dtype, device=x.device)
        for layer in self.decoder:
            out = layer.decode(out, self.queries.weight.unsqueeze(1), x, positions)
        return self.head(out.transpose(0, 1))


def small_resnet() -> nn.Module:
    """The first stages of a narrow ResNet, its batch norms frozen."""
    from torchvision.models._utils import IntermediateLayerGetter
    from torchvision.models.resnet import BasicBlock
    from torchvision.ops.misc import FrozenBatchNorm2d

    def stage(channels: int, out: int, stride: int) -> BasicBlock:
        skip = nn.Sequential(
            nn.Conv2d(channels, out, 1, stride, bias=False), FrozenBatchNorm2d(out)
        )
        return BasicBlock(channels, out, stride, skip, norm_layer=FrozenBatchNorm2d)

    layers = {
        "conv1": nn.Conv2d(3, 16, 7, 2, 3, bias=False),
        "bn1": FrozenBatchNorm2d(16),
        "relu": nn.ReLU(inplace=True),
        "maxpool": nn.MaxPool2d(3, 2, 1),
        "layer1": stage(16, 16, 1),
        "layer2": stage(16, 32, 2),
        "layer3": nn.Identity(),
    }

    class Net(nn.Sequential):
        pass

    net = Net()
    for name, layer in layers.items():
        net.add_module(name, layer)
    return IntermediateLayerGetter(net, return_layers={"layer2": "features"})


@policy(
    "act",
    inputs={
        "qpos": normal(1, 7),
        "top": uniform(0, 1, 1, 3, 48, 64),
        "wrist": uniform(0, 1, 1, 3, 48, 64),
    },
    fresh={"top": uniform(0, 1, 1, 3, 48, 64), "wrist": uniform(0, 1, 1, 3, 48, 64)},
    needs=_TORCHVISION,
    passes=3,
)
def act_two_cameras():
    """Two pictures, normalised as for ImageNet, and joints; all of the chunk is given."""
    net = ACT(cameras=2)
    mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)

    def step(qpos: Tensor, top: Tensor, wrist: Tensor) -> Tensor:
        return net(qpos, [(image - mean) / std for image in (top, wrist)])

    return step


@policy("act", inputs={"qpos": normal(1, 7, s=0.5)}, style="method", name="act_statistics")
class Statistics:
    """Joints and actions are scaled with what `dataset_stats.pkl` holds, as NumPy arrays."""

    def __init__(self) -> None:
        self.net = ACT()
        self.stats = {
            "qpos_mean": np.linspace(-0.5, 0.5, 7).astype(np.float32),
            "qpos_std": np.clip(np.linspace(0.001, 1.2, 7), 0.01, np.inf).astype(np.float32),
            "action_mean": np.linspace(-1.0, 1.0, 4).astype(np.float32),
            "action_std": np.linspace(0.2, 0.8, 4).astype(np.float32),
        }

    def pre_process(self, qpos: Tensor) -> Tensor:
        mean = torch.from_numpy(self.stats["qpos_mean"])
        return (qpos - mean) / torch.from_numpy(self.stats["qpos_std"])

    def post_process(self, actions: Tensor) -> Tensor:
        mean = torch.from_numpy(self.stats["action_mean"])
        return actions * torch.from_numpy(self.stats["action_std"]) + mean

    def step(self, qpos: Tensor) -> tuple[Tensor, Tensor]:
        chunk = self.post_process(self.net(self.pre_process(qpos)))
        action = chunk[:, 0]
        return action, chunk


@policy("act", inputs={"qpos": normal(1, 7)}, passes=6, name="act_queue_each_tick")
class QueueEachTick:
    """LeRobot's queue of actions with `n_action_steps=1`: it is filled again in every tick."""

    def __init__(self) -> None:
        self.net, self.n_action_steps = ACT(), 1
        self.reset()

    def reset(self) -> None:
        self._action_queue: deque[Tensor] = deque(maxlen=self.n_action_steps)

    def __call__(self, qpos: Tensor) -> Tensor:
        if len(self._action_queue) == 0:
            actions = self.net(qpos)[:, : self.n_action_steps]
            self._action_queue.extend(actions.transpose(0, 1))
        return self._action_queue.popleft()


@policy("act", inputs={"qpos": normal(1, 7)}, passes=6, name="act_ring_buffer", style="module")
class RingBuffer(nn.Module):
    """A chunk in a buffer, with the place of the next action; a new chunk when it is used up."""

    def __init__(self) -> None:
        super().__init__()
        self.net = ACT(chunk=4)
        self.register_buffer("chunk", torch.zeros(1, 4, 4))
        self.register_buffer("index", torch.zeros(1, dtype=torch.long))

    def forward(self, qpos: Tensor) -> Tensor:
        fresh = self.net(qpos)
        self.chunk.copy_(torch.where(self.index.view(1, 1, 1) == 0, fresh, self.chunk))
        action = self.chunk.index_select(1, self.index).squeeze(1)
        self.index.copy_((self.index + 1) % self.chunk.shape[1])
        return action


@policy("act", inputs={"qpos": normal(1, 7)}, passes=6, name="act_ensembler")
class Ensembler:
    """LeRobot's running average over chunks; `reset` starts it with counts of zero."""

    def __init__(self, chunk: int = 8, coeff: float = 0.01) -> None:
        self.net, self.chunk = ACT(chunk=chunk), chunk
        self.weights = torch.exp(-coeff * torch.arange(chunk))
        self.cumsum = torch.cumsum(self.weights, dim=0)
        self.reset()

    def reset(self) -> None:
        self.ensembled_actions = torch.zeros(1, self.chunk - 1, 4)
        self.count = torch.zeros(self.chunk - 1, 1, dtype=torch.long)

    def update(self, actions: Tensor) -> Tensor:
        average, count = self.ensembled_actions.clone(), self.count
        average *= self.cumsum[count - 1]
        average += actions[:, :-1] * self.weights[count]
        average /= self.cumsum[count]
        count = torch.clamp(count + 1, max=self.chunk - 1)
        average = torch.cat([average, actions[:, -1:]], dim=1)
        count = torch.cat([count, torch.ones_like(count[-1:])])
        action, self.ensembled_actions, self.count = average[:, 0], average[:, 1:], count[1:]
        return action

    def __call__(self, qpos: Tensor) -> Tensor:
        return self.update(self.net(qpos))


@policy("act", inputs={"qpos": normal(1, 7)}, passes=6, name="act_all_time_actions")
class AllTimeActions:
    """The first code's table of all chunks by time, a row of it for each tick of the episode."""

    def __init__(self, ticks: int = 64, chunk: int = 6) -> None:
        self.net, self.chunk = ACT(chunk=chunk), chunk
        self.table = torch.zeros(ticks, ticks + chunk, 4)
        self.t = torch.zeros((), dtype=torch.long)

    def __call__(self, qpos: Tensor) -> Tensor:
        columns = self.t + torch.arange(self.chunk)
        self.table[self.t.view(1, 1), columns] = self.net(qpos)
        now = self.table[:, self.t]
        filled = torch.all(now != 0, dim=1)
        age = torch.cumsum(filled.float(), 0) - 1
        weights = torch.exp(-0.05 * age) * filled
        action = (now * (weights / weights.sum()).unsqueeze(1)).sum(dim=0, keepdim=True)
        self.t = self.t + 1
        return action


@policy(
    "act",
    inputs={
        "qpos": normal(2, 7),
        "actions": normal(2, 8, 4),
        "is_pad": by_tick(lambda tick: torch.arange(8) >= torch.tensor([[8], [3 + tick % 5]])),
        "task": integers(0, 5, 2),
    },
    style="module",
    name="act_latent",
)
class Latent(nn.Module):
    """The encoder of the latent, with torch's own transformer, a CLS token and padded actions."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.cls, self.task = nn.Embedding(1, 32), nn.Embedding(5, 32)
        self.joints, self.actions = nn.Linear(7, 32), nn.Linear(4, 32)
        self.out = nn.Linear(32, 12)
        self.register_buffer("positions", sine_table(10, 32).unsqueeze(0))
        lively(self)

    def forward(
        self, qpos: Tensor, actions: Tensor, is_pad: Tensor, task: Tensor
    ) -> dict[str, Tensor]:
        cls = self.cls.weight.expand(len(qpos), 1, -1) + self.task(task).unsqueeze(1)
        x = torch.cat([cls, self.joints(qpos).unsqueeze(1), self.actions(actions)], dim=1)
        seen = torch.full((len(qpos), 2), False)
        x = self.encoder(x + self.positions, src_key_padding_mask=torch.cat([seen, is_pad], 1))
        mean, log_variance = self.out(x[:, 0]).chunk(2, dim=-1)
        return {"mean": mean, "std": (0.5 * log_variance).exp()}


def sine_table(count: int, dim: int) -> Tensor:
    """Positions in a row, as ACT writes them with NumPy."""
    rows = [[n / np.power(10000, 2 * (k // 2) / dim) for k in range(dim)] for n in range(count)]
    table = np.array(rows)
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    return torch.FloatTensor(table)
