"""Programs as people write them, recorded, exported and run on fresh inputs: not one alarm.

Each entry is a step of plain code. It is recorded over several passes, exported for each backend,
and run on inputs that nobody recorded beside the code itself. Expected is the same value, no
warning and no error.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import veracity
from differential.sides import leave_session

PASSES = 4
FRESH = 5
Step = Callable[..., Any]
Draw = Callable[[torch.Generator], Any]


@pytest.fixture(autouse=True)
def no_session_is_left() -> Iterator[None]:
    yield
    leave_session(veracity)


def holds(make: Callable[[], Step], draw: Draw, backend: str, folder: Path) -> None:
    """Record, export and run one program; fail on any finding and on any other value."""
    source, step = torch.Generator().manual_seed(0), make()
    veracity.start("clean", save_path=str(folder))
    for _ in range(PASSES):
        x = veracity.annotate.input_tensors("n", {"x": draw(source)})
        veracity.annotate.output_tensors("n", {"y": step(x)}, export_with=backend)
    veracity.stop()
    result = veracity.compile_graph(visualize=False)
    assert result == {"n": True}
    assert [str(found) for found in result.diagnostics if found.severity != "note"] == []
    manager, step = veracity.InferenceManager(folder / "clean"), make()
    for _ in range(FRESH):
        x = draw(source)
        wanted = torch.as_tensor(step(x))
        found = manager.run_policy({"n/x": torch.as_tensor(x)})["n/y"]
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def tensor(*shape: int) -> Draw:
    return lambda source: torch.randn(shape, generator=source)


def array(*shape: int) -> Draw:
    return lambda source: torch.randn(shape, generator=source).double().numpy()


def clock(x: torch.Tensor) -> torch.Tensor:
    time = x[0].clone()
    time += 0.02
    return torch.stack([time % 1.0, torch.sin(6.2831853 * time)])


# A tensor of rank 0 with a number keeps its dtype, and so does one of integers.
NUMBERS: dict[str, Step] = {
    "2.0 * x[0]": lambda x: 2.0 * x[0],
    "x.sum() * 2.0": lambda x: x.sum() * 2.0,
    "x[0] + 0.1": lambda x: x[0] + 0.1,
    "1 + x[0]": lambda x: 1 + x[0],
    "x.mean() - 0.3": lambda x: x.mean() - 0.3,
    "0.3 - x.mean()": lambda x: 0.3 - x.mean(),
    "x[1] / 3.0": lambda x: x[1] / 3.0,
    "3.0 / x[1]": lambda x: 3.0 / (x[1].abs() + 1),
    "x[0] // 0.25": lambda x: x[0] // 0.25,
    "x[0] ** 2": lambda x: x[0] ** 2 * 0.1,
    "2.0 ** x[0]": lambda x: 2.0 ** x[0] * 0.1,
    "a gait clock": clock,
    "where": lambda x: torch.where(x[0] > 0.1, x[1] * 0.7, x[2] + 0.2),
    "clamp": lambda x: (x[0] * 0.1).clamp(-0.05, 0.05),
    "alpha": lambda x: torch.sub(x[0], 0.5, alpha=2),
    "rounding mode": lambda x: torch.div(x[0], 0.3, rounding_mode="floor"),
    "integers": lambda x: (x > 0).long() * 0.5,
    "32 bits": lambda x: (x > 0).int() + 0.5,
    "a truth value": lambda x: (x[0] > 0) * 0.5,
    "atan2": lambda x: torch.atan2(x[0] * 0.5, x[1] * 2),
    "norm": lambda x: (x.square().sum() + 1e-6).sqrt() * 0.5,
    "a float64 tensor": lambda x: x[0].double() * 0.1,
    "a float64 constant": lambda x: x[0] * torch.tensor(0.1, dtype=torch.float64),
}


@pytest.mark.parametrize("backend", ["jit", "jit-trace", "onnx", "pt2"])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_does_not_decide_the_dtype(name: str, backend: str, tmp_path: Path) -> None:
    holds(lambda: NUMBERS[name], tensor(5), backend, tmp_path)


# `True` and `False` beside tensors: torch's tracer takes numbers or tensors there.
FLAGS: dict[str, Step] = {
    "mask & True": lambda x: (x > 0) & True,
    "False | mask": lambda x: False | (x > 0),
    "mask ^ True": lambda x: (x > 0) ^ True,
    "mask == False": lambda x: (x > 0) == False,  # noqa: E712
    "masked_fill of flags": lambda x: (x > 0).masked_fill(x > 1, False),
    "masked_fill_ of flags": lambda x: (x > 0).masked_fill_(x < -1, True),
    "masked_fill by a flag": lambda x: x.masked_fill(x > 1, True),
    "fill_": lambda x: torch.empty_like(x).fill_(True) * x,
    "clamp": lambda x: x.clamp(False, True),
    "new_full": lambda x: x.new_full((2,), True) + x[:2],
    "a power": lambda x: x**True,
}


@pytest.mark.parametrize("backend", ["jit", "onnx", "onnx-torchscript", "pt2"])
@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_a_value(name: str, backend: str, tmp_path: Path) -> None:
    holds(lambda: FLAGS[name], tensor(5), backend, tmp_path)


CONSTRUCTORS: dict[str, tuple[Step, Draw]] = {
    "FloatTensor of literals": (lambda x: x * torch.FloatTensor([1, 2, 3]), tensor(3)),
    "Tensor of literals": (lambda x: x * torch.Tensor([1, 2, 3]), tensor(3)),
    "Tensor of a tuple": (lambda x: x * torch.Tensor((1, 2, 3)), tensor(3)),
    "Tensor of a size": (lambda x: x * torch.Tensor(3).fill_(2.0), tensor(3)),
    "LongTensor as an index": (lambda x: x[torch.LongTensor([2, 0, 1])], tensor(3)),
    "FloatTensor of elements": (lambda x: torch.FloatTensor([x[0], x[1] * 2]), tensor(3)),
    "nested": (lambda x: torch.FloatTensor([[x[0], 0.0], [1.0, x[1]]]), tensor(3)),
    "FloatTensor of an array": (lambda x: torch.FloatTensor(x * 2), array(3)),
    "Tensor of numbers of NumPy": (lambda x: torch.Tensor([x[0], x[1] * 2]), array(3)),
    "new_tensor of literals": (lambda x: x * x.new_tensor([1.0, 2.0, 3.0]), tensor(3)),
    "new_tensor of elements": (lambda x: x.new_tensor([x[0], x[1] * 2]), tensor(3)),
    "type": (lambda x: (x > 0).type(torch.FloatTensor) * x, tensor(3)),
    "isinstance": (lambda x: x * 2 if isinstance(x, torch.FloatTensor) else x, tensor(3)),
}


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_old_constructors_are_followed(name: str, backend: str, tmp_path: Path) -> None:
    step, draw = CONSTRUCTORS[name]
    holds(lambda: step, draw, backend, tmp_path)


def test_constructors_are_put_back(tmp_path: Path) -> None:
    before = torch.FloatTensor
    veracity.start("back", save_path=str(tmp_path))
    assert torch.FloatTensor is not before
    leave_session(veracity)
    assert torch.FloatTensor is before
    assert "__new__" not in vars(torch.Tensor)
    assert torch.Tensor([1, 2]).tolist() == [1, 2]
    assert torch.Tensor(2, 3).shape == (2, 3)


def changed(chosen: Callable[[Any], Any], value: Callable[[Any], Any]) -> Step:
    """Return a step that assigns `value(x[mask])` where `mask = chosen(x)`."""

    def step(x: Any) -> Any:
        y, mask = x.clone() if isinstance(x, torch.Tensor) else x.copy(), chosen(x)
        y[mask] = value(x[mask])
        return y

    return step


def filled(x: torch.Tensor, change: Callable[[torch.Tensor], None]) -> torch.Tensor:
    y = x.clone()
    change(y)
    return y


def assign(y: Any, key: Any, value: Any) -> None:
    y[key] = value


MASKS: dict[str, tuple[Step, Draw]] = {
    "a number": (lambda x: filled(x, lambda y: assign(y, x > 0, 0.0)), tensor(6)),
    "elements": (lambda x: filled(x, lambda y: assign(y, x > 0, x[x > 0] * 2)), tensor(6)),
    "rank 0": (lambda x: filled(x, lambda y: assign(y, x > 0, x.sum())), tensor(6)),
    "a row": (lambda x: filled(x, lambda y: assign(y, x[:, 0] > 0, x[0])), tensor(4, 3)),
    "a column": (lambda x: filled(x, lambda y: assign(y, (x[:, 0] > 0, 1), 0.5)), tensor(4, 3)),
    "a mask of rank 0": (lambda x: filled(x, lambda y: assign(y, x.sum() > 0, 0.0)), tensor(6)),
    "one element at first": (changed(lambda x: x > 1.5, lambda part: part * 2), tensor(6)),
    "few elements": (changed(lambda x: x.abs() < 0.5, lambda part: part**2), tensor(6)),
    "few of an array": (changed(lambda x: abs(x) < 0.5, lambda part: part**2), array(6)),
    "a sum": (lambda x: x[x > 0].sum(), tensor(6)),
    "the largest": (lambda x: x[x.argmax()], tensor(6)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, x.min()), tensor(6)),
}


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
@pytest.mark.parametrize("name", MASKS)
def test_masks_are_followed(name: str, backend: str, tmp_path: Path) -> None:
    step, draw = MASKS[name]
    holds(lambda: step, draw, backend, tmp_path)


MATRIX = torch.tensor([[0.0, 1, 0, 0], [0, 0, 0, 2], [1, 0, 0, 0]])


def sparse_of_literals(x: torch.Tensor) -> torch.Tensor:
    made = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 2]]), torch.tensor([1.0, 2.0]), (3, 4))
    return torch.sparse.mm(made, x)


def multiplied(by: Callable[..., Any], matrix: torch.Tensor) -> Step:
    return lambda x: by(matrix, x)


SPARSE: dict[str, tuple[Callable[[], Step], Draw]] = {
    "sparse.mm": (lambda: multiplied(torch.sparse.mm, MATRIX.to_sparse()), tensor(4, 2)),
    "matmul": (lambda: multiplied(torch.matmul, MATRIX.to_sparse()), tensor(4, 2)),
    "compressed": (lambda: multiplied(torch.matmul, MATRIX.to_sparse_csr()), tensor(4, 2)),
    "a vector": (lambda: multiplied(torch.mv, MATRIX.to_sparse()), tensor(4)),
    "made in the node": (lambda: sparse_of_literals, tensor(4, 2)),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_constant_is_exported_dense(name: str, backend: str, tmp_path: Path) -> None:
    make, draw = SPARSE[name]
    holds(make, draw, backend, tmp_path)


@pytest.mark.parametrize("sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_a_sparse_tensor_of_traced_values_is_no_constant(sparse: Any, tmp_path: Path) -> None:
    veracity.start("traced", save_path=str(tmp_path))
    x = veracity.annotate.input_tensors("n", {"x": torch.randn(3, 3)})
    with pytest.raises(veracity.VeracityError, match="cannot be followed"):
        veracity.annotate.output_tensors("n", {"y": sparse(x) @ x}, export_with="jit")


def lazy() -> Step:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.LazyConv1d(4, 3), torch.nn.LazyBatchNorm1d(), torch.nn.Flatten(),
        torch.nn.LazyLinear(2),
    ).eval()  # fmt: skip


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
def test_lazy_modules_may_be_filled_by_the_first_pass(backend: str, tmp_path: Path) -> None:
    with torch.no_grad():
        holds(lazy, tensor(2, 3, 8), backend, tmp_path)


def kinematics(q: torch.Tensor) -> torch.Tensor:
    return torch.stack([q[0].cos() + (q[0] + q[1]).cos(), q[0].sin() + (q[0] + q[1]).sin(), q[2]])


DERIVATIVES: dict[str, Step] = {
    "jacrev": lambda x: torch.func.jacrev(kinematics)(x),
    "jacfwd": lambda x: torch.func.jacfwd(kinematics)(x) @ x,
    "grad": lambda x: torch.func.grad(lambda q: (q**3).sum())(x),
    "hessian": lambda x: torch.func.hessian(lambda q: (q**3).sum() * q[0])(x),
}


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_torch_func_are_exported(name: str, backend: str, tmp_path: Path) -> None:
    holds(lambda: DERIVATIVES[name], tensor(3), backend, tmp_path)


def by_autograd(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        q = x.detach().requires_grad_(True)
        found: torch.Tensor = torch.autograd.grad((q**2).sum() * q[0].sin(), q)[0]
        return found


AUTOGRAD: dict[str, Step] = {
    "grad": by_autograd,
    "jacobian": lambda x: torch.autograd.functional.jacobian(kinematics, x),
}


@pytest.mark.parametrize("name", AUTOGRAD)
def test_autograd_is_refused_with_what_to_write_instead(name: str, tmp_path: Path) -> None:
    veracity.start("autograd", save_path=str(tmp_path))
    with pytest.raises(veracity.VeracityError, match=r"torch\.func \(grad, jacrev, jacfwd\)"):
        for _ in range(PASSES):
            x = veracity.annotate.input_tensors("n", {"x": torch.randn(3)})
            y = AUTOGRAD[name](x)
            veracity.annotate.output_tensors("n", {"y": y}, export_with="jit")
        veracity.stop()
        veracity.compile_graph(visualize=False)


def pieces(x: Any) -> Any:
    return np.piecewise(x, [x < 0, x > 1], [lambda v: -v, 1.0, lambda v: v * v])


VECTORISED = np.vectorize(lambda v: v * 2 + 1)
ARRAYS: dict[str, tuple[Step, Draw]] = {
    "digitize": (lambda x: np.digitize(x, [-1.0, 0.0, 1.0]) * x, array(6)),
    "linspace": (lambda x: np.linspace(x[0], x[1], 5), array(6)),
    "vectorize": (lambda x: VECTORISED(x), array(6)),
    "cov": (lambda x: np.cov(x), array(3, 6)),
    "unwrap": (lambda x: np.unwrap(x * 5), array(6)),
    "gradient": (lambda x: np.gradient(x, 0.1), array(6)),
    "convolve": (lambda x: np.convolve(x, [0.25, 0.5, 0.25], mode="same"), array(6)),
    "polyval": (lambda x: np.polyval([1.0, 2.0, 3.0], x), array(6)),
    "piecewise": (pieces, array(6)),
    "apply_along_axis": (lambda x: np.apply_along_axis(np.cumsum, 1, x), array(3, 6)),
    "a number with an axis": (lambda x: np.concatenate([x.sum()[None], x]), array(6)),
}


@pytest.mark.parametrize("backend", ["jit", "onnx", "pt2"])
@pytest.mark.parametrize("name", ARRAYS)
def test_numpy_of_robot_code_is_exported(name: str, backend: str, tmp_path: Path) -> None:
    step, draw = ARRAYS[name]
    holds(lambda: step, draw, backend, tmp_path)


def tick(silent: bool) -> None:
    """Do one tick of a robot whose sensor may be silent."""
    x = veracity.annotate.input_tensors("n", {"x": torch.randn(3)})
    if silent:
        raise ValueError("a sensor is silent")
    veracity.annotate.output_tensors("n", {"y": x * 2 + 1}, export_with="jit")


@pytest.mark.parametrize("interrupted", [{0}, {1}, {1, 2}, {5}], ids=str)
def test_a_pass_that_an_exception_ended_is_left_out(interrupted: set[int], tmp_path: Path) -> None:
    veracity.start("caught", save_path=str(tmp_path))
    for number in range(6):
        with contextlib.suppress(ValueError):
            tick(number in interrupted)
    veracity.stop()
    result = veracity.compile_graph(visualize=False)
    assert result == {"n": True}
    assert not [found for found in result.diagnostics if found.severity != "note"]


def test_two_inputs_of_one_name_are_still_refused(tmp_path: Path) -> None:
    veracity.start("two", save_path=str(tmp_path))
    both = [veracity.annotate.input_tensors("n", {"x": torch.randn(3)}) for _ in range(2)]
    with pytest.raises(veracity.VeracityError, match="two inputs of the name 'x'"):
        veracity.annotate.output_tensors("n", {"y": both[0] + both[1]}, export_with="jit")


def test_a_usual_warning_of_torch_is_not_hidden(tmp_path: Path) -> None:
    veracity.start("warned", save_path=str(tmp_path))
    x = veracity.annotate.input_tensors("n", {"x": torch.randn(3)})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        x.new_tensor(x)
    assert "sourceTensor" in str(told[0].message)
