"""FunctionPatch: other functions for traced values while a session lasts, put back in the end."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import leapp
import pytest
import torch
from leapp.leapp_graph.datatypes.patching import TracingPatcher
from veracity.tracing.patches import FunctionPatch, PatchSet

TRACED, PLAIN = torch.ones(2), torch.zeros(2)


def is_traced(value: Any) -> bool:
    return value is TRACED


def library() -> Any:
    module = types.ModuleType("library")
    vars(module).update(double=lambda *a, **k: "original", number=3, other=lambda: "other")
    return module


@dataclasses.dataclass
class Box:
    """Holds something."""

    content: Any


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((TRACED,), {}, "replacement"),
        ((PLAIN,), {}, "original"),
        ((), {}, "original"),
        ((PLAIN, [1, {"a": (TRACED,)}]), {}, "replacement"),
        ((), {"x": Box(TRACED)}, "replacement"),
        (({"k": {TRACED}},), {}, "replacement"),
        (("TRACED", 3), {"x": None}, "original"),
    ],
)
def test_the_replacement_is_used_when_any_argument_is_traced(
    args: Any, kwargs: Any, expected: str
) -> None:
    module = library()
    patch = FunctionPatch(module, "double", lambda *a, **k: "replacement")
    with PatchSet([patch], is_traced):
        assert module.double(*args, **kwargs) == expected
    assert module.double(TRACED) == "original"


def test_loops_in_arguments_end() -> None:
    module, loop = library(), [PLAIN]
    loop.append(loop)  # type: ignore[arg-type]
    with PatchSet([FunctionPatch(module, "double", lambda *a: "replacement")], is_traced):
        assert module.double(loop) == "original"


def test_functions_are_put_back_when_the_body_raises() -> None:
    module = library()
    original = module.double
    with (
        pytest.raises(KeyError),
        PatchSet([FunctionPatch(module, "double", lambda *a: 1)], is_traced),
    ):
        assert module.double is not original
        raise KeyError
    assert module.double is original


def test_what_somebody_else_put_there_meanwhile_stays() -> None:
    module = library()
    with PatchSet([FunctionPatch(module, "double", lambda *a: 1)], is_traced):
        module.double = "theirs"
    assert module.double == "theirs"


def test_nothing_is_patched_when_one_patch_is_wrong() -> None:
    module = library()
    original = module.double
    good, bad = FunctionPatch(module, "double", print), FunctionPatch(module, "missing", print)
    with pytest.raises(ValueError, match=r"no library\.missing"):
        PatchSet([good, bad], is_traced).install()
    assert module.double is original


INVALID: list[tuple[str, Any, type[Exception]]] = [
    ("no patch", lambda p, m: [("m", "f", print)], TypeError),
    ("no module", lambda p, m: [p("library", "double", print)], TypeError),
    ("target not callable", lambda p, m: [p(m, "number", print)], TypeError),
    ("replacement not callable", lambda p, m: [p(m, "double", 3)], TypeError),
    ("empty name", lambda p, m: [p(m, "", print)], ValueError),
    ("missing attribute", lambda p, m: [p(m, "nowhere", print)], ValueError),
    ("same target twice", lambda p, m: [p(m, "double", print)] * 2, ValueError),
]


@pytest.mark.parametrize(
    ("make", "error"), [case[1:] for case in INVALID], ids=[c[0] for c in INVALID]
)
def test_invalid_patches_are_refused_with_the_type_leapp_raises(
    make: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as found:
        PatchSet(make(FunctionPatch, library()), is_traced)
    assert found.value.diagnostics[0].location.startswith(f"{__file__}:")  # type: ignore[attr-defined]
    patcher = TracingPatcher()
    with pytest.raises(error):
        patcher.install(patching=make(leapp.FunctionPatch, library()))
    assert not patcher.installed


def test_a_patch_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FunctionPatch(library(), "double", print).function_name = "other"  # type: ignore[misc]


def test_no_patches_are_fine() -> None:
    with PatchSet(None, is_traced), PatchSet([], is_traced):
        pass
