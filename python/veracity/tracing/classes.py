"""Whose a class is: the user's, or a library's."""

from __future__ import annotations

import argparse
import sys
import types
import weakref

from veracity.tracing.operations import owner_of_file

_USER = 0
_users: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def is_users(kind: type) -> bool:
    """Say whether a class is written by the user."""
    known = _users.get(kind)
    if known is None:
        known = _users[kind] = _find_is_users(kind)
    return known


def _find_is_users(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if kind in (types.SimpleNamespace, argparse.Namespace):
        return True
    if kind.__module__ in sys.builtin_module_names:
        return False
    return kind.__module__ == "__main__" or file is None or owner_of_file(file) == _USER
