"""Pages in a real browser: opened from disk, clicked, sorted, filtered, searched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import Browser, Page, find_browser, run_browser

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "target/debug/veracity"
GOLDEN = ROOT / "crates/base/veracity-results/tests/golden"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser; where there is none the tests are left out, unless they must not be."""
    binary = find_browser()
    if binary is None:
        assert not os.environ.get("VERACITY_REQUIRE_BROWSER"), "there is no Chromium"
        pytest.skip("there is no Chromium")
    with run_browser(binary) as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a page of each kind, made from files that stay as they are."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for kind in ("proof", "drift"):
        made[kind] = folder / f"{kind}.html"
        results = GOLDEN / f"{kind}-1.0.json"
        subprocess.run([BINARY, "report", results, "--output", made[kind]], check=True)
    return made


@pytest.fixture
def proof(browser: Browser, pages: dict[str, Path]) -> Iterator[Page]:
    """Return the page of a proof, opened."""
    with browser.page(pages["proof"]) as page:
        yield page
        assert page.problems() == []


@pytest.fixture
def drift(browser: Browser, pages: dict[str, Path]) -> Iterator[Page]:
    """Return the page of a drift report, opened."""
    with browser.page(pages["drift"]) as page:
        yield page
        assert page.problems() == []


def column(page: Page, table: str, number: int) -> list[str]:
    """Return what stands in a column of a table, from top to bottom, where it is visible."""
    return page.texts(f"#{table} tbody td:nth-child({number})")


@pytest.mark.parametrize("kind", ["proof", "drift"])
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_pages_open_from_disk_without_complaints(
    browser: Browser, pages: dict[str, Path], kind: str, width: int, dark: bool
) -> None:
    """Nothing is fetched, nothing fails, and nothing is wider than the screen."""
    with browser.page(pages[kind], width=width, dark=dark) as page:
        assert len(page.texts(".verdict")) == 1
        assert page.evaluate("performance.getEntriesByType('resource').length") == 0
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} on a screen of {width}"
        assert page.problems() == []


def test_heads_of_tables_sort_with_pointer_and_keyboard(proof: Page) -> None:
    """A click sorts, another one turns the order around, and Enter does the same."""
    names = column(proof, "ports", 3)
    assert len(names) > 2
    proof.click("#ports th:nth-child(3) button")
    assert column(proof, "ports", 3) == sorted(names)
    proof.evaluate("document.querySelector('#ports th:nth-child(3) button').focus()")
    proof.press("Enter", "\r")
    assert column(proof, "ports", 3) == sorted(names, reverse=True)
    assert (
        proof.evaluate("document.querySelector('#ports th:nth-child(3)').ariaSort") == "descending"
    )
    proof.click("#ports th:nth-child(7) button")
    keys = proof.evaluate(
        "Array.from(document.querySelectorAll('#ports tbody td:nth-child(7)'),"
        " (cell) => Number(cell.dataset.key)).filter((key) => !Number.isNaN(key))"
    )
    assert keys == sorted(keys, reverse=True)


def test_rows_are_filtered_by_words_and_by_verdict(proof: Page) -> None:
    """What does not fit is hidden, and what is shown is counted."""
    names = column(proof, "ports", 3)
    verdicts = column(proof, "ports", 2)
    proof.write(".controls[data-table=ports] input", names[0])
    assert set(column(proof, "ports", 3)) == {name for name in names if names[0] in name}
    proof.write(".controls[data-table=ports] input", " ")
    proof.evaluate(
        "(() => { const s = document.querySelector('.controls[data-table=ports] select');"
        "s.value = 'disproved'; s.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    wrong = verdicts.count("disproved")
    assert wrong > 0
    assert column(proof, "ports", 2) == ["disproved"] * wrong
    assert proof.texts(".controls[data-table=ports] output") == [f"{wrong} of {len(names)} shown"]


def test_the_button_switches_the_theme(browser: Browser, pages: dict[str, Path]) -> None:
    """A page looks as the system does until the button says otherwise, and back."""
    back = "getComputedStyle(document.body).backgroundColor"
    with browser.page(pages["drift"], dark=True) as page:
        dark = page.evaluate(back)
        page.click(".theme")
        light = page.evaluate(back)
        page.click(".theme")
        assert page.evaluate(back) == dark != light
        page.evaluate("localStorage.clear()")
    with browser.page(pages["drift"]) as page:
        assert page.evaluate(back) == light
        page.evaluate("localStorage.clear()")


def test_a_point_of_the_drift_leads_to_its_source_line(drift: Page) -> None:
    """Also when its row was filtered away."""
    drift.write(".controls[data-table=rows] input", "no row has these words")
    assert column(drift, "rows", 3) == []
    drift.click(".chart a.wrong circle")
    drift.wait_until("location.hash && !document.querySelector(location.hash).hidden")
    target = drift.evaluate("document.querySelector(location.hash).id")
    assert target.startswith("row-")
    source = drift.evaluate(f"document.querySelector('#{target} td[title]').title")
    assert source.rpartition(":")[2].isdigit(), source
    assert len(drift.texts(f"#{target}")) == 1
    top = drift.evaluate(f"document.querySelector('#{target}').getBoundingClientRect().top")
    assert 0 <= top <= 900


def test_a_port_leads_to_its_node_which_unfolds(proof: Page) -> None:
    """A link opens what it leads to: the samples and the hash of the model."""
    folded = proof.evaluate("document.querySelector('details.card:not([open])').id")
    assert proof.texts(f"#{folded} table") == []
    proof.click(f"#ports a[href='#{folded}']")
    proof.wait_until(f"document.querySelector('#{folded}').open")
    assert len(proof.texts(f"#{folded} dl")) == 1


def test_the_pipeline_is_searched_and_made_larger_and_leads_to_its_nodes(proof: Page) -> None:
    """With the pointer and with the keyboard."""
    view = "document.querySelector('.graph svg').getAttribute('viewBox')"
    whole = proof.evaluate(view)
    proof.click(".graph button[value=larger]")
    assert float(proof.evaluate(view).split()[2]) < float(whole.split()[2])
    proof.click(".graph button[value=all]")
    assert proof.evaluate(view) == whole
    boxes = proof.evaluate("document.querySelectorAll('.graph svg a').length")
    name = proof.evaluate("document.querySelector('.graph svg a').getAttribute('aria-label')")
    proof.write(".graph input", name)
    assert proof.texts(".graph output")[0].endswith(f" of {boxes}")
    assert not proof.evaluate("document.querySelector('.graph a').classList.contains('faded')")
    proof.click(".graph svg a rect")
    proof.wait_until("document.querySelector(location.hash || 'body').open")
    proof.evaluate("document.querySelectorAll('.graph svg a')[1].focus()")
    proof.press("Enter", "\r")
    proof.wait_until("document.querySelector('.graph a.chosen[href=\\'#node-2\\']')?.ariaLabel")
    assert proof.evaluate("location.hash") == "#node-2"


def test_everything_is_unfolded_on_paper(proof: Page) -> None:
    """Printing shows what a click would."""
    proof.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert proof.evaluate("document.querySelectorAll('details:not([open])').length") == 0
