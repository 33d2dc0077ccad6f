"""What statements assign, and what becomes of the objects that they write into."""

# ruff: noqa: D102 - methods are named after what they walk

from __future__ import annotations

import ast
from dataclasses import replace
from types import ModuleType

from veracity.tracing.flow.task import Taint
from veracity.tracing.flow.walking import Walking
from veracity.tracing.resolving import SHOWING_TENSORS

#: Attributes that say what an object is: whoever has the object decides by them.
_IDENTITY = frozenset({"__class__", "__code__", "__defaults__", "__kwdefaults__", "__dict__"})


#: Where objects keep their attributes: whoever writes there may change any of them.
_ATTRIBUTES = frozenset({"._buffers", "._parameters", "._modules", ".__dict__"})


class Assignments(Walking):
    """Assignments."""

    def assign(self, target: ast.expr, taint: Taint | None, value: ast.expr | None = None) -> None:
        taint = taint or self.met(target) or self.control
        if self.is_around and taint is not None:
            taint = self.control or taint  # what a branch assigns is chosen
        if isinstance(target, ast.Name):
            self.assign_name(target.id, taint)
            root = None if value is None else self.root(value)
            if root is not None and root != target.id:
                self.aliases[target.id] = root
            else:
                self.aliases.pop(target.id, None)
            if value is not None:
                self.names.define(target.id, self.names.resolve(value))
        elif isinstance(target, ast.Starred):
            self.assign(target.value, taint)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for number, one in enumerate(target.elts):
                same = len(parts) == len(target.elts)
                own = self.value(parts[number]) if same else taint
                self.assign(one, own, parts[number] if same else None)
        elif isinstance(target, ast.Attribute):
            self.write_to_others(target)
            if target.attr == "data" and taint is not None:
                self.change(target.value, taint)
            elif taint is not None and (
                target.attr in _IDENTITY or self.names.is_ready_made(target.value)
            ):
                self.decide(taint, target)
            elif taint is not None:
                self.keep("." + target.attr, taint)
                root = self.root(target.value)
                if root in self.parameters and root not in ("self", "cls"):
                    self.outcome.parameters[root] = taint
        elif isinstance(target, ast.Subscript):
            index = self.value(target.slice)
            self.write_memory(target.value)
            found = taint or (None if index is None else replace(index, what="index"))
            if found is not None:
                self.change(target.value, found)

    def write_to_others(self, target: ast.Attribute) -> None:
        """Code sets something of an object that is not its own: `getcontext().prec = 4`."""
        base = self.value(target.value)
        if base is not None and base.what == "answer":
            self.decide(base, target)

    def write_memory(self, target: ast.expr) -> None:
        """Code writes into an object: is it memory of a tensor that was handed out?"""
        base = self.value(target)
        if base is not None and base.what == "memory":
            self.decide(base, target)

    def write_shared(self, target: ast.expr, taint: Taint) -> None:
        """Something made of the value is put into memory that others may show."""
        if self.names.is_memory(target):
            memory = self.names.memory_of(target)
            if not any(one is memory for one in self.task.unread):
                self.decide(taint, target, memory=memory)

    def assign_name(self, name: str, taint: Taint | None) -> None:
        if name in self.outer and taint is not None:
            self.keep("@" + name, taint)
        if taint is None:
            self.tainted.pop(name, None)
        else:
            self.tainted[name] = taint

    def change(self, target: ast.expr, taint: Taint) -> None:
        """Something made of the value is put into an object."""
        self.write_shared(target, taint)
        root = self.root(target)
        seen: set[str] = set()
        while root is not None and root not in seen:
            seen.add(root)
            if root in _ATTRIBUTES:
                self.decide(taint, target)
            if root.startswith("."):
                self.keep(root, taint)
            else:
                self.tainted[root] = taint
                if root in self.outer or root not in self.names.own:
                    self.keep("@" + root, taint)
                if root in self.parameters:
                    self.outcome.parameters[root] = taint
            root = self.aliases.get(root)
        if not seen:
            self.decide(taint, target)

    def hold(self, root: str, taint: Taint) -> None:
        if root.startswith("."):
            self.keep(root, taint)
        else:
            self.tainted[root] = taint

    def root(self, node: ast.expr) -> str | None:
        """Return the variable or attribute whose object an expression may show a part of."""
        while True:
            if isinstance(node, ast.Name):  # what a function of a module gives is no part of it
                return None if self.names.kind(node) is ModuleType else node.id
            if isinstance(node, ast.Attribute) and node.attr in SHOWING_TENSORS:
                node = node.value  # the same memory by another name
                continue
            if isinstance(node, ast.Attribute):
                return "." + node.attr
            if isinstance(node, ast.Subscript | ast.Starred | ast.Await):
                node = node.value
            elif isinstance(node, ast.NamedExpr):
                node = node.target
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                node = node.func.value
            else:
                return None

    def read(self, node: ast.expr) -> Taint | None:
        """Return the taint of the present content of a target."""
        if isinstance(node, ast.Name):
            return self.tainted.get(node.id)
        if isinstance(node, ast.Attribute):
            return self.tainted.get("." + node.attr) or self.read(node.value)
        return self.read(node.value) if isinstance(node, ast.Subscript) else None

    def met(self, node: ast.expr) -> Taint | None:
        """Return the taint of an expression that gives the value."""
        source = self.task.sources.get(node)
        self.outcome.met = self.outcome.met or source is not None
        return source
