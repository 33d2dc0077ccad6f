"""Proving beside LEAPP and beside bare running: large outputs, whole checks, long roll-outs.

A large output is validated in a process of its own, so that peak memory means something. What is
timed is the function that validates one node, on both sides; in the mismatch case one element of
the recorded output was changed before.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from table import Row, at_least, at_most

EXAMPLE = "target/release/examples/bench_proof"
MEGABYTES = 256
TICKS = 10_000
#: Large outputs are validated this often, in turn, and the quickest counts on both sides.
ROUNDS = 3
#: LEAPP cannot take percentiles of more than 16.7M elements.
ELEMENTS = (20_000_000, 70_000_000)


def measure(folder: Path) -> list[Row]:
    """Return every figure about proving."""
    return [*_large_outputs(), *_any_size(), *_over_time(folder)]


_VALIDATE = """
import json, logging, sys, tempfile, time, warnings
import torch
side, elements, wrong = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "wrong"
api = __import__(side)
logging.disable(1000)
warnings.simplefilter("ignore")
found = {}

def status(key):
    return int(open("/proc/self/status").read().split(key + ":")[1].split()[0]) / 1024

def timed(run):
    open("/proc/self/clear_refs", "w").write("5")
    before, begin = status("VmRSS"), time.perf_counter()
    try:
        return run()
    finally:
        found["seconds"] = time.perf_counter() - begin
        found["peak"] = status("VmHWM") - before

if side == "leapp":
    from leapp.leapp_graph.leapp_node import LeappNode
    original = LeappNode.validate_compiled_model
    def validate(self, *args, **kwargs):
        examples = self._build_validation_examples()
        if wrong:
            examples[0][2][0].view(-1)[0] += 1
        self._build_validation_examples = lambda: examples
        return timed(lambda: original(self, *args, **kwargs))
    LeappNode.validate_compiled_model = validate
else:
    from veracity.export.validate import Prover
    original = Prover.prove
    def prove(self, made, *args, **kwargs):
        if wrong:
            made.node.samples[0].outputs["y"].view(-1)[0] += 1
        return timed(lambda: original(self, made, *args, **kwargs))
    Prover.prove = prove

def run(count, name):
    api.start(name, save_path=tempfile.mkdtemp())
    x = api.annotate.input_tensors("n", {"x": torch.ones(1)})
    api.annotate.output_tensors("n", {"y": x.expand(count) + 1}, export_with="jit")
    api.stop()
    try:
        return api.compile_graph(visualize=False, strict=False)
    except Exception as error:
        return {"n": repr(error)}

run(1000, "warm")
found["verdict"] = str(run(elements, "big")["n"])
print("RESULT" + json.dumps(found))
"""


def _validated(side: str, elements: int, case: str) -> dict[str, Any]:
    command = [sys.executable, "-c", _VALIDATE, side, str(elements), case]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.split("RESULT")[1])
    return found


def _large_outputs() -> list[Row]:
    rows = []
    elements = MEGABYTES * 1024 * 1024 // 4
    for case in ("right", "wrong"):
        rounds = [
            [_validated(side, elements, case) for side in ("veracity", "leapp")]
            for _ in range(ROUNDS)
        ]
        ours, theirs = (min(side, key=_seconds) for side in zip(*rounds, strict=True))
        what = f"proving: validating a {MEGABYTES} MB output that is {case}"
        ratio = ours["seconds"] / theirs["seconds"]
        detail = f"{ours['seconds']:.2f} s / {theirs['seconds']:.2f} s"
        rows.append(at_most(f"{what}: ours / leapp", ratio, 1 / 20, detail))
        detail = f"{ours['peak']:.0f} MB, LEAPP {theirs['peak']:.0f} MB"
        rows.append(at_most(f"{what}: extra memory", ours["peak"] / MEGABYTES, 1.2, detail))
    return rows


def _seconds(found: dict[str, Any]) -> float:
    return float(found["seconds"])


def _any_size() -> list[Row]:
    """Count right answers on outputs that LEAPP's statistics refuse."""
    cases = [(count, case) for count in ELEMENTS for case in ("right", "wrong")]
    verdicts = [_validated("veracity", *case)["verdict"] for case in cases]
    right = sum(
        verdict == str(case == "right") for verdict, (_, case) in zip(verdicts, cases, strict=True)
    )
    sizes = " and ".join(f"{count // 1_000_000}M" for count in ELEMENTS)
    return [at_least(f"proving: right answers on {sizes} elements", right, len(cases), "of 4")]


def _over_time(folder: Path) -> list[Row]:
    sys.path.insert(0, "examples/gru_policy")
    from pipeline import Pipeline, export_bundle

    export_bundle(Pipeline(), folder / "gru_policy")
    bundle = folder / "gru_policy_timed"
    shutil.copytree(folder / "gru_policy", bundle)
    command = [EXAMPLE, str(bundle), str(TICKS)]
    # It looks for ONNX Runtime in the active Python environment.
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found = json.loads(done.stdout)
    ratio = found["roll_out_secs"] / found["bare_secs"]
    detail = f"{found['roll_out_secs']:.3f} s / {found['bare_secs']:.3f} s"
    check = found["check_secs"] * 1e3
    return [
        at_most("proving: check of three nodes with 5 samples, ms", check, 50, "loading included"),
        at_most(f"proving: roll-out of {TICKS} ticks / bare running", ratio, 1.5, detail),
    ]
