"""Runs a script on one side, reads the bundle back, and rolls it out."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import leapp
import torch
import veracity
import yaml
from safetensors.torch import load_file
from support.findings import about_the_code
from torch import Tensor

from differential.registry import Script, Values

TICKS = 20
#: Seeds of the ticks of a roll-out; the traced ticks have the seeds from 0.
FRESH = 1000


@dataclass
class Export:
    """What exporting a script gave.

    Attributes:
        yaml: The bundle's YAML file, whether it exists or not.
        result: What `compile_graph` returned.
        error: What was raised on the way.
        diagnostics: Every finding, whether raised or returned.
    """

    yaml: Path
    result: Any = None
    error: BaseException | None = None
    diagnostics: list[Any] = field(default_factory=list)


def export(script: Script, api: Any, folder: Path) -> Export:
    """Trace a script and compile its bundle; exceptions are part of the result."""
    folder.mkdir(exist_ok=True)
    made = Export(folder / script.name / f"{script.name}.yaml")
    try:
        trace(script, api, folder)
        made.result = api.compile_graph(visualize=False, **script.compile(api))
    except Exception as error:
        made.error = error
    carrier = made.result if made.error is None else made.error
    made.diagnostics = about_the_code(getattr(carrier, "diagnostics", []))
    return made


def trace(script: Script, api: Any, folder: Path) -> None:
    """Run the traced ticks of a script in a session."""
    torch.manual_seed(0)
    step = script.make(api)
    api.start(script.name, save_path=str(folder), **script.start(api))
    try:
        for tick in range(script.passes):
            with script.context():
                step(script.traced(tick, script.draw(tick)))
    finally:
        api.stop()


def eager(script: Script) -> list[Values]:
    """Return what the code itself computes over the ticks of a roll-out.

    LEAPP's annotations outside a session hand back what they were given, so they are a reference
    that does not depend on the code under test.
    """
    torch.manual_seed(0)
    step = script.make(leapp)
    outputs = []
    for tick in range(TICKS):
        with script.context():
            given = step(script.draw(FRESH + tick))
        outputs.append({key: torch.as_tensor(value).clone() for key, value in given.items()})
    return outputs


def roll_out(script: Script, manager: Any) -> list[Values]:
    """Return what a bundle computes over the same ticks.

    LEAPP takes every key; ours refuses keys that the bundle does not have, so only those that it
    has are given.
    """
    wanted = set(manager.inputs)
    outputs = []
    for tick in range(TICKS):
        drawn = script.draw(FRESH + tick)
        given = {key: value.clone() for key, value in drawn.items() if key in wanted}
        if isinstance(manager, veracity.InferenceManager):
            given |= {key: zero for key, zero in manager.zeros_input().items() if key not in given}
        outputs.append(
            {key: value.detach().clone() for key, value in manager.run_policy(given).items()}
        )
    return outputs


def difference(found: list[Values], expected: list[Values]) -> str:
    """Return where a roll-out differs from what was expected, or nothing."""
    for tick, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if ours.keys() != theirs.keys():
            return f"tick {tick}: outputs {sorted(ours)} instead of {sorted(theirs)}"
        for key, value in theirs.items():
            if problem := _differs(ours[key], value):
                return f"tick {tick}: {key}: {problem}"
    return ""


def _differs(found: Tensor, expected: Tensor) -> str:
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype} {list(found.shape)}, not {expected.dtype} {list(expected.shape)}"
    try:
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4, equal_nan=True)
    except AssertionError as error:
        return str(error)
    return ""


def document(bundle: Path) -> dict[str, Any]:
    """Return the part of a bundle's YAML that both sides must agree on."""
    text = yaml.safe_load(bundle.read_text())
    pipeline = text["pipeline"]
    nodes = {
        name: {
            "inputs": [_port(port) for port in node["inputs"]],
            "outputs": [_port(port) for port in node["outputs"]],
            "backend": node["parameters"]["backend"],
        }
        for name, node in text["models"].items()
    }
    flows = ("data_flow", "feedback_flow", "inputs", "configs")
    return {
        "order": list(nodes),
        "nodes": nodes,
        **{key: _unordered(pipeline.get(key) or {}) for key in flows},
        "outputs": _unordered(_not_fed_back(pipeline)),
    }


def _not_fed_back(pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs without those that are fed back: LEAPP drops them, and ours stay."""
    fed_back = pipeline.get("feedback_flow") or {}
    outputs = pipeline.get("outputs") or {}
    kept = {
        node: [port for port in ports if f"{node}/{port}" not in fed_back]
        for node, ports in outputs.items()
    }
    return {node: ports for node, ports in kept.items() if ports}


def _port(port: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in port.items() if value is not None}


def _unordered(flow: dict[str, Any]) -> dict[str, Any]:
    return {key: sorted(v) if isinstance(v, list) else v for key, v in sorted(flow.items())}


def initial_values(bundle: Path) -> Values:
    """Return the bundle's initial values."""
    name = yaml.safe_load(bundle.read_text())["pipeline"].get("initial_values")
    return dict(load_file(bundle.parent / name)) if name else {}


def backends(bundle: Path) -> set[str | None]:
    """Return the backends of a bundle's nodes."""
    return {node["backend"] for node in document(bundle)["nodes"].values()}


def told(diagnostics: Iterable[Any], codes: tuple[str, ...], file: str, lines: set[int]) -> bool:
    """Return whether one of the codes was given, at one of the lines where there are any."""
    return any(
        found.code in codes and (not lines or names_line(found.location, file, lines))
        for found in diagnostics
    )


def names_line(location: str, file: str, lines: set[int]) -> bool:
    """Return whether a location is one of these lines of a file."""
    match = re.search(r"([^/:\s]+\.py):(\d+)", location or "")
    return bool(match) and match[1] == file and int(match[2]) in lines


def leave_session(api: Any) -> None:
    """Close the session that a refusal left open, if there is one."""
    with contextlib.suppress(Exception):
        api.stop()
