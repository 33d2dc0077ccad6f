"""pt2 models in torch's own runner, which runs them where Python is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import veracity
from torch import Tensor, nn
from veracity import annotate
from veracity.export.backends.pt2_runner import fit_for_runner, packed_constants

BINARY = Path(__file__).parents[2] / "target/debug/veracity"
#: Torch's own runner beside Python's torch.
RUNNERS = ["torch", "torch (python)"]


def compiled(
    folder: Path, outputs: Callable[[Tensor], dict[str, Tensor]], *shape: int, **options: Any
) -> Any:
    with veracity.session("g", save_path=str(folder)):
        for seed in range(3):
            given = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
            x = annotate.input_tensors("n", {"x": given})
            annotate.output_tensors("n", outputs(x), export_with="pt2")
    return veracity.compile_graph(visualize=False, adequacy=False, **options)


def engines_of(proof: dict[str, Any], node: str = "n") -> list[str]:
    sessions = proof["environment"]["sessions"]
    return sorted(one["engine"] for one in sessions if one["node"] == node)


#: Every way to have a tensor that is not all of its memory, from one of shape [6, 8].
VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "whole": lambda x: x,
    "columns": lambda x: x[:, 1:5],
    "rows": lambda x: x[2:5],
    "every second": lambda x: x[::2, ::2],
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[:1].expand(6, 8),
    "one row": lambda x: x[2],
    "diagonal": torch.diagonal,
    "as strided": lambda x: torch.as_strided(x, (3, 3), (9, 2), 1),
    "windows": lambda x: x.unfold(1, 3, 2),
    "chunk": lambda x: x.chunk(2, 1)[1],
    "unbound": lambda x: x.unbind(1)[3],
    "moved axis": lambda x: x.reshape(2, 3, 8).movedim(0, 2),
    "one number": lambda x: x[1, 1],
    "nothing": lambda x: x[:, :0],
}
#: Calls that take a tensor of any shape.
CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "times a number": lambda v: v * 2.0,
    "plus a number": lambda v: v + 1,
    "number minus": lambda v: 1 - v,
    "plus a flag": lambda v: v + True,
    "floor division": lambda v: v // 0.5,
    "remainder": lambda v: v % 3,
    "power": lambda v: v.abs() ** 0.5,
    "number to the power": lambda v: 2.0**v,
    "with itself": lambda v: v * v + v.abs() / 3,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "clamp": lambda v: v.clamp(-0.5, 0.5),
    "exp": torch.exp,
    "atan2": lambda v: torch.atan2(v, v + 1),
    "where": lambda v: torch.where(v > 0, v, -v),
    "mask": lambda v: v.masked_fill(v > 0, float("-inf")),
    "compare": lambda v: (v > 0.1) & (v < 1),
    "sum": lambda v: v.sum(),
    "mean": lambda v: v.mean(),
    "stack": lambda v: torch.stack([v, v * 2]),
    "flatten": lambda v: v.flatten(),
    "contiguous": lambda v: v.contiguous() * 2,
    "clone": lambda v: v.clone().add_(1).mul_(2),
    "zeros like": lambda v: torch.zeros_like(v) + v,
    "full like": lambda v: torch.full_like(v, 2) * v,
    "broadcast": lambda v: v.unsqueeze(0).expand(3, *v.shape) * 1,
    "to half": lambda v: v.half() * 2,
    "to double": lambda v: v.double() + 1,
    "to int": lambda v: v.int() + 1,
    "to bool": lambda v: v.bool(),
    "norm": lambda v: v.norm(),
    "prod": lambda v: v.prod(),
    "lerp": lambda v: torch.lerp(v, v + 1, 0.5),
    "addcmul": lambda v: torch.addcmul(v, v, v, value=2),
}


@pytest.mark.parametrize("view", VIEWS)
def test_the_runner_reads_views_as_python_does(view: str, tmp_path: Path) -> None:
    """One node with all calls on a view of its input, and on the same view of a constant."""
    table = torch.linspace(-2, 2, 48).reshape(6, 8)
    constant = VIEWS[view](table)

    def outputs(x: Tensor) -> dict[str, Tensor]:
        part = VIEWS[view](x)
        found = {}
        for number, call in enumerate(CALLS.values()):
            found[f"y{number}"] = call(part)
            found[f"c{number}"] = call(part + constant)
        return found

    result = compiled(tmp_path, outputs, 6, 8, fresh_inputs=False, equal_nan=True)
    assert result["n"], [str(one) for one in result.diagnostics]
    assert engines_of(result.proof.data) == RUNNERS


class _Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        memory = torch.randn(6, 8)
        self.register_buffer("whole", memory)
        self.register_buffer("part", memory[1:3, 2:5])
        self.register_buffer("expanded", memory[:1].expand(6, 8))
        self.register_buffer("transposed", torch.randn(3, 4).t())


def test_a_constant_lies_alone_in_its_memory_and_keeps_its_values() -> None:
    module = _Parts()
    before = dict(module.named_buffers())
    with packed_constants(module):
        for name, value in module.named_buffers():
            assert value.storage_offset() == 0, name
            assert value.untyped_storage().nbytes() == value.numel() * 4, name
            assert torch.equal(value, before[name]), name
        assert module.whole is before["whole"], "what is packed is not copied"
        assert module.transposed is before["transposed"]
    assert all(value is before[name] for name, value in module.named_buffers())


class _Calls(nn.Module):
    def __init__(self, call: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(x)


@pytest.mark.parametrize(
    ("call", "target"),
    [
        (lambda x: x // 2, torch.ops.aten.floor_divide.Scalar),
        (lambda x: x + True, torch.ops.aten.add.Scalar),
        (lambda x: x * x, torch.ops.aten.mul.Tensor),
    ],
    ids=["floor division", "a flag", "tensors"],
)
def test_numbers_go_to_the_overload_for_numbers(call: Any, target: Any) -> None:
    x = torch.randn(3, 4)
    program = torch.export.export(_Calls(call), (x,))
    fit_for_runner(program, "n")
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert targets == [target]
    assert torch.equal(program.module()(x), call(x))


def test_what_the_runner_cannot_be_given_is_refused_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(veracity.ProofError, match="VER1130") as refused:
        compiled(tmp_path, lambda x: {"y": torch.exp(2j * x).real}, 3)
    found = refused.value.diagnostics[0]
    assert "2j" in found.message
    assert Path(found.location.rpartition(":")[0]).name == Path(__file__).name
    assert "jit" in found.hints[0]


def test_the_proof_names_the_runner_and_the_program_runs_it(tmp_path: Path) -> None:
    result = compiled(tmp_path, lambda x: {"y": x[:, 1:3] * 2.0}, 2, 4)
    assert result.verdict == "proved"
    assert engines_of(result.proof.data) == RUNNERS
    assert engines_of(veracity.check(tmp_path / "g").data) == RUNNERS
    veracity.InferenceManager(tmp_path / "g", require_proof=True)
    done = run_by_binary(tmp_path / "g", tmp_path)
    assert done.returncode == 0, done.stderr


def run_by_binary(bundle: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    import numpy as np

    np.savez(folder / "in.npz", **{"n/x": np.ones((1, 2, 4), dtype=np.float32)})
    command = [BINARY, "run", bundle, "--inputs", folder / "in.npz"]
    return subprocess.run(
        [*command, "--outputs", folder / "out.npz", "--require-proof"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "VIRTUAL_ENV": sys.prefix},
    )


WITHOUT_COMPILER = """
    import json, torch, veracity
    from veracity import annotate

    with veracity.session("g", save_path="."):
        for _ in range(3):
            x = annotate.input_tensors("n", {"x": torch.randn(2, 4)})
            annotate.output_tensors("n", {"y": x[:, 1:3] * 2.0}, export_with="pt2")
    result = veracity.compile_graph(visualize=False)
    told = [one for one in result.diagnostics if one.severity != "note"]
    print(json.dumps({
        "verdict": result.verdict,
        "assumptions": [one.code for one in result.assumptions],
        "told": [one.code for one in told],
        "hints": [hint for one in told for hint in one.hints],
        "sessions": result.proof.data["environment"]["sessions"],
    }))
"""


def test_without_a_compiler_the_node_is_conditional_and_a_check_settles_it(tmp_path: Path) -> None:
    """A process of its own: one that has the shim needs no compiler."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_COMPILER)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": "/nowhere", "CXX": "", "VERACITY_CACHE": str(tmp_path / "c")},
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["verdict"], found["assumptions"], found["told"]) == (
        "conditional",
        ["VER1118"],
        ["VER1118"],
    )
    assert any("veracity check" in hint for hint in found["hints"])
    assert [one["engine"] for one in found["sessions"]] == ["torch (python)"]
    refused = run_by_binary(tmp_path / "g", tmp_path)
    assert refused.returncode != 0
    assert "VER1122" in refused.stderr
    veracity.check(tmp_path / "g").save()
    assert run_by_binary(tmp_path / "g", tmp_path).returncode == 0
