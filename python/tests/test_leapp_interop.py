"""Bundles of real LEAPP in our runtime, and ours in LEAPP's."""

from __future__ import annotations

from pathlib import Path

import leapp
import pytest
import torch
import veracity
from leapp_bundles import PIPELINES, export

TICKS = 50


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("leapp")
    return {name: export(name, folder) for name in PIPELINES}


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("fuse", [False, True])
def test_leapp_bundles_give_the_same_outputs_over_50_ticks(
    exported: dict[str, Path], name: str, fuse: bool
) -> None:
    theirs = leapp.InferenceManager(str(exported[name]))
    ours = veracity.InferenceManager(exported[name], fuse=fuse)
    assert sorted(ours.inputs) == sorted(theirs.inputs)
    assert sorted(ours.outputs) == sorted(theirs.outputs)
    assert sorted(ours.feedback_inputs) == sorted(theirs.feedback_inputs)
    differing = 0
    previous: dict[str, torch.Tensor] = {}
    for tick in range(TICKS):
        inputs = ours.get_mock_input(tick)
        expected = theirs.run_policy({key: value.clone() for key, value in inputs.items()})
        found = ours.run_policy(inputs)
        assert found.keys() == expected.keys()
        for key, value in found.items():
            assert value.dtype == expected[key].dtype
            torch.testing.assert_close(value, expected[key].detach(), atol=1e-5, rtol=1e-4)
            differing += key in previous and not torch.equal(value, previous[key])
        previous = found
    assert differing > TICKS / 2, "the outputs must depend on the inputs, or this shows nothing"


def test_initial_values_and_reset_are_those_of_leapp(exported: dict[str, Path]) -> None:
    theirs = leapp.InferenceManager(str(exported["two_loops"]))
    ours = veracity.InferenceManager(exported["two_loops"])
    inputs = ours.zeros_input()
    first = ours.run_policy(inputs)
    again = [ours.run_policy(inputs) for _ in range(3)][-1]
    assert not torch.equal(first["second/plain"], again["second/plain"])
    torch.testing.assert_close(first["second/plain"], theirs.run_policy(inputs)["second/plain"])
    ours.reset()
    torch.testing.assert_close(ours.run_policy(inputs)["second/plain"], first["second/plain"])


def test_semantics_reach_the_port_catalogue(exported: dict[str, Path]) -> None:
    manager = veracity.InferenceManager(exported["semantics"])
    port = manager.input_by_kind("state/joint/position")
    assert port is not None
    assert port.key == "policy/joint_pos"
    assert port.element_names == ("a", "b", "c")
    assert port.extra == {"units": "rad"}
    assert manager.output_by_kind("kd") == manager.output_ports["policy/kd"]
    assert manager.inputs_by_kind("custom/thing")[0].name == "cmd"
    assert manager.input_by_kind("no/such/kind") is None


class Double(torch.nn.Module):
    """A module whose result is easy to know."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return twice the input."""
        return x * 2


def test_a_bundle_we_write_runs_in_leapp(tmp_path: Path) -> None:
    """Feedback, initial values, semantics, TorchScript and ONNX, through LEAPP's own loader."""
    torch.jit.script(Double()).save(str(tmp_path / "double.pt"))
    _export_accumulator(tmp_path / "add.onnx")
    yaml = veracity.write_bundle(
        tmp_path / "ours",
        nodes=[
            {
                "name": "double",
                "model": tmp_path / "double.pt",
                "inputs": [
                    {"name": "x", "dtype": "float32", "shape": [1, 3], "kind": "state/vector3d"}
                ],
                "outputs": [{"name": "doubled", "dtype": "float32", "shape": [1, 3]}],
            },
            {"name": "add", "model": tmp_path / "add.onnx"},
        ],
        data_flow={"double/doubled": ["add/value"]},
        feedback_flow={"add/total_out": ["add/total_in"]},
        initial_values={"add/total_in": torch.full((1, 3), 10.0)},
        frequency=50,
    )
    theirs = leapp.InferenceManager(str(yaml))
    ours = veracity.InferenceManager(yaml)
    assert ours.frequency == 50
    assert theirs.inputs == ours.inputs == ["double/x"]
    for tick in range(TICKS):
        inputs = ours.get_mock_input(tick)
        expected, found = theirs.run_policy(inputs), ours.run_policy(inputs)
        torch.testing.assert_close(found, dict(expected))
    assert found["add/shown"].abs().sum() > 10, "the total must have grown from its initial value"


def _export_accumulator(path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    def value(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3])

    graph = helper.make_graph(
        [
            helper.make_node("Add", ["value", "total_in"], ["total_out"]),
            helper.make_node("Identity", ["total_out"], ["shown"]),
        ],
        "accumulate",
        [value("value"), value("total_in")],
        [value("shown"), value("total_out")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, path)
