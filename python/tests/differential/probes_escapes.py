"""Values that leave for Python: what Python made of them is fixed in the export, so it is told."""

from __future__ import annotations

import ctypes
import io
import math
import pickle
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from differential.probes import right, told

_FROZEN = "VER0911"


@told(_FROZEN)
def item(x: Tensor) -> Tensor:
    scale = x.max().item()  # told
    return x * scale


@told(_FROZEN)
def float_of_a_tensor(x: Tensor) -> Tensor:
    scale = float(x.sum())  # told
    return x * scale


@told(_FROZEN)
def int_of_a_tensor(x: Tensor) -> Tensor:
    scale = int(x.sum() * 10)  # told
    return x * scale


@told(_FROZEN)
def bool_of_a_tensor(x: Tensor) -> Tensor:
    positive = bool(x.sum() > 0)  # told
    return x + (1.0 if positive else -1.0)


@told(_FROZEN)
def branch(x: Tensor) -> Tensor:
    if x.sum() > 0:  # told
        return x + 1
    return x - 1


@told(_FROZEN)
def while_loop(x: Tensor) -> Tensor:
    y = x.abs() + 1
    while y.sum() < 50:  # told
        y = y * 2
    return y


@told(_FROZEN)
def logical_and_of_tensors(x: Tensor) -> Tensor:
    both = (x.sum() > 0) and (x.max() > 1)  # told
    return x + both


@told(_FROZEN)
def index_of_a_list(x: Tensor) -> Tensor:
    scale = [1.0, 2.0, 3.0, 4.0][x[0].argmax()]  # told
    return x * scale


@told(_FROZEN)
def range_over_a_tensor(x: Tensor) -> Tensor:
    for _ in range(x[0].argmax()):  # told
        x = x + 1
    return x


@told(_FROZEN)
def tolist(x: Tensor) -> Tensor:
    rows = x.tolist()  # told
    return x + rows[0][0]


@told(_FROZEN)
def math_function(x: Tensor) -> Tensor:
    root = math.sqrt(x.square().sum())  # told
    return x / root


@told(_FROZEN)
def rounded(x: Tensor) -> Tensor:
    near = round(x.sum().item(), 1)  # told
    return x + near


@told(_FROZEN)
def largest_of_a_list(x: Tensor) -> Tensor:
    largest = max([x[0, 0], x[0, 1]])  # told
    return x + largest


@told(_FROZEN)
def sorted_tensors(x: Tensor) -> Tensor:
    order = sorted([x[0, 0], x[0, 1], x[1, 2]])  # told
    return x + order[0]


@told(_FROZEN)
def equal_tensors(x: Tensor) -> Tensor:
    if torch.equal(x, x.abs()):  # told
        return x * 2
    return x * 3


@told(_FROZEN)
def close_tensors(x: Tensor) -> Tensor:
    if torch.allclose(x, x.abs()):  # told
        return x * 2
    return x * 3


@told(_FROZEN)
def is_nonzero(x: Tensor) -> Tensor:
    if torch.is_nonzero(x.sum().round()):  # told
        return x * 2
    return x * 3


@told(_FROZEN)
def contains(x: Tensor) -> Tensor:
    if 1.0 in x.round():  # told
        return x * 2
    return x * 3


@right()
def assertion(x: Tensor) -> Tensor:
    assert (x < 100).all()
    return x * 2


@told(_FROZEN)
def assertion_that_keeps_what_it_saw(x: Tensor) -> Tensor:
    scale = float((x < 100).sum())  # told
    assert scale > 0
    return x * scale


@told(_FROZEN)
def formatted(x: Tensor) -> Tensor:
    text = f"{x[0, 0]:.6f}"  # told
    return x + float(text)


@told(_FROZEN, "VER0922")
def numpy_scalar(x: Tensor) -> Tensor:
    first = float(x.numpy()[0, 0])  # told
    return x + first


@told(_FROZEN, "VER0922")
def numpy_computation(x: Tensor) -> Tensor:
    spread = np.ptp(x.numpy())  # told
    return x * float(spread)  # told


@told(_FROZEN, "VER0922")
def array_protocol(x: Tensor) -> Tensor:
    table = np.asarray(x)  # told
    return x + float(table.sum())  # told


@told(_FROZEN, "VER0922")
def numpy_function_of_a_tensor(x: Tensor) -> Tensor:
    y = np.exp(x)  # told
    return x + y


@told(_FROZEN, "VER0922", "VER0932")
def numpy_through_dlpack(x: Tensor) -> Tensor:
    table = np.from_dlpack(x)  # told
    return x + float(table.sum())


@told(_FROZEN, "VER0915")
def raw_storage(x: Tensor) -> Tensor:
    first = bytes(x.untyped_storage())[3]  # told
    return x + float(first)


@told(_FROZEN, "VER0915", "VER0932")
def raw_pointer(x: Tensor) -> Tensor:
    first = ctypes.c_float.from_address(x.data_ptr()).value  # told
    return x + first


@told(_FROZEN, "VER0915", "VER0932")
def pickled(x: Tensor) -> Tensor:
    again = pickle.loads(pickle.dumps(x * 2))  # told
    return x + again


@told(_FROZEN, "VER0915", "VER0932")
def saved_and_loaded(x: Tensor) -> Tensor:
    file = io.BytesIO()
    torch.save(x * 2, file)  # told
    file.seek(0)
    again = torch.load(file)
    return x + again


@told(_FROZEN)
def size_of_a_masked_selection(x: Tensor) -> Tensor:
    count = x[x > 0].shape[0]  # told
    return x * count


@told(_FROZEN)
def length_of_nonzero(x: Tensor) -> Tensor:
    count = len(torch.nonzero(x > 0))  # told
    return x * count


@told(_FROZEN)
def number_of_unique_values(x: Tensor) -> Tensor:
    count = torch.unique(x.round()).numel()  # told
    return x * count


@told(_FROZEN)
def size_of_a_derived_selection(x: Tensor) -> Tensor:
    chosen = torch.masked_select(x, x > 0) * 2
    count = chosen.size(0)  # told
    return x * count


@torch.jit.script
def _branching(x: Tensor) -> Tensor:
    y = x + 1
    if bool(x.sum() > 0):
        y = y * 2
    return y


@told(_FROZEN)
def branch_inside_a_script(x: Tensor) -> Tensor:
    return _branching(x) + 1  # told


_POOL = ThreadPoolExecutor(1)
_POOL.submit(lambda: None).result()  # its thread exists before any session


@right()
def computed_in_an_older_pool(x: Tensor) -> Tensor:
    other = _POOL.submit(lambda: x * 2).result()
    return x + other


_GIVEN: queue.Queue[Tensor] = queue.Queue()
_TAKEN: queue.Queue[Tensor] = queue.Queue()


def _double_forever() -> None:
    while True:
        _TAKEN.put(_GIVEN.get() * 2)


threading.Thread(target=_double_forever, daemon=True).start()


@told("VER0915", "VER0932", "VER0912")
def computed_in_an_older_thread(x: Tensor) -> Tensor:
    _GIVEN.put(x)  # told
    other = _TAKEN.get()
    return x + other  # told


@right()
def numpy_writes_into_shared_memory(x: Tensor) -> Tensor:
    y = x * 1.0
    y.numpy()[0] = x.numpy()[1] + 5.0
    return y * 2


@told("VER0919", _FROZEN, "VER0932")
def a_plain_array_writes_into_shared_memory(x: Tensor) -> Tensor:
    y = x * 1.0
    y.numpy().view(np.ndarray)[0] = 5.0  # told
    return y * 2  # told


@told("VER0912", passes=2)
def a_constant_drawn_anew_in_every_pass(x: Tensor) -> Tensor:
    noise = torch.rand(2, 4)  # told
    return x + noise


@told("VER0916")
def noise_like_the_input(x: Tensor) -> Tensor:
    return x + torch.randn_like(x)  # told


@told("VER0916")
def dropout_in_training(x: Tensor) -> Tensor:
    return torch.nn.functional.dropout(x, 0.5, training=True)  # told


@told("VER0916")
def a_sampled_action(x: Tensor) -> Tensor:
    chosen = torch.multinomial(x.softmax(-1), 1)  # told
    return x.gather(1, chosen)


@told("VER0916")
def a_sample_of_a_distribution(x: Tensor) -> Tensor:
    return torch.distributions.Normal(x, 1.0).rsample()  # told


@right()
def dropout_in_evaluation(x: Tensor) -> Tensor:
    return torch.nn.functional.dropout(x, 0.5, training=False)


@right()
def printing_is_no_escape(x: Tensor) -> Tensor:
    str(x)
    repr(x.shape)
    return x * 2


@right()
def sizes_are_no_escape(x: Tensor) -> Tensor:
    rows, columns = x.shape
    return x.reshape(columns, rows) * len(x) / x.numel() + x.dim() + x.size(-1)


@right()
def checks_inside_torch_are_no_escape(x: Tensor) -> Tensor:
    normal = torch.distributions.Normal(x, x.exp())
    return normal.log_prob(x + 1) + normal.mean
