"""From a recording to a bundle: wiring, names, files, refusals, the log."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import leapp
import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
import veracity
import yaml
from nodes_by_hand import edge, make_node, recording
from onnx import TensorProto, helper
from veracity.errors import Diagnostic, ExportError, VeracityError
from veracity.export.compile import CompileResult, compile_recording
from veracity.export.fresh import DRAWS
from veracity.semantics import GraphConfigs
from veracity.tracing.nodes import Edge, Node, Recording

BACKENDS = ["jit", "onnx", "pt2"]


def row(*values: float) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.float32)


def compiled(made: Recording, **options: Any) -> dict[str, Any]:
    """Compile, and read the YAML as another reader would."""
    compile_recording(made, **options)
    return description(made.folder)


def description(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / f"{folder.name}.yaml").read_text())
    return found


def verify(folder: Path) -> dict[str, Any]:
    """Run `veracity verify`."""
    binary = Path(__file__).parents[2] / "target/debug/veracity"
    done = subprocess.run(
        [binary, "verify", folder, "--format", "json"], capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def scale(name: str, factor: float, backend: str | None = "jit", **options: Any) -> Node:
    return make_node(
        name, lambda x: x * factor, {"x": row(1, 2)}, ["y"], export_with=backend, **options
    )


def counter(backend: str = "jit") -> Node:
    """`total` grows by `step`; it is a state."""
    return make_node(
        "count",
        lambda step, total: (total * 10, total + step),
        {"step": row(1, 1), "total": row(5, 7)},
        ["shown"],
        states=["total"],
        export_with=backend,
    )


# --- what is written ---------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_traced_bundle_is_sound_and_runs_alike_here_and_in_leapp(
    backend: str, tmp_path: Path
) -> None:
    nodes = [scale("first", 2, backend), counter(backend), scale("last", 3, backend)]
    made = recording(
        tmp_path / "policy",
        nodes,
        edge("first/y", "count/step"),
        edge("count/shown", "last/x"),
    )
    assert compile_recording(made) == {"first": True, "count": True, "last": True}
    found = verify(made.folder)
    assert found["sound"], found
    theirs = leapp.InferenceManager(str(made.folder / "policy.yaml"))
    managers: list[Any] = [theirs, veracity.InferenceManager(made.folder)]
    total = row(5, 7)
    for tick in range(4):
        x = row(tick, 1)
        for manager in managers:
            outputs = manager.run_policy({"first/x": x.clone()})
            assert list(outputs) == ["last/y"]
            torch.testing.assert_close(outputs["last/y"], total * 30)
        total = total + 2 * x


@pytest.mark.parametrize(
    ("backend", "given", "taken"), [("onnx", "total_in", "total_out"), ("jit", "total", "total")]
)
def test_only_onnx_renames_a_name_on_both_sides(
    backend: str, given: str, taken: str, tmp_path: Path
) -> None:
    found = compiled(recording(tmp_path / "b", [counter(backend)]))
    ports = found["models"]["count"]
    assert [port["name"] for port in ports["inputs"]] == ["step", given]
    assert [port["name"] for port in ports["outputs"]] == ["shown", taken]
    assert found["pipeline"]["feedback_flow"] == {f"count/{taken}": [f"count/{given}"]}
    values = safetensors.torch.load_file(tmp_path / "b/b_initial_values.safetensors")
    assert list(values) == [f"count/{given}"]
    assert torch.equal(values[f"count/{given}"], row(5, 7))
    samples = safetensors.torch.load_file(tmp_path / "b/b_samples.safetensors")
    assert sorted(samples) == [
        f"{kind}/count/{port}"
        for kind in ("fresh", "recorded")
        for port in ("in/step", f"in/{given}", "out/shown", f"out/{taken}")
    ]
    assert found["veracity"]["samples"] == "b_samples.safetensors"


def test_ports_are_written_in_the_order_outputs_states_static_outputs(tmp_path: Path) -> None:
    node = make_node(
        "n",
        lambda x, h: (x + h, h + 1),
        {"x": row(1), "h": row(0)},
        ["y"],
        states=["h"],
        static_outputs={"kp": torch.ones(3)},
    )
    found = compiled(recording(tmp_path / "b", [node]))
    assert [port["name"] for port in found["models"]["n"]["outputs"]] == ["y", "h", "kp"]
    assert found["pipeline"]["inputs"] == {"n": ["x"]}
    assert found["pipeline"]["outputs"] == {"n": ["y", "kp"]}


def test_semantics_and_configs_are_written_as_leapp_writes_them(tmp_path: Path) -> None:
    folder = {name: tmp_path / name / "graph" for name in ("ours", "theirs")}
    position, command = torch.ones(1, 3), torch.ones(4, 3)
    names = [None, ["x", "y", "w"]]
    extra = {"units": "rad", "on": True, "range": [-1, 1.5], "by": {"z": 1, "a": "no"}}
    leapp.start("graph", save_path=str(tmp_path / "theirs"))
    p, c = leapp.annotate.input_tensors(
        "policy",
        [
            leapp.TensorSemantics(
                "joint_pos",
                position,
                leapp.InputKindEnum.JOINT_POSITION,
                ["a", "b", "c"],
                extra,
            ),
            leapp.TensorSemantics("cmd", command, "custom", [leapp.TemporalAxis(100), names[1]]),
        ],
    )
    leapp.annotate.output_tensors(
        "policy", leapp.TensorSemantics("actions", p + c, element_names=names), export_with="jit"
    )
    leapp.stop()
    configs = {"frequency": 50, "extra": {"runtime": "isaac_lab", "dt": 0.005}}
    leapp.compile_graph(visualize=False, graph_configs=leapp.GraphConfigs(**configs))

    node = make_node(
        "policy",
        lambda p, c: p + c,
        {"joint_pos": position, "cmd": command},
        ["actions"],
        meaning={
            "joint_pos": {
                "kind": "state/joint/position",
                "element_names": [["a", "b", "c"]],
                "extra": {
                    "units": "rad",
                    "on": True,
                    "range": (-1, 1.5),
                    "by": {"z": 1, "a": "no"},
                },
            },
            "cmd": {
                "kind": "custom",
                "element_names": ["__temporal_axis__", names[1]],
                "temporal_period_ms": 100,
            },
            "actions": {"element_names": names},
        },
    )
    ours = compiled(recording(folder["ours"], [node]), graph_configs=GraphConfigs(**configs))
    theirs = description(folder["theirs"])
    del ours["veracity"]
    ours["system information"].pop("veracity version")
    for found in (ours, theirs):
        for key in ("md5sum", "sha256sum"):
            assert found["models"]["policy"]["parameters"].pop(key)
    assert ours == theirs
    for side in ("inputs", "outputs"):
        for port, other in zip(
            ours["models"]["policy"][side], theirs["models"]["policy"][side], strict=True
        ):
            assert list(port) == list(other), "readers of text see the same order"


def test_the_same_recording_gives_the_same_bundle(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        folder = tmp_path / name / "b"
        nodes = [counter("onnx"), scale("after", 2, "jit")]
        compile_recording(recording(folder, nodes, edge("count/shown", "after/x")))
        texts.append((folder / "b.yaml").read_text())
    assert texts[0] == texts[1]


def test_element_names_that_do_not_fit_are_kept_and_told_with_the_line(tmp_path: Path) -> None:
    wrong = {"x": {"element_names": [["a", "b", "c"]]}, "y": {"element_names": [1, 2]}}
    made = recording(tmp_path / "b", [scale("n", 2, meaning=wrong)])
    result = compile_recording(made)
    assert isinstance(result, CompileResult)
    found = [(one.code, one.severity, one.message, one.location) for one in result.diagnostics]
    assert found == [
        ("VER0323", "warning", "n/x: 3 names for shape [1, 2]", "policy.py:1"),
        (
            "VER0323",
            "warning",
            "n/y: element names are not one list of names for each axis",
            "policy.py:1",
        ),
    ]
    ports = description(made.folder)["models"]["n"]
    assert ports["inputs"][0]["element_names"] == [["a", "b", "c"]]
    assert ports["outputs"][0]["element_names"] == [1, 2]


def test_without_nodes_the_description_is_that_of_leapp(tmp_path: Path) -> None:
    made = recording(tmp_path / "ours/b", [])
    result = compile_recording(made)
    assert result == {}
    assert [one.code for one in result.diagnostics] == ["VER0326"]  # type: ignore[union-attr]
    leapp.start("b", save_path=str(tmp_path / "theirs"))
    leapp.stop()
    assert leapp.compile_graph(visualize=False) == {}
    ours, theirs = description(made.folder), description(tmp_path / "theirs/b")
    ours["system information"].pop("veracity version")
    assert ours == theirs


def test_a_dry_run_describes_everything_and_exports_nothing(tmp_path: Path) -> None:
    made = recording(tmp_path / "b", [counter()], dry_run=True)
    assert compile_recording(made) is True
    found = description(made.folder)
    assert found["models"]["count"]["parameters"] == {
        "model_path": None,
        "md5sum": None,
        "sha256sum": None,
        "backend": None,
        "warp_segments": 0,
    }
    assert found["pipeline"]["feedback_flow"] == {"count/total": ["count/total"]}
    assert "initial_values" not in found["pipeline"]
    files = sorted(path.name for path in made.folder.iterdir())
    assert files == ["b.png", "b.svg", "b.yaml", "log.txt"]


def test_a_node_that_is_not_traced_stays_connected_and_is_told_as_unchecked(
    tmp_path: Path,
) -> None:
    nodes = [scale("a", 2), scale("b", 3, traced=False)]
    made = recording(tmp_path / "g", nodes, edge("a/y", "b/x"))
    result = compile_recording(made)
    assert result == {"a": True, "b": True}
    assert [(one.code, one.message) for one in result.diagnostics] == [  # type: ignore[union-attr]
        ("VER1006", "node 'b' has no model: nothing was checked"),
        ("VER1110", 'the bundle was not run over time: node "b" has no model'),
    ]
    assert result.proof.nodes == {"a": "proved", "b": "not_comparable"}  # type: ignore[union-attr]
    assert result.proof.verdict == "not_comparable"  # type: ignore[union-attr]
    found = description(made.folder)
    assert found["models"]["b"]["parameters"]["backend"] is None
    assert found["pipeline"]["data_flow"] == {"a/y": ["b/x"]}


def test_without_validation_the_answer_is_true(tmp_path: Path) -> None:
    assert compile_recording(recording(tmp_path / "b", [scale("n", 2)]), validate=False) is True


# --- edges and time ----------------------------------------------------------------------------

FIRST = [row(100, 0), row(200, 0), row(300, 0), row(400, 0)]


def delayed(order: str, delay: int, backend: str) -> tuple[list[Node], list[Edge]]:
    """Return `sink` reading `source` some ticks late, in this order; `sink` doubles."""
    source, sink = scale("source", 1, backend), scale("sink", 2, backend)
    sink.samples *= 2
    nodes = [source, sink] if order == "earlier" else [sink, source]
    return nodes, [edge("source/y", "sink/x", delay, *FIRST[:delay])]


@pytest.mark.parametrize(
    ("delay", "backend"), [(1, "jit"), (2, "jit"), (3, "jit"), (4, "jit"), (3, "onnx")]
)
@pytest.mark.parametrize("order", ["earlier", "later"])
def test_a_value_is_as_many_ticks_late_as_it_was_recorded(
    order: str, delay: int, backend: str, tmp_path: Path
) -> None:
    nodes, edges = delayed(order, delay, backend)
    made = recording(tmp_path / "b", nodes, *edges)
    assert compile_recording(made) == {"source": True, "sink": True}
    assert verify(made.folder)["sound"]
    managers = [
        leapp.InferenceManager(str(made.folder / "b.yaml")),
        veracity.InferenceManager(made.folder),
    ]
    given = [row(tick, 1) for tick in range(1, 9)]
    expected = [2 * value for value in FIRST[:delay] + given][: len(given)]
    for value, want in zip(given, expected, strict=True):
        for manager in managers:
            found = manager.run_policy({"source/x": value.clone()})
            torch.testing.assert_close(found["sink/y"], want)


@pytest.mark.parametrize(
    ("order", "delay", "generated"),
    [("earlier", 0, 0), ("earlier", 1, 1), ("earlier", 2, 3), ("later", 1, 0), ("later", 3, 4)],
)
def test_each_tick_beyond_what_a_bundle_knows_takes_generated_nodes(
    order: str, delay: int, generated: int, tmp_path: Path
) -> None:
    nodes, edges = delayed(order, delay, "jit")
    found = compiled(recording(tmp_path / "b", nodes, *edges))
    assert len(found["models"]) == 2 + generated
    assert found["pipeline"]["inputs"] == {"source": ["x"]}
    # Nobody takes the value within its tick: it is still an output of the pipeline.
    kept = {"source": ["y"]} if delay else {}
    assert found["pipeline"]["outputs"] == {"sink": ["y"]} | kept


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_a_self_loop_of_several_ticks_is_right_in_both_runtimes(delay: int, tmp_path: Path) -> None:
    node = make_node(
        "n", lambda x, past: (past + x, past * 1), {"x": row(1), "past": row(0)}, ["y", "seen"]
    )
    past = [row(10 * number) for number in range(1, delay + 1)]
    made = recording(tmp_path / "b", [node], edge("n/y", "n/past", delay, *past))
    compile_recording(made)
    managers = [
        leapp.InferenceManager(str(made.folder / "b.yaml")),
        veracity.InferenceManager(made.folder),
    ]
    for tick in range(7):
        past.append(past[tick] + tick)
        for manager in managers:
            found = manager.run_policy({"n/x": row(tick)})
            torch.testing.assert_close(found["n/seen"], past[tick])


def test_one_output_may_feed_two_inputs_of_a_node(tmp_path: Path) -> None:
    adds = make_node("add", lambda a, b: a + b, {"a": row(1, 2), "b": row(1, 2)}, ["sum"])
    made = recording(
        tmp_path / "b", [scale("n", 2), adds], edge("n/y", "add/a"), edge("n/y", "add/b")
    )
    found = compiled(made)
    assert found["pipeline"]["data_flow"] == {"n/y": ["add/a", "add/b"]}
    for manager in (
        veracity.InferenceManager(made.folder),
        leapp.InferenceManager(str(made.folder / "b.yaml")),  # refuses to write it, but reads it
    ):
        outputs = manager.run_policy({"n/x": row(3, 4)})
        torch.testing.assert_close(outputs["add/sum"], row(12, 16))


@pytest.mark.parametrize(
    ("edges", "code", "words"),
    [
        ([edge("a/y", "wide/x")], "VER0312", "float32[1, 2] cannot feed float32[1, 3]"),
        ([edge("a/no", "b/x")], "VER0311", "there is no such output"),
        ([edge("no/y", "b/x")], "VER0311", "there is no such output"),
        ([edge("a/y", "b/x"), edge("wide/y", "b/x")], "VER0313", "a/y feeds this input as well"),
        ([edge("b/y", "a/x")], "VER0926", "cannot feed this one within a tick"),
        ([edge("b/y", "a/x", 2, row(1, 2))], "VER0926", "needs as many first values, and 1"),
    ],
)
def test_edges_that_cannot_be_written_are_refused_before_anything_is_exported(
    edges: list[Edge], code: str, words: str, tmp_path: Path
) -> None:
    wide = make_node("wide", lambda x: x[:, :2] * 1, {"x": torch.ones(1, 3)}, ["y"])
    made = recording(tmp_path / "g", [scale("a", 2), wide, scale("b", 3)], *edges)
    with pytest.raises(VeracityError) as found:
        compile_recording(made)
    told = [one for one in found.value.diagnostics if one.code == code]
    assert words in told[0].message
    assert told[0].location.startswith("policy.py:")
    assert not (made.folder / "g.yaml").exists()


def test_edges_into_inputs_that_do_not_matter_vanish(tmp_path: Path) -> None:
    made = recording(
        tmp_path / "g", [scale("a", 2), scale("b", 3)], edge("a/y", "b/x"), edge("a/y", "b/pruned")
    )
    assert compiled(made)["pipeline"]["data_flow"] == {"a/y": ["b/x"]}


# --- models that are brought along -------------------------------------------------------------


def external_onnx(folder: Path, weight: float) -> Path:
    """Write `y = x * weight` whose weight lies in `weights.bin`."""
    folder.mkdir()
    port = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 512]) for name in ("x", "y")]
    initial = onnx.numpy_helper.from_array(np.full((1, 512), weight, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])], "g", port[:1], port[1:], [initial]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path = folder / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (folder / "weights.bin").exists()
    return path


def brought(name: str, path: Path, factor: float, **options: Any) -> Node:
    return make_node(
        name,
        lambda x: x * factor,
        {"x": torch.ones(1, 512)},
        ["y"],
        export_with=None,
        backend_params={"model_path": path, **options},
    )


def test_external_data_is_copied_and_hashed_for_every_model(tmp_path: Path) -> None:
    paths = [external_onnx(tmp_path / name, value) for name, value in (("m", 2), ("n", 3))]
    nodes = [brought("two", paths[0], 2), brought("three", paths[1], 3)]
    made = recording(tmp_path / "b", nodes, edge("two/y", "three/x"))
    assert compile_recording(made) == {"two": True, "three": True}
    files = description(made.folder)["veracity"]["files"]
    # Both models call their data alike: the second one gets a folder.
    assert {"two.onnx", "weights.bin", "three/three.onnx", "three/weights.bin"} <= files.keys()
    found = verify(made.folder)
    assert found["sound"], found
    for manager in (
        veracity.InferenceManager(made.folder),
        leapp.InferenceManager(str(made.folder / "b.yaml")),
    ):
        outputs = manager.run_policy({"two/x": torch.ones(1, 512)})
        torch.testing.assert_close(outputs["three/y"], torch.full((1, 512), 6.0))
    (made.folder / "three/weights.bin").write_bytes(b"\0" * 2048)
    assert not verify(made.folder)["sound"]


def test_a_model_from_outside_is_always_copied_in_and_that_is_noted(tmp_path: Path) -> None:
    script = torch.jit.trace(lambda x: x * 2, torch.ones(1, 512))
    torch.jit.save(script, str(tmp_path / "far.pt"))
    for copy in (False, True):
        made = recording(
            tmp_path / f"b{copy}",
            [brought("n", tmp_path / "far.pt", 2, copy_original_model=copy)],
        )
        found = compiled(made)["models"]["n"]["parameters"]
        assert found["model_path"] == "n.pt"
        assert found["backend"] == "jit"
        assert "opset_version" not in found
        assert ("is copied into the bundle" in (made.folder / "log.txt").read_text()) != copy


def test_a_foreign_model_that_computes_something_else_does_not_pass(tmp_path: Path) -> None:
    script = torch.jit.trace(lambda x: x * 3, torch.ones(1, 512))
    torch.jit.save(script, str(tmp_path / "far.pt"))
    made = recording(tmp_path / "b", [brought("n", tmp_path / "far.pt", 2)])
    assert compile_recording(made, strict=False) == {"n": False}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"model_path": "gone.pt"}, "VER1007", "is not there"),
        ({"model_path": "model.engine"}, "VER1007", "no model that a bundle can hold"),
        ({"model_path": 3}, "VER1007", "not a path"),
        ({"modelpath": "a.pt"}, "VER1002", "`modelpath` is no option"),
    ],
)
def test_a_foreign_model_that_cannot_be_used_is_refused_with_the_line(
    options: dict[str, Any], code: str, words: str, tmp_path: Path
) -> None:
    node = scale("n", 2, None, backend_params=options)
    with pytest.raises(ExportError, match=words) as found:
        compile_recording(recording(tmp_path / "b", [node]))
    assert found.value.diagnostics[0].code == code
    assert found.value.diagnostics[0].location == "policy.py:1"


def test_a_foreign_onnx_model_with_other_port_names_is_refused(tmp_path: Path) -> None:
    path = external_onnx(tmp_path / "m", 2)
    node = make_node(
        "n",
        lambda z: z * 2,
        {"z": torch.ones(1, 512)},
        ["y"],
        export_with=None,
        backend_params={"model_path": path},
    )
    with pytest.raises(VeracityError, match="z"):
        compile_recording(recording(tmp_path / "b", [node]), strict=False)


# --- refusals and failures ---------------------------------------------------------------------


def wrong(name: str = "bad") -> Node:
    node = scale(name, 2)
    node.samples[0].outputs["y"] = row(7, 7)
    return node


def test_strict_refuses_what_failed_after_the_bundle_was_written(tmp_path: Path) -> None:
    made = recording(tmp_path / "b", [scale("good", 2), wrong()])
    with pytest.raises(ExportError, match=re.escape("failed for 1 node(s): ['bad']")) as found:
        compile_recording(made)
    assert [one.code for one in found.value.diagnostics] == ["VER1005", "VER1005"]
    assert "bad/y sample 0: 2 of 2 values" in found.value.diagnostics[1].message
    assert verify(made.folder)["sound"]
    assert description(made.folder)["veracity"]["proof"] == "proof.json"
    assert compile_recording(made, strict=False) == {"good": True, "bad": False}


def test_tolerances_are_used(tmp_path: Path) -> None:
    made = recording(tmp_path / "b", [wrong()])
    assert compile_recording(made, rtol=1.0) == {"bad": True}
    assert compile_recording(made, atol=10.0) == {"bad": True}
    with pytest.raises(ExportError):
        compile_recording(made, rtol=0.1)


def test_what_the_recorder_found_is_in_the_result_and_its_errors_refuse(tmp_path: Path) -> None:
    frozen = Diagnostic("VER0911", "warning", "left for Python", "policy.py:3", ())
    missed = Diagnostic("VER0912", "error", "changes", "policy.py:4", ())
    made = recording(tmp_path / "b", [scale("n", 2)], diagnostics=[frozen])
    result = compile_recording(made)
    assert result.diagnostics == [frozen]  # type: ignore[union-attr]
    made.diagnostics.append(missed)
    with pytest.raises(VeracityError, match="VER0912") as found:
        compile_recording(made)
    assert found.value.diagnostics == [missed]
    assert compile_recording(made, strict=False).diagnostics == [frozen, missed]  # type: ignore[union-attr]


def test_all_nodes_that_cannot_be_exported_are_told_at_once(tmp_path: Path) -> None:
    nodes = [scale("a", 2, "jot"), scale("b", 2), scale("c", 2, "onxx")]
    made = recording(tmp_path / "b", nodes)
    with pytest.raises(ValueError, match="jot") as found:
        compile_recording(made)
    assert [one.code for one in found.value.diagnostics] == ["VER1003"] * 2  # type: ignore[attr-defined]
    assert not (made.folder / "b.yaml").exists()
    assert "onxx" in (made.folder / "log.txt").read_text()


def test_a_failed_compilation_leaves_the_old_bundle(tmp_path: Path) -> None:
    made = recording(tmp_path / "b", [scale("n", 2)])
    before = compiled(made)
    with pytest.raises(VeracityError):
        compile_recording(recording(tmp_path / "b", [scale("n", 2, "jot")]))
    assert description(made.folder) == before
    assert verify(made.folder)["sound"]


def test_configs_of_another_type_are_refused_first(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not GraphConfigs"):
        compile_recording(
            recording(tmp_path / "b", [scale("n", 2)]),
            graph_configs={"frequency": 50},  # type: ignore[arg-type]
        )
    assert not (tmp_path / "b").exists()


# --- the folder --------------------------------------------------------------------------------


def test_files_of_others_in_the_folder_stay(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "params.yaml").write_text("seed: 1")
    (folder / "checkpoints/model.pt").write_text("weights")
    made = recording(folder, [scale("n", 2)])
    for _ in range(2):
        assert compile_recording(made) == {"n": True}
    assert (folder / "params.yaml").read_text() == "seed: 1"
    assert (folder / "checkpoints/model.pt").read_text() == "weights"
    assert verify(folder)["sound"]
    assert "other files, which stay: checkpoints, params.yaml" in (folder / "log.txt").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_write_bundle_does_not_replace_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/params.yaml").write_text("seed: 1")
    nodes = [{"name": "n", "model": external_onnx(tmp_path / "m", 2)}]
    with pytest.raises(veracity.BundleError, match=r"would be lost: params\.yaml"):
        veracity.write_bundle(tmp_path / "run", nodes=nodes)
    assert (tmp_path / "run/params.yaml").exists()


def test_a_bundle_replaces_an_older_one_whole(tmp_path: Path) -> None:
    made = recording(tmp_path / "b", [scale("old", 2), counter()])
    compile_recording(made)
    compile_recording(recording(tmp_path / "b", [scale("new", 2)]))
    files = sorted(path.name for path in (tmp_path / "b").iterdir())
    pictures = ["b.png", "b.svg"]
    assert files == [
        *pictures,
        "b.yaml",
        "b_samples.safetensors",
        "log.txt",
        "new.pt",
        "proof.json",
        "report.html",
    ]


# --- the log -----------------------------------------------------------------------------------


def test_the_log_has_statistics_and_the_outcome(tmp_path: Path) -> None:
    nodes = [scale("a", 2), counter(), scale("b", 2)]
    made = recording(tmp_path / "g", nodes, edge("a/y", "count/step"))
    compile_recording(made)
    text = (made.folder / "log.txt").read_text()
    for line in (
        "Computation nodes: 3",
        "Dangling inputs: 2",
        "Dangling outputs: 2",
        "Internal connections: 2",
        "Total edges: 6",
        f"[PASS] count passed validation ({1 + DRAWS} examples)",
        "3 of 3 models passed validation",
    ):
        assert line in text
    assert re.search(r"^\d{4}-\d\d-\d\d .* INFO +\[PASS\] a ", text, re.MULTILINE)
    compile_recording(made)
    assert (made.folder / "log.txt").read_text().startswith(text), "a second run goes on"


@pytest.mark.parametrize("verbose", [False, True])
def test_the_console_gets_the_proof_and_a_summary_on_stderr_or_everything(
    verbose: bool, tmp_path: Path
) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from nodes_by_hand import recording
import torch
from nodes_by_hand import make_node
from veracity.export.compile import compile_recording
node = make_node("n", lambda x: x * 2, {{"x": torch.ones(1)}}, ["y"])
compile_recording(recording(Path({str(tmp_path / "b")!r}), [node], verbose={verbose}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert lines[-1].startswith("veracity: INFO: b: 1 node, 1 model in ")
    assert lines[-2] == "1 proved, 0 disproved, 0 not comparable"
    assert lines[0].startswith("veracity: INFO: proof of b") != verbose


def test_an_application_that_logs_gets_the_records_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    made = recording(tmp_path / "b", [wrong()])
    compile_recording(made, strict=False)
    errors = [record for record in caplog.records if "1 disproved" in record.message]
    assert [record.levelname for record in errors] == ["ERROR"]
    assert logging.getLogger("veracity.export").handlers == []
