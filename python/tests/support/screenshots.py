"""The pictures of the documentation: states of real pages, light and dark."""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from support.browser import Browser, Page, find_browser, run_browser
from support.made_pages import make_drift_page, make_pipeline_pages, make_rewrite_page
from support.served import view

#: Bytes that a picture in the repository may have.
MOST_BYTES = 80_000
_COLOURS = (128, 64, 32, 16)


@dataclass(frozen=True)
class State:
    """A page that somebody did something with, and the page of the documentation that shows it."""

    name: str
    page: str
    act: Callable[[Page], None]
    width: int = 1200
    height: int = 760
    shown_in: str = "reports.md"


def _look(page: Page) -> None:
    """Do nothing."""


def _click_node(page: Page) -> None:
    page.click(".graph svg a[aria-label=policy] rect")
    page.wait_until("document.querySelector(location.hash || 'body').open")
    page.evaluate("document.querySelector(location.hash).scrollIntoView({block: 'start'})")
    page.evaluate("scrollBy(0, -60)")


def _failing_port(page: Page) -> None:
    page.evaluate("document.querySelector('#findings').scrollIntoView({block: 'start'})")
    page.evaluate("scrollBy(0, -50)")


def _hover_point(page: Page) -> None:
    page.evaluate("document.querySelector('#depth').scrollIntoView({block: 'start'})")
    page.evaluate("scrollBy(0, -50)")
    page.hover(".chart a.wrong circle")
    page.wait_until("!document.querySelector('.tip-box')?.hidden")


def _open_rewrite(page: Page) -> None:
    chosen = (
        "Array.from(document.querySelectorAll('#rewrite-list details'))"
        ".find((each) => each.querySelectorAll('svg.window').length === 2)"
    )
    page.evaluate(f"location.hash = {chosen}.id")
    page.wait_until("document.querySelector(location.hash || 'body').open")
    page.evaluate("document.querySelector(location.hash).scrollIntoView({block: 'start'})")
    page.evaluate("scrollBy(0, -120)")


def _wait_for_both(page: Page) -> None:
    for frame in (0, 1):
        inside = f"document.querySelectorAll('iframe')[{frame}].contentDocument"
        page.wait_until(f"{inside}?.querySelector('.graph svg')?.clientWidth > 0")


STATES = (
    State("report-pipeline", "pipeline", _look),
    State("report-node", "pipeline", _click_node),
    State("report-failing-port", "failing", _failing_port),
    State("report-drift", "drift", _hover_point),
    State("report-rewrite", "rewrites", _open_rewrite),
    State("report-phone", "failing", _look, width=390, height=844),
    State("view-two", "two", _wait_for_both, height=900, shown_in="view.md"),
)


def picture_names() -> dict[str, str]:
    """Return the files that there are, each state in each theme, with the page that shows it."""
    themes = ("light", "dark")
    return {f"{state.name}-{theme}.png": state.shown_in for state in STATES for theme in themes}


def main() -> None:
    """Make every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    binary = find_browser()
    assert binary is not None, "there is no Chromium"
    with tempfile.TemporaryDirectory() as name, run_browser(binary) as browser:
        folder = Path(name)
        pages: dict[str, Path | str] = {**make_pipeline_pages(folder)}
        pages["drift"] = make_drift_page(folder)
        pages["rewrites"] = make_rewrite_page(folder, "mobilenet_v3_small")
        with view("laptop.json", "robot.json", folder=folder) as pages["two"]:
            _take_all(browser, pages, out)


def _take_all(browser: Browser, pages: dict[str, Path | str], out: Path) -> None:
    for state in STATES:
        for dark in (False, True):
            size = {"width": state.width, "height": state.height}
            with browser.page(pages[state.page], **size, dark=dark) as page:
                state.act(page)
                name = f"{state.name}-{'dark' if dark else 'light'}.png"
                (out / name).write_bytes(_small(page.picture()))


def _small(png: bytes) -> bytes:
    """Return the picture with as many colours as fit into the bytes that there are."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in _COLOURS:
        target = io.BytesIO()
        few = image.quantize(colours, dither=Image.Dither.NONE)
        few.save(target, format="PNG", optimize=True)
        if target.tell() <= MOST_BYTES:
            return target.getvalue()
    message = f"a picture needs more than {MOST_BYTES} bytes"
    raise ValueError(message)


if __name__ == "__main__":
    main()
