"""Fresh inputs: values that nobody recorded, with what the node computes on them.

Recorded samples cannot tell a value that froze while recording from one that never changes, nor an
operation that the exporter lost from one that did nothing on the samples. Fresh inputs can. A few
are kept as samples: some lie in the recorded range, the others in one three times as wide. Many
more (`draws`) are tried while exporting and only counted, unless one of them finds something. The
reference is the node's own Python code where it can be run again, else the recorded program.
Where the two disagree, the recording froze something: the code is right, and the model is held
against it.

A draw counts only if its answer can be told from rounding: one whose reference is not finite where
the recorded outputs were, or moves when the inputs move by a few units in the last place, is
thrown away and drawn anew. The same bundle and node give the same draws on every run.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import fx

from veracity._generators import generators_kept
from veracity.errors import Diagnostic, VeracityError
from veracity.export import draws, foreign, graph
from veracity.export.batched import Many, run_at_once, run_each
from veracity.export.bounds import Bound, differs, is_near, near_rows
from veracity.export.double import run_in_double
from veracity.export.models import Made, program_of
from veracity.export.steady import Steadiness
from veracity.tracing.nodes import Node, Port, Sample
from veracity.tracing.versions import rows_of

Tensors = dict[str, torch.Tensor]
Run = Callable[[Tensors], Tensors]
#: Says what counts as equal for outputs, given stacks of their values on fresh inputs.
Judge = Callable[[Tensors], dict[str, Bound]]

#: Draws in the recorded range.
INSIDE = 1
#: The parts of the wider range that its draws are from. Values all over a range cancel in sums and
#: win every maximum: only some that are all low, or all high, show what an activation or a branch
#: does.
PARTS = ((0.0, 1.0), (0.0, 0.2), (0.8, 1.0), (0.4, 0.6))
#: All draws of a node.
DRAWS = INSIDE + len(PARTS)
#: How often a draw that tells nothing is drawn anew.
REDRAWS = 3
#: Nodes with larger inputs and outputs are left out.
MAX_BYTES = 16 << 20
#: Nodes with more constants take long to run: they get one draw of each kind.
MAX_CONSTANT_BYTES = 256 << 20
#: Draws that are tried beside those that are kept, for a small node.
MANY = 200
#: How much memory they may take, and how long their program may run, in seconds.
MANY_BYTES, MANY_SECONDS = 8 << 20, 0.5
#: How many of them the code is run on: twice each kind.
MANY_BY_CODE = 2 * len(draws.KINDS)
#: Programs with values of 16 bits are run in float64 for each draw.
MANY_HALVES = 2 * len(draws.KINDS)
#: Factors of the ranges of further draws, for outputs that the others do not move.
FAR = (10.0, 1000.0)
#: Factors of the ranges of draws that no input is known to reach.
BEYOND = (100.0, 1e4)
FAR_AWAY = "inputs are a hundred times as large as recorded, or larger"
#: Draws with values that are not finite, where no input declares them.
FEW = 8
NAN_INPUT = "an input is NaN"
NOT_FINITE = {NAN_INPUT: (math.nan,), "an input is infinite": (math.inf, -math.inf)}
#: How far inputs are moved to see whether an answer can be told from rounding.
NUDGE = 1e-6


_CHANGING = "the code run again on the same inputs gives other values"


@dataclass
class Fresh:
    """The fresh inputs of a node.

    Attributes:
        samples: Inputs with reference outputs.
        changed: Output that the code gives other values of than it gave while recording, if any.
        frozen: Output of the first draw on which code and recorded program disagree, if any.
        note: Why there are none, or fewer, or none from the code.
        unstable: How the code disagrees with itself, if it does: then nothing is held against the
            model, and nothing is proved either.
        wrong: What tracing found that the export cannot do, if it did: the samples that were kept
            may agree all the same.
        further: Draws more inputs, from far outside of the recorded range.
        many: Further inputs, with what the recorded program gives: tried, and not kept.
        beyond: Draws from where nobody says that inputs ever are, each with what it is about.
    """

    samples: list[Sample] = field(default_factory=list)
    frozen: str | None = None
    note: str | None = None
    unstable: str | None = None
    wrong: str | None = None
    many: Many | None = None
    changed: str | None = None
    further: Callable[[], Iterator[Many]] | None = None
    beyond: Callable[[], Iterator[tuple[str, Many]]] | None = None

    def finding(self, node: Node) -> Diagnostic | None:
        """Return the finding for what froze."""
        if self.changed is not None:
            return Diagnostic(
                "VER1005",
                "error",
                f"the code of `{node.name}`, run again on recorded inputs, gives another "
                f"`{self.changed}` than what was recorded",
                node.location,
                (
                    "something that it reads has changed since: make it an input or a state of the "
                    "node; switch running it again off with `compile_graph(fresh_inputs=False)`",
                ),
                node.name,
            )
        if self.frozen is None:
            return None
        return Diagnostic(
            "VER1005",
            "error",
            f"a branch or constant of `{node.name}` was frozen while recording: on a fresh input "
            f"its code gives another `{self.frozen}` than what was recorded",
            node.location,
            (
                "keep it a tensor: `torch.where` instead of a branch, no `item()`; make "
                "values that change inputs of the node",
            ),
        )


def seed_of(bundle: str) -> int:
    """Return the seed of a bundle: 53 bits, which JSON of every kind can hold."""
    return int.from_bytes(hashlib.sha256(bundle.encode()).digest()[:8], "big") >> 11


def draw(
    node: Node,
    program: Run | None,
    seed: int,
    judge: Judge,
    *,
    random: bool,
) -> Fresh:
    """Return fresh inputs for a node.

    Args:
        node: The node; its samples say which range is meant.
        program: Its recorded program, where that can be run.
        seed: Seed of the bundle.
        judge: Says what counts as equal, by output, when it has seen fresh outputs.
        random: Whether the node draws random numbers.
    """
    if not node.samples:
        return Fresh(note="not tried: nothing was recorded")
    if random:
        return Fresh(note="not tried: the node draws random numbers")
    if bytes_of(node.samples[0]) > MAX_BYTES:
        return Fresh(note=f"not tried: inputs and outputs take more than {MAX_BYTES >> 20} MB")
    if program is None:
        return Fresh(note="not tried: the recorded program cannot be run")
    return _Drawing(node, seed, judge, program).draw()


def pass_through(node: Node, seed: int) -> Fresh:
    """Return fresh inputs for a generated node, whose output is its input."""
    small = bool(node.samples) and bytes_of(node.samples[0]) <= MAX_BYTES
    (given,), (made,) = node.inputs, node.outputs
    fresh = Fresh()
    for values in _draws(node, seed, 0, DRAWS if small else 1):
        fresh.samples.append(Sample(values, {made.name: values[given.name]}))
    return fresh


def program_module(made: Made) -> fx.GraphModule | None:
    """Return the recorded program; `None` when it cannot be put together: an exporter says why."""
    names = [port.name for port in made.node.outputs]
    try:
        return made.module or graph.build(program_of(made.node), names)
    except VeracityError:
        return None


def program_runner(made: Made) -> Run | None:
    """Return the recorded program as a function, where it can be put together."""
    module = program_module(made)
    return None if module is None else runner_of(made.node, module)


def runner_of(node: Node, module: fx.GraphModule) -> Run:
    """Return a program of this node as a function from inputs to outputs, by port."""
    names = [port.name for port in node.outputs]
    ports = [use.port for use in node.slice.inputs]
    call = module.forward  # without the checks for hooks, of which there are none

    def run(inputs: Tensors) -> Tensors:
        with torch.no_grad(), foreign.guarded(node):
            found = call(*(inputs[name] for name in ports))
        found = (found,) if isinstance(found, torch.Tensor) else found
        return dict(zip(names, found, strict=True))

    return run


class _Drawing:
    """Draws for one node."""

    def __init__(self, node: Node, seed: int, judge: Judge, program: Run) -> None:
        self._node, self._seed, self._program = node, seed, program
        self._finite = [port.name for port in node.outputs if _all_finite(node, port)]
        self._drawn: dict[int, list[Tensors]] = {}
        self._notes: list[str] = []
        self._frozen: str | None = None
        self._unstable: str | None = None
        self._changed: str | None = None
        many = self._many()
        self._bounds = judge({} if many is None else many.outputs)
        self._steadiness = Steadiness(node, program, self._bounds)
        self._nudges = self._make_nudges()
        self._all = many

    def draw(self) -> Fresh:
        code = self._code()
        samples: list[Sample] = []
        wanted = 2 if _constant_bytes(self._node) > MAX_CONSTANT_BYTES else DRAWS
        step = DRAWS // wanted
        for index in range(0, DRAWS, step):
            sample = self._one(index, code)
            if sample is not None:
                samples.append(sample)
        kept = len(samples)
        many = None if self._all is None else self._telling(self._all)
        if many is not None and code is not None:
            many = self._held_against(many, code, samples)
        if code is not None and not self._still_repeats(code):
            self._note("not tried: the code keeps state of its own, which changes what it computes")
            return Fresh(note=self._text(), unstable=_CHANGING)
        if called := foreign.operators(self._node):
            self._note(f"nothing far outside of the recorded range: it calls `{called[0]}`")
        if kept < wanted:
            self._note(f"{kept} of {wanted} tried: the others tell nothing")
        return Fresh(
            samples,
            self._frozen,
            self._text(),
            self._unstable,
            many=many,
            changed=self._changed,
            further=lambda: self._further(code),
            beyond=self._beyond,
        )

    def _further(self, code: Run | None) -> Iterator[Many]:
        """Draw from far outside, for those who look for something that the other draws miss."""
        if self._all is None:
            return
        count = 2 * len(draws.KINDS)
        for reach in FAR:
            far = draws.many(self._node, self._seed, count, self._accepts, reach)
            found = self._answered(far)
            many = None if found is None else self._telling(found)
            if many is not None and code is not None:
                many = self._held_against(many, code, [])
            if many is not None:
                yield many

    def _beyond(self) -> Iterator[tuple[str, Many]]:
        """Draw from far outside of the recorded range, NaN and infinities."""
        if self._all is None or foreign.operators(self._node):
            return
        for reach in BEYOND:
            drawn = draws.many(self._node, self._seed, len(draws.KINDS), self._accepts, reach)
            found = self._answered(drawn)
            many = None if found is None else self._telling(found)
            if many is not None:
                yield FAR_AWAY, many
        floats = [s for s in self._node.samples[0].inputs.values() if s.is_floating_point()]
        for words, chosen in NOT_FINITE.items() if floats else ():
            if not any(draws.declares(self._node, value) for value in chosen):
                drawn = draws.not_finite(self._node, self._seed, FEW, chosen)
                found = self._answered(drawn)
                if found is not None:
                    yield words, found

    # Many draws, which the recorded program answers

    def _many(self) -> Many | None:
        """Return draws of every kind with what the program gives; `None` where it takes long."""
        if _constant_bytes(self._node) > MAX_CONSTANT_BYTES or not self._node.inputs:
            return None
        try:
            self._program(self._node.samples[0].inputs)  # kernels are chosen in the first run
            begin = time.thread_time()
            self._program(self._node.samples[0].inputs)
            seconds = time.thread_time() - begin
        except Exception:  # any: the samples were made by the code, not by the program
            return None
        count = self._count(seconds)
        if count == 0:
            return None
        found = self._answered(draws.many(self._node, self._seed, count, self._accepts))
        still = [] if found is None else self._still(found)
        for reach in FAR if still else ():
            few = len(draws.KINDS)
            far = draws.many(self._node, self._seed, min(few, count), self._accepts, reach)
            more = self._answered(far)
            if found is not None and more is not None:
                found = Many.joined([found, more])
        return found

    def _count(self, seconds: float) -> int:
        """Return how many draws are tried; powers of two, so that it is the same on every run."""
        fitting = [MANY, MANY_BYTES // max(bytes_of(self._node.samples[0]), 1)]
        if seconds * MANY > MANY_SECONDS:
            fitting.append(1 << int(math.log2(max(MANY_SECONDS / seconds, 1))))
        if _has_halves(self._node):
            fitting.append(MANY_HALVES)
        fewest = min(fitting)
        return 0 if fewest < len(draws.KINDS) // 2 else fewest

    def _accepts(self, port: str, value: int) -> bool:
        inputs = dict(self._node.samples[0].inputs)
        inputs[port] = torch.full_like(inputs[port], value)
        try:
            self._program(inputs)
        except Exception:  # any: it is asked whether there is one
            return False
        return True

    def _call(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        names = [port.name for port in self._node.inputs]
        found = self._program(dict(zip(names, values, strict=True)))
        return [found[port.name] for port in self._node.outputs]

    def _answered(self, inputs: Tensors) -> Many | None:
        stacks = [inputs[port.name] for port in self._node.inputs]
        names = [port.name for port in self._node.outputs]
        results = run_at_once(self._call, stacks)
        if results is not None:
            return Many(inputs, dict(zip(names, results, strict=True)))
        results, rows = run_each(self._call, stacks, MANY_SECONDS)
        if not rows:
            return None
        return Many(
            {name: rows_of(value, rows) for name, value in inputs.items()},
            dict(zip(names, results, strict=True)),
        )

    def _still(self, many: Many) -> list[str]:
        """Return the outputs that no draw moves."""
        return [
            name
            for name, value in many.outputs.items()
            if name not in self._node.static_outputs and bool((value == value[:1]).all())
        ]

    def _telling(self, many: Many) -> Many | None:
        """Return the draws whose answer can be told from rounding."""
        if any(not _fits_many(port, many.outputs[port.name]) for port in self._node.outputs):
            return None
        moved = self._answered(self._nudged(many.inputs))
        if moved is None or len(moved) != len(many):
            return None
        kept = torch.ones(len(many), dtype=torch.bool)
        for port in self._node.outputs:
            want, name = many.outputs[port.name], port.name
            kept &= near_rows(want, moved.outputs[name], self._bounds[name], 0.25).cpu()
            if name in self._finite and want.is_floating_point():
                kept &= want.isfinite().reshape(len(many), -1).all(1).cpu()
        found = many.rows(kept)
        if _has_halves(self._node):
            rows = [row for row in range(len(found)) if not self._rounds(*found.row(row))]
            found = found.rows(rows)
        return found if len(found) else None

    def _held_against(self, many: Many, code: Run, samples: list[Sample]) -> Many | None:
        """Run the code on some of the draws; return those that it takes.

        One on which it disagrees with the program becomes a sample.
        """
        taken: list[int] = []
        end = time.thread_time() + MANY_SECONDS
        rows = range(0, len(many), max(1, len(many) // MANY_BY_CODE))
        refused = False
        for row in rows:
            if time.thread_time() > end:
                break
            inputs, outputs = many.row(row)
            try:
                found = code(inputs)
                differing = self._first_difference(outputs, found, 1)
                if differing is None:
                    taken.append(row)
                elif self._frozen is None:
                    sample = self._tried(inputs, code)
                    samples.extend([] if sample is None else [sample])
            except Exception as error:  # any: what the code refuses is no input of it
                refused = True
                self._note(f"some values are refused: {_brief(error)}")
        return many.rows(taken) if refused or self._frozen else many

    def _code(self) -> Run | None:
        """Return the node's code, if it still computes what was recorded."""
        again = self._node.again
        if again is None:
            return None
        if {port.name for port in self._node.inputs} - again.takes - again.buffers.keys():
            self._note("its code was not run again: it takes inputs from elsewhere")
            return None

        def run(inputs: Tensors) -> Tensors:
            return again(inputs) | self._node.static_outputs

        try:
            if self._repeats(run):
                return run
            if self._agrees_with_itself(run):
                self._note("its code was run again and gives other values than were recorded")
                self._changed = self._first_change(run)
            else:
                self._note("its code was not run again: alone it does not give the recorded values")
                self._unstable = _CHANGING
        except Exception as error:  # any: it is the user's code
            self._note(f"its code was not run again: {_brief(error)}")
        return None

    def _repeats(self, code: Run) -> bool:
        """Say whether the code gives the recorded outputs, on the first and the last sample."""
        for sample in (self._node.samples[0], self._node.samples[-1]):
            found = code(sample.inputs)
            for port in self._node.outputs:
                want = sample.outputs.get(port.name, self._node.static_outputs.get(port.name))
                got = found.get(port.name)
                if got is None or want is None or differs(want, got, self._bounds[port.name], 1):
                    return False
        return True

    def _first_change(self, code: Run) -> str | None:
        """Return the output that the code gives other values of, if it has it at all."""
        for sample in (self._node.samples[0], self._node.samples[-1]):
            found = code(sample.inputs)
            for name, want in sample.outputs.items():
                if name in found and differs(want, found[name], self._bounds[name], 1):
                    return name
        return None

    def _agrees_with_itself(self, code: Run) -> bool:
        """Say whether two runs on the first sample agree, whatever torch would draw in them."""
        found = []
        with generators_kept():
            for seed in (1, 2):
                torch.manual_seed(seed)
                found.append(code(self._node.samples[0].inputs))
        first, second = found
        names = [port.name for port in self._node.outputs if port.name in first]
        return not any(differs(first[name], second[name], self._bounds[name], 1) for name in names)

    def _still_repeats(self, code: Run) -> bool:
        try:
            return self._repeats(code)
        except Exception:  # any: it is the user's code
            return False

    def _one(self, index: int, code: Run | None) -> Sample | None:
        for attempt in range(REDRAWS + 1):
            if attempt not in self._drawn:
                self._drawn[attempt] = _draws(self._node, self._seed, attempt)
            inputs = self._drawn[attempt][index]
            try:
                sample = self._tried(inputs, code)
            except Exception as error:  # any: what the code refuses is no input of it
                self._note(f"some values are refused: {_brief(error)}")
                continue
            if sample is not None:
                return sample
        return None

    def _tried(self, inputs: Tensors, code: Run | None) -> Sample | None:
        reference = (code or self._program)(inputs)
        outputs = {port.name: reference[port.name] for port in self._node.outputs}
        misfit = next((p for p in self._node.outputs if not _fits(p, outputs[p.name])), None)
        if misfit is not None:
            self._note(f"some values give `{misfit.name}` another shape")
            return None
        recorded = outputs if code is None else self._program(inputs)
        if self._tells_nothing(inputs, outputs, recorded, code or self._program):
            return None
        if not self._steadiness.holds(Sample(inputs, recorded)):
            return None
        if self._frozen is None and recorded is not outputs:
            self._frozen = self._first_difference(outputs, recorded, 1)
        return Sample(inputs, outputs)

    def _tells_nothing(
        self, inputs: Tensors, outputs: Tensors, recorded: Tensors, reference: Run
    ) -> bool:
        moved = reference(self._nudged(inputs))
        for port in self._node.outputs:
            name, bound = port.name, self._bounds[port.name]
            if is_near(outputs[name], moved[name], bound, 0.25):
                continue  # and finite
            if name in self._finite and not bool(torch.isfinite(outputs[name]).all()):
                return True
            if differs(outputs[name], moved[name], bound, 0.25):
                return True
        return _has_halves(self._node) and self._rounds(inputs, recorded)

    def _rounds(self, inputs: Tensors, recorded: Tensors) -> bool:
        """Say whether values of 16 bits are what they are by rounding."""
        # A unit in the last place of these is as large as usual tolerances: no input can be moved.
        try:
            wide = run_in_double(self._node, inputs)
        except Exception:  # any: not every program can be widened, and then nothing is known
            return False
        narrow = {name: wide[name].to(value.dtype) for name, value in recorded.items()}
        return self._first_difference(recorded, narrow, 0.25) is not None

    def _first_difference(self, wanted: Tensors, found: Tensors, share: float) -> str | None:
        for port in self._node.outputs:
            name = port.name
            if differs(wanted[name], found[name], self._bounds[name], share):
                return name
        return None

    def _nudged(self, inputs: Tensors) -> Tensors:
        return {
            name: value * self._nudges[name] if name in self._nudges else value
            for name, value in inputs.items()
        }

    def _make_nudges(self) -> Tensors:
        """Return factors that move every float a little up or down, the same way each time."""
        source = np.random.Generator(np.random.PCG64(0))
        nudges = {}
        for name, value in self._node.samples[0].inputs.items():
            if value.is_floating_point():
                # Elements that move alike stay equal, and what rests on that does not move.
                sizes = 0.5 + 0.5 * source.random(tuple(value.shape))
                signs = 1 - 2 * source.integers(0, 2, tuple(value.shape))
                factors = np.asarray(1 + self._step(value.dtype) * signs * sizes, dtype=np.float64)
                nudges[name] = torch.from_numpy(factors).to(value.device, value.dtype)
        return nudges

    def _step(self, dtype: torch.dtype) -> float:
        """Return how far inputs are moved: less where tolerances are finer than usual."""
        if dtype in (torch.float16, torch.bfloat16):
            return 0.0
        eps = float(torch.finfo(dtype).eps)
        finest = min((bound.finest() for bound in self._bounds.values()), default=NUDGE)
        return max(2 * eps, min(NUDGE, finest / 100))

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _text(self) -> str | None:
        return "; ".join(self._notes) or None


def _draws(node: Node, seed: int, attempt: int, count: int = DRAWS) -> list[Tensors]:
    """Return the draws of one attempt: first those in the recorded range, then the wider ones."""
    source = draws.source_of(seed, node.name, attempt)
    drawn = {
        port.name: _drawn([sample.inputs[port.name] for sample in node.samples], source, count)
        for port in node.inputs
    }
    return [{name: values[index] for name, values in drawn.items()} for index in range(count)]


def _wider(low: float, high: float, number: int) -> tuple[float, float]:
    """Return the part of a range three times as wide that the draw of this number is from.

    The last draw is from the other sign where all recorded values have one: many operations do
    something else there.
    """
    if number == len(PARTS) - 1 and low * high > 0:
        return -high, -low
    middle, reach = low / 2 + high / 2, 1.5 * (high - low) or 1.0
    start, end = PARTS[number]
    return middle + (2 * start - 1) * reach, middle + (2 * end - 1) * reach


def _drawn(recorded: list[torch.Tensor], source: np.random.Generator, count: int) -> torch.Tensor:
    """Return draws for one input, along a new first axis."""
    like = recorded[0]
    shape = (count, *like.shape)
    if like.dtype == torch.bool:
        values: Any = source.integers(0, 2, shape) > 0
    elif like.is_floating_point():
        low, high = _range(recorded)
        spans = [_wider(low, high, index - INSIDE) for index in range(INSIDE, count)]
        limits = np.array([(low, high)] * min(count, INSIDE) + spans)
        most = float(torch.finfo(like.dtype).max)
        limits = limits.clip(-most, most)
        limits = limits.reshape(count, 2, *(1 for _ in like.shape))
        part = source.random(shape)
        values = limits[:, 0] * (1 - part) + limits[:, 1] * part
    else:
        kind = np.dtype(str(like.dtype).removeprefix("torch."))
        values = source.integers(*_int_range(recorded), shape, dtype=kind.type, endpoint=True)
    return torch.from_numpy(np.asarray(values)).to(like.device, like.dtype)


def _int_range(values: list[torch.Tensor]) -> tuple[int, int]:
    arrays = [value.detach().cpu().numpy() for value in values if value.numel()]
    low = min((int(array.min()) for array in arrays), default=0)
    return low, max((int(array.max()) for array in arrays), default=0)


def _range(values: list[torch.Tensor]) -> tuple[float, float]:
    """Return the smallest and largest finite value."""
    lows, highs = [], []
    for value in values:
        plain = value.detach()
        low, high = plain.aminmax() if plain.numel() else (plain, plain)
        if plain.numel() and not (math.isfinite(low) and math.isfinite(high)):
            plain = plain[torch.isfinite(plain)]
            low, high = plain.aminmax() if plain.numel() else (plain, plain)
        if plain.numel():
            lows.append(float(low))
            highs.append(float(high))
    return min(lows, default=0.0), max(highs, default=0.0)


def _all_finite(node: Node, port: Port) -> bool:
    values = [s.outputs[port.name] for s in node.samples if port.name in s.outputs]
    return all(bool(torch.isfinite(value).all()) for value in values)


def _fits_many(port: Port, values: torch.Tensor) -> bool:
    return len(values) > 0 and _fits(port, values[0])


def _fits(port: Port, value: torch.Tensor) -> bool:
    dtype = str(value.dtype).removeprefix("torch.")
    return tuple(value.shape) == port.shape and dtype == port.dtype


def _has_halves(node: Node) -> bool:
    return any(port.dtype in ("float16", "bfloat16") for port in [*node.inputs, *node.outputs])


def device_of(sample: Sample) -> torch.device:
    """Return the device that a sample was computed on: a GPU, if any of its values lies there."""
    cpu = torch.device("cpu")
    values: Tensors = {**sample.outputs, **sample.inputs}
    return next((value.device for value in values.values() if value.device != cpu), cpu)


def bytes_of(sample: Sample) -> int:
    """Return what the values of a sample take."""
    return sum(value.nbytes for value in [*sample.inputs.values(), *sample.outputs.values()])


def _constant_bytes(node: Node) -> int:
    return sum(use.tensor.nbytes for use in node.slice.constants)


def _brief(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}".rstrip(": ")
