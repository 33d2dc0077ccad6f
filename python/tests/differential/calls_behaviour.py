"""Rules that code can check for itself; they hold under both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import nn

from differential.registry import behaviour


def _one_pass(api: Any, value: torch.Tensor, **options: Any) -> None:
    x = api.annotate.input_tensors("n", {"x": value})
    api.annotate.output_tensors("n", {"y": x * 2}, **({"export_with": "jit"} | options))


def _document(folder: Path, name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((folder / name / f"{name}.yaml").read_text())
    return loaded


@behaviour("no session")
def annotations_without_a_session_hand_back_what_they_got(api: Any, folder: Path) -> None:
    x, y = torch.ones(2), np.ones(3)
    nested = {"a": [torch.ones(1)]}
    assert api.annotate.input_tensors("n", {"x": x}) is x
    given = api.annotate.input_tensors("n", {"x": x, "y": y, "nested": nested})
    assert isinstance(given, tuple)
    assert [id(g) for g in given] == [id(x), id(y), id(nested)]
    assert api.annotate.input_tensors("n", {}) == ()
    assert api.annotate.output_tensors("n", {"y": x}) is x
    assert api.annotate.state_tensors("n", {"h": x}) is x
    assert api.annotate.update_state("n", {"h": x}) is x
    assert api.annotate.register_buffer("n", x) is x
    assert api.annotate.mirror_leapp_tags(x, y) is y
    assert api.annotate.module("n", nn.Linear(2, 2)) is None
    assert api.annotate.input_tensors("n", api.TensorSemantics(name="x", ref=x)) is x


@behaviour("no session")
def a_decorated_method_without_a_session_is_a_plain_call(api: Any, folder: Path) -> None:
    @api.annotate.method(export_with="jit")
    def scale(x: int, *, by: int = 2) -> int:
        return x * by

    assert scale(3) == 6
    assert scale(3, by=5) == 15
    assert scale.__name__ == "scale"


@behaviour("method")
def options_that_a_method_does_not_have_are_ignored(api: Any, folder: Path) -> None:
    @api.annotate.method(export_with="jit", environment_constants={"gravity": 9.81}, verbose=True)
    def scale(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y

    api.start("options", save_path=str(folder))
    for _ in range(3):
        scale(torch.ones(3))
    api.stop()
    assert api.compile_graph(visualize=False) == {"scale": True}


@behaviour("results")
def compile_gives_a_verdict_for_every_node(api: Any, folder: Path) -> None:
    api.start("verdicts", save_path=str(folder))
    _one_pass(api, torch.ones(3))
    api.stop()
    assert api.compile_graph(visualize=False) == {"n": True}
    assert (folder / "verdicts" / "n.pt").exists()
    assert (folder / "verdicts" / "log.txt").exists()


@behaviour("results")
def an_empty_session_gives_an_empty_bundle(api: Any, folder: Path) -> None:
    api.start("nothing", save_path=str(folder))
    api.stop()
    assert api.compile_graph(visualize=False) == {}
    found = _document(folder, "nothing")
    assert not found["models"]
    assert not found["pipeline"]["data_flow"]


@behaviour("results")
def a_dry_run_writes_the_description_and_no_models(api: Any, folder: Path) -> None:
    api.start("dry", save_path=str(folder), dry_run=True)
    _one_pass(api, torch.ones(3))
    api.stop()
    assert api.compile_graph(visualize=False) is True or not api.__name__.startswith("leapp")
    found = _document(folder, "dry")
    assert found["models"]["n"]["parameters"]["model_path"] is None
    assert found["models"]["n"]["inputs"][0]["name"] == "x"
    assert not (folder / "dry" / "n.pt").exists()


@behaviour("results")
def a_node_that_is_not_to_be_exported_stays_connected(api: Any, folder: Path) -> None:
    api.start("partly", save_path=str(folder), non_traced=["n"])
    x = api.annotate.input_tensors("n", {"x": torch.ones(3)})
    y = x * 2
    api.annotate.output_tensors("n", {"y": y}, export_with="jit")
    y = api.annotate.input_tensors("m", {"y": y})
    api.annotate.output_tensors("m", {"z": y + 1}, export_with="jit")
    api.stop()
    api.compile_graph(visualize=False)
    found = _document(folder, "partly")
    assert found["models"]["n"]["parameters"]["backend"] is None
    assert found["models"]["m"]["parameters"]["backend"] == "jit"
    assert found["pipeline"]["data_flow"] == {"n/y": ["m/y"]}


@behaviour("results")
def a_node_without_a_backend_has_no_model(api: Any, folder: Path) -> None:
    api.start("bare", save_path=str(folder))
    _one_pass(api, torch.ones(3), export_with=None)
    api.stop()
    api.compile_graph(visualize=False)
    assert _document(folder, "bare")["models"]["n"]["parameters"]["model_path"] is None


@behaviour("results")
def compiling_twice_gives_the_same_description(api: Any, folder: Path) -> None:
    api.start("twice", save_path=str(folder))
    _one_pass(api, torch.ones(3))
    api.stop()
    api.compile_graph(visualize=False)
    first = _document(folder, "twice")
    api.compile_graph(visualize=False)
    second = _document(folder, "twice")
    assert first["pipeline"] == second["pipeline"]
    assert first["models"]["n"]["inputs"] == second["models"]["n"]["inputs"]


@behaviour("results")
def a_session_name_may_be_a_path(api: Any, folder: Path) -> None:
    api.start("deep/er", save_path=str(folder))
    _one_pass(api, torch.ones(3))
    api.stop()
    api.compile_graph(visualize=False)
    assert (folder / "deep" / "er" / "er.yaml").exists()


@behaviour("results")
def without_validation_the_result_is_true(api: Any, folder: Path) -> None:
    api.start("unchecked", save_path=str(folder))
    _one_pass(api, torch.ones(3))
    api.stop()
    assert api.compile_graph(visualize=False, validate=False)


@behaviour("results")
def not_strict_gives_the_failing_node_instead_of_raising(api: Any, folder: Path) -> None:
    api.start("loose", save_path=str(folder))
    for tick in range(2):
        x = api.annotate.input_tensors("n", {"x": torch.ones(3)})
        offset = torch.full((3,), float(tick))
        api.annotate.output_tensors("n", {"y": x + offset}, export_with="jit")
    api.stop()
    result = api.compile_graph(visualize=False, strict=False)
    assert result["n"] is not True


@behaviour("modules")
def buffers_are_plain_tensors_again_after_the_node(api: Any, folder: Path) -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count = self.count + x
            return self.count * 2

    model = Counter()
    api.start("restored", save_path=str(folder))
    x = api.annotate.input_tensors("n", {"x": torch.ones(3)})
    api.annotate.module("n", model)
    api.annotate.output_tensors("n", {"y": model(x)}, export_with="jit")
    api.stop()
    assert type(model.count) is torch.Tensor
    assert torch.equal(model.count, torch.ones(3))
    assert dict(model.named_buffers()).keys() == {"count"}


@behaviour("caller's tensors", only="ours")
def the_callers_tensors_stay_what_they_were(api: Any, folder: Path) -> None:
    value = torch.ones(3)
    api.start("plain", save_path=str(folder))
    try:
        _one_pass(api, value)
        assert type(value) is torch.Tensor
    finally:
        api.stop()


@behaviour("cleaning up")
def stop_takes_every_patch_away(api: Any, folder: Path) -> None:
    import sys

    before = (torch.tensor, torch.from_numpy, torch.as_tensor, np.array, np.asarray)
    api.start("clean", save_path=str(folder))
    _one_pass(api, torch.ones(3))
    api.stop()
    assert (torch.tensor, torch.from_numpy, torch.as_tensor, np.array, np.asarray) == before
    assert torch.jit.script(_double)(torch.ones(1)).item() == 2.0
    assert not torch.overrides._get_current_function_mode_stack()
    assert "torch" in sys.modules


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@behaviour("patches")
def a_patch_acts_on_traced_values_only_and_ends_with_the_session(api: Any, folder: Path) -> None:
    import types

    library = types.ModuleType("library")
    vars(library)["shift"] = lambda x: x + 1
    original = library.shift
    patch = api.FunctionPatch(library, "shift", lambda x: x + 100)
    api.start("patched", save_path=str(folder), patching=[patch])
    plain = library.shift(torch.zeros(1))
    x = api.annotate.input_tensors("n", {"x": torch.zeros(1)})
    replaced = library.shift(x)
    api.annotate.output_tensors("n", {"y": replaced}, export_with="jit")
    api.stop()
    assert plain.item() == 1
    assert replaced.item() == 100
    assert library.shift is original


@behaviour("patches")
def without_global_patches_those_of_the_user_are_none(api: Any, folder: Path) -> None:
    import types

    library = types.ModuleType("library")
    vars(library)["shift"] = lambda x: x + 1
    patch = api.FunctionPatch(library, "shift", lambda x: x + 100)
    api.start("unpatched", save_path=str(folder), patching=[patch], global_patching=False)
    x = api.annotate.input_tensors("n", {"x": torch.zeros(1)})
    shifted = library.shift(x)
    api.annotate.output_tensors("n", {"y": shifted}, export_with="jit")
    api.stop()
    assert shifted.item() == 1


@behaviour("running")
def nodes_of_a_loaded_bundle_are_described(api: Any, folder: Path) -> None:
    api.start("pair", save_path=str(folder))
    x = api.annotate.input_tensors("first", {"x": torch.ones(1, 3)})
    y = x * 2
    api.annotate.output_tensors("first", {"y": y}, export_with="jit")
    y = api.annotate.input_tensors("second", {"y": y})
    api.annotate.output_tensors("second", {"z": y.sum(), "w": y + 1}, export_with="onnx")
    api.stop()
    api.compile_graph(visualize=False)
    manager = api.InferenceManager(str(folder / "pair" / "pair.yaml"))
    assert list(manager.nodes) == ["first", "second"]
    first, second = manager.nodes["first"], manager.nodes["second"]
    assert torch.zeros(1, device=first.device).device.type == "cpu"
    assert (first.name, first.input_names, first.output_names) == ("first", ["x"], ["y"])
    assert second.output_names == ["z", "w"]
    assert [list(shape) for shape in second.output_shapes] == [[], [1, 3]]
    assert second.input_dtypes == ["float32"]


class _TooShort(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:1] * 2


class _OffByOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1


def _with_a_foreign_model(api: Any, folder: Path, model: nn.Module, value: torch.Tensor) -> Any:
    path = folder / "model.pt"
    torch.jit.script(model).save(str(path))
    api.start("foreign", save_path=str(folder))
    x = api.annotate.input_tensors("n", {"x": value})
    api.annotate.output_tensors("n", {"y": x * 2}, backend_params={"model_path": str(path)})
    api.stop()
    return api.compile_graph(visualize=False, strict=False)["n"]


@behaviour("validation", only="ours")
def a_wrong_shape_is_no_match_though_it_broadcasts(api: Any, folder: Path) -> None:
    assert _with_a_foreign_model(api, folder, _TooShort(), torch.ones(3)) is False


@behaviour("validation", only="ours")
def integers_that_differ_are_a_mismatch_and_no_crash(api: Any, folder: Path) -> None:
    assert (
        _with_a_foreign_model(api, folder, _OffByOne(), torch.ones(3, dtype=torch.int64)) is False
    )
