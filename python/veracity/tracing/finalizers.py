"""Objects of the user that something is done with when another object dies."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from veracity.tracing import classes


class Finalizers:
    """Knows what was given to `weakref.finalize`.

    Torch has hundreds, and so have our patches: each is looked at once.
    """

    def __init__(self) -> None:
        """Look at those that there are."""
        self._newest = -1
        self._given: set[int] = set()
        self._look()

    def given_among(self, objects: Iterable[Any]) -> set[int]:
        """Return the identities of those of these objects that a finalizer was given."""
        self._look()
        met = {id(one) for one in objects} & self._given if self._given else set()
        # One of them may be gone, and another object be in its place.
        return met & set(map(id, _given(_infos()))) if met else met

    def _look(self) -> None:
        new = []
        for info in reversed(_infos()):
            if info.index <= self._newest:
                break
            new.append(info)
        self._given.update(map(id, _given(new)))
        self._newest = new[0].index if new else self._newest


def _infos() -> list[Any]:
    return list(getattr(weakref.finalize, "_registry", {}).values())


def _given(infos: Iterable[Any]) -> Iterator[Any]:
    for info in infos:
        yield from (one for one in info.args or () if classes.is_users(type(one)))
