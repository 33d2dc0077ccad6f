"""What every export backend takes and gives, and what they share.

A backend writes one model file. What torch says meanwhile (prints, warnings, logs) goes into the
notes of the result, never to the console; what torch refuses becomes one `VER1001` with the
user's line.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import linecache
import logging
import os
import re
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import fx

from veracity.errors import VeracityError, refuse
from veracity.export.lowering import LOCATION


@dataclass(frozen=True)
class Ports:
    """The outside of a node.

    Attributes:
        node: Name of the node.
        inputs: Names of its inputs, in the order of the module's placeholders.
        outputs: Names of its outputs, in the order of the module's results.
        examples: One recorded value for each input.
    """

    node: str
    inputs: list[str]
    outputs: list[str]
    examples: list[torch.Tensor]


@dataclass(frozen=True)
class Exported:
    """A model that was written.

    Attributes:
        model: The exporter's own object.
        extension: Ending of the file name, with the dot.
        backend: How bundles call the format: `"jit"`, `"onnx"` or `"pt2"`.
        input_names: Inputs that the model has, by the names that it uses.
        output_names: Its outputs, by the names that it uses.
        removed_inputs: Inputs of the node that the exporter found to be without influence.
        parameters: Facts about the file that bundles record.
        notes: What was done in another way than asked for, and what the exporter said.
    """

    model: Any
    extension: str
    backend: str
    input_names: list[str]
    output_names: list[str]
    removed_inputs: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Backend(Protocol):
    """One way to write a model."""

    @property
    def extension(self) -> str:
        """Ending of the file name, with the dot."""

    @property
    def options(self) -> frozenset[str]:
        """Keys of `backend_params` that are known."""

    def export(
        self, module: fx.GraphModule, ports: Ports, options: dict[str, Any], path: Path
    ) -> Exported:
        """Write the model of a node to `path`."""


def export_smallest(backend: Backend) -> None:
    """Export the smallest model there is: that imports and builds all that the next one needs."""
    graph = fx.Graph()
    graph.output(graph.call_method("neg", (graph.placeholder("x"),)))
    module = fx.GraphModule(torch.nn.Module(), graph)
    ports = Ports("smallest", ["x"], ["y"], [torch.zeros(1, device="cpu")])
    with tempfile.TemporaryDirectory() as folder:
        backend.export(module, ports, {}, Path(folder) / f"model{backend.extension}")


def exporter_refused(
    error: BaseException, module: fx.GraphModule, ports: Ports, hint: str = ""
) -> VeracityError:
    """Return the refusal for what an exporter raised; the caller raises it."""
    if isinstance(error, VeracityError):
        return error
    node = guilty_node(error, module)
    operation = f": the exporter stops at '{_target_name(node)}'" if node is not None else ""
    location = str(node.meta.get(LOCATION, "")) if node is not None else ""
    said = f"{type(error).__name__}: {_one_line(_root_cause(error))}"
    return refuse(
        "VER1001",
        f"node '{ports.node}' cannot be exported{operation}",
        location=location,
        hints=tuple(filter(None, (f"the exporter said: {said}", hint))),
    )


def guilty_node(error: BaseException, module: fx.GraphModule) -> fx.Node | None:
    """Return the operation that an exporter stumbled over, as far as it tells."""
    nodes: dict[str, fx.Node] = {
        node.name: node for node in module.graph.nodes if node.op.startswith("call")
    }
    for found in _chain(error):
        named = (
            *reversed(_generated_names(found)),
            *_named_in_frames(found),
            *_named_in_text(str(found)),
            *_by_operator(str(found), nodes),
        )
        for name in named:
            if name in nodes:
                return nodes[name]
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _root_cause(error: BaseException) -> BaseException:
    causes = [found for found in _chain(error) if found.__cause__ is None]
    return causes[0] if causes else error


def _generated_names(error: BaseException) -> list[str]:
    """Return the values that generated code was computing when the error came, outermost first."""
    lines = [
        linecache.getline(frame.filename, frame.lineno or 0)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<eval_with_key>")
    ]
    return [match.group(1) for line in lines if (match := _ASSIGNMENT.match(line))]


def _named_in_frames(error: BaseException) -> list[str]:
    """Return the values behind the node that an exporter was translating, by its line."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    nodes = [frame.f_locals.get("node") for frame in reversed(frames)]
    traces = [str(node.meta.get("stack_trace")) for node in nodes if isinstance(node, fx.Node)]
    return [name for trace in traces for name in _named_in_text(trace)]


def _named_in_text(text: str) -> list[str]:
    """Return the graph values that a message names: `While executing %x`, or a line of code."""
    return [first or second for first, second in _NODE.findall(text)] + [
        match.group(1)
        for line in text.splitlines()
        if (match := _ASSIGNMENT.match(line)) is not None
    ]


def _by_operator(text: str, nodes: dict[str, fx.Node]) -> list[str]:
    """Return the values made by an operator that a message names."""
    operators = set(_OPERATOR.findall(text))
    return [name for name, node in nodes.items() if _target_name(node) in operators]


def _target_name(node: fx.Node) -> str:
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    return name.partition(".")[0]  # an overload of a custom operator has its name behind a dot


_ASSIGNMENT = re.compile(r"\s*(\w+)(?:\s*:[^=]*)? = ")
#: How the exporters name a value of the graph, or the line that `pt2` wrote for it.
_NODE = re.compile(r"(?:executing|node|Node:?) %(\w+)|(?<=, in )(\w+)(?=\n)")
_OPERATOR = re.compile(r"\b\w+(?:::|\.)(\w+)")
_HINT_LENGTH = 400


def _one_line(error: BaseException) -> str:
    """Return the first sentence of a message; exporters add pages of advice."""
    said = str(error).partition("While executing %")[0]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = " ".join(lines[:3])
    return text if len(text) <= _HINT_LENGTH else f"{text[:_HINT_LENGTH]}..."


_CHATTERERS = ("torch", "onnxscript", "onnx_ir", "onnx")
_QUIET = threading.RLock()


@contextlib.contextmanager
def quiet(notes: list[str]) -> Iterator[None]:
    """Move what torch says into `notes`. One thread at a time: the channels are process-wide."""
    printed = io.StringIO()
    listener = _Listener()
    with (
        _QUIET,
        _collector_paused(),
        warnings.catch_warnings(record=True) as warned,
        _loggers_into(listener),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            yield
        finally:
            said = [
                *(f"{type(found.message).__name__}: {found.message}" for found in warned),
                *listener.lines,
                *printed.getvalue().splitlines(),
            ]
            notes.extend(dict.fromkeys(line.strip() for line in said if _is_news(line)))


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Collect no garbage meanwhile: an export makes many objects, and looking at each is slow."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_news(line: str) -> bool:
    return bool(line.strip()) and not any(known in line for known in _OLD_NEWS)


#: What torch says on every export and nobody can act on.
_OLD_NEWS = (
    "torchvision is not installed",
    "isinstance(treespec, LeafSpec)",
    "The TorchScript type system doesn't support",
    "is deprecated",
    "TracerWarning",
    "DeprecationWarning",
    "FutureWarning",
    "training mode",
    "Attribute type is ambiguous",
)


@contextlib.contextmanager
def quiet_descriptors() -> Iterator[None]:
    """Throw away what compiled code writes to the console; the older ONNX exporter dumps graphs."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [(number, os.dup(number)) for number in (1, 2)]
    try:
        with open(os.devnull, "wb") as nowhere:
            for number, _ in saved:
                os.dup2(nowhere.fileno(), number)
            yield
    finally:
        ctypes.CDLL(None).fflush(None)
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)


class _Listener(logging.Handler):
    """Keeps log records as lines."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")


@contextlib.contextmanager
def _loggers_into(listener: logging.Handler) -> Iterator[None]:
    """Give the exporters' loggers one handler instead of their own."""
    # There are hundreds, and next to none has handlers: that is asked first.
    names = [
        name
        for name, found in logging.root.manager.loggerDict.items()
        if getattr(found, "handlers", None) and name.startswith(_CHATTERERS)
    ]
    loggers = [logging.getLogger(name) for name in {*names, *_CHATTERERS}]
    before = [(logger, logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [listener], False
    try:
        yield
    finally:
        for logger, handlers, propagate in before:
            logger.handlers, logger.propagate = handlers, propagate
