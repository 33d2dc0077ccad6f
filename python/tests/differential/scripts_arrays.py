"""NumPy: arrays as inputs, NumPy functions on traced values, and round trips."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from differential.nodes import one_node
from differential.registry import Better, Step, Values, script


def _array_step(api: Any, compute: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("n", {"x": given["n/x"].numpy()})
        y = compute(x)
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step


@script("numpy", {"n/x": (2, 3)})
def array_arithmetic(api: Any) -> Step:
    return _array_step(api, lambda x: (x * 2 + 1) / 3 - x**2)


@script("numpy", {"n/x": (2, 3)})
def array_functions(api: Any) -> Step:
    return _array_step(api, lambda x: np.concatenate([np.sin(x), np.clip(x, -1, 1)], axis=-1))


@script("numpy", {"n/x": (2, 3)})
def array_reductions(api: Any) -> Step:
    return _array_step(api, lambda x: np.sum(x, axis=0) + np.mean(x, axis=0))


@script("numpy", {"n/x": (2, 3)})
def array_slices(api: Any) -> Step:
    return _array_step(api, lambda x: x[:, 0:2] + x[:, 1:3])


@script("numpy", {"n/x": (2, 3)})
def array_to_tensor_and_on(api: Any) -> Step:
    return _array_step(api, lambda x: torch.from_numpy(np.exp(x)).tanh())


@script("numpy", {"n/x": (4,)})
def tensor_to_array_and_back_inside_a_node(api: Any) -> Step:
    return one_node(api, lambda x: torch.from_numpy(x.numpy()) * 2)


@script(
    "numpy",
    {"n/x": (4,)},
    passes=1,
    relation=Better("a NumPy scalar leaves the trace", "wrong", ("VER0911",)),
)
def array_scalar_is_frozen(api: Any) -> Step:
    def compute(x: Any) -> Any:
        first = float(x[0])  # told
        return x + first

    return _array_step(api, compute)


@script(
    "numpy",
    {"n/x": (4,)},
    passes=1,
    relation=Better("an unmapped function gives a constant", "wrong", ("VER0922",)),
)
def array_function_without_a_counterpart(api: Any) -> Step:
    def compute(x: Any) -> Any:
        smooth = np.insert(x, 1, np.float32(0.5))[:4]  # told
        return x + np.asarray(smooth, np.float32)

    return _array_step(api, compute)


@script(
    "numpy",
    {"n/x": (4,)},
    relation=Better("negative steps give a wrong or no graph", Exception),
)
def array_reversed(api: Any) -> Step:
    return _array_step(api, lambda x: x[::-1] * 2.0)


@script(
    "numpy",
    {"n/x": (4,)},
    passes=1,
    relation=Better("what NumPy computed from a tensor is a constant", "wrong"),
)
def tensor_through_a_numpy_function(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        stretched = np.interp(x.numpy(), [-1.0, 1.0], [0.0, 5.0])
        return x + torch.from_numpy(stretched).float()

    return one_node(api, compute)


@script(
    "numpy",
    {"n/x": (4,)},
    passes=1,
    relation=Better("what NumPy computed from a tensor is a constant", "wrong", ("VER0922",)),
)
def tensor_through_a_numpy_function_without_a_counterpart(api: Any) -> Step:
    def compute(x: Tensor) -> Tensor:
        smooth = np.insert(x.numpy(), 1, np.float32(0.5))[:4]  # told
        return x + torch.from_numpy(smooth)

    return one_node(api, compute)
