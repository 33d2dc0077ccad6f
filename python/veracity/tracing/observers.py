"""Which calls only observe what they are given, and which only compute from it.

Decided by the object that is called where it can be found, by its name else. A name that is in no
table says nothing: such a call may do anything.
"""

from __future__ import annotations

import builtins
import logging
from types import FunctionType
from typing import Any

from veracity.tracing.operations import is_own

#: Packages that write down what they are given, or show it.
OBSERVING = frozenset(
    {
        *("logging", "warnings", "wandb", "tensorboard", "tensorboardX", "rich", "loguru", "tqdm"),
        *("mlflow", "rerun", "matplotlib", "plotly", "structlog", "aim", "neptune", "comet_ml"),
        *("clearml", "pprint", "traceback", "absl", "foxglove", "seaborn", "visdom", "tabulate"),
        *("json", "csv", "pickle", "yaml", "icecream", "h5py"),
    }
)
_OBSERVING_MODULES = ("torch.utils.tensorboard",)
#: Functions and methods that write down or show what they are given, whoever has them.
VERBS = frozenset(
    {
        *("print", "pprint", "debug", "info", "warning", "warn", "error", "critical", "exception"),
        *(
            "log",
            "fatal",
            "success",
            "trace",
            "log_dict",
            "log_metric",
            "log_metrics",
            "log_scalar",
        ),
        *("log_scalars", "log_stats", "log_value", "log_values", "logkv", "logkv_mean", "logger"),
        *("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure"),
        *("add_text", "add_video", "add_graph", "write", "writelines", "writerow", "writerows"),
        *("write_scalar", "write_scalars", "set_postfix", "set_postfix_str", "set_description"),
        *("publish", "sendall", "sendto", "emit", "notify", "display", "imshow", "plot", "scatter"),
        *("savetxt", "savez", "savez_compressed", "set_title", "dump", "cprint", "secho", "echo"),
        *("logdebug", "loginfo", "logwarn", "logerr", "logfatal", "track", "report_scalar"),
        *("_assert", "_assert_async", "_check", "_check_value", "_check_is_size", "assert_close"),
        *("assert_allclose", "assert_array_equal", "assert_equal", "set_trace", "breakpoint"),
    }
)
#: Those of Python's own, and of torch and NumPy: their other functions compute.
_SHOWING = frozenset({"print", "write", "writelines", "breakpoint"})
_SAVING = frozenset({"save", "savetxt", "savez", "savez_compressed", "_assert", "set_trace"})
#: What writes into a file that it is given: which one may be read back.
INTO_FILES = frozenset({"dump", "save", "print", "savetxt", "savez", "savez_compressed", "pprint"})
#: Modules whose functions compute from their arguments and keep nothing.
PURE_MODULES = frozenset(
    {
        *("builtins", "math", "cmath", "operator", "statistics", "itertools", "functools", "copy"),
        *("decimal", "fractions", "numbers", "re", "string", "textwrap", "collections", "time"),
        *("numpy", "ast", "struct", "io", "enum", "dataclasses", "heapq", "bisect", "typing"),
        *("scipy", "base64", "binascii", "hashlib", "zlib", "uuid", "datetime"),
    }
)
#: Functions that make a text or bytes of what they are given, in packages that write files else.
_MAKING_TEXT = frozenset({"dumps", "safe_dump", "pformat", "format_exc", "tabulate"})
_IMPURE = frozenset({"setattr", "exec", "eval", "delattr", "__import__"})
#: Methods that put what they are given into their object.
FILLING = frozenset(
    {
        *("append", "appendleft", "extend", "extendleft", "insert", "add", "setdefault", "update"),
        *("put", "put_nowait", "push", "heappush", "__setitem__"),
    }
)
#: Methods that change the object that they belong to, and nothing else.
MUTATING = frozenset(
    {
        *("clear", "pop", "popleft", "popitem", "remove", "discard", "sort", "reverse", "rotate"),
        *("get_nowait", "task_done", "move_to_end", "truncate", "seek", "intersection_update"),
    }
)
#: Functions that change their first argument.
CHANGING_FIRST = frozenset(
    {
        *("heappush", "heappop", "heapify", "heapreplace", "heappushpop", "insort", "insort_left"),
        *("insort_right", "shuffle", "setitem", "iconcat", "iadd"),
    }
)
#: Methods of torch's modules after which they compute something else.
CHANGING_MODULES = frozenset(
    {
        *("train", "eval", "load_state_dict", "apply", "register_buffer", "register_parameter"),
        *("register_module", "add_module", "set_submodule", "half", "bfloat16", "float", "double"),
        *("register_forward_hook", "register_forward_pre_hook"),
    }
)
#: Those of them that give nothing back, whatever they belong to.
GIVING_NOTHING = frozenset(
    {
        *("append", "appendleft", "extend", "extendleft", "insert", "put", "put_nowait"),
        *("heappush", "__setitem__"),
    }
)
#: Methods of texts and numbers.
PURE_METHODS = frozenset(
    {
        *("format", "join", "split", "strip", "lstrip", "rstrip", "replace", "lower", "upper"),
        *("ljust", "rjust", "center", "zfill", "encode", "decode", "startswith", "endswith"),
        *("get", "keys", "values", "items", "copy", "index", "count", "is_integer", "hex"),
    }
)
#: Libraries of compiled code that read memory of arrays, unseen.
FOREIGN = frozenset(
    {
        *("scipy", "cv2", "PIL", "skimage", "numba", "jax", "warp", "cupy", "pandas", "sklearn"),
        *("open3d", "pinocchio", "casadi", "mujoco", "ctypes", "_ctypes", "numexpr", "pybullet"),
    }
)
MARKS_IN = frozenset({"input_tensors", "state_tensors"})
MARKS_OUT = frozenset({"output_tensors"})
MARKS_STATE = frozenset({"update_state"})
MARKS = MARKS_IN | MARKS_OUT | MARKS_STATE


def module_of(called: Any) -> str:
    """Return the module of what is called: of a method, the one of its class."""
    called = getattr(called, "function", called)  # of a method that was found on a class
    owner = getattr(called, "__self__", None)
    if owner is not None and not isinstance(owner, type) and type(owner).__name__ != "module":
        return str(type(owner).__module__ or "")
    found = getattr(called, "__module__", None)
    if found is None:
        found = getattr(type(called), "__module__", "") if not callable(called) else "builtins"
    return str(found or "")


def _package(called: Any) -> str:
    """Return the package of what is called; the compiled part of a module counts as the module."""
    return module_of(called).partition(".")[0].lstrip("_")


def observes(called: Any, name: str) -> bool:
    """Say whether a call only writes down or shows what it is given."""
    if called is None:
        return name in VERBS
    module = module_of(called)
    root = _package(called)
    if root in OBSERVING or module.startswith(_OBSERVING_MODULES):
        return not name.startswith(("load", "get")) and name not in _MAKING_TEXT
    if root in ("numpy", "torch"):  # `log` and `trace` compute
        return name in _SAVING or name.lstrip("_").startswith(("assert_", "check"))
    return name in _SHOWING and root in ("io", "builtins", "sys", "os", "codecs", "gzip")


def is_logging(called: Any) -> bool:
    """Say whether a call goes to Python's `logging`: to whatever handlers there are."""
    return called is None or _package(called) == "logging"


def log_handlers() -> list[Any]:
    """Return the functions by which the user's own handlers of `logging` take records."""
    handlers = [one() for one in list(getattr(logging, "_handlerList", ()))]
    found = [vars(one).get("emit", type(one).emit) for one in handlers if one is not None]
    functions = [getattr(one, "__func__", one) for one in found]
    return [
        one
        for one in functions
        if isinstance(one, FunctionType) and is_own(one.__code__.co_filename)
    ]


def computes(called: Any, name: str) -> bool:
    """Say whether a call only makes something of its arguments, and keeps nothing of them."""
    if called is None:
        return name in PURE_METHODS or (hasattr(builtins, name) and name not in _IMPURE)
    root = _package(called)
    if root in OBSERVING:
        return name in _MAKING_TEXT or name.startswith("load")
    return root in PURE_MODULES and name not in _IMPURE


def is_foreign(called: Any) -> bool:
    """Say whether a call goes to another library's compiled code."""
    if called is None or type(getattr(called, "function", called)).__name__ == "ufunc":
        return False
    return module_of(called).partition(".")[0] in FOREIGN
