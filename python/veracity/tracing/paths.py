"""The way that code takes while it is recorded, and the one that it takes when it is left alone.

A stand-in for an array is no `numpy.ndarray`, and code may ask. The values of the pass that is left
alone need not show it: both ways may be right for what was recorded. So the instructions that the
user's code runs in that pass are held against those of a recorded one. Where they part something
chose between them, and what it chose is followed to what it decides.
"""

from __future__ import annotations

import dis
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from veracity.tracing import source
from veracity.tracing.node import TracedNode
from veracity.tracing.operations import owner_of_file
from veracity.tracing.trail import user_frame

if TYPE_CHECKING:
    from veracity.tracing.session import Session

#: The recorded pass whose way is kept: the first one sets up what is lazy.
RECORDED = 1
#: Instructions after which a pass is no longer followed.
MOST_INSTRUCTIONS = 2_000_000
#: Functions around the marks whose instructions belong to the node.
MOST_FRAMES = 4
_USER = 0


@dataclass
class Way:
    """What ran in a pass.

    Attributes:
        instructions: Where the user's functions were.
        called: The functions that ran at a place.
        is_whole: Whether nothing was left out.
    """

    instructions: dict[CodeType, set[int]] = field(default_factory=dict)
    called: dict[tuple[CodeType, int], set[CodeType]] = field(default_factory=dict)
    is_whole: bool = True
    left: int = MOST_INSTRUCTIONS


class Paths:
    """Follows one pass of each node that is recorded, and one that is left alone."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session
        self._recorded: dict[str, Way] = {}
        self._compared: set[str] = set()
        self._node: TracedNode | None = None
        self._way = Way()
        self._thread = 0
        self._frames: list[FrameType] = []

    def begin(self, node: TracedNode, *, light: bool) -> None:
        """Follow the pass that begins, if it is one of the two."""
        wanted = node.completed == RECORDED and not light
        wanted = wanted or (light and node.name in self._recorded)
        if not wanted or node.name in self._compared or self._node is not None:
            return
        if sys.gettrace() is not None:  # a debugger
            return
        self._node, self._way = node, Way()
        self._thread = threading.get_ident()
        frame = user_frame()
        while frame is not None and len(self._frames) < MOST_FRAMES:
            if owner_of_file(frame.f_code.co_filename) == _USER and frame.f_trace is None:
                self._frames.append(frame)
                self._follow(frame)
            frame = frame.f_back
        sys.settrace(self._heard)

    def end(self, node: TracedNode, *, light: bool) -> None:
        """Stop following a pass; hold it against the other one."""
        if self._node is not node:
            return
        self.stop()
        if not light:
            self._recorded[node.name] = self._way
            return
        recorded = self._recorded.pop(node.name)
        self._compared.add(node.name)
        if recorded.is_whole and self._way.is_whole:
            for code, instruction in _partings(recorded, self._way):
                self._session.python_states.judge_parting(node, code, instruction)

    def stop(self) -> None:
        """Follow nothing more."""
        if self._node is None:
            return
        self._node = None
        if threading.get_ident() == self._thread and sys.gettrace() == self._heard:
            sys.settrace(None)
        for frame in self._frames:
            frame.f_trace, frame.f_trace_lines, frame.f_trace_opcodes = None, True, False
        self._frames.clear()

    def forget(self) -> None:
        """Let go of everything that was seen: the session is over."""
        self.stop()
        self._recorded.clear()

    def _heard(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if self._node is None or event != "call" or _owner(frame.f_code) != _USER:
            return None
        caller = frame.f_back
        if caller is not None and _owner(caller.f_code) == _USER:
            place = (caller.f_code, source.instruction_of(caller))
            self._way.called.setdefault(place, set()).add(frame.f_code)
        return self._follow(frame)

    def _follow(self, frame: FrameType) -> Callable[..., Any]:
        way = self._way
        seen = way.instructions.setdefault(frame.f_code, set())

        def heard(frame: FrameType, event: str, _: Any) -> Any:
            if event == "opcode":
                seen.add(source.instruction_of(frame))
                way.left -= 1
                if way.left < 0:
                    way.is_whole = False
                    return None
            return heard

        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        frame.f_trace = heard
        return heard


@functools.lru_cache(maxsize=4096)
def _owner(code: CodeType) -> int:
    return owner_of_file(code.co_filename)


def _partings(one: Way, other: Way) -> Iterator[tuple[CodeType, int]]:
    """Give the places at which two passes part: branches, and calls of other functions."""
    for code in one.instructions.keys() & other.instructions.keys():
        first, second = one.instructions[code], other.instructions[code]
        both, apart = first & second, first ^ second
        for jump, targets in _jumps(code) if apart else ():
            if jump in both and apart & targets:
                yield code, jump
    for (code, place), functions in one.called.items():
        also = other.called.get((code, place))
        ran = place in other.instructions.get(code, ())
        if functions != also and (also is not None or ran):
            yield code, place


@functools.lru_cache(maxsize=256)
def _jumps(code: CodeType) -> list[tuple[int, set[int]]]:
    """Return the branches of a function, each with where it may lead."""
    found: list[tuple[int, set[int]]] = []
    instructions = list(dis.get_instructions(code))
    for number, one in enumerate(instructions[:-1]):
        is_jump = one.opcode in dis.hasjrel or one.opcode in dis.hasjabs
        if is_jump and "IF" in one.opname:
            found.append((one.offset, {instructions[number + 1].offset, one.argval}))
    return found
