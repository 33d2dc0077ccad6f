"""The programs, a file for each theme."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys

#: The environment variable that names a folder with more files of programs.
ALSO = "VERACITY_ATTACKS"


def load() -> None:
    """Import every file of programs, so that all are registered."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    folder = os.environ.get(ALSO)
    if folder:
        if folder not in sys.path:
            sys.path.insert(0, folder)
        for module in pkgutil.iter_modules([folder]):
            importlib.import_module(module.name)
