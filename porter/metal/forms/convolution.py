"""Results that are convolutions of up to three dimensions, or their gradients; and Fourier transforms.

A convolution is a product of matrices for each group, of factors and of what a source has for windows and taps: the
gradient of the weights adds up all windows, the others all taps. A threadgroup has a tile, whose quarters its
simdgroups have; few rows are computed without tiles. Threadgroups share long sums of few tiles, and another kernel adds
up what they have. Sums are floats.
Source: ATen/native/Convolution.cpp (`conv_output_size`, and what a transposed convolution is the gradient of).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import gcd, log2, prod
from typing import ClassVar, Self

from porter.core.dtypes import FLOAT, FLOAT2, DType
from porter.loops.host_values import Arguments
from porter.metal.codegen.elements import KEY, Elements, TypeParameter
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import Family, Schedule
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
    write_plain,
)


class Convolved(Enum):
    """What of a convolution is a result, by the names of host code."""

    INPUT = "Input"
    WEIGHT = "Weight"
    OUTPUT = "Output"


_SIDES = (32, 64)  # rows and columns that a threadgroup has: of few products, and of many
_DIRECT, _SLICES = "_direct", "_slices"
_LEAST_ROWS = 4  # of a group, which tiles compute
_MANY = 1 << 26  # products that large tiles add up
_NUMBERS = ("padding", "stride", "dilation", "groups")
# How much of the inner dimension is in threadgroup memory, and how many products are added up in a row.
_KERNELS = read_kernels("convolution", DEPTH=16, ADDENDS=16)


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

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(RESULT, instances)
        texts = (
            write_kernel(name, elements, *_KERNELS["tile"], style, Schedule(Family.TILES, _SIDES)),
            write_kernel(f"{name}{_DIRECT}", elements, *_KERNELS["direct"], style),
            write_kernel(f"{name}{_SLICES}", elements, *_KERNELS["slices"], style),
        )
        endings = ("", _DIRECT, _SLICES)
        return FormKernels(name, "\n".join(texts), elements, numbers={"": 1}, endings=endings)

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
        products = rows * groups * columns * inner
        side = _SIDES[min(rows, columns) > _SIDES[0] and products >= _MANY]
        across, down = (1, 1) if is_direct else (-(-columns // side), -(-rows // side))
        units, most = groups * across * down, inner // 128
        if is_direct:
            last = (output if computed is Convolved.WEIGHT else weight)[-1]
            units, most = rows * groups * columns, min(inner // last, inner // 512)
        slices = min(max((16384 if is_direct else 512) // max(units, 1), 1), max(most, 1))
        factors = names[Convolved.OUTPUT if computed is Convolved.WEIGHT else Convolved.WEIGHT]
        source = names[Convolved.OUTPUT if is_input else Convolved.INPUT]
        reads = {
            factors: (count_bytes(call, factors),) * across,
            source: (count_bytes(call, source),) * down * launches,
        }
        if self.bias in call.tensors:
            reads[self.bias] = (count_bytes(call, self.bias),)
        written, partial = count_bytes(call, result), slices * prod(call.tensors[result].shape) * FLOAT.size
        yield FormCost(rows * groups, products * launches, reads, written if slices == 1 else partial)
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


_INPUT_KEY = f"{KEY}1"
_TYPES = ((FLOAT2, FLOAT2), (FLOAT2, FLOAT), (FLOAT, FLOAT2))  # of results and of what is transformed
_TRANSFORMING = read_kernels("fourier")
_HEADERS = (
    CEIL_DIV, "ATen/WrapDimUtilsMulti.h", "ATen/native/Resize.h", "ATen/native/SpectralOpsUtils.h",
    "c10/util/llvmMathExtras.h",
)  # fmt: skip


@dataclass(frozen=True)
class Fourier(Form):
    """The transform of `source` along the dimensions `dims`, whose `normalization` is a number of ATen's.

    Complex results of complex numbers are forward by a flag. Results of real numbers are forward, of the last of the
    dimensions as far as the flag `one_sided` says. Real results are inverse, with `size` elements of the last one.
    Threads have 16 elements of a row each, which every pass makes longer transforms of (Stockham); a threadgroup's
    memory takes up to 4096 elements from pass to pass. The roots of unity are computed from whole numbers, those
    between as products of up to four. Rows of an even number of real elements are transformed as half as many pairs.
    Longer rows are transformed in two parts (four-step), and those with a greater prime factor as a convolution
    (Bluestein), by `run_fft`.
    Source: aten/src/ATen/native/SpectralOpsUtils.h (normalizations), aten/src/ATen/native/mkl/SpectralOps.cpp (which
    dimension has half of a spectrum).
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
            write_kernel(name, elements, *_TRANSFORMING["rows"], style),
            write_kernel(f"{name}_copy", elements, *_TRANSFORMING["copy"], style),
            write_plain(f"{name}_chirp", *_TRANSFORMING["chirp"]),
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
