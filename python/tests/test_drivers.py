"""What the code around a node may change one day is told; what it only makes again is not."""

from __future__ import annotations

import runpy
import textwrap
from pathlib import Path

import pytest

#: Every script defines `tick(x)` around the node `n`, or a loop of its own as `run(xs)`.
_SCRIPT = """
import contextlib, itertools, math, types
import numpy as np, torch, veracity
from torch import nn
from veracity import annotate

{code}

with torch.no_grad(), veracity.session("d", save_path={folder!r}):
    if "run" in globals():
        run(torch.randn(5, 3))
    else:
        for number in range(5):
            tick(torch.randn(3))
result = veracity.compile_graph(visualize=False, strict=False)
"""
_NODE = """
def node(x, gain):
    x = annotate.input_tensors("n", {"x": x})
    y = x * gain
    annotate.output_tensors("n", {"y": y}, export_with="jit")
    return y
"""

CHANGES = {
    "an attribute in a branch on an output": """
        arm = types.SimpleNamespace(gain=2.0)
        def tick(x):
            if node(x, arm.gain).abs().max() > 1e3:
                arm.gain = 1.0
    """,
    "a variable of a loop": """
        def run(xs):
            gain = 2.0
            for x in xs:
                y = node(x, gain)
                if y.max() > 1e3:
                    gain = 1.0
    """,
    "a global variable, by a callback": """
        gain = 2.0
        def on_alarm():
            global gain
            gain = 0.5
        alarms = {"hot": on_alarm}
        def tick(x):
            if node(x, gain).max() > 1e3:
                alarms["hot"]()
    """,
    "an attribute by a name that is a value": """
        class Arm:
            def __init__(self):
                self.gain = 2.0
        arm, news = Arm(), []
        def tick(x):
            for name, value in news:
                setattr(arm, name, value)
            node(x, arm.gain)
    """,
    "the next of an iterator": """
        gains = itertools.chain([2.0] * 5, itertools.repeat(1.0))
        def tick(x):
            node(x, next(gains))
    """,
    "a ramp that has not begun": """
        ticks = 0
        def tick(x):
            global ticks
            ticks += 1
            node(x, 2.0 + max(0, ticks - 8))
    """,
    "a tensor made of what a device says": """
        class Stick:
            reads = 0
            def read(self):
                self.reads += 1
                return [2.0] * 3 if self.reads < 9 else [0.0] * 3
        stick = Stick()
        def tick(x):
            gain = torch.tensor(stick.read())
            node(x, gain)
    """,
    "a tensor that is filled again": """
        gain = torch.ones(3)
        def tick(x):
            gain.copy_(torch.full((3,), 1.0))
            node(x, gain)
    """,
    "a rate of dropout": """
        drop = nn.Dropout(0.0)
        def tick(x):
            y = node(drop(x), 1.0)
            if y.max() > 1e3:
                drop.p = 0.5
        def node(x, gain):
            x = annotate.input_tensors("n", {"x": x})
            y = drop(x) * gain
            annotate.output_tensors("n", {"y": y}, export_with="jit")
            return y
    """,
    "a node that raises": """
        last = torch.zeros(3)
        def checked(x):
            x = annotate.input_tensors("n", {"x": x})
            if x.abs().max() > 50:
                raise ValueError("out of range")
            annotate.output_tensors("n", {"y": x * 2}, export_with="jit")
        def tick(x):
            with contextlib.suppress(ValueError):
                checked(x)
    """,
    "a clock that Python asks": """
        clock = torch.zeros(())
        def tick(x):
            global clock
            x = annotate.input_tensors("n", {"x": x})
            clock = clock + 0.02
            y = x * 2 if clock > 0.5 else x
            annotate.output_tensors("n", {"y": y}, export_with="jit")
    """,
}

STAYS = {
    "a literal at the top of a tick": """
        def tick(x):
            gain = torch.tensor([1.0, 2.0, 3.0])
            node(x, gain)
    """,
    "what is made of settings": """
        class Settings:
            scale = 0.5
            def __init__(self):
                self.gains = {"hip": 1.0, "knee": 2.0, "toe": 3.0}
        settings = Settings()
        def tick(x):
            gain = torch.tensor([settings.gains[name] for name in ("hip", "knee", "toe")])
            node(x, gain * settings.scale)
    """,
    "what a function makes of a table": """
        base = torch.arange(3.0)
        class Robot:
            def __init__(self):
                self.default = base * 2
            def pose(self):
                return self.default.clone()
        robot = Robot()
        def tick(x):
            gain = robot.pose().unsqueeze(0)
            node(x, gain)
    """,
    "what is set before the loop": """
        arm = types.SimpleNamespace(gain=1.0)
        arm.gain = 2.0
        def tick(x):
            node(x, arm.gain)
    """,
    "what nodes do not read": """
        class Arm:
            def __init__(self):
                self.gain, self.worst, self.ticks = 2.0, 0.0, 0
        arm = Arm()
        def tick(x):
            y = node(x, arm.gain)
            arm.worst = max(arm.worst, float(y.abs().max()))
            arm.ticks += 1
    """,
    "an attribute of another class with the same name": """
        class Plot:
            def __init__(self):
                self.gain = 1.0
            def zoom(self, by):
                self.gain = by
        class Arm:
            def __init__(self):
                self.gain = 2.0
            def act(self, x):
                x = annotate.input_tensors("n", {"x": x})
                y = x * self.gain
                annotate.output_tensors("n", {"y": y}, export_with="jit")
                return y
        arm, plot = Arm(), Plot()
        def tick(x):
            plot.zoom(float(arm.act(x).max()))
    """,
    "a loop over nodes": """
        def tick(x):
            for name, gain in (("hip", 1.0), ("knee", 2.0)):
                part = annotate.input_tensors(name, {"x": x})
                annotate.output_tensors(name, {"y": part * gain}, export_with="jit")
    """,
    "a driver that stops": """
        def tick(x):
            try:
                y = node(x, 2.0)
                assert bool(torch.isfinite(y).all())
            except KeyboardInterrupt:
                print("stopped")
            finally:
                print("tick")
    """,
}


def _told(code: str, folder: Path) -> tuple[str, list[str]]:
    script = folder / "driver.py"
    code = textwrap.dedent(code)
    node = "" if "def node" in code else _NODE
    script.write_text(_SCRIPT.format(code=node + code, folder=str(folder)))
    result = runpy.run_path(str(script))["result"]
    return result.proof.verdict, [one.code for one in result.diagnostics if one.severity != "note"]


@pytest.mark.parametrize("code", CHANGES.values(), ids=CHANGES.keys())
def test_what_may_change_one_day_is_told(code: str, tmp_path: Path) -> None:
    verdict, codes = _told(code, tmp_path)
    assert verdict == "conditional" and set(codes) <= {"VER0911", "VER0912"}, codes


@pytest.mark.parametrize("code", STAYS.values(), ids=STAYS.keys())
def test_what_stays_the_same_is_proved(code: str, tmp_path: Path) -> None:
    assert _told(code, tmp_path) == ("proved", [])


# Whole scripts: what is around a recording, and what only looks as if it were

_HEAD = """
import tempfile
import torch, veracity
from veracity import annotate
folder = {folder!r}
"""

AROUND = {
    "a loop over functions, with a try and a folder of its own": """
        found = []
        for name, law in {"clip": lambda x: x.clamp(-1, 1), "soft": torch.tanh}.items():
            path = tempfile.mkdtemp(dir=folder)
            try:
                veracity.start(name, save_path=path)
                for _ in range(4):
                    x = annotate.input_tensors("n", {"x": torch.randn(3)})
                    annotate.output_tensors("n", {"y": law(x)}, export_with="jit")
                veracity.stop()
                found.append(veracity.compile_graph(visualize=False, strict=False))
            except RuntimeError as error:
                print(error)
        result = found[-1]
    """,
    "a function that records, called for each gain": """
        def export(gain):
            with veracity.session(f"g{gain}", save_path=folder):
                for _ in range(4):
                    x = annotate.input_tensors("n", {"x": torch.randn(3)})
                    annotate.output_tensors("n", {"y": x * gain}, export_with="jit")
            return veracity.compile_graph(visualize=False, strict=False)
        for gain in (1.5, 2.5):
            result = export(gain)
    """,
    "a session in a loop over gains, and ticks without a loop": """
        for gain in (1.5, 2.5):
            with veracity.session("g", save_path=folder):
                def tick():
                    x = annotate.input_tensors("n", {"x": torch.randn(3)})
                    annotate.output_tensors("n", {"y": x * gain}, export_with="jit")
                tick()
                tick()
                tick()
                tick()
            result = veracity.compile_graph(visualize=False, strict=False)
    """,
}

NOT_AROUND = {
    "recording that begins at one tick of the loop": """
        gain = 2.0
        for number in range(12):
            if number == 3:
                veracity.start("g", save_path=folder)
            x = annotate.input_tensors("n", {"x": torch.randn(3)})
            y = x * gain
            annotate.output_tensors("n", {"y": y}, export_with="jit")
            if number == 8:
                veracity.stop()
                result = veracity.compile_graph(visualize=False, strict=False)
            if y.abs().max() > 1e3:
                gain = 1.0
    """,
    "a try around each tick of a recording": """
        gain = 2.0
        with veracity.session("g", save_path=folder):
            for number in range(5):
                try:
                    x = annotate.input_tensors("n", {"x": torch.randn(3)})
                    if bool((x > 50).any()):
                        raise ValueError
                    annotate.output_tensors("n", {"y": x * gain}, export_with="jit")
                except ValueError:
                    continue
        result = veracity.compile_graph(visualize=False, strict=False)
    """,
}


def verdict_of_script(code: str, folder: Path) -> str:
    path = folder / "script.py"
    path.write_text(_HEAD.format(folder=str(folder)) + textwrap.dedent(code))
    return str(runpy.run_path(str(path))["result"].proof.verdict)


@pytest.mark.parametrize("code", AROUND.values(), ids=AROUND.keys())
def test_what_is_around_a_recording_changes_nothing_of_it(code: str, tmp_path: Path) -> None:
    assert verdict_of_script(code, tmp_path) == "proved"


@pytest.mark.parametrize("code", NOT_AROUND.values(), ids=NOT_AROUND.keys())
def test_a_loop_that_only_begins_to_record_is_one_over_ticks(code: str, tmp_path: Path) -> None:
    assert verdict_of_script(code, tmp_path) != "proved"
