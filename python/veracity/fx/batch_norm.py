"""What a batch norm does to each channel once it is trained: a factor and an offset.

They are computed in float64 and rounded once, when they are in the weights they go into.
"""

from __future__ import annotations

import copy
from typing import NamedTuple, TypeVar

import torch
from torch import nn
from torch.fx import GraphModule, Node

from veracity.errors import refuse
from veracity.fx import graphs

L = TypeVar("L", nn.Conv2d, nn.Linear)


class Affine(NamedTuple):
    """`factor * x + offset` for each channel, in float64 on the CPU."""

    factor: torch.Tensor
    offset: torch.Tensor


def affine(norm: nn.BatchNorm1d | nn.BatchNorm2d) -> Affine:
    """Return what a batch norm in evaluation mode computes."""
    mean, variance = wide(norm.running_mean), wide(norm.running_var)
    factor = torch.rsqrt(variance + norm.eps)
    if norm.weight is not None:
        factor = factor * wide(norm.weight)
    offset = -mean * factor
    if norm.bias is not None:
        offset = offset + wide(norm.bias)
    return Affine(factor, offset)


def wide(tensor: torch.Tensor | None) -> torch.Tensor:
    """Return a tensor in float64 on the CPU, which every machine has."""
    assert tensor is not None, "a norm without statistics was declined"
    return tensor.detach().to("cpu", torch.float64)


def unfit(norm: nn.BatchNorm1d | nn.BatchNorm2d, node: Node, layer: nn.Module) -> str:
    """Return why a norm cannot be folded into a layer, or nothing.

    Raises:
        TransformError: The norm is in training mode.
    """
    if norm.training:
        raise refuse(
            "VER1305",
            f"`{node.target}` is in training mode: it normalises by each batch, not by a constant",
            location=node.name,
            hints=("call `.eval()` on the model before it is traced and transformed",),
        )
    if norm.running_mean is None or norm.running_var is None:
        return "the norm keeps no running statistics and normalises by each batch"
    if graphs.hooked(norm) or graphs.hooked(layer):
        return "the norm or the layer has hooks"
    folded = affine(norm)
    if not (folded.factor.isfinite().all() and folded.offset.isfinite().all()):
        return "its factor or offset is not finite"
    return ""


def parameter(value: torch.Tensor, like: torch.Tensor) -> nn.Parameter:
    """Return a parameter with the type, device and training of another."""
    rounded = value.to(like.device, like.dtype)
    return nn.Parameter(rounded.contiguous(), requires_grad=like.requires_grad)


def with_parameters(layer: L, weight: nn.Parameter, bias: nn.Parameter) -> L:
    """Return a copy of a layer with other values; the layer stays as it is."""
    clone = copy.copy(layer)
    clone._parameters = {**layer._parameters, "weight": weight, "bias": bias}
    return clone


def replace_layer(graph_module: GraphModule, node: Node, layer: nn.Module) -> None:
    """Let a node call another layer; nodes that share the present one keep it."""
    target = str(node.target)
    present = graph_module.get_submodule(target)
    if graphs.TensorUses(graph_module).beyond(present, [node]):
        wanted = target.replace(".", "_") + "_folded"
        node.target = target = graphs.unused_name(graph_module, wanted)
    graphs.set_module(graph_module, target, layer)
