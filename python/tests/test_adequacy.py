"""Samples that can see: the scale of outputs, the corners of inputs, and planted faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import veracity
from nodes_by_hand import make_node, recording
from torch import Tensor, nn
from veracity.export import draws, scale
from veracity.export.backends import onnx_corners
from veracity.export.bounds import Bound, runs
from veracity.export.compile import CompileResult, compile_recording
from veracity.tracing.nodes import Node

Function = Callable[..., Any]
BACKENDS = ("jit", "onnx", "pt2")


def passes(count: int, *shape: int, factor: float = 1.0) -> list[dict[str, Tensor]]:
    source = torch.Generator().manual_seed(0)
    return [{"x": factor * torch.randn(*shape, generator=source)} for _ in range(count)]


def compiled(folder: Path, node: Node, **options: Any) -> CompileResult:
    made = recording(folder / "g", [node])
    result = compile_recording(made, visualize=False, strict=False, **options)
    assert isinstance(result, CompileResult)
    return result


def proof_of(result: CompileResult) -> dict[str, Any]:
    assert result.proof is not None
    return result.proof.data


def codes(result: CompileResult) -> list[str]:
    return [found.code for found in result.diagnostics]


def foreign(folder: Path, function: Function, given: Tensor) -> dict[str, Any]:
    """Return what brings another function along as the model of a node."""
    path = folder / "other.pt"
    torch.jit.trace(function, given).save(str(path))  # type: ignore[no-untyped-call]
    return {"export_with": None, "backend_params": {"model_path": path}}


# --- tolerances ----------------------------------------------------------------------------------

WEIGHT = torch.tensor([[0.4, -1.2, 0.7], [1.1, 0.2, -0.9]])
SCALES = {
    "around 1e-7": torch.tensor([1e-7, 1e-7]),
    "torques and positions": torch.tensor([1e-7, 1e3]),
    "around 1e-3": torch.tensor([1e-3, 1e-3]),
    "around 1": torch.tensor([1.0, 1.0]),
}
FAULTS: dict[str, Function] = {
    "negated": lambda y: -y,
    "zero": lambda y: y * 0,
    "first element negated": lambda y: y * torch.tensor([-1.0, 1.0]),
    "1 % off": lambda y: y * 1.01,
}


@pytest.mark.parametrize("size", SCALES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_model_is_disproved_whatever_the_scale(
    size: str, fault: str, tmp_path: Path
) -> None:
    given, factor = passes(4, 3), SCALES[size]

    def right(x: Tensor) -> Tensor:
        return (WEIGHT @ x) * factor

    def wrong(x: Tensor) -> Tensor:
        return FAULTS[fault](right(x))  # type: ignore[no-any-return]

    brought = foreign(tmp_path, wrong, given[0]["x"])
    for fresh_inputs in (True, False):
        node = make_node("n", right, given, ["y"], **brought)
        found = compiled(tmp_path, node, fresh_inputs=fresh_inputs, adequacy=False)
        assert found == {"n": False}, fresh_inputs


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", SCALES)
def test_a_right_model_is_proved_whatever_the_scale(
    size: str, backend: str, tmp_path: Path
) -> None:
    factor = SCALES[size]
    node = make_node("n", lambda x: (WEIGHT @ x) * factor, passes(4, 3), ["y"], export_with=backend)
    result = compiled(tmp_path, node)
    assert result == {"n": True}
    assert not result.diagnostics
    assert veracity.check(tmp_path / "g").verdict == "proved"


RIGHT: dict[str, Function] = {
    "an offset": lambda x: x * 1e-2 + 300,
    "a difference that is rounding": lambda x: torch.stack([x.sum(), x.flip(0).sum() - x.sum()]),
    "a homogeneous row": lambda x: torch.cat([x, torch.tensor([0.0, 0.0, 1.0])]),
    "small and large in turns": lambda x: torch.stack([x * 1e-7, x * 1e3], -1),
    "zeros by shape": torch.zeros_like,
    "a rare flag": lambda x: (x > 2.5).float(),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", RIGHT)
def test_clean_outputs_of_every_scale_are_proved_without_a_word(
    name: str, backend: str, tmp_path: Path
) -> None:
    node = make_node("n", RIGHT[name], passes(4, 3), ["y"], export_with=backend)
    result = compiled(tmp_path, node)
    assert result == {"n": True}
    assert not result.diagnostics


@pytest.mark.parametrize(
    ("values", "bound", "says_nothing"),
    [
        ([[1e-7], [-2e-7]], Bound(1e-5, 1e-3), True),
        ([[1e-7], [-2e-7]], Bound(1e-10, 1e-3), False),
        ([[1.0], [-2.0]], Bound(1e-5, 1e-3), False),
        ([[300.0], [300.1]], Bound(1e-5, 1e-3), True),
        ([[300.0], [300.1]], Bound(1e-5, 1e-6), False),
        ([[300.0], [300.0]], Bound(1e-5, 1e-3), False),
        ([[0.0], [0.0]], Bound(1e-5, 1e-3), False),
        ([[5.0], [-5.0]], Bound(0.0, 1.0), True),
    ],
)
def test_a_tolerance_that_accepts_zeros_or_the_mean_says_nothing(
    values: list[list[float]], bound: Bound, says_nothing: bool
) -> None:
    assert bool(scale.unjudged(torch.tensor(values), bound).all()) == says_nothing


@pytest.mark.parametrize(
    ("recorded", "atol", "rtol"),
    [
        ([[1.0], [-1.0], [0.5]], 1e-5, 1e-3),
        ([[1e-7], [-1e-7], [5e-8]], 1e-10, 1e-3),
        ([[300.0], [300.1], [300.2]], 1e-5, 1e-2 * 0.2 / 300.2),
        ([[0.0], [0.0], [0.0]], 1e-5, 1e-3),
    ],
)
def test_defaults_are_made_finer_and_never_wider(
    recorded: list[list[float]], atol: float, rtol: float
) -> None:
    found = scale.fitted(torch.tensor(recorded), None, lambda: torch.zeros(1))
    assert (found.atol, found.rtol) == pytest.approx((atol, rtol), rel=1e-2)
    noisy = scale.fitted(torch.tensor(recorded), None, lambda: torch.full((1,), 1.0))
    assert noisy.atol <= 1e-5 and noisy.rtol <= 1e-3


def test_elements_that_differ_have_tolerances_of_their_own_that_repeat_along_an_axis() -> None:
    values = torch.randn(5, 200, 2, generator=torch.Generator().manual_seed(0)) + 3
    values = values * torch.tensor([1e-7, 1e3])
    found = scale.fitted(values, None, lambda: torch.zeros(200, 2))
    assert found.atols is not None and found.rtols is not None
    assert len(runs(found.atols, found.rtols)) == 2


def test_tolerances_that_were_given_hold_and_are_told_where_they_say_nothing(
    tmp_path: Path,
) -> None:
    def small(x: Tensor) -> Tensor:
        return x * 1e-7

    for options in ({"rtol": 1e-3, "atol": 1e-5}, {"atol": 1e-5}):
        node = make_node("n", small, passes(3, 3), ["y"])
        result = compiled(tmp_path, node, adequacy=False, **options)
        policy = proof_of(result)["policy"]
        assert policy["basis"] == "given" and policy["default"] == {"atol": 1e-5, "rtol": 1e-3}
        assert codes(result) == ["VER1126"]
        assert "says nothing about `y`" in result.diagnostics[0].message
    node = make_node("n", small, passes(3, 3), ["y"])
    finer = compiled(tmp_path, node, tolerances={"n/y": {"atol": 1e-11, "rtol": 1e-3}})
    assert not finer.diagnostics


def test_an_output_that_nothing_moves_is_told(tmp_path: Path) -> None:
    node = make_node("n", lambda x: (x.sum() > 1e9).float(), passes(3, 3), ["y"])
    assert "VER1127" in codes(compiled(tmp_path, node))
    moved = make_node("n", lambda x: (x.sum() > 4).float(), passes(3, 3), ["y"])
    assert codes(compiled(tmp_path, moved)) == []


# --- draws ---------------------------------------------------------------------------------------


def drawn(values: list[Tensor], count: int = 200, accepts: draws.Accepts | None = None) -> Tensor:
    node = make_node("n", lambda x: x.clone(), [{"x": value} for value in values], ["y"])
    return draws.many(node, 1, count, accepts or (lambda port, value: True))["x"]


def test_draws_reach_every_corner() -> None:
    recorded = [torch.tensor([1e-7, 5.0, -1.0]) * factor for factor in (0.5, 1.0, 2.0)]
    found = drawn(recorded)
    low = torch.stack(recorded).amin(0)
    high = torch.stack(recorded).amax(0)
    assert bool(((found == 0) & found.signbit()).any()), "zeros below"
    assert bool(((found == 0) & ~found.signbit()).any()), "zeros above"
    for element in range(3):
        column = found[:, element]
        assert bool((column == low[element]).any()) and bool((column == high[element]).any())
        assert float(column.min()) < low[element] and float(column.max()) > high[element]
    assert bool((found[:, 0] == found[:, 1]).any()), "ties"
    assert any(bool((row == row[0]).all()) and float(row[0]) != 0 for row in found), "repeated"
    assert any(int((row != 0).sum()) == 1 for row in found), "one hot"
    assert any(bool((row == -one).all()) for row in found for one in recorded), "turned around"
    changed = [int((row != one).sum()) for row in found for one in recorded]
    assert 1 in changed, "one changed"
    assert bool(found.isfinite().all())
    small = found[:, 0][found[:, 0] != 0].abs()
    assert float(small.median()) < 1e-5, "an element is drawn at its own scale"


def test_draws_are_the_same_on_every_run() -> None:
    recorded = [torch.randn(4) for _ in range(3)]
    assert torch.equal(drawn(recorded), drawn(recorded))


def test_values_that_are_not_finite_are_drawn_where_they_were_recorded() -> None:
    found = drawn([torch.tensor([float("nan"), 1.0]), torch.tensor([0.5, float("inf")])])
    assert bool(found.isnan().any()) and bool(found.isposinf().any())
    assert not bool(found.isneginf().any())


@pytest.mark.parametrize("entries", [1, 2, 7, 1000])
def test_integers_are_drawn_over_all_that_the_program_takes(entries: int) -> None:
    found = drawn([torch.tensor([0, 0])], accepts=lambda port, value: 0 <= value < entries)
    assert (int(found.min()), int(found.max())) == (0, entries - 1)


def test_bytes_are_drawn_over_their_whole_range() -> None:
    found = drawn([torch.tensor([3, 4], dtype=torch.uint8)])
    assert (int(found.min()), int(found.max())) == (0, 255)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_small_node_is_tried_on_two_hundred_inputs_of_which_few_are_kept(
    backend: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.ELU(), nn.Linear(8, 2))
    node = make_node("n", net, passes(3, 3), ["y"], export_with=backend)
    found = proof_of(compiled(tmp_path, node))["nodes"][0]
    assert found["fresh"] + found["tried"] >= 200
    assert found["fresh"] < 20


def test_what_only_one_kind_of_draw_shows_is_disproved(tmp_path: Path) -> None:
    """The model is right everywhere but where the first value is far above the others."""

    def wrong(x: Tensor) -> Tensor:
        return torch.where((x[0] > 1.0) & (x[1:] == 0).all(), x * 3, x * 2)

    given = passes(3, 6)
    brought = foreign(tmp_path, wrong, given[0]["x"])
    node = make_node("n", lambda x: x * 2, given, ["y"], **brought)
    result = compiled(tmp_path, node)
    assert result == {"n": False}
    assert veracity.check(tmp_path / "g").verdict == "disproved", "the draw was kept"


def test_a_corner_of_an_engine_is_told_and_holds_nothing_against_the_model(tmp_path: Path) -> None:
    def without_signs(x: Tensor) -> Tensor:
        return torch.where(x == 0, 0.0, 1 / x)

    given = passes(3, 4)
    brought = foreign(tmp_path, lambda x: without_signs(x) + 0.0, given[0]["x"])

    def with_signs(x: Tensor) -> Tensor:
        return torch.where(x == 0, torch.where(x.signbit(), -1.0, 0.0), 1 / x)

    result = compiled(tmp_path, make_node("n", with_signs, given, ["y"], **brought))
    assert result == {"n": True}
    told = [found for found in result.diagnostics if found.code == "VER1128"]
    assert len(told) == 1 and "where an input is -0.0" in told[0].message


@pytest.mark.parametrize(
    ("skips", "expected"), [(False, True), (True, False)], ids=["the first", "others"]
)
def test_values_that_follow_from_a_tie_are_told(
    tmp_path: Path, skips: bool, expected: bool
) -> None:
    """Torch promises no order of equal values, and engines take the first one; but only that."""
    table = torch.arange(6.0) * 10

    def torch_takes(x: Tensor) -> Tensor:
        return table[x.topk(2).indices]

    def engine_takes(x: Tensor) -> Tensor:
        order = x.sort(descending=True, stable=True)
        ties = order.values[:1] == order.values[1:2]
        others = order.indices[2:4] if skips else order.indices[:2]
        return torch.where(ties, table[others], table[order.indices[:2]])

    given = passes(3, 6)
    brought = foreign(tmp_path, engine_takes, given[0]["x"])
    result = compiled(tmp_path, make_node("n", torch_takes, given, ["y"], **brought))
    assert result == {"n": expected}
    if expected:
        told = [found for found in result.diagnostics if found.code == "VER1128"]
        assert any("where values tie in it" in one.message for one in told)


# --- planted faults ------------------------------------------------------------------------------


def adequacy_of(result: CompileResult) -> dict[str, Any]:
    found: dict[str, Any] = proof_of(result)["nodes"][0]["adequacy"]
    return found


def test_the_samples_of_a_network_find_all_faults(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 3), nn.Tanh())
    result = compiled(tmp_path, make_node("n", net, passes(3, 4), ["y"]))
    found = adequacy_of(result)
    assert found["planted"] >= 20 and found["found"] == found["planted"]
    assert f"finds {found['found']} of {found['planted']} planted faults" in str(result.proof)
    assert "planted faults" in (tmp_path / "g/report.html").read_text()
    assert veracity.check(tmp_path / "g").data["nodes"][0]["adequacy"] == found


def test_samples_that_miss_a_branch_are_told(tmp_path: Path) -> None:
    def branching(x: Tensor) -> Tensor:
        far = torch.sin(x * 2.0) * 3.0 + torch.cos(x) * 0.5
        return torch.where(x.sum() > 1e7, far, x * 2)

    result = compiled(tmp_path, make_node("n", branching, passes(3, 4), ["y"]))
    found = adequacy_of(result)
    assert found["found"] < found["planted"]
    assert "VER1129" in codes(result)
    assert any("`where`" in one["reason"] for one in found["missed"])
    assert veracity.check(tmp_path / "g").findings[-1].code == "VER1129"


def test_a_draw_that_finds_what_the_others_miss_is_kept(tmp_path: Path) -> None:
    node = make_node("n", lambda x: x.clamp(-30.0, 30.0), passes(3, 4), ["y"])
    result = compiled(tmp_path, node)
    found = adequacy_of(result)
    assert found["found"] == found["planted"] and found["drawn"] >= 1
    assert proof_of(result)["nodes"][0]["fresh"] > 5


DEAD: dict[str, Function] = {
    "a unit that is always off": lambda x: torch.relu(x * torch.tensor([0.0, 1.0, 1.0, 1.0])),
    "a mask": lambda x: (x * 2.0) * torch.tensor([0.0, 1.0, 0.0, 1.0]),
    "a saturated unit": lambda x: torch.tanh(x * 2.0 + torch.tensor([0.0, 0.0, 0.0, 1e4])),
    "a limit that nothing reaches": lambda x: (0.6 + 0.25 * torch.tanh(x)).clamp(-1.0, 1.0),
    "a row that no index reads": lambda x: torch.arange(12.0).reshape(3, 4)[(x[0] > 0).long()] + x,
}


@pytest.mark.parametrize("name", DEAD)
def test_what_nothing_can_show_is_no_fault(name: str, tmp_path: Path) -> None:
    result = compiled(tmp_path, make_node("n", DEAD[name], passes(3, 4), ["y"]))
    assert result == {"n": True}
    assert not result.diagnostics


def test_planting_is_the_same_on_every_run_and_can_be_switched_off(tmp_path: Path) -> None:
    def gated(x: Tensor) -> Tensor:
        return torch.where(x > 0, torch.sin(x) * 2.0, x / 3.0)

    files = []
    for folder in ("one", "two"):
        result = compiled(tmp_path / folder, make_node("n", gated, passes(3, 4), ["y"]))
        files.append((tmp_path / folder / "g/proof.json").read_text())
    nodes = [json.loads(text)["nodes"] for text in files]
    assert nodes[0] == nodes[1]
    off = compiled(tmp_path / "off", make_node("n", gated, passes(3, 4), ["y"]), adequacy=False)
    assert "adequacy" not in proof_of(off)["nodes"][0]
    assert result == off


def test_every_kind_of_draw_has_the_shape_of_its_input() -> None:
    for shape in ((), (0, 2), (2, 3)):
        ends = np.ones(shape)
        values = draws.Values(np.ones((2, *shape)), -ends, ends)
        for name, kind in draws.KINDS.items():
            assert kind(values, 4, draws.source_of(name)).shape == (4, *shape), name


@pytest.mark.parametrize(
    ("function", "factor"),
    [(torch.atan2, 1.0), (torch.logaddexp, 60.0)],
    ids=["atan2", "logaddexp"],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_corners_that_an_export_can_get_right_are_right(
    function: Function, factor: float, backend: str, tmp_path: Path
) -> None:
    given = passes(4, 2, 3, factor=factor)
    node = make_node("n", lambda x: function(x[0], x[1]), given, ["y"], export_with=backend)
    result = compiled(tmp_path, node)
    assert result == {"n": True}
    assert not result.diagnostics


def test_functions_in_the_place_of_operations_are_what_they_stand_for() -> None:
    values = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-30, -3e20, float("inf"), float("-inf")])
    left, right = torch.meshgrid(values, values, indexing="ij")
    for ours, theirs in (
        (onnx_corners.atan2, torch.atan2),
        (onnx_corners.logaddexp, torch.logaddexp),
    ):
        want, found = theirs(left, right), ours(left, right)
        torch.testing.assert_close(found, want, equal_nan=True)
        assert torch.equal(found.signbit(), want.signbit())
