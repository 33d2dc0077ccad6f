"""Whether two programs are one, but for names of the same memory.

`y.detach()` on one pass and not on another is no other way: what it gives is `y` by another name.
"""

from __future__ import annotations

from typing import Any

from torch.utils._pytree import tree_flatten

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
    known: dict[Ref, Any] = {}
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
