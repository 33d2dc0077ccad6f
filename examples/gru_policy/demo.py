"""Make, prove and run the example pipeline: what `make demo` does."""

from __future__ import annotations

import argparse
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
    """Run the demo and return the exit code of the proof."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--veracity", type=Path, required=True, help="the command line binary")
    parser.add_argument("--out", type=Path, required=True, help="folder for what is made")
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)

    print(f"1. run the pipeline in PyTorch for {STEPS} steps and record it")
    pipeline = Pipeline()
    episode = record_episode(pipeline, STEPS)
    inputs, reference = out / "episode_inputs.npz", out / "episode_reference.npz"
    for file, node in ((inputs, "observation/"), (reference, "actuation/")):
        arrays: dict[str, Any] = {k: v for k, v in episode.items() if k.startswith(node)}
        np.savez(file, **arrays)

    print(
        "2. trace five steps, export each stage to ONNX, check it on every step, write the bundle"
    )
    bundle = export_bundle(pipeline, out / "gru_policy")

    def veracity(*arguments: object) -> int:
        command = [str(options.veracity), *map(str, arguments)]
        print(f"\n$ veracity {' '.join(command[1:])}", flush=True)
        # The command line looks for ONNX Runtime in the active Python environment.
        environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
        return subprocess.run(command, check=False, env=environment).returncode

    print("3. check the bundle, run the recorded episode without Python, compare with PyTorch")
    if code := veracity("verify", bundle):
        return code
    verdicts = {}
    for engine in ("ort", "embedded"):
        outputs = out / f"episode_{engine}.npz"
        episode_options = ("--engine", engine, "--inputs", inputs, "--outputs", outputs)
        verdicts[engine] = veracity("run", bundle, *episode_options) or veracity(
            "compare", reference, outputs, "--atol", ATOL, "--rtol", RTOL
        )

    print()
    claim = f"equals PyTorch within {ATOL:g} + {RTOL:g} * |value|"
    for engine, verdict in verdicts.items():
        word = "proved" if verdict == 0 else "NOT proved"
        print(f"{word}: actuation/joint_target over {STEPS} steps, engine {engine}, {claim}")
    print("not proved: other inputs than the recorded ones")
    print(f"bundle: {bundle}\nepisode and outputs: {out}/episode_*.npz")
    return max(verdicts.values())


if __name__ == "__main__":
    sys.exit(main())
