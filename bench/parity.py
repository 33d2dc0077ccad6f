"""Operator-by-operator parity of ResNet-50 beside its peers, in processor seconds.

Every side runs in a process of its own on one thread, gets the same network, and is timed after the
export and after its imports. Peers do less: none gives float64 or a verdict by introduced error,
and Polygraphy compares two runs of the file and knows no torch. torch opens a session for every
value, so that it is timed on ResNet-18.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from table import Row, at_most

#: Packages of the peers and what they import; torch, onnx and numpy are those of this environment.
PEERS = Path("target/bench-peers")
_PACKAGES = (
    "polygraphy==0.53.6", "onnx-diagnostic==0.9.3", "transformers==4.57.1",
    "huggingface_hub==0.36.0", "tokenizers==0.22.1", "regex", "tqdm", "pyyaml", "requests",
    "urllib3", "certifi", "charset-normalizer", "idna", "pandas", "python-dateutil", "pytz", "six",
    "tzdata", "scipy",
)  # fmt: skip
ROUNDS = 3
#: What comparing may take beyond the network and its export.
ADDED_MB = 200.0

_COMMON = """
import contextlib, io, json, sys, time, warnings
import torch
warnings.simplefilter("ignore")
torch.set_num_threads(1)
# Last, so that this environment's packages win.
sys.path.append(sys.argv[2])
from veracity.drift import zoo
model, args = zoo.build(sys.argv[1], 42)

def peak(key="VmHWM"):
    return int(open("/proc/self/status").read().split(key + ":")[1].split()[0]) / 1024

def exported(**options):
    with contextlib.redirect_stdout(io.StringIO()):
        program = torch.export.export(model, args, strict=False)
        return torch.onnx.export(program, dynamo=True, verbose=False, opset_version=20, **options)

def say(begin, values, peak_mb=0.0):
    found = {"secs": time.process_time() - begin, "values": values, "peak_mb": peak_mb}
    print(json.dumps(found))
"""
_OURS = """
from veracity.drift.measured import compared
with_model = peak("VmRSS")
result, cost = compared(model, args)
assert result.verdict == "proved", result
whole_mb = max(cost.peak_bytes, cost.export_peak_bytes) / 2**20
print(json.dumps({
    "secs": cost.secs, "values": len(result.rows), "peak_mb": whole_mb,
    "compare_mb": cost.peak_bytes / 2**20, "exported_mb": cost.exported_bytes / 2**20,
    "with_model_mb": with_model,
}))
"""
_POLYGRAPHY = """
from polygraphy import constants
from polygraphy.backend.onnx import BytesFromOnnx, ModifyOutputs
from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from polygraphy.comparator import Comparator, CompareFunc
from polygraphy.logger import G_LOGGER
G_LOGGER.module_severity = G_LOGGER.CRITICAL
proto = exported().model_proto
begin = time.process_time()
load = SessionFromOnnx(BytesFromOnnx(ModifyOutputs(proto, outputs=constants.MARK_ALL)))
results = Comparator.run([OnnxrtRunner(load, "a"), OnnxrtRunner(load, "b")])
found = Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol=1e-5, rtol=1e-5))
say(begin, len(results[0][1][0]), peak())
"""
_ONNX_DIAGNOSTIC = """
from onnx_diagnostic.reference import OnnxruntimeEvaluator
from onnx_diagnostic.torch_onnx.sbs import run_aligned
made = exported()
program, proto = made.exported_program, made.model_proto
begin = time.process_time()
options = {"run_onnx_with_torch_inputs": True}
rows = list(run_aligned(program, proto, OnnxruntimeEvaluator, args, **options))
say(begin, sum(1 for row in rows if row.ep_name and row.onnx_name), peak())
"""
_TORCH = """
from torch.onnx.verification import verify_onnx_program
made = exported()
begin = time.process_time()
say(begin, len(verify_onnx_program(made, args, compare_intermediates=True)), peak())
"""


def measure(folder: Path) -> list[Row]:
    """Return figures of ResNet-50, and how many times less work than the peers it is."""
    del folder
    ours = min((_run(_OURS, "resnet50") for _ in range(ROUNDS)), key=lambda one: one["secs"])
    small = _run(_OURS, "resnet18")
    rows = [
        at_most(
            "ResNet-50 parity after export, CPU s",
            ours["secs"],
            3.0,
            f"{ours['values']} values, introduced error and float64 included",
        ),
        *_memory(ours),
    ]
    if not _peers_are_here():
        print("the packages of the peers cannot be installed", file=sys.stderr)
        return rows
    return [
        *rows,
        _ratio("onnx-diagnostic run_aligned", ours, _run(_ONNX_DIAGNOSTIC, "resnet50"), 1.0),
        _ratio("Polygraphy, all tensors", ours, _run(_POLYGRAPHY, "resnet50"), 0.5),
        _ratio("torch verify_onnx_program, ResNet-18", small, _run(_TORCH, "resnet18"), 0.05),
    ]


def _memory(ours: dict[str, Any]) -> list[Row]:
    """Return peaks of the whole process, of comparing alone, and of what comparing adds."""
    peak, compare, exported = ours["peak_mb"], ours["compare_mb"], ours["exported_mb"]
    network = ours["with_model_mb"]
    added = compare - exported
    return [
        at_most(
            "ResNet-50 parity, peak RSS MB",
            peak,
            700.0,
            f"torch, torchvision and the network alone hold {network:.0f}",
        ),
        at_most(
            "ResNet-50 parity after export, peak RSS MB",
            compare,
            700.0,
            f"{compare - network:.0f} above the network; the export left {exported - network:.0f}",
        ),
        at_most(
            "ResNet-50 parity after export, MB added", added, ADDED_MB, "to what was held then"
        ),
    ]


def _ratio(peer: str, ours: dict[str, Any], theirs: dict[str, Any], limit: float) -> Row:
    detail = (
        f"{ours['secs']:.2f} / {theirs['secs']:.2f} CPU s, {ours['values']} / {theirs['values']} "
        f"values, {ours['peak_mb']:.0f} / {theirs['peak_mb']:.0f} MB"
    )
    return at_most(f"parity CPU against {peer}", ours["secs"] / theirs["secs"], limit, detail)


def _run(script: str, network: str) -> dict[str, Any]:
    command = [sys.executable, "-c", _COMMON + script, network, str(PEERS.resolve())]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _peers_are_here() -> bool:
    if (PEERS / "polygraphy").is_dir() and (PEERS / "onnx_diagnostic").is_dir():
        return True
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(PEERS)]
    return subprocess.run([*pip, *_PACKAGES], check=False).returncode == 0
