"""Results that are taken from the sorted rows of a tensor, whatever their size: sorts, and elements by their rank.

Blocks of a row are sorted in a threadgroup each, then merged to runs of twice the length until one is left. A thread
finds where the merged elements begin that it writes, and merges a few. Equal elements keep their order, and no memory
is padded. Source: ATen/ceil_div.h.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.metal.codegen.elements import KEY
from porter.metal.codegen.host_code import Block, Launch, Node
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import SIMD_LANES
from porter.metal.forms.form import (
    CEIL_DIV,
    GRID,
    HEADERS,
    IN_GROUP,
    MOST_THREADS,
    Form,
    FormKernels,
    Site,
    dispatch_groups,
    dispatch_threads,
    encode,
    list_elements,
    set_arguments,
    write_kernel,
    write_type,
)

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

// How many of the first elements of two merged runs are those of the left one;
// equal elements keep their order, and no sum is larger than the runs
template <typename P, typename index_t>
inline index_t count_left(P left, index_t left_size, P right, index_t right_size, index_t count, bool descending) {
  index_t low = count > right_size ? count - right_size : 0;
  index_t high = min(count, left_size);
  while (low < high) {
    const index_t at = low + (high - low) / 2;
    const bool is_right = comes_before(right[count - 1 - at], left[at], descending);
    low = is_right ? low : at + 1;
    high = is_right ? at : high;
  }
  return low;
}

"""
_DECLARED = ("input", "run_values", "run_indices", "row_size", "type", "width", "kept_values", "kept_indices", "blocks")
_RESULTS = ("device T* values", "device long* indices")
_RUNS = ("constant T* run_values", "constant long* run_indices")
_RESULT_STRIDES = ("constant long* values_strides", "constant long* indices_strides", "constant long& ndim")
_ORDERED = ("constant long& kept", "constant bool& descending")
_BLOCKS = (
    *_RESULTS, "constant T* input", "constant long* sizes", "constant long* input_strides", *_RESULT_STRIDES,
    *_ORDERED, *IN_GROUP,
)  # fmt: skip
_MERGE = (*_RESULTS, *_RUNS, "constant long* sizes", *_RESULT_STRIDES, *_ORDERED, "constant long& width", GRID)
_MEDIAN = (*_RESULTS, *_RUNS, "constant long* sizes", *_RESULT_STRIDES, GRID)
_BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
_EACH = 4  # elements of a thread


class Kept(Enum):
    """What is kept of a sorted row."""

    ALL = "all elements"
    FIRST = "the first {count} elements"
    MEDIAN = "the lower median, or the first NaN"


@dataclass(frozen=True)
class Sort(Form):
    """What is kept of the sorted rows of `source` along the dimension `dim`.

    Without a `dim`, all elements are one row. Rows are in descending order if `descending`, an argument or a constant,
    says so; equal elements keep their order, and a NaN is larger than all numbers. A second result, if there is one
    (`places`), has where the elements were in their rows.
    """

    TITLE: ClassVar[str] = "order"
    READS_FED: ClassVar[bool] = True
    ALIKE: ClassVar[bool] = True

    source: str
    kept: Kept
    dim: str = ""
    descending: str | bool = False
    count: str = ""
    places: bool = True
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        rows = f"along {self.dim}" if self.dim else "as one row"
        how = f"descending by {self.descending}" if isinstance(self.descending, str) else ""
        how = how or ("descending" if self.descending else "ascending")
        kept = self.kept.value.format(count=self.count)
        yield f"output = {kept} of {self.source} sorted {rows}, {how}"
        if self.places:
            yield "indices = where these were in their rows"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        kinds = {dtype.kind for dtype in self.dtypes} - {Kind.COMPLEX}
        return [dtype for dtype in dtypes.ALL if dtype.kind in kinds]

    def list_moved(self) -> tuple[str, ...]:
        return (self.source,)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(self.source, instances)
        texts = [
            write_kernel(f"{name}_blocks", elements, _BLOCKS, _write_blocks(), style),
            write_kernel(f"{name}_merge", elements, _MERGE, _write_merge(), style),
        ]
        endings: tuple[str, ...] = ("_blocks", "_merge")
        if self.kept is Kept.MEDIAN:
            texts.append(write_kernel(name, elements, _MEDIAN, _write_median(), style))
            endings = (*endings, "")
        return FormKernels(name, "\n".join(texts), elements, helpers=(HELPERS,), endings=endings)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        writer = _Writer(self, kernels.name, site)
        lines: list[str | Node] = [*writer.start(), writer.encode()]
        return Launch(site.name_locals(lines, _DECLARED), frozenset((*HEADERS, CEIL_DIV)))


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
    yield f"threadgroup ushort shared_indices[{MOST_THREADS}];"
    yield "const index_t size = sizes[ndim - 1];"
    yield f"const uint block = {_EACH} * group_size;"
    yield "const index_t blocks = (size + block - 1) / block;"
    yield "const index_t start = index_t(group) % blocks * block;"
    yield "const uint count = min(index_t(block), size - start);"
    yield from _write_offsets(("input", "values", "indices"), "index_t(group) / blocks")
    stored = _write_store("(start + i)", "shared_values[i]", "start + shared_indices[i]")
    yield from f"""\
for (uint i = tid; i < count; i += group_size) {{
  shared_values[i] = input[input_offset + (start + i) * index_t(input_strides[ndim - 1])];
}}
{_BARRIER}
// A thread sorts four elements by how many of them come before each
const uint first = {_EACH} * tid;
{KEY} sorted_values[{_EACH}];
ushort sorted_indices[{_EACH}];
for (uint i = 0; i < {_EACH} && first + i < count; i++) {{
  sorted_values[i] = shared_values[first + i];
}}
for (uint i = 0; i < {_EACH} && first + i < count; i++) {{
  uint place = first;
  for (uint j = 0; j < {_EACH} && first + j < count; j++) {{
    place += j < i ? !comes_before(sorted_values[i], sorted_values[j], descending)
                   : comes_before(sorted_values[j], sorted_values[i], descending);
  }}
  shared_values[place] = sorted_values[i];
  shared_indices[place] = first + i;
}}
for (uint width = {_EACH}; width < count; width *= 2) {{
  {_BARRIER}
  const uint pair = min(first / width / 2 * 2 * width, count);
  const uint middle = min(pair + width, count);
  const uint end = min(middle + width, count);
  uint left = pair + count_left(
      &shared_values[pair], middle - pair, &shared_values[middle], end - middle, first - pair, descending);
  uint right = middle + (first - left);
  for (uint i = 0; i < {_EACH} && first + i < count; i++) {{
    const bool is_right =
        left == middle || (right < end && comes_before(shared_values[right], shared_values[left], descending));
    const uint from = is_right ? right++ : left++;
    sorted_values[i] = shared_values[from];
    sorted_indices[i] = shared_indices[from];
  }}
  {_BARRIER}
  for (uint i = 0; i < {_EACH} && first + i < count; i++) {{
    shared_values[first + i] = sorted_values[i];
    shared_indices[first + i] = sorted_indices[i];
  }}
}}
{_BARRIER}
for (uint i = tid; i < count && start + i < kept; i += group_size) {{""".splitlines()
    yield from (f"  {line}" for line in stored)
    yield "}"


def _write_merge() -> Iterator[str]:
    yield "const index_t size = sizes[ndim - 1];"
    yield f"const index_t threads = (size - 1) / {_EACH} + 1;"
    yield f"const index_t first = index_t(tid) % threads * {_EACH};"
    yield "const index_t row_start = index_t(tid) / threads * size;"
    yield from _write_offsets(("values", "indices"), "index_t(tid) / threads")
    yield from f"""\
const index_t pair = first / index_t(width) / 2 * 2 * index_t(width);
const index_t middle = pair + min(index_t(width), size - pair);
const index_t end = middle + min(index_t(width), size - middle);
constant {KEY}* row_values = run_values + row_start;
index_t left = pair + count_left(
    row_values + pair, middle - pair, row_values + middle, end - middle, first - pair, descending);
index_t right = middle + (first - left);
for (index_t to = first; to < first + min(index_t({_EACH}), min(size, index_t(kept)) - first); to++) {{
  const bool is_right =
      left == middle || (right < end && comes_before(row_values[right], row_values[left], descending));
  const index_t from = row_start + (is_right ? right++ : left++);""".splitlines()
    yield from (f"  {line}" for line in _write_store("to", "run_values[from]", "run_indices[from]"))
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


@dataclass(frozen=True)
class _Writer:
    form: Sort
    name: str
    site: Site

    @property
    def _picks(self) -> bool:
        return self.form.kept is Kept.MEDIAN

    def _dim(self) -> str:
        """The dimension, by the variable that the function wrapped it in."""
        dim = self.site.variable(self.form.dim)
        return self.site.code.find_variable(f"maybe_wrap_dim({dim}, $$rank)") or dim

    def start(self) -> Iterator[str]:
        source, values = self.site.variable(self.form.source), self.site.variable("result0")
        indices = self.site.variable("result1") if self.form.places else ""
        rows = f"{source}.movedim({self._dim()}, -1)" if self.form.dim else f"{source}.flatten()"
        yield f"const auto $input = {rows};"
        for name, result in (("$kept_values", values), ("$kept_indices", indices)):
            yield f"const auto {name} = {self._move(result) if result else self._make(values)};"
        yield "const int64_t $row_size = $input.size(-1);"
        yield write_type("$input", ("$input", "$kept_values", "$kept_indices"), "$type")
        yield from self.site.write_stream()

    def _make(self, values: str) -> str:
        return f"{values}.new_empty({{1}}, {values}.options().dtype(kLong))"

    def _move(self, result: str) -> str:
        """A result with what is kept of each row in the last dimension."""
        if not self.form.dim:
            return f"{result}.unsqueeze(-1)" if self._picks else result
        moved = f"{result}.movedim({self._dim()}, -1)"
        source = self.site.variable(self.form.source)
        return f"{result}.dim() < {source}.dim() ? {result}.unsqueeze(-1) : {moved}" if self._picks else moved

    def _descending(self) -> str:
        how = self.form.descending
        return self.site.variable(how) if isinstance(how, str) else str(how).lower()

    def encode(self) -> Block:
        """The kernels for blocks, for each doubling of the runs, and for what is picked of them."""
        temporary = {each: f"$kept_{each}.new_empty($input.sizes())" for each in ("values", "indices")}
        commands = (*self._sort_blocks(), *self._merge(temporary), *self._pick())
        return encode("blocksPSO", self.name, "$input", commands, self._prepare(temporary))

    def _prepare(self, temporary: dict[str, str]) -> Iterator[str]:
        yield f'auto blocksPSO = lib.getPipelineStateForFunc("{self.name}_blocks_" + $type);'
        yield f'auto mergePSO = lib.getPipelineStateForFunc("{self.name}_merge_" + $type);'
        most = f"{_EACH} * [blocksPSO maxTotalThreadsPerThreadgroup]"
        yield f"const auto most = std::min<int64_t>({MOST_THREADS}, {most});"
        yield f"int64_t $width = {_EACH * SIMD_LANES};"
        yield "while ($width < $row_size && 2 * $width <= most) {"
        yield "$width *= 2;"
        yield "}"
        for result, memory in temporary.items():
            run = memory if self._picks else f"$width < $row_size ? {memory} : $kept_{result}"
            yield f"Tensor $run_{result} = {run};"

    def _sort_blocks(self) -> Iterator[str]:
        yield from set_arguments(
            "blocksPSO",
            "$run_values, $run_indices, $input, $input.sizes(), $input.strides(), $run_values.strides(), "
            f"$run_indices.strides(), $input.dim(), $run_values.size(-1), {self._descending()}",
        )
        yield "const auto $blocks = $input.numel() / $row_size * at::ceil_div($row_size, $width);"
        yield from dispatch_groups("$blocks", f"$width / {_EACH}")

    def _merge(self, temporary: dict[str, str]) -> Iterator[str]:
        yield "for (; $width < $row_size; $width *= 2) {"
        for result, memory in temporary.items():
            merged = memory if self._picks else f"2 * $width < $row_size ? {memory} : $kept_{result}"
            yield f"const auto merged_{result} = {merged};"
        yield from set_arguments(
            "mergePSO",
            "merged_values, merged_indices, $run_values, $run_indices, $input.sizes(), merged_values.strides(), "
            f"merged_indices.strides(), $input.dim(), merged_values.size(-1), {self._descending()}, $width",
        )
        yield dispatch_threads("mergePSO", f"$input.numel() / $row_size * at::ceil_div<int64_t>($row_size, {_EACH})")
        yield from (f"$run_{each} = merged_{each};" for each in temporary)
        yield "}"

    def _pick(self) -> Iterator[str]:
        if not self._picks:
            return
        yield f'auto medianPSO = lib.getPipelineStateForFunc("{self.name}_" + $type);'
        yield from set_arguments(
            "medianPSO",
            "$kept_values, $kept_indices, $run_values, $run_indices, $input.sizes(), $kept_values.strides(), "
            "$kept_indices.strides(), $input.dim()",
        )
        yield dispatch_threads("medianPSO", "$input.numel() / $row_size")
