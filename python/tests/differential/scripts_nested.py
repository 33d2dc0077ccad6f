"""Containers of tensors as inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from differential.registry import Better, Step, Values, script

_SENSORS = {"obs/state_pos": (1, 6), "obs/state_imu_0": (1, 3), "obs/state_imu_1": (1, 3)}


def _sensors(given: Values) -> dict[str, Any]:
    imu = [given["obs/state_imu_0"], given["obs/state_imu_1"]]
    return {"pos": given["obs/state_pos"], "imu": imu}


@script("nested", _SENSORS)
def dict_with_a_list(api: Any) -> Step:
    def step(given: Values) -> Values:
        state = api.annotate.input_tensors("obs", {"state": _sensors(given)})
        y = torch.cat([state["pos"], *state["imu"]], dim=-1)
        api.annotate.output_tensors("obs", {"y": y}, export_with="jit")
        return {"obs/y": y}

    return step


@script("nested", _SENSORS)
def tuple_inside_a_dict(api: Any) -> Step:
    def step(given: Values) -> Values:
        sensors = _sensors(given)
        sensors["imu"] = tuple(sensors["imu"])
        state = api.annotate.input_tensors("obs", {"state": sensors})
        first, second = state["imu"]
        y = torch.cat([state["pos"], first - second], dim=-1)
        api.annotate.output_tensors("obs", {"y": y}, export_with="jit")
        return {"obs/y": y}

    return step


@script("nested", {"n/x": (2, 3)})
def nested_outputs(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("n", {"x": given["n/x"]})
        pair = {"mean": x.mean(0), "ends": [x[0] * 1.0, x[1] * 2.0]}
        api.annotate.output_tensors("n", {"out": pair}, export_with="jit")
        return {
            "n/out_mean": pair["mean"],
            "n/out_ends_0": pair["ends"][0],
            "n/out_ends_1": pair["ends"][1],
        }

    return step


@script("nested", {"a/x": (2, 3)})
def nested_values_keep_their_edges(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        features = {"low": x - 1, "high": [x + 1]}
        api.annotate.output_tensors("a", {"features": features}, export_with="jit")
        seen = api.annotate.input_tensors("b", {"features": features})
        y = seen["low"] * seen["high"][0]
        api.annotate.output_tensors("b", {"y": y}, export_with="jit")
        return {"b/y": y}

    return step


@dataclass
class _Sensors:
    pos: Tensor
    vel: Tensor


@script(
    "nested",
    {"n/s_pos": (1, 2), "n/s_vel": (1, 2)},
    relation=Better("a dataclass is an opaque constant", Exception, message="non-traced"),
)
def dataclass_input(api: Any) -> Step:
    def step(given: Values) -> Values:
        sensors = _Sensors(given["n/s_pos"], given["n/s_vel"])
        sensors = api.annotate.input_tensors("n", {"s": sensors})
        y = sensors.pos + 0.1 * sensors.vel
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step


class _Pair(NamedTuple):
    pos: Tensor
    vel: Tensor


@script(
    "nested",
    {"n/s_pos": (1, 2), "n/s_vel": (1, 2)},
    relation=Better("a named tuple comes back as a plain one, or not at all", TypeError),
)
def named_tuple_input(api: Any) -> Step:
    def step(given: Values) -> Values:
        pair = api.annotate.input_tensors("n", {"s": _Pair(given["n/s_pos"], given["n/s_vel"])})
        y = pair.pos + 0.1 * pair.vel
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step
