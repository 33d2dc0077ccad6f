"""A recorded slice becomes a `torch.fx.GraphModule` that every exporter can run.

The module computes what the slice computed, step by step and in the same order, writes included.
It never writes into its inputs or its constants, and it never hands out their memory. Dead code is
not looked for: the slice is minimal, and fx takes in-place methods for pure ones.
"""

from __future__ import annotations

import keyword
import operator
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import fx

from veracity.export import aliasing, lowering
from veracity.export.aliasing import refs_of, step_refs
from veracity.export.lowering import LOCATION
from veracity.export.unsupported import unsupported
from veracity.tracing.slice import Call, ConstantUse, Geometry, Ref, Slice, Step, View


def build(program: Slice, output_names: list[str]) -> fx.GraphModule:
    """Return the module of a slice: one placeholder for each input, one result for each output."""
    if len(output_names) != len(program.outputs):
        message = f"{len(program.outputs)} outputs with {len(output_names)} names"
        raise ValueError(message)
    return _Builder(program).build()


def writes(module: fx.GraphModule) -> bool:
    """Tell whether a module writes into tensors that it made; never wrong when it says no."""
    return any(node.meta.get(_WRITES, False) for node in module.graph.nodes)


#: Key of `fx.Node.meta` of calls that write, or may write.
_WRITES = "veracity_writes"


class _Builder:
    """Holds what is known while a graph grows."""

    def __init__(self, program: Slice) -> None:
        self.program = program
        self.memory = aliasing.Memory(program)
        self.graph = fx.Graph()
        self.root = torch.nn.Module()
        self.values: dict[Ref, fx.Node] = {}
        self.used = set(_used_refs(program))
        #: Values whose memory may be that of an input or a constant.
        self.borrowed: set[fx.Node] = set()
        #: What is being added: the user's line, and the name of what was called there.
        self.location = ""
        self.called = ""

    def build(self) -> fx.GraphModule:
        self._add_inputs()
        self._add_constants()
        for number, step in enumerate(self.program.steps):
            self._add_step(number, step)
        self._add_outputs()
        return fx.GraphModule(self.root, self.graph).eval()

    # Inputs and constants

    def _add_inputs(self) -> None:
        names = _identifiers([use.port for use in self.program.inputs])
        placeholders = [self.graph.placeholder(name) for name in names]
        for number, (use, node) in enumerate(zip(self.program.inputs, placeholders, strict=True)):
            self._define(Ref("input", number), node, copy=use.written)

    def _add_constants(self) -> None:
        """Add the constants in the order of their use, those on one memory together."""
        families: dict[Any, list[int]] = {}
        for number in _constants_in_order(self.program):
            tensor = self.program.constants[number].tensor
            families.setdefault(_memory_key(tensor), []).append(number)
        for numbers in families.values():
            self._add_family(numbers)

    def _add_family(self, numbers: list[int]) -> None:
        """Add constants that share memory; when one is written, they go on sharing it."""
        uses = [self.program.constants[number] for number in numbers]
        written = any(use.written for use in uses)
        keys = [(_geometry(use.tensor), use.tensor.dtype) for use in uses]
        if written and len(set(keys)) > 1:
            self._add_shared_memory(numbers, uses)
            return
        nodes: dict[tuple[Geometry, torch.dtype], fx.Node] = {}
        for number, use, key in zip(numbers, uses, keys, strict=True):
            if key not in nodes:
                node = self._constant(use.tensor)
                nodes[key] = self.graph.call_method("clone", (node,)) if written else node
            self._define(Ref("constant", number), nodes[key], fresh=written)

    def _add_shared_memory(self, numbers: list[int], uses: list[ConstantUse]) -> None:
        if len({use.tensor.dtype for use in uses}) > 1:
            raise unsupported(
                "constants of two element types share memory that is written",
                _first_use(self.program, uses[0].tensor),
                "copy one of them with clone() before the node uses it",
            )
        geometries = [_geometry(use.tensor) for use in uses]
        start = min(geometry.offset for geometry in geometries)
        stop = max(geometry.offset + _extent(geometry) for geometry in geometries)
        memory = uses[0].tensor.detach().as_strided((stop - start,), (1,), start)
        flat = self.graph.call_method("clone", (self._constant(memory),))
        whole = Geometry(start, (stop - start,), (1,))
        for number, geometry in zip(numbers, geometries, strict=True):
            self._define(Ref("constant", number), self._view(flat, whole, geometry), fresh=True)

    def _constant(self, tensor: torch.Tensor) -> fx.Node:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise unsupported(
                f"a constant has the layout {tensor.layout}",
                _first_use(self.program, tensor),
                "make it dense with to_dense() before the node uses it",
            )
        name = f"constant_{len(self.root._buffers)}"
        value = tensor.detach().contiguous()
        # Exporters make views of weights, which inference mode forbids on its own tensors.
        self.root.register_buffer(name, value.clone() if value.is_inference() else value)
        return self.graph.get_attr(name)

    def _define(self, ref: Ref, node: fx.Node, *, copy: bool = False, fresh: bool = False) -> None:
        """Give a value its node, after a copy if it will be written."""
        if copy:
            node = self.graph.call_method("clone", (node,))
        elif not fresh:
            self.borrowed.add(node)
        self.values[ref] = node

    # Steps

    def _add_step(self, number: int, step: Step) -> None:
        self.location = step.location
        if isinstance(step, Call):
            self._add_call(number, step)
        elif isinstance(step, View):
            base = self._value(step.base)
            self._check_view_dtype(step)
            node = self._view(base, step.base_geometry, step.geometry)
            self._finish(Ref("step", number), node, base in self.borrowed)
        else:
            node = self.graph.call_method("clone", (self._value(step.source),))
            self._finish(Ref("step", number), self._note(node), borrowed=False)

    def _add_call(self, number: int, call: Call) -> None:
        if _assigns_itself(call, self.program):
            return
        self.called = lowering.identify(call.func).name
        args = tuple(self._argument(value) for value in call.args)
        kwargs = {key: self._argument(value) for key, value in call.kwargs.items()}
        uses = self._uses(number, call)
        result = lowering.lower(self.graph, call.func, args, kwargs, call.location, uses)
        self._note(result)
        result.meta[_WRITES] = aliasing.may_write(call)
        borrowed = self._may_borrow(call, args, kwargs)
        for position, path in enumerate(call.outputs):
            ref = Ref("step", number, position)
            if ref in self.used:
                self._finish(ref, self._item(result, path), borrowed)

    def _uses(self, number: int, call: Call) -> lowering.Uses:
        if lowering.identify(call.func).name == "__getitem__":
            if not list(refs_of(call.args[1:])):
                return lowering.Uses()
            return lowering.Uses(
                live_view=self.memory.is_live_view(number),
                put_back=self.memory.is_put_back(number),
            )
        hidden = self.memory.is_written_after(number) and aliasing.hides_sharing(call)
        return lowering.Uses(hidden_view=hidden)

    def _item(self, node: fx.Node, path: tuple[int | str, ...]) -> fx.Node:
        for key in path:
            node = self._note(self.graph.call_function(operator.getitem, (node, key)))
        return node

    def _finish(self, ref: Ref, node: fx.Node, borrowed: bool) -> None:
        self.values[ref] = node
        if borrowed:
            self.borrowed.add(node)

    def _may_borrow(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        nodes = _nodes_of((args, kwargs))
        return any(node in self.borrowed for node in nodes) and not aliasing.makes_memory(call)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Ref):
            return self._value(value)
        if isinstance(value, (list, tuple)):
            items = [self._argument(item) for item in value]
            return items if isinstance(value, (list, torch.Size)) else tuple(items)
        if isinstance(value, dict):
            return {key: self._argument(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(*map(self._argument, (value.start, value.stop, value.step)))
        if isinstance(value, np.ndarray):
            return self._note(self._constant(torch.from_numpy(value.copy())))
        return lowering.literal(value, self.called, self.location)

    def _value(self, ref: Ref) -> fx.Node:
        try:
            return self.values[ref]
        except KeyError:
            message = f"the slice uses {ref} before it is made ({self.location})"
            raise ValueError(message) from None

    def _note(self, node: fx.Node) -> fx.Node:
        """Keep the user's line."""
        if self.location:
            node.meta[LOCATION] = self.location
        return node

    # Views

    def _check_view_dtype(self, step: View) -> None:
        if step.base.kind != "constant":
            return
        have = self.program.constants[step.base.index].tensor.dtype
        if have != step.dtype:
            raise unsupported(f"a {step.dtype} shares memory with a {have}", self.location)

    def _view(self, base: fx.Node, have: Geometry, want: Geometry) -> fx.Node:
        """Return the tensor at `want` on the memory of the contiguous tensor at `have`."""
        start = want.offset - have.offset
        base, have = self._packed(base, have)
        if not _is_contiguous(have) or start < 0 or start + _extent(want) > _count(have):
            raise unsupported(
                "a value shares memory with another in a way that cannot be followed",
                self.location,
                "take the view with an indexing operation inside the node",
            )
        flat = self._note(self.graph.call_method("view", (base, (-1,))))
        part = self._note(self.graph.call_method("narrow", (flat, 0, start, _extent(want))))
        order = sorted(range(len(want.sizes)), key=lambda dim: -want.strides[dim])
        packed = Geometry(
            0,
            tuple(want.sizes[dim] for dim in order),
            tuple(want.strides[dim] for dim in order),
        )
        if not _is_contiguous(packed):
            apart = self._strided(flat, _count(have), start, packed)
            if apart is None:
                return self._note(
                    self.graph.call_method("as_strided", (part, want.sizes, want.strides))
                )
            return self._ordered(apart, order)
        shaped = self._note(self.graph.call_method("view", (part, packed.sizes)))
        return self._ordered(shaped, order)

    def _packed(self, base: fx.Node, have: Geometry) -> tuple[fx.Node, Geometry]:
        """Put a tensor into the order of its memory: channels come last in pictures, say."""
        order = tuple(sorted(range(len(have.sizes)), key=lambda dim: -have.strides[dim]))
        sizes = tuple(have.sizes[dim] for dim in order)
        packed = Geometry(have.offset, sizes, tuple(have.strides[dim] for dim in order))
        if _is_contiguous(have) or not _is_contiguous(packed):
            return base, have
        turned = self._note(self.graph.call_method("permute", (base, order)))
        # Elsewhere the tensor may lie in another order: then this is a copy.
        return self._note(self.graph.call_method("contiguous", (turned,))), packed

    def _ordered(self, node: fx.Node, order: list[int]) -> fx.Node:
        """Put dimensions back that were sorted."""
        if order == list(range(len(order))):
            return node
        back = tuple(order.index(dim) for dim in range(len(order)))
        return self._note(self.graph.call_method("permute", (node, back)))

    def _strided(self, flat: fx.Node, count: int, start: int, want: Geometry) -> fx.Node | None:
        """Return a view with gaps by rows and steps, which can be written through everywhere.

        Each dimension cuts the last one into rows of its stride, of which the others keep a part.
        `torch.export` follows those, and no write through `as_strided`.
        """
        dims = [pair for pair in zip(want.sizes, want.strides, strict=True) if pair[0] > 1]
        if not dims or any(stride < 1 for _, stride in dims):
            return None
        node, rows = flat, []
        for number, (size, stride) in enumerate(dims):
            reach = 1 + sum((one - 1) * step for one, step in dims[number + 1 :])
            if number + 1 == len(dims):
                steps = slice(start, start + (size - 1) * stride + 1, stride)
                index: Any = (..., steps)
                node = self.graph.call_function(operator.getitem, (node, index))
                break
            # The last row may end before its stride does: then all begin earlier.
            early = max(0, start + size * stride - count)
            if early > start or early + reach > stride:
                return None
            part = self.graph.call_method("narrow", (node, -1, start - early, size * stride))
            rows.append(size)
            node = self.graph.call_method("view", (self._note(part), (*rows, stride)))
            self._note(node)
            start, count = early, stride
        self._note(node)
        for dim, size in enumerate(want.sizes):
            if size == 1:
                node = self._note(self.graph.call_method("unsqueeze", (node, dim)))
        return node

    # Outputs

    def _add_outputs(self) -> None:
        results: list[fx.Node] = []
        for ref in self.program.outputs:
            node = self._value(ref)
            if node in self.borrowed or node in results:
                location = node.meta.get(LOCATION, "")
                node = self.graph.call_method("clone", (node,))
                self.location = location
                self._note(node)
            results.append(node)
        self.graph.output(results[0] if len(results) == 1 else tuple(results))


def _used_refs(program: Slice) -> Iterator[Ref]:
    for step in program.steps:
        yield from step_refs(step)
    yield from program.outputs


def _nodes_of(value: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.node.map_arg(value, found.append)
    return found


def _constants_in_order(program: Slice) -> list[int]:
    """Return the constants by first use, so that their names do not depend on the recorder."""
    used = [ref.index for ref in _used_refs(program) if ref.kind == "constant"]
    return list(dict.fromkeys(used))


def _first_use(program: Slice, tensor: torch.Tensor) -> str:
    """Return the line of the first step that uses a constant."""
    for step in program.steps:
        for ref in step_refs(step):
            if ref.kind == "constant" and program.constants[ref.index].tensor is tensor:
                return step.location
    return ""


def _assigns_itself(call: Call, program: Slice) -> bool:
    """Recognise the assignment that closes `x[k] += v`: the view was already written in place."""
    if lowering.identify(call.func).name != "__setitem__" or len(call.args) != 3:
        return False
    base, index, value = call.args
    if not (isinstance(base, Ref) and isinstance(value, Ref) and _is_basic_index(index)):
        return False
    source = _through_writes(value, program)
    return (
        source is not None
        and lowering.identify(source.func).name == "__getitem__"
        and source.args == (base, index)
    )


def _through_writes(ref: Ref, program: Slice) -> Call | None:
    """Return the call that made a tensor, before in-place operations handed it on."""
    while ref.kind == "step":
        step = program.steps[ref.index]
        if not isinstance(step, Call):
            return None
        if not aliasing.returns_its_first_argument(step) or not isinstance(step.args[0], Ref):
            return step
        ref = step.args[0]
    return None


def _is_basic_index(index: Any) -> bool:
    items = index if isinstance(index, tuple) and not isinstance(index, Ref) else (index,)
    return all(
        item is None
        or item is ...
        or (isinstance(item, int) and not isinstance(item, bool))
        or (isinstance(item, slice) and not list(refs_of(item)))
        for item in items
    )


def _identifiers(names: list[str]) -> list[str]:
    """Return a distinct Python identifier for each port."""
    made: list[str] = []
    for name in names:
        base = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not base or base[0].isdigit() or keyword.iskeyword(base) or base in _TAKEN_NAMES:
            base = f"input_{base}"
        unique, number = base, 1
        while unique in made:
            unique, number = f"{base}_{number}", number + 1
        made.append(unique)
    return made


#: Names with a meaning in generated code.
_TAKEN_NAMES = frozenset(
    {"self", "torch", "device", "inf", "nan", "NoneType", "fx_pytree", "pytree"}
)


def _memory_key(tensor: torch.Tensor) -> Any:
    """Tell constants on one memory."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return id(tensor)
    return tensor.untyped_storage()._cdata


def _geometry(tensor: torch.Tensor) -> Geometry:
    if tensor.layout is not torch.strided:
        return Geometry(0, tuple(tensor.shape), ())
    return Geometry(int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride())


def _count(geometry: Geometry) -> int:
    return int(np.prod(geometry.sizes, dtype=np.int64))


def _extent(geometry: Geometry) -> int:
    """Return how many elements of memory lie between the first and the last one, both included."""
    if 0 in geometry.sizes:
        return 0
    sizes_and_strides = zip(geometry.sizes, geometry.strides, strict=True)
    return 1 + sum((size - 1) * stride for size, stride in sizes_and_strides)


def _is_contiguous(geometry: Geometry) -> bool:
    expected = 1
    for size, stride in zip(reversed(geometry.sizes), reversed(geometry.strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
