"""Scripted and traced modules in a node: `policy.pt` files are how people hand over policies.

LEAPP exports all of these; the recorder sees them by the operators that their graphs name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import veracity
from torch import Tensor, nn
from veracity import InferenceManager, annotate
from veracity.export.compile import CompileResult

BACKENDS = ["jit", "jit-trace", "onnx", "onnx-torchscript", "pt2"]


class Recurrent(nn.Module):
    """A cell over a sequence, and a head."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        """Make both."""
        super().__init__()
        self.cell = kind(3, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Run one step."""
        features, _ = self.cell(x)
        return self.head(features)


MODULES: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(3, 2),
    "mlp": lambda: nn.Sequential(nn.Linear(3, 8), nn.ELU(), nn.LayerNorm(8), nn.Linear(8, 2)),
    "convolution": lambda: nn.Sequential(nn.Conv1d(5, 4, 3), nn.BatchNorm1d(4), nn.ReLU()),
    "gru": lambda: Recurrent(nn.GRU),
    "lstm": lambda: Recurrent(nn.LSTM),
}


def scripted(module: nn.Module, how: str) -> torch.jit.ScriptModule:
    if how == "script":
        return torch.jit.script(module)
    return torch.jit.trace(module, torch.randn(2, 5, 3))


def exported(module: Callable[[Tensor], Tensor], backend: str, folder: Path) -> CompileResult:
    with veracity.session("g", save_path=folder):
        for _ in range(3):
            x = annotate.input_tensors("n", {"x": torch.randn(2, 5, 3)})
            annotate.output_tensors("n", {"y": module(x)}, export_with=backend)
    return veracity.compile_graph(visualize=False)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", ["script", "trace"])
@pytest.mark.parametrize("name", MODULES)
def test_a_script_inside_of_a_node_is_exported(
    name: str, how: str, backend: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    module = scripted(MODULES[name]().eval(), how)
    with torch.set_grad_enabled(name == "linear"):
        compiled = exported(module, backend, tmp_path)
    assert (dict(compiled), compiled.proof.verdict) == ({"n": True}, "proved")


class Policy(nn.Module):
    """As rsl_rl exports it: the hidden state is a buffer that the script writes."""

    def __init__(self) -> None:
        """Begin with zeros."""
        super().__init__()
        self.memory = nn.LSTM(3, 4)
        self.actor = nn.Linear(4, 2)
        self.register_buffer("hidden", torch.zeros(1, 1, 4))
        self.register_buffer("cell", torch.zeros(1, 1, 4))

    def forward(self, obs: Tensor) -> Tensor:
        """Run one step."""
        out, (hidden, cell) = self.memory(obs.unsqueeze(0), (self.hidden, self.cell))
        self.hidden[:] = hidden
        self.cell[:] = cell
        return self.actor(out.squeeze(0))


@pytest.mark.parametrize("mark", [True, False], ids=["annotate.module", "no mark"])
def test_the_state_of_a_scripted_policy_is_fed_back(mark: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    policy, fresh = torch.jit.script(Policy().eval()), torch.jit.script(Policy().eval())
    fresh.load_state_dict(policy.state_dict())
    with torch.no_grad(), veracity.session("g", save_path=tmp_path):
        for _ in range(4):
            obs = annotate.input_tensors("policy", {"obs": torch.randn(1, 3)})
            if mark:
                annotate.module("policy", policy)
            annotate.output_tensors("policy", {"action": policy(obs)}, export_with="onnx")
    assert veracity.compile_graph(visualize=False).proof.verdict == "proved"
    manager = InferenceManager(tmp_path / "g")
    for _ in range(6):
        obs = torch.randn(1, 3)
        with torch.no_grad():
            wanted = fresh(obs)
        found = manager.run_policy({"policy/obs": obs})["policy/action"]
        torch.testing.assert_close(found, wanted)


class Decides(nn.Module):
    """TorchScript decides by data: no export can follow."""

    def forward(self, x: Tensor) -> Tensor:
        """Run one step."""
        if bool(x.sum() > 100.0):
            return -x
        return x * 2.0


def test_a_script_that_decides_by_data_is_not_proved(tmp_path: Path) -> None:
    compiled = exported(torch.jit.script(Decides()), "jit", tmp_path)
    assert compiled.proof.verdict == "conditional"
