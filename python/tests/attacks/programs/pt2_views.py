"""Views, strides and offsets in pt2 models, which torch's own runner runs with code of its own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attacks.draws import integers, normal
from attacks.registry import clean, hostile


def in_runner(**options):
    options = {"rec": {"x": normal(3, 4)}, "passes": 3, "backends": "pt2", "ticks": 5} | options
    return lambda code: clean("E", name=f"pt2_{code.__name__}", runner="cli", **options)(code)


def perhaps(**options):
    """What torch's runner may refuse: it must not be proved and wrong."""
    options = {"rec": {"x": normal(3, 4)}, "passes": 3, "backends": "pt2", "ticks": 5} | options
    return lambda code: hostile("E", name=f"pt2_{code.__name__}", runner="cli", **options)(code)


# Views of the input


@in_runner()
def last_columns(x: Tensor) -> Tensor:
    return x[:, -2:].tanh() * 2.0


@in_runner()
def every_second_row(x: Tensor) -> Tensor:
    return x[::2] ** 2 - 1.0


@in_runner()
def both_ends(x: Tensor) -> Tensor:
    return torch.cat([x[:, :1], x[:, 3:]], dim=1) / 3.0


@in_runner()
def swapped_axes(x: Tensor) -> Tensor:
    return x.transpose(0, 1).sigmoid() + x.mT


@in_runner(rec={"x": normal(2, 3, 4)})
def permuted(x: Tensor) -> Tensor:
    return x.permute(2, 0, 1).clamp(-1.0, 1.0).sum(-1)


@in_runner()
def rows_by_unbind(x: Tensor) -> Tensor:
    a, b, c = x.unbind(0)
    return a * b + c.abs()


@in_runner()
def columns_stacked(x: Tensor) -> Tensor:
    return torch.stack([x[:, i] for i in range(4)], dim=0) * torch.arange(4.0).unsqueeze(1)


@in_runner()
def split_sizes(x: Tensor) -> Tensor:
    position, velocity = x.split([1, 3], dim=1)
    return position * velocity.norm(dim=1, keepdim=True)


@in_runner()
def window(x: Tensor) -> Tensor:
    return x.unfold(1, 2, 1).mean(-1)


@in_runner()
def on_the_diagonal(x: Tensor) -> Tensor:
    return torch.diagonal(x, dim1=0, dim2=1).exp()


@in_runner()
def strided_by_hand(x: Tensor) -> Tensor:
    return torch.as_strided(x.contiguous(), (2, 3), (5, 1), 1) * 0.5


@in_runner()
def one_number(x: Tensor) -> Tensor:
    return x[1, 2] * x


@in_runner()
def row_for_all(x: Tensor) -> Tensor:
    return x[1].expand(3, 4) - x


@in_runner()
def broadcast_columns(x: Tensor) -> Tensor:
    return x[:, 1:2].expand(-1, 4).relu() + x[:, 2:3].expand(-1, 4)


@in_runner()
def view_of_a_view(x: Tensor) -> Tensor:
    return x[1:][:, 1:].t()[1:].abs().log1p()


@in_runner()
def empty_part(x: Tensor) -> Tensor:
    return torch.cat([x[:, :0] * 2.0, x[:, 1:] * 3.0], dim=1)


@in_runner()
def mask_of_a_slice(x: Tensor) -> Tensor:
    return torch.where(x[:, 1:] > 0.0, x[:, :-1], -x[:, 1:])


@in_runner()
def differences(x: Tensor) -> Tensor:
    return (x[:, 1:] - x[:, :-1]).square().sum(dim=1).sqrt()


@in_runner()
def flipped_and_rolled(x: Tensor) -> Tensor:
    return x.flip(1)[:, 1:] + x.roll(1, dims=1)[:, :3]


@in_runner()
def slice_is_output(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[:, 1:3], x.t()


@in_runner()
def written_slice(x: Tensor) -> Tensor:
    y = torch.zeros(3, 6)
    y[:, 1:5] = x
    y[1] *= 2.0
    return y[:, 2:]


@in_runner(rec={"x": normal(1, 3, 6, 6)})
def cropped_image(x: Tensor) -> Tensor:
    return (x[:, :, 1:5, 2:4] - 0.5).mean(dim=(2, 3))


@in_runner(rec={"k": integers(0, 9, 3, 4)})
def whole_numbers(k: Tensor) -> Tensor:
    return (k[:, 1:] // 2) % 3 + k[:, :3]


@in_runner(rec={"k": integers(0, 9, 4)})
def flags_of_slices(k: Tensor) -> Tensor:
    odd = (k % 2) == 1
    return (odd[1:] & ~odd[:-1]).int().cumsum(0)


@in_runner()
def half_precision(x: Tensor) -> Tensor:
    return (x.half()[:, 1:3] * 2.0).float()


@in_runner()
def double_precision(x: Tensor) -> Tensor:
    return x.double().t()[1:] * 2.0 + 1.0


@in_runner()
def plus_a_flag(x: Tensor) -> Tensor:
    return x + True


@in_runner()
def floor_of_half(x: Tensor) -> Tensor:
    return x[:, 1:] // 0.5


# Constants that are parts of other memory


@in_runner()
class Quarters(nn.Module):
    """Four constants in one storage, one of them transposed, one read backwards."""

    def __init__(self) -> None:
        super().__init__()
        memory = torch.randn(6, 8)
        self.register_buffer("a", memory[:3, :4])
        self.register_buffer("b", memory[:3, 4:])
        self.register_buffer("c", memory[3:, :4])
        self.register_buffer("d", memory.t()[4:, 3:])

    def forward(self, x: Tensor) -> Tensor:
        return x * self.a + self.b - (x @ self.d) @ self.c


@in_runner()
def limits():
    """Lower and upper limits as two columns of a table."""
    table = torch.tensor([[-1.0, 1.0], [-0.5, 0.5], [-0.1, 0.9], [0.0, 2.0]])
    lower, upper = table.unbind(1)
    return lambda x: torch.minimum(torch.maximum(x, lower), upper)


@in_runner()
def default_pose():
    pose = torch.randn(12)
    return lambda x: x + pose[4:8]


@in_runner()
def expanded_constant():
    gain = torch.tensor([[0.5], [2.0], [3.0]]).expand(3, 4)
    return lambda x: x * gain


@in_runner()
class TiedWeights(nn.Module):
    """One matrix there and back."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(5, 4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.w.t()) @ self.w


@in_runner()
class TiedLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


@in_runner()
class Scratch(nn.Module):
    """A buffer that is filled before it is read, on every pass."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("work", torch.zeros(4, 6))

    def forward(self, x: Tensor) -> Tensor:
        self.work[:3, 1:5].copy_(x)
        return self.work[:3, 1:5] * 2.0


# State


@in_runner(passes=4)
class KeepsASlice:
    def __init__(self) -> None:
        self.last = torch.zeros(3, 2)

    def __call__(self, x: Tensor) -> Tensor:
        moved = x[:, 1:3] - self.last
        self.last = x[:, 1:3]
        return moved


@in_runner(passes=4)
class RollingHistory:
    def __init__(self) -> None:
        self.past = torch.zeros(5, 4)

    def __call__(self, x: Tensor) -> Tensor:
        self.past = torch.cat([self.past[1:], x[:1]])
        return self.past[::2] * 0.5


@in_runner(passes=4)
class TransposedMemory:
    def __init__(self) -> None:
        self.h = torch.zeros(4, 3)

    def __call__(self, x: Tensor) -> Tensor:
        self.h = 0.9 * self.h + x.t()
        return self.h.t()[:, 1:]


# What the runner may not know


@perhaps()
def complex_numbers(x: Tensor) -> Tensor:
    return (torch.exp(1j * x)).real


@perhaps()
def spectrum(x: Tensor) -> Tensor:
    return torch.fft.rfft(x, dim=1).abs()


@perhaps()
def as_complex(x: Tensor) -> Tensor:
    return torch.view_as_real(torch.view_as_complex(x.reshape(3, 2, 2)) * 2.0).flatten(1)


@perhaps()
def constant_is_output():
    """Told: an output that never moves says nothing."""
    table = torch.arange(12.0).reshape(3, 4)
    return lambda x: (x.sum(1), table[:, 1] + 0.0 * x[:, 0])


@perhaps()
def beyond_the_constant():
    table = torch.arange(12.0).reshape(3, 4)
    row = table[0]
    return lambda x: x + torch.as_strided(row, (3, 4), (4, 1), 0)


@perhaps()
def median_and_quantile(x: Tensor) -> Tensor:
    return x.median(dim=1).values + x.quantile(0.25, dim=1)


@perhaps()
def inverse(x: Tensor) -> Tensor:
    return torch.linalg.inv(x @ x.t() + torch.eye(3))
