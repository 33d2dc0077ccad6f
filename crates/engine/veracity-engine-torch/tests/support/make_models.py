"""Writes TorchScript modules and, for each, calls with the bytes that Python torch gets.

Modules that keep nothing between calls are written as exported programs, too.

Usage: make_models.py FOLDER
"""

# ruff: noqa: D101, D102, D103, D107, TID251 - the names of the modules say what they do, and this
# script is there to run torch.

import json
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

warnings.simplefilter("ignore")


class Identity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Pair(NamedTuple):
    doubled: Tensor
    positive: Tensor


class NamedPair(nn.Module):
    def forward(self, x: Tensor) -> Pair:
        return Pair(x * 2, x > 0)


class TupleOutput(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x.argmax(dim=-1)


class NestedOutput(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, list[Tensor]]]:
        return x, (x + 1, [x + 2, x + 3])


class ListOutput(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [x, x * 3]


class DictOutput(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"x": x}


class FloatOutput(nn.Module):
    def forward(self, x: Tensor) -> float:
        return float(x.sum())


class SparseOutput(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.to_sparse()


class Sliced(nn.Module):
    """Values that are parts of others, and do not fill their memory."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 1:] * 2.0 + x[:, :-1].abs()


class Strided(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, ::2] * 0.5 - x.t()[1].unsqueeze(1)


class Expanded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:1].expand(2, 3) * 3.0 + x[:, 1:2].expand(2, 3).clamp(-1.0, 1.0)


class Unbound(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        first, second, third = x.unbind(1)
        return torch.stack([third * 2.0, first - second])


class Transposed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.t()


class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Weighted(nn.Module):
    """Only the first argument needs a port."""

    def forward(self, x: Tensor, y: Tensor | None = None, scale: float = 3.0) -> Tensor:
        return x * scale if y is None else x * scale + y


class NeedsFloat(nn.Module):
    def forward(self, x: Tensor, scale: float) -> Tensor:
        return x * scale


class NonZero(nn.Module):
    """The shape of the result depends on the values."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.nonzero(x)


class RaisesOnNegative(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool((x < 0).any()):
            raise RuntimeError("negative values are not supported")
        return x.sqrt()


class Counter(nn.Module):
    """Has a state of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return x + self.count


class Remembers(nn.Module):
    """Keeps its input, without copying it, until the next call."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        last = self.last
        self.last = x
        return last


class RemembersView(nn.Module):
    """Keeps a part of its input until the next call."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(2)

    def forward(self, x: Tensor) -> Tensor:
        last = self.last
        self.last = x[1:]
        return last + 0


class WritesInPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.add_(1)
        return x


class WritesThroughData(nn.Module):
    """Writes past the version counter."""

    def forward(self, x: Tensor) -> Tensor:
        x.data.mul_(0)
        return x + 1


class ReshapesInPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.t_()
        return x


class Forks(nn.Module):
    """Works in another thread of torch's pool."""

    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(torch.sigmoid, x)
        return torch.jit.wait(future) + x.tanh()


class MakesOnCpu(nn.Module):
    """Names the device that it makes a tensor on, in a block and in a method of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return self.placed(x) if x.numel() > 1 else x

    def placed(self, x: Tensor) -> Tensor:
        return x + torch.arange(3, device="cpu")


class MakesOnGpu(MakesOnCpu):
    """The same, recorded on a GPU; part of it on the CPU."""

    def placed(self, x: Tensor) -> Tensor:
        return x + torch.arange(3, device="cuda:0").to("cpu").to(x.device)


class AsksForDevice(nn.Module):
    """Computes something else on a GPU; on the CPU, the names of devices must stay."""

    def forward(self, x: Tensor) -> Tensor:
        if x.device == torch.device("cuda:0") or x.device != torch.device("cpu"):
            return x + 1
        return x - 1


class NoForward(nn.Module):
    @torch.jit.export
    def other(self, x: Tensor) -> Tensor:
        return x


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(8, 16)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        return self.cell(x, h)


class MatMul(nn.Module):
    """Large enough for torch to use several threads."""

    def forward(self, x: Tensor) -> Tensor:
        return (x @ x).tanh()


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(48, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU(), nn.Dropout(0.5), nn.Linear(64, 12)
    )


def conv() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)
    )


DTYPES = [
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
]  # fmt: skip


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def of_every_dtype() -> dict[str, tuple]:
    sample = torch.tensor([[0, 1, 2], [3, 100, 127]])
    return {f"identity_{name_of(t)}": (Identity(), [(sample.to(t),)]) for t in DTYPES}


def modules() -> dict[str, tuple]:
    """Name to (module, arguments of each call)."""
    three = [(torch.randn(3),) for _ in range(4)]
    two_by_three = [(torch.randn(2, 3),) for _ in range(3)]
    row = [(torch.randn(1, 48),) for _ in range(4)]
    return of_every_dtype() | {
        "mlp": (mlp(), row),
        "mlp_traced": (torch.jit.trace(mlp().eval(), row[0]), row),
        "conv": (conv(), [(torch.randn(2, 3, 8, 8),)] * 2),
        "gru": (Gru(), [(torch.randn(4, 1, 8), torch.randn(1, 1, 16)) for _ in range(3)]),
        "named_pair": (NamedPair(), two_by_three),
        "tuple_output": (TupleOutput(), two_by_three),
        "nested_output": (NestedOutput(), three),
        "list_output": (ListOutput(), three),
        "transposed": (Transposed(), two_by_three),
        "sliced": (Sliced(), two_by_three),
        "strided": (Strided(), two_by_three),
        "expanded": (Expanded(), two_by_three),
        "unbound": (Unbound(), two_by_three),
        "scalar": (Twice(), [(torch.tensor(1.5),), (torch.tensor(float("nan")),)]),
        "empty": (Twice(), [(torch.zeros(0, 3),)]),
        "weighted_once": (Weighted(), three),
        "weighted_twice": (Weighted(), [(torch.randn(3), torch.randn(3)) for _ in range(2)]),
        "counter": (Counter(), three),
        "remembers": (Remembers(), three),
        "remembers_view": (RemembersView(), three),
        "writes_in_place": (WritesInPlace(), three),
        "writes_through_data": (WritesThroughData(), three),
        "reshapes_in_place": (ReshapesInPlace(), two_by_three),
        "forks": (Forks(), three),
        "raises_on_negative": (RaisesOnNegative(), [(torch.tensor([4.0, 9.0]),)]),
        "makes_on_cpu": (MakesOnCpu(), three),
        "asks_for_device": (AsksForDevice(), three),
        "matmul": (MatMul(), [(torch.randn(256, 256) / 16,)]),
        # Cannot be run here as it is: no calls.
        "makes_on_gpu": (MakesOnGpu(), []),
        # Refused in one way or another: no calls.
        "dict_output": (DictOutput(), []),
        "float_output": (FloatOutput(), []),
        "sparse_output": (SparseOutput(), []),
        "needs_float": (NeedsFloat(), []),
        "non_zero": (NonZero(), []),
        "no_forward": (NoForward(), []),
    }


def tensors_in(value: object) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for element in value for tensor in tensors_in(element)]


def described(tensor: Tensor) -> dict:
    plain = tensor.detach().contiguous().reshape(-1)
    return {
        "dtype": name_of(tensor.dtype),
        "shape": list(tensor.shape),
        "hex": bytes(plain.view(torch.uint8).tolist()).hex() if plain.numel() else "",
    }


def recorded(path: Path, calls: list[tuple]) -> list[dict]:
    """Runs a fresh copy of the module, each call on tensors of its own."""
    module = torch.jit.load(path).eval()
    record = []
    with torch.inference_mode():
        for arguments in calls:
            results = module(*[argument.clone() for argument in arguments])
            record.append({
                "inputs": [described(argument) for argument in arguments],
                "outputs": [described(result) for result in tensors_in(results)],
            })  # fmt: skip
    return record


#: Keep nothing between calls, and read no value while they run. torch writes no program with
#: uint32 and uint64.
PROGRAMS = [
    *(f"identity_{name_of(t)}" for t in DTYPES if t not in (torch.uint32, torch.uint64)),
    "mlp", "conv", "gru", "tuple_output", "nested_output", "list_output",
    "transposed", "sliced", "strided", "expanded", "unbound", "scalar", "empty", "weighted_once", "weighted_twice", "matmul",
]  # fmt: skip


def write_program(path: Path, module: nn.Module, arguments: tuple) -> None:
    with torch.no_grad():
        program = torch.export.export(module.eval(), arguments)
    # A file without inputs in it is what Veracity writes.
    program._example_inputs = None
    torch.export.save(program, path)


class PartOfATable(nn.Module):
    """A constant that begins in the middle of its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("row", torch.arange(6.0).reshape(2, 3)[1])

    def forward(self, x: Tensor) -> Tensor:
        return x * self.row


def main(folder: Path) -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    cases = {}
    for name, (module, calls) in modules().items():
        path = folder / f"{name}.pt"
        # Saved in training mode on purpose: the engine has to switch to evaluation.
        torch.jit.script(module.train() if name != "mlp_traced" else module).save(path)
        cases[name] = recorded(path, calls)
        if name in PROGRAMS:
            write_program(folder / f"{name}.pt2", module, calls[0])
    write_program(folder / "part_of_a_table.pt2", PartOfATable(), (torch.ones(3),))
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
