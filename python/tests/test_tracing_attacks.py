"""Code that once came out silently wrong, or broke: right now, or told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import veracity
import veracity._current
import yaml
from support.findings import about_the_code
from torch import Tensor, nn
from veracity import annotate

Found = list[tuple[str, str]]


def compile_found() -> tuple[dict[str, bool] | None, Found]:
    """Compile; return the verdicts, or `None` when refused, and what was told."""
    try:
        result = veracity.compile_graph(visualize=False)
    except veracity.VeracityError as error:
        return None, [(one.code, one.severity) for one in about_the_code(error.diagnostics)]
    return dict(result), [(one.code, one.severity) for one in about_the_code(result.diagnostics)]


def trace(compute: Callable[[Tensor], Tensor], folder: Path, passes: int = 1) -> Found:
    with veracity.session("g", save_path=folder):
        for number in range(passes):
            seed = torch.Generator(torch.get_default_device()).manual_seed(number)
            x = annotate.input_tensors("n", {"x": torch.randn(4, generator=seed)})
            annotate.output_tensors("n", {"y": compute(x)}, export_with="jit")
    return compile_found()[1]


def stops_above_a_limit(x: Tensor) -> Tensor:
    return x * 0 if x.abs().max().item() > 25 else x * 1


def sized_by_where(x: Tensor) -> Tensor:
    return x * torch.where(x > 0)[0].shape[0]


def counts_a_selection(x: Tensor) -> Tensor:
    return x * sum(1 for _ in x[x > 0])


def leaves_under_autocast(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x * x.tolist()[0]


def draws(x: Tensor) -> Tensor:
    return x + torch.randn(4)


@pytest.mark.parametrize(
    ("compute", "passes", "code"),
    [
        (stops_above_a_limit, 1, "VER0911"),
        (stops_above_a_limit, 3, "VER0911"),
        (sized_by_where, 1, "VER0911"),
        (counts_a_selection, 1, "VER0911"),
        (leaves_under_autocast, 1, "VER0911"),
        (draws, 1, "VER0916"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_it_is_told(
    compute: Callable[[Tensor], Tensor], passes: int, code: str, tmp_path: Path
) -> None:
    assert (code, "warning") in trace(compute, tmp_path, passes)


def prints_and_checks(x: Tensor) -> Tensor:
    print(x.mean().item())
    assert torch.isfinite(x).all()
    if x.sum() > 1e6:
        raise ValueError(x.sum().item())
    return x * 2


class Copies(threading.Thread):
    """A thread with a `run` of its own."""

    def __init__(self, source: Tensor, target: Tensor) -> None:
        """Copy `source` to `target`."""
        super().__init__()
        self.source, self.target = source, target

    def run(self) -> None:
        """Copy."""
        self.target.copy_(self.source)


def computes_in_a_thread(x: Tensor) -> Tensor:
    target = torch.zeros(4)
    thread = Copies(x, target)
    thread.start()
    thread.join()
    return x + target


@pytest.mark.parametrize("compute", [prints_and_checks, computes_in_a_thread])
@pytest.mark.parametrize("passes", [1, 3])
def test_it_is_right_in_silence(
    compute: Callable[[Tensor], Tensor], passes: int, tmp_path: Path
) -> None:
    assert trace(compute, tmp_path, passes) == []
    fresh = torch.tensor([0.5, -2.0, 3.0, 1.0])
    exported = torch.jit.load(str(tmp_path / "g" / "n.pt"))
    torch.testing.assert_close(exported(fresh), compute(fresh))


def test_feedback_through_a_buffer_survives_any_number_of_passes(tmp_path: Path) -> None:
    last = torch.zeros(4)
    with veracity.session("g", save_path=tmp_path):
        for number in range(20):
            x, previous = annotate.input_tensors("n", {"x": torch.full((4,), number), "last": last})
            y = torch.tanh(x + previous)
            annotate.output_tensors("n", {"y": y}, export_with="jit")
            last.copy_(y)
    assert compile_found() == ({"n": True}, [])
    assert pipeline(tmp_path)["feedback_flow"] == {"n/y": ["n/last"]}


def pipeline(folder: Path) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = yaml.safe_load((folder / "g/g.yaml").read_text())[
        "pipeline"
    ]
    return found


class Mean(nn.Module):
    """A running mean that is changed in place."""

    mean: Tensor

    def __init__(self) -> None:
        """Start from zero."""
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        """Take the mean away."""
        self.mean.lerp_(x, 0.1)
        return x - self.mean


def share_a_module(folder: Path, passes: int) -> None:
    model = Mean()
    with torch.no_grad(), veracity.session("g", save_path=folder):
        for number in range(passes):
            x = annotate.input_tensors("a", {"x": torch.full((4,), float(number + 1))})
            annotate.module("a", model)
            y = model(x)
            annotate.output_tensors("a", {"y": y}, export_with="jit")
            y = annotate.input_tensors("b", {"y": y})
            annotate.module("b", model)
            annotate.output_tensors("b", {"z": model(y)}, export_with="jit")


def test_a_state_that_two_nodes_change_goes_from_one_to_the_other(tmp_path: Path) -> None:
    share_a_module(tmp_path, 3)
    assert compile_found() == ({"a": True, "b": True}, [])
    found = pipeline(tmp_path)
    assert found["data_flow"] == {"a/y": ["b/y"], "a/mean": ["b/mean"]}
    assert found["feedback_flow"] == {"b/mean": ["a/mean"]}


def test_a_shared_state_whose_way_back_was_not_seen_is_refused(tmp_path: Path) -> None:
    share_a_module(tmp_path, 1)
    assert ("VER0909", "error") in compile_found()[1]


def test_nodes_that_run_at_different_rates_are_told(tmp_path: Path) -> None:
    with veracity.session("g", save_path=tmp_path):
        for number in range(4):
            if number % 2 == 0:
                f = annotate.input_tensors("slow", {"f": torch.full((4,), float(number))})
                plan = f + 1
                annotate.output_tensors("slow", {"plan": plan}, export_with="jit")
            followed = annotate.input_tensors("quick", {"plan": plan})
            annotate.output_tensors("quick", {"act": followed * 2}, export_with="jit")
    found = compile_found()[1]
    assert found[0] == ("VER0912", "warning"), "`number` decides which nodes run"
    assert {("VER0917", "warning"), ("VER1110", "warning")} <= set(found)


def test_writing_one_of_two_inputs_on_one_memory_is_told(tmp_path: Path) -> None:
    shared = torch.ones(4)
    with veracity.session("g", save_path=tmp_path):
        x, y = annotate.input_tensors("n", {"x": shared, "y": shared})
        x += 1
        annotate.output_tensors("n", {"z": x * y}, export_with="jit")
    assert ("VER0923", "warning") in compile_found()[1]


def test_buffers_on_one_memory_are_refused_and_the_module_is_left_alone(tmp_path: Path) -> None:
    memory = torch.zeros(2, 4)
    model = Mean()
    model.mean = memory[0]
    model.register_buffer("all", memory)
    refused = pytest.raises(veracity.TraceError, match="VER0923")
    with refused, veracity.session("g", save_path=tmp_path):
        annotate.input_tensors("n", {"x": torch.ones(4)})
        annotate.module("n", model)
    assert model.mean.data_ptr() == memory.data_ptr()


def test_numpy_arrays_index_tensors(tmp_path: Path) -> None:
    with veracity.session("g", save_path=tmp_path):
        assert torch.arange(4)[np.array([0, 2])].tolist() == [0, 2]
        x = annotate.input_tensors("n", {"x": torch.arange(4.0)})
        annotate.output_tensors("n", {"y": x[np.array([3, 1])] * 2}, export_with="jit")
    assert compile_found() == ({"n": True}, [])


def test_the_default_device_may_change_during_a_session(tmp_path: Path) -> None:
    torch.set_default_device("cpu")
    with veracity.session("g", save_path=tmp_path):
        torch.set_default_device(None)
        x = annotate.input_tensors("n", {"x": torch.ones(4)})
        annotate.output_tensors("n", {"y": x * 2}, export_with="jit")
    assert compile_found() == ({"n": True}, [])
    del torch._GLOBAL_DEVICE_CONTEXT.device_context  # torch 2.6 knows no default device after that


def test_a_later_pass_that_the_first_program_does_not_fit_is_told(tmp_path: Path) -> None:
    def compute(x: Tensor) -> Tensor:
        chosen = x[x > 0]
        return (chosen * torch.arange(chosen.numel())).sum()

    codes = {code for code, _ in trace(compute, tmp_path, passes=3)}
    assert "VER0911" in codes


Tick = Callable[[Tensor], Tensor]


def keeps_a_row() -> Tick:
    held = torch.zeros(4, 8)

    def tick(x: Tensor) -> Tensor:
        x, h = annotate.input_tensors("n", {"x": x, "h": held[0]})
        y = h * 0.5 + x
        annotate.output_tensors("n", {"h": y, "y": y * 1.0}, export_with="jit")
        held[0] = y
        return y

    return tick


def keeps_two_rows_and_writes_beside_them() -> Tick:
    held = torch.zeros(4, 8)

    def tick(x: Tensor) -> Tensor:
        x, h, c = annotate.input_tensors("n", {"x": x, "h": held[0], "c": held[2]})
        new_h, new_c = h * 0.5 + x, c + h
        y = new_h + new_c
        annotate.output_tensors("n", {"h": new_h, "c": new_c, "y": y}, export_with="jit")
        held[0] = new_h
        held[2] = new_c
        held[3] = 7.0
        return y

    return tick


def keeps_a_column() -> Tick:
    held = torch.zeros(8, 4)

    def tick(x: Tensor) -> Tensor:
        x, h = annotate.input_tensors("n", {"x": x, "h": held[:, -1]})
        y = h * 0.5 + x
        annotate.output_tensors("n", {"h": y, "y": y * 1.0}, export_with="jit")
        held[:, 3] = y
        return y

    return tick


def keeps_a_block() -> Tick:
    held = torch.zeros(2, 3, 10)

    def tick(x: Tensor) -> Tensor:
        x, h = annotate.input_tensors("n", {"x": x, "h": held[1, 2, 1:9]})
        y = h * 0.5 + x
        annotate.output_tensors("n", {"h": y, "y": y * 1.0}, export_with="jit")
        held[..., 1:9][1, -1] = y
        return y

    return tick


def keeps_a_row_before_its_output_is_marked() -> Tick:
    held = torch.zeros(2, 8)

    def tick(x: Tensor) -> Tensor:
        x, h = annotate.input_tensors("n", {"x": x, "h": held[0]})
        y = h * 0.5 + x
        held[0] = y
        annotate.output_tensors("n", {"h": y, "y": y * 1.0}, export_with="jit")
        return y

    return tick


def keeps_all_of_it_before_its_output_is_marked() -> Tick:
    held = torch.zeros(8)

    def tick(x: Tensor) -> Tensor:
        x, h = annotate.input_tensors("n", {"x": x, "h": held})
        y = h * 0.5 + x
        held.copy_(y)
        annotate.output_tensors("n", {"h": y, "y": y * 1.0}, export_with="jit")
        return y

    return tick


def keeps_what_was_two_ticks_ago() -> Tick:
    held = torch.zeros(2, 8)

    def tick(x: Tensor) -> Tensor:
        x, h = annotate.input_tensors("n", {"x": x, "h": held[1]})
        y = h * 0.5 + x
        annotate.output_tensors("n", {"h": y, "y": y * 1.0}, export_with="jit")
        held[1] = held[0]
        held[0] = y
        return y

    return tick


def keeps_an_array() -> Tick:
    held = np.zeros(8, np.float32)

    def tick(x: Tensor) -> Tensor:
        nonlocal held
        given, h = annotate.input_tensors("n", {"x": x.numpy(), "h": held})
        y = h * np.float32(0.5) + given
        annotate.output_tensors("n", {"h": y, "y": y * 1}, export_with="jit")
        held = y
        return torch.tensor(y)

    return tick


@pytest.mark.parametrize(
    "make",
    [
        keeps_a_row,
        keeps_two_rows_and_writes_beside_them,
        keeps_a_column,
        keeps_a_block,
        keeps_a_row_before_its_output_is_marked,
        keeps_all_of_it_before_its_output_is_marked,
        keeps_what_was_two_ticks_ago,
        keeps_an_array,
    ],
    ids=lambda value: value.__name__,
)
def test_state_in_a_part_of_memory_is_fed_back(make: Callable[[], Tick], tmp_path: Path) -> None:
    tick = make()
    with torch.no_grad(), veracity.session("g", save_path=tmp_path):
        for _ in range(20):
            tick(torch.randn(8))
    assert compile_found() == ({"n": True}, [])
    manager = veracity.InferenceManager(tmp_path / "g")
    assert list(manager.inputs) == ["n/x"]
    tick = make()
    for _ in range(20):
        x = torch.randn(8)
        torch.testing.assert_close(manager.run_policy({"n/x": x})["n/y"], tick(x))


@pytest.mark.parametrize(
    ("key", "left"),
    [((0, 3), True), ((slice(None), 3), True), (slice(None), False)],
    ids=str,
)
def test_state_that_is_written_again_is_the_world_s(
    key: int | slice | tuple[int | slice, ...], left: bool, tmp_path: Path
) -> None:
    """It is an input; if something of an output is left in it, a note says so."""
    held = torch.zeros(2, 8)
    with veracity.session("g", save_path=tmp_path):
        for _ in range(4):
            x, h = annotate.input_tensors("n", {"x": torch.randn(8), "h": held[0]})
            y = h * 0.5 + x
            annotate.output_tensors("n", {"y": y}, export_with="jit")
            held[0] = y
            held[key] = 1.0
    result = veracity.compile_graph(visualize=False)
    assert (dict(result), about_the_code(result.diagnostics)) == ({"n": True}, [])
    assert ("VER0941" in [one.code for one in result.diagnostics]) is left
    manager = veracity.InferenceManager(tmp_path / "g")
    assert sorted(manager.inputs) == ["n/h", "n/x"]


def test_a_plain_array_that_is_written_out_of_earshot_is_told(tmp_path: Path) -> None:
    """Compiled code may write into an array that holds traced values; here, through a tensor."""
    held = np.zeros(4, np.float32)
    beside = torch.from_numpy(held)
    refused = pytest.raises(veracity.TraceError, match="VER0922")
    with refused, veracity.session("g", save_path=tmp_path):
        x = annotate.input_tensors("n", {"x": torch.ones(4)})
        held[:] = x.numpy()
        with veracity._current.active.modes.paused():
            beside[0] = 5.0
        annotate.output_tensors("n", {"y": torch.tensor(held) + x}, export_with="jit")


def test_what_a_finished_node_gave_is_the_world_s_to_write_anywhere(tmp_path: Path) -> None:
    command = np.zeros(4, np.float32)
    draw = np.random.default_rng(0)
    with veracity.session("g", save_path=tmp_path):
        for _ in range(3):
            x = annotate.input_tensors("n", {"x": draw.random(4, np.float32)})
            y = x * 2
            annotate.output_tensors("n", {"y": y}, export_with="jit")
            command[:] = y
            assert type(command * 2) is np.ndarray
            command.partition(2)
    assert compile_found() == ({"n": True}, [])
