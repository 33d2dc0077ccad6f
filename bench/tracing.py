"""Tracing and exporting beside LEAPP: a pass, memory, compiling, and what can be exported.

Both sides run the same code, one after the other in every round, so that a slow phase of the
machine meets both.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import leapp
import torch
import veracity
from table import Row, at_least, at_most
from torch import Tensor, nn

OPERATIONS = 900
ROUNDS = 7
#: Passes before the ones that are timed: by then the recorder has compared enough.
WARM_PASSES = 20
TIMED_PASSES = 20
SIDES: dict[str, Any] = {"leapp": leapp, "ours": veracity}
BACKENDS = ("jit", "onnx", "pt2")
FRESH_INPUTS = 3


def measure(folder: Path) -> list[Row]:
    """Return every figure about tracing and exporting."""
    with _quiet():
        return [
            *_passes(folder),
            *_memory(folder),
            *_compiling(folder),
            *_without_a_session(),
            *_sweep(folder),
        ]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep both loggers and the exporters' warnings out of the table."""
    logging.disable(1000)
    talk = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(talk):
            warnings.simplefilter("ignore")
            with contextlib.redirect_stdout(talk):
                yield
    finally:
        logging.disable(logging.NOTSET)


# A pass


class Pass(NamedTuple):
    """Seconds that one pass took.

    Attributes:
        operations: From the input mark to the last operation.
        whole: Including the output mark.
    """

    operations: float
    whole: float


def _small_operations(x: Tensor) -> Tensor:
    for _ in range(OPERATIONS // 3):
        x = torch.tanh(x * 1.01 + 0.5)
    return x


def _one_pass(api: Any) -> Pass:
    value = torch.randn(8)
    begin = time.perf_counter()
    x = api.annotate.input_tensors("n", {"x": value})
    y = _small_operations(x)
    between = time.perf_counter()
    api.annotate.output_tensors("n", {"y": y}, export_with="jit")
    return Pass(between - begin, time.perf_counter() - begin)


def _session_of_passes(api: Any, folder: Path, name: str) -> tuple[Pass, Pass]:
    """Return the first pass and the median of the late ones."""
    gc.collect()
    api.start(name, save_path=str(folder))
    try:
        first = _one_pass(api)
        for _ in range(WARM_PASSES):
            _one_pass(api)
        late = [_one_pass(api) for _ in range(TIMED_PASSES)]
    finally:
        api.stop()
    typical = Pass(median(p.operations for p in late), median(p.whole for p in late))
    return first, typical


def _passes(folder: Path) -> list[Row]:
    taken: dict[str, list[tuple[Pass, Pass]]] = {side: [] for side in SIDES}
    with torch.no_grad():
        for number in range(ROUNDS + 1):
            for side, api in SIDES.items():
                taken[side].append(_session_of_passes(api, folder, f"passes_{side}_{number}"))
    for rounds in taken.values():
        del rounds[0]  # the first session pays for imports
    figures: list[tuple[str, float, Callable[[tuple[Pass, Pass]], float]]] = [
        (f"first pass, {OPERATIONS} operations", 1 / 5, lambda taken: taken[0].operations),
        (f"first pass, {OPERATIONS} operations and the marks", 1 / 5, lambda taken: taken[0].whole),
        ("later passes in light mode", 2.0, lambda taken: taken[1].whole),
    ]
    rows = []
    for what, bar, read in figures:
        ours, theirs = (median(map(read, taken[side])) for side in ("ours", "leapp"))
        detail = f"{ours * 1e3:.2f} ms / {theirs * 1e3:.2f} ms"
        rows.append(at_most(f"tracing: {what}: ours / leapp", ours / theirs, bar, detail))
    return rows


# Memory

_MEMORY = """
import json, sys, tempfile
import torch
side, megabytes = sys.argv[1], int(sys.argv[2])
api = __import__(side)

def status(key):
    return int(open("/proc/self/status").read().split(key + ":")[1].split()[0]) / 1024

def run(elements, name):
    api.start(name, save_path=tempfile.mkdtemp())
    x = api.annotate.input_tensors("n", {"x": torch.ones(1)})
    y = x.expand(elements) + 1
    api.annotate.output_tensors("n", {"y": y}, export_with="jit")
    api.stop()
    return y

run(1000, "warm")
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
kept = run(megabytes * 1024 * 1024 // 4, "big")
print("RESULT" + json.dumps({"peak": status("VmHWM") - before, "after": status("VmRSS") - before}))
"""


def _memory(folder: Path) -> list[Row]:
    megabytes = 64
    found = {module: _python(_MEMORY, module, str(megabytes)) for module in ("leapp", "veracity")}
    ours, theirs = (found[side]["peak"] / megabytes for side in ("veracity", "leapp"))
    detail = f"{found['veracity']['peak']:.0f} MB at most, LEAPP {found['leapp']['peak']:.0f} MB"
    what = f"tracing: memory for a {megabytes} MB output, times the tensor"
    return [at_most(what, ours, 2.5, f"{detail} ({theirs:.1f} times)")]


def _python(script: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.split("RESULT")[1])
    return found


# Compiling


def _compile_seconds(api: Any, backend: str, folder: Path, name: str, **options: bool) -> float:
    torch.manual_seed(0)
    encoder, policy, head = nn.Linear(48, 64), nn.Linear(64, 64), nn.Linear(64, 12)
    api.start(name, save_path=str(folder))
    try:
        with torch.no_grad():
            x = api.annotate.input_tensors("encoder", {"x": torch.randn(1, 48)})
            features = torch.tanh(encoder(x))
            api.annotate.output_tensors("encoder", {"features": features}, export_with=backend)
            features = api.annotate.input_tensors("policy", {"features": features})
            hidden = nn.functional.elu(policy(features))
            api.annotate.output_tensors("policy", {"hidden": hidden}, export_with=backend)
            hidden = api.annotate.input_tensors("head", {"hidden": hidden})
            api.annotate.output_tensors("head", {"action": head(hidden)}, export_with=backend)
    finally:
        api.stop()
    begin = time.perf_counter()
    api.compile_graph(visualize=False, **options)
    return time.perf_counter() - begin


#: LEAPP tries no inputs of its own and plants no faults: what it does, we do without these, too.
_LIKE_LEAPP = {"fresh_inputs": False, "adequacy": False}


def _compiling(folder: Path) -> list[Row]:
    rows: list[Row] = []
    # What takes a twentieth of a second is taken more often.
    for backend, what, options, bar, rounds in (
        ("jit", "recorded samples only", _LIKE_LEAPP, 1 / 2, 3 * ROUNDS),
        ("jit", "with 200 fresh inputs", {"adequacy": False}, 1.0, 3 * ROUNDS),
        ("onnx", "with 200 fresh inputs and planted faults", {}, 0.7, ROUNDS),
    ):
        taken: dict[str, list[float]] = {side: [] for side in SIDES}
        for number in range(rounds):
            for side, api in SIDES.items():
                name = f"compile_{backend}_{len(rows)}_{side}_{number}"
                given = options if side == "ours" else {}
                taken[side].append(_compile_seconds(api, backend, folder, name, **given))
        ours, theirs = (median(taken[side][1:]) for side in ("ours", "leapp"))
        detail = f"{ours * 1e3:.0f} ms / {theirs * 1e3:.0f} ms"
        title = f"compile_graph, three {backend} nodes, {what}: ours / leapp"
        rows.append(at_most(title, ours / theirs, bar, detail))
    return rows


# Without a session

_IDLE = """
import json, sys, time
import veracity
from veracity import annotate
value = object()
marked = {"x": value}
for _ in range(1000):
    annotate.input_tensors("n", marked)
best = float("inf")
for _ in range(20):
    begin = time.perf_counter()
    for _ in range(10_000):
        annotate.input_tensors("n", marked)
    best = min(best, (time.perf_counter() - begin) / 10_000)
same = annotate.input_tensors("n", marked) is value
print("RESULT" + json.dumps({"us": best * 1e6, "torch": "torch" in sys.modules, "same": same}))
"""


def _without_a_session() -> list[Row]:
    idle = _python(_IDLE)
    what = "import veracity and annotate without a session"
    return [
        at_most("annotate without a session, us a call", idle["us"], 2.0, ""),
        at_most(f"{what}: torch imported", float(idle["torch"]), 0.0, ""),
        at_least(f"{what}: the value is handed back", float(idle["same"]), 1.0, ""),
    ]


# The sweep


class Expression(NamedTuple):
    """One expression of the sweep: a function and a maker of inputs."""

    compute: Callable[..., Any]
    make: Callable[[torch.Generator], list[Tensor]]


def _expressions() -> dict[str, Expression]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))
    table: dict[str, Any] = __import__("expressions").EXPRESSIONS
    return {name: Expression(*entry) for name, entry in table.items()}


def _sweep(folder: Path) -> list[Row]:
    """Run both sides at once, each in a process of its own: nothing here is timed."""
    running = {
        side: subprocess.Popen(
            [sys.executable, __file__, side, str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for side in SIDES
    }
    verdicts: dict[str, dict[str, dict[str, str]]] = {}
    for side, process in running.items():
        talk, _ = process.communicate()
        verdicts[side] = json.loads(talk.split("RESULT")[1])
    return [row for backend in BACKENDS for row in _sweep_rows(backend, verdicts)]


def _sweep_rows(backend: str, verdicts: dict[str, dict[str, dict[str, str]]]) -> list[Row]:
    ours, theirs = (list(verdicts[side][backend].values()) for side in ("ours", "leapp"))
    counts = (
        f"of {len(ours)}: ours {ours.count('right')} right, {ours.count('wrong')} wrong; "
        f"LEAPP {theirs.count('right')} right, {theirs.count('wrong')} wrong; the rest refused"
    )
    silent = [name for name, verdict in verdicts["ours"][backend].items() if verdict == "wrong"]
    what = f"sweep of expressions, {backend}"
    ratio = ours.count("right") / max(theirs.count("right"), 1)
    return [
        at_least(f"{what}: ours / leapp", ratio, 1.0, counts),
        at_most(f"{what}: silently wrong", float(len(silent)), 0.0, ", ".join(silent)),
    ]


def _sweep_one_side(side: str, folder: Path) -> dict[str, dict[str, str]]:
    """Return the verdict on every expression by backend."""
    expressions = _expressions()
    return {
        backend: {
            name: _judge(SIDES[side], expression, backend, folder / f"{backend}_{side}", name)
            for name, expression in expressions.items()
        }
        for backend in BACKENDS
    }


def _judge(api: Any, expression: Expression, backend: str, folder: Path, name: str) -> str:
    """Return `right`, `wrong` or `refused`, judged on fresh inputs after one pass."""
    try:
        _export_expression(api, expression, backend, folder, name)
        model = _load(folder / name, backend)
    except Exception:
        with contextlib.suppress(Exception):
            api.stop()
        return "refused"
    for seed in range(1, FRESH_INPUTS + 1):
        inputs = expression.make(torch.Generator().manual_seed(seed))
        with torch.no_grad():
            expected = _tensors(expression.compute(*(value.clone() for value in inputs)))
            if not _agree(model, inputs, expected):
                return "wrong"
    return "right"


def _export_expression(
    api: Any, expression: Expression, backend: str, folder: Path, name: str
) -> None:
    inputs = expression.make(torch.Generator().manual_seed(0))
    api.start(name, save_path=str(folder))
    with torch.no_grad():
        named = {f"x{i}": value for i, value in enumerate(inputs)}
        values = api.annotate.input_tensors("n", named)
        values = values if isinstance(values, tuple) else (values,)
        found = _tensors(expression.compute(*values))
        outputs = {f"y{i}": value for i, value in enumerate(found)}
        api.annotate.output_tensors("n", outputs, export_with=backend)
    api.stop()
    api.compile_graph(visualize=False)


def _tensors(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    return [tensor for part in result if part is not None for tensor in _tensors(part)]


def _agree(model: Callable[[list[Tensor]], list[Tensor]], inputs: Any, expected: Any) -> bool:
    try:
        found = model([value.clone() for value in inputs])
    except Exception:
        return False
    return len(found) == len(expected) and all(
        one.shape == other.shape
        and one.dtype == other.dtype
        and torch.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True)
        for one, other in zip(found, expected, strict=True)
    )


def _load(folder: Path, backend: str) -> Callable[[list[Tensor]], list[Tensor]]:
    if backend == "onnx":
        return _load_onnx(folder / "n.onnx", folder / f"{folder.name}.yaml")
    if backend == "jit":
        run: Any = torch.jit.load(str(folder / "n.pt"))  # type: ignore[no-untyped-call]
    else:
        run = torch.export.load(str(folder / "n.pt2")).module()
    kept = _kept_inputs(folder / f"{folder.name}.yaml")
    return lambda inputs: _tensors(run(*(inputs[i] for i in kept)))


def _load_onnx(model: Path, bundle: Path) -> Callable[[list[Tensor]], list[Tensor]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options)
    kept = _kept_inputs(bundle)
    names = [port.name for port in session.get_inputs()]

    def run(inputs: list[Tensor]) -> list[Tensor]:
        arrays = {name: inputs[i].numpy() for name, i in zip(names, kept, strict=True)}
        return [torch.from_numpy(array) for array in session.run(None, arrays)]

    return run


def _kept_inputs(bundle: Path) -> list[int]:
    """Return which of the inputs the exported node still has."""
    import yaml  # type: ignore[import-untyped]

    ports = yaml.safe_load(bundle.read_text())["models"]["n"]["inputs"]
    return [int(port["name"].removeprefix("x")) for port in ports]


if __name__ == "__main__":
    with _quiet():
        found = _sweep_one_side(sys.argv[1], Path(sys.argv[2]))
    print("RESULT" + json.dumps(found))
