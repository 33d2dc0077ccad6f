"""The words for what the tape found."""

from __future__ import annotations

from typing import Any

from veracity.errors import Diagnostic
from veracity.tracing.decisions import MEMORY, Decision

#: What the tape calls a problem, and the code for it.
_FATAL = {"mixed", "untraced", "overlap", "partly"}


def is_fatal(what: str) -> bool:
    """Say whether a problem makes the node unusable."""
    return what in _FATAL


def problem(what: str, location: str, node: str, other: str | None, ports: list[str]) -> Diagnostic:
    """Return the finding for a problem of a slice."""
    names = " and ".join(f"`{port}`" for port in ports)
    if what == "mixed":
        return _error(
            "VER0907",
            node,
            f"`{node}` uses a value of `{other}`, which is not finished",
            location,
            f"finish `{other}` first and give the value to `{node}` as an input",
        )
    if what == "untraced":
        return _error(
            "VER0908",
            node,
            f"output {names} of `{node}` does not depend on its inputs",
            location,
            "give constants as `static_outputs`",
            "compute outputs from the values that `input_tensors` returned",
            "a value of an earlier pass is found when it arrives: record more passes",
        )
    if what == "overlap":
        return _error(
            "VER0923",
            node,
            f"inputs {names} of `{node}` share memory, and it is written",
            location,
            "give the node copies: `tensor.clone()`",
        )
    if what == "partly":
        return _error(
            "VER0912",
            node,
            f"`{node}` reads memory around its input {names} that is no input",
            location,
            "mark the whole tensor as the input",
        )
    if what == "unmarked":
        source = f"`{other}`" if other else "another node"
        return _warning(
            "VER0914",
            node,
            f"`{node}` uses a value of {source} that is none of its inputs: it is fixed",
            location,
            "give it to `input_tensors`",
        )
    if what == "unseen":
        return _warning(
            "VER0915",
            node,
            f"`{node}` uses a tensor that was made out of sight: it is fixed",
            location,
            "if it depends on the inputs, make it with torch inside of the session",
        )
    return _warning(
        "VER0916",
        node,
        f"`{node}` draws random numbers: the export cannot repeat them",
        location,
        "switch to `eval()`, or draw outside of the node and mark the draw as an input",
    )


def plain_draws(node: str, location: str) -> Diagnostic:
    """Return the finding for generators of Python or NumPy that moved during the only pass."""
    return _warning(
        "VER0916",
        node,
        f"`{node}` draws random numbers with `random` or `numpy.random`: what they decide is fixed",
        location,
        "draw outside of the node and mark the draw as an input; or record two passes: when they "
        "agree, the draws do not matter",
    )


def frozen(
    node: str, what: str, location: str, *, changed: bool, decision: Decision | None = None
) -> Diagnostic:
    """Return the finding for a value that left for Python."""
    how = _WAYS.get(what, f"through `{what}`")
    if changed:
        return _error(
            "VER0911",
            node,
            f"a value of `{node}` left for Python {how} and changes from pass to pass",
            location,
            "keep it a tensor: `torch.where` instead of a branch, no `item()`",
        )
    decision = decision or Decision("unknown")
    name = f", `{decision.text}`" if decision.text else ""
    if what in MEMORY:
        return _warning(
            "VER0932",
            node,
            f"memory of `{node}`{name} was handed out {how}: what is computed from it there is "
            "not followed",
            location,
            "compute it with torch or NumPy in the node, or outside and mark it as an input",
        )
    return _warning(
        "VER0911",
        node,
        f"a value of `{node}` left for Python {how}{name}: {_fixed(decision, location)}",
        location,
        *_CURES.get(decision.what, _CURES["value"]),
    )


def caught(node: str, location: str, decision: Decision) -> Diagnostic:
    """Return the finding for an exception that depends on data and is caught."""
    return _warning(
        "VER0933",
        node,
        f"`{decision.text}` raises on some values, and `{node}` goes on when it does: "
        f"the way without an exception is fixed in the export{_elsewhere(decision, location)}",
        location,
        "let it raise, or decide with tensors: `linalg.inv_ex`, `linalg.solve_ex` and "
        "`linalg.cholesky_ex` tell whether it went well, `torch.where` chooses",
    )


def _fixed(decision: Decision, location: str) -> str:
    if decision.by:
        fixed = f"it is given to `{decision.by}`, and what that makes of it is fixed"
    else:
        fixed = _CONSEQUENCES.get(decision.what, _CONSEQUENCES["unknown"])
    return f"{fixed} in the export{_elsewhere(decision, location)}"


def _elsewhere(decision: Decision, location: str) -> str:
    line = location.rpartition(":")[2]
    return "" if decision.line in (0, int(line or 0)) else f" (see line {decision.line})"


_CONSEQUENCES = {
    "branch": "the branch that was taken is fixed",
    "loop": "how often the loop ran is fixed",
    "filter": "what the filter let through is fixed",
    "index": "the entry that was picked is fixed",
    "size": "the size is fixed",
    "exception": "whether it raised is fixed",
    "value": "the number is fixed",
    "unknown": "what Python made of it is fixed",
}
_MORE = "record a pass on which it is different: if that matters, it is told with the pass"
_CURES = {
    "branch": ("keep it a tensor: compute both and choose with `torch.where`", _MORE),
    "loop": (
        "keep it a tensor: run the loop a fixed number of times and choose with `torch.where`",
        _MORE,
    ),
    "filter": ("keep it a tensor: take every element and weigh it with a mask", _MORE),
    "index": (
        "keep it a tensor, and the table too, and read it with `index_select` or `gather`",
        _MORE,
    ),
    "size": ("keep it a tensor: use a mask of a fixed size", _MORE),
    "value": ("keep it a tensor: no `item()`, `float()` or `int()`", _MORE),
}


_WAYS = {
    "__bool__": "as a truth value",
    "is_nonzero": "as a truth value",
    "__index__": "as an index",
    "slice bound": "as the bound of a slice",
    "shape": "as a size that depends on data",
    "size": "as a size that depends on data",
    "numel": "as a size that depends on data",
    "__len__": "as a size that depends on data",
    "_local_scalar_dense": "inside of a script",
    "__repr__": "as text",
    "__str__": "as text",
    "__format__": "as text",
    "another thread": "to a thread that is older than the session",
    "another library": "to another library",
    "its memory": "as raw memory",
    "__dlpack__": "to another library",
    "data_ptr": "as raw memory",
    "untyped_storage": "as raw memory",
    "storage": "as raw memory",
}


def missed_input(node: str, location: str, what: str) -> Diagnostic:
    """Return the finding for a constant that is none."""
    return _error(
        "VER0912",
        node,
        f"{what} changes from pass to pass and is no input of `{node}`",
        location,
        "mark it with `input_tensors`, or as state with `state_tensors` and `update_state`",
    )


def rewritten(node: str, location: str, what: str) -> Diagnostic:
    """Return the finding for a constant that is written or made anew before every pass."""
    return _warning(
        "VER0912",
        node,
        f"{what} and is no input of `{node}`: the export holds what was in it while it was "
        "recorded",
        location,
        "mark it with `input_tensors`, or fill it once, before you record",
    )


def fixed_number(node: str, name: str, value: Any, location: str) -> Diagnostic:
    """Return the finding for a number, flag or text given as an input."""
    return _warning(
        "VER0911",
        node,
        f"`{name}={value!r}` of `{node}` is a Python value: it is baked into the export",
        location,
        "make it a tensor if it is an input; give it a default, or bind it with "
        "`functools.partial`, if it never changes",
    )


def changed_constant(node: str, location: str) -> Diagnostic:
    """Return the finding for a weight that was changed where nobody saw it."""
    return _error(
        "VER0921",
        node,
        f"a constant of `{node}` was changed after it was recorded",
        location,
        "compile before you change weights, or record again",
    )


def left_behind(node: str, location: str) -> Diagnostic:
    """Return the finding for memory that outlives the node and is read again on the next pass."""
    return _warning(
        "VER0912",
        node,
        f"`{node}` changes a tensor that outlives it and reads it on its next pass: the export "
        "begins from the first value each time",
        location,
        "declare it with `state_tensors` and `update_state`, or follow it with `annotate.module`",
    )


def found_state(node: str, name: str, location: str, delay: int = 1) -> Diagnostic:
    """Return the note about a state that was found without being declared."""
    left = "its last pass left behind" if delay == 1 else f"it left behind {delay} passes before"
    message = f"`{node}` reads what {left}: `{name}` is a state, and fed back"
    return Diagnostic("VER0929", "note", message, location, (), node)


def lost_state(node: str, why: str, location: str) -> Diagnostic:
    """Return the finding for memory that is carried over and cannot be made a state."""
    reason, hint = _LOST[why]
    make = _warning if why == "not filled" else _error
    message = f"`{node}` reads here what an earlier pass left behind, and {reason}"
    return make("VER0930", node, message, location, hint)


_DECLARE = "declare it with `state_tensors` and `update_state`, or mark it with `input_tensors`"
_LOST = {
    "filled": (
        "its first pass filled it from an input: an export begins from a fixed value",
        "begin from a constant, such as `torch.zeros(...)`, or choose with a tensor: "
        "`torch.where(self.started, self.state, x)`",
    ),
    "once": ("the call that made it was not made on the next pass", _DECLARE),
    "outside": (
        "it was computed outside of the node",
        "compute it inside of the node, or mark it with `input_tensors`",
    ),
    "scattered": ("it reads several parts of one memory", _DECLARE),
    "not filled": (
        "some of its places still hold their first value",
        "record more passes: as many as the history is long, and two more",
    ),
    "reshaped": (
        "it has another type or shape then: an export holds one",
        "begin with what it comes to, such as `torch.zeros(1, 3, dtype=torch.float32)`",
    ),
    "irregular": ("not after the same number of passes each time", _DECLARE),
}


def begins_unseen(node: str, name: str, location: str) -> Diagnostic:
    """Return the finding for a state of which nobody saw the first value, nor its effect."""
    return _warning(
        "VER0940",
        node,
        f"the state `{name}` of `{node}` begins with the value that the pass before read: the pass "
        "that reads it was not recorded, and its outputs do not depend on it",
        location,
        "record an episode in which it matters, or declare it with `state_tensors`",
    )


def begins_warm(node: str, name: str, fill: str, location: str) -> Diagnostic:
    """Return the finding for a state that something changed before it was recorded."""
    return _warning(
        "VER0940",
        node,
        f"the state `{name}` of `{node}` does not begin with `{fill}`, but with what was left in "
        "it before it was recorded",
        location,
        "record a fresh instance, or reset the state before you record",
    )


def comes_back(node: str, port: str, location: str) -> Diagnostic:
    """Return the finding for an input that is computed from outputs of an earlier pass."""
    return _note(
        "VER0941",
        node,
        f"`{node}/{port}` is computed here from outputs of an earlier pass, outside of every node: "
        "it is an input of the bundle, and whoever runs the bundle has to compute it",
        location,
        "compute it inside of the node, and the bundle feeds it back",
    )


def changed_outside(node: str, location: str, what: str) -> Diagnostic:
    """Return the finding for a state that something else changed between two passes."""
    return _error(
        "VER0912",
        node,
        f"{what} of `{node}` was changed between two passes, outside of the node",
        location,
        "mark it with `input_tensors`",
    )


def touched_outside(node: str, state: str, location: str) -> Diagnostic:
    """Return the finding for a state that is written between two passes, without effect so far."""
    return _warning(
        "VER0930",
        node,
        f"the state `{state}` of `{node}` is written here, outside of the node; it made no "
        "difference on the passes that were recorded",
        location,
        "do it inside of the node, with a tensor that says when; or record a pass that shows it",
    )


def moved_around(node: str, state: str, location: str) -> Diagnostic:
    """Return the finding for a state that the code around a node may write one day."""
    return _warning(
        "VER0930",
        node,
        f"the state `{state}` of `{node}` may be written here, outside of the node: a bundle "
        "writes it only inside of the node, and in `reset`",
        location,
        "do it inside of the node, with a tensor that says when; where your code only sets the "
        "state back, call `reset` of the bundle there",
    )


def recording_changes(node: str, location: str, number: int) -> Diagnostic:
    """Return the finding for a pass that, left alone, computes something else."""
    return _error(
        "VER0931",
        node,
        f"pass {number} of `{node}` ran without being recorded and gave other values than what "
        "was recorded gives for its inputs",
        location,
        "something that is no input changes from pass to pass, or the code takes another way "
        "while it is recorded: keep it in tensors, and declare states",
    )


def recording_shows(node: str, text: str, location: str) -> Diagnostic:
    """Return the finding for code that takes another way when it is left alone."""
    return _warning(
        "VER0931",
        node,
        f"`{text}` came out otherwise on a pass of `{node}` that was not recorded; it made no "
        "difference to the values that were recorded",
        location,
        "ask `isinstance(x, np.ndarray)` instead of for the exact type; keep what changes in "
        "tensors",
    )


def nodes_in_error(found: list[Diagnostic]) -> set[str | None]:
    """Return the nodes that are known to be wrong."""
    return {one.node for one in found if one.severity == "error"}


def explained(found: list[Diagnostic]) -> list[Diagnostic]:
    """Return findings without passes that went wrong for a reason that another finding gives."""
    others = nodes_in_error([one for one in found if one.code != "VER0931"])
    return [one for one in found if one.code != "VER0931" or one.node not in others]


def finalized(node: str, path: str, location: str) -> Diagnostic:
    """Return the finding for an object that a finalizer gets."""
    return _warning(
        "VER0912",
        node,
        f"`{path}` is given to a finalizer (`weakref.finalize`), which may change it: what it "
        f"holds is baked into `{node}`",
        location,
        "make it a tensor, as an input or as a state",
    )


def kept_by_script(node: str, kind: str, name: str, location: str) -> Diagnostic:
    """Return the finding for a scripted module that keeps something beside tensors."""
    return _warning(
        "VER0912",
        node,
        f"the scripted module `{kind}` keeps `{name}` from pass to pass, and it is no tensor: what "
        f"it decides is baked into `{node}`",
        location,
        "keep it in a tensor: a registered buffer",
    )


def changing_number(node: str, location: str) -> Diagnostic:
    """Return the finding for a Python value that changes and made no difference so far."""
    return _warning(
        "VER0912",
        node,
        f"a Python value changes from pass to pass and is baked into `{node}` as a constant; it "
        "made no difference on the passes that were recorded",
        location,
        "make it a tensor, as an input or as a state",
    )


def changing_value(node: str, path: str, location: str, what: str) -> Diagnostic:
    """Return the finding for a Python value that changes and decides something."""
    decided = _DECIDED.get(what, "what it decides")
    return _warning(
        "VER0912",
        node,
        f"`{path}` is a Python value that changes from pass to pass: {decided} is baked into "
        f"`{node}`",
        location,
        "make it a tensor, as an input or as a state, and choose with `torch.where`",
    )


def assigned_around(node: str, path: str, location: str, what: str) -> Diagnostic:
    """Return the finding for a Python value that the code around a node may change one day."""
    decided = _DECIDED.get(what, "what it decides")
    return _warning(
        "VER0912",
        node,
        f"`{path}` is assigned here, outside of `{node}`, which reads it: {decided} is baked into "
        "the export, as it was while it was recorded",
        location,
        "make it a tensor, as an input or as a state, or assign it once, before you record",
    )


def changed_network(node: str, location: str) -> Diagnostic:
    """Return the finding for a network that the code around a node may change one day."""
    return _warning(
        "VER0912",
        node,
        f"a network of `{node}` is changed here, outside of it, when something says so: the export "
        "holds what it computed while it was recorded",
        location,
        "change it before you record, or record and export each form on its own",
    )


def unsettled_call(node: str, text: str, location: str, what: str) -> Diagnostic:
    """Return the finding for a call that may give something else next time, and decides."""
    decided = _DECIDED.get(what, "what it returned")
    return _warning(
        "VER0912",
        node,
        f"`{text}` may give something else on another pass: {decided} is baked into `{node}`",
        location,
        "mark what it returns as an input of the node, or read it once before recording",
    )


def written_elsewhere(node: str, path: str, location: str) -> Diagnostic:
    """Return the finding for a tensor whose memory code writes without torch."""
    return _warning(
        "VER0930",
        node,
        f"`{path}` is written here, and a tensor of `{node}` has the same memory: it is a state "
        "that the export would hold as a constant",
        location,
        "write the tensor itself, with torch, or give it memory of its own: `torch.tensor(array)`",
    )


def armed_errors(node: str, location: str) -> Diagnostic:
    """Return the finding for warnings that become exceptions, or calls, inside of a node."""
    return _warning(
        "VER0933",
        node,
        f"`{node}` makes exceptions or calls of numerical warnings here: whether one comes depends "
        "on data, and the export gives none",
        location,
        "test the values with `torch.where`, and leave warnings as they are inside of nodes",
    )


def too_many_objects(node: str, location: str) -> Diagnostic:
    """Return the finding for code that reaches more objects than are looked at."""
    return _warning(
        "VER0942",
        node,
        f"the code of `{node}` reaches more Python objects than are looked at: one of them may "
        "change from pass to pass",
        location,
        "annotate a function or module that holds only what the node needs",
    )


def skipped(node: str, what: str, location: str) -> Diagnostic:
    """Return the finding for a node that runs only when something says so."""
    return _warning(
        "VER0917",
        node,
        f"{what} decides here whether, or when, `{node}` runs: a bundle runs every node on every "
        "tick",
        location,
        "run every node on every tick, and choose between results with `torch.where` in a node",
    )


def glue_of_python(node: str, location: str) -> Diagnostic:
    """Return the finding for an input that Python makes of another node's values."""
    return _warning(
        "VER0913",
        node,
        f"what `{node}` is given is computed here from another node's output, outside of any node "
        "and without torch: the computation is not exported",
        location,
        f"compute it with torch, in `{node}` or in the node before it",
    )


def chosen_input(node: str, location: str) -> Diagnostic:
    """Return the finding for an input that is one of several values."""
    return _warning(
        "VER0917",
        node,
        f"what `{node}` is given is chosen here, between nodes: a bundle gives it the same value "
        "on every tick, the one that it got while it was recorded",
        location,
        "give the node all of them, and choose with `torch.where` in the node",
    )


def told_by_thread(node: str, name: str, location: str) -> Diagnostic:
    """Return the finding for a Python value that another thread assigns."""
    return _warning(
        "VER0912",
        node,
        f"`{name}` is assigned by another thread and read by `{node}`: what it holds is baked into "
        "the export",
        location,
        "make it a tensor and mark it as an input, or compute it in the node",
    )


_DECIDED = {"branch": "the branch it chose", "loop": "how often it loops", "index": "what it picks"}


def other_way(node: str, location: str, number: int) -> Diagnostic:
    """Return the finding for a pass that took another way and gave the same values."""
    return _warning(
        "VER0918",
        node,
        f"pass {number} of `{node}` takes another way than its first pass; it made no difference "
        "to the values that were recorded",
        location,
        "one node has one program: use `torch.where`, or give each branch a node of its own",
    )


def one_pass(node: str, location: str) -> Diagnostic:
    """Return the finding for a node that was recorded once."""
    return _warning(
        "VER0927",
        node,
        f"`{node}` was recorded once: what changes from pass to pass looks like a constant",
        location,
        "record three passes or more",
    )


def never_left_alone(node: str, location: str) -> Diagnostic:
    """Return the finding for a node of which every pass was recorded."""
    return _warning(
        "VER0928",
        node,
        f"every pass of `{node}` was recorded: it was not shown that the code computes the same "
        "when nobody records it",
        location,
        "record three passes or more",
    )


def pass_differs(node: str, location: str, number: int) -> Diagnostic:
    """Return the finding for a pass that computes something else."""
    return _error(
        "VER0918",
        node,
        f"pass {number} of `{node}` computes something else than its first pass",
        location,
        "one node has one program: give each branch a node of its own",
    )


def loose_glue(node: str, port: str, location: str, *, refused: bool) -> Diagnostic:
    """Return the finding for a value computed between two nodes."""
    message = f"input `{port}` of `{node}` is computed from another node's output outside of any"
    hint = f"move this line into `{node}`, or into the node before it"
    make = _error if refused else _warning
    return make("VER0913", node, f"{message} node: the computation is not exported", location, hint)


def _error(code: str, node: str, message: str, location: str, *hints: str) -> Diagnostic:
    return Diagnostic(code, "error", message, location, hints, node)


def _note(code: str, node: str, message: str, location: str, *hints: str) -> Diagnostic:
    return Diagnostic(code, "note", message, location, hints, node)


def _warning(code: str, node: str, message: str, location: str, *hints: str) -> Diagnostic:
    return Diagnostic(code, "warning", message, location, hints, node)
