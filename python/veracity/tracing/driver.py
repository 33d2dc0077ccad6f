"""What the code around nodes may assign: gains, modes and networks that a driver changes one day.

An export holds the Python values that a node reads. The code between its passes may give them other
values later, also where nothing of it ran while it was recorded: `if hot: arm.gain = 0.5`. So the
source of the driver is searched for what it assigns: its loop over the ticks, the functions whose
names that mentions, callbacks, generators and tasks. What is always assigned alike is left out.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import FrameType

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

    def change_of_state(self, key: str, owner: type | None) -> Store | None:
        """Return the place that writes what the node itself moves on from pass to pass."""
        stores = [one for one in self.stores.get(key, ()) if one.is_of(owner)]
        return next((one for one in stores if not one.always), None) if key in self.moved else None

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
    mentioned = {name for region in regions for name in _mentioned(region.nodes)}
    living = classes_around(innermost)
    elsewhere = [
        Region(_reader_in(scope, reader), source.later_nodes(scope))
        for scope, reader in _reachable(trees, mentioned, own, living)
        if all(scope is not one.scope for one, _ in readers)
    ]
    calls = _calls_in([*regions, *elsewhere])
    parts = [*zip(regions, _OF_CALLERS, strict=False), *((one, None) for one in elsewhere)]
    for region, own_names in parts:
        for key, store in stores_in(region, own_names, calls):
            found.stores.setdefault(key, []).append(store)
    found.moved = frozenset(_moved(readers[0][0], own))
    found.inside = (readers[0][0].scope, *own)
    return found


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
    return spans


def _is_within(node: ast.AST, spans: list[tuple[int, int]]) -> bool:
    line = getattr(node, "lineno", 0)
    return any(first <= line <= last for first, last in spans)


def _mentioned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


def _reachable(
    trees: dict[str, Reader], mentioned: set[str], own: Collection[Scope], living: set[str]
) -> Iterator[tuple[Scope, Reader]]:
    """Give the functions that may run between passes of a node.

    Args:
        trees: The files that are searched.
        mentioned: Names that the code around the node mentions.
        own: The functions of the node.
        living: Classes that have objects. Methods of others run only if something that may run has
            the name of the class.
    """
    outlines = [(_outline(file), reader) for file, reader in trees.items()]
    found = mentioned.union(*(outline.unasked for outline, _ in outlines))
    waiting = {
        scope: (name, reader)
        for outline, reader in outlines
        for name, scopes in sorted(outline.functions.items())  # in the same order each time
        for scope in scopes
        if name not in constancy.SETTING_UP - outline.makes_classes and scope not in own
    }
    for _ in range(MOST_ROUNDS):
        known = living | found
        fresh = [
            (scope, reader)
            for scope, (name, reader) in waiting.items()
            if name in found and _has_objects(scope, known)
        ]
        if not fresh:
            return
        yield from fresh
        for scope, _ in fresh:
            del waiting[scope]
            found.update(_mentioned(source.later_nodes(scope)))


def _has_objects(scope: Scope, known: set[str]) -> bool:
    """Say whether a function is no method, or one of a class that is known."""
    outer = getattr(scope, "parent", None)
    return not isinstance(outer, ast.ClassDef) or outer.name in known


@dataclass(frozen=True)
class _Outline:
    """The functions of a file.

    Attributes:
        functions: By their names.
        unasked: The names of those that run when somebody else says so: callbacks, generators,
            tasks, methods that a class of others calls, and what Python calls by itself
            (`__exit__`).
        makes_classes: What sets up classes, where the file makes some while it runs.
    """

    functions: dict[str, list[Scope]]
    unasked: frozenset[str]
    makes_classes: frozenset[str]


@functools.lru_cache(maxsize=64)
def _outline(file: str) -> _Outline:
    tree = source.tree_of(file)
    nodes = [] if tree is None else list(ast.walk(tree))
    functions: dict[str, list[Scope]] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.setdefault(node.name, []).append(node)
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    unasked = {name for name in map(_handed_on, nodes) if name in functions}
    for name, scopes in functions.items():
        if any(_is_registered(one) or _gives_way(one) for one in scopes):
            unasked.add(name)
    known = _PASSIVE.union(one.name for one in classes)
    unasked |= {name for name in functions if _is_dunder(name)} - constancy.SETTING_UP
    for one in classes:
        plain = [base.value if isinstance(base, ast.Subscript) else base for base in one.bases]
        if not {last_name(base) for base in plain} <= known:
            unasked |= {f.name for f in one.body if isinstance(f, ast.FunctionDef)}
    late = words("__init_subclass__" if any(map(_makes_classes, nodes)) else "")
    return _Outline(functions, frozenset(unasked | late), late)


def _makes_classes(node: ast.AST) -> bool:
    """Say whether a call makes a class while the program runs, or loads a module that does."""
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    given = len(node.args) if isinstance(node, ast.Call) else 0
    return name in ("import_module", "exec_module", "__import__") or (name == "type" and given == 3)


def _handed_on(node: ast.AST) -> str:
    """Return the name of what is given to others: a callback, perhaps."""
    parent = getattr(node, "parent", None)
    is_given = isinstance(parent, ast.keyword | ast.Dict | ast.List | ast.Tuple)
    is_given = is_given or (isinstance(parent, ast.Call) and parent.func is not node)
    if not is_given or not isinstance(node, ast.Attribute | ast.Name):
        return ""
    return last_name(node)


def _is_registered(scope: Scope) -> bool:
    """Say whether somebody else knows a function: a loop of tasks, or a decorator that keeps it."""
    if isinstance(scope, ast.AsyncFunctionDef):
        return True
    decorators = [getattr(one, "func", one) for one in getattr(scope, "decorator_list", ())]
    return any(last_name(one) not in _PLAIN_DECORATORS for one in decorators)


def _gives_way(scope: Scope) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in source.own_nodes(scope))
