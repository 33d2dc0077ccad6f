"""Rules for the graph of a node: it computes what was recorded, and touches nobody's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from expressions import EXPRESSIONS
from recording import record
from torch import fx
from veracity.errors import TraceError
from veracity.export import graph
from veracity.export.lowering import LOCATION
from veracity.tracing.slice import Call, ConstantUse, Copy, Geometry, InputUse, Ref, Slice, View

HERE = "policy.py:7"
X = Ref("input", 0)


def call(
    func: Any, *args: Any, outputs: tuple[tuple[int, ...], ...] = ((),), **kwargs: Any
) -> Call:
    return Call(func, args, kwargs, outputs, HERE)


def module_of(*steps: Any, constants: list[ConstantUse] | None = None, **options: Any) -> Any:
    """Build a module with one input `x` whose output is the last step."""
    program = Slice(
        inputs=[InputUse("x", options.get("written", False))],
        constants=constants or [],
        steps=list(steps),
        outputs=options.get("outputs", [Ref("step", len(steps) - 1)]),
    )
    return graph.build(program, [f"y{number}" for number in range(len(program.outputs))])


def recorded(function: Any, *inputs: torch.Tensor) -> fx.GraphModule:
    program, results = record(function, {f"x{n}": tensor for n, tensor in enumerate(inputs)})
    return graph.build(program, [f"y{number}" for number in range(len(results))])


def as_list(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_module_borrows_nothing_and_changes_nothing(name: str) -> None:
    function, make = EXPRESSIONS[name]
    module = recorded(function, *make(torch.Generator(torch.get_default_device()).manual_seed(1)))
    inputs = make(torch.Generator(torch.get_default_device()).manual_seed(2))
    owned = [*inputs, *module.buffers()]
    before = [tensor.clone() for tensor in owned]
    results = as_list(module(*inputs))
    torch.testing.assert_close(owned, before, rtol=0, atol=0, equal_nan=True)
    memory = {tensor.untyped_storage().data_ptr() for tensor in owned if tensor.numel()}
    assert not memory & {result.untyped_storage().data_ptr() for result in results}


def test_computing_does_not_cost_a_copy() -> None:
    module = recorded(
        lambda x: torch.relu(torch.nn.functional.linear(x, torch.eye(4))), torch.ones(4)
    )
    assert "clone" not in module.code


@pytest.mark.parametrize(
    "names",
    [
        ["a.b", "class", "y y", "0", "self", "torch"],
        ["", "é", "a-b", "a_b", "a b"],
        ["x", "x_1", "input_x", "inf", "device"],
    ],
)
def test_ports_of_any_name_become_distinct_parameters_in_their_order(names: list[str]) -> None:
    inputs = {name: torch.full((2,), float(number)) for number, name in enumerate(names)}
    program, _ = record(lambda *given: torch.stack(given), inputs)
    module = graph.build(program, ["y"])
    parameters = [node.target for node in module.graph.nodes if node.op == "placeholder"]
    assert len(set(parameters)) == len(names)
    assert all(str(parameter).isidentifier() for parameter in parameters)
    assert module(*inputs.values())[:, 0].tolist() == list(range(len(names)))


def test_one_output_is_bare_and_several_are_a_tuple() -> None:
    one = recorded(lambda x: x + 1, torch.ones(2))
    two = recorded(lambda x: (x + 1, x + 2), torch.ones(2))
    assert isinstance(one(torch.ones(2)), torch.Tensor)
    assert [found.tolist() for found in two(torch.ones(2))] == [[2, 2], [3, 3]]


def test_the_same_value_under_two_names_gives_two_tensors() -> None:
    module = module_of(call(torch.Tensor.neg, X), outputs=[Ref("step", 0), Ref("step", 0)])
    first, second = module(torch.ones(2))
    assert torch.equal(first, second)
    assert first.data_ptr() != second.data_ptr()


def test_an_output_is_read_at_its_own_position() -> None:
    module = module_of(
        call(torch.Tensor.neg, X),
        Copy(Ref("step", 0), HERE),
        call(torch.Tensor.add_, Ref("step", 0), 5),
        outputs=[Ref("step", 1), Ref("step", 0)],
    )
    assert [found.item() for found in module(torch.ones(()))] == [-1, 4]


def test_operations_keep_the_line_of_the_user() -> None:
    module = module_of(
        call(torch.sort, X, outputs=((0,), (1,))), call(torch.Tensor.neg, Ref("step", 0, 1))
    )
    computing = [node for node in module.graph.nodes if node.op.startswith("call")]
    assert [node.meta[LOCATION] for node in computing] == [HERE] * len(computing)


def test_results_that_nobody_uses_are_not_taken_out() -> None:
    module = module_of(
        call(torch.sort, X, outputs=((0,), (1,))), call(torch.Tensor.neg, Ref("step", 0, 1))
    )
    assert module.code.count("sort[") == 1


# Constants


def test_a_constant_that_is_used_twice_is_stored_once() -> None:
    weight = torch.randn(3, 3)
    again, turned = weight.detach(), weight.T
    module = recorded(lambda x: x @ weight + x @ again @ turned, torch.eye(3))
    names = [name for name, _ in module.named_buffers()]
    assert names == ["constant_0", "constant_1"]
    assert module.constant_1.is_contiguous()


def test_the_names_of_constants_do_not_depend_on_the_order_of_the_recorder() -> None:
    one, two = ConstantUse(torch.ones(2), False), ConstantUse(torch.zeros(2), False)

    def build(constants: list[ConstantUse], first: int, second: int) -> Any:
        return module_of(
            call(torch.Tensor.add, X, Ref("constant", first)),
            call(torch.Tensor.mul, Ref("step", 0), Ref("constant", second)),
            constants=constants,
        )

    forward, backward = build([one, two], 0, 1), build([two, one], 1, 0)
    assert forward.code == backward.code
    assert torch.equal(forward.constant_0, backward.constant_0)


def test_a_written_constant_starts_anew_on_each_run() -> None:
    module = module_of(
        call(torch.Tensor.add_, Ref("constant", 0), X),
        constants=[ConstantUse(torch.ones(2), True)],
    )
    assert [module(torch.ones(2)).tolist() for _ in range(3)] == [[2, 2]] * 3


def test_views_of_one_written_constant_go_on_sharing_memory() -> None:
    memory = torch.arange(6.0)
    uses = [ConstantUse(memory[1:].view(5)[:4].view(2, 2), True), ConstantUse(memory[2:5], True)]
    module = module_of(
        call(torch.Tensor.mul_, Ref("constant", 0), X),
        call(torch.Tensor.add, Ref("constant", 1), 0),
        constants=uses,
    )
    assert module(torch.tensor(10.0)).tolist() == [20, 30, 40]
    assert memory.tolist() == [0, 1, 2, 3, 4, 5]


def test_constants_of_two_types_on_written_memory_are_refused() -> None:
    memory = torch.ones(4)
    with pytest.raises(TraceError, match="VER0920"):
        module_of(
            call(torch.Tensor.mul_, Ref("constant", 0), X),
            call(torch.Tensor.add, Ref("constant", 1), X),
            constants=[ConstantUse(memory, True), ConstantUse(memory.view(torch.int32), True)],
        )


def test_arrays_in_arguments_become_constants() -> None:
    index = np.array([2, 0])
    module = recorded(lambda x: x[index], torch.arange(3.0))
    index[:] = 1
    assert module(torch.arange(3.0)).tolist() == [2, 0]


# Aliases that nobody saw being made

SQUARE = Geometry(2, (3, 4), (4, 1))


@pytest.mark.parametrize(
    "wanted",
    [
        SQUARE,
        Geometry(6, (4,), (1,)),
        Geometry(6, (2, 4), (4, 1)),
        Geometry(2, (4, 3), (1, 4)),
        Geometry(3, (3, 2), (4, 2)),
        Geometry(5, (), ()),
        Geometry(2, (5, 4), (0, 1)),
        Geometry(2, (0, 4), (4, 1)),
        Geometry(2, (1, 12), (99, 1)),
    ],
)
def test_a_view_reads_the_memory_that_it_names(wanted: Geometry) -> None:
    x = torch.arange(12.0).view(3, 4)
    module = module_of(
        call(torch.Tensor.mul, X, 2),
        View(Ref("step", 0), SQUARE, wanted, torch.float32, HERE),
        call(torch.Tensor.add_, Ref("step", 0), 100),
        call(torch.Tensor.neg, Ref("step", 1)),
    )
    storage = torch.cat([torch.zeros(2), (x * 2 + 100).flatten()])
    expected = -storage.as_strided(wanted.sizes, wanted.strides, wanted.offset)
    assert torch.equal(module(x), expected)


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        (Geometry(0, (4, 3), (8, 1)), Geometry(0, (4,), (1,))),
        (SQUARE, Geometry(0, (4,), (1,))),
        (SQUARE, Geometry(12, (4,), (1,))),
    ],
    ids=["base in pieces", "before the base", "behind the base"],
)
def test_a_view_that_cannot_be_followed_is_refused(base: Geometry, wanted: Geometry) -> None:
    with pytest.raises(TraceError) as refused:
        module_of(View(X, base, wanted, torch.float32, HERE))
    assert (refused.value.diagnostics[0].code, refused.value.diagnostics[0].location) == (
        "VER0920",
        HERE,
    )


# Calls


def test_adding_to_a_part_writes_once() -> None:
    def add(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[1:] += 2
        return y

    module = recorded(add, torch.zeros(3))
    assert "setitem" not in module.code
    assert module(torch.zeros(3)).tolist() == [0, 2, 2]


def test_adding_through_an_index_tensor_is_assigned() -> None:
    def add(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[[0, 2]] += 2
        return y

    assert recorded(add, torch.zeros(3))(torch.zeros(3)).tolist() == [2, 0, 2]


def test_numpy_numbers_and_sizes_become_plain() -> None:
    module = module_of(
        call(torch.Tensor.mul, X, np.float64(2)),
        call(torch.Tensor.reshape, Ref("step", 0), torch.Size([2, 1])),
    )
    assert "np." not in module.code
    assert module(torch.ones(2)).tolist() == [[2], [2]]


class Foreign:
    """Something that no graph can hold."""


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (call(torch.cond, X, torch.sin, torch.cos, (X,)), "cond"),
        (call(torch.autograd.grad, X, X), "grad"),
        (call(torch.Tensor.backward, X), "backward"),
        (call(torch.Tensor.grad.__get__, X), "grad"),
        (call(torch.Tensor.data.__set__, X, X), ".data"),
        (call(torch.Tensor.set_, X, X), "set_"),
        (call(torch.Tensor.apply_, X, abs), "abs"),
        (call(torch.Tensor.to_sparse, X), "to_sparse"),
        (call(torch.Tensor.add, X, Foreign()), "Foreign"),
        (call(torch.roll, X, X), "roll"),
        (call(torch.sum, X, dim=X), "sum"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_exporter_can_take_is_refused_by_name_and_line(step: Call, said: str) -> None:
    with pytest.raises(TraceError) as refused:
        module_of(step)
    found = refused.value.diagnostics[0]
    assert (found.code, found.location) == ("VER0920", HERE)
    assert said in found.message


def test_a_sparse_constant_is_refused_where_it_is_used() -> None:
    with pytest.raises(TraceError) as refused:
        module_of(
            call(torch.Tensor.mul, X, Ref("constant", 0)),
            constants=[ConstantUse(torch.eye(3).to_sparse(), False)],
        )
    found = refused.value.diagnostics[0]
    assert (found.code, found.location) == ("VER0920", HERE)
    assert "to_dense" in found.hints[0]
