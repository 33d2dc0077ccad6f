"""Whether two programs are one, but for names of the same memory and for what is constant.

`y.detach()` on one pass and not on another is no other way: what it gives is `y` by another name.
Nor is `~self.mask`, which is a call while the buffer is followed and a constant afterwards.
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from veracity.tracing.slice import Call, Copy, Ref, Slice, View

#: Functions that give another name for all of their first argument.
_NAMES = frozenset({"detach", "alias", "view_as"})


def same_but_for_names(first: Slice, later: Slice) -> bool:
    """Say whether two programs do the same, call by call."""
    try:
        return bool(_plain(first) == _plain(later))
    except Exception:  # any: arguments may be anything, and compare as they like
        return False


def _plain(program: Slice) -> tuple[Any, ...]:
    """Return a program as values that can be compared, without calls that only give a name."""
    values = {Ref("constant", index): use.tensor for index, use in enumerate(program.constants)}
    known: dict[Ref, Any] = {ref: _digest(value) for ref, value in values.items()}
    steps: list[Any] = []

    def plain(value: Any) -> Any:
        leaves, shape = tree_flatten(value, is_leaf=lambda one: isinstance(one, Ref))
        return str(shape), [known.get(x, tuple(x)) if isinstance(x, Ref) else x for x in leaves]

    for number, step in enumerate(program.steps):
        if isinstance(step, Call):
            if _only_names(step):
                base = step.args[0]
                known[Ref("step", number)] = known.get(base, tuple(base))
                continue
            constants = _constants(step, values)
            if constants:
                for output, constant in enumerate(constants):
                    values[Ref("step", number, output)] = constant
                    known[Ref("step", number, output)] = _digest(constant)
                continue
            steps.append((step.func, plain(step.args), plain(step.kwargs), step.location))
            results = len(step.outputs)
        elif isinstance(step, View):
            place = (step.base_geometry, step.geometry, step.dtype)
            steps.append(("view", plain(step.base), place, step.location))
            results = 1
        else:
            assert isinstance(step, Copy)
            steps.append(("copy", plain(step.source), step.location))
            results = 1
        for output in range(results):
            known[Ref("step", number, output)] = ("step", len(steps) - 1, output)
    return steps, [known.get(one, tuple(one)) for one in program.outputs]


def _only_names(step: Call) -> bool:
    name = getattr(step.func, "__name__", "")
    return name in _NAMES and bool(step.args) and isinstance(step.args[0], Ref)


def _constants(step: Call, values: dict[Ref, torch.Tensor]) -> list[torch.Tensor]:
    """Return what a call gives that reads nothing but constants, and writes nothing."""
    given = (step.args, step.kwargs)
    leaves, _ = tree_flatten(given, is_leaf=lambda one: isinstance(one, Ref))
    refs = [one for one in leaves if isinstance(one, Ref)]
    name = getattr(step.func, "__name__", "_")
    writes = name.endswith("_") and not name.endswith("__")
    writes = writes or (name.startswith(("__set", "__i")) and name not in ("__invert__",))
    if not refs or writes or "out" in step.kwargs or any(one not in values for one in refs):
        return []

    def value(one: Any) -> Any:
        return values[one] if isinstance(one, Ref) else one

    args, kwargs = tree_map(value, given, is_leaf=lambda one: isinstance(one, Ref))
    with torch.no_grad():
        result = step.func(*args, **kwargs)
    found = list(result) if isinstance(result, tuple | list) else [result]
    return found if all(isinstance(one, torch.Tensor) for one in found) else []


def _digest(value: torch.Tensor) -> tuple[Any, ...]:
    flat = value.detach().cpu().contiguous().reshape(-1)
    content = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return "constant", value.dtype, tuple(value.shape), hashlib.sha256(content).digest()
