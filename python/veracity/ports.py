"""What a pipeline takes and gives, and its nodes, so that no host has to read YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class InferencePort:
    """One input or output of a pipeline.

    Attributes:
        key: `node/name`, as `run_policy` takes and gives it.
        node: The node it belongs to.
        name: Its name in that node.
        dtype: Name of the element type, such as `"float32"`.
        shape: Sizes of the axes.
        kind: What the values mean, such as `"state/joint/position"`.
        element_names: Names along the last named axis; empty when there are none.
        temporal_period_ms: Time between two elements of the temporal axis.
        extra: Project-defined fields.
    """

    key: str
    node: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    kind: str | None = None
    element_names: tuple[str, ...] = ()
    temporal_period_ms: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class InferenceNode:
    """One node of a loaded pipeline.

    Attributes:
        name: Its name.
        engine: What runs it.
        device: What it runs on, such as `"cpu"`; a `torch.device` where torch is imported.
        input_ports: Its inputs by name, also those that other nodes feed.
        output_ports: Its outputs by name.
    """

    name: str
    engine: str
    device: Any
    input_ports: Mapping[str, InferencePort]
    output_ports: Mapping[str, InferencePort]

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return list(self.input_ports)

    @property
    def input_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the inputs, in the order of `input_names`."""
        return [port.shape for port in self.input_ports.values()]

    @property
    def input_dtypes(self) -> list[str]:
        """Element types of the inputs, in the order of `input_names`."""
        return [port.dtype for port in self.input_ports.values()]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return list(self.output_ports)

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the outputs, in the order of `output_names`."""
        return [port.shape for port in self.output_ports.values()]

    @property
    def output_dtypes(self) -> list[str]:
        """Element types of the outputs, in the order of `output_names`."""
        return [port.dtype for port in self.output_ports.values()]


def port_from_json(node: str, port: Mapping[str, Any]) -> InferencePort:
    """Return the port that the native module describes."""
    axes = port.get("element_names") or []
    named = [axis["named"] for axis in axes if isinstance(axis, dict)]
    return InferencePort(
        key=f"{node}/{port['name']}",
        node=node,
        name=port["name"],
        dtype=port["dtype"],
        shape=tuple(port["shape"]),
        kind=port.get("kind"),
        element_names=tuple(named[-1]) if named else (),
        temporal_period_ms=port.get("temporal_period_ms"),
        extra=port.get("extra", {}),
    )
