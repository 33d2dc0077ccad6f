"""`veracity view` in a real browser: opens, follows its files, shows two results side by side."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import Browser, Page, find_browser, run_browser
from support.served import view

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "crates/base/veracity-results/tests/golden"
_FRAME = "document.querySelectorAll('iframe')[{}].contentDocument"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser; where there is none the tests are left out, unless they must not be."""
    binary = find_browser()
    if binary is None:
        assert not os.environ.get("VERACITY_REQUIRE_BROWSER"), "there is no Chromium"
        pytest.skip("there is no Chromium")
    with run_browser(binary) as started:
        yield started


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    """Return a proof that may be changed."""
    path = tmp_path / "proof.json"
    shutil.copy(GOLDEN / "proof-1.0.json", path)
    return path


def text(page: Page, frame: int) -> str:
    """Return what a page in the window says."""
    found: str = page.evaluate(f"{_FRAME.format(frame)}.body.textContent")
    return found


def rename(path: Path, name: str) -> None:
    """Give the bundle of a proof another name."""
    found = json.loads(path.read_text())
    found["subject"]["bundle"] = name
    path.write_text(json.dumps(found))


def test_the_page_follows_its_file(browser: Browser, proof: Path) -> None:
    """A change is shown without a hand being moved, and the place on the page is kept."""
    with view(proof) as address, browser.page(address, height=400) as page:
        page.wait_until(f"{_FRAME.format(0)}.querySelector('.verdict') !== null")
        page.evaluate("document.querySelector('iframe').contentWindow.scrollTo(0, 300)")
        rename(proof, "renamed_bundle")
        page.wait_until(f"{_FRAME.format(0)}.body?.textContent.includes('renamed_bundle')")
        page.wait_until("document.querySelector('iframe').contentWindow.scrollY === 300")
        assert page.texts("#above strong") == []
        assert page.problems() == []


def test_half_a_file_is_said_and_the_page_stays(browser: Browser, proof: Path) -> None:
    """The notice comes and goes with the damage."""
    with view(proof) as address, browser.page(address) as page:
        page.wait_until(f"{_FRAME.format(0)}.querySelector('.verdict') !== null")
        whole, before = proof.read_text(), text(page, 0)
        proof.write_text(whole[: len(whole) // 2])
        page.wait_until("document.querySelector('.notice') !== null")
        assert "this is the page of before" in page.texts(".notice")[0]
        assert text(page, 0) == before
        proof.write_text(whole)
        page.wait_until("document.querySelector('.notice') === null")
        assert page.problems() == []


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_two_results_stand_side_by_side(
    browser: Browser, proof: Path, width: int, dark: bool
) -> None:
    """Both pages work, what differs stands above them, and nothing is wider than the screen."""
    other = proof.with_name("other.json")
    shutil.copy(proof, other)
    rename(other, "renamed_bundle")
    with view(proof, other) as address, browser.page(address, width=width, dark=dark) as page:
        for frame in (0, 1):
            page.wait_until(f"{_FRAME.format(frame)}.querySelector('.verdict') !== null")
        assert "renamed_bundle" in text(page, 1)
        assert "renamed_bundle" not in text(page, 0)
        assert page.texts("summary") == ["What changed"]
        assert page.texts(".labels strong") == [str(proof), str(other)]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.problems() == []
