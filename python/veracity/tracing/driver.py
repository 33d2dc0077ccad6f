"""What the code around nodes may assign: gains, modes and networks that a driver changes one day.

An export holds the Python values that a node reads. The code between its passes may give them other
values later, also where nothing of it ran while it was recorded: `if hot: arm.gain = 0.5`. So the
source of the driver is searched for what it assigns: its loop over the ticks, the functions whose
names that mentions, callbacks, generators and tasks. What is always assigned alike is left out.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import FrameType, ModuleType

from veracity.tracing import constancy, observers, resolving, source
from veracity.tracing.begun import begins_session
from veracity.tracing.classes import is_users
from veracity.tracing.constancy import Reader
from veracity.tracing.flow import LOOPS, has_marks
from veracity.tracing.flow.task import last_name
from veracity.tracing.living import classes_around
from veracity.tracing.operations import owner_of_file, words
from veracity.tracing.source import Scope
from veracity.tracing.stores import ANY, NETWORK, WHOLE, Calls, Region, Store, stores_in

#: Functions around a node that are looked at, and how far those are followed that they mention.
MOST_FRAMES, MOST_ROUNDS = 8, 60
_USER = 0
#: Classes of others whose methods nobody calls but their owner's code.
_PASSIVE = words(
    """
    Module ABC Enum IntEnum StrEnum Flag NamedTuple Protocol Generic TypedDict object Exception
    RuntimeError ValueError dict list tuple str int float
    """
)
#: Decorators that keep nothing.
_PLAIN_DECORATORS = words(
    """
    property staticmethod classmethod setter getter deleter abstractmethod override overload final
    no_grad inference_mode enable_grad cached_property cache lru_cache wraps contextmanager
    dataclass method singledispatch compile jit script njit typechecked beartype jaxtyped
    """
)
#: What runs when a module is called.
_BODIES = words("forward")
#: What hangs a function into a module, which then calls it.
_HANGING = words("register_forward_hook register_forward_pre_hook")
#: What calls a function that it is given at once, and keeps nothing.
_AT_ONCE = words("apply map filter sorted reduce tree_map isinstance")
#: What the names of variables begin with: of the function that marks inputs, of its caller, and so
#: on. The walk over objects knows the first.
_OF_CALLERS = tuple("=" * number for number in range(1, MOST_FRAMES + 1))
#: How a node begins: the running functions and where they are, the innermost first.
Way = tuple[tuple[int, int], ...]


@dataclass
class Driver:
    """The code around a node.

    Attributes:
        innermost: The function that marks inputs, or that calls the one that is a node.
        stores: What it assigns, as `stores_in` names it.
        moved: What the node itself assigns or changes, by the same names.
        inside: The functions of the node.
    """

    innermost: Reader
    stores: dict[str, list[Store]] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()
    inside: tuple[Scope, ...] = ()

    def change_of(
        self, key: str, owner: type | None, readers: Collection[Scope] = ()
    ) -> Store | None:
        """Return the place that may change what the source of a node has a name for.

        Args:
            key: The name, as in `heap.Root`.
            owner: Of an attribute, the class of the object.
            readers: The functions that may read it; any where none are given.
        """
        inner, caller = self.innermost, self.innermost.caller
        argument = inner.arguments.get(key[1:]) if key.startswith("=") else None
        if argument is not None and caller is not None and not inner.goes_round:
            return self._change_in(argument, caller)
        return self._change(key, owner, readers)

    def may_be_marked(self, key: str) -> bool:
        """Say whether a variable of the function that marks inputs is given, or is an input."""
        scope = self.innermost.scope
        if not key.startswith("="):
            return False
        marked = {
            name
            for node in source.own_nodes(scope)
            for target, value in constancy.targets(node)
            if isinstance(value, ast.Call) and last_name(value.func) in observers.MARKS_IN
            for name, _ in constancy.pairs(target, value)
        }
        return key[1:] in marked | constancy.parameters_of(scope)

    def _change_in(self, node: ast.expr, reader: Reader) -> Store | None:
        """Return what may change an argument that a caller gives."""
        for one in ast.walk(node):
            owner = reader.names.kind(one.value) if isinstance(one, ast.Attribute) else None
            name = getattr(one, "attr", getattr(one, "id", ""))
            kinds = (".",) if isinstance(one, ast.Attribute) else (_OF_CALLERS[1], "@")
            found = next(filter(None, (self._change(kind + name, owner) for kind in kinds)), None)
            if found is not None:
                return found
        fixed = constancy.is_fixed(node, reader)
        return None if fixed else Store(None, node.lineno, reader, always=True)

    def change_of_network(self, networks: dict[str, type]) -> Store | None:
        """Return the place that may change one of these modules, given by the paths to them."""
        last = {path.rpartition(".")[2] for path in networks}
        own = {path: kind for path, kind in networks.items() if not is_users(kind)}
        ready_made = {path.rpartition(".")[2] for path in own}
        for key, kinds, names in ((NETWORK, own, ready_made), (WHOLE, networks, last)):
            for one in self.stores.get(key, ()):
                known = (
                    one.owner in kinds.values() if one.owner is not None else one.through in names
                )
                known = known or (one.through == "" and bool(kinds))
                same = one.value is None or constancy.is_fixed(one.value, one.reader)
                if known and not (one.always and same):
                    return one
        return None

    def change_of_tensor(
        self, key: str, owner: type | None, readers: Collection[Scope]
    ) -> tuple[Store, bool] | None:
        """Return the place that may write a tensor, and whether the node itself moves it on.

        What another node writes arrives by an edge, or is told there.
        """
        stores = [one for one in self.stores.get(key, ()) if one.is_of(owner) and not one.in_node]
        if key in self.moved:
            found = next((one for one in stores if not one.always), None)
        else:
            found = self.change_of(key, owner, readers) if stores else None
        return None if found is None or found.in_node else (found, key in self.moved)

    def _change(
        self, key: str, owner: type | None, readers: Collection[Scope] = ()
    ) -> Store | None:
        stores = [one for one in self.stores.get(key, ()) if one.is_of(owner)]
        if readers:
            stores = [one for one in stores if any(map(one.is_seen_by, readers))]
        alone = len(stores) == 1
        found = next((one for one in stores if not _is_same(key, one, alone=alone)), None)
        anywhere = self.stores.get(ANY, ()) if owner is not None else ()
        return found or next((one for one in anywhere if one.is_of(owner)), None)


def _is_same(key: str, store: Store, *, alone: bool) -> bool:
    """Say whether a place assigns what was there anyway."""
    if isinstance(store.value, ast.Constant) and _begins_with(key, store, store.value):
        return True
    is_set = alone and store.always and store.value is not None
    return is_set and constancy.is_fixed(store.value, store.reader)


def _begins_with(key: str, store: Store, constant: ast.Constant) -> bool:
    """Say whether a constant is what setting up assigns, too: it is set back."""
    tree = source.tree_of(source.file_of(store.reader.scope))
    first = [
        value
        for scope in (() if tree is None else source.scopes(tree))
        if getattr(scope, "name", "") in constancy.SETTING_UP
        for node in source.own_nodes(scope)
        for target, value in constancy.targets(node)
        if isinstance(target, ast.Attribute) and f".{target.attr}" == key
    ]
    same = [isinstance(one, ast.Constant) and one.value == constant.value for one in first]
    return any(same)


def around(
    innermost: FrameType, own: Collection[Scope], begins_another: Callable[[Way], bool]
) -> Driver | None:
    """Return what the code around a node assigns; none without source.

    Args:
        innermost: The function that marks inputs, or that calls the one that is a node.
        own: The functions of the node.
        begins_another: Whether another node begins in the same way: then a loop is one over nodes,
            and the one over the ticks is farther out.
    """
    readers = list(_frames(innermost, begins_another))
    if not readers:
        return None
    found = Driver(readers[0][0])
    own = _run_inside(readers[0][0].scope, [scope for scope in own if not has_marks(scope)])
    trees = {source.file_of(one.scope): one for one, _ in readers}
    for scope in own:
        trees.setdefault(source.file_of(scope), readers[0][0])
    regions = [_region(reader, place) for reader, place in readers]
    mentioned = _Mentioned()
    for region in regions:
        mentioned.note(region.nodes, region.reader)
    living, running = classes_around(innermost), list(_running(innermost))
    elsewhere = [
        _whole(scope, reader)
        for scope, reader in _reachable(trees, mentioned, own, living, running)
        if all(scope is not one for one in running)
    ]
    elsewhere += _left_behind(trees, living)
    calls = _calls_in([*regions, *elsewhere])
    parts = [*zip(regions, _OF_CALLERS, strict=False), *((one, None) for one in elsewhere)]
    for region, own_names in parts:
        for key, store in stores_in(region, own_names, calls):
            found.stores.setdefault(key, []).append(store)
    found.moved = frozenset(_moved(readers[0][0], own))
    found.inside = (readers[0][0].scope, *own)
    return found


def _left_behind(trees: dict[str, Reader], living: set[str]) -> Iterator[Region]:
    """Give what objects leave with others when they are set up, to be called one day."""
    for file, reader in trees.items():
        for scope in _outline(file).setting_up:
            if _class_around(scope) in living:
                nodes = source.own_nodes(scope)
                inside = {
                    part for one in nodes if isinstance(one, ast.Lambda) for part in ast.walk(one)
                }
                given = [one for one in nodes if one in inside or _is_handed_on(one, ast.Name)]
                yield Region(_reader_in(scope, reader), given)


def _class_around(scope: Scope) -> str:
    outer = getattr(scope, "parent", None)
    return outer.name if isinstance(outer, ast.ClassDef) else ""


def _whole(scope: Scope, near: Reader) -> Region:
    """Return all of a function that runs more than once."""
    nodes = source.later_nodes(scope)
    decorators = [getattr(one, "func", one) for one in getattr(scope, "decorator_list", ())]
    is_node = any(last_name(one) == "method" for one in decorators)
    spans = [(0, sys.maxsize)] if is_node else _spans(nodes)
    return Region(_reader_in(scope, near), nodes, spans=tuple(spans))


def _reader_in(scope: Scope, near: Reader) -> Reader:
    names = resolving.names_in(scope, near.names)
    return replace(near, scope=scope, names=names, goes_round=False)


def _calls_in(regions: Iterable[Region]) -> Calls:
    found: dict[str, list[tuple[Reader, ast.Call]]] = {}
    for region in regions:
        for node in region.nodes:
            if isinstance(node, ast.Call):
                found.setdefault(last_name(node.func), []).append((region.reader, node))
    return found


def _moved(marking: Reader, own: list[Scope]) -> Iterator[str]:
    """Give the names of what a node assigns, and of what it changes in place."""
    nodes = source.own_nodes(marking.scope)
    spans = _spans(nodes)
    parts = [Region(marking, [node for node in nodes if _is_within(node, spans)])]
    parts += [Region(_reader_in(scope, marking), source.own_nodes(scope)) for scope in own]
    calls = _calls_in(parts)
    for part in parts:
        yield from (key for key, _ in stores_in(part, "=", calls))


def _run_inside(marking: Scope, own: list[Scope]) -> list[Scope]:
    """Return the functions that run in a node, of all that the function mentions that marks it."""
    nodes = source.own_nodes(marking)
    spans = _spans(nodes)
    if not spans:
        return own  # the node is a function, or ends in another one than it begins in
    named = set(_mentioned(node for node in nodes if _is_within(node, spans)))
    for file in {source.file_of(scope) for scope in own}:
        named |= _outline(file).hooks
    found: list[Scope] = []
    waiting = own
    while fresh := [scope for scope in waiting if _may_be_called(scope, named)]:
        found += fresh
        waiting = [scope for scope in waiting if all(scope is not one for one in fresh)]
        named.update(name for scope in fresh for name in _mentioned(source.own_nodes(scope)))
    return found


def _may_be_called(scope: Scope, named: set[str]) -> bool:
    """Say whether code that mentions these names may call a function."""
    name = getattr(scope, "name", "")
    return not name or name in _BODIES or name in named or _is_dunder(name)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _frames(
    innermost: FrameType, begins_another: Callable[[Way], bool]
) -> Iterator[tuple[Reader, ast.AST]]:
    """Give the functions around a node up to the one that has the loop over the ticks."""
    frame: FrameType | None = innermost
    way: Way = ()
    is_over_nodes = False
    for _ in range(MOST_FRAMES):
        while frame is not None and owner_of_file(frame.f_code.co_filename) != _USER:
            frame = frame.f_back
        if frame is None:
            return
        place = source.place_of(frame.f_code, source.instruction_of(frame), frame.f_lineno)
        reader = constancy.reader_of(frame)
        if place is None or reader is None:
            return
        yield reader, place.nodes[0]
        way = (*way, (id(frame.f_code), source.instruction_of(frame)))
        if constancy.in_loop(place.nodes[0]) or _in_comprehension(place.nodes[0]):
            if is_over_nodes or not begins_another(way):
                return
            is_over_nodes = True
        frame = frame.f_back


def _running(innermost: FrameType) -> Iterator[Scope]:
    """Give the functions that are running: those around the loop over the ticks run once."""
    frame: FrameType | None = innermost
    while frame is not None:
        if owner_of_file(frame.f_code.co_filename) == _USER:
            place = source.place_of(frame.f_code, source.instruction_of(frame), frame.f_lineno)
            if place is not None:
                yield place.scope
        frame = frame.f_back


def _in_comprehension(node: ast.AST | None) -> bool:
    while node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return True
        node = getattr(node, "parent", None)
    return False


def _region(reader: Reader, place: ast.AST) -> Region:
    """Return what of a function runs from tick to tick, without what is inside of nodes."""
    loop: ast.AST | None = None
    outer: ast.AST | None = place
    while outer is not None and outer is not reader.scope:
        if isinstance(outer, LOOPS):
            if begins_session(outer, reader.names):
                break
            loop = outer
        outer = getattr(outer, "parent", None)
    if loop is None and isinstance(reader.scope, ast.Module):
        return Region(reader, [])  # it runs once
    own = source.later_nodes(reader.scope)  # a bundle begins with the first round as well
    inside = set(ast.walk(loop)) if loop is not None else set(own)
    spans = _spans(own)
    nodes = [node for node in own if node in inside and not _is_within(node, spans)]
    return Region(reader, nodes, loop)


def _spans(nodes: Iterable[ast.AST]) -> list[tuple[int, int]]:
    """Return the lines from a mark that begins a node to the one that ends it."""
    calls = [one for one in nodes if isinstance(one, ast.Call)]
    marks = sorted((one.lineno, last_name(one.func)) for one in calls)
    spans, begin = [], None
    for line, name in marks:
        if name in observers.MARKS_IN:
            begin = line if begin is None else begin
        elif name in observers.MARKS_OUT and begin is not None:
            spans.append((begin, line))
            begin = None
    return spans if begin is None else [*spans, (begin, sys.maxsize)]


def _is_within(node: ast.AST, spans: list[tuple[int, int]]) -> bool:
    line = getattr(node, "lineno", 0)
    return any(first <= line <= last for first, last in spans)


def _mentioned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


class _Mentioned:
    """The names that code mentions, and whose attributes they are."""

    def __init__(self) -> None:
        #: Of each name the classes of the objects that it is an attribute of; `None` for any.
        self._owners: dict[str, set[str | None]] = {}

    def note(self, nodes: Iterable[ast.AST], reader: Reader) -> None:
        """Add what some code mentions."""
        for node in nodes:
            if isinstance(node, ast.Name):
                self._owners.setdefault(node.id, set()).add(None)
            elif isinstance(node, ast.Attribute):
                kind = reader.names.kind(node.value)
                known = None if kind is None or issubclass(kind, type | ModuleType) else kind
                names = {None} if known is None else {one.__name__ for one in known.__mro__}
                self._owners.setdefault(node.attr, set()).update(names)

    def may_run(self, scope: Scope, living: set[str]) -> bool:
        """Say whether such code may run a function; `living` classes have objects."""
        name, outer = getattr(scope, "name", ""), getattr(scope, "parent", None)
        owners: Collection[str | None] = self._owners.get(name, ())
        if not isinstance(outer, ast.ClassDef):
            return None in owners
        by_name = _is_dunder(name) or None in owners or outer.name in owners
        return by_name and (outer.name in living or outer.name in self._owners)


def _reachable(
    trees: dict[str, Reader],
    mentioned: _Mentioned,
    own: Collection[Scope],
    living: set[str],
    running: Collection[Scope],
) -> Iterator[tuple[Scope, Reader]]:
    """Give the functions that may run between passes of a node.

    Args:
        trees: The files that are searched.
        mentioned: What the code around the node mentions.
        own: The functions of the node.
        living: Classes that have objects. Methods of others run only if something that may run has
            the name of the class.
        running: The functions that are running.
    """
    outlines = [(_outline(file), reader) for file, reader in trees.items()]
    named = frozenset().union(*(outline.named for outline, _ in outlines))
    named |= {getattr(scope, "name", "") for scope in running}
    waiting = {
        scope: (reader, scope in outline.unasked and _may_exist(scope, named))
        for outline, reader in outlines
        for scope in sorted(outline.functions, key=lambda one: getattr(one, "lineno", 0))
        if scope not in own
    }
    for _ in range(MOST_ROUNDS):
        fresh = [
            (scope, reader)
            for scope, (reader, unasked) in waiting.items()
            if unasked or mentioned.may_run(scope, living)
        ]
        if not fresh:
            return
        yield from fresh
        for scope, reader in fresh:
            del waiting[scope]
            mentioned.note(source.later_nodes(scope), _reader_in(scope, reader))


def _may_exist(scope: Scope, named: Collection[str]) -> bool:
    """Say whether the functions around a function ever ran: somebody has names for them."""
    outer = getattr(scope, "parent", None)
    while outer is not None:
        if isinstance(outer, ast.FunctionDef):
            is_method = isinstance(getattr(outer, "parent", None), ast.ClassDef)
            if not (is_method or outer.name in named or _is_registered(outer)):
                return False
        outer = getattr(outer, "parent", None)
    return True


@dataclass(frozen=True)
class _Outline:
    """The functions of a file.

    Attributes:
        functions: All of them, without those that set objects up.
        unasked: Those that run when somebody else says so: callbacks, generators, tasks, methods
            that a class of others calls.
        setting_up: Those that set objects up.
        hooks: The names of those that objects hang into their own modules when they are set up:
            they run where the modules do.
        named: All names that the file uses.
    """

    functions: tuple[Scope, ...]
    unasked: frozenset[Scope]
    setting_up: tuple[Scope, ...]
    hooks: frozenset[str]
    named: frozenset[str]


@functools.lru_cache(maxsize=64)
def _outline(file: str) -> _Outline:
    tree = source.tree_of(file)
    nodes = [] if tree is None else list(ast.walk(tree))
    functions = [one for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    as_variables = {last_name(one) for one in nodes if _is_handed_on(one, ast.Name)}
    as_attributes = {last_name(one) for one in nodes if _is_handed_on(one, ast.Attribute)}
    called_by_others = {name for name, one in classes.items() if not _bases_of(one) <= {*classes}}
    makes_classes = any(map(_makes_classes, nodes))

    def is_unasked(scope: Scope) -> bool:
        name, outer = getattr(scope, "name", ""), getattr(scope, "parent", None)
        if name in constancy.SETTING_UP:
            return makes_classes and name == "__init_subclass__"
        if name in as_attributes or _is_registered(scope) or _gives_way(scope):
            return True
        if isinstance(outer, ast.ClassDef):
            return outer.name in called_by_others
        return name in as_variables

    unasked = frozenset(filter(is_unasked, functions))
    setting_up = tuple(one for one in functions if one.name in constancy.SETTING_UP)
    asked = {*functions} - {*setting_up}
    set_up = [node for one in setting_up for node in source.own_nodes(one)]
    hung = [one for one in set_up if isinstance(one, ast.Call) and last_name(one.func) in _HANGING]
    hooks = frozenset(last_name(given) for call in hung for given in call.args)
    imports = [one for one in nodes if isinstance(one, ast.ImportFrom)]
    named = {*_mentioned(nodes), *(alias.name for one in imports for alias in one.names)}
    return _Outline(tuple(asked | unasked), unasked, setting_up, hooks, frozenset(named))


def _bases_of(node: ast.ClassDef) -> set[str]:
    """Return the names of the bases of a class, without those that call none of its methods."""
    plain = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return {last_name(base) for base in plain} - _PASSIVE


def _makes_classes(node: ast.AST) -> bool:
    """Say whether a call makes a class while the program runs, or loads a module that does."""
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    given = len(node.args) if isinstance(node, ast.Call) else 0
    return name in ("import_module", "exec_module", "__import__") or (name == "type" and given == 3)


def _is_handed_on(node: ast.AST, kind: type[ast.Name | ast.Attribute]) -> bool:
    """Say whether a variable or an attribute is given to others: a callback, perhaps."""
    if not isinstance(node, ast.Name | ast.Attribute) or type(node) is not kind:
        return False
    parent = getattr(node, "parent", None)
    is_given = isinstance(parent, ast.keyword | ast.Dict | ast.List | ast.Tuple)
    if isinstance(parent, ast.Call):
        is_given = parent.func is not node and last_name(parent.func) not in _AT_ONCE
    return is_given and isinstance(node.ctx, ast.Load)


def _is_registered(scope: Scope) -> bool:
    """Say whether somebody else knows a function: a loop of tasks, or a decorator that keeps it."""
    if isinstance(scope, ast.AsyncFunctionDef):
        return True
    decorators = [getattr(one, "func", one) for one in getattr(scope, "decorator_list", ())]
    methods = [one.attr for one in decorators if isinstance(one, ast.Attribute)]  # `@bus.on(...)`
    return any(name not in _PLAIN_DECORATORS for name in methods)


def _gives_way(scope: Scope) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in source.own_nodes(scope))
