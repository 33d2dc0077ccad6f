"""ONNX files, by either exporter of torch.

Ports keep the user's names, whatever characters they have; ONNX has one space of names, so a name
on both sides becomes `<name>_in` and `<name>_out`. `onnx` uses the exporter on top of
`torch.export`. What that one refuses is given to the older exporter, and the result is taken only
if it computes the same as the module on two sets of inputs.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import fx

from veracity.errors import VeracityError, refuse
from veracity.export.backends import pure_writes, trial
from veracity.export.backends.contract import (
    Exported,
    Ports,
    exporter_refused,
    quiet,
    quiet_descriptors,
)
from veracity.export.backends.onnx_corners import taken_apart
from veracity.export.backends.onnx_engine import guarded
from veracity.export.backends.onnx_exact import exact_constants
from veracity.export.backends.onnx_halves import rounded
from veracity.export.backends.onnx_tables import kept_tables
from veracity.export.backends.placement import cpu_by_default, on_cpu
from veracity.export.backends.pt2 import exported_program
from veracity.export.graph import writes
from veracity.export.replacements import to_copy

_COMMON_OPTIONS = frozenset(
    {"opset_version", "report", "verify", "optimize", "skip_validation", "external_data"}
)
_DEFAULT_OPSET = 20
#: Parts of a protobuf file must stay below 2 GiB; weights beyond this go to a file of their own.
_LARGEST_SINGLE_FILE = 1_500_000_000


_OTHER_FORMATS = "export_with='jit' and 'pt2' know every operation of torch"


class Dynamo:
    """`onnx`: through `torch.export`."""

    extension = ".onnx"
    options = _COMMON_OPTIONS

    def export(
        self, module: fx.GraphModule, ports: Ports, options: dict[str, Any], path: Path
    ) -> Exported:
        """Export the graph and write it, with the older exporter if need be."""
        names = port_names(ports)
        module, ports = on_cpu(module, ports)
        notes: list[str] = []
        try:
            with cpu_by_default(), quiet(notes):
                model = _translated(module, ports, options, notes)
                return _written(model, module, ports, names, options, path, notes)
        except VeracityError as refused:
            with cpu_by_default():
                return _second_choice(refused, module, ports, names, options, path)


class TorchScript:
    """`onnx-torchscript`: through `torch.jit.trace`, or `torch.jit.script` with `prescript`.

    This exporter translates some operations wrongly (`x // 2`), so its models are run beside the
    module unless `verify=False` says not to.
    """

    extension = ".onnx"
    options = _COMMON_OPTIONS | {"prescript"}

    def export(
        self, module: fx.GraphModule, ports: Ports, options: dict[str, Any], path: Path
    ) -> Exported:
        """Export the graph and write it."""
        names = port_names(ports)
        module, ports = on_cpu(module, ports)
        notes: list[str] = []
        with cpu_by_default(), quiet(notes):
            source = _without_writes(module, ports) if writes(module) else module
            try:
                model = _legacy(source, module, ports, options, notes)
            except VeracityError:
                simpler = _taken_apart_module(module, ports)
                if simpler is None:
                    raise
                model = _legacy(simpler, module, ports, options, notes)
            options = {"verify": _has_runtime()} | options
            return _written(model, module, ports, names, options, path, notes)


# Names


def port_names(ports: Ports) -> tuple[list[str], list[str]]:
    """Return the names of inputs and outputs in one space of names."""
    both = set(ports.inputs) & set(ports.outputs)
    used = set(ports.inputs) | set(ports.outputs)
    for name in sorted(both):
        for made in (f"{name}_in", f"{name}_out"):
            if made in used:
                raise refuse(
                    "VER1004",
                    f"node '{ports.node}' has an input and an output '{name}', and also '{made}'",
                    hints=(
                        f"ONNX needs distinct names and '{name}' would become '{made}': rename one",
                    ),
                )
    inputs = [f"{name}_in" if name in both else name for name in ports.inputs]
    outputs = [f"{name}_out" if name in both else name for name in ports.outputs]
    return inputs, outputs


def _rename_ports(model: Any, inputs: dict[str, str], outputs: list[str]) -> None:
    """Give ports the user's names and move every other value out of their way."""
    ports = [*model.graph.inputs, *model.graph.outputs]
    taken = {*inputs.values(), *outputs}
    for value in _values(model.graph):
        if value.name in taken and not any(value is port for port in ports):
            _rename(model.graph, value, _free_name(value.name, taken))
    for value in model.graph.inputs:
        value.name = inputs[value.name]
    for value, name in zip(model.graph.outputs, outputs, strict=True):
        value.name = name


def _values(graph: Any) -> list[Any]:
    """Return every value of a graph and of the graphs inside it."""
    found = [*graph.inputs, *graph.initializers.values()]
    for node in graph.all_nodes():
        found.extend(value for value in node.outputs if value.name)
    return found


def _rename(graph: Any, value: Any, name: str) -> None:
    if graph.initializers.get(value.name) is value:
        del graph.initializers[value.name]
        value.name = name
        graph.initializers[name] = value
    else:
        value.name = name


def _free_name(name: str, taken: set[str]) -> str:
    number = 0
    while f"{name}__{number}" in taken:
        number += 1
    taken.add(f"{name}__{number}")
    return f"{name}__{number}"


# The two exporters


def _translated(
    module: fx.GraphModule, ports: Ports, options: dict[str, Any], notes: list[str]
) -> Any:
    program = taken_apart(exported_program(module, ports))
    try:
        return _model_of(program, module, ports, options, notes)
    except VeracityError:
        if not writes(module):
            raise
        # The exporter's own way to write through a view may be one that it refuses.
        pure = _with_pure_writes(program, module, ports)
        return _model_of(pure, module, ports, options, notes)


def _model_of(
    program: torch.export.ExportedProgram,
    module: fx.GraphModule,
    ports: Ports,
    options: dict[str, Any],
    notes: list[str],
) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        try:
            with torch.no_grad(), kept_tables(), exact_constants():
                made = torch.onnx.export(
                    program,
                    dynamo=True,
                    verbose=False,
                    opset_version=options.get("opset_version", _DEFAULT_OPSET),
                    optimize=bool(options.get("optimize", True)),
                    report=bool(options.get("report", False)),
                    artifacts_dir=folder,
                )
        except Exception as error:  # any: the exporter raises whatever it meets
            raise exporter_refused(error, module, ports, _OTHER_FORMATS) from error
        finally:
            notes.extend(report.read_text() for report in Path(folder).glob("*.md"))
    return _checked_program(made).model


def _checked_program(made: Any) -> Any:
    if made is None:
        message = "torch.onnx.export gave no program"
        raise RuntimeError(message)
    return made


def _with_pure_writes(
    program: torch.export.ExportedProgram, module: fx.GraphModule, ports: Ports
) -> torch.export.ExportedProgram:
    try:
        with torch.no_grad():
            return program.run_decompositions(pure_writes.table())  # type: ignore[no-any-return]
    except Exception as error:  # any: torch.export raises whatever it meets
        raise exporter_refused(error, module, ports) from error


def _without_writes(module: fx.GraphModule, ports: Ports) -> torch.nn.Module:
    """Return the same computation without writes; the older exporter loses those through views."""
    return _as_module(_with_pure_writes(exported_program(module, ports), module, ports))


def _taken_apart_module(module: fx.GraphModule, ports: Ports) -> torch.nn.Module | None:
    """Return the same computation of operations that both exporters know, if that is another."""
    try:
        program = exported_program(module, ports)
    except VeracityError:  # what is said of the first attempt is about the user's code
        return None
    apart = taken_apart(program)
    if apart is program:
        return None
    return _as_module(_with_pure_writes(apart, module, ports) if writes(module) else apart)


def _as_module(program: torch.export.ExportedProgram) -> torch.nn.Module:
    plain: Any = program.module()
    for node in list(plain.graph.nodes):
        if node.op == "call_module":  # checks of the inputs' shapes, which are fixed here
            plain.graph.erase_node(node)
        elif node.target is torch.ops.aten._to_copy.default:
            node.target = to_copy
    return fx.GraphModule(plain, plain.graph).eval()


def _legacy(
    source: torch.nn.Module,
    module: fx.GraphModule,
    ports: Ports,
    options: dict[str, Any],
    notes: list[str],
) -> Any:
    import onnx_ir
    from onnx_ir.passes.common import ShapeInferencePass

    examples = tuple(example.detach().clone() for example in ports.examples)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        try:
            with torch.no_grad(), quiet_descriptors():
                torch.onnx.export(
                    _prescripted(source, notes) if options.get("prescript") else source,
                    examples,
                    file,
                    dynamo=False,
                    input_names=_numbered("input", len(ports.inputs)),
                    output_names=_numbered("output", len(ports.outputs)),
                    opset_version=options.get("opset_version", _DEFAULT_OPSET),
                    do_constant_folding=bool(options.get("optimize", True)),
                )
        except Exception as error:  # any: the exporter raises whatever it meets
            raise exporter_refused(error, module, ports) from error
        model = onnx_ir.load(file)
        onnx_ir.external_data.load_to_model(model)
    # This exporter writes types of ports only; what is rewritten later must know the others.
    return ShapeInferencePass()(model).model


def _prescripted(module: torch.nn.Module, notes: list[str]) -> Any:
    try:
        return torch.jit.script(module)
    except Exception as error:  # any: torch's compiler raises whatever it meets
        first_line = str(error).strip().split("\n", 1)[0]
        notes.append(f"script refused ({first_line}); recorded the same static graph instead")
        return module


def _numbered(side: str, count: int) -> list[str]:
    return [f"veracity_{side}_{number}" for number in range(count)]


def _second_choice(
    refused: VeracityError,
    module: fx.GraphModule,
    ports: Ports,
    names: tuple[list[str], list[str]],
    options: dict[str, Any],
    path: Path,
) -> Exported:
    """Try the older exporter; its result must be shown right, else the first refusal stands."""
    notes: list[str] = []
    try:
        with quiet(notes):
            trial.require_reproducible(module, ports)
            # The older exporter loses writes through views.
            pure = _without_writes(module, ports) if writes(module) else module
            model = _legacy(pure, module, ports, options, notes)
            made = _written(model, module, ports, names, options | {"verify": True}, path, notes)
    except Exception:  # any: there is one refusal to tell, that of the exporter that was asked for
        raise refused from None
    made.notes.insert(
        0, f"the TorchScript exporter was used, because: {refused.diagnostics[0].hints[0]}"
    )
    return made


# Writing


def _written(
    model: Any,
    module: fx.GraphModule,
    ports: Ports,
    names: tuple[list[str], list[str]],
    options: dict[str, Any],
    path: Path,
    notes: list[str],
) -> Exported:
    if all(value.device.type == "cpu" for value in ports.examples):
        rounded(model)
    guarded(model)
    inputs, removed = _surviving_inputs(model, module, ports, names[0])
    _rename_ports(model, inputs, names[1])
    _save(model, path, external=options.get("external_data"))
    kept = [name for name in names[0] if name in inputs.values()]
    try:
        if not options.get("skip_validation"):
            _check_file(path, module, ports)
        if options.get("verify"):
            _verify(path, module, ports, kept, names[0])
    except VeracityError:
        path.unlink()
        raise
    return Exported(
        model=model,
        extension=".onnx",
        backend="onnx",
        input_names=kept,
        output_names=list(names[1]),
        removed_inputs=removed,
        parameters={"opset_version": int(model.opset_imports[""])},
        notes=notes,
    )


def _surviving_inputs(
    model: Any, module: fx.GraphModule, ports: Ports, names: list[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the new name of each input of the model, and the inputs that it does not have.

    The order is kept, so names matter only when inputs are missing; the exporter may rename an
    input that is handed through.
    """
    if len(model.graph.inputs) == len(names):
        present = [value.name for value in model.graph.inputs]
        return dict(zip(present, names, strict=True)), []
    placeholders = [str(node.target) for node in module.graph.nodes if node.op == "placeholder"]
    known = dict(zip(placeholders, names, strict=True))
    known |= dict(zip(_numbered("input", len(names)), names, strict=True))
    found = {value.name: known.get(value.name) for value in model.graph.inputs}
    strangers = [name for name, new in found.items() if new is None]
    if strangers:
        raise refuse(
            "VER1004",
            f"the ONNX model of node '{ports.node}' has an unknown input '{strangers[0]}'",
        )
    inputs = {name: new for name, new in found.items() if new is not None}
    pairs = zip(ports.inputs, names, strict=True)
    return inputs, [port for port, name in pairs if name not in inputs.values()]


def _save(model: Any, path: Path, *, external: bool | None) -> None:
    import onnx_ir

    size = sum(
        value.const_value.nbytes
        for value in model.graph.initializers.values()
        if value.const_value is not None
    )
    if external or size > _LARGEST_SINGLE_FILE:
        onnx_ir.save(model, path, external_data=f"{path.name}.data")
    else:
        onnx_ir.save(model, path)


def _check_file(path: Path, module: fx.GraphModule, ports: Ports) -> None:
    import onnx

    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        raise exporter_refused(error, module, ports) from error


def _verify(
    path: Path, module: fx.GraphModule, ports: Ports, kept: list[str], names: list[str]
) -> None:
    """Run the file beside the module."""
    import onnxruntime

    def run(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        pairs = zip(names, inputs, strict=True)
        fed = {name: given.detach().cpu().numpy() for name, given in pairs if name in kept}
        return [torch.as_tensor(result, device="cpu") for result in session.run(None, fed)]

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            str(path), settings, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # any: the runtime has exception types of its own
        raise exporter_refused(error, module, ports) from error
    trial.check(module, ports, run)


def _has_runtime() -> bool:
    return importlib.util.find_spec("onnxruntime") is not None
