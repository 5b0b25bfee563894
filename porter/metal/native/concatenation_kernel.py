"""Kernels that copy a tensor to its part of a concatenation: a thread for each element."""

from __future__ import annotations

from collections.abc import Sequence

from porter.core import dtypes
from porter.core.dtypes import DType, Kind
from porter.metal.native.coordinate_kernel import RESULT, Argument, MapKernel
from porter.metal.native.elements import KEY, Elements, TypeParameter
from porter.metal.native.kernel import KernelStyle, register

SOURCE, PART = "source", "part"  # what host code calls a tensor, and its part of the result
_ARGUMENTS = (
    Argument(f"device {KEY}* output", "tensor", PART),
    Argument(f"constant {KEY}* input", "tensor", SOURCE),
    Argument("constant long* sizes", "sizes", SOURCE),
    Argument("constant long* output_strides", "strides", PART),
    Argument("constant long* input_strides", "strides", SOURCE),
    Argument("constant long& ndim", "rank", SOURCE),
)
_BODY = """\
  index_t rest = tid;
  index_t output_offset = 0;
  index_t input_offset = 0;
  for (long d = ndim - 1; d >= 0; d--) {
    const index_t i = rest % index_t(sizes[d]);
    rest /= index_t(sizes[d]);
    output_offset += i * index_t(output_strides[d]);
    input_offset += i * index_t(input_strides[d]);
  }
  output[output_offset] = input[input_offset];
"""


def write_concatenation_kernel(name: str, instances: Sequence[DType], style: KernelStyle) -> MapKernel:
    """A kernel for some element types."""
    elements = Elements((TypeParameter(KEY, RESULT),), {}, tuple((each,) for each in instances), instances[0], False)
    texts = [*(each.text for each in _ARGUMENTS), "uint tid [[thread_position_in_grid]]"]
    head = f"template <typename {KEY}, typename index_t>\nkernel void {name}({', '.join(texts)}) {{\n"
    return MapKernel(name, f"{head}{_BODY}}}\n\n{register(name, elements, texts, style)}", _ARGUMENTS, elements)


def list_concatenated_types(refuses_complex: bool) -> list[DType]:
    """The element types of a kernel: all, as elements are only moved."""
    return [each for each in dtypes.ALL if not refuses_complex or each.kind is not Kind.COMPLEX]
