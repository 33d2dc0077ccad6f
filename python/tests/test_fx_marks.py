"""Marks and compositions: what was changed stays known, wherever the graph goes."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
from fx_models import bert, traced
from torch.fx import Graph, GraphModule
from veracity import TransformError
from veracity.fx import (
    ChangeTrueDivToMulByInverse,
    FuseBatchNorm2dInConv2d,
    FuseBiasInLinear,
    MergeLinears,
    ReversibleTransformation,
    compose,
)


def _saved(graph: GraphModule) -> GraphModule:
    file = io.BytesIO()
    torch.save(graph, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def _graph_copied(graph: GraphModule) -> GraphModule:
    fresh = Graph()
    fresh.output(fresh.graph_copy(graph.graph, {}))
    return GraphModule(graph, fresh)


COPIES: dict[str, Callable[[GraphModule], GraphModule]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "wrapped": lambda graph: GraphModule(graph, graph.graph),
    "pickle": lambda graph: pickle.loads(pickle.dumps(graph)),
    "torch.save": _saved,
    "graph_copy": _graph_copied,
    "pickle of deepcopy": lambda graph: pickle.loads(pickle.dumps(copy.deepcopy(graph))),
    "pickle twice": lambda graph: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(graph)))),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_knows_what_was_changed_and_can_be_reversed(way: str) -> None:
    model, inputs = bert()
    change = compose(ChangeTrueDivToMulByInverse(), FuseBiasInLinear(), MergeLinears())
    graph = change(traced(model))
    marked = [node.target for node in change.get_transformed_nodes(graph)]
    assert len(marked) > 20
    copied = COPIES[way](graph)
    assert [node.target for node in change.get_transformed_nodes(copied)] == marked
    assert isinstance(change, ReversibleTransformation)
    restored = change(copied, reverse=True)
    assert dict(restored.named_parameters()).keys() == dict(model.named_parameters()).keys()
    for name, value in restored.named_parameters():
        assert torch.equal(value, model.get_parameter(name))
    assert torch.equal(restored(*inputs)["hidden"], model(*inputs)["hidden"])


def test_marks_of_a_copy_are_its_own() -> None:
    change = compose(ChangeTrueDivToMulByInverse(), inplace=False)
    graph = ChangeTrueDivToMulByInverse()(traced(bert()[0]))
    change(graph, reverse=True)
    assert ChangeTrueDivToMulByInverse().get_transformed_nodes(graph)


def test_a_graph_that_was_edited_between_loading_and_reading_is_refused() -> None:
    change = ChangeTrueDivToMulByInverse()
    loaded = pickle.loads(pickle.dumps(change(traced(bert()[0]))))
    product = next(node for node in loaded.graph.nodes if node.name.startswith("mul"))
    product.target = torch.sub
    with pytest.raises(TransformError, match="VER1304"):
        change.get_transformed_nodes(loaded)


def test_only_what_is_marked_can_be_restored() -> None:
    node = next(iter(traced(bert()[0]).graph.nodes))
    with pytest.raises(ValueError, match="VER1303") as raised:
        MergeLinears().mark_as_restored(node)
    assert raised.value.diagnostics[0].location == node.name


def test_marking_twice_is_marking_once() -> None:
    merge = MergeLinears()
    node = next(iter(traced(bert()[0]).graph.nodes))
    merge.mark_as_transformed(node)
    merge.mark_as_transformed(node)
    merge.mark_as_restored(node)
    assert not merge.transformed(node)


def test_reading_marks_leaves_no_trace() -> None:
    graph = traced(bert()[0])
    before = set(vars(graph)), dict(graph.meta)
    assert not MergeLinears().get_transformed_nodes(graph)
    assert not MergeLinears().declined(graph)
    assert (set(vars(graph)), dict(graph.meta)) == before


@pytest.mark.parametrize("parts", [(), ([MergeLinears()],), (MergeLinears,), (None,)])
def test_only_transformations_can_be_composed(parts: tuple[object, ...]) -> None:
    with pytest.raises(TransformError, match="VER1301"):
        compose(*parts)  # type: ignore[arg-type]


def test_a_composition_answers_for_all_of_its_parts() -> None:
    graph = traced(bert()[0])
    merge, change = MergeLinears(), ChangeTrueDivToMulByInverse()
    both = compose(merge, change)
    both(graph)
    apart = {*merge.get_transformed_nodes(graph), *change.get_transformed_nodes(graph)}
    assert set(both.get_transformed_nodes(graph)) == apart
    assert all(both.transformed(node) for node in apart)


def test_equal_compositions_have_equal_signatures() -> None:
    def make(*parts: ReversibleTransformation) -> int:
        return compose(*parts).signature

    assert make(MergeLinears(), FuseBiasInLinear()) == make(MergeLinears(), FuseBiasInLinear())
    assert make(MergeLinears(), FuseBiasInLinear()) != make(FuseBiasInLinear(), MergeLinears())
    assert compose(MergeLinears()).signature != compose(FuseBatchNorm2dInConv2d()).signature


def test_a_composition_that_copies_copies_on_the_way_back_too() -> None:
    change = compose(MergeLinears(), inplace=False)
    graph = MergeLinears()(traced(bert()[0]))
    code = graph.code
    assert change(graph, reverse=True).code != code  # type: ignore[call-arg]
    assert graph.code == code


def test_a_transformation_that_returns_nothing_is_told_so() -> None:
    class Forgetful(MergeLinears):
        def transform(self, graph_module: GraphModule) -> GraphModule:
            super().transform(graph_module)
            return None  # type: ignore[return-value]

    with pytest.raises(TransformError, match="VER1301"):
        Forgetful()(traced(bert()[0]))
