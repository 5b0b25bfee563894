"""Results that kernels add to by an index, whose elements of 16 bits are added up in 32; and histograms.

Source: ATen/OpMathType.h, ATen/Context.h (`alertNotDeterministic`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.languages.patterns import find_code
from porter.metal.codegen.elements import KEY, Elements, TypeParameter
from porter.metal.codegen.host_code import Launch, as_nodes
from porter.metal.codegen.host_values import write_given
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import (
    CONTEXT,
    HEADERS,
    RESULT,
    Argument,
    Form,
    FormKernels,
    Site,
    launch_one,
    list_elements,
    name_tensor,
    write_one_kernel,
)

OP_MATH = "ATen/OpMathType.h"
SUM = f"sum_t<{KEY}>"
INDEXED_AT = "index_t(at)"  # what an index names is as wide as the index until it is known to be inside
_INDEX_TYPE = "I"
_SUMS = "sums"
# What kernels that add or combine use.


def find_sum(dtype: DType) -> DType:
    """The type that elements are added up in."""
    return dtype.opmath if dtype.kind is Kind.FLOATING else dtype


def list_indexed_elements(index: str, instances: Sequence[DType], index_dtypes: Sequence[DType]) -> Elements:
    """The element types of a kernel, with a type parameter for the index if that may be of several types."""
    if len(index_dtypes) < 2:
        return list_elements(RESULT, instances)
    pairs = tuple((dtype, index_dtype) for dtype in instances for index_dtype in index_dtypes)
    return Elements((TypeParameter(KEY, RESULT), TypeParameter(_INDEX_TYPE, index)), {}, pairs, instances[0], False)


def write_index_pointer(index_dtypes: Sequence[DType]) -> str:
    """The type of a kernel's argument for the elements of the index."""
    return f"constant {_INDEX_TYPE if len(index_dtypes) > 1 else index_dtypes[0].metal}*"


def add_to(offset: str, value: str) -> str:
    """The statement of a kernel that adds to an element of the result."""
    return f"c10::metal::AtomicType<{SUM}>::atomic_add(output, {offset}, {value});"


def name_sums(kernels: FormKernels, site: Site) -> str:
    """The variable that kernels add to instead of the result; nothing if they do so in that."""
    is_narrow = any(instance[0].opmath != instance[0] for instance in kernels.elements.instances)
    return (_SUMS if site.code.is_free(_SUMS) else f"{_SUMS}_") if is_narrow else ""


def write_alert(kernels: FormKernels) -> str:
    """The order in which elements are added up may matter."""
    return f'at::globalContext().alertNotDeterministic("{kernels.name}_mps");'


def write_zeros(site: Site) -> str:
    """The statement that makes the result zero, unless the function or its caller makes it of zeros."""
    result = site.variable(RESULT)
    values = [place["value"] for place in find_code(f"{site.code.before}{site.code.text}", f"{result} = $$value;")]
    is_zeroed = values and all(value.startswith("at::zeros") for value in values)
    return "" if is_zeroed else f"{result}.zero_();"


def write_sums(sums: str, result: str) -> Iterator[str]:
    """The variable for sums, if there is one."""
    if sums:
        yield f"const auto {sums} = {result}.to(toOpMathType({result}.scalar_type()));"


def copy_sums(sums: str, result: str) -> Iterator[str]:
    """Copies sums that are not in the result to it."""
    if sums:
        yield from (f"if (!{sums}.is_same({result})) {{", f"{result}.copy_({sums});", "}")


def guard_empty(walked: str, tensors: Iterable[str], site: Site) -> str:
    """The condition that there is anything to write, as there may be results without, if the function asks none."""
    return "" if site.code.asks_empty(*tensors) else f"{walked}.numel() > 0"


@dataclass(frozen=True)
class Bincount(Form):
    """The sums of the elements of `source` by the tensor `index`; of ones where a call leaves out the source.

    `index_dtypes` are the types of the index in recorded calls.
    """

    TITLE: ClassVar[str] = "coordinates"
    ANY_RANK: ClassVar[bool] = True

    index: str
    source: str
    dtypes: tuple[DType, ...] = ()
    index_dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        element = f"each element of {self.source} (1 if left out)"
        yield f"output = zeros; {element} is added to output[...], at the element of {self.index} in the only dimension"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        """Those that host code makes of the source's: of recorded calls."""
        atomic = read_atomic()
        return [dtype for dtype in dtypes.ALL if dtype in self.dtypes and find_sum(dtype).metal in atomic]

    def list_counted(self) -> tuple[str, ...]:
        return (self.index,)

    def list_moved(self) -> tuple[str, ...]:
        return (self.index,)

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_indexed_elements(self.index, instances, self.index_dtypes)
        return write_one_kernel(name, elements, self._list_arguments(), self._write_body(), style)

    def _list_arguments(self) -> Iterator[Argument]:
        index, source = name_tensor(self.index), name_tensor(self.source)
        yield Argument(f"device c10::metal::AtomicType_t<{SUM}>* output", "tensor", RESULT)
        yield Argument(f"{write_index_pointer(self.index_dtypes)} {index}", "tensor", self.index)
        yield Argument(f"constant {KEY}* {source}", "optional tensor", self.source)
        yield Argument("constant index_t& output_size", "rows", RESULT)
        yield Argument("constant index_t& output_stride", "first stride", RESULT)
        yield Argument(f"constant index_t& {index}_stride", "first stride", self.index)
        yield Argument(f"constant index_t& {source}_stride", "optional stride", self.source)
        yield Argument(f"constant bool& has_{source}", "flag", self.source)

    def _write_body(self) -> Iterator[str]:
        index, source = name_tensor(self.index), name_tensor(self.source)
        yield f"const long at = {index}[tid * {index}_stride];"
        yield "if (at >= 0 && at < output_size) {"
        element = f"{source}[tid * {source}_stride]"
        yield f"  const {SUM} value = has_{source} ? static_cast<{SUM}>({element}) : {SUM}(1);"
        yield f"  {add_to(f'{INDEXED_AT} * output_stride', 'value')}"
        yield "}"

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        result, index, source = (site.variable(name) for name in (RESULT, self.index, self.source))
        sums, flag, start = name_sums(kernels, site), self._name_flag(site), write_zeros(site)
        whole = f"{source}.value()" if source in site.names.optional else source
        member, output = site.names.member(self.source), sums or result
        passed = (
            output, index, f"{flag} ? {whole} : {index}", f"{output}.size(0)", f"{output}.stride(0)",
            f"{index}.stride(0)", f"{flag} ? {member}stride(0) : 0", flag,
        )  # fmt: skip
        variables, values = {RESULT: output, self.index: index}, dict(zip(kernels.arguments, passed, strict=True))
        fit = f" && (!{flag} || canUse32BitIndexMath({whole}))"
        types = [result, *([index] if len(self.index_dtypes) > 1 else [])]
        guard, threads = guard_empty(index, (index, source), site), f"{index}.numel()"
        lines = (
            *self._write_flag(flag, kernels, site),
            *([start] if start else []),
            *write_sums(sums, result),
            *site.write_stream(),
            *launch_one(kernels, threads, variables.__getitem__, values.__getitem__, types, fit, guard),
            *copy_sums(sums, result),
        )
        headers = (*HEADERS, CONTEXT, *((OP_MATH,) if sums else ()))
        return Launch(as_nodes(lines), frozenset(headers), start)

    def _name_flag(self, site: Site) -> str:
        """The variable for whether the source is given: the function's own, if it has one."""
        declared = site.code.find(f"bool $name = {write_given(self.source, site.names)};")
        return next((place["name"] for place in declared), f"has_{name_tensor(self.source)}")

    def _write_flag(self, flag: str, kernels: FormKernels, site: Site) -> Iterator[str]:
        """The order in which elements are counted does not matter, that in which they are added up may."""
        if site.code.is_free(flag):
            yield f"const bool {flag} = {write_given(self.source, site.names)};"
        yield from (f"if ({flag}) {{", write_alert(kernels), "}")
