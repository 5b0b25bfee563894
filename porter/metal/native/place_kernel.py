"""Kernels for the coordinates of nonzero elements: one counts those of each threadgroup, one writes them in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.loops.places import NonzeroPlaces
from porter.metal.native.elements import KEY, Elements, TypeParameter
from porter.metal.native.kernel import KernelStyle, register

MOST_THREADS = 1024
_HELPERS = """\
// Whether there is an element of this index, and it is not zero
template <typename T, typename index_t>
inline bool is_nonzero(
    constant T* input, index_t index, constant long* sizes, constant long* strides, long ndim, long numel) {
  index_t rest = index;
  index_t offset = 0;
  for (long d = ndim - 1; d >= 0; d--) {
    offset += rest % index_t(sizes[d]) * index_t(strides[d]);
    rest /= index_t(sizes[d]);
  }
  return index < numel && input[offset] != T(0);
}

"""
# What kernels share that rank elements.
SCAN = """\
// The sum of the values of a threadgroup up to that of each thread
inline uint scan_threadgroup(threadgroup uint* sums, uint value, uint tid, uint group_size) {
  sums[tid] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint offset = 1; offset < group_size; offset *= 2) {
    const uint before = tid >= offset ? sums[tid - offset] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sums[tid] += before;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  return sums[tid];
}

"""
_INPUT = (
    "constant T* input", "constant long* sizes", "constant long* strides", "constant long& ndim",
    "constant long& numel",
)  # fmt: skip
_POSITIONS = (
    "uint group [[threadgroup_position_in_grid]]", "uint tid [[thread_position_in_threadgroup]]",
    "uint group_size [[threads_per_threadgroup]]",
)  # fmt: skip
_RANK = """\
  threadgroup uint sums[{most}];
  const index_t index = index_t(group) * group_size + tid;
  const bool is_found = is_nonzero(input, index, sizes, strides, ndim, numel);
  const uint rank = scan_threadgroup(sums, is_found, tid, group_size);
"""
_COUNT = """\
  if (tid == group_size - 1) {
    counts[group] = rank;
  }
"""
_WRITE = """\
  if (!is_found) {
    return;
  }
  const index_t row = ends[group] - sums[group_size - 1] + rank - 1;
  index_t rest = index;
  for (long d = ndim - 1; d >= 0; d--) {
    output[row * index_t(output_strides[0]) + d * index_t(output_strides[1])] = rest % index_t(sizes[d]);
    rest /= index_t(sizes[d]);
  }
"""


@dataclass(frozen=True)
class PlaceKernels:
    """The kernels in one text; the one that counts has the name of the other with `_count`."""

    name: str
    source: str
    elements: Elements


def write_place_kernels(found: NonzeroPlaces, name: str, style: KernelStyle) -> PlaceKernels:
    """The kernels for all element types but complex ones."""
    instances = tuple((dtype,) for dtype in list_types())
    elements = Elements((TypeParameter(KEY, found.source),), {}, instances, instances[0][0], False)
    counting = ("device int* counts", *_INPUT, *_POSITIONS)
    writing = ("device long* output", "constant int* ends", *_INPUT, "constant long* output_strides", *_POSITIONS)
    rank = _RANK.format(most=MOST_THREADS)
    texts = [
        _write_kernel(f"{name}_count", counting, rank + _COUNT, elements, style),
        _write_kernel(name, writing, rank + _WRITE, elements, style),
    ]
    return PlaceKernels(name, _HELPERS + SCAN + "\n".join(texts), elements)


def list_types() -> Sequence[DType]:
    return [dtype for dtype in dtypes.ALL if dtype.kind is not Kind.COMPLEX]


def _write_kernel(name: str, arguments: Sequence[str], body: str, elements: Elements, style: KernelStyle) -> str:
    head = f"template <typename {KEY}, typename index_t>\nkernel void {name}({', '.join(arguments)}) {{\n"
    return f"{head}{body}}}\n\n{register(name, elements, arguments, style)}"
