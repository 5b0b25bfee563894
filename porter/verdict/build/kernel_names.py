"""The kernels that a fork instantiates for a target, and those of them that a run did not launch."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from porter.core.dtypes import BY_METAL
from porter.core.errors import PorterError
from porter.verdict.build.kernel_files import defines_kernel
from porter.verdict.build.tree import Tree, metal_include
from porter.verdict.errors import raising_porter_errors
from porter.verdict.result import VerifyTarget

MOST_TOLD = 12
_WIDTHS = (("_int", "_long"), ("_u32", "_u64"))  # how names of kernels with indices of either width end
_OF_TYPE = re.compile(rf"_(?:{'|'.join(BY_METAL)})$")  # before that: an `int` alone may be a type of elements


def list_kernel_names(tree: Tree, target: VerifyTarget) -> tuple[str, ...]:
    """The names of all kernels in the files that name a kernel of the target.

    Raises what is wrong with one that defines a kernel of the target and cannot be read; the kernels of others are left
    out.
    """
    from aten_overlay.apple.compiler import find_names
    from aten_overlay.metal.build import Options

    options, headers = Options(include=metal_include(tree.root)), tree.headers_digest()
    files = [path for path in tree.kernel_files() if any(name in tree.read(path) for name in target.kernels)]
    names: list[str] = []
    for path in files:
        try:
            with raising_porter_errors():
                names += find_names(tree.root / path, options, headers)
        except PorterError:
            if defines_kernel(tree.read(path), target.kernels):
                raise
    return tuple(names)


def match_pair(target: VerifyTarget, given: str, made: str) -> re.Pattern[str]:
    """What begins the names of the target's kernels that take one type (Metal names) and return another."""
    return re.compile(rf"(?:{'|'.join(map(re.escape, target.kernels))})_\w+_{made}_{given}(?:_|$)")


def find_unlaunched_pairs(target: VerifyTarget, launched: Collection[str]) -> Iterator[tuple[str, str]]:
    """The planned pairs of types (Metal names) none of whose kernels was launched.

    One that writes results of any type computes the pair too: c10/metal/indexing.h names it by the type it takes alone.
    The CPU's angle asks for complex results of complex tensors, so only such a kernel runs. Where no kernel
    but of bools runs as it is, those that cast their operands compute the pair: `where` takes a bool beside every type.
    """
    names = "|".join(map(re.escape, target.kernels))
    patterns = {pair: match_pair(target, *pair) for pair in target.pairs}
    others = [pattern for (given, _), pattern in patterns.items() if given != "bool"]
    casts = "" if any(pattern.match(name) for pattern in others for name in launched) else "|cast"
    for (given, made), pattern in patterns.items():
        converting = re.compile(rf"(?:{names})_(?:\w+_)?(?:castout{casts})(?:_ilp)?_{given}$")
        if not any(pattern.match(name) or converting.match(name) for name in launched):
            yield given, made


def describe_unlaunched(names: Collection[str], launched: Collection[str]) -> str:
    """Says which of a target's kernels no test launched; "" if every one was."""
    rest = sorted(set(names) - set(launched))
    if not rest:
        return ""
    more = f", and {len(rest) - MOST_TOLD} more" if len(rest) > MOST_TOLD else ""
    return f"no test launched {len(rest)} of {len(set(names))} kernels: {', '.join(rest[:MOST_TOLD])}{more}"


def find_missing_widths(names: Collection[str]) -> Iterator[str]:
    """The names of kernels that are missing for indices in 32 or in 64 bits: others of the same operator have both.

    No test has tensors so large that host code asks for the wider one.
    """
    for narrow, wide in _WIDTHS:
        ends = ((end, (name.removesuffix(end) for name in names if name.endswith(end))) for end in (narrow, wide))
        stems = {end: {stem for stem in listed if _OF_TYPE.search(stem)} for end, listed in ends}
        both = stems[narrow] & stems[wide]
        if 2 * len(both) >= len(stems[narrow] | stems[wide]):
            yield from sorted(stem + wide for stem in stems[narrow] - both)
            yield from sorted(stem + narrow for stem in stems[wide] - both)
