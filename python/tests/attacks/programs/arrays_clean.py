"""Clean code with NumPy, sparse tensors, odd constructors, and gradients inside of a node."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from attacks.draws import array, integers, normal, uniform
from attacks.registry import clean, hostile


@clean(rec={"x": array(uniform(-2, 2, 5))}, in_tests=True)
def digitize(x: np.ndarray) -> np.ndarray:
    return np.digitize(x, np.array([-1.0, 0.0, 1.0])) * 1.0 + x


@clean(rec={"x": array(normal(4))})
def linspace(x: np.ndarray) -> np.ndarray:
    return x * np.linspace(0.1, 1.0, 4, dtype=np.float32)


@clean(rec={"x": array(normal(2))})
def linspace_between(x: np.ndarray) -> np.ndarray:
    return np.linspace(x[0], x[1], 5)


@clean(rec={"x": array(normal(4))})
def vectorize(x: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda v: v * 2 + 1)(x)


@clean(rec={"x": array(normal(3, 6))})
def covariance(x: np.ndarray) -> np.ndarray:
    return np.cov(x)


@clean(rec={"x": array(uniform(-3, 3, 6))}, in_tests=True)
def unwrap(x: np.ndarray) -> np.ndarray:
    return np.unwrap(x)


@clean(rec={"x": array(normal(6))})
def gradient(x: np.ndarray) -> np.ndarray:
    return np.gradient(x, 0.02)


@clean(rec={"x": array(normal(6))}, in_tests=True)
def convolve(x: np.ndarray) -> np.ndarray:
    return np.convolve(x, np.ones(3, np.float32) / 3, mode="same")


@clean(rec={"x": array(normal(4))})
def polyval(x: np.ndarray) -> np.ndarray:
    return np.polyval([0.5, -1.0, 2.0], x)


@clean(rec={"x": array(normal(4))})
def horner(x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    for c in (0.5, -1.0, 2.0):
        y = y * x + np.float32(c)
    return y


@clean(rec={"x": array(normal(4, 4))})
def cumsum_diff(x: np.ndarray) -> np.ndarray:
    return np.diff(np.cumsum(x, axis=1), axis=0)


@clean(rec={"x": array(normal(3))})
def cross_norm(x: np.ndarray) -> np.ndarray:
    up = np.array([0.0, 0.0, 1.0], np.float32)
    side = np.cross(up, x)
    return side / (np.linalg.norm(side) + np.float32(1e-6))


@clean(rec={"x": array(normal(3))})
def interp(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -1, 1) * np.float32(0.5) + np.float32(0.5)


@clean(rec={"x": array(normal(2, 3))})
def stacked(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x.mean(0), x.std(0), x.min(0), x.max(0)])


@clean(rec={"x": array(normal(3))})
def euler_matrix(x: np.ndarray) -> np.ndarray:
    c, s = np.cos(x), np.sin(x)
    zero, one = np.zeros_like(c[0]), np.ones_like(c[0])
    rz = np.array([[c[2], -s[2], zero], [s[2], c[2], zero], [zero, zero, one]])
    return rz @ x


@clean(rec={"x": array(normal(4))})
def into_torch_and_back(x: np.ndarray) -> np.ndarray:
    t = torch.from_numpy(x)
    return (t.tanh() * 2).numpy()


@clean(rec={"x": normal(4)})
def through_numpy(x: Tensor) -> Tensor:
    a = x.numpy()
    return torch.from_numpy(np.where(a > 0, a, 0.1 * a))


@clean(rec={"x": array(normal(4))})
def scratch_array(x: np.ndarray) -> np.ndarray:
    out = np.empty(4, np.float32)
    out[:2] = x[2:]
    out[2:] = -x[:2]
    return out


@clean(rec={"x": normal(4, 3)}, backends="jit")
def sparse_mm():
    i = torch.tensor([[0, 1, 1], [2, 0, 3]])
    a = torch.sparse_coo_tensor(i, torch.tensor([3.0, 4.0, 5.0]), (2, 4))
    return lambda *g: torch.sparse.mm(a, g[0])


@clean(rec={"x": normal(3)}, in_tests=True)
def float_tensor(x: Tensor) -> Tensor:
    return x * torch.FloatTensor([0.5, 1.0, 2.0])


@clean(rec={"x": normal(3)}, in_tests=True)
def new_tensor(x: Tensor) -> Tensor:
    return x + x.new_tensor([1.0, 2.0, 3.0])


@clean(rec={"x": normal(3)})
def new_zeros_and_full(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_zeros(2), x.new_full((1,), 0.5)])


@clean(rec={"x": normal(3)})
def as_tensor_of_list(x: Tensor) -> Tensor:
    return x @ torch.as_tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])


@clean(rec={"x": normal(3)})
def long_tensor_index(x: Tensor) -> Tensor:
    return x[torch.LongTensor([2, 0, 1])]


@clean(rec={"q": normal(2)}, passes=3, backends="jit", in_tests=True)
def jacobian_by_func():
    """A Jacobian for control with torch.func."""

    def fk(q: Tensor) -> Tensor:
        return torch.stack([q[0].cos() + (q[0] + q[1]).cos(), q[0].sin() + (q[0] + q[1]).sin()])

    return lambda *g: torch.func.jacrev(fk)(g[0])


@hostile("H", rec={"q": normal(3)}, passes=3, backends="jit")
def gradient_step(q: Tensor) -> Tensor:
    """One step of descent by autograd."""
    with torch.enable_grad():
        p = q.detach().requires_grad_(True)
        (g,) = torch.autograd.grad((p.square().sum() - 1).square(), p)
    return q - 0.01 * g


@clean(rec={"x": normal(3)})
def doubles_inside(x: Tensor) -> Tensor:
    return (x.double() * 1.1).float()


@clean(rec={"k": integers(0, 5, 3)})
def integer_maths(k: Tensor) -> Tensor:
    return (k * 3 + 1) % 7


@clean(rec={"k": integers(0, 5, 3)})
def one_hot(k: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(k, 5).float() @ torch.arange(5.0)


@clean(rec={"x": normal(2, 4)})
def boolean_mask(x: Tensor) -> Tensor:
    y = x.clone()
    y[y < 0] *= 0.2
    return y


@clean(rec={"x": normal(2, 4)})
def views_written(x: Tensor) -> Tensor:
    y = torch.zeros(2, 6)
    y[:, :4] = x
    y[:, 4:].add_(1.0)
    y.t()[0] -= 2.0
    return y


@clean(rec={"x": normal(6)})
def out_argument(x: Tensor) -> Tensor:
    y = torch.empty(6)
    torch.mul(x, 2.0, out=y)
    return y + 1


@clean(rec={"x": normal(1, 4)})
class ParameterAsNumpy(nn.Module):
    """Weights that come out of an array."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.w = torch.from_numpy(rng.standard_normal((4, 2)).astype(np.float32))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w


@clean(rec={"x": normal(5)})
def sorted_and_gathered(x: Tensor) -> Tensor:
    values, order = torch.sort(x, descending=True)
    return values.cumsum(0) + order


@clean(rec={"x": normal(5)})
def top_two(x: Tensor) -> Tensor:
    return x.topk(2).values


@clean(rec={"x": normal(3, 3)}, backends="jit")
def solved(x: Tensor) -> Tensor:
    a = x @ x.T + torch.eye(3)
    return torch.linalg.solve(a, torch.ones(3))


@clean(rec={"x": normal(3, 3)}, backends="jit", passes=3)
def factored(x: Tensor) -> Tensor:
    return torch.linalg.cholesky(x @ x.T + torch.eye(3))


@clean(rec={"x": array(normal(3))})
def scalar_checks_that_hold(x: np.ndarray) -> np.ndarray:
    """Type checks on what is no data."""
    gain = 2.0
    assert np.isscalar(gain) and isinstance(x, np.ndarray)
    return x * np.float32(gain)


@clean(rec={"x": array(normal(4))})
def numpy_scalar_maths(x: np.ndarray) -> np.ndarray:
    total = x.sum()
    return x / (np.abs(total) + np.float32(1))
