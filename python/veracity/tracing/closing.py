"""The end of a pass: what the tape found is judged, and the samples are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veracity.errors import Diagnostic, error_from_diagnostics
from veracity.tracing import carry, chance, decisions, findings, passes, replaying
from veracity.tracing.node import Pass, TracedNode
from veracity.tracing.nodes import Sample

if TYPE_CHECKING:
    from veracity.tracing.session import Session


#: Passes after which nobody asks whether an output is unchanged.
LONGEST_DELAY = 64


class Closing:
    """Ends passes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        #: What values that left for Python decide, by node, way and place.
        self.decided: dict[tuple[str, str, str], decisions.Decision] = {}
        self._known: dict[tuple[int, str], decisions.Decision | None] = {}
        #: What left on the passes before one was watched, by node.
        self._early: dict[str, list[tuple[tuple[str, str, int], Any]]] = {}

    def close(
        self,
        node: TracedNode,
        running: Pass,
        export_with: str | None,
        backend_params: dict[str, Any],
        location: str,
    ) -> None:
        """Finish a pass and judge it."""
        self._session.paths.end(node, light=running.light)
        self._session.witness.end(node)
        self._judge_separated(node, running, location)
        closed = self._session.recorder.close(running.execution)
        closed["escapes"] = self._escapes_that_decide(node, closed)
        node.open_pass = None
        self._keep_versions(node, running)
        self._tell_faults(location)
        self._judge_problems(node, running, closed, location)
        if not running.light:
            self._judge_glue(node, closed)
        if not node.finished:
            node.draws = chance.state() != running.chance
            self._finish_first(node, closed, export_with, backend_params)
            carry.first_pass(node, running)
        elif running.light:
            self._session.recorder.drop_slice(closed["slice"])
            passes.check_unobserved(self._session, node, running)
        else:
            if self._session.reads.wanted:
                self._session.reads.note(replaying.recorded(self._session, node, closed["slice"]))
            passes.compare(self._session, node, running, closed)
            escapes, node.state_escapes = node.state_escapes, []
            self._add_escapes(node, closed["escapes"])
            self._add_escapes(node, self._deciding(node, escapes))
        if node.completed >= self._session.options.max_cached_io and not carry.is_waiting(node):
            carry.let_go(self._session, node)
        self._keep_sample(node, running)
        node.completed += 1

    def _keep_versions(self, node: TracedNode, running: Pass) -> None:
        known, number, last = self._session.versions, node.number, node.completed
        for port, seen in running.versions.items():
            known[number, last, port] = seen
            known.pop((number, last - LONGEST_DELAY, port), None)

    def _finish_first(
        self,
        node: TracedNode,
        closed: dict[str, Any],
        export_with: str | None,
        backend_params: dict[str, Any],
    ) -> None:
        node.slice_number = node.first_slice = closed["slice"]
        program = replaying.slice_of(self._session, node)
        self._session.inputs.refuse_dropped(node, program)
        node.constant_versions = replaying.versions_of(program)
        node.watched = replaying.watched(self._session, program)
        names = node.input_names()
        node.used = {names[number] for number, _, _, used in closed["inputs"] if used}
        self._session.escapes[node.name] = list(closed["escapes"])
        excluded = node.name in self._session.options.non_traced
        node.export_with = None if excluded else export_with
        node.backend_params = {} if excluded else backend_params
        for name in names:
            if name not in node.used and name not in node.demoted:
                self._session.log.note(f"`{node.name}/{name}` has no influence and is left out")
        for name, mark in node.inputs.items():
            if mark.state and name not in node.states and name not in node.demoted:
                message = f"state {name!r} of `{node.name}` is never updated: it is an input"
                hints = ("call `update_state`",)
                self._session.tell(
                    Diagnostic("VER0910", "warning", message, mark.location, hints, node.name)
                )

    def _escapes_that_decide(
        self, node: TracedNode, closed: dict[str, Any]
    ) -> list[tuple[str, str, int]]:
        """Return values that left for Python, without those that it only printed or checked."""
        pairs = list(zip(closed["escapes"], closed["trails"], strict=True))
        if not node.finished:
            self._early[node.name] = pairs
        return self._deciding(node, pairs)

    def judge_again(self, node: TracedNode) -> None:
        """Judge what left on the first pass by what is known since one was watched."""
        pairs = self._early.pop(node.name, [])
        if pairs:
            self._known.clear()
            self.decided = {key: one for key, one in self.decided.items() if key[0] != node.name}
            self._session.escapes[node.name] = self._deciding(node, pairs)

    def _deciding(
        self, node: TracedNode, pairs: list[tuple[tuple[str, str, int], Any]]
    ) -> list[tuple[str, str, int]]:
        kept = []
        for escape, trail in pairs:
            what, place, _ = escape
            decision = self._judged(trail, what)
            if what not in decisions.MEMORY and what != decisions.RAISES:
                self._session.skips.left_inside(trail)
            if what == decisions.THREAD and self._session.python_states.hears_nothing(node):
                decision = None
            if decision is None:
                if what != decisions.RAISES:
                    self._session.log.note(f"`{node.name}`: a value is only looked at, at {place}")
            elif what == decisions.RAISES:
                self._session.tell(findings.caught(node.name, place, decision))
            else:
                self.decided.setdefault((node.name, what, place), decision)
                self._session.reads.wanted = self._session.reads.wanted or bool(decision.only_in)
                kept.append(escape)
        return kept

    def _judged(self, trail: Any, what: str) -> decisions.Decision | None:
        key = (id(trail), what)
        if key not in self._known:
            # The recorder keeps trails as long as the session, so that ids are not used again.
            self._known[key] = decisions.judge(trail, what)
        return self._known[key]

    def _add_escapes(self, node: TracedNode, escapes: list[tuple[str, str, int]]) -> None:
        """Keep what left on a later pass for the first time."""
        known = {escape[:2] for escape in self._session.escapes[node.name]}
        fresh = [escape for escape in escapes if escape[:2] not in known]
        self._session.escapes[node.name] += fresh

    def _keep_sample(self, node: TracedNode, running: Pass) -> None:
        number = node.number
        wanted = len(node.samples) < self._session.options.max_cached_io or (
            node.is_small and carry.is_waiting(node)
        )
        if wanted and self._is_whole(node, running):
            node.samples.append(Sample(running.inputs, running.outputs, running.tick))
        # The next consumer of an unchanged output shares the sample.
        self._session.published = {
            key: value for key, value in self._session.published.items() if key[0] != number
        }
        for name, mark in node.result_marks().items():
            if name in running.outputs and len(node.samples) <= self._session.options.max_cached_io:
                self._session.published[number, node.completed, mark.number] = running.outputs[name]

    @staticmethod
    def _is_whole(node: TracedNode, running: Pass) -> bool:
        """Say whether every value of a pass is known."""
        outputs = node.result_marks().keys() <= running.outputs.keys()
        return outputs and (node.used | node.states.keys()) <= running.inputs.keys()

    def _tell_faults(self, location: str) -> None:
        for code, message, place in self._session.recorder.take_faults():
            severity = "error" if code == "VER0920" else "warning"
            self._session.tell(Diagnostic(code, severity, message, place or location, ()))

    def _judge_problems(
        self, node: TracedNode, running: Pass, closed: dict[str, Any], location: str
    ) -> None:
        names = list(self._session.nodes)
        fatal: list[Diagnostic] = []
        for what, place, other, ports in closed["problems"]:
            labels = node.input_names()
            if what == "untraced":
                by_number = {mark.number: name for name, mark in node.result_marks().items()}
                port_names = [by_number.get(port, "?") for port in ports]
                if port_names[0] in running.older:
                    continue  # told in the end, if no value of the node arrives there
            else:
                port_names = [labels[port] for port in ports]
            other_name = None if other is None else names[other]
            if what == "unseen" and closed["escapes"]:
                # The escape is told; this is where it came back.
                self._session.log.note(f"`{node.name}` uses a tensor from out of sight at {place}")
                continue
            found = findings.problem(what, place or location, node.name, other_name, port_names)
            if findings.is_fatal(what):
                fatal.append(found)
            else:
                self._session.tell(found)
        if fatal:
            raise error_from_diagnostics(fatal)

    def _judge_separated(self, node: TracedNode, running: Pass, location: str) -> None:
        """A write into one of two inputs that share memory shows in both only without a session."""
        recorder = self._session.recorder
        message = f"inputs of `{node.name}` share memory, and one of them is written"
        hints = ("give the node copies: `tensor.clone()`",)
        for tensor, before in running.separated:
            if recorder.write_count(tensor) != before:
                place = recorder.written_at(tensor) or location
                self._session.tell(
                    Diagnostic("VER0923", "warning", message, place, hints, node.name)
                )

    def _judge_glue(self, node: TracedNode, closed: dict[str, Any]) -> None:
        """On the first pass glue lies within a tick; later it may be the world's answer."""
        names = node.input_names()
        for number, origin, glue, _used in closed["inputs"]:
            if glue is None or origin is not None:
                continue
            if node.finished:
                self._session.tell(findings.comes_back(node.name, names[number], glue))
                continue
            refused = self._session.options.glue == "error"
            self._session.tell(findings.loose_glue(node.name, names[number], glue, refused=refused))
