"""A kernel as a template over the element types that a script calls it with."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from porter.core.errors import PorterError
from porter.kernels.body import words
from porter.kernels.kernel import AddressSpace, Kernel, Operand, TemplateArgument
from porter.kernels.signature import Content, define
from porter.kernels.types import metal_type
from porter.plan.promotion import promotion as values
from porter.plan.promotion.expressions import Constant, Node, Select, type_of
from porter.plan.promotion.program import Launch
from porter.plan.promotion.promotion import Binding, KernelText, TypeName

_CONTENTS = {
    Content.DATA: values.Content.DATA, Content.SHAPE: values.Content.SHAPE, Content.STRIDES: values.Content.STRIDES,
    Content.RANK: values.Content.RANK, Content.STORAGE_OFFSET: values.Content.STORAGE_OFFSET,
}  # fmt: skip
_NUMBERS = {"int": "int", "float": "float", "bool": "bool"}
_SPARE = ("T", "U", "V", "W")
# What a kernel that names none of these computes does not depend on how its threads are grouped.
_GROUPED = re.compile(r"threadgroup|simdgroup|quadgroup|simd_|quad_|thread_execution_width|dispatch_")


def write_kernel_text(
    kernel: Kernel, op: str, launches: Sequence[Launch], instantiate: Mapping[str, Sequence[int]]
) -> KernelText:
    """The kernel as a template, from a launch for each choice of element types.

    Raises PTR247 for a template parameter that depends on sizes and has no values in `instantiate`.
    """
    first = launches[0]
    outputs = [tuple(each.kernel_outputs[i].dtype for each in launches) for i in range(len(kernel.outputs))]
    given = [tuple(each.argument_dtypes[i] for each in launches) for i in range(len(kernel.inputs))]
    named = {
        each.name: tuple(str(launch.template[at].value) for launch in launches)
        for at, each in enumerate(first.template) if each.kind == "typename"
    }  # fmt: skip
    types = _name_types([*named.values(), *given, *outputs], named, kernel)
    inputs = [
        Operand(name, types[dtypes] if dtypes[0] else _NUMBERS[type_of(first.arguments[at])], 1 if dtypes[0] else 0)
        for at, (name, dtypes) in enumerate(zip(kernel.inputs, given, strict=True))
    ]
    results = [Operand(name, types[dtypes], 1) for name, dtypes in zip(kernel.outputs, outputs, strict=True)]
    template = [
        *(TemplateArgument("typename", word, word) for word in dict.fromkeys(types.values()) if _varies(types, word)),
        *(TemplateArgument(each.kind, each.name, "") for each in first.template if each.kind != "typename"),
    ]
    fixed = "".join(f"using {name} = {types[dtypes]};\n" for name, dtypes in named.items() if types[dtypes] != name)
    definition = define(kernel, _passed(inputs), results, template, op)
    text = definition.text.replace(") {\n", f") {{\n{fixed}", 1) if fixed else definition.text
    varying = {word: dtypes for dtypes, word in types.items() if _varies(types, word)}
    numbers = [each for each in first.template if each.kind != "typename"]
    operands = (*kernel.inputs, *kernel.outputs)
    return KernelText(
        before=definition.before,
        definition=text,
        outputs=kernel.outputs,
        parameters=tuple(each.name for each in template),
        types=tuple(TypeName(dtypes, word) for word, dtypes in varying.items()),
        numbers=tuple(each.name for each in numbers),
        instances=tuple(_instances(launches, varying, instantiate)),
        bindings=tuple(Binding(operands.index(b.operand), _CONTENTS[b.content]) for b in definition.buffers),
        in_groups=any(map(_GROUPED.search, words(kernel.body) | words(kernel.header))),
        row_contiguous=kernel.row_contiguous,
    )


def _passed(inputs: Sequence[Operand]) -> list[Operand]:
    """Numbers are constants, and tensors lie in device memory however small they are."""
    return [replace(each, space=AddressSpace.CONSTANT) if each.rank == 0 else each for each in inputs]


def _name_types(
    found: Sequence[tuple[str, ...]], named: Mapping[str, tuple[str, ...]], kernel: Kernel
) -> dict[tuple[str, ...], str]:
    """Metal's word for each choice of types: the kernel's own template parameter, a new one, or a type."""
    types: dict[tuple[str, ...], str] = {}
    taken = words(kernel.body) | words(kernel.header) | set(named)
    spare = iter(word for word in _SPARE if word not in taken)
    for name, dtypes in named.items():
        if len(set(dtypes)) > 1:
            types.setdefault(dtypes, name)
    for dtypes in found:
        if dtypes in types or not dtypes[0]:
            continue
        types[dtypes] = _metal(dtypes[0]) if len(set(dtypes)) == 1 else next(spare)
    return types


def _varies(types: Mapping[tuple[str, ...], str], word: str) -> bool:
    return any(len(set(dtypes)) > 1 for dtypes, each in types.items() if each == word)


def _instances(
    launches: Sequence[Launch], varying: Mapping[str, tuple[str, ...]], instantiate: Mapping[str, Sequence[int]]
) -> list[tuple[str, ...]]:
    found: dict[tuple[str, ...], None] = {}
    for at, launch in enumerate(launches):
        types = [_metal(dtypes[at]) for dtypes in varying.values()]
        numbers = []
        for each in launch.template:
            if isinstance(each.value, str):
                continue
            known = _values(each.value)
            if known is None and each.name not in instantiate:
                raise PorterError(
                    "PTR247", f"template parameter {each.name} depends on the call, and kernels are compiled ahead",
                    launch.place, f"Choose its values: --instantiate {each.name}=64,128.",
                )  # fmt: skip
            numbers.append([str(v) for v in instantiate[each.name]] if known is None else known)
        found.update(dict.fromkeys((*types, *chosen) for chosen in itertools.product(*numbers)))
    return list(found)


def _values(node: Node) -> list[str] | None:
    """Every value that a template argument can have; None if it is computed from sizes."""
    match node:
        case Constant(value, _):
            return [str(value).lower()]
        case Select(_, yes, no):
            parts = _values(yes), _values(no)
            return None if None in parts else list(dict.fromkeys([*(parts[0] or []), *(parts[1] or [])]))
    return ["false", "true"] if type_of(node) == "bool" else None


def is_open(node: Node) -> bool:
    """Whether a template argument is computed from sizes."""
    return _values(node) is None


def _metal(dtype: str) -> str:
    name = metal_type(getattr(torch, dtype))
    assert name is not None, dtype
    return name
