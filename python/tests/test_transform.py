"""`veracity.transform`: ONNX models changed from Python, each change proved and undone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
import veracity
from onnx import TensorProto, helper, numpy_helper
from veracity import transform


def conv_bn(*, bias: float = 0.5) -> onnx.ModelProto:
    """Return a convolution with bias, a batch normalisation, an identity and a dead node."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int, offset: float = 0.0) -> onnx.TensorProto:
        values = rng.normal(size=shape).astype(np.float32) * 0.3 + np.float32(offset)
        return numpy_helper.from_array(values, name)

    variance = numpy_helper.from_array(np.linspace(0.5, 2, 4, dtype=np.float32), "var")
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
            helper.make_node(
                "BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], name="bn"
            ),
            helper.make_node("Identity", ["n"], ["i"], name="same"),
            helper.make_node("Relu", ["i"], ["y"], name="relu"),
            helper.make_node("Neg", ["c"], ["unused"], name="dead"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4, 8, 8])],
        [
            weight("w", 4, 3, 3, 3),
            weight("b", 4, offset=bias),
            weight("scale", 4, offset=1),
            weight("shift", 4),
            weight("mean", 4),
            variance,
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def answers(model: bytes, x: np.ndarray) -> np.ndarray:
    """Return what ONNX Runtime answers."""
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def test_a_model_gets_smaller_and_every_change_is_proved() -> None:
    model = conv_bn()
    result = transform.Pipeline().run(model)
    assert result.verdict == "proved"
    assert (result.nodes_before, result.nodes_after) == (5, 2)
    assert {one.pass_ for one in result.rewrites} >= {"fuse-batch-norm", "remove-no-ops"}
    assert all(one.verdict == "proved" for one in result.rewrites)
    x = np.random.default_rng(1).normal(size=(2, 3, 8, 8)).astype(np.float32)
    before, after = answers(model.SerializeToString(), x), answers(result.model, x)
    np.testing.assert_allclose(after, before, atol=2e-6)
    onnx.checker.check_model(onnx.load_from_string(result.model), full_check=True)


def test_a_change_is_a_page(tmp_path: Path) -> None:
    result = transform.Pipeline().run(conv_bn())
    page = result.to_html(tmp_path / "deep" / "small.html").read_text(encoding="utf-8")
    assert "fuse-batch-norm" in page
    assert "<use href=" in page, "what was replaced by what is drawn"
    assert result.checks is not None
    count = len(result.rewrites)
    assert f"<strong>proved</strong><span>: {count} of {count} rewrites proved" in page


def test_the_original_comes_back_byte_for_byte(tmp_path: Path) -> None:
    model = conv_bn()
    result = transform.Pipeline().run(model)
    path = tmp_path / "small.onnx"
    result.save(path)
    original = result.reverse()
    assert transform.reverse(path) == original
    assert onnx.load_from_string(original) == model
    assert not transform.diff(original, model)


def test_a_result_says_where_everything_comes_from() -> None:
    result = transform.Pipeline().run(conv_bn())
    assert result.map_value("y") == "y"
    assert result.map_value("c") is None
    assert result.transformed_nodes("fuse-batch-norm")
    node = result.transformed_nodes("fuse-batch-norm")[0]
    explained = result.explain(node)
    assert {"conv", "bn"} <= set(explained["from"])
    props = onnx.load_from_string(result.model).graph.node[0].metadata_props
    assert any(entry.key == "veracity.from" for entry in props)
    assert "fuse-batch-norm" in str(result)
    assert result.to_markdown().startswith("# model")


def test_what_was_left_alone_has_a_reason() -> None:
    model = conv_bn()
    model.graph.output.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, None))
    result = transform.Pipeline().run(model)
    assert any("fuse-batch-norm" in reason for reason in result.why_not("bn")), result.declined


@pytest.mark.parametrize("validate", ["local", "pass", "final", "off"])
def test_every_kind_of_check_gives_the_same_model(validate: str) -> None:
    model = conv_bn()
    x = {"x": torch.randn(1, 3, 8, 8)}
    result = transform.Pipeline().run(model, validate=validate, inputs=x, dims={"n": 4})
    assert result.nodes_after == 2
    assert result.verdict == ("not_checked" if validate == "off" else "proved")


def test_passes_are_chosen_by_name() -> None:
    names = [one.name for one in transform.passes()]
    assert len(names) == len(set(names))
    assert {"fuse-batch-norm", "fold-constants", "merge-projections"} <= set(names)
    result = transform.Pipeline("default,-fuse-batch-norm").run(conv_bn())
    assert result.nodes_after == 3
    with pytest.raises(veracity.TransformError, match="fuse-batch-norm"):
        transform.Pipeline(["fuse-batchnorm"]).run(conv_bn())


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert transform.bisect(conv_bn()) is None


def test_bad_models_are_refused() -> None:
    with pytest.raises(veracity.VeracityError):
        transform.Pipeline().run(b"no model")
    with pytest.raises(veracity.VeracityError):
        transform.Pipeline().run("/no/such/model.onnx")
    with pytest.raises(veracity.VeracityError, match="validate"):
        transform.Pipeline().run(conv_bn(), validate="some")


class Policy(torch.nn.Module):
    """Two layers with a normalisation between them."""

    def __init__(self) -> None:
        """Draw weights and statistics."""
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8)
        self.second = torch.nn.Linear(8, 2)
        with torch.no_grad():
            self.norm.running_mean.normal_()  # type: ignore[union-attr]
            self.norm.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return an action."""
        return self.second(torch.relu(self.norm(self.first(x))))


def test_exported_models_are_changed_before_they_are_checked(tmp_path: Path) -> None:
    policy = Policy().eval()
    veracity.start("policy", save_path=tmp_path)
    for _ in range(3):
        x = veracity.annotate.input_tensors("net", {"x": torch.randn(1, 6)})
        veracity.annotate.output_tensors("net", {"y": policy(x)}, export_with="onnx")
    veracity.stop()
    result = veracity.compile_graph(visualize=False, transform=["default"])
    assert isinstance(result, dict)
    assert result == {"net": True}
    change = result.transforms["net"]  # type: ignore[attr-defined]
    assert change.verdict == "proved"
    model = onnx.load(next(tmp_path.rglob("*.onnx")))
    assert "BatchNormalization" not in {node.op_type for node in model.graph.node}
    assert len(model.graph.node) == change.nodes_after
    assert veracity.check(tmp_path / "policy").verdict == "proved"
