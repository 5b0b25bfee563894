"""Inverses of matrices, each by a threadgroup: LU factors in place, with the greatest pivot of a column, and solutions.

Factors are computed in the order of LAPACK's, and a thread has a column of the inverse, so that a singular matrix has
infinities and NaN where it has them on the CPU.
Source: aten/src/ATen/native/BatchLinearAlgebra.cpp (what `info` says of a singular matrix).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from porter.core.dtypes import FLOAT, DType
from porter.loops.host_values import Arguments
from porter.metal.codegen.host_code import Encode, Launch, Line, Node, run_on_stream
from porter.metal.codegen.host_values import write_fits
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import SIMD_LANES
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
    read_kernels,
    write_kernel,
)

_INFO = "result1"
_CHECK = "ATen/ops/_linalg_check_errors.h"
_MOST_THREADS = 256
_KERNELS = read_kernels("inverse", MOST_SIMDGROUPS=_MOST_THREADS // SIMD_LANES)
_WHOLE = f"at::ceil_div<int64_t>($size * $size, {SIMD_LANES}) * {SIMD_LANES}"  # simdgroups of threads with elements
_LOCALS = ("size", "count", "work", "factors", "order", "inverses", "strides", "threads", "index_type")


@dataclass(frozen=True)
class Inverse(Form):
    """The inverses of matrices, and for each the first pivot that is 0, by its place from 1 on; else 0.

    Where the flag `checks` is set, such a one is an error.
    """

    TITLE: ClassVar[str] = "matrix inverse"
    ANY_RANK: ClassVar[bool] = True

    matrix: str
    checks: str = ""
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield f"sum over k of {self.matrix}[i, k] * result0[k, j] = 1 where i is j, else 0"
        yield "result1 = the first pivot that is 0, by its place from 1 on; 0 if none is"
        yield "of the last two dimensions"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [FLOAT]

    def list_counted(self) -> tuple[str, ...]:
        return (self.matrix,)

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """Each step reads and writes all elements of a matrix."""
        shape, size = call.tensors[self.matrix].shape, count_bytes(call, self.matrix)
        yield FormCost(prod(shape[:-1]), prod(shape) * shape[-1], {self.matrix: (size,) * (shape[-1] + 1)}, size)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(RESULT, instances)
        return FormKernels(name, write_kernel(name, elements, *_KERNELS["invert"], style), elements)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        matrix, result, info = (site.variable(name) for name in (self.matrix, RESULT, _INFO))
        types = (f"scalarToMetalTypeString({result})", "$index_type")
        passed = (info, "$inverses", "$work", "$factors", "$order", "$size", "$inverses.strides()")
        dispatch = (
            "[computeEncoder dispatchThreadgroups:MTLSizeMake($count, 1, 1)",
            "threadsPerThreadgroup:MTLSizeMake($threads, 1, 1)];",
        )
        kernel = Encode(kernels.name, types, "PSO", (matrix,), passed, tuple(map(Line, dispatch)), is_first=True)
        lines: list[str | Node] = [
            f"const int64_t $size = {matrix}.size(-1), $count = {matrix}.numel() / ($size * $size);",
            f"const auto $work = {matrix}.clone(at::MemoryFormat::Contiguous);",
            f"const auto $factors = {matrix}.new_empty({{$count, $size}});",
            f"const auto $order = {matrix}.new_empty({{$count, $size}}, kInt);",
            f"const auto $inverses = {result}.dim() > 2 ? {result}.flatten(0, -3) : {result}.unsqueeze(0);",
            f"const int64_t $threads = std::min<int64_t>({_MOST_THREADS}, {_WHOLE});",
            *site.write_stream(),
            f'const std::string $index_type = {write_fits(("$work", "$inverses"), ())} ? "int" : "long";',
            run_on_stream((kernel,)),
        ]
        headers = [*HEADERS, CEIL_DIV]
        if self.checks in site.names.types:
            says = f'{info}, "{kernels.name.replace("_", ".", 1)}", {matrix}.dim() == 2'
            lines += [f"if ({site.variable(self.checks)}) {{", f"at::_linalg_check_errors({says});", "}"]
            headers.append(_CHECK)
        return Launch(site.name_locals(lines, _LOCALS), frozenset(headers))
