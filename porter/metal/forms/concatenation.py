"""Results that are the tensors of a list one after the other along a dimension.

A kernel that copies a tensor to its part is launched for each: one serves every length of the list, any ranks, sizes
and strides. Source: ATen/native/TensorShape.cpp (`cat_out_cpu`: a tensor without elements is left out).
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
from porter.metal.forms.form import (
    HEADERS,
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
_ARGUMENTS = (
    Argument(f"device {KEY}* output", "tensor", _PART),
    Argument(f"constant {KEY}* input", "tensor", _SOURCE),
    Argument("constant long* sizes", "sizes", _SOURCE),
    Argument("constant long* output_strides", "strides", _PART),
    Argument("constant long* input_strides", "strides", _SOURCE),
    Argument("constant long& ndim", "rank", _SOURCE),
    Argument("constant long& count", "count", _SOURCE),
)
_BODY = """\
// Sizes and strides are read once for four elements
const long threads = (count + 3) / 4;
vec<index_t, 4> rest = index_t(tid) + index_t(threads) * vec<index_t, 4>(0, 1, 2, 3);
vec<index_t, 4> output_offset = 0, input_offset = 0;
for (long d = ndim - 1; d >= 0; d--) {
  const vec<index_t, 4> i = rest % index_t(sizes[d]);
  rest /= index_t(sizes[d]);
  output_offset += i * index_t(output_strides[d]);
  input_offset += i * index_t(input_strides[d]);
}
for (uint e = 0; e < 4; e++) {
  if (tid + e * threads < count) {
    output[output_offset[e]] = input[input_offset[e]];
  }
}
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
        return write_one_kernel(name, list_elements(_PART, instances), _ARGUMENTS, _BODY.splitlines(), style)

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
            *launch_one(kernels, f"({_SOURCE}.numel() + 3) / 4", variable=str),
            "}",
        )
        return Launch(as_nodes(lines), frozenset(HEADERS))
