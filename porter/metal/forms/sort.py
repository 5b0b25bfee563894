"""Results that are taken from sorted rows of any size: sorts, elements by their rank, and random orders.

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
from porter.core.dtypes import LONG, DType, Kind
from porter.metal.codegen.elements import Elements
from porter.metal.codegen.host_code import Block, Launch, Line, Node
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import SIMD_LANES
from porter.metal.forms.form import (
    CEIL_DIV,
    GENERATOR,
    HEADERS,
    MOST_THREADS,
    RESULT,
    Form,
    FormKernels,
    LaunchWriter,
    Site,
    dispatch_groups,
    dispatch_threads,
    encode,
    list_elements,
    read_kernels,
    set_arguments,
    write_kernel,
    write_plain,
    write_type,
)
from porter.metal.helpers import read_helper

HELPERS = read_helper("count_left.metal")  # what all kernels of orders in a file share
_DECLARED = ("input", "run_values", "run_indices", "row_size", "type", "width", "kept_values", "kept_indices", "blocks")
_EACH = 4  # elements of a thread
_KERNELS = read_kernels("sort", EACH=_EACH, MOST_THREADS=MOST_THREADS)


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
        texts = write_stages(name, elements, style)
        endings: tuple[str, ...] = ("_blocks", "_merge")
        if self.kept is Kept.MEDIAN:
            texts.append(write_kernel(name, elements, *_KERNELS["median"], style))
            endings = (*endings, "")
        return FormKernels(name, "\n".join(texts), elements, helpers=(HELPERS,), endings=endings)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        writer = _Writer(self, kernels, site)
        lines: list[str | Node] = [*writer.start(), writer.encode()]
        return Launch(site.name_locals(lines, _DECLARED), frozenset((*HEADERS, CEIL_DIV)))


def write_stages(name: str, elements: Elements, style: KernelStyle) -> list[str]:
    """The kernels that sort blocks, and that merge them."""
    return [write_kernel(f"{name}_{stage}", elements, *_KERNELS[stage], style) for stage in ("blocks", "merge")]


class _Writer(LaunchWriter[Sort]):
    @property
    def _picks(self) -> bool:
        return self.form.kept is Kept.MEDIAN

    def _dim(self) -> str:
        """The dimension, by the variable that the function wrapped it in."""
        dim = self.site.variable(self.form.dim)
        return self.site.code.find_variable(f"maybe_wrap_dim({dim}, $$rank)") or dim

    def start(self) -> Iterator[str]:
        source, values = self.site.variable(self.form.source), self.result
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
        return encode("blocksPSO", self.kernels.name, "$input", commands, self._prepare(temporary))

    def _prepare(self, temporary: dict[str, str]) -> Iterator[str]:
        yield f'auto blocksPSO = lib.getPipelineStateForFunc("{self.kernels.name}_blocks_" + $type);'
        yield f'auto mergePSO = lib.getPipelineStateForFunc("{self.kernels.name}_merge_" + $type);'
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
        yield f'auto medianPSO = lib.getPipelineStateForFunc("{self.kernels.name}_" + $type);'
        yield from set_arguments(
            "medianPSO",
            "$kept_values, $kept_indices, $run_values, $run_indices, $input.sizes(), $kept_values.strides(), "
            "$kept_indices.strides(), $input.dim()",
        )
        yield dispatch_threads("medianPSO", "$input.numel() / $row_size")


_PERMUTING = read_kernels("permutation")


@dataclass(frozen=True)
class Permutation(Form):
    """The numbers from 0 on, as many as the result has elements, in an order by random words of `generator`.

    Each number gets a random word of 64 bits, and is written where its word comes in the order of all: so seldom are
    two words alike that every order is as probable. Words are those of the fork's Philox, at the generator's offset.
    Source: aten/src/ATen/native/TensorFactories.cpp (which types are filled).
    """

    TITLE: ClassVar[str] = "random order"
    ANY_RANK: ClassVar[bool] = True

    generator: str
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield "result = where the smallest of the words u is, the next, and so on"
        yield f"for a random word u of {self.generator} for each element"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [dtype for dtype in dtypes.ALL if dtype.kind in (Kind.FLOATING, Kind.INTEGRAL)]

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(RESULT, instances)
        texts = (
            write_plain(f"{name}_draw", *_PERMUTING["draw"]),
            *write_stages(name, list_elements(self.generator, (LONG,)), style),
            write_kernel(name, elements, *_PERMUTING["places"], style),
        )
        endings = ("_blocks", "_merge", "")
        return FormKernels(name, "\n".join(texts), elements, helpers=(HELPERS,), endings=endings, plain=("_draw",))

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        passed = ", ".join(map(site.variable, (RESULT, self.generator)))
        launch = Line(f'draw_permutation("{kernels.name}", {passed});', helper="draw_permutation")
        return Launch((launch,), frozenset((*HEADERS, CEIL_DIV, GENERATOR)))
