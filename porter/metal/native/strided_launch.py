"""The host code of reductions that read a tensor by the strides of its dimensions, kept and reduced ones.

Source: ATen/native/ReduceOpsUtils.h (`make_dim_mask`).
"""

from __future__ import annotations

from collections.abc import Iterator

from porter.metal.native.host_code import Line, declare
from porter.metal.native.host_values import Names
from porter.metal.native.reduced import StridedArgument

PASSED = ("kept.sizes", "kept.strides", "reduced.sizes", "reduced.strides", "ndim")
REDUCED = "reduced_size"  # how many elements the rows of the tensor have


def write_strides(role: StridedArgument, tensor: str, names: Names, body: str) -> Iterator[Line]:
    """Variables for the dimensions of a tensor, which is in the variable `tensor`; `body` is the function's."""
    mask = declare("mask", f"make_dim_mask({_write_dims(role.dims, names)}, {names.member(role.name)}dim())")
    if mask.text not in body:  # the function may have it, to resize its result
        yield mask
    yield declare("kept", f"merge_dims({tensor}, ~mask)")
    yield declare("reduced", f"merge_dims({tensor}, mask)")
    counts = ", ".join(f"static_cast<uint32_t>({each}.sizes.size())" for each in ("kept", "reduced"))
    yield declare("ndim", f"{{{counts}}}", "std::array<uint32_t, 2>")
    yield declare(REDUCED, "c10::multiply_integers(reduced.sizes)", "int64_t")


def _write_dims(argument: str, names: Names) -> str:
    """An argument that names dimensions, as an optional list."""
    name, type_ = names.variable(argument), names.types.get(argument, "")
    if type_ == "int?":
        return f"{name}.has_value() ? OptionalIntArrayRef({name}.value()) : std::nullopt"
    return f"IntArrayRef({name})" if type_ == "int" else name
