"""What importing costs, and whether memory grows while running."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from table import Row, at_most

_IMPORT = """
import json, sys, time
start = time.perf_counter()
import veracity
secs = time.perf_counter() - start
status = open("/proc/self/status").read()
rss = int(status.split("VmRSS:")[1].split()[0]) / 1024
heavy = [name for name in ("torch", "numpy", "onnxruntime") if name in sys.modules]
print(json.dumps({"secs": secs, "rss_mb": rss, "heavy": heavy}))
"""

_SOAK = """
import json, sys
import numpy as np
import veracity
def rss():
    return int(open("/proc/self/status").read().split("VmRSS:")[1].split()[0]) / 1024
manager = veracity.InferenceManager(sys.argv[1], engine="ort")
inputs = {key: np.asarray(value) for key, value in manager.get_mock_input().items()}
early = None
for step in range(1_000_000):
    manager.run_policy(inputs)
    if step == 10_000:
        early = rss()
print(json.dumps({"early_mb": early, "late_mb": rss(), "torch": "torch" in sys.modules}))
"""


def measure(folder: Path) -> list[Row]:
    """Return import time and memory, and the growth over a million steps."""
    imports = [_python(_IMPORT) for _ in range(5)]
    heavy = imports[0]["heavy"]
    soak = _python(_SOAK, str(folder / "chain_onnx" / "chain_onnx.yaml"))
    growth = abs(soak["late_mb"] - soak["early_mb"])
    return [
        at_most("import veracity, seconds", median(i["secs"] for i in imports), 0.15, ""),
        at_most(
            "import veracity, RSS MB",
            median(i["rss_mb"] for i in imports),
            60.0,
            f"imports of torch, numpy, onnxruntime: {heavy or 'none'}",
        ),
        at_most(
            "1,000,000 steps: RSS growth after step 10,000, MB",
            growth,
            2.0,
            f"{soak['early_mb']:.1f} MB -> {soak['late_mb']:.1f} MB",
        ),
        at_most("onnx bundle loaded and run: torch imported", float(soak["torch"]), 0.0, ""),
    ]


def _python(script: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
