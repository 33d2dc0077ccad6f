"""Compares the program that torch exported with the module itself, call by call.

Eager mode says what each call of a module was given and gave. The program is run with these values
put in at the same places: what a call gives then is its own doing (introduced), and so is what the
functions between two calls make of what the first gave. Run once more without, it shows what
arrives (accumulated). Programs do not say which value is which argument, so that values of one type
and shape are paired by how near they are; final outputs go by their position, so that an exchange
is seen there at the latest.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._pytree import tree_map

from veracity import _native
from veracity.drift import coverage, reference
from veracity.drift.calls import Call, Part, module_path, parts, record, same, state_names
from veracity.drift.program import export_program, refuse_random, user_inputs, user_outputs
from veracity.errors import refuse
from veracity.export.backends.contract import quiet

_BETWEEN = "what is computed between modules is judged where a module or an output reads it"
_Stop = Callable[[Part, dict[fx.Node, Any]], None]


@dataclass(frozen=True)
class _Mark:
    """A value that has a row: where it is seen, and what it should be."""

    row: str
    node: fx.Node
    reference: Tensor
    wide: Tensor | None


class EagerComparison:
    """One module with its arguments, and the program that it is compared with."""

    def __init__(
        self, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], against: Any
    ) -> None:
        """Take the program; export one if there is none."""
        if not isinstance(model, nn.Module):
            raise refuse("VER0707", f"a {type(model).__name__} is no torch.nn.Module")
        self._model, self._args, self._kwargs = model, args, kwargs
        self._exported = _program(model, args, kwargs, against)
        refuse_random(self._exported)
        self._kinds = [spec.kind.name for spec in self._exported.graph_signature.input_specs]
        # Weights belong to the user's module: nothing is written there.
        held = [*self._exported.state_dict.values(), *self._exported.constants.values()]
        self._held = {_pointer(each) for each in held if isinstance(each, Tensor)}
        self._reasons: list[dict[str, Any]] = []
        self._notes = [_BETWEEN]
        self._unmapped: list[dict[str, str]] = []
        self._marks: dict[tuple[int, bool], list[_Mark]] = {}
        self._output_marks: list[tuple[int, _Mark]] = []
        self._seen: dict[str, Tensor] = {}

    def run(
        self, *, name: str, candidate: str, units: float, tolerance: float, float64: bool
    ) -> dict[str, Any]:
        """Compare; return the report."""
        self._ledger = _native.Ledger(
            name=name,
            reference=f"torch {torch.__version__}, eager",
            candidate=candidate,
            units=units,
            tolerance=tolerance,
        )
        self._calls, self._outputs = record(self._model, self._args, self._kwargs)
        self._wide = self._widened() if float64 else {}
        self._parts = parts(self._exported, self._model, self._calls)
        matched = {id(part.call) for part in self._parts}
        missing = [call for call in self._calls if id(call) not in matched]
        self._pending = [call for call in missing if call.gave and not call.is_passing]
        for call in missing:
            if call.is_passing:
                self._not_mapped(call, "it gives what it was given, or nothing")
        self._run(self._give, self._take, self._judge_outputs)
        self._judge_missing()
        self._run(self._arrived(True), self._arrived(False), self._outputs_arrived)
        return self._report()

    # Running

    def _run(self, before: _Stop, after: _Stop, end: Callable[[list[Any]], None]) -> None:
        runner = _Runner(self._exported.graph_module, self._parts, before, after)
        try:
            with torch.no_grad():
                outputs = list(runner.run(*self._inputs()))
        except _BrokenProgramError as error:
            message = f"the program cannot be run at '{error.node}': {error.why}"
            if message not in [reason["message"] for reason in self._reasons]:
                self._reasons.append(_reason("VER1005", message))
        else:
            end(outputs)

    def _inputs(self) -> list[Any]:
        """Return what the program reads; only weights are not copied: it may write to the rest."""
        args, kwargs = reference.own_arguments(self._args, self._kwargs)
        flat = self._exported._graph_module_flat_inputs(args, kwargs)
        pairs = zip(flat, self._kinds, strict=True)
        return [
            each.clone() if isinstance(each, Tensor) and kind in ("BUFFER", "CONSTANT_TENSOR")
            else each
            for each, kind in pairs
        ]  # fmt: skip

    def _widened(self) -> dict[int, Tensor]:
        """Return what values are in float64, by the tensors of eager mode that they belong to."""
        try:
            model = copy.deepcopy(self._model).double()
            args, kwargs = tree_map(_wide, (self._args, dict(self._kwargs)))
            calls, outputs = record(model, args, kwargs)
        except Exception as error:  # any: the user's code may insist on its own dtype
            first_line = str(error).strip().split("\n", 1)[0]
            self._notes.append(f"float64 is not known: {first_line}")
            return {}
        if [call.label for call in calls] != [call.label for call in self._calls]:
            self._notes.append("float64 is not known: the module calls others then")
            return {}
        ours = [*_tensors(self._calls), self._outputs]
        theirs = [*_tensors(calls), outputs]
        return {
            id(mine): wide
            for some, others in zip(ours, theirs, strict=True)
            for mine, wide in zip(some, others, strict=False)
            if wide.dtype in (torch.float64, torch.complex128) and wide.shape == mine.shape
        }

    # The program on what eager mode has

    def _give(self, part: Part, values: dict[fx.Node, Any]) -> None:
        """Hold what arrives at a call to what eager mode gave it, and put that in its place."""
        for node in part.inputs:
            value = values.get(node)
            expected = _nearest(value, part.call.given) if isinstance(value, Tensor) else None
            if expected is None:
                continue  # no argument: what it reads there shows in what it gives
            self._judge_given(part, node, value, expected)
            self._put(values, node, expected)

    def _judge_given(self, part: Part, node: fx.Node, value: Any, expected: Tensor) -> None:
        skipped = self._skipped(expected)
        if skipped is not None:
            place, row = _call_place(skipped, node), f"{skipped.label} (call)"
        else:
            known = self._seen.get(node.name)
            is_new = known is None and node.op != "placeholder"
            if not is_new and same(value, expected):
                return
            row = node.name if is_new else f"{node.name} (given to {part.call.label})"
            place = _between_place(node)
        if row not in self._seen:
            self._row(row, place, expected, value)
            self._mark((id(part), True), row, node, expected)

    def _skipped(self, expected: Tensor) -> Call | None:
        """Find the call without a part that gave a value; it is looked at only once."""
        for call in self._pending:
            if any(same(each, expected) for each in call.gave):
                self._pending.remove(call)
                return call
        return None

    def _take(self, part: Part, values: dict[fx.Node, Any]) -> None:
        """Hold what a call gives to what it gave in eager mode, and put that in its place."""
        found = [node for node in part.outputs if isinstance(values.get(node), Tensor)]
        pairs = _paired([values[node] for node in found], part.call.gave)
        for number, expected in sorted(pairs.items()):
            node = found[number]
            place = _call_place(part.call, node)
            self._row(node.name, place, expected, values[node])
            self._mark((id(part), False), node.name, node, expected)
            self._put(values, node, expected)
        if not pairs and part.call.gave:
            self._cannot(part.call, "nothing that the program gives here is like it")
        elif not pairs:
            self._not_mapped(part.call, "it gives no tensor")

    def _put(self, values: dict[fx.Node, Any], node: fx.Node, value: Tensor) -> None:
        """Write a value where the program holds it, so that its views have it too."""
        target = values[node]
        is_like = target.shape == value.shape and target.dtype == value.dtype
        if is_like and _pointer(target) not in self._held:
            try:
                target.copy_(value)
            except RuntimeError:  # elements that share memory
                pass
            else:
                return
        values[node] = value.clone()

    def _judge_outputs(self, outputs: list[Any]) -> None:
        found = self._found_outputs(outputs)
        if len(found) != len(self._outputs):
            message = f"the program has {len(found)} outputs, the module gives {len(self._outputs)}"
            self._reasons.append(_reason("VER1108", message))
        for number, ((position, node, value), expected) in enumerate(
            zip(found, self._outputs, strict=False)
        ):
            known = self._seen.get(node.name)
            if known is not None and same(known, expected) and same(value, expected):
                continue
            row = node.name if known is None else f"{node.name} (output {number})"
            self._row(row, _between_place(node), expected, value)
            mark = _Mark(row, node, expected, self._wide.get(id(expected)))
            self._output_marks.append((position, mark))

    def _found_outputs(self, outputs: list[Any]) -> list[tuple[int, fx.Node, Any]]:
        specs = self._exported.graph_signature.output_specs
        nodes = {node.name: node for node in self._exported.graph.nodes}
        return [
            (position, nodes[spec.arg.name], outputs[position])
            for position, spec in enumerate(specs)
            if spec.kind.name == "USER_OUTPUT" and isinstance(outputs[position], Tensor)
        ]

    def _judge_missing(self) -> None:
        for call in self._pending:
            self._cannot(call, "the program has no part that is known to be this call")

    # The program on its own

    def _arrived(self, is_before: bool) -> _Stop:
        def look(part: Part, values: dict[fx.Node, Any]) -> None:
            for mark in self._marks.get((id(part), is_before), ()):
                self._arrives(mark, values[mark.node])

        return look

    def _outputs_arrived(self, outputs: list[Any]) -> None:
        for position, mark in self._output_marks:
            self._arrives(mark, outputs[position])

    def _arrives(self, mark: _Mark, value: Tensor) -> None:
        wide = None if mark.wide is None else _plain(mark.wide)
        self._ledger.accumulated(mark.row, _plain(mark.reference), _plain(value), wide)

    # What was found

    def _row(self, name: str, place: dict[str, str], expected: Tensor, value: Tensor) -> None:
        self._ledger.introduced(place | {"name": name}, _plain(expected), _plain(value))
        self._seen[name] = expected

    def _cannot(self, call: Call, problem: str) -> None:
        place = _call_place(call, None) | {"name": f"{call.label} (call)"}
        self._ledger.introduced(place, _plain(call.gave[0]), None, problem)

    def _not_mapped(self, call: Call, reason: str) -> None:
        kind = type(call.module).__name__
        self._unmapped.append({"name": call.label, "op_type": kind, "reason": reason})

    def _mark(self, place: tuple[int, bool], row: str, node: fx.Node, expected: Tensor) -> None:
        mark = _Mark(row, node, expected, self._wide.get(id(expected)))
        self._marks.setdefault(place, []).append(mark)

    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(
            self._ledger.json(
                engine="torch",
                version=torch.__version__,
                device="cpu",
                inputs=user_inputs(self._exported),
                outputs=user_outputs(self._exported),
            )
        )
        verdicts = {row["name"]: row["verdict"] for row in report["rows"]}
        report["program"] = coverage.program_values(self._exported, verdicts)
        report["unmapped"] = self._unmapped
        report["notes"] = self._notes
        report.setdefault("graph", {})["leaves"] = sorted({call.path for call in self._calls})
        if self._reasons:
            report["reasons"] = [*report.get("reasons", ()), *self._reasons]
            report["verdict"] = "disproved"
        return report


class _BrokenProgramError(Exception):
    """A node of a program cannot be computed."""

    def __init__(self, node: str, error: Exception) -> None:
        super().__init__(str(error))
        self.node = node
        self.why = str(error).strip().split("\n", 1)[0]


class _Runner(fx.Interpreter):
    """Runs a program and stops before and behind each part."""

    def __init__(
        self, module: fx.GraphModule, found: Sequence[Part], before: _Stop, after: _Stop
    ) -> None:
        super().__init__(module)
        self._first: dict[fx.Node, list[Part]] = {}
        self._last: dict[fx.Node, list[Part]] = {}
        for part in found:
            self._first.setdefault(part.nodes[0], []).append(part)
            self._last.setdefault(part.nodes[-1], []).append(part)
        self._before, self._after = before, after

    def run_node(self, n: fx.Node) -> Any:
        for part in self._first.get(n, ()):
            self._before(part, self.env)
        try:
            self.env[n] = super().run_node(n)
        except Exception as error:  # any: torch raises whatever it meets
            raise _BrokenProgramError(n.name, error) from error
        for part in self._last.get(n, ()):
            self._after(part, self.env)
        return self.env[n]


# Programs


def _program(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], against: Any
) -> Any:
    if isinstance(against, str) and against == "program":
        return export_program(model, args, kwargs)
    exported = against
    if isinstance(against, str | os.PathLike):
        exported = _loaded(os.fspath(against))
    if not isinstance(exported, torch.export.ExportedProgram):
        message = f"against={against!r} is no program"
        hint = "give 'onnx', 'program', an ExportedProgram, or the path of a .pt2 file"
        raise refuse("VER1238", message, hints=(hint,))
    _check_arguments(exported, args, kwargs)
    return exported


def _loaded(path: str) -> Any:
    if not os.path.isfile(path):
        hint = "give 'onnx', 'program', an ExportedProgram, or the path of a .pt2 file"
        raise refuse("VER1238", "there is no such program", location=path, hints=(hint,))
    try:
        with quiet([]):
            return torch.export.load(path)
    except Exception as error:  # any: torch raises whatever it meets
        hint = str(error).strip().split("\n", 1)[0]
        message = "torch cannot read this program"
        raise refuse("VER1238", message, location=path, hints=(hint,)) from error


def _check_arguments(exported: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that a program was not made for."""
    try:
        flat = exported._graph_module_flat_inputs(args, dict(kwargs))
    except Exception as error:  # any: torch raises whatever it meets
        hint = str(error).strip().split("\n", 1)[0]
        message = "the program takes other arguments"
        raise refuse("VER1238", message, hints=(hint,)) from error
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder"]
    held = state_names(exported)
    for node, value in zip(placeholders, flat, strict=True):
        made_for = node.meta.get("val")
        is_given = node.name not in held and isinstance(made_for, Tensor)
        # Sizes are checked by torch, types are not.
        if is_given and isinstance(value, Tensor) and value.dtype != made_for.dtype:
            message = f"the program was made for another '{node.name}'"
            hint = f"it takes {made_for.dtype}, and is given {value.dtype}"
            raise refuse("VER1238", message, hints=(hint,))


# Values


def _nearest(value: Tensor, known: Iterable[Tensor]) -> Tensor | None:
    alike = [each for each in known if each.shape == value.shape and each.dtype == value.dtype]
    return min(alike, key=lambda each: _distance(value, each), default=None)


def _paired(found: Sequence[Tensor], expected: Sequence[Tensor]) -> dict[int, Tensor]:
    """Pair each value with one that it should be, the nearest pairs first.

    Where there are as many, what is left over is paired in order: it is of another type or shape.
    """
    distances = sorted(
        (_distance(ours, theirs), number, other)
        for number, ours in enumerate(found)
        for other, theirs in enumerate(expected)
        if ours.shape == theirs.shape and ours.dtype == theirs.dtype
    )
    pairs: dict[int, int] = {}
    for _, number, other in distances:
        if number not in pairs and other not in pairs.values():
            pairs[number] = other
    if len(found) == len(expected):
        rest = [other for other in range(len(expected)) if other not in pairs.values()]
        left = [number for number in range(len(found)) if number not in pairs]
        pairs.update(zip(left, rest, strict=True))
    return {number: expected[other] for number, other in pairs.items()}


def _distance(ours: Tensor, theirs: Tensor) -> float:
    if ours.numel() == 0 or torch.equal(ours, theirs):
        return 0.0
    wide = torch.complex128 if ours.is_complex() else torch.float64
    difference = (ours.to(wide) - theirs.to(wide)).abs().mean()
    return float(difference) if bool(torch.isfinite(difference)) else float("inf")


def _tensors(calls: Iterable[Call]) -> list[list[Tensor]]:
    return [some for call in calls for some in (call.given, call.gave)]


def _plain(value: Tensor) -> Tensor:
    """Return a value as it is measured; complex numbers are pairs."""
    pairs = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    return pairs.detach().contiguous()


def _pointer(value: Tensor) -> int:
    return value.untyped_storage().data_ptr()


def _wide(value: Any) -> Any:
    is_narrow = isinstance(value, Tensor) and value.is_floating_point()
    return value.double() if is_narrow else value


# Places


def _call_place(call: Call, node: fx.Node | None) -> dict[str, str]:
    trace = "" if node is None else str(node.meta.get("stack_trace") or "")
    kind = type(call.module).__name__
    return {"op_type": kind, "node": call.label, "module": call.path, "trace": trace}


def _between_place(node: fx.Node) -> dict[str, str]:
    trace = str(node.meta.get("stack_trace") or "")
    kind = node.op if node.op == "placeholder" else str(node.target).removeprefix("aten.")
    return {"op_type": kind, "node": node.name, "module": module_path(node), "trace": trace}


def _reason(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "severity": "error", "message": message}
