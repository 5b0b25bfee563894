"""Files of a fork that do not fit each other, said before the errors that follow from it.

A tree with newer headers than host files, or with older kernels than what launches them, is of no release: its host
files name what no header declares, and its launches ask for kernels that no file has, or give a grid of fewer
dimensions than a kernel takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from aten_overlay import toolchain
from aten_overlay.errors import OverlayError
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.core.layout import ATEN_ROOT, C10, NATIVE_FUNCTIONS, OPERATIONS
from porter.languages.identifiers import contains_identifier, list_words
from porter.verdict.build.kernel_files import defines_kernel, list_kernels, read_kernel_arguments
from porter.verdict.build.sources import LAUNCH, find_definitions
from porter.verdict.build.tree import Tree, metal_include
from porter.verdict.result import ForkFinding, VerifyTarget

CODE = "PTR169"
_USED = re.compile(
    r"(?:undeclared identifier|unknown type name|no (?:member|type|template) named) '(?P<name>\w+)'"
    r"(?: in '(?:\w+::)*(?P<owner>\w+)')?"
)
_INCLUDED = re.compile(r"'(?P<path>[\w./+-]+\.h)' file not found")
_CALLED = re.compile(r"(?:no matching (?:member )?function for call to|call to) '(?P<name>\w+)'")
_BACKEND = ("/ATen/native/mps", "/ATen/native/mps/operations", "/ATen/mps")
_HINT = "If it is of another release, take the file of the release that the headers are of; if not, correct it."
# What gives a Mac's library no function of a name, as ATen's host code says it.
_NO_KERNEL = re.compile(r"Failed to create function state object for: (?P<name>\w+)")
_DISPATCH = re.compile(r"\bmtl_dispatch(?P<dimensions>[123])DJob\b")
_OTHER_DISPATCH = re.compile(r"\bdispatchThread\w+:|\bmtlDispatch\w*\(|\bdispatchThreads\w*\(")
_POSITION, _VECTOR = "thread_position_in_grid", re.compile(r"(?P<dimensions>[23])$")


def tell_misfit(tree: Tree, path: str, error: PorterError) -> PorterError:
    """PTR169 for a host file that fails to compile for what no header declares, or declares otherwise, and that had
    it before a plan; else the error itself.
    """
    uses = list(_list_misfits(tree, tree.before(path), error.what)) if tree.in_checkout(path) else []
    if not uses:
        return error
    what = f"this host file does not fit the headers: it {', and '.join(uses)}"
    return PorterError(CODE, f"{what}\n{error.what}", error.place, error.hint or _HINT)


def _list_misfits(tree: Tree, text: str, errors: str) -> Iterator[str]:
    """What a host file's text does that its headers do not take, by what a compiler said."""
    neither = f"neither this fork nor torch {toolchain.torch_version()}"
    for name, owner in dict.fromkeys(_USED.findall(errors)):
        if contains_identifier(text, name) and not _is_declared(tree, name, owner):
            yield f"uses `{name}`, which {neither} declares"
    for name in filter(text.__contains__, dict.fromkeys(_INCLUDED.findall(errors))):
        yield f"includes `{name}`, which {neither} has"
    for name in dict.fromkeys(_CALLED.findall(errors)):
        if contains_identifier(text, name) and (place := _find_header(tree, name)):
            yield f"calls `{name}` otherwise than {place} declares it"


def _is_declared(tree: Tree, name: str, owner: str) -> bool:
    """Whether a header or a row has this name, or a plan edits it; a member's is that of its class, if there is one."""
    if owner and (of_class := [words for path, words in _list_headers(tree) if path.name == f"{owner}.h"]):
        return _is_edited(tree, name) or any(name in words for words in of_class)
    rows = tree.before(NATIVE_FUNCTIONS) if tree.in_checkout(NATIVE_FUNCTIONS) else ""
    return (
        contains_identifier(rows, name)
        or _is_edited(tree, name)
        or any(name in words for _, words in _list_headers(tree))
    )


def _is_edited(tree: Tree, name: str) -> bool:
    """Whether a plan takes the name away somewhere, or writes it: what follows is not the fork's fault alone."""
    pairs = ((tree.before(path), text) for path, text in tree.texts.items() if tree.in_checkout(path))
    return any(before.count(name) != text.count(name) for before, text in pairs)


def _find_header(tree: Tree, name: str) -> str:
    """The backend's header that declares a function; empty if none does. Others declare names that much of C++ has."""
    declared = re.compile(rf"^[ \t]*(?:[\w:<>,]+[&*]*\s+)+[&*]*{name}\s*\(", re.MULTILINE)
    for path in (path for path, words in _list_headers(tree) if name in words):
        folder = f"/{path.parent.as_posix()}"
        if folder.endswith(_BACKEND) and declared.search(read_regular(path).decode(errors="replace")):
            return path.as_posix()[folder.index("/ATen/") :].lstrip("/")
    return ""


def _list_headers(tree: Tree) -> Iterator[tuple[Path, frozenset[str]]]:
    """The headers of the fork and of torch, with their words; without those of operators, which the rows declare."""
    wheel = toolchain.torch_root() / "include"
    for root, parts in ((tree.checkout, (ATEN_ROOT, C10)), (wheel, ("ATen", "c10"))):
        for part in parts:
            yield from _read_headers(root / part)


@lru_cache(maxsize=8)
def _read_headers(folder: Path) -> tuple[tuple[Path, frozenset[str]], ...]:
    paths = (path for path in sorted(folder.rglob("*.h")) if path.parent.name != "ops" and path.is_file())
    return tuple((path, frozenset(list_words(read_regular(path).decode(errors="replace")))) for path in paths)


def find_release_faults(
    tree: Tree, target: VerifyTarget, messages: Iterable[str], launched: Iterable[str]
) -> tuple[ForkFinding, ...]:
    """What tells that an operator whose tests fail launches kernels of another release, by what the tests say and the
    names of kernels that ran."""
    from aten_overlay.metal.build import Options

    asked = {match["name"] for message in messages for match in _NO_KERNEL.finditer(message)}
    names = dict(list_kernels(tree, Options(metal_include(tree.root))))
    missing = sorted(name for name in asked if name not in names)
    return (*_tell_missing(tree, target, missing), *_tell_short_grids(tree, names, sorted(launched)))


def _tell_missing(tree: Tree, target: VerifyTarget, missing: list[str]) -> Iterator[ForkFinding]:
    if not missing:
        return
    functions = {function for function, kernel in _list_launches(tree) if kernel in target.kernels}
    launcher = f"{' or '.join(sorted(functions))} asks" if functions else "host code asks"
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    texts = ((path, tree.read(path)) for path in tree.kernel_files())
    files = (path for path, text in texts if defines_kernel(text, target.kernels))
    what = f"{launcher} for kernel `{missing[0]}`{more}, which no kernel file has: host code and kernels do not fit"
    yield ForkFinding(f"{CODE} {what}", next(files, ""))


def _list_launches(tree: Tree) -> frozenset[tuple[str, str]]:
    """The shared functions that host code launches kernels by, each with the functor of a kernel."""
    texts = (tree.read(path) for path in tree.files(OPERATIONS, ".mm", ".cpp"))
    return frozenset((match["function"], match["kernel"]) for text in texts for match in LAUNCH.finditer(text))


def _tell_short_grids(tree: Tree, files: Mapping[str, Path], launched: Sequence[str]) -> Iterator[ForkFinding]:
    """Functions whose grids have fewer dimensions than a kernel that ran, under test or beside it, goes over."""
    launches = _list_launches(tree)
    for function in sorted({function for function, _ in launches}):
        prefixes = tuple(f"{kernel}_" for by, kernel in launches if by == function)
        names = [name for name in launched if name in files and name.startswith(prefixes)]
        for path, line, text in find_definitions(tree, function) if names else ():
            launched_over = max((int(match["dimensions"]) for match in _DISPATCH.finditer(text)), default=0)
            if not launched_over or _OTHER_DISPATCH.search(text):
                continue
            counts = ((name, _count_dimensions(tree, files[name], name)) for name in names)
            if beyond := next(((name, count) for name, count in counts if count > launched_over), None):
                name, goes_over = beyond
                of = f"{launched_over} dimension{'s' * (launched_over > 1)}"
                what = f"{function} launches `{name}` over {of}, and the kernel goes over {goes_over}: they do not fit"
                yield ForkFinding(f"{CODE} {what}", f"{path}:{line}")


def _count_dimensions(tree: Tree, file: Path, name: str) -> int:
    """The dimensions of a kernel's position in its grid; 1 where it is no vector, or its file is not understood."""
    from aten_overlay.metal.build import Options

    try:
        arguments = read_kernel_arguments(file, name, Options(metal_include(tree.root)))
    except OverlayError:
        return 1
    types = (argument.type for argument in arguments if argument.kind == _POSITION)
    return max((int(match["dimensions"]) for kind in types if (match := _VECTOR.search(kind))), default=1)
