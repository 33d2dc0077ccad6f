"""Names for the inputs and outputs of a decorated function."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from veracity.errors import refuse


def named_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments that were given, by parameter; `*args` are `arg_0`, `arg_1`, ...

    `self` and `cls` are left out, and so are parameters that keep their default.
    """
    bound = inspect.signature(function).bind(*args, **kwargs)
    named: dict[str, Any] = {}
    for position, (name, value) in enumerate(bound.arguments.items()):
        kind = bound.signature.parameters[name].kind
        if position == 0 and name in ("self", "cls"):
            continue
        if kind is inspect.Parameter.VAR_POSITIONAL:
            named.update({f"arg_{index}": item for index, item in enumerate(value)})
        elif kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named


def call_with(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    replaced: dict[str, Any],
) -> Any:
    """Call `function` with its named arguments replaced."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    for name in list(bound.arguments):
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            count = len(bound.arguments[name])
            bound.arguments[name] = tuple(replaced[f"arg_{index}"] for index in range(count))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: replaced[key] for key in bound.arguments[name]}
        elif name in replaced:
            bound.arguments[name] = replaced[name]
    return function(*bound.args, **bound.kwargs)


def named_results(function: Callable[..., Any], result: Any, location: str) -> dict[str, Any]:
    """Return what a function returned, by the names in its `return` statement.

    A tuple is several results; anything else, a list too, is one: its parts are named after it
    (`out_0`, `out_1`). So is a tuple whose parts the `return` statement does not show. These are
    LEAPP's names, and names are what the robot's side is written against.
    """
    name = getattr(function, "__name__", "the function")
    if result is None:
        raise refuse("VER0902", f"`{name}` returns nothing", location=location)
    values = list(result) if type(result) is tuple else [result]
    names = _return_names(function) or [f"output{number + 1}" for number in range(len(values))]
    if len(names) == 1 < len(values):
        values = [result]
    if len(names) != len(values):
        message = f"`{name}` returns {len(values)} values where its source shows {len(names)}"
        raise refuse("VER0902", message, location=location)
    results: dict[str, Any] = {}
    for number, (label, value) in enumerate(zip(names, values, strict=True), start=1):
        results[label if label not in results else f"output{number}"] = value
    return results


@functools.lru_cache(maxsize=256)
def _return_names(function: Callable[..., Any]) -> list[str] | None:
    """Return the names in the `return` statements of a function; `None` when there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    found = [_names(node.value) for node in _returns(definition) if node.value is not None]
    if not found:
        return None
    if any(len(names) != len(found[0]) for names in found):
        name = getattr(function, "__name__", "the function")
        raise refuse("VER0902", f"`{name}` returns different numbers of values")
    return [_best_name(labels) for labels in zip(*found, strict=True)]


def _best_name(labels: tuple[str, ...]) -> str:
    """Return the first of several names for a result that says more than `output`."""
    return next((label for label in labels if not label.startswith("output")), labels[0])


def _returns(definition: ast.AST) -> list[ast.Return]:
    """Return the `return` statements of a function, without those of inner functions."""
    found: list[ast.Return] = []
    for child in ast.iter_child_nodes(definition):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(child, ast.Return):
            found.append(child)
        found += _returns(child)
    return found


def _names(value: ast.expr) -> list[str]:
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return [
        part.id if isinstance(part, ast.Name) else f"output{number}"
        for number, part in enumerate(parts, start=1)
    ]
