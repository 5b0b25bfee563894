"""Builds what an edit touched: each host file and registration separately, cached by all of its inputs.

A failed compilation is an error with the file and line of the fork; nothing older is ever loaded in its place. One of a
file that the library does without is a finding.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from aten_overlay import toolchain
from aten_overlay.cache import is_intact, make_folder, seal
from aten_overlay.compile_errors import describe_errors
from aten_overlay.errors import refuse_full_disk
from porter.core.cache import digest, get, put, put_if_changed
from porter.core.errors import Place, PorterError
from porter.core.layout import ATEN_ROOT, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.languages.identifiers import contains_identifier, list_words
from porter.verdict.build import missing, objects, registration, sources
from porter.verdict.build.missing import find_missing, find_new_runtime, write_missing
from porter.verdict.build.objects import Recipe
from porter.verdict.build.registration import rows
from porter.verdict.build.releases import tell_misfit
from porter.verdict.build.sources import list_defined
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.derivatives import list_called, list_derived_with
from porter.verdict.errors import raising_porter_errors
from porter.verdict.result import ForkFinding, VerifyTarget, finding_of_error

_CODE = (".mm", ".cpp")


def find_bystanders(tree: Tree, built: Iterable[str]) -> tuple[str, ...]:
    """The host files of a plan's tree beyond those that are built which may not compile because of the plan."""
    known, gone = set(built), find_gone(tree)
    others = (path for path in [*tree.files(MPS, *_CODE), *tree.files(OPERATIONS, *_CODE)] if path not in known)
    return tuple(path for path in others if path in tree.texts or _mentions(tree.read(path), gone))


def find_gone(tree: Tree) -> frozenset[str]:
    """The functions that a plan takes away: no edited file defines them any more, or no row names them."""
    before = {path: tree.before(path) for path in tree.texts if tree.in_checkout(path)}
    return frozenset(_list_defined(before)) - frozenset(_list_defined(tree.texts))


def _mentions(text: str, names: Iterable[str]) -> bool:
    return any(contains_identifier(text, name) for name in names)


def _list_defined(texts: Mapping[str, str]) -> Iterator[str]:
    for path, text in texts.items():
        yield from list_defined(path, text)


_MPS = re.compile(r"^ +(?:\w+, *)*MPS\b", re.M)
_ELSEWHERE = re.compile(r"^ +(?:\w+, *)*(?:CPU|Composite\w+)\b|^  structured_delegate:", re.M)


def list_companions(yaml_text: str, base: str) -> tuple[str, ...]:
    """What the gradient of an operator calls and the CPU lacks; of such an operator, what it is the gradient of."""
    called = {each for each in list_called(base) - {base} if _is_for_mps_only(yaml_text, each)}
    if _is_for_mps_only(yaml_text, base):
        called |= {each for each in list_derived_with(base) - {base} if _serves_mps(yaml_text, each)}
    return tuple(sorted(called))


def _serves_mps(yaml_text: str, base: str) -> bool:
    return any(_MPS.search(row.text) for row in rows(yaml_text, [base]))


def _is_for_mps_only(yaml_text: str, base: str) -> bool:
    found = rows(yaml_text, [base])
    return _serves_mps(yaml_text, base) and not any(_ELSEWHERE.search(row.text) for row in found)


DOES_NOT_COMPILE = "PTR166"
_EDITED = "The port edits this file."
_NAMED = 5  # files that fail too, by their places
_STRICT = ("-Wl,-z,defs", "-Wl,--no-demangle")


@dataclass(frozen=True)
class Built:
    """A loadable library with an operator's host code and registrations, and the rows that it serves.

    `findings` are host files that do not compile, and that the library does without.
    """

    library: Path
    kernels: tuple[registration.Kernel, ...]
    compiled: tuple[str, ...]
    findings: tuple[ForkFinding, ...] = ()


def build(
    tree: Tree,
    targets: Sequence[VerifyTarget],
    recipe: Recipe,
    cache: Path,
    parts: Sequence[Sequence[str]] | None = None,
    missing_ok: bool = False,
    switched: bool = False,
) -> Built:
    """The library for some operators of a tree; of all, where they are given in `parts` to be registered together.

    Operators that are not given in parts have with them those that they only run together with.

    With `missing_ok`, for code that is not under test, a function that nothing defines throws when it is called.
    With `switched`, it has the host files of its operators alone, and registers the rows of one when asked to.

    A file that does not compile is left out if nothing else needs what it defines, and no plan touches it: one that a
    plan edits, or that compiled before the plan, is touched.

    Raises what `registration.generate` and `sources.operation_files` raise, PTR166 (the fork's host code does not
    compile), PTR167 and PTR168 (it does not link) and PTR426 (a plan breaks host code of other operators).
    """
    yaml_text = tree.read(NATIVE_FUNCTIONS)
    bases = tuple(dict.fromkeys(target.base for target in targets))
    into = cache / "generated" / digest(tree.root.name, *bases, *(["switched"] if switched else []))
    together = parts or [(base, *list_companions(yaml_text, base)) for base in bases]
    found = registration.generate_parts(yaml_text, together, into, switched)
    stubs = [stub for target in targets for stub in target.stubs]
    whole = parts and not switched
    wanted = tree.files(OPERATIONS, ".mm", ".cpp") if whole else sources.operation_files(tree, found.kernels, stubs)
    required = frozenset(wanted if whole else sources.find_registering(tree, stubs))
    shared = _build_shared(tree, found.include, recipe, cache)
    every = dict.fromkeys((*shared.files, *wanted))
    linked = _link_library(tree, every, found, recipe, cache, missing_ok, required, shared.broken)
    broken = _check_bystanders(tree, linked, found, recipe, cache) if tree.texts else linked.broken
    compiled = tuple(dict.fromkeys((*shared.compiled, *linked.compiled)))
    dead = missing.find_dead_kernels(tree, linked.files)
    return Built(linked.library, found.kernels, compiled, (*map(finding_of_error, broken.values()), *dead))


def link(
    tree: Tree,
    files: Iterable[str],
    found: registration.Registration,
    recipe: Recipe,
    cache: Path,
    required: Collection[str],
) -> Built:
    """The library of some host files, of which `required` ones have to compile, and registrations.

    Raises PTR166 and PTR167.
    """
    linked = _link_library(tree, files, found, recipe, cache, required=required)
    findings = tuple(map(finding_of_error, linked.broken.values()))
    return Built(linked.library, found.kernels, linked.compiled, findings)


def build_shared(tree: Tree, recipe: Recipe, cache: Path) -> None:
    """Builds the host files that every operator needs, for the builds to come. Raises PTR166 and PTR167."""
    _build_shared(tree, cache / "generated" / digest(tree.root.name) / "include", recipe, cache)


@dataclass(frozen=True)
class _LinkedLibrary:
    """A library, all the host files that are in it, what was compiled just now, and the files that do not compile."""

    library: Path
    files: tuple[str, ...]
    compiled: tuple[str, ...]
    broken: Mapping[str, PorterError]


def _build_shared(tree: Tree, include: Path, recipe: Recipe, cache: Path) -> _LinkedLibrary:
    """The host files that every operator uses, and those that they need themselves."""
    nothing = registration.Registration((), include, (), ())
    return _link_library(tree, sources.library_files(tree), nothing, recipe, cache)


def _check_bystanders(
    tree: Tree, linked: _LinkedLibrary, found: registration.Registration, recipe: Recipe, cache: Path
) -> Mapping[str, PorterError]:
    """The files beside a library that compile neither with a plan nor without it, and that it does not edit.

    Raises PTR426 for other host code that no longer compiles because of the plan, or calls what the plan removes, and
    PTR166 for a file that the plan edits and that did not compile before.
    """
    others = [path for path in find_bystanders(tree, linked.files) if path not in linked.broken]
    nothing = registration.Registration((), found.include, (), ())
    compiled, errors = _compile_each(tree, others, nothing, recipe, cache)
    broken = {**linked.broken, **errors}
    if broken:
        before = materialise(tree.checkout, {}, cache, tree.earlier)
        flags = tuple(flag.replace(str(tree.root), str(before.root)) for flag in recipe.flags)
        nothing = registration.Registration((), cache / "generated" / digest(before.root.name) / "include", (), ())
        there = list(filter(tree.in_checkout, broken))
        _, old = _compile_each(before, there, nothing, replace(recipe, flags=flags), cache)
        if breaks := [error for path, error in broken.items() if path not in old]:
            error = join_errors(breaks)
            raise _break_error(error.what, error.place)
        _require(broken, tree.texts, _EDITED)
    try:
        _library([path for path, _ in compiled.values()], recipe, cache)
    except Undefined as missing:
        gone = find_gone(tree)
        lost = [symbol.name for symbol in missing.symbols if not gone.isdisjoint(list_words(symbol.name))]
        if lost:
            raise _break_error(f"nothing defines {'; '.join(lost[:5])}", None) from missing
    return broken


def _break_error(what: str, place: Place | None) -> PorterError:
    hint = "Change the code there too, or keep what it uses."
    return PorterError("PTR426", f"the port breaks other host code: {what}", place, hint)


def _require(broken: Mapping[str, PorterError], required: Collection[str], hint: str = "") -> None:
    """Raises what is wrong with files that have to compile."""
    if errors := [error for path, error in broken.items() if path in required]:
        error = join_errors(errors)
        raise PorterError(error.code, error.what, error.place, hint or error.hint)


def _link_library(
    tree: Tree,
    files: Iterable[str],
    found: registration.Registration,
    recipe: Recipe,
    cache: Path,
    missing_ok: bool = False,
    required: Collection[str] = (),
    known_broken: Mapping[str, PorterError] = MappingProxyType({}),
) -> _LinkedLibrary:
    """The library of some host files and the registrations, with every other file that defines what they use.

    Files that are `required`, that a plan edits or that define what is used have to compile; others are left out if
    they do not, as those `known_broken` are.
    """
    files, broken = [*sources.add_called_files(tree, files)], dict(known_broken)
    switch = compile_switch(recipe, cache)
    _require(broken, required)
    compiled: list[str] = []
    while True:
        tried = [path for path in files if path not in broken]
        built, errors = _compile_each(tree, tried, found, recipe, cache)
        _require(errors, {*required, *(source.name for source in found.sources)})
        _require(errors, tree.texts, _EDITED)
        broken |= errors
        compiled += [name for name, (_, fresh) in built.items() if fresh]
        objects_made = [*(path for path, _ in built.values()), switch]
        in_library = tuple(path for path in tried if path not in errors)
        try:
            return _LinkedLibrary(_library(objects_made, recipe, cache), in_library, tuple(compiled), broken)
        except Undefined as missing:
            names = [symbol.name for symbol in missing.symbols]
            more = [path for path in sources.find_defining_files(tree, names) if path not in (*files, *broken)]
            files += more
            if not more:
                _require(broken, sources.find_mentioning(tree, broken, names, defined=missing_ok))
                if not missing_ok or not all(symbol.is_function for symbol in missing.symbols):
                    new = find_new_runtime(tree, missing.symbols, recipe)
                    raise new or _link_error(missing, found.kernels) from missing
                throwing = _compile_missing(missing, recipe, cache)
                library = _library([*objects_made, throwing], recipe, cache)
                return _LinkedLibrary(library, in_library, tuple(compiled), broken)


def _compile_missing(missing: Undefined, recipe: Recipe, cache: Path) -> Path:
    """An object with the undefined functions, which throw."""
    text = write_missing(missing.symbols)
    source = put_if_changed(cache / "generated" / "missing" / f"{digest(text)}.cpp", text)
    return objects.compile_object(source, source.name, (), {"generated": source.parent}, recipe, cache)[0]


class Undefined(Exception):
    """The linker's message, with mangled names, and the undefined symbols."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.symbols = find_missing(message)


def _compile_each(
    tree: Tree, files: Sequence[str], found: registration.Registration, recipe: Recipe, cache: Path
) -> tuple[dict[str, tuple[Path, bool]], dict[str, PorterError]]:
    """The objects of those files and registrations that compile, and the errors of the others, by name.

    All headers are written before any file is compiled: what one is compiled with does not depend on the others.
    """
    broken: dict[str, PorterError] = {}
    try:
        _write_headers(tree, files, found)
    except PorterError:
        for path in files:
            try:
                _write_headers(tree, [path], found)
            except PorterError as error:
                broken[path] = error
        _write_headers(tree, [], found)
    made, errors = _objects(tree, [path for path in files if path not in broken], found, recipe, cache)
    return made, {**broken, **errors}


def _write_headers(tree: Tree, files: Sequence[str], found: registration.Registration) -> None:
    generated = "\n".join(path.read_text() for path in found.sources)
    included = sources.native_headers(tree, files) | sources.native_headers_in(generated)
    registration.native_headers(tree.read(NATIVE_FUNCTIONS), included, found.include)
    registration.dispatch_headers(sources.dispatch_headers(tree, files), found.include)
    for path in files:
        missing.write_header(tree, path, found.include)


def _objects(
    tree: Tree, files: Sequence[str], found: registration.Registration, recipe: Recipe, cache: Path
) -> tuple[dict[str, tuple[Path, bool]], dict[str, PorterError]]:
    """The objects of the fork's files and of the registrations by name, and whether each was compiled just now; and
    the errors of those that do not compile.
    """
    roots = {"include": found.include, "headers": tree.root / ATEN_ROOT, "tree": tree.root}
    named = {**{f: tree.root / f for f in files}, **{s.name: s for s in found.sources}}
    objects_by_name: dict[str, tuple[Path, bool]] = {}
    errors: dict[str, PorterError] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {name: pool.submit(_object, path, name, roots, recipe, cache) for name, path in named.items()}
        for name, compiling in started.items():
            try:
                objects_by_name[name] = compiling.result()
            except PorterError as error:
                if error.code != DOES_NOT_COMPILE:  # a full disk says nothing of a file
                    raise
                errors[name] = tell_misfit(tree, name, error) if name in files else error
    return objects_by_name, errors


def join_errors(errors: Sequence[PorterError]) -> PorterError:
    """The first error of several, which says of the others only where they are. `errors` has at least one."""
    first, *others = errors
    if not others:
        return first
    named = ", ".join(str(error.place) for error in others[:_NAMED])
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return PorterError(first.code, f"{first.what}\nother files fail too: {named}{more}", first.place, first.hint)


def _object(path: Path, name: str, roots: Mapping[str, Path], recipe: Recipe, cache: Path) -> tuple[Path, bool]:
    include = ["-I", str(roots["include"]), "-I", str(path.parent)]
    if header := missing.find_header(name, roots["include"]):
        include += ["-include", str(header)]
        recipe = replace(recipe, digest=digest(recipe.digest, header.read_text()))
    try:
        return objects.compile_object(path, name, include, roots, recipe, cache)
    except objects.CompileError as error:
        with raising_porter_errors():
            refuse_full_disk(str(error))
        raise _compile_error(name, str(error)) from error


def _library(made_of: Sequence[Path], recipe: Recipe, cache: Path) -> Path:
    """The library of these objects. Raises Undefined, cached for this set of objects."""
    target = (
        cache
        / "libraries"
        / f"lib{digest(recipe.digest, *recipe.link, *(f'{o.parent.name}/{o.name}' for o in made_of))}.so"
    )
    undefined = target.with_suffix(".missing")
    if is_intact(target):
        return target
    if (message := get(undefined)) is not None:
        raise Undefined(message)
    make_folder(target.parent)
    part = target.with_suffix(f".{os.getpid()}")
    command = [str(recipe.compiler), "-shared", *_STRICT, *map(str, made_of), *recipe.link, "-o", str(part)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        part.unlink(missing_ok=True)
        with raising_porter_errors():
            refuse_full_disk(done.stderr)
        put(undefined, done.stderr)
        raise Undefined(done.stderr)
    part.replace(target)
    return seal(target)


def _compile_error(name: str, errors: str) -> PorterError:
    """The first errors, at their places in the fork: the compiler names files by their path in the private tree."""
    matches = list(toolchain.ERROR.finditer(errors))
    if not matches:
        return PorterError("PTR166", f"the host code does not compile:\n{errors.strip()[-1500:]}", Place(name))
    places = [Place(_name_in_fork(match["file"], name), int(match["line"])) for match in matches]
    told = describe_errors([(str(place), match["text"]) for place, match in zip(places, matches, strict=True)], errors)
    return PorterError("PTR166", f"the host code does not compile: {told}", places[0])


def _name_in_fork(file: str, name: str) -> str:
    """A file that a compiler names, by its path in the fork; the compiled source `name` for one of no fork."""
    return next((file[at + 1 :] for top in ("/aten/", "/c10/") if (at := file.find(top)) >= 0), name)


def _link_error(missing: Undefined, kernels: Iterable[registration.Kernel]) -> PorterError:
    symbols = [symbol.name for symbol in missing.symbols]
    place = next((k.place for k in kernels if any(f"{k.symbol}::" in s or f"{k.symbol}(" in s for s in symbols)), None)
    message = "; ".join(symbols[:5]) or str(missing).strip()[-1500:]
    return PorterError("PTR167", f"the host code does not link: nothing defines {message}", place)


_SWITCH = "porter_largest_of_32_bits"
_ASKED = "_ZN2at6native20canUse32BitIndexMathERKNS_10TensorBaseEl"
# Hidden, the function is that of this library alone; torch's own stands behind it.
_SOURCE = f"""#include <dlfcn.h>
#include <cstdint>
using Fits = bool (*)(const void*, int64_t);
extern "C" {{
__attribute__((visibility("default"))) int64_t {_SWITCH} = INT64_MAX;
__attribute__((visibility("hidden"))) bool porter_fits_32_bits(const void*, int64_t) __asm__("{_ASKED}");
bool porter_fits_32_bits(const void* tensor, int64_t most) {{
  static const auto torchs = (Fits)dlsym(dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD), "{_ASKED}");
  return {_SWITCH} > 0 && torchs(tensor, most < {_SWITCH} ? most : {_SWITCH});
}}
}}
"""


def compile_switch(recipe: Recipe, cache: Path) -> Path:
    """The object that puts a limit into a library, beyond which no offset fits in 32 bits.

    Host code asks `at::native::canUse32BitIndexMath` which kernel to launch, and no test has a tensor of gigabytes.
    """
    source = put_if_changed(cache / "generated" / "index_width" / f"{digest(_SOURCE)}.cpp", _SOURCE)
    return objects.compile_object(source, source.name, (), {"generated": source.parent}, recipe, cache)[0]


def limit_narrow_indices(library: ctypes.CDLL, largest: int | None) -> None:
    """Sets the largest offset that host code of a loaded library takes for one of 32 bits: torch's own for None."""
    ctypes.c_int64.in_dll(library, _SWITCH).value = (1 << 63) - 1 if largest is None else largest
