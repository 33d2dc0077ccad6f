"""Whether the source of running code shows that something is the same on every tick.

`scale = torch.tensor([1.0, 2.0])` at the top of a loop holds the same each time, and so does what
is made of it and of settings. `command = torch.tensor(stick.read())` may hold something else,
whatever it held while it was recorded. An expression is fixed if all that it reads is written down
in the source, or is assigned once and never changed. When in doubt it is not.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

from veracity.tracing import names as naming
from veracity.tracing import purity, resolving, source
from veracity.tracing.flow import LOOPS
from veracity.tracing.flow.task import last_name
from veracity.tracing.operations import owner_of_file, words
from veracity.tracing.resolving import NO_OBJECT, Method, Names
from veracity.tracing.source import Scope
from veracity.tracing.trail import ClassOf, keep_step

#: How many variables and functions are followed, one from the other.
MOST_DEPTH = 12
#: Callers of a running function that are looked at for what they give it.
MOST_CALLERS = 3
_USER = 0
BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.Match)
#: Functions that set a new object up: what they assign is assigned once.
SETTING_UP = words("__init__ __post_init__ __new__ __init_subclass__")
#: What gives something else each time, or whatever was in memory.
_DRAWING = words(
    """
    next send recv get_nowait fetchone readline
    rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial
    poisson empty empty_like empty_strided new_empty new_empty_strided random_ uniform_ normal_
    bernoulli_ exponential_ geometric_ cauchy_ log_normal_
    """
)
#: Methods that change the object that they belong to; of tensors, those that end in `_`.
CHANGING = words(
    """
    append appendleft extend extendleft insert pop popleft popitem clear remove discard sort reverse
    update setdefault add rotate fill put itemset resize partition load_state_dict
    """
)
#: Functions that write into an argument.
WRITING = words(
    """
    pack_into readinto recv_into recvfrom_into copyto putmask place fill_diagonal shuffle memmove
    """
)
#: What of a tensor is given by the tensor.
_SHOWN = resolving.SHOWING_TENSORS | words("shape dtype device ndim itemsize")
#: Modules, besides the user's own, of classes whose attributes only their owner assigns.
_PLAIN = words("types argparse builtins collections torch dataclasses")


@dataclass(frozen=True)
class Reader:
    """Where an expression stands.

    Attributes:
        scope: The function or module.
        names: What its names stand for.
        goes_round: Whether the ticks are a loop in it: what stands in no loop runs once.
        given: Variables that are known to hold the same each time: parameters, say.
        depth: How many variables and functions were followed on the way.
        caller: Of a running function, the one that called it.
        arguments: What that gives to its parameters.
    """

    scope: Scope
    names: Names
    goes_round: bool = False
    given: frozenset[str] = frozenset()
    depth: int = 0
    caller: Reader | None = None
    arguments: Mapping[str, ast.expr] = field(default_factory=dict)


def is_constant(tensor: torch.Tensor) -> bool:
    """Say whether the source of the code that is running shows that a tensor holds the same."""
    return _is_fixed_where(_shows(tensor))


def is_constant_array(array: Any) -> bool:
    """Say the same of an array of NumPy's."""
    return _is_fixed_where(lambda value: value is array)


def _is_fixed_where(wanted: naming.Wanted) -> bool:
    try:
        return any(_is_fixed_at(*holder) for holder in holders(wanted))
    except Exception:  # any: what code looks like is up to the user, and doubt is told
        return False


def _shows(tensor: torch.Tensor) -> naming.Wanted:
    """Return what says whether a value is on the memory of a tensor."""
    storage = tensor.untyped_storage()._cdata

    def wanted(value: Any) -> bool:
        is_tensor = issubclass(type(value), torch.Tensor) and value.layout == torch.strided
        return is_tensor and value.untyped_storage()._cdata == storage

    return wanted


def held_by(tensor: torch.Tensor) -> list[tuple[str, type | None]]:
    """Return the variables and attributes of the innermost function that hold a tensor.

    As `heap.Root` names them, and of attributes the class of the object.
    """
    found: list[tuple[str, type | None]] = []
    first: Reader | None = None
    for reader, name, held, path in holders(_shows(tensor)):
        first = first or reader
        if reader is first and not path:
            found.append((f"={name}", None))
        elif reader is first and path[0] == "." and path[1:].isidentifier():
            found.append((path, type(held)))
    return found


def _is_fixed_at(reader: Reader, name: str, held: Any, path: str) -> bool:
    if not path.startswith("."):
        return _is_fixed_name(name, reader)
    attribute = path[1:].partition(".")[0].partition("[")[0]
    return _is_fixed_attribute(attribute, reader, type(held))


def holders(wanted: naming.Wanted) -> Iterator[tuple[Reader, str, Any, str]]:
    """Give the variables of running functions that hold a value, and the path inside of them."""
    for frame in list(naming._user_frames())[: naming.MOST_FRAMES]:
        reader = reader_of(frame)
        for name, value in list(frame.f_locals.items()) if reader is not None else ():
            path = naming._path(value, name, wanted)
            if path is not None and reader is not None:
                yield reader, name, value, path.removeprefix(name)


def reader_of(frame: FrameType, callers: int = MOST_CALLERS) -> Reader | None:
    """Return where the running function stands, and its callers; none without source."""
    step = keep_step(frame)
    place = source.place_of(step.code, step.instruction, step.line)
    if place is None:
        return None
    goes_round = isinstance(place.scope, ast.Module) or in_loop(place.nodes[0])
    found = Reader(place.scope, resolving.names_of(step), goes_round)
    back = frame.f_back
    while back is not None and owner_of_file(back.f_code.co_filename) != _USER:
        back = back.f_back
    caller = None if back is None or not callers else reader_of(back, callers - 1)
    return found if caller is None or back is None else _called_by(caller, back, found)


def _called_by(caller: Reader, frame: FrameType, found: Reader) -> Reader:
    """Note what a function is given, where its caller shows it."""
    place = source.place_of(frame.f_code, source.instruction_of(frame), frame.f_lineno)
    call = place.nodes[0] if place is not None else None
    declared = getattr(found.scope, "args", None)
    if not isinstance(call, ast.Call) or not isinstance(declared, ast.arguments):
        return found
    if last_name(call.func) != getattr(found.scope, "name", "") and not _is_body(found.scope):
        return found
    names = [one.arg for one in (*declared.posonlyargs, *declared.args)]
    if names[:1] == ["self"] and (isinstance(call.func, ast.Attribute) or _is_body(found.scope)):
        names = names[1:]
    given = dict(zip(names, call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords if one.arg is not None}
    return replace(found, caller=caller, arguments=given)


def _is_body(scope: Scope) -> bool:
    """Say whether a function is what runs when an object is called."""
    return getattr(scope, "name", "") in ("forward", "__call__")


# Variables


def _is_fixed_name(name: str, reader: Reader) -> bool:
    if name in reader.given:
        return True
    assigned = _assignments(reader.scope).get(name)
    if assigned is None:
        return _is_fixed_outside(name, reader)
    if len(assigned) > 1 or assigned[0] is None or is_changed(reader.scope, name):
        return False
    if reader.goes_round and not in_loop(assigned[0]):
        return True
    return is_fixed(assigned[0], reader)


def _is_fixed_outside(name: str, reader: Reader) -> bool:
    """Say whether a variable of a module, or of a function around, is assigned once."""
    if name in parameters_of(reader.scope):
        if reader.goes_round:  # it is given once, for all ticks
            return not is_changed(reader.scope, name)
        if reader.caller is not None and name in reader.arguments:
            return is_fixed(reader.arguments[name], reader.caller)
        return name in ("self", "cls")  # the object; its attributes are looked at by name
    tree = source.tree_of(source.file_of(reader.scope))
    found = reader.names.resolve(ast.Name(name, ast.Load()))
    if tree is None or found is NO_OBJECT:
        return False
    around = [one for one in source.scopes(tree) if _shares(one, name)]
    assigned = [value for one in around for value in _assignments(one).get(name, ())]
    if any(value is None or in_loop(value) for value in assigned) or len(assigned) > 1:
        return False
    return not any(is_changed(scope, name) for scope in source.scopes(tree))


def _shares(scope: Scope, name: str) -> bool:
    """Say whether a function assigns a variable that others see."""
    outer = any(
        isinstance(node, ast.Global | ast.Nonlocal) and name in node.names
        for node in source.own_nodes(scope)
    )
    return outer or isinstance(scope, ast.Module) or name in resolving.shared_with_inner(scope)


@functools.lru_cache(maxsize=256)
def _assignments(scope: Scope) -> dict[str, list[ast.expr | None]]:
    """Return what a function assigns to its variables; none where no expression says it."""
    found: dict[str, list[ast.expr | None]] = {}
    for node in source.own_nodes(scope):
        for target, value in targets(node):
            for name, part in pairs(target, value):
                found.setdefault(name, []).append(part)
    return found


def targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Give what a statement assigns to, and the expression that says what."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.NamedExpr) or (isinstance(node, ast.AnnAssign) and node.value):
        yield node.target, node.value
    elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor):
        yield node.target, None
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, None
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield ast.Name(node.name, ast.Store()), None


def pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    """Give the names of a target and what each gets: a part of the value, or something of all."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Starred):
        yield from pairs(target.value, value)
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        same = len(parts) == len(target.elts)
        for number, one in enumerate(target.elts):
            yield from pairs(one, parts[number] if same else value)


def is_changed(scope: Scope, name: str) -> bool:
    """Say whether a function changes the object of a variable, or the one of an attribute."""

    def is_it(node: ast.AST) -> bool:
        return getattr(node, "attr", getattr(node, "id", None)) == name

    for node in source.own_nodes(scope):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            changed = is_it(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func.attr
            in_place = called.endswith("_") and not called.endswith("__")
            changed = is_it(node.func.value) and (in_place or called in CHANGING)
            changed = changed or (called in WRITING and any(is_it(one) for one in node.args))
        elif isinstance(node, ast.Call) and last_name(node.func) in WRITING:
            changed = any(is_it(one) for one in node.args)
        elif isinstance(node, ast.keyword):
            changed = node.arg == "out" and is_it(node.value)
        else:
            changed = isinstance(node, ast.AugAssign) and is_it(node.target)
        if changed:
            return True
    return False


def parameters_of(scope: ast.AST) -> set[str]:
    """Return the parameters of a function."""
    arguments = getattr(scope, "args", None)
    inside = ast.walk(arguments) if isinstance(arguments, ast.arguments) else ()
    return {one.arg for one in inside if isinstance(one, ast.arg)}


def in_loop(node: ast.AST) -> bool:
    """Say whether something is in a loop of its function."""
    inner, outer = node, getattr(node, "parent", None)
    while outer is not None and not isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(outer, LOOPS) and inner is not getattr(outer, "iter", None):
            return True
        inner, outer = outer, getattr(outer, "parent", None)
    return False


def is_conditional(node: ast.AST, scope: Scope) -> bool:
    """Say whether something decides whether a statement of a function runs."""
    outer = getattr(node, "parent", None)
    while outer is not None and outer is not scope:
        if isinstance(outer, BRANCHES):
            return True
        outer = getattr(outer, "parent", None)
    return False


# Attributes


def _is_fixed_attribute(name: str, reader: Reader, kind: type) -> bool:
    """Say whether an attribute is set up once, or assigned in one place that gives the same."""
    files = {source.file_of(reader.scope), file_of_class(kind)} - {""}
    trees = [tree for tree in map(source.tree_of, files) if tree is not None]
    scopes = [scope for tree in trees for scope in source.scopes(tree)]
    if any(is_changed(scope, name) for scope in scopes):
        return False
    stores = [(scope, *one) for scope in scopes for one in _stores(scope, name)]
    later = [one for one in stores if getattr(one[0], "name", "") not in SETTING_UP]
    later = [one for one in later if not isinstance(one[0], ast.Module) or in_loop(one[1])]
    is_known = bool(stores) or resolving._in_class(kind, name) is not NO_OBJECT or _is_plain(kind)
    return is_known and len(later) <= 1 and all(_gives_once(*one, reader) for one in later)


def _gives_once(scope: Scope, node: ast.AST, value: ast.expr | None, reader: Reader) -> bool:
    if is_conditional(node, scope):
        return False
    names = reader.names if scope is reader.scope else resolving.names_in(scope, reader.names)
    return value is not None and is_fixed(value, Reader(scope, names, depth=reader.depth + 1))


def _stores(scope: Scope, name: str) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """Give where and what a function assigns to attributes of a name."""
    for node in source.own_nodes(scope):
        for target, value in targets(node):
            for one in ast.walk(target):
                if isinstance(one, ast.Attribute) and one.attr == name:
                    yield node, value


def _is_plain(kind: type) -> bool:
    """Say whether objects of a class of others have the attributes that somebody gave them."""
    return kind.__module__.partition(".")[0] in _PLAIN


def file_of_class(kind: type | None) -> str:
    """Return the file of a class of the user's."""
    if kind is None:
        return ""
    file = str(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")
    if not file:  # a module that is no longer known, or made by hand
        codes = (getattr(one, "__code__", None) for one in vars(kind).values())
        file = next((one.co_filename for one in codes if one is not None), "")
    return file if file and owner_of_file(file) == _USER else ""


# Expressions


def is_fixed(node: ast.AST | None, reader: Reader) -> bool:
    """Say whether an expression gives the same each time."""
    if reader.depth > MOST_DEPTH:
        return False
    reader = replace(reader, depth=reader.depth + 1)
    if node is None or isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return _is_fixed_name(node.id, reader)
    if isinstance(node, ast.Attribute):
        return _is_fixed_part(node, reader)
    if isinstance(node, ast.Call):
        return _is_fixed_call(node, reader)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        return _is_fixed_comprehension(node, reader)
    if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda):
        return False
    inside = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    return all(is_fixed(one, reader) for one in inside)


def _is_fixed_part(node: ast.Attribute, reader: Reader) -> bool:
    owner = reader.names.resolve(node.value)
    if isinstance(owner, ModuleType):
        return True
    if isinstance(reader.names.resolve(node), FunctionType | type) or node.attr in _SHOWN:
        return is_fixed(node.value, reader)
    kind = owner.kind if isinstance(owner, ClassOf) else type(owner)
    if owner is NO_OBJECT or not is_fixed(node.value, reader):
        return False
    if isinstance(owner, type):
        return _is_fixed_attribute(node.attr, reader, owner)
    getter = getattr(resolving._in_class(kind, node.attr), "fget", None)
    if getter is not None:
        return _gives_the_same(Method(getter, node.value), reader)
    is_own = bool(file_of_class(kind)) or _is_plain(kind)
    return is_own and _is_fixed_attribute(node.attr, reader, kind)


def _is_fixed_call(node: ast.Call, reader: Reader) -> bool:
    given = [*node.args, *(one.value for one in node.keywords)]
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in _DRAWING or not all(is_fixed(one, reader) for one in given):
        return False
    called = reader.names.callable_of(node.func)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if reader.names.source_of(called) is not None:
        return (owner is None or is_fixed(owner, reader)) and _gives_the_same(called, reader)
    if isinstance(called, type) and file_of_class(called):
        return True  # a new object of the user's: its attributes are looked at by name
    if owner is not None and not isinstance(reader.names.resolve(owner), ModuleType):
        known = called is not None or hasattr(torch.Tensor, name)
        return known and is_fixed(owner, reader) and not _may_differ(called)
    return called is not None and not _may_differ(called)


def _may_differ(called: Any) -> bool:
    function = getattr(called, "function", called)
    return function is not None and purity.may_differ(function)


def _gives_the_same(called: Any, reader: Reader) -> bool:
    """Say whether a function of the user's gives the same for the same arguments."""
    found = reader.names.source_of(called)
    if found is None:
        return False
    scope, names, _ = found
    if isinstance(called, Method) and not isinstance(scope, ast.Module):
        first = [one.arg for one in scope.args.args[:1]]
        names = names.inside(dict.fromkeys(first, reader.names.resolve(called.owner)))
    there = Reader(scope, names, given=frozenset(parameters_of(scope)), depth=reader.depth)
    nodes = source.own_nodes(scope)
    if any(isinstance(node, (*LOOPS, ast.Try, ast.With, ast.Yield)) for node in nodes):
        return False
    decided = [node.test for node in nodes if isinstance(node, ast.If | ast.IfExp)]
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    return all(is_fixed(one, there) for one in [*decided, *returned])


def _is_fixed_comprehension(node: Any, reader: Reader) -> bool:
    targets = {
        one.id
        for part in node.generators
        for one in ast.walk(part.target)
        if isinstance(one, ast.Name)
    }
    inside = replace(reader, given=reader.given | targets)
    parts = [one for part in node.generators for one in (part.iter, *part.ifs)]
    made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    return all(is_fixed(one, inside) for one in [*parts, *made])
