"""Finds the host files an operator needs, by searching their text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from porter import languages
from porter.aten.declarations import parse_base_name
from porter.core import cache
from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.layout import MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.languages.directives import read_includes
from porter.languages.identifiers import contains_identifier, find_called, find_words, list_words
from porter.languages.source import Function, Source, parse_source
from porter.verdict.build.registration import Kernel, packaged_yaml, rows
from porter.verdict.build.tree import Tree

_SHARED = re.compile(r"^ +(?P<keys>[\w, ]+): (?P<kernel>\w+)(?: *#.*)?$", re.M)
_HEADERS = "ATen/ops/"
# A macro of any name whose first argument names a functor: REGISTER_UNARY_OP(exp, ...).
_FUNCTOR = re.compile(r"^[ \t]*(?P<macro>[A-Z]\w*)\(\s*(?P<name>\w+)", re.M)
_DISPATCHED = re.compile(r"^ +[\w, ]*\bMPS\b[\w, ]*: (\w+)", re.M)
LAUNCH = re.compile(r'\b(?P<function>exec_\w+)\(\s*[\w.*&]+\s*,\s*"(?P<kernel>\w+)"')
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define\b(?:[^\n]*\\\n)*[^\n]*", re.M)


def operation_files(tree: Tree, kernels: Iterable[Kernel], stubs: Iterable[str]) -> tuple[str, ...]:
    """The files of `operations` that define the rows' MPS kernels or register the stubs.

    Raises PTR165 for a row whose MPS kernel is neither in the installed torch nor defined in the fork.
    """
    words = set(stubs)
    for kernel in kernels:
        name = kernel.symbol.removeprefix("structured_")
        if name not in _wheel_kernels(kernel.row):
            if not _find_mentions(tree, {name}):
                raise PorterError(
                    "PTR165",
                    f"{kernel.row} dispatches MPS to {name}, which no file in the fork defines",
                    kernel.place,
                    "Point the row's MPS key at the shared kernel that calls the stub.",
                )
            words.add(name)
    return tuple(_find_mentions(tree, words))


def find_registering(tree: Tree, stubs: Iterable[str]) -> tuple[str, ...]:
    """The operation files that register one of the stubs: no linker notices if one of them is left out."""
    words = {word for stub in stubs for word in (stub, stub.removesuffix("_stub"))}
    return tuple(path for path in tree.files(OPERATIONS, ".mm", ".cpp") if _registers(path, tree.read(path), words))


def _registers(path: str, text: str, words: Collection[str]) -> bool:
    """Whether one of these words is in a use of a `REGISTER` macro."""
    if not any(contains_identifier(text, word) for word in words):
        return False
    uses = (use for use in _read(path, text).macro_uses() if use.name.startswith("REGISTER"))
    return any(contains_identifier(argument, word) for use in uses for argument in use.arguments for word in words)


def _read(path: str, text: str) -> Source:
    """A host file. One whose brackets do not pair defines and uses nothing: what compiles it says why."""
    source = parse_source(path, text)
    return source if source.is_readable else Source.parse(path, "")


def find_mentioning(tree: Tree, files: Iterable[str], symbols: Iterable[str], defined: bool) -> tuple[str, ...]:
    """Those of the files whose text has the name of one of these demangled symbols, or that define it."""
    names = {name for symbol in symbols for name in _list_symbol_names(symbol)}
    list_names = list_defined if defined else _list_words
    return tuple(path for path in files if not names.isdisjoint(list_names(path, tree.read(path))))


def _list_words(_path: str, text: str) -> Collection[str]:
    return list_words(text)


def _list_symbol_names(symbol: str) -> Iterator[str]:
    """The name of a function or a variable, and for a member that of its class, as kernels with a structure have it."""
    *_, owner, name = ("", *find_words(symbol.partition("(")[0]))
    yield name
    if name == "impl":
        yield owner.removeprefix("structured_")


def list_defined(path: str, text: str) -> Collection[str]:
    """The functions that a text of the fork defines, or names first in a macro, or dispatches to if it is the rows'.

    All words of a file whose brackets do not pair: which of them it defines nothing tells.
    """
    if path == NATIVE_FUNCTIONS:
        return _DISPATCHED.findall(text)
    if not path.startswith(f"{MPS}/") or not path.endswith((".mm", ".cpp", ".h")):
        return ()
    source = parse_source(path, text)
    if not source.is_readable:
        return list_words(text)
    return {*source.functions_by_name, *(use.arguments[0] for use in source.macro_uses() if use.arguments)}


def find_definitions(tree: Tree, name: str, before: bool = False) -> list[tuple[str, int, str]]:
    """The host functions of this name: the file, the line, and the text.

    As they were `before` the plan, if asked.
    """
    definitions = []
    for path in (*tree.files(MPS, ".mm", ".cpp"), *tree.files(OPERATIONS, ".mm", ".cpp")):
        if not before or tree.in_checkout(path):
            text = tree.before(path) if before else tree.read(path)
            for function in _find_functions(path, text, {name}):
                line = text.count("\n", 0, function.start) + 1
                definitions.append((path, line, text[function.start : function.end]))
    return definitions


def _find_functions(path: str, text: str, names: Iterable[str]) -> list[Function]:
    """The functions of these names that a host file defines. A plain search is many times faster than lexing it."""
    sought = [name for name in names if contains_identifier(text, name)]
    functions = _read(path, text).functions_by_name if sought else {}
    return [function for name in sought for function in functions.get(name, ())]


def library_files(tree: Tree) -> tuple[str, ...]:
    """The host files that every native operator uses: those directly in `native/mps`."""
    return tuple(tree.files(MPS, ".mm"))


def add_called_files(tree: Tree, files: Iterable[str]) -> tuple[str, ...]:
    """These files, and the operation files that define what they call by a declaration in the backend's headers.

    The linker would ask for them one round after another; so they are compiled side by side.
    """
    defined = _map_definitions(tree)
    found = list(dict.fromkeys(files))
    for path in found:  # grows while iterating
        called = (defined[name] for name in find_called(tree.read(path)) if name in defined)
        found += [each for each in dict.fromkeys(called) if each not in found]
    return tuple(found)


def _map_definitions(tree: Tree) -> Mapping[str, str]:
    """The operation file that defines each function that the backend's headers declare.

    It is kept by content: to parse all of these files took 6% of a warm verdict.
    """
    headers = [tree.read(path) for folder in (MPS, OPERATIONS) for path in tree.files(folder, ".h")]
    texts = {path: tree.read(path) for path in tree.files(OPERATIONS, ".mm", ".cpp")}
    kept = cache.key("defined", "", *_read_parser(), *headers, *(part for pair in texts.items() for part in pair))
    if (answer := cache.get(kept)) is not None:
        return {str(name): str(path) for name, path in json.loads(answer).items()}
    declared = set(find_called("".join(headers)))
    defined = {
        name: path for path, text in texts.items() for name in _read(path, text).functions_by_name.keys() & declared
    }
    cache.put(kept, json.dumps(defined, sort_keys=True))
    return defined


@lru_cache(maxsize=1)
def _read_parser() -> tuple[bytes, ...]:
    return tuple(read_regular(path) for path in sorted(Path(languages.__file__).parent.glob("*.py")))


def find_defining_files(tree: Tree, symbols: Iterable[str]) -> tuple[str, ...]:
    """The operation files that define functions of these demangled C++ names."""
    names = {m[1] for symbol in symbols if (m := re.search(r"(\w+)(?:\[abi:\w+\])?\(", symbol))}
    return tuple(
        path for path in tree.files(OPERATIONS, ".mm", ".cpp") if _find_functions(path, tree.read(path), names)
    )


def native_headers(tree: Tree, files: Iterable[str]) -> frozenset[str]:
    """The names of the `<op>_native.h` headers that host files include."""
    return frozenset(name for path in files for name in native_headers_in(tree.read(path)))


def native_headers_in(text: str) -> frozenset[str]:
    """The names of the `<op>_native.h` headers that one source includes."""
    return frozenset(_list_headers(text, "_native.h"))


def _list_headers(text: str, ending: str) -> Iterator[str]:
    for include in read_includes(text):
        if include.path.startswith(_HEADERS) and include.path.endswith(ending):
            yield include.path[len(_HEADERS) : -len(ending)]


def dispatch_headers(tree: Tree, files: Iterable[str]) -> frozenset[str]:
    """The names of the `<op>_mps_dispatch.h` headers that host files include."""
    return frozenset(name for path in files for name in _list_headers(tree.read(path), "_mps_dispatch.h"))


def functors(tree: Tree) -> tuple[str, ...]:
    """The functors that the fork's kernels register, from the first argument of every line of a macro that does."""
    return tuple(sorted({name for path in tree.kernel_files() for name in functors_in(tree.read(path))}))


def functors_in(text: str) -> frozenset[str]:
    """The functors that one kernel file registers: by `REGISTER_*` lines, or by other macros where it defines them."""
    uses = _FUNCTOR.finditer(_DEFINITION.sub("", text))
    return frozenset(m["name"] for m in uses if m["macro"].startswith("REGISTER_") or f"{m['name']}_functor" in text)


def check_stub(tree: Tree, stub: str, kernels: Sequence[str]) -> None:
    """Reads which kernel a stub's function runs, where it is written out: a backend that runs no host code has to.

    Raises PTR174 when nothing registers the stub, or what does calls another kernel.
    """
    for path in _find_mentions(tree, {stub}):
        text = tree.read(path)
        uses = (use for use in _read(path, text).macro_uses("REGISTER_DISPATCH") if use.arguments[:1] == (stub,))
        use = next(uses, None)
        if use is None:
            return  # defined by a macro, which only running it could show
        called = _list_launched(path, text, use.arguments[-1].lstrip("& "))
        if called and not set(called) & set(kernels):
            place = Place(path, text.count("\n", 0, use.start) + 1)
            what = f"{stub} runs the kernel {', '.join(called)}, not {', '.join(kernels)}"
            raise PorterError("PTR174", what, place, "Name the ported functor in the exec_* call.")
        return
    raise PorterError("PTR174", f"no host file registers {stub}", hint="Add a REGISTER_DISPATCH line.")


def check_kernel(tree: Tree, kernel: Kernel, functors: Sequence[str]) -> None:
    """Reads that a row's own MPS kernel, where it is not the shared one, runs the functors.

    Raises PTR174 for one that does something else: an MPSGraph implementation that is still there, for example.
    """
    name = kernel.symbol.removeprefix("structured_")
    if name in _wheel_kernels(kernel.row):
        return
    for path in _find_mentions(tree, {name}):
        if set(_list_launched(path, tree.read(path), name)) & set(functors):
            return
    what = f"{kernel.row} still dispatches MPS to {name}, which does not run {', '.join(functors)}"
    raise PorterError("PTR174", what, kernel.place, "Point the row's MPS key at the kernel that calls the stub.")


def _list_launched(path: str, text: str, name: str) -> list[str]:
    """The kernels that the first function of a name launches."""
    functions = _find_functions(path, text, {name})
    bodies = [text[each.body_start : each.body_end] for each in functions[:1]]
    return [launch["kernel"] for body in bodies for launch in LAUNCH.finditer(body)]


def _find_mentions(tree: Tree, words: Collection[str]) -> list[str]:
    """The operation files that use one of the words outside a comment, or a stub's stem in a `REGISTER` macro."""
    stems = {w.removesuffix("_stub") for w in words if w.endswith("_stub")}
    texts = {path: tree.read(path) for path in tree.files(OPERATIONS, ".mm", ".cpp")}
    return [
        path
        for path, text in texts.items()
        if any(contains_identifier(text, word) and parse_source(path, text).references(word) for word in words)
        or _registers(path, text, stems)
    ]


def _wheel_kernels(row: str) -> frozenset[str]:
    """The kernels that the installed torch has for a row, whatever their key."""
    text = "".join(r.text for r in rows(packaged_yaml(), [parse_base_name(row)]) if r.name == row)
    return frozenset(m["kernel"] for m in _SHARED.finditer(text) if _in_wheel(m["keys"]))


def _in_wheel(keys: str) -> bool:
    return bool({"CPU", "CompositeExplicitAutograd"} & set(map(str.strip, keys.split(","))))
