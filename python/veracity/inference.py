"""Runs an exported pipeline from Python, on the Rust runtime."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from veracity._native import Pipeline
from veracity.errors import Diagnostic
from veracity.ports import InferenceNode, InferencePort, port_from_json
from veracity.proof import tolerance_pair

#: Where LEAPP's `value_dict` keeps the pipeline's outputs.
_OUTPUTS = "==out=="


class InferenceManager:
    """A loaded bundle.

    Torch tensors in give torch tensors out; NumPy arrays in give NumPy arrays out. Inputs are read
    where they are and never changed, outputs are the caller's own. State persists between calls
    until `reset`. Calls from several threads are run one after the other.

    Attributes:
        input_ports: The inputs by key `node/name`.
        output_ports: The outputs by key.
        feedback_ports: The inputs that the step before feeds, by key.
        frequency: Steps per second that the pipeline was made for, if the bundle says so.
        configs: Everything the bundle says about the pipeline as a whole.
        nodes: The nodes by name, in the order in which they run.
        warnings: What was noticed while loading and did not stop it.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str],
        *,
        engine: str = "auto",
        device: str = "auto",
        threads: int = 1,
        fuse: bool = False,
        require_proof: bool = False,
        prove: bool = False,
        accept_conditional: bool = False,
        ceiling: Mapping[str, float] | None = None,
        reorder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Load a bundle.

        Args:
            model_path: The bundle's YAML file, or its folder.
            engine: What runs ONNX models: `"auto"`, `"ort"`, `"embedded"`; `"torch"` refuses them.
                TorchScript runs in torch; pt2 in the torch of this Python, which is imported then.
            device: `"auto"`, `"cpu"`, `"cuda"` or `"cuda:N"`.
            threads: Threads inside one operator. More than 1 rarely helps small models.
            fuse: Merge neighbouring ONNX nodes when that is shown to change no output.
            require_proof: Refuse a bundle whose proof is missing, stale, negative or conditional,
                contradicts itself, or is about another engine, its major version or kind of device.
            prove: Prove the bundle first, with the engine and options that will run it.
            accept_conditional: With one of these, take a verdict that rests on assumptions.
            ceiling: With one of these, the widest tolerance, `dict(atol=..., rtol=...)`, that the
                bundle may be judged by; by default what it was exported with.
            reorder: A map that `veracity verify BUNDLE --robot ROBOT --write-map MAP` wrote. Inputs
                are then taken and outputs given in the robot's order, and `element_names` of the
                ports are in that order too; inputs of nodes in `value_dict` stay in the bundle's.
                A map that does not fit the bundle is refused.
        """
        wanted = {
            "accept_conditional": accept_conditional,
            "ceiling": None if ceiling is None else tolerance_pair(ceiling),
            "prove": prove,
        }
        demand = json.dumps(wanted) if require_proof or prove else None
        self._pipeline = Pipeline(
            Path(model_path),
            engine=engine,
            device=device,
            threads=threads,
            fuse=fuse,
            demand_json=demand,
            reorder=None if reorder is None else Path(reorder),
            site_packages=site_packages(),
        )
        self.warnings: list[Diagnostic] = self._pipeline.warnings
        spec = json.loads(self._pipeline.spec_json)
        self.configs: Mapping[str, Any] = MappingProxyType(_configs(spec["configs"]))
        self.frequency: float | None = spec["configs"]["frequency"]
        declared = {
            direction: {
                port.key: port
                for node in spec["nodes"]
                for port in (port_from_json(node["name"], entry) for entry in node[direction])
            }
            for direction in ("inputs", "outputs")
        }
        self.input_ports = _select(declared["inputs"], self._pipeline.input_keys)
        self.output_ports = _select(declared["outputs"], self._pipeline.output_keys)
        self.feedback_ports = _select(declared["inputs"], self._pipeline.feedback_keys)
        self._declared = declared
        names = {node["name"] for node in spec["nodes"]}
        self.nodes: Mapping[str, InferenceNode] = MappingProxyType(
            {
                name: _node(name, session, declared)
                for session in json.loads(self._pipeline.sessions_json)
                for name in _names_in(session["nodes"], names)
            }
        )

    def run_policy(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run one step.

        Args:
            inputs: A value for every key of `inputs`. A key of `feedback_inputs` may be given too
                and replaces the state for this step.

        Returns:
            The value of every key of `outputs`.
        """
        return self._pipeline.run(inputs)

    __call__ = run_policy

    def reset(self) -> None:
        """Put the state back to its initial values. Memory that was handed out is not touched."""
        self._pipeline.reset()

    def set_input_value(self, node_name: str, input_name: str, value: Any) -> None:
        """Replace a feedback input for the next step, or give a pipeline input in advance."""
        self._pipeline.set_input(f"{node_name}/{input_name}", value)

    def get_mock_input(self, seed: int = 0) -> dict[str, Any]:
        """Return made-up values for every input, as torch tensors where torch is imported.

        Floats are normally distributed; integers and bools are 0 or 1, because integer inputs are
        often indices.
        """
        return self._pipeline.mock_inputs(seed)

    def zeros_input(self) -> dict[str, Any]:
        """Return zeros for every input, as torch tensors where torch is imported."""
        return self._pipeline.zero_inputs()

    @property
    def inputs(self) -> list[str]:
        """Keys of the inputs that every step needs."""
        return list(self.input_ports)

    @property
    def outputs(self) -> list[str]:
        """Keys of the outputs that every step gives."""
        return list(self.output_ports)

    @property
    def feedback_inputs(self) -> list[str]:
        """Keys of the inputs that the step before feeds."""
        return list(self.feedback_ports)

    @property
    def value_dict(self) -> Mapping[str, Mapping[str, Any]]:
        """Values at the node boundaries, to read: `value_dict[node][input]`.

        `value_dict["==out=="][key]` are the outputs of the last step. Every access gives a copy.
        """
        return _BoundaryValues(self._pipeline, self._declared["inputs"], self.output_ports)

    def inputs_by_kind(self, kind: str) -> list[InferencePort]:
        """Return the inputs of a kind such as `"state/joint/position"`."""
        return [port for port in self.input_ports.values() if port.kind == str(kind)]

    def outputs_by_kind(self, kind: str) -> list[InferencePort]:
        """Return the outputs of a kind such as `"target/joint/position"`."""
        return [port for port in self.output_ports.values() if port.kind == str(kind)]

    def input_by_kind(self, kind: str) -> InferencePort | None:
        """Return the first input of a kind."""
        return next(iter(self.inputs_by_kind(kind)), None)

    def output_by_kind(self, kind: str) -> InferencePort | None:
        """Return the first output of a kind."""
        return next(iter(self.outputs_by_kind(kind)), None)


class _BoundaryValues(Mapping[str, Mapping[str, Any]]):
    """Reads values from the pipeline when they are asked for."""

    def __init__(
        self,
        pipeline: Pipeline,
        inputs: Mapping[str, InferencePort],
        outputs: Mapping[str, InferencePort],
    ) -> None:
        nodes: dict[str, dict[str, Callable[[], Any]]] = {}
        for port in inputs.values():
            read = partial(pipeline.input_value, port.node, port.name)
            nodes.setdefault(port.node, {})[port.name] = read
        nodes[_OUTPUTS] = {
            key: partial(pipeline.output_value, index) for index, key in enumerate(outputs)
        }
        self._nodes = nodes

    def __getitem__(self, node: str) -> Mapping[str, Any]:
        return _NodeValues(self._nodes[node])

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class _NodeValues(Mapping[str, Any]):
    """The values of one node."""

    def __init__(self, readers: Mapping[str, Callable[[], Any]]) -> None:
        self._readers = readers

    def __getitem__(self, name: str) -> Any:
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


def _names_in(joined: str, known: set[str]) -> list[str]:
    """Return the nodes of a session: one, or those that were merged into it."""
    return [joined] if joined in known else joined.split("+")


def _node(
    name: str, session: Mapping[str, str], declared: Mapping[str, Mapping[str, InferencePort]]
) -> InferenceNode:
    """Return a node; several that were merged share one session."""
    torch = sys.modules.get("torch")
    device: Any = session["device"]
    inputs, outputs = (
        {port.name: port for port in declared[direction].values() if port.node == name}
        for direction in ("inputs", "outputs")
    )
    return InferenceNode(
        name=name,
        engine=session["engine"],
        device=device if torch is None else torch.device(device),
        input_ports=MappingProxyType(inputs),
        output_ports=MappingProxyType(outputs),
    )


def _select(ports: Mapping[str, InferencePort], keys: list[str]) -> Mapping[str, InferencePort]:
    return MappingProxyType({key: ports[key] for key in keys})


def _configs(configs: Mapping[str, Any]) -> dict[str, Any]:
    frequency = configs["frequency"]
    return ({} if frequency is None else {"frequency": frequency}) | dict(configs["extra"])


def site_packages() -> list[Path]:
    """Return the folders that hold the engines' packages, without importing them."""
    specs = (importlib.util.find_spec(name) for name in ("onnxruntime", "torch"))
    origins = (Path(spec.origin) for spec in specs if spec is not None and spec.origin)
    return [origin.parent.parent for origin in origins]
