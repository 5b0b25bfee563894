"""The host code of reductions whose threads are chosen by the sizes of rows, and of what combines slices of them.

Source: ATen/AccumulateType.h (the types that sums have on MPS).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from porter.core.dtypes import BY_METAL
from porter.languages.identifiers import rename_identifiers
from porter.loops.expressions import ReductionKind
from porter.metal.codegen.canonicalize import TYPE as MOMENTS
from porter.metal.codegen.host_code import Block, Encode, Line, call_helper, declare
from porter.metal.codegen.kernel import NativeKernel
from porter.metal.codegen.schedule import SIMD_LANES
from porter.metal.codegen.slices import name_buffers
from porter.metal.helpers import read_helper

LARGEST = "kLargestRowIndex"
HEADERS = ("ATen/AccumulateType.h", "ATen/ceil_div.h")
LEAST_ELEMENTS = 32
_NARROW = ("float", "int", "bool", MOMENTS)  # types that a few simdgroups combine as well as all
_EXTREMES = (ReductionKind.MAX_NAN, ReductionKind.MIN_NAN)
_PARTS = "4"  # numbers of which a float3 has the size


def write_helper(threadgroup_reductions: bool) -> str:
    """What host files need to choose the threads of rows, once; without functions of threadgroups, for simdgroups."""
    numbers = {"LEAST": str(LEAST_ELEMENTS), "GROUP": "256" if threadgroup_reductions else "32"}
    return rename_identifiers(read_helper("share_rows.mm"), numbers)


@dataclass(frozen=True)
class SlicedRows:
    """How host code names what one kernel is launched with; `types` are its parameters' tensors, by name."""

    kernel: NativeKernel
    prefix: str  # of variables, where a function launches several kernels
    rows: str
    length: str
    adjacent: str  # the condition that neighboring rows are adjacent in memory; nothing if they never are
    spare: str  # what is bound where there are no slices
    types: Mapping[str, str]

    @property
    def group_size(self) -> str:
        """The argument for the threads of a threadgroup; nothing for the usual ones.

        Several simdgroups combine no 64-bit integers: c10/metal/reduction_utils.h has those shuffled in a simdgroup of
        which only as many lanes are active as there are simdgroups, and a lane that reads from an inactive one gets
        anything.
        """
        kernel, elements = self.kernel, self.kernel.elements
        partials = [partial for partial in kernel.partials if partial.type not in _NARROW]
        if not kernel.uses_reductions or not partials:
            return ""
        are_found = any(partial.found_in for partial in partials)
        if any(partial.type == "long" and not partial.found_in for partial in partials):
            return f"/*group_size=*/{SIMD_LANES}"
        usual = 1024 if are_found else 256  # of extremes, the indices may have 64 bits
        if not elements.has_long:
            return f"/*group_size=*/{usual}" if are_found else ""
        if not elements.has_floating:
            return f"/*group_size=*/{SIMD_LANES}"
        tensor = next(iter(self.types.values()))
        keeps_type = all(partial.kind in _EXTREMES for partial in partials)
        of_integers = f"isIntegralType({tensor}.scalar_type(), /*includeBool=*/true)"
        is_wide = f"{tensor}.scalar_type() == kLong" if keeps_type else of_integers
        return f"/*group_size=*/{is_wide} ? {SIMD_LANES} : {usual}"

    @property
    def threads(self) -> str:
        return f"{self.prefix}threads"

    @property
    def partials(self) -> list[str]:
        return [f"{self.prefix}{buffer}" for buffer in name_buffers(self.kernel.partials).values()]


def write_threads(sliced: SlicedRows) -> Iterator[Line]:
    """Variables for the threads of rows, and for what is stored of slices."""
    group_size = sliced.group_size
    adjacent = sliced.adjacent or ("false" if group_size else "")
    arguments = [sliced.rows, sliced.length, f"/*are_adjacent=*/{adjacent}" if adjacent else "", group_size]
    yield call_helper(sliced.threads, "share_rows", *filter(None, arguments))
    slices = f"{sliced.threads}.slices"
    for name, partial in zip(sliced.partials, sliced.kernel.partials, strict=True):
        options = f"{sliced.spare}.options().dtype({_find_type(partial.type, sliced)})"
        sizes = [slices] if sliced.rows == "1" else [sliced.rows, slices]
        sizes += [_PARTS] if partial.moments else []
        yield declare(name, f"{slices} > 1 ? at::empty({{{', '.join(sizes)}}}, {options}) : {sliced.spare}")


def _find_type(metal: str, sliced: SlicedRows) -> str:
    """The element type of a tensor that a kernel has as elements of a Metal type."""
    if metal == MOMENTS:
        return "kFloat"
    if metal in BY_METAL:
        return f"k{BY_METAL[metal].aten}"
    elements = sliced.kernel.elements
    [parameter] = (each.name for each in elements.parameters if elements.widen(each.name) == metal)
    element_type = f"{sliced.types[parameter]}.scalar_type()"
    accumulated = f"at::toAccumulateType({element_type}, kMPS)"
    return f"{element_type} == kBool ? kInt : {accumulated}" if elements.has_bool(parameter) else accumulated


def write_dispatch(sliced: SlicedRows, pso: str) -> str:
    return f"dispatch_rows(computeEncoder, {pso}, {sliced.rows}, {sliced.threads});"


def write_combination(sliced: SlicedRows, written: Sequence[str], numbers: Sequence[str]) -> Block:
    """The launch that combines slices, where there are several; `written` and `numbers` are other arguments."""
    combination, slices = sliced.kernel.combination, f"{sliced.threads}.slices"
    assert combination is not None
    dispatch = (
        Line(f"[computeEncoder dispatchThreadgroups:MTLSizeMake({sliced.rows}, 1, 1)"),
        Line("threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];"),
    )
    encode = Encode(
        sliced.kernel.name,
        tuple(f"scalarToMetalTypeString({sliced.types[each.name]})" for each in combination.elements.parameters),
        f"{sliced.prefix}combinePSO",
        tuple(sliced.partials),
        (*written, *sliced.partials, *numbers, slices),
        dispatch,
        combination.name.removeprefix(sliced.kernel.name),
    )
    return Block(f"if ({slices} > 1) {{", (encode,))
