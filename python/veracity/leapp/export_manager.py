"""LEAPP's `ExportManager` on Veracity: the annotations, and what is being recorded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from veracity import _current
from veracity.annotations import annotate

if TYPE_CHECKING:
    from veracity.tracing.session import Session

#: What LEAPP's manager calls itself and where it writes before the first `start`.
_NO_NAME = "my_graph"


class ExportManager:
    """There is one, whoever makes it. It speaks of the session that records, else of the last one.

    LEAPP's manager also does the exporting; that has no counterpart here and is an
    `AttributeError`.
    """

    _only: ExportManager | None = None

    def __new__(cls) -> ExportManager:
        """Return the only one."""
        cls._only = cls._only or super().__new__(cls)
        return cls._only

    def __getattr__(self, name: str) -> Any:
        """Return an annotation."""
        if not name.startswith("_") and hasattr(annotate, name):
            return getattr(annotate, name)
        raise AttributeError(f"`ExportManager` is Veracity's here, which has no `{name}`")

    @classmethod
    def is_interpret_graph_enabled(cls) -> bool:
        """Whether something is being recorded."""
        return _current.active is not None

    def get_graph_name(self) -> str:
        """Return the name given to `start`."""
        session = _session()
        return _NO_NAME if session is None else session.options.name

    def get_save_path(self) -> str | None:
        """Return the folder that the bundle is written to."""
        session = _session()
        return None if session is None else str(session.options.folder)

    @property
    def config_path(self) -> str:
        """The description of the bundle that is, or will be, written."""
        return os.path.join(self.get_save_path() or "", f"{self.get_graph_name()}.yaml")

    def get_nodes(self) -> dict[str, Any]:
        """Return the nodes that were seen so far, by name."""
        session = _session()
        return {} if session is None else dict(session.nodes)

    def is_dry_run(self, name: str | None = None) -> bool:
        """Whether models are not exported: none, or not that of this node."""
        session = _session()
        if session is None:
            return False
        return session.options.dry_run or name in session.options.non_traced


def _session() -> Session | None:
    return _current.active or _current.stopped
