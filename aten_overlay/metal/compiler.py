"""Finds clang and runs it: preprocessing, precompiled headers, shared objects. Every result is cached by content."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from aten_overlay import cache
from aten_overlay.compile_errors import NO_LIMIT, describe_errors
from aten_overlay.errors import OverlayError, Place, refuse_full_disk
from aten_overlay.metal import zig
from aten_overlay.metal.headers import INCLUDE, find_include_folder
from aten_overlay.metal.source.arguments import GPU_ONLY
from aten_overlay.metal.warm import WarmCompiler

_HERE = Path(__file__).resolve().parent
RUNTIME = _HERE / "runtime"
_WARM = _HERE / "warm.cpp"
# A precompiled header stays good when a file that it read is touched, as by a checkout, and says the same.
BY_CONTENT = "-fpch-validate-input-files-content"
# And such a file is still the one that `#pragma once` has seen, which clang knows by its size and time.
TIMELESS = ("-Xclang", "-fno-pch-timestamp")
# What a header instantiates is not instantiated again by each file that reads it: host code compiles in half the time,
# and a kernel is lowered in less.
INSTANTIATED = "-fpch-instantiate-templates"
# A library that lacks a function fails when it is linked, not when it is loaded: then it is known what needs it.
_SHARED = ("-shared", "-Wl,-z,defs")
_RESULT, _OBJECT = "result.so", "/dev/null"  # names in a command that is asked for: an object has to be there
_OLDEST = 17
_NEWEST = 30
TOO_LARGE = "exceeds limit"  # of a frame
_CODED = re.compile(r"static assertion failed[^:]*: (PTR\d{3}) (.*)")
# As GNU's linker and LLVM's say it.
_UNDEFINED = re.compile(r"undefined (?:reference to [`']|symbol: )([^'\n]*)")
_MESSAGE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?:fatal )?(?P<kind>error|note): (?P<text>.*)$", re.MULTILINE
)


@lru_cache(maxsize=1)
def find_clang() -> str:
    """The path of a clang++ of version 17 or newer: `$PORTER_CLANG`, one on the path, else the `ziglang` package's.

    Raises PTR100 when there is none, PTR142 when the package's finds no C++ library of the system.
    """
    named = os.environ.get("PORTER_CLANG")
    candidates = [named] if named else [f"clang++-{n}" for n in range(_NEWEST, _OLDEST - 1, -1)] + ["clang++"]
    ours = str(cache.commands())  # the commands of programs for macOS, which call what is found here
    folders = [f for f in os.environ.get("PATH", os.defpath).split(os.pathsep) if not f.startswith(ours)]
    for name in candidates:
        path = shutil.which(name, path=os.pathsep.join(folders))
        if path and _major(path) >= _OLDEST:
            return path
    packaged = zig.find_clang()
    if packaged:
        return packaged
    raise OverlayError(
        "PTR100",
        "no clang++ 17 or newer was found",
        hint="Install one (Debian and Ubuntu: apt-get install clang-19; without root: pip install ziglang), "
        "or set $PORTER_CLANG to its path.",
    )


@lru_cache(maxsize=8)
def version(command: str) -> str:
    """What the compiler says it is, whole: part of every cache key."""
    return subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout


def _major(command: str) -> int:
    found = re.search(r"clang version (\d+)", version(command))
    return int(found.group(1)) if found else 0


@lru_cache(maxsize=1)
def machine() -> str:
    """The processor as far as `-march=native` depends on it: compiled kernels do not move between machines."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    wanted = ("model name", "flags", "Features", "CPU part")
    lines = [line for line in text.split("\n\n")[0].splitlines() if line.startswith(wanted)]
    return "\n".join([os.uname().machine, *lines])


def cache_root() -> Path:
    """Where compiled kernels are cached."""
    return cache.root() / "metal"


@lru_cache(maxsize=1)
def library_digest() -> str:
    """A hash of the standard library's headers and the runtime."""
    files = sorted(p for p in [*INCLUDE.rglob("*"), *RUNTIME.rglob("*")] if p.is_file())
    return cache.digest(*(part for p in files for part in (p.name, p.read_bytes())))


def run(arguments: Sequence[str], text: str | None = None) -> str:
    """Runs the compiler; what it wrote to its output. Raises PTR101 with the first errors."""
    command = [find_clang(), NO_LIMIT, *arguments]
    done = _warm.run(command, text) or _run_cold(command, text)
    if done.returncode:
        refuse_full_disk(done.stderr)
        raise _failure(done.stderr)
    return done.stdout


def _run_cold(command: Sequence[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, errors="surrogateescape"
    )  # fmt: skip


def _find_warm_library() -> Path | None:
    """What keeps a compiler loaded, as a shared object; None where it does not compile."""
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti"]
    key = cache.digest("warm", _WARM.read_bytes(), version(find_clang()), machine(), *flags)
    command = [find_clang(), *flags, str(_WARM), "-o"]
    try:
        return _make_cached(f"{key}.so", lambda result: _run_cold([*command, result]).check_returncode())
    except subprocess.CalledProcessError:
        return None


_warm = WarmCompiler(_find_warm_library)


@dataclass(frozen=True)
class Message:
    """What the compiler says of one place."""

    kind: str
    place: Place
    text: str


def read_messages(stderr: str) -> list[Message]:
    """The compiler's errors and notes, in order."""
    found = _MESSAGE.finditer(stderr)
    return [Message(m["kind"], Place(m["file"], int(m["line"])), m["text"]) for m in found]


def _failure(stderr: str) -> OverlayError:
    """The first errors, the first one at the place of the source that it comes from, with its notes."""
    messages = read_messages(stderr)
    starts = [i for i, m in enumerate(messages) if m.kind == "error"]
    if not starts:
        text = stderr.strip()[-1000:]
        if lacking := sorted(set(_UNDEFINED.findall(stderr))):
            what = f"functions are declared and called, but not defined: {', '.join(lacking)}"
            return OverlayError("PTR348", what, hint="Define them in this source: each source is a library of its own.")
        if "frame" in text and TOO_LARGE in text:
            hint = "Use less private memory: a thread here has 48 KiB."
            return OverlayError("PTR101", f"the Metal source does not compile: {text}", hint=hint)
        return OverlayError("PTR101", f"the Metal source does not compile: {text}", hint=_HINT)
    groups = [messages[start:end] for start, end in pairwise([*starts, len(messages)])]
    # None of porter's headers if there is another place.
    places = [next((message.place for message in group if _is_own(message.place)), group[0].place) for group in groups]
    (error, *notes), place = groups[0], places[0]
    if coded := _CODED.search(error.text):
        return OverlayError(coded[1], coded[2], place, "Use what the family has, or name another family.")
    unknown = _UNKNOWN_TYPE.match(error.text)
    if unknown and unknown[1] in GPU_ONLY:
        what = f"the host has no {GPU_ONLY[unknown[1]]}: `{unknown[1]}`"
        return OverlayError("PTR352", what, place, "Run this kernel on a Mac; the others run here.")
    own = [note for note in notes[:_MOST_NOTES] if _is_own(note.place)]
    said = "".join(f"; {Path(note.place.file).name}:{note.place.line}: {note.text}" for note in own)
    others = [(str(at), group[0].text) for at, group in zip(places[1:], groups[1:], strict=True)]
    told = describe_errors([(str(place), error.text + said), *others], stderr)
    return OverlayError("PTR101", f"the Metal source does not compile: {told}", place, _hint(error))


def _is_own(place: Place) -> bool:
    return not place.file.startswith(str(INCLUDE))


def _hint(error: Message) -> str:
    missing = _MISSING.match(error.text)
    if missing and (folder := find_include_folder(Path(error.place.file), missing[1])):
        return f"Name the folder that holds it as an include folder: {folder}"
    return next((hint for part, hint in _HINTS.items() if part in error.text), _HINT)


_HINT = "Fix the source; the message is from the compiler."
_HINTS = {
    "matching function for call to 'simd_": "Check the arguments: lanes exchange no bools, and numbers as they are.",
    "matching function for call to 'quad_": "Check the arguments: lanes exchange no bools, and numbers as they are.",
    "file not found": "Name the folder that holds it as an include folder.",
    "no matching function for call": "Check the arguments: Metal converts no vector to another type by itself.",
    "ambiguous": "Convert an argument, or name the namespace.",
    "undeclared identifier": "Declare it, include its header, or name its namespace, which may be metal::.",
}
_UNKNOWN_TYPE = re.compile(r"unknown type name '(\w+)'")
_MISSING = re.compile(r"'([^']+)' file not found")
_MOST_NOTES = 3


def build_cached(key: str, suffix: str, build: Iterable[str], sources: Sequence[str]) -> Path:
    """The cached file for `key`, made by the compiler with `build` and `sources` if it is not there yet."""
    return _make_cached(f"{key}{suffix}", lambda result: run([*build, "-o", result, *sources]))


def build_library(key: str, build: Iterable[str], source: str, library: str) -> Path:
    """The cached shared object for `key`, made of a source and linked with a library. No function is missing in it."""
    return _make_cached(f"{key}.so", lambda result: _build_library(list(build), source, library, result))


def _make_cached(name: str, make: Callable[[str], object]) -> Path:
    path = cache_root() / name
    if cache.is_intact(path):
        return path
    cache.make_folder(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    os.close(handle)
    try:
        make(temporary)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return cache.seal(path)


def _build_library(build: Sequence[str], source: str, library: str, result: str) -> None:
    """Compiles, then links. A clang that does both starts another, which takes as long as a small kernel does."""
    compiled = f"{result}.o"
    try:
        run([*build, "-c", "-o", compiled, source])
        files = {_RESULT: (result,), _OBJECT: (compiled, library)}
        for words in _linkers():
            command = [file for word in words for file in files.get(word, (word,))]
            if not subprocess.run(command, capture_output=True, check=False).returncode:
                return
        run([*_SHARED, "-o", result, compiled, library, "-lm"])  # which finds more, and says what it does not find
    finally:
        Path(compiled).unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _linkers() -> tuple[tuple[str, ...], ...]:
    """Commands that link, the fastest first, by what the compiler says it links with; none if it does not say it.

    No command has libstdc++, which takes long to read. Kernels need libc, libm and what finds the memory of a thread,
    which this process runs with; all that clang links beside these takes twice as long to read.
    """
    command = [find_clang(), *_SHARED, "-nostdlib++", "-###", "-o", _RESULT, _OBJECT, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    words = shlex.split(done.stderr.splitlines()[-1]) if not done.returncode and done.stderr else []
    if not {_RESULT, _OBJECT} <= set(words):
        return ()
    alone = [word for word in words if not word.startswith(("-l", "-L")) and not word.endswith(".o")]
    return (*alone, "--as-needed", *_find_mapped()), tuple(words)


def _find_mapped() -> list[str]:
    """The files of the libraries that kernels need and this process runs with, if the system tells."""
    try:
        mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    except OSError:
        return []
    return sorted(path for path in mapped if Path(path).name.startswith(("ld-", "libc.", "libc-", "libm.", "libm-")))


def runtime_library() -> Path:
    """The shared object with fibers, threads and launch checks that every kernel library uses."""
    flags = [
        "-std=c++17",
        "-O2",
        "-march=native",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-fno-exceptions",
        "-fno-rtti",
        "-mno-red-zone",
    ]
    key = cache.digest("runtime", library_digest(), version(find_clang()), machine(), *flags)
    return build_cached(key, ".so", [*flags, "-pthread"], [str(p) for p in sorted(RUNTIME.glob("*.cpp"))])
