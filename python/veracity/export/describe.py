"""What a bundle says about an export: ports, flows, settings, the system it was made on."""

from __future__ import annotations

import json
import math
import platform
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import torch

from veracity import _native
from veracity.errors import Diagnostic, refuse
from veracity.export.fresh import Fresh
from veracity.export.models import Made, renames
from veracity.export.wiring import End, Wiring
from veracity.semantics import GraphConfigs, element_names_problem, is_normal
from veracity.tracing.nodes import Node, Port

#: The LEAPP whose layout is written, so that its readers know what they have before them.
LEAPP_VERSION = "0.7.2"
CONFIG_VERSION = "1.3"
#: What is declared of a port beside name, dtype and shape, which samples show themselves.
_DECLARED = ("kind", "element_names", "temporal_period_ms", "extra")


def draft(
    made: list[Made], wiring: Wiring, configs: GraphConfigs | None, samples: Path | None
) -> dict[str, Any]:
    """Return the draft of a bundle, as `_native.write_bundle` takes it."""
    output, port_in = renames(made)

    def flow(edges: list[tuple[End, End]]) -> list[tuple[str, str]]:
        return [(key(output(source)), key(port_in(target))) for source, target in edges]

    given = configs or GraphConfigs()
    return {
        "nodes": [_node(one) for one in made],
        "data_flow": flow(wiring.data_flow),
        "feedback_flow": flow(wiring.feedback_flow),
        "outputs": [key(output(end)) for end in wiring.kept_outputs],
        "frequency": None if given.frequency is None else float(given.frequency),
        "configs": plain(given.extra or {}, "`extra` of GraphConfigs", ""),
        "system": system_information(),
        "samples": None if samples is None else str(samples),
        "keep_misfit_names": True,
    }


def empty_description() -> str:
    """Return what LEAPP writes for a graph without nodes. Nothing can run it."""
    system = {"leapp config version": CONFIG_VERSION} | system_information()
    lines = [f"  {name}: {json.dumps(system[name])}" for name in sorted(system)]
    flows = ["  data_flow: {}", "  feedback_flow: {}", "  inputs: {}", "  outputs: {}"]
    return "\n".join(["models: {}", "", "pipeline:", *flows, "", "system information:", *lines, ""])


def initial_values(made: list[Made], wiring: Wiring) -> dict[str, torch.Tensor]:
    """Return what feedback inputs start from, by their names in the bundle."""
    _, port_in = renames(made)
    return {key(port_in(end)): value for end, value in wiring.initial.items()}


def samples(
    made: list[Made], generated: set[str], fresh: dict[str, Fresh]
) -> dict[str, list[torch.Tensor]]:
    """Return the values of every port, `recorded/<node>/in/<port>` and so on, in order.

    Generated nodes were not recorded; what an output lacks on any sample is left out.
    """
    found: dict[str, list[torch.Tensor]] = {}
    for one in made:
        name = one.node.name
        recorded = [] if name in generated else one.node.samples
        kinds = {"recorded": recorded, "fresh": fresh[name].samples if name in fresh else []}
        for kind, values in kinds.items():
            if not values:
                continue
            for port, label in zip(one.inputs, one.input_names(), strict=True):
                taken = [sample.inputs[port.name] for sample in values]
                found[f"{kind}/{name}/in/{label}"] = taken
            for port, label in zip(one.node.outputs, one.output_names(), strict=True):
                static = one.node.static_outputs.get(port.name)
                given = [sample.outputs.get(port.name, static) for sample in values]
                taken = [value for value in given if value is not None]
                if len(taken) == len(given):
                    found[f"{kind}/{name}/out/{label}"] = taken
    return found


def samples_metadata(
    made: list[Made],
    seed: int,
    fresh: dict[str, Fresh],
    found: list[dict[str, Any]],
    policy: str | None,
) -> dict[str, str]:
    """Return what the file of samples says about itself.

    Args:
        made: The nodes.
        seed: Seed of the fresh inputs.
        fresh: The fresh inputs, by node.
        found: What tracing noticed, as `noticed` gives it.
        policy: What counted as equal, as proofs hold it; `None` when nothing was judged.
    """
    ticks = {one.node.name: [sample.tick for sample in one.node.samples] for one in made}
    notes = {name: one.note for name, one in fresh.items() if one.note is not None}
    return {
        "veracity.samples": "1",
        "origin": "python",
        "made_with": made_with(),
        "seed": str(seed),
        "fresh_notes": as_json(dict(sorted(notes.items()))),
        "unstable": as_json({name: one.unstable for name, one in fresh.items() if one.unstable}),
        "wrong": as_json({name: one.wrong for name, one in fresh.items() if one.wrong}),
        "ticks": as_json(ticks),
        "passes": as_json({one.node.name: one.node.seen for one in made if one.node.seen}),
        "findings": as_json(found),
        "sources": as_json(sources(made)),
    } | ({} if policy is None else {"policy": policy})


def contract(made: list[Made], configs: GraphConfigs | None) -> str:
    """Return what was declared of ports and pipeline, which `check` holds the description to."""
    ports = {}
    for one in made:
        node = _node(one)
        for side, direction in (("in", "inputs"), ("out", "outputs")):
            for port in node[direction]:
                declared = {name: port[name] for name in _DECLARED}
                ports[f"{node['name']}/{side}/{port['name']}"] = declared
    frequency = None if configs is None else configs.frequency
    return as_json({"frequency": None if frequency is None else float(frequency), "ports": ports})


def sources(made: list[Made]) -> dict[str, str]:
    """Return where nodes begin in the code: folder, file and line, whoever has the code."""
    places = {one.node.name: one.node.location for one in made if one.node.location}
    return {name: short_place(place) for name, place in sorted(places.items())}


def short_place(location: str) -> str:
    """Return folder, file and line of a location."""
    return "/".join(Path(location.partition(" (")[0]).parts[-2:])


def nodes_of(found: Diagnostic, names: list[str]) -> list[str]:
    """Return the nodes that a finding is about; none when it names none."""
    if found.node is not None:
        return [found.node]
    return [name for name in names if f"'{name}'" in found.message or f"`{name}`" in found.message]


def noticed(found: list[Diagnostic], names: list[str]) -> list[dict[str, Any]]:
    """Return findings of tracing as a proof holds them."""
    return [
        {
            "code": one.code,
            "severity": one.severity,
            "message": one.message,
            "place": _place_of(one, names),
            "hints": list(one.hints),
        }
        for one in found
    ]


def _place_of(found: Diagnostic, names: list[str]) -> dict[str, Any]:
    place: dict[str, Any] = {}
    file, _, line = short_place(found.location).rpartition(":")
    if file and line.isdigit():
        place = {"file": file, "line": int(line)}
    about = nodes_of(found, names)
    return place | ({"node": about[0]} if len(about) == 1 else {})


def made_with() -> str:
    """Return what computed the reference."""
    return f"torch {torch.__version__}"


def key(end: End) -> str:
    """Return an end of an edge as it is written."""
    return "/".join(end)


def misfit_names(nodes: list[Node]) -> list[Diagnostic]:
    """Return a finding for each port whose element names do not fit its shape."""
    found = []
    for node in nodes:
        for port in [*node.inputs, *node.outputs]:
            problem = element_names_problem(port.element_names, port.shape)
            if problem is not None:
                message = f"{node.name}/{port.name}: {problem}"
                hint = "runtimes that reorder by name cannot use these names"
                found.append(
                    Diagnostic("VER0323", "warning", message, node.location, (hint,), node.name)
                )
    return found


def check_extras(nodes: list[Node]) -> None:
    """Refuse extra keys that a bundle cannot hold, before anything is exported."""
    for node in nodes:
        for port in [*node.inputs, *node.outputs]:
            plain(port.extra, f"`extra` of {node.name}/{port.name}", node.location)


def plain(value: Any, what: str, location: str) -> Any:
    """Return a value made of what YAML holds, or refuse it."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Enum):
        return plain(value.value, what, location)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refuse("VER0903", f"{what} holds {value}", location=location)
        return float(value)
    if isinstance(value, dict):
        return {str(name): plain(item, what, location) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [plain(item, what, location) for item in items]
    if isinstance(value, Path):
        return str(value)
    if callable(getattr(value, "tolist", None)):
        return plain(value.tolist(), what, location)  # arrays, tensors and their scalars
    raise refuse(
        "VER0903",
        f"{what} holds a {type(value).__name__}, which a bundle cannot",
        location=location,
        hints=("use numbers, text, lists and dicts",),
    )


def system_information() -> dict[str, Any]:
    """Return what the bundle is made with."""
    return {
        "cuda version": torch.version.cuda,
        "leapp version": LEAPP_VERSION,
        "os": _system_name(),
        "python version": ".".join(map(str, sys.version_info[:3])),
        "torch version": str(torch.__version__),
        "veracity version": _native.__version__,
        "warp version": None,
    }


def as_json(value: Any) -> str:
    """Return JSON that Rust reads."""
    return json.dumps(value, allow_nan=False)


def _system_name() -> str:
    try:
        release = platform.freedesktop_os_release()
    except (OSError, AttributeError):
        return platform.platform()
    name = f"{release.get('NAME', '')} {release.get('VERSION_ID', '')}".strip()
    return name or platform.platform()


def _node(made: Made) -> dict[str, Any]:
    parameters = {"warp_segments": 0} | made.parameters
    exported = made.exported
    node = made.node
    return {
        "name": node.name,
        "model": None if exported is None else str(exported.path),
        "program": None if made.program is None else str(made.program),
        "backend": None if exported is None else exported.backend,
        "inputs": [
            _port(port, name, node)
            for port, name in zip(made.inputs, made.input_names(), strict=True)
        ],
        "outputs": [
            _port(port, name, node)
            for port, name in zip(node.outputs, made.output_names(), strict=True)
        ],
        "parameters": plain(parameters, f"the parameters of {node.name}", node.location),
    }


def _port(port: Port, name: str, node: Node) -> dict[str, Any]:
    what = f"{node.name}/{port.name}"
    names = port.element_names
    extra = dict(port.extra)
    if names is not None and not is_normal(names):
        # Readers keep what they do not understand; so do we.
        extra["element_names"], names = names, None
    period = port.temporal_period_ms
    return {
        "name": name,
        "dtype": port.dtype,
        "shape": list(port.shape),
        "kind": port.kind,
        "element_names": names,
        "temporal_period_ms": None if period is None else float(period),
        "extra": plain(extra, f"`extra` of {what}", node.location),
    }
