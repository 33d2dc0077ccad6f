"""Checks exported models against what was recorded: every node, every sample, every output.

The model is loaded from the file that goes into the bundle and run on the device of the sample.
Number, shape and dtype of the outputs are compared first, then the values; nothing is broadcast.
Integers and truth values must be equal.

NaN fails, on both sides too, unless `equal_nan` is given. Equal infinities in the same places
pass: LEAPP fails them, but a mask of `-inf` is a value like any other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from veracity import _native
from veracity.errors import Diagnostic, VeracityError
from veracity.export.loading import Run, elsewhere, load
from veracity.export.log import ExportLog
from veracity.tracing.nodes import Node, Sample

FROZEN_HINT = (
    "the first sample passes and a later one fails: a value that changes may have been recorded "
    "as a constant; make it an input of the node"
)


@dataclass(frozen=True)
class Tolerance:
    """What counts as equal.

    Attributes:
        rtol: Relative part, of the recorded value.
        atol: Absolute part.
        equal_nan: Whether NaN equals NaN.
    """

    rtol: float = 1e-3
    atol: float = 1e-5
    equal_nan: bool = False


@dataclass(frozen=True)
class Exported:
    """A model file of a node and how its ports are called there."""

    path: Path
    backend: str
    input_names: list[str]
    output_names: list[str]


@dataclass
class NodeVerdict:
    """What checking one node found.

    Attributes:
        node: Its name.
        passed: Whether every output of every sample passed.
        samples: How many samples were compared.
        diagnostics: What did not pass, or could not be checked.
    """

    node: str
    passed: bool
    samples: int
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the line of the summary."""
        if self.passed:
            return f"[PASS] {self.node} passed validation ({self.samples} examples)"
        return f"[FAIL] {self.node} failed validation: {self.diagnostics[0].message}"


def check_node(
    node: Node,
    exported: Exported,
    input_ports: list[str],
    tolerance: Tolerance,
    log: ExportLog,
) -> NodeVerdict:
    """Run every sample of a node through its exported model and compare.

    Args:
        node: The node; its samples are the reference.
        exported: The model file.
        input_ports: The node's names of the inputs that the model has, in its order.
        tolerance: What counts as equal.
        log: Gets the statistics of what differs.
    """
    found: list[Diagnostic] = []
    failed: list[int] = []
    runs: dict[torch.device, Run] = {}
    for index, sample in enumerate(node.samples):
        inputs = [sample.inputs[name] for name in input_ports]
        try:
            results = _run(runs, exported, _device(sample), inputs)
        except Exception as error:
            found.append(_not_run(node, index, error))
            log.problem(found[-1].message)
            break
        problems = _compare_sample(node, index, sample, results, tolerance, log)
        failed += [index] * bool(problems)
        found += problems
    for device in runs:
        if (other := elsewhere(exported.backend, device)) is not None:
            log.note(f"{node.name}: recorded on {device}, checked on {other}: no provider for it")
    if failed and failed[0] > 0:
        log.caution(f"{node.name}: {FROZEN_HINT}")
    if not node.samples:
        found.append(_finding("VER1006", node, f"node {node.name!r} has no recorded sample"))
    passed = not found
    return NodeVerdict(node.name, passed, len(node.samples), _with_hint(found, failed))


def _run(
    runs: dict[torch.device, Run],
    exported: Exported,
    device: torch.device,
    inputs: list[torch.Tensor],
) -> list[torch.Tensor]:
    if device not in runs:
        runs[device] = load(
            exported.backend, exported.path, device, exported.input_names, exported.output_names
        )
    return runs[device](inputs)


def _device(sample: Sample) -> torch.device:
    values = [*sample.inputs.values(), *sample.outputs.values()]
    return next((value.device for value in values if value.device.type != "cpu"), _CPU)


_CPU = torch.device("cpu")


def _compare_sample(
    node: Node,
    index: int,
    sample: Sample,
    results: list[torch.Tensor],
    tolerance: Tolerance,
    log: ExportLog,
) -> list[Diagnostic]:
    if len(results) != len(node.outputs):
        message = f"{node.name} sample {index}: {len(results)} outputs, not {len(node.outputs)}"
        log.problem(message)
        return [_finding("VER1004", node, message)]
    found = []
    for port, result in zip(node.outputs, results, strict=True):
        reference = sample.outputs.get(port.name, node.static_outputs.get(port.name))
        where = f"{node.name}/{port.name} sample {index}"
        if reference is None:
            found.append(_finding("VER1006", node, f"{where}: no output was recorded"))
            continue
        problem = _compare(where, node, reference, result, tolerance, log)
        found += [] if problem is None else [problem]
    return found


def _compare(
    where: str,
    node: Node,
    reference: torch.Tensor,
    result: torch.Tensor,
    tolerance: Tolerance,
    log: ExportLog,
) -> Diagnostic | None:
    try:
        checked = json.loads(
            _native.compare(
                reference.detach(),
                result.detach(),
                rtol=tolerance.rtol,
                atol=tolerance.atol,
                equal_nan=tolerance.equal_nan,
            )
        )
    except VeracityError as refusal:
        # Shape and dtype; each is told by its own finding.
        reasons = "; ".join(found.message for found in refusal.diagnostics)
        log.problem(f"{where}: {reasons}")
        return _finding("VER1005", node, f"{where}: {reasons}")
    if checked["passed"]:
        return None
    _log_statistics(where, checked["measurement"], reference, result, tolerance, log)
    reasons = "; ".join(reason["message"] for reason in checked["reasons"])
    return _finding("VER1005", node, f"{where}: {reasons}")


def _log_statistics(
    where: str,
    measured: dict[str, Any],
    reference: torch.Tensor,
    result: torch.Tensor,
    tolerance: Tolerance,
    log: ExportLog,
) -> None:
    log.problem(
        f"{where}: Mismatch detected (rtol={tolerance.rtol}, atol={tolerance.atol}). "
        f"Please check {log.path}"
    )
    for side, tensor, span in (
        ("Source", reference, measured["reference_range"]),
        ("Exported", result, measured["candidate_range"]),
    ):
        log.note(f"  {side}: shape={list(tensor.shape)}, dtype={tensor.dtype}")
        if span is not None:
            log.note(f"  {side} range: [{span[0]:.6e}, {span[1]:.6e}]")
    log.note(
        f"  Diff stats: max={measured['max_abs']:.6e}, mean={measured['mean_abs']:.6e}, "
        f"rms={measured['rms']:.6e}, {measured['outside']} of {measured['elements']} outside"
    )
    if measured.get("worst"):
        worst = measured["worst"]
        log.note(
            f"  Worst at {worst['index']}: source {worst['reference']!r}, "
            f"exported {worst['candidate']!r}"
        )
    if measured.get("percentiles"):
        spread = ", ".join(f"{name}={size:.6e}" for name, size in measured["percentiles"].items())
        log.note(f"  Diff percentiles: {spread}")
    _log_non_finite(where, measured, log)


def _log_non_finite(where: str, measured: dict[str, Any], log: ExportLog) -> None:
    counts, elements = measured["non_finite"], max(measured["elements"], 1)
    for side, name, tell in (
        ("candidate", "exported", log.problem),
        ("reference", "source", log.caution),
    ):
        nan, inf = counts[f"{side}_nan"], counts[f"{side}_inf"]
        if nan or inf:
            tell(
                f"{where}: {name} has {nan} NaN ({100 * nan / elements:.3f}%) and "
                f"{inf} Inf ({100 * inf / elements:.3f}%)"
            )


def _not_run(node: Node, index: int, error: Exception) -> Diagnostic:
    if isinstance(error, VeracityError):
        first = error.diagnostics[0]
        return _finding(first.code, node, f"{node.name}: {first.message}", *first.hints)
    text = str(error).strip().split("\n")[0][:300]
    message = f"{node.name} sample {index}: the model does not run: {type(error).__name__}: {text}"
    return _finding("VER1006", node, message)


def _finding(code: str, node: Node, message: str, *hints: str) -> Diagnostic:
    return Diagnostic(code, "error", message, node.location, hints)


def _with_hint(found: list[Diagnostic], failed: list[int]) -> list[Diagnostic]:
    if not failed or failed[0] == 0:
        return found
    first = found[0]
    hints = (*first.hints, FROZEN_HINT)
    hinted = Diagnostic(first.code, first.severity, first.message, first.location, hints)
    return [hinted, *found[1:]]
