"""Structured kernels that a host file defines and no row names.

A tree whose rows are newer than some of its host files has them: the row joined the shared kernel, and the old one is
still there (`softplus_out_mps` under the rows of 2.15). torchgen declares the class of a structured kernel for a row
alone, so that the whole file would not compile, with all that other operators need of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from porter.aten.native_functions import NativeFunctions
from porter.core.cache import digest, put_if_changed
from porter.core.errors import Place
from porter.core.layout import NATIVE_FUNCTIONS
from porter.languages.source import parse_source
from porter.verdict.build.registration import MetaClass, find_meta_class
from porter.verdict.build.tree import Tree
from porter.verdict.result import ForkFinding

WRAPPER = "TORCH_IMPL_FUNC"
_WRAPPED = re.compile(rf"^{WRAPPER}\(\s*(\w+)\s*\)", re.M)


@dataclass(frozen=True)
class UnnamedKernel:
    """A structured kernel without a row: its parameters as written, and the class of the row that it served once."""

    name: str
    parameters: str
    meta: MetaClass
    place: Place


def list_unnamed(tree: Tree, path: str) -> tuple[UnnamedKernel, ...]:
    """The structured kernels of a host file that no row names, of which a row's class is known.

    One that a row named before the plan is not among them: a plan that moves the row has to remove it.
    """
    text = tree.read(path)
    names = set(_WRAPPED.findall(text))
    if not names:
        return ()
    rows = tree.read(NATIVE_FUNCTIONS)
    # Of any backend: a new operator's own file has its kernel for the CPU too.
    named = (NativeFunctions.parse(each).kernels for each in (rows, tree.before(NATIVE_FUNCTIONS)))
    return tuple(_read_unnamed(path, text, rows, names.difference(*named)))


def _read_unnamed(path: str, text: str, rows: str, names: Iterable[str]) -> Iterator[UnnamedKernel]:
    source = parse_source(path, text)
    for function in source.functions():
        if function.wrapper == WRAPPER and function.name in names:
            meta = find_meta_class(rows, function.name)
            if meta is not None:
                yield UnnamedKernel(function.name, function.params, meta, source.place(function.start))


def write_header(tree: Tree, path: str, include: Path) -> None:
    """Writes the header that declares a host file's unnamed kernels, which `find_header` finds; none if it has none."""
    kernels = list_unnamed(tree, path)
    if kernels:
        put_if_changed(_place_header(path, include), write_declarations(kernels))


def find_header(path: str, include: Path) -> Path | None:
    """The header to compile a host file with, if one was written for it."""
    header = _place_header(path, include)
    return header if header.is_file() else None


def _place_header(path: str, include: Path) -> Path:
    return include / "unnamed" / f"{digest(path)}.h"


def write_declarations(kernels: Iterable[UnnamedKernel]) -> str:
    """C++ that declares kernels as torchgen does in `<op>_native.h` for those that a row names."""
    kernels = tuple(kernels)
    includes = "".join(f"#include <ATen/ops/{base}_meta.h>\n" for base in sorted({each.meta.base for each in kernels}))
    classes = "".join(
        f"struct structured_{kernel.name} : public at::meta::{kernel.meta.name} {{\n"
        f"  void impl({kernel.parameters});\n"
        "};\n"
        for kernel in kernels
    )
    return f"#pragma once\n{includes}namespace at::native {{\n{classes}}} // namespace at::native\n"


def find_dead_kernels(tree: Tree, files: Iterable[str]) -> tuple[ForkFinding, ...]:
    """A finding for each host file with kernels that no row names."""
    by_file = ((path, list_unnamed(tree, path)) for path in files)
    return tuple(_describe(kernels) for _, kernels in by_file if kernels)


def _describe(kernels: tuple[UnnamedKernel, ...]) -> ForkFinding:
    names = ", ".join(kernel.name for kernel in kernels)
    return ForkFinding(f"no row dispatches MPS to {names}", str(kernels[0].place))
