"""For backends that run no host code: reads from its text which rows reach the port's kernels."""

from __future__ import annotations

import re

from porter.core import cache
from porter.core.layout import COMMON, NATIVE_FUNCTIONS
from porter.verdict.build import registration, sources
from porter.verdict.build.tree import Tree
from porter.verdict.errors import NoVerdict
from porter.verdict.result import VerifyTarget

_PER_THREAD = re.compile(r"\bILP_PER_THREAD *= *(\d+)")


def read_rows(tree: Tree, target: VerifyTarget) -> tuple[str, ...]:
    """The rows that would reach the port's kernels, by the fork's own yaml and host code, both read as text.

    Raises PTR174 where one would not, and what `registration.generate` and `sources.operation_files` raise.
    """
    into = cache.root() / "generated" / tree.root.name
    made = registration.generate(tree.read(NATIVE_FUNCTIONS), [target.base], into)
    sources.operation_files(tree, made.kernels, target.stubs)
    for kernel in made.kernels:
        sources.check_kernel(tree, kernel, target.kernels)
    for stub in target.stubs:
        sources.check_stub(tree, stub, target.kernels)
    return made.served


def find_functor(target: VerifyTarget) -> str:
    """The one functor of an operator. Raises PTR172 where it has several or none."""
    if len(target.kernels) != 1:
        named = ", ".join(target.kernels) or "none"
        raise NoVerdict("PTR172", f"{target.base} does not have one functor: {named}", hint="Use the host backend.")
    return target.kernels[0]


def elements_per_thread(tree: Tree) -> int:
    """How many elements a thread of a dense unary kernel computes."""
    match = _PER_THREAD.search(tree.read(COMMON)) if tree.exists(COMMON) else None
    return int(match[1]) if match else 1
