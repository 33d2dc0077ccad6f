"""Recorded nodes without a session: for tests of what comes after recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from recording import record
from veracity.export.graph import build
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
    for tick, inputs in enumerate(passes):
        results = function(*(value.clone() for value in inputs.values()))
        results = list(results) if isinstance(results, tuple | list) else [results]
        samples.append(Sample(inputs, dict(zip(names, results, strict=True)) | statics, tick))
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
    """Put nodes and edges together; the samples become those of one episode."""
    made = Recording(folder.name, folder, list(nodes), list(edges), **options)
    _live_through(made)
    return made


def _live_through(made: Recording) -> None:
    """Let every input be what its edge carries, tick by tick, and every output follow from it."""
    nodes = {node.name: node for node in made.nodes}
    own = [
        Edge((node.name, output), (node.name, name), 1)
        for node in made.nodes
        for output, name in node.states.items()
    ]
    fed = {one.target: one for one in [*own, *made.edges] if one.source[0] in nodes}
    ticks = min((len(node.samples) for node in made.nodes), default=0)
    for tick in range(ticks):
        for node in made.nodes:
            sample = node.samples[tick]
            carried = {
                name: _carried(nodes[fed[node.name, name].source[0]], fed[node.name, name], tick)
                for name in sample.inputs
                if (node.name, name) in fed
            }
            new = {
                name: value
                for name, value in carried.items()
                if value is not None and value.shape == sample.inputs[name].shape
            }
            if any(not torch.equal(value, sample.inputs[name]) for name, value in new.items()):
                node.samples[tick] = _pass(node, {**sample.inputs, **new}, sample)


def _carried(source: Node, edge: Edge, tick: int) -> torch.Tensor | None:
    if tick >= edge.delay:
        return source.samples[tick - edge.delay].outputs.get(edge.source[1])
    return edge.initial[tick] if tick < len(edge.initial) else None


def _pass(node: Node, inputs: Tensors, old: Sample) -> Sample:
    names = [port.name for port in node.outputs if port.name not in node.static_outputs]
    module = build(node.slice, names)
    found = module(*(inputs[use.port] for use in node.slice.inputs))
    found = (found,) if isinstance(found, torch.Tensor) else found
    return Sample(inputs, {**old.outputs, **dict(zip(names, found, strict=True))}, old.tick)


def edge(source: str, target: str, delay: int = 0, *initial: torch.Tensor) -> Edge:
    """Connect `node/output` to `node/input`."""
    (source_node, output), (target_node, given) = source.split("/"), target.split("/")
    return Edge((source_node, output), (target_node, given), delay, list(initial))
