"""Compares the model of a pipeline's node with the program that was recorded, value by value.

While a pipeline is compiled the program is at hand. Later a bundle must have it: beside an ONNX
model as `<node>.program.pt2`, which holds the weights a second time; TorchScript and pt2 files are
the program themselves, so that what is compared is an ONNX export made of them on the spot, and the
result says so. Whether the program is the user's code is not asked here: that is what proofs are
for.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor, fx, nn

from veracity import _native
from veracity.drift import tensor_files, zoo
from veracity.errors import refuse
from veracity.export import graph
from veracity.export.backends.contract import Ports, quiet
from veracity.export.backends.placement import on_cpu
from veracity.export.backends.pt2 import exported_program, interpreted
from veracity.export.lowering import LOCATION
from veracity.export.models import Made, program_of
from veracity.parity import ParityResult, parity

#: As `veracity._native.write_bundle` calls the program of a node, in place of the model's ending.
_PROGRAM_ENDING = ".program.pt2"
_FRESH = "the node has no ONNX model: an ONNX export of its {backend} program was compared"


def parity_of(
    program: nn.Module,
    sample: Sequence[Tensor],
    onnx: str | os.PathLike[str] | None,
    *,
    name: str,
    **options: Any,
) -> ParityResult:
    """Compare a recorded program with the ONNX file that was made of it, on one sample.

    Args:
        program: The program; its graph is interpreted, so that values get the exporter's names.
        sample: Its inputs, in order.
        onnx: The file; `None` makes an export on the spot.
        name: Name of the node, for the report.
        options: Options of `veracity.parity`.
    """
    module = interpreted(program) if _is_recorded(program) else program
    # Keeps the user's lines, which recorded programs carry.
    with fx.traceback.preserve_node_meta():
        return parity(module, tuple(sample), onnx=onnx, name=name, **options)


def parity_of_made(made: Made, **options: Any) -> ParityResult:
    """Compare the model of a node with its program, while a pipeline is compiled."""
    if made.exported is None:
        raise _no_program(made.node.name, "it is only described", made.node.location)
    program, ports = _program_and_ports(made)
    is_onnx = made.exported.backend == "onnx"
    file = made.exported.path if is_onnx else None
    result = parity_of(program, ports.examples, file, name=made.node.name, **options)
    return result if is_onnx else _noted(result, _FRESH.format(backend=made.exported.backend))


def save_program(made: Made, path: Path) -> None:
    """Write the program of a node, with the inputs that its model has, for `parity_of_bundle`."""
    program, ports = _program_and_ports(made)
    with quiet([]):
        torch.export.save(exported_program(program, ports), path)


def parity_of_bundle(
    path: str | os.PathLike[str], node: str, *, sample: int = 0, **options: Any
) -> ParityResult:
    """Compare the model of a node in a bundle with the node's program.

    Args:
        path: The bundle's YAML file, or its folder.
        node: Name of the node.
        sample: Which of its recorded samples to use.
        options: Options of `veracity.parity`.
    """
    facts = json.loads(_native.inspect(Path(path)))
    entry = _entry(facts, node)
    root = Path(facts["bundle"]).parent
    inputs = _sample(facts, root, entry, sample)
    backend, file = entry["model"]["backend"], root / entry["model"]["path"]
    if backend == "onnx":
        program = _loaded(root, _listed_program(facts, entry))
        return parity_of(program, inputs, file, name=node, **options)
    program = _loaded(root, entry["model"]["path"]) if backend == "pt2" else _script(file, inputs)
    result = parity_of(program, inputs, None, name=node, **options)
    return _noted(result, _FRESH.format(backend=backend))


# Programs of recorded nodes


def _program_and_ports(made: Made) -> tuple[fx.GraphModule, Ports]:
    node = made.node
    outputs = [port.name for port in node.outputs]
    inputs = [use.port for use in node.slice.inputs]
    first = node.samples[0].inputs
    module = graph.build(program_of(node), outputs)
    ports = Ports(node.name, inputs, outputs, [first[name] for name in inputs])
    module, ports = on_cpu(module, ports)
    kept = {port.name for port in made.inputs}
    removed = [number for number, name in enumerate(inputs) if name not in kept]
    return _without_inputs(module, ports, removed)


def _without_inputs(
    module: fx.GraphModule, ports: Ports, removed: list[int]
) -> tuple[fx.GraphModule, Ports]:
    """Fix inputs that the model does not have; they have no influence."""
    if not removed:
        return module, ports
    smaller = fx.GraphModule(module, copy.deepcopy(module.graph))
    placeholders = [node for node in smaller.graph.nodes if node.op == "placeholder"]
    for number in removed:
        unused, name = placeholders[number], f"unused_{number}"
        smaller.register_buffer(name, ports.examples[number].detach().clone())
        with smaller.graph.inserting_after(placeholders[-1]):
            unused.replace_all_uses_with(smaller.graph.get_attr(name))
        smaller.graph.erase_node(unused)
    smaller.recompile()
    rest = [number for number in range(len(ports.inputs)) if number not in removed]
    names, examples = (
        [ports.inputs[number] for number in rest],
        [ports.examples[number] for number in rest],
    )
    return smaller.eval(), Ports(ports.node, names, ports.outputs, examples)


def _is_recorded(program: nn.Module) -> TypeGuard[fx.GraphModule]:
    """Tell graphs of `export.graph`, which know the user's lines, from those that torch loads."""
    return isinstance(program, fx.GraphModule) and any(
        LOCATION in node.meta for node in program.graph.nodes
    )


def _noted(result: ParityResult, note: str) -> ParityResult:
    report = json.loads(result.to_json())
    return ParityResult({**report, "notes": [*report.get("notes", ()), note]})


# Programs of bundles


def _entry(facts: dict[str, Any], node: str) -> dict[str, Any]:
    nodes: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in facts["nodes"]}
    if node not in nodes:
        close = zoo.nearest(node, nodes)
        hint = f"the nearest name is '{close}'" if close else f"it has {', '.join(nodes)}"
        message = f"the bundle has no node '{node}'"
        raise refuse("VER1236", message, location=facts["bundle"], hints=(hint,))
    if not nodes[node].get("model"):
        raise _no_program(node, "it is only described", facts["bundle"])
    return nodes[node]


def _sample(facts: dict[str, Any], root: Path, entry: dict[str, Any], number: int) -> list[Tensor]:
    """Read a recorded sample of a node."""
    file = (facts.get("veracity") or {}).get("samples")
    if file is None:
        message = "the bundle has no recorded values to compare on"
        raise refuse("VER1105", message, location=facts["bundle"])
    values = tensor_files.read(root / file)
    found: list[Tensor] = []
    for port in entry["inputs"]:
        recorded = values.get(f"recorded/{entry['name']}/in/{port['name']}")
        if recorded is None or number >= len(recorded):
            message = f"there is no recorded sample {number} of {entry['name']}/{port['name']}"
            raise refuse("VER1105", message, location=str(root / file))
        found.append(recorded[number].clone())
    return found


def _listed_program(facts: dict[str, Any], entry: dict[str, Any]) -> str:
    model: str = entry["model"]["path"]
    program = model.removesuffix(".onnx") + _PROGRAM_ENDING
    # A file that is not listed has no hash: it may be anything.
    if program not in (facts.get("veracity") or {}).get("files", ()):
        hint = "export it again with `compile_graph(drift=True)`, which keeps the program"
        raise _no_program(entry["name"], f"there is no {program}", facts["bundle"], hint)
    return program


def _loaded(root: Path, file: str) -> nn.Module:
    try:
        with quiet([]):
            program: nn.Module = torch.export.load(root / file).module()
    except Exception as error:  # any: torch raises whatever it meets
        first_line = str(error).strip().split("\n", 1)[0]
        message = "torch cannot read this program"
        location = str(root / file)
        raise refuse("VER1235", message, location=location, hints=(first_line,)) from error
    return program


def _script(file: Path, inputs: list[Tensor]) -> nn.Module:
    """Read a TorchScript file as a graph, which must compute what the file computes."""
    try:
        # The converter is not public: where it is gone, this is refused.
        from torch._export.converter import TS2EPConverter

        script = torch.jit.load(str(file), map_location="cpu").eval()
        with quiet([]), torch.no_grad():
            program: nn.Module = TS2EPConverter(script, tuple(inputs)).convert().module()
            ours, theirs = (_leaves(each(*inputs)) for each in (program, script))
    except Exception as error:  # any: torch raises whatever it meets
        hint = str(error).strip().split("\n", 1)[0]
        message = "torch cannot make a graph of this TorchScript file"
        raise refuse("VER1235", message, location=str(file), hints=(hint,)) from error
    if len(ours) != len(theirs) or not all(map(_same, ours, theirs)):
        message = "the graph that torch makes of this TorchScript file computes something else"
        raise refuse("VER1235", message, location=str(file))
    return program


def _leaves(value: Any) -> list[Tensor]:
    leaves = torch.utils._pytree.tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _same(ours: Tensor, theirs: Tensor) -> bool:
    return torch.allclose(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)


def _no_program(node: str, why: str, location: str, *hints: str) -> Exception:
    message = f"node '{node}' has no program to compare with: {why}"
    return refuse("VER1235", message, location=location, hints=hints)
