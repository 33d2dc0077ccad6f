"""Says which calls certainly give new memory; everything else may hand on that of an argument.

A wrong "new" would let a model hand out the memory of its inputs or weights. A wrong "may be old"
costs one copy. So only what torch's own schemas promise, and a short list, counts as new.

`Memory` follows shared memory through a slice, to find the views that later writes make matter.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from veracity.export.lowering import RESHAPING_IN_PLACE, identify
from veracity.tracing.slice import Call, Copy, Ref, Slice, Step, View

#: Composed operations without alias marks in their schema that are known to compute.
_COMPUTES = frozenset(
    [
        "linear",
        "matmul",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "softmax",
        "log_softmax",
        "layer_norm",
        "group_norm",
        "batch_norm",
        "instance_norm",
        "gru",
        "lstm",
        "rnn_tanh",
        "rnn_relu",
        "embedding",
        "cross_entropy",
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "interpolate",
        "one_hot",
        "std",
        "var",
        "cdist",
        "norm",
        "stack",
        "cat",
        "concat",
        "hstack",
        "vstack",
        "dstack",
        "tile",
        "kron",
        "outer",
        "vander",
        "cosine_similarity",
        "normalize",
        "rms_norm",
        "scaled_dot_product_attention",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "linalg_norm",
        "tensor",
    ]
)


def makes_memory(call: Call) -> bool:
    """Tell whether the results of a call certainly do not share memory with its arguments."""
    operation = identify(call.func)
    if operation.kind == "getter" or may_write(call):
        return False
    return operation.name in _COMPUTES or _schemas_promise_new(_plain_name(operation.name))


def returns_its_first_argument(call: Call) -> bool:
    """Tell whether a call is an in-place method, which hands its tensor on."""
    name = identify(call.func).name
    if name in RESHAPING_IN_PLACE:
        return False  # the tensor it hands on lies elsewhere on the memory
    in_place_method = name.endswith("_") and name[-2:] != "__"
    return bool(call.args) and (_is_in_place_operator(name) or in_place_method)


def _is_in_place_operator(name: str) -> bool:
    return name.startswith("__i") and name.endswith("__") and name != "__invert__"


def hides_sharing(call: Call) -> bool:
    """Tell whether results may share memory with arguments without the schemas saying so.

    Composed operations promise nothing, and TorchScript takes their results for new memory.
    """
    name = identify(call.func).name
    usual = identify(call.func).kind == "getter" or name.startswith("__")
    return not (usual or may_write(call) or makes_memory(call) or _schemas_tell_sharing(name))


def may_write(call: Call) -> bool:
    """Tell whether a call may write: by its name, by assignment, `out=`, `inplace`, `training`."""
    name = identify(call.func).name
    return (
        returns_its_first_argument(call)
        or name == "__setitem__"
        or "out" in call.kwargs
        or (not name.startswith("__") and any(value is True for value in _flags(call)))
    )


def _flags(call: Call) -> list[Any]:
    """Return what could be `inplace`, or `training` of a normalisation."""
    if getattr(call.func, "__module__", None) == "torch.nn.functional":
        return [*call.args, *call.kwargs.values()]
    # Their other flag is about kernels.
    if any(kind in identify(call.func).name for kind in ("batch_norm", "instance_norm")):
        named = [call.kwargs.get(name) for name in ("training", "use_input_stats", "train")]
        return [*call.args[5:6], *named]
    return []


def _plain_name(name: str) -> str:
    """Return the name of the operator behind a special method: `__rsub__` is `rsub`."""
    if name in _SPECIAL_NAMES:
        return _SPECIAL_NAMES[name]
    return name.removeprefix("__").removesuffix("__") if name.startswith("__") else name


_SPECIAL_NAMES = {
    "__radd__": "add",
    "__rmul__": "mul",
    "__rdiv__": "mul",
    "__rtruediv__": "mul",
    "__rpow__": "pow",
    "__floordiv__": "floor_divide",
    "__rfloordiv__": "floor_divide",
    "__rmatmul__": "mm",
    "__invert__": "bitwise_not",
    "__getitem__": "select",
}


#: Views without alias marks: who calls them promises not to write.
_FALSE_PROMISES = frozenset(
    ["unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "_unsafe_view"]
)


@functools.cache
def _schemas_promise_new(name: str) -> bool:
    """Ask the schemas of every overload; composed operations promise nothing about memory."""
    packet = getattr(torch.ops.aten, name, None)
    if packet is None or name in _FALSE_PROMISES:
        return False
    return all(_overload_promises_new(packet, overload) for overload in packet.overloads())


def _overload_promises_new(packet: Any, overload: str) -> bool:
    qualified = f"{packet._qualified_op_name}.{overload}".removesuffix(".default")
    if not torch._C._dispatch_has_kernel(qualified):
        return True  # a function of TorchScript on Python numbers
    if overload == "out" or overload.endswith("_out"):
        return True  # `out=` is looked for in the arguments
    operator = getattr(packet, overload)
    composed = operator.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    return not composed and all(found.alias_info is None for found in operator._schema.returns)


@functools.cache
def _schemas_tell_sharing(name: str) -> bool:
    """Tell whether every overload marks its results as views of an argument."""
    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    if packet is None:
        return False
    return all(_overload_tells_sharing(packet, overload) for overload in packet.overloads())


def _overload_tells_sharing(packet: Any, overload: str) -> bool:
    qualified = f"{packet._qualified_op_name}.{overload}".removesuffix(".default")
    if not torch._C._dispatch_has_kernel(qualified):
        return True  # a function of TorchScript on Python numbers
    returns = getattr(packet, overload)._schema.returns
    return bool(returns) and all(found.alias_info is not None for found in returns)


def step_refs(step: Step) -> Iterator[Ref]:
    """Return the tensors that a step uses."""
    if isinstance(step, Call):
        yield from refs_of((step.args, step.kwargs))
    elif isinstance(step, View):
        yield step.base
    else:
        yield step.source


def refs_of(value: Any) -> Iterator[Ref]:
    """Return the tensors in an argument, however deep."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from refs_of(item)
    elif isinstance(value, dict):
        yield from refs_of(list(value.values()))
    elif isinstance(value, slice):
        yield from refs_of([value.start, value.stop, value.step])


#: What `+=` and its like call; each works element by element.
_AUGMENTED = frozenset(
    name
    for plain in (
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "remainder",
        "floor_divide",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
    )
    for name in (f"{plain}_", f"__i{plain}__")
) | {"__itruediv__", "__ifloordiv__", "__imod__", "__iand__", "__ior__", "__ixor__"}


class Memory:
    """Which tensors of a slice may lie on one memory, and when it is written."""

    def __init__(self, program: Slice) -> None:
        """Follow the program once."""
        self.program = program
        self._parents: dict[Ref, Ref] = {}
        self._written: dict[Ref, int] = {}
        self._last_use: dict[Ref, int] = {}
        for number, step in enumerate(program.steps):
            for source in _shared_sources(step):
                for made in _results(number, step):
                    self._parents[self._family(made)] = self._family(source)
        for number, step in enumerate(program.steps):
            for target in _written_refs(step):
                self._written[self._family(target)] = number
            self._last_use.update(dict.fromkeys(step_refs(step), number))
        self._last_use.update(dict.fromkeys(program.outputs, len(program.steps)))

    def _family(self, ref: Ref) -> Ref:
        """Return the tensor that stands for all that may lie on the memory of this one."""
        root = ref
        while self._parents.get(root, root) != root:
            root = self._parents[root]
        while self._parents.get(ref, root) != root:
            self._parents[ref], ref = root, self._parents[ref]
        return root

    def _used_after(self, refs: set[Ref], number: int) -> bool:
        return any(self._last_use.get(ref, -1) > number for ref in refs)

    def is_written_after(self, number: int) -> bool:
        """Tell whether memory that the results of a step may lie on is written by a later one."""
        made = _results(number, self.program.steps[number])
        return any(self._written.get(self._family(ref), -1) > number for ref in made)

    def is_live_view(self, number: int) -> bool:
        """Tell whether a copy in place of what an indexing gives could be noticed.

        That is so when it is written and its base is used afterwards, or the other way round.
        """
        call = self.program.steps[number]
        if not isinstance(call, Call) or not self.is_written_after(number):
            return False
        watch = _Watch(self, number, call)
        for later, step in self._steps_after(number):
            if not watch.view_written and not self._used_after(watch.mine, later - 1):
                return False
            if watch.notices(later, step):
                return True
        return any(map(watch.is_stale, self.program.outputs))

    def is_put_back(self, number: int) -> bool:
        """Recognise `x[k] += v`, whose value nobody else sees: read, change in place, assign."""
        read = self.program.steps[number]
        mine, closed = {Ref("step", number)}, False
        if not isinstance(read, Call) or not self.is_written_after(number):
            return False
        for later, step in self._steps_after(number):
            if not self._used_after(mine, later - 1):
                break
            used = [ref for ref in step_refs(step) if ref in mine]
            if not used:
                continue
            if closed or not isinstance(step, Call) or len(used) > 1:
                return False
            if _closes(step, read, mine):
                closed = True
            elif identify(step.func).name in _AUGMENTED and step.args[0] in mine:
                mine.update(_results(later, step))
            else:
                return False
        return closed and not mine.intersection(self.program.outputs)

    def _steps_after(self, number: int) -> Iterator[tuple[int, Step]]:
        for later in range(number + 1, len(self.program.steps)):
            yield later, self.program.steps[later]


class _Watch:
    """Follows a tensor that was read through an index, and its base, through later steps."""

    def __init__(self, memory: Memory, number: int, read: Call) -> None:
        self.memory = memory
        self.read = read
        self.mine = set(_results(number, read))
        self.family = memory._family(Ref("step", number))
        self.view_written = self.base_written = False

    def is_stale(self, ref: Ref) -> bool:
        """Tell whether a copy would show another value here than the view."""
        if ref in self.mine:
            return self.base_written
        return self.view_written and self.memory._family(ref) == self.family

    def notices(self, number: int, step: Step) -> bool:
        """Take in one step; true when it could see a difference."""
        if isinstance(step, Call) and _closes(step, self.read, self.mine):
            self.view_written = False  # what was written into a copy is now in the base as well
            return self.base_written
        if any(map(self.is_stale, step_refs(step))):
            return True
        for target in _written_refs(step):
            if target in self.mine:
                self.view_written = True
            elif self.memory._family(target) == self.family:
                self.base_written = True
        if any(source in self.mine for source in _shared_sources(step)):
            self.mine.update(_results(number, step))
        return False


def _closes(step: Call, read: Call, mine: set[Ref]) -> bool:
    """Tell whether a step assigns what was read to where it was read."""
    return (
        identify(step.func).name == "__setitem__"
        and len(step.args) == 3
        and step.args[:2] == read.args
        and step.args[2] in mine
    )


def _results(number: int, step: Step) -> list[Ref]:
    count = max(1, len(step.outputs)) if isinstance(step, Call) else 1
    return [Ref("step", number, position) for position in range(count)]


def _shared_sources(step: Step) -> list[Ref]:
    """Return the tensors on whose memory the results of a step may lie."""
    if isinstance(step, View):
        return [step.base]
    if isinstance(step, Copy) or makes_memory(step):
        return []
    first_only = returns_its_first_argument(step) or identify(step.func).name == "__getitem__"
    return list(refs_of(step.args[:1] if first_only else (step.args, step.kwargs)))


def _written_refs(step: Step) -> list[Ref]:
    """Return the tensors whose memory a step may write."""
    if not isinstance(step, Call) or not may_write(step):
        return []
    if returns_its_first_argument(step) or identify(step.func).name == "__setitem__":
        return list(refs_of(step.args[:1]))
    if "out" in step.kwargs:
        return list(refs_of(step.kwargs["out"]))
    return list(step_refs(step))
