"""The functor of a CUDA kernel as Metal kernels that the host runs: one for each type of element."""

from __future__ import annotations

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.cuda.own import OwnKernel
from porter.metal.own_functor import OwnFunctor

HEAD = """\
#include <metal_stdlib>
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
using namespace metal;
using namespace c10::metal;
"""


def compile_functor(fork: Checkout, own: OwnKernel, functor: OwnFunctor) -> Library:
    """Compiles the kernels. Raises what compiling Metal raises."""
    kernels = [write_kernel(own, functor, dtype, result) for dtype, result in functor.dtypes]
    names = [kernel_name(own, dtype) for dtype, _ in functor.dtypes]
    source = HEAD + functor.text + "".join(kernels)
    return Library(build.compile_kernels(source, names, build.Options(include=(fork.root,))))


def kernel_name(own: OwnKernel, dtype: DType) -> str:
    """Returns the name of the kernel for a type of element."""
    return f"{own.name}_of_{dtype.metal}"


def write_kernel(own: OwnKernel, functor: OwnFunctor, dtype: DType, result: DType) -> str:
    """Returns the kernel that calls the functor with each element, and with its numbers."""
    arrays = "".join(f", constant {dtype.metal}* e{at} [[buffer({at + 2})]]" for at in range(len(own.elements)))
    values = [f"e{at}[i]" for at in range(len(own.elements))]
    wide = dtype.opmath.metal
    numbers = [f"{wide}(numbers[{at}])" for at in range(len(own.scalars))]
    if functor.struct:
        numbers = [f"{functor.struct.name}<{wide}>{{{', '.join(numbers)}}}"]
    return (
        f"kernel void {kernel_name(own, dtype)}(device {result.metal}* out [[buffer(0)]], "
        f"constant float* numbers [[buffer(1)]]{arrays}, uint i [[thread_position_in_grid]]) {{\n"
        f"  out[i] = {own.name}_functor{{}}({', '.join((*values, *numbers))});\n}}\n"
    )
