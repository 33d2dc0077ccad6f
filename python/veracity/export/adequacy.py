"""How much the samples of a node can see.

Faults are planted into copies of the recorded program, which stands for the model: the two were
compared on every sample. A fault is found when an output leaves its tolerance on one of them. For
those that are missed, further inputs are drawn; one that finds a fault becomes a sample, so that
the number holds for the samples that the bundle carries. What is left is named with its reason.

A change is no fault when nothing lets it reach an output: a unit that is off on every draw, a
factor of zero, a limit that no draw reaches, a row of a table that no index reads, an error that
the tolerance allows. What a branch hides is one: another input may take it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from veracity.errors import Diagnostic
from veracity.export import draws, foreign, graph
from veracity.export.batched import Many
from veracity.export.bounds import Bound, differs
from veracity.export.describe import short_place
from veracity.export.faults import Fault, NoFaultError, all_of, name
from veracity.export.fresh import Fresh
from veracity.export.lowering import LOCATION
from veracity.export.steady import Steadiness
from veracity.export.trial import is_corner
from veracity.tracing.nodes import Node, Sample

Tensors = dict[str, torch.Tensor]
Env = dict[fx.Node, Any]

#: Faults that are planted into a program.
MOST_FAULTS = 60
#: Samples that faults are looked for on, and further draws.
MOST_SAMPLES, MOST_DRAWS = 16, 48
#: Fresh inputs that are kept because they find a fault.
MOST_KEPT = 8
#: Faults that are named.
MOST_NAMED = 8
#: Seconds of computing that it takes at most; a slow program gets fewer faults. Those of the clock
#: would be others on a busy machine.
SECONDS = 0.5
#: Below this share of faults that are found, a proof rests on an assumption.
ENOUGH = 0.9
#: Fewer missed faults are too few to judge by.
FEW = 3
#: Steps that choose: what they leave out may be what another input takes.
_CHOOSING = frozenset(
    {
        "where",
        "gt",
        "lt",
        "ge",
        "le",
        "eq",
        "ne",
        "argmax",
        "argmin",
        "topk",
        "sort",
        "argsort",
        "round",
        "floor",
        "ceil",
        "sign",
        "logical_and",
        "logical_or",
        "masked_fill",
    }
)


@dataclass
class Faults:
    """What became of planted faults.

    Attributes:
        planted: How many there were.
        found: How many a sample finds.
        drawn: Fresh inputs that were kept because they find some.
        missed: Those that no sample finds.
        no_fault: Changes that nothing can show.
    """

    planted: int = 0
    found: int = 0
    drawn: int = 0
    missed: list[dict[str, str]] = field(default_factory=list)
    no_fault: list[dict[str, str]] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Return it as proofs hold it; long lists are cut."""
        return {
            "planted": self.planted,
            "found": self.found,
            "drawn": self.drawn,
            "missed": self.missed[:MOST_NAMED],
            "no_fault": self.no_fault[:MOST_NAMED],
        }

    def finding(self, node: Node) -> Diagnostic | None:
        """Return the finding for samples that show too little."""
        missed = self.planted - self.found
        if missed < FEW or self.found >= ENOUGH * self.planted:
            return None
        first = self.missed[0]
        place = f" ({first['place']})" if first.get("place") else ""
        message = (
            f"the samples of `{node.name}` find {self.found} of {self.planted} planted faults; "
            f"one that they miss: {first['what']}{place}: {first['reason']}"
        )
        hint = "record passes that use these parts of the code"
        return Diagnostic("VER1129", "note", message, node.location, (hint,), node.name)


def plant(
    node: Node, module: fx.GraphModule, fresh: Fresh, bounds: dict[str, Bound], seed: int
) -> Faults | None:
    """Plant faults into copies of a program and look which the samples find.

    Fresh inputs that find what the samples miss are moved to these.

    Args:
        node: The node.
        module: Its recorded program.
        fresh: Its fresh inputs.
        bounds: What counts as equal, by output.
        seed: Seed of the bundle.

    Returns:
        What was found; `None` when there is nothing to plant.
    """
    return _Planting(node, module, fresh, bounds, seed).run()


def plant_in_states(node: Node, initial: Tensors, faults: Faults) -> None:
    """Count faults in the initial values of a node's states.

    The roll-out compares what a state is on every recorded tick with what was recorded: it finds
    another initial value if the first tick was recorded.

    Args:
        node: The node.
        initial: What its inputs start from, by port.
        faults: What became of the other faults; these are added.
    """
    for port, value in initial.items():
        faults.planted += 1
        first = node.samples[0] if node.samples else None
        begins = first is not None and first.tick == 0 and port in first.inputs
        if begins and first is not None and torch.equal(first.inputs[port], value):
            faults.found += 1
            continue
        what = f"another initial value of `{port}`"
        reason = "the first tick was not recorded with it"
        faults.missed.append({"what": what, "reason": reason})


class _Program:
    """A recorded program, run step by step."""

    def __init__(self, node: Node, module: fx.GraphModule) -> None:
        self._module, self._nodes = module, list(module.graph.nodes)
        self._ports = [use.port for use in node.slice.inputs]
        self._names = [port.name for port in node.outputs]
        #: What writes in place must be run from the start.
        self._whole = graph.writes(module)

    def run(self, inputs: Tensors, fault: Fault | None = None, known: Env | None = None) -> Env:
        """Return the values of all steps; with a fault, those of steps that it may change."""
        given = iter([inputs[port] for port in self._ports])
        env: Env = {}
        for node in self._nodes:
            if node.op == "placeholder":
                env[node] = self._own(next(given))
        changed: set[fx.Node] = set()
        for node in self._nodes:
            planted = fault is not None and node is fault.node
            reads = any(one in changed for one in node.all_input_nodes)
            if known is not None and not self._whole and not planted and not reads:
                env[node] = known[node]
                continue
            if planted and fault is not None:
                env[node] = self._wrong(fault, env)
                if known is not None and not _is_alike(env[node], known[node]):
                    raise NoFaultError
            elif node.op != "placeholder":
                env[node] = self._value(node, env)
            changed.add(node)
        return env

    def _own(self, value: torch.Tensor) -> torch.Tensor:
        """Return memory that a wrong program may write into where the right one does not."""
        return value.detach().clone() if self._whole else value

    def outputs(self, env: Env) -> Tensors:
        found = env[self._nodes[-1]]
        found = (found,) if isinstance(found, torch.Tensor) else found
        return dict(zip(self._names, found, strict=True))

    def _wrong(self, fault: Fault, env: Env) -> Any:
        other = getattr(fault.compute, "other", None)
        if other is not None:
            return env[other]
        args, kwargs = self._arguments(fault.node, env)
        return fault.compute(args, kwargs)

    @staticmethod
    def _arguments(node: fx.Node, env: Env) -> tuple[Any, Any]:
        return (
            fx.node.map_arg(node.args, env.__getitem__),
            fx.node.map_arg(node.kwargs, env.__getitem__),
        )

    def _value(self, node: fx.Node, env: Env) -> Any:
        if node.op == "get_attr":
            return self._own(getattr(self._module, str(node.target)))
        args, kwargs = self._arguments(node, env)
        if node.op == "output":
            return args[0]
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **kwargs)
        target: Any = node.target
        return target(*args, **kwargs)


def _is_alike(value: Any, right: Any) -> bool:
    """Say whether a wrong value can stand in the place of the right one.

    Every engine refuses other shapes, but for kernels that trust them: torch's LSTM writes past its
    memory when its input is narrower than its weights.
    """
    if isinstance(value, torch.Tensor) and isinstance(right, torch.Tensor):
        return value.shape == right.shape and value.dtype == right.dtype
    if isinstance(value, tuple | list) and isinstance(right, tuple | list):
        pairs = zip(value, right, strict=False)
        return len(value) == len(right) and all(_is_alike(*pair) for pair in pairs)
    return True


class _Planting:
    """Plants the faults of one node."""

    def __init__(
        self,
        node: Node,
        module: fx.GraphModule,
        fresh: Fresh,
        bounds: dict[str, Bound],
        seed: int,
    ) -> None:
        self._node, self._fresh, self._bounds = node, fresh, bounds
        self._program = _Program(node, module)
        self._steadiness = Steadiness(
            node, lambda inputs: self._program.outputs(self._program.run(inputs)), bounds
        )
        self._faults = all_of(module, draws.source_of(seed, node.name, "faults"))
        self._left: list[Fault] = []
        self._found = Faults()
        self._end = time.thread_time() + SECONDS

    def run(self) -> Faults | None:
        with torch.no_grad(), foreign.guarded(self._node):
            samples = [*self._node.samples[:MOST_SAMPLES], *self._fresh.samples]
            if not samples or not self._begin(samples[0]):
                return None
            for sample in samples[1:]:
                self._look(sample.inputs)
            self._draw_on()
            self._name_the_rest(samples)
        return self._found if self._found.planted or self._found.no_fault else None

    def _begin(self, sample: Sample) -> bool:
        """Plant as many faults as there is time for; those that cannot be run are none."""
        try:
            self._program.run(sample.inputs)  # kernels are chosen in the first run
            begin = time.thread_time()
            known = self._program.run(sample.inputs)
            seconds = time.thread_time() - begin
        except Exception:  # any: the samples were made by the code, not by the program
            return False
        most = MOST_FAULTS if seconds * MOST_FAULTS * 4 < SECONDS else MOST_FAULTS // 3
        if seconds * most * 4 > 4 * SECONDS:
            return False
        wanted, count = self._program.outputs(known), 0
        for fault in self._faults:
            if count == most or self._is_late():
                break
            outcome = self._outcome(fault, sample.inputs, known, wanted)
            if outcome is None:
                continue
            count += 1
            self._found.found += outcome
            self._left += [] if outcome else [fault]
        self._found.planted = count
        return count > 0

    def _is_late(self) -> bool:
        return time.thread_time() > self._end

    def _outcome(self, fault: Fault, inputs: Tensors, known: Env, wanted: Tensors) -> bool | None:
        """Say whether a sample finds a fault; `None` when it cannot be planted."""
        try:
            found = self._program.outputs(self._program.run(inputs, fault, known))
            for port in self._node.outputs:
                want, got = wanted[port.name], found[port.name]
                if want.shape != got.shape or want.dtype != got.dtype:
                    return None
                if differs(want, got, self._bounds[port.name], 1):
                    return True
        except NoFaultError:
            return None
        except Exception:  # any: wrong shapes and types, which every engine refuses
            return None
        return False

    def _known(self, inputs: Tensors) -> Env | None:
        try:
            return self._program.run(inputs)
        except Exception:  # any: values that the program does not take
            return None

    def _look(self, inputs: Tensors) -> Env | None:
        """Look for the faults that are left; return the values of the program if any was found."""
        if not self._left or self._is_late():
            return None
        known = self._known(inputs)
        if known is None:
            return None
        wanted, before = self._program.outputs(known), len(self._left)
        self._left = [
            fault for fault in self._left if not self._outcome(fault, inputs, known, wanted)
        ]
        self._found.found += before - len(self._left)
        return known if len(self._left) < before else None

    def _draw_on(self) -> None:
        """Try further draws; keep those that find something."""
        for many in self._further():
            for row in range(min(len(many), MOST_DRAWS)):
                if not self._left or self._found.drawn == MOST_KEPT or self._is_late():
                    return
                inputs, given = many.row(row)
                if is_corner(inputs, given):
                    continue  # what is kept is held against every engine
                left, found = self._left, self._found.found
                known = self._look(inputs)
                if known is None:
                    continue
                sample = Sample(inputs, self._outputs(known))
                if self._steadiness.holds(sample):
                    self._fresh.samples.append(sample)
                    self._found.drawn += 1
                else:  # nor does it find anything
                    self._left, self._found.found = left, found

    def _outputs(self, known: Env) -> Tensors:
        given = self._program.outputs(known)
        return {name: value.detach().clone() for name, value in given.items()}

    def _further(self) -> Iterator[Many]:
        if self._fresh.many is not None:
            yield self._fresh.many
        further: Callable[[], Iterator[Many]] | None = self._fresh.further
        if further is not None and self._left:
            yield from further()

    # Why a fault is missed

    def _name_the_rest(self, samples: list[Sample]) -> None:
        tried = [one.inputs for one in samples[:4]]
        if self._fresh.many is not None:
            count = len(self._fresh.many)
            tried += [self._fresh.many.row(row)[0] for row in range(0, count, max(1, count // 8))]
        known = [(inputs, env) for inputs in tried[:12] if (env := self._known(inputs))]
        for fault in self._left:
            reason, is_fault = self._reason(fault, known)
            entry = {"what": fault.what, "reason": reason}
            place = fault.node.meta.get(LOCATION) or _place_of_users(fault.node)
            entry |= {"place": short_place(place)} if place else {}
            if is_fault:
                self._found.missed.append(entry)
            else:
                self._found.no_fault.append(entry)
                self._found.planted -= 1

    def _reason(self, fault: Fault, tried: list[tuple[Tensors, Env]]) -> tuple[str, bool]:
        """Return why no sample shows a fault, and whether it is one."""
        ends: fx.Node | None = None
        largest, moved = 0.0, False
        for inputs, known in tried:
            try:
                wrong = self._program.run(inputs, fault, known)
            except Exception:  # any: values that the program does not take
                continue
            touched = [node for node in wrong if not _same(wrong[node], known[node])]
            moved = moved or fault.node in touched
            wanted, found = self._program.outputs(known), self._program.outputs(wrong)
            largest = max([largest, *(_distance(wanted[one], found[one]) for one in wanted)])
            ends = ends or _end_of(fault.node, touched)
        if largest > 0:
            return f"it changes outputs by at most {largest:.2g}, which the tolerance allows", False
        if not moved:
            called = name(fault.node)
            # A limit that even far draws do not reach, a parameter that does nothing: dead code.
            return f"`{called}` does the same with it on every input", called in _CHOOSING
        if ends is None:
            return "it reaches no output", False
        place = ends.meta.get(LOCATION, "")
        where = f"`{name(ends)}`" + (f" at {short_place(place)}" if place else "")
        return f"no sample lets it through {where}", name(ends) in _CHOOSING


def _place_of_users(node: fx.Node) -> str:
    return next((user.meta[LOCATION] for user in node.users if LOCATION in user.meta), "")


def _end_of(start: fx.Node, touched: list[fx.Node]) -> fx.Node | None:
    """Return the first step that takes what a fault changed and gives what it gave before."""
    changed = set(touched)
    for node in touched:
        for user in node.users:
            if user not in changed:
                return user
    return None


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.shape == right.shape and not _distance(left, right) > 0
    if isinstance(left, tuple | list) and isinstance(right, tuple | list):
        return len(left) == len(right) and all(map(_same, left, right))
    return True


def _distance(left: torch.Tensor, right: torch.Tensor) -> float:
    if left.numel() == 0 or left.shape != right.shape:
        return 0.0
    difference = (left.double() - right.double()).abs()
    return float(torch.where(difference.isnan(), 0.0, difference).max())
