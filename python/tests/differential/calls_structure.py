"""Values and nodes that do not fit into each other: both refuse them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from differential.registry import refused


def _mirrored(api: Any, folder: Path, source: Any, target: Any) -> None:
    api.start("refused", save_path=str(folder))
    x = api.annotate.input_tensors("n", {"x": torch.ones(3)})
    y = x * 2
    api.annotate.mirror_leapp_tags(source(y), target(y.detach().clone()))


@refused("mirror", ["VER0902"])
def a_mirror_of_another_length(api: Any, folder: Path) -> None:
    _mirrored(api, folder, lambda y: [y, y], lambda y: [y])


@refused("mirror", ["VER0902"])
def a_mirror_with_other_keys(api: Any, folder: Path) -> None:
    _mirrored(api, folder, lambda y: {"a": y}, lambda y: {"b": y})


@refused("mirror", ["VER0902"])
def a_mirror_of_another_kind(api: Any, folder: Path) -> None:
    _mirrored(api, folder, lambda y: {"a": y}, lambda y: [y])


@refused("method", ["VER0906"])
def a_method_inside_of_an_open_node(api: Any, folder: Path) -> None:
    @api.annotate.method(export_with="jit")  # told
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    api.start("refused", save_path=str(folder))
    x = api.annotate.input_tensors("outer", {"x": torch.ones(3)})
    inner(x * 2)  # told


@refused("method", ["VER0906"])
def a_method_inside_of_a_method(api: Any, folder: Path) -> None:
    @api.annotate.method(export_with="jit")  # told
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @api.annotate.method(export_with="jit")
    def outer(x: torch.Tensor) -> torch.Tensor:
        return inner(x) * 2  # told

    api.start("refused", save_path=str(folder))
    outer(torch.ones(3))
