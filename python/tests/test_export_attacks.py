"""Code whose export once was wrong without a word: each case is right, or refused with its line.

One pass is recorded; right means: on inputs that were not recorded, through the bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import veracity
from differential.sides import leave_session
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # its usual name

Function = Callable[[Tensor], Tensor]

CASES: dict[str, Function] = {}
#: Cases that the backend has no form for.
REFUSED = {
    "jit": {
        "mask_read",
        "mask_read_into_mask",
        "einsum_with_ellipsis_written",
        "split_without_marks_written",
        "out_of_another_shape",
    },
    "onnx": {"selected_view_written"},
}


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    yield
    leave_session(veracity)


def case(function: Function) -> Function:
    CASES[function.__name__] = function
    return function


def written(name: str, view: Function) -> None:
    """Add the three cases of a view: the view is written, its base is, it is only read."""

    def through_view(x: Tensor) -> Tensor:
        y = x * 1
        view(y).clamp_(-1, 1)
        return y

    def through_base(x: Tensor) -> Tensor:
        y = x * 1
        v = view(y)
        y.clamp_(-1, 1)
        return v * 1

    def read_only(x: Tensor) -> Tensor:
        y = x * 1
        y.clamp_(-1, 1)
        return view(y) * 2

    CASES[f"{name}_written"] = through_view
    CASES[f"{name}_of_a_written_base"] = through_base
    CASES[f"{name}_read"] = read_only


def index(x: Tensor) -> Tensor:
    return (x[0] > 0).long()


# A mask of one element


def assigned(name: str, where: Callable[[Tensor], object], value: object) -> None:
    def function(x: Tensor) -> Tensor:
        y = x.view(2, 2).clone()
        given = value(x) if callable(value) else value
        y[where(x[0] > 0)] = given
        return y

    CASES[name] = function


assigned("mask", lambda d: d, 0)
assigned("mask_inverted", lambda d: ~d, 0.5)
assigned("mask_tensor", lambda d: d, lambda x: x.view(2, 2).flip(0))
assigned("mask_with_leading_one", lambda d: d, lambda x: x.view(1, 1, 2, 2).flip(2))
assigned("mask_row", lambda d: d, lambda x: x[:2] * 3)
assigned("mask_from_double", lambda d: d, 0.1)
assigned("mask_then_integer", lambda d: (d, 0), 7)
assigned("integer_then_mask", lambda d: (0, d), 7)
assigned("mask_last", lambda d: (..., d), 4)
assigned("mask_after_new_axis", lambda d: (None, d), 4)
assigned("mask_then_slice", lambda d: (d, slice(1, 2)), 4)
assigned("mask_then_index", lambda d: (d, d.long()), 4)
assigned("mask_then_indices", lambda d: (d, torch.tensor([1])), 4)
assigned("two_masks", lambda d: (d, d | ~d), 4)


@case
def mask_augmented(x: Tensor) -> Tensor:
    y = x.clone()
    y[x[0] > 0] += 5
    return y


@case
def mask_augmented_in_a_row(x: Tensor) -> Tensor:
    y = x.view(2, 2).clone()
    y[x[0] > 0, 1] *= x[1]
    return y


@case
def mask_read(x: Tensor) -> Tensor:
    return x[x[0] > 0].sum()


@case
def mask_read_into_mask(x: Tensor) -> Tensor:
    y = x.clone()
    y[x[0] > 0] += x[x[0] > 0]
    return y


# An integer tensor as index


@case
def selected_view_written(x: Tensor) -> Tensor:
    y = x.clone()
    r = y[index(x)]
    r.clamp_(-0.3, 0.3)
    return y


@case
def selected_row_written(x: Tensor) -> Tensor:
    y = x.view(2, 2).clone()
    y[:, index(x)].clamp_(-0.3, 0.3)
    return y


@case
def selected_part_written_in_two_dimensions(x: Tensor) -> Tensor:
    y = x.view(2, 1, 2).repeat(1, 3, 1)
    y[index(x), :, index(-x)].clamp_(-0.3, 0.3)
    return y


@case
def view_of_a_selected_view_written(x: Tensor) -> Tensor:
    y = x.view(2, 2).clone()
    y[index(x)].view(2, 1)[0].mul_(3)
    return y


@case
def selected_view_of_a_written_base(x: Tensor) -> Tensor:
    y = x.view(2, 2).clone()
    r = y[index(x)]
    y.mul_(3)
    return r + 1


@case
def selected_view_augmented(x: Tensor) -> Tensor:
    y = x.view(2, 2).clone()
    y[index(x)] += 2
    return y


@case
def selected_view_read_before_a_write(x: Tensor) -> Tensor:
    y = x.view(2, 2).clone()
    y[index(x)] = y[1 - index(x)] * 2
    return y


# Views that TorchScript takes for new memory

written("at_least_1d", torch.atleast_1d)
written("at_least_2d", torch.atleast_2d)
written("at_least_3d", torch.atleast_3d)
written("at_least_2d_of_two", lambda y: torch.atleast_2d(y, y)[1])
written("broadcast", lambda y: torch.broadcast_tensors(y, torch.zeros(1, 4))[0])
written("dropout", lambda y: F.dropout(y, 0.5, training=False))
written("dropout_by_channel", lambda y: F.dropout1d(y[None], 0.5, False))
written("dropout_by_feature", lambda y: F.feature_alpha_dropout(y[None], 0.5, False))
written("einsum_turned", lambda y: torch.einsum("ij->ji", y[None]))
written("einsum_diagonal", lambda y: torch.einsum("ii->i", y.view(2, 2)))
written("einsum_implicit", lambda y: torch.einsum("ba", y.view(2, 2)))
written("type_as", lambda y: y.type_as(y))
written("float", lambda y: y.float())


@case
def broadcast_of_a_written_input(x: Tensor) -> Tensor:
    a, b = torch.broadcast_tensors(x, torch.zeros(2, 4))
    x.clamp_(-1, 1)
    return a + b


@case
def grid_of_a_written_base(x: Tensor) -> Tensor:
    y, z = x[:2] * 1, x * 1
    a, b = torch.meshgrid(y, z, indexing="xy")
    y.clamp_(-1, 1)
    z.mul_(2)
    return a + 3 * b


@case
def einsum_with_ellipsis_written(x: Tensor) -> Tensor:
    y = x.view(2, 2) * 1
    torch.einsum("...i->i...", y).clamp_(-1, 1)
    return y


@case
def split_without_marks_written(x: Tensor) -> Tensor:
    y = x * 1
    torch.unsafe_split(y, 2)[0].clamp_(-1, 1)
    return y


# Results into given tensors


@case
def largest_into_out(x: Tensor) -> Tensor:
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.long)
    torch.topk(x, 2, out=(values, indices))
    return values + indices


@case
def maximum_into_out(x: Tensor) -> Tensor:
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.long)
    found = torch.max(x.view(2, 2), 1, out=(values, indices))
    return found[0] + values * 2 + indices


@case
def sorted_into_out(x: Tensor) -> Tensor:
    held, indices = torch.zeros(2, 4), torch.zeros(4, dtype=torch.long)
    torch.sort(x, out=(held[1], indices))
    return held + indices


@case
def sum_into_out(x: Tensor) -> Tensor:
    held = torch.zeros(2, 4)
    torch.add(x, 1, out=held[0])
    return held


@case
def out_of_another_shape(x: Tensor) -> Tensor:
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.long)
    torch.topk(x, 2, out=(values, indices))
    return values + indices


# Methods that lay a tensor out anew


def laid_out(name: str, change: Callable[[Tensor], object]) -> None:
    def function(x: Tensor) -> Tensor:
        y = x.view(1, 2, 2)[0] * 1
        v = y[:]
        change(v)
        v.mul_(2)
        return y.sum(1).repeat(2) + v.reshape(-1)

    CASES[name] = function


laid_out("turned_in_place", lambda v: v.t_())
laid_out("unsqueezed_in_place", lambda v: v.unsqueeze_(1))
laid_out("squeezed_in_place", lambda v: v.squeeze_())
laid_out("transposed_in_place", lambda v: v.transpose_(0, 1))
laid_out("axes_swapped_in_place", lambda v: v.swapaxes_(0, 1))
laid_out("dimensions_swapped_in_place", lambda v: v.swapdims_(0, 1))
laid_out("strided_in_place", lambda v: v.as_strided_((4,), (1,)))


@case
def detached_in_place(x: Tensor) -> Tensor:
    y = x * 1
    y.detach_()
    y.mul_(2)
    return y


def draw(seed: int) -> Tensor:
    """Draw numbers; those recorded are small, so that a clamp does nothing to them."""
    numbers = torch.randn(
        4, generator=torch.Generator(torch.get_default_device()).manual_seed(seed)
    )
    return numbers * 0.1 if seed == 0 else numbers * 3


def export(function: Function, backend: str, folder: Path) -> None:
    veracity.start("attack", save_path=str(folder))
    with torch.no_grad():
        x = veracity.annotate.input_tensors("n", {"x": draw(0)})
        veracity.annotate.output_tensors("n", {"y": function(x)}, export_with=backend)
    veracity.stop()
    veracity.compile_graph(visualize=False)


def check(name: str, backend: str, folder: Path) -> None:
    """Export one case, and compare it or look at its refusal."""
    if name in REFUSED[backend]:
        with pytest.raises(veracity.VeracityError) as caught:
            export(CASES[name], backend, folder)
        (found,) = [one for one in caught.value.diagnostics if one.severity == "error"]
        assert found.code == "VER0920"
        assert Path(__file__).name in str(found.location)
        assert found.hints
        return
    export(CASES[name], backend, folder)
    manager = veracity.InferenceManager(folder / "attack")
    signs = set()
    for seed in range(1, 9):
        with torch.no_grad():
            expected = CASES[name](draw(seed))
        signs.add(bool(draw(seed)[0] > 0))
        found = manager.run_policy({"n/x": draw(seed)})["n/y"]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert signs == {True, False}


@pytest.mark.parametrize("name", CASES)
def test_an_attack_is_exported_right_or_refused_at_its_line(name: str, tmp_path: Path) -> None:
    check(name, "jit", tmp_path)


@pytest.mark.parametrize("name", ["mask", "selected_view_written", "at_least_2d_written"])
def test_an_attack_is_exported_right_or_refused_for_onnx(name: str, tmp_path: Path) -> None:
    check(name, "onnx", tmp_path)
