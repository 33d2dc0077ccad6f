"""Tries a model on many inputs that are only counted, and tells apart those that it fails on.

Torch runs them at once where it can. What differs then is run alone, and held against the program
alone: another kernel rounds otherwise. What still differs is either a corner that engines treat in
their own way, zeros of both signs or values that tie, which is told; or it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from veracity.errors import Diagnostic
from veracity.export.batched import Many, run_at_once, run_each
from veracity.export.bounds import Bound, differs, near, near_rows
from veracity.export.double import rounding
from veracity.export.fresh import Run
from veracity.export.models import Made
from veracity.export.steady import Steadiness
from veracity.tracing.nodes import Sample
from veracity.tracing.versions import rows_of

Tensors = dict[str, torch.Tensor]

#: Code of what a model does in its own way, wherever it is run.
CORNER = "VER1128"
#: Seconds that models are run for, where they cannot be run at once.
SECONDS = 1.0
#: Wrong draws that are kept.
MOST_WRONG = 3
#: Differing draws that are looked at.
MOST_DIFFERING = 12
#: How far values that tie are moved apart.
APART = 1e-3


class Trial:
    """Many draws through one model.

    Attributes:
        agreed: How many draws the model agrees on.
        told: Corners that it treats in its own way.
    """

    def __init__(
        self,
        made: Made,
        model: Callable[[Sample], list[torch.Tensor]],
        many: Many,
        program: Run,
        bounds: dict[str, Bound],
    ) -> None:
        """Hold a model against a program.

        Args:
            made: The node.
            model: Runs its model.
            many: The draws.
            program: The recorded program, which is right where its answers are no matter of
                rounding.
            bounds: What counts as equal, by output.
        """
        self._made, self._model, self._many = made, model, many
        self._program, self._bounds = program, bounds
        self._outputs = [port.name for port in made.node.outputs]
        self._steadiness = Steadiness(made.node, program, bounds)
        self.agreed = 0
        self.told: list[Diagnostic] = []

    def run(self, *, at_once: bool, excuses_rounding: bool = False) -> list[Sample]:
        """Run the draws; return those that the model is wrong on.

        Args:
            at_once: Whether the model can be run on all of them at once.
            excuses_rounding: Whether a difference counts only beyond what rounding does there.
        """
        names = list(self._many.inputs)
        stacks = [self._many.inputs[name] for name in names]

        def call(values: list[torch.Tensor]) -> list[torch.Tensor]:
            return self._model(Sample(dict(zip(names, values, strict=True)), {}))

        results = run_at_once(call, stacks) if at_once else None
        rows = list(range(len(self._many)))
        if results is None:
            results, rows = run_each(call, stacks, SECONDS)
        good = self._agreeing(results, rows)
        if at_once and len(good) < len(self._many):
            # Run at once, some operations round otherwise, and some are wrong.
            left = [row for row in range(len(self._many)) if row not in good]
            alone, reached_rows = run_each(call, [stack[left] for stack in stacks], SECONDS)
            good |= self._agreeing(alone, [left[row] for row in reached_rows])
        reached = len(self._many) if not rows else rows[-1] + 1
        bad = [row for row in range(reached) if row not in good]
        self.agreed = len(good)
        return self._wrong(bad, excuses_rounding)

    def _agreeing(self, results: list[torch.Tensor], rows: list[int]) -> set[int]:
        if not rows or len(results) != len(self._outputs):
            return set()
        right = torch.ones(len(rows), dtype=torch.bool)
        for name, found in zip(self._outputs, results, strict=True):
            want = rows_of(self._many.outputs[name], rows)
            if want.shape != found.shape or want.dtype != found.dtype:
                return set()
            right &= near_rows(want, found.to(want.device), self._bounds[name], 1).cpu()
        return {row for row, fine in zip(rows, right.tolist(), strict=True) if fine}

    def _wrong(self, bad: list[int], excuses_rounding: bool) -> list[Sample]:
        wrong: list[Sample] = []
        for row in bad[:MOST_DIFFERING]:
            inputs, _ = self._many.row(row)
            try:
                sample = self._sample(inputs)
            except Exception:  # any: what the program itself refuses is no input of it
                continue
            if not self._differs(sample) or (excuses_rounding and self._rounds(sample)):
                self.agreed += 1
                continue
            if self._is_up_to_rounding(sample):
                continue  # it tells nothing
            corner = self._corner(sample)
            if corner is not None:
                self._tell(corner, sample)
            elif len(wrong) < MOST_WRONG:
                wrong.append(sample)
        return wrong

    def _sample(self, inputs: Tensors) -> Sample:
        found = self._program(inputs)
        return Sample(inputs, {name: found[name].detach().clone() for name in self._outputs})

    def _differs(self, sample: Sample) -> bool:
        return self._differing(sample) is not None

    def _differing(self, sample: Sample) -> str | None:
        """Return the output that a model is wrong about; the first, if it does not run."""
        try:
            found = self._model(sample)
        except Exception:  # any: what an engine raises is up to it
            return self._outputs[0]
        for name, got in zip(self._outputs, found, strict=False):
            if differs(sample.outputs[name], got, self._bounds[name], 1):
                return name
        return None

    def _rounds(self, sample: Sample) -> bool:
        """Say whether a model differs by no more than another order of operations may make.

        The tolerance is for values of the size that was recorded: far larger ones that cancel leave
        more of their rounding behind.
        """
        floats = [name for name in self._outputs if sample.outputs[name].is_floating_point()]
        try:
            moved = rounding(self._made.node, [sample], floats)
            found = self._model(sample)
        except Exception:  # any: not every program can be widened, nor every input taken
            return False
        for name, got in zip(self._outputs, found, strict=False):
            want, bound = sample.outputs[name], self._bounds[name]
            if name in moved and want.shape == got.shape and want.dtype == got.dtype:
                apart = (got.cpu().double() - want.cpu().double()).abs()
                close = near(want, got.to(want.device), bound, 1).cpu()
                if not bool((close | (apart <= moved[name])).all()):
                    return False
            elif differs(want, got, bound, 1):
                return False
        return True

    def _corner(self, sample: Sample) -> str | None:
        """Return what is special about inputs that a model is wrong on, and right without it.

        Ties of inputs are no excuse for other values: they decide which index is given, nothing
        else. Inside of the program they are, if the model is what it gives with the first of them.
        """
        corners = [("an input is -0.0", _without_negative_zeros)]
        wrong = sample.outputs.get(self._differing(sample) or "")
        if wrong is not None and not wrong.is_floating_point():
            corners.append(("values tie", _without_ties))
        for words, plain in corners:
            other = plain(sample.inputs)
            if other is None:
                continue
            try:
                if not self._differs(self._sample(other)):
                    return words
            except Exception:  # any: values that the program does not take
                continue
        return self._steadiness.way_to(
            sample, lambda outputs: not self._differs(Sample(sample.inputs, outputs))
        )

    def _is_up_to_rounding(self, sample: Sample) -> bool:
        try:
            found = dict(zip(self._outputs, self._model(sample), strict=True))
        except Exception:  # any: what an engine raises is up to it
            return False
        # Sums that cancel leave nothing but rounding: then every engine has an answer of its own.
        return self._steadiness.allows(sample, found) or self._steadiness.jumps(sample)

    def tell_beyond(self, words: str, *, are_inputs: bool, hides_nan: bool) -> None:
        """Run draws that no input is known to be like; what the model is wrong on is told.

        Values that are not finite are no inputs of a node that does not declare them, and what
        becomes of them is worth a note, unless the model makes a number of NaN, which hides it.

        Args:
            words: What the draws are about.
            are_inputs: Whether such values may come undeclared.
            hides_nan: Whether a number in the place of what torch gives is more than a note.
        """
        wrong = self.run(at_once=False, excuses_rounding=True)
        hidden = next(
            (one for one in wrong if are_inputs or (hides_nan and self._makes_numbers(one))), None
        )
        if hidden is not None:
            self._tell(words, hidden)
        elif wrong:
            self.told = [self._note(words, wrong[0])]

    def _makes_numbers(self, sample: Sample) -> bool:
        """Say whether a model gives a number that differs from what torch gives."""
        for name, got in zip(self._outputs, self._model(sample), strict=False):
            want, bound = sample.outputs[name], self._bounds[name]
            if want.shape != got.shape or not want.is_floating_point():
                if differs(want, got, bound, 1):
                    return True
            elif bool((~near(want, got.to(want.device), bound, 1) & got.isfinite()).any()):
                return True
        return False

    def _note(self, words: str, sample: Sample) -> Diagnostic:
        node = self._made.node
        port = self._differing(sample)
        backend = self._made.exported.backend if self._made.exported else ""
        message = (
            f"the {backend} model of `{node.name}` gives another `{port}` than torch where {words}"
        )
        hint = 'declare it with `extra={"allow_nan": True, "allow_inf": True}` if that is an input'
        return Diagnostic(CORNER, "note", message, node.location, (hint,), node.name)

    def _tell(self, corner: str, sample: Sample) -> None:
        node = self._made.node
        port = self._differing(sample)
        backend = self._made.exported.backend if self._made.exported else ""
        message = (
            f"the {backend} model of `{node.name}` gives another `{port}` than torch where {corner}"
        )
        if all(one.message != message for one in self.told):
            hint = "keep such values away from it, or use another backend if they occur"
            self.told.append(
                Diagnostic(CORNER, "warning", message, node.location, (hint,), node.name)
            )


def is_corner(inputs: Tensors, outputs: Tensors) -> bool:
    """Say whether engines may differ on inputs for a reason of their own."""
    gives_indices = any(not value.is_floating_point() for value in outputs.values())
    tied = gives_indices and _without_ties(inputs) is not None
    return tied or _without_negative_zeros(inputs) is not None


def _without_negative_zeros(inputs: Tensors) -> Tensors | None:
    """Return the inputs with positive zeros only; `None` when they have no others."""
    found = {
        name: torch.where(value == 0, torch.zeros_like(value), value)
        for name, value in inputs.items()
    }
    same = all(
        not value.is_floating_point() or torch.equal(value.signbit(), found[name].signbit())
        for name, value in inputs.items()
    )
    return None if same else found


def _without_ties(inputs: Tensors) -> Tensors | None:
    """Return the inputs with every float moved a little, each by another share."""
    found, tied = {}, False
    for name, value in inputs.items():
        found[name] = value
        if value.is_floating_point() and value.numel() > 1:
            steps = torch.linspace(-APART, APART, value.numel(), dtype=torch.float64)
            size = float(value.abs().max()) or 1.0
            moved = value.double() + size * steps.reshape(value.shape).to(value.device)
            tied = tied or value.unique().numel() < value.numel()
            found[name] = moved.to(value.dtype)
    return found if tied else None
