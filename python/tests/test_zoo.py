"""The zoo: outputs say something about every weight, and weights of files fit or are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn
from veracity import VeracityError
from veracity.drift import sweep, zoo
from veracity.parity import parity

SMALL = ("lstm", "gru_policy", "shared_transformer")


pytestmark = pytest.mark.usefixtures("one_thread")


def outputs(model: nn.Module, args: tuple[Any, ...]) -> list[Tensor]:
    with torch.no_grad():
        found = model(*args)
    return list(found) if isinstance(found, tuple) else [found]


# What is drawn


@pytest.mark.parametrize("name", [*SMALL, "mobilenet_v3_small", "vit_b_16"])
def test_every_output_has_a_usable_range_and_every_parameter_is_drawn(name: str) -> None:
    model, args = zoo.build(name)
    assert not any(module.training for module in model.modules())
    for output in outputs(model, args):
        assert output.isfinite().all() and output.std() > 0.01 and output.abs().max() < 100
    dead = [key for key, value in model.named_parameters() if float(value.detach().std()) == 0.0]
    assert not dead
    for key, value in model.named_buffers():
        if key.endswith("running_var"):
            assert not torch.equal(value, torch.ones_like(value)), key


@pytest.mark.parametrize("name", SMALL)
def test_a_seed_is_all_that_decides(name: str) -> None:
    state = torch.random.get_rng_state()
    first, again, other = (outputs(*zoo.build(name, seed)) for seed in (1, 1, 2))
    assert all(map(torch.equal, first, again))
    assert not any(map(torch.equal, first, other))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("name", SMALL)
def test_the_export_of_a_small_network_is_proved(name: str) -> None:
    result = parity(*zoo.build(name), float64=False)
    assert result.verdict == "proved" and result.coverage.share == 1.0, result


def test_torchvision_is_known_by_its_own_names() -> None:
    names = zoo.names()
    assert {"resnet18", "resnet50", "swin_t", "convnext_tiny", *SMALL} <= set(names)
    assert len(names) > 70 and not any("rcnn" in name or "r3d" in name for name in names)


# Outputs that say nothing


class _Fixed(nn.Module):
    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.value = value

    def forward(self) -> Tensor:
        return self.value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (torch.zeros(4), "about zero"),
        (torch.full((4,), 1e-9), "about zero"),
        (torch.full((4,), 2.5), "constant at 2.5"),
        (torch.tensor([1.0, float("nan")]), "not finite"),
        (torch.tensor([1.0, float("inf")]), "not finite"),
    ],
)
def test_an_output_that_says_nothing_is_refused(value: Tensor, problem: str) -> None:
    with pytest.raises(VeracityError, match="VER1232") as refused:
        zoo.check_outputs(_Fixed(value), (), "net")
    assert problem in str(refused.value)


def test_outputs_that_say_something_pass() -> None:
    for value in (torch.tensor([0.1, 0.2]), torch.tensor([3.0]), torch.tensor([1, 1])):
        zoo.check_outputs(_Fixed(value), (), "net")


# Weights of files


def _saved(path: Path, edit: Callable[[dict[str, Tensor]], Any] = lambda _: None) -> Path:
    state = {key: value.clone() for key, value in zoo.build("lstm", 5)[0].state_dict().items()}
    edit(state)
    if path.suffix == ".safetensors":
        safetensors.torch.save_file(state, path)
    else:
        torch.save({"epoch": 3, "state_dict": state} if "checkpoint" in path.stem else state, path)
    return path


@pytest.mark.parametrize("file", ["w.pt", "checkpoint.pth", "w.safetensors"])
def test_weights_of_a_file_are_used(file: str, tmp_path: Path) -> None:
    trained = zoo.build("lstm", 5)[0]
    model, _ = zoo.build("lstm", 0, _saved(tmp_path / file))
    found, expected = model.state_dict(), trained.state_dict()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize(
    ("edit", "parts"),
    [
        (lambda s: s.update(head_weight=s.pop("head.weight")), ("no 'head_weight'", "head.weight")),
        (lambda s: s.pop("head.bias"), ("lacks 'head.bias'",)),
        (lambda s: s.update({"head.bias": torch.ones(9)}), ("[9] in the file", "[8] in the model")),
    ],
    ids=["another name", "missing", "another shape"],
)
@pytest.mark.parametrize("ending", [".pt", ".safetensors"])
def test_weights_that_do_not_fit_are_refused(
    edit: Callable[[dict[str, Tensor]], Any], parts: tuple[str, ...], ending: str, tmp_path: Path
) -> None:
    file = _saved(tmp_path / f"w{ending}", edit)
    with pytest.raises(VeracityError, match="VER1231") as refused:
        zoo.build("lstm", 0, file)
    assert all(part in str(refused.value) for part in (*parts, str(file)))


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("harm"),)


def test_a_file_is_never_executed_and_never_half_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"head.weight": _Evil()}, "evil.pt")
    torch.save([torch.ones(1)], "list.pt")
    Path("cut.safetensors").write_bytes(_saved(Path("w.safetensors")).read_bytes()[:-9])
    Path("text.safetensors").write_text("a long text that is no header of anything")
    for name in ("evil.pt", "list.pt", "cut.safetensors", "text.safetensors"):
        with pytest.raises(VeracityError, match="VER1231"):
            zoo.build("lstm", 0, name)
    assert not Path("harm").exists()
    with pytest.raises(VeracityError, match="VER0001"):
        zoo.build("lstm", 0, "absent.pt")


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(VeracityError, match="VER1230") as refused:
        zoo.build("resnet5")
    assert "resnet50" in str(refused.value)


# The sweep


def _entry(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "verdict": "proved", "rows": 3, "tensors": 4, "share": 0.75,
        "introduced": 1e-7, "strain": 0.125, "worst": "add (Add)", "accumulated": 2e-7,
        "origin": "none", "engine": "ort 1.0", "export_secs": 2.0, "secs": 0.5,
        "export_peak_bytes": 10**9, "peak_bytes": 2 * 10**9, **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"secs": 9.0, "peak_bytes": 5}, 0),
        ({"rows": 2}, 1),
        ({"introduced": 3e-7}, 1),
        ({"verdict": "disproved", "origin": "add"}, 1),
    ],
    ids=["the same", "another cost", "fewer rows", "another error", "disproved"],
)
def test_a_sweep_that_finds_something_else_than_its_page_fails(
    changes: dict[str, Any], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(sweep.render([_entry("lstm")], 42))
    assert "| lstm | proved | 3 | 4 | 75.0% | 1.00e-07 | 12.5% |" in page.read_text()
    monkeypatch.setattr(sweep, "_in_a_process", lambda name, _: _entry(name, **changes))
    assert sweep.main(["lstm", "--check", str(page), "--out", str(tmp_path / "new.md")]) == code


def test_the_committed_page_is_about_every_network_and_all_are_proved() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "parity-sweep.md"
    rows = [line.split(" | ") for line in page.read_text().splitlines()]
    found = [cells for cells in rows if cells[1:2] == ["proved"]]
    assert tuple(cells[0].removeprefix("| ") for cells in found) == sweep.MODELS
    assert all(float(cells[4].rstrip("%")) >= 95.0 for cells in found)
