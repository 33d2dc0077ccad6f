"""Recorded nodes without a session: for tests of what comes after recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from recording import record
from veracity.tracing.nodes import Edge, Node, Port, Recording, Sample

Tensors = dict[str, torch.Tensor]


def port(name: str, tensor: torch.Tensor, **meaning: Any) -> Port:
    """Describe a tensor."""
    return Port(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), **meaning)


def make_node(
    name: str,
    function: Callable[..., Any],
    passes: Tensors | Sequence[Tensors],
    outputs: Sequence[str],
    *,
    states: Sequence[str] = (),
    static_outputs: Tensors | None = None,
    export_with: str | None = "jit",
    backend_params: dict[str, Any] | None = None,
    traced: bool = True,
    meaning: dict[str, dict[str, Any]] | None = None,
) -> Node:
    """Record a function on the first pass; its results are called `outputs`, then `states`."""
    passes = [passes] if isinstance(passes, dict) else list(passes)
    program, first = record(function, passes[0])
    names = [*outputs, *states]
    assert len(first) == len(names)
    statics = static_outputs or {}
    meaning = meaning or {}
    samples = []
    for inputs in passes:
        results = function(*(value.clone() for value in inputs.values()))
        results = list(results) if isinstance(results, tuple | list) else [results]
        samples.append(Sample(inputs, dict(zip(names, results, strict=True)) | statics))
    return Node(
        name=name,
        inputs=[port(key, value, **meaning.get(key, {})) for key, value in passes[0].items()],
        outputs=[
            port(key, value, **meaning.get(key, {}))
            for key, value in [*zip(names, first, strict=True), *statics.items()]
        ],
        states={state: state for state in states},
        static_outputs=statics,
        slice=program,
        export_with=export_with,
        backend_params=backend_params or {},
        samples=samples,
        location=f"policy.py:{len(name)}",
        traced=traced,
    )


def recording(folder: Path, nodes: Sequence[Node], *edges: Edge, **options: Any) -> Recording:
    """Put nodes and edges together."""
    return Recording(folder.name, folder, list(nodes), list(edges), **options)


def edge(source: str, target: str, delay: int = 0, *initial: torch.Tensor) -> Edge:
    """Connect `node/output` to `node/input`."""
    (source_node, output), (target_node, given) = source.split("/"), target.split("/")
    return Edge((source_node, output), (target_node, given), delay, list(initial))
