"""What ports mean: kinds, element names, extra fields, time axes, and the pipeline's settings."""

from __future__ import annotations

from typing import Any

import torch

from differential.registry import Same, Step, Values, script


def _meaning(title: str, *, warns: tuple[str, ...] = (), **fields: Any) -> None:
    relation = Same(warns)

    @script("semantics", {"n/x": (2, 3)}, name=f"semantics_{title}", passes=1, relation=relation)
    def meaning(api: Any) -> Step:
        built = {key: value(api) if callable(value) else value for key, value in fields.items()}

        def step(given: Values) -> Values:
            described = api.TensorSemantics(name="x", ref=given["n/x"], **built)
            x = api.annotate.input_tensors("n", described)
            y = x * 2
            api.annotate.output_tensors("n", {"y": y}, export_with="jit")
            return {"n/y": y}

        return step


_meaning("kind_enum", kind=lambda api: api.InputKindEnum.JOINT_POSITION)
_meaning("kind_string", kind="custom/thing")
_meaning("no_fields")
_meaning("one_element_name", element_names="height", warns=("VER0323",))
_meaning("flat_element_names", element_names=["a", "b", "c"])
_meaning("element_names_per_axis", element_names=[None, ["a", "b", "c"]])
_meaning("temporal_axis", element_names=lambda api: [api.TemporalAxis(20), ["a", "b", "c"]])
_meaning("extra_fields", extra={"units": "rad", "limits": [-1, 1]})


@script(
    "semantics",
    {"policy/joint_pos": (1, 3), "policy/cmd": (1, 3)},
    compile=lambda api: {
        "graph_configs": api.GraphConfigs(frequency=50, extra={"runtime": "isaac_lab"})
    },
)
def semantics_in_lists_with_static_outputs(api: Any) -> Step:
    gains = torch.arange(3.0)

    def step(given: Values) -> Values:
        position, command = api.annotate.input_tensors(
            "policy",
            [
                api.TensorSemantics(
                    name="joint_pos",
                    ref=given["policy/joint_pos"],
                    kind=api.InputKindEnum.JOINT_POSITION,
                    element_names=["a", "b", "c"],
                ),
                api.TensorSemantics(name="cmd", ref=given["policy/cmd"]),
            ],
        )
        actions = position * 2 + command
        kind = api.OutputKindEnum
        api.annotate.output_tensors(
            "policy",
            [api.TensorSemantics(name="actions", ref=actions, kind=kind.JOINT_POSITION)],
            static_outputs=[api.TensorSemantics(name="kd", ref=gains, kind=kind.KD)],
            export_with="jit",
        )
        return {"policy/actions": actions, "policy/kd": gains}

    return step


@script("semantics", {"a/x": (1, 2)})
def semantics_of_a_consumed_port_on_onnx_with_a_renamed_state(api: Any) -> Step:
    h = torch.zeros(1, 2)

    def step(given: Values) -> Values:
        nonlocal h
        x, held = api.annotate.input_tensors(
            "a",
            [
                api.TensorSemantics(name="x", ref=given["a/x"], kind="state/x"),
                api.TensorSemantics(name="h", ref=h, kind="state/h"),
            ],
        )
        h = held + x
        y = h * 2
        api.annotate.output_tensors(
            "a",
            [
                api.TensorSemantics(name="h", ref=h, kind="state/h"),
                api.TensorSemantics(name="y", ref=y, kind="target/y"),
            ],
            export_with="onnx",
        )
        return {"a/y": y}

    return step
