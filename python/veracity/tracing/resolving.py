"""What the names of a function stand for, as far as looking shows it without running code."""

from __future__ import annotations

import ast
import builtins
import contextlib
import weakref
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy
import torch

from veracity.tracing import arrays, observers, source
from veracity.tracing.classes import is_users
from veracity.tracing.operations import owner_of_file
from veracity.tracing.source import Scope, definitions, only_lambda, own_nodes, tree_of
from veracity.tracing.trail import ClassOf, Step

NO_OBJECT: Any = object()
#: By the expression that is called: the functions of the user's that were seen to run there.
_seen_to_run: dict[ast.expr, list[tuple[Scope, Names]]] = {}
_CONTAINERS = (list, dict, set, tuple)
#: Classes of Python's own whose objects stay as they are.
_UNCHANGING = (
    *(str, bytes, int, float, complex, tuple, frozenset, range, type(None), type, ModuleType),
    *(FunctionType, MethodType, torch.Tensor, numpy.ndarray, numpy.generic),
)
#: Attributes of tensors that are tensors.
SHOWING_TENSORS = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})
#: Modules of Python's own whose objects hold others.
_HOLDING = frozenset(
    {"builtins", "collections", "queue", "contextvars", "array", "threading", "thread"}
)


@dataclass(frozen=True)
class Local:
    """A function inside of the function that is walked."""

    scope: ast.FunctionDef | ast.AsyncFunctionDef
    names: Names


@dataclass(frozen=True)
class Method:
    """A function found on the class of an object, and the expression of the object."""

    function: Any
    owner: ast.expr


class Names:
    """The names of one function."""

    def __init__(
        self,
        module: dict[str, Any],
        local: dict[str, Any],
        objects: dict[str, weakref.ref[Any]],
        own: frozenset[str],
    ) -> None:
        """Look names up in `local` first, then in the module and among Python's own."""
        self._module, self._local, self._objects = module, dict(local), dict(objects)
        #: Variables of the function itself; the others belong to a scope around it.
        self.own = own

    def define(self, name: str, found: Any) -> None:
        """Learn what a name stands for from now on."""
        if found is not NO_OBJECT:
            self._local[name] = found

    def inside(self, local: dict[str, Any]) -> Names:
        """Return these names for a call with arguments."""
        known = {name: found for name, found in local.items() if found is not NO_OBJECT}
        return Names(self._module, self._local | known, self._objects, self.own)

    # Looking up

    def resolve(self, node: ast.expr) -> Any:
        """Return the object of an expression, `ClassOf` its class, or `NO_OBJECT`."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return _attribute(self.resolve(node.value), node.attr)
        if isinstance(node, ast.List | ast.ListComp):
            return ClassOf(list)
        if isinstance(node, ast.Dict | ast.DictComp):
            return ClassOf(dict)
        if isinstance(node, ast.Call):
            called = self.resolve(node.func)
            return ClassOf(called) if isinstance(called, type) else NO_OBJECT
        return NO_OBJECT

    def _name(self, name: str) -> Any:
        held = self._objects.get(name)
        found = None if held is None else held()
        if found is not None:
            return found
        for scope in (self._local, self._module):
            if name in scope:
                return scope[name]
        return getattr(builtins, name, NO_OBJECT)

    def callable_of(self, node: ast.expr) -> Any:
        """Return what is called, or `None`; of a bound method, with the expression of its owner."""
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            if owner is NO_OBJECT:
                return None
            found = _attribute(owner, node.attr)
            if isinstance(found, FunctionType) and not isinstance(owner, type | ModuleType):
                kind = owner.kind if isinstance(owner, ClassOf) else type(owner)
                of_class = _in_class(kind, node.attr) is found
                return Method(found, node.value) if of_class else found
            return None if found is NO_OBJECT else found
        found = self.resolve(node)
        return None if found is NO_OBJECT else found

    def source_of(self, called: Any) -> tuple[Scope, Names, ast.expr | None] | None:
        """Return source and names of a function of the user's, and what it is bound to."""
        if isinstance(called, Local):
            return called.scope, called.names, None
        bound = called.owner if isinstance(called, Method) else None
        function = called.function if isinstance(called, Method) else called
        if isinstance(function, torch.nn.Module) or observers.is_foreign(function):
            return None
        first: Any = NO_OBJECT
        if isinstance(function, MethodType):
            first, bound = function.__self__, ast.Constant(None)
            function = function.__func__
        if hasattr(function, "dispatch") and hasattr(function, "registry"):
            return None  # of `functools.singledispatch`: which function runs is a decision
        if not _is_users(function):  # a decorator of the user's is what runs
            function = getattr(function, "__wrapped__", function)
        if not isinstance(function, FunctionType):
            return None
        code = function.__code__
        if owner_of_file(code.co_filename) != 0:
            return None
        scope = _definition(code)
        if scope is None:
            return None
        closed = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            with contextlib.suppress(ValueError):  # not filled yet
                closed[name] = cell.cell_contents
        parameters = scope.args.args if not isinstance(scope, ast.Module) else []
        if first is not NO_OBJECT and parameters:
            closed[parameters[0].arg] = first
        return scope, Names(function.__globals__, closed, {}, source.own_variables(code)), bound

    # What kind of thing it is

    def kind(self, node: ast.expr) -> type | None:
        """Return the class of the object of an expression, where it is known."""
        found = self.resolve(node)
        if found is NO_OBJECT:
            return None
        return found.kind if isinstance(found, ClassOf) else type(found)

    def is_memory(self, node: ast.expr) -> bool:
        """Say whether an expression is known to be a tensor or an array."""
        kind = self.kind(node)
        while kind is None and isinstance(node, ast.Subscript):
            node = node.value
            kind = self.kind(node)
            if kind is not None and issubclass(kind, _CONTAINERS):
                return False
        return kind is not None and issubclass(kind, torch.Tensor | numpy.ndarray)

    def memory_of(self, node: ast.expr) -> Any:
        """Return the tensor or array that an expression is or shows, where it is known."""
        found = self.resolve(node)
        while found is NO_OBJECT and isinstance(node, ast.Subscript):
            node = node.value
            found = self.resolve(node)
        return found if isinstance(found, torch.Tensor | numpy.ndarray) else None

    def swallows(self, context: ast.expr) -> bool:
        """Say whether a context manager may catch what is raised in it."""
        made = context.func if isinstance(context, ast.Call) else context
        name = getattr(made, "attr", getattr(made, "id", ""))
        if name in ("suppress", "raises", "assertRaises", "ExitStack"):
            return True
        found = self.source_of(self.callable_of(made))
        if found is not None:
            return _yields_guarded(found[0])
        leaving = self.leaving(context)
        return leaving is not None and _returns_truth(leaving[0])

    def leaving(self, context: ast.expr) -> tuple[Scope, Names] | None:
        """Return the `__exit__` of a context manager that the user wrote."""
        made = context.func if isinstance(context, ast.Call) else context
        called = self.callable_of(made)
        kind = called if isinstance(called, type) else self.kind(context)
        leave = NO_OBJECT if kind is None else _in_class(kind, "__exit__")
        found = self.source_of(leave) if isinstance(leave, FunctionType) else None
        return None if found is None else (found[0], found[1])

    def fills(self, owner: ast.expr, name: str) -> bool:
        """Say whether a method puts its argument into the object that it belongs to."""
        if name not in observers.FILLING:
            return False
        kind = self.kind(owner)
        if kind is None:
            return True
        return kind.__module__ in ("builtins", "collections", "queue", "array")

    def mutates(self, owner: ast.expr, name: str) -> bool:
        """Say whether a method of Python's own may change the object that it belongs to."""
        kind = self.kind(owner)
        if kind is None or issubclass(kind, _UNCHANGING) or name in observers.PURE_METHODS:
            return False
        return kind.__module__.lstrip("_") in _HOLDING

    def is_module(self, node: ast.expr) -> bool:
        """Say whether an expression gives a module of torch's."""
        kind = self.kind(node)
        return kind is not None and issubclass(kind, torch.nn.Module)

    def is_ready_made(self, node: ast.expr) -> bool:
        """Say whether an expression gives a module of a library: its own code reads attributes."""
        kind = self.kind(node)
        return kind is not None and issubclass(kind, torch.nn.Module) and not is_users(kind)

    def is_torch(self, called: Any, owner: ast.expr | None, name: str) -> bool:
        """Say whether torch or NumPy computes it: tensors in, tensors out."""
        function = called.function if isinstance(called, Method) else called
        if isinstance(function, torch.nn.Module) or (
            isinstance(function, ClassOf) and issubclass(function.kind, torch.nn.Module)
        ):
            return True
        if function is not None:
            module = observers.module_of(function).partition(".")[0]
            sort = type(function).__name__
            return module in ("torch", "numpy") or sort in (
                *("ufunc", "method_descriptor", "getset_descriptor", "wrapper_descriptor"),
                "builtin_function_or_method",
            )
        kind = None if owner is None else self.kind(owner)
        if kind is not None:
            return issubclass(kind, torch.Tensor | numpy.ndarray | arrays.TracedScalar)
        return hasattr(torch.Tensor, name) and owner is not None


def _is_users(function: Any) -> bool:
    return isinstance(function, FunctionType) and owner_of_file(function.__code__.co_filename) == 0


def _yields_guarded(scope: Scope) -> bool:
    """Say whether a generator gives way inside of a `try` that goes on."""
    return any(
        isinstance(node, ast.Try)
        and any(not isinstance(handler.body[-1], ast.Raise) for handler in node.handlers)
        and any(isinstance(inner, ast.Yield) for inner in ast.walk(node))
        for node in own_nodes(scope)
    )


def _returns_truth(scope: Scope) -> bool:
    """Say whether a function may return something true."""
    returned = [node.value for node in own_nodes(scope) if isinstance(node, ast.Return)]
    return any(
        one is not None and not (isinstance(one, ast.Constant) and not one.value)
        for one in returned
    )


#: The functions that ran while a node was open, and that marked or called for it from outside.
_have_run: set[Scope] = set()


def forget_what_ran() -> None:
    """Forget what was seen to run: a session begins."""
    _seen_to_run.clear()
    _have_run.clear()


def saw(scope: Scope) -> None:
    """Remember a function that ran inside of a node."""
    _have_run.add(scope)


def has_run(scope: Scope) -> bool:
    """Say whether a function was seen to run inside of a node."""
    return scope in _have_run


def may_run(scope: Scope) -> bool:
    """Say whether a function may run inside of a node: it did, or one that did mentions it."""
    if not _have_run or scope in _have_run:
        return True
    name = getattr(scope, "name", "")
    if any(getattr(one, "name", "") == name for one in _have_run):
        return False  # of several functions of one name, the one that ran
    return any(
        getattr(node, "attr", getattr(node, "id", "")) == name
        for one in _have_run
        for node in own_nodes(one)
    )


def saw_run(called: ast.expr, function: tuple[Scope, Names]) -> None:
    """Remember a function that ran where an expression is called."""
    known = _seen_to_run.setdefault(called, [])
    if all(scope is not function[0] for scope, _ in known):
        known.append(function)


def ran_at(called: ast.expr) -> list[tuple[Scope, Names, ast.expr | None]]:
    """Return what was seen to run where an expression is called, and what it is bound to."""
    found: list[tuple[Scope, Names, ast.expr | None]] = []
    for scope, names in _seen_to_run.get(called, ()):
        parameters = getattr(getattr(scope, "args", None), "args", [])
        is_method = bool(parameters) and parameters[0].arg in ("self", "cls")
        bound = called.value if isinstance(called, ast.Attribute) else ast.Constant(None)
        found.append((scope, names, bound if is_method else None))
    return found


def names_of(step: Step) -> Names:
    """Return the names of a function that was running."""
    return Names(step.module, step.names, step.objects, source.own_variables(step.code))


def names_in(scope: Scope, like: Names) -> Names:
    """Return the names of another function of the same module."""
    if isinstance(scope, ast.Module):
        return Names(like._module, {}, {}, frozenset())
    own = {
        node.id
        for node in own_nodes(scope)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for node in own_nodes(scope):
        own.difference_update(node.names if isinstance(node, ast.Global | ast.Nonlocal) else ())
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        own |= {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)}
    return Names(like._module, {}, {}, frozenset(own - shared_with_inner(scope)))


def shared_with_inner(scope: Scope) -> set[str]:
    """Return the names that functions inside of a function mention."""
    own = set(own_nodes(scope))
    nodes = [node for statement in scope.body for node in ast.walk(statement)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and node not in own}


def _attribute(owner: Any, name: str) -> Any:
    """Return an attribute without running code of the user's."""
    if owner is NO_OBJECT:
        return NO_OBJECT
    if isinstance(owner, ModuleType):
        return vars(owner).get(name, NO_OBJECT)
    kind = owner.kind if isinstance(owner, ClassOf) else type(owner)
    if isinstance(owner, type):
        return _in_class(owner, name)
    if isinstance(owner, ClassOf):
        return _in_class(kind, name)
    if isinstance(owner, torch.Tensor) and name in SHOWING_TENSORS:
        return ClassOf(torch.Tensor)
    looks: Any = kind.__getattribute__
    held = getattr(owner, "__dict__", {}) if looks is object.__getattribute__ else {}
    if name in held:
        return held[name]
    for group in ("_modules", "_parameters", "_buffers"):
        if isinstance(held.get(group), dict) and name in held[group]:
            return held[group][name]
    return _in_class(kind, name)


def _in_class(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in vars(base):
            found = vars(base)[name]
            return getattr(found, "__func__", found)
    return NO_OBJECT


def _definition(code: Any) -> Scope | None:
    tree = tree_of(code.co_filename)
    if tree is None:
        return None
    found = definitions(tree).get((code.co_name, code.co_firstlineno))
    if found is not None:
        return found
    return only_lambda(tree, code) if code.co_name == "<lambda>" else None
