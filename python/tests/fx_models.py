"""Small networks with drawn weights that torch.fx can trace, in the manner of well-known ones."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.fx import GraphModule, symbolic_trace


class _SelfAttention(nn.Module):
    """Scaled dot-product attention with three projections of one input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.depth = heads, width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (self.split(f(x)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.depth)
        mixed = torch.matmul(torch.softmax(scores, dim=-1), value).permute(0, 2, 1, 3)
        return mixed.contiguous().view(x.size(0), x.size(1), self.heads * self.depth)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.size(0), x.size(1), self.heads, self.depth).permute(0, 2, 1, 3)


class _BertLayer(nn.Module):
    """Attention, then two linear layers, each with a residual and a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = _SelfAttention(width, heads)
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.intermediate = nn.Linear(width, 2 * width)
        self.output = nn.Linear(2 * width, width)
        self.output_norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x + self.dense(self.attention(x)))
        hidden = nn.functional.gelu(self.intermediate(x))
        return self.output_norm(x + self.output(hidden))


class _Bert(nn.Module):
    """Embeddings, layers and a pooler; gives both what the last layer and the pooler gave."""

    def __init__(self, width: int = 16, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(30, width)
        self.layers = nn.Sequential(*(_BertLayer(width, heads) for _ in range(layers)))
        self.pooler = nn.Linear(width, width)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.layers(self.words(ids) * mask[..., None])
        return {"hidden": hidden, "pooled": torch.tanh(self.pooler(hidden[:, 0]))}


class _ResNetBlock(nn.Module):
    """Two convolutions with norms beside a shortcut with one."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.shortcut = nn.Sequential(
            nn.Conv2d(inner, outer, 1, stride=2, bias=False), nn.BatchNorm2d(outer)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += self.shortcut(x)
        return self.relu(out)


class _ResNet(nn.Module):
    """A stem, two blocks and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.blocks = nn.Sequential(_ResNetBlock(8, 12), _ResNetBlock(12, 16))
        self.classifier = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.blocks(self.stem(x)).mean((2, 3)))


class _GroupVit(nn.Module):
    """Two towers whose pooled values go through a linear layer, a batch norm and another layer."""

    def __init__(self, width: int = 12, inner: int = 20, outer: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.words = nn.Embedding(30, width)
        self.visual_projection = self.projection(width, inner, outer)
        self.text_projection = self.projection(width, inner, outer)

    def projection(self, width: int, inner: int, outer: int) -> nn.Sequential:
        layers = nn.Linear(width, inner), nn.BatchNorm1d(inner), nn.ReLU(inplace=True)
        return nn.Sequential(*layers, nn.Linear(inner, outer))

    def forward(self, ids: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        seen = self.patches(image).flatten(2).transpose(1, 2).mean(1)
        left, right = self.visual_projection(seen), self.text_projection(self.words(ids).mean(1))
        left = left / left.norm(dim=-1, keepdim=True)
        return torch.matmul(left, (right / right.norm(dim=-1, keepdim=True)).t())


def drawn(model: nn.Module, seed: int = 0) -> nn.Module:
    """Return a model in evaluation mode whose norms have been somewhere."""
    generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
    for module in model.modules():
        if not isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            continue
        for tensor in (module.running_mean, module.weight, module.bias):
            if tensor is not None:
                tensor.data.copy_(torch.randn(tensor.shape, generator=generator) + 0.5)
        if module.running_var is not None:
            module.running_var.copy_(torch.rand(module.running_var.shape, generator=generator) + 1)
    return model.eval()


def attention() -> nn.Module:
    return _SelfAttention(16, 4)


def bert() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(1)
    mask = torch.ones(2, 7)
    mask[1, 5:] = 0
    return drawn(_Bert()), (torch.randint(0, 30, (2, 7)), mask)


def resnet() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(2)
    return drawn(_ResNet()), (torch.randn(2, 3, 32, 32),)


def groupvit() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(3)
    return drawn(_GroupVit()), (torch.randint(0, 30, (3, 5)), torch.randn(2, 3, 16, 16))


def traced(model: nn.Module) -> GraphModule:
    """Trace a model as it is."""
    graph = symbolic_trace(model)
    for node in graph.graph.nodes:
        node.type = None  # torch cannot pickle a graph with annotations that are text
    graph.recompile()
    return graph


def count(module: nn.Module, kind: type[nn.Module]) -> int:
    """Return how many modules of a kind there are."""
    return sum(isinstance(part, kind) for part in module.modules())
