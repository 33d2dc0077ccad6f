"""Plain NumPy arrays that are older than the session: traced values are written into them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from differential.probes import right, told

_BUFFER: NDArray[np.float32] = np.zeros((2, 4), np.float32)
_WIDE: NDArray[np.float64] = np.zeros((2, 4))
_TABLE: NDArray[np.float32] = np.arange(12, dtype=np.float32).reshape(3, 4)
_KNOTS: NDArray[np.float32] = np.linspace(-1, 1, 4, dtype=np.float32)
_OBJECTS: NDArray[np.object_] = np.zeros(2, object)
_RECORDS = np.zeros(2, [("position", np.float32, 4), ("velocity", np.float32, 4)])


@right()
def written_as_a_whole(x: Tensor) -> Tensor:
    _BUFFER[:] = x.numpy() * 3
    return torch.from_numpy(_BUFFER) + 1


@right()
def written_as_a_whole_and_copied_to_torch(x: Tensor) -> Tensor:
    _BUFFER[:] = x.numpy() * 3
    return torch.tensor(_BUFFER) + torch.as_tensor(_BUFFER) + x.new_tensor(_BUFFER)


@right()
def written_and_computed_with_by_numpy_alone(x: Tensor) -> Tensor:
    _BUFFER[...] = x.numpy()
    doubled = _BUFFER * 2
    return torch.as_tensor(np.sin(_BUFFER) + doubled.clip(0, 1) + _BUFFER.sum(0))


@right()
def written_in_part(x: Tensor) -> Tensor:
    _BUFFER[:] = 0
    _BUFFER[1:2] = x.numpy()[0]
    return x + torch.as_tensor(_BUFFER)


@right()
def written_in_a_column(x: Tensor) -> Tensor:
    _BUFFER[:] = 0
    _BUFFER[:, 1] = x.numpy()[:, 0]
    return x + torch.as_tensor(_BUFFER.copy())


@right()
def written_in_one_element(x: Tensor) -> Tensor:
    _BUFFER[:] = 0
    _BUFFER[0, 1] = x.numpy()[1, 2]
    _BUFFER[1][3] = x.numpy()[0, 0] * 2
    return x + torch.as_tensor(_BUFFER)


@right()
def written_through_a_view_of_it(x: Tensor) -> Tensor:
    _BUFFER[:] = 0
    row = _BUFFER[0]
    row[1:] = x.numpy()[0, 1:]
    return x + torch.as_tensor(_BUFFER)


@right()
def written_by_a_mask(x: Tensor) -> Tensor:
    _BUFFER[:] = 1
    _BUFFER[_TABLE[:2] > 3] = x.numpy()[0, 0]
    return x + torch.as_tensor(_BUFFER)


@right()
def written_from_a_list(x: Tensor) -> Tensor:
    _BUFFER[:] = 1
    rows = x.numpy()
    _BUFFER[0] = [rows[0, 0], rows[1, 1], 2.0, rows[0, 2]]
    return x + torch.as_tensor(_BUFFER)


@right()
def written_with_another_dtype(x: Tensor) -> Tensor:
    _WIDE[:] = x.numpy()
    return torch.as_tensor(_WIDE).float() + x


@right()
def written_and_overwritten_again(x: Tensor) -> Tensor:
    _BUFFER[:] = x.numpy()
    _BUFFER[0] = 0
    _BUFFER[:, 2] = 7
    return x + torch.as_tensor(_BUFFER * 1.5)


@right()
def written_by_copyto(x: Tensor) -> Tensor:
    np.copyto(_BUFFER, x.numpy())
    return torch.as_tensor(_BUFFER * 2)


@right()
def written_through_out(x: Tensor) -> Tensor:
    np.add(x.numpy(), 1, out=_BUFFER)
    return torch.from_numpy(_BUFFER) * torch.as_tensor(np.add.reduce(_BUFFER, 0))


@right()
def added_to_in_place(x: Tensor) -> Tensor:
    _BUFFER[:] = 1
    total = _BUFFER
    total += x.numpy()
    total *= 2
    return torch.as_tensor(_BUFFER)


@right()
def iterated_over(x: Tensor) -> Tensor:
    _BUFFER[:] = x.numpy()
    return torch.tensor([[value * 2 for value in row] for row in _BUFFER])


@right()
def a_tensor_on_it_is_written(x: Tensor) -> Tensor:
    _BUFFER[:] = 0
    torch.from_numpy(_BUFFER)[0] = 5.0
    _BUFFER[1] = x.numpy()[0]
    torch.from_numpy(_BUFFER).add_(1)
    return x + torch.as_tensor(_BUFFER)


@right()
def read_with_a_traced_index(x: Tensor) -> Tensor:
    rows = (x.numpy()[0] > 0).astype(np.int64)
    return torch.as_tensor(_TABLE[rows] + _TABLE.take(rows, axis=0))


@right()
def searched_for_traced_values(x: Tensor) -> Tensor:
    return x + torch.as_tensor(_KNOTS.searchsorted(x.numpy()))


@right()
def multiplied_with_a_traced_array(x: Tensor) -> Tensor:
    return torch.as_tensor(_TABLE.dot(x.numpy().T)).float()


@right()
def a_list_that_only_a_ufunc_sees(x: Tensor) -> Tensor:
    rows = x.numpy()
    return x + torch.as_tensor(np.add([rows[1], rows[0]], 1))


@right()
def the_world_writes_into_it_before(x: Tensor) -> Tensor:
    _BUFFER[:] = 3
    return x * torch.tensor(_BUFFER)


@right()
def written_into_a_field_of_records(x: Tensor) -> Tensor:
    _RECORDS["position"] = 1
    _RECORDS["position"][:, 1:3] = x.numpy()[:, :2]
    return x + torch.as_tensor(_RECORDS["position"])


@right()
def kept_in_an_array_of_objects(x: Tensor) -> Tensor:
    _OBJECTS[0] = x.numpy() * 2
    return x + torch.as_tensor(_OBJECTS[0])


@told("VER0911", "VER0932")
def spread_over_an_array_of_objects(x: Tensor) -> Tensor:
    _OBJECTS[:] = x.numpy()[0, :2]  # told
    return x * _OBJECTS[0]


@told("VER0922")
def written_by_put(x: Tensor) -> Tensor:
    _BUFFER.put([0, 1], x.numpy()[0, :2])  # told
    return x + torch.as_tensor(_BUFFER)


@told("VER0922")
def written_by_the_function_put(x: Tensor) -> Tensor:
    np.put(_BUFFER, [0, 1], x.numpy()[0, :2])  # told
    return x + torch.as_tensor(_BUFFER)


@told("VER0922")
def written_through_flat(x: Tensor) -> Tensor:
    _BUFFER.flat[:] = x.numpy().ravel()  # told
    return x + torch.as_tensor(_BUFFER)


@told("VER0911")
def written_and_made_a_number(x: Tensor) -> Tensor:
    _BUFFER[:] = x.numpy()
    first = float(_BUFFER[0, 0])  # told
    return x * first


@told("VER0911", "VER0932")
def written_and_read_as_raw_memory(x: Tensor) -> Tensor:
    _BUFFER[:] = x.numpy()
    first = memoryview(_BUFFER)[0, 0]  # told
    return x * first


@told("VER0911", "VER0932")
def a_traced_array_is_read_as_raw_memory(x: Tensor) -> Tensor:
    first = bytes(memoryview(x.numpy()))[0]  # told
    return x * first


@right()
def a_traced_number_in_a_method_of_torch(x: Tensor) -> Tensor:
    largest = x.numpy().max()
    return x.mul(largest).add(x, alpha=largest) + torch.where(x > largest / 2, x, largest)


@right()
def a_constant_array_that_torch_shares(x: Tensor) -> Tensor:
    weights = np.arange(4.0, dtype=np.float32)
    shared = torch.from_numpy(weights)
    np.put(weights, [0], 5.0)  # has no counterpart in torch, and needs none
    return x * shared + float(np.histogram(weights)[0].max())


@right()
def a_constant_array_that_torch_writes(x: Tensor) -> Tensor:
    held = np.zeros(4, np.float32)
    torch.from_numpy(held).copy_(x[0])
    return x + torch.as_tensor(held * 2)
