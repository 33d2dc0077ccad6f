"""`annotate.method`: functions and methods as nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from differential.registry import Step, Values, script


@script("method", {"scale/raw": (1, 4)})
def names_come_from_the_source(api: Any) -> Step:
    @api.annotate.method(export_with="jit")
    def scale(raw: Tensor) -> tuple[Tensor, Tensor]:
        low = raw * 0.5
        high = raw * 2
        return low, high

    def step(given: Values) -> Values:
        low, high = scale(given["scale/raw"])
        return {"scale/low": low, "scale/high": high}

    return step


@script("method", {"pre/raw": (1, 4)})
def expressions_are_numbered(api: Any) -> Step:
    @api.annotate.method(node_name="pre", export_with="jit")
    def prepare(raw: Tensor) -> Tensor:
        return raw - raw.mean()

    def step(given: Values) -> Values:
        return {"pre/output1": prepare(given["pre/raw"])}

    return step


@script("method", {"split/raw": (1, 4)})
def a_dict_gives_its_keys(api: Any) -> Step:
    @api.annotate.method(export_with="jit")
    def split(raw: Tensor) -> dict[str, Tensor]:
        return {"left": raw[:, :2] * 1.0, "right": raw[:, 2:] * 1.0}

    def step(given: Values) -> Values:
        both = split(given["split/raw"])
        return {"split/output1_left": both["left"], "split/output1_right": both["right"]}

    return step


_SCALE = torch.tensor([1.0, 2.0])


@script("method", {"apply/x": (1, 2)})
def a_default_tensor_is_a_constant(api: Any) -> Step:
    @api.annotate.method(export_with="jit")
    def apply(x: Tensor, scale: Tensor = _SCALE) -> Tensor:
        y = x * scale
        return y

    def step(given: Values) -> Values:
        return {"apply/y": apply(given["apply/x"])}

    return step


@script("method", {"apply/x": (1, 2), "apply/scale": (2,)})
def a_given_default_is_an_input(api: Any) -> Step:
    @api.annotate.method(export_with="jit")
    def apply(x: Tensor, scale: Tensor = _SCALE) -> Tensor:
        y = x * scale
        return y

    def step(given: Values) -> Values:
        return {"apply/y": apply(given["apply/x"], scale=given["apply/scale"])}

    return step


@script("method", {"join/arg_0": (1, 2), "join/arg_1": (1, 2)})
def positional_rest_arguments_are_numbered(api: Any) -> Step:
    @api.annotate.method(export_with="jit")
    def join(*parts: Tensor) -> Tensor:
        joined = torch.cat(parts, dim=-1)
        return joined

    def step(given: Values) -> Values:
        return {"join/joined": join(given["join/arg_0"], given["join/arg_1"])}

    return step


@script("method", {"act/obs": (1, 2)}, passes=3)
def methods_of_a_class_with_state_inside(api: Any) -> Step:
    class Policy:
        def __init__(self) -> None:
            self.memory = torch.zeros(1, 2)

        @api.annotate.method(export_with="jit")
        def act(self, obs: Tensor) -> Tensor:
            held = api.annotate.state_tensors("act", {"memory": self.memory})
            self.memory = 0.5 * held + obs
            api.annotate.update_state("act", {"memory": self.memory})
            action = self.memory.tanh()
            return action

    policy = Policy()

    def step(given: Values) -> Values:
        return {"act/action": policy.act(given["act/obs"])}

    return step


@script("method", {"first/x": (1, 2)})
def methods_chain(api: Any) -> Step:
    @api.annotate.method(export_with="jit")
    def first(x: Tensor) -> Tensor:
        out = x + 1
        return out

    @api.annotate.method(export_with="jit-trace")
    def second(seen: Tensor) -> Tensor:
        y = seen * 2
        return y

    def step(given: Values) -> Values:
        return {"second/y": second(first(given["first/x"]))}

    return step
