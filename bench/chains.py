"""Steps of a three-node chain (24+24 inputs, 48-64-64-12) in LEAPP's runtime and in ours."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import leapp
import torch
import veracity
from leapp import annotate
from table import Row, at_most
from torch import nn

VERACITY = "target/release/veracity"
ROUNDS = 7
STEPS = 3000


def measure(folder: Path) -> list[Row]:
    """Return the ratios to LEAPP's `run_policy`."""
    return _onnx(_export("onnx", folder)) + _jit(_export("jit", folder))


def _export(backend: str, folder: Path) -> Path:
    torch.manual_seed(0)
    encoder, policy, head = nn.Linear(48, 64), nn.Linear(64, 64), nn.Linear(64, 12)
    name = f"chain_{backend}"
    leapp.start(name, save_path=str(folder))
    with torch.no_grad():
        left, right = annotate.input_tensors(
            "encoder", {"left": torch.randn(1, 24), "right": torch.randn(1, 24)}
        )
        features = torch.tanh(encoder(torch.cat([left, right], dim=-1)))
        annotate.output_tensors("encoder", {"features": features}, export_with=backend)
        features = annotate.input_tensors("policy", {"features": features})
        hidden = torch.nn.functional.elu(policy(features))
        annotate.output_tensors("policy", {"hidden": hidden}, export_with=backend)
        hidden = annotate.input_tensors("head", {"hidden": hidden})
        annotate.output_tensors("head", {"action": head(hidden)}, export_with=backend)
    leapp.stop()
    leapp.compile_graph(visualize=False)
    return folder / name / f"{name}.yaml"


def _onnx(bundle: Path) -> list[Row]:
    theirs = leapp.InferenceManager(str(bundle))
    ours = veracity.InferenceManager(bundle)
    fused = veracity.InferenceManager(bundle, fuse=True)
    inputs = ours.get_mock_input(1)
    arrays = {key: value.numpy() for key, value in inputs.items()}
    p50 = _interleaved(
        {
            "leapp": lambda: _python_p50(lambda: theirs.run_policy(inputs)),
            "python": lambda: _python_p50(lambda: ours.run_policy(inputs)),
            "python numpy": lambda: _python_p50(lambda: ours.run_policy(arrays)),
            "python fused": lambda: _python_p50(lambda: fused.run_policy(inputs)),
            "rust": lambda: _rust_p50(bundle),
            "rust fused": lambda: _rust_p50(bundle, "--fuse"),
        }
    )
    bars = {"rust": 1 / 5, "python": 1 / 3, "rust fused": 1 / 6}
    return [
        at_most(
            f"onnx chain: {name} / leapp run_policy, p50",
            p50[name] / p50["leapp"],
            bar,
            f"{p50[name]:.1f} us / {p50['leapp']:.1f} us",
        )
        for name, bar in bars.items()
    ] + [
        at_most(
            f"onnx chain: {name} / leapp run_policy, p50",
            p50[name] / p50["leapp"],
            1 / 3,
            f"{p50[name]:.1f} us / {p50['leapp']:.1f} us",
        )
        for name in ("python numpy", "python fused")
    ]


def _jit(bundle: Path) -> list[Row]:
    theirs = leapp.InferenceManager(str(bundle))
    ours = veracity.InferenceManager(bundle)
    inputs = ours.get_mock_input(1)
    p50 = _interleaved(
        {
            "leapp": lambda: _python_p50(lambda: theirs.run_policy(inputs)),
            "python": lambda: _python_p50(lambda: ours.run_policy(inputs)),
        }
    )
    detail = f"{p50['python']:.1f} us / {p50['leapp']:.1f} us"
    ratio = p50["python"] / p50["leapp"]
    return [at_most("jit chain: python / leapp run_policy, p50", ratio, 1.0, detail)]


def _interleaved(measurements: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Return the median over rounds of each measurement, all of them run in every round."""
    rounds = [{name: take() for name, take in measurements.items()} for _ in range(ROUNDS)]
    return {name: median(taken[name] for taken in rounds) for name in measurements}


def _python_p50(step: Callable[[], object]) -> float:
    for _ in range(200):
        step()
    times = []
    for _ in range(STEPS):
        start = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - start)
    return median(times) / 1000


def _rust_p50(bundle: Path, *options: str) -> float:
    command = [VERACITY, "run", str(bundle), "--mock", "1", "--steps", str(STEPS), *options]
    command += ["--engine", "ort", "--format", "json", "--quiet"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["timing"]["latency"]["p50_secs"]) * 1e6
