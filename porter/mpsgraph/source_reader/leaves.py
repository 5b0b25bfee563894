"""What ATen's queries and OperationUtils' helpers return in the canonical case.

The canonical case is non-empty, dense, contiguous tensors of one shape on the device, without aliasing, on the newest
macOS.
Source: ATen/native/mps/OperationUtils.{h,mm}, c10/core/ScalarType.h.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.mpsgraph.graph import Cast, Constant, Expr, Scalar
from porter.mpsgraph.source_reader.values import EXPRESSIONS, Argument, Record, TensorArg, Test, Unknown

FACTS: dict[str, Any] = {
    "numel": 4,
    "dim": 1,
    "ndimension": 1,
    "nbytes": 16,
    "storage_offset": 0,
    "is_mps": True,
    "is_cpu": False,
    "is_same_size": True,
    "is_alias_of": False,
    "is_contiguous": True,
    "is_non_overlapping_and_dense": True,
    "is_view": False,
    "is_conj": False,
    "is_neg": False,
    "defined": True,
    "has_storage": True,
    "has_value": True,
    "is_set_to": False,
    "is_same": False,
}
"""Answers of a tensor's members that do not depend on its element type."""

QUERIES: dict[str, Any] = {
    "needsGather": False,
    "is_dense_in_storage": True,
    "is_macos_13_or_newer": True,
    "is_macos_at_least": True,
    "supportsComplex": True,
    "supportedFloatingOrComplexType": True,
    "is_empty_tensor": False,
    "infinity": float("inf"),
}
"""Answers of free functions that do not depend on the element type."""

OBJECTIVE_C = frozenset({"autorelease", "retain", "copy", "mutableCopy"})
QUIET = frozenset(
    {"C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED", "C10_DIAGNOSTIC_POP", "alpha_check", "check_min_max_dims", "release"}
)
CHECKS = frozenset(
    {"TORCH_CHECK", "TORCH_CHECK_TYPE", "TORCH_CHECK_NOT_IMPLEMENTED", "TORCH_INTERNAL_ASSERT", "TORCH_CHECK_VALUE"}
)
CONSTANTS: dict[str, Any] = {"nil": None, "nullptr": None, "NULL": None, "nullopt": None, "true": True, "false": False}

_CONSTANT_DTYPES = {
    **dtypes.BY_MPS,
    **dtypes.BY_ATEN,
    **{f"k{name}": dtype for name, dtype in dtypes.BY_ATEN.items()},
}


def constant(path: str) -> Any:
    """Returns the value of a name that is not a variable; an Unknown if it does not matter to the graph."""
    last = path.rsplit("::", 1)[-1]
    if last in CONSTANTS:
        return CONSTANTS[last]
    return _CONSTANT_DTYPES.get(last, Unknown(path))


def get_dtype(value: Any) -> DType | None:
    """Returns the element type of a value, or None if it has none."""
    if isinstance(value, DType):
        return value
    return value.dtype if isinstance(value, (TensorArg, Argument, *EXPRESSIONS)) else None


def is_class(name: str, value: Any, include_bool: bool) -> bool | None:
    """Evaluates `isIntegralType(type, includeBool)` and similar functions; None for any other."""
    dtype = get_dtype(value)
    if dtype is None:
        return None
    kinds = {
        "isIntegralType": {Kind.INTEGRAL, Kind.BOOL} if include_bool else {Kind.INTEGRAL},
        "isFloatingType": {Kind.FLOATING},
        "isComplexType": {Kind.COMPLEX},
        "isReducedFloatingType": {Kind.FLOATING} if dtype.is_reduced else set[Kind](),
        "is_complex": {Kind.COMPLEX},
        "is_floating_point": {Kind.FLOATING},
        "isBoolean": {Kind.BOOL},
    }
    return dtype.kind in kinds[name] if name in kinds else None


def cast(value: Expr, dtype: DType) -> Expr:
    """Returns a `castTensor` of an expression, or the expression itself if it already has the type."""
    if value.dtype == dtype:
        return value
    return replace(value, dtype=dtype) if isinstance(value, Scalar) else Cast(value, dtype)


def as_expr(value: Any, dtype: DType) -> Expr | None:
    """Returns a number, argument or expression as a node of an element type."""
    if isinstance(value, (bool, int, float)):
        return Constant(value, dtype)
    if isinstance(value, Argument):
        return Scalar(value.name, dtype, value.wrapped)
    if isinstance(value, TensorArg) and value.wrapped:
        return Scalar(value.name, dtype, wrapped=True)
    return cast(value, dtype) if isinstance(value, EXPRESSIONS) else None


def member(value: Any, name: str) -> Any:
    """Returns the value of a member or of a message without arguments; an Unknown if it does not matter."""
    if isinstance(value, TensorArg):
        return _of_tensor(value, name)
    if isinstance(value, EXPRESSIONS):
        return value.dtype if name == "dataType" else Unknown(name)
    if isinstance(value, Argument):
        argument = value
        if name == "has_value":
            return Test(f"{argument.name}.has_value()") if argument.optional else True
        if name in ("value", "toDouble", "toFloat", "to", "value_or", "toInt", "toLong", "item", "get"):
            return argument
        if name in ("type", "dtype"):
            return argument.dtype
        if name in ("isComplex", "is_complex"):
            return argument.dtype.kind is Kind.COMPLEX
        return Unknown(f"{argument.name}.{name}")
    if isinstance(value, Record):
        return value.fields.get(name)
    if isinstance(value, (int, float, str)) and name in ("value", "toDouble", "toFloat", "to", "c_str"):
        return value
    if value is None and name in ("has_value", "has_storage", "defined"):
        return False
    return True if name == "has_value" and not isinstance(value, Unknown) else Unknown(name)


def _of_tensor(tensor: TensorArg, name: str) -> Any:
    if name in ("scalar_type", "dtype"):
        return tensor.dtype
    if name in ("contiguous", "clone", "detach", "view"):
        return tensor
    if tensor.wrapped and name in ("dim", "is_mps", "item"):
        return {"dim": 0, "is_mps": False, "item": Argument(tensor.name, "Scalar", tensor.dtype, wrapped=True)}[name]
    known = is_class(name, tensor, False)
    return known if known is not None else FACTS.get(name, Unknown(f"{tensor.name}.{name}"))
