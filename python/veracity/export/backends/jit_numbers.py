"""Numbers of Python in a recorded TorchScript graph.

torch's tracer writes the number of `x * 2.0` down as a tensor of rank 0. In eager code a number
never decides the dtype of a result; a tensor of rank 0 does, when the other operand has rank 0 too
or holds integers: `x[0] * 2.0` becomes float64, and so does everything behind it. Where that would
happen the number is made a number again.

A tensor of rank 0 that the user made is left alone: the dtype that was recorded tells the two
apart.
"""

from __future__ import annotations

from typing import Any

import torch

#: What a number of Python is as a tensor of its own.
_OF_NUMBERS = frozenset({torch.float64, torch.int64, torch.bool, torch.complex128})


def keep_numbers(graph: Any) -> None:
    """Turn constants back into the numbers that they were, where it matters for dtypes."""
    for node in list(graph.nodes()):
        if not node.kind().startswith("aten::"):
            continue
        for place, value in enumerate(list(node.inputs())):
            number = _number(value)
            if number is not None and _decides(node, place, number):
                _replace(graph, node, place, number)
    torch._C._jit_pass_dce(graph)


def _number(value: Any) -> torch.Tensor | None:
    """Return a constant of rank 0 that may have been a number."""
    made = value.node()
    if made.kind() != "prim::Constant" or value.type().kind() != "TensorType":
        return None
    tensor: torch.Tensor = made.t("value")
    if tensor.dim() != 0 or tensor.dtype not in _OF_NUMBERS:
        return None
    # What was traced still knows that it is a number; what comes out of a file does not.
    return torch.tensor(tensor.item(), dtype=tensor.dtype, device="cpu")


def _decides(node: Any, place: int, number: torch.Tensor) -> bool:
    """Whether the constant would give the result another dtype than the one that was recorded."""
    others = _others(node, place)
    results = [one.type().dtype() for one in node.outputs() if _is_tensor(one)]
    if not others or None in others or len(results) != 1 or results[0] is None:
        return False
    as_tensor = _promoted_like([*others, number]).dtype
    as_number = torch.result_type(_promoted_like(others), number.item())
    return as_tensor not in (as_number, results[0])


def _others(node: Any, place: int) -> list[torch.Tensor | None]:
    """Return tensors of the dtype and rank of the other operands."""
    return [_like(one) for at, one in enumerate(node.inputs()) if at != place and _is_tensor(one)]


def _is_tensor(value: Any) -> bool:
    return bool(value.type().kind() == "TensorType")


def _like(value: Any) -> torch.Tensor | None:
    """Return a tensor of the dtype and rank of a value."""
    dtype, rank = value.type().dtype(), value.type().dim()
    if dtype is None or rank is None:
        return None
    return torch.empty([0] * rank, dtype=dtype, device="cpu")


def _promoted_like(values: list[Any]) -> torch.Tensor:
    """Return a tensor of the dtype and rank that values have together."""
    found: torch.Tensor = values[0]
    for one in values[1:]:
        rank = max(found.dim(), one.dim())
        found = torch.empty([0] * rank, dtype=torch.result_type(found, one), device="cpu")
    return found


def _replace(graph: Any, node: Any, place: int, number: torch.Tensor) -> None:
    made = graph.create("prim::Constant")
    if _takes_number(node, place) and not number.is_complex():
        _fill(made, number.item())
    else:
        dtype = torch.result_type(_promoted_like(_others(node, place)), number.item())
        made.t_("value", number.to(dtype))
        made.output().inferTypeFrom(made.t("value"))
    made.insertBefore(node)
    node.replaceInput(place, made.output())


def _fill(made: Any, value: bool | int | float) -> None:
    compiler: Any = torch._C
    if isinstance(value, float):
        made.f_("value", value)
        made.output().setType(compiler.FloatType.get())
    else:
        made.i_("value", int(value))
        kind = compiler.BoolType if isinstance(value, bool) else compiler.IntType
        made.output().setType(kind.get())


def _takes_number(node: Any, place: int) -> bool:
    """Whether the operator also exists with a number at this place, and else the same arguments."""
    compiler: Any = torch._C
    wanted = _arguments(compiler.parse_schema(node.schema()))
    wanted[place] = (wanted[place][0], "number")
    return any(
        _arguments(schema) == wanted
        for schema in compiler._jit_get_schemas_for_operator(node.kind())
    )


def _arguments(schema: Any) -> list[tuple[str, str]]:
    return [(one.name, str(one.type)) for one in schema.arguments]
