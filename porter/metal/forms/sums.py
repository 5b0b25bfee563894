"""Results that kernels add to by an index, whose elements of 16 bits are added up in 32: what launches have for such.

Source: ATen/OpMathType.h, ATen/Context.h (`alertNotDeterministic`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from porter.core.dtypes import DType, Kind
from porter.languages.patterns import find_code
from porter.metal.codegen.elements import KEY, Elements, TypeParameter
from porter.metal.forms.form import RESULT, FormKernels, Site, list_elements

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
