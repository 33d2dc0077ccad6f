"""Each example, as its README has it: from an empty folder, block by block.

A block of text right below a block of commands is what they print. Paths start at the root.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.pages import ROOT, Block
from support.shown import first_missing, steps_of

EXAMPLES = ROOT / "examples"
BINARY = ROOT / "target" / "debug" / "veracity"
FOLDERS = sorted(page.parent.name for page in EXAMPLES.glob("*/README.md"))


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
