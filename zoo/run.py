"""Exports, proves and runs every policy beside its Python code, and prints a table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from attacks import parts
from attacks.harness import attack
from attacks.judge import BROKEN, Outcome
from attacks.parts import Case
from attacks.registry import ALL

from zoo.register import Policy, load

#: Seconds for one policy with one backend.
LIMIT_SECS = 240
#: Share of the policies that have to be right, by backend.
BARS = {"jit": 0.97, "onnx": 0.92, "pt2": 0.97}

RIGHT, DOUBTED, REFUSED, WRONG, CRASHED = "right", "doubted", "refused", "wrong", "crashed"
KINDS = (RIGHT, DOUBTED, REFUSED, WRONG, CRASHED)
_POSITIVE = ("proved", "conditional")
#: The environment that torch is in: that of the zoo stands on it.
_PREFIX = str(Path(torch.__file__).parents[4])
_COMMAND = Path(__file__).parents[1] / "target/debug/veracity"
#: What a refusal holds that is meant for a person: its code.
_CODE = "error[VER"


def tried(policy: Policy, backend: str) -> Outcome:
    """Export a policy, prove it, check it without Python, and run it for an episode."""
    return attack(policy.program, backend, also=_check, limit_secs=LIMIT_SECS)


def _check(bundle: Path, outcome: Outcome) -> None:
    """Note what the program that robots use says of the bundle."""
    if not bundle.exists():
        return
    done = subprocess.run(
        [_COMMAND, "check", bundle, "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"VIRTUAL_ENV": _PREFIX},
    )
    try:
        outcome.checked = json.loads(done.stdout)["verdict"]
    except (ValueError, KeyError):
        outcome.checked = f"exit {done.returncode}: {done.stderr.strip()[-200:]}"


def kind_of(outcome: Outcome) -> str:
    """Return what became of a case.

    Right is what runs as the Python code does, with a verdict that `veracity check` gives as well.
    Doubted is what runs right and has another verdict.
    """
    if outcome.verdict in (BROKEN, "hang") or _is_crash(outcome):
        return CRASHED
    if outcome.verdict in _POSITIVE and outcome.wrong:
        return WRONG
    if outcome.verdict == "refused" or outcome.wrong:
        return REFUSED
    return RIGHT if {outcome.verdict, outcome.checked} <= {*_POSITIVE} else DOUBTED


def _is_crash(outcome: Outcome) -> bool:
    lost = outcome.wrong.startswith("the process")
    return lost or (outcome.verdict == "refused" and _CODE not in outcome.detail)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the counts by family and backend, and every case that is not right and proved."""
    families = sorted({o.theme for o in outcomes})
    backends = [name for name in ALL if any(o.backend == name for o in outcomes)]
    width = max(map(len, [*families, "family"]))
    lines = ["  ".join([f"{'family':<{width}}", *(f"{name:>9}" for name in backends)])]
    for family in [*families, None]:
        cells = []
        for backend in backends:
            some = [o for o in outcomes if o.backend == backend and family in (o.theme, None)]
            right = sum(kind_of(o) == RIGHT for o in some)
            cells.append(f"{right:>4} of {len(some)}".rjust(9))
        lines.append("  ".join([f"{family or 'all':<{width}}", *cells]))
    lines += ["", *(_line(o) for o in outcomes if not _is_silent(o)), ""]
    return "\n".join([*lines, *_bars(outcomes, backends)])


def _is_silent(outcome: Outcome) -> bool:
    return kind_of(outcome) == RIGHT and {outcome.verdict, outcome.checked} == {"proved"}


def _line(o: Outcome) -> str:
    codes = ",".join(o.codes) or "-"
    said = " ".join(o.detail.split())[:200]
    verdicts = f"{o.verdict}/{o.checked or '-'}"
    return (
        f"{kind_of(o):<8} {o.program} [{o.backend}] {verdicts} {codes} | {o.wrong[:160]} | {said}"
    )


def _bars(outcomes: Sequence[Outcome], backends: Sequence[str]) -> list[str]:
    lines = []
    for backend in backends:
        some = [o for o in outcomes if o.backend == backend]
        count = Counter(kind_of(o) for o in some)
        share = 100 * count[RIGHT] / max(1, len(some))
        kinds = ", ".join(f"{count[kind]} {kind}" for kind in KINDS)
        proved = sum(_is_silent(o) for o in some)
        lines.append(f"{backend}: {share:.1f} % right ({kinds}; {proved} simply proved)")
    return lines


def _is_good(outcomes: Sequence[Outcome]) -> bool:
    """Say whether the bars hold."""
    for backend, bar in BARS.items():
        kinds = [kind_of(o) for o in outcomes if o.backend == backend]
        if {WRONG, CRASHED} & {*kinds} or kinds.count(RIGHT) < bar * len(kinds):
            return False
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run the zoo; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="zoo", description=__doc__)
    parser.add_argument("policies", nargs="*", help="names or families; all by default")
    parser.add_argument("--backend", choices=ALL, help="only with this backend")
    parser.add_argument("--json", action="store_true", help="one line of JSON a case, no table")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the cases")
    parser.add_argument("--part", default="1/1", help="`2/3`: of three parts, the second")
    parser.add_argument("--skip", type=int, default=0, help="cases that are left out at the start")
    asked = parser.parse_args(arguments)
    os.environ["VERACITY_PROGRESS"] = "0"
    torch.set_num_threads(1)
    outcomes = []
    for outcome in _in_parts(asked) if asked.jobs > 1 else _in_order(asked):
        outcomes.append(outcome)
        if asked.json:
            print(json.dumps(asdict(outcome)), flush=True)
        elif not _is_silent(outcome):
            print(_line(outcome), f"({outcome.seconds:.1f} s)", flush=True)
    if not asked.json:
        print("\n" + table(outcomes))
        for policy in _chosen(asked):
            if policy.missing:
                print(f"{policy.program.name} was left out: there is no {policy.missing[0]}")
    return 0 if _is_good(outcomes) else 1


def _in_order(asked: argparse.Namespace) -> Iterator[Outcome]:
    policies = load()
    for program, backend in parts.of(_cases(asked), asked.part)[asked.skip :]:
        yield tried(policies[program.name], backend)


def _in_parts(asked: argparse.Namespace) -> Iterator[Outcome]:
    arguments = [*asked.policies, *(["--backend", asked.backend] if asked.backend else [])]

    def alone(case: Case) -> Outcome:
        return parts.alone("zoo", case, [], LIMIT_SECS)

    return parts.shared("zoo", arguments, _cases(asked), asked.jobs, alone)


def _chosen(asked: argparse.Namespace) -> list[Policy]:
    named = asked.policies
    return [
        policy
        for name, policy in load().items()
        if not named or name in named or policy.family in named
    ]


def _cases(asked: argparse.Namespace) -> list[Case]:
    return [
        (policy.program, backend)
        for policy in _chosen(asked)
        for backend in policy.program.backends
        if asked.backend in (None, backend) and not policy.missing
    ]
