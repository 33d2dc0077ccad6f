"""Operators on 16-bit floats, written so that every one of them rounds, as in torch.

ONNX Runtime has few kernels for them on the CPU. It computes in float32 instead, and leaves out the
roundings between one operator and the next: what torch takes to infinity stays a number there.
Conversions that a model holds itself are kept, so they stand around every operator that computes.
"""

from __future__ import annotations

from typing import Any

from veracity.tracing.operations import words

_HALVES = frozenset({"FLOAT16", "BFLOAT16"})
#: Operators that hand elements on as they are, or whose type an attribute says.
_MOVING = words(
    """
    Cast CastLike Constant ConstantOfShape EyeLike Identity Reshape Transpose Squeeze Unsqueeze
    Flatten Expand Concat Split Slice Gather GatherND GatherElements Scatter ScatterND
    ScatterElements Tile Pad Where Shape Size If Loop Scan SplitToSequence SequenceAt
    SequenceConstruct ConcatFromSequence SequenceInsert SequenceEmpty Optional DepthToSpace
    SpaceToDepth ReverseSequence Compress NonZero IsNaN RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike Bernoulli QuantizeLinear DequantizeLinear Bitcast
    """
)


def rounded(model: Any) -> None:
    """Let every operator of a model that computes with 16-bit floats round its results to them."""
    for node in list(model.graph):
        if node.domain in ("", "ai.onnx") and node.op_type not in _MOVING:
            halves = [value for value in (*node.inputs, *node.outputs) if _is_half(value)]
            if halves and all(value.dtype == halves[0].dtype for value in halves):
                _compute_in_float32(model.graph, node, halves[0].dtype)


def _is_half(value: Any) -> bool:
    return value is not None and value.dtype is not None and value.dtype.name in _HALVES


def _compute_in_float32(graph: Any, node: Any, half: Any) -> None:
    import onnx_ir
    from onnx_ir import convenience

    for number, value in enumerate(node.inputs):
        if _is_half(value):
            wide = _cast(value, onnx_ir.DataType.FLOAT, node)
            graph.insert_before(node, wide)
            node.replace_input_with(number, wide.outputs[0])
    for made in node.outputs:
        if _is_half(made):
            name, shape = made.name, made.shape
            narrow = _cast(made, half, node)
            kept = narrow.outputs[0]
            convenience.replace_all_uses_with(made, kept, replace_graph_outputs=True)
            narrow.replace_input_with(0, made)  # its own input was among the uses
            graph.insert_after(node, narrow)
            made.name, made.dtype = f"{name}_wide", onnx_ir.DataType.FLOAT
            kept.name, kept.shape = name, shape


def _cast(value: Any, kind: Any, node: Any) -> Any:
    import onnx_ir

    origin = dict(node.metadata_props)
    made = onnx_ir.node("Cast", [value], {"to": int(kind)}, metadata_props=origin)
    made.outputs[0].dtype, made.outputs[0].shape = kind, value.shape
    return made
