"""A part of the attack: no false proof, no alarm on clean code. `make attack` runs all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from attacks.harness import attack
from attacks.judge import Outcome, first_difference
from attacks.programs import load
from attacks.registry import PROGRAMS, Program

load()
#: One backend each: all of them are for `make attack`.
CHOSEN = [(p, p.backends[len(p.name) % len(p.backends)]) for p in PROGRAMS.values() if p.in_tests]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> Iterator[None]:
    monkeypatch.setenv("VERACITY_PROGRESS", "0")
    yield


@pytest.mark.parametrize(
    ("program", "backend"), CHOSEN, ids=[f"{p.name}-{backend}" for p, backend in CHOSEN]
)
def test_what_is_called_proved_is_right(program: Program, backend: str) -> None:
    outcome = attack(program, backend)
    assert outcome.passed, f"{outcome.kind}: {outcome}"


#: Programs that show, each in its own way, what a session has to notice outside of tensors.
NOTICED = (
    *("NdTypeIsArray", "NdScalarTypeTable", "NdOwnsData", "NdNumpyIdentity"),
    *("NdHasattrProperty", "NdMapStops", "NdIndexProtocol"),
    *("NsScriptedCounter", "NsHookExpires", "NsDeclaredState", "NsResizedStore"),
    *("NsDescriptorReads", "NsMethodSwap", "NsFunctionDefaults", "NsFloatSubclass"),
    *("NsCoroutineFilter", "NsAnnotatedRegistry", "NsGrowingGainNumpy", "NsSameZeroTwice"),
    *("NsHoldLastGoodSetter", "NsMessageStale", "NdEnsembleBest", "NdResetHook"),
    *("NeFeetInContact", "NeOldFactorStays", "NeSlowNetwork", "NeStiffnessByTime"),
    *("FhPlainPeak", "FhSkillSequence", "FhHotMotor", "FhGaitCycle", "FhBlueGreen", "FhCsvGains"),
    *("FhDropoutCallback", "FhLogDerate", "FhTensorClock", "FhMailbox", "FhResolvedConfig"),
    *("MarksInsideOfTry", "CommandFromTheLastMessage"),
)


@pytest.mark.parametrize("name", NOTICED)
def test_what_is_no_tensor_is_noticed(name: str) -> None:
    program = PROGRAMS[name]
    outcome = attack(program, program.backends[0])
    assert outcome.kind == "told", f"{outcome.kind}: {outcome}"


@pytest.mark.parametrize(
    "name",
    [
        "CcSkrlGaussianMixin",  # an output is a weight
        "CcRlGamesA2C",  # an output is a weight plus zero times an input
        "NcBiquadCascade",  # a buffer is taken apart, which is a constant later
        "FcOwnNumpyObsBuilder",  # an array that is older than the session
        "FcOwnRobomimicBcRnn",  # a narrower input would make torch's LSTM write past its memory
        "GainsFromADict",  # tensors are made before every pass from what is written down
    ],
)
def test_constants_are_no_doubt(name: str) -> None:
    program = PROGRAMS[name]
    outcome = attack(program, program.backends[0])
    assert outcome.passed, f"{outcome.kind}: {outcome}"


SCRIPTS = [
    (p, backend) for p, backend in CHOSEN if backend == "jit" and p.style in ("inline", "own")
]


@pytest.mark.parametrize(
    ("program", "backend"), SCRIPTS, ids=[f"{p.name}-{backend}" for p, backend in SCRIPTS]
)
def test_the_top_of_a_file_is_judged_like_a_function(program: Program, backend: str) -> None:
    outcome = attack(program, backend, as_script=True)
    assert outcome.passed, f"{outcome.kind}: {outcome}"


def test_the_attack_is_large_enough() -> None:
    clean = [program for program in PROGRAMS.values() if program.clean]
    hostile = [program for program in PROGRAMS.values() if not program.clean]
    assert len(clean) >= 150 and len(hostile) >= 170
    assert all(program.passes >= 3 for program in clean)


@pytest.mark.parametrize(
    ("clean", "verdict", "codes", "wrong", "kind"),
    [
        (False, "proved", [], "tick 1", "false proof"),
        (False, "proved", ["VER0911"], "tick 1", "false proof"),
        (True, "proved", [], "tick 1", "false proof"),
        (False, "proved", [], "", "right"),
        (False, "proved", ["VER0911"], "", "right"),
        (False, "conditional", ["VER0911"], "tick 1", "told"),
        (False, "refused", [], "cannot be run", "told"),
        (True, "proved", [], "", "right"),
        (True, "proved", ["VER0918"], "", "false alarm"),
        (True, "conditional", [], "", "false alarm"),
        (True, "disproved", [], "tick 1", "refused"),
        (True, "hang", [], "not done", "refused"),
    ],
)
def test_outcomes_are_classified(
    clean: bool, verdict: str, codes: list[str], wrong: str, kind: str
) -> None:
    assert Outcome("p", "jit", "A", clean, verdict, codes, wrong).kind == kind


@pytest.mark.parametrize(
    ("found", "expected", "differs"),
    [
        ([1.0, 2.0], [1.0, 2.0], False),
        ([1.0, 2.0], [1.0001, 2.0], False),
        ([1.0, 2.0], [1.01, 2.0], True),
        ([1e-7, 2e-7], [-1e-7, 2e-7], True),
        ([1e-3, 100.0], [2e-3, 100.0], True),
        ([float("nan")], [float("nan")], False),
        ([float("nan")], [0.0], True),
        ([float("inf")], [float("inf")], False),
        ([float("inf")], [-float("inf")], True),
    ],
)
def test_episodes_are_compared_by_their_scale(
    found: list[float], expected: list[float], differs: bool
) -> None:
    ours, theirs = ([{"n/y": torch.tensor(values)}] for values in (found, expected))
    assert bool(first_difference(ours, theirs)) == differs


def test_an_output_that_is_missing_is_a_difference() -> None:
    assert "no output n/y" in first_difference([{}], [{"n/y": torch.zeros(1)}])
    assert not first_difference([{"n/y": torch.zeros(1)}], [{}])
