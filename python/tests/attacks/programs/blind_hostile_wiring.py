"""Edges between nodes that exist, or not, by Python's will."""

from __future__ import annotations

import collections

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import either, fixed, flags, normal, row, uniform
from attacks.registry import hostile

R = {"a/x": normal(1, 3)}
CALM = {"a/x": uniform(-1, 1, 1, 3)}
ROUGH = {"a/x": normal(1, 3, s=3.0)}


def _node(name: str, backend: str, function, **given):
    values = annotate.input_tensors(name, given)
    result = function(*(values if len(given) > 1 else (values,)))
    annotate.output_tensors(name, result, export_with=backend)
    return result


@hostile("G", style="own", rec=CALM, fresh=ROUGH, passes=5)
def BhSkippedNodeRemembers(backend: str):
    """The second node has a memory, and is not called when the first finds an outlier."""
    total = [torch.zeros(1, 3)]

    def integrate(f: Tensor) -> dict:
        total[0] = total[0] + f
        return {"sum": total[0]}

    def step(given):
        a = _node("a", backend, lambda x: {"f": x * 2}, x=given["a/x"])
        if a["f"].abs().max() > 6:
            return {}
        return {"b/sum": _node("b", backend, integrate, f=a["f"])["sum"]}

    return step


@hostile("G", style="own", rec=R, passes=4)
def BhRateDrops(backend: str):
    """A planner that runs in each tick, and after six only in every third; its last plan is held."""
    due = iter([True] * 6 + [False, False, True] * 30)
    kept: dict[str, Tensor] = {}

    def step(given):
        if next(due):
            kept.update(_node("a", backend, lambda x: {"plan": x.cumsum(-1)}, x=given["a/x"]))
        return {"b/u": _node("b", backend, lambda p: {"u": p * 0.5}, plan=kept["plan"])["u"]}

    return step


@hostile("G", style="own", rec={"a/x": fixed([[1.0, 2.0, 3.0]])}, fresh=R, passes=5)
def BhInvisibleDelay(backend: str):
    """Two ticks pass between the nodes, by a deque; with a constant input nobody sees them."""
    line = collections.deque([torch.tensor([[2.0, 4.0, 6.0]])] * 2)

    def step(given):
        a = _node("a", backend, lambda x: {"f": x * 2}, x=given["a/x"])
        line.append(a["f"])
        return {"b/u": _node("b", backend, lambda f: {"u": f + 1}, f=line.popleft())["u"]}

    return step


@hostile(
    "G", style="own", rec={"a/x": row([[3.0, 1.0, 2.0]], [[4.0, 0.0, 1.0]])}, fresh=R, passes=4
)
def BhRouteByData(backend: str):
    """Which of two outputs goes on is chosen between the nodes."""

    def step(given):
        a = _node("a", backend, lambda x: {"l": x + 1, "r": x - 1}, x=given["a/x"])
        chosen = max(a, key=lambda k: float(a[k][0, 0] * (1 if k == "l" else -1)))
        return {"b/u": _node("b", backend, lambda f: {"u": f.tanh()}, f=a[chosen])["u"]}

    return step


@hostile("G", style="own", rec=CALM, fresh=ROUGH, passes=5)
def BhHandFeedbackLimited(backend: str):
    """Feedback by hand; between ticks it is put back to zero when it is too large."""
    last = {"h": torch.zeros(1, 3)}

    def step(given):
        h = last["h"] if last["h"].abs().max() < 6 else torch.zeros(1, 3)
        x, h = annotate.input_tensors("a", {"x": given["a/x"], "h": h})
        after = 0.8 * h + x
        annotate.output_tensors("a", {"h_next": after}, export_with=backend)
        last["h"] = after
        return {"a/h_next": after}

    return step


@hostile("G", style="own", rec=CALM, fresh=ROUGH, passes=4)
def BhTwoNamesOneTensor(backend: str):
    """One tensor goes out under two names; one of them is limited in place afterwards, at rest by nothing."""

    def step(given):
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        u = x * 2
        annotate.output_tensors("a", {"command": u, "logged": u}, export_with=backend)
        u.clamp_(-3, 3)
        v = annotate.input_tensors("b", {"v": u})
        w = v + 1
        annotate.output_tensors("b", {"w": w}, export_with=backend)
        return {"b/w": w}

    return step


@hostile("G", style="own", rec=R, passes=4)
def BhOrderTurns(backend: str):
    """Estimator before controller; after six ticks the controller runs first, on the old estimate."""
    late = iter([False] * 6 + [True] * 99)
    state = {"f": torch.zeros(1, 3)}

    def estimate(given) -> None:
        state["f"] = _node("a", backend, lambda x: {"f": x.sin()}, x=given["a/x"])["f"]

    def control() -> Tensor:
        return _node("b", backend, lambda f: {"u": f * 4}, f=state["f"])["u"]

    def step(given):
        if next(late):
            u = control()
            estimate(given)
        else:
            estimate(given)
            u = control()
        return {"b/u": u}

    return step


@hostile("G", style="own", rec=R, passes=4)
def BhSharedCell(backend: str):
    """Left and right leg share one GRU cell and one hidden state: each continues what the other left."""
    cell, h = nn.GRUCell(3, 3), [torch.zeros(1, 3)]

    def leg(x: Tensor) -> dict:
        h[0] = cell(x, h[0])
        return {"u": h[0]}

    def step(given):
        left = _node("l", backend, leg, x=given["a/x"])
        right = _node("r", backend, leg, x=left["u"] * 1.0)
        return {"l/u": left["u"], "r/u": right["u"]}

    return step


@hostile("G", style="own", rec=CALM, fresh=ROUGH, passes=4)
def BhMessageTruncates(backend: str):
    """Between nodes is a message of int16 thousandths, whose range is never reached at rest."""

    def step(given):
        a = _node("a", backend, lambda x: {"f": x * 8}, x=given["a/x"])
        wire = np.clip(np.rint(a["f"].numpy() * 1000), -32768, 32767).astype(np.int16)
        f = torch.from_numpy(wire.astype(np.float32) / 1000)
        return {"b/u": _node("b", backend, lambda v: {"u": v - 1}, f=f)["u"]}

    return step


@hostile("G", rec={"x": row([[3.0, 1.0]], [[4.0, 0.0]])}, fresh={"x": normal(1, 2)}, passes=4)
def BhPortsByRank(x: Tensor) -> dict[str, Tensor]:
    """Ports are named by the rank of their value: best and rest."""
    best, rest = sorted(x.unbind(-1), key=lambda v: -v.item())
    return {"best": best * 2, "rest": rest + 1}


@hostile("G", rec={"x": normal(1, 3), "ok": fixed(True)}, fresh={"ok": flags(0.6)}, passes=4)
class BhDroppedFrames:
    """A dropped frame gives the very tensor object of the last tick again."""

    def __init__(self) -> None:
        self.out = torch.zeros(1, 3)

    def __call__(self, x: Tensor, ok: Tensor) -> dict[str, Tensor]:
        self.out = x * 2 if ok else self.out
        return {"u": self.out, "age": torch.where(ok, 0.0, 1.0)}


@hostile(
    "G",
    style="own",
    rec=R,
    fresh={"a/x": either(lambda t: t < 5, normal(1, 3), fixed([[0.0, 0.0, 0.0]]))},
    passes=5,
)
def BhInputWrittenInPlace(backend: str):
    """The first node scales the shared input in place when it is small; the second reads it after."""

    def step(given):
        shared = given["a/x"].clone()
        x = annotate.input_tensors("a", {"x": shared})
        u = x + 1
        if not shared.any():
            shared.add_(5)
        annotate.output_tensors("a", {"u": u}, export_with=backend)
        v = annotate.input_tensors("b", {"v": shared})
        w = v - 1
        annotate.output_tensors("b", {"w": w}, export_with=backend)
        return {"a/u": u, "b/w": w}

    return step
