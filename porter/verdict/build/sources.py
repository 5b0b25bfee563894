"""Finds the host files an operator needs, by searching their text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from porter.aten.names import parse_base_name
from porter.core.errors import Place, PorterError
from porter.core.layout import MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.build.registration import Kernel, packaged_yaml, rows
from porter.verdict.build.tree import Tree

_SHARED = re.compile(r"^ +(?P<keys>[\w, ]+): (?P<kernel>\w+)(?: *#.*)?$", re.M)
_NATIVE_HEADER = re.compile(r"#include <ATen/ops/(?P<name>\w+)_native\.h>")
_DISPATCH_HEADER = re.compile(r"#include <ATen/ops/(?P<name>\w+)_mps_dispatch\.h>")
_FUNCTOR = re.compile(r"^[ \t]*REGISTER_\w+\(\s*(?P<name>\w+)", re.M)
_CALL = re.compile(r"\b(\w+)\(")
# A function begins at the margin; what it is called stands before the first bracket of its line.
_DEFINED = re.compile(r"^(?![ \t/#])[^\n(]*?\b(\w+)\([^;{}]*\)[^;{}()]*\{", re.M)
# What is defined at the margin: a function, or what a macro is given first, as TORCH_IMPL_FUNC is.
_AT_MARGIN = re.compile(r"^[A-Z][A-Z0-9_]+\(\s*(\w+)|^(?![ \t/#])[^\n(;]*?\b(\w+)\((?:[^;{}]*\)[^;{}()]*\{)", re.M)
_DISPATCHED = re.compile(r"^ +[\w, ]*\bMPS\b[\w, ]*: (\w+)", re.M)
_WORD = re.compile(r"\w+")
_EXEC = re.compile(r'\bexec_\w+\([^,()]+,\s*"(\w+)"')
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
    words = sorted({word for stub in stubs for word in (stub, stub.removesuffix("_stub"))})
    if not words:
        return ()
    registered = re.compile(rf"^[ \t]*REGISTER\w*\([^;\n]*\b(?:{'|'.join(map(re.escape, words))})\b", re.M)
    return tuple(path for path in tree.files(OPERATIONS, ".mm", ".cpp") if registered.search(tree.read(path)))


def find_mentioning(tree: Tree, files: Iterable[str], symbols: Iterable[str], defined: bool) -> tuple[str, ...]:
    """Those of the files whose text has the name of one of these demangled symbols, or that define it."""
    names = {name for symbol in symbols for name in _list_symbol_names(symbol)}
    list_names = list_defined if defined else _list_words
    return tuple(path for path in files if not names.isdisjoint(list_names(path, tree.read(path))))


def _list_words(_path: str, text: str) -> list[str]:
    return _WORD.findall(text)


def _list_symbol_names(symbol: str) -> Iterator[str]:
    """The name of a function or a variable, and for a member that of its class, as kernels with a structure have it."""
    *_, owner, name = ("", *_WORD.findall(symbol.partition("(")[0]))
    yield name
    if name == "impl":
        yield owner.removeprefix("structured_")


def list_defined(path: str, text: str) -> Iterator[str]:
    """The functions that a text of the fork defines at the margin, or dispatches to if it is the rows'."""
    if path == NATIVE_FUNCTIONS:
        yield from _DISPATCHED.findall(text)
    elif path.startswith(f"{MPS}/") and path.endswith((".mm", ".cpp", ".h")):
        yield from (named or function for named, function in _AT_MARGIN.findall(text))


def find_definitions(tree: Tree, name: str, before: bool = False) -> list[tuple[str, int, str]]:
    """The host functions of this name that begin at the margin: the file, the line, and the text to the closing brace.

    As they were `before` the plan, if asked.
    """
    if not name:
        return []
    start = re.compile(rf"^(?![ \t/#])[^\n(;]*\b{re.escape(name)}\([^;{{}}]*\)[^;{{}}]*\{{.*?^\}}", re.M | re.S)
    definitions = []
    for path in (*tree.files(MPS, ".mm", ".cpp"), *tree.files(OPERATIONS, ".mm", ".cpp")):
        if not before or tree.in_checkout(path):
            text = tree.before(path) if before else tree.read(path)
            definitions += [(path, text.count("\n", 0, match.start()) + 1, match[0]) for match in start.finditer(text)]
    return definitions


def library_files(tree: Tree) -> tuple[str, ...]:
    """The host files that every native operator uses: those directly in `native/mps`."""
    return tuple(tree.files(MPS, ".mm"))


def add_called_files(tree: Tree, files: Iterable[str]) -> tuple[str, ...]:
    """These files, and the operation files that define what they call by a declaration in the backend's headers.

    The linker would ask for them one round after another; so they are compiled side by side.
    """
    headers = "".join(tree.read(path) for folder in (MPS, OPERATIONS) for path in tree.files(folder, ".h"))
    declared = set(_CALL.findall(headers))
    defined = {
        name: path
        for path in tree.files(OPERATIONS, ".mm", ".cpp")
        for name in _DEFINED.findall(tree.read(path))
        if name in declared
    }
    found = list(dict.fromkeys(files))
    for path in found:  # grows while iterating
        called = (defined[name] for name in _CALL.findall(tree.read(path)) if name in defined)
        found += [each for each in dict.fromkeys(called) if each not in found]
    return tuple(found)


def find_defining_files(tree: Tree, symbols: Iterable[str]) -> tuple[str, ...]:
    """The operation files that define functions of these demangled C++ names."""
    names = {m[1] for symbol in symbols if (m := re.search(r"(\w+)(?:\[abi:\w+\])?\(", symbol))}
    if not names:
        return ()
    any_of = "|".join(map(re.escape, sorted(names)))
    pattern = re.compile(rf"^(?![ \t/#]).*\b(?:{any_of})\)?\([^;{{}}]*\)[^;{{}}]*\{{", re.M)
    return tuple(path for path in tree.files(OPERATIONS, ".mm", ".cpp") if pattern.search(tree.read(path)))


def native_headers(tree: Tree, files: Iterable[str]) -> frozenset[str]:
    """The names of the `<op>_native.h` headers that host files include."""
    return frozenset(name for path in files for name in native_headers_in(tree.read(path)))


def native_headers_in(text: str) -> frozenset[str]:
    """The names of the `<op>_native.h` headers that one source includes."""
    return frozenset(m["name"] for m in _NATIVE_HEADER.finditer(text))


def dispatch_headers(tree: Tree, files: Iterable[str]) -> frozenset[str]:
    """The names of the `<op>_mps_dispatch.h` headers that host files include."""
    return frozenset(m["name"] for path in files for m in _DISPATCH_HEADER.finditer(tree.read(path)))


def functors(tree: Tree) -> tuple[str, ...]:
    """The functors that the fork's kernels register, from the first argument of every `REGISTER_*` line."""
    return tuple(sorted({name for path in tree.kernel_files() for name in functors_in(tree.read(path))}))


def functors_in(text: str) -> frozenset[str]:
    """The functors that one kernel file registers."""
    return frozenset(m["name"] for m in _FUNCTOR.finditer(_DEFINITION.sub("", text)))


def check_stub(tree: Tree, stub: str, kernels: Sequence[str]) -> None:
    """Reads which kernel a stub's function runs, where it is written out: a backend that runs no host code has to.

    Raises PTR174 when nothing registers the stub, or what does calls another kernel.
    """
    for path in _find_mentions(tree, {stub}):
        text = tree.read(path)
        match = re.search(rf"REGISTER_DISPATCH\(\s*{stub}\s*,\s*&?(?P<function>\w+)\s*\)", text)
        if match is None:
            return  # defined by a macro, which only running it could show
        body = re.search(rf"\b{match['function']}\([^)]*\)\s*\{{(?P<body>.*?)^\}}", text, re.M | re.S)
        called = _EXEC.findall(body["body"] if body else "")
        if called and not set(called) & set(kernels):
            place = Place(path, text.count("\n", 0, match.start()) + 1)
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
        text = tree.read(path)
        match = re.search(rf"\b{name}\)?\([^)]*\)\s*\{{(?P<body>.*?)^\}}", text, re.M | re.S)
        if match and set(_EXEC.findall(match["body"])) & set(functors):
            return
    what = f"{kernel.row} still dispatches MPS to {name}, which does not run {', '.join(functors)}"
    raise PorterError("PTR174", what, kernel.place, "Point the row's MPS key at the kernel that calls the stub.")


def _find_mentions(tree: Tree, words: set[str]) -> list[str]:
    """The operation files that use one of the words outside a comment, or a stub's stem in a `REGISTER` macro."""
    if not words:
        return []
    stems = {w.removesuffix("_stub") for w in words if w.endswith("_stub")}
    whole = re.compile(rf"^(?!\s*//).*\b(?:{'|'.join(map(re.escape, sorted(words)))})\b", re.M)
    pasted = re.compile(rf"^[ \t]*REGISTER\w*\([^;\n]*\b(?:{'|'.join(map(re.escape, sorted(stems)))})\b", re.M)
    found = []
    for path in tree.files(OPERATIONS, ".mm", ".cpp"):
        text = tree.read(path)
        if whole.search(text) or (stems and pasted.search(text)):
            found.append(path)
    return found


def _wheel_kernels(row: str) -> frozenset[str]:
    """The kernels that the installed torch has for a row, whatever their key."""
    text = "".join(r.text for r in rows(packaged_yaml(), [parse_base_name(row)]) if r.name == row)
    return frozenset(m["kernel"] for m in _SHARED.finditer(text) if _in_wheel(m["keys"]))


def _in_wheel(keys: str) -> bool:
    return bool({"CPU", "CompositeExplicitAutograd"} & set(map(str.strip, keys.split(","))))
