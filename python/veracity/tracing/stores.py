"""What source assigns: attributes, variables, and objects that it changes in place."""

from __future__ import annotations

import ast
import functools
import io
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType

import numpy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from veracity.tracing import constancy, observers, resolving, source
from veracity.tracing.classes import is_users
from veracity.tracing.constancy import Reader
from veracity.tracing.flow import LOOPS
from veracity.tracing.flow.task import last_name
from veracity.tracing.operations import words
from veracity.tracing.source import Scope

#: Any attribute, what a network computes, and what it and all networks in it do.
ANY, NETWORK, WHOLE = ".*", ".()", ".()*"
#: How many variables and parameters are followed to an object.
MOST_STEPS = 4
#: Methods that change what a network computes.
_CHANGING_NETWORKS = words("eval train register_forward_hook register_forward_pre_hook")
_CHANGING_ALL = words("load_state_dict half double bfloat16")
#: Methods that give parts of a network.
_PARTS_OF_NETWORKS = words(
    """
    parameters named_parameters buffers named_buffers state_dict get_parameter get_buffer modules
    named_modules children named_children get_submodule
    """
)
#: Methods of tensors with an underscore at the end that leave their numbers alone.
_WITHOUT_WRITING = words("requires_grad_ retain_grad_ share_memory_ zero_grad_")
_WRITING_TENSORS = words("__setitem__ __iadd__ __imul__ copyto")
#: Functions that write into their second argument.
_WRITING_SECOND = words("vector_to_parameters")
#: Classes of libraries whose objects are looked at in another way, or are nothing to a node.
_KNOWN = (torch.Tensor, torch.nn.Module, numpy.ndarray, logging.Logger, io.IOBase, type, ModuleType)


@dataclass(frozen=True)
class Store:
    """A place that assigns something.

    Attributes:
        value: What is assigned, where an expression says it.
        line: Its line.
        reader: The code that it stands in.
        always: Whether it runs on every tick.
        owner: Of an attribute, the class of the object, or its name; none where that is not known.
        through: The name by which the object goes there.
        home: Of a variable that inner functions share, the function that they stand in.
        in_node: Whether it stands inside of another node.
    """

    value: ast.expr | None
    line: int
    reader: Reader
    always: bool
    owner: type | str | None = None
    through: str = ""
    home: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    in_node: bool = False

    @property
    def location(self) -> str:
        """`file:line`."""
        return f"{source.file_of(self.reader.scope)}:{self.line}"

    def is_of(self, kind: type | None) -> bool:
        """Say whether it may assign an attribute of an object of a class."""
        if kind is None or self.owner is None:
            return True
        if isinstance(self.owner, str):
            return any(one.__name__ == self.owner for one in kind.__mro__)
        return issubclass(kind, self.owner) or issubclass(self.owner, kind)

    def is_seen_by(self, scope: Scope) -> bool:
        """Say whether a function may mean this variable by its name."""
        home = self.home
        if home is None:
            return True
        is_inside = home.lineno <= getattr(scope, "lineno", 0) <= (home.end_lineno or home.lineno)
        return is_inside and source.file_of(scope) == source.file_of(home)


@dataclass(frozen=True)
class Region:
    """A part of a function.

    Attributes:
        reader: The function.
        nodes: The part of it.
        tick: The loop in it that runs once a tick, if there is one.
        spans: The lines of nodes in it.
    """

    reader: Reader
    nodes: list[ast.AST]
    tick: ast.AST | None = None
    spans: tuple[tuple[int, int], ...] = ()

    def is_in_node(self, line: int) -> bool:
        """Say whether a line stands inside of a node."""
        return any(first <= line <= last for first, last in self.spans)

    def may_have_returned(self, line: int) -> bool:
        """Say whether the function may end before a line on some ticks."""
        returns = [one for one in self.nodes if isinstance(one, ast.Return) and one.lineno < line]
        return not all(map(self.runs_always, returns))

    def runs_always(self, node: ast.AST) -> bool:
        """Say whether a statement runs on every tick."""
        outer = getattr(node, "parent", None)
        while outer is not None and outer not in (self.tick, self.reader.scope):
            loops = isinstance(outer, ast.For) and constancy.is_fixed(outer.iter, self.reader)
            if isinstance(outer, constancy.BRANCHES) or (isinstance(outer, LOOPS) and not loops):
                return False
            outer = getattr(outer, "parent", None)
        return True


def stores_in(
    region: Region, own: str | None, calls: Calls | None = None
) -> Iterator[tuple[str, Store]]:
    """Give what a part of a function assigns, by the names that the source of a node has for it.

    As in `heap.Root`: `.name` for attributes, `@name` for variables that other functions see.

    Args:
        region: The part of it.
        own: What the names of its own variables begin with; none where they do not count.
        calls: Who calls functions, by their names: what is written into a parameter is an object
            of a caller's.
    """
    reader, nodes = region.reader, region.nodes
    shared = _shared(reader.scope, nodes)
    found = Found(reader, calls or {})
    for node in nodes:
        is_loop = isinstance(node, ast.For | ast.AsyncFor)
        if is_loop and constancy.is_fixed(getattr(node, "iter", None), reader):
            continue  # where it changes from pass to pass, that was seen
        always = own is not None and region.runs_always(node)
        for name, owner, value, where in found.assigned(node):
            if own is None and owner is not None and _is_fresh(owner, where):
                continue  # it is made there, and nobody has it yet
            kind = _class_of(owner, where)
            through = "" if owner is None else last_name(owner)
            line = getattr(node, "lineno", 0)
            is_left = name in (WHOLE, NETWORK) and region.may_have_returned(line)
            in_node = region.is_in_node(line)
            store = Store(value, line, reader, always and not is_left, kind, through, None, in_node)
            if owner is not None or name in (WHOLE, ANY):
                yield name, store
                continue
            if own is not None:
                yield f"{own}{name}", store
            if shared is None or name in shared:
                yield f"@{name}", replace(store, home=_home(reader.scope, name, nodes))


def _is_fresh(owner: ast.expr, reader: Reader) -> bool:
    """Say whether a function makes the object itself that it changes."""
    while isinstance(owner, ast.Attribute | ast.Subscript):
        owner = owner.value
    if isinstance(owner, ast.Call):
        return _makes_object(owner, reader)
    if not isinstance(owner, ast.Name) or owner.id in constancy.parameters_of(reader.scope):
        return False
    made = _shown_by(reader.scope).get(owner.id, [])
    calls = [one for one in made if isinstance(one, ast.Call)]
    return bool(made) and made == calls and all(_makes_object(one, reader) for one in calls)


def _makes_object(call: ast.Call, reader: Reader) -> bool:
    """Say whether a call is that of a class: `Net(3).eval()`."""
    func = call.func
    while isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call):
        func = func.value.func
    return isinstance(func, ast.Subscript) or isinstance(reader.names.resolve(func), type)


def _shared(scope: Scope, nodes: list[ast.AST]) -> set[str] | None:
    """Return the variables of a function that others see; none where they see all."""
    if isinstance(scope, ast.Module):
        return None
    outer = [node for node in nodes if isinstance(node, ast.Global | ast.Nonlocal)]
    names = {name for node in outer for name in node.names}
    return names | resolving.shared_with_inner(scope)


def _home(
    scope: Scope, name: str, nodes: list[ast.AST]
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the function around all that see a variable; none where that is a whole file."""
    if isinstance(scope, ast.Module):
        return None
    if any(isinstance(node, ast.Global) and name in node.names for node in nodes):
        return None
    home = scope
    outer = getattr(scope, "parent", None)
    while outer is not None:
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            home = outer
        outer = getattr(outer, "parent", None)
    return home


def _class_of(owner: ast.expr | None, reader: Reader) -> type | str | None:
    """Return the class of an object, or its name."""
    if owner is None:
        return None
    if isinstance(owner, ast.Name) and owner.id == "self":
        parent = getattr(reader.scope, "parent", None)
        return parent.name if isinstance(parent, ast.ClassDef) else None
    if isinstance(owner, ast.Name) and _is_function(owner.id, reader.scope):
        return FunctionType
    return reader.names.kind(owner) or _class_made(owner, reader)


def _is_function(name: str, scope: Scope) -> bool:
    """Say whether a name stands for a function that one around it defines."""
    outer: ast.AST | None = scope
    while outer is not None and name not in constancy.parameters_of(outer):
        inner = () if isinstance(outer, ast.ClassDef) else ast.iter_child_nodes(outer)
        if any(isinstance(one, ast.FunctionDef) and one.name == name for one in inner):
            return True
        outer = getattr(outer, "parent", None)
    return False


def _class_made(owner: ast.expr, reader: Reader) -> type | None:
    """Return the class of `self.name`, where the class around says `self.name = Class(...)`."""
    parent = getattr(reader.scope, "parent", None)
    if not isinstance(owner, ast.Attribute) or not isinstance(parent, ast.ClassDef):
        return None
    for node in ast.walk(parent):
        for target, value in constancy.targets(node):
            made = value.func if isinstance(value, ast.Call) else None
            if made is not None and ast.unparse(target) == ast.unparse(owner):
                found = reader.names.resolve(made)
                return found if isinstance(found, type) else None
    return None


#: A name for something, the object that it is an attribute of, what is assigned, and where the
#: name is one.
Assigned = tuple[str, ast.expr | None, ast.expr | None, Reader]
#: The calls of functions by their names, and where they stand.
Calls = Mapping[str, list[tuple[Reader, ast.Call]]]


class Found:
    """Finds what a function assigns, and which objects it changes in place."""

    def __init__(self, reader: Reader, calls: Calls, depth: int = 0) -> None:
        """Work on the function of `reader`."""
        self._reader, self._calls, self._depth = reader, calls, depth

    def assigned(self, node: ast.AST) -> Iterator[Assigned]:
        """Give what a statement or an expression assigns."""
        for target, value in constancy.targets(node):
            for name, part in constancy.pairs(target, value):
                yield name, None, part, self._reader
            for one in ast.walk(target):
                if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                    yield from self._attribute(one, value)
                elif isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store):
                    yield from self._in_place(one.value)
        if isinstance(node, ast.Name) and node.id == "setattr":
            call = getattr(node, "parent", None)
            if not (isinstance(call, ast.Call) and call.func is node):
                yield ANY, None, None, self._reader  # handed on, with a name or without
        if isinstance(node, ast.Call):
            yield from self._by_call(node)

    def _attribute(self, target: ast.Attribute, value: ast.expr | None) -> Iterator[Assigned]:
        if target.attr in resolving.SHOWING_TENSORS:
            yield from self._in_place(target.value)
            return
        name = ANY if target.attr in ("__class__", "__dict__") else f".{target.attr}"
        yield name, target.value, value, self._reader
        yield NETWORK, target.value, value, self._reader

    def _by_call(self, node: ast.Call) -> Iterator[Assigned]:
        name = last_name(node.func)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        given = [*node.args, *(one.value for one in node.keywords)]
        writes = name.endswith("_") and not name.endswith("__")
        if name == "setattr" and len(node.args) == 3:
            literal = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
            key = f".{literal}" if isinstance(literal, str) else ANY
            yield key, node.args[0], node.args[2], self._reader
        elif owner is not None and (name in constancy.CHANGING or name in _WRITING_TENSORS):
            yield from self._in_place(owner)
        elif owner is not None and writes and name not in _WITHOUT_WRITING:
            yield from self._in_place(owner)
            yield from self._in_place(given[0]) if given else ()  # `nn.init.zeros_(weight)`
        elif name in constancy.WRITING or writes:
            for argument in node.args:
                yield from self._in_place(argument)
        elif name in _WRITING_SECOND and len(node.args) > 1:
            yield from self._in_place(node.args[1])
        elif owner is not None and self._is_changed_by_library(node, owner):
            yield from self._in_place(owner)
        for keyword in node.keywords:
            if keyword.arg == "out":
                yield from self._in_place(keyword.value)
        kind = self._reader.names.resolve(node.func)
        if isinstance(kind, type) and issubclass(kind, TorchFunctionMode | TorchDispatchMode):
            yield WHOLE, None, None, self._reader  # torch computes otherwise inside of it
        if owner is not None and name in _CHANGING_NETWORKS:
            yield NETWORK, owner, given[0] if given else None, self._reader
        if owner is not None and (name in _CHANGING_ALL or self._is_optimiser(node, owner)):
            yield WHOLE, None if name == "step" else owner, None, self._reader

    def _in_place(self, node: ast.expr) -> Iterator[Assigned]:
        """Give what holds an object that is changed."""
        if self._depth > MOST_STEPS:
            return
        while True:
            if isinstance(node, ast.Attribute) and node.attr in resolving.SHOWING_TENSORS:
                node = node.value
                continue
            if isinstance(node, ast.Subscript | ast.Starred):
                node = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in _PARTS_OF_NETWORKS:
                    yield WHOLE, node.func.value, None, self._reader
                    return
                node = node.func.value  # a view, perhaps
            else:
                break
        if isinstance(node, ast.Attribute):
            name = ANY if node.attr == "__dict__" else f".{node.attr}"
            yield name, node.value, None, self._reader
            yield NETWORK, node.value, None, self._reader
        elif isinstance(node, ast.Name):
            yield node.id, None, None, self._reader
            yield from self._by_other_name(node.id)
        elif isinstance(node, ast.Call):
            if last_name(node.func) == "vars" and node.args:
                yield ANY, node.args[0], None, self._reader
            for one in node.args:  # `dict(...)`, `enumerate(...)`
                yield from self._in_place(one)

    def _by_other_name(self, name: str) -> Iterator[Assigned]:
        """Give what a variable shows a part of, or what callers give by this name."""
        deeper = Found(self._reader, self._calls, self._depth + 1)
        for value in _shown_by(self._reader.scope).get(name, ()):
            yield from deeper._in_place(value)
        if name in constancy.parameters_of(self._reader.scope):
            for caller, call in self._calls.get(getattr(self._reader.scope, "name", ""), ()):
                given = _given(self._reader.scope, call).get(name)
                if given is not None:
                    yield from Found(caller, self._calls, self._depth + 1)._in_place(given)

    def _is_changed_by_library(self, node: ast.Call, owner: ast.expr) -> bool:
        """Say whether a call of which nobody uses the result may change an object of a library."""
        if not isinstance(getattr(node, "parent", None), ast.Expr):
            return False
        kind = self._reader.names.kind(owner)
        name = last_name(node.func)
        if kind is None or is_users(kind) or issubclass(kind, _KNOWN):
            return False
        return name not in observers.PURE_METHODS and not observers.observes(None, name)

    def _is_optimiser(self, node: ast.Call, owner: ast.expr) -> bool:
        if last_name(node.func) != "step":
            return False
        names = self._reader.names
        made = _shown_by(self._reader.scope).get(last_name(owner), ())
        kinds = [names.resolve(one.func) for one in made if isinstance(one, ast.Call)]
        kinds.append(_class_of(owner, self._reader))
        return any(
            isinstance(one, type) and issubclass(one, torch.optim.Optimizer) for one in kinds
        )


@functools.lru_cache(maxsize=256)
def _shown_by(scope: Scope) -> dict[str, list[ast.expr]]:
    """Return the objects that variables show a part of, by their names."""
    found: dict[str, list[ast.expr]] = {}
    for node in source.own_nodes(scope):
        pairs = list(constancy.targets(node))
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            pairs = [(node.target, node.iter)]
        for target, value in pairs:
            for name, part in constancy.pairs(target, value):
                if isinstance(part, ast.Attribute | ast.Subscript | ast.Call | ast.Name):
                    found.setdefault(name, []).append(part)
    return found


def _given(scope: Scope, call: ast.Call) -> dict[str, ast.expr]:
    """Return what a call gives to the parameters of a function."""
    declared = getattr(scope, "args", None)
    if not isinstance(declared, ast.arguments):
        return {}
    names = [one.arg for one in (*declared.posonlyargs, *declared.args)]
    is_method = names[:1] == ["self"] and isinstance(call.func, ast.Attribute)
    found = dict(zip(names[1:] if is_method else names, call.args, strict=False))
    if is_method and isinstance(call.func, ast.Attribute):
        found["self"] = call.func.value
    return found | {one.arg: one.value for one in call.keywords if one.arg is not None}
