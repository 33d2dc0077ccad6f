"""Why a model differs from a recording on another device; seen here without such a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import veracity
from nodes_by_hand import make_node
from recording import record
from torch import Tensor, nn
from veracity.export import devices, fresh, graph
from veracity.export.backends import placement, trial
from veracity.export.backends.contract import Ports
from veracity.export.fresh import Bound, Run
from veracity.export.loading import load_for_engine
from veracity.export.models import Made
from veracity.tracing.nodes import Node, Sample

X = torch.tensor([1.0, 2.0, 3.0])
BOUNDS = {"y": Bound(rtol=1e-3, atol=1e-5)}


def recorded(off: float) -> Made:
    """Return a node `y = 2 x` whose recorded outputs are off."""
    node = make_node("n", lambda x: x * 2, {"x": X}, ["y"])
    samples = [replace(one, outputs={"y": one.outputs["y"] + off}) for one in node.samples]
    return Made(replace(node, samples=samples), None, node.inputs)


def as_on_a_gpu(node: Node, module: object) -> Run:
    """Run `y = 2 x` with the roundings of TF32 where that is allowed."""
    return lambda inputs: {"y": inputs["x"] * 2 + 0.1 * torch.backends.cudnn.allow_tf32}


def model(factor: float) -> object:
    return lambda sample: [sample.inputs["x"] * factor]


@pytest.mark.parametrize(
    ("off", "factor", "code"),
    [
        (0.1, 2.0, "VER1116"),  # the recording is rounded, the model computes as without TF32
        (0.1, 2.1, None),  # the model is wrong by itself
        (0.2, 2.0, None),  # nothing explains the recording
    ],
)
def test_the_device_is_the_reason_only_if_the_program_gives_both(
    off: float, factor: float, code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    for module in (devices, fresh):
        monkeypatch.setattr(module, "runner_of", as_on_a_gpu)
    made = recorded(off)
    run = model(factor)
    found = devices.explanation(made, made.node.samples, run, BOUNDS)  # type: ignore[arg-type]
    assert (found and found.code) == code
    if found:
        assert found.location == made.node.location
        assert "allow_tf32" in found.hints[0]


def test_a_model_that_agrees_needs_no_reason() -> None:
    made = recorded(0)
    run = model(2.0)
    assert devices.explanation(made, made.node.samples, run, BOUNDS) is None  # type: ignore[arg-type]


def test_a_program_that_does_not_run_explains_nothing() -> None:
    node = make_node("n", lambda x: torch.eye(3) @ x, {"x": X}, ["y"])
    made = Made(node, None, node.inputs)
    sample = Sample({"x": X[:2]}, node.samples[0].outputs, 0)
    assert devices.explanation(made, [sample], lambda _: [X * 2], BOUNDS) is None


class OnGpu(nn.Module):
    """Was recorded on a GPU: its code names that."""

    def forward(self, x: Tensor) -> Tensor:
        """Make tensors on both devices."""
        return x + torch.arange(3, device="cuda:0").to("cpu").to("cuda:0")


def test_torchscript_that_was_recorded_on_a_gpu_runs_on_the_cpu(tmp_path: Path) -> None:
    path = tmp_path / "gpu.pt"
    torch.jit.script(OnGpu()).save(path)
    for source in (path, path.read_bytes()):
        run, device = load_for_engine("jit", source, "cpu", 1)
        assert device == "cpu"
        assert torch.equal(run([X])[0], X + torch.arange(3))
    bundle = veracity.write_bundle(
        tmp_path / "b",
        nodes=[
            {
                "name": "n",
                "model": path,
                "backend": "jit",
                "inputs": [{"name": "x", "dtype": "float32", "shape": [3]}],
                "outputs": [{"name": "y", "dtype": "float32", "shape": [3]}],
            }
        ],
    )
    found = veracity.InferenceManager(bundle, device="cpu").run_policy({"n/x": X})["n/y"]
    assert torch.equal(found, X + torch.arange(3))


class AsksForDevice(nn.Module):
    """Computes something else on a GPU."""

    def forward(self, x: Tensor) -> Tensor:
        """Compare devices."""
        if x.device == torch.device("cuda:0") or x.device != torch.device("cpu"):
            return x + 1
        return x - 1


def test_what_code_compares_devices_with_stays(tmp_path: Path) -> None:
    path = tmp_path / "asks.pt"
    torch.jit.script(AsksForDevice()).save(path)
    run, _ = load_for_engine("jit", path, "cpu", 1)
    assert torch.equal(run([X])[0], X - 1)


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: x + torch.ones(3), False),
        (lambda x: x.cpu() + 1, True),
        (lambda x: x.to("cpu") + 1, True),
        (lambda x: x.to(device=torch.device("cpu"), dtype=torch.float64), True),
    ],
)
def test_a_graph_that_names_the_cpu_works_there_too(function: Any, named: bool) -> None:
    """On a GPU it is then recorded as it is: the CPU was meant."""
    program, _ = record(function, {"x": X})
    module = graph.build(program, ["y"]).to("meta")
    ports = Ports("n", ["x"], ["y"], [X.to("meta")])
    cpu, gpu = torch.device("cpu"), torch.device("meta")
    assert placement.devices_of(module, ports) == ({cpu, gpu} if named else {gpu})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_trial_allows_for_the_roundings_of_half_precision(dtype: torch.dtype) -> None:
    want = torch.tensor([1.0, -0.5, 1e-3, float("inf")], dtype=dtype)
    unit = torch.finfo(dtype).eps
    assert trial.agree(want, want + torch.tensor([unit, unit, unit, 0.0], dtype=dtype))
    assert not trial.agree(want, want * torch.tensor([2, 1, 1, 1], dtype=dtype))
