"""The register of policies: `@policy(family, ...)`."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attacks.draws import Draw
from attacks.registry import ALL, Program, program

#: Ticks of the fresh episode that a policy runs, in Python and as a bundle.
TICKS = 50


@dataclass(frozen=True)
class Policy:
    """One policy of the zoo.

    Attributes:
        program: Its code, and what it gets.
        family: The library or the kind of code that it comes from.
        needs: Packages that it imports, which may not be installed.
    """

    program: Program
    family: str
    needs: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(name for name in self.needs if importlib.util.find_spec(name) is None)


POLICIES: dict[str, Policy] = {}


def policy(
    family: str,
    *,
    inputs: Mapping[str, Draw] | None = None,
    needs: tuple[str, ...] = (),
    **options: Any,
) -> Callable[[Any], Any]:
    """Register a class, a function that makes a step, or a step.

    Args:
        family: The library or the kind of code that it comes from.
        inputs: What arrives in a tick, by name.
        needs: Packages that it imports beside torch and NumPy. It imports them when it is made.
        options: Attributes of `attacks.registry.Program`, such as `style` or `passes`.
    """

    def register(code: Any) -> Any:
        settings = {"clean": True, "backends": ALL, "ticks": TICKS, "rec": inputs} | options
        made = program(code, family, **settings)
        if made.name in POLICIES:
            raise ValueError(f"two policies are called {made.name}")
        POLICIES[made.name] = Policy(made, family, needs)
        return code

    return register


def load() -> dict[str, Policy]:
    """Import every family, and return all policies by name."""
    families = importlib.import_module("zoo.families")
    for module in pkgutil.iter_modules(families.__path__):
        importlib.import_module(f"zoo.families.{module.name}")
    return POLICIES
