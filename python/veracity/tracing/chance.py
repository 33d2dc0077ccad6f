"""Tells whether the generators of Python and NumPy moved.

A number that `random` or `numpy.random` draws is a plain number to the tape, and becomes part of
the model. torch's own draws are seen on the tape; generators that code makes for itself are not.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np


def state() -> tuple[Any, ...]:
    """Return where the generators are; equal to an earlier state if nothing was drawn since."""
    of_numpy: Any = np.random.get_state(legacy=False)  # noqa: NPY002 (it is looked at)
    inner = of_numpy["state"]
    return random.getstate(), inner["pos"], inner["key"].tobytes(), of_numpy["gauss"]
