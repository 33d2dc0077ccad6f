"""Runs an exported model from its file, the way a bundle is run.

Each loader gives a function from tensors, in the order of the ports, to tensors. Inputs are
copied: a model may write into what it is given.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from veracity.errors import refuse

Run = Callable[[list[torch.Tensor]], list[torch.Tensor]]

#: ONNX's number for bfloat16, which NumPy does not have.
_ONNX_BFLOAT16 = 16


def load(
    backend: str,
    path: Path,
    device: torch.device,
    input_names: list[str],
    output_names: list[str],
) -> Run:
    """Load a model for inputs on that device."""
    if backend == "onnx":
        return _load_onnx(path, device, input_names, output_names)
    if backend == "jit":
        load_script: Callable[..., Any] = torch.jit.load
        return _torch_runner(load_script(str(path), map_location=device))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch maps the archive read-only and warns about it
        return _torch_runner(torch.export.load(path).module())


def elsewhere(backend: str, device: torch.device) -> str | None:
    """Return the device that a model really runs on, if it is not the one asked for."""
    if backend != "onnx" or device.type == "cpu":
        return None
    import onnxruntime

    return None if len(_providers(onnxruntime, device)) > 1 else "cpu"


def _torch_runner(model: Callable[..., Any]) -> Run:
    def run(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        with torch.no_grad():
            results = model(*(value.detach().clone() for value in inputs))
        return [results] if isinstance(results, torch.Tensor) else list(results)

    return run


def _load_onnx(
    path: Path, device: torch.device, input_names: list[str], output_names: list[str]
) -> Run:
    try:
        import onnxruntime
    except ImportError as error:
        raise refuse(
            "VER1006",
            f"ONNX Runtime is needed to check an ONNX model: {error}",
            hints=("pip install onnxruntime, or compile_graph(validate=False)",),
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, _providers(onnxruntime, device))
    _require_ports("input", input_names, [port.name for port in session.get_inputs()])
    _require_ports("output", output_names, [port.name for port in session.get_outputs()])

    def run(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        feeds = {
            name: _ort_value(onnxruntime, value)
            for name, value in zip(input_names, inputs, strict=True)
        }
        results = session.run_with_ort_values(output_names, feeds)
        return [_tensor(result).to(device) for result in results]

    return run


def _providers(onnxruntime: Any, device: torch.device) -> list[str]:
    wanted = ["CUDAExecutionProvider"] if device.type == "cuda" else []
    available = onnxruntime.get_available_providers()
    return [name for name in wanted if name in available] + ["CPUExecutionProvider"]


def _require_ports(side: str, wanted: list[str], present: list[str]) -> None:
    missing = [name for name in wanted if name not in present]
    unknown = [name for name in present if name not in wanted] if side == "input" else []
    if missing or unknown:
        raise refuse(
            "VER1004", f"the model has the {side}s {present}, and the node's are called {wanted}"
        )


def _ort_value(onnxruntime: Any, value: torch.Tensor) -> Any:
    value = value.detach().cpu().contiguous()
    if value.dtype == torch.bfloat16:
        bits = value.view(torch.int16).numpy().view(np.uint16)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _ONNX_BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(value.numpy())


def _tensor(value: Any) -> torch.Tensor:
    if value.data_type() == "tensor(bfloat16)":
        return torch.utils.dlpack.from_dlpack(value._ortvalue).clone()
    return torch.from_numpy(np.array(value.numpy()))
