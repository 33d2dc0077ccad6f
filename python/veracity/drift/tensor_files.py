"""Reads files of tensors: `.safetensors`, and what `torch.save` writes.

Nothing in a file is executed: archives of torch are read with `weights_only=True`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from veracity.errors import refuse

_DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}
#: A header is a few hundred bytes for each tensor; beyond this a file is no safetensors file.
_LONGEST_HEADER = 100_000_000


def read(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Return the tensors of a file by their names."""
    file = Path(path)
    if not file.is_file():
        raise refuse("VER0001", "there is no such file", location=str(file))
    try:
        if file.suffix == ".safetensors":
            return _safetensors(file)
        found = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # any: a file can be broken in many ways
        first_line = str(error).strip().split("\n", 1)[0]
        raise _unreadable(file, first_line) from error
    return _tensors(found, file)


def _tensors(found: Any, file: Path) -> dict[str, Tensor]:
    """Take the weights out of a checkpoint, which often has them under `state_dict`."""
    for key in ("state_dict", "model"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict) or not all(isinstance(each, Tensor) for each in found.values()):
        raise _unreadable(file, "it holds something else than tensors by name")
    return {str(name): value for name, value in found.items()}


def _safetensors(file: Path) -> dict[str, Tensor]:
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > min(_LONGEST_HEADER, file.stat().st_size):
            message = "the header is longer than the file"
            raise ValueError(message)
        header = json.loads(stream.read(length))
        start = 8 + length
        return {
            name: _tensor(stream, start, entry)
            for name, entry in header.items()
            if name != "__metadata__"
        }


def _tensor(stream: Any, start: int, entry: dict[str, Any]) -> Tensor:
    begin, end = entry["data_offsets"]
    stream.seek(start + begin)
    data = bytearray(stream.read(end - begin))
    dtype = _DTYPES[entry["dtype"]]
    if not data:
        return torch.zeros(entry["shape"], dtype=dtype, device="cpu")
    return torch.frombuffer(data, dtype=dtype).reshape(entry["shape"])


def _unreadable(file: Path, why: str) -> Exception:
    return refuse(
        "VER1231",
        "no tensors can be read from this file",
        location=str(file),
        hints=(why, "give a state_dict saved by torch.save, or a .safetensors file"),
    )
