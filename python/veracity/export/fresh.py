"""Fresh inputs: values that nobody recorded, with what the node computes on them.

Recorded samples cannot tell a value that froze while recording from one that never changes, nor an
operation that the exporter lost from one that did nothing on the samples. Fresh inputs can. Some
lie in the recorded range, the others in one three times as wide. The reference is the node's own
Python code where it can be run again, else the recorded program. Where the two disagree, the
recording froze something; the code is right, and the model is held against it.

A draw counts only if its answer can be told from rounding: one whose reference is not finite where
the recorded outputs were, or moves when the inputs move by a few units in the last place, is
thrown away and drawn anew. The same bundle and node give the same draws on every run.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx

from veracity._generators import generators_kept
from veracity.errors import Diagnostic, VeracityError
from veracity.export import graph
from veracity.export.double import run_in_double
from veracity.export.models import Made, program_of
from veracity.tracing.nodes import Node, Port, Sample

Tensors = dict[str, torch.Tensor]
Run = Callable[[Tensors], Tensors]

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
#: How far inputs are moved to see whether an answer can be told from rounding.
NUDGE = 1e-6


_CHANGING = "the code run again on the same inputs gives other values"


class Bound(NamedTuple):
    """What counts as equal for one output."""

    atol: float
    rtol: float


@dataclass
class Fresh:
    """The fresh inputs of a node.

    Attributes:
        samples: Inputs with reference outputs.
        frozen: Output of the first draw on which code and recorded program disagree, if any.
        note: Why there are none, or fewer, or none from the code.
        unstable: How the code disagrees with itself, if it does: then nothing is held against the
            model, and nothing is proved either.
        wrong: What tracing found that the export cannot do, if it did: the samples that were kept
            may agree all the same.
    """

    samples: list[Sample] = field(default_factory=list)
    frozen: str | None = None
    note: str | None = None
    unstable: str | None = None
    wrong: str | None = None

    def finding(self, node: Node) -> Diagnostic | None:
        """Return the finding for what froze."""
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
    bounds: dict[str, Bound],
    *,
    exact: bool,
    random: bool,
) -> Fresh:
    """Return fresh inputs for a node.

    Args:
        node: The node; its samples say which range is meant.
        program: Its recorded program, where that can be run.
        seed: Seed of the bundle.
        bounds: What counts as equal, by output.
        exact: Whether `bounds` follow the rounding of the dtype, so that inputs may only be moved
            by that much.
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
    return _Drawing(node, seed, bounds, exact, program).draw()


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
        with torch.no_grad():
            found = call(*(inputs[name] for name in ports))
        found = (found,) if isinstance(found, torch.Tensor) else found
        return dict(zip(names, found, strict=True))

    return run


class _Drawing:
    """Draws for one node."""

    def __init__(
        self, node: Node, seed: int, bounds: dict[str, Bound], exact: bool, program: Run
    ) -> None:
        self._node, self._seed, self._bounds, self._exact = node, seed, bounds, exact
        self._program = program
        self._finite = [port.name for port in node.outputs if _all_finite(node, port)]
        self._drawn: dict[int, list[Tensors]] = {}
        self._nudges = self._make_nudges()
        self._notes: list[str] = []
        self._frozen: str | None = None
        self._unstable: str | None = None

    def draw(self) -> Fresh:
        code = self._code()
        samples: list[Sample] = []
        wanted = 2 if _constant_bytes(self._node) > MAX_CONSTANT_BYTES else DRAWS
        step = DRAWS // wanted
        for index in range(0, DRAWS, step):
            sample = self._one(index, code)
            if sample is not None:
                samples.append(sample)
        if code is not None and not self._still_repeats(code):
            self._note("not tried: the code keeps state of its own, which changes what it computes")
            return Fresh(note=self._text(), unstable=_CHANGING)
        if len(samples) < wanted:
            self._note(f"{len(samples)} of {wanted} tried: the others tell nothing")
        return Fresh(samples, self._frozen, self._text(), self._unstable)

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
            self._note("its code was not run again: alone it does not give the recorded values")
            if not self._agrees_with_itself(run):
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
        if self._frozen is None and recorded is not outputs:
            self._frozen = self._first_difference(outputs, recorded, 1)
        return Sample(inputs, outputs)

    def _tells_nothing(
        self, inputs: Tensors, outputs: Tensors, recorded: Tensors, reference: Run
    ) -> bool:
        moved = reference(self._nudged(inputs))
        for port in self._node.outputs:
            name, bound = port.name, self._bounds[port.name]
            if _is_near(outputs[name], moved[name], bound, 0.25):
                continue  # and finite
            if name in self._finite and not bool(torch.isfinite(outputs[name]).all()):
                return True
            if differs(outputs[name], moved[name], bound, 0.25):
                return True
        if not _has_halves(self._node):
            return False
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
                signs = 1 - 2 * source.integers(0, 2, tuple(value.shape))
                factors = np.asarray(1 + self._step(value.dtype) * signs, dtype=np.float64)
                nudges[name] = torch.from_numpy(factors).to(value.device, value.dtype)
        return nudges

    def _step(self, dtype: torch.dtype) -> float:
        if dtype in (torch.float16, torch.bfloat16):
            return 0.0
        return float(torch.finfo(dtype).eps) if self._exact else NUDGE

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _text(self) -> str | None:
        return "; ".join(self._notes) or None


def _draws(node: Node, seed: int, attempt: int, count: int = DRAWS) -> list[Tensors]:
    """Return the draws of one attempt: first those in the recorded range, then the wider ones."""
    label = f"{seed}/{node.name}/{attempt}".encode()
    number = int.from_bytes(hashlib.sha256(label).digest(), "big")
    source = np.random.Generator(np.random.PCG64(number))
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


def _fits(port: Port, value: torch.Tensor) -> bool:
    dtype = str(value.dtype).removeprefix("torch.")
    return tuple(value.shape) == port.shape and dtype == port.dtype


def differs(want: torch.Tensor, got: torch.Tensor, bound: Bound, share: float) -> bool:
    """Say whether two values are further apart than this share of what counts as equal."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return True
    got = got.to(want.device)
    if not want.is_floating_point():
        return not torch.equal(want, got)
    if _is_near(want, got, bound, share):
        return False
    return not torch.allclose(
        got.double(),
        want.double(),
        rtol=share * bound.rtol,
        atol=share * bound.atol,
        equal_nan=True,
    )


def _is_near(want: torch.Tensor, got: torch.Tensor, bound: Bound, share: float) -> bool:
    """Say whether all of two floats are near each other, and finite. Quick; `differs` is exact."""
    if not want.is_floating_point() or want.shape != got.shape or want.device != got.device:
        return False
    limit = share * bound.rtol * want.abs() + share * bound.atol
    return bool(((got - want).abs() <= limit).all())


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
