"""One comparison with what it cost: processor seconds and memory, exporting set apart."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from veracity.drift import comparison
from veracity.parity import ParityResult, parity


@dataclass
class Cost:
    """What a comparison took.

    Attributes:
        export_secs: Processor seconds of torch's exporters.
        secs: Processor seconds of everything else, all threads together.
        export_peak_bytes: Most memory of the process until the export was made.
        exported_bytes: What of it was still held then.
        peak_bytes: Most memory of the process afterwards; 0 where the system does not tell.
    """

    export_secs: float = 0.0
    secs: float = 0.0
    export_peak_bytes: int = 0
    exported_bytes: int = 0
    peak_bytes: int = 0


def compared(model: nn.Module, args: tuple[Any, ...], **options: Any) -> tuple[ParityResult, Cost]:
    """Compare a module with its export, and say what it cost."""
    cost = Cost()
    begin = time.process_time()
    with _exports_measured(cost):
        result = parity(model, args, **options)
    cost.secs = time.process_time() - begin - cost.export_secs
    cost.peak_bytes = peak_bytes()
    return result, cost


@contextlib.contextmanager
def _exports_measured(cost: Cost) -> Iterator[None]:
    module: Any = comparison  # the exporter as the comparison calls it
    original = module.export

    def measured(*args: Any, **kwargs: Any) -> Any:
        begin = time.process_time()
        try:
            return original(*args, **kwargs)
        finally:
            cost.export_secs += time.process_time() - begin
            cost.export_peak_bytes = max(cost.export_peak_bytes, peak_bytes())
            forget_peak()
            cost.exported_bytes = held_bytes()

    module.export = measured
    try:
        yield
    finally:
        module.export = original


def held_bytes() -> int:
    """Return the memory that this process has now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """Return the most memory that this process had since the peak was forgotten."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Let the peak start again from what is held now, where Linux allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status(key: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith(f"{key}:")]
    return int(found[0]) * 1024 if found else 0
