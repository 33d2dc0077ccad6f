"""One exception class per kind of refusal, all under `VeracityError`.

Each also is the builtin exception that Python code catches for such a case today.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: Stable code, `VERnnnn`.
        severity: `"note"`, `"warning"` or `"error"`.
        message: A short phrase that stands on its own.
        location: `file:line:column (node/port)`, as far as it is known.
        hints: What to try next.
        node: The node of the pipeline that it is about, where it is about one.
    """

    code: str
    severity: str
    message: str
    location: str
    hints: tuple[str, ...]
    node: str | None = None

    def __str__(self) -> str:
        """Render the finding with its hints, a line each."""
        place = f"{self.location}: " if self.location else ""
        hints = "".join(f"\n  hint: {hint}" for hint in self.hints)
        return f"{place}{self.severity}[{self.code}]: {self.message}{hints}"


class VeracityError(Exception):
    """Something was refused; `diagnostics` says what, where and why."""

    def __init__(self, diagnostics: list[Diagnostic], text: str | None = None) -> None:
        """Keep every finding of one refusal; `text` is what is shown of them, all by default."""
        every = "\n".join(str(diagnostic) for diagnostic in diagnostics)
        super().__init__(every if text is None else text)
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[type[VeracityError], tuple[list[Diagnostic], str]]:
        """Survive pickling, so that worker processes can raise it."""
        return type(self), (self.diagnostics, str(self))


class BundleError(VeracityError, ValueError):
    """A bundle, or a file of it, is not what it should be."""


class BundleNotFoundError(BundleError, FileNotFoundError):
    """There is no bundle at this path, or one of its files is missing."""


class EngineError(VeracityError, RuntimeError):
    """An engine is missing, refused a model, or failed while running it."""


class InputError(VeracityError, ValueError):
    """An input is missing, unknown, or of the wrong dtype or shape."""


class CompareError(VeracityError, ValueError):
    """Two tensors cannot be compared, or a tolerance makes no sense."""


class TraceError(VeracityError):
    """Annotated code cannot be recorded as it is."""


class AnnotationTypeError(TraceError, TypeError):
    """An annotation was given something of the wrong type."""


class AnnotationValueError(TraceError, ValueError):
    """An annotation was given a name or value that cannot be used."""


class ExportError(VeracityError, RuntimeError):
    """A node could not be exported, or its export is wrong."""


class ExportOptionError(ExportError, ValueError):
    """An export backend, or an option of it, is not known."""


class ProofError(VeracityError, RuntimeError):
    """A bundle is not proved, or its proof cannot be used."""


class TransformError(VeracityError, ValueError):
    """A graph cannot be transformed, or a transformation not be undone, composed or signed."""


_KINDS_BY_NUMBER: dict[int, type[VeracityError]] = {
    1: BundleNotFoundError,
    209: BundleNotFoundError,
    902: AnnotationTypeError,
    903: AnnotationValueError,
    925: AnnotationValueError,
    1002: ExportOptionError,
    1003: ExportOptionError,
    1007: ExportOptionError,
    1112: CompareError,
    1230: InputError,
    1231: InputError,
    1232: InputError,
    1233: InputError,
}
_KINDS_BY_HUNDRED: dict[int, type[VeracityError]] = {
    6: EngineError,
    7: InputError,
    8: CompareError,
    9: TraceError,
    10: ExportError,
    11: ProofError,
    12: CompareError,
    13: TransformError,
}


def error_from_diagnostics(diagnostics: list[Diagnostic], text: str | None = None) -> VeracityError:
    """Return the exception for a refusal: the hundreds of its first error's code name the kind."""
    first = next(found for found in diagnostics if found.severity == "error")
    number = int(first.code.removeprefix("VER"))
    kind = _KINDS_BY_NUMBER.get(number) or _KINDS_BY_HUNDRED.get(number // 100, BundleError)
    return kind(diagnostics, text)


def refuse(
    code: str, message: str, *, location: str = "", hints: tuple[str, ...] = ()
) -> VeracityError:
    """Return the exception for one finding; the caller raises it."""
    return error_from_diagnostics([Diagnostic(code, "error", message, location, hints)])
