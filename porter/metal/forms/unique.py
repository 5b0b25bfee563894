"""Results whose number is data: the distinct elements, or slices, of a tensor, or places of those not zero.

Elements are sorted if need be. One kernel marks slices that differ from the one before, one sums up the marks of
threadgroups, one ranks slices by them, and one takes the values. Source: ATen/ceil_div.h, c10/util/accumulate.h.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from porter.core.dtypes import DType
from porter.core.errors import explained
from porter.metal.codegen.host_code import Block, Launch, Node, as_nodes
from porter.metal.codegen.host_values import ACCUMULATE, WRAP_DIM, Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import (
    CEIL_DIV,
    HEADERS,
    MOST_THREADS,
    RESULT,
    SCAN,
    Form,
    FormKernels,
    LaunchWriter,
    Site,
    dispatch_groups,
    dispatch_threads,
    encode,
    list_elements,
    list_real,
    read_kernels,
    set_arguments,
    write_kernel,
    write_plain,
    write_type,
)
from porter.metal.forms.sort import Kept, Sort
from porter.metal.helpers import read_helper

_DECLARED = (
    "slices", "slice_size", "type", "elements", "places", "marks", "group_size", "groups", "group_counts",
    "group_ends", "starts", "marksPSO", "endsPSO", "ranksPSO", "PSO",
)  # fmt: skip
_NUMBERS = tuple(f"Tensor $name = at::empty({{1}}, {type_} $$options);" for type_ in ("ScalarType::Int", "kInt"))
_KERNELS = {
    is_sorted: read_kernels("unique", MOST_THREADS=MOST_THREADS, PLACE="places[slice]" if is_sorted else "slice")
    for is_sorted in (True, False)
}
_PLACES = "constant long* places"


@dataclass(frozen=True)
class Unique(Form):
    """Each element of `source` that differs from the one before.

    With the argument `dim`, slices along it are compared in the place of elements, unless a call leaves it empty. With
    `is_sorted`, elements are sorted first. A second result has the place among the distinct ones of every element, if
    the flag `inverse` asks for it; a third has how many there are of each, if the flag `counts` does. A NaN differs
    from all elements.
    """

    TITLE: ClassVar[str] = "distinct values"
    READS_FED: ClassVar[bool] = True

    source: str
    is_sorted: bool
    inverse: str
    counts: str
    dim: str = ""
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        what = f"slices along {self.dim}" if self.dim else "elements"
        order = ", sorted," if self.is_sorted else ""
        yield f"output = the {what} of {self.source}{order} that differ from the one before"
        yield f"inverse = where each is among the distinct ones, if {self.inverse}"
        yield f"counts = how many there are of each, if {self.counts}"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return list_real()

    def list_counted(self) -> tuple[str, ...]:
        return (self.source,)

    def order_elements(self) -> Sort:
        """How elements are sorted."""
        return Sort(self.source, Kept.ALL, dtypes=tuple(list_real()))

    def choose_names(self, names: Names) -> Names:
        """The names with a variable that has the elements of the source without gaps, if host code has one."""
        whole = names.code.find_variable(f"{names.variable(self.source)}.contiguous()")
        return replace(names, variables={**names.variables, self.source: whole}) if whole else names

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(self.source, instances)
        order = self.order_elements()
        sorting = [order.write_kernels(f"{name}_sorted", instances, style)] if self.is_sorted else []
        read = _KERNELS[self.is_sorted]
        arguments, lines = read["ranks"]
        passed = [each for each in arguments if self.is_sorted or each != _PLACES]
        texts = [
            *(kernels.source for kernels in sorting),
            write_kernel(f"{name}_marks", elements, *read["marks"], style),
            write_plain(f"{name}_ends", *read["ends"]),
            write_plain(f"{name}_ranks", passed, lines),
            write_kernel(name, elements, *read["take"], style),
        ]
        helpers = (*(helper for kernels in sorting for helper in kernels.helpers), SCAN)
        endings = (*(f"_sorted{ending}" for kernels in sorting for ending in kernels.endings), "_marks", "")
        return FormKernels(name, "\n".join(texts), elements, (), helpers, endings, ("_ends", "_ranks"))

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        """Launches the kernels. Raises PTR371 if no variable is the place of the last value."""
        numbers = (place["name"] for place in site.code.find(*_NUMBERS))  # one is read as how many there are
        last = next((name for name in numbers if site.code.has(f"{name}.item<int64_t>() + 1")), "")
        if not last:
            raise explained("PTR371", "the host code reads from no tensor how many values there are")
        writer = _Writer(self, kernels, site, last)
        lines = [*writer.start(), *writer.sort(), *writer.prepare(), writer.encode()]
        headers = (*HEADERS, CEIL_DIV, *((ACCUMULATE, WRAP_DIM) if self.dim else ()))
        return Launch(site.name_locals(lines, _DECLARED), frozenset(headers))


@dataclass(frozen=True)
class _Writer(LaunchWriter[Unique]):
    last: str  # the variable for the place of the last value

    @property
    def _source(self) -> str:
        return self.site.variable(self.form.source)

    def start(self) -> Iterator[str]:
        source = self._source
        if f"{self.site.variable(self.form.source)} = " not in self.site.code.text:
            yield f"TORCH_INTERNAL_ASSERT({source}.is_contiguous());"
        yield f"const int64_t $slices = {self._choose(f'{source}.size({{dim}})', f'{source}.numel()')};"
        after = f"c10::multiply_integers({source}.sizes().slice({{dim}} + 1))"
        yield f"const int64_t $slice_size = {self._choose(after, '1')};"
        yield write_type(source, (source,), "$type")
        yield from self.site.write_stream()

    def _choose(self, along: str, flat: str) -> str:
        """One value for a call with a dimension, one for others."""
        if not self.form.dim:
            return flat
        variable = self.site.variable(self.form.dim)
        is_optional = f"{variable}.has_value()" in self.site.code.text or self.site.names.types[self.form.dim] == "int?"
        value = f"{variable}.value()" if is_optional else variable
        wrapped = self.site.code.find_variable(f"$$before maybe_wrap_dim({value}, $$rank) $$behind")
        dim = wrapped or f"maybe_wrap_dim({value}, {self._source}.dim())"
        value = along.format(dim=dim)
        return f"{variable}.has_value() ? {value} : {flat}" if is_optional else value

    def sort(self) -> Iterator[str | Node]:
        """Sorts the elements, which says where each was."""
        if not self.form.is_sorted:
            return
        source = self._source
        yield f"const auto $elements = {source}.new_empty({{$slices}});"
        yield f"const auto $places = {source}.new_empty({{$slices}}, {source}.options().dtype(kLong));"
        variables = {self.form.source: self.site.variable(self.form.source)}
        variables |= {"result0": "$elements", "result1": "$places"}
        declared = "\n".join((self.site.code.text, *_DECLARED, "stream"))
        code = KeptCode(declared, self.site.code.before)
        site = Site(replace(self.site.names, variables=variables, code=code))
        sorting = replace(self.kernels, name=f"{self.kernels.name}_sorted")
        yield from self.form.order_elements().write_launch(sorting, site).nodes

    def prepare(self) -> Iterator[str]:
        source, name = self._source, self.kernels.name
        yield f'auto $marksPSO = lib.getPipelineStateForFunc("{name}_marks_" + $type);'
        for stage in ("ends", "ranks"):
            yield f'auto ${stage}PSO = lib.getPipelineStateForFunc("{name}_{stage}");'
        yield f'auto $PSO = lib.getPipelineStateForFunc("{name}_" + $type);'
        yield (
            f"const auto $group_size = std::min<int64_t>({MOST_THREADS}, "
            "std::min([$endsPSO maxTotalThreadsPerThreadgroup], [$ranksPSO maxTotalThreadsPerThreadgroup]));"
        )
        yield "const auto $groups = at::ceil_div($slices, $group_size);"
        for name, size in (("$marks", "$slices"), ("$group_counts", "$groups")):
            yield f"const auto {name} = {source}.new_zeros({{{size}}}, {source}.options().dtype(kInt));"
        for name, size in (("$group_ends", "$groups"), ("$starts", "$slices")):
            yield f"const auto {name} = {source}.new_empty({{{size}}}, {source}.options().dtype(kLong));"

    def encode(self) -> Block:
        output, inverse, counts = (self.site.variable(f"result{i}") for i in range(3))
        has_inverse, has_counts = self.site.variable(self.form.inverse), self.site.variable(self.form.counts)
        elements, last = ("$elements" if self.form.is_sorted else self._source), self.last
        places = "$places, " if self.form.is_sorted else ""
        threads = f"{elements}.numel()"
        passed = f"{output}, {counts}, {elements}, $starts, {last}, $slices, $slice_size, {has_counts}"
        lines = (
            *set_arguments("$marksPSO", f"$marks, $group_counts, {elements}, $slices, $slice_size, $group_size"),
            dispatch_threads("$marksPSO", threads),
            *set_arguments("$endsPSO", f"$group_ends, {last}, $group_counts, $groups"),
            *dispatch_groups("1", "$group_size"),
            *set_arguments("$ranksPSO", f"$starts, {inverse}, $marks, $group_ends, {places}$slices, {has_inverse}"),
            *dispatch_groups("$groups", "$group_size"),
            *set_arguments("$PSO", passed),
            dispatch_threads("$PSO", threads),
        )
        return encode("$PSO", self.kernels.name, elements, lines)


_HELPERS = read_helper("is_nonzero.metal")
_FINDING = read_kernels("nonzero", MOST_THREADS=MOST_THREADS)


@dataclass(frozen=True)
class Nonzero(Form):
    """A row of coordinates for each element of `source` that is not zero.

    One kernel counts those of each threadgroup, one writes them in order.
    Source: ATen/ceil_div.h.
    """

    TITLE: ClassVar[str] = "places"
    READS_FED: ClassVar[bool] = True

    source: str
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield f"output[k, ...] = the coordinates of the k-th element of {self.source} that is not zero"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return list_real()

    def list_moved(self) -> tuple[str, ...]:
        return (self.source,)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(self.source, instances)
        count = write_kernel(f"{name}_count", elements, *_FINDING["count"], style)
        write = write_kernel(name, elements, *_FINDING["write"], style)
        return FormKernels(name, f"{_HELPERS}{SCAN}{count}\n{write}", elements, endings=("_count", ""))

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        lines = _write_launch(site.variable(self.source), site.variable(RESULT), kernels.name)
        return Launch(as_nodes((*site.write_stream(), *lines)), frozenset((*HEADERS, CEIL_DIV)))


def _write_launch(source: str, result: str, name: str) -> Iterator[str | Node]:
    yield write_type(source, (source, result))
    yield f'auto countPSO = lib.getPipelineStateForFunc("{name}_count_" + type);'
    yield f'auto PSO = lib.getPipelineStateForFunc("{name}_" + type);'
    yield (
        f"const auto group_size = std::min<int64_t>({MOST_THREADS}, "
        "std::min([countPSO maxTotalThreadsPerThreadgroup], [PSO maxTotalThreadsPerThreadgroup]));"
    )
    yield f"const auto groups = at::ceil_div({source}.numel(), group_size);"
    yield f"const auto counts = {source}.new_empty({{groups}}, {source}.options().dtype(kInt));"
    shared = f"{source}, {source}.sizes(), {source}.strides(), {source}.dim(), {source}.numel()"
    counting = (*set_arguments("countPSO", f"counts, {shared}"), *dispatch_groups("groups"))
    yield encode("countPSO", f"{name}_count", source, counting)
    yield "const auto ends = counts.cumsum(0, kInt);"
    writing = (*set_arguments("PSO", f"{result}, ends, {shared}, {result}.strides()"), *dispatch_groups("groups"))
    yield encode("PSO", name, source, writing)
