"""Prove that an exported pipeline computes what the Python code computed, and run it.

Importing this package imports neither torch nor NumPy: they are imported when a value of theirs is
first handed over.
"""

from veracity._native import __version__
from veracity.bundle import write_bundle
from veracity.errors import (
    BundleError,
    BundleNotFoundError,
    CompareError,
    Diagnostic,
    EngineError,
    InputError,
    VeracityError,
)
from veracity.inference import InferenceManager
from veracity.ports import InferencePort

__all__ = [
    "BundleError",
    "BundleNotFoundError",
    "CompareError",
    "Diagnostic",
    "EngineError",
    "InferenceManager",
    "InferencePort",
    "InputError",
    "VeracityError",
    "__version__",
    "write_bundle",
]
