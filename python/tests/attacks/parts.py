"""Shares cases among processes, and runs one in a process of its own that may crash."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from attacks.judge import Outcome
from attacks.registry import Program

#: A program, and the backend of its nodes.
Case = tuple[Program, str]


def of(cases: Sequence[Case], part: str) -> Sequence[Case]:
    """Return the cases of a part: `2/3` is the second of three."""
    number, parts = (int(one) for one in part.split("/"))
    return cases[number - 1 :: parts]


def shared(
    module: str,
    arguments: Sequence[str],
    cases: Sequence[Case],
    jobs: int,
    alone: Callable[[Case], Outcome],
) -> Iterator[Outcome]:
    """Yield what comes of the cases, which processes share.

    Args:
        module: The package that is run. It knows `--json`, `--part` and `--skip`.
        arguments: What says which cases are meant.
        cases: Those cases, in the order in which the package runs them.
        jobs: How many processes.
        alone: Runs one case by itself: the one at which a process ended.
    """
    found: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()

    def run(part: str) -> None:
        for outcome in _run(module, [*arguments, "--part", part], of(cases, part), alone):
            found.put(outcome)
        found.put(None)

    for number in range(jobs):
        threading.Thread(target=run, args=(f"{number + 1}/{jobs}",), daemon=True).start()
    running = jobs
    while running:
        outcome = found.get()
        if outcome is None:
            running -= 1
        else:
            yield outcome


def _run(
    module: str,
    arguments: list[str],
    cases: Sequence[Case],
    alone: Callable[[Case], Outcome],
) -> Iterator[Outcome]:
    """Run a part; where its process ends too early, go on behind the case that ended it."""
    done = 0
    while done < len(cases):
        command = [sys.executable, "-m", module, *arguments, "--json", "--skip", str(done)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                done += 1
                yield Outcome(**json.loads(line))
        if done < len(cases):
            done += 1
            yield alone(cases[done - 1])


def alone(module: str, case: Case, arguments: Sequence[str], limit_secs: int) -> Outcome:
    """Run one case in a process of its own."""
    program, backend = case
    command = [sys.executable, "-m", module, program.name, "--backend", backend, "--json"]
    lost = Outcome(program.name, backend, program.theme, program.clean, "refused")
    try:
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            timeout=limit_secs + 30,
            check=False,
        )
    except subprocess.TimeoutExpired:
        lost.verdict, lost.wrong = "hang", "the process does not end"
        return lost
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            return Outcome(**json.loads(line))
    lost.wrong = f"the process ended with {done.returncode}"
    lost.detail = done.stderr[-300:]
    return lost
