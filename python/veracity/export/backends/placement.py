"""Graphs without a device, for formats that know none.

ONNX says nothing about devices, and some operations of a GPU are nowhere else: a fused GRU cell of
CUDA is made of plain operations on the CPU. So ONNX and TorchScript are exported from the CPU.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from veracity.export.backends.contract import Ports
from veracity.tracing.versions import default_device

_CPU = torch.device("cpu")


def on_cpu(module: fx.GraphModule, ports: Ports) -> tuple[fx.GraphModule, Ports]:
    """Return the graph and its examples on the CPU; what is there already is returned as it is."""
    tensors = [*module.buffers(), *module.parameters(), *ports.examples]
    if all(tensor.device == _CPU for tensor in tensors):
        return module, ports
    moved = copy.deepcopy(module).cpu()
    for node in moved.graph.nodes:
        node.args = fx.node.map_aggregate(node.args, without_device)
        node.kwargs = fx.node.map_aggregate(node.kwargs, without_device)
    moved.recompile()
    examples = [example.cpu() for example in ports.examples]
    return moved, dataclasses.replace(ports, examples=examples)


def devices_of(module: fx.GraphModule, ports: Ports) -> set[torch.device]:
    """Return the devices that a graph works on: those of its tensors, and the CPU if it says so.

    Numbers may lie anywhere.
    """
    tensors = [*module.buffers(), *module.parameters()]
    places = {tensor.device for tensor in tensors if tensor.dim()}
    places |= {example.device for example in ports.examples}
    return places | ({_CPU} if any(map(_names_cpu, module.graph.nodes)) else set())


def _names_cpu(node: fx.Node) -> bool:
    found: list[bool] = [node.op == "call_method" and node.target == "cpu"]

    def look(value: Any) -> Any:
        found.append(isinstance(value, (str, torch.device)) and str(value) == "cpu")
        return value

    fx.node.map_aggregate((node.args, node.kwargs), look)
    return any(found)


@contextlib.contextmanager
def cpu_by_default() -> Iterator[None]:
    """Make tensors on the CPU whatever the default device is.

    With another one, the older ONNX exporter ends the process on recurrent layers.
    """
    if default_device() == _CPU:
        yield
        return
    with _CPU:
        yield


def without_device(value: Any) -> Any:
    """Return an argument with the CPU for any device."""
    if isinstance(value, torch.device):
        return _CPU
    return "cpu" if isinstance(value, str) and value.split(":")[0] == "cuda" else value
