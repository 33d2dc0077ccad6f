"""Every backend, its options, models brought along, and nodes without a model."""

from __future__ import annotations

import math
import tempfile
import types
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from differential.nodes import BACKENDS, one_node
from differential.registry import Better, Step, Values, script


def _mlp(backend: str) -> None:
    @script("backends", {"n/x": (1, 6)}, name=f"mlp_{backend.replace('-', '_')}")
    def mlp(api: Any) -> Step:
        model = nn.Sequential(nn.Linear(6, 16), nn.ELU(), nn.LayerNorm(16), nn.Linear(16, 3))
        return one_node(api, model, backend)


for _backend in (*BACKENDS, "jit-script", "onnx-dynamo", "exported-program"):
    _mlp(_backend)


@script("backends", {"n/x": (1, 3, 8, 8)})
def convolutions_on_onnx(api: Any) -> Step:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)
    ).eval()
    return one_node(api, model, "onnx")


@script("backends", {"n/x": (1, 5, 16)})
def transformer_layer_on_pt2(api: Any) -> Step:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0).eval()
    return one_node(api, layer, "pt2")


@script("backends", {"n/x": (1, 6)}, passes=1)
def opset_of_choice(api: Any) -> Step:
    layer = nn.Linear(6, 2)

    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("n", {"x": given["n/x"]})
        y = layer(x)
        api.annotate.output_tensors(
            "n", {"y": y}, export_with="onnx", backend_params={"opset_version": 18}
        )
        return {"n/y": y}

    return step


@script("backends", {"n/x": (1, 3)}, passes=1)
def gru_on_onnx(api: Any) -> Step:
    gru = nn.GRU(3, 5, batch_first=True)

    def compute(x: Tensor) -> Tensor:
        out, _ = gru(x.unsqueeze(1))
        return out[:, -1] * 1.0

    return one_node(api, compute, "onnx")


class _Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def _foreign(name: str, suffix: str, copied: bool) -> None:
    @script("backends", {"n/x": (1, 3)}, name=name)
    def foreign(api: Any) -> Step:
        folder = Path(tempfile.mkdtemp(prefix="model"))
        path = folder / f"twice.{suffix}"
        if suffix == "pt":
            torch.jit.script(_Twice()).save(str(path))
        else:
            torch.onnx.export(
                _Twice(),
                (torch.zeros(1, 3),),
                str(path),
                input_names=["x"],
                output_names=["y"],
                dynamo=False,
                verbose=False,
            )
        params = {"model_path": str(path), "copy_original_model": copied}

        def step(given: Values) -> Values:
            x = api.annotate.input_tensors("n", {"x": given["n/x"]})
            y = x * 2
            api.annotate.output_tensors("n", {"y": y}, backend_params=params)
            return {"n/y": y}

        return step


_foreign("bring_a_torchscript_model", "pt", copied=True)
_foreign("bring_an_onnx_model", "onnx", copied=True)


@script("backends", {"n/x": (4,)}, context=torch.inference_mode)
def inference_mode(api: Any) -> Step:
    layer = nn.Linear(4, 4)
    return one_node(api, lambda x: layer(x).add_(1))


@script("backends", {"n/x": (4,)}, context=torch.enable_grad)
def with_gradients_on(api: Any) -> Step:
    layer = nn.Linear(4, 4)
    return one_node(api, lambda x: layer(x).detach())


@script("backends", {"n/x": (1, 4)}, passes=1)
def a_traced_module_inside_a_node(api: Any) -> Step:
    inner = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.zeros(1, 4))
    return one_node(api, lambda x: inner(x) + 1)


@script("backends", {"n/x": (1, 4)}, passes=1)
def a_scripted_module_inside_a_node(api: Any) -> Step:
    inner = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    return one_node(api, lambda x: inner(x) + 1)


@torch.jit.script
def _scripted(x: Tensor) -> Tensor:
    return x.tanh() * 2


@script(
    "backends",
    {"n/x": (4,)},
    passes=1,
    relation=Better("a scripted function leaves the trace", Exception, message="non-traced"),
)
def a_scripted_function_inside_a_node(api: Any) -> Step:
    return one_node(api, lambda x: _scripted(x) + 0.5)


def _library() -> types.ModuleType:
    """Return a module with a function that cannot be traced, as third-party code has them."""
    module = types.ModuleType("a_library")
    vars(module)["norm"] = lambda x: torch.tensor(math.sqrt(sum(v * v for v in x.tolist())))
    return module


_LIBRARY = _library()


@script(
    "patches",
    {"n/x": (4,)},
    start=lambda api: {
        "patching": [api.FunctionPatch(_LIBRARY, "norm", lambda x: x.square().sum().sqrt())]
    },
)
def a_library_function_is_replaced_while_tracing(api: Any) -> Step:
    return one_node(api, lambda x: x / (1 + _LIBRARY.norm(x)))


@script("backends", {"n/x": (4,)}, passes=8, start=lambda api: {"max_cached_io": 1})
def one_sample_is_kept(api: Any) -> Step:
    return one_node(api, lambda x: x.sin())


@script("backends", {"n/x": (4,)}, passes=8, start=lambda api: {"global_patching": False})
def without_global_patches(api: Any) -> Step:
    return one_node(api, lambda x: x.cos())
