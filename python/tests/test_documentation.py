"""Every block of shell and Python in the documentation runs, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "target" / "debug" / "veracity"
PAGES = sorted(
    page for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md") for page in ROOT.glob(pattern)
)


class Block(NamedTuple):
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    code: str


def blocks() -> list[Block]:
    """Return the blocks that must run, in the order of the pages."""
    found = []
    # Examples are run by test_examples.py, each from an empty folder.
    for page in (page for page in PAGES if not page.is_relative_to(ROOT / "examples")):
        text = page.read_text()
        for match in re.finditer(r"^```(sh|bash|python)\n(.*?)^```$", text, re.M | re.S):
            line = text[: match.start()].count("\n") + 1
            found.append(Block(page, line, match[1], match[2]))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which `make demo` has been run."""
    assert BINARY.exists(), "no command line binary: run `make build` first"
    folder = tmp_path_factory.mktemp("documentation")
    (folder / "bin").mkdir()
    (folder / "bin" / "veracity").symlink_to(BINARY)
    demo = [sys.executable, ROOT / "examples/gru_policy/demo.py"]
    done = subprocess.run(
        [*demo, "--veracity", BINARY, "--out", "demo-output"],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\nproved: ") == 2, done.stdout
    return folder


@pytest.mark.parametrize("block", blocks(), ids=lambda b: f"{b.page.relative_to(ROOT)}:{b.line}")
def test_a_block_runs(folder: Path, block: Block) -> None:
    if block.language == "python":
        command = [sys.executable, "-c", block.code]
    else:
        command = ["bash", "-euo", "pipefail", "-c", block.code]
    done = subprocess.run(
        command, cwd=folder, env=_environment(folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_there_are_blocks_to_run() -> None:
    assert {"sh", "python"} <= {block.language for block in blocks()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert not missing


def _environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "VIRTUAL_ENV": sys.prefix}
