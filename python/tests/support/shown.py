"""What commands of a page are said to print, held against what they print.

A block of text right below a block of commands is what they print, word by word. A line of dots
stands for what is left out; where lines are broken does not matter. Numbers with a point or an
exponent are measured, so that only their places are compared, and so are counts of draws.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from support.pages import Block, blocks

_MEASURED = re.compile(
    r"\b\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)\b|(?<=largest error )0\b"
    # How many draws say something, and which element is worst, is up to the processor.
    r"|\b\d+(?= fresh inputs)|(?<= at \[)[\d, ]+(?=\])"
)
#: A machine that is busy plants fewer faults, or none.
_PLANTED = re.compile(r",\s+finds\s+\d+\s+of\s+\d+\s+planted\s+faults")


class Step(NamedTuple):
    """Commands of a page, and what they are said to print."""

    block: Block
    shown: str


def steps_of(page: Path) -> list[Step]:
    """Return the blocks of a page that are run, in their order."""
    found = blocks(page)
    # The closing fence, an empty line, the opening fence.
    texts = {block.line: block.code for block in found if block.language == "text"}
    return [
        Step(block, texts.get(block.line + block.code.count("\n") + 3, ""))
        for block in found
        if block.language in ("sh", "python")
    ]


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
    return " ".join(_MEASURED.sub("#", _PLANTED.sub("", text)).split())
