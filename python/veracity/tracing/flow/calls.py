"""What calls make of the value: marks, observers, functions with source, and the rest."""

# ruff: noqa: D102 - methods are named after what they walk

from __future__ import annotations

import ast
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch

from veracity.tracing import observers, resolving
from veracity.tracing.flow.assignments import Assignments
from veracity.tracing.flow.task import (
    HELD,
    PYTHON,
    WARNING,
    Around,
    Decided,
    Outcome,
    Taint,
    Task,
    first,
    has_marks,
    last_name,
    parameters_of,
)
from veracity.tracing.resolving import NO_OBJECT, Local, Names
from veracity.tracing.source import Scope

#: Arguments of `output_tensors` that say how a node is exported.
_EXPORTING = frozenset({"export_with", "backend_params"})
#: How deep calls are followed.
MOST_DEPTH = 6


class Calls(Assignments):
    """Calls."""

    def call(self, node: ast.Call, *, discarded: bool) -> Taint | None:
        if node in self.task.sources and discarded:
            return self.value(node)
        name = last_name(node.func)
        given = [(one, self.value(one)) for one in [*node.args, *(k.value for k in node.keywords)]]
        taint = first([found for _, found in given])
        self.choose_inputs(node, taint)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_owner = self.value(owner) if owner is not None else self.value(node.func)
        if of_owner is None and self.is_called_object(node.func):
            of_owner = self.read(node.func)
        if of_owner is not None and of_owner.what == HELD:
            of_owner = None if name in observers.VERBS else replace(of_owner, what="value")
        if name in observers.MARKS:
            return self.mark(node, name, taint)
        called = self.names.callable_of(node.func)
        closes_over = isinstance(called, Local) and bool(self.tainted)
        if taint is None and of_owner is None and self.control is None and not closes_over:
            return None
        if observers.observes(called, name):
            if taint is not None:
                self.into_file(node, name, taint)
            self.observer_raises(name, node)
            self.give_to_log(called, taint or self.control)
            return None if called is not None else self.unknown_observer(node, taint, of_owner)
        followed = self.follow(node, called, given)
        if followed is NO_OBJECT and called is None:
            followed = self.follow_what_ran(node, given)
        if followed is not NO_OBJECT:
            return followed or (of_owner if not isinstance(called, Local) else None)
        return self.unfollowed(node, name, called, taint, of_owner, discarded=discarded)

    def is_called_object(self, called: ast.expr) -> bool:
        """Say whether an attribute that is called holds an object: a module, or something unknown.

        What has the name of a method of tensors is one, unless it is known better.
        """
        if not isinstance(called, ast.Attribute):
            return False
        return self.names.is_module(called) or not hasattr(torch.Tensor, called.attr)

    def mark(self, node: ast.Call, name: str, taint: Taint | None) -> Taint | None:
        if self.is_around:
            return None
        if name == "state_tensors" and taint is not None:
            # A state is what the last pass made of it, whatever the code hands in.
            raise Decided(taint, node.lineno, name)
        if name in observers.MARKS_IN:  # what is marked may be anything: it is an input
            taint = self.value(node.args[0]) if node.args else None
        elif name in observers.MARKS_OUT:  # how it is exported is no value of the node
            values = [*node.args[1:], *(k.value for k in node.keywords if k.arg not in _EXPORTING)]
            taint = first([self.value(one) for one in values])
        taint = taint or self.control
        if taint is not None:
            self.decide(taint, node, "" if name in observers.MARKS_OUT else name)
        if name in observers.MARKS_OUT:
            self.closed = True
        elif name in observers.MARKS_IN:
            self.closed, self.has_begun = False, True
        return None

    def choose_inputs(self, node: ast.Call, taint: Taint | None) -> None:
        """Of a walk around nodes: the value chooses what a node is given."""
        around = self.task.around
        if around is None or taint is None or node not in around.calls:
            return
        named = next((one for one in node.args[1:] if isinstance(one, ast.Dict)), None)
        if last_name(node.func) not in observers.MARKS_IN or named is None:
            self.outcome.decided_inputs.setdefault(taint, set()).update(around.calls[node])
            return
        for key, value in zip(named.keys, named.values, strict=True):
            found = self.value(value)
            if found is not None:
                port = str(key.value) if isinstance(key, ast.Constant) else ""
                ports = {f"{name}/{port}" for name in around.calls[node]}
                self.outcome.decided_inputs.setdefault(found, set()).update(ports)

    def takes_in(self, node: ast.Call) -> bool:
        """Say whether the call in which a value left only observes it; its file may be read."""
        name = last_name(node.func)
        if not observers.observes(self.names.callable_of(node.func), name):
            return False
        taint = self.task.sources.get(node) or Taint("value", node.lineno)
        self.into_file(node, name, taint)
        self.observer_raises(name, node)
        self.give_to_log(self.names.callable_of(node.func), taint)
        return True

    def change_by_source(self, node: ast.Call, taint: Taint) -> None:
        """A call that gets the value itself, to sort by it say, may put it where it belongs to."""
        name = last_name(node.func)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if owner is not None and self.names.mutates(owner, name):
            self.change(owner, replace(taint, what="index") if self.is_around else taint)
        elif name in observers.CHANGING_FIRST and node.args:
            self.change(node.args[0], taint)

    def unknown_observer(
        self, node: ast.Call, taint: Taint | None, of_owner: Taint | None
    ) -> Taint | None:
        """Return what comes back from a call that only looks, if its name is right.

        What it belongs to holds the value from then on, and may be asked for it.
        """
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        found = taint or self.control
        if owner is not None and found is not None and not self.closed:
            root = self.root(owner)
            if root is not None and self.read(owner) is None:
                self.hold(root, Taint(HELD, found.line))
        return None if node in self.unused else taint or of_owner

    def give_to_log(self, called: Any, taint: Taint | None) -> None:
        if taint is not None and observers.is_logging(called) and not self.closed:
            self.outcome.logged = self.outcome.logged or taint
            self.outcome.logs_because = self.outcome.logs_because or self.control

    def observer_raises(self, name: str, node: ast.Call) -> None:
        """A call that only looks may raise: a check, or a warning that is an error."""
        if name.lstrip("_").startswith(("assert", "check")):
            self.raise_(Taint("exception", node.lineno))
        elif name == "warn":
            self.raise_(Taint("exception", node.lineno), WARNING)

    def into_file(self, node: ast.Call, name: str, taint: Taint) -> None:
        if name not in observers.INTO_FILES:
            return
        files = [one.value for one in node.keywords if one.arg in ("file", "fp")]
        if name in ("dump", "save"):
            files += node.args
        if self.captured is not None and isinstance(self.captured, ast.Call):
            files += self.captured.args
        for one in files:
            if isinstance(one, ast.Name) and not self.names.is_memory(one):
                self.tainted[one.id] = taint

    def mutates(self, owner: ast.expr, name: str) -> bool:
        """Say whether a method may change the object that it belongs to, and nothing else."""
        unknown = self.names.kind(owner) is None and name in observers.MUTATING
        return unknown or self.names.mutates(owner, name)

    def change_by_torch(
        self, node: ast.Call, name: str, owner: ast.expr | None, changing: Taint
    ) -> None:
        """What torch writes in place, or a module that computes otherwise from then on."""
        in_place = name.endswith("_") and not name.endswith("__")
        if owner is not None and (in_place or name in observers.CHANGING_MODULES):
            self.change_part(owner, changing)
        if in_place and node.args:  # `nn.init.zeros_(weight)`
            self.change_part(node.args[0], changing)

    def is_stepped(self, owner: ast.expr | None) -> bool:
        """Say whether an object of torch's changes others: optimisers and their schedules."""
        kind = None if owner is None else self.names.kind(owner)
        if kind is None or issubclass(kind, torch.Tensor | torch.nn.Module):
            return False
        return kind.__module__.startswith("torch.optim")

    def is_handle(self, owner: ast.expr | None) -> bool:
        """Say whether an object of torch's stands for something that it changes: a hook, say."""
        kind = None if owner is None else self.names.kind(owner)
        if kind is None or issubclass(kind, torch.Tensor | torch.nn.Module | type | ModuleType):
            return False
        return kind.__module__.partition(".")[0] == "torch"

    def change_given(self, node: ast.Call, owner: ast.expr | None, changing: Taint) -> None:
        """A call of which nobody uses the result is made for what it does to its arguments."""
        given = [*node.args, *(one.value for one in node.keywords)]
        is_object = owner is not None and self.names.kind(owner) is not ModuleType
        objects = [owner] if owner is not None and is_object else []
        objects += [one for one in given if self.root(one) is not None]
        for one in objects:
            if self.names.kind(one) not in (ModuleType, type):
                self.change_part(one, changing)
        if last_name(node.func).startswith(("set_", "use_", "manual_seed", "enable_", "disable_")):
            self.decide(changing, node)  # a switch of torch's own

    def change_part(self, target: ast.expr, changing: Taint) -> None:
        """Change an object, and the modules that it is a part of: `self.net.weight.data`."""
        self.change(target, changing)
        while isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute):
            target = target.value
            self.change(target, changing)

    def unfollowed(
        self,
        node: ast.Call,
        name: str,
        called: Any,
        taint: Taint | None,
        of_owner: Taint | None,
        *,
        discarded: bool,
    ) -> Taint | None:
        """Return what a call whose source is not walked makes of the value."""
        self.may_raise(taint or of_owner, node)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if self.closed:
            return None  # the world's answer
        if self.task.of_array:
            if taint is not None and observers.is_foreign(called):
                raise Decided(taint, node.lineno, name)
            return taint or of_owner
        changing = taint or self.control
        if owner is not None and self.names.fills(owner, name):
            if changing is not None:
                self.change(owner, changing)
            if changing is not None or name in observers.GIVING_NOTHING:
                return None
        if owner is not None and changing is not None and self.mutates(owner, name):
            self.change(owner, changing)
            return taint or of_owner
        if changing is not None and name in observers.CHANGING_FIRST and node.args:
            self.change(node.args[0], changing)
        if name in ("setattr", "exec", "eval") and changing is not None:
            self.decide(changing, node, name)
        if of_owner is not None and (discarded or node in self.unused) and self.is_stepped(owner):
            self.decide(of_owner, node, name)
        is_unused = discarded or node in self.unused
        if changing is not None and is_unused and self.is_handle(owner):
            self.decide(changing, node, name)
        if self.names.is_torch(called, owner, name):
            if changing is not None:
                self.change_by_torch(node, name, owner, changing)
                if discarded or node in self.unused:
                    self.change_given(node, owner, changing)
            for keyword in node.keywords:
                if keyword.arg == "out" and changing is not None:
                    self.change(keyword.value, changing)
            return taint or of_owner
        if isinstance(called, type) or observers.computes(called, name):
            return taint or of_owner
        if of_owner is not None and taint is None and self.control is None:
            return of_owner  # a method of something made of the value
        if taint is not None or discarded:
            found = taint or self.control
            if found is not None:
                self.decide(found, node, name or "a function")
        return taint or of_owner

    def follow(
        self, node: ast.Call, called: Any, given: list[tuple[ast.expr, Taint | None]]
    ) -> Any:
        """Walk the function that is called, if there is source for it."""
        found = self.names.source_of(called)
        if found is None:
            return NO_OBJECT
        return self.enter(node, found, given, is_local=isinstance(called, Local))

    def follow_what_ran(self, node: ast.Call, given: list[tuple[ast.expr, Taint | None]]) -> Any:
        """Walk the functions that were seen to run where nobody knows what is called."""
        results = [self.enter(node, one, given) for one in resolving.ran_at(node.func)]
        if not results or any(one is NO_OBJECT for one in results):
            return NO_OBJECT
        return first(results)

    def enter(
        self,
        node: ast.Call,
        found: tuple[Scope, Names, ast.expr | None],
        given: list[tuple[ast.expr, Taint | None]],
        *,
        is_local: bool = False,
    ) -> Any:
        """Walk a function with the arguments of a call."""
        if self.task.depth >= MOST_DEPTH:
            return NO_OBJECT
        scope, names, bound = found
        if self.closed and not has_marks(scope):
            return None  # it runs outside of every node
        arguments = _bind(scope, node, bound)
        if arguments is None:
            return NO_OBJECT
        taints = dict(given)
        tainted = {
            name: taint
            for name, value in arguments.items()
            if (taint := taints.get(value)) is not None
        }
        inner = names.inside({n: self.names.resolve(v) for n, v in arguments.items()})
        if is_local:
            tainted = self.tainted | tainted
        attributes = {key: taint for key, taint in self.tainted.items() if key[0] in ".@"}
        outcome: Outcome = type(self)(
            Task(
                scope,
                inner,
                tainted=attributes | tainted,
                control=None if self.closed else self.control,
                depth=self.task.depth + 1,
                of_array=self.task.of_array,
                unread=self.task.unread,
                around=Around({}, frozenset()) if self.is_around else None,
            )
        ).run()
        if outcome.raised is not None:
            for by in outcome.raised_by or {PYTHON}:
                self.raise_(outcome.raised, by)
        for key, taint in outcome.kept.items():
            self.keep(key, taint)
        self.outcome.logged = self.outcome.logged or outcome.logged
        self.outcome.logs_because = self.outcome.logs_because or outcome.logs_because
        for name, taint in outcome.parameters.items():
            if name in arguments:
                self.change(arguments[name], taint)
        return outcome.returned


def _bind(scope: Scope, node: ast.Call, bound: ast.expr | None) -> dict[str, ast.expr] | None:
    """Return the expression behind each parameter; of starred ones and `**`, none."""
    arguments = getattr(scope, "args", None)
    if not isinstance(arguments, ast.arguments):
        return None
    positional = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    given = [*([] if bound is None else [bound]), *node.args]
    found: dict[str, ast.expr] = {}
    for number, value in enumerate(given):
        if isinstance(value, ast.Starred):
            return None
        if number < len(positional):
            found[positional[number]] = value
        elif arguments.vararg is not None:
            found[arguments.vararg.arg] = value
        else:
            return None
    for keyword in node.keywords:
        if keyword.arg is None:
            return None
        known = {one.arg for one in parameters_of(arguments)}
        name = keyword.arg if keyword.arg in known else getattr(arguments.kwarg, "arg", None)
        if name is None:
            return None
        found[name] = keyword.value
    return found
