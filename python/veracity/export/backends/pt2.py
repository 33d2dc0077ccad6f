"""Files of `torch.export`.

The graph is interpreted, not run as code, so that every exported operation keeps the user's line.
The example inputs are not stored: they are the user's data, and the same module and weights give
the same bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import fx

from veracity.export.backends.contract import Exported, Ports, exporter_refused, quiet
from veracity.export.backends.pt2_runner import fit_for_runner, packed_constants
from veracity.export.lowering import LOCATION


class Program:
    """`pt2`: the only option is `strict` of `torch.export.export`."""

    extension = ".pt2"
    options = frozenset({"strict"})

    def export(
        self, module: fx.GraphModule, ports: Ports, options: dict[str, Any], path: Path
    ) -> Exported:
        """Export the graph with fixed shapes and write it."""
        notes: list[str] = []
        with quiet(notes):
            with packed_constants(module):
                program = exported_program(module, ports, strict=bool(options.get("strict", False)))
            fit_for_runner(program, ports.node)
            try:
                torch.export.save(program, path)
            except Exception as error:  # any: the serializer raises whatever it meets
                raise exporter_refused(error, module, ports) from error
        return Exported(
            model=program,
            extension=self.extension,
            backend="pt2",
            input_names=list(ports.inputs),
            output_names=list(ports.outputs),
            parameters={"torch_version": str(torch.__version__)},
            notes=notes,
        )


def exported_program(
    module: fx.GraphModule, ports: Ports, *, strict: bool = False
) -> torch.export.ExportedProgram:
    """Run `torch.export` on the graph of a node, or refuse with the user's line."""
    examples = tuple(example.detach().clone() for example in ports.examples)
    source = module if strict else interpreted(module)
    try:
        with torch.no_grad(), fx.traceback.preserve_node_meta():
            program = torch.export.export(source, examples, strict=strict)
    except Exception as error:  # any: torch.export raises whatever it meets
        raise exporter_refused(error, module, ports) from error
    program._example_inputs = None
    for part in program.graph_module.modules():
        if isinstance(part, fx.GraphModule):
            _clean(part.graph.nodes)
    return program


def _clean(nodes: Iterable[fx.Node]) -> None:
    """Drop what depends on the process: graphs are named by their address."""
    for node in nodes:
        node.meta.pop("from_node", None)


def interpreted(module: fx.GraphModule) -> torch.nn.Module:
    """Return a module that interprets the graph, with the graph's parameter names."""
    graph = module.graph
    for node in graph.nodes:
        if LOCATION in node.meta:
            node.meta["stack_trace"] = _as_stack_trace(node)

    def forward(self: torch.nn.Module, *args: torch.Tensor) -> Any:
        return fx.Interpreter(self, graph=graph).run(*args)

    names = ["self", *(node.target for node in graph.nodes if node.op == "placeholder")]
    forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(str(name), inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    made: torch.nn.Module = type("Node", (torch.nn.Module,), {"forward": forward})()
    for name, buffer in module.named_buffers():
        made.register_buffer(name, buffer)
    return made.eval()


def _as_stack_trace(node: fx.Node) -> str:
    """Write a place in the form that torch and ONNX tools read."""
    file, _, line = str(node.meta[LOCATION]).rpartition(":")
    return f'  File "{file}", line {line}, in {node.name}\n'
