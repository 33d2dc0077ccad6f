from pathlib import Path
from typing import Any

from veracity.errors import Diagnostic

__version__: str

class Pipeline:
    spec_json: str
    input_keys: list[str]
    output_keys: list[str]
    feedback_keys: list[str]
    warnings: list[Diagnostic]

    def __init__(
        self,
        path: Path,
        *,
        engine: str,
        device: str,
        threads: int,
        fuse: bool,
        site_packages: list[Path],
    ) -> None: ...
    def run(self, inputs: Any) -> dict[str, Any]: ...
    def reset(self) -> None: ...
    def set_input(self, key: str, value: Any) -> None: ...
    def mock_inputs(self, seed: int) -> dict[str, Any]: ...
    def zero_inputs(self) -> dict[str, Any]: ...
    def input_value(self, node: str, port: str) -> Any: ...
    def output_value(self, index: int) -> Any: ...

def write_bundle(folder: Path, draft_json: str, initial_values: dict[str, Any]) -> Path: ...
