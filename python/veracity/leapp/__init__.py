"""Veracity under the name `leapp`, for code that imports LEAPP and is not to be changed.

`install_as_leapp()` puts modules into `sys.modules` whose names are those of Veracity; without the
call, `import leapp` is what it always was. `python -m veracity.leapp SCRIPT [ARGS]` runs a script
that way, `python -m veracity.leapp -m MODULE [ARGS]` a module.

Only what LEAPP documents is there. LEAPP's own internals have no counterpart: asking for them is
an `AttributeError` or `ImportError` that says so.
"""

from __future__ import annotations

import importlib
import logging
import runpy
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from veracity.errors import refuse

#: The version whose interface is offered.
LEAPP_VERSION = "0.7.2"
CONFIG_VERSION = "1.3"

_ANNOTATING = ("annotate", "start", "stop", "compile_graph")
_KINDS = ("InputKindEnum", "OutputKindEnum")
_SEMANTICS = ("GraphConfigs", "TemporalAxis", "TensorSemantics")

#: Where each name comes from.
_HOMES = {
    **dict.fromkeys(_ANNOTATING, "veracity"),
    **dict.fromkeys(_KINDS, "veracity.kinds"),
    **dict.fromkeys(_SEMANTICS, "veracity.semantics"),
    "FunctionPatch": "veracity.tracing.patches",
    "ExportManager": "veracity.leapp.export_manager",
    "InferenceManager": "veracity.inference",
}
_MANAGERS = ("ExportManager", "InferenceManager")

#: For each module the names that it offers.
_MODULES: dict[str, tuple[str, ...]] = {
    "leapp": (*_ANNOTATING, *_KINDS, *_SEMANTICS, "FunctionPatch", *_MANAGERS),
    "leapp.leapp": _ANNOTATING,
    "leapp.export_manager": ("ExportManager",),
    "leapp.inference_manager": ("InferenceManager",),
    "leapp.utils": (),
    "leapp.utils.enums": _KINDS,
    "leapp.utils.tensor_description": (*_KINDS, *_SEMANTICS),
    "leapp.leapp_graph": (),
    "leapp.leapp_graph.datatypes": (),
    "leapp.leapp_graph.datatypes.patching": ("FunctionPatch",),
}
_VALUES: dict[str, dict[str, Any]] = {
    "leapp": {"__version__": LEAPP_VERSION, "__config_version__": CONFIG_VERSION},
    "leapp.utils.tensor_description": {"TEMPORAL_AXIS_SENTINEL": "__temporal_axis__"},
}

_USAGE = """usage: python -m veracity.leapp SCRIPT [ARGS]
       python -m veracity.leapp -m MODULE [ARGS]"""


class _LeappModule(ModuleType):
    """A module whose names are those of `veracity`, looked up when they are asked for."""

    __all__: list[str]

    def __getattr__(self, name: str) -> Any:
        if name in _MODULES[self.__name__]:
            return getattr(importlib.import_module(_HOMES[name]), name)
        raise AttributeError(
            f"`{self.__name__}` is Veracity here, which has no `{name}`; offered are "
            f"{', '.join(self.__all__)}"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_MODULES[self.__name__]})


def install_as_leapp() -> None:
    """Make `import leapp` give Veracity, for the rest of this process.

    Refused when LEAPP itself was imported before: code that holds its names would go on using it
    beside Veracity.
    """
    present = sys.modules.get("leapp")
    if isinstance(present, _LeappModule):
        return
    if present is not None:
        raise refuse(
            "VER0901",
            "LEAPP itself was imported before install_as_leapp()",
            location=str(getattr(present, "__file__", "") or ""),
            hints=("call install_as_leapp() before anything imports `leapp`",),
        )
    made = {name: _module(name) for name in _MODULES}
    for name, module in made.items():
        parent, _, child = name.rpartition(".")
        # `leapp.leapp` is a module in LEAPP as well.
        if parent:
            setattr(made[parent], child, module)
    sys.modules.update(made)
    # Who silences, levels or collects the log of LEAPP does so with ours.
    logging.getLogger("veracity").parent = logging.getLogger("leapp")


def _module(name: str) -> _LeappModule:
    module = _LeappModule(name, f"Veracity, offered as `{name}`.")
    is_package = any(other.startswith(f"{name}.") for other in _MODULES)
    module.__spec__ = ModuleSpec(name, None, is_package=is_package)
    module.__package__ = name if is_package else name.rpartition(".")[0]
    if is_package:
        # Empty: a submodule that is not offered is not looked for in LEAPP's folder.
        module.__path__ = []
    values = _VALUES.get(name, {})
    vars(module).update(values)
    module.__all__ = [*_MODULES[name], *values]
    return module


def main(arguments: list[str]) -> int:
    """Run a script or a module with Veracity as `leapp`."""
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        install_as_leapp()
        sys.argv = arguments[1:]
        sys.path.insert(0, "")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write(f"{_USAGE}\n")
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    script = Path(arguments[0])
    if not script.is_file():
        sys.stderr.write(f"veracity: there is no script {arguments[0]!r}\n{_USAGE}\n")
        return 2
    install_as_leapp()
    sys.argv = arguments
    sys.path.insert(0, str(script.resolve().parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0
