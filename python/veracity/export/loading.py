"""Runs an exported model from its file, the way a bundle is run.

Each loader gives a function from tensors, in the order of the ports, to tensors. Inputs are
copied: a model may write into what it is given.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from veracity.errors import refuse

Run = Callable[[list[torch.Tensor]], list[torch.Tensor]]

#: ONNX's number for bfloat16, which NumPy does not have.
_ONNX_BFLOAT16 = 16


#: Models that were loaded, by the hash of their bytes and their device, while somebody keeps them.
_kept: dict[tuple[bytes, torch.device], Callable[..., Any]] | None = None
#: Larger ones are loaded again rather than hashed and kept.
_MAX_KEPT_BYTES = 16 << 20


@contextlib.contextmanager
def keeping_models() -> Iterator[None]:
    """Load a torch model of our own making once, however often it is asked for in the body.

    Loading one and having torch optimise it takes longer than many runs. Only models that are
    known to keep nothing between runs may be shared.
    """
    global _kept
    before, _kept = _kept, {}
    try:
        yield
    finally:
        _kept = before


def load(
    backend: str,
    path: Path,
    device: torch.device,
    input_names: list[str],
    output_names: list[str],
    *,
    keep: bool = False,
) -> Run:
    """Load a model for inputs on that device; `keep` it for others who ask for the same bytes."""
    if backend == "onnx":
        return _load_onnx(path, device, input_names, output_names)
    model = _load_torch(backend, str(path), device)
    if keep and _kept is not None and path.stat().st_size <= _MAX_KEPT_BYTES:
        _kept[hashlib.sha256(path.read_bytes()).digest(), device] = model
    return _torch_runner(model)


def load_for_engine(
    backend: str, source: str | os.PathLike[str] | bytes, device: str, threads: int
) -> tuple[Run, str]:
    """Load a TorchScript or pt2 model for the runtime, which calls it with tensors of its own.

    Args:
        backend: `jit` or `pt2`.
        source: The file, or its bytes.
        device: `auto`, `cpu` or `cuda:N`.
        threads: Threads inside of one operator.

    Returns:
        A function from tensors on the CPU to tensors on the CPU, and the device it computes on.
    """
    if device == "auto":
        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    place = torch.device(device)
    model = _find_kept(source, place)
    if model is None:
        file = io.BytesIO(source) if isinstance(source, bytes) else os.fspath(source)
        model = _load_torch(backend, file, place)

    def run(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        with torch.no_grad(), _threads(threads):
            results = _as_written(model, [value.to(place) for value in inputs])
        results = [results] if isinstance(results, torch.Tensor) else results
        return [result.detach().cpu() for result in results]

    return run, str(place)


def _find_kept(source: Any, device: torch.device) -> Callable[..., Any] | None:
    if not _kept or not isinstance(source, bytes):
        return None
    return _kept.get((hashlib.sha256(source).digest(), device))


def engine_of(backend: str) -> tuple[str, str]:
    """Return the name and version of what runs a model here."""
    if backend != "onnx":
        return "torch (python)", str(torch.__version__)
    import onnxruntime

    return "ort (python)", str(onnxruntime.__version__)


def _as_written(model: Callable[..., Any], inputs: list[torch.Tensor]) -> Any:
    """Run a model; keep TorchScript from optimising it, which takes longer than a few runs.

    On the CPU it fuses nothing, so the operations are the same. On a GPU it does.
    """
    if not isinstance(model, torch.jit.ScriptModule):
        return model(*inputs)
    before = torch._C._get_graph_executor_optimize()
    torch._C._set_graph_executor_optimize(any(value.is_cuda for value in inputs) and before)
    try:
        return model(*inputs)
    finally:
        torch._C._set_graph_executor_optimize(before)


@contextlib.contextmanager
def _threads(wanted: int) -> Iterator[None]:
    """Compute with this many threads; the number is the process's, so it is put back."""
    before = torch.get_num_threads()
    if wanted != before:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        if wanted != before:
            torch.set_num_threads(before)


def _load_torch(backend: str, file: Any, device: torch.device) -> Callable[..., Any]:
    if backend == "jit":
        load_script: Callable[..., Any] = torch.jit.load
        return _on_device(load_script(file, map_location=device), device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch maps the archive read-only and warns about it
        program = torch.export.load(file)
        held = [*program.state_dict.values(), *program.constants.values()]
        if any(isinstance(one, torch.Tensor) and one.device != device for one in held):
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, device)
        return program.module()


def _on_device(script: Any, device: torch.device) -> Callable[..., Any]:
    """Let a script make tensors on this device; torch has moved only those that it holds.

    The code names the devices that it was recorded on. In code for a GPU, the CPU is meant where it
    is named; code that names no other device was made on the CPU. What it compares devices with
    stays. The shim does the same.
    """
    if not hasattr(script, "forward"):
        return cast(Callable[..., Any], script)  # whoever calls it is told
    graph = script.forward.graph
    torch._C._jit_pass_inline(graph)
    named = named_devices(graph)
    made_on = [one for one in named if not any(map(_compares, one.output().uses()))]
    on_gpu = [one for one in made_on if one.s("value").startswith("cuda")]
    on_cpu = [one for one in made_on if one.s("value") == "cpu"]
    for one in on_gpu or on_cpu:
        one.s_("value", str(device))
    return cast(Callable[..., Any], script)


def named_devices(script_graph: Any) -> list[Any]:
    """Return the constants of a graph of TorchScript that name a device."""
    constants = script_graph.findAllNodes("prim::Constant")
    return [one for one in constants if one.output().type().kind() == "DeviceObjType"]


def _compares(use: Any) -> bool:
    return use.user.kind() in ("aten::eq", "aten::ne")


def elsewhere(backend: str, device: torch.device) -> str | None:
    """Return the device that a model really runs on, if it is not the one asked for."""
    if backend != "onnx" or device.type == "cpu":
        return None
    import onnxruntime

    return None if len(_providers(onnxruntime, device)) > 1 else "cpu"


def _torch_runner(model: Callable[..., Any]) -> Run:
    def run(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        with torch.no_grad():
            results = _as_written(model, [value.detach().clone() for value in inputs])
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
