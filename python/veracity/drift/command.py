"""`veracity parity`: compares a module with its export and says what was found.

The command line's binary starts this with the Python that has the module's packages. Answers go to
stdout, everything else (the user's own prints too) to stderr. Exit codes are those of every
command: 0 proved, 1 disproved, 2 could not run, 3 inconclusive; an error of any kind is 2, because
Python's own 1 would read as an answer.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veracity.errors import Diagnostic, VeracityError, refuse

if TYPE_CHECKING:
    from veracity.parity import ParityResult

_EXIT_CODES = {"proved": 0, "disproved": 1, "not_comparable": 3}
_COULD_NOT_RUN = 2
_DEFAULT_AGAINST = "onnx"
#: Options that say where and how to answer, not what to compare.
_ANSWERS = {"baseline", "format", "html", "quiet", "report_base", "repro", "save"}
#: As shells have it for a process that was interrupted.
_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; return the exit code."""
    given = _parser().parse_args(arguments)
    if given.quiet:
        os.environ["VERACITY_PROGRESS"] = "0"
    try:
        return _run(given)
    except VeracityError as refusal:
        for found in refusal.diagnostics:
            print(render(found), file=sys.stderr)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception:  # any: see above
        traceback.print_exc()
        print("error: this is a fault of veracity", file=sys.stderr)
    return _COULD_NOT_RUN


def render(found: Diagnostic) -> str:
    """Return a finding as the command line shows it."""
    lines = [f"{found.severity}[{found.code}]: {found.message}"]
    lines += [f" --> {found.location}"] if found.location else []
    return "\n".join([*lines, *(f"  = hint: {hint}" for hint in found.hints), ""])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="veracity parity")
    parser.add_argument("target")
    parser.add_argument("--node")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--input-shape", type=_shape, action="append")
    for option in ("onnx", "weights", "tolerances", "report-base", "save", "html", "repro"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--against", default=_DEFAULT_AGAINST)
    parser.add_argument("--baseline")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--budget", type=float, default=64.0)
    parser.add_argument("--memory", default="16MB")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--no-float64", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--format", choices=("table", "json", "md"), default="table")
    return parser


def _shape(text: str) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in text.split(",")) if text else ()
    if any(size < 0 for size in sizes):
        message = f"{text} has a size below 0"
        raise ValueError(message)
    return sizes


def _run(given: argparse.Namespace) -> int:
    _check_files(given)
    # What the user's code and the exporters print is no part of the answer.
    with contextlib.redirect_stdout(sys.stderr):
        result = _compared(given)
        result.remember_command(_command(given))
        _write(given, result)
        worse = _worse(given.baseline, result)
    _answer(given.format, result)
    if worse is None:
        return _EXIT_CODES[result.verdict]
    for line in worse:
        print(line, file=sys.stderr)
    return int(bool(worse))


def _check_files(given: argparse.Namespace) -> None:
    """Refuse what could not be written at the end before anything runs."""
    for path in (given.save, given.html, given.report_base, given.repro):
        if path is not None and not Path(path).absolute().parent.is_dir():
            message = "the folder of this file does not exist"
            raise refuse("VER0003", message, location=str(path))
    for path in (given.onnx, given.weights, given.tolerances, given.baseline):
        if path is not None and not Path(path).is_file():
            raise refuse("VER0001", "there is no such file", location=str(path))


def _command(given: argparse.Namespace) -> str:
    """Return what to type in to compare again: what was asked for, without the files of answers."""
    parser, words = _parser(), ["veracity", "parity"]
    for action in parser._actions:
        value = getattr(given, action.dest, None)
        if action.dest in _ANSWERS or not action.option_strings:
            continue
        if value is None or value == action.default:
            continue
        if value is True:
            words.append(action.option_strings[0])
            continue
        for each in value if isinstance(value, list) else [value]:
            text = ",".join(map(str, each)) if isinstance(each, tuple) else str(each)
            words.append(f"{action.option_strings[0]}={text}")
    return shlex.join([*words, given.target])


def _compared(given: argparse.Namespace) -> ParityResult:
    if _is_bundle(given):
        from veracity.drift import node

        return node.parity_of_bundle(given.target, given.node, **_options(given))
    from veracity.drift import target
    from veracity.parity import parity

    found = target.find(
        given.target, seed=given.seed, weights=given.weights, input_shapes=given.input_shape
    )
    for note in () if given.quiet else found.notes:
        print(f"note: {note}", file=sys.stderr)
    return parity(
        found.model,
        found.args,
        found.kwargs,
        onnx=given.onnx,
        against=given.against,
        name=found.name,
        **_options(given),
    )


def _is_bundle(given: argparse.Namespace) -> bool:
    if given.node is None:
        if os.path.isdir(given.target) or given.target.endswith((".yaml", ".yml")):
            message, hint = "a bundle has several nodes", "name one with `--node`"
            raise refuse("VER0005", message, location=given.target, hints=(hint,))
        return False
    for option in ("onnx", "weights", "input_shape", "against"):
        if getattr(given, option) not in (None, _DEFAULT_AGAINST):
            message = f"a bundle has its own models and samples: --{option.replace('_', '-')}"
            raise refuse("VER0005", message, location=given.target)
    return True


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `parity`; those about files only where they were given."""
    options = {
        "tolerance": given.tolerance,
        "budget": given.budget,
        "float64": not given.no_float64,
        "memory": given.memory,
        "threads": given.threads,
        "engine": given.engine,
    }
    files = {"tolerances": given.tolerances, "repro": given.repro}
    return options | {key: value for key, value in files.items() if value is not None}


# What is made of a result


def _write(given: argparse.Namespace, result: ParityResult) -> None:
    if given.save is not None:
        _save(result, Path(given.save))
    if given.html is not None:
        result.to_html(Path(given.html))
    if given.report_base is not None:
        result.write_reports(Path(given.report_base))


def _save(result: ParityResult, path: Path) -> None:
    try:
        path.write_text(result.to_json() + "\n", encoding="utf-8")
    except OSError as error:
        message = f"this file cannot be written: {error.strerror}"
        raise refuse("VER0003", message, location=str(path)) from error


def _worse(baseline: str | None, result: Any) -> list[str] | None:
    """Return what is worse than in an earlier result; `None` when there is no earlier one."""
    return None if baseline is None else [str(found) for found in result.worse_than(baseline)]


def _answer(form: str, result: ParityResult) -> None:
    text = {"table": result.__str__, "json": result.to_json, "md": result.to_markdown}[form]()
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # A reader that has seen enough and left does not change what the answer is; Python would
        # try again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    # Ctrl-C ends the process at once: some packages swallow the exception while they are imported.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main())
