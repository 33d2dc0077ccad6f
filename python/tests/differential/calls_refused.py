"""Calls that both refuse; the mark stands at the line that a refusal names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from differential.registry import refused


def _begin(api: Any, folder: Path) -> torch.Tensor:
    """Open a session with a node `n` that has one input."""
    api.start("refused", save_path=str(folder))
    value: torch.Tensor = api.annotate.input_tensors("n", {"x": torch.ones(3)})
    return value


@refused("types", ["VER0902"], theirs=TypeError, builtin=TypeError)
def a_bare_tensor_as_inputs(api: Any, folder: Path) -> None:
    api.annotate.input_tensors("n", torch.ones(3))  # told


@refused("types", ["VER0902"], theirs=TypeError, builtin=TypeError)
def a_list_of_tensors_as_inputs(api: Any, folder: Path) -> None:
    api.annotate.input_tensors("n", [torch.ones(3)])  # told


@refused("types", ["VER0902"], theirs=TypeError, builtin=TypeError)
def described_and_plain_tensors_in_one_list(api: Any, folder: Path) -> None:
    described = api.TensorSemantics(name="x", ref=torch.ones(3))
    api.annotate.input_tensors("n", [described, torch.ones(3)])  # told


@refused("names", ["VER0903"], theirs=ValueError, builtin=ValueError)
def two_descriptions_with_one_name(api: Any, folder: Path) -> None:
    pair = [api.TensorSemantics(name="x", ref=torch.ones(3)) for _ in range(2)]
    api.annotate.input_tensors("n", pair)  # told


@refused("types", ["VER0902"], theirs=TypeError, builtin=TypeError)
def a_description_of_a_list(api: Any, folder: Path) -> None:
    api.TensorSemantics(name="x", ref=[torch.ones(3)])  # told


@refused("types", ["VER0902", "VER0920"], theirs=KeyError)
def a_complex_port(api: Any, folder: Path) -> None:
    api.start("refused", save_path=str(folder))
    x = api.annotate.input_tensors("n", {"x": torch.ones(3, dtype=torch.complex64)})  # told
    api.annotate.output_tensors("n", {"y": x * 2}, export_with="jit")
    api.stop()
    api.compile_graph(visualize=False)


@refused("names", ["VER0902"], theirs=TypeError, builtin=TypeError)
def a_session_name_that_is_no_string(api: Any, folder: Path) -> None:
    api.start(3, save_path=str(folder))  # told


@refused("names", ["VER0903"], theirs=ValueError, builtin=ValueError)
def an_empty_session_name(api: Any, folder: Path) -> None:
    api.start("", save_path=str(folder))  # told


@refused("names", ["VER0903"], theirs=ValueError, builtin=ValueError)
def a_session_named_as_the_folder(api: Any, folder: Path) -> None:
    api.start(".", save_path=str(folder))  # told


@refused("order", ["VER0901"])
def stop_without_a_session(api: Any, folder: Path) -> None:
    api.stop()  # told


@refused("order", ["VER0901"])
def compile_before_stop(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    api.annotate.output_tensors("n", {"y": x * 2}, export_with="jit")
    api.compile_graph(visualize=False)  # told


@refused("order", ["VER0905"])
def a_node_without_outputs(api: Any, folder: Path) -> None:
    api.start("refused", save_path=str(folder))
    api.annotate.input_tensors("n", {"x": torch.ones(3)})  # told
    api.stop()
    api.compile_graph(visualize=False)


@refused("order", ["VER0904"])
def outputs_of_an_unknown_node(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    api.annotate.output_tensors("m", {"y": x * 2}, export_with="jit")  # told


@refused("order", ["VER0904"])
def state_of_an_unknown_node(api: Any, folder: Path) -> None:
    _begin(api, folder)
    api.annotate.state_tensors("m", {"h": torch.ones(3)})  # told


@refused("order", ["VER0904"])
def a_buffer_of_an_unknown_node(api: Any, folder: Path) -> None:
    _begin(api, folder)
    api.annotate.register_buffer("m", torch.ones(3))  # told


@refused("values", ["VER0908"])
def an_output_that_depends_on_no_input(api: Any, folder: Path) -> None:
    _begin(api, folder)
    api.annotate.output_tensors("n", {"y": torch.ones(3)}, export_with="jit")  # told


@refused("values", ["VER0908", "VER0907"])
def an_output_of_another_node(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    z = api.annotate.input_tensors("m", {"z": torch.ones(3)})
    api.annotate.output_tensors("m", {"y": x * 2, "z": z * 2}, export_with="jit")  # told


@refused("values", ["VER0902", "VER0903", "VER0908"])
def no_outputs_at_all(api: Any, folder: Path) -> None:
    _begin(api, folder)
    api.annotate.output_tensors("n", {}, export_with="jit")  # told


@refused("values", ["VER0907"])
def values_of_two_open_nodes_are_added(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    z = api.annotate.input_tensors("m", {"z": torch.ones(3)})
    mixed = x + z  # told
    api.annotate.output_tensors("n", {"y": mixed}, export_with="jit")


@refused("values", ["VER0907"])
def values_of_two_open_nodes_are_joined(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    z = api.annotate.input_tensors("m", {"z": torch.ones(3)})
    mixed = torch.cat([x * 1, z * 1])  # told
    api.annotate.output_tensors("n", {"y": mixed}, export_with="jit")


@refused("options", ["VER1003"], builtin=ValueError)
def an_unknown_backend(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    api.annotate.output_tensors("n", {"y": x * 2}, export_with="tensorflow")  # told


@refused("options", ["VER1002", "VER1001"], theirs=TypeError)
def an_unknown_option_of_jit(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    params = {"no_such_option": 1}
    api.annotate.output_tensors("n", {"y": x * 2}, export_with="jit", backend_params=params)
    api.stop()
    api.compile_graph(visualize=False)


@refused("names", ["VER0903"])
def nested_names_that_collide(api: Any, folder: Path) -> None:
    api.start("refused", save_path=str(folder))
    inputs = {"a": {"b": torch.ones(3)}, "a_b": torch.ones(3)}
    api.annotate.input_tensors("n", inputs)  # told


@refused("names", ["VER0903"])
def an_input_name_twice_in_one_node(api: Any, folder: Path) -> None:
    _begin(api, folder)
    api.annotate.input_tensors("n", {"x": torch.zeros(3)})  # told


@refused("values", ["VER0902", "VER0908"])
def a_static_output_that_is_computed(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    y = x * 2
    api.annotate.output_tensors("n", {"y": y}, static_outputs={"s": y + 1})  # told


@refused("values", ["VER0902"], theirs=None, builtin=TypeError)
def a_static_output_that_is_no_tensor(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    api.annotate.output_tensors("n", {"y": x * 2}, static_outputs={"s": 3})  # told


@refused("method", ["VER0902", "VER0908"])
def a_method_that_returns_nothing(api: Any, folder: Path) -> None:
    @api.annotate.method(export_with="jit")  # told
    def nothing(x: torch.Tensor) -> None:
        x * 2

    api.start("refused", save_path=str(folder))
    nothing(torch.ones(3))  # told


def _reenter(api: Any, folder: Path, values: list[torch.Tensor]) -> None:
    api.start("refused", save_path=str(folder))
    for value in values:
        x = api.annotate.input_tensors("n", {"x": value})
        api.annotate.output_tensors("n", {"y": x * 2}, export_with="jit")


@refused("re-entry", ["VER0906"])
def another_shape_on_a_later_pass(api: Any, folder: Path) -> None:
    _reenter(api, folder, [torch.ones(3), torch.ones(4)])


@refused("re-entry", ["VER0906"])
def another_dtype_on_a_later_pass(api: Any, folder: Path) -> None:
    _reenter(api, folder, [torch.ones(3), torch.ones(3).double()])


@refused("re-entry", ["VER0906"])
def another_input_on_a_later_pass(api: Any, folder: Path) -> None:
    api.start("refused", save_path=str(folder))
    for name in ("x", "z"):
        x = api.annotate.input_tensors("n", {name: torch.ones(3)})  # told
        api.annotate.output_tensors("n", {"y": x * 2}, export_with="jit")


@refused("re-entry", ["VER0906"])
def another_line_on_a_later_pass(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    api.annotate.output_tensors("n", {"y": x * 2}, export_with="jit")
    api.annotate.input_tensors("n", {"x": torch.ones(3)})  # told


@refused("state", ["VER0909", "VER0903", "VER0904"])
def an_update_of_an_undeclared_state(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    api.annotate.update_state("n", {"h": x * 2})  # told


@refused("state", ["VER0909"])
def an_update_with_another_shape(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    h = api.annotate.state_tensors("n", {"h": torch.ones(3)})
    api.annotate.update_state("n", {"h": (x + h)[:2]})  # told


@refused("state", ["VER0909"])
def an_update_with_another_dtype(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    h = api.annotate.state_tensors("n", {"h": torch.ones(3)})
    api.annotate.update_state("n", {"h": (x + h).double()})  # told


@refused("state", ["VER0908", "VER0909"])
def an_update_that_depends_on_nothing(api: Any, folder: Path) -> None:
    _begin(api, folder)
    api.annotate.state_tensors("n", {"h": torch.ones(3)})
    api.annotate.update_state("n", {"h": torch.ones(3)})  # told


@refused("state", ["VER0902"], theirs=TypeError, builtin=TypeError)
def a_nested_state(api: Any, folder: Path) -> None:
    _begin(api, folder)
    api.annotate.state_tensors("n", {"h": {"inner": torch.ones(3)}})  # told


@refused("mirror", ["VER0903", "VER0909", "VER0902"])
def mirroring_onto_other_values(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    api.annotate.mirror_leapp_tags(x * 2, torch.zeros(3))  # told


@refused("semantics", ["VER0903"], theirs=ValueError, builtin=ValueError)
def a_period_of_zero(api: Any, folder: Path) -> None:
    api.TemporalAxis(0)  # told


@refused("semantics", ["VER0903"], theirs=ValueError, builtin=ValueError)
def two_time_axes(api: Any, folder: Path) -> None:
    axes = [api.TemporalAxis(10), api.TemporalAxis(20)]
    api.TensorSemantics(name="x", ref=torch.ones(2, 3), element_names=axes)  # told


@refused("semantics", ["VER0903"], theirs=ValueError, builtin=ValueError)
def the_time_axis_written_by_hand(api: Any, folder: Path) -> None:
    names = ["__temporal_axis__", ["a"]]
    api.TensorSemantics(name="x", ref=torch.ones(2, 1), element_names=names)  # told


@refused("semantics", ["VER0903"], theirs=ValueError, builtin=ValueError)
def a_negative_frequency(api: Any, folder: Path) -> None:
    api.GraphConfigs(frequency=-1)  # told


@refused("semantics", ["VER0902"], theirs=TypeError, builtin=TypeError)
def settings_of_the_wrong_type(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    api.annotate.output_tensors("n", {"y": x * 2}, export_with="jit")
    api.stop()
    api.compile_graph(visualize=False, graph_configs={"frequency": 50})  # told


@refused("patches", ["VER0925", "VER0902"], theirs=TypeError)
def a_patch_that_is_no_patch(api: Any, folder: Path) -> None:
    api.start("refused", save_path=str(folder), patching=["np.sin"])  # told


@refused("patches", ["VER0925"], theirs=ValueError, builtin=ValueError)
def a_patch_of_a_function_that_is_not_there(api: Any, folder: Path) -> None:
    patch = api.FunctionPatch(np, "no_such_function", lambda x: x)
    api.start("refused", save_path=str(folder), patching=[patch])  # told


@refused("patches", ["VER0925"], theirs=ValueError, builtin=ValueError)
def two_patches_of_one_function(api: Any, folder: Path) -> None:
    patch = api.FunctionPatch(np, "hypot", lambda x, y: x)
    api.start("refused", save_path=str(folder), patching=[patch, patch])  # told


@refused("foreign", ["VER1007", "VER1002"], theirs=ValueError)
def a_foreign_model_with_an_unknown_suffix(api: Any, folder: Path) -> None:
    x = _begin(api, folder)
    (folder / "model.xyz").write_bytes(b"no model")
    params = {"model_path": str(folder / "model.xyz")}
    api.annotate.output_tensors("n", {"y": x * 2}, backend_params=params)
    api.stop()
    api.compile_graph(visualize=False)
