"""Exports a module twice over: as a program that can be interpreted, and as ONNX made from it.

Both come from one export, so that each value has one name on both sides. Attention is taken apart
first: as one operation its inside could not be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from veracity.errors import refuse
from veracity.export.backends.contract import quiet
from veracity.export.backends.onnx_tables import kept_tables

#: The version that `compile_graph` writes.
_OPSET = 20
_ATTENTION = torch.ops.aten.scaled_dot_product_attention.default


@dataclass
class Program:
    """One export.

    Attributes:
        exported: The program that ONNX was made from, to be interpreted.
        onnx: The ONNX model, as `onnx_ir` holds it.
    """

    exported: Any
    onnx: Any


def export(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, open_attention: bool
) -> Program:
    """Export a module; `open_attention` takes scaled_dot_product_attention apart first."""
    with _exporting(model), quiet([]), torch.no_grad():
        exported = torch.export.export(model, args, dict(kwargs), strict=False)
        if open_attention and _uses_attention(exported):
            exported = _with_open_attention(exported)
        refuse_random(exported)
        with kept_tables():
            made = torch.onnx.export(
                exported, dynamo=True, verbose=False, optimize=True, opset_version=_OPSET
            )
    if made is None:  # torch's types allow it
        raise refuse("VER1001", "torch.onnx.export gave no program")
    return Program(made.exported_program, made.model)


def export_program(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Export a module as a program and leave that as it is."""
    with _exporting(model), quiet([]), torch.no_grad():
        return torch.export.export(model, args, dict(kwargs), strict=False)


@contextmanager
def _exporting(model: nn.Module) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # any: exporters raise whatever they meet
        if hasattr(error, "diagnostics"):
            raise
        raise refuse(
            "VER1001",
            f"torch cannot export {type(model).__name__}",
            hints=(str(error).strip().split("\n", 1)[0],),
        ) from error


def tensor_nodes(exported: Any) -> list[fx.Node]:
    """Return the calls of a program that give one tensor, in their order."""
    nodes = exported.graph.nodes
    return [
        node
        for node in nodes
        if node.op == "call_function" and isinstance(node.meta.get("val"), Tensor)
    ]


def user_outputs(exported: Any) -> list[str]:
    """Return the names of the tensors that the module gives, in the order of its pytree."""
    specs = exported.graph_signature.output_specs
    return [
        spec.arg.name
        for spec in specs
        if spec.kind.name == "USER_OUTPUT" and type(spec.arg).__name__ == "TensorArgument"
    ]


def user_inputs(exported: Any) -> list[str]:
    """Return the names of the tensors that the module takes, in the order of its pytree."""
    specs = exported.graph_signature.input_specs
    return [
        spec.arg.name
        for spec in specs
        if spec.kind.name == "USER_INPUT" and type(spec.arg).__name__ == "TensorArgument"
    ]


def _uses_attention(exported: Any) -> bool:
    return any(node.target is _ATTENTION for node in exported.graph.nodes)


def _with_open_attention(exported: Any) -> Any:
    """Take attention apart. torch's kernels give it with other strides, which views rely on."""
    for node in exported.graph.nodes:
        if node.target is torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
    return exported.run_decompositions({_ATTENTION: _attention})


def refuse_random(exported: Any) -> None:
    """Two runs of a program that draws random numbers differ without anybody being wrong."""
    for node in exported.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags and not _sleeping(node):
            raise refuse(
                "VER0916",
                f"'{node.name}' ({node.target}) draws random numbers, so two runs differ",
                hints=("call `model.eval()` first; draw noise outside and pass it in",),
            )


def _sleeping(node: fx.Node) -> bool:
    """Whether a dropout does nothing."""
    name = str(node.target)
    if "scaled_dot_product_attention" in name:
        return float(_argument(node, 4, "dropout_p", 0.0)) == 0.0
    if "dropout" in name:
        chance = float(_argument(node, 1, "p", 0.5))
        return chance == 0.0 or not _argument(node, 2, "train", True)
    if any(kind in name for kind in ("lstm", "gru", "rnn")):
        return float(_argument(node, 5, "dropout", 0.0)) == 0.0 or not _argument(
            node, 6, "train", True
        )
    return False


def _argument(node: fx.Node, position: int, name: str, default: Any) -> Any:
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(name, default)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute attention as its definition says, an operation at a time."""
    if enable_gqa:
        groups = query.size(-3) // key.size(-3)
        key, value = (each.repeat_interleave(groups, -3) for each in (key, value))
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = torch.matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        size = (query.size(-2), key.size(-2))
        attn_mask = torch.ones(size, dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    if attn_mask is None:
        weights = torch.softmax(scores, -1)
    else:
        # A query that may look at nothing gives zeros in torch, not NaN.
        empty = (scores == float("-inf")).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)
    if dropout_p > 0.0:
        weights = torch.dropout(weights, dropout_p, True)
    return torch.matmul(weights, value)
