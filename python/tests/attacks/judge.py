"""Compares two episodes, and says what a verdict was worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

#: An error is one that nobody would call rounding: engines and feedback over an episode stay below.
_RTOL = 2e-3
_OF_ELEMENT = 5e-4
_OF_PORT = 2e-6

FALSE_PROOF, RIGHT, TOLD = "false proof", "right", "told"
FALSE_ALARM, REFUSED = "false alarm", "refused"
#: The program itself fails in Python: the attack is wrong, not the product.
BROKEN = "broken"


@dataclass
class Outcome:
    """What became of one case.

    Attributes:
        program: Its name.
        backend: The backend of its nodes.
        theme: Its theme.
        clean: Whether it had to be proved.
        verdict: What `compile_graph` said: a verdict, `"refused"` where it raised, `"hang"`.
        codes: Codes of the warnings and errors that were told.
        wrong: Where the bundle first was wrong, or why it cannot be run; nothing when it is right.
        detail: What was raised, or the first thing told.
        checked: What `veracity check` said of the bundle, where that was asked.
        seconds: How long it took.
    """

    program: str
    backend: str
    theme: str
    clean: bool
    verdict: str = ""
    codes: list[str] = field(default_factory=list)
    wrong: str = ""
    detail: str = ""
    checked: str = ""
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        """One of the classes."""
        if self.verdict == BROKEN:
            return BROKEN
        if self.verdict == "proved":
            if self.wrong:
                return FALSE_PROOF
            return FALSE_ALARM if self.clean and self.codes else RIGHT
        if not self.clean:
            return TOLD
        return REFUSED if self.wrong or self.verdict in ("refused", "hang") else FALSE_ALARM

    @property
    def passed(self) -> bool:
        """Whether this is what has to come out."""
        return self.kind == RIGHT or (self.kind == TOLD and not self.clean)


Episode = Sequence[dict[str, Tensor]]


def first_difference(found: Episode, expected: Episode) -> str:
    """Return where an episode first differs from what was expected, or nothing.

    What is expected to have no value in a tick is not compared there. The scale of an element is
    what it reaches in the episode, so small outputs and small channels count as much as large ones.
    """
    scales = _scales(expected)
    for tick, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        for key, value in theirs.items():
            if key not in ours:
                return f"no output {key} (there is {', '.join(ours) or 'none'})"
            if problem := _differs(ours[key], value, scales[key]):
                return f"tick {tick}: {key}: {problem}"
    return ""


def _scales(expected: Episode) -> dict[str, Tensor]:
    """Return for every element of every port the largest finite magnitude it has."""
    scales: dict[str, Tensor] = {}
    for values in expected:
        for key, value in values.items():
            size = value.double().abs().nan_to_num(0.0, 0.0, 0.0)
            same = key in scales and scales[key].shape == size.shape
            scales[key] = torch.maximum(scales[key], size) if same else size
    return scales


def _typical(scale: Tensor) -> Tensor:
    """Return what the elements of a port reach; a few huge ones, such as a mask, do not count."""
    moving = scale[scale > 0]
    return torch.minimum(moving.max(), 100 * moving.median()) if moving.numel() else scale.sum()


def _differs(found: Tensor, expected: Tensor, scale: Tensor) -> str:
    if found.shape != expected.shape:
        return f"shape {list(found.shape)}, not {list(expected.shape)}"
    if found.dtype != expected.dtype:
        return f"{found.dtype}, not {expected.dtype}"
    ours, theirs = found.double(), expected.double()
    allowed = torch.zeros_like(theirs)
    if expected.is_floating_point() and expected.numel():
        finite = theirs.abs().nan_to_num(0.0, 0.0, 0.0)
        allowed = _RTOL * finite + _OF_ELEMENT * scale + _OF_PORT * _typical(scale)
    same = (ours == theirs) | (ours.isnan() & theirs.isnan()) | ((ours - theirs).abs() <= allowed)
    if bool(same.all()):
        return ""
    place = tuple(int(i) for i in (~same).nonzero()[0])
    return f"{list(place)} is {float(ours[place]):.6g}, not {float(theirs[place]):.6g}"
