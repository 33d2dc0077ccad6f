"""Gives a transformation a name that depends on what it is and on nothing else.

The digest is sha256 over canonical JSON in which each value carries its type: equal in every
process, different for -1 and -2 and for 1, True and 1.0. Reading it changes nothing. A value
without a stable meaning (an open file, a lambda) is refused; an address is never hashed.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from veracity.errors import refuse

#: Deeper values are taken for ones that contain themselves.
_DEEPEST = 64


def digest(kind: type, version: int, parameters: Mapping[str, object]) -> str:
    """Return the sha256 of a class and its parameters, as hexadecimal digits."""
    try:
        typed = [_qualified(kind), version, _typed(dict(parameters), 0)]
    except _UnsignableError as found:
        raise refuse(
            "VER1302",
            f"a parameter of {kind.__qualname__} cannot be signed: {found}",
            hints=("return stable values from `signature_parameters`",),
        ) from None
    return hashlib.sha256(_text(typed).encode()).hexdigest()


def as_int(hexadecimal: str) -> int:
    """Return the first eight bytes of a digest as a signed number."""
    return int.from_bytes(bytes.fromhex(hexadecimal)[:8], "big", signed=True)


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """Return the elements of a tensor in their order, whatever its strides are."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().reshape(-1)
    if flat.stride() != (1,):  # torch takes one element for contiguous, but does not view it so
        flat = flat.clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8).numpy().tobytes()


class _UnsignableError(Exception):
    """A value has no stable meaning; the message says which."""


def _text(typed: object) -> str:
    return json.dumps(typed, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _qualified(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _typed(value: object, depth: int) -> list[object]:
    """Return a value as JSON that says its type."""
    if depth > _DEEPEST:
        raise _UnsignableError("a value nests too deep, or contains itself")
    if isinstance(value, enum.Enum):
        return ["enum", _qualified(type(value)), value.name]
    encode = _EXACT.get(type(value))
    if encode is not None:
        return [type(value).__name__, encode(value, depth + 1)]
    return _by_base(value, depth)


def _by_base(value: Any, depth: int) -> list[object]:
    """Encode what is known by its base class or by a method."""
    if isinstance(value, torch.nn.Module):
        return ["module", _qualified(type(value)), _typed(dict(value.state_dict()), depth + 1)]
    if isinstance(value, torch.Tensor):
        return ["tensor", _tensor(value)]
    if isinstance(value, np.ndarray | np.generic):
        return ["array", _array(np.asarray(value))]
    if isinstance(value, pathlib.PurePath):
        return ["path", value.as_posix()]
    if isinstance(value, type) or inspect.isroutine(value):
        return ["name", _importable(value)]
    if isinstance(value, functools.partial):
        parts = [value.func, value.args, value.keywords]
        return ["partial", *(_typed(part, depth + 1) for part in parts)]
    if hasattr(value, "signature_parameters"):
        parameters = value.signature_parameters()
        return ["signed", digest(type(value), getattr(value, "version", 1), parameters)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return ["named", _qualified(type(value)), _sequence(value, depth + 1)]
    if hasattr(value, "__dataclass_fields__"):
        return ["dataclass", _qualified(type(value)), _typed(dict(vars(value)), depth + 1)]
    raise _UnsignableError(f"a value of type {_qualified(type(value))}")


def _importable(value: Any) -> str:
    """Return the name of a class or function, which stands for one thing only."""
    owner = getattr(value, "__self__", None)
    bound = owner is not None and not inspect.ismodule(owner) and not isinstance(owner, type)
    name = getattr(value, "__qualname__", "")
    if bound or "<lambda>" in name or getattr(value, "__closure__", None):
        raise _UnsignableError(f"`{name}`, whose name does not say what it does")
    return f"{getattr(value, '__module__', None)}.{name}"


def _tensor(value: torch.Tensor) -> list[object]:
    return [str(value.dtype), list(value.shape), hashlib.sha256(tensor_bytes(value)).hexdigest()]


def _array(value: np.ndarray[Any, Any]) -> list[object]:
    if value.dtype.hasobject:
        raise _UnsignableError("an array of Python objects")
    data = np.ascontiguousarray(value).tobytes()
    return [value.dtype.str, list(value.shape), hashlib.sha256(data).hexdigest()]


def _sequence(value: Any, depth: int) -> list[object]:
    return [_typed(element, depth) for element in value]


def _mapping(value: Any, depth: int) -> list[object]:
    pairs = [(_typed(key, depth), _typed(element, depth)) for key, element in value.items()]
    return [list(pair) for pair in sorted(pairs, key=lambda pair: _text(pair[0]))]


def _set(value: Any, depth: int) -> list[object]:
    return sorted((_typed(element, depth) for element in value), key=_text)


def _as_text(value: Any, _depth: int) -> object:
    return str(value)


#: Encoders by exact type, because True is an int and a named tuple is a tuple.
_EXACT: dict[type, Callable[[Any, int], object]] = {
    type(None): lambda _value, _depth: None,
    bool: lambda value, _depth: value,
    int: _as_text,
    float: lambda value, _depth: value.hex(),
    complex: lambda value, _depth: [value.real.hex(), value.imag.hex()],
    str: lambda value, _depth: value,
    bytes: lambda value, _depth: value.hex(),
    list: _sequence,
    tuple: _sequence,
    torch.Size: _sequence,
    dict: _mapping,
    set: _set,
    frozenset: _set,
    slice: lambda value, depth: _sequence((value.start, value.stop, value.step), depth),
    range: lambda value, depth: _sequence((value.start, value.stop, value.step), depth),
    type(Ellipsis): lambda _value, _depth: None,
    torch.dtype: _as_text,
    torch.device: _as_text,
}
