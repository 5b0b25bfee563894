"""Results that are the coordinates of the elements that are not zero, whose number is data.

One kernel counts those of each threadgroup, one writes them in order. Source: ATen/ceil_div.h.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from porter.core.dtypes import DType
from porter.metal.codegen.host_code import Launch, Node, as_nodes
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import (
    CEIL_DIV,
    HEADERS,
    MOST_THREADS,
    RESULT,
    SCAN,
    Form,
    FormKernels,
    Site,
    dispatch_groups,
    encode,
    list_elements,
    list_real,
    read_kernels,
    set_arguments,
    write_kernel,
    write_type,
)
from porter.metal.helpers import read_helper

_HELPERS = read_helper("is_nonzero.metal")
_KERNELS = read_kernels("nonzero", MOST_THREADS=MOST_THREADS)


@dataclass(frozen=True)
class Nonzero(Form):
    """A row of coordinates for each element of `source` that is not zero."""

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
        count = write_kernel(f"{name}_count", elements, *_KERNELS["count"], style)
        write = write_kernel(name, elements, *_KERNELS["write"], style)
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
