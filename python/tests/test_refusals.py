"""Bad calls get a diagnostic with a code, never a traceback from inside or a wrong answer."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import veracity

GOOD = {"count/step": torch.ones(1, 2)}
STRIDED = torch.ones(1, 4)[:, ::2]


def _without_storage(tensor: torch.Tensor) -> torch.Tensor:
    tensor.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize(
    ("what", "inputs", "code"),
    [
        ("no inputs", {}, "VER0701"),
        ("a misspelt input", GOOD | {"count/stepp": torch.ones(1, 2)}, "VER0702"),
        ("an unknown node", GOOD | {"counter/step": torch.ones(1, 2)}, "VER0702"),
        ("a key without node", {"step": torch.ones(1, 2)}, "VER0702"),
        ("a wider tensor", {"count/step": torch.ones(1, 3)}, "VER0704"),
        ("a tensor that would broadcast", {"count/step": torch.ones(1)}, "VER0704"),
        ("a scalar tensor", {"count/step": torch.tensor(1.0)}, "VER0704"),
        ("an extra axis", {"count/step": torch.ones(1, 1, 2)}, "VER0704"),
        ("an empty tensor", {"count/step": torch.ones(0, 2)}, "VER0704"),
        ("float64", {"count/step": torch.ones(1, 2, dtype=torch.float64)}, "VER0703"),
        ("int64", {"count/step": torch.ones(1, 2, dtype=torch.int64)}, "VER0703"),
        ("bool", {"count/step": torch.ones(1, 2, dtype=torch.bool)}, "VER0703"),
        ("complex", {"count/step": torch.ones(1, 2, dtype=torch.complex64)}, "VER0703"),
        ("numpy float64", {"count/step": np.ones((1, 2))}, "VER0703"),
        ("numpy big-endian", {"count/step": np.ones((1, 2), ">f4")}, "VER0703"),
        ("numpy text", {"count/step": np.array([["a", "b"]])}, "VER0703"),
        ("numpy objects", {"count/step": np.array([[None, None]])}, "VER0703"),
        ("a list", {"count/step": [[1.0, 1.0]]}, "VER0703"),
        ("a number", {"count/step": 1.0}, "VER0703"),
        ("None", {"count/step": None}, "VER0703"),
        ("sparse", {"count/step": torch.ones(1, 2).to_sparse()}, "VER0709"),
        ("masked", {"count/step": np.ma.masked_array(np.ones((1, 2), np.float32))}, "VER0703"),
        ("storage taken away", {"count/step": _without_storage(torch.ones(1, 2))}, "VER0709"),
        ("strided, storage taken away", {"count/step": _without_storage(STRIDED)}, "VER0709"),
    ],
)
def test_bad_inputs_are_refused_and_change_nothing(
    counter_bundle: Path, what: str, inputs: dict[str, Any], code: str
) -> None:
    manager = veracity.InferenceManager(counter_bundle)
    with pytest.raises(veracity.InputError) as caught:
        manager.run_policy(inputs)
    assert caught.value.diagnostics[0].code == code, what
    assert isinstance(caught.value, ValueError)
    assert manager.run_policy(GOOD)["count/shown"][0, 0].item() == 101, (
        "the state must be as before"
    )
    with pytest.raises(veracity.InputError):
        manager.run_policy({})


def test_a_refused_override_does_not_stay(counter_bundle: Path) -> None:
    manager = veracity.InferenceManager(counter_bundle)
    with pytest.raises(veracity.InputError):
        manager.run_policy({"count/count_in": torch.zeros(1, 2)})
    assert manager.run_policy(GOOD)["count/shown"][0, 0].item() == 101


@pytest.mark.parametrize(
    "inputs", [None, 3, "count/step", [torch.ones(1, 2)]], ids=["None", "number", "text", "list"]
)
def test_inputs_that_are_no_mapping_are_a_type_error(counter_bundle: Path, inputs: Any) -> None:
    with pytest.raises(TypeError):
        veracity.InferenceManager(counter_bundle).run_policy(inputs)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"engine": "tensorrt"}, "VER0707"),
        ({"device": "tpu"}, "VER0707"),
        ({"threads": 0}, "VER0707"),
        ({"device": "cuda:7"}, "VER0608"),
        ({"engine": "embedded", "device": "cuda"}, "VER0608"),
        ({"engine": "torch"}, "VER0603"),
    ],
)
def test_bad_options_are_refused(counter_bundle: Path, options: dict[str, Any], code: str) -> None:
    with pytest.raises(veracity.VeracityError) as caught:
        veracity.InferenceManager(counter_bundle, **options)
    assert caught.value.diagnostics[0].code == code


def test_a_missing_bundle_is_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="VER0209"):
        veracity.InferenceManager(tmp_path / "nothing.yaml")


def _flip_a_bit(bundle: Path) -> None:
    model = bundle.with_name("count.onnx")
    data = bytearray(model.read_bytes())
    data[-1] ^= 1
    model.write_bytes(bytes(data))


def _edit(pattern: str, replacement: str) -> Callable[[Path], None]:
    def edit(bundle: Path) -> None:
        text, count = re.subn(pattern, replacement, bundle.read_text())
        assert count, pattern
        bundle.write_text(text)

    return edit


@pytest.mark.parametrize(
    ("what", "damage", "code"),
    [
        ("a changed model", _flip_a_bit, "VER0205"),
        ("a missing model", lambda b: b.with_name("count.onnx").unlink(), "VER0001"),
        ("a path that leaves", _edit(r"model_path: count", "model_path: ../count"), "VER0201"),
        ("an absolute path", _edit(r"model_path: count", "model_path: /etc/count"), "VER0202"),
        ("an unknown dtype", _edit(r"dtype: float32", "dtype: float33"), "VER0305"),
        ("an unknown edge end", _edit(r"count/count_in\]", "count/nowhere]"), "VER0311"),
        ("a port the model lacks", _edit(r"\bshown\b", "seen"), "VER0502"),
        ("another shape than the model's", _edit(r"shape: \[1, 2\]", "shape: [1, 3]"), None),
        ("no version", _edit(r".*leapp config version.*\n", ""), "VER0301"),
        ("a future version", _edit(r"(leapp config version: ).*", r"\1'2.0'"), "VER0302"),
        ("broken YAML", _edit(r"models:", "models: ["), "VER0101"),
        ("empty", lambda b: b.write_text(""), None),
        ("a list", lambda b: b.write_text("- 1\n"), "VER0105"),
        ("not UTF-8", lambda b: b.write_bytes(b"\xff\xfe"), "VER0102"),
    ],
)
def test_damaged_bundles_are_refused_with_their_place(
    counter_bundle: Path, what: str, damage: Callable[[Path], object], code: str | None
) -> None:
    damage(counter_bundle)
    with pytest.raises(veracity.BundleError) as caught:
        veracity.InferenceManager(counter_bundle)
    found = caught.value.diagnostics
    if code is not None:
        assert code in {diagnostic.code for diagnostic in found}, f"{what}: {caught.value}"
    assert all("counter" in diagnostic.location for diagnostic in found), what


def test_writing_refuses_what_reading_would_refuse(tmp_path: Path, counter_bundle: Path) -> None:
    model = counter_bundle.with_name("count.onnx")
    with pytest.raises(veracity.BundleError):
        veracity.write_bundle(
            tmp_path / "bad",
            nodes=[{"name": "a", "model": model}],
            data_flow={"a/shown": ["a/nowhere"]},
        )
    assert not (tmp_path / "bad").exists()


def test_a_bool_is_0_or_1(identity_bundle: Callable[[str, list[int]], Path]) -> None:
    manager = veracity.InferenceManager(identity_bundle("bool", [3]))
    with pytest.raises(veracity.InputError, match="VER0711"):
        manager.run_policy({"same/x": np.array([2, 0, 255], np.uint8).view(bool)})


def test_an_exception_survives_pickling(tmp_path: Path) -> None:
    with pytest.raises(veracity.BundleNotFoundError) as caught:
        veracity.InferenceManager(tmp_path / "nothing")
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)
    assert copied.diagnostics == caught.value.diagnostics


@pytest.mark.parametrize(
    ("what", "port", "code"),
    [
        ("another shape than the model's", {"name": "step", "shape": [7]}, "VER0503"),
        ("another dtype than the model's", {"name": "step", "dtype": "int64"}, "VER0503"),
        ("a port the model lacks", {"name": "stepp", "dtype": "int64", "shape": [1]}, "VER0502"),
        ("too few names", {"name": "step", "element_names": [["one"]]}, "VER0323"),
        ("an unknown dtype", {"name": "step", "dtype": "float33"}, "VER0305"),
    ],
)
def test_a_draft_that_contradicts_its_model_replaces_nothing(
    counter_bundle: Path, what: str, port: dict[str, Any], code: str
) -> None:
    before = counter_bundle.read_bytes()
    model = counter_bundle.with_name("count.onnx")
    inputs = [port, {"name": "count_in"}]
    with pytest.raises(veracity.BundleError) as caught:
        veracity.write_bundle(
            counter_bundle.parent, nodes=[{"name": "count", "model": model, "inputs": inputs}]
        )
    assert code in {diagnostic.code for diagnostic in caught.value.diagnostics}, what
    assert counter_bundle.read_bytes() == before


def test_a_model_that_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "model.pt"
    os.mkfifo(pipe)
    for model in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(veracity.BundleError, match="VER0204"):
            veracity.write_bundle(
                tmp_path / "bad",
                nodes=[
                    {"name": "n", "model": model, "backend": "jit", "inputs": [], "outputs": []}
                ],
            )
    assert not (tmp_path / "bad").exists()
