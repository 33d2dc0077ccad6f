"""The same scripts under LEAPP and Veracity: equal results, or ours right where LEAPP is not.

What is right comes from neither: it is what the script's code computes on fresh inputs without a
session. That LEAPP is wrong where a script says so is asserted as well, so that the list of
differences stays true.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import leapp
import pytest
import torch
import veracity
from differential.registry import Better, Same, Script, Values
from differential.scripts import BEHAVIOURS, REFUSALS, SCRIPTS
from differential.sides import (
    Export,
    backends,
    difference,
    document,
    eager,
    export,
    initial_values,
    leave_session,
    names_line,
    roll_out,
    told,
)

SAME = [name for name, script in SCRIPTS.items() if isinstance(script.relation, Same)]
BETTER = [name for name, script in SCRIPTS.items() if isinstance(script.relation, Better)]


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    yield
    leave_session(leapp)
    leave_session(veracity)


def test_there_are_enough_scripts() -> None:
    assert len(SCRIPTS) >= 65
    assert len(BETTER) >= 20


@pytest.mark.parametrize("name", SAME)
def test_both_give_the_same_bundle_and_it_computes_what_the_code_computes(
    name: str, tmp_path: Path
) -> None:
    script = SCRIPTS[name]
    theirs = export(script, leapp, tmp_path / "leapp")
    ours = export(script, veracity, tmp_path / "veracity")
    assert theirs.error is None
    _raise_again(ours)
    assert all(verdict is True for verdict in ours.result.values()), ours.result
    assert document(ours.yaml) == document(theirs.yaml)
    torch.testing.assert_close(initial_values(ours.yaml), initial_values(theirs.yaml))
    _has_the_expected_warnings(script, ours)
    _computes_what_the_code_computes(script, ours.yaml)
    manager = leapp.InferenceManager(str(theirs.yaml))
    assert not difference(roll_out(script, manager), eager(script)), "LEAPP's own bundle"


@pytest.mark.parametrize("name", BETTER)
def test_ours_is_right_or_tells_where_leapp_is_not(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    ours = export(script, veracity, tmp_path / "veracity")
    assert isinstance(script.relation, Better)
    if script.relation.ours == "right":
        _raise_again(ours)
        assert all(verdict is True for verdict in ours.result.values()), ours.result
        assert not ours.diagnostics
        _computes_what_the_code_computes(script, ours.yaml)
    else:
        if ours.error is not None and not isinstance(ours.error, veracity.VeracityError):
            raise ours.error
        file, lines = script.marked()
        codes = tuple(script.relation.ours)
        assert told(ours.diagnostics, codes, file, lines), (lines, ours.diagnostics)
        # A roll-out that begins late is about no line.
        assert all(found.location or found.code == "VER1117" for found in ours.diagnostics)


@pytest.mark.parametrize("name", BETTER)
def test_leapp_still_does_what_the_list_of_differences_says(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    relation = script.relation
    assert isinstance(relation, Better)
    theirs = export(script, leapp, tmp_path)
    if relation.theirs == "disproved":
        assert "validation failed" in str(theirs.error)
    elif isinstance(relation.theirs, str):
        assert theirs.error is None
        assert all(verdict is True for verdict in theirs.result.values())
        found = roll_out(script, leapp.InferenceManager(str(theirs.yaml)))
        expected = eager(script)
        shared = found[0].keys() & expected[0].keys()
        assert shared, "not another set of outputs, but other values is what makes it wrong"
        assert difference(_only(shared, found), _only(shared, expected))
    else:
        assert _is_exactly(theirs.error, relation.theirs), theirs.error
        assert relation.message in str(theirs.error)


@pytest.mark.parametrize("name", REFUSALS)
def test_what_leapp_refuses_is_refused_with_code_line_and_the_builtin_type(
    name: str, tmp_path: Path
) -> None:
    refusal = REFUSALS[name]
    theirs, ours = _raised(refusal.run, leapp, tmp_path), _raised(refusal.run, veracity, tmp_path)
    assert (type(theirs) if theirs is not None else None) is refusal.theirs
    if ours is not None and not isinstance(ours, veracity.VeracityError):
        raise ours
    assert isinstance(ours, veracity.VeracityError), "accepted"
    assert isinstance(ours, refusal.builtin)
    assert ours.diagnostics[0].code in refusal.codes, ours
    file, lines = refusal.marked()
    assert not lines or names_line(ours.diagnostics[0].location, file, lines), (ours, lines)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_the_rule_holds_under_both(name: str, tmp_path: Path) -> None:
    behaviour = BEHAVIOURS[name]
    theirs, ours = (tmp_path / "leapp", tmp_path / "veracity")
    theirs.mkdir()
    ours.mkdir()
    behaviour.run(veracity, ours)
    if behaviour.only:
        with pytest.raises(AssertionError):
            behaviour.run(leapp, theirs)
    else:
        behaviour.run(leapp, theirs)


def _only(keys: Set[str], ticks: list[Values]) -> list[Values]:
    return [{key: value for key, value in tick.items() if key in keys} for tick in ticks]


def _is_exactly(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Return whether an error is of a kind; everything is an `Exception`, so that must be exact."""
    return type(error) is kind if kind is Exception else isinstance(error, kind)


def _raised(run: Any, api: Any, folder: Path) -> BaseException | None:
    try:
        run(api, folder)
    except Exception as error:
        return error
    else:
        return None
    finally:
        leave_session(api)


def _raise_again(made: Export) -> None:
    if made.error is not None:
        raise made.error


def _has_the_expected_warnings(script: Script, ours: Export) -> None:
    assert isinstance(script.relation, Same)
    expected = script.relation.warns
    assert sorted(found.code for found in ours.diagnostics) == sorted(expected), ours.diagnostics
    file, lines = script.marked()
    for found in ours.diagnostics:
        assert not lines or names_line(found.location, file, lines)


def _computes_what_the_code_computes(script: Script, bundle: Path) -> None:
    expected = eager(script)
    # A port that only generated nodes read stays an output, so there may be more of them.
    wanted = expected[0].keys()
    in_leapp = leapp.InferenceManager(str(bundle))
    found = _only(wanted, roll_out(script, in_leapp))
    assert not difference(found, expected), "ours in LEAPP's runtime"
    if "pt2" in backends(bundle):
        return  # the runtime of this repository runs TorchScript and ONNX
    in_ours = veracity.InferenceManager(bundle)
    found = _only(wanted, roll_out(script, in_ours))
    assert not difference(found, expected), "ours in our runtime"
