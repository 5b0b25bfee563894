"""Writes the source of a kernel: the signature and the instantiation around a person's body."""

from __future__ import annotations

import difflib
import hashlib
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path

from porter.kernels.kernel import AddressSpace, Kernel, Operand, TemplateArgument

_SKIPPED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*|(?<=\.\.\.)[A-Za-z_]\w*")
_MEMBER_OR_WORD = re.compile(r"[A-Za-z_]\w*")
_OPENING, _CLOSING = "([{", ")]}"


@lru_cache(maxsize=256)
def words(text: str) -> frozenset[str]:
    """Every identifier outside comments and literals."""
    return frozenset(_MEMBER_OR_WORD.findall(blank_comments(text)))


def blank_comments(text: str) -> str:
    """`text` with blanks instead of comments and literals, line by line the same."""
    return _SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def is_declared(text: str, word: str) -> bool:
    """Whether `text` seems to declare `word` itself, or to call it."""
    code = blank_comments(text)
    value = rf"(?:\b(?!return\b|else\b|case\b)[A-Za-z_]\w*|>)\s+{word}\s*[=;,)\[{{]"
    pointer = rf"[\w>]\s*[*&]+\s*{word}\s*=(?!=)"
    return re.search(rf"{value}|{pointer}|\b{word}\s*\(|#\s*define\s+{word}\b", code) is not None


def subscripts(text: str, names: Collection[str]) -> Iterator[tuple[str, int, int, int]]:
    """Each `name[...]` of `names`: the name, where its bracket opens and closes, and how many indices it holds."""
    code = blank_comments(text)
    for found in re.finditer(r"(?<![\w.])([A-Za-z_]\w*)\s*\[", code):
        if found[1] in names:
            close, count = _measure(code, found.end() - 1)
            yield found[1], found.end() - 1, close, count


def _measure(code: str, opening: int) -> tuple[int, int]:
    """Where the bracket at `opening` closes, and how many indices stand between; the end of the text if nowhere."""
    depth, count = 0, 1
    for at in range(opening, len(code)):
        if code[at] in _OPENING:
            depth += 1
        elif code[at] in _CLOSING:
            depth -= 1
            if depth == 0:
                return at, count
        elif code[at] == "," and depth == 1:
            count += 1
    return len(code), count


def call_subscripts(text: str, names: Collection[str]) -> str:
    """`text` with `A(i, j)` for `A[i, j]`, which Metal's C++ takes for one index."""
    edited = list(text)
    for _, opening, close, count in subscripts(text, names):
        if count > 1 and close < len(text):
            edited[opening], edited[close] = "(", ")"
    return "".join(edited)


def replace_placeholder(text: str, word: str, metal: str) -> str:
    """`text` with `metal` for `word`, also where the word is part of a vector type: `TYPE4`."""
    return re.sub(rf"\b{re.escape(word)}(?=[234]?\b)", metal, text)


@dataclass(frozen=True)
class Attribute:
    """One input attribute. `lanes` is how many dimensions its value has; a kernel may name fewer of them."""

    name: str
    lanes: int

    @property
    def type(self) -> str:
        """The Metal type of the argument unless a kernel says otherwise."""
        return "uint3" if self.lanes == 3 else "uint"

    @property
    def types(self) -> tuple[str, ...]:
        """Every type that Metal accepts."""
        sizes = ("", "2", "3") if self.lanes == 3 else ("",)
        return tuple(f"{base}{size}" for base in ("uint", "ushort") for size in sizes)


ATTRIBUTES: Mapping[str, Attribute] = {
    name: Attribute(name, lanes)
    for name, lanes in (
        ("dispatch_quadgroups_per_threadgroup", 1),
        ("dispatch_simdgroups_per_threadgroup", 1),
        ("dispatch_threads_per_threadgroup", 3),
        ("grid_origin", 3),
        ("grid_size", 3),
        ("quadgroup_index_in_threadgroup", 1),
        ("quadgroups_per_threadgroup", 1),
        ("simdgroup_index_in_threadgroup", 1),
        ("simdgroups_per_threadgroup", 1),
        ("thread_execution_width", 1),
        ("thread_index_in_quadgroup", 1),
        ("thread_index_in_simdgroup", 1),
        ("thread_index_in_threadgroup", 1),
        ("thread_position_in_grid", 3),
        ("thread_position_in_threadgroup", 3),
        ("threadgroup_position_in_grid", 3),
        ("threadgroups_per_grid", 3),
        ("threads_per_grid", 3),
        ("threads_per_simdgroup", 1),
        ("threads_per_threadgroup", 3),
    )
}
_LIKE_ONE = re.compile(r"(?:thread|threads|threadgroup|simdgroups?|quadgroups?|dispatch)_(?:\w+_)?(?:in|per)_\w+")


def resembles_attribute(word: str) -> bool:
    """Whether `word` is built like the name of an attribute: `thread_position_in_gird`."""
    return _LIKE_ONE.fullmatch(word) is not None


def nearest_attributes(word: str) -> tuple[str, ...]:
    """The names of attributes that `word` may have meant, best first."""
    return tuple(difflib.get_close_matches(word, ATTRIBUTES, n=2, cutoff=0.6))


_FOLDER = Path(__file__).with_name("prelude")
# The file that declares each name, in the order that sources hold them.
_FILES: Mapping[str, tuple[str, ...]] = {
    "names.metal": ("float16_t", "bfloat16_t"),
    "ceildiv.metal": ("ceildiv",),
    "elem_to_loc.metal": ("elem_to_loc",),
    "tensor.metal": ("porter_tensor",),
}


HELPERS = frozenset(name for names in _FILES.values() for name in names)


def helpers(words: Collection[str]) -> str:
    """The text of every helper that is among `words`."""
    return "".join(_read(file) for file, names in _FILES.items() if any(name in words for name in names))


@lru_cache
def _read(file: str) -> str:
    return (_FOLDER / file).read_text() + "\n"


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
    inputs, outputs, template = _rename(kernel, inputs, outputs, template)
    body, header = _specialize(kernel, inputs)
    views = tensor_views(kernel)
    buffers = tuple(_buffers(kernel, inputs, outputs, views))
    before = _write_helpers(kernel, body, header, views) + textwrap.dedent(header).lstrip("\n")
    statements = _views(inputs, outputs, views) + textwrap.dedent(body).strip("\n").rstrip() + "\n"
    return Definition(before, _definition(function, kernel, buffers, template, statements), buffers)


@lru_cache(maxsize=512)
def generate(
    kernel: Kernel,
    inputs: tuple[Operand, ...],
    outputs: tuple[Operand, ...],
    template: tuple[TemplateArgument, ...] = (),
) -> Generated:
    """The source of `kernel` for operands of these types. The function's name holds a hash of everything else."""
    inputs, outputs, template = _rename(kernel, inputs, outputs, template)
    body, header = _specialize(kernel, inputs)
    views = tensor_views(kernel)
    buffers = tuple(_buffers(kernel, inputs, outputs, views))
    before = _START + _write_helpers(kernel, body, header, views) + _numbered(f"{kernel.name} header", header)
    statements = _views(inputs, outputs, views) + _numbered(f"{kernel.name} body", body)
    unnamed = _definition(_UNNAMED, kernel, buffers, template, statements)
    types = "".join(f"_{re.sub(r'[^A-Za-z0-9]', '', each.value)}" for each in template)
    function = f"{kernel.name}{types}_{_hash(before, unnamed)}"
    text = _definition(function, kernel, buffers, template, statements)
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


_UNNAMED = "@name@"  # the name of a function in the text that is hashed for its name


def _specialize(kernel: Kernel, inputs: Sequence[Operand]) -> tuple[str, str]:
    """The body and the header with the types of inputs for their placeholders."""
    body = call_subscripts(kernel.body, tensor_views(kernel))
    header = kernel.header
    types = {each.name: each.metal for each in inputs}
    for name, word in kernel.placeholders:
        body = replace_placeholder(body, word, types[name])
        header = replace_placeholder(header, word, types[name])
    return body, header


def _write_helpers(kernel: Kernel, body: str, header: str, views: Sequence[str]) -> str:
    if kernel.library is not None:
        return kernel.library.text
    return helpers(words(body) | words(header) | ({"porter_tensor"} if views else frozenset()))


def _rename(
    kernel: Kernel, inputs: Sequence[Operand], outputs: Sequence[Operand], template: Sequence[TemplateArgument]
) -> tuple[tuple[Operand, ...], tuple[Operand, ...], tuple[TemplateArgument, ...]]:
    """Operands and template arguments with the types that the kernel's library has for Metal's."""
    rename = kernel.library.rename if kernel.library is not None else str
    operands = ([replace(operand, metal=rename(operand.metal)) for operand in some] for some in (inputs, outputs))
    values = tuple(replace(argument, value=rename(argument.value)) for argument in template)
    return tuple(next(operands)), tuple(next(operands)), values


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


def _definition(
    function: str, kernel: Kernel, buffers: Sequence[Buffer], template: Sequence[TemplateArgument], body: str
) -> str:
    named = words(kernel.body)
    arguments = [buffer.declaration for buffer in buffers]
    arguments += [f"{p.dtype} {p.name} [[{p.attribute}]]" for p in kernel.parameters]
    taken = {p.name for p in kernel.parameters} | set(kernel.inputs) | set(kernel.outputs)
    arguments += [f"{a.type} {a.name} [[{a.name}]]" for a in ATTRIBUTES.values() if a.name in named - taken]
    parameters = ", ".join(f"{each.kind} {each.name}" for each in template)
    head = f"template <{parameters}>\n" if template else ""
    listed = ",\n    ".join(arguments)
    return f"{head}[[kernel]] void {function}(\n    {listed}) {{\n{body}}}\n"


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
