"""Functions of other packages that a session replaces, with a way to take the replacements away.

While a pass is left alone the originals are back: code that asks whether a function is the one it
imported gets the answer that it gets without a session.
"""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Replaced:
    """Names in other packages, what was there, and what stands there now."""

    def __init__(self) -> None:
        """Begin with nothing replaced."""
        self._names: list[tuple[Any, str, Any, Any]] = []
        self._withdrawn = False

    def put(self, owner: Any, name: str, replacement: Any) -> None:
        """Replace an attribute of a module or class."""
        self._names.append((owner, name, vars(owner).get(name, _MISSING), replacement))
        setattr(owner, name, replacement)

    def has(self, owner: Any, name: str) -> bool:
        """Say whether an attribute was replaced here."""
        return any(one is owner and at == name for one, at, _, _ in self._names)

    def withdraw(self) -> None:
        """Give the originals back for a while, the last replacement first.

        A name that somebody else has replaced in the meantime is left to them.
        """
        if not self._withdrawn:
            self._withdrawn = True
            for owner, name, original, replacement in reversed(self._names):
                if vars(owner).get(name) is replacement:
                    _set(owner, name, original)

    def put_back(self) -> None:
        """Replace again what was withdrawn."""
        if self._withdrawn:
            self._withdrawn = False
            for owner, name, original, replacement in self._names:
                if vars(owner).get(name, _MISSING) is original:
                    setattr(owner, name, replacement)

    def remove(self) -> None:
        """Give the originals back for good."""
        self.withdraw()
        self._withdrawn = False
        self._names.clear()


def _set(owner: Any, name: str, original: Any) -> None:
    if original is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, original)
