"""Tensors on a GPU: recorded where they are, exported with every backend, checked on their device.

Needs a GPU; `VERACITY_TEST_DEVICE=cuda` puts the tensors of the other tests there, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import veracity
from differential.clean import NETWORKS
from differential.sides import leave_session
from torch import Tensor, nn
from veracity import annotate
from veracity.errors import VeracityError
from veracity.export.validate import FROZEN_HINT

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device on this machine"
)

BACKENDS = ["jit-script", "jit-trace", "onnx-dynamo", "onnx-torchscript", "pt2"]
CUDA = "cuda:0"
PASSES = 3


@pytest.fixture(autouse=True)
def exact_and_alone() -> Iterator[None]:
    """Compute in float32 what is float32; the tests of TF32 switch it on."""
    convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = convolutions.allow_tf32, products.allow_tf32
    convolutions.allow_tf32 = products.allow_tf32 = False
    yield
    convolutions.allow_tf32, products.allow_tf32 = before
    leave_session(veracity)


def record(folder: Path, run: Callable[[], Any], passes: int = PASSES) -> Path:
    torch.manual_seed(5)
    with veracity.session("g", save_path=folder), torch.no_grad():
        for _ in range(passes):
            run()
    return folder / "g"


def proof_of(result: Any) -> dict[str, Any]:
    return dict(json.loads(result.proof.to_json()))


def devices(result: Any) -> set[str]:
    """Return the devices that models were run on."""
    return {session["device"] for session in proof_of(result)["environment"]["sessions"]}


def where(backend: str) -> set[str]:
    """Return where a model of this backend can be run here."""
    if not backend.startswith("onnx"):
        return {CUDA}
    import onnxruntime

    has_cuda = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    return {CUDA if has_cuda else "cpu"}


class Recurrent(nn.Module):
    """A policy with a hidden state in a buffer that it writes into."""

    hidden: Tensor

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.cell, self.head = nn.GRUCell(6, 8), nn.Linear(8, 3)
        self.register_buffer("hidden", torch.zeros(1, 8))
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 0.5, 1.0, 1.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        """Return an action; remember."""
        self.hidden.copy_(self.cell(x * self.scale, self.hidden))
        return torch.tanh(self.head(self.hidden))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_policy_with_buffers_is_proved_where_it_ran(backend: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    policy = Recurrent().to(CUDA)
    seen: list[tuple[Tensor, Tensor]] = []

    def tick() -> None:
        x = annotate.input_tensors("policy", {"x": torch.randn(1, 6, device=CUDA)})
        annotate.module("policy", policy)
        y = policy(x)
        seen.append((x.clone(), y.clone()))
        annotate.output_tensors("policy", {"y": y}, export_with=backend)

    bundle = record(tmp_path, tick)
    result = veracity.compile_graph(visualize=False)
    assert result == {"policy": True}
    assert not result.diagnostics
    assert devices(result) == where(backend)
    assert all(value.device == torch.device(CUDA) for pair in seen for value in pair)

    manager = veracity.InferenceManager(bundle)
    for x, expected in seen:
        found = manager.run_policy({"policy/x": x})["policy/y"]
        assert found.device == torch.device(CUDA), "outputs go where inputs came from"
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def half_written(x: Tensor) -> Tensor:
    out = torch.zeros(4, 6, device=x.device)
    out[1:3, ::2] = x[:2, :3]
    out[out == 0] = x.mean()
    out.t()[0].mul_(2)
    return out


def through_the_cpu(x: Tensor) -> Tensor:
    return (x.cpu() * 2).to(x.device) + x


def through_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(np.tanh(x.cpu().numpy()) * 3).to(x.device)


def spectrum(x: Tensor) -> Tensor:
    return torch.fft.rfft(x, dim=1).abs()


def in_half(x: Tensor) -> Tensor:
    return (x.half() * 3).float().relu()


def made_on_the_way(x: Tensor) -> Tensor:
    positions = torch.arange(6, device=x.device.type, dtype=torch.float32)
    return x * positions + torch.eye(6, device=x.device)[2]


def fraction(x: Tensor) -> Tensor:
    return x.trunc() * 2 + x.frac()


def mask_in_a_row(x: Tensor) -> Tensor:
    y = x.clone()
    y[0][x[0] > 0] = -1
    return y * torch.tensor([x[0, 0], x[1, 1], 2.0])[2].to(x.device)


@torch.jit.script
def _scripted(x: Tensor) -> Tensor:
    return torch.tanh(x * 2 + 1) * x


def scripted(x: Tensor) -> Tensor:
    for _ in range(4):  # torch fuses it after some runs, which no mode sees
        y = _scripted(x)
    return y + x


def cpu_index(x: Tensor) -> Tensor:
    return x[:, torch.tensor([3, 0, 5])] * torch.tensor(2.0)


FUNCTIONS = {
    one.__name__: one
    for one in (
        half_written,
        through_the_cpu,
        through_numpy,
        spectrum,
        in_half,
        made_on_the_way,
        cpu_index,
        fraction,
        mask_in_a_row,
        scripted,
    )
}


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_usual_code_is_right_on_fresh_inputs_from_one_pass(
    name: str, backend: str, tmp_path: Path
) -> None:
    function = FUNCTIONS[name]

    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(4, 6, device=CUDA)})
        annotate.output_tensors("n", {"y": function(x)}, export_with=backend)

    bundle = record(tmp_path, tick, passes=1)
    result = veracity.compile_graph(visualize=False)
    assert result == {"n": True}, result.diagnostics
    manager = veracity.InferenceManager(bundle)
    for _ in range(6):  # TorchScript optimises over the first runs
        x = torch.randn(4, 6, device=CUDA)
        found = manager.run_policy({"n/x": x})["n/y"]
        torch.testing.assert_close(found, function(x), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_usual_network_is_proved_without_a_word(name: str, backend: str, tmp_path: Path) -> None:
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    network = make().to(CUDA)
    with torch.no_grad():
        network(torch.randn(shape, device=CUDA))  # lazy layers take their shape
    network.eval()

    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(shape, device=CUDA)})
        annotate.output_tensors("n", {"y": network(x)}, export_with=backend)

    record(tmp_path, tick)
    result = veracity.compile_graph(visualize=False)
    assert result == {"n": True}
    assert not result.diagnostics
    assert devices(result) == where(backend)


def test_stages_on_two_devices_are_one_pipeline(tmp_path: Path) -> None:
    """The state is kept on the GPU, actions are taken on the CPU: moving a value keeps its edge."""
    torch.manual_seed(1)
    encoder, head = nn.Linear(6, 4).to(CUDA), nn.Linear(4, 2)
    memory = torch.ones(1, 4, device=CUDA)

    def tick() -> None:
        nonlocal memory
        x = annotate.input_tensors("encoder", {"x": torch.randn(1, 6)})
        memory = annotate.state_tensors("encoder", {"memory": memory})
        memory = torch.tanh(encoder(x.to(CUDA)) + memory)
        annotate.update_state("encoder", {"memory": memory})
        z = annotate.output_tensors("encoder", {"z": memory * 1}, export_with="jit")
        z = annotate.input_tensors("head", {"z": z.cpu()})
        annotate.output_tensors("head", {"action": head(z)}, export_with="onnx")

    bundle = record(tmp_path, tick)
    result = veracity.compile_graph(visualize=False)
    assert result == {"encoder": True, "head": True}, result.diagnostics
    assert proof_of(result)["verdict"] == "proved"
    manager = veracity.InferenceManager(bundle)
    assert manager.inputs == ["encoder/x"]
    assert manager.feedback_inputs == ["encoder/memory"]
    started = safetensors.torch.load_file(bundle / "g_initial_values.safetensors")
    assert torch.equal(started["encoder/memory"], torch.ones(1, 4))


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
def test_a_number_that_left_for_python_is_named(backend: str, tmp_path: Path) -> None:
    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(3, device=CUDA)})
        y = x * x.max().item()  # frozen
        annotate.output_tensors("n", {"y": y}, export_with=backend)

    record(tmp_path, tick)
    result = veracity.compile_graph(visualize=False, strict=False)
    assert result == {"n": False}
    errors = [found for found in result.diagnostics if found.severity == "error"]
    assert any("test_cuda.py:" in found.location for found in errors), errors


def test_arrays_stay_on_the_cpu_whatever_the_default_device_is(tmp_path: Path) -> None:
    def tick() -> None:
        x = annotate.input_tensors("n", {"x": np.array([1.0, -2.0, 3.0], np.float32)})
        y = np.where(x > 0, x * np.array([2, 3, 4], np.float32), 0.5)[[2, 0]] + np.zeros(2)
        annotate.output_tensors("n", {"y": y}, export_with="jit")

    with torch.device(CUDA):
        bundle = record(tmp_path, tick, passes=1)
        assert veracity.compile_graph(visualize=False) == {"n": True}
    given = np.array([-1.0, 5.0, 2.0], np.float32)
    found = veracity.InferenceManager(bundle).run_policy({"n/x": given})["n/y"]
    np.testing.assert_array_equal(np.asarray(found), [8.0, 0.5])


@pytest.mark.parametrize("made_on", [CUDA, "cpu"])
@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
def test_a_bundle_runs_on_either_device(backend: str, made_on: str, tmp_path: Path) -> None:
    """Recorded where the training was, run where the robot is."""

    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(4, 6, device=made_on)})
        y = made_on_the_way(x) + half_written(x).mean()
        annotate.output_tensors("n", {"y": y}, export_with=backend)

    bundle = record(tmp_path, tick, passes=1)
    assert veracity.compile_graph(visualize=False) == {"n": True}
    x = torch.randn(4, 6)
    expected = made_on_the_way(x) + half_written(x).mean()
    for device in ("cpu", CUDA, "auto"):
        if backend == "onnx" and where(backend) == {"cpu"} and device == CUDA:
            continue  # refused: this ONNX Runtime has no CUDA
        found = veracity.InferenceManager(bundle, device=device).run_policy({"n/x": x})["n/y"]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)


def test_checking_leaves_the_random_numbers_of_the_gpu_alone(tmp_path: Path) -> None:
    network = nn.Linear(4, 2).to(CUDA)

    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(1, 4, device=CUDA)})
        annotate.module("n", network)
        annotate.output_tensors("n", {"y": network(x)}, export_with="jit")

    record(tmp_path, tick)
    before = torch.cuda.get_rng_state()
    veracity.compile_graph(visualize=False)
    assert torch.equal(torch.cuda.get_rng_state(), before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_half_precision_is_proved_where_it_ran(backend: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(CUDA).half()

    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(2, 8, device=CUDA).half()})
        annotate.output_tensors("n", {"y": network(x)}, export_with=backend)

    record(tmp_path, tick)
    result = veracity.compile_graph(visualize=False, strict=False)
    if where(backend) == {CUDA}:
        assert result == {"n": True}, result.diagnostics
    else:  # the last of few bits may differ, and nothing is frozen
        assert not any(FROZEN_HINT in one.hints for one in result.diagnostics)


def test_a_model_that_was_brought_along_is_run_on_the_device_of_its_samples(tmp_path: Path) -> None:
    network = nn.Linear(4, 2).to(CUDA).eval()
    path = tmp_path / "brought.pt"
    torch.jit.trace(network, torch.zeros(1, 4, device=CUDA)).save(path)

    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(1, 4, device=CUDA)})
        given = {"model_path": str(path)}
        annotate.output_tensors("n", {"y": network(x)}, export_with=None, backend_params=given)

    record(tmp_path, tick)
    result = veracity.compile_graph(visualize=False)
    assert result == {"n": True}, result.diagnostics
    assert devices(result) == {CUDA}


def test_autocast_is_exported_or_refused(tmp_path: Path) -> None:
    network = nn.Linear(8, 4).to(CUDA)

    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(2, 8, device=CUDA)})
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = network(x)
        annotate.output_tensors("n", {"y": y}, export_with="jit")

    try:
        bundle = record(tmp_path, tick)
        assert veracity.compile_graph(visualize=False) == {"n": True}
    except VeracityError as refusal:
        assert "test_cuda.py:" in refusal.diagnostics[0].location
        return
    x = torch.randn(2, 8, device=CUDA)
    found = veracity.InferenceManager(bundle).run_policy({"n/x": x})["n/y"]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        torch.testing.assert_close(found, network(x).detach())


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
def test_tf32_is_told_from_a_wrong_export(backend: str, tmp_path: Path) -> None:
    """Ten bits of mantissa on the GPU, all of them elsewhere: right on the device, told if not."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 8)).to(CUDA)

    def tick() -> None:
        x = annotate.input_tensors("n", {"x": torch.randn(128, 512, device=CUDA)})
        annotate.output_tensors("n", {"y": network(x)}, export_with=backend)

    record(tmp_path, tick)
    result = veracity.compile_graph(visualize=False, strict=False, rtol=0, atol=2e-5)
    if where(backend) == {CUDA}:
        assert result == {"n": True}, result.diagnostics
        return
    assert result == {"n": False}
    (told,) = [one for one in result.diagnostics if one.code == "VER1116"]
    assert "in TF32" in told.message
    assert "allow_tf32" in told.hints[0]
    assert not any(FROZEN_HINT in one.hints for one in result.diagnostics)
