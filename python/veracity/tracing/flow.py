"""What becomes of a value inside of one function: a walk over its source, forwards.

The walk knows which variables hold something that was made of the value. A branch on it makes
whatever the branch assigns depend on it as well, and so does a loop, a filter, or an exception that
is caught. It ends with `Decided` when the value reaches an output, memory that tensors share, or
code that may do anything. It knows nothing of types, and little of aliases: when in doubt the value
decides.

Code between `output_tensors` and the next `input_tensors` is in no node, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from veracity.tracing import observers
from veracity.tracing.resolving import NO_OBJECT, Local, Names
from veracity.tracing.source import Scope, own_nodes

#: How deep calls are followed.
MOST_DEPTH = 6
#: Who raises: an operation of torch, Python (`raise`, `assert`, `1 / x`), a warning that is an error.
TORCH, PYTHON, WARNING = "torch", "python", "warning"
#: What a logger owes to the values that it was given: asking whether there is one tells nothing.
HELD = "held"


@dataclass(frozen=True)
class Taint:
    """What something owes to the value: `what` is the first construct that it decided."""

    what: str
    line: int


class Decided(Exception):  # noqa: N818 - it ends a walk, and is no error
    """The value decides something that the export computes."""

    def __init__(self, taint: Taint, line: int, by: str = "", memory: Any = None) -> None:
        """Say what it decides, on which line it is sure, who is given it, or what holds it."""
        super().__init__(taint.what)
        self.taint, self.line, self.by, self.memory = taint, line, by, memory


@dataclass
class Outcome:
    """What leaves a function.

    Attributes:
        returned: The taint of what it returns.
        raised: The taint of an exception that it may raise.
        raised_by: Who raises it: `TORCH`, `PYTHON`, `WARNING`.
        parameters: Parameters whose objects were changed.
        kept: Attributes, by `.name`, and variables of outer scopes, by `@name`, that hold it.
        met: Whether the walk came to an expression that gives the value.
        logged: The taint of what was given to `logging`.
        decided_calls: Of a walk around nodes: the nodes that run because of the value, by what
            decides it.
    """

    returned: Taint | None = None
    raised: Taint | None = None
    raised_by: set[str] = field(default_factory=set)
    parameters: dict[str, Taint] = field(default_factory=dict)
    kept: dict[str, Taint] = field(default_factory=dict)
    met: bool = False
    logged: Taint | None = None
    decided_calls: dict[Taint, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Around:
    """The calls in a function that lead to nodes, and the names of all nodes."""

    calls: dict[ast.AST, set[str]]
    nodes: frozenset[str]

    def holds_all(self, body: list[ast.stmt]) -> bool:
        """Say whether a block runs every node."""
        inside = (node for statement in body for node in ast.walk(statement))
        found: set[str] = set().union(*(self.calls.get(node, set()) for node in inside))
        return found >= self.nodes


@dataclass
class Task:
    """A function to walk.

    Attributes:
        scope: Its source.
        names: What its names stand for.
        sources: Expressions that give the value.
        raising: Expressions that may raise because of the value.
        tainted: Variables and attributes that hold it at the start.
        control: Whether the function runs because of the value.
        is_node: Whether what it returns are the outputs of a node.
        depth: How many calls deep it is.
        opens: Whether a node is known to be open where the value is.
        of_array: Whether the value is an array that records: only other libraries are asked for.
        unread: Tensors and arrays that nothing reads but what the source shows.
        around: Of a walk around nodes: the calls that lead to them. Nothing is decided in it but
            which of them are made.
    """

    scope: Scope
    names: Names
    sources: dict[ast.AST, Taint] = field(default_factory=dict)
    raising: dict[ast.AST, Taint] = field(default_factory=dict)
    tainted: dict[str, Taint] = field(default_factory=dict)
    control: Taint | None = None
    is_node: bool = False
    depth: int = 0
    opens: bool = True
    of_array: bool = False
    unread: tuple[Any, ...] = ()
    around: Around | None = None


def has_marks(scope: Scope) -> bool:
    """Say whether a function begins or ends nodes itself."""
    return any(
        isinstance(node, ast.Call) and _last_name(node.func) in observers.MARKS
        for node in own_nodes(scope)
    )


def walk(task: Task) -> Outcome:
    """Walk a function; raises `Decided`."""
    return _Walk(task).run()


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _first(taints: Iterable[Taint | None]) -> Taint | None:
    return next((one for one in taints if one is not None), None)


class _Walk:
    """The walk over one function."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.names = task.names
        self.tainted = dict(task.tainted)
        self.control = task.control
        self.is_around = task.around is not None
        self.closed = not task.is_node and not self.is_around and has_marks(task.scope)
        self.outcome = Outcome()
        self.aliases: dict[str, str] = {}
        self.outer: set[str] = set()
        self.loop_cut: Taint | None = None
        #: Calls of which nobody uses the result.
        self.unused: set[ast.Call] = set()
        #: How many blocks around this statement catch exceptions.
        self.guards = 0
        arguments = getattr(task.scope, "args", None)
        self.parameters = {one.arg for one in _parameters(arguments)} if arguments else set()

    def run(self) -> Outcome:
        self.block(self.task.scope.body)
        return self.outcome

    # What the value reaches

    def decide(self, taint: Taint, node: ast.AST, by: str = "", memory: Any = None) -> None:
        if not self.closed and not self.task.of_array and not self.is_around:
            raise Decided(taint, getattr(node, "lineno", taint.line), by, memory)

    def raise_(self, taint: Taint, by: str = PYTHON) -> None:
        self.outcome.raised_by.add(by)
        if self.outcome.raised is None:
            self.outcome.raised = taint

    def may_raise(self, taint: Taint | None, node: ast.AST) -> None:
        """An operation that is not defined for every value may raise, where that is caught."""
        if taint is not None and self.guards and not self.task.of_array:
            self.raise_(Taint("exception", getattr(node, "lineno", taint.line)))

    def cut(self, taint: Taint) -> None:
        """The rest of the function runs or does not run because of the value."""
        self.control = self.control or taint

    def keep(self, key: str, taint: Taint) -> None:
        self.tainted[key] = taint
        self.outcome.kept.setdefault(key, taint)

    # Statements

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            method: Callable[[Any], None] = getattr(
                self, "do_" + type(statement).__name__.lower(), self.do_other
            )
            method(statement)

    def do_other(self, statement: ast.stmt) -> None:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.value(child)

    def do_functiondef(self, statement: ast.FunctionDef) -> None:
        self.names.define(statement.name, Local(statement, self.names))

    do_asyncfunctiondef = do_functiondef

    def do_classdef(self, statement: ast.ClassDef) -> None:
        self.block([one for one in statement.body if not isinstance(one, ast.FunctionDef)])

    def do_import(self, statement: ast.stmt) -> None:
        """Nothing of a value is in it."""

    do_importfrom = do_import

    def do_global(self, statement: ast.Global | ast.Nonlocal) -> None:
        self.outer.update(statement.names)

    do_nonlocal = do_global

    def do_expr(self, statement: ast.Expr) -> None:
        value = statement.value
        method = value.func if isinstance(value, ast.Call) else None
        if (
            isinstance(method, ast.Attribute)
            and value not in self.task.sources
            and method.attr not in observers.VERBS
        ):
            self.write_memory(method.value)
        if isinstance(value, ast.Call):
            self.unused.add(value)
        if self.control is not None and isinstance(value, ast.Call):
            self.call(value, discarded=True)
        else:
            self.value(value)

    def do_assign(self, statement: ast.Assign) -> None:
        taint = self.value(statement.value)
        for target in statement.targets:
            self.assign(target, taint, statement.value)

    def do_annassign(self, statement: ast.AnnAssign) -> None:
        if statement.value is not None:
            self.assign(statement.target, self.value(statement.value), statement.value)

    def do_augassign(self, statement: ast.AugAssign) -> None:
        taint = self.value(statement.value)
        target = statement.target
        before = self.read(target)
        if taint is not None:
            self.write_shared(target, taint)
        self.assign(target, taint or before)

    def do_delete(self, statement: ast.Delete) -> None:
        if self.control is not None:
            for target in statement.targets:
                self.change(target, self.control)

    def do_return(self, statement: ast.Return) -> None:
        taint = None if statement.value is None else self.value(statement.value)
        is_nothing = statement.value is None or (
            isinstance(statement.value, ast.Constant) and statement.value.value is None
        )
        taint = taint or (None if is_nothing else self.control)
        if taint is not None:
            if self.task.is_node:
                self.decide(taint, statement)
            if not self.closed:
                self.outcome.returned = self.outcome.returned or taint
        if self.control is not None:
            self.cut(self.control)
            self.return_cut = self.control

    return_cut: Taint | None = None

    def do_raise(self, statement: ast.Raise) -> None:
        self.do_other(statement)
        if self.control is not None:
            self.raise_(replace(self.control, what="exception"))

    def do_assert(self, statement: ast.Assert) -> None:
        taint = self.value(statement.test)
        if taint is not None or self.control is not None:
            self.raise_(Taint("exception", statement.lineno))

    def do_break(self, statement: ast.stmt) -> None:
        if self.control is not None:
            self.loop_cut = replace(self.control, what="loop")

    do_continue = do_break

    def do_if(self, statement: ast.If) -> None:
        taint = self.value(statement.test)
        taint = self.of_control(taint, "branch", statement)
        self.branches([statement.body, statement.orelse], taint)

    def do_match(self, statement: ast.Match) -> None:
        taint = self.value(statement.subject)
        for case in statement.cases:
            if case.guard is not None:
                taint = taint or self.value(case.guard)
            if taint is not None:
                for node in ast.walk(case.pattern):
                    name = getattr(node, "name", None) or getattr(node, "rest", None)
                    if isinstance(name, str):
                        self.tainted[name] = taint
        taint = self.of_control(taint, "branch", statement)
        self.branches([case.body for case in statement.cases], taint)

    def of_control(self, taint: Taint | None, what: str, node: ast.stmt | ast.expr) -> Taint | None:
        """Return what runs because of the value; what an array decides is heard by itself."""
        if taint is None or taint.what == HELD or self.task.of_array:
            return None
        return Taint(what, node.lineno)

    def branches(self, blocks: list[list[ast.stmt]], taint: Taint | None) -> None:
        """Walk blocks of which one runs."""
        outside, self.control = self.control, self.control or taint
        before, closed = dict(self.tainted), self.closed
        after: dict[str, Taint] = {}
        still_closed = closed
        cut_before, self.return_cut = self.return_cut, None
        loop_before, self.loop_cut = self.loop_cut, None
        for statements in blocks:
            self.tainted, self.closed = dict(before), closed
            self.block(statements)
            after.update(self.tainted)
            still_closed = still_closed and self.closed
        if not all(blocks):
            after.update(before)
        self.tainted, self.closed, self.control = after, still_closed, outside
        # Whoever left early decides whether the rest runs.
        for left in (self.return_cut, self.loop_cut):
            if left is not None:
                self.cut(left)
        self.return_cut = self.return_cut or cut_before
        self.loop_cut = self.loop_cut or loop_before

    def do_while(self, statement: ast.While) -> None:
        def test() -> Taint | None:
            return self.of_control(self.value(statement.test), "loop", statement)

        self.after_loop(statement, self.loop(statement.body, test))

    def do_for(self, statement: ast.For | ast.AsyncFor) -> None:
        def step() -> Taint | None:
            taint = self.value(statement.iter)
            self.assign(statement.target, taint)
            what = "value" if taint is None else _of_loop(statement.iter, taint)
            return self.of_control(taint, what, statement)

        self.after_loop(statement, self.loop(statement.body, step))

    do_asyncfor = do_for

    def after_loop(self, statement: ast.While | ast.For | ast.AsyncFor, cut: Taint | None) -> None:
        """Walk what runs unless the loop was left early."""
        if cut is None or not statement.orelse:
            self.block(statement.orelse)
        else:
            self.branches([statement.orelse, []], cut)

    def loop(self, body: list[ast.stmt], step: Callable[[], Taint | None]) -> Taint | None:
        """Walk a loop; return why it may be left early."""
        outside = self.control
        cut_before, self.loop_cut = self.loop_cut, None
        for _ in range(3):
            before = (dict(self.tainted), self.control, self.closed)
            if self.task.around is not None and self.task.around.holds_all(body):
                self.control = outside  # whoever left the loop early began no further tick
            taint = step()
            self.control = self.control or taint
            self.block(body)
            self.tainted = before[0] | self.tainted  # it may not have run at all
            if before == (self.tainted, self.control, self.closed):
                break
        self.control = outside or self.return_cut
        cut, self.loop_cut = self.loop_cut, cut_before
        return cut

    def do_with(self, statement: ast.With | ast.AsyncWith) -> None:
        catches = False
        for item in statement.items:
            taint = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, taint)
            catches = catches or self.names.swallows(item.context_expr)
            name = _last_name(getattr(item.context_expr, "func", item.context_expr))
            if name in ("redirect_stdout", "redirect_stderr") and self.outcome.raised is None:
                self.captured = item.context_expr
        if catches:
            self.guarded(statement.body, [], [])
        else:
            self.block(statement.body)
        self.captured = None

    do_asyncwith = do_with
    captured: ast.expr | None = None

    def do_try(self, statement: ast.Try) -> None:
        handlers = [one for one in statement.handlers if _goes_on(one)]
        if handlers:
            self.guarded(statement.body, handlers, statement.orelse)
        else:
            self.block(statement.body)
            self.block(statement.orelse)
            for handler in statement.handlers:
                self.branches([handler.body, []], None)
        self.block(statement.finalbody)

    do_trystar = do_try

    def guarded(
        self,
        body: list[ast.stmt],
        handlers: list[ast.ExceptHandler],
        orelse: list[ast.stmt],
    ) -> None:
        """Walk a block whose exceptions are caught: one because of the value is a decision."""
        raised_before, self.outcome.raised = self.outcome.raised, None
        by_before, self.outcome.raised_by = self.outcome.raised_by, set()
        self.guards += 1
        self.block(body)
        self.guards -= 1
        raised, self.outcome.raised = self.outcome.raised, raised_before
        by, self.outcome.raised_by = self.outcome.raised_by, by_before
        if raised is not None and handlers and not any(_may_catch(one, by) for one in handlers):
            self.outcome.raised = self.outcome.raised or raised  # it goes further out
            self.outcome.raised_by |= by
            raised = None
        if raised is None:
            self.block(orelse)
            self.branches([*(one.body for one in handlers), []], None)
            return
        if self.task.around is not None:
            self.skips_calls(body, raised)
        for name in _assigned(body):
            self.assign_name(name, raised)
        self.branches([orelse, *(one.body for one in handlers)], raised)

    def skips_calls(self, body: list[ast.stmt], raised: Taint) -> None:
        """An exception that is caught skips the calls behind it."""
        for node in (node for statement in body for node in ast.walk(statement)):
            if getattr(node, "lineno", 0) > raised.line:
                self.reach_call(node, raised)

    def reach_call(self, node: ast.AST, taint: Taint | None) -> None:
        """Of a walk around nodes: whether a call is made depends on the value."""
        around = self.task.around
        if around is not None and taint is not None and node in around.calls:
            self.outcome.decided_calls.setdefault(taint, set()).update(around.calls[node])

    # Assignments

    def assign(self, target: ast.expr, taint: Taint | None, value: ast.expr | None = None) -> None:
        taint = taint or self.met(target) or self.control
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
            if target.attr == "data" and taint is not None:
                self.change(target.value, taint)
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

    def root(self, node: ast.expr) -> str | None:
        """Return the variable or attribute whose object an expression may show a part of."""
        while True:
            if isinstance(node, ast.Name):
                return node.id
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

    # Expressions

    def read(self, node: ast.expr) -> Taint | None:
        """Return the taint of the present content of a target."""
        if isinstance(node, ast.Name):
            return self.tainted.get(node.id)
        if isinstance(node, ast.Attribute):
            return self.tainted.get("." + node.attr) or self.read(node.value)
        return self.read(node.value) if isinstance(node, ast.Subscript) else None

    def value(self, node: ast.expr | None) -> Taint | None:
        """Return what an expression owes to the value."""
        if node is None:
            return None
        source = self.met(node)
        raising = self.task.raising.get(node)
        self.reach_call(node, self.control)
        if self.task.opens and (source is not None or raising is not None):
            self.closed = False  # it was seen inside of a node
        if raising is not None:
            self.raise_(raising, TORCH)
        method: Callable[[Any], Taint | None] = getattr(
            self, "of_" + type(node).__name__.lower(), self.of_other
        )
        found = method(node)
        if source is None:
            return found
        if isinstance(node, ast.Call) and self.takes_in(node):
            return None
        return found or source

    def met(self, node: ast.expr) -> Taint | None:
        """Return the taint of an expression that gives the value."""
        source = self.task.sources.get(node)
        self.outcome.met = self.outcome.met or source is not None
        return source

    def takes_in(self, node: ast.Call) -> bool:
        """Say whether the call in which a value left only observes it; its file may be read."""
        name = _last_name(node.func)
        if not observers.observes(self.names.callable_of(node.func), name):
            return False
        taint = self.task.sources.get(node) or Taint("value", node.lineno)
        self.into_file(node, name, taint)
        self.observer_raises(name, node)
        self.give_to_log(self.names.callable_of(node.func), taint)
        return True

    def give_to_log(self, called: Any, taint: Taint | None) -> None:
        if taint is not None and observers.is_logging(called) and not self.closed:
            self.outcome.logged = self.outcome.logged or taint

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

    def of_other(self, node: ast.expr) -> Taint | None:
        found = [self.value(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        return _first(found)

    def of_constant(self, node: ast.Constant) -> Taint | None:
        return None

    def of_name(self, node: ast.Name) -> Taint | None:
        return self.tainted.get(node.id) or self.tainted.get("@" + node.id)

    def of_attribute(self, node: ast.Attribute) -> Taint | None:
        found = self.value(node.value)
        if found is not None and found.what == HELD:
            found = replace(found, what="value")
        return found or self.tainted.get("." + node.attr)

    def of_compare(self, node: ast.Compare) -> Taint | None:
        found = self.of_other(node)
        if found is not None and found.what == HELD:
            return None
        return found

    def of_subscript(self, node: ast.Subscript) -> Taint | None:
        index = self.value(node.slice)
        taint = self.value(node.value)
        self.may_raise(index or taint, node)
        return taint or (None if index is None else replace(index, what="index"))

    def of_namedexpr(self, node: ast.NamedExpr) -> Taint | None:
        taint = self.value(node.value)
        self.assign(node.target, taint, node.value)
        return taint

    def of_ifexp(self, node: ast.IfExp) -> Taint | None:
        taint = self.value(node.test)
        if taint is not None:
            outside = self.control
            self.control = self.control or self.of_control(taint, "branch", node)
            self.value(node.body)
            self.value(node.orelse)
            self.control = outside
            return Taint("branch", node.lineno)
        return _first([self.value(node.body), self.value(node.orelse)])

    def of_boolop(self, node: ast.BoolOp) -> Taint | None:
        outside, found = self.control, None
        for one in node.values:
            found = found or self.value(one)
            self.control = outside or self.of_control(found, "branch", node)
        self.control = outside
        return found and replace(found, what="branch")

    def of_binop(self, node: ast.BinOp) -> Taint | None:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
            self.may_raise(right, node)
        return left or right

    def of_lambda(self, node: ast.Lambda) -> Taint | None:
        return self.value(node.body)

    def comprehension(self, node: Any) -> Taint | None:
        found: list[Taint | None] = []
        for part in node.generators:
            taint = self.value(part.iter)
            self.assign(part.target, taint)
            tests = _first([self.value(one) for one in part.ifs])
            found += [tests and replace(tests, what="filter"), taint]
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return _first([*(self.value(one) for one in values), *found])

    of_listcomp = of_setcomp = of_dictcomp = of_generatorexp = comprehension

    def of_yield(self, node: ast.Yield | ast.YieldFrom | ast.Await) -> Taint | None:
        taint = self.value(node.value) or self.control
        if taint is not None and not isinstance(node, ast.Await):
            self.outcome.returned = self.outcome.returned or taint
        return taint

    of_yieldfrom = of_await = of_yield

    def of_call(self, node: ast.Call) -> Taint | None:
        return self.call(node, discarded=False)

    # Calls

    def call(self, node: ast.Call, *, discarded: bool) -> Taint | None:
        if node in self.task.sources and discarded:
            return self.value(node)
        name = _last_name(node.func)
        given = [(one, self.value(one)) for one in [*node.args, *(k.value for k in node.keywords)]]
        taint = _first([found for _, found in given])
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_owner = self.value(owner) if owner is not None else self.value(node.func)
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
        if followed is not NO_OBJECT:
            return followed or (of_owner if not isinstance(called, Local) else None)
        return self.unfollowed(node, name, called, taint, of_owner, discarded=discarded)

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

    def hold(self, root: str, taint: Taint) -> None:
        if root.startswith("."):
            self.keep(root, taint)
        else:
            self.tainted[root] = taint

    def mark(self, node: ast.Call, name: str, taint: Taint | None) -> Taint | None:
        taint = taint or self.control
        if taint is not None:
            self.decide(taint, node, "" if name in observers.MARKS_OUT else name)
        if self.is_around:
            return None
        if name in observers.MARKS_OUT:
            self.closed = True
        elif name in observers.MARKS_IN:
            self.closed = False
        return None

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
        self.may_raise(taint, node)
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
        if name in ("setattr", "exec", "eval") and changing is not None:
            self.decide(changing, node, name)
        if self.names.is_torch(called, owner, name):
            if changing is not None and name.endswith("_") and not name.endswith("__") and owner:
                self.change(owner, changing)
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
        if found is None or self.task.depth >= MOST_DEPTH:
            return NO_OBJECT
        scope, names, bound = found
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
        if isinstance(called, Local):
            tainted = self.tainted | tainted
        attributes = {key: taint for key, taint in self.tainted.items() if key[0] in ".@"}
        outcome = walk(
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
        )
        if outcome.raised is not None:
            for by in outcome.raised_by or {PYTHON}:
                self.raise_(outcome.raised, by)
        for key, taint in outcome.kept.items():
            self.keep(key, taint)
        self.outcome.logged = self.outcome.logged or outcome.logged
        for name, taint in outcome.parameters.items():
            if name in arguments:
                self.change(arguments[name], taint)
        return outcome.returned


def _of_loop(iterated: ast.expr, taint: Taint) -> str:
    return "loop" if _last_name(getattr(iterated, "func", iterated)) == "range" else taint.what


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Say whether the program goes on after a handler."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise):
        return False
    called = last.value if isinstance(last, ast.Expr) else None
    return not (isinstance(called, ast.Call) and _last_name(called.func) in ("exit", "_exit"))


#: What neither torch nor a check raises because of a value.
_UNRELATED = frozenset(
    {
        *("ImportError", "ModuleNotFoundError", "AttributeError", "KeyError", "StopIteration"),
        *("KeyboardInterrupt", "FileNotFoundError", "OSError", "NotImplementedError", "TypeError"),
        *("TimeoutError", "ConnectionError", "EOFError", "PermissionError", "NameError"),
    }
)


def _may_catch(handler: ast.ExceptHandler, by: set[str]) -> bool:
    """Say whether a handler may get what was raised because of the value."""
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {_last_name(kind) for kind in kinds}
    if PYTHON in by or (WARNING in by and any(name.endswith("Warning") for name in names)):
        return True
    return TORCH in by and bool(names - _UNRELATED)


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    extra = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


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
        known = {one.arg for one in _parameters(arguments)}
        name = keyword.arg if keyword.arg in known else getattr(arguments.kwarg, "arg", None)
        if name is None:
            return None
        found[name] = keyword.value
    return found
