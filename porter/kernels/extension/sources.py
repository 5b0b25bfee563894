"""The kernels of a file as the C++ table and the Python functions of an extension."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from porter.kernels.extension.reference import Written
from porter.kernels.kernel import Kernel, Operand
from porter.kernels.signature import Content, Generated, generate

_RANK = 90000  # stands for an unknown rank in what `generate` writes; the operand's number is added
_CONTENTS = {
    Content.DATA: "kData", Content.SHAPE: "kShape", Content.STRIDES: "kStrides", Content.RANK: "kRank",
    Content.STORAGE_OFFSET: "kStorageOffset", Content.EXTENTS: "kShape",
}  # fmt: skip
_LONGEST = 8000  # characters of one string literal; compilers have to take 65536


@dataclass(frozen=True)
class Exported:
    """A kernel of an extension: `reference` is a function of its module `references`, if it has one."""

    kernel: Kernel
    reference: Written | None = None


def cpp_source(kernel: Kernel) -> str:
    """The kernel's row in the table of kernels.h."""
    operands = (*kernel.inputs, *kernel.outputs)
    generated = _generate(kernel, operands)
    rows = ", ".join(f"{{{operands.index(b.operand)}, Content::{_CONTENTS[b.content]}}}" for b in generated.buffers)
    names = ", ".join(f'"{name}"' for name in operands)
    return (
        f'      {{"{kernel.name}", "{generated.function}", {{{names}}},\n       {{{rows}}},\n'
        f"       {str(kernel.row_contiguous).lower()}, {_literal(_general(generated.source, operands))}}},"
    )


def cpp_registration(kernel: Kernel, number: int) -> str:
    """The line that registers the kernel's operator for the mps device."""
    return f'  m.impl("{kernel.name}", &operation<{number}>);'


def python_kernel(exported: Exported) -> str:
    """The kernel's line in ops.py."""
    kernel = exported.kernel
    reference = f"references.{exported.reference.name}" if exported.reference else None
    return f'{kernel.name} = MetalKernel("{kernel.name}", {list(kernel.inputs)}, {list(kernel.outputs)}, {reference})'


def _generate(kernel: Kernel, operands: Sequence[str]) -> Generated:
    """The source with names in place of what a call knows: element types, ranks, and how each operand is passed."""
    general = [Operand(name, f"type_of_{name}", _RANK + i) for i, name in enumerate(operands)]
    count = len(kernel.inputs)
    return generate(kernel, tuple(general[:count]), tuple(general[count:]))


def _general(source: str, operands: Sequence[str]) -> str:
    for i, name in enumerate(operands):
        declared = rf"\b(device const )type_of_{name}\* (?={name}(_data)? \[\[)"
        source = re.sub(declared, rf"\1type_of_{name} pointer_to_{name} ", source)
        source = source.replace(str(_RANK + i), f"rank_of_{name}")
    return source


def _literal(text: str) -> str:
    """A C++ expression for a text of any length."""
    parts = [text[at : at + _LONGEST] for at in range(0, len(text), _LONGEST)]
    return "\n".join(f'R"METAL({part})METAL"' for part in parts)
