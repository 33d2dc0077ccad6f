"""Whether a value that reached Python decides anything that the export computes.

The value is followed from the expression in which it left, through the function, to those who
called it, and through attributes to whoever reads them. It only observes when everything that it
reaches does: printing, logging, metrics that are never read back, checks that only raise.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from veracity.tracing import flow, observers, resolving, source
from veracity.tracing.flow import Decided, Outcome, Taint, Task
from veracity.tracing.reads import Region, region_of
from veracity.tracing.resolving import Names, names_in, names_of
from veracity.tracing.source import Place, Scope
from veracity.tracing.trail import Step

#: Ways in which a call may end early because of data.
RAISES = "may raise"
#: Memory went to a thread that is older than the session.
THREAD = "another thread"
#: An array that records is given to the user's code, which may give it to another library.
LIBRARY = "another library"
#: What a function of others gives, which may give something else next time.
ANSWER = "answer"
#: Functions that are walked for one value, at most.
MOST_WALKS = 200

#: Ways in which memory leaves, not a value.
MEMORY = frozenset(
    {
        *("its memory", "data_ptr", "untyped_storage", "storage", "__dlpack__"),
        *("another thread", "another library"),
    }
)
_FIRST = {
    "__bool__": "branch",
    "is_nonzero": "branch",
    "equal": "branch",
    "allclose": "branch",
    "__contains__": "branch",
    "__index__": "index",
    "slice bound": "size",
    "shape": "size",
    "size": "size",
    "numel": "size",
    "__len__": "size",
    ANSWER: "answer",
    **dict.fromkeys(MEMORY, "memory"),
}


@dataclass(frozen=True)
class Decision:
    """What a value decides.

    Attributes:
        what: The construct: `branch`, `loop`, `filter`, `index`, `size`, `exception`, `value`, or
            `unknown` where there is no source.
        text: The expression in which the value left.
        line: The line on which it is sure, in the file of the value.
        by: The function that is given the value, where that is what decides.
        only_in: Memory that the value is put into: it decides only if a program reads that.
    """

    what: str
    text: str = ""
    line: int = 0
    by: str = ""
    only_in: tuple[Region, ...] = ()


def judge(trail: tuple[Step, ...] | None, what: str) -> Decision | None:
    """Return what a value that left at a place decides; none when it is only observed."""
    if not trail:
        return None if what in (RAISES, LIBRARY) else Decision("unknown")
    place = _place(trail[0])
    if place is None:
        return None if what in (RAISES, LIBRARY) else Decision("unknown")
    text = source.text_of(place.file, _shown(place.nodes[0]))
    if what == THREAD:
        return None if _in_observer(trail) else Decision("memory", text, trail[0].line)
    first: Decided | None = None
    unread: list[Any] = []
    while True:
        try:
            search = _Search(trail, of_array=what == LIBRARY, unread=tuple(unread))
            search.climb(what)
            search.read_back()
        except Decided as found:
            if found.memory is not None and region_of(found.memory) is not None:
                first = first or found
                unread.append(found.memory)  # what else does it decide?
                continue
            return _decision(found, text)
        except Exception:  # any: what code looks like is up to the user, and doubt is told
            return None if what == LIBRARY else Decision("unknown", text)
        return None if first is None else _decision(first, text, unread)


def _decision(found: Decided, text: str, unread: Iterable[Any] = ()) -> Decision:
    line = found.line if found.by else found.taint.line
    regions = tuple(region for one in unread if (region := region_of(one)) is not None)
    return Decision(found.taint.what, text, line, found.by, regions)


def _in_observer(trail: tuple[Step, ...]) -> bool:
    """Say whether a logger or its like is on the way: it may keep a thread of its own."""
    for step in trail:
        place = _place(step)
        for node in place.nodes if place is not None else ():
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if observers.observes(names_of(step).callable_of(node.func), name):
                    return True
    return False


def _shown(node: ast.expr) -> ast.expr:
    """Return the part of an expression that names the value."""
    bare = isinstance(node, ast.Call) and not node.args and not node.keywords
    if isinstance(node, ast.Call) and bare and isinstance(node.func, ast.Attribute):
        return node.func.value
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.func, ast.Name):
        return node.args[0]
    return node.test if isinstance(node, ast.IfExp) else node


def _place(step: Step) -> Place | None:
    return source.place_of(step.code, step.instruction, step.line)


class _Search:
    """Follows one value."""

    def __init__(self, trail: tuple[Step, ...], *, of_array: bool, unread: tuple[Any, ...]) -> None:
        self._trail = trail
        self._of_array, self._unread = of_array, unread
        self._walks = 0
        self._has_logged = False
        #: Attributes and variables of modules that hold it, and how far they were looked at.
        self._kept: dict[str, Taint] = {}
        self._files: dict[str, Names] = {}
        #: Functions around the node: what they do is in no node.
        self._outside: set[Scope] = set()
        #: Where in the trail the functions inside of the node are.
        self._numbers: dict[Scope, int] = {}

    def climb(self, what: str) -> None:
        """Follow the value from function to function, outwards."""
        line = self._trail[0].line
        self._prepare()
        if what == RAISES:
            self._climb(0, None, Taint("exception", line))
        else:
            self._climb(0, Taint(_FIRST.get(what, "value"), line), None)

    def _prepare(self) -> None:
        """Tell functions inside of the node from those around it."""
        inside = True
        for number, step in enumerate(self._trail):
            place = _place(step)
            if place is None:
                continue
            if not inside:
                if place.scope not in self._numbers:
                    self._outside.add(place.scope)
                continue
            self._files.setdefault(place.file, names_of(step))
            self._numbers[place.scope] = number  # of a comprehension, the function around it
            inside = not (step.is_node or flow.has_marks(place.scope))

    def _climb(self, start: int, first: Taint | None, raised: Taint | None) -> None:
        """Follow what the function at `start` gets from the one that it calls, and so on."""
        previous: Scope | None = None
        for number, step in enumerate(self._trail[start:], start):
            if first is None and raised is None:
                return
            place = _place(step)
            if place is None:
                if first is not None and not self._of_array:
                    raise Decided(Taint("unknown", step.line), step.line)
                return
            if raised is not None and self._is_around(place):
                raised = self._in_driver(place, step, raised)
            if place.scope in self._outside:
                first = None  # the outputs of a node are nobody's business here
                continue
            if place.scope is previous and step.code is not self._trail[number - 1].code:
                continue  # a comprehension of the same function
            previous = place.scope
            outcome = self._walk(
                Task(
                    place.scope,
                    names_of(step),
                    sources={} if first is None else dict.fromkeys(place.nodes, first),
                    raising={} if raised is None else dict.fromkeys(place.nodes, raised),
                    is_node=self._is_node(place.scope),  # of a comprehension, that around it
                )
            )
            if first is not None and not outcome.met and not self._of_array:
                raise Decided(Taint("unknown", step.line), step.line)  # the walk passed it by
            first, raised = outcome.returned, outcome.raised
        if first is not None and not self._of_array:
            # To code that is not the user's, on another thread say, or farther than was kept.
            raise Decided(first, first.line)

    def _is_around(self, place: Place) -> bool:
        return place.scope in self._outside or flow.has_marks(place.scope)

    def _in_driver(self, place: Place, step: Step, raised: Taint) -> Taint | None:
        """Return what is left of an exception behind a function that marks nodes or runs them.

        Code that catches it goes on with a tick on which a bundle gives an output all the same. One
        that ends the loop over ticks ends the program.
        """
        found = flow.meets(place.nodes[0], names_of(step))
        if found is None or isinstance(found, flow.LOOPS):
            return raised if found is None else None
        raise Decided(raised, getattr(found, "lineno", raised.line))

    def _walk(self, task: Task) -> Outcome:
        self._walks += 1
        if self._walks > MOST_WALKS:
            raise Decided(Taint("unknown", self._trail[0].line), self._trail[0].line)
        task.of_array, task.unread = self._of_array, self._unread
        outcome = flow.walk(task)
        for key, taint in outcome.kept.items():
            self._kept.setdefault(key, taint)
        if outcome.logged is not None:
            self._into_handlers(outcome.logged, outcome.logs_because)
        return outcome

    def _into_handlers(self, taint: Taint, control: Taint | None) -> None:
        """Follow what is logged into handlers of the user's own: they may keep it."""
        if self._has_logged:
            return
        self._has_logged = True
        for emit in observers.log_handlers():
            found = Names({}, {}, {}, frozenset()).source_of(emit)
            if found is not None:
                scope, names, _ = found
                arguments = getattr(scope, "args", None)
                record = arguments.args[-1:] if isinstance(arguments, ast.arguments) else []
                self._files.setdefault(source.file_of(scope), names)
                with contextlib.suppress(Decided):  # whoever it sends records to only observes
                    tainted = {one.arg: taint for one in record}
                    self._walk(Task(scope, names, tainted=tainted, control=control))

    # What was kept

    def read_back(self) -> None:
        """Follow attributes that hold the value to whoever reads them."""
        done: set[str] = set()
        while fresh := [key for key in self._kept if key not in done]:
            done.update(fresh)
            for file, names in list(self._files.items()):
                tree = source.tree_of(file)
                for scope in source.scopes(tree) if tree is not None else ():
                    if (
                        scope not in self._outside
                        and _reads(scope, fresh)
                        and resolving.may_run(scope)
                    ):
                        self._from_kept(tree, scope, names, fresh)

    def _from_kept(
        self, tree: ast.Module | None, scope: Scope, names: Names, keys: list[str]
    ) -> None:
        assert tree is not None
        tainted = {key: self._kept[key] for key in keys}
        is_node = self._is_node(scope)
        outcome = self._walk(Task(scope, names_in(scope, names), tainted=tainted, is_node=is_node))
        if outcome.returned is not None and not isinstance(scope, ast.Module):
            self._from_callers(tree, scope, names, outcome.returned)

    def _is_node(self, scope: Scope) -> bool:
        """Say whether what a function returns are the outputs of a node."""
        return scope in self._numbers and self._trail[self._numbers[scope]].is_node

    def _from_callers(self, tree: ast.Module, scope: Scope, names: Names, taint: Taint) -> None:
        """Follow what a function returns: along the trail, and to calls of that name."""
        waiting, seen = [(scope, taint)], {scope}
        while waiting:
            scope, taint = waiting.pop()
            if scope in self._numbers:
                self._climb(self._numbers[scope] + 1, taint, None)
            name = getattr(scope, "name", "")
            called = scope in self._numbers
            for caller in source.scopes(tree):
                calls = _uses(caller, name)
                if caller in self._outside or not calls:
                    continue
                called = True
                task = Task(caller, names_in(caller, names), sources=dict.fromkeys(calls, taint))
                # A call that stands where no node is open is none of a node's.
                task.opens = False
                task.is_node = self._is_node(caller)
                outcome = self._walk(task)
                if outcome.returned is not None and caller not in seen:
                    seen.add(caller)
                    waiting.append((caller, outcome.returned))
            if not called and resolving.has_run(scope):
                raise Decided(taint, taint.line)  # to whoever called it: that is not known


def _reads(scope: Scope, keys: list[str]) -> bool:
    """Say whether a function reads one of the attributes or variables."""
    attributes = {key[1:] for key in keys if key[0] == "."}
    variables = {key[1:] for key in keys if key[0] == "@"}
    for node in source.own_nodes(scope):
        if isinstance(node, ast.Attribute) and node.attr in attributes:
            return True
        if isinstance(node, ast.Name) and node.id in variables:
            return True
    return False


def _uses(scope: Scope, name: str) -> list[ast.AST]:
    """Return the calls of a function in another one, and the reads of a property."""
    found: list[ast.AST] = []
    for node in source.own_nodes(scope):
        called = node.func if isinstance(node, ast.Call) else None
        last = getattr(called, "attr", getattr(called, "id", None))
        if last == name or (isinstance(node, ast.Attribute) and node.attr == name):
            found.append(node)
    return found
