"""An extension from a file of kernels: each becomes an operator of the same name, called as its MetalKernel is."""

from __future__ import annotations

import builtins
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from porter.core.errors import Place, PorterError
from porter.core.files import require_regular
from porter.kernels.export.forms import Files, Form, Source, check_gradient
from porter.kernels.extension.project import KERNEL, Project, check_name, fill, names_of
from porter.kernels.kernel import Kernel, Operand
from porter.kernels.loading import AnyKernel, run_file
from porter.kernels.metal_kernel import MetalKernel
from porter.kernels.references import Reference
from porter.kernels.signature import Content, generate
from porter.kernels.torch_metal_kernel import TorchMetalKernel

_MODULES: dict[str, ModuleType] = {"torch": torch, "math": math, "F": torch.nn.functional, "Tensor": torch}
HEADER = '''"""What the kernels compute, in torch."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
'''


@dataclass(frozen=True)
class Written:
    """A function's name in the module of references, and its source."""

    name: str
    text: str


def write_reference(kernel: str, function: Callable[..., Any]) -> Written:
    """The source of a kernel's reference. Raises PTR254 if it is more than one function of torch alone."""
    module = getattr(function, "__module__", None) or ""
    if module.partition(".")[0] in ("torch", "") and hasattr(function, "__name__"):
        path = f"{module or 'torch'}.{function.__name__}"
        return Written(f"{kernel}_reference", f"{kernel}_reference = {path}\n")
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>" or function.__closure__:
        raise _refuse(kernel, "is not a plain function of its file")
    needed = _globals(function.__code__) - set(dir(builtins))
    missing = sorted(name for name in needed if name not in _MODULES and name != function.__name__)
    if missing:
        raise _refuse(kernel, f"uses {', '.join(missing)} of its file")
    return Written(function.__name__, textwrap.dedent(inspect.getsource(function)))


def _globals(code: CodeType) -> set[str]:
    """The global names that a function's code loads, those of functions within it included."""
    import dis

    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (_globals(each) for each in code.co_consts if isinstance(each, CodeType))
    return own.union(*inner)


def _refuse(kernel: str, why: str) -> PorterError:
    return PorterError(
        "PTR254", f"the reference of kernel `{kernel}` {why}, so the extension cannot take it along",
        hint="Make it one function that uses only its arguments, torch and math.",
    )  # fmt: skip


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
    # The source with names in place of what a call knows: element types, ranks, and how each operand is passed
    general = [Operand(name, f"type_of_{name}", _RANK + i) for i, name in enumerate(operands)]
    count = len(kernel.inputs)
    generated = generate(kernel, tuple(general[:count]), tuple(general[count:]))
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


def project_of_file(name: str, path: Path, without_vjp: bool = False) -> Project:
    """The extension `name` with the kernels of a file.

    Raises PTR251, PTR253-PTR255, PTR256 for a vjp unless `without_vjp`, and what making kernels raises.
    """
    check_name(name)
    kernels = find_kernels(path)
    if not without_vjp:
        for kernel in kernels:
            check_gradient(kernel)
    return project_of_kernels(name, [(each.kernel, each.reference) for each in kernels])


def find_kernels(path: Path) -> tuple[AnyKernel, ...]:
    """The kernels that are values of a file, in their order. Raises PTR253 if it has none, PTR238 if it stops."""
    place = Place(str(path))
    require_regular(path, "PTR253")
    values = run_file(path).values()
    found = tuple(dict.fromkeys(value for value in values if isinstance(value, MetalKernel | TorchMetalKernel)))
    if not found:
        hint = "Give the file a module-level `MetalKernel(name, input_names, output_names, source)`."
        raise PorterError("PTR253", "the file has no MetalKernel", place, hint)
    return found


def project_of_kernels(name: str, kernels: Sequence[tuple[Kernel, Reference | None]]) -> Project:
    """The extension `name` with these kernels and what they compute. Raises PTR254 and PTR255."""
    exported = [_export(kernel, reference) for kernel, reference in kernels]
    names = [each.kernel.name for each in exported]
    for each in names:
        if names.count(each) > 1:
            raise PorterError("PTR255", f"two kernels are named `{each}`", hint="Rename one of them.")
    references = dict.fromkeys(e.reference.text for e in exported if e.reference)
    filled = {
        **names_of(name),
        "names": ", ".join(sorted(names)),
        "quoted": ", ".join(f'"{each}"' for each in sorted(names)),
        "sources": "\n".join(cpp_source(each.kernel) for each in exported),
        "registrations": "\n".join(cpp_registration(each.kernel, i) for i, each in enumerate(exported)),
        "kernels": "\n".join(map(python_kernel, exported)),
        "with_reference": repr([each.kernel.name for each in exported if each.reference]),
    }
    made = fill(KERNEL, filled)
    made[f"{name}/references.py"] = "\n\n".join((HEADER, *references)).rstrip() + "\n"
    return Project(name, made)


def _export(kernel: Kernel, reference: Reference | None) -> Exported:
    if not kernel.outputs:
        raise PorterError(
            "PTR255", f"kernel `{kernel.name}` gets its inputs and outputs only when it is called",
            hint="Give it input_names and output_names.",
        )  # fmt: skip
    return Exported(kernel, write_reference(kernel.name, reference) if reference else None)


def _write_project(source: Source) -> Files:
    """The files of the project by path. Raises PTR251, PTR254 and PTR255."""
    name = check_name(f"{source.kernel.name}_extension")
    return project_of_kernels(name, [(source.kernel, source.reference)]).files


FORM = Form("extension", _write_project)
