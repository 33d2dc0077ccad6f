"""Right bundles on three engines: not one of them may be called wrong.

The pipelines are those of the differential tests that both systems export alike. Each is exported
for every engine and checked there, with recorded values and fresh ones.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import veracity
from differential.registry import Same, Script
from differential.scripts import SCRIPTS
from differential.sides import export, leave_session
from veracity.errors import VeracityError

#: The engines, and what a bundle must be exported with to run there.
ENGINES = {"ort": "onnx", "embedded": "onnx", "torch": "jit"}
WANTED = 30


class Forced:
    """Veracity with one backend for every node that has one."""

    def __init__(self, backend: str) -> None:
        """Take the backend that scripts get, whatever they ask for."""
        self._backend = backend
        self.annotate = self

    def __getattr__(self, name: str) -> Any:
        """Return what `annotate` has, else what the package has."""
        found = getattr(veracity.annotate, name, None) or getattr(veracity, name)
        if name not in ("output_tensors", "method", "module"):
            return found

        def forced(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("export_with", "") is not None and "model_path" not in kwargs:
                kwargs["export_with"] = self._backend
                kwargs.pop("backend_params", None)
            return found(*args, **kwargs)

        return forced


def _clean() -> list[str]:
    quiet = [
        name
        for name, script in SCRIPTS.items()
        if isinstance(script.relation, Same) and not script.relation.warns
    ]
    return sorted(quiet)


def test_no_right_bundle_is_called_wrong_on_any_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: dict[str, Counter[str]] = {engine: Counter() for engine in ENGINES}
    alarms = []
    for name in _clean():
        made: dict[str, Path | None] = {}
        for engine, backend in ENGINES.items():
            if backend not in made:
                made[backend] = _exported(SCRIPTS[name], backend, tmp_path / backend)
            bundle = made[backend]
            verdict = "not exported" if bundle is None else _verdict(bundle, engine)
            counts[engine][verdict] += 1
            if verdict == "disproved":
                alarms.append((name, engine))
    with capsys.disabled():
        for engine, count in counts.items():
            print(f"\n{engine}: {', '.join(f'{n} {verdict}' for verdict, n in count.items())}")
    assert alarms == []
    # Most of the scripts record one or two passes, which is told as an assumption.
    right = {engine: count["proved"] + count["conditional"] for engine, count in counts.items()}
    assert all(count >= WANTED for count in right.values()), counts


def _exported(script: Script, backend: str, folder: Path) -> Path | None:
    try:
        made = export(script, Forced(backend), folder)
    finally:
        leave_session(veracity)
    return None if made.error is not None else made.yaml


def _verdict(bundle: Path, engine: str) -> str:
    try:
        return str(veracity.check(bundle, engine=engine).verdict)
    except VeracityError as refusal:
        return f"refused ({refusal.diagnostics[0].code})"
