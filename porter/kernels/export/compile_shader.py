"""`torch.mps.compile_shader`: a module that needs torch alone."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from porter.kernels.call import Number, Value, number_type
from porter.kernels.export.forms import Files, Form, Source, quoted
from porter.kernels.launch import write_signature
from porter.kernels.signature import Buffer, Content

_NAME = "compile_shader"
_CASTS = {torch.bool: "uint8", torch.int32: "int32"}
_DESCRIPTIONS = {
    Content.SHAPE: ("list({0}.shape) or [1]", "int32"),
    Content.EXTENTS: ("list({0}.shape) or [1]", "int32"),
    Content.STRIDES: ("list({0}.stride()) or [1]", ""),
    Content.RANK: ("{0}.dim()", "int32"),
    Content.STORAGE_OFFSET: ("{0}.storage_offset()", ""),
}


def write(source: Source) -> Files:
    """A module with the source and a function that launches it, for the types of the example. Raises PTR228."""
    kernel, call = source.kernel, source.call
    generated = write_signature(kernel, call)
    values = dict(zip(kernel.inputs, call.inputs, strict=True))
    arguments = [_argument(buffer, values.get(buffer.operand)) for buffer in generated.buffers]
    casts = {index: cast for index, (_, cast) in enumerate(arguments) if cast}
    shapes = ", ".join(f"{name}_shape" for name in kernel.outputs)
    results = ", ".join(kernel.outputs)
    checks, allocations = "".join(_checks(source)), "".join(_allocations(source))
    text = f'''"""Kernel `{kernel.name}` for torch.mps.compile_shader, written by porter."""

from functools import cache

import torch

SOURCE = {quoted(generated.source)}


@cache
def library():
    return torch.mps.compile_shader(SOURCE)


def {kernel.name}({", ".join(kernel.inputs)}, *, threads, group_size, {shapes}):
{checks}{allocations}    group_size = [min(group, size) for group, size in zip(group_size, threads)]
    library().{generated.function}(
        {", ".join(text for text, _ in arguments)},
        threads=threads, group_size=group_size, arg_casts={casts or None},
    )
    return {results}
'''
    return {f"{kernel.name}.py": text}


def _argument(buffer: Buffer, value: Value | None) -> tuple[str, str]:
    """What the function passes for a buffer, and how it has to be narrowed."""
    if buffer.content is Content.DATA:
        number = value is not None and not isinstance(value, torch.Tensor)
        return buffer.operand, _CASTS.get(number_type(value), "") if number else ""  # type: ignore[arg-type]
    text, cast = _DESCRIPTIONS[buffer.content]
    return text.format(buffer.operand), cast


def _checks(source: Source) -> Iterator[str]:
    for name, value in zip(source.kernel.inputs, source.call.inputs, strict=True):
        if not isinstance(value, torch.Tensor):
            continue
        yield f"    if {name}.dtype != {value.dtype} or {name}.dim() != {value.dim()}:\n"
        yield f'        raise TypeError("{name} has to be {value.dtype} of rank {value.dim()}")\n'
        if source.kernel.row_contiguous:
            yield f"    {name} = {name}.contiguous()\n"


def _allocations(source: Source) -> Iterator[str]:
    start: Number | None = source.call.init_value
    for name, output in zip(source.kernel.outputs, source.call.outputs, strict=True):
        made = "torch.empty(" if start is None else "torch.full("
        value = "" if start is None else f"{start!r}, "
        yield f'    {name} = {made}{name}_shape, {value}dtype={output.dtype}, device="mps")\n'


FORM = Form(_NAME, write, runs_here=True)
