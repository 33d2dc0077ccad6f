"""Transforming ONNX models beside onnxsim, onnxslim, onnxscript and ONNX Runtime's basic level.

Everybody reads a file and writes a file, in a process of its own, timed after its imports, turn by
turn. Networks have drawn weights and drawn statistics; `raw` is torch's exporter without its
optimiser, `ts` the one before it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import parity
from table import Row, at_most

_PACKAGES = ("onnxsim==0.8.1", "onnxslim==0.1.98")
NETWORKS = ("mobilenet_v3_small", "resnet50", "vit_b_16")
#: Most nodes that may be left, by form and network.
NODES = {"raw": (122, 122, 524), "ts": (122, 122, 500)}
ROUNDS = 3

_EXPORT = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from torchvision import models
name, folder = sys.argv[1:]
torch.manual_seed(0)
model = getattr(models, name)(weights=None).eval()
for key, value in model.named_buffers():
    if key.endswith("running_mean"): value.normal_(std=0.1)
    if key.endswith("running_var"): value.uniform_(0.5, 1.5)
for key, value in model.named_parameters():
    if "head" in key: torch.nn.init.normal_(value, std=0.02)
given = (torch.randn(1, 3, 224, 224),)
torch.onnx.export(model, given, f"{folder}/{name}_raw.onnx", dynamo=True, optimize=False,
                  opset_version=18, external_data=False, verbose=False)
torch.onnx.export(model, given, f"{folder}/{name}_ts.onnx", dynamo=False,
                  do_constant_folding=False, opset_version=17)
"""
_COMMON = """
import json, sys, time
source, target, peers = sys.argv[1:]
sys.path.append(peers)
def say(begin, nodes=None, **more):
    secs = time.perf_counter() - begin
    peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
    if nodes is None:
        import onnx
        graph = onnx.load(target, load_external_data=False).graph
        nodes = len(graph.node)
        assert all(node.domain in ("", "ai.onnx") for node in graph.node)
    print(json.dumps({"secs": secs, "peak_mb": peak, "nodes": nodes, **more}))
"""
_OURS = """
from veracity import transform
begin = time.perf_counter()
transform.Pipeline().run(source, validate="off", provenance=False).save(target, log=False)
say(begin)
"""
_CHECKED = """
import statistics
import numpy as np
import onnxruntime as ort
from veracity import transform
def timed(what):  # one thread computes: processor time is what a quiet machine would take
    begin = time.process_time()
    found = what()
    return time.process_time() - begin, found
options = ort.SessionOptions()
options.intra_op_num_threads = 1
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
x = {session.get_inputs()[0].name: np.random.rand(1, 3, 224, 224).astype(np.float32)}
session.run(None, x)
forward, whole, local = [], [], []
end = time.perf_counter() + 20
while len(local) < 5 or time.perf_counter() < end:
    forward.append(min(timed(lambda: session.run(None, x))[0] for _ in range(3)))
    whole.append(timed(lambda: transform.Pipeline().run(source, validate="final"))[0])
    took, result = timed(lambda: transform.Pipeline().run(source))
    local.append(took)
assert result.verdict == "proved", str(result)
names = {name for check in result.checks["rewrites"] for name in check["sets"]}
sets = {name.removesuffix(" (corner)") for name in names}
# Round by round: a shared machine is not equally fast all the time.
rounds = zip(local, whole, forward)
alone = statistics.median((local - whole) / forward for local, whole, forward in rounds)
say(time.perf_counter(), result.nodes_after, passes=alone / len(sets), sets=len(sets),
    all=min(local), whole=min(whole), forward=min(forward), rounds=len(local),
    rewrites=len(result.rewrites), rejected=len(result.rejected))
"""
_PEERS = {
    "onnxsim": """
import onnx, onnxsim
begin = time.perf_counter()
onnx.save(onnxsim.simplify(onnx.load(source))[0], target)
say(begin)
""",
    "onnxslim": """
import onnx, onnxslim
begin = time.perf_counter()
onnx.save(onnxslim.slim(onnx.load(source)), target)
say(begin)
""",
    "onnxscript": """
import onnx, onnxscript.optimizer
begin = time.perf_counter()
onnx.save(onnxscript.optimizer.optimize(onnx.load(source)), target)
say(begin)
""",
    "ort basic": """
import onnxruntime as ort
begin = time.perf_counter()
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = target
options.log_severity_level = 4
ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
say(begin)
""",
}


def measure(folder: Path) -> list[Row]:
    """Return node counts, times against the fastest peer, memory, and the price of checking."""
    rows: list[Row] = []
    peers = _PEERS if _peers_are_here() else {}
    for number, network in enumerate(NETWORKS):
        command = [sys.executable, "-c", _EXPORT, network, str(folder)]
        subprocess.run(command, capture_output=True, check=True)
        for form, most in NODES.items():
            source = folder / f"{network}_{form}.onnx"
            ours = _best(_OURS, source)
            rows.append(
                at_most(
                    f"{network} {form}: nodes left",
                    ours["nodes"],
                    most[number],
                    f"{ours['secs']:.2f} s, {ours['peak_mb']:.0f} MB",
                )
            )
            if network != "mobilenet_v3_small" and peers:
                rows.append(_against_peers(network, form, source, peers))
            if network == "vit_b_16":
                rows.append(at_most(f"{network} {form}: peak RSS MB", ours["peak_mb"], 700.0, ""))
        rows.append(_price(folder / f"{network}_raw.onnx", network))
    return rows


def _against_peers(network: str, form: str, source: Path, peers: dict[str, str]) -> Row:
    limit = 1 / 3 if network == "resnet50" else 1 / 2
    ours: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(ROUNDS):
        ours.append(_run(_OURS, source)["secs"])
        for name, script in peers.items():
            # The slow ones once: they do not decide.
            if len(theirs[name]) == 0 or name == "ort basic":
                theirs[name].append(_run(script, source)["secs"])
    fastest = min(min(times) for times in theirs.values())
    shown = ", ".join(f"{name} {min(times):.2f}" for name, times in theirs.items())
    what = f"{network} {form}: time against the fastest of four"
    return at_most(what, min(ours) / fastest, limit, f"{min(ours):.2f} s; {shown}")


def _price(source: Path, network: str) -> Row:
    found = _run(_CHECKED, source)
    detail = (
        f"{found['rewrites']} rewrites proved on {found['sets']} sets, {found['rejected']} taken "
        f"back; {found['all']:.2f} CPU s, with the whole checked only {found['whole']:.2f} s; a "
        f"forward pass {found['forward']:.4f} s; median of {found['rounds']} rounds"
    )
    what = f"{network}: checking rewrites, in forward passes per set of inputs"
    return at_most(what, found["passes"], 2.0, detail)


def _best(script: str, source: Path) -> dict[str, Any]:
    return min((_run(script, source) for _ in range(ROUNDS)), key=lambda one: one["secs"])


def _run(script: str, source: Path) -> dict[str, Any]:
    target = source.with_name("result.onnx")
    # Replacing a file makes the system write the new one to the disk at once.
    target.unlink(missing_ok=True)
    places = [str(source), str(target), str(parity.PEERS.resolve())]
    command = [sys.executable, "-c", _COMMON + script, *places]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _peers_are_here() -> bool:
    if (parity.PEERS / "onnxsim").is_dir() and (parity.PEERS / "onnxslim").is_dir():
        return True
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    target = ["--target", str(parity.PEERS)]
    return subprocess.run([*pip, *target, *_PACKAGES], check=False).returncode == 0
