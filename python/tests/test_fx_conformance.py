"""The rules that transformations of torch.fx graphs are known by, on three small networks."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch
from fx_models import attention, bert, count, groupvit, resnet, traced
from torch import nn
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree
from veracity.fx import (
    ChangeTrueDivToMulByInverse,
    FuseBatchNorm1dInLinear,
    FuseBatchNorm2dInConv2d,
    FuseBiasInLinear,
    MergeLinears,
    ReversibleTransformation,
    Transformation,
    compose,
)

Network = Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]


class _MulToAdd(ReversibleTransformation):
    """Turns products into sums, which is another computation."""

    def __init__(self, tag: int = 1) -> None:
        self.tag = tag

    def transform(self, graph_module: GraphModule) -> GraphModule:
        for node in graph_module.graph.nodes:
            if node.target is operator.mul:
                node.target = operator.add
                self.mark_as_transformed(node)
        return graph_module

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        for node in self.get_transformed_nodes(graph_module):
            node.target = operator.mul
            self.mark_as_restored(node)
        return graph_module


class _AddToMul(_MulToAdd):
    """Another class with the same attributes."""


def _tensors(output: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]


def _assert_same(left: object, right: object) -> None:
    pairs = list(zip(_tensors(left), _tensors(right), strict=True))
    assert pairs
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("transformation", "network"),
    [
        (_MulToAdd(), bert),
        (FuseBatchNorm2dInConv2d(), resnet),
        (FuseBatchNorm1dInLinear(), groupvit),
    ],
)
def test_outputs_stay_where_a_transformation_says_so(
    transformation: Transformation, network: Network
) -> None:
    model, inputs = network()
    before = model(*inputs)
    transformed = transformation(traced(model))
    assert transformation.get_transformed_nodes(transformed)
    if transformation.preserves_computation:
        _assert_same(before, transformed(*inputs))
    else:
        assert not torch.allclose(_tensors(before)[0], _tensors(transformed(*inputs))[0])


@pytest.mark.parametrize(
    "transformation", [MergeLinears(), FuseBiasInLinear(), ChangeTrueDivToMulByInverse()]
)
def test_reversing_gives_outputs_names_and_parameters_back(
    transformation: ReversibleTransformation,
) -> None:
    model, inputs = bert()
    before = model(*inputs)
    graph = traced(model)
    code = graph.code
    parameters = {name: value.clone() for name, value in graph.named_parameters()}
    transformed = transformation(graph)
    assert transformed.code != code
    _assert_same(before, transformed(*inputs))
    restored = transformation(transformed, reverse=True)
    assert restored.code == code
    assert not transformation.get_transformed_nodes(restored)
    assert list(parameters) == [name for name, _ in restored.named_parameters()]
    assert all(torch.equal(parameters[name], v) for name, v in restored.named_parameters())
    assert all(map(torch.equal, _tensors(before), _tensors(restored(*inputs))))


@pytest.mark.parametrize("inplace", [True, False])
def test_a_composition_does_what_its_parts_do_one_after_another(inplace: bool) -> None:
    model, _ = bert()

    def parts() -> list[ReversibleTransformation]:
        return [_MulToAdd(), ChangeTrueDivToMulByInverse(), MergeLinears(), FuseBiasInLinear()]

    step_by_step = traced(model)
    for part in parts():
        part(step_by_step)
    given = traced(model)
    untouched = given.code
    composed = compose(*parts(), inplace=inplace)(given)
    assert composed.code == step_by_step.code
    assert (composed is given) == inplace
    assert (given.code == untouched) != inplace
    reversed_at_once = compose(*parts(), inplace=inplace)(composed, reverse=True)
    for part in reversed(parts()):
        part(step_by_step, reverse=True)
    assert reversed_at_once.code == step_by_step.code == untouched


@pytest.mark.parametrize(
    ("parts", "preserves", "reversible"),
    [
        ((_MulToAdd(), MergeLinears()), False, True),
        ((FuseBiasInLinear(), MergeLinears()), True, True),
        ((FuseBatchNorm2dInConv2d(), MergeLinears()), True, False),
    ],
)
def test_a_composition_preserves_and_reverses_what_all_its_parts_do(
    parts: tuple[Transformation, ...], preserves: bool, reversible: bool
) -> None:
    composition = compose(*parts)
    assert composition.preserves_computation is preserves
    assert isinstance(composition, ReversibleTransformation) is reversible


def test_a_signature_tells_classes_and_parameters_apart() -> None:
    assert _MulToAdd(3).signature == _MulToAdd(3).signature
    assert _MulToAdd(3).signature != _MulToAdd(4).signature
    assert _MulToAdd(3).signature != _AddToMul(3).signature
    assert isinstance(_MulToAdd(3).signature, int)


def test_marks_of_two_transformations_on_one_node_are_kept_apart() -> None:
    graph = traced(bert()[0])
    first, second = _MulToAdd(1), _MulToAdd(2)
    product = next(node for node in graph.graph.nodes if node.target is operator.mul)
    assert not first.transformed(product)
    first(graph)
    assert (first.transformed(product), second.transformed(product)) == (True, False)
    second.mark_as_transformed(product)
    assert (first.transformed(product), second.transformed(product)) == (True, True)
    assert product.transformations == {first.signature, second.signature}
    first(graph, reverse=True)
    assert (first.transformed(product), second.transformed(product)) == (False, True)


def test_the_projections_of_attention_become_one_layer_and_three_again() -> None:
    graph = traced(attention())
    merge = MergeLinears()
    assert count(merge(graph), nn.Linear) == 1
    assert count(merge(graph, reverse=True), nn.Linear) == 3


def test_no_linear_layer_keeps_a_bias_that_can_be_fused() -> None:
    graph = FuseBiasInLinear()(traced(bert()[0]))
    layers = [part for part in graph.modules() if isinstance(part, nn.Linear)]
    assert layers
    assert all(layer.bias is None for layer in layers)


def test_every_division_by_a_number_becomes_a_product_and_a_division_again() -> None:
    def counts(graph: GraphModule) -> tuple[int, int]:
        targets = [node.target for node in graph.graph.nodes]
        return targets.count(operator.truediv), targets.count(operator.mul)

    graph, change = traced(bert()[0]), ChangeTrueDivToMulByInverse()
    divisions, products = counts(graph)
    assert divisions
    assert counts(change(graph)) == (0, products + divisions)
    assert counts(change(graph, reverse=True)) == (divisions, products)


@pytest.mark.parametrize(
    ("transformation", "network", "kind"),
    [
        (FuseBatchNorm2dInConv2d(), resnet, nn.BatchNorm2d),
        (FuseBatchNorm1dInLinear(), groupvit, nn.BatchNorm1d),
    ],
)
def test_no_batch_norm_is_left(
    transformation: Transformation, network: Network, kind: type[nn.Module]
) -> None:
    graph = traced(network()[0])
    norms = count(graph, kind)
    assert norms
    transformation(graph)
    assert count(graph, kind) == 0
    assert len(transformation.removed_nodes(graph)) == norms


def test_a_layer_of_the_root_has_the_root_as_parent() -> None:
    graph = MergeLinears()(traced(attention()))
    merged = [node for node in graph.graph.nodes if node.op == "call_module"]
    assert [node.target for node in merged] == ["query-key-value-merged"]
    assert isinstance(graph.get_submodule("query-key-value-merged"), nn.Linear)


def test_lint_and_recompile_can_be_left_to_the_caller() -> None:
    graph = traced(bert()[0])
    code = graph.code
    assert _MulToAdd()(graph, lint_and_recompile=False).code == code
    graph.recompile()
    assert graph.code != code
    assert all(isinstance(node, Node) for node in _MulToAdd().get_transformed_nodes(graph))
