"""Results that are convolutions of up to three dimensions and any strides, or their gradients by input or weights.

Each is a product of matrices for each group, of factors and of what a source has for windows and taps: the gradient of
the weights adds up all windows, the others all taps. A threadgroup has a tile, whose inner dimension its simdgroups
share; few rows are computed without tiles. Sums are floats.
Source: ATen/native/Convolution.cpp (`conv_output_size`, and what a transposed convolution is the gradient of).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import gcd, prod
from typing import ClassVar, Self

from porter.core import dtypes
from porter.core.dtypes import FLOAT, DType, Kind
from porter.loops.host_values import Arguments
from porter.metal.codegen.elements import KEY
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import (
    CEIL_DIV,
    HEADERS,
    RESULT,
    Form,
    FormCost,
    FormKernels,
    Site,
    count_bytes,
    list_elements,
    write_kernel,
)


class Convolved(Enum):
    """What of a convolution is a result, by the names of host code."""

    INPUT = "Input"
    WEIGHT = "Weight"
    OUTPUT = "Output"


_SIDE = 32  # rows and columns that a threadgroup has
_LEAST_ROWS = 4  # of a group, which tiles compute
_NUMBERS = ("padding", "stride", "dilation", "groups")


@dataclass(frozen=True)
class Convolution(Form):
    """A convolution of an input with weights, of which an argument or a result is the output."""

    TITLE: ClassVar[str] = "convolution"
    ANY_RANK: ClassVar[bool] = True
    SHARED: ClassVar[bool] = True
    BY_RESULT: ClassVar[bool] = True

    input: str
    weight: str
    output: str
    results: tuple[Convolved, ...]
    bias: str = ""
    numbers: tuple[str, ...] = _NUMBERS  # arguments: padding, stride, dilation and groups
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        added = f" + {self.bias}[c]" if self.bias else ""
        padding, stride, dilation, _ = self.numbers
        at = f"p * {stride} - {padding} + t * {dilation}"
        first, weight, output = f"{self.input}[n, d, {at}]", f"{self.weight}[c, d, t]", f"{self.output}[n, c, p]"
        for i, result in enumerate(self.results):
            match result:
                case Convolved.INPUT:
                    yield f"result{i}[n, d, {at}] = sum over c, p, t of {output} * {weight}"
                case Convolved.WEIGHT:
                    yield f"result{i}[c, d, t] = sum over n, p of {output} * {first}"
                case Convolved.OUTPUT:
                    yield f"result{i}[n, c, p] = sum over d, t of {first} * {weight}{added}"
        yield "of the channels d and c of each group"

    def list_parts(self) -> Iterator[Self]:
        return (replace(self, results=(each,)) for each in self.results)

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [dtype for dtype in dtypes.ALL if dtype.kind is Kind.FLOATING]

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(RESULT, instances)
        endings = {"": (_TILE_ARGUMENTS, _TILE), "_direct": (_DIRECT_ARGUMENTS, _DIRECT)}
        texts = (
            write_kernel(f"{name}{ending}", elements, (*_ARGUMENTS, *arguments), body.splitlines(), style)
            for ending, (arguments, body) in endings.items()
        )
        return FormKernels(name, "\n".join(texts), elements, endings=tuple(endings))

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """As `run_convolution` chooses kernels and slices."""
        for i, computed in enumerate(self.results):
            result = f"result{i}"
            if result in call.tensors:  # a mask may ask for others alone
                yield from self._count_result(call, computed, result)

    def _count_result(self, call: Arguments, computed: Convolved, result: str) -> Iterator[FormCost]:
        names = {**self._names, computed: result}
        first, weight, output = (call.tensors[name].shape for name in names.values())
        stride, dilation = (_read_list(call, name) for name in self.numbers[1:3])
        groups = call.others[self.numbers[3]]
        assert isinstance(groups, int)
        is_input = computed is Convolved.INPUT
        # Places that lie a stride apart have a launch, unless dilation leaves them no taps
        launches = prod(map(_count_steps, stride, dilation)) if is_input else 1
        windows = first[0] * prod((first if is_input else output)[2:]) // (prod(stride) if is_input else 1)
        taps = prod(weight[2:]) * (weight[0] // groups if is_input else weight[1]) // launches
        columns, inner = (taps, windows) if computed is Convolved.WEIGHT else (windows, taps)
        rows = weight[1] if is_input else weight[0] // groups
        is_direct = rows < _LEAST_ROWS
        across, down = (1, 1) if is_direct else (-(-columns // _SIDE), -(-rows // _SIDE))
        slices = 1 if is_direct else max(1, min(inner // 2048, -(-256 // (groups * across * down))))
        factors = names[Convolved.OUTPUT if computed is Convolved.WEIGHT else Convolved.WEIGHT]
        source = names[Convolved.OUTPUT if is_input else Convolved.INPUT]
        reads = {
            factors: (count_bytes(call, factors),) * across,
            source: (count_bytes(call, source),) * down * launches,
        }
        if self.bias in call.tensors:
            reads[self.bias] = (count_bytes(call, self.bias),)
        written, partial = count_bytes(call, result), slices * prod(call.tensors[result].shape) * FLOAT.size
        turns = rows * groups * columns * inner * launches
        yield FormCost(rows * groups, turns, reads, written if slices == 1 else partial)
        if slices > 1:
            yield FormCost(rows * groups, partial // FLOAT.size, {"partial": (partial,)}, written)

    @property
    def _names(self) -> dict[Convolved, str]:
        return {Convolved.INPUT: self.input, Convolved.WEIGHT: self.weight, Convolved.OUTPUT: self.output}

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        [computed] = self.results
        tensors = [site.variable(name) for name in (self._names | {computed: RESULT}).values()]
        bias = site.variable(self.bias) if self.bias else "std::nullopt"
        passed = (*tensors, bias, *map(site.variable, self.numbers))
        call = f'run_convolution("{kernels.name}", Convolved::{computed.value}, {", ".join(passed)});'
        is_transposed = computed is Convolved.INPUT and not self.input
        checks = _write_check(tensors, *map(site.variable, self.numbers[:3])) if is_transposed else ()
        return Launch((*checks, Line(call, helper="run_convolution")), frozenset((*HEADERS, CEIL_DIV)))


def _write_check(tensors: Sequence[str], padding: str, stride: str, dilation: str) -> Iterator[Line]:
    """The CPU's limit of output padding, of the sizes that it led to: a graph refused what is beyond."""
    result, weight, output = tensors
    yield Line(f"for (size_t i = 0; i < {stride}.size(); i++) {{")
    reach = f"{result}.size(i + 2) + 2 * {padding}[i] - {dilation}[i] * ({weight}.size(i + 2) - 1) - 1"
    yield Line(f"  const int64_t more = {reach} - ({output}.size(i + 2) - 1) * {stride}[i];")
    limit = f"std::max({stride}[i], {dilation}[i])"
    yield Line(f'  TORCH_CHECK(more < {limit}, "output padding must be smaller than either stride or dilation");')
    yield Line("}")


def _read_list(call: Arguments, name: str) -> list[int]:
    listed = call.others[name]
    return [number for number in listed if isinstance(number, int)] if isinstance(listed, tuple) else []


def _count_steps(stride: int, dilation: int) -> int:
    """The taps from one to the next that a place of an input has products of."""
    return stride // gcd(stride, dilation)


# `sizes` are the rows of a group, the slices, the elements of one, whether windows are added up, and whether there is a
# bias, with its stride; `geometry` is what `find_element` takes.
_ARGUMENTS = (
    f"device {KEY}* output", "device float* partial", f"const device {KEY}* factors", f"const device {KEY}* source",
    f"const device {KEY}* bias", "constant long* sizes", "constant long* columns", "constant long* inner",
    "constant long* places", "constant long* output_strides", "constant long* factor_strides",
    "constant long* source_strides", "constant long* geometry",
)  # fmt: skip
_TILE_ARGUMENTS = (
    "uint3 tile [[threadgroup_position_in_grid]]", "uint simdgroup [[simdgroup_index_in_threadgroup]]",
    "uint lane [[thread_index_in_simdgroup]]",
)  # fmt: skip
_DIRECT_ARGUMENTS = ("uint3 tid [[thread_position_in_grid]]", "uint3 group_size [[threads_per_threadgroup]]")
_TILE = f"""\
using index4 = vec<index_t, 4>;
// 32 rows and 8 columns, then 8 rows and 32 columns; in the end the whole tile
threadgroup float memory[4][32 * 32];
threadgroup index4 splits[4][8];
threadgroup float* factor_rows = memory[simdgroup];
threadgroup float* source_rows = factor_rows + 32 * 8;
const index_t rows = sizes[0], slices = sizes[1];
const bool adds_windows = sizes[3];
const index_t width = count_elements<index_t>(columns), length = count_elements<index_t>(inner);
const index_t group = tile.z / slices, slice = tile.z % slices;
const index_t top = index_t(tile.y) * 32, column = index_t(tile.x) * 32 + lane;
const index4 here = split_index(column, columns);
const device {KEY}* f = factors + group * index_t(factor_strides[0]);
const device {KEY}* s = source + group * index_t(source_strides[0]);
ProductTile<float, float, 32> totals, sums;
uint steps = 0;
for (index_t k = (slice * 4 + simdgroup) * 8; k < length; k += slices * 4 * 8) {{
  const index_t mine = k + lane % 8;
  const index4 split = split_index(mine, inner);
  const index_t offset = find_offset(split, factor_strides + 2);
  if (lane < 8) {{
    splits[simdgroup][lane] = split;
  }}
  for (uint i = 0; i < 8; i++) {{
    const index_t row = top + i * 4 + lane / 8;
    const bool is_inside = row < rows && mine < length;
    factor_rows[i * 32 + lane] = is_inside ? static_cast<float>(f[row * index_t(factor_strides[1]) + offset]) : 0;
  }}
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < 8; i++) {{
    const index4 there = splits[simdgroup][i];
    index_t from = -1;
    if (column < width && k + i < length) {{
      const index4 window = adds_windows ? there : here, tap = adds_windows ? here : there;
      from = find_element(window, tap, places, source_strides + 1, geometry);
    }}
    source_rows[i * 32 + lane] = from >= 0 ? static_cast<float>(s[from]) : 0;
  }}
  simdgroup_barrier(mem_flags::mem_threadgroup);
  sums.template add<8, 32>(factor_rows, source_rows, lane);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  // Few products are added up in a row, so that those of long rows are as exact
  if (++steps % 32 == 0) {{
    totals.take(sums);
  }}
}}
totals.take(sums);
#pragma unroll
for (uint row = 0; row < 32; row += 8) {{
  totals.store(memory[simdgroup] + row * 32, row, lane);
}}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint i = simdgroup; i < 32; i += 4) {{
  const index_t row = top + i;
  if (row >= rows || column >= width) {{
    break;
  }}
  const uint at = i * 32 + lane;
  const float sum = memory[0][at] + memory[1][at] + memory[2][at] + memory[3][at];
  const float added = sizes[4] && slice == 0 ? static_cast<float>(bias[(group * rows + row) * index_t(sizes[5])]) : 0;
  const index_t first = group * index_t(output_strides[0]) + row * index_t(output_strides[1]);
  const index_t to = first + find_offset(here, output_strides + 2);
  if (slices > 1) {{
    partial[slice * index_t(sizes[2]) + to] = sum + added;
  }} else {{
    output[to] = static_cast<{KEY}>(sum + added);
  }}
}}
"""
_DIRECT = f"""\
const index_t rows = sizes[0], length = count_elements<index_t>(inner);
const bool adds_windows = sizes[3];
const index_t group = tid.z / rows, row = tid.z % rows;
const auto here = split_index(index_t(tid.y), columns);
const device {KEY}* f = factors + group * index_t(factor_strides[0]) + row * index_t(factor_strides[1]);
const device {KEY}* s = source + group * index_t(source_strides[0]);
// Each lane has as many products
const index_t share = (length + group_size.x - 1) / group_size.x;
const index_t end = min(length, (index_t(tid.x) + 1) * share);
auto there = split_index(index_t(tid.x) * share, inner);
float total = 0, sum = 0;
uint steps = 0;
for (index_t k = tid.x * share; k < end; k++) {{
  const auto window = adds_windows ? there : here, tap = adds_windows ? here : there;
  const index_t from = find_element(window, tap, places, source_strides + 1, geometry);
  if (from >= 0) {{
    sum += static_cast<float>(f[find_offset(there, factor_strides + 2)]) * static_cast<float>(s[from]);
  }}
  if (++steps % 256 == 0) {{
    total += sum;
    sum = 0;
  }}
  there[3]++;
  for (uint dim = 3; dim > 0 && there[dim] == index_t(inner[dim]); dim--) {{
    there[dim] = 0;
    there[dim - 1]++;
  }}
}}
total += sum;
if (group_size.x > 1) {{
  total = simd_sum(total);
}}
if (tid.x == 0) {{
  const float added = sizes[4] ? static_cast<float>(bias[index_t(tid.z) * index_t(sizes[5])]) : 0;
  const index_t to = group * index_t(output_strides[0]) + row * index_t(output_strides[1]);
  output[to + find_offset(here, output_strides + 2)] = static_cast<{KEY}>(total + added);
}}
"""
