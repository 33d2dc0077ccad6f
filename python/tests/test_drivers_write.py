"""Whatever a driver may write into a policy one day is told, by whatever name it writes there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

_SCRIPT = """
import dataclasses
import numpy as np, torch, veracity
from torch import nn
from veracity import annotate

@dataclasses.dataclass
class Config:
    kp: float = 2.0

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.offset, self.limits = torch.tensor([0.1, 0.2, 0.3]), torch.ones(3)
        self.array = np.array([0.5, 0.5, 0.5], dtype=np.float32)
        self.settings, self.config, self.gains = {{"kp": 2.0}}, Config(), [1.0, 2.0]
        self.h = torch.zeros(1, 3)
        self.seen, self.before = torch.zeros(1, 3), torch.zeros(1, 3)
        self.net.register_forward_hook(self.keep)
        self.apply(self.begin)
    def begin(self, module):
        if isinstance(module, nn.Linear):
            nn.init.ones_(module.weight)
    def keep(self, module, given, out):
        self.seen = out
    def forward(self, x):
        self.h = 0.9 * self.h + x
        y = self.net(x) - self.offset.abs() + self.h + self.before
        self.before = self.seen
        y = y * torch.from_numpy(self.array) * self.settings["kp"] * self.config.kp * self.gains[0]
        return torch.minimum(y, self.limits)

class Button:
    pressed = False

def scale(values, by):
    values.mul_(by)

def put(settings, kp):
    settings["kp"] = kp

def put_in(config):
    config.kp = 7.0

def never_called():
    def change():
        p.offset.add_(1.0)
    bus.subscribe(change)

def step():
    step.offset = torch.ones(3)

button, p = Button(), Policy().eval()
optimiser = torch.optim.SGD(p.net.parameters(), lr=0.1)

def between(tick):
    {statement}

def run():
    for tick in range(5):
        between(tick)
        if tick == 0:
            p.h = torch.zeros(1, 3)
        x = annotate.input_tensors("n", {{"x": torch.randn(1, 3)}})
        y = p(x)
        annotate.output_tensors("n", {{"y": y}}, export_with="jit")

with torch.no_grad(), veracity.session("d", save_path={folder!r}):
    run()
result = veracity.compile_graph(visualize=False, strict=False)
"""

#: What is done when a button is pressed, which nobody did while it was recorded.
WRITES = (
    "p.offset.add_(0.1)",
    "p.offset = torch.ones(3)",
    "p.offset.data = torch.ones(3)",
    "scale(p.offset, 0.5)",
    "torch.add(p.offset, 1.0, out=p.offset)",
    "held = p.offset; held.add_(1)",
    "p.limits[0] = 0.3",
    "p.array += 1",
    "np.copyto(p.array, 3.0)",
    'p.settings["kp"] = 30.0',
    "p.settings.update(kp=30.0)",
    "put(p.settings, 4.0)",
    "put_in(p.config)",
    "p.config = dataclasses.replace(p.config, kp=30.0)",
    'setattr(p.config, "kp", 30.0)',
    "p.gains[0] = 3.0",
    "held = p.gains; held[0] = 3.0",
    "p.net.weight.data.mul_(0.5)",
    "p.net.weight.data.copy_(torch.ones(3, 3))",
    "p.net.bias.data += 0.1",
    "p.net.bias = nn.Parameter(torch.ones(3))",
    "nn.init.zeros_(p.net.weight)",
    "nn.utils.vector_to_parameters(torch.zeros(12), p.net.parameters())",
    "[one.mul_(0.9) for one in p.parameters()]",
    'dict(p.net.named_parameters())["bias"].data.fill_(1.0)',
    'p.state_dict()["net.bias"].fill_(1.0)',
    'p.get_parameter("net.bias").data.fill_(1.0)',
    "p.load_state_dict({name: one * 2 for name, one in p.state_dict().items()})",
    "optimiser.step()",
    "p.double()",
    "p.h[:, 0] = 5.0",
    "p.h.mul_(0.5)",
    "p.h.zero_()",
    "p.h = torch.ones(1, 3)",
)
#: What is done on every tick.
LEAVES_ALONE = (
    "pass",
    "p.eval()",
    "p.requires_grad_(False)",
    "print(p.config.kp, p.settings) if tick > 2 else None",
    "h = torch.zeros(3); h.add_(1.0); offset = torch.ones(2); offset.mul_(2)",
    "other = Policy(); other.load_state_dict(p.state_dict()); other.offset.add_(1.0)",
)


def codes(statement: str, tmp_path: Path) -> set[str]:
    script = tmp_path / "driver.py"
    script.write_text(_SCRIPT.format(statement=statement, folder=str(tmp_path)))
    result = runpy.run_path(str(script))["result"]
    told = {one.code for one in result.diagnostics if one.severity != "note"}
    assert (result.verdict == "proved") == (not told)
    return told


@pytest.mark.parametrize("statement", WRITES)
def test_what_a_driver_may_write_is_told(statement: str, tmp_path: Path) -> None:
    inner = statement.replace("; ", "\n        ")
    assert codes(f"if button.pressed:\n        {inner}", tmp_path) & {"VER0912", "VER0930"}


@pytest.mark.parametrize("statement", ["for _ in []:", "while button.pressed:", "try:"])
def test_a_block_that_may_not_run_is_a_condition(statement: str, tmp_path: Path) -> None:
    block = f"{statement}\n        p.config.kp = 3.0"
    if statement.startswith("for"):
        block = block.replace("[]", "[1] * int(button.pressed)")
    if statement == "try:":
        block = (
            "try:\n        print(1 / 2)\n    except ZeroDivisionError:\n        p.config.kp = 3.0"
        )
    assert "VER0912" in codes(block, tmp_path)


@pytest.mark.parametrize("statement", LEAVES_ALONE)
def test_what_leaves_a_policy_alone_is_not_told(statement: str, tmp_path: Path) -> None:
    assert not codes(statement.replace("; ", "\n    "), tmp_path)
