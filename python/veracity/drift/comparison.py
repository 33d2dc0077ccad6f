"""Brings the module, its program and the ONNX model together."""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from veracity import _native
from veracity.drift import coverage, made_up, reference, tables, weights
from veracity.drift.program import export, tensor_nodes, user_inputs, user_outputs
from veracity.errors import refuse
from veracity.inference import site_packages

_ATTENTION = "scaled_dot_product_attention"
#: Elements that say together how large values are.
_ROW = 8


class Comparison:
    """One module with its arguments, and the ONNX model that it is compared with."""

    def __init__(
        self,
        model: nn.Module,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        file: str | os.PathLike[str] | None,
        *,
        causes: bool = False,
    ) -> None:
        """Export the module, and read the file if there is one.

        `causes` keeps what is needed to find out what makes an operator wrong.
        """
        if not isinstance(model, nn.Module):
            raise refuse("VER0707", f"a {type(model).__name__} is no torch.nn.Module")
        self._model = model
        self._args, self._kwargs = args, kwargs
        self._reasons: list[dict[str, Any]] = []
        self._notes: list[str] = []
        given = None if file is None else weights.read(file)
        # A file that was made with attention in one piece has other names behind it.
        open_attention = given is None or not weights.mentions(given, _ATTENTION)
        program = export(model, args, kwargs, open_attention=open_attention)
        self._exported = program.exported
        onnx = program.onnx if given is None else given
        self._declare_types(onnx)
        self._check_output_count(onnx)
        self._targets = self._targets_in(onnx)
        self._input_names = self._inputs_of(onnx)
        # What a fresh export holds is the measure for a file that was made earlier.
        self._original = program.onnx if given is not None and causes else None
        for message in tables.differing(self._exported, onnx, self._targets):
            self._reasons.append(_reason("VER1241", message))
        limits = [] if given is None else tables.other_limits(program.onnx, given)
        self._doubts = [_reason("VER1242", message) for message in limits]
        program.onnx = None
        self._native = self._loaded(onnx)

    def run(
        self,
        *,
        tolerance: float,
        float64: bool,
        units: float,
        causes: int = 0,
        repro: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Compare; return the report.

        `causes` is how many operators are looked into, `repro` where the first wrong one is put.
        """
        found = self._compared(tolerance, float64, units, options)
        if found["verdict"] == "proved" and not self._reasons:
            found = self._on_made_up(found, tolerance, float64, units, options)
        if self._native.is_disproved() and (causes or repro is not None):
            self._record_again()
        if causes and self._native.is_disproved():
            self._explain(causes)
        if repro is not None and self._native.repro(repro) is None:
            self._notes.append("no operator is wrong: there is nothing to write a repro of")
        if self._native.is_disproved():
            found = json.loads(self._native.json())
        return self._report(found)

    def _compared(
        self, tolerance: float, float64: bool, units: float, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Compare on the arguments; return the report as far as it goes."""
        outputs: dict[str, Tensor] = {}
        self._native.run(
            reference=f"torch {torch.__version__}",
            tolerance=tolerance,
            units=units,
            site_packages=site_packages(),
            expected={target for targets in self._targets.values() for target in targets},
            record=lambda values: self._record(values, outputs, float64=float64),
            **options,
        )
        self._check_program(outputs, tolerance)
        found: dict[str, Any] = json.loads(self._native.json())
        return found

    def _on_made_up(
        self,
        found: dict[str, Any],
        tolerance: float,
        float64: bool,
        units: float,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Compare on further arguments until they show a fault; else they say nothing."""
        ranges, reach = self._native.domain()
        names = [self._input_names.get(name, [""])[0] for name in user_inputs(self._exported)]
        state = self._exported.state_dict.values()
        sets = made_up.arguments(
            self._args,
            self._kwargs,
            [ranges.get(name) for name in names],
            reach=reach,
            is_half=any(each.dtype in (torch.float16, torch.bfloat16) for each in state),
        )
        given, notes = (self._args, self._kwargs), list(self._notes)
        # Tolerances of single operators are for values of the size that was given.
        screened = () if options.get("rules") is not None else self._screened(given)
        for said, args, kwargs in itertools.chain(sets, screened):
            self._args, self._kwargs = args, kwargs
            try:
                again = self._compared(tolerance, float64, units, options)
            except Exception:  # any: arguments that nobody gave may be refused by the user's code
                again, self._reasons = {}, []
            if again.get("verdict") == "disproved" or self._reasons:
                self._notes = [f"found on made-up inputs: {said}", *self._notes]
                return again or found
            self._notes = list(notes)
            if not again:
                self._notes.append(f"could not be run on made-up inputs: {said}")
                notes = list(self._notes)
        self._args, self._kwargs = given
        return found

    def _screened(
        self, given: tuple[tuple[Any, ...], Mapping[str, Any]]
    ) -> Iterator[tuple[str, tuple[Any, ...], Mapping[str, Any]]]:
        """Give arguments on which module and export part as a whole, of hundreds that are tried."""
        self._args, self._kwargs = given
        names = [self._input_names.get(name, [""])[0] for name in user_inputs(self._exported)]

        def arguments(values: Mapping[str, Tensor]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
            following = iter(names)

            def changed(value: Any) -> Any:
                if not isinstance(value, Tensor):
                    return value
                made = values.get(next(following, ""))
                fits = made is not None and made.shape == value.shape
                return made.to(value.device, value.dtype) if made is not None and fits else value

            return cast(tuple[tuple[Any, ...], dict[str, Any]], tree_map(changed, given))

        try:
            model = copy.deepcopy(self._model)
        except Exception:  # any: modules may hold what cannot be copied
            return

        def original(draws: list[dict[str, Tensor]]) -> list[list[Tensor] | None]:
            return [_outputs(model, *arguments(values)) for values in draws]

        for said, values in self._native.screen(original):
            yield said, *arguments(values)

    # Names

    def _declare_types(self, onnx: Any) -> None:
        """Say what a value is where a file does not; one that lies is found when it is run."""
        import onnx_ir
        from onnx_ir.tensor_adapters import from_torch_dtype

        fakes = {node.name: node.meta["val"] for node in tensor_nodes(self._exported)}
        for node in onnx.graph:
            for value in node.outputs:
                fake = fakes.get(value.name)
                if fake is not None and (value.dtype is None or value.shape is None):
                    value.dtype = from_torch_dtype(fake.dtype)
                    value.shape = onnx_ir.Shape(int(size) for size in fake.shape)

    def _check_output_count(self, onnx: Any) -> None:
        found, ours = len(onnx.graph.outputs), len(user_outputs(self._exported))
        if found != ours:
            message = f"the export has {found} outputs, the module gives {ours} tensors"
            self._reasons.append(_reason("VER1108", message))

    def _targets_in(self, onnx: Any) -> dict[str, list[str]]:
        """Return the names in the ONNX model of each tensor of the program.

        Names agree; outputs are paired by their position, whatever they are called.
        """
        present = weights.names(onnx)
        found = [value.name for value in onnx.graph.outputs]
        by_position = dict(zip(found, user_outputs(self._exported), strict=False))
        calls = [node.name for node in tensor_nodes(self._exported)]
        targets = {
            name: [name]
            for name in calls
            if name in present and by_position.get(name, name) == name
        }
        for onnx_name, name in by_position.items():
            if onnx_name != name:
                targets.setdefault(name, []).append(onnx_name)
        return targets

    def _inputs_of(self, onnx: Any) -> dict[str, list[str]]:
        """Return the names in the ONNX model of each input of the module."""
        held = set(onnx.graph.initializers)
        found = [value.name for value in onnx.graph.inputs if value.name not in held]
        ours = user_inputs(self._exported)
        strangers = [name for name in found if name not in ours]
        if not strangers:
            return {name: [name] for name in found}
        if len(found) != len(ours):
            raise refuse(
                "VER0506",
                f"the file has an input '{strangers[0]}' that the module has not",
                hints=(f"the module takes {', '.join(ours) or 'no tensors'}",),
            )
        return {name: [onnx_name] for name, onnx_name in zip(ours, found, strict=True)}

    def _loaded(self, onnx: Any) -> _native.Parity:
        """Hand the model over; weights one by one, so that none is held twice for long."""
        bytes_without, lifted = weights.lift(onnx)
        native = _native.Parity(bytes_without)
        while lifted:
            name, tensor = lifted.popitem()
            native.weight(name, tensor.numpy())
        return native

    # Values

    def _record(
        self, values: _native.References, outputs: dict[str, Tensor], *, float64: bool
    ) -> None:
        """Interpret the program for a comparison that goes on meanwhile; keep its outputs."""
        wanted_outputs = set(user_outputs(self._exported))

        def take(name: str, value: Tensor, wide: Tensor | None) -> None:
            for target in self._input_names.get(name, ()):
                values.input(target, value)
            for target in self._targets.get(name, ()):
                values.value(target, value, wide)
            if name in wanted_outputs:
                outputs[name] = value.clone()

        wanted = frozenset({*self._targets, *self._input_names, *wanted_outputs})
        problem = self._interpret(wanted, take, float64=float64)
        if problem:
            self._notes.append(f"float64 is not known everywhere: {problem}")

    def _record_again(self) -> None:
        """Hand over every value to be kept: experiments need them, and comparing lets them go."""

        def take(name: str, value: Tensor, wide: Tensor | None) -> None:
            for target in self._targets[name]:
                self._native.reference(target, value)

        self._interpret(frozenset(self._targets), take)

    def _interpret(
        self, wanted: frozenset[str], take: reference.Take, *, float64: bool = False
    ) -> str:
        args, kwargs = reference.own_arguments(self._args, self._kwargs)
        return reference.interpret(self._exported, args, kwargs, wanted, take, float64=float64)

    def _check_program(self, outputs: Mapping[str, Tensor], tolerance: float) -> None:
        """Hold the program to what the module itself gives: names are of use only if they agree."""
        expected = reference.eager_outputs(self._model, self._args, self._kwargs)
        found = [outputs[name] for name in user_outputs(self._exported)]
        if len(found) != len(expected):
            message = f"the program has {len(found)} outputs, the module gives {len(expected)}"
            self._reasons.append(_reason("VER1108", message))
        for number, (ours, theirs) in enumerate(zip(expected, found, strict=False)):
            problem = _difference(ours, theirs, tolerance)
            if problem:
                message = f"torch.export's program is not the module: output {number} {problem}"
                self._reasons.append(_reason("VER1005", message))

    # Causes

    def _explain(self, rows: int) -> None:
        """Find out what makes operators wrong; weights are handed over as far as needed."""
        lifted: dict[str, Any] = {}
        if self._original is not None:
            names = self._names_in(self._original)
            bytes_without, lifted = weights.lift(self._original)
            self._native.original(bytes_without, set(lifted), names)
        self._original = None
        of_original, constants = self._native.needs(rows)
        for name in of_original:
            self._native.original_weight(name, lifted[name].numpy())
        ours = self._model.state_dict() if constants else {}
        for name in constants:
            if isinstance(ours.get(name), Tensor):
                self._native.named_weight(name, ours[name].detach().contiguous())
        self._native.explain(rows)

    def _names_in(self, original: Any) -> dict[str, str]:
        """Return the names that values and inputs of the file have in a fresh export."""
        names: dict[str, str] = {}
        for here, there in (
            (self._targets, self._targets_in(original)),
            (self._input_names, self._inputs_of(original)),
        ):
            for name, found in here.items():
                names.update({each: there[name][0] for each in found if there.get(name)})
        return {name: other for name, other in names.items() if name != other}

    # What was found

    def _report(self, report: dict[str, Any]) -> dict[str, Any]:
        verdicts = {row["name"]: row["verdict"] for row in report["rows"]}
        ours = {
            name: verdicts[target]
            for name, targets in self._targets.items()
            for target in targets
            if target in verdicts
        }
        report["program"] = coverage.program_values(self._exported, ours)
        report["notes"] = self._notes
        # Weights were handed over as inputs; which modules hold others only the module knows.
        report.setdefault("graph", {})
        report["graph"]["inputs"] = [name for names in self._input_names.values() for name in names]
        report["graph"]["leaves"] = coverage.leaves(self._model)
        if self._reasons:
            report["reasons"] = [*report.get("reasons", ()), *self._reasons]
            report["verdict"] = "disproved"
        if self._doubts and report["verdict"] != "disproved":
            report["reasons"] = [*report.get("reasons", ()), *self._doubts]
            report["verdict"] = "not_comparable"
        return report


def _outputs(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Tensor] | None:
    """Return what a module gives, and leave it as it is; nothing where it refuses its arguments."""
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]

    def copied(value: Any) -> Any:
        return value.clone() if isinstance(value, Tensor) else value

    try:
        with torch.no_grad():
            args, kwargs = tree_map(copied, (args, dict(kwargs)))
            found = model(*args, **kwargs)
    except Exception:  # any: arguments that nobody gave
        return None
    finally:
        for buffer, value in before:
            buffer.data.copy_(value)
    return [each.detach().cpu() for each in tree_leaves(found) if isinstance(each, Tensor)]


def _reason(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "severity": "error", "message": message}


def _difference(expected: Tensor, found: Tensor, tolerance: float) -> str:
    """Say how two outputs differ; rounding adds up differently in a program."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        is_now, was = (
            f"{found.dtype} {list(found.shape)}",
            f"{expected.dtype} {list(expected.shape)}",
        )
        return f"is {is_now} instead of {was}"
    if expected.numel() == 0:
        return ""
    epsilon = torch.finfo(expected.dtype).eps if expected.is_floating_point() else 0.0
    if expected.is_complex():
        expected, found = torch.view_as_real(expected), torch.view_as_real(found)
    ours, theirs = expected.double(), found.double()
    allowed = max(min(tolerance, 1e-4), 64 * epsilon) * _own_scale(ours)
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    if bool((same | ((ours - theirs).abs() <= allowed)).all()):
        return ""
    return f"differs by {float((ours - theirs).abs().max()):.3g}"


def _own_scale(values: Tensor) -> Tensor:
    """Return how large values are around each: in the smallest of its rows along each axis.

    The largest of all says nothing about an element beside a mask, or in a channel of its own.
    """
    sizes = values.nan_to_num(0, 0, 0).abs()
    scales = sizes.max().expand_as(sizes)
    for axis in range(sizes.dim()):
        others = tuple(each for each in range(sizes.dim()) if each != axis)
        if sizes.numel() // max(sizes.shape[axis], 1) >= _ROW:
            scales = torch.minimum(scales, sizes.amax(others, keepdim=True))
    return scales
