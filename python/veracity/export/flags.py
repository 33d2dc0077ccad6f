"""`True` and `False` of Python among tensors, in a form that every exporter takes.

torch's tracer has no operator for `mask & True` or `mask.masked_fill(done, True)`: it takes numbers
or tensors. A tensor of rank 0 decides no dtype that a flag of Python would not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from veracity.export.replacements import where


def _with_dunders(*names: str, prefixes: tuple[str, ...] = ("",)) -> frozenset[str]:
    return frozenset(f"__{prefix}{name}__" for name in names for prefix in prefixes)


#: Calls whose every flag is a value beside tensors.
_OPERATORS = (
    _with_dunders("or", "and", "xor", "add", "mul", prefixes=("", "r", "i"))
    | _with_dunders("eq", "ne", "gt", "ge", "lt", "le")
    | frozenset(
        f"{name}{ending}"
        for name in (
            *("bitwise_or", "bitwise_and", "bitwise_xor", "add", "mul"),
            *("eq", "ne", "gt", "ge", "lt", "le"),
            *("not_equal", "greater", "greater_equal", "less", "less_equal"),
            *("masked_fill", "index_fill"),
        )
        for ending in ("", "_")
    )
    | frozenset(["fill", "fill_"])
)
#: Calls that take a number and no tensor there, and know the dtype of their result without it.
_WITH_NUMBERS = (
    _with_dunders("lshift", "rshift", "pow", "mod", prefixes=("", "r", "i"))
    | frozenset(
        f"{name}{ending}"
        for name in (
            *("scatter", "clamp", "clip", "clamp_min", "clamp_max"),
            *("lerp", "addcmul", "addcdiv", "threshold"),
            *("pow", "remainder", "fmod", "bitwise_left_shift", "bitwise_right_shift"),
        )
        for ending in ("", "_")
    )
    | frozenset(["new_full"])
)
#: What their numbers are called.
_NUMBERS = frozenset(
    ["value", "fill_value", "min", "max", "weight", "threshold", "exponent", "other"]
)


def as_values(
    graph: fx.Graph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with tensors or numbers in the place of flags."""
    if name in _WITH_NUMBERS:
        numbers = {
            key: int(one) for key, one in kwargs.items() if _is_flag(one) and key in _NUMBERS
        }
        return tuple(int(one) if _is_flag(one) else one for one in args), kwargs | numbers
    if name not in _OPERATORS or not any(map(_is_flag, (*args, *kwargs.values()))):
        return args, kwargs
    beside = next((one for one in (*args, *kwargs.values()) if isinstance(one, fx.Node)), None)

    def tensor(one: Any) -> Any:
        return graph.call_function(flag, (one, beside)) if _is_flag(one) else one

    return tuple(map(tensor, args)), {key: tensor(one) for key, one in kwargs.items()}


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def flag(value: bool, beside: torch.Tensor) -> torch.Tensor:
    """Return a flag as a tensor where another one is."""
    return torch.tensor(value, device=beside.device)


def masked_fill(tensor: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    """Fill with `masked_fill`; flags by logic, since ONNX Runtime does not choose among them."""
    if tensor.dtype is not torch.bool:
        return tensor.masked_fill(mask, value)
    filled: torch.Tensor = where(mask, _as_flag(value), tensor)
    return filled


def masked_fill_(tensor: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    """Do the same in place."""
    if tensor.dtype is not torch.bool:
        return tensor.masked_fill_(mask, value)
    return tensor.copy_(masked_fill(tensor, mask, value))


def _as_flag(value: Any) -> Any:
    return value.bool() if isinstance(value, torch.Tensor) else bool(value)
