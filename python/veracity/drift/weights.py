"""Takes large weights out of an ONNX model, so that it becomes small and they are held once.

They become inputs: an engine reads those where they are, while it copies what is inside of a
model for each session. The operators that run are the same; only what engines do ahead of time
with constant weights is left out, which is switched off here anyway.
"""

from __future__ import annotations

import os
from typing import Any

from veracity.errors import refuse

#: Shapes, axes and scales stay: engines want to know them ahead of running.
_LARGE_BYTES = 4096


def read(path: str | os.PathLike[str]) -> Any:
    """Read a file; weights stay on disk until they are asked for."""
    import onnx_ir

    try:
        return onnx_ir.load(path)
    except FileNotFoundError as error:
        raise refuse("VER0001", "there is no such file", location=str(path)) from error
    except Exception as error:  # any: a file can be broken in many ways
        first_line = str(error).strip().split("\n", 1)[0]
        raise refuse("VER0501", "not an ONNX model", location=str(path), hints=(first_line,)) from (
            error
        )


def names(model: Any) -> set[str]:
    """Return the names of the values that the main graph computes."""
    return {value.name for node in model.graph for value in node.outputs if value.name}


def mentions(model: Any, operation: str) -> bool:
    """Whether a node says that it was made for an operation of torch."""
    return any(
        operation in text for node in model.graph for text in node.metadata_props.values() if text
    )


def lift(model: Any) -> tuple[bytes, dict[str, Any]]:
    """Turn large weights into inputs; return the model without them, and what they were."""
    import onnx_ir

    graph = model.graph
    outputs = {value.name for value in graph.outputs}
    given = {value.name for value in graph.inputs}
    lifted: dict[str, Any] = {}
    for name, value in list(graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or tensor.nbytes < _LARGE_BYTES or name in outputs:
            continue
        if not tensor.dtype.is_floating_point() or tensor.dtype.bitwidth < 16:
            continue
        lifted[name] = tensor
        value.dtype, value.shape = tensor.dtype, onnx_ir.Shape(tensor.shape)
        del graph.initializers[name]
        value.const_value = None
        if name not in given:
            graph.inputs.append(value)
    onnx_ir.external_data.load_to_model(model)
    proto: bytes = onnx_ir.serde.serialize_model(model).SerializeToString()
    return proto, lifted
