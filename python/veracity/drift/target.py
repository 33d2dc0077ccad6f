"""Finds what a command is to compare: `package.module:builder`, `file.py:builder`, `zoo:name`.

The code behind a target is the user's own and may do anything, so whatever it raises is told with
its line, not as a traceback through this package.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from veracity.drift import zoo
from veracity.errors import VeracityError, refuse
from veracity.tracing.versions import default_device

_ZOO = "zoo:"
_FORMS = "write `package.module:builder`, `path/file.py:builder` or `zoo:resnet50`"
_RESULTS = "a builder returns a module, (module, args) or (module, args, kwargs)"
_T = TypeVar("_T")


@dataclass
class Target:
    """A module and what to call it with.

    Attributes:
        name: What to call it in reports.
        model: The module, in eval mode.
        args: Its positional arguments.
        kwargs: Its named arguments.
        notes: What is worth knowing.
    """

    name: str
    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find(
    text: str,
    *,
    seed: int,
    weights: str | None = None,
    input_shapes: list[tuple[int, ...]] | None = None,
) -> Target:
    """Build what a target names. Random numbers of torch start from `seed`."""
    shapes = input_shapes or []
    torch.manual_seed(seed)
    if text.startswith(_ZOO):
        name = text.removeprefix(_ZOO)
        model, args = zoo.build(name, seed, weights)
        found = Target(name, model, args)
    else:
        place, _, attribute = text.rpartition(":")
        if not place or not attribute:
            raise refuse("VER1233", f"'{text}' names nothing", hints=(_FORMS,))
        found = _built(attribute, _attribute(_module(place), attribute, text), text)
        if weights is not None:
            zoo.load(found.model, weights)
    _take_shapes(found, shapes, seed, text)
    if found.model.training:
        found.model.eval()
        found.notes.append("the module was in training mode and was put into eval mode")
    return found


# The builder


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        return _users(lambda: importlib.import_module(place), f"importing '{place}'")
    path = Path(place)
    if not path.is_file():
        raise refuse("VER0001", "there is no such file", location=place, hints=(_FORMS,))
    # The file's neighbours can be imported, as when Python runs it.
    sys.path.insert(0, str(path.resolve().parent))
    name = f"_{path.stem}" if path.stem in sys.modules else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise refuse("VER1233", "this file cannot be imported", location=place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up
    loader = spec.loader
    _users(lambda: loader.exec_module(module), f"running '{place}'")
    return module


def _attribute(module: Any, attribute: str, text: str) -> Any:
    found = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            others = [name for name in vars(module) if not name.startswith("_")]
            nearest = zoo.nearest(part, others)
            hints = (f"the nearest name is '{nearest}'",) if nearest else (_FORMS,)
            raise refuse("VER1233", f"'{text}': there is no '{part}'", hints=hints)
        found = getattr(found, part)
    return found


def _built(name: str, builder: Any, text: str) -> Target:
    made = builder
    if not isinstance(made, (nn.Module, tuple)):
        if not callable(made):
            message = f"'{text}' is a {type(made).__name__}, not a builder"
            raise refuse("VER1233", message, hints=(_RESULTS,))
        made = _users(builder, f"calling '{text}'")
    model, args, kwargs = _parts(made)
    if not isinstance(model, nn.Module):
        kind = type(model).__name__
        message = f"'{text}' gave a {kind}, not a torch.nn.Module"
        raise refuse("VER1233", message, hints=(_RESULTS,))
    title = name if isinstance(builder, nn.Module) else type(model).__name__
    return Target(title, model, args, kwargs)


def _parts(made: Any) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]]:
    if not isinstance(made, tuple):
        return made, (), {}
    if not 1 <= len(made) <= 3:
        raise refuse("VER1233", f"a builder gave {len(made)} values", hints=(_RESULTS,))
    model, args, kwargs = made + ((), {})[len(made) - 1 :]
    if not isinstance(kwargs, Mapping):
        message = f"a builder gave named arguments as a {type(kwargs).__name__}"
        raise refuse("VER1233", message, hints=(_RESULTS,))
    return model, tuple(args) if isinstance(args, (tuple, list)) else (args,), kwargs


def _take_shapes(found: Target, shapes: list[tuple[int, ...]], seed: int, text: str) -> None:
    if not shapes:
        return
    if found.args or found.kwargs:
        raise refuse(
            "VER1233",
            f"'{text}' gives arguments of its own, so that `--input-shape` says nothing",
            hints=("leave `--input-shape` out",),
        )
    generator = torch.Generator("cpu").manual_seed(seed)
    drawn = (torch.randn(shape, generator=generator, device="cpu") for shape in shapes)
    found.args = tuple(one.to(default_device()) for one in drawn)


# Errors of the user's code


def _users(call: Callable[[], _T], doing: str) -> _T:
    """Run the user's code; what it raises becomes a finding with the user's line."""
    try:
        return call()
    except VeracityError:
        raise
    except (Exception, SystemExit) as error:  # any: it is not our code
        places = _places(error)
        said = str(error).strip().split("\n", 1)[0]
        raise refuse(
            "VER1233",
            f"{doing}: {type(error).__name__}{': ' + said if said else ''}",
            location=places[-1] if places else "",
            hints=tuple(f"called from {place}" for place in reversed(places[:-1])),
        ) from error


def _places(error: BaseException) -> list[str]:
    """Return the lines of the user's own code that led to an error, the deepest last."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{frame.filename}:{frame.lineno}" for frame in frames if _is_users(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename:
        own.append(f"{error.filename}:{error.lineno}")
    return list(dict.fromkeys(own))


def _is_users(file: str) -> bool:
    if file.startswith("<"):
        return False
    others = [sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    others.append(str(Path(__file__).resolve().parents[1]))
    real = os.path.realpath(file)
    return not any(real.startswith(os.path.realpath(other) + os.sep) for other in others)
