"""The environments of the matrix, and what is known to differ in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Newest on PyPI.
NEWEST = ""


@dataclass(frozen=True)
class Cell:
    """One environment. Versions are those of PyPI; an empty one is the newest there.

    Attributes:
        name: What it is called on the command line.
        python: Its version, as `major.minor`.
        beside: Further packages, as pip is to install them; they are the newest otherwise.
    """

    name: str
    python: str
    torch: str
    numpy: str
    onnxruntime: str
    beside: tuple[str, ...] = ()

    def requirements(self) -> list[str]:
        """Return what pip is to install."""
        pinned = {"torch": self.torch, "numpy": self.numpy, "onnxruntime": self.onnxruntime}
        named = [f"{name}=={version}" if version else name for name, version in pinned.items()]
        return [*named, *self.beside]


#: With a newer onnxscript the ONNX exporter of torch 2.6 fails on batch norms.
_OF_ITS_TIME = ("onnx==1.19.1", "onnxscript==0.5.3", "onnx-ir==0.1.12")

CELLS = (
    Cell("oldest", "3.10", "2.6.0", "1.26.4", "1.20.1", _OF_ITS_TIME),
    Cell("torch-2.8", "3.11", "2.8.0", "1.26.4", "1.22.1"),
    Cell("torch-2.11", "3.12", "2.11.0", "2.2.6", "1.25.1"),
    Cell("torch-2.13", "3.12", "2.13.0", "2.3.5", "1.28.0"),
    Cell("newest", "3.13", NEWEST, NEWEST, NEWEST),
)


@dataclass(frozen=True)
class Difference:
    """Tests that fail in some environments, and why that is all right.

    Attributes:
        tests: A pattern for their names.
        cells: The names of the environments.
        reason: For the page, in one sentence.
        said: A pattern for what they say: other failures of theirs are no difference.
    """

    tests: str
    cells: tuple[str, ...]
    reason: str
    said: str = ""

    def explains(self, cell: str, test: str, said: str) -> bool:
        """Say whether a failure is this difference."""
        is_one = cell in self.cells and re.search(self.tests, test) is not None
        return is_one and re.search(self.said, said) is not None


DIFFERENCES = (
    Difference(
        r"pt2",
        ("oldest", "newest"),
        "torch 2.6 and 2.15 cannot run pt2 outside of Python: such nodes are conditional (VER1118)",
        said="conditional|not_comparable|VER1118",
    ),
    Difference(
        r"test_quantiles_are_those_of_torch\[numbers-nearest\]",
        ("newest",),
        'torch 2.15 rounds `quantile(interpolation="nearest")` otherwise where two are as near',
    ),
    Difference(
        r"test_a_traced_scalar_in_a_call_of_torch",
        ("oldest",),
        "torch 2.6 asks a number of NumPy for its value before it can be followed (VER0911)",
    ),
    Difference(
        r"test_code_that_asks_whether_it_is_exported",
        ("oldest",),
        "torch 2.6 has no `torch.compiler.is_exporting`",
    ),
)
