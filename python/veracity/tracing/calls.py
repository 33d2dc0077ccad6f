"""Functions that are nodes, and values that stand for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy
import torch

from veracity.annotations import Entry
from veracity.errors import refuse
from veracity.tracing import again, arrays, method
from veracity.tracing.flatten import flatten

if TYPE_CHECKING:
    from veracity.tracing.session import Session


class Calls:
    """Decorated functions and mirrored values."""

    def __init__(self, session: Session) -> None:
        """Work for `session`."""
        self._session = session

    def call_method(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        export_with: str | None,
        backend_params: dict[str, Any],
    ) -> Any:
        """Run a decorated function as a node."""
        named = method.named_arguments(function, args, kwargs)
        code = getattr(function, "__code__", None)
        place = (
            f"{code.co_filename}:{code.co_firstlineno}" if code else self._session.recorder.here()
        )
        with self._session.marking():
            node, running = self._session.open_pass(name, place)
            self._session.skips.node_begins(node)
            self._session.python_states.look_at_function(node, function, args)
            marked = {
                key: self._session.inputs.mark_entry(
                    node, running, Entry(key, value, None, True), place
                )
                for key, value in named.items()
            }
        if not node.finished:
            node.again = again.of_method(function, args, kwargs)
        self._session.witness.begin(node)
        self._session.paths.begin(node, light=running.light)
        try:
            result = method.call_with(function, args, kwargs, marked)
        except BaseException:
            self._session.abandon(node)
            raise
        results = method.named_results(function, result, place)
        entries = [Entry(key, value, None) for key, value in results.items()]
        self._session.outputs.output_tensors(name, entries, [], export_with, backend_params)
        return result

    def mirror(self, source: Any, target: Any) -> Any:
        """Let `target` pass for `source`; see `veracity.annotate`."""
        with self._session.marking() as location:
            left = flatten({"value": source}, location=location)
            right = flatten({"value": target}, location=location)
            if [leaf.name for leaf in left] != [leaf.name for leaf in right]:
                message = "the two values are built differently: other keys, or another length"
                raise refuse("VER0902", message, location=location)
            for one, other in zip(left, right, strict=True):
                self._mirror_leaf(one.value, other.value, location)
        return target

    def _mirror_leaf(self, source: Any, target: Any, location: str) -> None:
        left = arrays.tensor_of(source) if arrays.is_traced(source) else source
        right = target
        if isinstance(right, numpy.ndarray):
            right = (
                torch.from_numpy(right) if not arrays.is_traced(right) else arrays.tensor_of(right)
            )
        if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
            return
        same = (
            left.shape == right.shape
            and left.dtype == right.dtype
            and left.device == right.device
            and torch.equal(left, right)
        )
        if not same:
            message = "the two values differ; only an equal value can stand for another"
            raise refuse("VER0902", message, location=location)
        if self._session.recorder.is_traced(left):
            self._session.recorder.assert_call(torch.clone, (left,), right)
        self._session.recorder.adopt_origin(left, right)
