"""Compiles C++ against the installed torch wheel, once: a result is found again by the content it came from.

It is used only while everything that went into it is unchanged: the source, the flags, the compiler, the wheel, the
declared dependencies and every header that the compiler read. A build that fails leaves nothing behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, wraps
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import ParamSpec

from aten_overlay import cache
from aten_overlay.compile_errors import describe_errors
from aten_overlay.errors import OverlayError, Place, refuse_full_disk
from aten_overlay.metal import compiler

__all__ = [
    "build", "build_precompiled", "cache_root", "clang", "once", "precompiled_header", "torch_flags", "torch_root",
]  # fmt: skip

ERROR = re.compile(r"^(?P<file>.+?):(?P<line>\d+):\d+: (?P<fatal>fatal )?error: (?P<text>.*)$", re.MULTILINE)
"""An error of the compiler's in a file, whose name may hold blanks and colons. A missing header is fatal."""

_WORD = re.compile(r"(?:[^ \\]|\\.)+", re.S)  # a name in a rule
INSTANTIATED = compiler.INSTANTIATED
BY_CONTENT = compiler.BY_CONTENT
TIMELESS = compiler.TIMELESS
# What a header defines is compiled once, by `build_precompiled`, and not by each file that reads it precompiled.
SEPARATE = "-fpch-codegen"
_Arguments = ParamSpec("_Arguments")
_OPTIMIZED = ("-O1", "-fPIC", "-fvisibility=default", "-Wall", "-Wextra", "-Wno-unused-parameter")


@lru_cache(maxsize=1)
def clang() -> str:
    """The path of a clang++ that links with the system's libstdc++. Raises PTR100 or PTR142 as `find_clang` does."""
    return compiler.find_clang()


@lru_cache(maxsize=1)
def torch_root() -> Path:
    """The folder of the installed torch package, which is not imported. Raises PTR141."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise OverlayError("PTR141", "torch is not installed", hint="Run `pip install torch`.")
    return Path(spec.origin).resolve().parent


@lru_cache(maxsize=1)
def torch_version() -> str:
    """The wheel's version, as `torch.__version__` says it."""
    text = (torch_root() / "version.py").read_text()
    found = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
    return found.group(1) if found else "unknown"


@lru_cache(maxsize=1)
def _environment() -> str:
    """What every compilation depends on: the wheel and the compiler."""
    version = (torch_root() / "version.py").read_bytes()
    return cache.digest(str(torch_root()), version, clang(), compiler.version(clang()))


@lru_cache(maxsize=1)
def cache_root() -> Path:
    """Where results for this wheel and compiler are cached, under `$PORTER_CACHE` or `~/.cache/porter`."""
    return cache.root() / f"{torch_version()}-{_environment()[:12]}"


def torch_flags() -> tuple[str, ...]:
    """Flags to compile against the wheel's headers, which count as system headers."""
    include = torch_root() / "include"
    return (
        "-std=c++20", "-DAT_PER_OPERATOR_HEADERS", "-D_GLIBCXX_USE_CXX11_ABI=1",
        "-isystem", str(include), "-isystem", str(include / "torch" / "csrc" / "api" / "include"),
    )  # fmt: skip


def torch_libraries() -> tuple[str, ...]:
    """Flags to link with the wheel's libraries, whose symbols gold reads in half the time, if it is installed."""
    lib = str(torch_root() / "lib")
    linker = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()
    return (*linker, f"-L{lib}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}")


def link_with(library: Path) -> tuple[str, ...]:
    """Flags to link with one of the stand-in's libraries, found at run time where it lies now."""
    return (str(library), f"-Wl,-rpath,{library.parent}")


def language(source: Path) -> str:
    """What the compiler is to take a source for, by its suffix."""
    return "objective-c++" if source.suffix == ".mm" else "c++"


def once(build: Callable[_Arguments, Path]) -> Callable[_Arguments, Path]:
    """Has a process, and its forks, read the sources of what a function builds once, as long as the result is intact.

    A verdict forks several workers: each read 2,000 headers again, which took a third of their time.
    """
    results: dict[tuple[object, ...], Path] = {}

    @wraps(build)
    def build_once(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Path:
        key = (*args, *kwargs.items())
        if key not in results or not cache.is_intact(results[key]):
            results[key] = build(*args, **kwargs)
        return results[key]

    return build_once


def precompiled_header(header: Path, flags: Sequence[str], kind: str = "c++", deps: Iterable[Path] = ()) -> Path:
    """The precompiled form of `header`, to be used with `-include-pch` and the same flags. Raises PTR143.

    `deps` as for `build`: system headers are not among those the compiler is arguments to list.
    """
    return _compile(header, (*_OPTIMIZED, INSTANTIATED, *TIMELESS, *flags), deps, f"{kind}-header", ".pch")


def build(
    name: str,
    sources: Iterable[Path],
    flags: Sequence[str],
    deps: Iterable[Path] = (),
    *,
    link: Sequence[str] = (),
    header: Path | None = None,
    more: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Path:
    """The shared library `lib<name>` made of C++ `sources`.

    `deps` are files, or folders with all they hold, that the result depends on besides the headers the compiler reads.
    `header` is precompiled and comes before every source; `more` are flags by language. Raises PTR143 (does not
    compile) or PTR144 (does not link).
    """
    known = tuple(deps)
    before = ("-include-pch", str(precompiled_header(header, flags))) if header else ()

    def compile_source(source: Path) -> Path:
        kind = language(source)
        return _compile(source, (*_OPTIMIZED, *before, *flags, *more.get(kind, ())), known, kind, ".o")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_source, sources))
    return _link(name, objects, link)


def build_precompiled(name: str, header: Path, link: Sequence[str]) -> Path:
    """The shared library `lib<name>` of the functions of a header that was precompiled with `SEPARATE`.

    What reads the header is linked with it. A function that the linker does not find throws when it is called: inline
    functions of torch call some that its libraries do not export. Raises PTR144.
    """
    functions = _compile_alone(header, header.with_suffix(".functions.o"))
    flags = ("-Wl,--no-demangle", *link)
    # To find them takes a linker seconds, and each process that builds host code asks.
    record = cache_root() / "objects" / f"{cache.digest('undefined', name, functions.name, *flags)}.json"
    with locked(record):
        symbols: set[str] = set(json.loads(record.read_text())) if cache.is_intact(record) else set()
        while True:
            objects = [functions, _compile_throwing(header.parent, symbols)] if symbols else [functions]
            try:
                library = _link(name, objects, flags)
            except OverlayError as error:
                more = set(_UNDEFINED.findall(error.what)) - symbols
                if not more:
                    raise
                symbols |= more
                cache.seal(cache.write(record, json.dumps(sorted(symbols)).encode()))
            else:
                return library


def _compile_throwing(folder: Path, symbols: Iterable[str]) -> Path:
    """The object of functions of these names, which throw."""
    definitions = (_THROWING.format(symbol, number) for number, symbol in enumerate(sorted(symbols)))
    text = "".join(["#include <stdexcept>\n", *definitions])
    source = folder / f"{cache.digest(text)}.cpp"
    cache.write(source, text.encode())
    return _compile_alone(source, source.with_suffix(".o"))


# As GNU's linkers and LLVM's say it.
_UNDEFINED = re.compile(r"undefined (?:reference to [`']|symbol: )([^'\n]*)")
# A function of that name, which throws.
_THROWING = """static void throw_for_{1}() asm("porter_undefined_{1}") __attribute__((used));
static void throw_for_{1}() {{
  throw std::logic_error("PTR144: an inline function of torch's headers calls `{0}`, which torch does not export\\n"
                         "  Call a function that they export in its place.");
}}
asm(".globl {0}\\n.hidden {0}\\n.set {0}, porter_undefined_{1}");
"""


def _compile_alone(source: Path, result: Path) -> Path:
    """The object of a file that needs no flags, and that is named by all that it depends on."""
    with locked(result):
        if not cache.is_intact(result):
            part = result.with_suffix(".new")
            command = [clang(), "-fPIC", "-c", str(source), "-o", str(part)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                part.unlink(missing_ok=True)
                refuse_full_disk(done.stderr)
                raise _make_compile_error(source, done.stderr)
            part.replace(result)
            cache.seal(result)
    return result


def _compile(source: Path, flags: Sequence[str], deps: Iterable[Path], language: str, suffix: str) -> Path:
    key = cache.digest(
        "object", language, str(source), source.read_bytes(), *flags, *_read_contents(deps), _environment()
    )
    record = cache_root() / "objects" / f"{key}.json"
    with locked(record):
        found = _find_recorded(record)
        return found or _compile_now(source, flags, language, suffix, record)


def _compile_now(source: Path, flags: Sequence[str], language: str, suffix: str, record: Path) -> Path:
    made, listed = record.with_suffix(f".new{suffix}"), record.with_suffix(".d")
    arguments = (BY_CONTENT, "-x", language, *flags, "-MMD", "-MF", str(listed))
    command = [clang(), *arguments, "-c", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        made.unlink(missing_ok=True)
        record.unlink(missing_ok=True)
        refuse_full_disk(done.stderr)
        raise _make_compile_error(source, done.stderr)
    read = {path: cache.digest(Path(path).read_bytes()) for path in read_rule(listed, source)}
    target = record.with_name(f"{record.stem}-{cache.digest(*read.values())[:12]}{suffix}")
    made.replace(target)
    cache.seal(target)
    listed.unlink()
    cache.seal(cache.write(record, json.dumps({"result": target.name, "read": read}).encode()))
    return target


def _find_recorded(record: Path) -> Path | None:
    """The result of an earlier compilation, if it is there and every file that it read is as it was."""
    if not cache.is_intact(record):
        return None
    values = json.loads(record.read_text())
    result = record.with_name(values["result"])
    unchanged = all(Path(p).is_file() and cache.digest(Path(p).read_bytes()) == d for p, d in values["read"].items())
    return result if unchanged and cache.is_intact(result) else None


def _link(name: str, objects: Sequence[Path], link: Sequence[str]) -> Path:
    folder = cache_root() / cache.digest("library", *(o.name for o in objects), *link)
    target = folder / f"lib{name}.so"
    with locked(target):
        if cache.is_intact(target):
            return target
        made = target.with_suffix(".new")
        command = [clang(), "-shared", "-Wl,-z,defs", f"-Wl,-soname,{target.name}", *map(str, objects), *link]
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
        if done.returncode:
            made.unlink(missing_ok=True)
            refuse_full_disk(done.stderr)
            message = done.stderr.strip()[-1500:]
            raise OverlayError("PTR144", f"lib{name} does not link:\n{message}", hint="Define the missing symbols.")
        made.replace(target)
        return cache.seal(target)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock beside `path`: two processes never build the same thing at once."""
    cache.make_folder(path.parent)
    handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        # A process that another thread forked meanwhile has the handle too: closing it here alone would leave the lock
        # to that process for as long as it lives.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _read_contents(deps: Iterable[Path]) -> Iterator[str | bytes]:
    for dep in deps:
        files = sorted(p for p in dep.rglob("*") if p.is_file()) if dep.is_dir() else [dep]
        for path in files:
            yield str(path)
            yield path.read_bytes()


def read_rule(rule: Path, source: Path) -> list[str]:
    """Returns the files that a Makefile rule of clang's names for a source: a blank, `#` and `$` are escaped there.

    Raises PTR143 if the source is not among them: clang writes a slash for a backslash, so what it has read cannot be
    told from other files.
    """
    text = os.fsdecode(rule.read_bytes()).removesuffix("\n").replace("\\\n", " ")
    words = (match[0] for match in _WORD.finditer(text.partition(": ")[2]))
    names = [re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in words]
    if str(source) not in names:
        what = f"the compiler does not say that it read {source}"
        raise OverlayError("PTR143", what, hint="Name a cache folder without a backslash with $PORTER_CACHE.")
    return names


def _make_compile_error(source: Path, stderr: str) -> OverlayError:
    errors = [(Place(match["file"], int(match["line"])), match["text"]) for match in ERROR.finditer(stderr)]
    if not errors:
        return OverlayError("PTR143", f"{source.name} does not compile: {stderr.strip()[-1500:]}")
    told = describe_errors([(str(place), text) for place, text in errors], stderr)
    return OverlayError("PTR143", f"{source.name} does not compile: {told}", errors[0][0], _HINT)


_HINT = "The message is from the compiler. If the file is porter's own, this torch wheel is not supported."
