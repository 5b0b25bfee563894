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
    HEADERS,
    RESULT,
    Form,
    FormCost,
    FormKernels,
    Site,
    count_bytes,
    read_kernels,
    write_kernel,
    write_plain,
)

_INPUT_KEY = f"{KEY}1"
_TYPES = ((FLOAT2, FLOAT2), (FLOAT2, FLOAT), (FLOAT, FLOAT2))  # of results and of what is transformed
_KERNELS = read_kernels("fourier")
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
        texts = (
            write_kernel(name, elements, *_KERNELS["rows"], style),
            write_kernel(f"{name}_copy", elements, *_KERNELS["copy"], style),
            write_plain(f"{name}_chirp", *_KERNELS["chirp"]),
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
