"""Writes tensor files with NumPy, or checks those that Rust wrote. Run by `numpy_interop.rs`."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

DTYPES = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "bool": np.bool_,
}
SHAPES = {"matrix": (2, 3), "vector": (5,), "scalar": (), "empty": (2, 0, 3)}


def iota(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return 0, 1, 2, … of a dtype; 0, 1, 0, … for bool."""
    numbers = np.arange(np.prod(shape, dtype=int))
    if dtype == "bool":
        numbers %= 2
    return numbers.astype(DTYPES[dtype]).reshape(shape)


def every_kind() -> dict[str, np.ndarray]:
    """Return the tensors that `support/samples.rs` makes."""
    return {
        f"{dtype}/{kind}": iota(dtype, shape) for dtype in DTYPES for kind, shape in SHAPES.items()
    }


def write(folder: Path) -> None:
    """Write the same tensors in every form that NumPy has."""
    arrays = every_kind()
    np.savez(folder / "plain.npz", **arrays)
    np.savez_compressed(folder / "compressed.npz", **arrays)
    np.savez(folder / "columns.npz", **{k: v.copy(order="F") for k, v in arrays.items()})
    # NumPy has no big-endian form of the types that it does not know.
    swapped = {
        name: array if name.startswith("bfloat16") else array.astype(array.dtype.newbyteorder(">"))
        for name, array in arrays.items()
    }
    np.savez(folder / "big_endian.npz", **swapped)
    # Loaded and saved without `ml_dtypes`, bfloat16 becomes a plain void.
    voids = {k: v.view("V2") if k.startswith("bfloat16") else v for k, v in arrays.items()}
    np.savez(folder / "voids.npz", **voids)
    save_file(arrays, folder / "plain.safetensors")
    for version in (1, 2, 3):
        with (folder / f"version{version}.npy").open("wb") as file:
            np.lib.format.write_array(file, iota("float32", (2, 3)), version=(version, 0))


def check(folder: Path) -> None:
    """Compare the files that Rust wrote with what they should hold."""
    npz = dict(np.load(folder / "rust.npz"))
    for name, array in npz.items():
        if array.dtype == np.dtype("V2"):
            npz[name] = array.view(ml_dtypes.bfloat16)
    for found in (npz, load_file(folder / "rust.safetensors")):
        assert found.keys() == every_kind().keys()
        for name, expected in every_kind().items():
            array = found[name]
            assert array.dtype == expected.dtype, (name, array.dtype)
            assert array.shape == expected.shape, (name, array.shape)
            assert array.tobytes() == expected.tobytes(), name
    np.testing.assert_array_equal(np.load(folder / "rust.npy"), iota("float32", (2, 3)))


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](Path(sys.argv[2]))
