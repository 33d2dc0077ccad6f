"""Runs parity over the zoo, a process each, and writes what was found as a page.

The first table is what was found: it must be the same in every run on one machine, and `--check`
holds a page to it. The second is what it cost, which differs from run to run.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from veracity.progress import Progress, is_wanted

MODELS = (
    "resnet18",
    "resnet50",
    "mobilenet_v3_small",
    "vit_b_16",
    "swin_t",
    "convnext_tiny",
    "efficientnet_b0",
    "lstm",
    "gru_policy",
    "shared_transformer",
)
_PACKAGES = ("torch", "torchvision", "onnx", "onnxscript")
_HEADER = """\
# Parity sweep

`make parity-sweep` writes this page: each network of the zoo with drawn weights (seed {seed}) is
exported by torch and compared with itself, value by value, in a process of its own and on one
thread.

{versions}

## What was found

*Tensors* are those of the program that torch exported; *proved* ones are proved themselves or went
into values that are. *Introduced* is the largest error that one operator brings in, as a number and
as a part of what it may bring in; *accumulated* is the largest error of any value when the export
is run from its inputs. The origin is the first operator that brings in too much.
"""
_COST = """\
## What it cost

Processor seconds: torch's exporters, and everything else (both runs, every operator alone, float64,
comparing). Peak memory of the process, with torch and torchvision loaded: until the export was
made, and afterwards.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the sweep; return 1 when a network is not proved or a page says something else."""
    parser = argparse.ArgumentParser(prog="python -m veracity.drift.sweep", description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS, help="names of the zoo")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, help="page to write; by default it is printed")
    parser.add_argument("--check", type=Path, help="page that must say the same")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(measure(given.models[0], given.seed)))
        return 0
    found = _all(given.models, given.seed)
    page = render(found, given.seed)
    if given.out is None:
        print(page)
    else:
        given.out.write_text(page, encoding="utf-8")
    different = given.check is not None and _findings(given.check.read_text()) != _findings(page)
    if different:
        print(f"{given.check} says something else", file=sys.stderr)
    return int(different or any(one["verdict"] != "proved" for one in found))


def measure(name: str, seed: int) -> dict[str, Any]:
    """Compare one network of the zoo with its export."""
    import torch

    from veracity.drift import zoo
    from veracity.drift.measured import compared

    torch.set_num_threads(1)
    model, args = zoo.build(name, seed)
    result, cost = compared(model, args, name=name)
    worst = max(result.rows, key=lambda row: row.strain)
    report = json.loads(result.to_json())
    return {
        "name": name,
        "verdict": result.verdict,
        "rows": len(result.rows),
        "tensors": len(result.coverage.program),
        "share": result.coverage.share,
        "introduced": worst.introduced,
        "strain": worst.strain,
        "worst": f"{worst.name} ({worst.op_type})",
        "accumulated": max(row.accumulated for row in result.rows),
        "origin": result.origin.name if result.origin else "none",
        "engine": f"{report['session']['engine']} {report['session']['engine_version']}",
        **asdict(cost),
    }


def _all(names: list[str], seed: int) -> list[dict[str, Any]]:
    """Compare every network; a line on a terminal says how far it is, lines in a log elsewhere."""
    progress, found = Progress(len(names)), []
    for name in names:
        if not is_wanted():
            print(f"comparing {name}", file=sys.stderr, flush=True)
        progress.step(f"comparing {name}")
        found.append(_in_a_process(name, seed))
    progress.clear()
    return found


def _in_a_process(name: str, seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "veracity.drift.sweep", "--one", name, "--seed", str(seed)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def render(found: list[dict[str, Any]], seed: int) -> str:
    """Return the page."""
    heads = (
        "network", "verdict", "rows", "tensors", "proved", "introduced", "of budget", "by",
        "accumulated", "origin",
    )  # fmt: skip
    versions = _versions(found[0]["engine"] if found else "")
    costs = ("network", "export s", "parity s", "export peak MB", "parity peak MB")
    return "\n".join(
        [
            _HEADER.format(seed=seed, versions=versions),
            *_table(heads, [_found_cells(one) for one in found]),
            "",
            _COST,
            *_table(costs, [_cost_cells(one) for one in found]),
            "",
        ]
    )


def _found_cells(one: dict[str, Any]) -> tuple[str, ...]:
    return (
        one["name"],
        one["verdict"],
        str(one["rows"]),
        str(one["tensors"]),
        f"{one['share']:.1%}",
        f"{one['introduced']:.2e}",
        f"{one['strain']:.1%}",
        f"`{one['worst']}`",
        f"{one['accumulated']:.2e}",
        one["origin"],
    )


def _cost_cells(one: dict[str, Any]) -> tuple[str, ...]:
    seconds = (f"{one[key]:.1f}" for key in ("export_secs", "secs"))
    peaks = (f"{one[key] / 1e6:.0f}" for key in ("export_peak_bytes", "peak_bytes"))
    return (one["name"], *seconds, *peaks)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (heads, ("---",) * len(heads), *rows)]


def _versions(engine: str) -> str:
    found = [f"{name} {metadata.version(name)}" for name in _PACKAGES]
    return f"{', '.join(found)}, {engine}, Python {platform.python_version()}."


def _findings(page: str) -> list[str]:
    """Return the rows of the first table."""
    found = page.partition("## What was found")[2].partition("## What it cost")[0]
    return [line for line in found.splitlines() if line.startswith("|")]


if __name__ == "__main__":
    sys.exit(main())
