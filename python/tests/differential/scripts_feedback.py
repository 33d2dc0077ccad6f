"""State: declared, kept in module buffers, inferred over passes, and delayed."""

from __future__ import annotations

from typing import Any

import torch
import torch.onnx
from torch import Tensor, nn

from differential.nodes import BACKENDS
from differential.registry import Better, Same, Step, Values, script


def _explicit_state(backend: str) -> None:
    name = f"declared_state_{backend.replace('-', '_')}"

    @script("feedback", {"n/x": (1, 3)}, name=name, passes=1)
    def declared(api: Any) -> Step:
        total = torch.full((1, 3), 0.5)

        def step(given: Values) -> Values:
            nonlocal total
            x = api.annotate.input_tensors("n", {"x": given["n/x"]})
            held = api.annotate.state_tensors("n", {"total": total})
            total = held * 0.9 + x
            api.annotate.update_state("n", {"total": total})
            y = total.tanh()
            api.annotate.output_tensors("n", {"y": y}, export_with=backend)
            return {"n/y": y}

        return step


for _backend in BACKENDS:
    _explicit_state(_backend)


@script("feedback", {"n/x": (2,)}, passes=2)
def two_declared_states_that_swap(api: Any) -> Step:
    left, right = torch.zeros(2), torch.ones(2)

    def step(given: Values) -> Values:
        nonlocal left, right
        x = api.annotate.input_tensors("n", {"x": given["n/x"]})
        a, b = api.annotate.state_tensors("n", {"left": left, "right": right})
        left, right = b + 0.1 * x, a * 1.0
        api.annotate.update_state("n", {"left": left, "right": right})
        y = a - b
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step


@script("feedback", {"n/x": (2,), "n/h": (2,)}, relation=Same(warns=("VER0910",)), passes=1)
def a_state_that_is_not_updated_is_an_input(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("n", {"x": given["n/x"]})
        h = api.annotate.state_tensors("n", {"h": given["n/h"]})
        y = x + h
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step


@script("feedback", {"n/x": (2,)}, passes=1)
def a_state_that_is_also_an_output(api: Any) -> Step:
    h = torch.zeros(2)

    def step(given: Values) -> Values:
        nonlocal h
        x = api.annotate.input_tensors("n", {"x": given["n/x"]})
        held = api.annotate.state_tensors("n", {"h": h})
        h = held + x
        api.annotate.update_state("n", {"h": h})
        api.annotate.output_tensors("n", {"y": h}, export_with="jit")
        return {"n/y": h}

    return step


@script(
    "feedback",
    {"n/x": (3, 2)},
    passes=1,
    relation=Better("a state that is not contiguous stops safetensors", ValueError),
)
def state_that_is_not_contiguous(api: Any) -> Step:
    h = torch.arange(6.0).reshape(2, 3).t()

    def step(given: Values) -> Values:
        nonlocal h
        x = api.annotate.input_tensors("n", {"x": given["n/x"]})
        held = api.annotate.state_tensors("n", {"h": h})
        h = held + x
        api.annotate.update_state("n", {"h": h})
        y = h.sum(0)
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step


class _Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(4, 8), nn.Linear(8, 2)
        self.register_buffer("h_state", torch.full((1, 1, 8), 0.25))
        self.register_buffer("scale", torch.tensor([2.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        out, self.h_state = self.gru(x.unsqueeze(0), self.h_state)
        return self.head(out.squeeze(0)) * self.scale


class _Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(4, 8), nn.Linear(8, 2)
        self.register_buffer("h", torch.zeros(1, 8))
        self.register_buffer("c", torch.full((1, 8), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        self.h, self.c = self.cell(x, (self.h, self.c))
        return self.head(self.h)


class _Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc = _Lstm()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.count = self.count + 1
        return self.enc(x) * self.count


class _InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.full((1, 4), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        self.h.copy_(0.5 * self.h + x)
        return self.h * 2


def _module_step(api: Any, model: nn.Module, backend: str, names: list[str] | None = None) -> Step:
    model.eval()

    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("policy", {"x": given["policy/x"]})
        api.annotate.module("policy", model, names)
        y = model(x)
        api.annotate.output_tensors("policy", {"y": y}, export_with=backend)
        return {"policy/y": y}

    return step


@script("feedback", {"policy/x": (1, 4)}, passes=1)
def module_gru_jit(api: Any) -> Step:
    return _module_step(api, _Gru(), "jit")


@script("feedback", {"policy/x": (1, 4)}, passes=1)
def module_gru_onnx_torchscript(api: Any) -> Step:
    return _module_step(api, _Gru(), "onnx-torchscript")


@script(
    "feedback",
    {"policy/x": (1, 4)},
    passes=1,
    relation=Better(
        "the dynamo exporter refuses it and nothing else is tried", torch.onnx.OnnxExporterError
    ),
)
def module_gru_onnx(api: Any) -> Step:
    return _module_step(api, _Gru(), "onnx")


@script("feedback", {"policy/x": (1, 4)}, passes=1)
def module_lstm_onnx(api: Any) -> Step:
    return _module_step(api, _Lstm(), "onnx")


@script(
    "feedback",
    {"policy/x": (1, 4)},
    passes=3,
    relation=Better("buffers of a second pass are taken for changed constants", "disproved"),
)
def module_gru_over_several_passes(api: Any) -> Step:
    return _module_step(api, _Gru(), "jit")


@script("feedback", {"policy/x": (1, 4)}, passes=1)
def module_with_nested_buffers(api: Any) -> Step:
    return _module_step(api, _Nested(), "jit")


@script("feedback", {"policy/x": (1, 4)}, passes=1)
def module_with_named_buffers_only(api: Any) -> Step:
    return _module_step(api, _Gru(), "jit", ["h_state"])


@script(
    "feedback",
    {"policy/x": (1, 4)},
    passes=2,
    relation=Better("writes into a buffer are not seen", "disproved"),
)
def module_that_writes_its_buffer_in_place(api: Any) -> Step:
    return _module_step(api, _InPlace(), "jit")


@script("feedback", {"first/x": (1, 2)}, passes=3)
def inferred_from_a_later_node(api: Any) -> Step:
    previous = torch.full((1, 2), -1.0)

    def step(given: Values) -> Values:
        nonlocal previous
        x, last = api.annotate.input_tensors("first", {"x": given["first/x"], "last": previous})
        mixed = x + 0.5 * last
        api.annotate.output_tensors("first", {"mixed": mixed}, export_with="jit")
        mixed = api.annotate.input_tensors("second", {"mixed": mixed})
        previous = torch.tanh(mixed)
        shown = mixed * 3
        api.annotate.output_tensors("second", {"fed": previous, "shown": shown}, export_with="jit")
        return {"second/shown": shown}

    return step


@script("feedback", {"first/x": (1, 2), "first/last": (1, 2)}, passes=1)
def one_pass_infers_nothing(api: Any) -> Step:
    def step(given: Values) -> Values:
        x, last = api.annotate.input_tensors(
            "first", {"x": given["first/x"], "last": given["first/last"]}
        )
        mixed = x + 0.5 * last
        api.annotate.output_tensors("first", {"mixed": mixed}, export_with="jit")
        return {"first/mixed": mixed}

    return step


@script("feedback", {"n/x": (1,)}, passes=2)
def self_loop(api: Any) -> Step:
    count = torch.full((1,), 5.0)

    def step(given: Values) -> Values:
        nonlocal count
        x, seen = api.annotate.input_tensors("n", {"x": given["n/x"], "count": count})
        count = seen + 1
        shown = seen * x
        api.annotate.output_tensors("n", {"next": count, "shown": shown}, export_with="jit")
        return {"n/shown": shown}

    return step


@script("feedback", {"n/x": (1,)}, passes=3)
def self_loop_on_onnx_with_one_name_on_both_sides(api: Any) -> Step:
    count = torch.full((1,), 5.0)

    def step(given: Values) -> Values:
        nonlocal count
        x, seen = api.annotate.input_tensors("n", {"x": given["n/x"], "count": count})
        count = seen + 1
        shown = seen * x
        api.annotate.output_tensors("n", {"count": count, "shown": shown}, export_with="onnx")
        return {"n/shown": shown}

    return step


@script("feedback", {"n/x": (1,)}, passes=3)
def two_independent_loops(api: Any) -> Step:
    up, down = torch.zeros(1), torch.full((1,), 9.0)

    def step(given: Values) -> Values:
        nonlocal up, down
        x, a, b = api.annotate.input_tensors("n", {"x": given["n/x"], "up": up, "down": down})
        up, down = a + 1, b * 0.5
        y = x + a * b
        outputs = {"up_next": up, "down_next": down, "y": y}
        api.annotate.output_tensors("n", outputs, export_with="jit")
        return {"n/y": y}

    return step


@script("feedback", {"source/x": (3,)}, passes=3)
def diamond_with_feedback(api: Any) -> Step:
    back = torch.ones(3)

    def step(given: Values) -> Values:
        nonlocal back
        x, b = api.annotate.input_tensors("source", {"x": given["source/x"], "back": back})
        f = x + 0.25 * b
        api.annotate.output_tensors("source", {"f": f}, export_with="jit")
        left = api.annotate.input_tensors("left", {"f": f}) * 2
        api.annotate.output_tensors("left", {"left": left}, export_with="jit")
        right = api.annotate.input_tensors("right", {"f": f}).sigmoid()
        api.annotate.output_tensors("right", {"right": right}, export_with="jit")
        left, right = api.annotate.input_tensors("join", {"left": left, "right": right})
        back, out = (left * right).tanh(), left + right
        api.annotate.output_tensors("join", {"back": back, "out": out}, export_with="jit")
        return {"join/out": out}

    return step


def _self_delay(ticks: int) -> None:
    @script(
        "feedback",
        {"n/x": (1,)},
        name=f"self_loop_delayed_by_{ticks}_ticks",
        passes=ticks + 3,
        relation=Better("every delay becomes one tick", "wrong"),
    )
    def delayed(api: Any) -> Step:
        line = [torch.full((1,), float(i)) for i in range(ticks)]

        def step(given: Values) -> Values:
            x, old = api.annotate.input_tensors("n", {"x": given["n/x"], "old": line[0]})
            new = old + 1
            shown = old * 10 + x
            api.annotate.output_tensors("n", {"new": new, "shown": shown}, export_with="jit")
            line[:] = [*line[1:], new]
            return {"n/shown": shown}

        return step


_self_delay(2)
_self_delay(3)


@script(
    "feedback",
    {"a/x": (1,)},
    passes=4,
    relation=Better("a value of the tick before arrives in the same tick", "wrong"),
)
def the_tick_before_of_an_earlier_node(api: Any) -> Step:
    last = torch.full((1,), 7.0)

    def step(given: Values) -> Values:
        nonlocal last
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        out = x * 2
        api.annotate.output_tensors("a", {"out": out}, export_with="jit")
        before = api.annotate.input_tensors("b", {"before": last})
        y = before + 1
        api.annotate.output_tensors("b", {"y": y}, export_with="jit")
        last = out
        return {"b/y": y}

    return step


@script(
    "feedback",
    {"a/x": (1,), "b/z": (1,)},
    passes=3,
    relation=Better("a node that starts late loses its edges", "wrong", ("VER0917",)),
    traced=lambda tick, given: given if tick else {"a/x": given["a/x"]},
)
def a_node_first_executed_in_a_later_pass(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        out = x * 2
        api.annotate.output_tensors("a", {"out": out}, export_with="jit")
        if "b/z" not in given:  # told
            return {}
        out, z = api.annotate.input_tensors("b", {"out": out, "z": given["b/z"]})
        y = out + z
        api.annotate.output_tensors("b", {"y": y}, export_with="jit")
        return {"b/y": y}

    return step


@script("feedback", {"a/x": (1, 2), "b/x": (1, 2)}, passes=3)
def interleaved_nodes_with_feedback(api: Any) -> Step:
    memory = torch.full((1, 2), 0.5)

    def step(given: Values) -> Values:
        nonlocal memory
        outer, kept = api.annotate.input_tensors("a", {"x": given["a/x"], "memory": memory})
        x = api.annotate.input_tensors("b", {"x": given["b/x"]})
        inner = x.tanh()
        api.annotate.output_tensors("b", {"inner": inner}, export_with="jit")
        inner = api.annotate.input_tensors("a", {"inner": inner})
        memory, y = 0.5 * kept + inner, outer * inner + kept
        api.annotate.output_tensors("a", {"memory_next": memory, "y": y}, export_with="jit")
        return {"a/y": y}

    return step


@script(
    "feedback",
    {"n/x": (3,)},
    passes=3,
    relation=Better(
        "a registered buffer does not persist, whatever the documentation says",
        "disproved",
    ),
)
def a_registered_buffer_that_accumulates(api: Any) -> Step:
    store = torch.zeros(3)

    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("n", {"x": given["n/x"]})
        held = api.annotate.register_buffer("n", store)
        held += x
        y = held * 1.0
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        return {"n/y": y}

    return step


@script(
    "feedback",
    {"n/x": (1,)},
    passes=5,
    relation=Better("an edge of one tick, whatever its age", "wrong", ("VER0917",)),
)
def a_delay_that_varies(api: Any) -> Step:
    line = [torch.zeros(1), torch.ones(1)]
    tick = 0

    def step(given: Values) -> Values:
        nonlocal tick
        tick += 1
        old = line[tick % 2]
        x, seen = api.annotate.input_tensors("n", {"x": given["n/x"], "old": old})  # told
        new, shown = seen + 1, seen * 10 + x
        api.annotate.output_tensors("n", {"new": new, "shown": shown}, export_with="jit")
        line[:] = [line[1], new]
        return {"n/shown": shown}

    return step


@script(
    "feedback",
    {"n/x": (1,)},
    passes=6,
    start=lambda api: {"max_cached_io": 1},
    relation=Better("every delay becomes one tick", "wrong"),
)
def a_delay_longer_than_the_samples_that_are_kept(api: Any) -> Step:
    line = [torch.full((1,), float(i)) for i in range(3)]

    def step(given: Values) -> Values:
        x, old = api.annotate.input_tensors("n", {"x": given["n/x"], "old": line[0]})
        new, shown = old + 1, old * 10 + x
        api.annotate.output_tensors("n", {"new": new, "shown": shown}, export_with="jit")
        line[:] = [*line[1:], new]
        return {"n/shown": shown}

    return step
