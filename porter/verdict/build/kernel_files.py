"""Kernel files of a fork that do not compile: which a verdict can do without, and which a plan broke.

The bundled library of a fork is made of all its kernel files. On a Mac one that does not compile keeps all of them from
being built; here each kernel is compiled on first use, so that only files with a kernel that is asked for matter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aten_overlay.errors import OverlayError
from porter.core.dtypes import BY_METAL
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, METAL_HEADERS
from porter.cpu.helpers import find_headers
from porter.cpu.kernels import find_registered_kernel
from porter.languages.brackets import find_closing_end
from porter.languages.definitions import find_definitions
from porter.languages.identifiers import contains_identifier
from porter.languages.lexer import strip_comments
from porter.verdict.build.tree import Tree, metal_include
from porter.verdict.errors import raising_porter_errors
from porter.verdict.result import MOST_TOLD, ForkFinding, VerifyTarget, finding_of_error

if TYPE_CHECKING:
    from aten_overlay.metal.build import Options
    from aten_overlay.metal.source.arguments import Argument

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
            raise break_kernels(error)
        yield finding_of_error(error)


def break_kernels(error: PorterError) -> PorterError:
    """PTR426 for kernels that a plan breaks."""
    what = f"the port breaks a kernel file: {error.what}"
    return PorterError("PTR426", what, error.place, "Keep what the file uses of the header.")


def find_namesakes(file: Path, prefixes: Sequence[str], options: Options) -> Iterator[str]:
    """One kernel, by its name, of each template in a file with the name of one that has these prefixes, and in another
    namespace: such a template is not compiled with it.
    """
    from aten_overlay.metal.build import read_unit
    from aten_overlay.metal.source import reach
    from aten_overlay.metal.source.declarations import find_candidates

    unit = read_unit(_preprocess(file, options))
    asked = [instance for instance in unit.instances if instance.host_name.startswith(tuple(prefixes))]
    others = [instance for instance in unit.instances if instance not in asked]
    for kernel in reach.find_namesakes(unit, asked):
        yield from [each.host_name for each in others if kernel in find_candidates(unit, each)][:1]


# How names of kernels with indices of either width end, but for numbers that they are instances of.
_WIDTHS = (("_int", "_long"), ("_u32", "_u64"))
_NAME_OF_WIDTH = re.compile(rf"(\w+?)({'|'.join(end for ends in _WIDTHS for end in ends)})((?:_\d+)*)")
_OF_TYPE = tuple(f"_{name}" for name in BY_METAL)  # before that: an `int` alone may be a type of elements


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


def list_kernels(tree: Tree, options: Options) -> Iterator[tuple[str, Path]]:
    """Each kernel of the fork and its file; without those of a file that cannot be read, none of which can run."""
    from aten_overlay.apple.compiler import find_names

    headers = tree.headers_digest()
    for file in (tree.root / path for path in tree.kernel_files()):
        with suppress(OverlayError):
            yield from ((name, file) for name in find_names(file, options, headers))


def read_kernel_arguments(file: Path, name: str, options: Options) -> tuple[Argument, ...]:
    """A kernel's parameters as its file writes them. Raises OverlayError for what is not understood."""
    from aten_overlay.metal.build import find_instance, read_unit
    from aten_overlay.metal.source.declarations import find_definition, kernel_arguments

    unit = read_unit(_preprocess(file, options))
    return kernel_arguments(unit, find_definition(unit, find_instance(unit, name)))


@lru_cache(maxsize=8)
def _preprocess(path: Path, options: Options) -> str:
    from aten_overlay.metal.build import preprocess

    return preprocess(path, options)


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

    Others are instances of the same numbers: a tile may be for 32 bits alone, in all types.
    """
    for ends, (narrow, wide) in _list_stems(names):
        for tail in sorted({tail for _, tail in narrow | wide}):
            of_width = [{stem for stem, number in stems if number == tail} for stems in (narrow, wide)]
            either = of_width[0] | of_width[1]
            if 2 * len(of_width[0] & of_width[1]) >= len(either):
                for end, stems in zip(ends, of_width, strict=True):
                    yield from (f"{stem}{end}{tail}" for stem in sorted(either - stems))


def pair_widths(names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The names of kernels that are there for both widths of indices, narrow and wide.

    A narrow one may have no wide one of its own, as one that reads vectors of neighbors: it is beside one of its stem.
    """
    pairs = set[tuple[str, str]]()
    for (narrow_end, wide_end), (narrow, wide) in _list_stems(names):
        for stem, tail in narrow:
            tails = [tail] if (stem, tail) in wide else sorted(other for wide_stem, other in wide if wide_stem == stem)
            pairs |= {(f"{stem}{narrow_end}{tail}", f"{stem}{wide_end}{other}") for other in tails[:1]}
    return tuple(sorted(pairs))


def _list_stems(
    names: Collection[str],
) -> Iterator[tuple[tuple[str, str], tuple[set[tuple[str, str]], set[tuple[str, str]]]]]:
    """For each way to name both widths, what stands before and after these in the names of kernels of either."""
    split = [match.groups() for match in map(_NAME_OF_WIDTH.fullmatch, names) if match and match[1].endswith(_OF_TYPE)]
    for ends in _WIDTHS:
        narrow, wide = ({(stem, tail) for stem, end, tail in split if end == one} for one in ends)
        yield ends, (narrow, wide)


_FUNCTION = re.compile(r"\b(?!(?:if|for|while|switch|return)\b)(\w+(?:##\w+)*)\s*\(")
_OPENED = re.compile(r"\s*(?:const\s*)?\{")
_HELPER = re.compile(
    r"\bAtomicType(?:_t)?\s*<(?!\s*(?:int|uint|long|ulong|short|char|uchar|bool)\s*>)[^;]*\batomic_add\b"
)
_ADDS = re.compile(r"\batomic_(?:fetch_add|compare_exchange_weak)_explicit\s*\(")
_FLOAT = re.compile(r"\batomic(?:_float\b|\s*<\s*(?!(?:int|uint|long|ulong|bool)\b)\w+\s*>)")


def find_adding_kernels(tree: Tree, target: VerifyTarget) -> tuple[str, ...]:
    """The kernels of a target whose functions add to floating-point numbers atomically, or call one that does."""
    texts = [strip_comments(tree.read(path)) for path in tree.kernel_files()]
    found = [(text, _find_adding(dict(_list_functions(text)))) for text in texts if "atomic" in text]
    return tuple(name for name in target.kernels if any(_names(name, adding, text) for text, adding in found))


def _names(kernel: str, adding: frozenset[str], text: str) -> bool:
    """Whether a kernel is among functions that add, or is one that a macro of the text may make of such a function."""
    is_pasted = any("##" in name for name in adding)
    return kernel in adding or (is_pasted and contains_identifier(text, kernel))


def _find_adding(bodies: Mapping[str, str]) -> frozenset[str]:
    """The names of functions whose bodies add to floats atomically, and of those that call them."""
    adding = {name for name, body in bodies.items() if _adds(body)}
    while True:
        calling = {name for name, body in bodies.items() if adding & set(_FUNCTION.findall(body))} - adding
        if not calling:
            return frozenset(adding)
        adding |= calling


def _adds(body: str) -> bool:
    return bool(_HELPER.search(body) or (_ADDS.search(body) and _FLOAT.search(body)))


def _list_functions(text: str) -> Iterator[tuple[str, str]]:
    """The name of each function that a text defines, and its parameters with its body."""
    for match in _FUNCTION.finditer(text):
        closed = find_closing_end(text, match.end() - 1)
        opened = _OPENED.match(text, closed)
        if opened:
            yield match[1], text[match.end() : find_closing_end(text, opened.end() - 1)]


MOST = 16
MOST_LOOPS = 128.0
_NUMBER = r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d{1,2})?(?=[fFhH]?\b|\B)(?!x)"
_LITERAL = re.compile(_NUMBER)
# A number that something is compared with, bounded by or called, through casts: `x > scalar_t(20)`, `min(x, 6.0f)`.
_COMPARED = (
    re.compile(rf"(?:\s[<>]=?|[=!]=)\s*(?:[\w:]+(?:<\w+>)?[({{]\s*)*-?\s*({_NUMBER})"),
    re.compile(rf"({_NUMBER})[fFhH]?\s*[)}}]*\s*(?:[<>]=?\s|[=!]=)"),
    re.compile(rf"\bconst(?:expr)?\s+\w+\s+\w+\s*(?:=\s*|[{{(]\s*)(?:[\w:]+[({{]\s*)*-?\s*({_NUMBER})[fFhH]?[\s)}}]*;"),
)
_BOUNDED = re.compile(r"\b(?:f?min|f?max|clamp)(?:imum|<\w+>)?\(")
_CALL = re.compile(r"\b(?!operator\b)(\w+)(?:<[\w:, ]+>)?\(")
# The name that a loop's counter is compared with.
_LOOP = re.compile(r"\bfor \([^;]*;[^;]*?\w <=? (\w+)\b[^;]*;")
_DEPTH = 3

# Gives the text of a function, `""` for one that is not among the sources.
_Find = Callable[[str], str]


def literals(tree: Tree, target: VerifyTarget) -> tuple[float, ...]:
    """Numbers but 0 and 1, those that something is compared with first; of the functions called, no others."""
    functors = [text for path in tree.kernel_files() for text in _functors(tree.read(path), target.kernels)]
    called = [text for functor in functors for text in _reach(functor, lambda name: _in_metal(tree, name))]
    kernels = [text for stub in target.stubs for text in _cpu_kernels(tree, stub)]
    plain = [number for text in functors for number in _LITERAL.findall(text)]
    compared = [number for text in (*functors, *kernels, *called) for number in _compared(text)]
    found = dict.fromkeys(float(each) for each in (*compared, *plain))
    return tuple(each for each in found if each not in (0, 1))[:MOST]


def largest_count(tree: Tree, target: VerifyTarget) -> float:
    """The largest number to test with: one that a loop can count to, if a kernel or a function that it calls loops up
    to the value of an argument of 64 bits.
    """
    functors = [text for path in tree.kernel_files() for text in _functors(tree.read(path), target.kernels)]
    called = (text for functor in functors for text in _reach(functor, lambda name: _in_metal(tree, name)))
    counts = (re.search(rf"\b(?:int64_t|long) {bound}\b", text) for text in called for bound in _LOOP.findall(text))
    return MOST_LOOPS if any(counts) else math.inf


def _functors(text: str, kernels: Sequence[str]) -> Iterator[str]:
    for name in kernels:
        start = f"struct {name}_functor"
        body = start in text and re.search(rf"^{re.escape(start)}\b.*?^\}};", text, re.M | re.S)
        if body:
            yield strip_comments(body[0])


def _compared(text: str) -> Iterator[str]:
    for pattern in _COMPARED:
        yield from pattern.findall(text)
    for call in _BOUNDED.finditer(text):
        yield from _LITERAL.findall(text[call.end() : find_closing_end(text, call.end() - 1)])


def _reach(text: str, find: _Find, seen: set[str] | None = None, depth: int = 0) -> Iterator[str]:
    """The texts of the functions that a text calls, and of those that these call."""
    seen = set() if seen is None else seen
    for name in dict.fromkeys(_CALL.findall(text)) if depth < _DEPTH else ():
        if name not in seen:
            seen.add(name)
            found = find(name)
            yield found
            yield from _reach(found, find, seen, depth + 1)


def _in_metal(tree: Tree, name: str) -> str:
    return _define(name, ((path, tree.read(path)) for path in (*tree.kernel_files(), *tree.files(METAL_HEADERS, ".h"))))


def _define(name: str, sources: Iterator[tuple[str, str]]) -> str:
    """All definitions of a function in the first source that has one."""
    for path, text in sources:
        # A plain search is many times faster, and in most sources finds nothing.
        if f"{name}(" in text and re.search(rf"(?<!return) (?<!= ){re.escape(name)}\(", text):
            found = find_definitions(path, text, name)
            if found:
                return strip_comments("\n".join(each.text for each in found))
    return ""


def _cpu_kernels(tree: Tree, stub: str) -> Iterator[str]:
    """The CPU kernel of a stub and what it calls; nothing where the fork has none that can be found."""
    checkout = tree.unedited()
    try:
        kernel, _ = find_registered_kernel(checkout, stub)
        headers = find_headers(checkout, kernel.path)
    except PorterError:
        return
    text = strip_comments(kernel.text)
    yield text
    paths = (kernel.path, *headers)
    yield from _reach(text, lambda name: _define(name, ((path, checkout.read(path)) for path in paths)))
