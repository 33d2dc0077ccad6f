"""Python values that change from pass to pass: counters, phases, clocks, iterators, modes.

They are no memory of tensors, so that the tape does not see them, and an export holds what they
decided while it was recorded. At the beginning of each pass the plain values that the code of the
node can reach are written down: attributes of its objects, variables around it, entries of lists
and dicts. One that changed is followed through the source to what it decides. Counters that are
only printed decide nothing.
"""

from __future__ import annotations

import ast
import collections
import functools
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

import torch

from veracity.errors import Diagnostic
from veracity.tracing import (
    carry,
    driver,
    findings,
    flow,
    heap,
    older_threads,
    purity,
    reached,
    shared_memory,
    source,
)
from veracity.tracing.finalizers import Finalizers
from veracity.tracing.flow import Decided, Taint, Task
from veracity.tracing.heap import Walk
from veracity.tracing.node import TracedNode
from veracity.tracing.operations import owner_of_file
from veracity.tracing.reached import Reached
from veracity.tracing.reads import Region, region_of
from veracity.tracing.resolving import NO_OBJECT, Names, may_run, names_of, ran_at
from veracity.tracing.trail import keep_trail, user_frame

if TYPE_CHECKING:
    from veracity.tracing.session import Session

_USER = 0
#: What is no value of Python's: the tape follows memory, and entries are looked at one by one.
_NOT_ASSIGNED = (torch.Tensor, list, tuple, dict, set, collections.deque)


class PythonStates:
    """The plain values of all nodes."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        self._first: dict[str, heap.Values] = {}
        self._roots: dict[str, list[heap.Root]] = {}
        #: The variables of the running function, or the function, that a pass began with.
        self._given: dict[str, list[heap.Root]] = {}
        #: What variables held when a pass began, by node and name.
        self._held: dict[str, dict[str, heap.Root]] = {}
        self._code: dict[str, list[Reached]] = {}
        self._judged: set[tuple[str, str]] = set()
        self._finalizers = Finalizers()
        #: Values that changed before a pass was watched, by node and key.
        self._waiting: dict[str, dict[str, str]] = {}
        self._is_over = False
        #: Nodes whose source was searched for calls that may give something else next time.
        self._asked: set[str] = set()
        #: Nodes that decide by what other threads assign.
        self._heard: set[str] = set()
        #: What flags became, and containers grew to, with the first pass.
        self._settled: dict[tuple[str, tuple[str, str]], Any] = {}
        #: What the code around nodes may assign.
        self._drivers: dict[str, driver.Driver] = {}
        #: The classes of objects, by the paths to them.
        self._kinds: dict[str, dict[str, type]] = {}
        #: The names of tensors, by the paths to them.
        self._tensors: dict[str, dict[str, str]] = {}
        #: Findings that matter if a program reads some memory.
        self._if_read: list[tuple[Region, Diagnostic]] = []

    def look_at_frame(self, node: TracedNode) -> None:
        """Look at the function that is running, which marks the inputs of a node."""
        frame = user_frame()
        if frame is None or not self._wanted(node):
            return
        if node.name not in self._code:
            step = keep_trail(frame)[0]
            self._code[node.name] = reached.from_frame(frame.f_code, names_of(step))
        roots: list[tuple[str, str, Any]] = [
            (name, f"={name}", value) for name, value in list(frame.f_locals.items())
        ]
        self._look(node, roots)

    def look_at_function(
        self, node: TracedNode, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        """Look at a function that is a node."""
        if not self._wanted(node):
            return
        first = args[0] if args and not isinstance(args[0], torch.Tensor) else None
        if node.name not in self._code:
            known = {} if first is None else {"first": first}
            self._code[node.name] = reached.from_function(function, **known)
        roots = [] if first is None else [("self", "=self", first)]
        self._look(node, [*roots, ("", "=", function)])

    def _wanted(self, node: TracedNode) -> bool:
        few = node.completed <= self._session.options.max_cached_io
        return few or carry.is_waiting(node)

    def _look(self, node: TracedNode, roots: list[tuple[str, str, Any]]) -> None:
        code = self._with_what_ran(node)
        frame = user_frame()
        if node.completed == 1 and frame is not None:  # by now there is a loop
            begins_another = functools.partial(self._session.skips.begins_another, node)
            own = [scope for scope, _ in code]
            around = driver.around(frame, own, begins_another)
            self._drivers |= {} if around is None else {node.name: around}
        self._tell_threads(node, code)
        self._keep_for_last(node, roots)
        shared = _globals(code, _own_variables(code) if self._is_over else frozenset())
        roots = [*roots, *shared, *self._session.witness.roots.get(node.name, ())]
        names, variables = _names_read(code), _variables_read(code)
        roots = [one for one in roots if _is_read(one[0], variables)]
        self._roots[node.name] = roots
        walk = Walk(roots, names=names)
        seen = list(walk)
        if node.name in self._drivers:
            self._kinds[node.name] = {path: type(value) for path, _, value in seen}
            self._tensors[node.name] = {
                path: key
                for path, key, one in seen
                if _is_tensor(one) and (key[0] != "=" or path == key[1:])  # no dict of inputs
            }
        self._session.array_states.look(node, seen)
        self._session.queues.look(node, seen)
        followed = self._session.array_states.paths(node)
        found = dict(heap.compared(seen, followed=followed))
        self._tell_finalizers(node, seen)
        if walk.was_cut and node.name in self._session.witness.code:
            self._session.tell(findings.too_many_objects(node.name, node.location))
        first = self._first.get(node.name)
        if first is None:
            self._first[node.name] = found
            return
        for (path, key), value in found.items():
            known = first.setdefault((path, key), value)
            before = self._settled.get((node.name, (path, key)), known)
            if not heap.same(before, value) and not self._settles(node, (path, key), known, value):
                self._changed(node, code, path, key)

    def _keep_for_last(self, node: TracedNode, roots: list[tuple[str, str, Any]]) -> None:
        """Keep what is looked at when no function is running any more, without tensors.

        A variable that holds another object on every pass is made anew by the function that
        begins the pass: what becomes of it afterwards is no state.
        """
        held = {name: (name, key, value) for name, key, value in roots if not _is_tensor(value)}
        before = self._held.get(node.name)
        self._given[node.name] = [
            root
            for name, root in held.items()
            if before is None or (name in before and before[name][2] is root[2])
        ]
        self._held[node.name] = held

    def _with_what_ran(self, node: TracedNode) -> list[Reached]:
        """Return the code of a node: what its source shows, and whatever else ran."""
        # What ran knows its objects: it is better than what the source shows of the same function.
        ran = self._session.witness.code.get(node.name)
        found = list((dict(self._code[node.name]) | dict(ran or ())).items())
        # What stands at the top of a file mentions all of it, and little of that is the node's.
        if ran is not None and found and isinstance(found[0][0], ast.Module):
            found = [one for number, one in enumerate(found) if not number or may_run(one[0])]
        self._code[node.name] = found
        return found

    def judge_waiting(self, node: TracedNode) -> None:
        """Judge what could not be judged before it was known what runs."""
        if node.name not in self._code:
            return
        code = self._with_what_ran(node)
        for key, path in self._waiting.pop(node.name, {}).items():
            self._changed(node, code, path, key)
        if node.name not in self._asked:
            self._asked.add(node.name)
            self._tell_unsettled(node, code)
            self._tell_assigned(node, code)

    def _tell_assigned(self, node: TracedNode, code: list[Reached]) -> None:
        """Tell about values that the code around a node may change one day."""
        around, kinds = self._drivers.get(node.name), self._kinds.pop(node.name, {})
        if around is None:
            return
        followed = self._session.array_states.paths(node)
        readers = [scope for scope, _ in code]
        for (path, key), value in self._first.get(node.name, {}).items():
            way, _, rest = path.rpartition(key) if key.startswith(".") else ("", "", path)
            is_attribute = path != rest and (not rest or rest.startswith("["))
            is_object = isinstance(value, heap.Mark)
            is_known = is_object and (issubclass(value.kind, _NOT_ASSIGNED) or path in followed)
            if is_known or (is_object and not is_attribute) or (node.name, key) in self._judged:
                continue
            owner = kinds.get(way) if is_attribute else None
            store = around.change_of(key, owner, readers)
            found = None if store is None else _decides(code, key)
            if found is not None and store is not None:
                self._judged.add((node.name, key))
                told = findings.assigned_around(node.name, path, store.location, found.taint.what)
                self._session.tell(told)
        inside = [one for one in code if any(one[0] is scope for scope in around.inside)]
        for path, key in self._tensors.pop(node.name, {}).items():
            is_judged = (node.name, key) in self._judged or around.may_be_marked(key)
            if not is_judged and _decides(inside, key) is not None:
                owner = kinds.get(path.rpartition(key)[0]) if key.startswith(".") else None
                self._tell_written(node, around, (path, key, owner), readers)
        networks = {path: kind for path, kind in kinds.items() if issubclass(kind, torch.nn.Module)}
        changed = around.change_of_network(networks)
        if changed is not None:
            self._session.tell(findings.changed_network(node.name, changed.location))

    def _tell_written(
        self,
        node: TracedNode,
        around: driver.Driver,
        tensor: tuple[str, str, type | None],
        readers: list[source.Scope],
    ) -> None:
        """Tell about a tensor that the code around a node may write one day."""
        path, key, owner = tensor
        found = around.change_of_tensor(key, owner, readers)
        if found is None:
            return
        store, is_state = found
        told = (
            findings.moved_around(node.name, path, store.location)
            if is_state
            else findings.assigned_around(node.name, path, store.location, "value")
        )
        self._judged.add((node.name, key))
        self._session.tell(told)

    def change_of(self, node: TracedNode, key: str, owner: type | None) -> str | None:
        """Return the line on which the code around a node may assign something, once."""
        around = self._drivers.get(node.name)
        store = None if around is None else around.change_of(key, owner)
        if store is None or (node.name, key) in self._judged:
            return None
        self._judged.add((node.name, key))
        return store.location

    def decides(self, node: TracedNode, key: str) -> bool:
        """Say whether something that the source has this name for decides anything in a node."""
        code = self._code.get(node.name)
        return code is not None and _decides(code, key) is not None

    def judge_parting(self, node: TracedNode, code: CodeType, instruction: int) -> None:
        """Tell about a place at which a pass that was left alone took another way."""
        place = source.place_of(code, instruction)
        known = self._code.get(node.name, [])
        number = next((i for i, one in enumerate(known) if place and one[0] is place.scope), None)
        if place is None or number is None:
            return
        line = place.nodes[0].lineno
        task = Task(
            *known[number],
            sources=dict.fromkeys(place.nodes, Taint("branch", line)),
            opens=False,
            is_node=_is_node(known, number),
        )
        if _walk_all(known, [task]) is not None:
            text = source.text_of(place.file, place.nodes[0])
            self._session.tell(findings.recording_shows(node.name, text, f"{place.file}:{line}"))

    def look_at_last(self) -> None:
        """Look once more after the last pass, at what can still be reached."""
        self._is_over = True
        for node in self._session.nodes.values():
            self.judge_waiting(node)
            if node.name in self._code and node.name in self._session.witness.roots:
                self._look(node, self._given.get(node.name, []))

    def forget(self) -> None:
        """Let go of everything that was looked at: the session is over."""
        self._first.clear()
        self._roots.clear()
        self._given.clear()
        self._held.clear()
        self._code.clear()
        self._settled.clear()
        self._drivers.clear()

    def shared_memory(self, node: TracedNode) -> list[Diagnostic]:
        """Return what is known of constants whose memory is written without torch."""
        if node.name not in self._code or node.first_slice is None:
            return []
        code = self._with_what_ran(node)
        walk = Walk(self._roots.get(node.name, []), names=_names_read(code))
        return shared_memory.written_elsewhere(self._session, node, code, walk)

    def _settles(self, node: TracedNode, name: tuple[str, str], first: Any, value: Any) -> bool:
        """Say whether a value changed once, after the first pass, as something that is set up does.

        Two recorded passes had both values of it, and their programs are compared call by call.
        """
        marked = isinstance(first, heap.Mark)
        is_made = type(first) is not type(value) or (marked and first.kind is not value.kind)
        is_shape = marked and issubclass(first.kind, torch.Tensor)  # of another recording, perhaps
        is_set = type(first) is bool or is_made or is_shape or (marked and first.grows)
        if is_set and node.completed == 1:
            self._settled[node.name, name] = value
        return is_set and node.completed == 1

    def _changed(self, node: TracedNode, code: list[Reached], path: str, key: str) -> None:
        if (node.name, key) in self._judged:
            return
        if node.name not in self._session.witness.code and not self._is_over:
            self._waiting.setdefault(node.name, {}).setdefault(key, path)
            return
        self._judged.add((node.name, key))
        unread: list[Any] = []
        waiting: list[tuple[Region, Diagnostic]] = []
        while (found := _decides(code, key, tuple(unread))) is not None:
            place = f"{_file(code, found)}:{found.line}"
            told = findings.changing_value(node.name, path, place, found.taint.what)
            region = region_of(found.memory)
            if region is None:
                self._session.tell(told)
                return
            unread.append(found.memory)  # what else does it decide?
            waiting.append((region, told))
        self._if_read += waiting
        self._session.reads.wanted = self._session.reads.wanted or bool(waiting)

    def tell_read(self) -> None:
        """Tell about values that only pick what is written where, if a program reads it there."""
        for region, told in self._if_read:
            if self._session.reads.may_read(region):
                self._session.tell(told)

    def _tell_finalizers(self, node: TracedNode, seen: list[heap.Root]) -> None:
        """Tell about objects of the node that change when another object dies."""
        given = self._finalizers.given_among(value for _, _, value in seen)
        for path, _, value in seen if given else ():
            if id(value) in given:
                self._session.tell(findings.finalized(node.name, path, node.location))

    def _tell_threads(self, node: TracedNode, code: list[Reached]) -> None:
        """Tell about values that another thread assigns and the node decides by."""
        if threading.active_count() == 1 or node.completed > 1:
            return
        for told in older_threads.told_by_others():
            if (node.name, told.key) in self._judged or not older_threads.reads(code, told):
                continue
            self._judged.add((node.name, told.key))
            found = _decides(code, told.key)
            if found is not None:
                self._heard.add(node.name)
                place = f"{_file(code, found)}:{found.line}"
                name = told.key.lstrip(".@")
                self._session.tell(findings.told_by_thread(node.name, name, place))

    def hears_nothing(self, node: TracedNode) -> bool:
        """Say whether no other thread can tell a node anything that it decides by."""
        return (
            node.name in self._code and node.name not in self._heard and older_threads.are_known()
        )

    def _tell_unsettled(self, node: TracedNode, code: list[Reached]) -> None:
        """Tell about calls in the source that may give something else next time."""
        for number, (scope, names) in enumerate(code):
            if number and not may_run(scope):
                continue
            calls = [one for one in source.own_nodes(scope) if _may_differ(one, names)]
            sources: dict[ast.AST, Taint] = {
                call: Taint("answer", getattr(call, "lineno", 0)) for call in calls
            }
            task = Task(scope, names, sources=sources, opens=False)
            found = _walk_all(code, [task]) if calls else None
            if found is not None:
                file = _file(code, found)
                text = source.text_of(file, calls[0])
                place = f"{file}:{found.line}"
                told = findings.unsettled_call(node.name, text, place, found.taint.what)
                self._session.tell(told)
            for line in _arming(scope):
                place = f"{source.file_of(scope)}:{line}"
                self._session.tell(findings.armed_errors(node.name, place))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _own_variables(code: list[Reached]) -> frozenset[tuple[int, str]]:
    """Return the variables that only the top of a module assigns, where that is what marks inputs.

    Like those of a running function they are what they were when a pass began: afterwards a loop
    over several nodes has moved on.
    """
    if not code or not isinstance(code[0][0], ast.Module):
        return frozenset()
    top, names = code[0]
    own = {
        one.id
        for one in source.own_nodes(top)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    for scope, _ in code[1:]:
        for one in source.own_nodes(scope):
            own.difference_update(one.names if isinstance(one, ast.Global) else ())
    return frozenset((id(names._module), name) for name in own)


def _globals(
    code: list[Reached], left_out: frozenset[tuple[int, str]]
) -> Iterator[tuple[str, str, Any]]:
    """Give the variables of modules that the code names."""
    seen = set(left_out)
    for scope, names in code:
        for node in source.own_nodes(scope):
            if isinstance(node, ast.Name) and (id(names._module), node.id) not in seen:
                if node.id in names.own:
                    continue
                seen.add((id(names._module), node.id))
                value = names._module.get(node.id, NO_OBJECT)
                library = isinstance(value, ModuleType) and heap.is_library(value)
                if value is not NO_OBJECT and not library:
                    yield node.id, f"@{node.id}", value
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name
                    if alias.name in sys.modules:
                        yield name, f"@{name}", sys.modules[alias.name]


def _may_differ(node: ast.AST, names: Names) -> bool:
    """Say whether a call may give something else next time: a clock, a file, a random number."""
    if isinstance(node, ast.Attribute):
        return node.attr == "_version"  # torch counts writes
    if not isinstance(node, ast.Call):
        return False
    called = names.callable_of(node.func)
    if getattr(node.func, "attr", "") == "catch_warnings":
        return any(one.arg == "record" for one in node.keywords)
    if called is None:  # methods of `datetime`, mostly
        return getattr(node.func, "attr", "") in ("now", "utcnow", "today")
    function = purity.replaced(getattr(called, "function", called))
    if isinstance(function, FunctionType):
        is_users = owner_of_file(function.__code__.co_filename) == _USER
        return not is_users and purity.may_differ(function)
    is_bound = isinstance(function, MethodType) and not isinstance(function.__func__, FunctionType)
    return (is_bound or _is_compiled(function)) and purity.may_differ(function)


def _is_compiled(function: Any) -> bool:
    """Say whether a function was compiled, by whatever binds it: Cython and nanobind have types."""
    if isinstance(function, BuiltinFunctionType | MethodDescriptorType):
        return True
    kind = type(function)
    return kind.__name__.startswith("nb_") or "cython" in kind.__name__


#: What finds attributes by names that are no part of the source.
_BY_ANY_NAME = frozenset({"getattr", "setattr", "vars", "attrgetter", "__dict__"})
_GETTING = frozenset({"getattr", "vars", "attrgetter", "__getattribute__", "__getattr__"})


def _is_read(name: str, names: frozenset[str] | None) -> bool:
    """Say whether code reads a variable; what has no name of its own is looked at."""
    return names is None or name in names or not name.isidentifier()


def _names_read(code: list[Reached]) -> frozenset[str] | None:
    """Return every name and attribute that code mentions; none where it may ask for any."""
    names: set[str] = set()
    for scope, _ in code:
        names |= _names_in(scope)
    return None if names & _BY_ANY_NAME else frozenset(names)


#: What finds variables by names that are no part of the source.
_ANY_VARIABLE = frozenset({"globals", "locals", "exec", "eval"})


def _variables_read(code: list[Reached]) -> frozenset[str] | None:
    """Return every variable that code mentions; none where it may ask for any."""
    names: set[str] = set()
    for scope, _ in code:
        names |= _names_in(scope)
    return None if names & _ANY_VARIABLE else frozenset(names)


@functools.lru_cache(maxsize=1024)
def _names_in(scope: source.Scope) -> frozenset[str]:
    inside = list(source.own_nodes(scope))
    names = {one.id for one in inside if isinstance(one, ast.Name)}
    names |= {one.attr for one in inside if isinstance(one, ast.Attribute)}
    names |= {one.arg for one in ast.walk(scope) if isinstance(one, ast.arg)}
    return frozenset(names)


def _arming(scope: source.Scope) -> Iterator[int]:
    """Give the lines on which NumPy's errors or Python's warnings become exceptions or calls."""
    for node in source.own_nodes(scope):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = [*node.args, *(one.value for one in node.keywords)]
        values = {one.value for one in given if isinstance(one, ast.Constant)}
        if (name in ("errstate", "seterr") and values & {"raise", "call", "log"}) or (
            name in ("simplefilter", "filterwarnings") and "error" in values
        ):
            yield node.lineno


def _decides(code: list[Reached], key: str, unread: tuple[Any, ...] = ()) -> Decided | None:
    """Return what a value decides that the source has a name for."""
    if key.startswith("="):
        scope, names = code[0] if code else (None, None)
        if scope is None or names is None:
            return None
        sources: dict[ast.AST, Taint] = {
            one: Taint("value", one.lineno) for one in _loads(scope, {key[1:]})
        }
        return _walk_all(code, [Task(scope, names, sources=sources, opens=False)], unread)
    return _walk_all(code, list(_reading(code, {key: Taint("value", 0)})), unread)


def _reading(code: list[Reached], keys: dict[str, Taint]) -> Iterator[Task]:
    unnamed = _unnamed(code, keys)
    for number, (scope, names) in enumerate(code):
        used = {key: Taint("value", line) for key, line in _reads(scope, names) if key in keys}
        sources: dict[ast.AST, Taint] = {
            node: Taint("value", node.lineno)
            for node in source.own_nodes(scope)
            if isinstance(node, ast.expr) and _reads_by_text(node, keys, any_name=unnamed)
        }
        if _is_generator(scope):  # it goes on in the middle, with what its variables hold by then
            own = {key[1:] for key in used if key.startswith("~")}
            sources |= {one: Taint("value", one.lineno) for one in _loads(scope, own)}
        if used or sources:
            tainted = used | {key[1:]: one for key, one in used.items() if key[0] in "@~"}
            is_node = _is_node(code, number)
            yield Task(scope, names, tainted=tainted, sources=sources, opens=False, is_node=is_node)


def _loads(scope: source.Scope, names: Collection[str]) -> list[ast.Name]:
    """Return where a function reads variables."""
    return [
        node
        for node in source.own_nodes(scope)
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
    ]


def _is_generator(scope: source.Scope) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in source.own_nodes(scope))


def _unnamed(code: list[Reached], keys: dict[str, Taint]) -> bool:
    """Say whether some attribute has a name that the source never mentions."""
    attributes = {key[1:] for key in keys if key.startswith(".")}
    return bool(attributes) and not all(
        any(name in _names_in(scope) for scope, _ in code) for name in attributes
    )


def _reads_by_text(node: ast.expr, keys: dict[str, Taint], *, any_name: bool) -> bool:
    """Say whether an expression reads attributes by names that are values: `getattr(x, name)`."""
    if isinstance(node, ast.Attribute):
        return any_name and node.attr == "__dict__"
    called = node.func if isinstance(node, ast.Call) else None
    name = getattr(called, "attr", getattr(called, "id", ""))
    if not isinstance(node, ast.Call) or name not in _GETTING:
        return False
    given = [one.value for one in node.args if isinstance(one, ast.Constant)]
    texts = [one for one in given if isinstance(one, str)]
    return any(f".{one}" in keys for one in texts) if texts else any_name


def _is_node(code: list[Reached], number: int) -> bool:
    """Say whether what a function returns are outputs: the first one, unless it marks them."""
    return number == 0 and not flow.has_marks(code[0][0])


def _reads(scope: source.Scope, names: Names) -> Iterator[tuple[str, int]]:
    """Give the attributes and variables that a function mentions, by the names of the walk."""
    for node in source.own_nodes(scope):
        if isinstance(node, ast.Attribute):
            yield f".{node.attr}", node.lineno
        elif isinstance(node, ast.Name):
            yield f"{'~' if node.id in names.own else '@'}{node.id}", node.lineno


def _walk_all(
    code: list[Reached], waiting: list[Task], unread: tuple[Any, ...] = ()
) -> Decided | None:
    """Walk functions, and those that read or get what they keep and return."""
    known: set[str] = set()
    returned: set[ast.AST] = set()
    try:
        while waiting:
            task = waiting.pop()
            task.unread = unread
            outcome = flow.walk(task)
            fresh = {key: one for key, one in outcome.kept.items() if key not in known}
            known.update(fresh)
            waiting += _reading(code, fresh)
            if outcome.returned is not None and task.scope not in returned:
                returned.add(task.scope)
                callers = list(_callers(code, task.scope, outcome.returned))
                if not callers and task.scope is not code[0][0]:
                    return Decided(outcome.returned, outcome.returned.line)
                waiting += callers
    except Decided as found:
        return found
    except RecursionError:
        return None
    return None


def _callers(code: list[Reached], scope: ast.AST, taint: Taint) -> Iterator[Task]:
    name = getattr(scope, "name", "")
    for number, (caller, names) in enumerate(code):
        calls: dict[ast.AST, Taint] = {}
        for node in source.own_nodes(caller):
            target = node.func if isinstance(node, ast.Call) else node
            last = getattr(target, "attr", getattr(target, "id", None))
            if last == name or _runs(node, names, scope):
                calls[node] = taint
        if calls and caller is not scope:
            is_node = _is_node(code, number)
            yield Task(caller, names, sources=calls, opens=False, is_node=is_node)


def _runs(node: ast.AST, names: Names, scope: ast.AST) -> bool:
    """Say whether a call of an object runs a function, or was seen to."""
    if isinstance(node, ast.expr) and any(one is scope for one, *_ in ran_at(node)):
        return True
    if not isinstance(node, ast.Call):
        return False
    if any(one is scope for one, *_ in ran_at(node.func)):  # `generator.send(x)`
        return True
    return any(found[0] is scope for found in reached._called(names.callable_of(node.func), names))


def _file(code: list[Reached], found: Decided) -> str:
    """Return the file of the function in which something was decided."""
    for scope, _names in code:
        first, last = getattr(scope, "lineno", 0), getattr(scope, "end_lineno", 0) or 0
        if first <= found.line <= last:
            return source.file_of(scope)
    return source.file_of(code[0][0]) if code else ""
