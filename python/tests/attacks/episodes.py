"""Runs a program: in a session, without one, and as a bundle."""

from __future__ import annotations

import contextlib
import decimal
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import veracity
from torch import Tensor
from veracity import annotate
from veracity.tracing.flatten import flatten
from veracity.tracing.method import named_results

from attacks.draws import Draw
from attacks.registry import Program

#: Inputs or outputs by pipeline key, `node/port`.
Values = dict[str, Any]
Step = Callable[[dict[str, Any]], Values]

_CONTEXTS = {
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "grad": contextlib.nullcontext,
}
_COMMAND = Path(__file__).parents[3] / "target/debug/veracity"


class UnusableError(Exception):
    """The bundle cannot be run with what the code gets."""


def seed_all(seed: int = 0) -> None:
    """Seed every generator that a program may use; undo what others switched for the process."""
    torch.distributions.Distribution.set_default_validate_args(__debug__)
    decimal.setcontext(decimal.Context())
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # programs use the old interface
    random.seed(seed)


def drawn(draws: Iterable[tuple[str, Draw]], tick: int, *, episode: int) -> dict[str, Any]:
    """Return the inputs of one tick; each has a generator of its own."""
    values = {}
    for position, (name, draw) in enumerate(draws):
        generator = torch.Generator().manual_seed(7919 * episode + 101 * tick + position)
        values[name] = draw(tick, generator)
    return values


def instance(program: Program, backend: str) -> Step:
    """Make a fresh instance of the code, with the weights that every instance has."""
    seed_all()
    if program.style == "own":
        return program.make(backend)
    code = program.make()
    return {"inline": _inline, "method": _method, "module": _module}[program.style](
        code, program.node, backend
    )


def _inline(code: Callable[..., Any], node: str, backend: str) -> Step:
    def step(given: dict[str, Any]) -> Values:
        marked = annotate.input_tensors(node, given)
        values = marked if len(given) > 1 else (marked,)
        results = _named(code(*values))
        annotate.output_tensors(node, results, export_with=backend)
        return _flat(node, results)

    return step


def _module(code: torch.nn.Module, node: str, backend: str) -> Step:
    def step(given: dict[str, Any]) -> Values:
        marked = annotate.input_tensors(node, given)
        values = marked if len(given) > 1 else (marked,)
        annotate.module(node, code)
        results = _named(code(*values))
        annotate.output_tensors(node, results, export_with=backend)
        return _flat(node, results)

    return step


def _method(code: Any, node: str, backend: str) -> Step:
    """A function, or the method `step` of an object, is the node."""
    bound = hasattr(code, "step")
    function = type(code).step if bound else code
    decorated = annotate.method(node_name=node, export_with=backend)(function)

    def step(given: dict[str, Any]) -> Values:
        result = decorated(code, **given) if bound else decorated(**given)
        return _flat(node, named_results(function, result, ""))

    return step


def _named(result: Any) -> dict[str, Any]:
    if isinstance(result, dict):
        return result
    if isinstance(result, tuple):
        return {f"y{number}": value for number, value in enumerate(result)}
    return {"y": result}


def _flat(node: str, results: dict[str, Any]) -> Values:
    return {f"{node}/{leaf.name}": leaf.value for leaf in flatten(results)}


def record(program: Program, backend: str, folder: Path) -> None:
    """Record the passes of a fresh instance."""
    step = instance(program, backend)
    with _CONTEXTS[program.context]():
        for tick in range(program.warm):
            step(drawn(program.rec.items(), tick, episode=3))
    options = dict(program.session or {})
    with veracity.session(program.name, save_path=str(folder), **options):
        for tick in range(program.passes):
            with _CONTEXTS[program.context]():
                step(drawn(program.rec.items(), tick, episode=1))


def in_python(program: Program, backend: str) -> list[dict[str, Tensor]]:
    """Return what the code gives over a fresh episode."""
    step = instance(program, backend)
    outputs = []
    for tick in range(program.ticks):
        with _CONTEXTS[program.context]():
            given = step(drawn(program.fresh.items(), tick, episode=2))
        outputs.append({key: _plain(value) for key, value in given.items()})
    return outputs


def in_bundle(program: Program, folder: Path) -> list[dict[str, Tensor]]:
    """Return what the bundle gives over the same episode."""
    manager = veracity.InferenceManager(folder / program.name)
    ticks = [_pipeline_inputs(program, manager.inputs, tick) for tick in range(program.ticks)]
    if program.runner == "cli":
        return _by_command(folder / program.name, ticks)
    # ONNX has one space of names: a port that is both becomes `x_in` and `x_out`, as LEAPP has it.
    both = {key.removesuffix("_in") for key in manager.inputs if key.endswith("_in")}
    names = {key: key.removesuffix("_out") for key in manager.outputs}
    return [
        {
            names[key] if names[key] in both else key: _plain(value)
            for key, value in manager.run_policy(given).items()
        }
        for given in ticks
    ]


def _pipeline_inputs(program: Program, wanted: list[str], tick: int) -> dict[str, Tensor]:
    values = drawn(program.fresh.items(), tick, episode=2)
    if program.style != "own":
        values = _flat(program.node, values)
    else:
        values = {leaf.name: leaf.value for leaf in flatten(values)}
    names = {key: key if key in values else key.removesuffix("_in") for key in wanted}
    if missing := [key for key, name in names.items() if name not in values]:
        raise UnusableError(f"the bundle needs {', '.join(missing)}")
    return {key: _plain(values[name]) for key, name in names.items()}


def _plain(value: Any) -> Tensor:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    return torch.as_tensor(value).detach().clone()


def _by_command(bundle: Path, ticks: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    """Run the bundle with the program that robots use."""
    inputs, outputs = bundle.parent / "inputs.npz", bundle.parent / "outputs.npz"
    np.savez(inputs, **{key: np.stack([t[key].numpy() for t in ticks]) for key in ticks[0]})
    command = [_COMMAND, "run", bundle, "--inputs", inputs, "--outputs", outputs, "--require-proof"]
    env = os.environ | {"VIRTUAL_ENV": sys.prefix}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        raise UnusableError(done.stderr.strip()[-300:])
    with np.load(outputs) as found:
        return [
            {key: torch.as_tensor(np.asarray(found[key][tick])) for key in found.files}
            for tick in range(len(ticks))
        ]
