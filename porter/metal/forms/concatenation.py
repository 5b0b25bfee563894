"""Results that are the tensors of a list one after the other along a dimension.

A kernel that copies a tensor to its part is launched for each: one serves every length of the list, any ranks, sizes
and strides. An iterator joins dimensions that are dense in both. Source: ATen/native/TensorShape.cpp (`cat_out_cpu`: a
tensor without elements is left out), ATen/TensorIterator.h, ATen/ceil_div.h.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.metal.codegen.elements import KEY
from porter.metal.codegen.host_code import Launch, as_nodes
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import ALONE, COUNT, NEIGHBORS, PLACES, Family, choose_schedule
from porter.metal.forms.form import (
    CEIL_DIV,
    HEADERS,
    LARGEST_ROWS,
    RESULT,
    Argument,
    Form,
    FormKernels,
    Site,
    launch_one,
    list_elements,
    write_one_kernel,
)

_SOURCE, _PART = "from", "part"  # what host code calls a tensor, and its part of the result
_ITERATOR = "ATen/TensorIterator.h"
_ARGUMENTS = (
    Argument(f"device {KEY}* output", "tensor", _PART),
    Argument(f"constant {KEY}* input", "tensor", _SOURCE),
    Argument("constant long* sizes", "number", "sizes"),
    Argument("constant long* output_strides", "number", f"{_PART}_strides"),
    Argument("constant long* input_strides", "number", f"{_SOURCE}_strides"),
    Argument("constant long& ndim", "number", "sizes.size()"),
)
_SCHEDULE = choose_schedule(Family.MOVES)
_BODY = f"""\
// Sizes and strides, in bytes, are read once for {PLACES} * {COUNT} elements of a row
const index_t columns = sizes[0], turns = (columns - 1) / ({PLACES} * {COUNT}) + 1;
for (index_t d = 1, rest = tid / turns; d < ndim; d++) {{
  const index_t i = rest % index_t(sizes[d]);
  rest /= index_t(sizes[d]);
  output += i * index_t(output_strides[d] / sizeof({KEY}));
  input += i * index_t(input_strides[d] / sizeof({KEY}));
}}
for (uint e = 0; e < {PLACES}; e++) {{
  const index_t i = (tid % turns + e * turns) * {COUNT};
  if (i < columns) {{
    auto to = output + i * index_t(output_strides[0] / sizeof({KEY}));
    auto from = input + i * index_t(input_strides[0] / sizeof({KEY}));
    *reinterpret_cast<device neighbors<{KEY}, {COUNT}>*>(to) =
        *reinterpret_cast<constant neighbors<{KEY}, {COUNT}>*>(from);
  }}
}}
"""


@dataclass(frozen=True)
class Concatenation(Form):
    """The tensors of the list `sources` along the dimension `dim`, in the result's type.

    A tensor of one dimension that has no elements fits every other one.
    """

    TITLE: ClassVar[str] = "coordinates"
    WHOLE_BODY: ClassVar[bool] = True

    sources: str
    dim: str
    dtypes: tuple[DType, ...] = ()

    def describe(self) -> Iterator[str]:
        yield f"output = the tensors of {self.sources}, one after the other along {self.dim}"

    def list_types(self, read_atomic: Callable[[], Collection[str]], refuses_complex: bool) -> list[DType]:
        return [each for each in dtypes.ALL if not refuses_complex or each.kind is not Kind.COMPLEX]

    def write_kernels(self, name: str, instances: Sequence[DType], style: KernelStyle) -> FormKernels:
        elements = list_elements(_PART, instances)
        return write_one_kernel(name, elements, _ARGUMENTS, _BODY.splitlines(), style, _SCHEDULE)

    def write_launch(self, kernels: FormKernels, site: Site) -> Launch:
        result, dim = site.variable(RESULT), site.variable(self.dim)
        lines = (
            *site.write_stream(),
            "int64_t start = 0;",
            f"for (const Tensor& tensor : {site.variable(self.sources)}) {{",
            "if (tensor.numel() == 0) {",
            "continue;",
            "}",
            f"const auto {_SOURCE} = tensor.to({result}.scalar_type());",
            f"const auto {_PART} = {result}.narrow({dim}, start, tensor.size({dim}));",
            f"start += tensor.size({dim});",
            f"const auto iter = TensorIteratorConfig().add_output({_PART}).add_const_input({_SOURCE}).build();",
            f"const auto sizes = iter.shape(), {_PART}_strides = iter.strides(0), {_SOURCE}_strides = iter.strides(1);",
            *launch_one(
                kernels, f"iter.numel() / sizes[0] * at::ceil_div(sizes[0], {PLACES} * count)", str,
                largest=LARGEST_ROWS, choices=_choose_count(), counts=("count",),
            ),
            "}",
        )  # fmt: skip
        return Launch(as_nodes(lines), frozenset((*HEADERS, CEIL_DIV, _ITERATOR)))


def _choose_count() -> Iterator[str]:
    """How many neighbors are moved at once, where all of a row are, and the rows are aligned."""
    yield f"const int64_t bytes = {_PART}.element_size();"
    yield f"int64_t multiple = sizes[0] | {_PART}.storage_offset() | {_SOURCE}.storage_offset();"
    yield "for (const auto d : c10::irange(1, sizes.size())) {"
    yield f"multiple |= ({_PART}_strides[d] | {_SOURCE}_strides[d]) / bytes;"
    yield "}"
    tests = ('index_type == "int"', f"{_PART}_strides[0] == bytes", f"{_SOURCE}_strides[0] == bytes")
    aligned = f"multiple % {NEIGHBORS} == 0"
    yield f"const int64_t count = {' && '.join((*tests, aligned))} ? {NEIGHBORS} : {ALONE};"
