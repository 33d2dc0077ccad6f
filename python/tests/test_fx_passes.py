"""Each pass where its kind goes wrong: right, or left alone with the reason, or refused."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable

import pytest
import torch
from fx_models import count, drawn, resnet, traced
from torch import nn
from torch.fx import Graph, GraphModule
from torch.fx.passes.shape_prop import ShapeProp
from veracity import TransformError
from veracity.fx import (
    ChangeTrueDivToMulByInverse,
    FuseBatchNorm1dInLinear,
    FuseBatchNorm2dInConv2d,
    FuseBiasInLinear,
    MergeLinears,
    ReversibleTransformation,
    Transformation,
    compose,
    validate,
)


class _Net(nn.Module):
    """Named children, and a function of them and the inputs."""

    def __init__(self, forward: Callable[..., object], **children: nn.Module) -> None:
        super().__init__()
        self.compute = forward
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, x: torch.Tensor) -> object:
        return self.compute(self, x)


def _three(**options: bool) -> dict[str, nn.Module]:
    torch.manual_seed(4)
    return {name: nn.Linear(8, size, **options) for name, size in (("q", 8), ("k", 4), ("v", 6))}


def _sum(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return net.q(x).sum(-1) + net.k(x).sum(-1) * 2 + net.v(x).sum(-1) * 3


X = torch.randn(5, 8, generator=torch.Generator(torch.get_default_device()).manual_seed(5))
IMAGE = torch.randn(
    2, 3, 9, 9, generator=torch.Generator(torch.get_default_device()).manual_seed(6)
)


def _assert_proved(transformation: Transformation, net: nn.Module, x: torch.Tensor) -> None:
    """Say that outputs, marks, the way back and the original are all right."""
    found = validate(transformation, net, x)
    assert found.verdict == "proved", str(found)


def _assert_untouched(transformation: Transformation, net: nn.Module, x: torch.Tensor) -> None:
    """Say that nothing was changed, and so nothing is wrong."""
    found = validate(transformation, net, x)
    assert [reason.code for reason in found.reasons] == ["VER1317"], str(found)


def _assert_roundtrip(transformation: ReversibleTransformation, net: nn.Module) -> GraphModule:
    """Say that reversing gives every parameter back, bit by bit, in the same order."""
    graph = traced(net)
    code, before = graph.code, [(name, p.clone()) for name, p in graph.named_parameters()]
    trained = [p.requires_grad for p in graph.parameters()]
    restored = transformation(transformation(graph), reverse=True)
    assert restored.code == code
    assert [name for name, _ in before] == [name for name, _ in restored.named_parameters()]
    assert all(torch.equal(p, restored.get_parameter(name)) for name, p in before)
    assert [p.requires_grad for p in restored.parameters()] == trained
    return restored


# Merging linear layers


def _same_layer_twice(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return net.q(x) * net.q(x).sin() + net.k(x).sum()


def _by_name(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return net.q(input=x).sum() + net.k(x).sum()


def _nested(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return net.inner.q(x).sum() + net.inner.k(x).sum()


@pytest.mark.parametrize(
    ("forward", "children", "merged"),
    [
        (_sum, _three(), "q-k-v-merged"),
        (_sum, _three(bias=False), "q-k-v-merged"),
        (_sum, {**_three(), "k": nn.Linear(8, 4, bias=False)}, "q-k-v-merged"),
        (_same_layer_twice, _three(), "q-k-merged"),
        (_by_name, _three(), "q-k-merged"),
        (_nested, {"inner": nn.ModuleDict(_three())}, "inner.q-k-merged"),
    ],
    ids=["root", "no bias", "some bias", "called twice", "by name", "nested"],
)
def test_linear_layers_merge_and_come_back(
    forward: Callable[..., object], children: dict[str, nn.Module], merged: str
) -> None:
    net = _Net(forward, **children)
    _assert_proved(MergeLinears(), net, X)
    restored = _assert_roundtrip(MergeLinears(), net)
    assert "-merged" not in restored.code
    graph = MergeLinears()(traced(net))
    assert isinstance(graph.get_submodule(merged), nn.Linear)
    slices = [n for n in MergeLinears().get_transformed_nodes(graph) if n.op == "call_function"]
    assert len(slices) >= 2


def test_layers_without_bias_gain_none() -> None:
    graph = MergeLinears()(traced(_Net(_sum, **_three(bias=False))))
    assert graph.get_submodule("q-k-v-merged").bias is None


def _and_elsewhere(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return _sum(net, x).sum() + net.q(x * 2).sum()


def _weight_read(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return _sum(net, x).sum() + net.q.weight.sum()


@pytest.mark.parametrize("forward", [_and_elsewhere, _weight_read])
def test_a_layer_that_something_else_uses_is_not_merged(forward: Callable[..., object]) -> None:
    net = _Net(forward, **_three())
    _assert_proved(MergeLinears(), net, X)
    graph = MergeLinears()(traced(net))
    assert isinstance(graph.get_submodule("k-v-merged"), nn.Linear)
    (declined,) = MergeLinears().declined(graph)
    assert (declined.node, declined.code) == ("q", "VER1306")
    assert "uses its parameters too" in declined.reason


@pytest.mark.parametrize("pass_", [MergeLinears(), FuseBiasInLinear()])
def test_tied_weights_stay_tied(pass_: ReversibleTransformation) -> None:
    children = _three()
    children["q"].weight = nn.Parameter(torch.randn(6, 8))
    children["q"].bias = nn.Parameter(torch.randn(6))
    children["v"].weight = children["q"].weight
    graph = pass_(traced(_Net(_sum, **children)))
    assert graph.get_submodule("q").weight is graph.get_submodule("v").weight
    assert {one.node for one in pass_.declined(graph)} == {"q", "v"}


def test_parameters_over_the_same_data_are_tied_too() -> None:
    children = _three()
    children["v"] = nn.Linear(8, 8)
    children["v"].weight = nn.Parameter(children["q"].weight.data)
    MergeLinears()(graph := traced(_Net(_sum, **children)))
    assert {one.node for one in MergeLinears().declined(graph)} == {"q", "v"}


def test_a_container_that_belongs_to_somebody_else_stays_as_it_is() -> None:
    inner = nn.ModuleDict(_three())
    graph = traced(_Net(_nested, inner=inner))
    graph.add_submodule("inner", inner)
    MergeLinears()(graph)
    assert "inner.q-k-merged" in dict(graph.named_modules())
    assert list(inner) == ["q", "k", "v"]


def test_frozen_and_trained_layers_are_not_merged_with_each_other() -> None:
    children = {**_three(), "frozen": nn.Linear(8, 3).requires_grad_(False)}

    def forward(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return _sum(net, x).sum() + net.frozen(x).sum()

    net = _Net(forward, **children)
    _assert_roundtrip(MergeLinears(), net)
    graph = MergeLinears()(traced(net))
    assert not graph.get_submodule("frozen").weight.requires_grad
    frozen = _Net(_sum, **_three()).requires_grad_(False)
    merged = MergeLinears()(traced(frozen)).get_submodule("q-k-v-merged")
    assert not merged.weight.requires_grad
    _assert_roundtrip(MergeLinears(), frozen)


def test_weights_come_back_under_their_names_when_a_slice_is_gone() -> None:
    net = _Net(lambda net, x: (net.q(x), net.k(x), net.v(x))[0::2], **_three())
    graph = MergeLinears()(traced(net))
    graph.graph.eliminate_dead_code()  # removes the slice of `k`
    restored = MergeLinears()(graph, reverse=True)
    for name in ("q", "k", "v"):
        assert torch.equal(restored.get_parameter(f"{name}.weight"), getattr(net, name).weight)


def test_layers_around_a_write_are_not_merged() -> None:
    def forward(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        first = net.q(y).sum()
        y.add_(1)
        return first + net.k(y).sum()

    net = _Net(forward, **_three())
    _assert_untouched(MergeLinears(), net, X)
    _assert_proved(FuseBiasInLinear(), net, X)
    assert count(MergeLinears()(traced(net)), nn.Linear) == 2


def test_a_layer_with_hooks_is_left_alone() -> None:
    children = _three()
    children["q"].register_forward_hook(lambda _module, _args, output: output * 2)
    graph = MergeLinears()(traced(_Net(_sum, **children)))
    assert [one.reason for one in MergeLinears().declined(graph)] == ["the layer has hooks"]


# The bias as a column


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("pass_", [MergeLinears(), FuseBiasInLinear()], ids=["merge", "fuse"])
def test_every_precision_works(pass_: ReversibleTransformation, dtype: torch.dtype) -> None:
    net = _Net(_sum, **_three()).to(dtype)
    _assert_proved(pass_, net, X.to(dtype))


def test_a_layer_called_twice_is_fused_once() -> None:
    net = _Net(lambda net, x: net.q(net.q(x)) + net.q(input=x), q=nn.Linear(8, 8))
    _assert_proved(FuseBiasInLinear(), net, X)
    _assert_roundtrip(FuseBiasInLinear(), net)


def test_a_fused_layer_knows_its_size() -> None:
    fused = FuseBiasInLinear()(traced(_Net(_sum, **_three()))).get_submodule("k")
    assert (fused.in_features, tuple(fused.weight.shape), fused.bias) == (9, (4, 9), None)


def test_one_output_keeps_its_shape() -> None:
    restored = _assert_roundtrip(FuseBiasInLinear(), nn.Sequential(nn.Linear(8, 1)))
    assert restored.get_parameter("0.bias").shape == (1,)


@pytest.mark.parametrize(
    "parts",
    [(FuseBiasInLinear(), MergeLinears()), (MergeLinears(), FuseBiasInLinear())],
    ids=["fuse, merge", "merge, fuse"],
)
def test_fusing_and_merging_go_together_in_any_order(
    parts: tuple[ReversibleTransformation, ...],
) -> None:
    net = _Net(_sum, **_three())
    _assert_proved(compose(*parts), net, X)
    assert count(compose(*parts)(traced(net)), nn.Linear) == 1


@pytest.mark.parametrize(
    "parts", [(FuseBiasInLinear, MergeLinears), (MergeLinears, FuseBiasInLinear)]
)
def test_undoing_in_the_wrong_order_is_refused_and_changes_nothing(
    parts: tuple[type[ReversibleTransformation], ...],
) -> None:
    graph = compose(*(part() for part in parts))(traced(_Net(_sum, **_three())))
    code = graph.code
    with pytest.raises(TransformError, match="VER1307"):
        parts[0]()(graph, reverse=True)
    graph.recompile()
    assert graph.code == code


# Division


@pytest.mark.parametrize("divide", [operator.truediv, torch.div, torch.Tensor.div])
def test_reversing_gives_the_very_divisor_back(divide: Callable[..., torch.Tensor]) -> None:
    change = ChangeTrueDivToMulByInverse()
    for divisor in [*range(1, 1001), 0.1, -7.5, 1e-30]:
        graph = Graph()
        x = graph.placeholder("x")
        graph.output(
            graph.call_function(divide, (x, divisor))
            if divide is not torch.Tensor.div
            else graph.call_method("div", (x, divisor))
        )
        module = GraphModule(nn.Module(), graph)
        node = change.get_transformed_nodes(change(module, lint_and_recompile=False))[0]
        assert node.target is operator.mul
        change(module, lint_and_recompile=False, reverse=True)
        assert node.args == (x, divisor)
        assert type(node.args[1]) is type(divisor)


@pytest.mark.parametrize(
    ("divide", "reason"),
    [
        (lambda x: x / 0, "no inverse"),
        (lambda x: x / float("inf"), "no inverse"),
        (lambda x: x / 1e-40, "no inverse"),
        (lambda x: x / 2j, "complex"),
        (lambda x: x * int_of(x.shape[0] / 49), "Python number"),
        (lambda x: x * int_of(x.size(0) * 2 / 49), "Python number"),
    ],
    ids=["zero", "infinity", "tiny", "complex", "shape", "size"],
)
def test_a_division_without_a_right_product_stays(
    divide: Callable[[torch.Tensor], torch.Tensor], reason: str
) -> None:
    change = ChangeTrueDivToMulByInverse()
    graph = traced(_Net(lambda _net, x: divide(x)))
    code = graph.code
    assert change(graph).code == code
    assert reason in change.declined(graph)[0].reason


def int_of(value: object) -> object:
    """Stand for what Python makes of a quotient of sizes."""
    return operator.floordiv(value, 1)


@pytest.mark.parametrize(
    "divide",
    [
        lambda x: torch.div(x, 3, rounding_mode="floor"),
        lambda x: x.clone().div_(3),
        lambda x: 3 / x,
        lambda x: x / x,
    ],
    ids=["rounded", "in place", "of a number", "by a tensor"],
)
def test_other_divisions_are_not_matches(divide: Callable[[torch.Tensor], torch.Tensor]) -> None:
    graph = traced(_Net(lambda _net, x: divide(x)))
    code = graph.code
    assert ChangeTrueDivToMulByInverse()(graph).code == code
    assert not ChangeTrueDivToMulByInverse().declined(graph)


def test_powers_of_two_are_exact() -> None:
    net = _Net(lambda _net, x: x / 8)
    assert torch.equal(ChangeTrueDivToMulByInverse()(traced(net))(X), X / 8)
    _assert_proved(ChangeTrueDivToMulByInverse(), _Net(lambda _net, x: x / 3), X)


# Batch norm into convolution


def _conv_norm(bias: bool = True, **options: bool) -> _Net:
    torch.manual_seed(7)
    children = {"conv": nn.Conv2d(3, 4, 3, bias=bias), "norm": nn.BatchNorm2d(4, **options)}
    net = _Net(lambda net, x: net.norm(net.conv(x)).relu(), **children)
    if bias:
        nn.init.constant_(net.conv.bias, 5.0)
    drawn(net)
    return net


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_a_norm_goes_into_a_convolution(bias: bool, affine: bool, dtype: torch.dtype) -> None:
    net = _conv_norm(bias=bias, affine=affine).to(dtype)
    _assert_proved(FuseBatchNorm2dInConv2d(), net, IMAGE.to(dtype))
    graph = FuseBatchNorm2dInConv2d()(traced(net))
    assert [n.name for n in FuseBatchNorm2dInConv2d().get_transformed_nodes(graph)] == ["conv"]
    assert FuseBatchNorm2dInConv2d().removed_nodes(graph) == ["norm"]


def _linear_norm() -> _Net:
    children = {"a": nn.Linear(8, 8), "norm": nn.BatchNorm1d(8), "b": nn.Linear(8, 3)}
    net = _Net(lambda net, x: net.b(net.norm(net.a(x)).tanh()), **children)
    drawn(net)
    return net


@pytest.mark.parametrize(
    ("pass_", "net"),
    [(FuseBatchNorm2dInConv2d(), _conv_norm()), (FuseBatchNorm1dInLinear(), _linear_norm())],
)
def test_a_norm_in_training_is_refused_before_anything_changes(
    pass_: Transformation, net: nn.Module
) -> None:
    graph = traced(copy.deepcopy(net).train())
    code = graph.code
    with pytest.raises(TransformError, match="VER1305") as raised:
        pass_(graph)
    assert raised.value.diagnostics[0].location == "norm"
    assert graph.code == code


def test_a_norm_without_statistics_is_left_alone() -> None:
    net = _conv_norm(track_running_stats=False)
    graph = FuseBatchNorm2dInConv2d()(traced(net))
    assert count(graph, nn.BatchNorm2d) == 1
    assert "no running statistics" in FuseBatchNorm2dInConv2d().declined(graph)[0].reason
    _assert_untouched(FuseBatchNorm2dInConv2d(), net, IMAGE)


def _two_calls(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return net.norm(net.conv(x)) + net.conv(x * 2)


def _two_norms(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return net.norm(net.conv(x)) + net.other(net.conv(x * 2))


def _one_norm_twice(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return net.norm(net.conv(x)) + net.norm(net.conv2(x)) + net.norm(net.conv(x * 3).relu())


@pytest.mark.parametrize(
    ("forward", "norms"), [(_two_calls, 0), (_two_norms, 0), (_one_norm_twice, 1)]
)
def test_shared_modules_are_copied(forward: Callable[..., object], norms: int) -> None:
    net = _Net(
        forward,
        conv=nn.Conv2d(3, 4, 3),
        conv2=nn.Conv2d(3, 4, 3),
        norm=nn.BatchNorm2d(4),
        other=nn.BatchNorm2d(4),
    )
    drawn(net)
    _assert_proved(FuseBatchNorm2dInConv2d(), net, IMAGE)
    assert count(FuseBatchNorm2dInConv2d()(traced(net)), nn.BatchNorm2d) == norms


def test_a_convolution_that_others_read_keeps_its_norm() -> None:
    def forward(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = net.conv(x)
        return net.norm(y) + y

    net = _Net(forward, conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4))
    graph = FuseBatchNorm2dInConv2d()(traced(drawn(net)))
    assert "other nodes read `conv`" in FuseBatchNorm2dInConv2d().declined(graph)[0].reason


class _Concat(nn.Module):
    """Takes a list, and a tensor by name."""

    def forward(self, parts: list[torch.Tensor], *, scale: torch.Tensor) -> torch.Tensor:
        return torch.cat(parts) * scale


def test_calls_of_other_forms_are_no_obstacle() -> None:
    def forward(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = net.norm(input=net.conv(input=x))
        return net.cat([y, y], scale=net.act(input=y.mean()))

    net = _Net(
        forward, conv=nn.Conv2d(3, 4, 3), norm=nn.BatchNorm2d(4), cat=_Concat(), act=nn.ReLU()
    )

    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, m: nn.Module, name: str) -> bool:
            return isinstance(m, _Concat) or super().is_leaf_module(m, name)

    drawn(net)
    graph = GraphModule(net, Tracer().trace(net))
    _assert_proved(FuseBatchNorm2dInConv2d(), graph, IMAGE)
    for pass_ in (FuseBatchNorm1dInLinear(), MergeLinears(), FuseBiasInLinear()):
        _assert_untouched(pass_, graph, IMAGE)


@pytest.mark.parametrize(
    ("pass_", "net", "x"),
    [
        (FuseBatchNorm2dInConv2d(), resnet()[0], resnet()[1][0]),
        (FuseBiasInLinear(), _Net(_sum, **_three()), X),
        (MergeLinears(), _Net(_sum, **_three()), X),
        (FuseBatchNorm1dInLinear(), _linear_norm(), X),
    ],
)
def test_the_model_that_was_traced_stays_as_it_is(
    pass_: Transformation, net: nn.Module, x: torch.Tensor
) -> None:
    before, state = net(x), copy.deepcopy(net.state_dict())
    graph = traced(net)
    assert pass_.get_transformed_nodes(pass_(graph))
    assert torch.equal(net(x), before)
    assert net.state_dict().keys() == state.keys()
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())


# Batch norm and linear layers


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("order", ["behind", "before"])
def test_a_norm_goes_into_a_linear_layer(order: str, bias: bool, affine: bool) -> None:
    layer = nn.Linear(8, 8, bias=bias)
    norm = nn.BatchNorm1d(8, affine=affine)
    net = drawn(nn.Sequential(*((layer, norm) if order == "behind" else (norm, layer))))
    _assert_proved(FuseBatchNorm1dInLinear(), net, X)
    graph = FuseBatchNorm1dInLinear()(traced(net))
    assert count(graph, nn.BatchNorm1d) == 0
    assert FuseBatchNorm1dInLinear().get_transformed_nodes(graph)


@pytest.mark.parametrize("order", ["behind", "before"])
def test_three_axes_are_never_folded_silently(order: str) -> None:
    layer, norm = nn.Linear(8, 8), nn.BatchNorm1d(8)
    net = drawn(nn.Sequential(*((layer, norm) if order == "behind" else (norm, layer))))
    x = torch.randn(5, 8, 8)
    known = traced(net)
    ShapeProp(known).propagate(x)
    FuseBatchNorm1dInLinear()(known)
    assert torch.equal(known(x), net(x))
    assert "three axes" in FuseBatchNorm1dInLinear().declined(known)[0].reason
    unknown = FuseBatchNorm1dInLinear()(traced(net))
    with pytest.raises(AssertionError, match="VER1316"):
        unknown(x)
    found = validate(FuseBatchNorm1dInLinear(), net, x)
    assert found.verdict == "disproved"
    assert "VER1316" in str(found)


def test_known_shapes_need_no_assertion() -> None:
    net = _linear_norm()
    graph = traced(net)
    ShapeProp(graph).propagate(X)
    FuseBatchNorm1dInLinear()(graph)
    assert "_assert" not in graph.code
    torch.testing.assert_close(graph(X), net(X))


def test_a_norm_before_a_layer_is_not_moved_over_a_write() -> None:
    def forward(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        z = net.norm(y)
        y.add_(1)
        return net.layer(z) + y

    net = drawn(_Net(forward, norm=nn.BatchNorm1d(8), layer=nn.Linear(8, 8)))
    _assert_untouched(FuseBatchNorm1dInLinear(), net, X)
    graph = FuseBatchNorm1dInLinear()(traced(net))
    assert "written in place" in FuseBatchNorm1dInLinear().declined(graph)[0].reason


@pytest.mark.parametrize("pass_", [FuseBatchNorm2dInConv2d(), MergeLinears(), FuseBiasInLinear()])
def test_a_second_time_changes_nothing(pass_: Transformation) -> None:
    graph = pass_(traced(resnet()[0]))
    code, marked = graph.code, pass_.get_transformed_nodes(graph)
    assert pass_(graph).code == code
    assert pass_.get_transformed_nodes(graph) == marked
