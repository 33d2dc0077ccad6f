"""Makes bundles from models that already exist."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from veracity import _native


def write_bundle(
    folder: str | os.PathLike[str],
    *,
    nodes: Iterable[Mapping[str, Any]],
    data_flow: Mapping[str, str | Iterable[str]] | None = None,
    feedback_flow: Mapping[str, str | Iterable[str]] | None = None,
    outputs: Iterable[str] = (),
    initial_values: Mapping[str, Any] | None = None,
    frequency: float | None = None,
) -> Path:
    """Write a bundle, atomically: a crash leaves the old one whole.

    The inputs that no edge feeds become the pipeline's inputs, the outputs that feed nothing its
    outputs.

    Args:
        folder: Where the bundle goes; its name is the bundle's name. An old bundle is replaced; a
            folder with files of others is refused.
        nodes: In the order in which they run. Each has `name`, `model` (a path; external data of
            ONNX models is copied along; without it the node is only described) and, optionally,
            `backend` (else taken from the file name), `inputs`, `outputs` and `parameters`. A port
            has `name` and optionally `dtype`, `shape`, `kind`, `element_names`,
            `temporal_period_ms` and `extra`. ONNX models say their ports, dtypes and shapes
            themselves; other models do not.
        data_flow: Edges within a step, `{"node/output": ["node/input", ...]}`.
        feedback_flow: Edges into the next step, written likewise.
        outputs: Outputs that feed other nodes and are wanted outside as well, `["node/output"]`.
        initial_values: What feedback inputs start from, `{"node/input": tensor}`.
        frequency: Steps per second that the pipeline was made for.

    Returns:
        The bundle's YAML file.
    """
    draft = {
        "nodes": [dict(node) for node in nodes],
        "data_flow": _edges(data_flow),
        "feedback_flow": _edges(feedback_flow),
        "outputs": list(outputs),
        "frequency": frequency,
    }
    return _native.write_bundle(
        Path(folder), json.dumps(draft, default=os.fspath), dict(initial_values or {})
    )


def _edges(flow: Mapping[str, str | Iterable[str]] | None) -> list[tuple[str, str]]:
    return [
        (source, target)
        for source, targets in (flow or {}).items()
        for target in ([targets] if isinstance(targets, str) else targets)
    ]
