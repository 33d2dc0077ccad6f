"""`veracity parity`: what it compares, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import numpy_helper
from veracity.drift import command
from veracity.export.backends.onnx_tables import kept_tables

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "target" / "debug" / "veracity"
NETS = """
import torch
from torch import nn

print("this goes to stderr")

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.norm, self.head = nn.LayerNorm(4), nn.Linear(4, 3)

    def forward(self, x, scale=1.0):
        return self.head(self.norm(x)) * scale

def alone():
    return Encoder().eval()

def pair():
    return alone(), torch.randn(2, 4)

def triple():
    return alone(), (torch.randn(2, 4),), {"scale": 0.5}

class Holder:
    built = alone()

def nan():
    return nn.ReLU(), torch.tensor([1.0, float("nan")])

def training():
    return nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), torch.randn(2, 4)

def number():
    return 3

def four():
    return 1, 2, 3, 4

def wrong():
    return deeper()

def deeper():
    raise KeyError("no checkpoint")

def leaves():
    raise SystemExit(1)

forty_two = 42
"""


def line(part: str) -> str:
    """Return the place of a line in the file of networks."""
    return f"nets.py:{NETS.partition(part)[0].count(chr(10)) + 1}\n"


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder with a file of networks, on one thread."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "broken.py").write_text("def builder(:\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before, modules = torch.get_num_threads(), set(sys.modules)
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(before)
    for name in {"nets", "_nets", "broken"} - modules:
        sys.modules.pop(name, None)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command in this process."""
    code = command.main(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


# Targets


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("nets:pair", ()),
        ("nets.py:pair", ()),
        ("nets:triple", ()),
        ("nets:Encoder", ("--input-shape", "2,4")),
        ("nets.py:Holder.built", ("--input-shape", "2,4")),
        ("zoo:gru_policy", ("--seed", "3")),
    ],
)
def test_a_target_is_found_and_proved(
    target: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, target, "--no-float64", "--format=json", *options)
    assert code == 0, err
    report = json.loads(out)
    assert report["verdict"] == "proved" and report["rows"]
    assert ("this goes to stderr" in err) == target.startswith("nets")


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["nets"], "VER1233", ["`zoo:resnet50`"]),
        (["absent.py:build"], "VER0001", ["absent.py"]),
        (["absent:build"], "VER1233", ["No module named 'absent'"]),
        (["nets:pare"], "VER1233", ["'pair'"]),
        (["nets:number"], "VER1233", ["gave a int", "(module, args)"]),
        (["nets:four"], "VER1233", ["4 values"]),
        (["nets:forty_two"], "VER1233", ["is a int"]),
        (
            ["nets.py:wrong"],
            "VER1233",
            ["KeyError: 'no checkpoint'", line("raise Key"), "called from", line("return deeper")],
        ),
        (["nets.py:leaves"], "VER1233", ["SystemExit: 1", line("raise System")]),
        (["broken.py:builder"], "VER1233", ["SyntaxError", "broken.py:1"]),
        (["zoo:lstmm"], "VER1230", ["'lstm'"]),
        (["nets:pair", "--input-shape", "2,4"], "VER1233", ["arguments of its own"]),
        (["nets:pair", "--onnx", "absent.onnx"], "VER0001", ["absent.onnx"]),
        (["nets:pair", "--weights", "nets.py"], "VER1231", ["nets.py"]),
        (["nets:pair", "--memory", "lots"], "VER0707", ["lots"]),
        (["nets:pair", "--budget", "0"], "VER0803", ["budget"]),
        (["nets:pair", "--save", "no/folder/x.json"], "VER0003", ["no/folder"]),
        (["."], "VER0005", ["--node"]),
        ([".", "--node", "policy"], "VER0209", ["no bundle"]),
        ([".", "--node", "policy", "--onnx", "nets.py"], "VER0005", ["--onnx"]),
        ([".", "--node", "policy", "--input-shape", "1"], "VER0005", ["--input-shape"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_run_is_explained_and_is_no_answer(
    arguments: list[str], code: str, parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    exit_code, out, err = run(capsys, *arguments)
    assert (exit_code, out) == (2, "")
    assert f"error[{code}]" in err and "Traceback" not in err
    assert all(part in err for part in parts), err


def test_faults_of_this_package_are_no_answer_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> Any:
        raise RuntimeError("deep inside")

    monkeypatch.setattr(command, "_compared", fails)
    code, out, err = run(capsys, "zoo:lstm")
    assert (code, out) == (2, "") and "deep inside" in err and "a fault of veracity" in err


def test_a_module_in_training_mode_is_put_into_eval_mode(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for options, told in (((), True), (("--quiet",), False)):
        code, _, err = run(capsys, "nets:training", "--no-float64", *options)
        assert code == 0 and ("training mode" in err) == told


# Answers


def test_a_wrong_file_is_disproved_and_its_operator_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import nets  # type: ignore[import-not-found]

    torch.manual_seed(42)
    with kept_tables():
        torch.onnx.export(
            nets.alone(), (torch.randn(2, 4),), "net.onnx", dynamo=True, verbose=False
        )
    model = onnx.load("net.onnx")
    for tensor in model.graph.initializer:
        if tensor.name == "head.bias":
            value = numpy_helper.to_array(tensor) + 0.05
            tensor.CopyFrom(numpy_helper.from_array(value.astype("float32"), tensor.name))
    onnx.save(model, "wrong.onnx")
    capsys.readouterr()
    for file, expected in (("net.onnx", 0), ("wrong.onnx", 1)):
        options = ("--input-shape=2,4", "--no-float64", "--save", "drift.json", "--onnx", file)
        code, out, err = run(capsys, "nets:alone", *options)
        assert code == expected, out + err
        saved = json.loads(Path("drift.json").read_text())
        origins = [row["module"] for row in saved["rows"] if row["name"] == saved.get("origin")]
        assert origins == ["head"] * expected
        assert saved["verdict"] == ("disproved" if expected else "proved")


def test_nan_is_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "nets:nan", "--no-float64")[0] == 3


class _Result:
    """Notes what it is asked for."""

    verdict = "disproved"

    def __init__(self, worse: list[str]) -> None:
        self.asked: dict[str, Any] = {}
        self.worse = worse

    def remember_command(self, command: str) -> None:
        self.asked["command"] = command

    def to_html(self, path: Path) -> None:
        self.asked["html"] = path

    def write_reports(self, base: Path) -> None:
        self.asked["reports"] = base

    def worse_than(self, baseline: str) -> list[str]:
        self.asked["baseline"] = baseline
        return self.worse

    def to_markdown(self) -> str:
        return "# A page"

    def to_json(self) -> str:
        return "{}"


@pytest.mark.parametrize(("worse", "expected"), [([], 0), (["conv1 is worse"], 1)])
def test_other_files_are_asked_of_the_result(
    worse: list[str],
    expected: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = _Result(worse)
    monkeypatch.setattr(command, "_compared", lambda _: result)
    Path("old.json").write_text("{}")
    options = ("--html=a.html", "--report-base=base", "--baseline=old.json", "--format=md")
    code, out, err = run(capsys, "zoo:lstm", *options)
    assert (code, out) == (expected, "# A page\n") and err == "".join(f"{w}\n" for w in worse)
    assert result.asked.pop("command") == "veracity parity zoo:lstm"
    asked = {"html": Path("a.html"), "reports": Path("base"), "baseline": "old.json"}
    assert result.asked == asked


def test_options_reach_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def compared(*_: Any, **options: Any) -> Any:
        seen.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["veracity.parity"], "parity", compared)
    Path("t.toml").touch()
    arguments = "--tolerance=1e-6 --budget=8 --memory=1MB --threads=2 --engine=embedded"
    files = "--tolerances=t.toml --repro=fault"
    code = command.main(["nets:triple", "--no-float64", *arguments.split(), *files.split()])
    assert code == 130
    assert seen == {
        "onnx": None, "against": "onnx", "name": "Encoder", "tolerance": 1e-6, "budget": 8.0,
        "memory": "1MB", "threads": 2, "engine": "embedded", "float64": False,
        "tolerances": "t.toml", "repro": "fault",
    }  # fmt: skip


# The binary


def binary(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    assert BINARY.exists(), "no command line binary: run `make build` first"
    env = {**os.environ, "VIRTUAL_ENV": sys.prefix, **environment}
    return subprocess.run(
        [BINARY, "parity", *arguments], env=env, capture_output=True, text=True, check=False
    )


def test_ctrl_c_ends_it_at_once() -> None:
    Path("slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(60)\n")
    env = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    arguments = [BINARY, "parity", "slow.py:builder"]
    with subprocess.Popen(arguments, env=env, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "here\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == -signal.SIGINT


def test_the_binary_hands_over_and_ends_as_python_does() -> None:
    done = binary("nets.py:pair", "--no-float64", "--format", "json", "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "proved"
    done = binary("nets.py:wrong")
    assert (done.returncode, done.stdout) == (2, "") and line("raise Key") in done.stderr
