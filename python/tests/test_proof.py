"""What a proof rests on: fresh inputs, repetition, tolerances, time, and where it is kept."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch
import veracity
from nodes_by_hand import edge, make_node, recording
from torch import Tensor, nn
from veracity import annotate
from veracity.export.compile import CompileResult, compile_recording
from veracity.export.fresh import DRAWS, INSIDE
from veracity.tracing.nodes import Node

BACKENDS = ["jit", "onnx", "pt2"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
DTYPES = [*FLOATS, "int8", "int16", "int32", "int64", *UNSIGNED, "bool"]


def traced(folder: Path, run: Callable[[], Any], passes: int = 1, **options: Any) -> CompileResult:
    """Record `run` and compile it."""
    with veracity.session("g", save_path=folder), torch.no_grad():
        for _ in range(passes):
            run()
    result = veracity.compile_graph(strict=False, **options)
    assert isinstance(result, CompileResult)
    return result


def compiled(folder: Path, *nodes: Node, **options: Any) -> CompileResult:
    """Compile nodes that were made by hand."""
    result = compile_recording(recording(folder / "g", nodes), strict=False, **options)
    assert isinstance(result, CompileResult)
    return result


def proof_of(result: CompileResult) -> dict[str, Any]:
    assert result.proof is not None
    return dict(json.loads(result.proof.to_json()))


def node_proof(result: CompileResult, name: str = "n") -> dict[str, Any]:
    return next(node for node in proof_of(result)["nodes"] if node["node"] == name)


def kinds(result: CompileResult, verdict: str) -> set[str]:
    """Return the kinds of samples, `sample` or `fresh`, with this verdict."""
    return {
        sample["label"].split()[0]
        for node in proof_of(result)["nodes"]
        for port in node["ports"]
        for sample in port["samples"]
        if sample["verdict"] == verdict
    }


# --- fresh inputs ------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_pass_is_enough_to_find_a_frozen_branch_of_a_function(
    backend: str, tmp_path: Path
) -> None:
    @annotate.method("n", export_with=backend)
    def act(x: Tensor) -> Tensor:
        y = x * 2 if x.sum() > 0 else x * 3
        return y

    result = traced(tmp_path, lambda: act(torch.rand(4)))
    assert result == {"n": False}
    assert (kinds(result, "proved"), kinds(result, "disproved")) == ({"sample", "fresh"}, {"fresh"})
    (found,) = (one for one in result.diagnostics if "frozen while recording" in one.message)
    assert found.message.startswith("a branch or constant of `n` was frozen while recording")
    assert found.location.startswith(f"{__file__}:")


class Branching(nn.Module):
    """Doubles what it gives when the mean of its input is positive; remembers its last output."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("last", torch.zeros(1, 3))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        """Branch on the input."""
        self.calls += 1
        y = torch.tanh(self.linear(x) + self.last)
        self.last = y * 0.5
        return y * 2 if x.mean() > 0 else y


def run_module(model: nn.Module, after: Callable[[Tensor], Tensor] = lambda y: y) -> None:
    x = annotate.input_tensors("n", {"x": torch.rand(1, 3)})
    annotate.module("n", model)
    y = after(model(x))
    annotate.output_tensors("n", {"y": y}, export_with="jit")


def test_one_pass_is_enough_to_find_a_frozen_branch_of_a_module(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Branching()
    result = traced(tmp_path, lambda: run_module(model))
    assert result == {"n": False}
    assert kinds(result, "disproved") == {"fresh"}


def test_running_code_again_leaves_no_traces(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Branching()
    with veracity.session("g", save_path=tmp_path), torch.no_grad():
        run_module(model)
    before = (model.calls, model.last, model.last.clone(), torch.get_rng_state())
    hooks = len(model._forward_hooks)
    veracity.compile_graph(strict=False)
    assert (model.calls, hooks) == (before[0], 0)
    assert model.last is before[1]
    assert torch.equal(model.last, before[2])
    assert torch.equal(torch.get_rng_state(), before[3])


@pytest.mark.parametrize(
    "after",
    [lambda y: y.clamp(-100, 0.9), lambda y: y.clamp_(-100, 0.9), lambda y: y.mul_(1)],
    ids=["another tensor", "the same, written", "written without effect"],
)
def test_a_module_that_is_only_a_part_of_its_node_is_no_reference(
    after: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 3)
    result = traced(tmp_path, lambda: run_module(model, after))
    assert result == {"n": True}
    assert node_proof(result)["fresh"] >= DRAWS


def test_what_an_exporter_lost_shows_outside_of_the_recorded_range(tmp_path: Path) -> None:
    identity = torch.jit.trace(lambda x: x * 1, torch.ones(3))  # type: ignore[no-untyped-call]
    identity.save(str(tmp_path / "no_relu.pt"))
    passes = [{"x": torch.rand(3)} for _ in range(3)]
    node = make_node(
        "n",
        torch.relu,
        passes,
        ["y"],
        export_with=None,
        backend_params={"model_path": tmp_path / "no_relu.pt"},
    )
    result = compiled(tmp_path, node)
    assert result == {"n": False}
    assert kinds(result, "disproved") == {"fresh"}
    assert compiled(tmp_path, node, fresh_inputs=False) == {"n": True}


def test_draws_are_the_same_on_every_run_and_kept_with_their_seed(tmp_path: Path) -> None:
    files = []
    for folder in ("one", "two"):
        node = make_node("n", torch.tanh, [{"x": torch.arange(3.0)}], ["y"])
        result = compiled(tmp_path / folder, node)
        files.append((tmp_path / folder / "g/g_samples.safetensors").read_bytes())
    assert files[0] == files[1]
    with safetensors.safe_open(tmp_path / "one/g/g_samples.safetensors", "pt") as file:
        metadata, fresh = file.metadata(), file.get_tensor("fresh/n/in/x")
    assert metadata["veracity.samples"] == "1"
    assert metadata["origin"] == "python"
    assert metadata["made_with"] == f"torch {torch.__version__}"
    assert int(metadata["seed"]) == proof_of(result)["reference"]["seed"]
    assert fresh.shape == (DRAWS, 3)
    inside = (fresh[:INSIDE] >= 0) & (fresh[:INSIDE] <= 2)
    assert bool(inside.all())
    assert float(fresh[INSIDE:].min()) < 0
    assert float(fresh[INSIDE:].max()) > 2
    assert float(fresh.abs().max()) <= 4
    other = compile_recording(recording(tmp_path / "h", [node]), strict=False)
    assert isinstance(other, CompileResult)
    assert proof_of(other)["reference"]["seed"] != int(metadata["seed"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_every_dtype_and_shape_is_drawn(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    value = torch.ones(shape).to(getattr(torch, dtype))
    result = compiled(tmp_path, make_node("n", lambda x: x.clone(), {"x": value}, ["y"]))
    assert result == {"n": True}
    fresh = safetensors.torch.load_file(tmp_path / "g/g_samples.safetensors")["fresh/n/in/x"]
    assert fresh.dtype == value.dtype
    assert fresh.shape == (DRAWS, *shape)
    if not value.is_floating_point() and dtype != "bool" and value.numel():
        assert bool((fresh == 1).all()), "integers stay in the recorded range"


@pytest.mark.parametrize(
    ("function", "value", "fewer"),
    [
        (torch.acos, torch.tensor([0.9, -0.9]), True),
        (lambda x: torch.sin(x * 1e8), torch.tensor([0.5, 0.1]), True),
        (lambda x: torch.floor(x * 1e7) % 7, torch.tensor([0.5, 0.1]), True),
        (lambda x: (x * 1e7).long() % 2, torch.tensor([0.5, 0.1]), True),
        (lambda x: x.masked_fill(x > 0.2, float("inf")), torch.tensor([0.5, 0.1]), False),
        (torch.tanh, torch.tensor([0.5, 0.1]), False),
    ],
    ids=["NaN", "chaos", "steps", "integers", "recorded infinities", "plain"],
)
def test_draws_whose_answer_is_a_matter_of_rounding_do_not_count(
    function: Any, value: Tensor, fewer: bool, tmp_path: Path
) -> None:
    result = compiled(tmp_path, make_node("n", function, {"x": value}, ["y"], export_with="onnx"))
    assert result == {"n": True}
    found = node_proof(result)
    assert (found["fresh"] < DRAWS) == fewer
    assert ("tell nothing" in found.get("fresh_note", "")) == fewer


def test_code_that_cannot_be_run_again_is_noted_and_no_failure(tmp_path: Path) -> None:
    """Code that can be run again and gives other values than were recorded is a disagreement."""

    class Policy:
        ready = True

        @annotate.method("strict", export_with="jit")
        def strict(self, x: Tensor) -> Tensor:
            if not self.ready:
                raise ValueError("the robot is asleep")
            y = x * 2
            return y

        @annotate.method("guided", export_with="jit")
        def guided(self, x: Tensor) -> Tensor:
            y = x * gain[0]
            return y

    gain = [2.0]
    policy = Policy()
    with veracity.session("g", save_path=tmp_path), torch.no_grad():
        policy.strict(torch.rand(2))
        policy.guided(torch.rand(2))
    policy.ready, gain[0] = False, 3.0
    result = veracity.compile_graph(strict=False)
    assert isinstance(result, CompileResult)
    assert result == {"strict": True, "guided": False}
    notes = {node["node"]: node["fresh_note"] for node in proof_of(result)["nodes"]}
    assert notes["strict"] == "its code was not run again: ValueError: the robot is asleep"
    assert "gives other values than were recorded" in notes["guided"]
    errors = [found for found in result.diagnostics if found.severity == "error"]
    assert [(found.code, found.node) for found in errors] == [("VER1005", "guided")]


def test_values_that_the_code_refuses_are_no_inputs_of_it(tmp_path: Path) -> None:
    @annotate.method("n", export_with="jit")
    def picky(x: Tensor) -> Tensor:
        if not torch.jit.is_scripting() and float(x.detach().min()) < 0:
            raise ValueError("negative")
        y = x * 2
        return y

    result = traced(tmp_path, lambda: picky(torch.rand(3)))
    assert result == {"n": True}
    assert "some values are refused: ValueError: negative" in node_proof(result)["fresh_note"]


def test_large_nodes_and_random_ones_are_not_tried(tmp_path: Path) -> None:
    @annotate.method("noise", export_with="jit")
    def noise(x: Tensor) -> Tensor:
        y = x + torch.rand(3)
        return y

    @annotate.method("large", export_with="jit")
    def large(x: Tensor) -> Tensor:
        y = x.expand(5_000_000) + 1
        return y

    def run() -> None:
        noise(torch.rand(3))
        large(torch.rand(1))

    result = traced(tmp_path, run)
    notes = {node["node"]: node["fresh_note"] for node in proof_of(result)["nodes"]}
    assert notes == {
        "noise": "not tried: the node draws random numbers",
        "large": "not tried: inputs and outputs take more than 16 MB",
    }
    metadata = safetensors.safe_open(tmp_path / "g/g_samples.safetensors", "pt").metadata()
    assert json.loads(metadata["fresh_notes"]) == notes


def test_code_on_numpy_and_nested_arguments_is_run_again(tmp_path: Path) -> None:
    @annotate.method("n", export_with="jit")
    def mix(parts: dict[str, Any], gain: float, flag: bool = True) -> Tensor:
        y = torch.from_numpy(parts["a"] * 2) * gain + parts["b"][0]
        return y if flag and float(y.detach().sum()) > 0 else -y

    def run() -> None:
        mix({"a": np.ones(3, np.float32), "b": [torch.ones(3)]}, 0.5)

    result = traced(tmp_path, run)
    assert "fresh_note" not in node_proof(result)
    assert kinds(result, "disproved") == {"fresh"}, "the branch was found"


def test_a_page_lies_beside_the_bundle_and_can_be_had_elsewhere(tmp_path: Path) -> None:
    proof = compiled(tmp_path, make_node("n", lambda x: x * 2, {"x": torch.ones(4)}, ["y"])).proof
    assert proof is not None
    page = (tmp_path / "g/report.html").read_text()
    assert 'class="verdict proved"' in page
    assert proof.to_html(tmp_path / "other/page.html").read_text() == page
    written = proof.write_reports(tmp_path / "reports/policy.v1")
    assert [path.name for path in written] == [
        "policy.v1.json",
        "policy.v1.txt",
        "policy.v1.html",
    ]
    assert json.loads(written[0].read_text()) == proof.data
    assert written[1].read_text() == str(proof)
    assert written[2].read_text() == page


def test_a_page_that_cannot_be_written_stops_no_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space is left")

    monkeypatch.setattr(veracity.ProofResult, "to_html", fail)
    result = compiled(tmp_path, make_node("n", lambda x: x * 2, {"x": torch.ones(4)}, ["y"]))
    assert result == {"n": True}
    assert "report.html was not written: no space is left" in (tmp_path / "g/log.txt").read_text()


def test_a_failure_is_told_with_all_that_helps(tmp_path: Path) -> None:
    node = make_node("n", lambda x: x * 2, {"x": torch.arange(4.0)}, ["y"])
    node.samples[0].outputs["y"] = node.samples[0].outputs["y"] + torch.tensor([0, 0, 0, 0.5])
    result = compiled(tmp_path, node, rtol=1e-3, atol=1e-4, fresh_inputs=False)
    log = (tmp_path / "g/log.txt").read_text()
    for text in (str(result.proof), log):
        for said in (
            "n/y sample 0: disproved (rtol 0.001, atol 0.0001)",
            "source    float32[4], from 0 to 6.5",
            "exported  float32[4], from 0 to 6",
            "max 0.5, mean 0.125, rms 0.25",
            "p50 0, p75 0.125, p90 0.35, p99 0.485, p99.5 0.4925",
            "worst     at [3]: source 6.5, exported 6",
            "1 of 4",
            "0 proved, 1 disproved, 0 not comparable",
        ):
            assert said in text
    assert f"details in {tmp_path / 'g/log.txt'}" in log


# --- repetition --------------------------------------------------------------------------------


def test_what_disagrees_with_itself_is_unstable_and_not_wrong(tmp_path: Path) -> None:
    @annotate.method("n", export_with="jit")
    def noise(x: Tensor) -> Tensor:
        y = x + torch.rand_like(x)
        return y

    result = traced(tmp_path, lambda: noise(torch.rand(3)))
    assert result == {"n": False}, "nothing was shown"
    found = node_proof(result)
    assert found["verdict"] == "not_comparable"
    assert found["ports"][0]["unstable"] is True
    assert [reason["code"] for reason in found["reasons"]] == ["VER1109"] * len(found["reasons"])
    assert result.proof is not None
    assert result.proof.verdict == "not_comparable"


def counts_its_calls() -> Callable[[Tensor], Tensor]:
    calls: list[int] = []

    def count(x: Tensor) -> Tensor:
        calls.append(1)
        return x * 2 + len(calls)

    return count


def remembers_the_largest() -> Callable[[Tensor], Tensor]:
    """A state that shows only after larger values."""
    seen: list[float] = [0.0]

    def remember(x: Tensor) -> Tensor:
        y = x + 0.1 * (seen[0] > 1.2)
        seen[0] = max(seen[0], float(x.detach().max()))
        return y

    return remember


#: Code of which one pass says nothing about the next.
UNREPEATABLE: dict[str, Callable[[], Callable[[Tensor], Tensor]]] = {
    "torch draws a constant": lambda: lambda x: x + torch.rand(3),
    "python draws": lambda: lambda x: x * random.random(),
    "numpy draws": lambda: lambda x: x * float(np.random.rand()),  # noqa: NPY002
}
#: Code that shows it only when it is run again.
CHANGING = {"calls are counted": counts_its_calls, "values are kept": remembers_the_largest}


@pytest.mark.parametrize("fresh_inputs", [True, False])
@pytest.mark.parametrize("made", UNREPEATABLE.values(), ids=UNREPEATABLE)
def test_what_was_drawn_in_the_only_pass_is_an_assumption(
    made: Callable[[], Callable[[Tensor], Tensor]], fresh_inputs: bool, tmp_path: Path
) -> None:
    compute = made()

    def run() -> None:
        x = annotate.input_tensors("n", {"x": torch.rand(3)})
        annotate.output_tensors("n", {"y": compute(x)}, export_with="onnx")

    result = traced(tmp_path, run, fresh_inputs=fresh_inputs)
    assert result == {"n": True}
    assert "VER0916" in [found.code for found in result.assumptions]
    messages = [one["message"] for one in node_proof(result)["assumptions"]]
    assert any("draws random numbers" in one for one in messages)
    # It travels: the samples say so, and no check elsewhere proves it.
    checked = veracity.check(tmp_path / "g")
    assert (checked.verdict, checked.nodes) == ("conditional", {"n": "conditional"})


@pytest.mark.parametrize("made", CHANGING.values(), ids=CHANGING)
def test_code_that_gives_other_values_when_it_is_run_again_is_proved_of_nothing(
    made: Callable[[], Callable[[Tensor], Tensor]], tmp_path: Path
) -> None:
    function = annotate.method("n", export_with="onnx")(made())
    result = traced(tmp_path, lambda: function(torch.tensor([0.0, 0.5, 1.0])))
    assert result == {"n": False}
    found = node_proof(result)
    assert (found["verdict"], found["ports"][0]["unstable"]) == ("not_comparable", True)
    assert "run again on the same inputs" in found["reasons"][0]["message"]
    assert veracity.check(tmp_path / "g").verdict == "not_comparable"


def test_draws_that_do_not_matter_are_shown_by_more_passes(tmp_path: Path) -> None:
    def run() -> None:
        x = annotate.input_tensors("n", {"x": torch.rand(3)})
        random.random()
        annotate.output_tensors("n", {"y": x * 2}, export_with="onnx")

    once = traced(tmp_path / "one", run)
    assert (once, once.verdict) == ({"n": True}, "conditional")
    often = traced(tmp_path / "often", run, passes=3)
    assert often == {"n": True}
    assert often.verdict == "proved" and not often.diagnostics


# --- tolerances --------------------------------------------------------------------------------


def scaled(factor: float) -> Node:
    """Return a linear node that is said to have computed `factor` times what it computes."""
    torch.manual_seed(0)
    weight = torch.randn(64, 32)
    node = make_node("n", lambda x: x @ weight, [{"x": torch.randn(1, 64)}], ["y"])
    node.samples[0].outputs["y"] = node.samples[0].outputs["y"] * factor
    return node


def test_auto_tolerances_are_tight_and_follow_the_reduction(tmp_path: Path) -> None:
    options = {"tolerance": "auto", "fresh_inputs": False}
    assert compiled(tmp_path, scaled(1.0001), fresh_inputs=False) == {"n": True}
    result = compiled(tmp_path, scaled(1.0), **options)
    assert result == {"n": True}
    policy = proof_of(result)["policy"]
    assert policy["basis"] == "auto"
    eps = torch.finfo(torch.float32).eps
    assert policy["ports"]["n/y"]["rtol"] == pytest.approx(8 * eps * 8)  # 64 terms
    assert 0 < policy["ports"]["n/y"]["atol"] < 1e-3
    node = make_node(
        "n", lambda x: x.half().float() @ torch.ones(4, 2), {"x": torch.rand(1, 4)}, ["y"]
    )
    assert compiled(tmp_path / "cast", node, tolerance="auto") == {"n": True}


def test_fresh_inputs_hold_under_auto_tolerances(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(12, 64), nn.ELU(), nn.Linear(64, 4), nn.Softmax(-1)).eval()
    for backend in BACKENDS:
        node = make_node(
            "n", model, [{"x": torch.randn(1, 12)} for _ in range(3)], ["y"], export_with=backend
        )
        result = compiled(tmp_path / backend, node, tolerance="auto")
        assert result == {"n": True}, result.proof
        assert node_proof(result)["fresh"] == DRAWS


@pytest.mark.parametrize(
    ("operation", "args", "length"),
    [
        ("linear", (torch.ones(2, 7), torch.ones(3, 7)), 7),
        ("addmm", (torch.ones(3), torch.ones(2, 7), torch.ones(7, 3)), 7),
        ("conv2d", (torch.ones(1, 4, 8, 8), torch.ones(2, 4, 3, 3)), 36),
        ("conv_transpose2d", (torch.ones(1, 4, 8, 8), torch.ones(4, 2, 3, 3)), 36),
        ("mean", (torch.ones(2, 5),), 10),
        ("softmax", (torch.ones(2, 5), -1), 5),
        ("einsum", ("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5)), 4),
        ("tanh", (torch.ones(9),), 1),
    ],
)
def test_the_length_of_a_reduction_is_read_from_its_call(
    operation: str, args: tuple[Any, ...], length: int
) -> None:
    from veracity.export.auto_tolerance import reduction_of

    function = getattr(torch.nn.functional, operation, None) or getattr(torch, operation)
    assert reduction_of(operation, args, {}, function(*args)) == length


def test_a_tolerance_may_be_for_one_output(tmp_path: Path) -> None:
    node = make_node("policy", lambda x: (x * 2, x * 2), {"x": torch.ones(2)}, ["action", "value"])
    for port in ("action", "value"):
        node.samples[0].outputs[port] = torch.full((2,), 2.1)
    result = compiled(
        tmp_path, node, fresh_inputs=False, tolerances={"policy/action": {"atol": 0.2}}
    )
    assert result.proof is not None
    assert [(port.port, port.verdict) for port in result.proof.ports] == [
        ("policy/action", "proved"),
        ("policy/value", "disproved"),
    ]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ({"tolerances": {"n/yy": {"atol": 1}}}, "VER1112", "did you mean 'n/y'?"),
        ({"tolerances": {"n/y": {"abs": 1}}}, "VER0803", "give `dict"),
        ({"tolerances": {"n/y": {"atol": -1}}}, "VER0803", "at least 0"),
        ({"tolerance": "tight"}, "VER0803", '"auto"'),
        ({"rtol": float("nan")}, "VER0803", "finite"),
    ],
)
def test_a_tolerance_that_means_nothing_is_refused(
    options: dict[str, Any], code: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(veracity.CompareError, match=code) as found:
        compiled(tmp_path, scaled(1.0), **options)
    assert said in str(found.value)


# --- over time ---------------------------------------------------------------------------------


def counter(passes: int = 4, factor: float = 2) -> Node:
    values = [{"step": torch.ones(2), "total": torch.full((2,), 5.0)} for _ in range(passes)]

    def count(step: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        total = total + step
        return total * factor, total

    return make_node("n", count, values, ["shown"], states=["total"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_bundle_that_repeats_the_episode_is_proved_over_time(
    backend: str, tmp_path: Path
) -> None:
    node = counter()
    node.export_with = backend
    result = compiled(tmp_path, node)
    assert result == {"n": True}
    rollout = proof_of(result)["rollout"]
    assert (rollout["verdict"], rollout["ticks"]) == ("proved", 4)
    assert rollout["resets"] >= 2


def test_a_state_that_starts_elsewhere_is_an_error_over_time_only(tmp_path: Path) -> None:
    made = recording(tmp_path / "g", [counter()])
    made.edges.append(edge("n/total", "n/total", 1, torch.zeros(2)))
    with pytest.raises(veracity.ProofError, match="VER1111") as found:
        compile_recording(made)
    assert "leaves the recorded episode at tick 0" in str(found.value)
    result = compile_recording(made, strict=False)
    assert isinstance(result, CompileResult)
    assert result == {"n": True}, "the node alone is right"
    assert result.proof is not None
    assert result.proof.verdict == "disproved"
    assert result.proof.first_divergence is not None
    assert result.proof.first_divergence.sample == "tick 0"
    summary = (tmp_path / "g/log.txt").read_text().splitlines()[-1]
    assert "; 1 of 1 model passed validation; 1 error; details in " in summary


def test_generated_nodes_are_proved_on_fresh_values_alone(tmp_path: Path) -> None:
    passes = [{"x": torch.full((2,), float(tick))} for tick in range(5)]
    first = [torch.zeros(2), torch.ones(2)]
    nodes = [make_node(name, lambda x: x + 1, passes, ["y"]) for name in ("a", "b")]
    made = recording(tmp_path / "g", nodes, edge("a/y", "b/x", 2, *first))
    result = compile_recording(made)
    assert isinstance(result, CompileResult)
    found = {n["node"]: (n["samples"], n["fresh"]) for n in proof_of(result)["nodes"]}
    generated = {name: count for name, count in found.items() if name not in ("a", "b")}
    assert len(generated) == 3
    assert set(generated.values()) == {(0, DRAWS)}
    assert proof_of(result)["verdict"] == "proved"


# --- the proof in the bundle -------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_proof_can_be_repeated(backend: str, tmp_path: Path) -> None:
    node = counter()
    node.export_with = backend
    made = compiled(tmp_path, node).proof
    assert made is not None
    again = veracity.check(tmp_path / "g")
    assert again.verdict == made.verdict == "proved"
    assert again.coverage == made.coverage
    assert [(port.port, port.part) for port in again.ports] == [
        ("n/shown", "node"),
        *((port.port, port.part) for port in made.ports[1:]),
    ]
    assert all(port.samples > 0 and port.max_abs == 0 for port in again.ports)
    assert again.first_divergence is None
    assert str(again).rstrip().splitlines()[-1].endswith("0 disproved, 0 not comparable")
    assert json.loads(again.to_json())["subject"] == json.loads(made.to_json())["subject"]


def test_a_check_may_be_judged_otherwise(tmp_path: Path) -> None:
    made = compiled(tmp_path, scaled(1.0001), fresh_inputs=False)
    assert made == {"n": True}
    bundle = tmp_path / "g"
    exact = {"atol": 0.0, "rtol": 0.0}
    assert veracity.check(bundle).verdict == "proved"
    assert veracity.check(bundle, tolerance=exact).verdict == "disproved"
    assert veracity.check(bundle, tolerances={"n/y": exact}).verdict == "disproved"
    wrong = veracity.check(bundle, tolerance=exact)
    assert wrong.first_divergence == veracity.proof.Divergence("n/y", "sample 0")
    assert wrong.ports[0].reasons
    with pytest.raises(veracity.ProofError, match="VER1113"):
        veracity.check(bundle, tolerance="auto")
    with pytest.raises(veracity.CompareError, match="VER1112"):
        veracity.check(bundle, tolerances={"n/z": exact})
    for nonsense in ({"atol": -1.0}, {"abs": 1.0}, "tight"):
        with pytest.raises(veracity.CompareError, match="VER0803"):
            veracity.check(bundle, tolerance=nonsense)  # type: ignore[arg-type]


def test_a_changed_bundle_is_sealed_and_then_proved_anew(tmp_path: Path) -> None:
    compiled(tmp_path, counter())
    bundle = tmp_path / "g"
    torch.jit.script(nn.Identity()).save(str(bundle / "n.pt"))
    with pytest.raises(veracity.BundleError, match="VER02"):
        veracity.check(bundle)
    assert veracity.seal(bundle) == ["n.pt"]
    with pytest.raises(veracity.ProofError, match="VER1102"):
        veracity.InferenceManager(bundle, require_proof=True)
    assert veracity.check(bundle).verdict != "proved"


def test_a_runner_may_ask_for_a_proof(tmp_path: Path, counter_bundle: Path) -> None:
    def load(path: Path) -> veracity.InferenceManager:
        return veracity.InferenceManager(path, require_proof=True)

    with pytest.raises(veracity.ProofError, match="VER1101"):
        load(counter_bundle)
    compiled(tmp_path, counter())
    assert load(tmp_path / "g").outputs == ["n/shown"]
    wrong = veracity.check(tmp_path / "g", tolerances={"n/shown": {"atol": 0.0, "rtol": 0.0}})
    wrong.save()
    assert load(tmp_path / "g").outputs == ["n/shown"], "exact is exact"
    compiled(tmp_path, scaled(2.0), fresh_inputs=False)
    with pytest.raises(veracity.ProofError, match="VER1103"):
        load(tmp_path / "g")


@pytest.mark.parametrize("backend", BACKENDS)
def test_pt2_runs_like_the_other_formats(backend: str, tmp_path: Path) -> None:
    node = counter()
    node.export_with = backend
    compiled(tmp_path, node)
    manager = veracity.InferenceManager(tmp_path / "g")
    shown = [manager({"n/step": torch.ones(2)})["n/shown"] for _ in range(3)]
    assert [value[0].item() for value in shown] == [12, 14, 16]
    manager.reset()
    assert manager({"n/step": torch.ones(2)})["n/shown"][1].item() == 12


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_binary_proves_every_format_and_finds_a_swapped_model(
    backend: str, tmp_path: Path
) -> None:
    node, other = counter(), counter(factor=3)
    node.export_with = other.export_with = backend
    compiled(tmp_path / "good", node)
    compiled(tmp_path / "other", other)
    good, swapped = checked_by_binary(tmp_path / "good/g"), tmp_path / "other/g"
    assert (good["verdict"], good["coverage"]["not_comparable"]) == ("proved", 0)
    samples = "g_samples.safetensors"
    (swapped / samples).write_bytes((tmp_path / "good/g" / samples).read_bytes())
    veracity.seal(swapped)
    assert checked_by_binary(swapped)["verdict"] == "disproved"


def checked_by_binary(bundle: Path) -> dict[str, Any]:
    """Run `veracity check`, which has no Python in it."""
    binary = Path(__file__).parents[2] / "target/debug/veracity"
    done = subprocess.run(
        [binary, "check", bundle, "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "VIRTUAL_ENV": sys.prefix},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_check_of_onnx_needs_no_torch(tmp_path: Path) -> None:
    node = counter()
    node.export_with = "onnx"
    compiled(tmp_path, node)
    code = f"""
import sys
import veracity
found = veracity.check({str(tmp_path / "g")!r})
assert found.verdict == "proved", found
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- size --------------------------------------------------------------------------------------

_LARGE = """
import sys
import torch
sys.path.insert(0, {tests!r})
from nodes_by_hand import make_node, recording
from pathlib import Path
from veracity.export import compile as compiling

def status(key):
    return int(open("/proc/self/status").read().split(key + ":")[1].split()[0]) / 1024

def run(elements, name):
    node = make_node("n", lambda x: x.expand(elements) + 1, {{"x": torch.zeros(1)}}, ["y"])
    if {wrong}:
        node.samples[0].outputs["y"][5] = 3
    made = recording(Path({folder!r}) / name, [node])
    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    found = compiling.compile_recording(made, strict=False)
    assert found == {{"n": not {wrong}}}, found
    return status("VmHWM") - before

run(10, "warm")
print(run(20_000_000, "large"))
"""


@pytest.mark.parametrize("wrong", [False, True])
def test_large_outputs_take_little_more_memory_than_the_model(wrong: bool, tmp_path: Path) -> None:
    code = _LARGE.format(tests=str(Path(__file__).parent), wrong=wrong, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    output = 20_000_000 * 4 / 2**20
    assert float(done.stdout.split()[-1]) < output + 50


def test_what_tracing_refuses_is_not_proved_by_the_samples_that_were_kept(tmp_path: Path) -> None:
    """The sixth pass differs, and five are kept: all samples agree, and the export is wrong."""
    gain = 1.0
    with veracity.session("late", save_path=tmp_path):
        for step in range(6):
            gain = 3.0 if step == 5 else gain
            x = annotate.input_tensors("scale", {"x": torch.randn(2)})
            annotate.output_tensors("scale", {"y": x * gain}, export_with="jit")
    with pytest.raises(veracity.VeracityError) as refused:
        veracity.compile_graph()
    assert refused.value.diagnostics[0].code == "VER0912"
    bundle = tmp_path / "late"
    proof = json.loads((bundle / "proof.json").read_text())
    assert proof["verdict"] == "disproved" and proof["coverage"]["disproved"] >= 1
    assert "VER0912" in (bundle / "report.html").read_text()
    again = veracity.check(bundle)
    assert again.verdict == "disproved" and "VER0912" in str(again)
    with pytest.raises(veracity.VeracityError, match="disproved"):
        veracity.InferenceManager(bundle, require_proof=True)
