"""Kernels for distinct values: one marks slices that differ from the one before, one sums up the marks of threadgroups,
one ranks slices by them, and one takes the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.loops.distinct import DistinctValues
from porter.loops.orders import Kept, RowOrder
from porter.metal.native.elements import KEY, Elements, TypeParameter
from porter.metal.native.kernel import KernelStyle, register
from porter.metal.native.order_kernel import HELPERS as ORDER_HELPERS
from porter.metal.native.order_kernel import OrderKernels, write_order_kernels
from porter.metal.native.place_kernel import SCAN

MOST_THREADS = 1024
MARKS, ENDS, RANKS, SORTED = "marks", "ends", "ranks", "sorted"
_POSITIONS = (
    "uint group [[threadgroup_position_in_grid]]", "uint tid [[thread_position_in_threadgroup]]",
    "uint group_size [[threads_per_threadgroup]]",
)  # fmt: skip
_GRID = "uint tid [[thread_position_in_grid]]"
_SIZES = ("constant long& slices", "constant long& slice_size")
_MARK = """\
  // A slice that differs from the one before is marked; the first is always
  const index_t slice = index_t(tid) / index_t(slice_size) % index_t(slices);
  if (slice == 0 ? tid > 0 : input[tid] == input[tid - index_t(slice_size)]) {
    return;
  }
  if (atomic_exchange_explicit(marks + slice, 1, memory_order_relaxed) == 0) {
    atomic_fetch_add_explicit(group_counts + slice / index_t(group_size), 1, memory_order_relaxed);
  }
"""
_END = """\
  threadgroup uint sums[{most}];
  long total = 0;
  for (long start = 0; start < groups; start += group_size) {{
    const long group = start + tid;
    const uint sum = scan_threadgroup(sums, group < groups ? group_counts[group] : 0, tid, group_size);
    if (group < groups) {{
      group_ends[group] = total + sum;
    }}
    total += sums[group_size - 1];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }}
  if (tid == 0) {{
    *last = total - 1;
  }}
"""
_RANK = """\
  threadgroup uint sums[{most}];
  const long slice = long(group) * group_size + tid;
  const uint mark = slice < slices ? marks[slice] : 0;
  const uint sum = scan_threadgroup(sums, mark, tid, group_size);
  if (slice >= slices) {{
    return;
  }}
  const long rank = group_ends[group] - sums[group_size - 1] + sum - 1;
  if (mark) {{
    starts[rank] = slice;
  }}
  if (has_inverse) {{
    inverse[{place}] = rank;
  }}
"""
_TAKE = """\
  const index_t slice = index_t(tid) / index_t(slice_size) % index_t(slices);
  const index_t found = *last + 1;
  if (slice < found) {
    output[tid] = input[tid + (index_t(starts[slice]) - slice) * index_t(slice_size)];
  }
  if (has_counts && index_t(tid) < found) {
    counts[tid] = (index_t(tid) + 1 < found ? starts[tid + 1] : slices) - starts[tid];
  }
"""


@dataclass(frozen=True)
class DistinctKernels:
    """The kernels in one text; the one that takes the values has the operator's name, the others one with a suffix.

    `helpers` are what a file has once. `order` sorts elements first, if that is needed.
    """

    name: str
    source: str
    helpers: tuple[str, ...]
    elements: Elements
    order: OrderKernels | None


def write_distinct_kernels(found: DistinctValues, name: str, style: KernelStyle) -> DistinctKernels:
    """The kernels for all element types but complex ones."""
    instances = tuple((dtype,) for dtype in list_types())
    elements = Elements((TypeParameter(KEY, found.source),), {}, instances, instances[0][0], False)
    order = write_order_kernels(order_elements(found), name_kernel(name, SORTED), style) if found.is_sorted else None
    texts = [
        *([order.source] if order else []),
        _write_marks(name, elements, style),
        _write_ends(name),
        _write_ranks(name, found.is_sorted),
        _write_take(name, elements, style),
    ]
    return DistinctKernels(name, "\n".join(texts), (*([ORDER_HELPERS] if order else []), SCAN), elements, order)


def order_elements(found: DistinctValues) -> RowOrder:
    """How elements are sorted."""
    return RowOrder(found.source, Kept.ALL, dtypes=tuple(list_types()))


def name_kernel(name: str, stage: str) -> str:
    return f"{name}_{stage}"


def list_types() -> Sequence[DType]:
    return [dtype for dtype in dtypes.ALL if dtype.kind is not Kind.COMPLEX]


def _write_marks(name: str, elements: Elements, style: KernelStyle) -> str:
    arguments = (
        "device atomic_int* marks", "device atomic_int* group_counts", "constant T* input", *_SIZES,
        "constant long& group_size", _GRID,
    )  # fmt: skip
    return _write_typed(name_kernel(name, MARKS), arguments, _MARK, elements, style)


def _write_ends(name: str) -> str:
    arguments = (
        "device long* group_ends", "device int* last", "constant int* group_counts", "constant long& groups",
        *_POSITIONS[1:],
    )  # fmt: skip
    return _write_plain(name_kernel(name, ENDS), arguments, _END.format(most=MOST_THREADS))


def _write_ranks(name: str, is_sorted: bool) -> str:
    arguments = (
        "device long* starts", "device long* inverse", "constant int* marks", "constant long* group_ends",
        *(["constant long* places"] if is_sorted else []), "constant long& slices", "constant bool& has_inverse",
        *_POSITIONS,
    )  # fmt: skip
    body = _RANK.format(most=MOST_THREADS, place="places[slice]" if is_sorted else "slice")
    return _write_plain(name_kernel(name, RANKS), arguments, body)


def _write_take(name: str, elements: Elements, style: KernelStyle) -> str:
    arguments = (
        "device T* output", "device long* counts", "constant T* input", "constant long* starts", "constant int* last",
        *_SIZES, "constant bool& has_counts", _GRID,
    )  # fmt: skip
    return _write_typed(name, arguments, _TAKE, elements, style)


def _write_plain(name: str, arguments: Sequence[str], body: str) -> str:
    return f"kernel void {name}({', '.join(arguments)}) {{\n{body}}}\n"


def _write_typed(name: str, arguments: Sequence[str], body: str, elements: Elements, style: KernelStyle) -> str:
    head = f"template <typename {KEY}, typename index_t>\nkernel void {name}({', '.join(arguments)}) {{\n"
    return f"{head}{body}}}\n\n{register(name, elements, arguments, style)}"
