"""Every block of shell and Python in the documentation runs, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.pages import (
    PAGES,
    ROOT,
    SUMMARY,
    anchors,
    blocks,
    commands,
    dead_link,
    links,
)
from support.shown import Step, first_missing, steps_of

BINARY = ROOT / "target" / "debug" / "veracity"
CLI = ROOT / "docs" / "reference" / "cli.md"
#: Blocks of examples are run by test_examples.py, each example from an empty folder.
RUN = [
    step for page in PAGES if not page.is_relative_to(ROOT / "examples") for step in steps_of(page)
]


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


@pytest.mark.parametrize(
    "step", RUN, ids=lambda s: f"{s.block.page.relative_to(ROOT)}:{s.block.line}"
)
def test_a_block_runs_and_prints_what_is_shown_below_it(folder: Path, step: Step) -> None:
    block = step.block
    if block.language == "python":
        command = [sys.executable, "-c", block.code]
    else:
        command = ["bash", "-euo", "pipefail", "-c", block.code]
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    if step.shown:
        missing = first_missing(step.shown, done.stdout.replace(f"{folder}/", ""))
        assert missing is None, f"{missing!r} is not as in\n{done.stdout}"


def test_there_are_blocks_to_run_and_answers_to_compare() -> None:
    assert {"sh", "python"} == {step.block.language for step in RUN}
    assert any(step.shown for step in RUN)


def test_a_block_says_what_it_is() -> None:
    others = {(b.page.name, b.line): b.language for page in PAGES for b in blocks(page)}
    known = {"sh", "python", "text", "yaml", "json", "rust", "toml", "xml"}
    assert {place: language for place, language in others.items() if language not in known} == {}


@pytest.mark.parametrize("page", [*PAGES, SUMMARY], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    assert [why for target in links(page) if (why := dead_link(page, target))] == []


def test_every_page_has_one_place_in_the_site() -> None:
    placed = Counter((SUMMARY.parent / target).resolve() for target in links(SUMMARY))
    assert {page: count for page, count in placed.items() if count > 1} == {}
    assert sorted(placed) == PAGES


def test_every_page_of_the_documentation_is_found_from_its_first() -> None:
    first = ROOT / "docs" / "README.md"
    reached, ahead = {first}, [first]
    while ahead:
        page = ahead.pop()
        files = {(page.parent / target.partition("#")[0]).resolve() for target in links(page)}
        new = {file for file in files if file.suffix == ".md"} - reached
        reached |= new
        ahead += new
    assert [page for page in PAGES if page not in reached and "docs" in page.parts] == []


def test_commands_of_make_that_pages_name_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"(?:^|`)make ([a-z][a-z-]+)", page.read_text(), re.M)
    }
    assert {(page, target) for page, target in named if target not in targets} == set()
    assert ("start.md", "build") in named


def test_codes_that_pages_name_are_there() -> None:
    known = anchors(ROOT / "docs" / "diagnostics.md")
    named = {(p.name, code) for p in PAGES for code in re.findall(r"VER\d{4}", p.read_text())}
    assert {(page, code) for page, code in named if code.lower() not in known} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_names_have_these_options(page: Path) -> None:
    sections = re.split(r"^## veracity ([a-z]+)$", CLI.read_text(), flags=re.M)
    known = dict(zip(sections[1::2], sections[2::2], strict=True))
    shared = set(re.findall(r"`(--[a-z0-9-]+)", sections[0])) | {"--help", "--version"}
    for name, options in commands(page):
        assert name in known, f"veracity {name}"
        there = set(re.findall(r"`(--[a-z0-9-]+)", known[name])) | shared
        assert options <= there, f"veracity {name}: {options - there}"


def _environment(folder: Path) -> dict[str, str]:
    # The folder first, then the environment, as `source .venv/bin/activate` would put it.
    folders = [str(folder / "bin"), str(Path(sys.prefix) / "bin"), os.environ["PATH"]]
    path = os.pathsep.join(folders)
    return {**os.environ, "PATH": path, "VIRTUAL_ENV": sys.prefix}
