"""`start`, `stop`, `compile_graph` and `session`: the life of a recording."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from veracity import _current
from veracity._places import user_line
from veracity.errors import VeracityError, refuse

if TYPE_CHECKING:
    from veracity.export.compile import CompileResult
    from veracity.semantics import GraphConfigs
    from veracity.tracing.session import Session


def start(
    name: str,
    save_path: str | os.PathLike[str] = ".",
    verbose: bool = False,
    dry_run: bool = False,
    non_traced: str | Iterable[str] | None = None,
    max_cached_io: int = 5,
    global_patching: bool = True,
    patching: Iterable[Any] | None = None,
    glue: str = "warn",
) -> Session:
    """Begin to record; annotations have meaning from here to `stop`.

    Args:
        name: Name of the graph, and of the folder that its files go into.
        save_path: Where that folder is made.
        verbose: Show details on the console.
        dry_run: Describe the graph without exporting models.
        non_traced: Nodes that are wired but not exported.
        max_cached_io: How many passes are kept as samples for validation; at least one is.
        global_patching: Record NumPy, and conversions between NumPy and torch, as well.
        patching: `FunctionPatch` objects that hold during the session, if `global_patching` is on.
        glue: What to do about values computed between nodes: `"warn"` or `"error"`.

    Returns:
        The session, for those who want to look into it.
    """
    from veracity.tracing.options import Options
    from veracity.tracing.session import Session

    options = Options.checked(
        name=name,
        save_path=save_path,
        verbose=verbose,
        dry_run=dry_run,
        non_traced=non_traced,
        max_cached_io=max_cached_io,
        global_patching=global_patching,
        patching=patching,
        glue=glue,
    )
    if _current.active is not None:
        _current.active.log.caution("a session was started before the last one was stopped")
        _current.active.finish()
        _current.active = None
    begun = Session(options)
    begun.begin()
    _current.active = begun
    return begun


def stop() -> None:
    """End the recording and restore everything that the session changed."""
    session = _current.active
    if session is None:
        hint = "call `start` before, and `stop` once"
        message = "`stop` was called and no session is active"
        raise refuse("VER0901", message, location=user_line(), hints=(hint,))
    _current.active = None
    _current.stopped = session
    session.finish()


def compile_graph(
    visualize: bool = True,
    verbose: bool | None = None,
    validate: bool = True,
    dry_run: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    strict: bool = True,
    graph_configs: GraphConfigs | None = None,
    *,
    equal_nan: bool = False,
    tolerance: str | None = None,
    tolerances: Mapping[str, Mapping[str, float]] | None = None,
    fresh_inputs: bool = True,
    adequacy: bool = True,
    drift: bool = False,
    transform: Sequence[str] | str = (),
) -> CompileResult | bool:
    """Export what was recorded, write the bundle, and prove it: each model, and all over time.

    Args:
        visualize: Draw the bundle: `<name>.svg` and `<name>.png` beside its description. What keeps
            them from being drawn is logged and stops nothing.
        verbose: Show details on the console; `None` keeps what `start` said.
        validate: Check the exported models.
        dry_run: Describe the graph without exporting models.
        rtol: Relative tolerance of the check. By default 1e-3, and finer for outputs whose scale
            demands it; what you give holds as it is.
        atol: Absolute tolerance of the check. By default 1e-5, and finer for outputs whose scale
            demands it; what you give holds as it is.
        strict: Raise when a model, or the bundle over time, is wrong.
        graph_configs: Settings of the pipeline as a whole.
        equal_nan: Whether NaN equals NaN. Equal infinities always pass.
        tolerance: `"auto"` derives a tolerance for each output from its dtype, the longest
            reduction and a run in float64, in place of `rtol` and `atol`.
        tolerances: Tolerances of single outputs, `{"node/port": dict(atol=..., rtol=...)}`.
        fresh_inputs: Check on values that were not recorded, too. Runs decorated functions and
            modules again; switch it off for code that must not be.
        adequacy: Plant small faults into copies of the nodes' programs, and say how many of them
            the samples find. Takes up to half a second for each node.
        drift: Compare each model with its recorded program, operator by operator (`.drift` of the
            result), and keep the programs of ONNX models in the bundle for `veracity.parity`.
        transform: Passes that change the exported ONNX models before they are checked, such as
            `["default"]`; see `veracity.transform`.

    Returns:
        `{node: True or False}` with `.diagnostics` and `.proof`; `True` when nothing was validated.
    """
    from veracity.export.compile import compile_recording
    from veracity.tracing.recording import recording_of

    if _current.active is not None:
        hint = "call `stop` first"
        message = "`compile_graph` was called while recording"
        raise refuse("VER0901", message, location=user_line(), hints=(hint,))
    session = _current.stopped
    if session is None:
        hint = "call `start`, run the code, call `stop`"
        raise refuse(
            "VER0901", "`compile_graph` was called and nothing was recorded", hints=(hint,)
        )
    recording = recording_of(session)
    try:
        return compile_recording(
            recording,
            visualize=visualize,
            verbose=verbose,
            validate=validate,
            dry_run=dry_run or recording.dry_run,
            rtol=rtol,
            atol=atol,
            strict=strict,
            graph_configs=graph_configs,
            equal_nan=equal_nan,
            tolerance=tolerance,
            tolerances=tolerances,
            fresh_inputs=fresh_inputs,
            adequacy=adequacy,
            drift=drift,
            transform=transform,
        )
    except VeracityError as refusal:
        # It is about the user's code, not about ours; log.txt has the way through it.
        raise refusal.with_traceback(None)  # noqa: B904  # what caused it stays


@contextlib.contextmanager
def session(name: str, **options: Any) -> Iterator[Session]:
    """Record the body: `start` before it and `stop` after it, also when it raises.

    Args:
        name: As for `start`.
        **options: As for `start`.
    """
    active = start(name, **options)
    try:
        yield active
    finally:
        if _current.active is active:
            stop()
