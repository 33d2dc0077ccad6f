"""Which functions of others give the same for the same arguments.

What an export holds of them is then right on every tick. A clock, a generator of random numbers, a
file, an environment variable, another thread, or a library that is in no table here may give
something else next time: its answer is followed to what it decides.

Objects that a function belongs to are arguments: what they hold is looked at elsewhere (`heap.py`).
"""

from __future__ import annotations

from types import BuiltinFunctionType, ModuleType
from typing import Any

from veracity.tracing.operations import words

#: Packages of Python's own, and of others, whose functions depend on nothing but their arguments.
_PURE = words(
    """
    abc annotationlib argparse array ast base64 binascii bisect blake2 builtins calendar cmath
    codecs collections collections_abc colorsys concurrent configparser contextlib contextvars
    copy copyreg dataclasses datetime decimal difflib dis einops encodings enum fractions
    functools graphlib hashlib heapq importlib inspect io itertools json keyword leapp linecache
    locale logging math md5 ntpath numbers numpy opcode operator pickle platform posixpath
    pprint re reprlib rich scipy sha1 sha256 sha512 shlex sklearn sre sre_compile sre_constants
    sre_parse statistics string struct sysconfig textwrap token tokenize torch tqdm traceback
    types typing typing_extensions unicodedata veracity warnings weakref weakrefset yaml
    zipimport zlib zoneinfo
    """
)
#: Functions of pure packages that are not.
_IMPURE_NAMES = {
    package: words(names)
    for package, names in {
        "builtins": "open input id",
        "datetime": "now utcnow today",
        "decimal": "getcontext localcontext",
        "functools": "cache_info",
        "inspect": "stack currentframe getouterframes trace",
        "io": "open read readline readlines readinto read1 readall open_code",
        "numpy": "fromfile load loadtxt genfromtxt",
        "torch": """
            has_torch_function has_torch_function_unary has_torch_function_variadic
            _has_torch_function _has_torch_function_unary _has_torch_function_variadic
            _len_torch_function_stack _len_torch_dispatch_stack _get_function_stack_at
            _get_dispatch_stack_at _is_torch_function_enabled _is_torch_function_mode_enabled
            get_rng_state initial_seed seed get_default_dtype is_inference_mode_enabled
            """,
    }.items()
}
#: Functions that are called for what they do: making an object, and the life of a thread.
ANSWERING_NOTHING = words("__init__ __del__ __exit__ start join")
#: Parts of pure packages that are not.
_IMPURE_PARTS = (
    *("numpy.random", "torch.cuda", "torch.overrides", "torch.random", "importlib.resources"),
)


def may_differ(function: Any) -> bool:
    """Say whether a function of others may give something else for the same arguments."""
    function = replaced(function)
    name = str(getattr(function, "__name__", "") or "")
    return module_may_differ(_module_of(function), name)


def module_may_differ(module: str, name: str) -> bool:
    """Say whether a function of a module may give something else for the same arguments."""
    package = module.partition(".")[0].lstrip("_")
    if name in ANSWERING_NOTHING:
        return False
    if package not in _PURE:
        return True
    return name in _IMPURE_NAMES.get(package, ()) or module.startswith(_IMPURE_PARTS)


def replaced(function: Any) -> Any:
    """Return the function that stands behind one that is replaced for the time of a session."""
    names = getattr(function, "__globals__", {})
    own = str(names.get("__name__", "")).startswith("veracity.")
    return getattr(function, "__wrapped__", function) if own else function


def _is_record(owner: Any) -> bool:
    """Say whether what a compiled function belongs to is no object of a user's.

    pybind11 keeps its own record of a function there; its module is what the function says.
    """
    kind = type(owner)
    return owner is None or kind.__name__ == "PyCapsule" or kind.__module__.startswith("pybind11")


def _module_of(function: Any) -> str:
    """Return the module of a function: of a compiled method, that of its class."""
    names = getattr(function, "__globals__", None)
    if names is not None:  # `__module__` is that of what it wraps
        return str(names.get("__name__", ""))
    owner = getattr(function, "__self__", None)
    if isinstance(function, BuiltinFunctionType) and not _is_record(owner):
        if isinstance(owner, ModuleType):
            return str(owner.__name__)
        kind = owner if isinstance(owner, type) else type(owner)
        # A class of the user's may have it from another: `class Config(dict)`.
        found = getattr(kind, str(function.__name__), None)
        return str(getattr(found, "__objclass__", kind).__module__)
    found = getattr(function, "__module__", None)
    if found is None:
        kind = getattr(function, "__objclass__", type(function))
        found = kind.__module__
    return str(found)
