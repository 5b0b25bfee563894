"""Functions that MPS keeps because their rows are split by device: their bodies run the kernel that is ported."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from porter.aten.operator import Migration
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.formatting import format_block
from porter.languages.identifiers import to_snake_case
from porter.languages.inlining import read_parameters
from porter.languages.source import Function, parse_source
from porter.metal.insertion import insert_includes
from porter.metal.kernel import Kernel
from porter.metal.kernel_files import find_library
from porter.metal.launchers import LAUNCHER_HEADERS
from porter.plan.removal import Rewrite

_ITERATOR_HEADER = "ATen/TensorIterator.h"
_OPERATOR = re.compile(r"(?<!\w)at::(\w+)\(")
_OTHER_LIBRARY = re.compile(r"\bauto& lib = |_metallib\.h>")
_LAUNCH = re.compile(r"(?<![\w.:])(?=lib\.|exec_\w+\()")
_NAMESPACE = re.compile(r"^namespace at::native \{\n", re.M)


def rewrite_functions(
    fork: Checkout, migrations: Sequence[Migration], kernels: Sequence[Kernel]
) -> Iterator[tuple[str, Rewrite]]:
    """Yields the functions that stay, each with its file and its new body."""
    by_name = {kernel.stub.name: kernel for kernel in kernels}
    for each in migrations:
        found = each.served.implementation
        if each.body is None or found is None or found.function is None:
            continue
        function = parse_source(found.file, fork.read(found.file)).find_again(found.function)
        assert function is not None
        kernel = by_name.get(each.body.call.stub.name) if each.body.call else None
        launch = kernel.launch if kernel else ""
        if kernel and (scope := _name_scope(fork, found.file, kernel)):
            launch = _LAUNCH.sub(f"{scope}::", launch)
        body = each.body.write(tuple(each.name for each in read_parameters(function)), launch)
        text = format_block(fork, found.file, f"{function.signature} {body}\n")
        yield found.file, Rewrite(function, text[text.index("{", len(function.params)) :].rstrip("\n"))


def define_what_bodies_use(
    fork: Checkout, migrations: Sequence[Migration], kernels: Sequence[Kernel]
) -> Iterator[Edit]:
    """Yields the definitions that bodies with a kernel of their own need: libraries and launchers at the start of the
    namespace, where bodies that are ported later see them too, helpers before the first function of each file."""
    by_name = {kernel.stub.name: kernel for kernel in kernels}
    needed: dict[str, tuple[Function, dict[str, None], dict[str, None]]] = {}
    for each in migrations:
        found = each.served.implementation
        if each.body is None or not each.body.loops or each.body.call is None or found is None or not found.function:
            continue
        kernel = by_name[each.body.call.stub.name]
        function = parse_source(found.file, fork.read(found.file)).find_again(found.function)
        assert function is not None
        first, launching, helpers = needed.setdefault(found.file, (function, {}, {}))
        needed[found.file] = (min(first, function, key=lambda one: one.start), launching, helpers)
        scope = _name_scope(fork, found.file, kernel)
        for text in (find_library(fork, kernel.host_file), kernel.launcher):
            inside = f"namespace {scope} {{\n{text.strip()}\n}} // namespace {scope}" if scope and text else text
            launching.setdefault(inside)
        helpers.update(dict.fromkeys(textwrap.dedent(text) for text in each.body.helpers))
    for file, (function, launching, helpers) in needed.items():
        text = fork.read(file)
        opened = _NAMESPACE.search(text, 0, function.leading)
        at = opened.end() if opened else function.leading
        if added := _write_missing(fork, file, launching):
            after = "\n" if text.startswith("\n", at) else "\n\n"
            yield Edit(file, at, at, f"\n{added.rstrip()}{after}" if opened else added)
        yield Edit(file, function.leading, function.leading, _write_missing(fork, file, helpers))


def _write_missing(fork: Checkout, file: str, blocks: Collection[str]) -> str:
    text = fork.read(file)
    missing = (format_block(fork, file, block.strip() + "\n") for block in blocks if block and block not in text)
    return "".join(f"{block}\n" for block in missing)


def _name_scope(fork: Checkout, file: str, kernel: Kernel) -> str:
    """A namespace for the library of a kernel's own file, where the file that launches it has another; else "".

    LossOps.mm has one in `mps`, which its functions name without it.
    """
    library = find_library(fork, kernel.host_file)
    if not _OTHER_LIBRARY.search(fork.read(file).replace(library, "")):
        return ""
    return to_snake_case(PurePosixPath(kernel.host_file).stem) + "_metal"


def include_what_bodies_use(
    fork: Checkout, migrations: Sequence[Migration], kernels: Sequence[Kernel]
) -> Iterator[Edit]:
    """Yields the includes that the new bodies need."""
    launchers = frozenset(kernel.stub.name for kernel in kernels if kernel.launcher)
    needed: dict[str, dict[str, None]] = {}
    for each in migrations:
        if each.body and each.served.implementation:
            needed.setdefault(each.served.implementation.file, {}).update(dict.fromkeys(_list_headers(each, launchers)))
    for file, wanted in needed.items():
        yield from insert_includes(file, fork.read(file), tuple(sorted(wanted)))


def _list_headers(migration: Migration, launchers: Collection[str]) -> Iterator[str]:
    body = migration.body
    if body is None or body.call is None:
        return
    if body.call.stub.header:
        yield body.call.stub.header
    if body.call.builder:
        yield _ITERATOR_HEADER
    if body.call.stub.name in launchers:
        yield from LAUNCHER_HEADERS
    if body.loops:
        yield from (f"ATen/ops/{name}.h" for name in _OPERATOR.findall(body.text))
