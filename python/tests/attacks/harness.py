"""Records, compiles, runs a fresh episode and classifies; prints the table of all programs."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import logging
import os
import shutil
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import veracity
from veracity import _current

from attacks import episodes, parts, scripts
from attacks.judge import (
    BROKEN,
    FALSE_ALARM,
    FALSE_PROOF,
    REFUSED,
    RIGHT,
    TOLD,
    Episode,
    Outcome,
    first_difference,
)
from attacks.parts import Case
from attacks.programs import load
from attacks.registry import PROGRAMS, THEMES, Program

#: Seconds after which a case counts as hanging.
LIMIT_SECS = 60
#: Share of clean programs that may be anything but proved.
MAX_ALARMS = 0.03
_POISONED = "the code fails after the session"


class _TooLong(BaseException):
    """Not an `Exception`: programs catch those."""


def attack(
    program: Program,
    backend: str,
    *,
    as_script: bool = False,
    also: Callable[[Path, Outcome], None] | None = None,
    limit_secs: int = LIMIT_SECS,
) -> Outcome:
    """Run one case.

    Args:
        program: The program.
        backend: The backend of its nodes.
        as_script: Whether it is recorded at the top of a file.
        also: What is done with the bundle in addition, and what comes of it noted.
        limit_secs: Seconds after which it counts as hanging.
    """
    outcome = Outcome(program.name, backend, program.theme, program.clean)
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    if backend == "pt2":
        _build_runner()
    began = time.monotonic()
    try:
        with _tidy_logging(), _quiet(), _bounded(limit_secs):
            expected = episodes.in_python(program, backend)
            record = scripts.record if as_script else episodes.record
            _compile(lambda: record(program, backend, folder), outcome)
            outcome.wrong = _compare(program, backend, folder, expected)
            if also is not None:
                also(folder / program.name, outcome)
    except _TooLong:
        outcome.verdict, outcome.wrong = "hang", f"not done after {limit_secs} s"
    except Exception as error:
        outcome.verdict, outcome.detail = BROKEN, f"{type(error).__name__}: {error}"
    finally:
        _leave_session()
        shutil.rmtree(folder, ignore_errors=True)
    outcome.seconds = time.monotonic() - began
    return outcome


@functools.cache
def _build_runner() -> None:
    """Have the shim for torch's own runner compiled, which no single case is to wait for."""
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        with veracity.session("runner", save_path=folder):
            x = veracity.annotate.input_tensors("n", {"x": torch.ones(1)})
            veracity.annotate.output_tensors("n", {"y": x + 1}, export_with="pt2")
        veracity.compile_graph(visualize=False, strict=False)
    _leave_session()


def _compile(record: Callable[[], None], outcome: Outcome) -> None:
    """Record and compile; what is raised on the way is part of the outcome."""
    try:
        record()
        result: Any = veracity.compile_graph(visualize=False)
        outcome.verdict = result.proof.verdict
        found = result.diagnostics
    except Exception as error:
        outcome.verdict = "refused"
        outcome.detail = f"{type(error).__name__}: {error}"
        found = getattr(error, "diagnostics", [])
    told = [one for one in found if one.severity in ("warning", "error")]
    outcome.codes = sorted({one.code for one in told})
    if told and not outcome.detail:
        outcome.detail = str(told[0])


def _compare(program: Program, backend: str, folder: Path, expected: Episode) -> str:
    """Return where the bundle is wrong, or why it or the code itself cannot be run any more."""
    try:
        episodes.in_python(program, backend)
    except Exception as error:
        return f"{_POISONED}: {type(error).__name__}: {error}"
    try:
        found = episodes.in_bundle(program, folder)
    except Exception as error:
        return f"cannot be run: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return first_difference(found, expected)


def fairness(program: Program, backend: str) -> str:
    """Return where two fresh instances differ in Python: chance, clocks, or a wrong attack."""
    with _quiet():
        twice = [episodes.in_python(program, backend) for _ in range(2)]
    return first_difference(*twice)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the console for the table: programs print, and exporters warn."""
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            root.removeHandler(silent)


@contextlib.contextmanager
def _bounded(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _tidy_logging() -> Iterator[None]:
    """Take off the handlers of one program: they would hear what the next one logs."""
    before = list(logging._handlerList)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        fresh = [one() for one in logging._handlerList if one not in before]  # type: ignore[attr-defined]
        loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)]
        for logger in [logging.root, *loggers]:
            for handler in fresh:
                if handler is not None:
                    logger.removeHandler(handler)


def _leave_session() -> None:
    if _current.active is not None:
        with contextlib.suppress(Exception):
            veracity.stop()
    _current.active = _current.stopped = None


def _isolated(program: Program, backend: str, *, as_script: bool = False) -> Outcome:
    return parts.alone("attacks", (program, backend), ["--script"] if as_script else [], LIMIT_SECS)


def cases(names: Iterable[str] | None = None, backend: str | None = None) -> list[Case]:
    """Return the cases of some programs, or of all; those in modes of their own come last.

    They are the ones that can leave a process broken, and then the rest needs processes of its own.
    """
    load()
    chosen = [PROGRAMS[name] for name in names] if names else list(PROGRAMS.values())
    chosen.sort(key=lambda program: program.context != "no_grad")
    return [(p, b) for p in chosen for b in p.backends if backend in (None, b)]


def table(outcomes: list[Outcome]) -> str:
    """Return the counts by theme, then every case that is not what it has to be, then the bars."""
    kinds = (RIGHT, TOLD, FALSE_PROOF, FALSE_ALARM, REFUSED, BROKEN)
    lines = [f"{'theme':<26}{'cases':>6}" + "".join(f"{kind:>13}" for kind in kinds)]
    for clean in (False, True):
        for theme, subject in THEMES.items():
            some = [o for o in outcomes if o.theme == theme and o.clean == clean]
            if some:
                count = Counter(o.kind for o in some)
                label = f"{'clean' if clean else 'hostile'} {theme} {subject}"
                lines.append(
                    f"{label:<26.26}{len(some):>6}" + "".join(f"{count[k]:>13}" for k in kinds)
                )
    lines += [""] + [_line(o) for o in outcomes if not o.passed]
    return "\n".join([*lines, "", *_bars(outcomes)])


def _line(o: Outcome) -> str:
    codes = ",".join(o.codes) or "-"
    said = " ".join(o.detail.split())[:160]
    return f"{o.kind:<12} {o.program} [{o.backend}] {o.verdict} {codes} | {o.wrong[:160]} | {said}"


def _bars(outcomes: list[Outcome]) -> list[str]:
    wrong, missed = false_proofs(outcomes), alarms(outcomes)
    every = {o.program for o in outcomes}
    clean = {o.program for o in outcomes if o.clean}
    return [
        f"{len(every)} programs, {len(outcomes)} cases, {sum(o.seconds for o in outcomes):.0f} s",
        f"false proofs: {len(wrong)} of {len(every)} programs ({_percent(wrong, every)})",
        f"clean and not proved: {len(missed)} of {len(clean)} programs ({_percent(missed, clean)})",
    ]


def _percent(part: set[str], whole: set[str]) -> str:
    return f"{100 * len(part) / max(1, len(whole)):.1f} %"


def false_proofs(outcomes: list[Outcome]) -> set[str]:
    """Return the programs that were called proved and are wrong."""
    return {o.program for o in outcomes if o.kind == FALSE_PROOF}


def alarms(outcomes: list[Outcome]) -> set[str]:
    """Return the clean programs that got anything but a silent proof."""
    return {o.program for o in outcomes if o.clean and not o.passed}


def main(arguments: list[str] | None = None) -> int:
    """Run the attack; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="attacks", description=__doc__)
    parser.add_argument("programs", nargs="*", help="names, or a theme's letter; all by default")
    parser.add_argument("--backend", help="only the cases with this backend")
    parser.add_argument("--isolated", action="store_true", help="a process for every case")
    parser.add_argument("--json", action="store_true", help="one line of JSON a case, no table")
    parser.add_argument("--tests", action="store_true", help="only the part that `make test` runs")
    parser.add_argument("--script", action="store_true", help="record each at the top of a file")
    parser.add_argument("--fair", action="store_true", help="only run the code twice and compare")
    parser.add_argument("--verbose", action="store_true", help="say each case as it ends")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the cases")
    parser.add_argument("--part", default="1/1", help="`2/3`: of three parts, the second")
    parser.add_argument("--skip", type=int, default=0, help="cases that are left out at the start")
    asked = parser.parse_args(arguments)
    os.environ["VERACITY_PROGRESS"] = "0"
    torch.set_num_threads(1)
    if asked.fair:
        return _fair(asked)
    outcomes: list[Outcome] = []
    for outcome in _in_parts(asked) if asked.jobs > 1 else _in_order(asked):
        outcomes.append(outcome)
        if asked.json:
            print(json.dumps(asdict(outcome)), flush=True)
        elif asked.verbose or not outcome.passed:
            print(_line(outcome), f"({outcome.seconds:.1f} s)", flush=True)
    if not asked.json:
        print("\n" + table(outcomes))
    clean = {o.program for o in outcomes if o.clean}
    missed = len(alarms(outcomes)) > MAX_ALARMS * len(clean)
    broken = any(o.kind == BROKEN for o in outcomes)
    return 1 if false_proofs(outcomes) or missed or broken else 0


def _in_order(asked: argparse.Namespace) -> Iterator[Outcome]:
    alone = asked.isolated
    for program, backend in _chosen(asked):
        outcome = (_isolated if alone else attack)(program, backend, as_script=asked.script)
        # What a session broke for the process must not be held against the programs after it.
        alone = alone or outcome.wrong.startswith(_POISONED)
        yield outcome


def _in_parts(asked: argparse.Namespace) -> Iterator[Outcome]:
    arguments = [*asked.programs]
    arguments += ["--backend", asked.backend] if asked.backend else []
    arguments += [f"--{name}" for name in ("isolated", "tests", "script") if getattr(asked, name)]

    def alone(case: Case) -> Outcome:
        return _isolated(*case, as_script=asked.script)

    return parts.shared("attacks", arguments, _chosen(asked), asked.jobs, alone)


def _fair(asked: argparse.Namespace) -> int:
    for program, backend in _chosen(asked):
        if problem := fairness(program, backend):
            print(program.name, problem)
    return 0


def _chosen(asked: argparse.Namespace) -> list[Case]:
    load()
    names = [
        name
        for name, program in PROGRAMS.items()
        if (not asked.programs or name in asked.programs or program.theme in asked.programs)
        and (program.in_tests or not asked.tests)
    ]
    chosen = cases(names, asked.backend) if names else []
    return parts.of(chosen, asked.part)[asked.skip :]
