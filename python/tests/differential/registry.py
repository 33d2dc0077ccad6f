"""The register of scripts, and the relations between two results that a script can claim."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

#: Values by pipeline key, `node/port`.
Values = dict[str, Tensor]
Step = Callable[[Values], Values]
#: A shape (float32, normally distributed) or a maker of a value.
Draw = tuple[int, ...] | Callable[[torch.Generator], Tensor]

#: Ends the line that a diagnostic has to name.
MARK = "# told"


@dataclass(frozen=True)
class Same:
    """Both give the same bundle, and it computes what the code computes.

    Attributes:
        warns: Codes of warnings that ours must give, at the marked line where there is a mark. No
            other warning may come.
    """

    warns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Better:
    """LEAPP gets it wrong or cannot do it, ours does better.

    Attributes:
        reason: What LEAPP does.
        theirs: `"wrong"` (a bundle that LEAPP validates and that computes something else),
            `"disproved"` (LEAPP's validation finds out), or the exception that LEAPP raises.
        ours: `"right"`, or the codes of which one must be told, at the marked line.
        message: Part of the message of LEAPP's exception, so that no other exception passes for it.
    """

    reason: str
    theirs: str | type[BaseException]
    ours: str | tuple[str, ...] = "right"
    message: str = ""


@dataclass(frozen=True)
class Script:
    """One pipeline.

    Attributes:
        name: Its name, also the bundle's.
        subject: What it is about.
        make: Makes the pipeline from the module under test and returns what one tick does.
        inputs: What arrives from outside in every tick.
        passes: Ticks that are traced.
        relation: How the two results relate.
        start: Gives further arguments of `start`.
        compile: Gives further arguments of `compile_graph`.
        traced: Changes the inputs of a traced tick, given its number: lets them alias each other,
            or leaves some out.
        context: Entered around every tick.
    """

    name: str
    subject: str
    make: Callable[[Any], Step]
    inputs: Mapping[str, Draw]
    passes: int
    relation: Same | Better
    start: Callable[[Any], dict[str, Any]] = lambda api: {}
    compile: Callable[[Any], dict[str, Any]] = lambda api: {}
    traced: Callable[[int, Values], Values] = lambda tick, given: given
    context: Callable[[], Any] = torch.no_grad

    def draw(self, seed: int) -> Values:
        """Return the inputs of one tick."""
        generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
        return {key: _drawn(draw, generator) for key, draw in self.inputs.items()}

    def marked(self) -> tuple[str, set[int]]:
        """Return the file and the lines that a diagnostic may name."""
        return marked_lines(self.make)


@dataclass(frozen=True)
class Refusal:
    """Code that ours refuses, and LEAPP normally, too.

    Attributes:
        theirs: What LEAPP raises; nothing where it swallows the mistake.
        builtin: The builtin exception that ours must be, too.
        codes: The codes of which ours must name one.
    """

    name: str
    subject: str
    run: Callable[[Any, Path], None]
    theirs: type[BaseException] | None
    builtin: type[BaseException]
    codes: tuple[str, ...]

    def marked(self) -> tuple[str, set[int]]:
        """Return the file and the lines that the diagnostic may name."""
        return marked_lines(self.run)


@dataclass(frozen=True)
class Behaviour:
    """Code with its own assertions, which hold under both.

    Attributes:
        only: `"ours"` where LEAPP breaks the rule; it is then asserted that LEAPP does.
    """

    name: str
    subject: str
    run: Callable[[Any, Path], None]
    only: str = ""


SCRIPTS: dict[str, Script] = {}
REFUSALS: dict[str, Refusal] = {}
BEHAVIOURS: dict[str, Behaviour] = {}


def script(
    subject: str,
    inputs: Mapping[str, Draw],
    *,
    passes: int = 2,
    relation: Same | Better | None = None,
    name: str | None = None,
    **options: Any,
) -> Callable[[Callable[[Any], Step]], Callable[[Any], Step]]:
    """Register a pipeline."""

    def register(make: Callable[[Any], Step]) -> Callable[[Any], Step]:
        key = _free_name(name or make.__name__)
        SCRIPTS[key] = Script(key, subject, make, inputs, passes, relation or Same(), **options)
        return make

    return register


def refused(
    subject: str,
    codes: Iterable[str],
    *,
    theirs: type[BaseException] | None = Exception,
    builtin: type[BaseException] = Exception,
) -> Callable[[Callable[[Any, Path], None]], Callable[[Any, Path], None]]:
    """Register code that is refused."""

    def register(run: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
        key = _free_name(run.__name__)
        REFUSALS[key] = Refusal(key, subject, run, theirs, builtin, tuple(codes))
        return run

    return register


def behaviour(
    subject: str, *, only: str = ""
) -> Callable[[Callable[[Any, Path], None]], Callable[[Any, Path], None]]:
    """Register code that asserts for itself."""

    def register(run: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
        key = _free_name(run.__name__)
        BEHAVIOURS[key] = Behaviour(key, subject, run, only)
        return run

    return register


def marked_lines(function: Callable[..., Any]) -> tuple[str, set[int]]:
    """Return the file of a function and the numbers of its lines that end with the mark."""
    lines, first = inspect.getsourcelines(function)
    numbers = {first + i for i, line in enumerate(lines) if line.rstrip().endswith(MARK)}
    return Path(inspect.getsourcefile(function) or "").name, numbers


def _free_name(name: str) -> str:
    for register in (SCRIPTS, REFUSALS, BEHAVIOURS):
        if name in register:
            raise ValueError(f"two scripts are called {name}")
    return name


def _drawn(draw: Draw, generator: torch.Generator) -> Tensor:
    if isinstance(draw, tuple):
        return torch.randn(draw, generator=generator)
    return draw(generator)
