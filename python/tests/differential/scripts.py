"""Importing this module fills the register."""

from __future__ import annotations

from differential import (  # noqa: F401
    calls_behaviour,
    calls_refused,
    calls_structure,
    scripts_arrays,
    scripts_backends,
    scripts_escapes,
    scripts_feedback,
    scripts_inplace,
    scripts_methods,
    scripts_nested,
    scripts_ports,
    scripts_returns,
    scripts_semantics,
    scripts_wiring,
)
from differential.registry import BEHAVIOURS, REFUSALS, SCRIPTS

__all__ = ["BEHAVIOURS", "REFUSALS", "SCRIPTS"]
