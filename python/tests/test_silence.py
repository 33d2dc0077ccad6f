"""No warning and no error on clean code; an alarm that always rings is worth nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import veracity
from differential.clean import NETWORKS, Environment, annotated_by_patching
from differential.sides import leave_session
from support.findings import about_the_code
from torch import Tensor, nn

PASSES = 3


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    yield
    leave_session(veracity)


def _network(name: str) -> tuple[nn.Module, tuple[int, ...]]:
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    module = make()
    with torch.no_grad():
        module(torch.randn(shape))  # lazy layers take their shape
    return module.eval(), shape


def _traced(network: nn.Module, shape: tuple[int, ...], backend: str, folder: Path) -> Any:
    veracity.start("clean", save_path=str(folder))
    with torch.no_grad():
        for _ in range(PASSES):
            x = veracity.annotate.input_tensors("n", {"x": torch.randn(shape)})
            veracity.annotate.output_tensors("n", {"y": network(x)}, export_with=backend)
    veracity.stop()
    return veracity.compile_graph(visualize=False)


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_usual_network_is_exported_without_a_word(
    name: str, backend: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    network, shape = _network(name)
    result = _traced(network, shape, backend, tmp_path)
    assert result == {"n": True}
    assert not about_the_code(result.diagnostics)
    assert "warning" not in capfd.readouterr().err.lower()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_export_of_a_usual_network_is_right_on_fresh_inputs(name: str, tmp_path: Path) -> None:
    network, shape = _network(name)
    _traced(network, shape, "jit", tmp_path)
    manager = veracity.InferenceManager(tmp_path / "clean")
    for _ in range(5):
        x = torch.randn(shape)
        with torch.no_grad():
            expected = network(x)
        found = manager.run_policy({"n/x": x})["n/y"]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_tracing_raises_no_python_warning(tmp_path: Path) -> None:
    network, shape = _network("resnet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        veracity.start("quiet", save_path=str(tmp_path))
        x = veracity.annotate.input_tensors("n", {"x": torch.randn(shape)})
        veracity.annotate.output_tensors("n", {"y": network(x)}, export_with="jit")
        veracity.stop()


def _environment() -> Environment:
    torch.manual_seed(3)
    return Environment(nn.Sequential(nn.Linear(11, 16), nn.ELU(), nn.Linear(16, 3)))


def test_an_environment_of_managers_is_exported_by_patching_it(tmp_path: Path) -> None:
    environment = _environment()
    annotated_by_patching(veracity, environment)
    veracity.start("managers", save_path=str(tmp_path))
    with torch.no_grad():
        for _ in range(PASSES):
            environment.step()
    veracity.stop()
    result = veracity.compile_graph(visualize=False)
    assert result == {"policy": True}
    assert not about_the_code(result.diagnostics)
    manager = veracity.InferenceManager(tmp_path / "managers")
    assert sorted(manager.inputs) == ["policy/command", "policy/joint_pos", "policy/joint_vel"]
    assert manager.feedback_inputs == ["policy/last_action"]
    _drives_the_environment_as_the_policy_does(manager)


def _drives_the_environment_as_the_policy_does(manager: veracity.InferenceManager) -> None:
    environment = _environment()
    written: list[Tensor] = []
    commands: list[Tensor] = []
    command, write = environment.command, environment.write_targets

    def remember_command() -> Tensor:
        commands.append(command())
        return commands[-1]

    environment.terms["command"] = remember_command
    environment.write_targets = lambda targets: (  # type: ignore[method-assign]
        written.append(targets.clone()),
        write(targets),
    )[1]
    for _ in range(20):
        position, velocity = environment.data.position.clone(), environment.data.velocity.clone()
        with torch.no_grad():
            environment.step()
        given = {
            "policy/joint_pos": position,
            "policy/joint_vel": velocity,
            "policy/command": commands[-1],
        }
        found = manager.run_policy(given)["policy/targets"]
        torch.testing.assert_close(found, written[-1], atol=1e-5, rtol=1e-4)


def test_logging_values_is_only_noted(tmp_path: Path) -> None:
    """Every training script prints a loss; over several passes it is seen to change nothing."""
    seen: list[float] = []
    veracity.start("logging", save_path=str(tmp_path))
    for _ in range(PASSES):
        x = veracity.annotate.input_tensors("n", {"x": torch.randn(3)})
        y = x * 2
        seen.append(y.mean().item())
        veracity.annotate.output_tensors("n", {"y": y}, export_with="jit")
    veracity.stop()
    result = veracity.compile_graph(visualize=False)
    assert result == {"n": True}
    assert not [found for found in result.diagnostics if found.severity == "error"]
    assert len(set(seen)) == PASSES
