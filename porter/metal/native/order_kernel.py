"""Kernels that sort rows: blocks of a row in a threadgroup each, then runs of twice the length until one is left.

Both stages merge: an element goes to its place among its own run and those of the other run before it. Equal elements
keep their order, and no memory is padded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.loops.orders import Kept, RowOrder
from porter.metal.native.elements import KEY, Elements, TypeParameter
from porter.metal.native.kernel import KernelStyle, register

MOST_THREADS = 1024
BLOCKS, MERGE, MEDIAN = "blocks", "merge", "median"
# What all kernels of orders in a file share.
HELPERS = """\
// Whether an element comes before another; a NaN is larger than all numbers, as
// it is on the CPU
template <typename T>
inline bool comes_before(T a, T b, bool descending) {
  const bool a_is_nan = isnan(static_cast<float>(a));
  const bool b_is_nan = isnan(static_cast<float>(b));
  if (a_is_nan || b_is_nan) {
    return descending ? a_is_nan && !b_is_nan : b_is_nan && !a_is_nan;
  }
  return descending ? a > b : a < b;
}

// Where element i of a row goes when its runs of this width are merged in
// pairs; equal elements keep their order, and no sum is larger than the row
template <typename P, typename index_t>
inline index_t merged_position(P values, index_t i, index_t width, index_t size, bool descending) {
  const index_t start = i / width / 2 * 2 * width;
  const index_t middle = start + min(width, size - start);
  const bool is_left = i < middle;
  index_t low = is_left ? middle : start;
  index_t high = is_left ? middle + min(width, size - middle) : middle;
  while (low < high) {
    const index_t at = low + (high - low) / 2;
    const bool is_before = is_left ? comes_before(values[at], values[i], descending)
                                   : !comes_before(values[i], values[at], descending);
    low = is_before ? at + 1 : low;
    high = is_before ? high : at;
  }
  return i - middle + low;
}

"""
_RESULTS = ("device T* values", "device long* indices")
_RUNS = ("constant T* run_values", "constant long* run_indices")
_RESULT_STRIDES = ("constant long* values_strides", "constant long* indices_strides", "constant long& ndim")
_ORDERED = ("constant long& kept", "constant bool& descending")
_GRID = "uint tid [[thread_position_in_grid]]"
_ARGUMENTS = {
    BLOCKS: (
        *_RESULTS, "constant T* input", "constant long* sizes", "constant long* input_strides", *_RESULT_STRIDES,
        *_ORDERED, "uint group [[threadgroup_position_in_grid]]", "uint tid [[thread_position_in_threadgroup]]",
        "uint group_size [[threads_per_threadgroup]]",
    ),
    MERGE: (*_RESULTS, *_RUNS, "constant long* sizes", *_RESULT_STRIDES, *_ORDERED, "constant long& width", _GRID),
    MEDIAN: (*_RESULTS, *_RUNS, "constant long* sizes", *_RESULT_STRIDES, _GRID),
}  # fmt: skip
_BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@dataclass(frozen=True)
class OrderKernels:
    """The kernels of an order in one text; `stages` are the suffixes of their names."""

    name: str
    source: str
    stages: tuple[str, ...]
    elements: Elements


def write_order_kernels(found: RowOrder, name: str, style: KernelStyle) -> OrderKernels:
    """The kernels for all element types that have an order."""
    instances = tuple((dtype,) for dtype in list_types(found))
    elements = Elements((TypeParameter(KEY, found.source),), {}, instances, instances[0][0], False)
    stages = (BLOCKS, MERGE, *((MEDIAN,) if found.kept is Kept.MEDIAN else ()))
    texts = [_write_kernel(stage, name_kernel(name, stage), elements, style) for stage in stages]
    return OrderKernels(name, "\n".join(texts), stages, elements)


def name_kernel(name: str, stage: str) -> str:
    """The operator's name for what picks results, else with that of the stage."""
    return name if stage is MEDIAN else f"{name}_{stage}"


def list_types(found: RowOrder) -> Sequence[DType]:
    """The element types of the recorded kinds."""
    kinds = {dtype.kind for dtype in found.dtypes} - {Kind.COMPLEX}
    return [dtype for dtype in dtypes.ALL if dtype.kind in kinds]


def _write_kernel(stage: str, name: str, elements: Elements, style: KernelStyle) -> str:
    arguments = _ARGUMENTS[stage]
    head = f"template <typename {KEY}, typename index_t>\nkernel void {name}({', '.join(arguments)}) {{\n"
    body = "".join(f"  {line}\n" for line in _BODIES[stage]())
    return f"{head}{body}}}\n\n{register(name, elements, arguments, style)}"


def _write_offsets(tensors: Sequence[str], row: str) -> Iterator[str]:
    """Where a row begins in some tensors, by the coordinates of all dimensions but the last."""
    yield f"index_t rest = {row};"
    yield from (f"index_t {each}_offset = 0;" for each in tensors)
    yield "for (long d = ndim - 2; d >= 0; d--) {"
    yield "  const index_t i = rest % index_t(sizes[d]);"
    yield "  rest /= index_t(sizes[d]);"
    yield from (f"  {each}_offset += i * index_t({each}_strides[d]);" for each in tensors)
    yield "}"


def _write_store(at: str, value: str, index: str) -> Iterator[str]:
    yield f"values[values_offset + {at} * index_t(values_strides[ndim - 1])] = {value};"
    yield f"indices[indices_offset + {at} * index_t(indices_strides[ndim - 1])] = {index};"


def _write_blocks() -> Iterator[str]:
    yield f"threadgroup {KEY} shared_values[{MOST_THREADS}];"
    yield f"threadgroup uint shared_indices[{MOST_THREADS}];"
    yield "const index_t size = sizes[ndim - 1];"
    yield "const index_t blocks = (size + group_size - 1) / group_size;"
    yield "const index_t start = index_t(group) % blocks * group_size;"
    yield "const uint count = min(index_t(group_size), size - start);"
    yield from _write_offsets(("input", "values", "indices"), "index_t(group) / blocks")
    yield "if (tid < count) {"
    yield "  shared_values[tid] = input[input_offset + (start + tid) * index_t(input_strides[ndim - 1])];"
    yield "  shared_indices[tid] = tid;"
    yield "}"
    yield "for (uint width = 1; width < group_size; width *= 2) {"
    yield f"  {_BARRIER}"
    yield "  const uint from = min(tid, count - 1);"
    yield "  const T value = shared_values[from];"
    yield "  const uint index = shared_indices[from];"
    yield "  const uint to = merged_position(&shared_values[0], from, width, count, descending);"
    yield f"  {_BARRIER}"
    yield "  if (tid < count) {"
    yield "    shared_values[to] = value;"
    yield "    shared_indices[to] = index;"
    yield "  }"
    yield "}"
    yield _BARRIER
    yield "if (tid < count && start + tid < kept) {"
    yield from (
        f"  {line}" for line in _write_store("(start + tid)", "shared_values[tid]", "start + shared_indices[tid]")
    )
    yield "}"


def _write_merge() -> Iterator[str]:
    yield "const index_t size = sizes[ndim - 1];"
    yield "const index_t at = index_t(tid) % size;"
    yield "const index_t row_start = tid - at;"
    yield from _write_offsets(("values", "indices"), "index_t(tid) / size")
    yield "const index_t to = merged_position(run_values + row_start, at, index_t(width), size, descending);"
    yield "if (to < kept) {"
    yield from (f"  {line}" for line in _write_store("to", "run_values[tid]", "run_indices[tid]"))
    yield "}"


def _write_median() -> Iterator[str]:
    yield "const index_t size = sizes[ndim - 1];"
    yield "const index_t row_start = index_t(tid) * size;"
    yield "index_t at = row_start + size - 1;"
    yield "if (isnan(static_cast<float>(run_values[at]))) {"
    yield "  while (at > row_start && isnan(static_cast<float>(run_values[at - 1]))) {"
    yield "    at--;"
    yield "  }"
    yield "} else {"
    yield "  at = row_start + (size - 1) / 2;"
    yield "}"
    yield from _write_offsets(("values", "indices"), "tid")
    yield "values[values_offset] = run_values[at];"
    yield "indices[indices_offset] = run_indices[at];"


_BODIES = {BLOCKS: _write_blocks, MERGE: _write_merge, MEDIAN: _write_median}
