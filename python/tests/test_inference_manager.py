"""What `InferenceManager` promises to Python code."""

from __future__ import annotations

import threading
from collections import UserDict
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
import veracity
from conftest import ONNX_DTYPES

STEP = "count/step"
SHOWN = "count/shown"


def one() -> torch.Tensor:
    return torch.ones(1, 2)


@pytest.fixture
def counter(counter_bundle: Path) -> veracity.InferenceManager:
    return veracity.InferenceManager(counter_bundle)


def test_a_bundle_may_be_named_by_file_or_folder_as_text_or_path(counter_bundle: Path) -> None:
    for path in (counter_bundle, str(counter_bundle), counter_bundle.parent):
        manager = veracity.InferenceManager(path)
        assert manager.inputs == [STEP]
        assert manager.outputs == [SHOWN]
        assert manager.feedback_inputs == ["count/count_in"]
        assert manager.frequency == 50
        assert manager.configs == {"frequency": 50}


def test_state_persists_until_reset(counter: veracity.InferenceManager) -> None:
    shown = [counter({STEP: one()})[SHOWN][0, 0].item() for _ in range(4)]
    assert shown == [101, 102, 103, 104]
    counter.reset()
    assert counter.run_policy({STEP: one()})[SHOWN][0, 0].item() == 101


def test_memory_of_the_caller_is_never_touched(counter: veracity.InferenceManager) -> None:
    given = one()
    first = counter.run_policy({STEP: given})[SHOWN]
    counter.run_policy({STEP: one()})
    counter.set_input_value("count", "count_in", torch.zeros(1, 2))
    counter.reset()
    assert torch.equal(given, one())
    assert torch.equal(first, torch.full((1, 2), 101.0))


def test_a_state_can_be_replaced_in_advance_or_for_one_step(
    counter: veracity.InferenceManager,
) -> None:
    counter.run_policy({STEP: one()})
    counter.set_input_value("count", "count_in", torch.zeros(1, 2))
    assert counter.run_policy({STEP: one()})[SHOWN][0, 0].item() == 1
    given = {STEP: one(), "count/count_in": torch.full((1, 2), 7.0)}
    assert counter.run_policy(given)[SHOWN][0, 0].item() == 8
    assert counter.run_policy({STEP: one()})[SHOWN][0, 0].item() == 9


def test_an_input_can_be_given_in_advance_for_one_step(counter: veracity.InferenceManager) -> None:
    counter.set_input_value("count", "step", one() * 5)
    assert counter.run_policy({})[SHOWN][0, 0].item() == 105
    with pytest.raises(veracity.InputError, match="VER0701"):
        counter.run_policy({})


def test_values_at_node_borders_can_be_read(counter: veracity.InferenceManager) -> None:
    counter.run_policy({STEP: one()})
    values = counter.value_dict
    assert set(values) == {"count", "==out=="}
    assert torch.equal(values["count"]["count_in"], torch.full((1, 2), 101.0))
    assert torch.equal(values["==out=="][SHOWN], torch.full((1, 2), 101.0))
    values["count"]["count_in"].zero_()
    assert counter.run_policy({STEP: one()})[SHOWN][0, 0].item() == 102, "reading gives copies"


def test_the_library_of_the_inputs_is_the_library_of_the_outputs(
    counter: veracity.InferenceManager,
) -> None:
    assert isinstance(counter.run_policy({STEP: one()})[SHOWN], torch.Tensor)
    assert isinstance(counter.run_policy({STEP: np.ones((1, 2), np.float32)})[SHOWN], np.ndarray)


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("transposed", torch.arange(2.0).reshape(2, 1).T),
        ("every other", torch.arange(4.0)[None, ::2] / 2),
        ("expanded", torch.arange(2.0).expand(1, 2)),
        ("requires grad", torch.arange(2.0)[None].requires_grad_()),
        ("a parameter", torch.nn.Parameter(torch.arange(2.0)[None])),
        ("negated on read", -torch._neg_view(torch.arange(2.0)[None])),
        ("really negated on read", torch._neg_view(-torch.arange(2.0)[None])),
        ("made in inference mode", torch.inference_mode()(lambda: torch.arange(2.0)[None])()),
        ("numpy reversed", np.array([[1, 0]], np.float32)[:, ::-1]),
        ("numpy column-major", np.asfortranarray(np.array([[0, 1]], np.float32))),
        ("numpy read-only", np.broadcast_to(np.array([0, 1], np.float32), (1, 2))),
        ("field of records", np.array([(0, 9), (1, 9)], [("v", "f4"), ("w", "i1")])["v"][None]),
    ],
)
def test_inputs_are_read_by_value_whatever_their_layout(
    counter: veracity.InferenceManager, what: str, value: torch.Tensor | np.ndarray
) -> None:
    shown = counter.run_policy({STEP: value})[SHOWN]
    assert [float(element) for element in shown[0]] == [100, 101], what


@pytest.mark.parametrize("dtype", ONNX_DTYPES)
@pytest.mark.parametrize("shape", [[], [0, 3], [2, 3]])
def test_every_dtype_goes_through_both_libraries(
    identity_bundle: Callable[[str, list[int]], Path], dtype: str, shape: list[int]
) -> None:
    manager = veracity.InferenceManager(identity_bundle(dtype, shape))
    for value in (manager.get_mock_input(3)["same/x"], manager.zeros_input()["same/x"]):
        assert value.dtype == getattr(torch, dtype)
        assert list(value.shape) == shape
        found = manager.run_policy({"same/x": value})["same/y"]
        assert found.dtype == value.dtype
        assert torch.equal(found, value)
    numpy_dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    array = np.ones(shape, numpy_dtype)
    found = manager.run_policy({"same/x": array})["same/y"]
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


def test_mock_inputs_depend_on_the_seed_alone(counter: veracity.InferenceManager) -> None:
    assert torch.equal(counter.get_mock_input(1)[STEP], counter.get_mock_input(1)[STEP])
    assert not torch.equal(counter.get_mock_input(1)[STEP], counter.get_mock_input(2)[STEP])


def test_no_tick_is_lost_between_threads(counter: veracity.InferenceManager) -> None:
    def work() -> None:
        for _ in range(500):
            counter.run_policy({STEP: one()})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.run_policy({STEP: one()})[SHOWN][0, 0].item() == 100 + 4 * 500 + 1


def test_two_managers_of_one_bundle_are_independent(counter_bundle: Path) -> None:
    left, right = (veracity.InferenceManager(counter_bundle) for _ in range(2))
    left.run_policy({STEP: one()})
    assert right.run_policy({STEP: one()})[SHOWN][0, 0].item() == 101


def test_engines_agree(counter_bundle: Path) -> None:
    def episode(engine: str) -> list[torch.Tensor]:
        manager = veracity.InferenceManager(counter_bundle, engine=engine)
        return [manager.run_policy(manager.get_mock_input(tick))[SHOWN] for tick in range(5)]

    torch.testing.assert_close(episode("embedded"), episode("ort"))


def test_outputs_are_on_the_cpu_whatever_the_default_device(
    counter: veracity.InferenceManager,
) -> None:
    inputs = {STEP: one()}
    with torch.device("meta"):
        shown = counter.run_policy(inputs)[SHOWN]
    assert shown[0, 0].item() == 101


def test_values_may_be_read_while_inputs_are_looked_at(
    counter: veracity.InferenceManager,
) -> None:
    counter.run_policy({STEP: one()})

    class Mapping(UserDict[str, torch.Tensor]):
        def __getitem__(self, key: str) -> torch.Tensor:
            return counter.value_dict["==out=="][SHOWN]

    shown = counter.run_policy(Mapping({STEP: one()}))[SHOWN]
    assert shown[0, 0].item() == 202
