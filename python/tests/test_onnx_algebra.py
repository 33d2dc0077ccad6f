"""Linear algebra and orders in ONNX files: right in torch's terms, in float64's, on both engines.

The replacements are plain torch code, so most is asked of them without a file. Accuracy is that of
float64, rounded once: one unit in the last place of float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import veracity
from torch import Tensor
from veracity import annotate
from veracity.export import unchecked
from veracity.export.backends import onnx_algebra as algebra
from veracity.export.backends import onnx_orders as orders
from veracity.export.backends import onnx_special as special

#: Beside the largest element of a result, smaller ones carry its rounding in float64.
LEAST_SHARE = 1e-6


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def definite(size: int) -> Tensor:
    root = drawn(size, size, seed=size)
    found = root @ root.T
    return (found + found.T) / 2 + torch.eye(size)  # to the last bit


def hilbert(size: int) -> Tensor:
    return torch.tensor([[1 / (i + j + 1) for j in range(size)] for i in range(size)])


def units(found: Tensor, wanted: Any) -> float:
    """Return the largest distance in units in the last place of float32."""
    wanted = np.asarray(wanted, dtype=np.float64)
    assert found.dtype == torch.float32
    assert tuple(found.shape) == wanted.shape
    if not wanted.size:
        return 0.0
    size = np.maximum(np.abs(wanted), LEAST_SHARE * np.abs(wanted).max())
    return float((np.abs(found.double().numpy() - wanted) / np.spacing(np.float32(size))).max())


SQUARE = {
    "one element": torch.tensor([[-2.5]]),
    "two by two": drawn(2, 2),
    "three by three": drawn(3, 3),
    "four by four": drawn(4, 4),
    "no pivot in place": torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [3.0, 0.0, 0.0]]),
    "small beside large": torch.tensor([[1e-7, 1.0], [1.0, 1.0]]),
    "graded": torch.diag(torch.tensor([1e4, 1.0, 1e-4])) @ drawn(3, 3, seed=3),
    "ill conditioned": hilbert(5),
    "tiny": drawn(3, 3, seed=4) * 1e-18,
    "huge": drawn(3, 3, seed=5) * 1e15,
    "batch": drawn(2, 3, 4, 4, seed=6),
    "forty by forty": drawn(40, 40, seed=7) + 8 * torch.eye(40),
}


@pytest.mark.parametrize("name", SQUARE)
def test_elimination_is_the_float64_result_rounded_once(name: str) -> None:
    matrix = SQUARE[name]
    wide = matrix.double().numpy()
    right = drawn(*matrix.shape[:-1], 2, seed=9)
    assert units(algebra.inverse(matrix), np.linalg.inv(wide)) <= 1
    wanted = np.linalg.solve(wide, right.double().numpy())
    assert units(algebra.solve(matrix, right), wanted) <= 1
    turned = np.linalg.solve(wide.swapaxes(-1, -2), right.double().numpy()).swapaxes(-1, -2)
    assert units(algebra.solve(matrix, right.mT, left=False), turned) <= 1
    if name != "huge":  # its determinant is none in float32
        assert units(algebra.determinant(matrix), np.linalg.det(wide)) <= 1
    sign, log = algebra.sign_and_log_determinant(matrix)
    wanted = np.linalg.slogdet(wide)
    assert np.array_equal(sign.numpy(), wanted[0])
    assert units(log, wanted[1]) <= 1


@pytest.mark.parametrize("size", [1, 2, 3, 6, 20])
def test_triangles_are_the_float64_result_rounded_once(size: int) -> None:
    matrix, right = definite(size), drawn(size, 2)
    wide = matrix.double().numpy()
    factor = np.linalg.cholesky(wide)
    assert units(algebra.cholesky(matrix), factor) <= 1
    assert units(algebra.cholesky(matrix, upper=True), factor.T) <= 1
    lower = torch.tensor(factor, dtype=torch.float32)
    for upper, given in ((False, lower), (True, lower.mT)):
        whole = given.double().numpy()
        whole = whole.T @ whole if upper else whole @ whole.T
        wanted = np.linalg.solve(whole, right.double().numpy())
        assert units(algebra.cholesky_solve(right, given, upper), wanted) <= 1
        assert units(algebra.cholesky_inverse(given, upper), np.linalg.inv(whole)) <= 1
        wanted = np.linalg.solve(given.double().numpy(), right.double().numpy())
        found = algebra.solve_triangular(given + given.mT.triu(1) * (not upper), right, upper=upper)
        assert units(found, wanted) <= 1


RECTANGLES = {
    "square": drawn(4, 4),
    "tall": drawn(7, 3),
    "wide": drawn(3, 6),
    "one column": drawn(5, 1),
    "one row": drawn(1, 5),
    "batch": drawn(2, 5, 3),
    "graded": drawn(5, 4) * torch.tensor([1e6, 1.0, 1e-3, 1e-6]),
    "equal lengths": torch.eye(4)[:, :3] * 2,
    "deficient": drawn(5, 2) @ drawn(2, 4, seed=1),
    "a column of zeros": torch.cat([drawn(4, 2), torch.zeros(4, 1)], 1),
    "zeros": torch.zeros(3, 3),
    "odd": drawn(9, 9),
    "even": drawn(16, 16),
    "very tall": drawn(200, 6),
}


@pytest.mark.parametrize("name", RECTANGLES)
def test_orthogonal_factors_are_those_of_lapack(name: str) -> None:
    matrix = RECTANGLES[name]
    size = float(matrix.abs().max()) or 1.0
    for mode in ("reduced", "complete"):
        ortho, upper = algebra.qr(matrix, mode)
        wanted = torch.linalg.qr(matrix.double(), mode)
        assert (ortho.shape, upper.shape) == (wanted.Q.shape, wanted.R.shape)
        assert torch.allclose(ortho.double() @ upper.double(), matrix.double(), atol=1e-6 * size)
        eye = torch.eye(ortho.shape[-1]).expand(ortho.mT.shape[:-2] + (ortho.shape[-1],) * 2)
        assert torch.allclose(ortho.mT @ ortho, eye, atol=2e-6)
        if name not in ("deficient", "a column of zeros", "zeros"):
            assert torch.allclose(upper.double(), wanted.R, atol=1e-6 * size)


@pytest.mark.parametrize("name", RECTANGLES)
def test_singular_values_are_the_float64_result_rounded_once(name: str) -> None:
    matrix = RECTANGLES[name]
    wide = matrix.double().numpy()
    wanted = np.linalg.svd(wide, compute_uv=False)
    assert units(algebra.svdvals(matrix), wanted) <= 1
    size = float(wanted.max()) or 1.0
    for full in (False, True):
        if full and max(matrix.shape) > algebra.LARGEST:
            continue
        left, lengths, right = algebra.svd(matrix, full)
        shapes = [one.shape for one in torch.linalg.svd(matrix, full)]
        assert [left.shape, lengths.shape, right.shape] == shapes
        assert units(lengths, wanted) <= 1
        count = lengths.shape[-1]
        again = left[..., :count] * lengths.unsqueeze(-2) @ right[..., :count, :]
        assert torch.allclose(again, matrix, atol=2e-6 * size)
        for ortho in (left.mT @ left, right @ right.mT):
            assert torch.allclose(ortho, torch.eye(ortho.shape[-1]), atol=2e-6)


@pytest.mark.parametrize("name", RECTANGLES)
def test_pseudo_inverses_and_ranks_are_those_of_torch(name: str) -> None:
    matrix = RECTANGLES[name]
    found = algebra.pseudo_inverse(matrix)
    least = torch.finfo(torch.float32).eps * max(matrix.shape[-2:])
    wanted = torch.linalg.pinv(matrix.double(), rtol=least)
    assert units(found, wanted.numpy()) <= 2
    assert algebra.rank(matrix).tolist() == torch.linalg.matrix_rank(matrix).tolist()
    for order in (2, -2, "nuc"):
        wanted_norm = torch.linalg.matrix_norm(matrix.double(), order)
        assert units(algebra.norm(matrix, order), wanted_norm.numpy()) <= 1


SYMMETRIC = {
    "definite": definite(4),
    "indefinite": drawn(5, 5) + drawn(5, 5).T,
    "negative": -definite(3),
    "equal values": torch.eye(3) * 2 + 1e-3 * torch.ones(3, 3),
    "diagonal": torch.diag(torch.tensor([3.0, -1.0, 2.0])),
    "zeros": torch.zeros(3, 3),
    "one element": torch.tensor([[-3.0]]),
    "graded": torch.diag(torch.tensor([1e3, 1.0, 1e-3])) + 1e-2,
    "batch": torch.stack([definite(6), -definite(6)]),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_eigenvalues_are_the_float64_result_rounded_once(name: str) -> None:
    matrix = SYMMETRIC[name]
    wanted = np.linalg.eigvalsh(matrix.double().numpy())
    values, vectors = algebra.eigenvalues(matrix)
    assert units(values, wanted) <= 1
    assert units(algebra.eigvalsh(matrix.tril(), "L"), wanted) <= 1
    assert units(algebra.eigvalsh(matrix.triu(), "U"), wanted) <= 1
    again = (vectors * values.unsqueeze(-2)) @ vectors.mT
    assert torch.allclose(again, matrix, atol=2e-6 * float(matrix.abs().max() or 1))


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 20.0, 60.0])
def test_exponentials_are_the_float64_result_rounded_once(scale: float) -> None:
    turn = torch.tensor([[0.0, -0.3, 0.2], [0.3, 0.0, -0.1], [-0.2, 0.1, 0.0]])
    for matrix in (turn * scale, -definite(4) * scale, drawn(2, 3, 3) * min(scale, 20)):
        wanted = torch.linalg.matrix_exp(matrix.double())
        assert torch.allclose(algebra.exponential(matrix).double(), wanted, rtol=3e-7, atol=1e-12)


def test_a_singular_matrix_gives_nan_and_a_determinant_of_zero() -> None:
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    for matrix in (singular, torch.zeros(3, 3)):
        assert algebra.inverse(matrix).isnan().all()
        assert algebra.solve(matrix, drawn(matrix.shape[0])).isnan().all()
        assert algebra.determinant(matrix) == 0
        assert algebra.sign_and_log_determinant(matrix)[1] == -math.inf
    assert algebra.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))[1, 1].isnan()
    both = torch.stack([singular, torch.eye(2)])
    assert algebra.inverse(both)[1].tolist() == torch.eye(2).tolist()


def test_a_singular_matrix_is_said_to_be_one() -> None:
    singular = torch.tensor([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 1.0, 3.0]])
    both = torch.stack([singular, torch.eye(3), torch.zeros(3, 3)])
    for ours, theirs in (
        (algebra.inverse_ex(both), torch.linalg.inv_ex(both)),
        (algebra.solve_ex(both, drawn(3, 2)), torch.linalg.solve_ex(both, drawn(3, 2))),
    ):
        assert ours[1].dtype == theirs[1].dtype
        assert (ours[1] == 0).tolist() == (theirs[1] == 0).tolist() == [False, True, False]
    several = torch.stack([definite(3), -definite(3), torch.diag(torch.tensor([1.0, -1.0, 2.0]))])
    ours, theirs = algebra.cholesky_ex(several)[1], torch.linalg.cholesky_ex(several)[1]
    torch.testing.assert_close(ours, theirs)


def test_what_is_too_large_or_of_another_kind_is_left_to_the_exporter() -> None:
    assert algebra.inverse(torch.eye(algebra.LARGEST + 1)) is NotImplemented
    assert algebra.svd(torch.eye(algebra.LARGEST_ROTATED + 1)) is NotImplemented
    assert algebra.inverse(torch.eye(2, dtype=torch.complex64)) is NotImplemented


NAN = math.nan
VALUES = {
    "numbers": drawn(4, 6),
    "ties": torch.tensor([[1.0, 1.0, 0.0, 1.0], [2.0, 2.0, 2.0, 2.0]]),
    "not a number": torch.tensor(
        [[1.0, NAN, 0.0, 3.0], [NAN, NAN, NAN, NAN], [1.0, 2.0, 3.0, 4.0]]
    ),
    "infinities": torch.tensor([[math.inf, 1.0, -math.inf], [0.0, -0.0, math.inf]]),
    "one": torch.tensor([[5.0]]),
    "integers": torch.tensor([[3, 1, 2], [9, 9, -9]]),
}
ORDERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cumprod": (lambda x: orders.cumprod(x, 1), lambda x: torch.cumprod(x, 1)),
    "cumprod down": (lambda x: orders.cumprod(x, 0), lambda x: torch.cumprod(x, 0)),
    "cummax": (lambda x: orders.cummax(x, 1), lambda x: torch.cummax(x, 1)),
    "cummin": (lambda x: orders.cummin(x, -1), lambda x: torch.cummin(x, -1)),
    "median": (orders.median, torch.median),
    "median along": (
        lambda x: orders.median_along(x, 1)[0],
        lambda x: torch.median(x, 1).values,
    ),
    "nanmedian": (orders.nanmedian, torch.nanmedian),
    "nanmedian along": (
        lambda x: orders.nanmedian_along(x, 1, keepdim=True)[0],
        lambda x: torch.nanmedian(x, 1, keepdim=True).values,
    ),
    "kthvalue": (
        lambda x: orders.kthvalue(x, x.shape[1], 1)[0],
        lambda x: torch.kthvalue(x, x.shape[1], 1).values,
    ),
}
EDGES = torch.tensor([-1.0, 0.0, 0.0, 1.0, 2.0])


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("name", ORDERS)
def test_orders_are_those_of_torch(name: str, values: str) -> None:
    ours, theirs = (one(VALUES[values]) for one in ORDERS[name])
    torch.testing.assert_close(
        ours, tuple(theirs) if isinstance(theirs, tuple) else theirs, equal_nan=True
    )


@pytest.mark.parametrize("values", [one for one in VALUES if one != "integers"])
@pytest.mark.parametrize("right", [False, True])
def test_places_among_boundaries_are_those_of_torch(values: str, right: bool) -> None:
    given = VALUES[values]
    for small in (False, True):
        options = {"right": right, "out_int32": small}
        ours = orders.searchsorted(EDGES, given, **options)
        torch.testing.assert_close(ours, torch.searchsorted(EDGES, given, **options))
        ours = orders.bucketize(given, EDGES, **options)
        torch.testing.assert_close(ours, torch.bucketize(given, EDGES, **options))
    rows = drawn(given.shape[0], 7)
    order = rows.argsort(-1)
    ours = orders.searchsorted(rows, given, right=right, sorter=order)
    torch.testing.assert_close(ours, torch.searchsorted(rows, given, right=right, sorter=order))


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("values", [one for one in VALUES if one not in ("integers", "infinities")])
def test_quantiles_are_those_of_torch(values: str, interpolation: str) -> None:
    given = VALUES[values]
    for fraction in (0.0, 0.3, 0.5, 1.0, torch.tensor([0.1, 0.9])):
        for options in ({}, {"dim": 1}, {"dim": 0, "keepdim": True}, {"keepdim": True}):
            how = options | {"interpolation": interpolation}
            for ours, theirs in (
                (unchecked.quantile, torch.quantile),
                (unchecked.nanquantile, torch.nanquantile),
            ):
                found, wanted = ours(given, fraction, **how), theirs(given, fraction, **how)
                torch.testing.assert_close(found, wanted, equal_nan=True)


ARGUMENTS = torch.tensor(
    [
        *(0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 3.7, 10.0, 50.0, 1e3, 1e6, 1e9, 1e20, 1e-3, 1e-10, 1e-30),
        *(-0.1, -0.5, -1.5, -2.7, -10.3, -100.25),
    ]
)
CORNERS = torch.tensor([0.0, -0.0, -1.0, -2.0, math.inf, -math.inf, NAN])
SPECIAL: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "lgamma": (special.lgamma, torch.lgamma),
    "digamma": (special.digamma, torch.digamma),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_are_right_to_two_units(name: str) -> None:
    ours, theirs = SPECIAL[name]
    wanted = theirs(ARGUMENTS.double())
    size = np.maximum(wanted.abs().numpy(), 1e-3)
    off = np.abs(ours(ARGUMENTS).double().numpy() - wanted.numpy()) / np.spacing(np.float32(size))
    assert off.max() <= 2, dict(zip(ARGUMENTS.tolist(), off.tolist(), strict=True))
    corners = CORNERS if name == "lgamma" else CORNERS[[0, 1, 2, 3, 4, 6]]
    torch.testing.assert_close(ours(corners), theirs(corners), equal_nan=True)


def test_the_inverse_of_erf_is_right_to_four_units() -> None:
    given = torch.cat([torch.linspace(-1, 1, 2001), 1 - 10.0 ** -torch.arange(1, 8.0)])
    wanted = torch.erfinv(given.double())
    size = np.float32(np.maximum(wanted.abs().numpy(), 1e-30))
    off = np.abs(special.erfinv(given).double().numpy() - wanted.numpy())[1:-1]
    assert (off / np.spacing(size[1:-1]))[np.isfinite(off)].max() <= 4
    odd = torch.tensor([1.0, -1.0, 1.5, -2.0, NAN, 0.0])
    torch.testing.assert_close(special.erfinv(odd), torch.erfinv(odd), equal_nan=True)


def test_the_tail_of_erfc_is_kept() -> None:
    given = torch.cat([torch.linspace(-6, 9, 1501), torch.tensor([NAN, math.inf, -math.inf, -0.0])])
    found, wanted = special.erfc(given), torch.erfc(given.double())
    torch.testing.assert_close(found.double(), wanted, rtol=4e-7, atol=1e-37, equal_nan=True)


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("length", [None, 1, 2, 5, 7, 8, 16, 33])
def test_transforms_are_those_of_torch(length: int | None, norm: str | None) -> None:
    spectrum = torch.fft.rfft(drawn(2, 3, 9))
    for dim in (-1, 1):
        if length is None and spectrum.shape[dim] == 1:
            continue
        found = special.irfft(spectrum, length, dim, norm)
        wanted = torch.fft.irfft(spectrum, length, dim, norm)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
        found = special.rfft(drawn(2, 3, 9), length, dim, norm)
        wanted = torch.fft.rfft(drawn(2, 3, 9), length, dim, norm)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_statistics_are_those_of_torch() -> None:
    for given in (drawn(4, 9), drawn(1, 5), drawn(6), drawn(3, 4) * 1e3):
        torch.testing.assert_close(unchecked.covariance(given), torch.cov(given))
        wanted = torch.cov(given, correction=0)
        torch.testing.assert_close(unchecked.covariance(given, correction=0), wanted)
        torch.testing.assert_close(unchecked.correlation(given), torch.corrcoef(given))
    for p in (1.0, 2.0, math.inf):
        torch.testing.assert_close(unchecked.distances(drawn(5, 3), p), torch.pdist(drawn(5, 3), p))


def test_combinations_and_least_squares_are_those_of_torch() -> None:
    for r in (1, 2, 3):
        for again in (False, True):
            found = unchecked.combinations(drawn(4), r, again)
            assert torch.equal(found, torch.combinations(drawn(4), r, again))
    for matrix in (drawn(6, 3), drawn(3, 5), drawn(2, 4, 2)):
        right = drawn(*matrix.shape[:-1], 2)
        found, wanted = unchecked.least_squares(matrix, right), torch.linalg.lstsq(matrix, right)
        torch.testing.assert_close(found[0], wanted.solution, rtol=1e-4, atol=1e-5)
        assert torch.equal(found[2], wanted.rank)


UNLIKE = torch.eye(4)


def policy(x: Tensor) -> dict[str, Tensor]:
    """Write what controllers and filters write."""
    spread = x @ x.mT + torch.eye(4)
    # Of a matrix without full rank there is more than one nearest rotation.
    left, _, right = torch.linalg.svd(torch.tanh(x[:, :3]) + 4 * torch.eye(4, 3))
    values, vectors = torch.linalg.eigh(spread)
    return {
        "gain": torch.linalg.solve(spread, x),
        "inverse": torch.linalg.inv(spread),
        "factor": torch.linalg.cholesky(spread),
        "ortho": torch.linalg.qr(x)[0],
        "root": vectors @ torch.diag(values.sqrt()) @ vectors.mT,
        "turn": left[:, :3] @ right,
        "pseudo": torch.linalg.pinv(x[:, :2]),
        "fit": torch.linalg.lstsq(x[:, :2], x[:, 4:]).solution,
        "size": torch.linalg.det(spread) + torch.logdet(spread),
        "step": torch.matrix_exp(0.1 * (x[:3, :3] - x[:3, :3].mT)),
        "knot": torch.searchsorted(torch.linspace(-1, 1, 5), x.contiguous()).float() * 0.5,
        "middle": x.median(dim=1).values,
        "quarter": torch.quantile(x, 0.25, dim=1),
        "decay": torch.cumprod(torch.sigmoid(x), 1),
        "peak": torch.cummax(x, 1).values,
        "density": torch.lgamma(x.abs() + 1) + torch.erfinv(torch.tanh(x) * 0.9),
        "smooth": torch.fft.irfft(torch.fft.rfft(x), n=8)[:, :5],
        "spread": torch.cov(x) + torch.corrcoef(torch.cat([x, UNLIKE], 1)),
    }


# Not all in one: to export and prove that takes half a minute.
@pytest.mark.parametrize(
    "chosen",
    [
        ("gain", "inverse", "factor", "ortho", "root", "pseudo", "fit"),
        ("turn",),
        ("size", "step", "knot", "middle", "quarter"),
        ("decay", "peak", "density", "smooth", "spread"),
    ],
)
def test_a_node_of_algebra_runs_on_every_engine_as_it_does_in_python(
    chosen: tuple[str, ...], tmp_path: Path
) -> None:
    veracity.start("algebra", save_path=tmp_path)
    for tick in range(3):
        x = annotate.input_tensors("filter", {"x": drawn(4, 5, seed=tick)})
        found = policy(x)
        outputs = {name: found[name] for name in chosen}
        annotate.output_tensors("filter", outputs, export_with="onnx")
    veracity.stop()
    made = veracity.compile_graph()
    assert made.proof.verdict == "proved", made.proof
    bundle = tmp_path / "algebra" / "algebra.yaml"
    for engine in ("ort", "embedded"):
        manager = veracity.InferenceManager(bundle, engine=engine)
        for seed in (11, 12, 13):
            fresh = drawn(4, 5, seed=seed)
            given = manager.run_policy({"filter/x": fresh})
            wanted = policy(fresh)
            for name in chosen:
                torch.testing.assert_close(
                    given[f"filter/{name}"],
                    wanted[name],
                    rtol=2e-4,
                    atol=2e-5,
                    msg=f"{engine} {name}",
                )
