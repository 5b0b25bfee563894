"""Kernel files of a fork that do not compile: which a verdict can do without, and which a plan broke.

The bundled library of a fork is made of all its kernel files. On a Mac one that does not compile keeps all of them from
being built; here each kernel is compiled on first use, so that only files with a kernel that is asked for matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from porter.core.dtypes import BY_METAL
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, METAL_HEADERS
from porter.verdict.build.tree import Tree
from porter.verdict.fork_findings import finding_of_error
from porter.verdict.result import ForkFinding

# What instantiates a kernel is told its name first: REGISTER_UNARY_OP(exp, ...), instantiate_kernel("exp", ...).
_INSTANTIATION = re.compile(r'^[ \t]*(?:[A-Z][A-Z0-9_]*|instantiate_\w+)\(\s*"?(\w+)', re.M)
_HOST_NAME = re.compile(r'\bhost_name\(\s*"(\w+)')
_DEFINITION = re.compile(r"\bkernel\s+void\s+(\w+)")
# What follows a kernel's name in those of its instances (c10/metal/indexing.h), beside types.
_FORMS = ("dense", "strided")


def defines_kernel(text: str, kernels: Iterable[str]) -> bool:
    """Whether a kernel file has one of these kernels, by its text: where it does not compile nothing else tells.

    `max` is no kernel of a file with `max_pool_float`, nor of one that calls `max`.
    """
    names = {name for pattern in (_INSTANTIATION, _HOST_NAME, _DEFINITION) for name in pattern.findall(text)}
    return any(_is_instance(name, kernel) for kernel in kernels for name in names)


def _is_instance(name: str, kernel: str) -> bool:
    words = name.removeprefix(kernel).split("_") if name == kernel or name.startswith(f"{kernel}_") else ["-"]
    return all(not word or word in _FORMS or word in BY_METAL for word in words)


def find_faults(
    tree: Tree, broken: Mapping[Path, PorterError], fails_before: Callable[[str], bool]
) -> Iterator[ForkFinding]:
    """The findings of kernel files that do not compile, and that no kernel under test is in.

    A plan touches the files that it writes, and those that it may break by a header that it writes: `fails_before`
    says of such a file, by its path in the fork, whether it did not compile without the plan either. Raises the error
    of a file that the plan writes, and PTR426 for another that it breaks.
    """
    edits_headers = any(path.startswith((KERNELS, METAL_HEADERS)) and path.endswith(".h") for path in tree.texts)
    for file, error in broken.items():
        path = f"{KERNELS}/{file.name}"
        if path in tree.texts:
            raise error
        if edits_headers and not fails_before(path):
            what = f"the port breaks a kernel file: {error.what}"
            raise PorterError("PTR426", what, error.place, "Keep what the file uses of the header.")
        yield finding_of_error(error)
