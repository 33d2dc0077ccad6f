"""Says which calls certainly give new memory; everything else may hand on that of an argument.

A wrong "new" would let a model hand out the memory of its inputs or weights. A wrong "may be old"
costs one copy. So only what torch's own schemas promise, and a short list, counts as new.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from veracity.export.lowering import identify
from veracity.tracing.slice import Call

#: Composed operations without alias marks in their schema that are known to compute.
_COMPUTES = frozenset(
    [
        "linear",
        "matmul",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "softmax",
        "log_softmax",
        "layer_norm",
        "group_norm",
        "batch_norm",
        "instance_norm",
        "gru",
        "lstm",
        "rnn_tanh",
        "rnn_relu",
        "embedding",
        "cross_entropy",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "interpolate",
        "one_hot",
        "std",
        "var",
        "cdist",
        "norm",
        "stack",
        "cat",
        "concat",
        "hstack",
        "vstack",
        "dstack",
        "tile",
        "kron",
        "outer",
        "vander",
        "cosine_similarity",
        "normalize",
        "rms_norm",
        "scaled_dot_product_attention",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "linalg_norm",
        "tensor",
    ]
)


def makes_memory(call: Call) -> bool:
    """Tell whether the results of a call certainly do not share memory with its arguments."""
    operation = identify(call.func)
    if operation.kind == "getter" or may_write(call):
        return False
    return operation.name in _COMPUTES or _schemas_promise_new(_plain_name(operation.name))


def returns_its_first_argument(call: Call) -> bool:
    """Tell whether a call is an in-place method, which hands its tensor on."""
    name = identify(call.func).name
    in_place_operator = name.startswith("__i") and name.endswith("__") and name != "__invert__"
    return bool(call.args) and (in_place_operator or (name.endswith("_") and name[-2:] != "__"))


def may_write(call: Call) -> bool:
    """Tell whether a call may write: by its name, by assignment, `out=`, `inplace`, `training`."""
    name = identify(call.func).name
    return (
        returns_its_first_argument(call)
        or name == "__setitem__"
        or "out" in call.kwargs
        or (not name.startswith("__") and any(value is True for value in _flags(call)))
    )


def _flags(call: Call) -> list[Any]:
    """Return what could be `inplace`, or `training` of a normalisation."""
    own = getattr(call.func, "__module__", None) == "torch.nn.functional"
    if not own and "_norm" not in identify(call.func).name:
        return []
    return [*call.args, *call.kwargs.values()]


def _plain_name(name: str) -> str:
    """Return the name of the operator behind a special method: `__rsub__` is `rsub`."""
    if name in _SPECIAL_NAMES:
        return _SPECIAL_NAMES[name]
    return name.removeprefix("__").removesuffix("__") if name.startswith("__") else name


_SPECIAL_NAMES = {
    "__radd__": "add",
    "__rmul__": "mul",
    "__rdiv__": "mul",
    "__rtruediv__": "mul",
    "__rpow__": "pow",
    "__floordiv__": "floor_divide",
    "__rfloordiv__": "floor_divide",
    "__rmatmul__": "mm",
    "__invert__": "bitwise_not",
    "__getitem__": "select",
}


@functools.cache
def _schemas_promise_new(name: str) -> bool:
    """Ask the schemas of every overload; composed operations promise nothing about memory."""
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return False
    return all(_overload_promises_new(packet, overload) for overload in packet.overloads())


def _overload_promises_new(packet: Any, overload: str) -> bool:
    qualified = f"{packet._qualified_op_name}.{overload}".removesuffix(".default")
    if not torch._C._dispatch_has_kernel(qualified):
        return True  # a function of TorchScript on Python numbers
    if overload == "out" or overload.endswith("_out"):
        return True  # `out=` is looked for in the arguments
    operator = getattr(packet, overload)
    composed = operator.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    return not composed and all(found.alias_info is None for found in operator._schema.returns)
