"""What a decorated function returns, in every form, and the names of its ports.

Names of ports are the contract with the robot's side: they are LEAPP's where LEAPP has any.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from veracity.tracing.flatten import flatten

from differential.registry import Better, Step, Values, script

GIVEN = {"step/x": (1, 2)}
Pair = namedtuple("Pair", ["mean", "spread"])

#: LEAPP reads the names from the source only, and this source shows one.
ONE_NAME = Better(
    "LEAPP refuses a tuple whose parts the `return` statement does not show",
    Exception,
    message="but LEAPP detected the following return names",
)


def _step(api: Any, function: Callable[[Tensor], Any], names: tuple[str, ...]) -> Step:
    """One tick: call the function as the node `step`; its results have these names, in order."""
    decorated = api.annotate.method(node_name="step", export_with="jit")(function)

    def step(given: Values) -> Values:
        leaves = [leaf.value for leaf in flatten({"": decorated(given["step/x"])})]
        return dict(zip([f"step/{name}" for name in names], leaves, strict=True))

    return step


@script("returns", GIVEN)
def a_list_is_one_result(api: Any) -> Step:
    def run(x: Tensor) -> list[Tensor]:
        low = x * 0.5
        high = x * 2
        return [low, high]

    return _step(api, run, ("output1_0", "output1_1"))


@script("returns", GIVEN)
def a_list_of_one_is_still_a_list(api: Any) -> Step:
    def run(x: Tensor) -> list[Tensor]:
        return [x * 2]

    return _step(api, run, ("output1_0",))


@script("returns", GIVEN)
def a_list_that_is_built_at_run_time(api: Any) -> Step:
    def run(x: Tensor) -> list[Tensor]:
        heads = []
        for number in range(8):
            heads.append(x * float(number + 1))  # noqa: PERF401 (as people write it)
        return heads

    return _step(api, run, tuple(f"heads_{number}" for number in range(8)))


@script("returns", GIVEN)
def lists_inside_of_lists(api: Any) -> Step:
    def run(x: Tensor) -> list[list[Tensor]]:
        return [[x + 1, x * 2], [x - 1]]

    return _step(api, run, ("output1_0_0", "output1_0_1", "output1_1_0"))


@script("returns", GIVEN)
def lists_and_tuples_inside_of_a_dict(api: Any) -> Step:
    def run(x: Tensor) -> dict[str, Any]:
        return {"legs": [x + 1, x * 2], "arms": (x - 1,)}

    return _step(api, run, ("output1_legs_0", "output1_legs_1", "output1_arms_0"))


@script("returns", GIVEN)
def a_dict_with_a_name(api: Any) -> Step:
    def run(x: Tensor) -> dict[str, Tensor]:
        command = {"left": x * 1.0, "right": x * 2.0}
        return command

    return _step(api, run, ("command_left", "command_right"))


@script("returns", GIVEN)
def a_tuple_of_one(api: Any) -> Step:
    def run(x: Tensor) -> tuple[Tensor]:
        return (x * 2,)

    return _step(api, run, ("output1",))


@script("returns", GIVEN)
def a_tuple_of_names_and_expressions(api: Any) -> Step:
    def run(x: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        action = x * 2
        return action, x + 1, {"value": x - 1}

    return _step(api, run, ("action", "output2", "output3_value"))


@script("returns", GIVEN)
def of_two_return_statements_the_one_with_a_name_counts(api: Any) -> Step:
    gain = 2.0

    def run(x: Tensor) -> Tensor:
        action = x * gain
        if gain < 0:
            return x * 1.0
        return action

    return _step(api, run, ("action",))


@script("returns", GIVEN, relation=ONE_NAME)
def a_tuple_that_has_a_name(api: Any) -> Step:
    def run(x: Tensor) -> tuple[Tensor, Tensor]:
        both = (x * 2, x + 1)
        return both

    return _step(api, run, ("both_0", "both_1"))


@script("returns", GIVEN, relation=ONE_NAME)
def a_tuple_that_a_call_gives(api: Any) -> Step:
    class Head(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x * 2, x + 1

    head = Head()

    def run(x: Tensor) -> tuple[Tensor, Tensor]:
        return head(x)

    return _step(api, run, ("output1_0", "output1_1"))


@script("returns", GIVEN, relation=ONE_NAME)
def a_named_tuple(api: Any) -> Step:
    def run(x: Tensor) -> Pair:
        return Pair(x * 2, x + 1)

    return _step(api, run, ("output1_mean", "output1_spread"))
