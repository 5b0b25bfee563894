"""Functions that MPS keeps because their rows are split by device: their bodies run the kernel that is ported."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence

from porter.aten.operator import Migration
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.formatting import format_block
from porter.languages.definitions import split_parameters
from porter.languages.source import Function, parse_source
from porter.metal.insertion import insert_includes
from porter.metal.kernel import Kernel
from porter.metal.kernel_files import find_library
from porter.metal.launchers import LAUNCHER_HEADERS
from porter.plan.removal import Rewrite

_ITERATOR_HEADER = "ATen/TensorIterator.h"
_OPERATOR = re.compile(r"(?<!\w)at::(\w+)\(")


def rewrite_functions(
    fork: Checkout, migrations: Sequence[Migration], kernels: Sequence[Kernel]
) -> Iterator[tuple[str, Rewrite]]:
    """Yields the functions that stay, each with its file and its new body."""
    launches = {kernel.stub.name: kernel.launch for kernel in kernels}
    for each in migrations:
        found = each.served.implementation
        if each.body is None or found is None or found.function is None:
            continue
        function = parse_source(found.file, fork.read(found.file)).find_again(found.function)
        assert function is not None
        launch = launches.get(each.body.call.stub.name, "") if each.body.call else ""
        body = each.body.write(tuple(_read_names(function)), launch)
        text = format_block(fork, found.file, f"{function.signature} {body}\n")
        yield found.file, Rewrite(function, text[text.index("{", len(function.params)) :].rstrip("\n"))


def define_what_bodies_use(
    fork: Checkout, migrations: Sequence[Migration], kernels: Sequence[Kernel]
) -> Iterator[Edit]:
    """Yields the definitions that bodies with a kernel of their own need, before the first of each file."""
    by_name = {kernel.stub.name: kernel for kernel in kernels}
    needed: dict[str, tuple[Function, dict[str, None]]] = {}
    for each in migrations:
        found = each.served.implementation
        if each.body is None or not each.body.loops or each.body.call is None or found is None or not found.function:
            continue
        kernel = by_name[each.body.call.stub.name]
        function = parse_source(found.file, fork.read(found.file)).find_again(found.function)
        assert function is not None
        first, blocks = needed.setdefault(found.file, (function, {}))
        needed[found.file] = (min(first, function, key=lambda one: one.start), blocks)
        helpers = (textwrap.dedent(text) for text in each.body.helpers)
        blocks.update(dict.fromkeys((find_library(fork, kernel.host_file), kernel.launcher, *helpers)))
    for file, (function, blocks) in needed.items():
        text = fork.read(file)
        missing = [format_block(fork, file, block.strip() + "\n") for block in blocks if block and block not in text]
        at = function.leading
        yield Edit(file, at, at, "".join(f"{block}\n" for block in missing))


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


def _read_names(function: Function) -> Iterator[str]:
    """The names of a function's parameters, empty for one without."""
    for parameter in split_parameters(function.params):
        name = re.search(r"[&*>\s](\w+)$", parameter)
        yield name[1] if name else ""
