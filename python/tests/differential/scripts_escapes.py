"""Values that leave for Python, and what changes behind the tracer's back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from differential.nodes import one_node
from differential.registry import Better, Step, script

_FROZEN = "the value is frozen and the export validates"


@script("escapes", {"n/x": (3,)}, passes=1, relation=Better(_FROZEN, "wrong", ("VER0911",)))
def item_is_frozen(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        peak = x.max().item()  # told
        return x * peak

    return one_node(api, compute)


@script("escapes", {"n/x": (3,)}, passes=1, relation=Better(_FROZEN, "wrong", ("VER0911",)))
def float_is_frozen(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        total = float(x.sum())  # told
        return x + total

    return one_node(api, compute)


@script("escapes", {"n/x": (3,)}, passes=1, relation=Better(_FROZEN, "wrong", ("VER0911",)))
def a_branch_is_frozen(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        if x.sum() > 0:  # told
            return x * 2
        return x - 5

    return one_node(api, compute)


@script("escapes", {"n/x": (3,)}, passes=1, relation=Better(_FROZEN, "wrong", ("VER0911",)))
def tolist_is_frozen(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        first = x.tolist()[0]  # told
        return x + first

    return one_node(api, compute)


@script(
    "escapes",
    {"n/x": (3,)},
    passes=3,
    relation=Better("found by validation, without the line", "disproved", ("VER0911", "VER0918")),
)
def a_frozen_value_that_changes(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        peak = x.max().item()  # told
        return x * peak

    return one_node(api, compute)


@script(
    "escapes",
    {"n/x": (3,)},
    passes=3,
    relation=Better("found by validation, without the line", "disproved", ("VER0912",)),
)
def a_missed_input(api: Any) -> Step:
    tick = 0

    def compute(x: Tensor) -> Tensor:
        nonlocal tick
        tick += 1
        offset = torch.full((3,), float(tick))  # told
        return x + offset

    return one_node(api, compute)


@script(
    "escapes",
    {"n/x": (3,)},
    passes=1,
    relation=Better("validation says False and nothing more", "disproved", ("VER0916",)),
)
def random_numbers(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        noise = torch.rand_like(x)  # told
        return x + noise

    return one_node(api, compute)


@script(
    "escapes",
    {"n/x": (6,)},
    passes=1,
    relation=Better(_FROZEN, "wrong", ("VER0911",)),
)
def a_size_that_depends_on_data(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        positive = x[x > 0]
        count = positive.shape[0]  # told
        return x * count

    return one_node(api, compute)


def _refused_by_jit(
    name: str, compute: Any, theirs: type[Exception] = RuntimeError, draw: Any = (4,)
) -> None:
    @script(
        "escapes",
        {"n/x": draw},
        name=f"jit_exports_{name}",
        passes=1,
        relation=Better("the call cannot be recorded, or TorchScript refuses it", theirs),
    )
    def exported(api: Any) -> Step:
        return one_node(api, compute)


_refused_by_jit("an_inverted_mask", lambda x: x.masked_fill(~(x > 0), 0.0))
_refused_by_jit("floor_division", lambda x: x // 2)
_refused_by_jit("a_bare_norm", lambda x: x.norm())
_refused_by_jit("mt", lambda x: x.mT * 2, AttributeError, (2, 3))
_refused_by_jit("flip_by_number", lambda x: x.flip(0), TypeError)
_refused_by_jit("tensor_of_elements", lambda x: torch.tensor([x[0], x[1]]) * 2, TypeError)
_refused_by_jit("vmap", lambda x: torch.vmap(lambda row: row * 2 + 1)(x), Exception, (2, 3))


@script("escapes", {"n/x": (1, 1, 3, 3)}, passes=1)
def jit_exports_bilinear_interpolation(api: Any) -> Step:
    return one_node(api, lambda x: nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear"))


@script(
    "escapes",
    {"n/x": (3,)},
    passes=3,
    relation=Better("found by validation, without the line", "disproved", ("VER0918",)),
)
def another_computation_on_a_later_pass(api: Any) -> Step:
    tick = 0

    def compute(x: Tensor) -> Tensor:
        nonlocal tick
        tick += 1
        return x * 2 if tick == 1 else x.exp()  # told

    return one_node(api, compute)


_WEIGHT = torch.zeros(3)


@script(
    "escapes",
    {"n/x": (3,)},
    compile=lambda api: _WEIGHT.fill_(100.0) is None or {},
    relation=Better("found by validation, without the name", "disproved", ("VER0921",)),
)
def a_weight_changed_between_stop_and_compile(api: Any) -> Step:
    _WEIGHT.fill_(2.0)

    def compute(x: Tensor) -> Tensor:
        return x * _WEIGHT  # told

    return one_node(api, compute)
