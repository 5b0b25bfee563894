"""`torch.mps.compile_shader`: a module that needs torch alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

from porter.kernels.call import Call, Number, Value, number_type
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
    """A module with a source for the types of each example, and a function that launches it. Raises PTR228."""
    kernel, call = source.kernel, source.call
    buffers = _list_arguments(source, call)
    calls = [call, *(other for other in source.others if _is_alike(source, call, other))]
    casts = {index: cast for index, (_, cast) in enumerate(buffers) if cast}
    shapes = ", ".join(f"{name}_shape" for name in kernel.outputs)
    results = ", ".join(kernel.outputs)
    checks, allocations = "".join(_checks(source)), "".join(_allocations(source))
    text = f'''"""Kernel `{kernel.name}` for torch.mps.compile_shader, written by porter."""

from functools import cache

import torch

# By the types of {", ".join(_tensors(source)) or "no tensor"}: those of what is written, the name in Metal, the source.
KERNELS = {{
{"".join(_rows(source, calls))}}}


@cache
def function(types):
    _, name, source = KERNELS[types]
    return getattr(torch.mps.compile_shader(source), name)


def {kernel.name}({", ".join(kernel.inputs)}, *, threads, group_size, {shapes}):
{checks}{allocations}    group_size = [min(group, size) for group, size in zip(group_size, threads)]
    function(types)(
        {", ".join(text for text, _ in buffers)},
        threads=threads, group_size=group_size, arg_casts={casts or None},
    )
    return {results}
'''
    return {f"{kernel.name}.py": text}


def _rows(source: Source, calls: Sequence[Call]) -> Iterator[str]:
    for call in calls:
        generated = write_signature(source.kernel, call)
        results = _tuple(output.dtype for output in call.outputs)
        types, text = _tuple(_tensors(source, call).values()), quoted(generated.source)
        yield f'    {types}: ({results}, "{generated.function}", {text}),\n'


def _tuple(values: Iterable[object]) -> str:
    return f"({''.join(f'{value}, ' for value in values).rstrip()})"


def _tensors(source: Source, call: Call | None = None) -> dict[str, torch.dtype]:
    values = zip(source.kernel.inputs, (call or source.call).inputs, strict=True)
    return {name: value.dtype for name, value in values if isinstance(value, torch.Tensor)}


def _list_arguments(source: Source, call: Call) -> list[tuple[str, str]]:
    values = dict(zip(source.kernel.inputs, call.inputs, strict=True))
    return [_argument(buffer, values.get(buffer.operand)) for buffer in write_signature(source.kernel, call).buffers]


def _is_alike(source: Source, call: Call, other: Call) -> bool:
    """Whether one function makes both calls: they differ in element types alone."""
    ranks = [[v.dim() if isinstance(v, torch.Tensor) else None for v in each.inputs] for each in (call, other)]
    are_alike = ranks[0] == ranks[1] and call.init_value == other.init_value
    return are_alike and _list_arguments(source, call) == _list_arguments(source, other)


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
        yield f"    if {name}.dim() != {value.dim()}:\n"
        yield f'        raise TypeError("{name} has to be of rank {value.dim()}")\n'
        if source.kernel.row_contiguous:
            yield f"    {name} = {name}.contiguous()\n"
    names = _tensors(source)
    yield f"    types = {_tuple(f'{name}.dtype' for name in names)}\n"
    yield "    if types not in KERNELS:\n"
    has = "has" if len(names) == 1 else "have"
    yield f'        raise TypeError(f"{", ".join(names)} {has} to be one of {{list(KERNELS)}}, not {{types}}")\n'


def _allocations(source: Source) -> Iterator[str]:
    start: Number | None = source.call.init_value
    for at, name in enumerate(source.kernel.outputs):
        made = "torch.empty(" if start is None else "torch.full("
        value = "" if start is None else f"{start!r}, "
        yield f'    {name} = {made}{name}_shape, {value}dtype=KERNELS[types][0][{at}], device="mps")\n'


FORM = Form(_NAME, write)
