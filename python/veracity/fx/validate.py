"""Finds out whether a transformation keeps what it declares, on one model and these inputs.

Everything happens on copies. Each input is run twice through the original first (with other random
numbers), so that a model that disagrees with itself is not blamed on the transformation. Shapes are
those of the given inputs; give a list of inputs to try several.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from torch import nn
from torch.fx import GraphModule, symbolic_trace

from veracity.errors import Diagnostic, VeracityError, refuse
from veracity.fx import restoring, running
from veracity.fx.audit import Audit, NodeFacts, audit, described, facts, state_hash
from veracity.fx.inputs import cases
from veracity.fx.observed import Observed
from veracity.fx.transformation import ReversibleTransformation, Transformation
from veracity.fx.verdict import Compared, Validation

#: Codes that show something to be wrong; with others, nothing is known.
_DISPROVING = {"VER1310", "VER1311", "VER1312", "VER1313"}


def validate(
    transformation: Transformation,
    model: nn.Module,
    inputs: object,
    *,
    seed: int = 0,
    tolerance: float | None = None,
    require_marks: bool = True,
    local: bool = True,
) -> Validation:
    """Apply a transformation to a copy of a model and compare nodes, outputs and the way back.

    Args:
        transformation: Any transformation, of this package or written by you.
        model: A module, which is traced, or a graph module. It is not changed.
        inputs: A tensor, a tuple of arguments, a mapping of named arguments, or a list of such.
        seed: Decides the inputs that are drawn besides.
        tolerance: Largest absolute difference that is allowed. Without one it follows from the
            types of the values and from a run in float64.
        require_marks: Whether a change that is not marked disproves the transformation.
        local: Whether nodes that are not marked must keep their values too. This finds faults that
            the outputs hardly show.

    Returns:
        The verdict with everything it rests on.

    Raises:
        TransformError: The model cannot be traced, does not run on the given inputs, or the
            transformation cannot be signed.
    """
    subject = _Subject.of(model)
    trial = _Trial(transformation, subject, seed, tolerance)
    trial.observe_original(inputs)
    transformed = trial.apply()
    if transformed is not None:
        trial.look_at_nodes(transformed, require_marks)
        trial.compare(transformed, local and transformation.preserves_computation)
        trial.undo(transformed)
    return trial.conclude()


@dataclass(frozen=True)
class _Subject:
    """The copies that a trial works on.

    Attributes:
        model: Copy of the model; what it shares with `graph` shows whether that is respected.
        graph: What is transformed.
        original: What it is compared with; shares nothing.
    """

    model: nn.Module
    graph: GraphModule
    original: GraphModule

    @classmethod
    def of(cls, model: nn.Module) -> _Subject:
        """Copy and trace a model."""
        copied = copy.deepcopy(model)
        if isinstance(copied, GraphModule):
            graph = GraphModule(copied, copy.deepcopy(copied.graph))
        else:
            graph = _traced(copied)
        return cls(copied, graph, copy.deepcopy(graph))


def _traced(model: nn.Module) -> GraphModule:
    try:
        return symbolic_trace(model)
    except Exception as raised:
        raise refuse(
            "VER1308",
            f"{type(model).__name__} cannot be traced: {raised}",
            hints=("trace it yourself, with a tracer that knows its leaves, and give the graph",),
        ) from raised


@dataclass
class _Trial:
    """One validation while it goes on."""

    transformation: Transformation
    subject: _Subject
    seed: int
    tolerance: float | None
    observed: list[Observed] = field(default_factory=list)
    not_run: dict[str, str] = field(default_factory=dict)
    reasons: list[Diagnostic] = field(default_factory=list)
    found: Audit | None = None
    outputs: list[Compared] = field(default_factory=list)
    nodes: list[Compared] = field(default_factory=list)
    restored: list[Compared] = field(default_factory=list)
    before: dict[str, NodeFacts] = field(default_factory=dict)

    def observe_original(self, inputs: object) -> None:
        """Run the original on every input, twice, and the model that it stands for."""
        self.before = facts(self.subject.original)
        for case in cases(inputs, self.seed):
            first = running.run_nodes(self.subject.original, case, seed=self.seed)
            second = running.run_nodes(self.subject.original, case, seed=self.seed + 1)
            error = first.error or second.error
            if error and case.name.startswith("given"):
                raise refuse("VER1308", f"the model does not run on the given inputs: {error}")
            if error:
                self.not_run[case.name] = error
                continue
            observed = Observed(self.subject.original, case, first, self.tolerance)
            observed.control(second)
            self._tell_unstable(observed)
            self._check_trace(observed)
            self.observed.append(observed)

    def _tell_unstable(self, observed: Observed) -> None:
        hints = ("call `.eval()`, or take out what draws random numbers",)
        for name in observed.run.outputs:
            if name in observed.unstable:
                where = f"{observed.case.name}: {name}"
                self._tell("VER1109", "the original disagrees with itself", where, hints)

    def _check_trace(self, observed: Observed) -> None:
        """Say if the graph is not what the model computes."""
        eager = running.run(self.subject.model, observed.case, seed=self.seed)
        if eager.error:
            self._tell("VER1315", f"the model raises: {eager.error}", observed.case.name)
            return
        for row in observed.rows(eager.outputs, observed.run.outputs):
            if row.verdict == "disproved":
                where = f"{observed.case.name}: {row.name}"
                self._tell("VER1315", f"the traced graph {row.problem}", where)

    def apply(self) -> GraphModule | None:
        """Transform the graph, and see that nothing else was transformed."""
        shared = state_hash(self.subject.model), described(self.subject.model)
        given = self.subject.graph
        signature = self.transformation.signature_digest
        try:
            transformed = self.transformation(given)
        except VeracityError as refused:
            self.reasons += refused.diagnostics
            return None
        except Exception as raised:  # a transformation may be anybody's
            self._tell_not_applied(raised)
            return None
        if (state_hash(self.subject.model), described(self.subject.model)) != shared:
            hints = ("put a changed copy of a module into the graph module instead",)
            self._tell("VER1313", "modules of the traced model were changed", "", hints)
        if self.transformation.signature_digest != signature:
            hints = ("keep counters and caches out of `signature_parameters`",)
            self._tell("VER1302", "its signature changed while it was applied", "", hints)
        if transformed is not given and facts(given) != self.before:
            self._tell("VER1313", "a copy was returned, and what was given was changed too", "")
        return transformed

    def _tell_not_applied(self, raised: Exception) -> None:
        text = f"{type(raised).__name__}: {raised}".splitlines()[0]
        self._tell("VER1309", f"the transformation raised {text}", "")

    def look_at_nodes(self, transformed: GraphModule, require_marks: bool) -> None:
        """Hold the marks against what changed."""
        self.found = audit(self.transformation, self.before, transformed)
        if require_marks and self.found.unmarked:
            names = ", ".join(self.found.unmarked[:8])
            hints = ("call `mark_as_transformed` on every node that is added or changed",)
            self._tell("VER1311", f"no mark accounts for {names}", "", hints)
        if facts(transformed) == self.before:
            declined = tuple(f"{name}: {why}" for name, why in self.found.declined.items())
            self._tell("VER1317", "it changed nothing in this graph", "", declined[:3])

    def compare(self, transformed: GraphModule, local: bool) -> None:
        """Run the transformed graph on every input and compare."""
        marked = set(self.found.marked) if self.found is not None else set()
        for observed in self.observed:
            run = running.run(transformed, observed.case, seed=self.seed)
            if run.error:
                text = f"the transformed graph raises {run.error}"
                self._tell("VER1310", text, observed.case.name)
                continue
            self.outputs += observed.rows(observed.run.outputs, run.outputs)
            if local:
                seen = running.run_nodes(transformed, observed.case, seed=self.seed).nodes
                before = observed.run.nodes
                kept = [name for name in before if name in seen and name not in marked]
                self.nodes += observed.rows(
                    {name: before[name] for name in kept},
                    {name: seen[name] for name in kept},
                )
        self._judge_outputs()

    def _judge_outputs(self) -> None:
        if not self.transformation.preserves_computation:
            text = f"it does not claim to keep the outputs; they differ by {self._largest():.3g}"
            self._tell("VER1314", text, "")
            return
        wrong = [row for row in self.outputs if row.verdict == "disproved"]
        for row in wrong[:3]:
            self._tell("VER1310", row.problem, f"{row.case}: {row.name}")
        first = next((row for row in self.nodes if row.verdict == "disproved"), None)
        if first is not None:
            hints = ("mark it if that is meant, or give `local=False`",) if not wrong else ()
            text = f"the first node that changes: {first.problem}"
            self._tell("VER1310", text, f"{first.case}: {first.name}", hints)
        self._judge_coverage()

    def _judge_coverage(self) -> None:
        """Say which outputs were not compared at all, or only at zero."""
        compared = [row for row in self.outputs if row.verdict != "not_comparable"]
        valued = {row.name for row in compared if row.case != "not finite"}
        for name in dict.fromkeys(row.name for row in self.outputs):
            if name not in valued and not self._unstable(name):
                problem = next(row.problem for row in self.outputs if row.name == name)
                self._tell("VER0806", f"the output was not compared: {problem}", name)
        if valued and not any(row.scale for row in compared):
            self._tell("VER0806", "no output had a value other than zero", "")

    def _unstable(self, name: str) -> bool:
        return any(name in observed.unstable for observed in self.observed)

    def _largest(self) -> float:
        return max((row.largest for row in self.outputs), default=float("nan"))

    def undo(self, transformed: GraphModule) -> None:
        """Undo the transformation, if it can be, and compare with the original."""
        if not isinstance(self.transformation, ReversibleTransformation):
            return
        try:
            restored = self.transformation(transformed, reverse=True)
        except Exception as raised:  # a transformation may be anybody's
            text = f"{type(raised).__name__}: {raised}".splitlines()[0]
            self._tell("VER1312", f"undoing it raised {text}", "")
            return
        findings, self.restored = restoring.state(self.subject.original, restored)
        findings += restoring.structure(self.transformation, self.subject.original, restored)
        for finding in findings:
            self._tell("VER1312", finding.message, finding.place)
        for observed in self.observed:
            run = running.run(restored, observed.case, seed=self.seed)
            if run.error:
                self._tell("VER1312", f"the restored graph raises {run.error}", observed.case.name)
                continue
            self.restored += observed.rows(observed.run.outputs, run.outputs)
        for row in [row for row in self.restored if row.verdict == "disproved"][:3]:
            self._tell("VER1312", row.problem, f"{row.case}: {row.name}")

    def _tell(self, code: str, message: str, where: str, hints: tuple[str, ...] = ()) -> None:
        self.reasons.append(Diagnostic(code, "error", message, where, hints))

    def conclude(self) -> Validation:
        """Return the verdict."""
        reasons = sorted(self.reasons, key=lambda reason: reason.code not in _DISPROVING)
        verdict = "proved" if not reasons else "not_comparable"
        if any(reason.code in _DISPROVING for reason in reasons):
            verdict = "disproved"
        return Validation(
            verdict,
            tuple(reasons),
            type(self.transformation).__name__,
            self.transformation.signature_digest,
            self.transformation.preserves_computation,
            self.found,
            tuple(self.outputs),
            tuple(self.nodes),
            tuple(self.restored),
            tuple(observed.case.name for observed in self.observed),
            self.not_run,
            self.seed,
        )
