"""Pages in a real browser: opened from disk, clicked, sorted, filtered, searched."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from support.browser import Browser, Page, find_browser, run_browser
from support.made_pages import make_drift_page, make_pipeline_pages, make_rewrite_page
from support.screenshots import MOST_BYTES, picture_names

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "target/debug/veracity"
GOLDEN = ROOT / "crates/base/veracity-results/tests/golden"
AXE = Path(str(files("axe_playwright_python"))) / "axe.min.js"
KINDS = ("proof", "drift", "rewrites")
#: What axe-core calls findings that keep people from using a page.
GRAVE = {"serious", "critical"}


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
    for kind in KINDS:
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


@pytest.fixture
def rewrites(browser: Browser, pages: dict[str, Path]) -> Iterator[Page]:
    """Return the page of a transformation, opened."""
    with browser.page(pages["rewrites"]) as page:
        yield page
        assert page.problems() == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return pages of real results: of the example pipeline, and of one with a wrong weight."""
    return make_pipeline_pages(tmp_path_factory.mktemp("made"))


def grave_findings(page: Page) -> list[list[str]]:
    """Return what axe-core finds that keeps people out of a page: impact, rule, element, why."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run({resultTypes: ['violations']}).then((r) => r.violations.map((v) =>"
        " [v.impact, v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"
    )
    return [each for each in found if each[0] in GRAVE]


def column(page: Page, table: str, number: int) -> list[str]:
    """Return what stands in a column of a table, from top to bottom, where it is visible."""
    return page.texts(f"#{table} tbody td:nth-child({number})")


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize(
    ("kind", "table"), [("failing", "ports"), ("proof", "ports"), ("drift", "rows")]
)
def test_wide_tables_fit_a_screen_and_scroll_by_themselves_on_a_phone(
    browser: Browser, pages: dict[str, Path], made: dict[str, Path], kind: str, table: str
) -> None:
    """Nothing is cut off at 1200 pixels; at 390 the table moves in its own box."""
    widths = (
        f"(() => {{ const box = document.querySelector('#{table}').parentElement;"
        "return [box.scrollWidth, box.clientWidth]; })()"
    )
    for width in (1200, 390):
        with browser.page({**pages, **made}[kind], width=width) as page:
            inside, shown = page.evaluate(widths)
            assert (inside <= shown) is (width == 1200), f"{inside} in {shown} at {width}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_pipeline_can_be_read_and_moved_on_a_phone(
    browser: Browser, made: dict[str, Path]
) -> None:
    """It begins at what is wrong, in letters of 11 pixels; a button shows all of it."""
    letters = (
        "Math.min(...Array.from(document.querySelectorAll('.graph svg text'), (each) =>"
        " parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a))"
    )
    view = "document.querySelector('.graph svg').getAttribute('viewBox')"
    with browser.page(made["failing"], width=390, height=844) as page:
        page.evaluate("document.querySelector('.graph').scrollIntoView()")
        assert page.evaluate(letters) >= 10.99
        place = "document.querySelector('.graph a.disproved rect').getBoundingClientRect()"
        left, right = page.evaluate(f"[{place}.left, {place}.right]")
        assert 0 <= left < right <= 390
        before = page.evaluate(view)
        page.drag(".graph svg", 120, 0)
        page.wait_until(f"{view} !== '{before}'")
        assert float(page.evaluate(view).split()[0]) < float(before.split()[0])
        page.click(".graph button[value=all]")
        assert page.evaluate(view).startswith("0 0 ")
        assert page.evaluate(letters) < 8
        page.pdf()
        assert page.problems() == []
    with browser.page(made["failing"], width=1200) as page:
        assert page.evaluate(view).startswith("0 0 "), "there is room for all of it"


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


def test_paper_shows_everything_and_no_controls(proof: Page) -> None:
    """Printing unfolds what a click would, and leaves out what only a screen can do."""
    assert proof.evaluate("document.querySelectorAll('details:not([open])').length") > 0
    pdf = proof.pdf()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") > 1, "more than a page"
    assert proof.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    proof.call("Emulation.setEmulatedMedia", media="print")
    for gone in ("nav", ".controls", ".theme"):
        assert proof.texts(gone) == [], gone
    assert len(proof.texts("details.card dl")) == len(proof.texts("details.card"))
    white = proof.evaluate("getComputedStyle(document.body).backgroundColor")
    assert white == "rgb(255, 255, 255)"


def test_a_rewrite_opens_to_what_it_replaced_by_what(rewrites: Page) -> None:
    """Nodes of both sides, the check, the reason, where it comes from."""
    assert rewrites.texts("#rewrite-1 .sides") == []
    rewrites.click("#rewrite-1 summary")
    (sides,) = rewrites.texts("#rewrite-1 .sides")
    for part in ("Before", "m = Mul(a, w)", "After", "m = com.example::Scale(a, v)"):
        assert part in sides
    assert "all of it is constant" in rewrites.texts("#rewrite-1")[0]
    assert "its input is not constant" in rewrites.texts("#declined")[0]
    rewrites.write(".controls[data-table=rewrite-list] input", "no rewrite has these words")
    assert rewrites.texts("#rewrite-1") == []


def test_rewrites_are_put_in_order(browser: Browser, tmp_path: Path) -> None:
    """By number, by pass, by error; what is not known comes last."""
    log = json.loads((GOLDEN / "rewrites-1.0.json").read_text())
    first = log["records"][0]
    for number, name in enumerate(("z-pass", "a-pass"), start=1):
        log["records"].append({**first, "id": number, "pass": name})
    (tmp_path / "three.json").write_text(json.dumps(log))
    report = [BINARY, "report", tmp_path / "three.json", "--output", tmp_path / "three.html"]
    subprocess.run(report, check=True)
    with browser.page(tmp_path / "three.html") as page:
        order = "Array.from(document.querySelectorAll('#rewrite-list > *'), (e) => e.dataset.pass)"
        choose = (
            "(() => {{ const s = document.querySelector('.order'); s.value = '{}';"
            "s.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
        )
        page.evaluate(choose.format("pass"))
        assert page.evaluate(order) == ["a-pass", "fold-constants", "z-pass"]
        page.evaluate(choose.format("order"))
        assert page.evaluate(order) == ["fold-constants", "z-pass", "a-pass"]
        assert page.problems() == []


def test_a_page_is_used_without_a_pointer(proof: Page) -> None:
    """The slash searches, Escape goes back, arrows walk over rows, Enter follows."""
    proof.press("/", "/")
    assert proof.evaluate("document.activeElement.closest('.graph') !== null")
    proof.call("Input.insertText", text="policy")
    assert proof.evaluate("document.querySelectorAll('.graph a.faded').length") > 0
    proof.press("Escape")
    assert proof.evaluate("document.querySelectorAll('.graph a.faded').length") == 0
    assert proof.evaluate("document.activeElement === document.body")
    proof.evaluate("document.querySelector('#ports tbody tr').focus()")
    proof.press("ArrowDown")
    assert proof.evaluate("document.activeElement.id") == "check-2"
    assert proof.evaluate("document.querySelectorAll('#ports tr[tabindex=\\'0\\']').length") == 1
    proof.press("Enter", "\r")
    proof.wait_until("document.querySelector(location.hash || 'body').open")
    proof.evaluate("document.querySelector('.graph svg a').focus()")
    proof.press("Enter", "\r")
    proof.wait_until("location.hash === '#node-1' && document.querySelector('#node-1').open")
    proof.press("Escape")
    assert not proof.evaluate("document.querySelector('#node-1').open")
    assert proof.evaluate("document.activeElement.getAttribute('href')") == "#node-1"


def test_a_point_says_operator_module_and_line_beside_the_pointer(drift: Page) -> None:
    """Also when it has the focus, and not only while the pointer is exactly on it."""
    assert drift.texts(".tip-box") == []
    drift.evaluate("document.querySelector('#depth').scrollIntoView({block: 'start'})")
    drift.hover(".chart a.wrong circle")
    (said,) = drift.texts(".tip-box")
    assert "introduced" in said
    assert said.rpartition(":")[2].isdigit(), said
    drift.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert drift.texts(".tip-box") == []
    drift.evaluate("document.querySelector('.chart a.wrong').focus()")
    assert drift.texts(".tip-box") == [said]


def test_the_page_of_an_export_says_what_each_node_takes_and_where_it_begins(
    browser: Browser, made: dict[str, Path]
) -> None:
    """Types, shapes and kinds in the drawing; samples, hashes and the line behind a click."""
    with browser.page(made["pipeline"]) as page:
        (drawn,) = page.texts(".graph svg")
        for part in ("float32 [1, 6]", "state/joint/position", "1 tick", "onnx"):
            assert part in drawn, part
        page.click(".graph svg a[aria-label=policy] rect")
        page.wait_until("document.querySelector(location.hash || 'body').open")
        (panel,) = page.texts("details.card:target")
        for part in ("gru_policy/pipeline.py:", "SHA-256", "policy.onnx", "sample 0", "fresh 0"):
            assert part in panel, part
        assert "veracity check" in page.texts("#repeat pre")[0]
        assert page.problems() == []
    with browser.page(made["failing"]) as page:
        assert page.texts(".verdict")[0].startswith("Disproved")
        assert "policy/" in page.texts("#findings h3")[0]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "pipeline", "failing"])
def test_everybody_can_use_the_pages(
    browser: Browser, pages: dict[str, Path], made: dict[str, Path], kind: str, dark: bool
) -> None:
    """axe-core finds nothing that keeps people out, with everything unfolded."""
    with browser.page({**pages, **made}[kind], dark=dark) as page:
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert grave_findings(page) == []


def test_what_keeps_people_out_would_be_found(browser: Browser, pages: dict[str, Path]) -> None:
    """A field without a name, and text that can hardly be told from its ground."""
    with browser.page(pages["drift"]) as page:
        page.evaluate("document.querySelector('input').placeholder = ''")
        page.evaluate(
            "document.querySelector('label').replaceWith(document.querySelector('input'))"
        )
        page.evaluate("document.querySelector('.verdict').style.color = '#ddd'")
        rules = {rule for _, rule, *_ in grave_findings(page)}
        assert rules >= {"label", "color-contrast"}


def test_pages_of_resnet_are_smaller_than_two_megabytes(browser: Browser, tmp_path: Path) -> None:
    """Hundreds of operators and of rewrites, and still quick to open."""
    for page_of in (
        make_drift_page(tmp_path, "resnet50"),
        make_rewrite_page(tmp_path, "resnet50", "--validate=off"),
    ):
        assert page_of.stat().st_size < 2_000_000, page_of
        with browser.page(page_of, width=390) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert len(page.texts("#repeat pre")) == 1
            assert page.problems() == []


def test_the_pictures_of_the_documentation_are_there() -> None:
    """Each state of each page, light and dark, as `make screenshots` makes them, and shown."""
    names = picture_names()
    assert len(names) == 14
    for name, shown_in in names.items():
        picture = (ROOT / "docs/pictures" / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) <= MOST_BYTES, name
        assert f"pictures/{name}" in (ROOT / "docs" / shown_in).read_text(), name
    assert {path.name for path in (ROOT / "docs/pictures").iterdir()} == set(names)
