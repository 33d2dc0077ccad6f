"""Prove that an exported pipeline computes what the Python code computed, and run it.

Importing this package imports neither torch nor NumPy: they are imported when a value of theirs is
first handed over.
"""

from veracity._native import __version__
from veracity.annotations import annotate
from veracity.bundle import write_bundle
from veracity.errors import (
    AnnotationTypeError,
    AnnotationValueError,
    BundleError,
    BundleNotFoundError,
    CompareError,
    Diagnostic,
    EngineError,
    ExportError,
    ExportOptionError,
    InputError,
    ProofError,
    TraceError,
    TransformError,
    VeracityError,
)
from veracity.inference import InferenceManager
from veracity.kinds import InputKindEnum, OutputKindEnum
from veracity.leapp import install_as_leapp
from veracity.lifecycle import compile_graph, session, start, stop
from veracity.parity import ParityResult, parity
from veracity.ports import InferencePort
from veracity.proof import ProofResult, check, seal
from veracity.semantics import GraphConfigs, TemporalAxis, TensorSemantics
from veracity.tracing.patches import FunctionPatch

__all__ = [
    "AnnotationTypeError",
    "AnnotationValueError",
    "BundleError",
    "BundleNotFoundError",
    "CompareError",
    "Diagnostic",
    "EngineError",
    "ExportError",
    "ExportOptionError",
    "FunctionPatch",
    "GraphConfigs",
    "InferenceManager",
    "InferencePort",
    "InputError",
    "InputKindEnum",
    "OutputKindEnum",
    "ParityResult",
    "ProofError",
    "ProofResult",
    "TemporalAxis",
    "TensorSemantics",
    "TraceError",
    "TransformError",
    "VeracityError",
    "__version__",
    "annotate",
    "check",
    "compile_graph",
    "install_as_leapp",
    "parity",
    "seal",
    "session",
    "start",
    "stop",
    "write_bundle",
]
