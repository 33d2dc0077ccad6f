"""Pages of real results: a pipeline, the same one broken, a network off by a weight, a change."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper
from veracity.drift import zoo
from veracity.parity import parity

ROOT = Path(__file__).parents[3]
BINARY = ROOT / "target/debug/veracity"


def run_veracity(*arguments: object, code: int = 0) -> None:
    """Run the command line with the ONNX Runtime of this Python; its exit code is known."""
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    words = [str(BINARY), *map(str, arguments)]
    done = subprocess.run(words, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"


def make_pipeline_pages(folder: Path) -> dict[str, Path]:
    """Export the example pipeline, and show it as it is and with a weight of its policy off."""
    bundle = _export_example(folder)
    broken = folder / "broken" / bundle.name
    shutil.copytree(bundle, broken)
    _shift_weight(broken / "policy.onnx", 0.02)
    pages = {"pipeline": folder / "pipeline.html", "failing": folder / "failing.html"}
    proofs = {"pipeline": folder / "laptop.json", "failing": folder / "robot.json"}
    run_veracity("seal", broken)
    for kind, checked, code in (("pipeline", bundle, 0), ("failing", broken, 1)):
        files = ("--html", pages[kind], "--output", proofs[kind])
        run_veracity("check", checked, *files, code=code)
    return pages


def make_drift_page(folder: Path, network: str = "resnet50") -> Path:
    """Compare a network of the zoo with an export of it in which a weight is off."""
    model, args = zoo.build(network, seed=0)
    path = export_network(folder, network)
    _shift_weight(path, 0.05, name="layer2.0.conv2.weight")
    page = folder / "drift.html"
    result = parity(model, args, onnx=path, float64=False, name=network)
    assert result.verdict == "disproved"
    result.remember_command(f"veracity parity zoo:{network} --onnx={path.name} --no-float64")
    return result.to_html(page)


def make_rewrite_page(folder: Path, network: str, *options: str) -> Path:
    """Transform an export of a network of the zoo."""
    page = folder / f"{network}.html"
    path = export_network(folder, network)
    run_veracity("transform", path, "-o", folder / "small.onnx", "--html", page, *options)
    return page


def export_network(folder: Path, network: str) -> Path:
    """Export a network as torch does it, without its optimiser."""
    model, args = zoo.build(network, seed=0)
    path = folder / f"{network}.onnx"
    with contextlib.redirect_stdout(io.StringIO()):
        made = torch.onnx.export(model, args, dynamo=True, verbose=False, optimize=False)
    assert made is not None
    onnx.save(made.model_proto, path)
    return path


def _export_example(folder: Path) -> Path:
    """Export the example in a Python of its own, as `make demo` does."""
    program = (
        "import sys; from pathlib import Path; from pipeline import Pipeline, export_bundle;"
        "export_bundle(Pipeline(), Path(sys.argv[1]))"
    )
    bundle = folder / "gru_policy"
    words = [sys.executable, "-c", program, str(bundle)]
    example = ROOT / "examples/gru_policy"
    done = subprocess.run(words, check=False, cwd=example, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return bundle


def _shift_weight(path: Path, amount: float, name: str | None = None) -> None:
    """Add something to the first elements of a weight: the largest, or the one of that name."""
    model = onnx.load(path)
    weights = {each.name: each for each in model.graph.initializer}
    chosen = weights[name] if name else max(weights.values(), key=lambda each: len(each.raw_data))
    values = numpy_helper.to_array(chosen).copy()
    values[0] += amount
    chosen.CopyFrom(numpy_helper.from_array(values, chosen.name))
    onnx.save(model, path)
