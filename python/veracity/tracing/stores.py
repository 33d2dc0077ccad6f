"""What source assigns: attributes, variables, and objects that it changes in place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from veracity.tracing import constancy, resolving, source
from veracity.tracing.constancy import Reader
from veracity.tracing.flow.task import last_name
from veracity.tracing.operations import words
from veracity.tracing.source import Scope

#: Any attribute, and what a network computes.
ANY, NETWORK = ".*", ".()"
#: Methods that change what a network computes.
_CHANGING_NETWORKS = words(
    "eval train load_state_dict register_forward_hook register_forward_pre_hook"
)


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
    """

    value: ast.expr | None
    line: int
    reader: Reader
    always: bool
    owner: type | str | None = None
    through: str = ""
    home: ast.FunctionDef | ast.AsyncFunctionDef | None = None

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


def stores_in(
    reader: Reader, nodes: Iterable[ast.AST], own: str | None
) -> Iterator[tuple[str, Store]]:
    """Give what a part of a function assigns, by the names that the source of a node has for it.

    As in `heap.Root`: `.name` for attributes, `@name` for variables that other functions see.

    Args:
        reader: The function.
        nodes: The part of it.
        own: What the names of its own variables begin with; none where they do not count.
    """
    nodes = list(nodes)
    shared = _shared(reader.scope, nodes)
    for node in nodes:
        is_loop = isinstance(node, ast.For | ast.AsyncFor)
        if is_loop and constancy.is_fixed(getattr(node, "iter", None), reader):
            continue  # where it changes from pass to pass, that was seen
        always = own is not None and not constancy.is_conditional(node, reader.scope)
        for name, owner, value in _assigned(node):
            kind = _class_of(owner, reader)
            through = "" if owner is None else last_name(owner)
            store = Store(value, getattr(node, "lineno", 0), reader, always, kind, through)
            if owner is not None:
                yield name, store
                continue
            if own is not None:
                yield f"{own}{name}", store
            if shared is None or name in shared:
                yield f"@{name}", replace(store, home=_home(reader.scope, name, nodes))


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
    return reader.names.kind(owner) or _class_made(owner, reader)


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


#: A name for something, the object that it is an attribute of, and what is assigned.
_Assigned = tuple[str, ast.expr | None, ast.expr | None]


def _assigned(node: ast.AST) -> Iterator[_Assigned]:
    for target, value in constancy.targets(node):
        for name, part in constancy.pairs(target, value):
            yield name, None, part
        for one in ast.walk(target):
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                name = ANY if one.attr in ("__class__", "__dict__") else f".{one.attr}"
                yield name, one.value, value
                yield NETWORK, one.value, value
            elif isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store):
                yield from _in_place(one.value)
    if isinstance(node, ast.Name) and node.id == "setattr":
        call = getattr(node, "parent", None)
        if not (isinstance(call, ast.Call) and call.func is node):
            yield ANY, node, None  # handed on, with a name or without
    if isinstance(node, ast.Call):
        yield from _by_call(node)


def _by_call(node: ast.Call) -> Iterator[_Assigned]:
    name = last_name(node.func)
    if name == "setattr" and len(node.args) == 3:
        literal = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
        yield (f".{literal}" if isinstance(literal, str) else ANY), node.args[0], node.args[2]
    elif isinstance(node.func, ast.Attribute) and name in constancy.CHANGING:
        yield from _in_place(node.func.value)
    elif name in constancy.WRITING:
        for argument in node.args:
            yield from _in_place(argument)
    if isinstance(node.func, ast.Attribute) and name in _CHANGING_NETWORKS:
        yield NETWORK, node.func.value, None


def _in_place(node: ast.expr) -> Iterator[_Assigned]:
    """Give what holds an object that is changed."""
    if isinstance(node, ast.Attribute):
        yield (ANY if node.attr == "__dict__" else f".{node.attr}"), node.value, None
    elif isinstance(node, ast.Name):
        yield node.id, None, None
    elif isinstance(node, ast.Call) and last_name(node.func) == "vars" and node.args:
        yield ANY, node.args[0], None
