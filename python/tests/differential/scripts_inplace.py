"""Writes: through whole tensors, views, masks, `out=`, and into memory that is no node's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from differential.nodes import one_node
from differential.registry import Better, Step, Values, script


@script("writes", {"n/x": (2, 3)})
def methods_with_an_underscore(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        y = x * 2
        y.add_(1).mul_(0.5)
        y.relu_()
        y.clamp_(max=1.5)
        return y

    return one_node(api, compute)


@script(
    "writes",
    {"n/x": (2, 3)},
    passes=1,
    relation=Better("the mask of an in-place fill is frozen", "wrong"),
)
def masked_fill_in_place(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        y = x * 2
        y.masked_fill_(y > 1, -1.0)
        return y

    return one_node(api, compute)


@script("writes", {"n/x": (2, 3)})
def an_input_is_written(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2

    return one_node(api, compute)


@script(
    "writes",
    {"n/x": (4,)},
    relation=Better("a write through a part is not seen by the whole", "disproved"),
)
def a_write_through_a_partial_view(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        whole = x * 2
        part = whole[0:2]
        part += 1
        return whole * 1.0

    return one_node(api, compute)


@script("writes", {"n/x": (4,)})
def a_slice_is_assigned(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        y = x * 2
        y[1:3] = 0.25
        y[3] = x[0]
        return y

    return one_node(api, compute)


@script("writes", {"n/x": (5,)})
def a_mask_is_assigned(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        y = x * 2
        y[x > 0] = -1.0
        return y

    return one_node(api, compute)


@script("writes", {"n/x": (5,)})
def a_fresh_buffer_is_filled(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        buffer = torch.zeros(10)
        buffer[0:5] = x
        buffer[5:] = x * 2
        return buffer

    return one_node(api, compute)


@script("writes", {"n/x": (5,)})
def copy_into_a_fresh_tensor(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        target = torch.empty(5)
        target.copy_(x.exp())
        return target + 1

    return one_node(api, compute)


@script(
    "writes",
    {"n/x": (5,)},
    relation=Better("the written tensor keeps its old value", "wrong"),
    passes=1,
)
def a_result_is_written_with_out(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        target = torch.empty(5)
        torch.mul(x, 3.0, out=target)
        return target + x

    return one_node(api, compute)


@script("writes", {"n/x": (4,)})
def detach_aliases_and_clone_does_not(api: Any) -> Step:
    def compute(x: Tensor) -> dict[str, Tensor]:
        y = x * 2
        alias, copy = y.detach(), y.clone()
        alias += 1
        return {"y": y + 0, "copy": copy + 0}

    return one_node(api, compute)


@script("writes", {"n/x": (3,)})
def a_registered_buffer_with_a_slice_write(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        buffer = api.annotate.register_buffer("n", torch.arange(6.0))
        buffer[2:5] = x
        return buffer * 2

    return one_node(api, compute)


@script("writes", {"n/x": (3,)})
def registered_buffers_by_name(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        low, high = api.annotate.register_buffer(
            "n", {"low": torch.zeros(3), "high": torch.ones(3)}
        )
        low += x
        high[0] = x[1]
        return low * high

    return one_node(api, compute)


@script(
    "writes",
    {"n/x": (4, 3), "n/index": lambda g: torch.randperm(4, generator=g)[:2]},
    relation=Better("a plain tensor is not traced after an indexed write", Exception),
)
def index_add_and_scatter(api: Any) -> Step:
    def compute(x: Tensor, index: Tensor) -> Tensor:
        y = torch.zeros(4, 3)
        y.index_add_(0, index, x[:2])
        y.scatter_(0, index.unsqueeze(1).expand(2, 3), 5.0)
        return y

    return one_node(api, compute)


@script(
    "writes",
    {"n/p": (3,), "n/q": (3,)},
    traced=lambda tick, given: _overlapping(given["n/p"]),
    relation=Better("one is taken for a part of the other", "disproved", ("VER0923",)),
)
def inputs_that_overlap_and_are_written(api: Any) -> Step:
    def compute(p: Tensor, q: Tensor) -> Tensor:
        p.add_(1)  # told
        return p + 10 * q

    return one_node(api, compute)


def _overlapping(p: Tensor) -> Values:
    base = torch.cat([p, p])
    return {"n/p": base[0:3], "n/q": base[1:4]}
