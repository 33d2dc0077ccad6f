"""One pass of each node is watched: which functions run, and which calls may answer otherwise.

Looking at source finds functions only as far as their objects can be found. What ran is certain,
whoever called it: callbacks, plugins, coroutines, functions out of a table. Only the calls are
heard (`sys.setprofile`), so nothing that the code computes changes.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy
import torch

from veracity.tracing import findings, heap, purity, resolving, source
from veracity.tracing.decisions import ANSWER, judge
from veracity.tracing.heap import Root
from veracity.tracing.node import TracedNode
from veracity.tracing.operations import owner_of_file
from veracity.tracing.reached import Reached
from veracity.tracing.trail import Step, keep_step, keep_trail

if TYPE_CHECKING:
    from veracity.tracing.session import Session

#: The pass that is watched: the first one fills what is lazy.
WATCHED = 1
#: Functions and calls that are kept of one pass, at most.
MOST_FUNCTIONS, MOST_CALLS = 400, 200
#: Frames of libraries between a call of the user's and what it leads to.
MOST_BETWEEN = 12
_USER, _LIBRARY = 0, 1
#: Packages whose own calls are no answers to the user's code.
_OBSERVING = frozenset({"logging", "importlib", "warnings", "_frozen_importlib"})
#: What belongs to nobody's state: it is looked at by the tape, or never changes.
_NO_ROOTS = (torch.Tensor, numpy.ndarray, ModuleType, type, str, int, float, bool, type(None))


class Witness:
    """Watches passes, one thread at a time."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        resolving.forget_what_ran()
        self._open: set[str] = set()
        self._thread = 0
        self._before: Callable[..., Any] | None = None
        self._owners: dict[CodeType, int] = {}
        self._functions: dict[CodeType, Step] = {}
        self._calls: dict[tuple[CodeType, int], tuple[str, tuple[Step, ...]]] = {}
        #: The functions that ran at a place.
        self._ran: dict[tuple[CodeType, int], set[CodeType]] = {}
        #: Objects that functions of the node had when they were called, by function and name.
        self._roots: dict[tuple[CodeType, str], Any] = {}
        #: By node: what ran in it, and what its functions had.
        self.code: dict[str, list[Reached]] = {}
        self.roots: dict[str, list[Root]] = {}

    def begin(self, node: TracedNode) -> None:
        """Watch the pass that begins, if it is the one to watch."""
        if node.completed != WATCHED or node.name in self.code:
            return
        is_first = not self._open
        self._open.add(node.name)
        if is_first:
            self._thread = threading.get_ident()
            self._before = sys.getprofile()
            self._functions, self._calls, self._ran, self._roots = {}, {}, {}, {}
            sys.setprofile(self._heard)

    def drop(self, node: TracedNode) -> bool:
        """Stop watching a pass; say whether it was watched. Its next pass is, in its place."""
        was_open = node.name in self._open
        self._open.discard(node.name)
        if was_open and not self._open:
            self.stop()
        return was_open

    def end(self, node: TracedNode) -> None:
        """Stop watching a pass that came to its end, and judge what was seen."""
        if not self.drop(node):
            return
        known = {code: _reached(step) for code, step in self._functions.items()}
        found = {one[0]: one for one in known.values() if one is not None}
        self.code[node.name] = list(found.values())
        for scope in found:
            resolving.saw(scope)
        for (code, instruction), functions in self._ran.items():
            for function in functions:
                _tell_ran(code, instruction, known.get(function))
        self.roots[node.name] = [
            (f"{code.co_name}.{name}", heap.source_name(code, name), value)
            for (code, name), value in self._roots.items()
        ]
        self._session.python_states.judge_waiting(node)
        self._session.closing.judge_again(node)
        self._judge(node)

    def stop(self) -> None:
        """Hear nothing more in this thread; another one stops at the next call that it makes."""
        self._open.clear()
        if threading.get_ident() == self._thread and sys.getprofile() == self._heard:
            sys.setprofile(self._before)

    def forget(self) -> None:
        """Let go of everything that was seen: the session is over."""
        self._functions, self._calls, self._ran, self._roots = {}, {}, {}, {}
        self.code.clear()
        self.roots.clear()
        resolving.forget_what_ran()

    def _heard(self, frame: FrameType, event: str, argument: Any) -> None:
        """Hear a call. Nothing may be raised here: it would be raised in the user's code."""
        if not self._open:
            self.stop()
        if event not in ("call", "c_call"):
            return
        owner = self._owner(frame.f_code)
        try:
            if event == "call":
                if owner == _USER:
                    self._keep_function(frame)
                elif owner == _LIBRARY:
                    self._keep_library_call(frame)
            elif owner == _USER and purity.may_differ(argument):
                self._keep_call(frame, getattr(argument, "__name__", "a function"))
        except Exception as error:
            self._session.log.detail(f"a call could not be looked at: {error}")

    def _owner(self, code: CodeType) -> int:
        known = self._owners.get(code)
        if known is None:
            known = self._owners[code] = owner_of_file(code.co_filename)
        return known

    def _keep_function(self, frame: FrameType) -> None:
        code, caller = frame.f_code, frame.f_back
        if caller is not None and self._owner(caller.f_code) == _USER:
            self._ran.setdefault((caller.f_code, source.instruction_of(caller)), set()).add(code)
        known = code in self._functions or len(self._functions) >= MOST_FUNCTIONS
        if known or _is_for_a_log(frame):
            return
        self._functions[code] = keep_step(frame)
        for name, value in list(frame.f_locals.items()):
            if not isinstance(value, _NO_ROOTS) and not _holds_tensors(value):
                self._roots[code, name] = value

    def _keep_library_call(self, frame: FrameType) -> None:
        """Keep the call of the user's that leads to a function of a library."""
        module = str(frame.f_globals.get("__name__", ""))
        name = frame.f_code.co_name
        if not purity.module_may_differ(module, name):
            return
        caller = frame.f_back
        for _ in range(MOST_BETWEEN):
            if caller is None or self._owner(caller.f_code) not in (_USER, _LIBRARY):
                return
            if self._owner(caller.f_code) == _USER:
                self._keep_call(caller, f"{module}.{name}")
                return
            answers = caller.f_code.co_name not in purity.ANSWERING_NOTHING
            if not answers or _package(caller) in _OBSERVING:
                return
            caller = caller.f_back

    def _keep_call(self, frame: FrameType, name: str) -> None:
        key = (frame.f_code, source.instruction_of(frame))
        if key not in self._calls and len(self._calls) < MOST_CALLS:
            self._calls[key] = (name, keep_trail(frame))

    def _judge(self, node: TracedNode) -> None:
        """Tell about calls that may give something else next time, and decide something."""
        for name, trail in self._calls.values():
            decision = judge(trail, ANSWER)
            if decision is not None:
                step = trail[0]
                place = f"{step.code.co_filename}:{decision.line or step.line}"
                self._session.tell(
                    findings.unsettled_call(node.name, decision.text or name, place, decision.what)
                )


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_for_a_log(frame: FrameType) -> bool:
    """Say whether a function runs because something is logged: handlers are looked at elsewhere."""
    caller = frame.f_back
    for _ in range(MOST_BETWEEN):
        if caller is None:
            return False
        if _package(caller) in _OBSERVING:
            return True
        caller = caller.f_back
    return False


def _holds_tensors(value: Any) -> bool:
    """Say whether a container is one of values on their way, which are not kept alive."""
    entries = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list | tuple | set) and any(
        isinstance(one, torch.Tensor) for one in list(entries)[:64]
    )


def _reached(step: Step) -> Reached | None:
    scope = resolving._definition(step.code)
    if scope is None and step.code.co_name == "<module>":
        scope = source.tree_of(step.code.co_filename)
    return None if scope is None else (scope, resolving.names_of(step))


def _tell_ran(code: CodeType, instruction: int, function: Reached | None) -> None:
    """Let those who walk the source know what ran at a call."""
    place = source.place_of(code, instruction)
    called = place.nodes[0] if place is not None and len(place.nodes) == 1 else None
    if called is not None and function is not None:  # `board["x"]` runs a function as well
        resolving.saw_run(called.func if isinstance(called, ast.Call) else called, function)
