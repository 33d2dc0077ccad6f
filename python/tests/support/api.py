"""The page about Python, made of the sources: signatures and docstrings, nothing is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from support.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "python.md"
_SOURCES = ROOT / "python"

_INTRODUCTION = """# Python

`import veracity` imports neither torch nor NumPy. Every refusal is an exception under
`VeracityError`, with the [codes](../diagnostics.md) of what was found. This page is made of the
sources:
`VERACITY_UPDATE_DOCS=1 python -m pytest python/tests/test_reference.py` writes it.
"""

#: Modules with a public face, and what else is told beside it: what its functions return.
_MODULES = {
    "veracity": (
        ("veracity.export.compile", "CompileResult"),
        ("veracity.proof", "PortResult"),
        ("veracity.proof", "Coverage"),
        ("veracity.proof", "Divergence"),
    ),
    "veracity.transform": (),
    "veracity.fx": (),
    "veracity.drift": (),
}
_SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Yields")
_Definition = ast.ClassDef | ast.FunctionDef


def page() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for module, others in _MODULES.items():
        parts.append(f"\n## {module}\n\n{_prose(_docstring(_tree(module)))}")
        names = [(module, name) for name in public_names(module)]
        for home, name in sorted([*names, *others], key=_rank):
            parts.append(_entry(module, home, name))
    return "".join(parts)


def _rank(one: tuple[str, str]) -> tuple[bool, bool, str]:
    """Functions come first, errors last."""
    _, name = one
    return name.endswith("Error"), not name[0].islower(), name


def public_names(module: str) -> list[str]:
    """Return what `__all__` has, or what is public where there is none."""
    tree = _tree(module)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            named: list[str] = ast.literal_eval(node.value)
            return sorted(name for name in named if not name.startswith("_"))
    definitions = (node.name for node in tree.body if isinstance(node, _Definition))
    return sorted(name for name in definitions if not name.startswith("_"))


def undocumented() -> list[str]:
    """Return public names whose docstring is missing."""
    return [
        f"{home}.{name}"
        for module, others in _MODULES.items()
        for home, name in [*((module, name) for name in public_names(module)), *others]
        if not _docstring(_definition(home, name))
    ]


def _tree(module: str) -> ast.Module:
    path = _SOURCES / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


def _definition(module: str, name: str) -> _Definition:
    """Follow a name to where it is defined; an instance stands for its class."""
    tree = _tree(module)
    for node in tree.body:
        if isinstance(node, _Definition) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _definition(node.module, alias.name)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == name:
                return _definition(module, ast.unparse(node.value.func))
    raise LookupError(f"{module} has no {name}")


def _entry(module: str, home: str, name: str) -> str:
    node = _definition(home, name)
    shown = f"{module}.{name}"
    if isinstance(node, ast.FunctionDef):
        return f"\n### {shown}\n\n{_signature(name, node)}\n{_prose(_docstring(node))}"
    is_instance = name != node.name
    head = "" if is_instance else f"{_class_line(node)}\n"
    text = f"\n### {shown}\n\n{head}{_prose(_docstring(node))}{_given(node)}{_members(node)}"
    for method in _methods(node):
        label = f"{name}.{method.name}"
        is_property = any("property" in ast.unparse(one) for one in method.decorator_list)
        head = f"`{label}`: " if is_property else f"{_signature(label, method)}\n"
        text += f"\n{head}{_prose(_docstring(method))}"
    return text


def _class_line(node: ast.ClassDef) -> str:
    made = next((one for one in node.body if _is_function(one, "__init__")), None)
    if isinstance(made, ast.FunctionDef) and not _is_error(node):
        return _signature(node.name, made)
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    fields = "" if bases else ", ".join(_fields(node))
    return f"```text\nclass {node.name}({bases or fields})\n```"


def _given(node: ast.ClassDef) -> str:
    """Return what is said about the arguments of a class where it is made."""
    made = next((one for one in node.body if _is_function(one, "__init__")), None)
    text = _prose(_docstring(made)) if isinstance(made, ast.FunctionDef) else ""
    return f"\n{text}" if "\n- " in text else ""


def _is_error(node: ast.ClassDef) -> bool:
    return node.name.endswith("Error")


def _is_function(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Return the fields of a dataclass, as they are given."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and "init=False" not in ast.unparse(one).replace(" ", ""):
            default = f" = {ast.unparse(one.value)}" if one.value else ""
            yield f"{ast.unparse(one.target)}: {ast.unparse(one.annotation)}{default}"


def _members(node: ast.ClassDef) -> str:
    """Return the values of an enum."""
    if not any("Enum" in ast.unparse(base) for base in node.bases):
        return ""
    rows = (
        f"| `{ast.unparse(one.targets[0])}` | `{ast.literal_eval(one.value)}` |\n"
        for one in node.body
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)
    )
    return "\n| name | value |\n|---|---|\n" + "".join(rows)


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            yield one


def _signature(label: str, node: ast.FunctionDef) -> str:
    """Return a call as it is typed; a long one with a line for each argument."""
    arguments = _arguments(node.args)
    given = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    given = "" if node.name == "__init__" else given
    line = f"{label}({', '.join(arguments)}){given}"
    if len(line) > 90:
        line = f"{label}(\n    " + ",\n    ".join(arguments) + f",\n){given}"
    return f"```text\n{line}\n```"


def _arguments(given: ast.arguments) -> list[str]:
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    found = [_argument(one, default) for one, default in zip(plain, defaults, strict=True)]
    found = [one for one in found if one not in ("self", "cls")]
    if given.vararg:
        found.append(f"*{_argument(given.vararg, None)}")
    elif given.kwonlyargs:
        found.append("*")
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    found += [_argument(one, default) for one, default in pairs]
    if given.kwarg:
        found.append(f"**{_argument(given.kwarg, None)}")
    return found


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    text = one.arg + (f": {ast.unparse(one.annotation)}" if one.annotation else "")
    if default is None:
        return text
    sign = " = " if one.annotation else "="
    return f"{text}{sign}{ast.unparse(default)}"


def _docstring(node: ast.Module | _Definition) -> str:
    return ast.get_docstring(node) or ""


def _prose(docstring: str) -> str:
    """Return a docstring as Markdown: sections become lists."""
    parts = re.split(rf"^({'|'.join(_SECTIONS)}):\n", docstring, flags=re.M)
    text = parts[0].strip() + "\n"
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        text += _section(title, body)
    return text


def _section(title: str, body: str) -> str:
    lines = body.rstrip().splitlines()
    joined: list[str] = []
    for line in lines:
        is_new = line.startswith("    ") and not line.startswith("     ")
        if is_new or not joined:
            joined.append(line.strip())
        elif line.strip():
            joined[-1] += f" {line.strip()}"
    if title in ("Args", "Attributes", "Raises"):
        items = (re.sub(r"^(\*{0,2}\w+):", r"`\1`:", line) for line in joined if line)
        return "\n" + "".join(f"- {item}\n" for item in items)
    return f"\n{title}: {' '.join(joined)}\n"
