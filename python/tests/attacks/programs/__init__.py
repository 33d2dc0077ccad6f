"""The programs, a file for each theme."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every file of programs, so that all are registered."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
