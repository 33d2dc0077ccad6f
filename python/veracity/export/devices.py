"""Why a model differs from a recording on another device: whether only the devices differ.

A GPU may compute float32 in TF32, with ten bits of mantissa, and sums in another order. Where the
recorded program, run as the model was, gives what the model gives, the export is right and the
device is the reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from veracity.errors import Diagnostic
from veracity.export.backends.contract import Ports
from veracity.export.backends.placement import cpu_by_default, on_cpu
from veracity.export.bounds import Bound, differs
from veracity.export.fresh import (
    Run,
    Tensors,
    device_of,
    program_module,
    program_runner,
    runner_of,
)
from veracity.export.models import Made
from veracity.tracing.nodes import Node, Sample


class _Attempt(NamedTuple):
    """A way to run the recorded program, and what it means if that gives the model's results."""

    run: Run
    message: str
    hint: str


def explanation(
    made: Made,
    samples: Sequence[Sample],
    model: Callable[[Sample], list[torch.Tensor]],
    bounds: dict[str, Bound],
) -> Diagnostic | None:
    """Return why a model that ran on the CPU differs from samples that a GPU computed.

    Args:
        made: The node.
        samples: What the model was run on.
        model: Runs it.
        bounds: What counts as equal.
    """
    node = made.node
    ran = [(sample, _by_port(node, model(sample))) for sample in samples]
    wrong = [(one, found) for one, found in ran if _differ(node, one.outputs, found, bounds)]
    if not wrong:
        return None
    program = program_runner(made)
    if program is None or not _explains(program, node, wrong, bounds):
        return None
    for attempt in _attempts(made, wrong[0][0]):
        with contextlib.suppress(Exception):  # any: a program that does not run explains nothing
            tried = [(attempt.run(one.inputs), found) for one, found in wrong]
            if not any(_differ(node, again, found, bounds) for again, found in tried):
                message = f"`{node.name}` {attempt.message}"
                return Diagnostic("VER1116", "warning", message, node.location, (attempt.hint,))
    return None


def _explains(
    program: Run, node: Node, wrong: list[tuple[Sample, Tensors]], bounds: dict[str, Bound]
) -> bool:
    """Say whether the program gives, as it was recorded, what was recorded."""
    with contextlib.suppress(Exception):  # any: it is run on values that it may not be made for
        return not any(_differ(node, one.outputs, program(one.inputs), bounds) for one, _ in wrong)
    return False


def _by_port(node: Node, results: list[torch.Tensor]) -> Tensors:
    return dict(zip((port.name for port in node.outputs), results, strict=True))


def _differ(node: Node, wanted: Tensors, found: Tensors, bounds: dict[str, Bound]) -> bool:
    pairs = [(port.name, wanted.get(port.name)) for port in node.outputs]
    return any(
        want is not None and differs(want, found[name], bounds[name], 1) for name, want in pairs
    )


def _attempts(made: Made, sample: Sample) -> Iterator[_Attempt]:
    module = program_module(made)
    if module is None:
        return
    where = device_of(sample)
    run = runner_of(made.node, module)

    def in_float32(inputs: Tensors) -> Tensors:
        with _without_tf32():
            return run(inputs)

    yield _Attempt(
        in_float32,
        f"was recorded on {where} in TF32, ten bits of mantissa; in float32 it gives what the "
        "model gives",
        "set torch.backends.cudnn.allow_tf32 and torch.backends.cuda.matmul.allow_tf32 to False "
        "while recording, or give a tolerance for TF32",
    )
    names = [use.port for use in made.node.slice.inputs]
    outputs = [port.name for port in made.node.outputs]
    ports = Ports(made.node.name, names, outputs, [sample.inputs[name] for name in names])
    moved = runner_of(made.node, on_cpu(module, ports)[0])

    def elsewhere(inputs: Tensors) -> Tensors:
        with cpu_by_default():
            return moved({name: value.cpu() for name, value in inputs.items()})

    yield _Attempt(
        elsewhere,
        f"was recorded on {where}, which rounds otherwise than the CPU; there it gives what the "
        "model gives",
        "give a tolerance, or check on the GPU: pip install onnxruntime-gpu",
    )


@contextlib.contextmanager
def _without_tf32() -> Iterator[None]:
    convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = convolutions.allow_tf32, products.allow_tf32
    convolutions.allow_tf32 = products.allow_tf32 = False
    try:
        yield
    finally:
        convolutions.allow_tf32, products.allow_tf32 = before
