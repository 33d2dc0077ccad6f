"""Measure against the peers, interleaved in one run, and print ratios: what `make bench` does.

Every line is a figure, the bar it is held to, and whether it is met. Machines are shared and noisy:
the ratios mean something, the microseconds do not.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import chains
import footprint
import parity
import proof
import tensors
import tracing
import transform
from table import Row, render


def main() -> int:
    """Run every benchmark and return 1 when a bar is missed."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TMPDIR"] = name  # what the measured processes leave behind goes with the folder
        for title, measure in (
            ("three-node chains against LEAPP", chains.measure),
            ("comparing 64M float32 pairs", tensors.measure),
            ("footprint", footprint.measure),
            ("tracing and exporting against LEAPP", tracing.measure),
            ("proving against LEAPP and against bare running", proof.measure),
            ("parity of every operator against its peers", parity.measure),
            ("transforming models against four optimisers", transform.measure),
        ):
            print(f"measuring: {title}", file=sys.stderr, flush=True)
            rows += measure(folder)
    print(render(rows))
    results = Path("target/bench.json")
    results.write_text(json.dumps([row.__dict__ for row in rows], indent=1))
    print(f"written to {results}", file=sys.stderr)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
