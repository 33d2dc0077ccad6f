"""Chromium without a window, driven over two pipes: nothing is installed and no port is opened."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_SECONDS = 120.0
# Where the browser reads commands and writes answers.
_READS, _WRITES = 3, 4


def find_browser() -> str | None:
    """Return the path of a Chromium, or `None`."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """A running browser."""

    def __init__(self, process: int, commands: int, answers: int) -> None:
        """Talk to a process over two pipes."""
        self._process = process
        self._commands = commands
        self._answers = answers
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._events: list[dict[str, Any]] = []

    def call(self, method: str, *, session: str | None = None, **parameters: Any) -> Any:
        """Send a command and return its answer."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == number:
                assert "error" not in found, f"{method}: {found['error']}"
                return found["result"]
            self._events.append(found)

    def wait_for(self, method: str, session: str) -> dict[str, Any]:
        """Return the next event of a kind; others are kept."""
        while True:
            for event in self._events:
                if event.get("method") == method and event.get("sessionId") == session:
                    self._events.remove(event)
                    return event
            self._events.append(self._receive())

    def events(self, session: str) -> list[dict[str, Any]]:
        """Return everything that a page told so far."""
        self.call("Runtime.evaluate", session=session, expression="0")
        return [event for event in self._events if event.get("sessionId") == session]

    @contextlib.contextmanager
    def page(
        self, path: Path | str, *, width: int = 1200, height: int = 900, dark: bool = False
    ) -> Iterator[Page]:
        """Open a file from disk, or an address, and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        address = path if isinstance(path, str) else path.resolve().as_uri()
        page.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired", page.session)
        try:
            yield page
        finally:
            self.call("Target.closeTarget", targetId=target)

    def close(self) -> None:
        """End the browser."""
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._commands)
        os.close(self._answers)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            read = os.read(self._answers, 1 << 16)
            assert read, "the browser has ended"
            self._buffer += read
        message, self._buffer = self._buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found


class Page:
    """A page that is open."""

    def __init__(self, browser: Browser, session: str) -> None:
        """Talk to a page of a browser."""
        self._browser = browser
        self.session = session

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command that concerns this page."""
        return self._browser.call(method, session=self.session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """Return the value of JavaScript."""
        options = {"returnByValue": True, "awaitPromise": True}
        found = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_until(self, condition: str) -> None:
        """Wait until JavaScript is true: what follows an event may come a moment later."""
        deadline = time.monotonic() + _SECONDS
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, condition
            time.sleep(0.02)

    def problems(self) -> list[str]:
        """Return errors and warnings that the page made since it was opened."""
        found = []
        for event in self._browser.events(self.session):
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded":
                found.append(parameters["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(json.dumps(parameters["args"]))
        return found

    def click(self, selector: str) -> None:
        """Click with the pointer on the middle of what a selector finds, as a person would."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        event = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **event)

    def drag(self, selector: str, right: float, down: float) -> None:
        """Take hold of the middle of what a selector finds, and move it."""
        self.hover(selector)
        x, y = self.evaluate(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        steps = (
            ("mousePressed", x, y),
            ("mouseMoved", x + right / 2, y + down / 2),
            ("mouseMoved", x + right, y + down),
            ("mouseReleased", x + right, y + down),
        )
        for kind, at_x, at_y in steps:
            event = {"x": at_x, "y": at_y, "button": "left", "buttons": 1, "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **event)

    def press(self, key: str, text: str = "") -> None:
        """Press a key on whatever has the focus."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32, "ArrowDown": 40, "End": 35, "/": 191}
        event = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "text": text}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def write(self, selector: str, text: str) -> None:
        """Put text into a field in place of what is there."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.evaluate("document.activeElement.select()")
        self.call("Input.insertText", text=text)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of everything visible that a selector finds."""
        found: list[str] = self.evaluate(
            f"Array.from(document.querySelectorAll({json.dumps(selector)}))"
            ".filter((each) => each.checkVisibility()).map((each) => each.textContent)"
        )
        return found

    def hover(self, selector: str) -> None:
        """Move the pointer to the middle of what a selector finds, where it is on the screen."""
        place = self.evaluate(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])

    def picture(self) -> bytes:
        """Return what is visible as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])


@contextlib.contextmanager
def run_browser(binary: str) -> Iterator[Browser]:
    """Run a browser with a profile of its own."""
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        browser = _start(binary, profile)
        try:
            yield browser
        finally:
            browser.close()


def _start(binary: str, profile: str) -> Browser:
    read_commands, commands = (_high(end) for end in os.pipe())
    answers, write_answers = (_high(end) for end in os.pipe())
    arguments = [binary, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    silence = _high(os.open(os.devnull, os.O_RDWR))
    actions = [
        (os.POSIX_SPAWN_DUP2, read_commands, _READS),
        (os.POSIX_SPAWN_DUP2, write_answers, _WRITES),
        (os.POSIX_SPAWN_DUP2, silence, 1),
        (os.POSIX_SPAWN_DUP2, silence, 2),
    ]
    process = os.posix_spawn(binary, arguments, os.environ, file_actions=actions)
    for end in (read_commands, write_answers, silence):
        os.close(end)
    return Browser(process, commands, answers)


def _high(end: int) -> int:
    """Move a file descriptor out of the way of those that the browser expects."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return moved
