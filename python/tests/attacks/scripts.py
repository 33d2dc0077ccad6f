"""Records a program as a script: its code, the loop and the marks at the top of one file.

Variables of the loop are then variables of a module, and what drives a program stands beside it.
That is how people try things out.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from attacks.episodes import seed_all
from attacks.registry import PROGRAMS, Program

_SCRIPT = """

import contextlib
import torch
import veracity
from veracity import annotate
from attacks.episodes import _named, drawn
from attacks.registry import PROGRAMS

program = PROGRAMS[{name!r}]
{make}
recorded = list(program.rec.items())
del program, PROGRAMS
with veracity.session({name!r}, save_path={folder!r}, **{session!r}):
    for tick in range({passes}):
        with {context}():
            given = drawn(recorded, tick, episode=1)
{body}
"""
_INLINE = """
            {inputs} = annotate.input_tensors({node!r}, given)
{module}
            results = _named(policy({inputs}))
            annotate.output_tensors({node!r}, results, export_with={backend!r})
"""
_BODIES = {
    "inline": _INLINE,
    "module": _INLINE,
    "method": "            step(policy, **given) if bound else step(**given)",
    "own": "            policy(given)",
}
_MAKES = {
    "inline": "policy = program.make()",
    "module": "policy = program.make()",
    "method": """
policy = program.make()
bound = hasattr(policy, "step")
step = annotate.method(node_name={node!r}, export_with={backend!r})(
    type(policy).step if bound else policy
)
""",
    "own": "policy = program.make({backend!r})",
}
_CONTEXTS = {
    "no_grad": "torch.no_grad",
    "inference": "torch.inference_mode",
    "grad": "contextlib.nullcontext",
}


def record(program: Program, backend: str, folder: Path) -> None:
    """Write the script of a program, and run it."""
    script = folder / "script.py"
    text = Path(inspect.getfile(sys.modules[program.module])).read_text()
    text += _driver(program, backend, folder)
    script.write_text(text)
    module: Any = ModuleType(f"script_of_{program.name}_{backend.replace('-', '_')}")
    module.__file__ = str(script)
    known = dict(PROGRAMS)
    PROGRAMS.clear()  # the script registers its own
    sys.modules[module.__name__] = module
    seed_all()
    try:
        exec(compile(text, str(script), "exec"), vars(module))
    finally:
        PROGRAMS.clear()
        PROGRAMS.update(known)
        del sys.modules[module.__name__]


def _driver(program: Program, backend: str, folder: Path) -> str:
    words = {
        "node": program.node,
        "backend": backend,
        "inputs": ", ".join(f"given_{number}" for number in range(len(program.rec))),
        "module": f"            annotate.module({program.node!r}, policy)"
        if program.style == "module"
        else "",
    }
    return _SCRIPT.format(
        name=program.name,
        folder=str(folder),
        session=dict(program.session or {}),
        passes=program.passes,
        context=_CONTEXTS[program.context],
        make=_MAKES[program.style].format(**words),
        body=_BODIES[program.style].format(**words),
    )
