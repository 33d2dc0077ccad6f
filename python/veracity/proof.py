"""What is known about a bundle, `check`, which finds it out again, and `seal` after a change.

Nothing here imports torch, unless a pt2 model has to be run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from veracity import _native
from veracity.errors import Diagnostic, refuse

#: Verdicts of what is right on everything that was compared.
HOLDS = ("proved", "conditional")


@dataclass(frozen=True)
class PortResult:
    """What is known about one port.

    Attributes:
        port: `node/port`.
        verdict: `"proved"`, `"conditional"`, `"not_comparable"` or `"disproved"`.
        part: `"node"` for a node alone, `"rollout"` for the bundle over time.
        samples: How many samples, or ticks, were compared.
        max_abs: Largest absolute error over them; `None` when no values were compared.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        unstable: Whether the same inputs gave different values.
        reasons: Why it is not proved.
    """

    port: str
    verdict: str
    part: str
    samples: int
    max_abs: float | None
    atol: float
    rtol: float
    unstable: bool = False
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Divergence:
    """Where something first was wrong.

    Attributes:
        port: `node/port`.
        sample: The sample of a node alone, `"sample 0"`, or the tick of the roll-out, `"tick 3"`.
    """

    port: str
    sample: str


@dataclass(frozen=True)
class Coverage:
    """Ports of nodes and of the roll-out by their verdict."""

    proved: int
    disproved: int
    not_comparable: int
    conditional: int = 0


class ProofResult:
    """What was proved about a bundle. `str()` is a text for people."""

    def __init__(self, proof: _native.Proof) -> None:
        """Wrap a proof that Rust made."""
        self._proof = proof

    @cached_property
    def data(self) -> dict[str, Any]:
        """Everything, as plain data."""
        found: dict[str, Any] = json.loads(self._proof.json())
        return found

    @property
    def verdict(self) -> str:
        """`"proved"`, `"conditional"`, `"not_comparable"` or `"disproved"`: the worst of all.

        Conditional: everything that was compared is right, and `assumptions` are open.
        """
        return str(self.data["verdict"])

    @property
    def nodes(self) -> dict[str, str]:
        """The verdict of each node alone."""
        return {node["node"]: node["verdict"] for node in self.data["nodes"]}

    @cached_property
    def ports(self) -> list[PortResult]:
        """The outputs of the nodes, then the ports of the roll-out, in the order of running."""
        alone = [_alone(port) for node in self.data["nodes"] for port in node["ports"]]
        ticks = self.data["rollout"]["ticks"]
        return alone + [_over_time(port, ticks) for port in self.data["rollout"].get("ports", ())]

    @property
    def first_divergence(self) -> Divergence | None:
        """Where something first was wrong: over time if the bundle was run, else in a node."""
        first = self.data["rollout"].get("first_divergence")
        if first is not None:
            return Divergence(first["port"], f"tick {first['tick']}")
        for node in self.data["nodes"]:
            for port in node["ports"]:
                for sample in port["samples"]:
                    if sample["verdict"] == "disproved":
                        return Divergence(port["port"], sample["label"])
        return None

    @cached_property
    def assumptions(self) -> list[Diagnostic]:
        """What the verdict rests on and comparing cannot settle; the hints say what would."""
        return [_finding(found) for found in self.data.get("assumptions", ())]

    @cached_property
    def findings(self) -> list[Diagnostic]:
        """What tracing noticed while the values were recorded, assumptions included."""
        return [_finding(found) for found in self.data.get("findings", ())]

    @property
    def coverage(self) -> Coverage:
        """How much was checked."""
        return Coverage(**self.data["coverage"])

    def to_json(self) -> str:
        """Return everything, as it stands in `proof.json`."""
        return self._proof.json()

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write one page with everything, which needs no network; return its path."""
        self._proof.write_page(Path(path))
        return Path(path)

    def write_reports(self, base: str | os.PathLike[str]) -> list[Path]:
        """Write the proof for programs and for people, and return the paths.

        Args:
            base: What their names start with: `reports/policy` gives `reports/policy.json`,
                `.txt` and `.html`.
        """
        base = Path(base)
        base.parent.mkdir(parents=True, exist_ok=True)
        texts = {".json": self.to_json() + "\n", ".txt": str(self)}
        written = [base.with_name(base.name + ending) for ending in texts]
        for path, text in zip(written, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        return [*written, self.to_html(base.with_name(base.name + ".html"))]

    def save(self) -> None:
        """Put the proof into its bundle, in place of the one that is there."""
        self._proof.save()

    def __str__(self) -> str:
        """Return a text for people, a screen long."""
        return self._proof.text()

    def __repr__(self) -> str:
        """Name the verdict and the coverage."""
        return f"<ProofResult {self.verdict}: {self.coverage}>"


def check(
    bundle: str | os.PathLike[str],
    engine: str = "auto",
    tolerance: str | Mapping[str, float] | None = None,
    tolerances: Mapping[str, Mapping[str, float]] | None = None,
    equal_nan: bool | None = None,
    threads: int = 1,
) -> ProofResult:
    """Repeat the proof of a bundle here: every sample, and the recorded episode over time.

    Args:
        bundle: The bundle's YAML file, or its folder.
        engine: What runs ONNX models: `"auto"`, `"ort"`, `"embedded"`; `"torch"` refuses them.
        tolerance: `dict(atol=..., rtol=...)`, or `"auto"` for those that were derived while
            exporting. By default what the bundle's own proof was judged by.
        tolerances: Tolerances of single outputs, `{"node/port": dict(atol=..., rtol=...)}`.
        equal_nan: Whether NaN equals NaN; by default as in the bundle's own proof.
        threads: Threads inside of one operator.

    Returns:
        What was found. It is not put into the bundle; `save` does that.
    """
    from veracity.inference import site_packages

    if isinstance(tolerance, str) and tolerance != "auto":
        raise refuse("VER0803", f"`tolerance` is {tolerance!r}", hints=('"auto", or a dict',))
    given = {
        "auto": tolerance == "auto",
        "tolerance": None
        if tolerance is None or tolerance == "auto"
        else tolerance_pair(tolerance),
        "ports": {port: tolerance_pair(one) for port, one in (tolerances or {}).items()},
        "equal_nan": equal_nan,
    }
    made = _native.check(
        Path(bundle),
        engine=engine,
        given_json=json.dumps(given),
        threads=threads,
        site_packages=site_packages(),
    )
    return ProofResult(made)


def seal(bundle: str | os.PathLike[str]) -> list[str]:
    """Record the hashes of a bundle's files as they are now, after a deliberate change.

    What was proved about other files is not proved about these: the bundle's proof is stale until
    `check(bundle).save()`.

    Args:
        bundle: The bundle's YAML file, or its folder.

    Returns:
        The files that are not what was recorded.
    """
    return _native.seal(Path(bundle))


def tolerance_pair(tolerance: Any) -> dict[str, float]:
    """Return a tolerance with both parts, or refuse what is none."""
    if not isinstance(tolerance, Mapping) or set(tolerance) - {"atol", "rtol"}:
        hints = ("give `dict(atol=..., rtol=...)`",)
        raise refuse("VER0803", f"{tolerance!r} is no tolerance", hints=hints)
    pair = {name: float(tolerance.get(name, 0.0)) for name in ("atol", "rtol")}
    for name, value in pair.items():
        if not 0 <= value < float("inf"):
            raise refuse("VER0803", f"{name} must be finite and at least 0, got {value}")
    return pair


def _finding(found: dict[str, Any]) -> Diagnostic:
    place = found.get("place", {})
    location = f"{place['file']}:{place['line']}" if "line" in place else place.get("file", "")
    hints = tuple(found.get("hints", ()))
    return Diagnostic(
        found["code"], found["severity"], found["message"], location, hints, place.get("node")
    )


def _alone(port: dict[str, Any]) -> PortResult:
    measured = [sample["measurement"] for sample in port["samples"] if "measurement" in sample]
    reasons = (reason["message"] for one in port["samples"] for reason in one.get("reasons", ()))
    return PortResult(
        port=port["port"],
        verdict=port["verdict"],
        part="node",
        samples=len(port["samples"]),
        max_abs=max((float(one["max_abs"]) for one in measured), default=None),
        unstable=port.get("unstable", False),
        reasons=tuple(dict.fromkeys(reasons)),
        **port["tolerance"],
    )


def _over_time(port: dict[str, Any], ticks: int) -> PortResult:
    return PortResult(
        port=port["port"],
        verdict=port["verdict"],
        part="rollout",
        samples=ticks,
        max_abs=float(port["measurement"]["max_abs"]),
        **port["tolerance"],
    )
