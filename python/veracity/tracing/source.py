"""The user's source as a tree, and where in it an instruction is."""

from __future__ import annotations

import ast
import dis
import functools
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Place:
    """Where an instruction is.

    Attributes:
        file: The file.
        scope: The function around it; comprehensions are part of the function.
        nodes: The expressions that it may belong to: one, where it is known which.
    """

    file: str
    scope: Scope
    nodes: tuple[ast.expr, ...]


@functools.lru_cache(maxsize=64)
def tree_of(file: str) -> ast.Module | None:
    """Return the tree of a file, with `parent` set on every node; none where it cannot be read."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    if not tree.body:
        return None
    tree.file = file  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node  # type: ignore[attr-defined]
    return tree


def text_of(file: str, node: ast.AST, most: int = 48) -> str:
    """Return the source of a node on one line, cut where it is long."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError):
        return "..."
    return text if len(text) <= most else text[: most - 3] + "..."


def place_of(code: CodeType, instruction: int, line: int | None = None) -> Place | None:
    """Return where an instruction is; none where there is no source."""
    tree = tree_of(code.co_filename)
    if tree is None:
        return None
    node = _exact(tree, _span(code, instruction))
    nodes: tuple[ast.expr, ...]
    inside = only_lambda(tree, code) if code.co_name == "<lambda>" else None
    if isinstance(node, ast.expr):
        nodes = (node,)
    elif inside is not None:
        return Place(code.co_filename, inside, tuple(_header_values(inside.body[0])))
    else:
        line = line or line_of(code, instruction) or code.co_firstlineno
        statement = node if isinstance(node, ast.stmt) else _statement(tree, line)
        if statement is None:
            return None
        test = getattr(statement, "test", None)
        nodes = (test,) if isinstance(test, ast.expr) else tuple(_header_values(statement))
    if not nodes:
        return None
    return Place(code.co_filename, scope_of(nodes[0]), nodes)


#: Python 3.11 makes a call in two instructions. Once it has specialised a call of a builtin, the
#: first does all of it, so that one call has two places.
_FIRST_OF_CALL = dis.opmap.get("PRECALL")
_SIZE_OF_FIRST = 4


def instruction_of(frame: FrameType) -> int:
    """Return the instruction that a function is at: of a call, the same one each time."""
    at = frame.f_lasti
    is_first = _FIRST_OF_CALL is not None and at >= 0 and frame.f_code.co_code[at] == _FIRST_OF_CALL
    return at + _SIZE_OF_FIRST if is_first else at


def line_of(code: CodeType, instruction: int) -> int | None:
    """Return the line of an instruction."""
    lines = (line for first, end, line in code.co_lines() if first <= instruction < end)
    return next(lines, None)


def scope_of(node: ast.AST) -> Scope:
    """Return the function around a node, or the module."""
    current = node
    while not isinstance(current, ast.Module):
        current = current.parent  # type: ignore[attr-defined]
        if isinstance(current, _FUNCTIONS):
            return current
        if isinstance(current, ast.Lambda):
            return _as_function(current)
    return current


def _as_function(node: ast.Lambda) -> ast.FunctionDef:
    """Return a lambda as a function that returns its value, the same one each time."""
    known = getattr(node, "function", None)
    if known is None:
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        known = ast.FunctionDef(name="<lambda>", args=node.args, body=body, decorator_list=[])
        ast.copy_location(known, node)
        node.function = known  # type: ignore[attr-defined]
        known.origin = node  # type: ignore[attr-defined]
    assert isinstance(known, ast.FunctionDef)
    return known


def only_lambda(tree: ast.Module, code: CodeType) -> ast.FunctionDef | None:
    """Return the lambda of a code object as a function, if its line has no other."""
    names = code.co_varnames[: code.co_argcount]
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and tuple(one.arg for one in (*node.args.posonlyargs, *node.args.args)) == names
    ]
    return _as_function(found[0]) if len(found) == 1 else None


def file_of(node: ast.AST) -> str:
    """Return the file that a node is in."""
    root: Any = getattr(node, "origin", node)
    while getattr(root, "parent", None) is not None:
        root = root.parent
    return str(getattr(root, "file", ""))


def own_variables(code: CodeType) -> frozenset[str]:
    """Return the variables of a function that no function inside of it shares."""
    return frozenset(code.co_varnames) - frozenset(code.co_cellvars)


def definitions(tree: ast.Module) -> dict[tuple[str, int], Scope]:
    """Return the functions of a module by their names and first lines, decorators included."""
    kept: Any = tree
    if not hasattr(kept, "definitions"):
        kept.definitions = {
            (node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)])): node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
    return kept.definitions  # type: ignore[no-any-return]


def scopes(tree: ast.Module) -> Iterator[Scope]:
    """Yield the module and every function in it."""
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            yield node


def own_nodes(scope: Scope) -> list[ast.AST]:
    """Return what belongs to a function itself, and not to functions and classes inside of it."""
    kept: Any = scope  # looked at once for a source: it is asked for on every pass
    if not hasattr(kept, "own_nodes"):
        kept.own_nodes = list(_own_nodes(scope))
    return kept.own_nodes  # type: ignore[no-any-return]


def _own_nodes(scope: Scope) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
        elif isinstance(node, ast.ClassDef) and isinstance(scope, ast.Module):
            waiting.extend(one for one in node.body if not isinstance(one, _FUNCTIONS))


def later_nodes(scope: Scope) -> list[ast.AST]:
    """Return the own nodes of a function that may run after the first round of its loop."""
    return [node for node in own_nodes(scope) if not _is_over(node, scope)]


def _is_over(node: ast.AST, scope: Scope) -> bool:
    inner, outer = node, getattr(node, "parent", None)
    while outer is not None and outer is not scope:
        if isinstance(outer, ast.If) and inner in outer.body:
            never = isinstance(outer.test, ast.Constant) and not outer.test.value
            if never or holds_at_first(outer.test):
                return True
        inner, outer = outer, getattr(outer, "parent", None)
    return False


def holds_at_first(test: ast.expr) -> bool:
    """Say whether a test holds in the first round of the loop around it, and in no other."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        counter: ast.expr = test.operand
    elif isinstance(test, ast.Compare) and [type(one) for one in test.ops] == [ast.Eq]:
        counter, other = test.left, test.comparators[0]
        if not isinstance(other, ast.Constant) or type(other.value) is not int or other.value:
            return False
    else:
        return False
    outer = getattr(test, "parent", None)
    while outer is not None and not isinstance(outer, _FUNCTIONS):
        if isinstance(outer, ast.For) and _counts_from_zero(outer, counter):
            return True
        outer = getattr(outer, "parent", None)
    return False


def _counts_from_zero(loop: ast.For, counter: ast.expr) -> bool:
    if not isinstance(loop.iter, ast.Call) or not isinstance(counter, ast.Name):
        return False
    name, most = getattr(loop.iter.func, "id", ""), len(loop.iter.args)
    target = loop.target
    if name == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    is_plain = most == 1 and not loop.iter.keywords and name in ("range", "enumerate")
    return is_plain and isinstance(target, ast.Name) and target.id == counter.id


Span = tuple[int, int, int, int]


def _span(code: CodeType, instruction: int) -> Span | None:
    positions = getattr(code, "co_positions", None)  # since Python 3.11
    if instruction < 0:
        return None
    if positions is None:
        return _span_by_compiling(code, instruction)
    for number, (line, end, column, end_column) in enumerate(positions()):
        if number == instruction // 2:
            found = (line, column, end, end_column)
            return None if None in found else found
    return None


def _span_by_compiling(code: CodeType, instruction: int) -> Span | None:
    """Find what Python 3.10 does not keep: which expression becomes this instruction."""
    from executing import Source  # only installed there

    if "JUMP_IF" in dis.opname[code.co_code[instruction]]:
        instruction -= 2  # what is asked is made just before
    line = line_of(code, instruction)
    if line is None:
        return None
    frame = SimpleNamespace(f_code=code, f_lasti=instruction, f_lineno=line, f_globals={})
    node = Source.executing(frame).node
    if not isinstance(node, ast.expr | ast.stmt):
        return None
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def _exact(tree: ast.Module, span: Span | None) -> ast.AST | None:
    """Return the node of a span; of several, the outermost expression."""
    if span is None:
        return None
    found: ast.AST | None = None
    for node in _spans(tree).get(span, ()):
        if isinstance(node, ast.pattern):
            return _subject(node)
        if found is None or not isinstance(found, ast.expr):
            found = node
    return found


_span_tables: dict[int, tuple[ast.Module, dict[Span, list[ast.AST]]]] = {}


def _spans(tree: ast.Module) -> dict[Span, list[ast.AST]]:
    known = _span_tables.get(id(tree))
    if known is not None and known[0] is tree:
        return known[1]
    table: dict[Span, list[ast.AST]] = {}
    for node in ast.walk(tree):  # from the outside in
        if isinstance(node, ast.expr | ast.stmt | ast.pattern):
            end_line, end_column = node.end_lineno, node.end_col_offset
            if end_line is not None and end_column is not None:
                span = (node.lineno, node.col_offset, end_line, end_column)
                table.setdefault(span, []).append(node)
    if len(_span_tables) > 64:
        _span_tables.clear()
    _span_tables[id(tree)] = (tree, table)
    return table


def _subject(node: ast.AST) -> ast.AST:
    while not isinstance(node, ast.Match):
        node = node.parent  # type: ignore[attr-defined]
    return node.subject


def _statement(tree: ast.Module, line: int) -> ast.stmt | None:
    """Return the innermost statement whose own lines, not those of its body, hold this one."""
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= _last_line(node):
            continue
        if found is None or node.lineno >= found.lineno:
            found = node
    return found


def _last_line(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        return max(statement.lineno, int(body[0].lineno) - 1)
    return statement.end_lineno or statement.lineno


def _header_values(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield every expression of a statement, but for its body and the names of what it calls."""
    waiting: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)
    ]
    while waiting:
        node = waiting.pop()
        is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if isinstance(node, ast.expr) and is_read and not isinstance(node, ast.Constant):
            yield node
        called = node.func if isinstance(node, ast.Call) else None
        for child in ast.iter_child_nodes(node):
            if child is called:
                waiting.extend(ast.iter_child_nodes(child))
            elif not isinstance(child, ast.stmt):
                waiting.append(child)
