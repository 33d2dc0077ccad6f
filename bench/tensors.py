"""How fast two large tensors are compared, against memory bandwidth and NumPy."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from statistics import median

import numpy as np
from table import Row, at_least, at_most

BENCH = "target/release/examples/bench_compare"
ELEMENTS = 64 << 20


def measure(_folder: Path) -> list[Row]:
    """Return the ratios to plain reading and to NumPy's percentiles."""
    numpy_secs = [_numpy_percentiles_secs()]
    found = _rust()
    numpy_secs.append(_numpy_percentiles_secs())
    numpy = median(numpy_secs)
    stats, full, read = found["stats_gb_per_s"], found["full_gb_per_s"], found["read_gb_per_s"]
    full_secs = 8 * ELEMENTS / full / 1e9
    return [
        at_least(
            "statistics / plain read bandwidth",
            stats / read,
            0.6,
            f"{stats:.1f} GB/s / {read:.1f} GB/s",
        ),
        at_least("full report with exact percentiles, GB/s", full, 3.0, f"{full_secs:.3f} s"),
        at_least(
            "numpy percentiles alone / full report",
            numpy / full_secs,
            5.0,
            f"{numpy:.2f} s / {full_secs:.3f} s",
        ),
        at_most("peak extra memory, MB", found["peak_extra_mb"], 64.0, ""),
    ]


def _rust() -> dict[str, float]:
    done = subprocess.run([BENCH, "--json"], check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _numpy_percentiles_secs() -> float:
    generator = np.random.default_rng(0)
    reference = generator.standard_normal(ELEMENTS, dtype=np.float32)
    noise = generator.standard_normal(ELEMENTS, dtype=np.float32)
    candidate = reference + np.float32(1e-4) * noise
    start = time.perf_counter()
    np.percentile(np.abs(reference - candidate), [50, 75, 90, 99, 99.5])
    return time.perf_counter() - start
