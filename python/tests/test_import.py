"""Importing is light, and ONNX bundles need no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def _run(script: str, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def test_importing_imports_neither_torch_nor_numpy_nor_onnxruntime() -> None:
    script = "import veracity, sys, json; print(json.dumps({'modules': sorted(sys.modules)}))"
    modules = _run(script)["modules"]
    assert isinstance(modules, list)
    assert not {"torch", "numpy", "onnxruntime"} & set(modules)


def test_an_onnx_bundle_runs_where_torch_cannot_be_imported(counter_bundle: Path) -> None:
    script = """
import sys, json
sys.modules["torch"] = None  # as if it were not installed
import veracity
manager = veracity.InferenceManager(sys.argv[1])
shown = manager.run_policy(manager.zeros_input())["count/shown"]
print(json.dumps({"shown": shown.tolist(), "torch": sys.modules["torch"] is not None}))
"""
    assert _run(script, str(counter_bundle)) == {"shown": [[100.0, 100.0]], "torch": False}


def test_every_public_name_is_there_and_documented() -> None:
    import veracity

    for name in veracity.__all__:
        assert name == "__version__" or getattr(veracity, name).__doc__, name
