"""MLX: a call of `mx.fast.metal_kernel`, read as text, or taken while a file of MLX's runs."""

from __future__ import annotations

from porter.kernels.export.forms import Files, Form, Source, listed, quoted, refuse
from porter.kernels.export.reading import find_call
from porter.kernels.kernel import Kernel
from porter.kernels.metal_kernel import MetalKernel
from porter.kernels.mlx.gathering import gather
from porter.kernels.signature import ATTRIBUTES, Content, described, tensor_views

_NAME = "mlx"
_LANES = {1: "x", 2: "xy", 3: "xyz"}


def write(source: Source) -> Files:
    """A module with the kernel and a function that calls it. Raises PTR231."""
    kernel = source.kernel
    _check(kernel)
    types = "".join(f', ("{word}", {name}.dtype)' for name, word in kernel.placeholders)
    arguments = ", ".join(kernel.inputs)
    text = f'''"""Kernel `{kernel.name}` for MLX, written by porter."""

import mlx.core as mx

kernel = mx.fast.metal_kernel(
    name="{kernel.name}",
    input_names={listed(kernel.inputs)},
    output_names={listed(kernel.outputs)},
    source={quoted(body_of(kernel))},
    header={quoted(kernel.header)},
    ensure_row_contiguous={kernel.row_contiguous},
    atomic_outputs={kernel.atomic_outputs},
)


def {kernel.name}({arguments}, *, grid, threadgroup, output_shapes, output_dtypes, template=(), init_value=None):
    return kernel(
        inputs=[{arguments}],
        template=[*template{types}],
        grid=grid,
        threadgroup=threadgroup,
        output_shapes=output_shapes,
        output_dtypes=output_dtypes,
        init_value=init_value,
    )
'''
    return {f"{kernel.name}.py": text}


def body_of(kernel: Kernel) -> str:
    """The body with Metal parameters as variables, since arguments have the names of their attributes."""
    declared = ""
    for parameter in kernel.parameters:
        lanes = int(parameter.dtype[-1]) if parameter.dtype[-1].isdigit() else 1
        part = f".{_LANES[lanes]}" if (ATTRIBUTES[parameter.attribute].lanes > 1) and lanes < 3 else ""
        declared += f"{parameter.dtype} {parameter.name} = {parameter.dtype}({parameter.attribute}{part});\n"
    return declared + kernel.body.lstrip("\n") if declared else kernel.body


def _check(kernel: Kernel) -> None:
    if tensor_views(kernel):
        raise refuse(kernel, _NAME, "indexes tensors with several indices or asks for extents",
                     "Index the memory by hand, with x_shape.")  # fmt: skip
    for name in kernel.inputs:
        if Content.STORAGE_OFFSET in described(kernel, name):
            raise refuse(kernel, _NAME, f"reads {name}_storage_offset", "Pass the offset as an input.")
    for name in kernel.outputs:
        if described(kernel, name):
            raise refuse(kernel, _NAME, f"asks for the shape of output `{name}`", "Pass the shape as an input.")


def read(text: str) -> MetalKernel:
    """The kernel of the one call of `metal_kernel` in a file. Raises PTR229 and PTR230."""
    given = find_call(text, ("metal_kernel",), ("name", "input_names", "output_names", "source", "header",
                      "ensure_row_contiguous", "atomic_outputs", "compile_options"),
                      required=("name", "input_names", "output_names", "source"))  # fmt: skip
    return MetalKernel(**given.arguments)


FORM = Form(_NAME, write, read, run=gather)
