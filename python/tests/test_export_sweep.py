"""Every expression, recorded in one pass, is exported right or refused with the user's line.

Right means: on inputs that were not recorded, loaded from the file, by the runtime of the format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from expressions import EXPRESSIONS
from recording import record
from veracity.errors import VeracityError
from veracity.export import backends, graph

Tensors = list[torch.Tensor]

#: What an exporter of torch 2.11 has no answer to. Each must be refused, and nothing else.
REFUSED: dict[str, set[str]] = {
    "jit": set(),
    "pt2": set(),
    "onnx": set(),
}
#: What only the older ONNX exporter can translate.
SECOND_EXPORTER = {"adaptive_max_pool", "cdist", "masked_select_sum"}
#: Expressions in one ONNX model: an export costs more than the operations in it.
BATCH = 16


@dataclass(frozen=True)
class Case:
    """Some expressions side by side, as one function."""

    names: Sequence[str]

    def inputs(self, seed: int) -> list[Tensors]:
        """Draw the inputs of each expression."""
        source = torch.Generator(torch.get_default_device()).manual_seed(seed)
        return [EXPRESSIONS[name][1](source) for name in self.names]

    def results(self, inputs: list[Tensors]) -> Tensors:
        """Compute every expression in plain torch."""
        found: Tensors = []
        for name, given in zip(self.names, inputs, strict=True):
            result = EXPRESSIONS[name][0](*given)
            found += result if isinstance(result, tuple | list) else [result]
        return found

    def function(self, *flat: torch.Tensor) -> Tensors:
        """Compute every expression, inputs one after the other."""
        remaining = iter(flat)
        counts = [len(given) for given in self.inputs(0)]
        return self.results([[next(remaining) for _ in range(count)] for count in counts])


def flat(inputs: list[Tensors]) -> Tensors:
    return [tensor.clone() for given in inputs for tensor in given]


def export(case: Case, backend: str, folder: Path) -> Callable[[Tensors], Tensors]:
    """Export what one pass recorded; return what runs the file."""
    examples = flat(case.inputs(1))
    names = [f"in {number}" for number in range(len(examples))]
    program, results = record(case.function, dict(zip(names, examples, strict=True)))
    outputs = [f"out.{number}" for number in range(len(results))]
    path = folder / f"model{backends.find(backend).extension}"
    ports = backends.Ports(case.names[0], names, outputs, examples)
    made = backends.export(backend, graph.build(program, outputs), ports, path)
    return runner(path, made, names)


def runner(path: Path, made: backends.Exported, names: list[str]) -> Callable[[Tensors], Tensors]:
    if made.backend == "onnx":
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(path), options)

        def run_onnx(inputs: Tensors) -> Tensors:
            fed = {
                n: t.cpu().numpy()
                for n, t in zip(names, inputs, strict=True)
                if n in made.input_names
            }
            return [torch.as_tensor(result) for result in session.run(None, fed)]

        return run_onnx
    model: Any = torch.jit.load(path) if made.backend == "jit" else torch.export.load(path).module()

    def run_torch(inputs: Tensors) -> Tensors:
        result = model(*inputs)
        return list(result) if isinstance(result, tuple | list) else [result]

    return run_torch


def agree(want: torch.Tensor, got: torch.Tensor) -> bool:
    if want.dtype != got.dtype or want.shape != got.shape:
        return False
    want, got = want.cpu(), got.cpu()
    return torch.allclose(want, got, rtol=1e-3, atol=1e-5, equal_nan=True)


def is_right(case: Case, run: Callable[[Tensors], Tensors]) -> bool:
    for seed in (2, 3):
        inputs = case.inputs(seed)
        got = run(flat(inputs))
        want = case.results([[tensor.clone() for tensor in given] for given in inputs])
        if len(want) != len(got) or not all(map(agree, want, got)):
            return False
    return True


def judge(case: Case, backend: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Give a verdict on each expression; those of a model that is not right are tried apart."""
    try:
        right = is_right(case, export(case, backend, folder))
        verdict = "right" if right else "wrong"
    except VeracityError as refusal:
        verdict = "refused" if tells_the_line(refusal) else f"refused without a line: {refusal}"
    except Exception as error:  # any: whatever it is, it is not a refusal
        verdict = f"{type(error).__name__}: {error}"
    if verdict == "right" or len(case.names) == 1:
        yield from ((name, verdict) for name in case.names)
        return
    middle = len(case.names) // 2
    for part in (case.names[:middle], case.names[middle:]):
        yield from judge(Case(part), backend, folder)


def tells_the_line(refusal: VeracityError) -> bool:
    found = refusal.diagnostics[0]
    return "expressions.py:" in found.location and bool(found.hints)


def cases(backend: str) -> Iterator[Case]:
    """Put expressions together where that is quicker; those that need care stay alone."""
    careful = REFUSED[backend] | SECOND_EXPORTER
    alone = [name for name in EXPRESSIONS if backend != "onnx" or name in careful]
    together = [name for name in EXPRESSIONS if name not in alone]
    yield from (Case([name]) for name in alone)
    for start in range(0, len(together), BATCH):
        yield Case(together[start : start + BATCH])


@pytest.mark.parametrize("backend", ["jit", "pt2", "onnx"])
def test_every_expression_is_right_or_refused_with_its_line(
    backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts: dict[str, str] = {}
    for case in cases(backend):
        verdicts.update(judge(case, backend, tmp_path))
    counts = Counter(verdicts.values())
    with capsys.disabled():
        print(
            f"\n{backend}: {counts['right']} of {len(verdicts)} right, {counts['refused']} refused"
        )
    assert set(verdicts) == set(EXPRESSIONS)
    assert {name: said for name, said in verdicts.items() if said not in ("right", "refused")} == {}
    assert {name for name, said in verdicts.items() if said == "refused"} == REFUSED[backend]


def test_the_sweep_is_broad() -> None:
    assert len(EXPRESSIONS) >= 300
