"""Write a small convolutional network as ONNX, with what exporters leave in.

python examples/wrong_optimiser/network.py exports/net.onnx
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def network() -> onnx.ModelProto:
    """Return two convolutions with batch norm, a gate and a classifier."""
    rng = np.random.default_rng(0)
    weights = {
        "conv1.weight": rng.standard_normal((8, 3, 3, 3)) / 5,
        "conv2.weight": rng.standard_normal((8, 8, 3, 3)) / 8,
        "head.weight": rng.standard_normal((5, 8)) / 3,
        "head.bias": rng.standard_normal(5),
    }
    for name in ("bn1", "bn2"):
        weights[f"{name}.scale"] = rng.uniform(0.5, 1.5, 8)
        weights[f"{name}.bias"] = rng.standard_normal(8)
        weights[f"{name}.mean"] = rng.standard_normal(8)
        # Training leaves channels that hardly vary. There epsilon counts.
        weights[f"{name}.variance"] = 10 ** rng.uniform(-4, 0, 8)

    def norm(name: str, given: str) -> onnx.NodeProto:
        given_too = [f"{name}.{part}" for part in ("scale", "bias", "mean", "variance")]
        return helper.make_node("BatchNormalization", [given, *given_too], [name], epsilon=1e-5)

    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight"], ["conv1"], pads=[1, 1, 1, 1]),
        norm("bn1", "conv1"),
        helper.make_node("Relu", ["bn1"], ["relu1"]),
        helper.make_node("Identity", ["relu1"], ["dropout"]),
        helper.make_node("Conv", ["dropout", "conv2.weight"], ["conv2"], pads=[1, 1, 1, 1]),
        norm("bn2", "conv2"),
        helper.make_node("HardSigmoid", ["bn2"], ["gate"], alpha=1 / 6),
        helper.make_node("Mul", ["bn2", "gate"], ["gated"]),
        helper.make_node("GlobalAveragePool", ["gated"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "head.weight", "head.bias"], ["scores"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 5])],
        [numpy_helper.from_array(value.astype(np.float32), key) for key, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(network(), path)
