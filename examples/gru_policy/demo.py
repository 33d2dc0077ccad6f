"""Make, prove and run the example pipeline: what `make demo` does."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pipeline import Pipeline, export_bundle, record_episode

STEPS = 200
ATOL, RTOL = 1e-5, 1e-4


def main() -> int:
    """Run the demo and return 0 when everything is proved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--veracity", default="veracity", help="the command line")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="where to write")
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)

    print(f"1. run the pipeline in PyTorch for {STEPS} steps and record it")
    pipeline = Pipeline()
    inputs, reference = record(pipeline, out)
    print("2. trace five steps, export each stage to ONNX, prove it, write the bundle", flush=True)
    bundle = export_bundle(pipeline, out / "gru_policy")

    def veracity(*arguments: object) -> int:
        command = [options.veracity, *map(str, arguments)]
        print(f"\n$ veracity {' '.join(command[1:])}", flush=True)
        # The command line looks for ONNX Runtime in the active Python environment.
        environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
        return subprocess.run(command, check=False, env=environment).returncode

    print("3. prove the bundle without Python, and run it at its own 50 Hz")
    page = bundle.parent / "report.html"
    proved = (
        veracity("verify", bundle)
        or veracity("check", bundle, "--save")
        or veracity("report", bundle, "--output", page)
        or veracity("run", bundle, "--require-proof", "--mock", 7, "--rate", "bundle")
    )
    print("\n4. run the recorded episode on two engines, compare every step with PyTorch")
    verdicts = {}
    for engine in ("ort", "embedded"):
        outputs = out / f"episode_{engine}.npz"
        episode = ("--engine", engine, "--inputs", inputs, "--outputs", outputs)
        verdicts[engine] = veracity("run", bundle, *episode) or veracity(
            "compare", reference, outputs, "--atol", ATOL, "--rtol", RTOL
        )

    print()
    claim = f"equals PyTorch within {ATOL:g} + {RTOL:g} * |value|"
    for engine, verdict in verdicts.items():
        word = "proved" if verdict == 0 else "NOT proved"
        print(f"{word}: actuation/joint_target over {STEPS} steps, engine {engine}, {claim}")
    print("not proved: other inputs than the recorded ones and those that were drawn")
    failed = proved or max(verdicts.values())
    print(f"verdict: {'NOT proved' if failed else 'proved'} ({coverage(bundle)})")
    print(f"report: {page}")
    return failed


def record(pipeline: Pipeline, out: Path) -> tuple[Path, Path]:
    """Run the pipeline in PyTorch; return the files of what went in and what came out."""
    episode = record_episode(pipeline, STEPS)
    inputs, reference = out / "episode_inputs.npz", out / "episode_reference.npz"
    for file, node in ((inputs, "observation/"), (reference, "actuation/")):
        arrays: dict[str, Any] = {k: v for k, v in episode.items() if k.startswith(node)}
        np.savez(file, **arrays)
    return inputs, reference


def coverage(bundle: Path) -> str:
    """Return how much the proof in the bundle is about."""
    proof = json.loads((bundle.parent / "proof.json").read_text())
    return ", ".join(f"{n} {word.replace('_', ' ')}" for word, n in proof["coverage"].items())


if __name__ == "__main__":
    sys.exit(main())
