"""Compares an export with the live module, operator by operator, and names the guilty one.

Torch is imported when `parity` is called. The result is about the inputs that were given, the
operators of the ONNX file as it stands (no engine rewrites it), and one engine.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veracity import _native
from veracity.errors import Diagnostic, refuse

if TYPE_CHECKING:
    from torch import nn  # noqa: TID251 (for type checkers only)

#: Columns of the text that `str()` gives.
_WIDTH = 80
#: The part of its budget by which the error of most elements may point one way.
_ONE_WAY = 0.125
#: Wrong operators that are looked into, if nobody says otherwise.
_EXPLAINED_ROWS = 8


@dataclass(frozen=True)
class Float64:
    """Largest absolute errors of both sides against a run in float64."""

    reference: float
    candidate: float


@dataclass(frozen=True)
class Cause:
    """What makes an operator wrong, shown by experiment. `str()` is the kind.

    Attributes:
        kind: `"weight_bit_mismatch"`, `"attribute_mismatch"`, `"operator_mismatch"`,
            `"precision_loss"`, `"layout_mismatch"`, `"fusion"`, `"nondeterminism"`,
            `"op_implementation"` or `"unknown"`.
        detail: What was seen: the tensor, the attribute, the order of axes.
        ruled_out: What was tried before and does not explain it.
    """

    kind: str
    detail: str
    ruled_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the kind."""
        return self.kind


@dataclass(frozen=True)
class Element:
    """One element of a value.

    Attributes:
        index: Position along each axis.
        reference: What the original has there.
        candidate: What the operator gives there.
        budget: The most that it may be off.
    """

    index: tuple[int, ...]
    reference: float
    candidate: float
    budget: float

    @property
    def strain(self) -> float:
        """Its error as a part of its budget."""
        error = abs(self.candidate - self.reference)
        return error / self.budget if error else 0.0


@dataclass(frozen=True)
class Row:
    """One value of the export, which stands for the operator that gives it.

    Attributes:
        name: Name of the value, the same in the program of torch and in the ONNX file.
        op_type: The ONNX operator.
        module: Path of the module, `layer1.0.bn1`.
        source: Line of the user's code, `file:line`.
        dtype: Type of the elements.
        shape: Sizes of the axes.
        scale: Largest value of the original.
        accumulated: Largest error when the export is run from its inputs; infinite where one side
            has a NaN or an infinity that the other has not.
        accumulated_mean: Mean of it.
        introduced: Largest error when this operator alone is run, on what the original computed.
        introduced_mean: Mean of it.
        budget: The most that it may introduce, at its largest values.
        float64: Errors of both sides against float64, if that was computed.
        verdict: `"proved"`, `"disproved"` or `"not_comparable"`, by introduced error.
        problem: Why the numbers do not decide, if they do not.
        cause: What makes it wrong, if it is and if that was looked into.
        element: The element that takes the most of its own budget; `None` where all are equal.
        bias: The median of the errors, each as a part of its element's budget. Roundings go both
            ways.
    """

    name: str
    op_type: str
    module: str
    source: str
    dtype: str
    shape: tuple[int, ...]
    scale: float
    accumulated: float
    accumulated_mean: float
    introduced: float
    introduced_mean: float
    budget: float
    float64: Float64 | None
    verdict: str
    problem: str | None = None
    cause: Cause | None = None
    element: Element | None = None
    bias: float = 0.0

    @property
    def strain(self) -> float:
        """Introduced error as a part of the element's budget; above 1 is too much."""
        if self.problem is not None or math.isinf(self.introduced):
            return math.inf
        if self.element is not None:
            return max(self.element.strain, abs(self.bias) / _ONE_WAY)
        return self.introduced / self.budget if self.budget else math.inf * bool(self.introduced)


@dataclass(frozen=True)
class ProgramValue:
    """What became of one tensor of the exported program.

    Attributes:
        name: Its name.
        target: What torch was asked for, `aten.conv2d.default`.
        status: The verdict of its row; `"folded"` when it has none and went into others;
            `"not_mapped"` when nothing that was compared depends on it.
        into: The compared values that it went into.
        reason: Why it was not mapped.
    """

    name: str
    target: str
    status: str
    into: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Coverage:
    """What was looked at.

    Attributes:
        compared: Values of the export with a row.
        parts: Values of the export that are computed for a compared one, by whose error they are
            judged.
        not_mapped: Values of the export that were not looked at, with the reason.
        program: Every tensor of the exported program.
    """

    compared: int
    parts: Mapping[str, str]
    not_mapped: Mapping[str, str]
    program: tuple[ProgramValue, ...]
    _verdicts: Mapping[str, str] = field(repr=False)

    @property
    def proved(self) -> int:
        """Tensors of the program that are proved themselves."""
        return sum(value.status == "proved" for value in self.program)

    @property
    def folded(self) -> int:
        """Tensors of the program that went into proved values only."""
        return sum(
            value.status == "folded"
            and all(self._verdicts.get(name) == "proved" for name in value.into)
            for value in self.program
        )

    @property
    def share(self) -> float:
        """Part of the program's tensors that are proved, or went into proved values."""
        return (self.proved + self.folded) / len(self.program) if self.program else 0.0


@dataclass(frozen=True)
class Group:
    """Rows with something in common.

    Attributes:
        rows: How many.
        disproved: How many of them introduce more than their budget.
        introduced: The largest introduced error.
        accumulated: The largest accumulated error.
    """

    rows: int
    disproved: int
    introduced: float
    accumulated: float


class ParityResult:
    """What comparing an export with the live module found. `str()` is a text for people."""

    def __init__(self, report: dict[str, Any]) -> None:
        """Read the report that `to_json` gives."""
        self._report = report
        #: One row a compared value, in the order in which the export computes them.
        self.rows = tuple(_row(row) for row in report["rows"])
        self._by_name = {row.name: row for row in self.rows}

    @property
    def verdict(self) -> str:
        """`"proved"`, `"disproved"` or `"not_comparable"`: the worst of all."""
        return str(self._report["verdict"])

    @property
    def origin(self) -> Row | None:
        """The first operator that introduces more than its budget."""
        return self._by_name.get(self._report.get("origin", ""))

    @property
    def drift_origin(self) -> Row | None:
        """The first value whose accumulated error is above the absolute tolerance."""
        return self._by_name.get(self._report.get("drift_origin", ""))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why there is no better verdict, beyond the rows."""
        return tuple(reason["message"] for reason in self._report.get("reasons", ()))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing and changes no verdict."""
        return tuple(self._report.get("notes", ()))

    @property
    def coverage(self) -> Coverage:
        """What was looked at, and what was not."""
        unmapped = self._report["unmapped"]
        values = self._report.get("program", ())
        return Coverage(
            compared=len(self.rows),
            parts={each["name"]: each["part_of"] for each in unmapped if "part_of" in each},
            not_mapped={each["name"]: each["reason"] for each in unmapped if "reason" in each},
            program=tuple(ProgramValue(**{**v, "into": tuple(v.get("into", ()))}) for v in values),
            # By the program's names: an output may be called otherwise in the export.
            _verdicts={value["name"]: value["status"] for value in values},
        )

    def by_module(self) -> dict[str, Group]:
        """Sum up by the path of the module."""
        return self._grouped(lambda row: row.module)

    def by_source(self) -> dict[str, Group]:
        """Sum up by the line of the user's code."""
        return self._grouped(lambda row: row.source)

    def by_op_type(self) -> dict[str, Group]:
        """Sum up by the ONNX operator."""
        return self._grouped(lambda row: row.op_type)

    def remember_command(self, command: str) -> None:
        """Say in all reports what to type in to compare again."""
        self._report["command"] = command

    def to_json(self) -> str:
        """Return everything."""
        return json.dumps(self._report, indent=2, sort_keys=True, allow_nan=False)

    def to_markdown(self) -> str:
        """Return the verdict, the origin, the worst operators and the sums."""
        return _native.drift_markdown(self.to_json())

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write one page with everything, which needs no network; return its path."""
        _native.write_drift_page(self.to_json(), Path(path))
        return Path(path)

    def write_reports(self, base: str | os.PathLike[str]) -> list[Path]:
        """Write the files of a per-layer report and return their paths.

        Args:
            base: What their names start with: `reports/resnet18` gives `reports/resnet18.json`,
                `.md`, `_causes.json`, `_layer_map.json`, `_model_explorer.json` and `_drift.json`.
        """
        return [Path(path) for path in _native.write_drift(self.to_json(), Path(base))]

    def worse_than(self, baseline: str | os.PathLike[str]) -> list[Diagnostic]:
        """Return what is worse than in a report that was saved, `to_json` or `veracity drift`.

        Wrong operators that were right, errors that grew, values that are no longer compared.
        """
        found = json.loads(_native.drift_worse(self.to_json(), Path(baseline)))
        return [
            Diagnostic(
                one["code"],
                one["severity"],
                one["message"],
                one.get("place", {}).get("node", ""),
                tuple(one.get("hints", ())),
            )
            for one in found
        ]

    def _grouped(self, key: Callable[[Row], str]) -> dict[str, Group]:
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(key(row), []).append(row)
        return {
            name: Group(
                rows=len(rows),
                disproved=sum(row.verdict == "disproved" for row in rows),
                introduced=max(row.introduced for row in rows),
                accumulated=max(row.accumulated for row in rows),
            )
            for name, rows in groups.items()
        }

    def __str__(self) -> str:
        """Return a screen: the verdict, the origin, the worst operators, what was looked at."""
        return _native.drift_text(self.to_json(), _WIDTH).rstrip("\n")

    def __repr__(self) -> str:
        """Name the verdict and the origin."""
        origin = self.origin.name if self.origin else None
        return f"<ParityResult {self.verdict}: {len(self.rows)} values, origin {origin}>"


def parity(
    model: nn.Module | str | os.PathLike[str],
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    node: str | None = None,
    onnx: str | os.PathLike[str] | None = None,
    against: Any = "onnx",
    tolerance: float = 1e-4,
    budget: float = 64.0,
    tolerances: str | os.PathLike[str] | None = None,
    float64: bool = True,
    causes: bool | int = True,
    repro: str | os.PathLike[str] | None = None,
    memory: str | int = "16MB",
    threads: int = 1,
    engine: str = "auto",
    name: str | None = None,
) -> ParityResult:
    """Compare the ONNX export of a module with the live module, operator by operator.

    Args:
        model: The module, as it is to be deployed: `model.eval()` first. Or a bundle: its `node` is
            compared with the recorded program (`compile_graph(drift=True)`) on a recorded sample.
        args: Its positional arguments; a single tensor may stand alone.
        kwargs: Its named arguments.
        node: The node of a bundle.
        onnx: A file that torch's exporter (`dynamo=True`) made of this module. By default a fresh
            export.
        against: What the module is compared with: `"onnx"`, or call by call `"program"`, the
            program that torch exports, an `ExportedProgram` or the path of a `.pt2` file.
        tolerance: Absolute bound of the accumulated error, for `drift_origin`.
        budget: Most that an operator may introduce, in units in the last place of each element and
            of what was added up in it; half precision gets an eighth.
        tolerances: A JSON file of what single operators may introduce instead (docs/drift.md).
        float64: Whether to run the module in float64 too, which says whose rounding is worse.
        causes: Whether to find out by experiment what makes operators wrong; a number says how many
            of them are looked into, the first ones (8).
        repro: Folder to write the first wrong operator to: a model of its own, what it is given,
            what was expected and what it gave. `veracity.drift.rerun` runs it again.
        memory: How much of the export's values to compute at once, `"64MB"`. Less means more runs.
        threads: Threads inside of one operator.
        engine: What runs the export: `"auto"`, `"ort"` or `"embedded"`.
        name: Name of the model in reports; by default that of its class.
    """
    if isinstance(model, str | os.PathLike):
        if node is None or onnx is not None or args != () or kwargs or against != "onnx":
            message = "a bundle is compared by `node` alone, on what was recorded"
            raise refuse("VER0707", message, location=os.fspath(model))
        from veracity.drift.node import parity_of_bundle

        return parity_of_bundle(
            model,
            node,
            tolerance=tolerance,
            budget=budget,
            tolerances=tolerances,
            float64=float64,
            causes=causes,
            repro=repro,
            memory=memory,
            threads=threads,
            engine=engine,
        )
    from veracity.drift.comparison import Comparison

    if not (budget > 0 and math.isfinite(budget) and tolerance >= 0 and math.isfinite(tolerance)):
        raise refuse("VER0803", "tolerance and budget must be finite; a budget is above 0")
    positional = args if isinstance(args, tuple) else tuple(args) if type(args) is list else (args,)
    if against != "onnx":
        given = {"onnx": onnx, "repro": repro, "tolerances": tolerances}
        said = [option for option, value in given.items() if value is not None]
        said += ["engine"] if engine != "auto" else []
        if said:
            message = f"a program is run by torch, call by call: `{said[0]}` says nothing about it"
            raise refuse("VER1238", message)
        return _against_program(
            model, positional, dict(kwargs or {}), against, name, float(budget), tolerance, float64
        )
    looked_into = _EXPLAINED_ROWS if causes is True else max(0, int(causes))
    comparison = Comparison(model, positional, dict(kwargs or {}), onnx, causes=looked_into > 0)
    report = comparison.run(
        name=name or type(model).__name__,
        candidate="its ONNX export" if onnx is None else os.fspath(onnx),
        units=float(budget),
        rules=None if tolerances is None else Path(tolerances),
        tolerance=float(tolerance),
        memory_bytes=_bytes(memory),
        engine=engine,
        threads=threads,
        float64=float64,
        causes=looked_into,
        repro=repro,
    )
    return ParityResult(report)


def _against_program(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    against: Any,
    name: str | None,
    units: float,
    tolerance: float,
    float64: bool,
) -> ParityResult:
    from veracity.drift.eager import EagerComparison

    comparison = EagerComparison(model, args, kwargs, against)
    is_file = isinstance(against, str | os.PathLike) and against != "program"
    candidate = os.fspath(against) if is_file else "its exported program"
    report = comparison.run(
        name=name or type(model).__name__,
        candidate=candidate,
        units=units,
        tolerance=float(tolerance),
        float64=float64,
    )
    return ParityResult(report)


def _bytes(memory: str | int) -> int:
    text = str(memory).strip().upper().removesuffix("IB").removesuffix("B").strip()
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    try:
        found = int(float(text.rstrip("KMG")) * factor)
    except (ValueError, OverflowError):
        found = 0
    if found < 1:
        raise refuse("VER0707", f"memory={memory!r} is no amount", hints=("write `'512MB'`",))
    return found


def _row(row: Mapping[str, Any]) -> Row:
    wide = row.get("float64")
    return Row(
        name=row["name"],
        op_type=row["op_type"],
        module=row.get("module", ""),
        source=row.get("source", ""),
        dtype=row["dtype"],
        shape=tuple(row["shape"]),
        scale=float(row["scale"]),
        accumulated=_largest(row["accumulated"]),
        accumulated_mean=float(row["accumulated"]["mean_abs"]),
        introduced=_largest(row["introduced"]),
        introduced_mean=float(row["introduced"]["mean_abs"]),
        budget=float(row["budget"]),
        float64=Float64(float(wide["reference"]), float(wide["candidate"])) if wide else None,
        verdict=row["verdict"],
        problem=row.get("problem"),
        cause=_cause(row["cause"]) if "cause" in row else None,
        element=_element(row["element"]) if "element" in row else None,
        bias=float(row.get("bias", 0.0)),
    )


def _element(element: Mapping[str, Any]) -> Element:
    numbers = (float(element[key]) for key in ("reference", "candidate", "budget"))
    return Element(tuple(element["index"]), *numbers)


def _cause(cause: Mapping[str, Any]) -> Cause:
    return Cause(cause["kind"], cause["detail"], tuple(cause.get("ruled_out", ())))


def _largest(figures: Mapping[str, Any]) -> float:
    return math.inf if figures["mismatching"] else float(figures["max_abs"])
