"""What becomes a port: names, order, dtypes, shapes, pruning, statics, scalars."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from differential.nodes import BACKENDS, one_node
from differential.registry import Better, Same, Step, Values, script


def _passthrough(backend: str) -> None:
    name = f"passthrough_{backend.replace('-', '_')}"

    @script("ports", {"n/x": (1, 3)}, name=name)
    def passthrough(api: Any) -> Step:
        return one_node(api, lambda x: x, backend)


for _backend in BACKENDS:
    _passthrough(_backend)


@script("ports", {"n/x": (2, 3), "n/unused": (4,)})
def unused_input_is_pruned(api: Any) -> Step:
    return one_node(api, lambda x, unused: x.exp())


@script("ports", {"n/late": (2,), "n/early": (2,)})
def inputs_from_two_call_sites(api: Any) -> Step:
    def read_early(given: Values) -> Tensor:
        value: Tensor = api.annotate.input_tensors("n", {"early": given["n/early"]})
        return value * 2

    def read_late(given: Values) -> Tensor:
        value: Tensor = api.annotate.input_tensors("n", {"late": given["n/late"]})
        return value - 1

    def step(given: Values) -> Values:
        y = read_early(given) + read_late(given)
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step


@script("ports", {"n/x": (1, 4)})
def several_outputs_keep_their_order(api: Any) -> Step:
    return one_node(api, lambda x: {"zeta": x + 1, "alpha": x.sum(-1), "mid": x > 0})


@script(
    "ports",
    {
        "n/index": lambda g: torch.randint(0, 4, (3,), generator=g),
        "n/mask": lambda g: torch.rand(3, generator=g) > 0.5,
    },
)
def integer_and_bool_ports(api: Any) -> Step:
    table = torch.arange(12.0).reshape(4, 3)

    def select(index: Tensor, mask: Tensor) -> dict[str, Tensor]:
        picked = torch.index_select(table, 0, index)
        rows = torch.where(mask.unsqueeze(-1), picked, torch.zeros(3))
        return {"rows": rows, "twice": index * 2, "inverse": torch.logical_not(mask)}

    return one_node(api, select)


@script(
    "ports",
    {"n/index": lambda g: torch.randint(0, 4, (3,), generator=g)},
    relation=Better("a plain tensor cannot be indexed by a traced one", TypeError),
)
def an_index_into_a_plain_table(api: Any) -> Step:
    table = torch.arange(12.0).reshape(4, 3)
    return one_node(api, lambda index: table[index] * 2)


def _dtype(dtype: torch.dtype) -> None:
    name = f"port_of_{str(dtype).removeprefix('torch.')}"
    draw = {"n/x": lambda g: torch.randint(0, 9, (2, 3), generator=g).to(dtype)}

    @script("ports", draw, name=name)
    def port(api: Any) -> Step:
        return one_node(api, lambda x: x + x)


for _each in (torch.float16, torch.float64, torch.int8, torch.int16, torch.int32, torch.uint8):
    _dtype(_each)


@script("ports", {"n/x": ()})
def zero_dimensional_port(api: Any) -> Step:
    return one_node(api, lambda x: {"y": x * 2, "row": x.expand(3) + 1})


@script("ports", {"n/x": (0, 3)})
def empty_port(api: Any) -> Step:
    return one_node(api, lambda x: {"y": x + 1, "total": x.sum(0)})


@script("ports", {"n/x": (1, 3)})
def static_outputs_follow_the_outputs(api: Any) -> Step:
    gains = torch.tensor([1.0, 2.0, 3.0])

    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("n", {"x": given["n/x"]})
        y = x.tanh()
        api.annotate.output_tensors(
            "n", {"y": y}, static_outputs={"kp": gains, "kd": gains / 10}, export_with="jit"
        )
        return {"n/y": y, "n/kp": gains, "n/kd": gains / 10}

    return step


@script("ports", {"n/x": (1, 3)}, relation=Same(warns=("VER0911",)))
def a_python_number_among_the_inputs_is_a_constant(api: Any) -> Step:
    def step(given: Values) -> Values:
        x, gain = api.annotate.input_tensors("n", {"x": given["n/x"], "gain": 2.5})
        y = x * gain
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step


@script("ports", {"n/x": (1, 3)})
def one_value_under_two_output_names(api: Any) -> Step:
    def compute(x: Tensor) -> dict[str, Tensor]:
        y = x * 2
        return {"first": y, "second": y}

    return one_node(api, compute)


@script(
    "ports",
    {"n/p": (1, 3), "n/q": (1, 3)},
    relation=Better("the first of two names of one object vanishes", "wrong"),
    traced=lambda tick, given: given | {"n/q": given["n/p"]},
)
def one_object_under_two_input_names(api: Any) -> Step:
    return one_node(api, lambda p, q: p - 2 * q)


@script(
    "ports",
    {"n/p": (1, 3), "n/q": (1, 3)},
    relation=Better("an alias of an input collapses into it", "wrong"),
    traced=lambda tick, given: given | {"n/q": given["n/p"].detach()},
)
def an_alias_under_a_second_input_name(api: Any) -> Step:
    return one_node(api, lambda p, q: p - 2 * q)


def _name(name: str, title: str) -> None:
    @script(
        "ports",
        {f"n/{name}": (1, 3)},
        name=f"port_name_{title}",
        relation=Better("names become identifiers of generated code", SyntaxError),
    )
    def named(api: Any) -> Step:
        return one_node(api, lambda x: x * 2)


_name("a.b", "with_a_dot")
_name("a b", "with_a_space")
_name("class", "that_is_a_keyword")
_name("0", "that_is_a_number")


@script(
    "ports",
    {"n/x": (1, 8)},
    relation=Better("complex intermediates have no dtype name", KeyError),
)
def complex_intermediate(api: Any) -> Step:
    return one_node(api, lambda x: torch.fft.rfft(x).abs())
