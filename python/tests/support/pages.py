"""Pages of Markdown: their blocks, their links, and the places that links can lead to.

Headings get the names that GitHub and mdBook give them, which are the same.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
SUMMARY = ROOT / "docs" / "SUMMARY.md"
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for page in ROOT.glob(pattern)
    if page != SUMMARY
)
#: Made by `make docs` beside the pages; `cargo xtask book --check` follows links to it.
SITE_ONLY = ROOT / "rust"

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
_CODE = re.compile(r"`[^`\n]*`")
_COMMAND = re.compile(r"(?<!import)(?<!from)(?:^|[ (`;&:])veracity ([a-z]+)\b([^\n;&#|]*)", re.M)
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_HTML = re.compile(r"\b(?:href|src|srcset)=\"([^\"]+)\"")


class Block(NamedTuple):
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in their order."""
    text = page.read_text()
    return [
        Block(page, text[: match.start()].count("\n") + 1, match[1], match[2])
        for match in _FENCE.finditer(text)
    ]


def links(page: Path) -> list[str]:
    """Return the targets of a page's links to this repository; those in code are none."""
    prose = _CODE.sub("", _FENCE.sub("", page.read_text()))
    targets = [*_LINK.findall(prose), *_HTML.findall(prose)]
    return [target for target in targets if "://" not in target]


def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as they stand behind a `#`."""
    prose = _FENCE.sub("", page.read_text())
    seen: Counter[str] = Counter()
    found = set(re.findall(r'<a id="([^"]+)"', prose))
    for heading in re.findall(r"^#{1,6} (.+?)\s*$", prose, re.M):
        name = _anchor(heading)
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def commands(page: Path) -> list[tuple[str, set[str]]]:
    """Return the commands of `veracity` that a page names in code, with their options."""
    text = page.read_text()
    shells = [block.code for block in blocks(page) if block.language in ("sh", "text", "yaml")]
    spans = re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))
    found = []
    for code in [*shells, *spans]:
        plain = re.sub(r"\"[^\"\n]*\"", "", code.replace("\\\n", " "))
        for name, rest in _COMMAND.findall(plain):
            found.append((name, set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", rest))))
    return found


def dead_link(page: Path, target: str) -> str | None:
    """Say what is wrong with a link, if anything is."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if file.is_relative_to(SITE_ONLY):
        return None
    if not file.exists():
        return f"{target}: no such file"
    if not file.is_relative_to(ROOT):
        return f"{target}: leaves the repository"
    if anchor and anchor not in anchors(file):
        return f"{target}: {file.name} has no heading {anchor!r}"
    return None


def _anchor(heading: str) -> str:
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    kept = (letter for letter in shown.lower() if letter.isalnum() or letter in " -_")
    return "".join(kept).replace(" ", "-")
