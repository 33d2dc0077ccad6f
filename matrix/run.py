"""Makes an environment for each cell, runs the tests in it, and writes docs/compatibility.md."""

from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from matrix.cells import CELLS, DIFFERENCES, Cell, Difference

ROOT = Path(__file__).parents[1]
#: Environments, wheels and results.
HOME = ROOT / "target/matrix"
PAGE = ROOT / "docs/compatibility.md"
#: What the tests import beside torch, NumPy and ONNX Runtime.
TOOLS = (
    *("onnx", "onnxscript", "ml_dtypes", "pytest", "pytest-xdist", "PyYAML", "safetensors"),
    *("torchvision", "packaging", "leapp"),
)
#: Whose versions the page names.
PACKAGES = ("torch", "numpy", "onnxruntime", "onnx", "onnxscript")
#: Suites about a browser, the documents, and LEAPP beside us.
ELSEWHERE = (
    *("test_differential.py", "test_documentation.py", "test_examples.py", "test_leapp_interop.py"),
    *("test_leapp_shim.py", "test_pictures.py", "test_report_pages.py", "test_view.py"),
)


class NoPythonError(Exception):
    """There is no such Python on this machine."""


@dataclass
class Result:
    """What the tests of a cell gave.

    Attributes:
        versions: What was installed, by name.
        failed: The tests that failed, with the first line of what they said.
        missing: Why the cell was left out; empty where it was not.
    """

    cell: str
    versions: dict[str, str] = field(default_factory=dict)
    passed: int = 0
    skipped: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    missing: str = ""

    def unexplained(self) -> list[str]:
        """Return the failures that no known difference explains."""
        return [
            test
            for test, said in self.failed.items()
            if not any(one.explains(self.cell, test, said) for one in DIFFERENCES)
        ]


def interpreter(version: str) -> str:
    """Return a Python of this version: from the path, or as pyenv and uv keep them."""
    found = shutil.which(f"python{version}")
    if found is not None and _runs(found):
        return found
    homes = (
        os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv")) + "/versions",
        str(Path.home() / ".local/share/uv/python"),
    )
    for home in homes:
        for one in sorted(glob.glob(f"{home}/*{version}.*/bin/python{version}"), reverse=True):
            if _runs(one):
                return one
    raise NoPythonError(f"there is no Python {version} on this machine")


def _runs(python: str) -> bool:
    done = subprocess.run([python, "-c", "import venv, ssl"], capture_output=True, check=False)
    return done.returncode == 0


def environment(cell: Cell) -> Path:
    """Make the environment of a cell, with the package of this checkout in it."""
    home = HOME / cell.name
    python = home / "bin/python"
    if not (home / ".ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        _run([interpreter(cell.python), "-m", "venv", str(home)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *cell.requirements(), *TOOLS])
        (home / ".ready").touch()
    _run([sys.executable, "-m", "maturin", "develop", "--quiet", "--locked"], home)
    return python


def _run(command: Sequence[str], home: Path | None = None) -> None:
    inside = {} if home is None else {"VIRTUAL_ENV": str(home)}
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | inside)


def tested(cell: Cell, jobs: int, only: Sequence[str]) -> Result:
    """Run the suites in a cell."""
    result = Result(cell.name)
    try:
        python = environment(cell)
    except NoPythonError as error:
        result.missing = str(error)
        return result
    result.versions = _versions(python)
    report = HOME / f"{cell.name}.xml"
    report.unlink(missing_ok=True)
    chosen = only or [f"--ignore=python/tests/{name}" for name in ELSEWHERE]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
    command += ["--numprocesses", str(jobs), "--dist", "loadfile"]
    with (HOME / f"{cell.name}.log").open("w") as log:
        subprocess.run(
            [*map(str, command), *chosen, *([] if only else ["python/tests"])],
            cwd=ROOT,
            env=os.environ | {"VIRTUAL_ENV": str(HOME / cell.name)},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    _read(report, result)
    return result


def _versions(python: Path) -> dict[str, str]:
    code = (
        "import json, platform, importlib.metadata as m; "
        f"found = {{n: m.version(n) for n in {PACKAGES}}}; "
        "print(json.dumps(found | {'python': platform.python_version()}))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def _read(report: Path, result: Result) -> None:
    """Take counts and failures out of what pytest wrote."""
    if not report.exists():
        result.failed["pytest"] = "it ended before it could write its results"
        return
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        bad = [one for kind in ("failure", "error") for one in case.iter(kind)]
        if bad:
            result.failed[name] = (bad[0].get("message") or "").strip().split("\n")[0][:200]
        elif case.find("skipped") is not None:
            result.skipped += 1
        else:
            result.passed += 1


def page(results: Sequence[Result]) -> str:
    """Return docs/compatibility.md."""
    lines = [
        "# Which versions work",
        "",
        "`make matrix` runs the suites of tracing, exporting, proving, parity, torch.fx and",
        "running in each of these environments, and writes this page. Versions in between are",
        "expected to work.",
        "",
        "| Python | torch | NumPy | ONNX Runtime | onnx | onnxscript | tests passed | differ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        if one.missing:
            cell = next(cell for cell in CELLS if cell.name == one.cell)
            lines.append(f"| {cell.python} | {cell.torch} | | | | | {one.missing} | |")
            continue
        versions = " | ".join(_plain(one.versions[name]) for name in ("python", *PACKAGES))
        lines.append(f"| {versions} | {one.passed:,} | {len(one.failed)} |")
    lines += ["", "## What differs", ""]
    told = [(one, _counts(one, results)) for one in DIFFERENCES]
    lines += [f"- {one.reason} ({where})" for one, where in told if where]
    open_ = [(one, test) for one in results for test in one.unexplained()]
    if open_:
        lines += ["", "## What fails, and should not", ""]
        lines += [f"- {one.cell}: `{test}`: {one.failed[test]}" for one, test in open_]
    elif not any(where for _, where in told):
        lines.append("Nothing.")
    return "\n".join([*lines, ""])


def _counts(difference: Difference, results: Sequence[Result]) -> str:
    counts = {
        one.cell: sum(difference.explains(one.cell, *failure) for failure in one.failed.items())
        for one in results
    }
    return ", ".join(f"`{cell}`: {count} tests" for cell, count in counts.items() if count)


def _plain(version: str) -> str:
    """Return a version without what its wheel was built for."""
    return version.partition("+")[0]


def main(arguments: list[str] | None = None) -> int:
    """Run the cells; 1 where something fails that is not known to differ."""
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__)
    parser.add_argument("--cell", action="append", choices=[one.name for one in CELLS])
    parser.add_argument("--jobs", type=int, default=2, help="processes that run the tests")
    parser.add_argument("--keep", action="store_true", help="keep the environments: 6 GB each")
    parser.add_argument("tests", nargs="*", help="only these; no page is written then")
    asked = parser.parse_args(arguments)
    HOME.mkdir(parents=True, exist_ok=True)
    for cell in CELLS:
        if asked.cell and cell.name not in asked.cell:
            continue
        began = time.monotonic()
        result = tested(cell, asked.jobs, asked.tests)
        said = result.missing or f"{result.passed} passed, {len(result.failed)} failed"
        print(f"{cell.name}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
        for test in result.unexplained():
            print(f"  {test}: {result.failed[test]}", flush=True)
        if not asked.tests:
            (HOME / f"{cell.name}.json").write_text(json.dumps(asdict(result)))
        if not asked.keep:
            shutil.rmtree(HOME / cell.name, ignore_errors=True)
    return 0 if asked.tests else _write_page()


def _write_page() -> int:
    """Write the page from the last result of each cell; 1 where something fails."""
    files = [HOME / f"{cell.name}.json" for cell in CELLS]
    results = [Result(**json.loads(file.read_text())) for file in files if file.exists()]
    PAGE.write_text(page(results))
    return 1 if any(one.unexplained() for one in results) else 0
