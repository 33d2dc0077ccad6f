"""Which output feeds which input, and what may happen to a value on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from differential.nodes import two_nodes
from differential.registry import Better, Step, Values, script


@script("wiring", {"a/x": (1, 6)})
def chain_of_three(api: Any) -> Step:
    encoder, policy = nn.Linear(6, 8), nn.Sequential(nn.Linear(8, 8), nn.ELU(), nn.Linear(8, 3))

    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        code = torch.tanh(encoder(x))
        api.annotate.output_tensors("a", {"code": code}, export_with="jit")
        code = api.annotate.input_tensors("b", {"code": code})
        action = policy(code)
        api.annotate.output_tensors("b", {"action": action}, export_with="onnx")
        action = api.annotate.input_tensors("c", {"action": action})
        target = action.clamp(-1, 1)
        api.annotate.output_tensors("c", {"target": target}, export_with="jit-trace")
        return {"c/target": target}

    return step


@script("wiring", {"source/x": (2, 3)})
def diamond(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("source", {"x": given["source/x"]})
        features = x.relu() + 0.5
        api.annotate.output_tensors("source", {"features": features}, export_with="jit")
        seen = api.annotate.input_tensors("left", {"features": features})
        left = seen * 2
        api.annotate.output_tensors("left", {"left": left}, export_with="jit")
        seen = api.annotate.input_tensors("right", {"features": features})
        right = seen.sigmoid()
        api.annotate.output_tensors("right", {"right": right}, export_with="jit")
        left, right = api.annotate.input_tensors("join", {"left": left, "right": right})
        out = left * right
        api.annotate.output_tensors("join", {"out": out}, export_with="jit")
        return {"join/out": out}

    return step


@script("wiring", {"a/x": (3,), "b/gain": (3,)})
def one_output_consumed_one_dangling(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        used, shown = x + 1, x - 1
        api.annotate.output_tensors("a", {"used": used, "shown": shown}, export_with="jit")
        used, gain = api.annotate.input_tensors("b", {"used": used, "gain": given["b/gain"]})
        y = used * gain
        api.annotate.output_tensors("b", {"y": y}, export_with="jit")
        return {"a/shown": shown, "b/y": y}

    return step


@script("wiring", {"a/x": (3,), "b/x": (3,)})
def interleaved_nodes_run_in_the_order_of_completion(api: Any) -> Step:
    def step(given: Values) -> Values:
        late = api.annotate.input_tensors("a", {"x": given["a/x"]})
        x = api.annotate.input_tensors("b", {"x": given["b/x"]})
        early = x * 2
        api.annotate.output_tensors("b", {"early": early}, export_with="jit")
        early = api.annotate.input_tensors("a", {"early": early})
        y = late + early
        api.annotate.output_tensors("a", {"y": y}, export_with="jit")
        return {"a/y": y}

    return step


@script(
    "wiring", {"n/x": (3,), "m/x": (3,)}, traced=lambda tick, given: given | {"m/x": given["n/x"]}
)
def one_tensor_into_two_nodes(api: Any) -> Step:
    def step(given: Values) -> Values:
        left = api.annotate.input_tensors("n", {"x": given["n/x"]})
        y = left * 2
        api.annotate.output_tensors("n", {"y": y}, export_with="jit")
        right = api.annotate.input_tensors("m", {"x": given["m/x"]})
        z = right - 1
        api.annotate.output_tensors("m", {"z": z}, export_with="jit")
        return {"n/y": y, "m/z": z}

    return step


@script(
    "wiring",
    {"a/x": (3,)},
    relation=Better("one output cannot feed two inputs of a node", Exception, message="multiple"),
)
def one_output_into_two_inputs_of_a_node(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        out = x * 2
        api.annotate.output_tensors("a", {"out": out}, export_with="jit")
        left, right = api.annotate.input_tensors("b", {"left": out, "right": out.clone()})
        y = left + 2 * right
        api.annotate.output_tensors("b", {"y": y}, export_with="jit")
        return {"b/y": y}

    return step


def _kept(name: str, between: Callable[[Tensor], Any]) -> None:
    @script("wiring", {"a/x": (2, 3)}, name=f"edge_kept_through_{name}")
    def kept(api: Any) -> Step:
        return two_nodes(api, between)


def _into_buffer(out: Tensor) -> Tensor:
    buffer = torch.zeros(2, 3)
    buffer[:] = out
    return buffer


_kept("nothing", lambda out: out)
_kept("clone", lambda out: out.clone())
_kept("detach", lambda out: out.detach())
_kept("contiguous", lambda out: out.contiguous())
_kept("cpu", lambda out: out.cpu())
_kept("to_the_same_dtype", lambda out: out.to(torch.float32))
_kept("a_numpy_round_trip", lambda out: torch.from_numpy(out.numpy()))
_kept("a_whole_slice_write", _into_buffer)
_kept("copy_", lambda out: torch.zeros(2, 3).copy_(out))


@script(
    "wiring",
    {"a/x": (2, 3)},
    relation=Better("a view of the same shape loses the edge without a word", "wrong"),
)
def edge_kept_through_a_view_of_the_same_shape(api: Any) -> Step:
    return two_nodes(api, lambda out: out.view(2, 3))


def _lost(name: str, between: Callable[[Tensor], Any]) -> None:
    @script(
        "wiring",
        {"a/x": (2, 3)},
        name=f"glue_{name}",
        relation=Better("the edge is lost without a word", "wrong", ("VER0913",)),
    )
    def lost(api: Any) -> Step:
        return two_nodes(api, between)


_lost("reshape", lambda out: out.reshape(3, 2))
_lost("slice", lambda out: out[:, 0:2])
_lost("cast", lambda out: out.double())
_lost("arithmetic", lambda out: out * 0.5)


@script(
    "wiring",
    {"a/x": (2, 3)},
    relation=Better("the edge is lost without a word", "wrong", ("VER0913",)),
)
def glue_is_named_with_its_line(api: Any) -> Step:
    def between(out: Tensor) -> Tensor:
        half = out * 0.5  # told
        return half.clone()

    return two_nodes(api, between)


@script(
    "wiring",
    {"a/x": (2, 3)},
    relation=Better("logged only: the input dangles", "wrong", ("VER0913",)),
)
def a_published_value_changed_in_place_is_glue(api: Any) -> Step:
    def between(out: Tensor) -> Tensor:
        out.add_(1)  # told
        return out

    return two_nodes(api, between)


@script(
    "wiring",
    {"a/x": (2, 3)},
    relation=Better(
        "refused, and the line is not named",
        Exception,
        ("VER0906",),
        message="different node",
    ),
)
def a_value_of_an_open_node_becomes_an_input(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        z = api.annotate.input_tensors("b", {"z": x * 2})  # told
        w = z + 1
        api.annotate.output_tensors("b", {"w": w}, export_with="jit")
        y = x + 1
        api.annotate.output_tensors("a", {"y": y}, export_with="jit")
        return {"a/y": y, "b/w": w}

    return step


@script("wiring", {"a/x": (2, 3)})
def mirrored_tags_restore_an_edge(api: Any) -> Step:
    def between(out: Tensor) -> Any:
        other = torch.zeros(2, 3)
        other.view(-1)[:] = out.reshape(-1)
        return api.annotate.mirror_leapp_tags(out, other)

    return two_nodes(api, between)


@script(
    "wiring",
    {"a/x": (2, 3), "b/z": (2, 3)},
    relation=Better(
        "a raw error of torch.fx",
        RuntimeError,
        ("VER0914",),
        message="does not belong to this Graph",
    ),
    passes=1,
)
def a_value_of_another_node_without_a_mark(api: Any) -> Step:
    def step(given: Values) -> Values:
        x = api.annotate.input_tensors("a", {"x": given["a/x"]})
        out = x * 2
        api.annotate.output_tensors("a", {"out": out}, export_with="jit")
        z = api.annotate.input_tensors("b", {"z": given["b/z"]})
        y = z + out  # told
        api.annotate.output_tensors("b", {"y": y}, export_with="jit")
        return {"a/out": out, "b/y": y}

    return step
