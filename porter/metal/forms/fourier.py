"""Results that are Fourier transforms of real or complex numbers along some dimensions, of any sizes and strides.

Threads have 16 elements of a row each, which every pass makes longer transforms of (Stockham); a threadgroup's memory
takes up to 4096 elements from pass to pass. The roots of unity are computed from whole numbers, those between as
products of up to four. Rows of an even number of real elements are transformed as half as many pairs. Longer rows are
transformed in two parts (four-step), and those with a greater prime factor as a convolution (Bluestein), by `run_fft`.
Source: aten/src/ATen/native/SpectralOpsUtils.h (normalizations), aten/src/ATen/native/mkl/SpectralOps.cpp (which
dimension has half of a spectrum).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import ClassVar

from porter.core.dtypes import FLOAT, FLOAT2, DType
from porter.loops.host_values import Arguments
from porter.metal.codegen.elements import KEY, Elements, TypeParameter
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import (
    CEIL_DIV,
    GRID,
    HEADERS,
    IN_GROUP,
    RESULT,
    Form,
    FormCost,
    FormKernels,
    Site,
    count_bytes,
    write_kernel,
)

_INPUT_KEY = f"{KEY}1"
_TYPES = ((FLOAT2, FLOAT2), (FLOAT2, FLOAT), (FLOAT, FLOAT2))  # of results and of what is transformed
_HEADERS = (
    CEIL_DIV, "ATen/WrapDimUtilsMulti.h", "ATen/native/Resize.h", "ATen/native/SpectralOpsUtils.h",
    "c10/util/llvmMathExtras.h",
)  # fmt: skip


@dataclass(frozen=True)
class Fourier(Form):
    """The transform of `source` along the dimensions `dims`, whose `normalization` is a number of ATen's.

    Complex results of complex numbers are forward by a flag. Results of real numbers are forward, of the last of the
    dimensions as far as the flag `one_sided` says. Real results are inverse, with `size` elements of the last one.
    """

    TITLE: ClassVar[str] = "Fourier transform"
    ANY_RANK: ClassVar[bool] = True
    SHARED: ClassVar[bool] = True
    RESIZES: ClassVar[bool] = True

    source: str
    dims: str
    normalization: str
    forward: str = ""
    one_sided: str = ""
    size: str = ""
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        sign = "-" if self.one_sided else "+" if self.size else "-/+"
        yield f"result[k] = scale * sum over m of {self.source}[m] * exp({sign} 2 pi i k m / n)"
        yield f"along the dimensions {self.dims}, with the scale of {self.normalization}"
        if self.forward:
            yield f"- with {self.forward}, + without"
        if self.one_sided:
            yield f"real {self.source}; with {self.one_sided}, n / 2 + 1 elements of the last dimension"
        if self.size:
            yield f"the real part, of {self.size} elements of the last dimension; {self.source} has half of them"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [FLOAT, FLOAT2]

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        """One text serves all transforms of a file."""
        parameters = (TypeParameter(KEY, RESULT), TypeParameter(_INPUT_KEY, self.source))
        elements = Elements(parameters, {}, _TYPES, FLOAT2, False)
        rows, copy = (*_ARGUMENTS, *_OF_ROWS), (*_ARGUMENTS, *_OF_COPIES)
        texts = (
            write_kernel(name, elements, rows, _ROWS.splitlines(), style),
            write_kernel(f"{name}_copy", elements, copy, _COPY.splitlines(), style),
            _CHIRP.format(name=name),
        )
        return FormKernels(name, "\n".join(texts), elements, endings=("", "_copy"), plain=("_chirp",))

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """As if each dimension took one launch; a product is added for each element and each halving of its rows."""
        dims = call.others[self.dims]
        lengths = call.tensors[RESULT if self.size else self.source].shape
        sizes = [lengths[dim] for dim in (dims if isinstance(dims, tuple) else ()) if isinstance(dim, int)]
        read, written = (count_bytes(call, name) for name in (self.source, RESULT))
        for i, size in enumerate(sizes):
            first, last = i == 0, i + 1 == len(sizes)
            between = read if self.size else written
            reads = {self.source: (read,)} if first else {"between": (between,)}
            turns = round(prod(lengths) * log2(max(size, 2)))
            yield FormCost(prod(lengths) // max(size, 1), turns, reads, written if last else between)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        direction = site.variable(self.forward) if self.forward else "false" if self.size else "true"
        names = (RESULT, self.source, self.dims, self.normalization)
        output, source, dims, normalization = map(site.variable, names)
        passed = [f'"{kernels.name}"', output, source, dims, normalization, direction]
        lines: list[str | Line] = []
        if self.size:
            passed.append(site.variable(self.size))
        if self.one_sided:
            lines = ["std::optional<int64_t> $last_size;", f"if ({site.variable(self.one_sided)}) {{"]
            lines += [f"$last_size = {source}.size({dims}.back()) / 2 + 1;", "}"]
            passed.append("$last_size")
        call = Line(f"run_fft({', '.join(passed)});", helper="run_fft")
        return Launch(site.name_locals((*lines, call), ("last_size",)), frozenset((*HEADERS, *_HEADERS)))


# `sizes` are the elements that a row is transformed of or copied to, and those of input and output that there are; the
# strides along rows stand behind the others.
_ARGUMENTS = (
    f"device {KEY}* output", f"const device {_INPUT_KEY}* input", "constant long* sizes", "constant long* row_sizes",
    "constant long* output_strides", "constant long* input_strides", "constant float& scale",
)  # fmt: skip
_OF_ROWS = ("constant bool& is_forward", "threadgroup float2* rows [[threadgroup(0)]]", *IN_GROUP[:2])
_OF_COPIES = ("const device float2* factors", GRID)
_ROWS = """\
const uint n = sizes[0], input_size = sizes[1], output_size = sizes[2], ndim = sizes[4], group_rows = sizes[5];
const uint lanes = n % 16 == 0 ? n / 16 : (n + 7) / 8;
const bool is_folded = sizes[8];
const index_t first = index_t(group) * index_t(group_rows);
const uint count = min(index_t(group_rows), index_t(sizes[3]) - first);
const index_t input_stride = input_strides[ndim], output_stride = output_strides[ndim];
// Memory is read and written in its order
uint row = input_stride == 1 ? tid / lanes : tid % group_rows;
uint lane = input_stride == 1 ? tid % lanes : tid / group_rows;
const float2 sign = float2(1, is_forward ? 1 : -1);
float2 elements[16] = {};
if (row < count) {
  const device T1* from = input + find_row(first + index_t(row), row_sizes, input_strides, ndim);
  if (is_folded) {
    #pragma unroll
    for (uint i = 0; i < 16; i++) {
      elements[i] = sign * load_folded(from, min(lane + i * lanes, n - 1), n, input_size, input_stride);
    }
  } else {
    #pragma unroll
    for (uint i = 0; i < 16; i++) {
      elements[i] = load_element(from, min(lane + i * lanes, n - 1), n, input_size, input_stride);
    }
    #pragma unroll
    for (uint i = 0; i < 16; i++) {
      const float2 element = elements[i];
      elements[i] = sign * (input_size < n ? mirror(element, lane + i * lanes, n, input_size) : element);
    }
  }
}
uint done = 1;
if (n % 16 == 0) {
  // As few passes as there are sixteens
  for (uint bits = ctz(n), radix_bits; bits > 0; bits -= radix_bits) {
    const uint passes = (bits + 3) / 4;
    radix_bits = (bits + passes - 1) / passes;
    if (radix_bits == 4) {
      run_pass<16, 16>(elements, rows, row * n, n, lane, done);
    } else if (radix_bits == 3) {
      run_pass<16, 8>(elements, rows, row * n, n, lane, done);
    } else {
      run_pass<16, 4>(elements, rows, row * n, n, lane, done);
    }
    done <<= radix_bits;
  }
} else if (n % 8 == 0) {
  run_pass<8, 8>(elements, rows, row * n, n, lane, done);
  done = 8;
}
for (uint radix = 4; done < n; done *= radix) {
  const uint rest = n / done;
  if (rest % 4 != 0) {
    for (radix = 2; rest % radix != 0;) {
      radix++;
    }
  }
  run_sums(elements, rows, row * n, n, lane, lanes, radix, done);
}
const bool is_half = is_folded && is_same_v<T1, float>;
const bool is_turned = (input_stride == 1) != (output_stride == 1);
if (is_half || is_turned) {
  share(elements, rows, row * n, n, lane, lanes);
  row = output_stride == 1 ? tid / lanes : tid % group_rows;
  lane = output_stride == 1 ? tid % lanes : tid / group_rows;
  #pragma unroll
  for (uint i = 0; i < 16; i++) {
    elements[i] = rows[find_bank(row * n + min(lane + i * lanes, n - 1))];
  }
}
if (row >= count) {
  return;
}
device T* to = output + find_row(first + index_t(row), row_sizes, output_strides, ndim);
if (is_half) {
  for (uint k = lane; k < output_size; k += lanes) {
    const uint j = min(k, 2 * n - k);
    const threadgroup float2& other = rows[find_bank(row * n + (j > 0 ? n - j : 0))];
    const float2 element = unfold(rows[find_bank(row * n + (j < n ? j : 0))], other, j, n);
    store_element(to, k, output_stride, scale * float2(element.x, k > n ? -element.y : element.y), false);
  }
  return;
}
// Parts of longer rows are turned by their place in these
const uint whole = sizes[6], part = whole > 0 ? (first + index_t(row)) / index_t(sizes[7]) % index_t(whole / n) : 0;
#pragma unroll
for (uint i = 0; i < 16; i++) {
  const uint k = lane + i * lanes;
  if (k < min(n, output_size)) {
    const float2 element = whole > 0 ? multiply(elements[i], find_root(part * k, whole)) : elements[i];
    store_element(to, k, output_stride, scale * sign * element, is_folded);
  }
}
"""
_COPY = """\
const uint n = sizes[0], input_size = sizes[1], output_size = sizes[2], ndim = sizes[3];
const index_t row = index_t(tid) / index_t(output_size), input_stride = input_strides[ndim];
const uint k = index_t(tid) % index_t(output_size);
const device T1* from = input + find_row(row, row_sizes, input_strides, ndim);
float2 element = 0;
if (sizes[5]) {
  element = scale * load_folded(from, min(k, 2 * n - k), n, input_size, input_stride);
  element.y = k > n ? -element.y : element.y;
} else if (k < n) {
  element = load_element(from, k, n, input_size, input_stride);
  element = input_size < n ? mirror(element, k, n, input_size) : element;
  element = scale * (sizes[4] ? multiply(element, factors[k]) : element);
}
device T* to = output + find_row(row, row_sizes, output_strides, ndim);
store_element(to, k, index_t(output_strides[ndim]), element, false);
"""
_CHIRP = """\
// The chirp of n elements, and its conjugate on both sides of the first element of a filter
kernel void {name}_chirp(
    device float2* chirp,
    device float2* filter,
    constant long* sizes,
    constant bool& is_forward,
    uint tid [[thread_position_in_grid]]) {{
  const ulong n = sizes[0], k = min(ulong(tid), ulong(sizes[1]) - tid);
  float2 root = k < n ? find_root(k * k % (2 * n), 2 * n) : 0;
  root.y = is_forward ? root.y : -root.y;
  filter[tid] = float2(root.x, -root.y);
  if (tid < n) {{
    chirp[tid] = root;
  }}
}}
"""
