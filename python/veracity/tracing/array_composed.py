"""Functions of NumPy that call the user's own function, written with operations that are recorded.

The user's function gets traced parts (an element, a row, the elements of a mask) and what it does
with them is recorded like everything else; a branch in it is told as one. The results are NumPy's:
every step is computed by NumPy as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy

from veracity.tracing.array_operations import array_of_items, traced_target
from veracity.tracing.arrays import new_array, plain, refusal

# Held from before a session puts its own in their places.
_moveaxis, _zeros_like, _broadcast_shapes = numpy.moveaxis, numpy.zeros_like, numpy.broadcast_shapes
_broadcast_to, _arange = numpy.broadcast_to, numpy.arange


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function on each row along an axis."""
    rows = _moveaxis(arr, axis, -1)
    outer = plain(rows).shape[:-1]
    found = [func1d(rows[place], *args, **kwargs) for place in numpy.ndindex(*outer)]
    made = array_of_items(found)
    inner = plain(made).shape[1:]
    made = made.reshape((*outer, *inner))
    if not inner:
        return made
    first = axis % plain(arr).ndim
    order = list(range(len(outer), len(outer) + len(inner)))
    return _moveaxis(made, order, [first + place for place in range(len(inner))])


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute each part of an array with the function of its condition."""
    # A list of masks comes as an array with one axis more.
    several = isinstance(condlist, list | tuple) or plain(condlist).ndim > plain(x).ndim
    masks = list(condlist) if several else [condlist]
    masks = [mask if hasattr(mask, "shape") else new_array(mask, bool) for mask in masks]
    if len(funclist) == len(masks) + 1:
        some = masks[0]
        for mask in masks[1:]:
            some = some | mask
        masks = [*masks, ~some]
    made = _zeros_like(x)
    for mask, function in zip(masks, funclist, strict=True):
        made[mask] = function(x[mask], *args, **kwargs) if callable(function) else function
    return made


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write where a mask says so; values are taken from the places that they are written to."""
    if numpy.ndim(plain(values)) and plain(values).shape != plain(a).shape:
        raise refusal("numpy.putmask", "its values are repeated")
    target = traced_target(a)  # a plain array becomes a state with what is written here
    target[mask] = values[mask] if numpy.ndim(plain(values)) else values


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write one value where a mask says so."""
    if numpy.size(plain(vals)) != 1:
        raise refusal("numpy.place", "how many of its values are used depends on data")
    traced_target(arr)[mask] = vals if not numpy.ndim(plain(vals)) else vals[0]


def fill_diagonal(a: Any, val: Any, wrap: Any = False) -> None:
    """Write over the diagonal of a matrix."""
    shape = plain(a).shape
    if len(shape) != 2 or (wrap and shape[0] > shape[1]):
        raise refusal("numpy.fill_diagonal", "it is no plain matrix")
    places = _arange(min(shape))
    traced_target(a)[places, places] = val


COMPOSED: dict[Any, Callable[..., Any]] = {
    numpy.apply_along_axis: apply_along_axis,
    numpy.piecewise: piecewise,
    numpy.putmask: putmask,
    numpy.place: place,
    numpy.fill_diagonal: fill_diagonal,
}


def vectorized(function: Any, args: tuple[Any, ...]) -> Any:
    """Do what a `numpy.vectorize` does, element by element."""
    shape = _broadcast_shapes(*[numpy.shape(plain(one)) for one in args])
    given = [_broadcast_to(one, shape) for one in args]
    places = list(itertools.product(*map(range, shape)))
    found = [function.pyfunc(*[one[place] for one in given]) for place in places]
    several = bool(found) and isinstance(found[0], tuple)
    columns = list(zip(*found, strict=True)) if several else [found]
    types = function.otypes or [None] * len(columns)
    made = [
        array_of_items(list(column), None if kind is None else numpy.dtype(kind)).reshape(shape)
        for column, kind in zip(columns, types, strict=True)
    ]
    return tuple(made) if several else made[0]
