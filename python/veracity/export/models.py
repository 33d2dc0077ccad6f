"""From recorded nodes to model files.

Every node becomes a `Made`: a file with the names that its ports have there, or no file for nodes
that are only described. All nodes are tried before anything is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veracity.errors import Diagnostic, VeracityError, error_from_diagnostics
from veracity.export.backends import foreign
from veracity.export.log import ExportLog
from veracity.progress import Progress
from veracity.tracing.nodes import Node, Port
from veracity.tracing.slice import ConstantUse, Ref, Slice

if TYPE_CHECKING:
    from torch import fx


@dataclass(frozen=True)
class Exported:
    """A model file of a node and how its ports are called there."""

    path: Path
    backend: str
    input_names: list[str]
    output_names: list[str]


@dataclass
class Made:
    """A node and the model it became.

    Attributes:
        node: The node.
        exported: The model file; `None` for a node that is only described.
        inputs: The inputs that the model has, in its order, by the node's names.
        parameters: Further keys of the node's `parameters` in the bundle.
        module: The program that was exported, where the exporter is known to leave it alone.
        program: File of the recorded program, if the bundle is to hold it.
    """

    node: Node
    exported: Exported | None
    inputs: list[Port]
    parameters: dict[str, Any] = field(default_factory=dict)
    module: fx.GraphModule | None = None
    program: Path | None = None

    def input_names(self) -> list[str]:
        """Return what the inputs are called in the bundle."""
        return self.exported.input_names if self.exported else [p.name for p in self.inputs]

    def output_names(self) -> list[str]:
        """Return what the outputs are called in the bundle."""
        return self.exported.output_names if self.exported else [p.name for p in self.node.outputs]


def make_models(nodes: list[Node], folder: Path, log: ExportLog, progress: Progress) -> list[Made]:
    """Export every node into `folder`. Refused with the reasons of all that cannot be exported."""
    made: list[Made] = []
    found: list[Diagnostic] = []
    known: dict[tuple[int, str | None], Made] = {}
    for number, node in enumerate(nodes):
        # Generated nodes of one edge have the very same program: one model does for all.
        program = (id(node.slice), node.export_with)
        if program in known:
            made.append(replace(known[program], node=node))
            continue
        progress.step(f"exporting {node.name} ({node.export_with or 'no exporter'})")
        try:
            stem = _stem(node.name, number, {one.node.name for one in made})
            made.append(_make(node, folder / stem, log))
            known[program] = made[-1]
        except VeracityError as refusal:
            found += refusal.diagnostics
    if any(finding.severity == "error" for finding in found):
        raise error_from_diagnostics(found)
    return made


def describe_only(node: Node) -> Made:
    """Return a node without model."""
    return Made(node, None, node.inputs)


def _stem(name: str, number: int, others: set[str]) -> str:
    """Return a name for files: the node's own, which external data keeps, where that is safe."""
    taken = {other.casefold() for other in others}
    plain = re.fullmatch(r"[A-Za-z0-9_][\w.-]*", name, re.ASCII) and len(name) < 100
    return name if plain and name.casefold() not in taken else f"{number}-"


def _make(node: Node, stem: Path, log: ExportLog) -> Made:
    if not node.traced:
        return describe_only(node)
    if node.export_with is None:
        return _adopt(node, log)
    return _export(node, node.export_with, stem, log)


def _adopt(node: Node, log: ExportLog) -> Made:
    model = foreign.adopt(node.name, node.backend_params, node.location)
    if model is None:
        return describe_only(node)
    for note in model.notes:
        log.note(note)
    inputs = [port.name for port in node.inputs]
    outputs = [port.name for port in node.outputs]
    return Made(node, Exported(model.path, model.backend, inputs, outputs), node.inputs)


def _export(node: Node, backend: str, stem: Path, log: ExportLog) -> Made:
    from veracity.export import backends, graph

    inputs = _used_inputs(node)
    input_names = [port.name for port in inputs]
    output_names = [port.name for port in node.outputs]
    module = graph.build(program_of(node), output_names)
    examples = [node.samples[0].inputs[name] for name in input_names]
    ports = backends.Ports(node.name, input_names, output_names, examples)
    extension = backends.find(backend, location=node.location).extension
    path = stem.with_name(stem.name + extension)
    made = backends.export(
        backend, module, ports, path, node.backend_params, location=node.location
    )
    for note in made.notes:
        log.note(f"{node.name}: {note}")
    kept = [port for port in inputs if port.name not in made.removed_inputs]
    exported = Exported(path, made.backend, made.input_names, made.output_names)
    untouched = module if made.backend == "jit" else None
    return Made(node, exported, kept, made.parameters, untouched)


def _used_inputs(node: Node) -> list[Port]:
    ports = {port.name: port for port in node.inputs}
    return [ports[use.port] for use in node.slice.inputs]


def program_of(node: Node) -> Slice:
    """Return what a node computes, its static outputs included."""
    statics = [ConstantUse(value, False) for value in node.static_outputs.values()]
    first = len(node.slice.constants)
    outputs = [Ref("constant", first + number) for number in range(len(statics))]
    return replace(
        node.slice,
        constants=[*node.slice.constants, *statics],
        outputs=[*node.slice.outputs, *outputs],
    )


#: Says how a recorded end of an edge is called in the bundle.
Rename = Callable[[tuple[str, str]], tuple[str, str]]


def renames(made: list[Made]) -> tuple[Rename, Rename]:
    """Return the names in the bundle of outputs and of inputs, by node and recorded name."""
    outputs = {
        (one.node.name, port.name): (one.node.name, name)
        for one in made
        for port, name in zip(one.node.outputs, one.output_names(), strict=True)
    }
    inputs = {
        (one.node.name, port.name): (one.node.name, name)
        for one in made
        for port, name in zip(one.inputs, one.input_names(), strict=True)
    }
    return outputs.__getitem__, inputs.__getitem__
