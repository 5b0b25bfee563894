"""Results that are matrix products of any strides, with another tensor added; attention, and inverses of matrices.

A threadgroup has a tile of the product, a large one where there are many. Operands of any strides pass through
threadgroup memory, with zeros where they end, and the next elements are read while products are added. Sums are of the
type that elements accumulate in: float for half and bfloat.
Source: aten/src/ATen/native/LinearAlgebra.cpp (what a `beta` of 0 leaves out), Metal Shading Language Specification,
section 6.7 (SIMD-group matrices).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import ClassVar, Self

from porter.core import dtypes
from porter.core.dtypes import BFLOAT, FLOAT, DType, Kind
from porter.loops.host_values import Arguments
from porter.metal.codegen.host_code import Block, Branches, Encode, Launch, Line, Node, run_on_stream
from porter.metal.codegen.host_values import write_fits, write_given
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import SIMD_LANES, Family, Schedule
from porter.metal.forms.form import (
    CEIL_DIV,
    HEADERS,
    RESULT,
    Form,
    FormCost,
    FormKernels,
    LaunchWriter,
    Site,
    count_bytes,
    list_elements,
    read_kernels,
    write_kernel,
)

TILE, _LARGE_TILE = 32, 64  # rows and columns of the product that a threadgroup has
_THREADS = 4 * SIMD_LANES
_MANY = 128  # large tiles that keep a GPU busy
COMPLEX = "c10/util/complex.h"
# How many elements of the inner dimension are in threadgroup memory, and how many products are added up in a row.
_KERNELS = read_kernels("contraction", DEPTH=16, ADDENDS=256)
_SAME_TYPE = "Expected all tensors of a product to have the same dtype"


class Operands(Enum):
    """What dimensions operands have, and which of them are batches."""

    MATRICES = "two matrices"
    BATCHES = "as many matrices each"
    SUMMED = "as many matrices each, whose products are added up"
    ROWS = "rows of any dimensions, and a matrix or a row"
    VECTOR = "a matrix and a vector"
    FLAT = "rows of any dimensions each"


@dataclass(frozen=True)
class Contraction(Form):
    """The product of two operands, of which each may be transposed; times `alpha`, and `beta` times `added`.

    A call may leave out `added`; where `beta` is 0, its elements are not read.
    """

    TITLE: ClassVar[str] = "matrix product"
    ANY_RANK: ClassVar[bool] = True
    SHARED: ClassVar[bool] = True
    ALL_CALLS: ClassVar[bool] = True

    operands: Operands
    left_operand: str
    right_operand: str
    is_left_transposed: bool = False
    is_right_transposed: bool = False
    added: str = ""
    beta: str = ""
    alpha: str = ""
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        first = f"{self.left_operand}[k, i]" if self.is_left_transposed else f"{self.left_operand}[i, k]"
        second = f"{self.right_operand}[j, k]" if self.is_right_transposed else f"{self.right_operand}[k, j]"
        over = "b, k" if self.operands is Operands.SUMMED else "k"
        product = f"sum over {over} of {first} * {second}"
        scaled = f"{self.alpha} * ({product})" if self.alpha else product
        scale = f"{self.beta} * " if self.beta else ""
        yield f"result[i, j] = {scaled}{f' + {scale}{self.added}[i, j]' if self.added else ''}"
        yield f"of {self.operands.value}"
        if self.beta:
            yield f"without {self.added} where {self.beta} is 0"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        """All but booleans, of which the CPU has no products; one text serves all products of a file."""
        refused = {Kind.BOOL, Kind.COMPLEX} if refuses_complex else {Kind.BOOL}
        return [dtype for dtype in dtypes.ALL if dtype.kind not in refused]

    def list_moved(self) -> tuple[str, ...]:
        return (self.right_operand,) if self.operands is Operands.ROWS else (self.left_operand, self.right_operand)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(RESULT, instances)
        source = write_kernel(name, elements, *_KERNELS["tile"], style, Schedule(Family.TILES, (TILE,)))
        # Sums of other types would leave a large tile no registers.
        floating = [dtype for dtype in instances if dtype.kind is Kind.FLOATING]
        for dtype in sorted(floating, key=lambda dtype: dtype == BFLOAT):
            line = f"REGISTER_{name.upper()}_({dtype.metal}, int, {_LARGE_TILE});\n"
            source += (
                f"#if __METAL_VERSION__ >= 310\n{line}#endif\n" if style.guards_bfloat and dtype == BFLOAT else line
            )
        source += "\n" + write_kernel(f"{name}{_VECTOR_ENDING}", elements, *_KERNELS["vector"], style)
        return FormKernels(name, source, elements, numbers={"": 1}, endings=("", _VECTOR_ENDING))

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        operand, result = call.tensors[self.left_operand], call.tensors[RESULT]
        inner = operand.shape[-2 if self.is_left_transposed else -1]
        if self.operands is Operands.FLAT:
            inner = prod(operand.shape[:-1])
        columns = 1 if self.operands is Operands.VECTOR else result.shape[-1] if result.shape else 1
        count = prod(result.shape)
        is_batched = self.operands is Operands.BATCHES
        rows = result.shape[-2] if is_batched else count // max(columns, 1)
        is_large = min(rows, columns) >= _LARGE_TILE and count >= _MANY * _LARGE_TILE**2
        tile = _LARGE_TILE if is_large and result.dtype.kind is Kind.FLOATING else TILE
        is_vector = min(rows, columns) == 1 and inner >= SIMD_LANES
        across, down = (1, 1) if is_vector else (-(-columns // tile), -(-rows // tile))
        reads = {
            self.left_operand: (count_bytes(call, self.left_operand),) * across,
            self.right_operand: (count_bytes(call, self.right_operand),) * down,
        }
        if self.added in call.tensors and call.others.get(self.beta, 1):
            reads[self.added] = (count_bytes(call, self.added),)
        turns = count * inner * (operand.shape[0] if self.operands is Operands.SUMMED else 1)
        yield FormCost(rows, turns, reads, count_bytes(call, RESULT))

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        writer = _Writer(self, kernels, site)
        return Launch(writer.write(), frozenset((*HEADERS, CEIL_DIV, COMPLEX)))


_VECTOR_ENDING = "_vector"

_LOCALS = (
    "left_rows", "right_rows", "product", "addend", "is_added", "rows", "columns", "inner", "sizes", "strides",
    "scales", "factors", "index_type", "tile",
)  # fmt: skip


class _Writer(LaunchWriter[Contraction]):
    """Writes the launch of a form in a function, with variables that it may have to rename."""

    def write(self) -> tuple[Node, ...]:
        """The statements of the launch."""
        form, site = self.form, self.site
        names = (RESULT, form.left_operand, form.right_operand)
        output, first, second = (site.variable(name) for name in names)
        # Elements are read as those of the result
        tests = (f"{tensor}.scalar_type() == {output}.scalar_type()" for tensor in (first, second))
        shown = f'{first}.scalar_type(), " and ", {second}.scalar_type(), " for ", {output}.scalar_type()'
        lines: list[str | Node] = [f'TORCH_CHECK({" && ".join(tests)}, "{_SAME_TYPE}, but got ", {shown});']
        if form.operands is Operands.ROWS:
            lines += [
                *self._flatten(output, first, second),
                *self._run(output, "$product", "$left_rows", "$right_rows"),
            ]
            if not self._is_dense:
                lines += [
                    f"if (!{output}.is_contiguous()) {{",
                    f"{output}.copy_($product.view({output}.sizes()));",
                    "}",
                ]
        elif form.operands is Operands.FLAT:
            for side, operand in (("left", first), ("right", second)):
                lines.append(f"const auto ${side}_rows = {operand}.reshape({{-1, {operand}.size(-1)}});")
            lines += self._run(output, output, "$left_rows", "$right_rows")
        elif form.operands is Operands.VECTOR:
            lines += [f"const auto $right_rows = {second}.unsqueeze(-1);"]
            lines += [f"const auto $product = {output}.unsqueeze(-1);"]
            lines += self._run(output, "$product", first, "$right_rows")
        else:
            lines += self._run(output, output, first, second)
        return site.name_locals(lines, _LOCALS)

    @property
    def _is_dense(self) -> bool:
        return self.site.code.allocates(self.result)

    def _flatten(self, output: str, first: str, second: str) -> Iterator[str]:
        """Variables for the operands and the product as matrices."""
        matrix = f"{second}.dim() == 1 ? {second}.unsqueeze(0) : {second}" if self.form.is_right_transposed else second
        words = f'"Expected a matrix, but got a tensor of ", {second}.dim(), " dimensions"'
        yield f"TORCH_CHECK({second}.dim() <= 2, {words});"
        yield f"const auto $right_rows = {matrix};"
        yield f"const auto $left_rows = {first}.reshape({{{output}.numel() / {output}.size(-1), {first}.size(-1)}});"
        dense = f"{output}.is_contiguous() ? {output} : at::empty({output}.sizes(), {output}.options())"
        memory = output if self._is_dense else f"({dense})"
        yield f"const auto $product = {memory}.view({{-1, {output}.size(-1)}});"

    def _run(self, output: str, product: str, first: str, second: str) -> Iterator[str | Node]:
        form, site = self.form, self.site
        inner = f"{first}.size({-2 if form.is_left_transposed else -1})"
        yield from (f"const auto $rows = {product}.size(-2);", f"const auto $columns = {product}.size(-1);")
        yield f"const auto $inner = {inner};"
        addend = yield from self._add(output, product)
        count = f"{first}.size(0)" if form.operands is Operands.SUMMED else "1"
        yield f"const std::array<int64_t, 4> $sizes = {{$rows, $columns, $inner, {count}}};"
        batch, summed = form.operands is Operands.BATCHES, form.operands in (Operands.BATCHES, Operands.SUMMED)
        steps = (
            _write_strides(product, batch), _write_strides(first, summed, form.is_left_transposed),
            _write_strides(second, summed, form.is_right_transposed),
            _write_strides(addend, batch) if addend else "0, 0, 0",
        )  # fmt: skip
        yield f"const std::array<int64_t, 12> $strides = {{{', '.join(steps)}}};"
        yield f"const std::array<c10::complex<float>, 2> $scales = {{{', '.join(self._list_scales())}}};"
        yield f"const std::array<int64_t, 2> $factors = {{{', '.join(self._list_factors(product))}}};"
        yield from site.write_stream()
        read = (first, second, *((addend,) if addend else ()))
        yield f'const std::string $index_type = {write_fits((product, *read), ())} ? "int" : "long";'
        # No memory is bound of operands without elements.
        operands = [f"$inner > 0 ? {tensor} : {product}" for tensor in (first, second)]
        passed = (product, *operands, addend or product, "$sizes", "$strides", "$scales", "$factors")
        batches = f"{product}.size(0)" if batch else "1"
        has_large = f'isFloatingType({product}.scalar_type()) && $index_type == "int"'
        fits = f"std::min($rows, $columns) >= {_LARGE_TILE} && {product}.numel() >= {_MANY * _LARGE_TILE**2}"
        yield f"const int64_t $tile = {has_large} && {fits} ? {_LARGE_TILE} : {TILE};"
        groups = f"at::ceil_div($columns, $tile), at::ceil_div($rows, $tile), {batches}"
        dispatch = (
            f"[computeEncoder dispatchThreadgroups:MTLSizeMake({groups})",
            f"threadsPerThreadgroup:MTLSizeMake({_THREADS}, 1, 1)];",
        )
        types = (f"scalarToMetalTypeString({product})", "$index_type", "std::to_string($tile)")
        tiles = Encode(self.kernels.name, types, "PSO", read, passed, tuple(map(Line, dispatch)), is_first=True)
        groups = f"at::ceil_div<int64_t>($rows * $columns, 8), 1, {batches}"
        dispatch = (
            f"[computeEncoder dispatchThreadgroups:MTLSizeMake({groups})",
            f"threadsPerThreadgroup:MTLSizeMake({8 * SIMD_LANES}, 1, 1)];",
        )
        vector = replace(tiles, types=types[:2], dispatch=tuple(map(Line, dispatch)), ending=_VECTOR_ENDING)
        # With fewer products, lanes would have none.
        is_vector = f"std::min($rows, $columns) == 1 && $inner >= {SIMD_LANES}"
        either = Branches((is_vector, ""), ((vector,), (tiles,)))
        yield run_on_stream((either,))

    def _add(self, output: str, product: str) -> Generator[str, None, str]:
        """A variable for what is added, in the shape of the product; the product itself where nothing is."""
        form, site = self.form, self.site
        if not form.added:
            return ""
        added = site.variable(form.added)
        is_optional = site.variable(form.added) in site.names.optional
        tests = [write_given(form.added, site.names)] if is_optional else []
        tests += [f"{site.variable(form.beta)}.toComplexDouble() != 0.0"] if form.beta else []
        whole = f"{added}->" if is_optional else f"{added}."
        expanded = f"{whole}expand({output}.sizes())"
        if product != output:
            expanded = f"{expanded}.reshape({product}.sizes())"
        yield f"const bool $is_added = {' && '.join(tests) or 'true'};"
        yield f"const auto $addend = $is_added ? {expanded}.to({product}.scalar_type()) : {product};"
        return "$addend"

    def _list_scales(self) -> Iterator[str]:
        form = self.form
        number = "{}.to<c10::complex<float>>()"
        yield number.format(self.site.variable(form.alpha)) if form.alpha else "1.0f"
        beta = number.format(self.site.variable(form.beta)) if form.beta else "1.0f"
        yield f"$is_added ? {beta} : 0.0f" if form.added else "0.0f"

    def _list_factors(self, product: str) -> Iterator[str]:
        """The same as whole numbers, which floats round, where elements are those."""
        for name in (self.form.alpha, self.form.beta):
            test = f"isIntegralType({product}.scalar_type(), false)"
            yield f"{test} ? {self.site.variable(name)}.toLong() : 1" if name else "1"


def _write_strides(tensor: str, has_batches: bool, is_transposed: bool = False) -> str:
    """The steps between batches, rows and columns of a tensor."""
    last = (-1, -2) if is_transposed else (-2, -1)
    batch = f"{tensor}.stride(0)" if has_batches else "0"
    return ", ".join((batch, *(f"{tensor}.stride({dim})" for dim in last)))


# The gradients of a linear layer: of its input, and of its weights with its bias, which a function makes together.
#
# Each is a product of rows of any dimensions, by the kernels of products; a bias has the sums of the rows.


_BIAS = "result1"  # of the function of weights


@dataclass(frozen=True)
class LinearGradients(Form):
    """What the gradient of an output gives; of a part, one of both functions."""

    TITLE: ClassVar[str] = "gradients of a linear layer"
    ANY_RANK: ClassVar[bool] = True
    SHARED: ClassVar[bool] = True
    BY_RESULT: ClassVar[bool] = True

    input: str
    weight: str
    output: str
    of_input: bool = True
    of_weight: bool = True
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield f"result0[n, i] = sum over o of {self.output}[n, o] * {self.weight}[o, i]"
        yield f"result1[o, i] = sum over n of {self.output}[n, o] * {self.input}[n, i]"
        yield f"result2[o] = sum over n of {self.output}[n, o]"
        yield "of rows n of any dimensions"

    def list_parts(self) -> Iterator[Self]:
        yield replace(self, of_weight=False)
        yield replace(self, of_input=False)

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return self._product.list_types(read_atomic, refuses_complex)

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        for place, part in enumerate(self.list_parts()):
            if result := call.tensors.get(f"result{place}"):
                yield from part._product.count_costs(replace(call, tensors={**call.tensors, RESULT: result}))

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        return self._product.write_kernels(name, instances, style)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        launch = self._product.write_launch(kernels, site)
        if self.of_input:
            return launch
        output = site.variable(self.output)
        rows = f"{output}.reshape({{-1, {output}.size(-1)}})"
        bias = Line(f"{site.variable(_BIAS)}.copy_({rows}.sum(0));")
        # Without features of the input, a bias has gradients alone.
        product = Block(f"if ({site.variable(RESULT)}.numel() > 0) {{", launch.nodes)
        return replace(launch, nodes=(bias, product))

    @property
    def _product(self) -> Contraction:
        if self.of_input:
            return Contraction(Operands.ROWS, self.output, self.weight)
        return Contraction(Operands.FLAT, self.output, self.input, is_left_transposed=True)


_WEIGHTS = "result1"
_EXPAND = "ATen/ExpandUtils.h"
_ATTENDING = read_kernels("attention")


@dataclass(frozen=True)
class Attention(Form):
    """What queries, keys and values give, and the weights; a call may leave out the mask, and the scale.

    Where the flag `grouped` is set, several heads of queries share one of keys or values.
    Both products are those of matrices, by their kernels or of few elements directly. A simdgroup makes weights of a
    row of scores in their place, with the mask as what is added. All are floats. Where a query sees no key, all weights
    are zeros, as the CPU's are.
    Source: ATen/native/transformers/attention.cpp (`_scaled_dot_product_attention_math`).
    """

    TITLE: ClassVar[str] = "attention"
    ANY_RANK: ClassVar[bool] = True
    RETURNS: ClassVar[bool] = True

    query: str
    key: str
    value: str
    mask: str
    causal: str
    scale: str
    grouped: str = ""
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield f"scores[i, j] = {self.scale} * (sum over e of {self.query}[i, e] * {self.key}[j, e]) + {self.mask}[i, j]"
        yield f"result1[i, j] = softmax over j of scores[i, j], of j up to i where {self.causal}"
        yield f"result0[i, e] = sum over j of result1[i, j] * {self.value}[j, e]"
        yield "of the last two dimensions"
        if self.grouped:
            yield f"with as many heads of {self.query} for each of {self.key} and {self.value} where {self.grouped}"

    def count_costs(self, call: Arguments) -> Iterator[FormCost]:
        """As `run_attention` does it, of floats."""
        weights = call.tensors[_WEIGHTS]
        scores = Contraction(Operands.BATCHES, self.query, self.key)
        yield from scores.count_costs(replace(call, tensors={**call.tensors, RESULT: weights}))
        size = count_bytes(call, _WEIGHTS)
        masks = {self.mask: (count_bytes(call, self.mask),)} if self.mask in call.tensors else {}
        yield FormCost(prod(weights.shape[:-1]), prod(weights.shape), {_WEIGHTS: (size,) * 3, **masks}, size)
        yield from Contraction(Operands.BATCHES, _WEIGHTS, self.value).count_costs(call)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        products = Contraction(Operands.BATCHES, self.query, self.key).write_kernels(name, (FLOAT,), style)
        texts = (write_kernel(f"{name}_{each}", products.elements, *_ATTENDING[each], style) for each in _ATTENDING)
        endings = (*products.endings, *(f"_{each}" for each in _ATTENDING))
        return replace(products, source="\n".join((products.source, *texts)), endings=endings)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        names = (self.query, self.key, self.value, self.mask, self.scale, self.causal)
        # An older fork's row has no such flag
        has_flag = self.grouped in site.names.types
        is_grouped = site.variable(self.grouped) if has_flag else "/*is_grouped=*/false"
        passed = ", ".join((f'"{kernels.name}"', *map(site.variable, names), is_grouped))
        launch = Line(f"return run_attention({passed});", helper="run_attention")
        return Launch((launch,), frozenset((*HEADERS, CEIL_DIV, COMPLEX, _EXPAND)))


_INFO = "result1"
_CHECK = "ATen/ops/_linalg_check_errors.h"
_MOST_THREADS = 256
_INVERTING = read_kernels("inverse", MOST_SIMDGROUPS=_MOST_THREADS // SIMD_LANES)
_WHOLE = f"at::ceil_div<int64_t>($size * $size, {SIMD_LANES}) * {SIMD_LANES}"  # simdgroups of threads with elements
_INVERTING_LOCALS = ("size", "count", "work", "factors", "order", "inverses", "strides", "threads", "index_type")


@dataclass(frozen=True)
class Inverse(Form):
    """The inverses of matrices, and for each the first pivot that is 0, by its place from 1 on; else 0.

    Where the flag `checks` is set, such a one is an error.
    Factors are computed in the order of LAPACK's, and a thread has a column of the inverse, so that a singular matrix
    has infinities and NaN where it has them on the CPU.
    Source: aten/src/ATen/native/BatchLinearAlgebra.cpp (what `info` says of a singular matrix).
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
        return FormKernels(name, write_kernel(name, elements, *_INVERTING["invert"], style), elements)

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
        return Launch(site.name_locals(lines, _INVERTING_LOCALS), frozenset(headers))
