"""Pictures beside a bundle, and exports that do without."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from nodes_by_hand import edge, make_node, recording
from veracity import _native
from veracity.export.compile import compile_recording
from veracity.tracing.nodes import Node, Recording


def scale(name: str, factor: float) -> Node:
    return make_node(name, lambda x: x * factor, {"x": torch.ones(1, 3)}, ["y"])


def two(folder: Path) -> Recording:
    return recording(folder, [scale("first", 2), scale("second", 3)], edge("first/y", "second/x"))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_pictures_lie_beside_the_bundle_and_show_its_verdicts(tmp_path: Path) -> None:
    made = two(tmp_path / "walk")
    assert compile_recording(made) == {"first": True, "second": True}
    svg = (made.folder / "walk.svg").read_text(encoding="utf-8")
    assert "first/y → second/x" in svg
    assert svg.count("<title>proved</title>") == 3, "two nodes and the legend"
    assert (made.folder / "walk.png").read_bytes().startswith(b"\x89PNG")
    assert "drawn: walk.svg, walk.png" in (made.folder / "log.txt").read_text()


def test_without_being_asked_nothing_is_drawn(tmp_path: Path) -> None:
    made = two(tmp_path / "walk")
    compile_recording(made, visualize=False)
    assert not {"walk.svg", "walk.png"} & names(made.folder)


def test_what_was_not_checked_gets_no_verdict(tmp_path: Path) -> None:
    made = two(tmp_path / "walk")
    compile_recording(made, validate=False)
    svg = (made.folder / "walk.svg").read_text(encoding="utf-8")
    assert "<title>proved</title>" not in svg


def test_a_failure_to_draw_is_logged_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> list[Path]:
        raise RuntimeError("out of ink")

    monkeypatch.setattr(_native, "draw", fail)
    made = two(tmp_path / "walk")
    assert compile_recording(made) == {"first": True, "second": True}
    assert "WARNING no picture was drawn: out of ink" in (made.folder / "log.txt").read_text()
    assert "walk.yaml" in names(made.folder)


@pytest.mark.parametrize("others", [False, True])
def test_a_picture_does_not_outlive_its_bundle(others: bool, tmp_path: Path) -> None:
    made = two(tmp_path / "walk")
    if others:
        made.folder.mkdir()
        (made.folder / "notes.txt").write_text("mine")
    compile_recording(made)
    assert {"walk.svg", "walk.png"} <= names(made.folder)
    compile_recording(made, visualize=False)
    assert not {"walk.svg", "walk.png"} & names(made.folder)
    assert ("notes.txt" in names(made.folder)) == others
