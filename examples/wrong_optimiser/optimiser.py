"""Somebody's optimiser: three rewrites, one of them wrong.

python examples/wrong_optimiser/optimiser.py IN OUT --skip NAME ...
"""

from __future__ import annotations

import argparse

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper


def drop_identities(model: ModelProto) -> None:
    """Read what an Identity reads."""
    for identity in [node for node in model.graph.node if node.op_type == "Identity"]:
        for node in model.graph.node:
            given = [identity.input[0] if x == identity.output[0] else x for x in node.input]
            node.input[:] = given
        model.graph.node.remove(identity)


def fold_batch_norm(model: ModelProto) -> None:
    """Scale the weights of a convolution instead of what it gives."""
    weights = {one.name: one for one in model.graph.initializer}
    for conv, norm in _pairs(model, "Conv", "BatchNormalization"):
        scale, bias, mean, variance = (
            numpy_helper.to_array(weights[name]) for name in norm.input[1:5]
        )
        factor = scale / np.sqrt(variance)  # the fault: epsilon is missing
        folded = numpy_helper.to_array(weights[conv.input[1]]) * factor[:, None, None, None]
        weights[conv.input[1]].CopyFrom(numpy_helper.from_array(folded, conv.input[1]))
        moved = numpy_helper.from_array(bias - mean * factor, f"{norm.output[0]}.moved")
        model.graph.initializer.append(moved)
        conv.input.append(moved.name)
        conv.output[0] = norm.output[0]
        model.graph.node.remove(norm)


def fuse_hard_swish(model: ModelProto) -> None:
    """Write x * HardSigmoid(x) as one operator."""
    for sigmoid, product in _pairs(model, "HardSigmoid", "Mul"):
        if sigmoid.input[0] in product.input:
            fused = helper.make_node("HardSwish", [sigmoid.input[0]], [product.output[0]])
            product.CopyFrom(fused)
            model.graph.node.remove(sigmoid)


def _pairs(model: ModelProto, first: str, second: str) -> list[tuple[NodeProto, NodeProto]]:
    """Return nodes of these types of which the second reads the first."""
    made = {node.output[0]: node for node in model.graph.node if node.op_type == first}
    readers = [node for node in model.graph.node if node.op_type == second]
    return [(made[x], node) for node in readers for x in node.input if x in made]


REWRITES = {
    "drop-identities": drop_identities,
    "fold-batch-norm": fold_batch_norm,
    "fuse-hard-swish": fuse_hard_swish,
}


def main() -> None:
    """Do every rewrite that is not to be left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--skip", nargs="*", default=[], choices=REWRITES)
    options = parser.parse_args()
    model = onnx.load(options.input)
    for name, rewrite in REWRITES.items():
        if name not in options.skip:
            rewrite(model)
    onnx.save(model, options.output)


if __name__ == "__main__":
    main()
