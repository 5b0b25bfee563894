"""Writes the source of a kernel: the signature and the instantiation around a person's body."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from porter.kernels.attributes import ATTRIBUTES
from porter.kernels.body import call_subscripts, is_declared, replace_placeholder, subscripts, words
from porter.kernels.kernel import AddressSpace, Kernel, Operand, TemplateArgument
from porter.kernels.prelude import helpers

_START = "#include <metal_stdlib>\nusing namespace metal;\n\n"
_DIGITS = 8
MOST_BUFFERS = 31


class Content(Enum):
    """What a buffer of the kernel holds, and how the argument's name ends for it."""

    DATA = ""
    SHAPE = "_shape"
    STRIDES = "_strides"
    RANK = "_ndim"
    STORAGE_OFFSET = "_storage_offset"
    EXTENTS = "_extents"


_DESCRIBED = {
    Content.SHAPE: "constant const int* ",
    Content.STRIDES: "constant const long* ",
    Content.RANK: "constant const int& ",
    Content.STORAGE_OFFSET: "constant const long& ",
    Content.EXTENTS: "constant const int* ",
}


@dataclass(frozen=True)
class Buffer:
    """One argument that the launch binds: the tensor or number it belongs to, what it holds of it, its declaration."""

    operand: str
    content: Content
    declaration: str


@dataclass(frozen=True)
class Generated:
    """A complete source: `function` is the host name of its kernel, and `buffers` are its arguments in order."""

    source: str
    function: str
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True)
class Definition:
    """A kernel without what makes one call of it: helpers and header, then the kernel under the name it was given."""

    before: str
    text: str
    buffers: tuple[Buffer, ...]


def define(
    kernel: Kernel,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    template: Sequence[TemplateArgument],
    function: str,
) -> Definition:
    """The definition of `kernel` as a file of its own has it: the lines are not numbered as those of the script."""
    body, header = _specialize(kernel, inputs)
    views = tensor_views(kernel)
    buffers = tuple(_buffers(kernel, inputs, outputs, views))
    before = helpers(_helper_words(kernel, body, header, views)) + textwrap.dedent(header).lstrip("\n")
    statements = _views(inputs, outputs, views) + textwrap.dedent(body).strip("\n").rstrip() + "\n"
    text = _definition(kernel, buffers, template, statements).replace(_NAME, function)
    return Definition(before, text, buffers)


@lru_cache(maxsize=512)
def generate(
    kernel: Kernel,
    inputs: tuple[Operand, ...],
    outputs: tuple[Operand, ...],
    template: tuple[TemplateArgument, ...] = (),
) -> Generated:
    """The source of `kernel` for operands of these types. The function's name holds a hash of everything else."""
    body, header = _specialize(kernel, inputs)
    views = tensor_views(kernel)
    buffers = tuple(_buffers(kernel, inputs, outputs, views))
    before = _START + helpers(_helper_words(kernel, body, header, views)) + _numbered(f"{kernel.name} header", header)
    statements = _views(inputs, outputs, views) + _numbered(f"{kernel.name} body", body)
    definition = _definition(kernel, buffers, template, statements)
    types = "".join(f"_{re.sub(r'[^A-Za-z0-9]', '', each.value)}" for each in template)
    function = f"{kernel.name}{types}_{_hash(before, definition)}"
    text = definition.replace(_NAME, function)
    return Generated(before + text + _instantiation(function, template), function, buffers)


def tensor_views(kernel: Kernel) -> tuple[str, ...]:
    """The inputs and outputs that the body uses as tensors: `A[i, j]` or `A.get_extent(0)`."""
    if not kernel.tensors:
        return ()
    names = (*kernel.inputs, *kernel.outputs)
    indexed = {name for name, _, _, count in subscripts(kernel.body, names) if count > 1}
    return tuple(n for n in names if n in indexed or re.search(rf"\b{n}\s*\.\s*get_extent\b", kernel.body))


def pointer_name(name: str) -> str:
    """The argument behind an input or output that the body uses as a tensor."""
    return f"{name}_data"


def described(kernel: Kernel, name: str) -> tuple[Content, ...]:
    """What the body asks to know of input or output `name`."""
    named = words(kernel.body)
    contents = (content for content in _DESCRIBED if content is not Content.EXTENTS)
    asked = (content for content in contents if name + content.value in named)
    return tuple(content for content in asked if not is_declared(kernel.body, name + content.value))


_NAME = "@name@"


def _specialize(kernel: Kernel, inputs: Sequence[Operand]) -> tuple[str, str]:
    """The body and the header with the types of inputs for their placeholders."""
    body = call_subscripts(kernel.body, tensor_views(kernel))
    header = kernel.header
    types = {each.name: each.metal for each in inputs}
    for name, word in kernel.placeholders:
        body = replace_placeholder(body, word, types[name])
        header = replace_placeholder(header, word, types[name])
    return body, header


def _helper_words(kernel: Kernel, body: str, header: str, views: Sequence[str]) -> frozenset[str]:
    return words(body) | words(header) | ({"porter_tensor"} if views else frozenset())


def _buffers(
    kernel: Kernel, inputs: Sequence[Operand], outputs: Sequence[Operand], views: Sequence[str]
) -> Iterator[Buffer]:
    index = 0
    for operand, type_ in (*((o, _input_type(o)) for o in inputs), *((o, _output_type(kernel, o)) for o in outputs)):
        viewed = operand.name in views
        argument = pointer_name(operand.name) if viewed else operand.name
        wanted = (*described(kernel, operand.name), *([Content.EXTENTS] if viewed else []))
        data = Buffer(operand.name, Content.DATA, f"{type_}{argument} [[buffer({index})]]")
        yield data
        index += 1
        for content in wanted:
            name = operand.name + content.value
            yield Buffer(operand.name, content, f"{_DESCRIBED[content]}{name} [[buffer({index})]]")
            index += 1


def _input_type(operand: Operand) -> str:
    return f"{operand.space.value} const {operand.metal}{'&' if operand.is_value else '*'} "


def _output_type(kernel: Kernel, operand: Operand) -> str:
    return f"{AddressSpace.DEVICE.value} {f'atomic<{operand.metal}>' if kernel.atomic_outputs else operand.metal}* "


def _views(inputs: Sequence[Operand], outputs: Sequence[Operand], views: Sequence[str]) -> str:
    """Declarations of the tensors that a body uses, over the pointers that it gets."""
    pointers = {o.name: f"device const {o.metal}*" for o in inputs} | {o.name: f"device {o.metal}*" for o in outputs}
    ranks = {o.name: o.rank for o in (*inputs, *outputs)}
    return "".join(
        f"  const porter_tensor<{pointers[n]}, {ranks[n]}> {n}{{{pointer_name(n)}, {n}{Content.EXTENTS.value}}};\n"
        for n in views
    )


def _definition(kernel: Kernel, buffers: Sequence[Buffer], template: Sequence[TemplateArgument], body: str) -> str:
    named = words(kernel.body)
    arguments = [buffer.declaration for buffer in buffers]
    arguments += [f"{p.dtype} {p.name} [[{p.attribute}]]" for p in kernel.parameters]
    taken = {p.name for p in kernel.parameters} | set(kernel.inputs) | set(kernel.outputs)
    arguments += [f"{a.type} {a.name} [[{a.name}]]" for a in ATTRIBUTES.values() if a.name in named - taken]
    parameters = ", ".join(f"{each.kind} {each.name}" for each in template)
    head = f"template <{parameters}>\n" if template else ""
    listed = ",\n    ".join(arguments)
    return f"{head}[[kernel]] void {_NAME}(\n    {listed}) {{\n{body}}}\n"


def _instantiation(function: str, template: Sequence[TemplateArgument]) -> str:
    if not template:
        return ""
    instance = f"{function}<{', '.join(each.value for each in template)}>"
    return f'\ntemplate [[host_name("{function}")]] [[kernel]] decltype({instance}) {instance};\n'


def _numbered(file: str, text: str) -> str:
    """`text` without blank lines around it, and with its own line numbers in what a compiler says of it."""
    stripped = text.lstrip("\n").rstrip()
    first = len(text) - len(text.lstrip("\n")) + 1
    return f'#line {first} "{file}"\n{stripped}\n' if stripped else ""


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]
