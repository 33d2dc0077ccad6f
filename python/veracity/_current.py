"""The session that is recording, if any: kept apart so that annotations are free without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veracity.tracing.session import Session

#: The session between `start` and `stop`.
active: Session | None = None
#: The session that `compile_graph` works on: the last one that was stopped.
stopped: Session | None = None
