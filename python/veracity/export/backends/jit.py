"""TorchScript files.

The graph of a node has no control flow, so recording it once gives the same module as compiling
its source, eight times faster and for every operation that torch has. `jit` therefore compiles
the source only when options of `torch.jit.script` ask for it.

Code runs on the device of its inputs: it is recorded on the CPU, since a GPU has operations of its
own (a fused GRU cell) that are nowhere else, and tensors that it makes lie where its first input
does. Weights stay where they were, for those who load the file as it is. A node that works on
several devices is recorded as it is.

The same module and weights give the same bytes: torch numbers classes by process and stores line
tables of code that does not exist; both are taken out of the archive.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn

from veracity.errors import VeracityError
from veracity.export.backends import trial
from veracity.export.backends.contract import Exported, Ports, exporter_refused, quiet
from veracity.export.backends.jit_numbers import keep_numbers
from veracity.export.backends.placement import cpu_by_default, devices_of, on_cpu
from veracity.export.loading import named_devices


class Trace:
    """`jit-trace`: options are those of `torch.jit.trace`."""

    extension = ".pt"

    @property
    def options(self) -> frozenset[str]:
        """Keys of `backend_params` that are known."""
        return _keywords(torch.jit.trace, without={"func", "example_inputs"})

    def export(
        self, module: fx.GraphModule, ports: Ports, options: dict[str, Any], path: Path
    ) -> Exported:
        """Record the graph on the examples and write it."""
        notes: list[str] = []
        with quiet(notes):
            return _written(_traced_anywhere(module, ports, options, notes), ports, path, notes)


class Script:
    """`jit`: options are those of `torch.jit.script`."""

    extension = ".pt"

    @property
    def options(self) -> frozenset[str]:
        """Keys of `backend_params` that are known."""
        return _keywords(torch.jit.script, without={"obj"})

    def export(
        self, module: fx.GraphModule, ports: Ports, options: dict[str, Any], path: Path
    ) -> Exported:
        """Write the graph; compile its source when options say how."""
        notes: list[str] = []
        with quiet(notes):
            scripted = _scripted(module, options, notes) if options else None
            if scripted is None:
                scripted = _traced_anywhere(module, ports, {}, notes)
            return _written(scripted, ports, path, notes)


def _keywords(function: Callable[..., Any], *, without: set[str]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters) - without


def _scripted(module: fx.GraphModule, options: dict[str, Any], notes: list[str]) -> Any:
    try:
        return torch.jit.script(module, **options)
    except Exception as error:  # any: torch's compiler raises whatever it meets
        first_line = str(error).strip().split("\n", 1)[0]
        notes.append(f"script refused ({first_line}); recorded the same static graph instead")
        return None


def _traced_anywhere(
    module: fx.GraphModule, ports: Ports, options: dict[str, Any], notes: list[str]
) -> Any:
    """Record on the CPU; where it was recorded, if the CPU cannot compute it."""
    places = devices_of(module, ports)
    if len(places) != 1 or not ports.examples:
        return _traced(module, ports, options)
    moved, moved_ports = on_cpu(module, ports)
    try:
        with cpu_by_default():
            traced = _following_inputs(_traced(moved, moved_ports, options))
    except VeracityError as refusal:
        if moved is module:
            raise
        notes.append(f"runs on a GPU only: on the CPU, {refusal.diagnostics[0].message}")
        return _traced(module, ports, options)
    return traced if moved is module else _held_on(traced, places.pop())


def _held_on(traced: Any, device: torch.device) -> Any:
    """Move what a module holds; numbers are as good on the CPU."""
    traced.to(device)
    for one in traced.graph.findAllNodes("prim::Constant"):
        if one.output().type().kind() == "TensorType" and one.t("value").dim():
            one.t_("value", one.t("value").to(device))
    return traced


def _following_inputs(traced: Any) -> Any:
    """Make tensors on the device of the first input, where the graph names the CPU."""
    graph = traced.graph
    tensors = [one for one in graph.inputs() if one.type().kind() == "TensorType"]
    named = named_devices(graph)
    if not tensors or not named:
        return traced
    compiler: Any = torch._C
    device = graph.create("prim::device", [tensors[0]], 1)
    device.output().setType(compiler.DeviceObjType.get())
    graph.prependNode(device)
    for one in named:
        one.output().replaceAllUsesWith(device.output())
    compiler._jit_pass_dce(graph)
    return traced


def _traced(module: fx.GraphModule, ports: Ports, options: dict[str, Any]) -> Any:
    examples = tuple(example.detach().clone() for example in ports.examples)
    bare = _bare(module)
    settings = {"check_trace": False, "_store_inputs": False} | options
    if isinstance(bare, _Bare):
        settings.setdefault("_module_class", _empty_script)
    known = _keywords(torch.jit.trace, without=set())
    settings = {key: value for key, value in settings.items() if key in known}
    try:
        with (
            torch.no_grad(),
            _names_not_looked_up(),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            traced = torch.jit.trace(bare, examples, **settings)
    except Exception as error:  # any: torch's tracer raises whatever it meets
        raise exporter_refused(error, module, ports) from error
    # Functions of torch that are written in Python may read a size, which is fine, or a value.
    doubts = [found for found in warned if found.category.__name__ == "TracerWarning"]
    for found in warned:
        if found not in doubts:
            warnings.warn(found.message, found.category, stacklevel=2)
    keep_numbers(traced.graph)
    if doubts:
        trial.check(module, ports, functools.partial(trial.results, traced))
    return traced


def _bare(module: fx.GraphModule) -> nn.Module:
    """Return a module with nothing but the tensors: torch asks about every attribute of one."""
    if next(module.children(), None) is not None:
        return module
    bare = _Bare()
    for name, parameter in module.named_parameters(recurse=False):
        bare.register_parameter(name, parameter)
    for name, buffer in module.named_buffers(recurse=False):
        bare.register_buffer(name, buffer)
    bare.forward = module.forward
    return bare.train(module.training)


class _Bare(nn.Module):
    """Has a forward of its own, which is somebody else's."""

    def __dir__(self) -> list[str]:
        """Return what can matter to torch, which looks for decorated methods under every name."""
        return ["forward"]


def _empty_script(bare: _Bare, _compilation_unit: Any = None) -> Any:
    """Return the module that the tracer puts the graph into, made from the tensors alone.

    torch makes the same one, and asks about each of some hundred methods on the way, which takes
    longer than the rest of the tracing. The functions are private: where they are other ones,
    torch's way is taken.
    """
    try:
        return _script_of_tensors(bare)
    except (AttributeError, TypeError):
        tracer: Any = importlib.import_module("torch.jit._trace")
        return tracer.TopLevelTracedModule(bare, _compilation_unit=_compilation_unit)


def _script_of_tensors(bare: _Bare) -> Any:
    compiler: Any = torch._C
    builder = compiler.ConcreteModuleTypeBuilder(type(bare))
    values: dict[str, Any] = {}
    for tensors, is_parameter in ((bare._parameters, True), (bare._buffers, False)):
        for name, value in tensors.items():
            kind = compiler._jit_try_infer_type(value).type()
            builder.add_attribute(name, kind, is_parameter, not is_parameter)
            values[name] = value
    for name, kind in _attribute_types().items():
        builder.add_attribute(name, kind, False, False)
        values[name] = getattr(bare, name)
    builder.set_poisoned()  # torch's word for a type that no other module shares
    concrete = builder.build()
    made = compiler._create_module_with_type(concrete.jit_type)

    def fill(script: Any) -> None:
        for name, value in values.items():
            made.setattr(name, value)
        script._concrete_type = concrete

    scripts: Any = torch.jit
    return scripts.RecursiveScriptModule._construct(made, fill)


@functools.cache
def _attribute_types() -> dict[str, Any]:
    """Return the types of the attributes that torch keeps of every module, in its order."""
    compiler: Any = importlib.import_module("torch.jit._recursive")
    empty = nn.Module()
    found = compiler.get_module_concrete_type(empty, share_types=False).get_attributes()
    return {name: found[name][0] for name in vars(empty) if name in found}


@contextlib.contextmanager
def _names_not_looked_up() -> Iterator[None]:
    """Keep the tracer from comparing each value with all variables, which is quadratic.

    It wants their names for the text of the code. The function is private: where it is not found,
    long graphs take longer.
    """
    tracer: Any = importlib.import_module("torch.jit._trace")
    name = "_create_interpreter_name_lookup_fn"
    before = getattr(tracer, name, None)
    if before is None:
        yield
        return
    setattr(tracer, name, lambda *_: lambda _: "")
    try:
        yield
    finally:
        setattr(tracer, name, before)


def _written(scripted: Any, ports: Ports, path: Path, notes: list[str]) -> Exported:
    raw = io.BytesIO()
    torch.jit.save(scripted, raw)
    raw.seek(0)
    _rewrite(raw, path)
    return Exported(
        model=scripted,
        extension=".pt",
        backend="jit",
        input_names=list(ports.inputs),
        output_names=list(ports.outputs),
        notes=notes,
    )


def _rewrite(raw: io.BytesIO, path: Path) -> None:
    """Copy an archive without what depends on the process that made it."""
    reader = torch._C.PyTorchFileReader(raw)
    names = [name for name in reader.get_all_records() if _is_kept(name)]
    texts = {name: reader.get_record(name) for name in names if _holds_names(name)}
    rename = _renaming([*(name.encode() for name in names), *texts.values()])
    writer = torch._C.PyTorchFileWriter(str(path))
    # The version chooses the meaning of operators: it must be the one the code was written for.
    writer.set_min_version(_version(reader))
    for name in names:
        content = texts.get(name)
        data = reader.get_record(name) if content is None else rename(content)
        writer.write_record(rename(name.encode()).decode(), data, len(data))
    writer.write_end_of_file()


def _version(reader: Any) -> int:
    """Read the version of an archive; newer ones are stored elsewhere so that old readers stop."""
    name = ".data/version" if reader.has_record(".data/version") else "version"
    return int(reader.get_record(name))


def _is_kept(name: str) -> bool:
    """Leave out line tables, and records that the writer adds by itself."""
    own = name in ("version", "byteorder") or name.startswith(".data/")
    return not own and not name.endswith(".debug_pkl")


def _holds_names(name: str) -> bool:
    return name.endswith((".pkl", ".py"))


_MANGLED = re.compile(rb"___torch_mangle_(\d+)")


def _renaming(texts: Iterable[bytes]) -> Callable[[bytes], bytes]:
    """Number mangled names by appearance; where there is one class, it needs no number at all."""
    numbers: dict[bytes, int] = {}
    for text in texts:
        for number in _MANGLED.findall(text):
            numbers.setdefault(number, len(numbers))
    if len(numbers) == 1:
        return lambda text: re.sub(rb"[./]___torch_mangle_\d+", b"", text)
    return lambda text: _MANGLED.sub(
        lambda match: b"___torch_mangle_%d" % numbers[match.group(1)], text
    )
