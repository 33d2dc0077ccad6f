"""What each function of torch means for the tape: what it writes, and what leaves for Python.

The tables name exceptions. What is in none of them takes tensors and gives tensors.
"""

from __future__ import annotations

import copy
import os
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import torch

from veracity._native import Operation


def words(text: str) -> frozenset[str]:
    """Return the words of a table."""
    return frozenset(text.split())


_ESCAPES = words(
    "item __bool__ __float__ __int__ __index__ __contains__ __complex__ tolist __array__ equal "
    "allclose is_nonzero _local_scalar_dense __format__ __array_wrap__ __repr__ __str__"
)
_MEMORY = words(
    "data_ptr untyped_storage storage _typed_storage __reduce_ex__ __reduce__ share_memory_ "
    "__cuda_array_interface__"
)
_SHAPES = words("shape size numel nelement __len__ sym_size sym_numel stride nbytes")
_SHARES = frozenset(["__dlpack__", "to_dlpack"])
_METADATA = words(
    "dim ndim ndimension storage_offset is_contiguous is_floating_point is_complex "
    "is_signed is_conj is_neg is_inference is_pinned is_shared is_set_to is_same_size "
    "element_size itemsize get_device requires_grad_ retain_grad register_hook "
    "register_post_accumulate_grad_hook __hash__ __dir__ __dlpack_device__ set_ "
    "_is_view is_tensor is_storage result_type can_cast get_default_dtype has_names "
    "is_grad_enabled _has_compatible_shallow_copy_type __setstate__ is_distributed sym_stride "
    "sym_storage_offset prim.device"
)
_TENSOR_GETTERS = words("T mT H mH real imag data")
_NO_AUTOGRAD = (
    "what autograd computes is not recorded; torch.func (grad, jacrev, jacfwd) is, or write the "
    "derivative down"
)
_REFUSED = {
    "grad": _NO_AUTOGRAD,
    "backward": _NO_AUTOGRAD,
    "apply_": "it calls Python for every element",
    "map_": "it calls Python for every element",
    "map2_": "it calls Python for every element",
    "cond": "branches that depend on data are not recorded",
    "while_loop": "loops that depend on data are not recorded",
}
_REFUSED_BY_MODULE = {
    "torch.autograd": _NO_AUTOGRAD,
    "torch._higher_order_ops": "branches and loops that depend on data are not recorded",
}
_IDENTITIES = words(
    "clone contiguous detach cpu cuda to float double half bfloat16 int long short char byte bool "
    "type type_as tensor as_tensor asarray alias positive view_as expand_as __deepcopy__ copy_ "
    "__setitem__ lift_fresh _to_copy data"
)
_MAY_ALIAS = words(
    "contiguous reshape reshape_as to float double half bfloat16 int long short char byte bool "
    "type type_as ravel flatten cpu cuda as_tensor asarray expand_as"
)
_OVERWRITES = frozenset(["copy_", "fill_", "zero_", "uniform_", "normal_"])
_RAGGED = words(
    "nonzero masked_select unique unique_consecutive argwhere _unique2 unique_dim bincount "
    "repeat_interleave _return_output _unique_impl _unique_consecutive_impl"
)
# They change how a tensor lies on its memory, not the memory.
_RESHAPING_IN_PLACE = words(
    "t_ transpose_ squeeze_ unsqueeze_ swapaxes_ swapdims_ detach_ rename_ as_strided_"
)
_RANDOM = words(
    "bernoulli bernoulli_ multinomial normal normal_ rand_like randn_like randint_like poisson "
    "uniform_ random_ exponential_ geometric_ cauchy_ log_normal_ gumbel_softmax "
    "fractional_max_pool2d fractional_max_pool3d rand randn randint randperm binomial dropout_ "
    "native_dropout rrelu_"
)
# They raise on some values and not on others: singular matrices, indices out of range, checks.
_MAY_RAISE = words(
    "inv inverse linalg_inv solve linalg_solve cholesky linalg_cholesky cholesky_solve "
    "cholesky_inverse tensorsolve tensorinv linalg_tensorsolve linalg_tensorinv lu linalg_lu "
    "lu_factor linalg_lu_factor lu_solve linalg_lu_solve lstsq linalg_lstsq eig linalg_eig eigh "
    "linalg_eigh eigvals linalg_eigvals eigvalsh linalg_eigvalsh svd linalg_svd svdvals "
    "linalg_svdvals pinv pinverse linalg_pinv qr linalg_qr matrix_power linalg_matrix_power "
    "matrix_rank linalg_matrix_rank ldl_factor linalg_ldl_factor solve_triangular "
    "linalg_solve_triangular triangular_solve multinomial embedding embedding_bag one_hot gather "
    "scatter scatter_ scatter_add scatter_add_ index_select index_add index_add_ index_copy "
    "index_copy_ index_fill index_fill_ index_put index_put_ take take_along_dim put_ bincount "
    "nll_loss cross_entropy _assert _assert_async repeat_interleave quantile nanquantile"
)
#: Integers divided by zero raise.
_DIVIDING = words(
    "floor_divide floor_divide_ __floordiv__ __rfloordiv__ __ifloordiv__ remainder remainder_ "
    "__mod__ __rmod__ __imod__ fmod fmod_ div div_ divide divide_"
)
# Random only when all of these are true: (position, name, default).
_RANDOM_WHEN: dict[str, tuple[tuple[int, str, bool], ...]] = {
    **dict.fromkeys(
        [
            "dropout",
            "dropout1d",
            "dropout2d",
            "dropout3d",
            "alpha_dropout",
            "feature_alpha_dropout",
        ],
        ((1, "p", True), (2, "training", True)),
    ),
    "rrelu": ((3, "training", False),),
    "scaled_dot_product_attention": ((4, "dropout_p", False),),
    "gru": ((5, "dropout", False), (6, "train", False)),
    "lstm": ((5, "dropout", False), (6, "train", False)),
    "multi_head_attention_forward": ((9, "dropout_p", False), (12, "training", True)),
}
_WRITES_WHEN_IN_PLACE = {
    "relu": 1,
    "relu6": 1,
    "selu": 1,
    "silu": 1,
    "mish": 1,
    "hardswish": 1,
    "hardsigmoid": 1,
    "elu": 2,
    "celu": 2,
    "leaky_relu": 2,
    "hardtanh": 3,
    "threshold": 3,
    "dropout": 3,
    "dropout1d": 3,
    "dropout2d": 3,
    "dropout3d": 3,
    "alpha_dropout": 3,
    "feature_alpha_dropout": 3,
    "rrelu": 4,
}
_FUNCTIONAL_STATISTICS = {
    "batch_norm": (5, "training"),
    "native_batch_norm": (5, "training"),
    "instance_norm": (5, "use_input_stats"),
}

_Parameters = list[tuple[int, str]]


def classify(func: Callable[..., Any], number: int) -> Operation:
    """Return what calling `func` means; `number` tells functions apart on the tape."""
    if isinstance(func, torch._ops.OpOverload):
        return _classify_overload(func, number)
    name = getattr(func, "__name__", type(func).__name__)
    if name in ("__get__", "__set__", "__delete__") and hasattr(func, "__self__"):
        return _classify_attribute(func, name, number)
    if reason := _refusal(func, name):
        return Operation(number, name, "refused", reason=reason)
    if name == "numpy" and _is_tensor_method(func):
        return Operation(number, name, "array")
    for names, kind in (
        (_ESCAPES, "escape"),
        (_MEMORY, "memory"),
        (_SHAPES, "shape"),
        (_SHARES, "share"),
        (_METADATA, "metadata"),
    ):
        if name in names:
            return Operation(number, name, kind)
    writes, switch = _writes(func, name)
    return Operation(
        number,
        name,
        "compute",
        writes=writes,
        switch=switch,
        identity=name in _IDENTITIES,
        may_alias=name in _MAY_ALIAS,
        ragged=name in _RAGGED,
        random=name in _RANDOM,
        random_when=list(_RANDOM_WHEN.get(name, ())),
        overwrites=name in _OVERWRITES,
        may_raise=name in _MAY_RAISE,
        divides=name in _DIVIDING,
    )


def _is_tensor_method(func: Callable[..., Any]) -> bool:
    return getattr(torch.Tensor, getattr(func, "__name__", ""), None) is func


def _refusal(func: Callable[..., Any], name: str) -> str:
    module = getattr(func, "__module__", None) or ""
    for prefix, reason in _REFUSED_BY_MODULE.items():
        if module.startswith(prefix):
            return reason
    if isinstance(func, torch._ops.HigherOrderOperator):
        return _REFUSED_BY_MODULE["torch._higher_order_ops"]
    return _REFUSED.get(name, "")


def _classify_attribute(func: Callable[..., Any], access: str, number: int) -> Operation:
    descriptor = func.__self__  # type: ignore[attr-defined]
    getter = getattr(descriptor, "fget", None)
    name = str(getattr(descriptor, "__name__", None) or getattr(getter, "__name__", "attribute"))
    if access == "__get__":
        if name in _TENSOR_GETTERS:
            return Operation(number, name, "compute", identity=name in _IDENTITIES)
        for names, kind in ((_SHAPES, "shape"), (_MEMORY, "memory")):
            if name in names:
                return Operation(number, name, kind)
    return Operation(number, name, "metadata")


def _classify_overload(func: torch._ops.OpOverload, number: int) -> Operation:
    """Classify what only the dispatch mode sees; schemas say what is written."""
    name = func._schema.name.partition("::")[2]
    if name in _ESCAPES:
        return Operation(number, name, "escape")
    if name in _METADATA or name in _SHAPES:
        return Operation(number, name, "metadata")
    writes = [
        (position, argument.name)
        for position, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    if name in _RESHAPING_IN_PLACE:
        writes = []
    return Operation(
        number,
        name,
        "compute",
        writes=writes,
        identity=name in _IDENTITIES,
        may_alias=name in _MAY_ALIAS,
        ragged=name in _RAGGED,
        random=torch.Tag.nondeterministic_seeded in func.tags,
        overwrites=name in _OVERWRITES,
        may_raise=name in _MAY_RAISE,
        divides=name in _DIVIDING,
    )


def _writes(func: Callable[..., Any], name: str) -> tuple[_Parameters, tuple[int, str] | None]:
    if name == "__setitem__" or (name.startswith("__i") and _is_in_place_operator(name)):
        return [(0, "self")], None
    if name in _RESHAPING_IN_PLACE:
        return [], None
    if name.endswith("_") and not name.endswith("__"):
        return [(0, "self"), (0, "input"), (0, "tensor")], None
    if name in _FUNCTIONAL_STATISTICS:
        switch = _FUNCTIONAL_STATISTICS[name]
        functional = getattr(func, "__module__", None) == "torch.nn.functional"
        first = 1 if functional else 3
        return [(first, "running_mean"), (first + 1, "running_var")], switch
    if name == "embedding":
        return [(1, "weight")], (3, "max_norm")
    if name in _WRITES_WHEN_IN_PLACE:
        return [(0, "input")], (_WRITES_WHEN_IN_PLACE[name], "inplace")
    return [], None


def _is_in_place_operator(name: str) -> bool:
    # `__invert__`, `__int__` and their like begin the same way.
    return hasattr(torch.Tensor, f"__{name[3:]}") and name not in ("__invert__", "__int__")


_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_PASS_ON = tuple(
    os.path.join(_TORCH_FOLDER, *parts)
    for parts in (
        ("overrides.py",),
        ("_tensor.py",),
        ("utils", "_device.py"),
        ("utils", "_python_dispatch.py"),
    )
)
_PLUMBING = ("<frozen", "<eval_with_key>", "<__array_function__", "<attrs generated")


def is_own(file: str) -> bool:
    """Say whether a file is the user's own, and no package's."""
    installed = "site-packages" in file or "dist-packages" in file
    return owner_of_file(file) == 0 and not installed


def owner_of_file(file: str) -> int:
    """Return whose code a file holds.

    0 is the user's, 1 plumbing, 2 torch's, 3 the recorder's, 4 Python's `copy`.
    """
    if file == copy.__file__:
        return 4
    if file.startswith(_OWN_FOLDER) or file in _PASS_ON:
        return 3
    if file.startswith(_TORCH_FOLDER):
        return 2
    if file.startswith(_PLUMBING) or _is_numpy(file):
        return 1
    if file.startswith(_STANDARD_LIBRARY) and "site-packages" not in file:
        return 1
    return 0


def _is_numpy(file: str) -> bool:
    numpy = sys.modules.get("numpy")
    path = getattr(numpy, "__file__", None)
    return path is not None and file.startswith(os.path.dirname(path) + os.sep)
