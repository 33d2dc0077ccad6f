"""What is called instead of calls that an exporter would get wrong.

Each function is plain torch code that an exporter runs while it records.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from veracity.export.unsupported import unsupported
from veracity.tracing.versions import default_device


def copied_out(made: Any, out: Sequence[torch.Tensor], location: str) -> tuple[torch.Tensor, ...]:
    """Fill the tensors given as `out=`."""
    for source, target in zip(made, out, strict=True):
        if source.shape != target.shape or source.dtype != target.dtype:
            raise unsupported(
                f"out= has the shape {tuple(target.shape)} for a result of {tuple(source.shape)}",
                location,
                "use what the call returns instead of out=",
            )
        target.copy_(source)
    return tuple(out)


def certainly_new(made: Any, given: Any, called: str, location: str) -> Any:
    """Refuse results on the memory of an argument: TorchScript would take them for new memory."""
    if torch._C._get_tracing_state() is not None:
        memories = {_memory(tensor) for tensor in _tensors(given)}
        if any(_memory(tensor) in memories for tensor in _tensors(made)):
            raise unsupported(
                f"{called} gives a view of its argument, and the memory is written later",
                location,
                "take a copy with clone() or a view with indexing, view() or expand()",
            )
    return made


def _memory(tensor: torch.Tensor) -> Any:
    return tensor.untyped_storage()._cdata


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _listed(tensors: tuple[Any, ...]) -> list[torch.Tensor]:
    """Return what was given one by one or as a sequence."""
    one = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
    return list(tensors[0] if one else tensors)


def like_type(tensor: torch.Tensor, other: torch.Tensor, location: str) -> torch.Tensor:
    """Do what `Tensor.type_as` does, with the call whose schema marks the view."""
    return tensor.to(device=other.device, dtype=other.dtype)


def broadcast_views(*tensors: Any, location: str) -> tuple[torch.Tensor, ...]:
    """Do what `torch.broadcast_tensors` does, with views that are seen as such."""
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in _listed(tensors)))
    return tuple(tensor.expand(shape) for tensor in _listed(tensors))


def meshgrid_views(
    *tensors: Any, indexing: str | None = None, location: str
) -> tuple[torch.Tensor, ...]:
    """Do what `torch.meshgrid` does, with views that are seen as such."""
    parts = [tensor.view(-1) for tensor in _listed(tensors)]
    if indexing == "xy" and len(parts) > 1:
        parts[:2] = parts[1::-1]
    shape = [part.numel() for part in parts]
    made = [
        part.view([-1 if dim == number else 1 for dim in range(len(parts))]).expand(shape)
        for number, part in enumerate(parts)
    ]
    if indexing == "xy" and len(parts) > 1:
        made[:2] = made[1::-1]
    return tuple(made)


def at_least(count: int, *tensors: Any) -> Any:
    """Add dimensions of size one as `torch.atleast_2d` and its like do."""
    if len(tensors) == 1 and isinstance(tensors[0], torch.Tensor):
        tensor = tensors[0]
        while tensor.dim() < count:
            tensor = tensor.unsqueeze(-1 if tensor.dim() == _FILLED_BEHIND else 0)
        return tensor
    return tuple(at_least(count, tensor) for tensor in _listed(tensors))


#: A matrix becomes three-dimensional at its end.
_FILLED_BEHIND = 2


def at_least_1d(*tensors: Any, location: str) -> Any:
    """Do what `torch.atleast_1d` does, with views that are seen as such."""
    return at_least(1, *tensors)


def at_least_2d(*tensors: Any, location: str) -> Any:
    """Do what `torch.atleast_2d` does, with views that are seen as such."""
    return at_least(2, *tensors)


def at_least_3d(*tensors: Any, location: str) -> Any:
    """Do what `torch.atleast_3d` does, with views that are seen as such."""
    return at_least(3, *tensors)


def einsum_view(equation: str, *operands: Any, location: str) -> torch.Tensor:
    """Do what `torch.einsum` does; what only turns its operand or takes a diagonal is a view."""
    tensors = _listed(operands)
    view = _einsum_as_view(equation, tensors[0]) if len(tensors) == 1 else None
    if view is not None:
        return view
    made: torch.Tensor = torch.einsum(equation, *tensors)
    return certainly_new(made, tensors, "einsum", location)  # type: ignore[no-any-return]


def _einsum_as_view(equation: Any, tensor: torch.Tensor) -> torch.Tensor | None:
    if not isinstance(equation, str) or "." in equation:
        return None
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    if not arrow:
        wanted = "".join(sorted(label for label in given if given.count(label) == 1))
    if set(given) != set(wanted):
        return None  # it sums
    labels = list(given)
    for label in wanted:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            tensor = tensor.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return tensor.permute([labels.index(label) for label in wanted])


def stacked(data: Any, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    """Do what `torch.tensor` does with (lists of) tensors, with operations that are recorded."""
    place = next((one.device for one in _tensors(data)), default_device())
    made = _stack(data, place)
    if device is None:
        device = place if isinstance(data, torch.Tensor) else default_device()
    if dtype is None and made.device == torch.device(device):
        return made.clone()
    return made.detach().to(device=device, dtype=made.dtype if dtype is None else dtype, copy=True)


def _stack(data: Any, place: torch.device) -> torch.Tensor:
    if isinstance(data, torch.Tensor):
        detached = data.detach()
        return detached if detached.device == place else detached.to(place)
    if isinstance(data, (list, tuple)):
        return _stack_promoted([_stack(item, place) for item in data], place)
    return torch.tensor(data, device=place)


def _stack_promoted(parts: Sequence[torch.Tensor], place: torch.device) -> torch.Tensor:
    """Stack after bringing all parts to one dtype; exporters do not all promote in `stack`."""
    if not parts:
        return torch.tensor([], device=place)
    dtype = functools.reduce(torch.promote_types, (part.dtype for part in parts))
    return torch.stack([part.to(dtype) for part in parts])


def as_tensor(data: Any, dtype: Any = None, device: Any = None, **options: Any) -> torch.Tensor:
    """Do what `torch.as_tensor` does; a tensor that already fits is handed on."""
    if not isinstance(data, torch.Tensor):
        return stacked(data, dtype, device)
    return data.to(
        device=data.device if device is None else device,
        dtype=data.dtype if dtype is None else dtype,
    )


def same(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Stand for calls that matter to autograd only."""
    return tensor


def copied(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Stand for copies that Python makes (`copy.deepcopy`)."""
    return tensor.clone()


def detached(tensor: torch.Tensor) -> torch.Tensor:
    """Stand for `.data`: the same memory."""
    return tensor.detach()


def reversed_dimensions(tensor: torch.Tensor) -> torch.Tensor:
    """Stand for `.T`."""
    return tensor.permute(tuple(reversed(range(tensor.dim()))))


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Stand for `.mT`."""
    return tensor.transpose(-2, -1)


def adjoint(tensor: torch.Tensor) -> torch.Tensor:
    """Stand for `.mH` and `.H`."""
    turned = tensor if tensor.dim() == 0 else tensor.transpose(-2, -1)
    return turned.conj() if tensor.is_complex() else turned


def converted(tensor: torch.Tensor, dtype: Any = None, *_: Any, **__: Any) -> torch.Tensor:
    """Do what `Tensor.type` does, for dtypes and for names such as `"torch.FloatTensor"`."""
    if isinstance(dtype, str):
        dtype = getattr(torch, _LEGACY_TYPES[dtype.rsplit(".", 1)[-1]])
    return tensor.to(dtype)


_LEGACY_TYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}


def to_copy(tensor: torch.Tensor, **options: Any) -> torch.Tensor:
    """Do what `aten._to_copy` does, with the call that every exporter knows."""
    kept = {key: options[key] for key in ("dtype", "device") if options.get(key) is not None}
    return tensor.to(copy=True, **kept) if kept else tensor.clone()


def fraction(input: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Do what `frac` does; fused for a GPU, TorchScript rounds negative values down instead."""
    return torch.sub(input, input.trunc(), out=out)


def where(
    condition: torch.Tensor, *parts: Any, out: torch.Tensor | None = None, **named: Any
) -> Any:
    """Choose with `torch.where`; between flags by logic, which every exporter and engine has."""
    given = [*parts, *(named[name] for name in ("input", "self", "other") if name in named)]
    of_flags = len(given) == 2 and torch.result_type(*given) == torch.bool
    if not of_flags or out is not None:
        return torch.where(condition, *given, **({} if out is None else {"out": out}))
    yes, no = (
        torch.tensor(one, device=condition.device) if type(one) is bool else one for one in given
    )
    return condition.logical_and(yes).logical_or(condition.logical_not().logical_and(no))


def filled_diagonal(tensor: torch.Tensor, fill_value: Any, wrap: bool = False) -> torch.Tensor:
    """Do what `Tensor.fill_diagonal_` does, to a matrix through the view that exporters follow."""
    if tensor.dim() != 2 or (wrap and tensor.shape[0] > tensor.shape[1]):
        return tensor.fill_diagonal_(fill_value, wrap)
    tensor.diagonal().fill_(fill_value)
    return tensor


def addmm(
    input: torch.Tensor,
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Multiply and add; as a layer where it is one, since TorchScript rounds between the two."""
    if input.dim() == 1 and beta == 1 and alpha == 1 and out is None:
        return torch.nn.functional.linear(mat1, mat2.t(), input)
    return torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)


def lstm(given: torch.Tensor, *args: Any, **named: Any) -> tuple[torch.Tensor, ...]:
    """Run an LSTM; torch's exporters take its states for one dimension larger than they are."""
    made, *states = torch._VF.lstm(given, *args, **named)
    begun = next(one for one in args if isinstance(one, (list, tuple)))
    return (made, *(state.reshape(first.shape) for state, first in zip(states, begun, strict=True)))
