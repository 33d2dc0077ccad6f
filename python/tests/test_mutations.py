"""Plants one fault in a good bundle at a time: every one must be found.

The recorded values are those of the right code. A mutant that passes must be listed as equivalent,
with the reason that the coverage statement of its proof gives.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import veracity
from mutants.files import faults_of
from mutants.pipeline import ALL_FAULTS, export
from veracity.errors import VeracityError

ENGINES = {"onnx": "ort", "jit": "torch", "pt2": "auto"}
SAMPLES = "arm_samples.safetensors"
#: Mutants that compute the same on everything that was tried, and why that cannot be otherwise.
EQUIVALENT: dict[tuple[str, str], str] = {}


@dataclass(frozen=True)
class Finding:
    """What checking a mutant said."""

    backend: str
    fault: str
    verdict: str
    where: str


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", params=ENGINES)
def right(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle without fault; its parent is called after the backend."""
    backend: str = request.param
    folder = tmp_path_factory.mktemp("right") / backend
    bundle = export(folder, backend)
    assert veracity.check(bundle, engine=ENGINES[backend]).verdict == "proved"
    return bundle


def test_every_fault_is_found(
    right: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = right.parent.name
    found = [_mutant_of_code(right, backend, fault, tmp_path) for fault in ALL_FAULTS]
    for fault, edit in faults_of(backend).items():
        mutant = tmp_path / "edited" / "arm"
        shutil.copytree(right, mutant)
        edit(mutant)
        found.append(_look(mutant, backend, fault))
        shutil.rmtree(mutant)
    with capsys.disabled():
        print(f"\n{_table(found)}")
    missed = [one for one in found if one.verdict not in ("disproved", "refused")]
    assert {(one.backend, one.fault) for one in missed} == {
        key for key in EQUIVALENT if key[0] == backend
    }
    assert len(found) >= 30


def _mutant_of_code(right: Path, backend: str, fault: str, tmp_path: Path) -> Finding:
    """Export the wrong code, and hold it to what the right code computed."""
    mutant = export(tmp_path / fault.replace(" ", "_"), backend, fault)
    shutil.copy(right / SAMPLES, mutant / SAMPLES)
    return _look(mutant, backend, fault)


def _look(mutant: Path, backend: str, fault: str) -> Finding:
    try:
        veracity.seal(mutant)
        proof = veracity.check(mutant, engine=ENGINES[backend])
    except VeracityError as refusal:
        return Finding(backend, fault, "refused", refusal.diagnostics[0].code)
    wrong = [port.port for port in proof.ports if port.verdict == "disproved"]
    divergence = proof.first_divergence
    tick = "" if divergence is None else f"; {divergence.sample} at {divergence.port}"
    return Finding(backend, fault, proof.verdict, ", ".join(wrong[:2]) + tick)


def _table(found: list[Finding]) -> str:
    lines = [
        f"{one.backend:<5} {one.fault:<46} {one.verdict:<15} {one.where}"
        + (f"  ({reason})" if (reason := EQUIVALENT.get((one.backend, one.fault))) else "")
        for one in found
    ]
    caught = sum(one.verdict in ("disproved", "refused") for one in found)
    return "\n".join([*lines, f"{found[0].backend}: {caught} of {len(found)} found"])
