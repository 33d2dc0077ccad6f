"""Each example, as its README has it: from an empty folder, block by block.

A block of text right below a block of commands is what they print, word by word. A line of dots
stands for what is left out; where lines are broken does not matter. Numbers with a point or an
exponent are measured, so that only their places are compared. Paths start at the root.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from support.pages import ROOT, Block, blocks

EXAMPLES = ROOT / "examples"
BINARY = ROOT / "target" / "debug" / "veracity"
FOLDERS = sorted(page.parent.name for page in EXAMPLES.glob("*/README.md"))
MEASURED = re.compile(r"\b\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)\b|(?<=largest error )0\b")


class Step(NamedTuple):
    """Commands of a README, and what they are said to print."""

    block: Block
    shown: str


def steps_of(page: Path) -> list[Step]:
    found = blocks(page)
    # The closing fence, an empty line, the opening fence.
    texts = {block.line: block.code for block in found if block.language == "text"}
    return [
        Step(block, texts.get(block.line + block.code.count("\n") + 3, ""))
        for block in found
        if block.language in ("sh", "python")
    ]


def test_every_readme_shows_what_it_prints() -> None:
    silent = {name for name in FOLDERS if not steps_of(EXAMPLES / name / "README.md")[0].shown}
    assert silent == set()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_readme_says_what_happens(name: str, tmp_path: Path) -> None:
    assert BINARY.exists(), "no command line binary: run `make build` first"
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "veracity").symlink_to(BINARY)
    for block, shown in steps_of(EXAMPLES / name / "README.md"):
        printed = run(block, tmp_path)
        if shown:
            missing = first_missing(shown, printed)
            assert missing is None, f"line {block.line}: {missing!r} is not as in\n{printed}"
        for page in re.findall(r"\S+/\w+\.html", shown):
            assert (tmp_path / page).is_file()


def run(block: Block, folder: Path) -> str:
    shell = ["bash", "-euo", "pipefail", "-c"]
    command = [sys.executable, "-c"] if block.language == "python" else shell
    path = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    done = subprocess.run(
        [*command, block.code],
        cwd=folder,
        env={**os.environ, "PATH": os.pathsep.join(path), "VIRTUAL_ENV": sys.prefix},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"line {block.line}:\n{done.stdout}"
    return done.stdout.replace(f"{folder}/", "")


def first_missing(shown: str, printed: str) -> str | None:
    """Return the first part of what is shown that was not printed in its turn."""
    parts = [_plain(part) for part in re.split(r"^\.\.\.$", shown, flags=re.M)]
    rest = _plain(printed)
    for number, part in enumerate(parts):
        at = 0 if number == 0 else rest.find(part)
        if number and number == len(parts) - 1:
            at = len(rest) - len(part)
        if at < 0 or not rest[at:].startswith(part):
            return part
        rest = rest[at + len(part) :].strip()
    return rest or None if len(parts) == 1 else None


def _plain(text: str) -> str:
    return " ".join(MEASURED.sub("#", text).split())


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("a\nb 3 c\n1.5e-3 d", None),
        ("a\n...\nc 7.25 d", None),
        ("...\nb 3\n...", None),
        ("...\nd\n...\na\n...", "a"),
        ("a\n...\nb 4\n...", "b 4"),
        ("a", "b 3 c # d"),
        ("a\n...\nc", "c"),
        ("b\n...", "b"),
        ("a\n...", None),
    ],
)
def test_what_is_shown_must_be_printed_in_this_order(shown: str, missing: str | None) -> None:
    assert first_missing(shown, "a\nb  3\nc   1.25e-3\nd\n") == missing


def test_every_example_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\((\w+)/README.md\)", (EXAMPLES / "README.md").read_text()))
    assert linked == set(FOLDERS) == {path.name for path in EXAMPLES.iterdir() if path.is_dir()}


def test_make_demo_is_the_command_of_the_readme() -> None:
    command = (
        "python examples/gru_policy/demo.py --veracity target/debug/veracity --out demo-output"
    )
    assert command in (ROOT / "Makefile").read_text()
    first = steps_of(EXAMPLES / "gru_policy" / "README.md")[0]
    assert first.block.code.strip() == command.replace("--veracity target/debug/veracity ", "")
    assert [line.split(":")[0] for line in first.shown.splitlines()[-2:]] == ["verdict", "report"]


def test_the_workflow_calls_the_script_that_is_there_and_keeps_what_it_writes() -> None:
    jobs = yaml.safe_load((EXAMPLES / "ci_baseline" / "workflow.yml").read_text())["jobs"]
    steps = jobs["prove"]["steps"]
    ((script, bundle, baseline, out),) = [
        step["run"].split() for step in steps if step.get("name") == "Prove"
    ]
    assert (EXAMPLES / "ci_baseline" / Path(script).name).stat().st_mode & 0o111
    assert (bundle, baseline) == ("exports/policy", "ci/baseline.json")
    kept = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert [(step["if"], step["with"]["path"]) for step in kept] == [("always()", f"{out}/")]
