"""A verdict on a transformation: right ones are proved, and every kind of wrong one is not."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable

import pytest
import torch
from fx_models import bert, drawn, groupvit, resnet, traced
from torch import nn
from torch.fx import GraphModule, Node
from veracity import TransformError
from veracity.fx import (
    ChangeTrueDivToMulByInverse,
    FuseBatchNorm1dInLinear,
    FuseBatchNorm2dInConv2d,
    FuseBiasInLinear,
    MergeLinears,
    ReversibleTransformation,
    Transformation,
    Validation,
    compose,
    validate,
)
from veracity.fx.judge import Wide, compare, step

X = torch.rand(
    6, 8, generator=torch.Generator(torch.get_default_device()).manual_seed(1)
)  # never negative
IMAGE = torch.rand(2, 3, 9, 9, generator=torch.Generator(torch.get_default_device()).manual_seed(2))


class _Edit(Transformation):
    """Does to each node what a function says, and marks it if that function returns true."""

    preserves_computation = True

    def __init__(self, edit: Callable[[GraphModule, Node], bool]) -> None:
        self.edit = edit

    def transform(self, graph_module: GraphModule) -> GraphModule:
        for node in list(graph_module.graph.nodes):
            if self.edit(graph_module, node):
                self.mark_as_transformed(node)
        return graph_module


def _codes(found: Validation) -> set[str]:
    return {reason.code for reason in found.reasons}


@pytest.mark.parametrize(
    ("transformation", "network"),
    [
        (compose(MergeLinears(), FuseBiasInLinear(), ChangeTrueDivToMulByInverse()), bert),
        (compose(FuseBatchNorm2dInConv2d(), FuseBiasInLinear(), inplace=False), resnet),
        (compose(FuseBatchNorm1dInLinear(), MergeLinears()), groupvit),
    ],
    ids=["bert", "resnet", "groupvit"],
)
def test_right_transformations_are_proved(
    transformation: Transformation, network: Callable[[], tuple[nn.Module, tuple[object, ...]]]
) -> None:
    model, inputs = network()
    found = validate(transformation, model, inputs)
    assert found.verdict == "proved", str(found)
    assert found.audit is not None
    assert found.audit.marked
    assert not found.audit.unmarked
    assert {"given", "signed", "wide", "edge", "not finite"} <= {*found.cases, *found.not_run}
    assert bool(found.restored) == isinstance(transformation, ReversibleTransformation)


def _to_identity(name: str) -> Callable[[GraphModule, Node], bool]:
    """Replace a function by one that returns its input."""

    def edit(_graph_module: GraphModule, node: Node) -> bool:
        if getattr(node.target, "__name__", node.target) != name:
            return False
        node.op, node.target, node.args = "call_function", operator.pos, node.args[:1]
        node.kwargs = {}
        return True

    return edit


def _fold_without_bias(graph_module: GraphModule, node: Node) -> bool:
    """Fold a norm and forget that the bias of the convolution is scaled too."""
    if node.target != "0":
        return False
    graph = FuseBatchNorm2dInConv2d()
    conv, norm = graph_module.get_submodule("0"), graph_module.get_submodule("1")
    factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    wrong = conv.bias * (1 - factor)
    graph(graph_module)
    with torch.no_grad():
        graph_module.get_submodule("0").bias += wrong
    return True


def _conv_norm() -> nn.Module:
    torch.manual_seed(3)
    return drawn(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)))


class _Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> object:
        return self.function(x)


def _clip(x: torch.Tensor) -> torch.Tensor:
    return torch.clamp(x, 0, 6) + 1


def _drop_eps(graph_module: GraphModule, node: Node) -> bool:
    if node.target != "1":
        return False
    norm = graph_module.get_submodule("1")
    changed = drawn(nn.BatchNorm2d(4, eps=norm.eps + 1e-3))
    changed.load_state_dict(norm.state_dict())
    graph_module.add_submodule("1", changed)
    return True


@pytest.mark.parametrize(
    ("model", "inputs", "edit"),
    [
        (_Function(lambda x: torch.relu(x) + 1), X, _to_identity("relu")),
        (_Function(lambda x: torch.abs(x) + 1), X, _to_identity("abs")),
        (_Function(_clip), X, _to_identity("clamp")),
        (_Function(lambda x: torch.nan_to_num(x) + 1), X, _to_identity("nan_to_num")),
        (_conv_norm(), IMAGE, _fold_without_bias),
        (_conv_norm(), IMAGE, _drop_eps),
    ],
    ids=["relu", "abs", "clip", "nan_to_num", "conv bias", "eps"],
)
def test_a_change_that_the_given_inputs_hardly_show_is_disproved(
    model: nn.Module, inputs: torch.Tensor, edit: Callable[[GraphModule, Node], bool]
) -> None:
    found = validate(_named(edit), model.eval(), inputs)
    assert found.verdict == "disproved", str(found)
    assert "VER1310" in _codes(found)


def _named(edit: Callable[[GraphModule, Node], bool]) -> _Edit:
    """Return a transformation whose signature does not need the function."""

    class _Signed(_Edit):
        def signature_parameters(self) -> dict[str, object]:
            return {"edit": edit.__qualname__}

    return _Signed(edit)


class _Wide(nn.Module):
    """A fault in `first` hardly reaches the output."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.first, self.act = nn.Linear(8, 8), nn.ReLU()
        self.last = nn.Linear(8, 2)
        nn.init.constant_(self.last.weight, 1e-9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.act(self.first(x)))


def _zero_channel(graph_module: GraphModule, node: Node) -> bool:
    if node.target != "first":
        return False
    weight = graph_module.get_submodule("first").weight.detach().clone()
    weight[0] = 0
    changed = nn.Linear(8, 8)
    changed.load_state_dict({"weight": weight, "bias": graph_module.get_parameter("first.bias")})
    graph_module.add_submodule("first", changed)
    return True


def test_a_local_fault_is_found_where_the_output_does_not_show_it() -> None:
    found = validate(_named(_zero_channel), _Wide(), X)
    assert found.verdict == "disproved"
    assert found.first_difference is not None
    assert found.first_difference.name == "act"
    assert all(row.verdict == "proved" for row in found.outputs)
    assert validate(_named(_zero_channel), _Wide(), X, local=False).verdict == "proved"


def _swap_silently(_graph_module: GraphModule, node: Node) -> bool:
    if node.target is operator.add:
        node.args = node.args[::-1]
    return False


def _erase_silently(graph_module: GraphModule, node: Node) -> bool:
    if node.target is torch.relu:
        node.replace_all_uses_with(node.args[0])
        graph_module.graph.erase_node(node)
    return False


def _insert_silently(graph_module: GraphModule, node: Node) -> bool:
    if node.target is torch.relu:
        with graph_module.graph.inserting_after(node):
            again = graph_module.graph.call_function(torch.relu, (node,))
        node.replace_all_uses_with(again, delete_user_cb=lambda user: user is not again)
    return False


@pytest.mark.parametrize(
    ("edit", "name"),
    [(_swap_silently, "add"), (_erase_silently, "relu_1"), (_insert_silently, "relu_2")],
    ids=["changed", "removed", "added"],
)
def test_a_right_change_that_nobody_marked_is_disproved(
    edit: Callable[[GraphModule, Node], bool], name: str
) -> None:
    model = _Function(lambda x: torch.relu(torch.relu(x)) + x)
    found = validate(_named(edit), model, X)
    assert _codes(found) <= {"VER1311", "VER1310"}
    assert "VER1311" in _codes(found)
    assert found.verdict == "disproved"
    assert found.audit is not None
    assert name in found.audit.unmarked


def test_marks_need_not_be_required() -> None:
    model = _Function(lambda x: x + x * 2)
    found = validate(_named(_swap_silently), model, X, require_marks=False)
    assert found.verdict == "proved", str(found)


def test_changing_the_model_behind_the_graph_is_disproved() -> None:
    def edit(graph_module: GraphModule, node: Node) -> bool:
        if node.op == "call_module":
            graph_module.get_submodule(str(node.target)).weight.data.mul_(1.0 + 2**-20)
        return node.op == "call_module"

    model = nn.Sequential(nn.Linear(8, 2))
    weight = model[0].weight.detach().clone()
    assert "VER1313" in _codes(validate(_named(edit), model, X))
    assert torch.equal(model[0].weight, weight)


def test_a_copy_that_changes_what_it_was_given_is_disproved() -> None:
    class _Both(ChangeTrueDivToMulByInverse):
        def transform(self, graph_module: GraphModule) -> GraphModule:
            changed = super().transform(graph_module)
            return GraphModule(changed, changed.graph)

    found = validate(_Both(), _Function(lambda x: x / 4), X)
    assert "VER1313" in _codes(found)


class _WrongWayBack(MergeLinears):
    """Gives the outputs back, and the weights under each other's names."""

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        super().reverse(graph_module)
        for node in graph_module.graph.nodes:
            if node.op == "call_module":
                node.target = {"0": "1", "1": "0"}[str(node.target)]
        first, second = graph_module.get_submodule("0"), graph_module.get_submodule("1")
        graph_module.add_submodule("0", second)
        graph_module.add_submodule("1", first)
        return graph_module


class _Pair(nn.Sequential):
    """Two layers over one input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self[0](x) + 2 * self[1](x)


def test_weights_that_come_back_under_other_names_are_disproved() -> None:
    model = _Pair(nn.Linear(8, 4), nn.Linear(8, 4))
    assert validate(MergeLinears(), model, X).verdict == "proved"
    found = validate(_WrongWayBack(), model, X)
    assert found.verdict == "disproved"
    assert _codes(found) == {"VER1312"}
    outputs = [row for row in found.restored if row.case != "parameters"]
    assert all(row.verdict == "proved" for row in outputs)


class _InverseOfInverse(ChangeTrueDivToMulByInverse):
    """Divides by 1 / (1 / y), which is often not y."""

    def reverse(self, graph_module: GraphModule) -> GraphModule:
        for node in self.get_transformed_nodes(graph_module):
            node.target, node.args = operator.truediv, (node.args[0], 1 / node.args[1])
            self.mark_as_restored(node)
        return graph_module


def test_a_divisor_that_is_not_what_it_was_is_disproved() -> None:
    model = _Function(lambda x: x / 49)
    assert validate(ChangeTrueDivToMulByInverse(), model, X).verdict == "proved"
    found = validate(_InverseOfInverse(), model, X)
    assert (found.verdict, _codes(found)) == ("disproved", {"VER1312"})


def test_a_mark_that_is_left_behind_is_disproved() -> None:
    class _Sticky(ChangeTrueDivToMulByInverse):
        def mark_as_restored(self, node: Node) -> None:
            del node

    assert "still marked" in str(validate(_Sticky(), _Function(lambda x: x / 3), X))


def test_what_claims_nothing_is_not_proved() -> None:
    def edit(_graph_module: GraphModule, node: Node) -> bool:
        if node.target is operator.mul:
            node.target = operator.add
            return True
        return False

    transformation = _named(edit)
    transformation.preserves_computation = False
    found = validate(transformation, _Function(lambda x: x * 2), X)
    assert (found.verdict, _codes(found), found.claims) == ("not_comparable", {"VER1314"}, False)
    assert found.largest > 1


def test_a_model_that_disagrees_with_itself_blames_nobody() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 2)).train()
    found = validate(FuseBiasInLinear(), model, X)
    assert (found.verdict, _codes(found)) == ("not_comparable", {"VER1109"})
    assert validate(FuseBiasInLinear(), model.eval(), X).verdict == "proved"


def test_another_order_of_random_numbers_is_not_a_fault() -> None:
    def edit(graph_module: GraphModule, node: Node) -> bool:
        if node.target is not torch.rand_like:
            return False
        with graph_module.graph.inserting_before(node):
            extra = graph_module.graph.call_function(torch.rand_like, node.args)
        node.args = (extra,)
        return True

    found = validate(
        _named(edit), _Function(lambda x: torch.rand_like(x) + x), X, require_marks=False
    )
    assert (found.verdict, _codes(found)) == ("not_comparable", {"VER1109"})


@pytest.mark.parametrize("other", ["nan", "-inf", "1.0"])
def test_an_infinity_is_only_equal_to_itself(other: str) -> None:
    original = torch.tensor([1.0, float("inf")])
    assert compare(original, original.clone()).verdict == "proved"
    assert compare(original, torch.tensor([1.0, float(other)])).verdict == "disproved"


def test_a_refusal_is_a_reason_and_not_a_proof() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).train()
    found = validate(FuseBatchNorm1dInLinear(), model, X)
    assert (found.verdict, _codes(found)) == ("not_comparable", {"VER1305"})


def test_a_transformation_that_raises_is_not_proved() -> None:
    def edit(_graph_module: GraphModule, _node: Node) -> bool:
        raise KeyError("lost")

    found = validate(_named(edit), nn.Sequential(nn.Linear(8, 2)), X)
    assert (found.verdict, _codes(found)) == ("not_comparable", {"VER1309"})


def test_a_graph_that_raises_afterwards_is_disproved(capfd: pytest.CaptureFixture[str]) -> None:
    def edit(_graph_module: GraphModule, node: Node) -> bool:
        if node.target is operator.mul:
            node.args = (node.args[0], "text")
            return True
        return False

    found = validate(_named(edit), _Function(lambda x: x * 2), X)
    assert (found.verdict, _codes(found)) == ("disproved", {"VER1310"})
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("function", [lambda x: x * 0, lambda x: x / 0 * 0, lambda _x: (1, "a")])
def test_nothing_to_compare_is_not_proved(function: Callable[..., object]) -> None:
    found = validate(MergeLinears(), _Function(function), X)
    assert (found.verdict, _codes(found)) == ("not_comparable", {"VER0806", "VER1317"})


def test_a_transformation_that_changes_nothing_is_not_proved() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False))
    found = validate(FuseBatchNorm2dInConv2d(), model.eval(), IMAGE)
    assert (found.verdict, _codes(found)) == ("not_comparable", {"VER1317"})
    assert "no running statistics" in found.reasons[0].hints[0]


def test_a_signature_that_changes_on_the_way_is_told() -> None:
    class _Counting(ChangeTrueDivToMulByInverse):
        def __init__(self) -> None:
            self.calls = 0

        def transform(self, graph_module: GraphModule) -> GraphModule:
            changed = super().transform(graph_module)
            self.calls += 1
            return changed

    found = validate(_Counting(), _Function(lambda x: x / 3), X)
    assert found.verdict == "disproved"
    assert {"VER1302", "VER1311"} <= _codes(found)


def test_a_tolerance_takes_the_place_of_the_derived_one() -> None:
    def edit(_graph_module: GraphModule, node: Node) -> bool:
        if node.target is operator.mul:
            node.args = (node.args[0], 2.001)
            return True
        return False

    model = _Function(lambda x: x * 2)
    assert validate(_named(edit), model, X).verdict == "disproved"
    assert validate(_named(edit), model, X, tolerance=2.0).verdict == "proved"


def test_integers_must_be_equal() -> None:
    def edit(_graph_module: GraphModule, node: Node) -> bool:
        if node.target == "argmax":
            node.kwargs = {"dim": 0}
            return True
        return False

    model = _Function(lambda x: x.argmax(dim=1))
    halves = compose(ChangeTrueDivToMulByInverse())
    right = _Function(lambda x: (x / 2).argmax(dim=1))
    assert validate(halves, right, X[:6, :6]).verdict == "proved"
    assert validate(_named(edit), model, X[:6, :6]).verdict == "disproved"


@pytest.mark.parametrize(
    "inputs", [X, (X,), {"x": X}, [X, X[:2]], [(X,), {"x": X}]], ids=lambda v: type(v).__name__
)
def test_inputs_can_be_given_in_several_forms(inputs: object) -> None:
    found = validate(FuseBiasInLinear(), _Pair(nn.Linear(8, 4), nn.Linear(8, 4)), inputs)
    assert found.verdict == "proved", str(found)
    given = [name for name in found.cases if name.startswith("given")]
    assert len(given) == (len(inputs) if isinstance(inputs, list) else 1)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (_Function(lambda x: x if x.sum() > 0 else -x), X),
        (nn.Sequential(nn.Linear(8, 2)), X[:, :3]),
        (nn.Sequential(nn.Linear(8, 2)), []),
    ],
    ids=["branch", "shape", "none"],
)
def test_a_model_that_cannot_be_tried_is_refused(model: nn.Module, inputs: object) -> None:
    with pytest.raises(TransformError, match="VER1308"):
        validate(MergeLinears(), model, inputs)


def test_a_trace_that_is_not_the_model_is_not_proved() -> None:
    class _Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x / 2 * self.calls

    found = validate(ChangeTrueDivToMulByInverse(), _Counts(), X)
    assert (found.verdict, _codes(found)) == ("not_comparable", {"VER1315"})


def test_the_verdict_can_be_written_down() -> None:
    found = validate(ChangeTrueDivToMulByInverse(), traced(bert()[0]), bert()[1])
    written = json.loads(json.dumps(found.to_json()))
    assert written["verdict"] == "proved"
    assert written["signature"] == ChangeTrueDivToMulByInverse().signature_digest
    assert str(found).startswith("proved: ChangeTrueDivToMulByInverse on ")


def test_validating_draws_no_random_numbers_of_the_caller() -> None:
    model = _Pair(nn.Linear(8, 4), nn.Linear(8, 4))
    before = torch.random.get_rng_state()
    first = validate(MergeLinears(), model, X)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert validate(MergeLinears(), model, X) == first


X4 = torch.linspace(-1.0, 2.0, 12).reshape(3, 4)


class _Masked(nn.Module):
    """A small head beside a mask, and a large offset in another row."""

    def __init__(self) -> None:
        super().__init__()
        self.small = nn.Parameter(torch.linspace(-1e-3, 1e-3, 8).reshape(2, 4))
        self.bias = nn.Parameter(torch.tensor([1e-4, -2e-4]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.nn.functional.linear(x, self.small, self.bias)
        return torch.cat([scores, scores.new_full((x.shape[0], 1), -1e9)], -1)


def _scaled(name: str, factor: float) -> Callable[[GraphModule, Node], bool]:
    """A fault that the largest value of the tensor hides."""

    def edit(graph_module: GraphModule, node: Node) -> bool:
        if node.op != "get_attr" or node.target != name:
            return False
        held = graph_module.get_parameter(name).detach() * factor
        setattr(graph_module, name, nn.Parameter(held))
        return True

    return edit


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([-1e9, 1e-3], [-1e9, -1e-3]),
        ([-1e9, 1e-3], [-1e9, 0.0]),
        ([3e38, 1.0, 2.0], [3e38, 2.0, 1.0]),
        ([1e6, 1e-7], [1e6, 2e-7]),
        ([65504.0, 0.5], [65504.0, 0.25]),
        ([1e4, 1e-2, 1e-2], [1e4, 1e-2, 1.01e-2]),
    ],
)
def test_a_small_element_is_held_to_its_own_size(left: list[float], right: list[float]) -> None:
    """Its terms do not move it farther than that, which float64 shows."""
    original, candidate = torch.tensor(left), torch.tensor(right)
    wide = Wide(original.double(), original.double().abs() * step(torch.float32))
    assert compare(original, candidate, float64=lambda: wide).verdict == "disproved"
    assert compare(original, original * (1 + 1e-7), float64=lambda: wide).verdict == "proved"


@pytest.mark.parametrize("moved", [0.0, 1e-4])
def test_what_cancels_may_be_off_by_what_its_terms_move_it(moved: float) -> None:
    original = torch.tensor([1000.0, 1e-4])
    wide = Wide(original.double(), torch.tensor([0.0, moved], dtype=torch.float64))
    found = compare(original, torch.tensor([1000.0, 2e-4]), float64=lambda: wide)
    assert found.verdict == ("proved" if moved else "disproved")


def test_without_float64_a_row_is_held_to_its_own_size() -> None:
    original = torch.tensor([[1e9, 1.0], [1e-3, 2e-3]])
    wrong = torch.tensor([[1e9, 1.0], [1e-3, 4e-3]])
    assert compare(original, wrong).verdict == "disproved"


@pytest.mark.parametrize(
    ("name", "factor"),
    [("small", -1.0), ("small", 1.01), ("small", 0.0), ("bias", -1.0), ("bias", 1.1)],
)
def test_a_fault_beside_a_mask_is_disproved(name: str, factor: float) -> None:
    found = validate(_named(_scaled(name, factor)), _Masked(), X4, local=False)
    assert found.verdict == "disproved", str(found)
    assert "VER1310" in _codes(found)
