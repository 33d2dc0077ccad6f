"""Keeps the exporter's optimiser from taking small numbers for zero.

Its patterns hold numbers against constants of a model with a tolerance: `x + 1e-8` is nothing added
to it, and `x * 1.000005` is `x`. Code divides by `std + 1e-8` so that nothing divides by zero. The
comparison is private, so it is replaced only where it is found, and only while an export runs;
without it such code is disproved, not wrong.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import types
from collections.abc import Iterator

_MODULES = ("onnxscript.rewriter._matcher", "onnxscript.rewriter._ir_utils")
#: Constants such as sqrt(2 / pi), rounded to float32.
_ROUNDING = 2e-7


def _same_number(found: float, wanted: float, **_: float) -> bool:
    if float(wanted).is_integer():
        return found == wanted
    return math.isclose(found, wanted, rel_tol=_ROUNDING)


@contextlib.contextmanager
def exact_constants() -> Iterator[None]:
    """Let patterns match numbers that are equal, up to a rounding of those that have one."""
    exact = types.SimpleNamespace(**{**vars(math), "isclose": _same_number})
    with contextlib.ExitStack() as stack:
        for name in _MODULES:
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue
            if getattr(module, "math", None) is math:
                setattr(module, "math", exact)  # noqa: B010  # not an attribute that mypy knows
                stack.callback(setattr, module, "math", math)
        yield
