"""The C and C++ compiler as programs for macOS know it: one that takes Objective-C++ and Apple's options.

A script of its own: `driver.py SETTINGS.json ARGS...`. What needs no Apple goes to the compiler that Linux has.
`@try` is not what this runtime unwinds through: it is compiled as C++'s, which all that fails here throws.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

OBJECTIVE = (".mm", ".m")
# Options of Apple's compiler and linker that mean nothing here, by the number of arguments that follow them.
_DROPPED = {
    "-framework": 1, "-weak_framework": 1, "-arch": 1, "-isysroot": 1, "-install_name": 1, "-undefined": 1,
    "-compatibility_version": 1, "-current_version": 1, "-headerpad_max_install_names": 0, "-ObjC++": 0, "-ObjC": 0,
    "-lobjc": 0, "-lc++": 0, "-stdlib=libc++": 0, "-fmodules": 0, "-fcxx-modules": 0, "-flto": 0, "-dead_strip": 0,
    "-Xarch_arm64": 1, "-Xarch_x86_64": 1, "-target": 1, "-Wl,-dead_strip": 0, "-Wl,-x": 0, "-Wl,-ld_classic": 0,
    "-Wl,-headerpad_max_install_names": 0, "-Wl,-search_paths_first": 0, "-Wl,-no_warn_duplicate_libraries": 0,
}  # fmt: skip
_DROPPED_STARTS = (
    "-mmacosx-version-min=",
    "-mmacos-version-min=",
    "-Wl,-framework,",
    "-Wl,-undefined,",
    "-Wl,-rpath,@",
    "-Wl,-install_name,",
    "-Wl,-macos_version_min,",
    "-Wl,-exported_symbol",
    "-flto=",
    "-mcpu=",
    "-mtune=apple",
    "-march=arm",
    "--target=",
    "-fmodules-",
)
# Options of clang that a list of flags has for Objective-C++ and C++ alike, and GCC does not take.
_OF_CLANG = ("-fobjc-", "-fno-objc-", "-Wshorten-64-to-32", "-Wunguarded-availability", "-fcolor-diagnostics")
_CPP = (".cpp", ".cc", ".cxx", ".C", ".c++")
# libc++'s headers declare the integer types of <cstdint> on the way, which libstdc++'s do not.
_INTEGERS = ("-include", "stdint.h")
_TRIED = re.compile(r"@(try|catch|throw|finally)\b")
_CAUGHT = re.compile(r"@catch\s*\(\s*(?:(?:id|\w+)\s*(?:<[^>]*>)?\s*\*?\s*(\w+)?|\.\.\.)\s*\)\s*\{")
_REPLACED = {"-bundle": "-shared", "-dynamiclib": "-shared"}


def main(settings: Mapping[str, Sequence[str]], arguments: Sequence[str]) -> None:
    """Becomes the compiler that these arguments need."""
    command = make_command(settings, arguments)
    tried = [word for word in command if word.endswith(OBJECTIVE) and _tries(Path(word))]
    if not tried:
        os.execvp(command[0], command)
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(tried):
            source = Path(folder) / str(number) / Path(name).name  # by which the object is named where no -o is
            source.parent.mkdir()
            source.write_text(f'#line 1 "{name}"\n{write_in_cpp(Path(name).read_text())}')
            command = [str(source) if word == name else word for word in command]
            command += ["-iquote", str(Path(name).parent)]
        sys.exit(subprocess.run(command, check=False).returncode)


def _tries(source: Path) -> bool:
    try:
        return bool(_TRIED.search(source.read_text()))
    except (OSError, UnicodeDecodeError):
        return False


def write_in_cpp(text: str) -> str:
    """Objective-C++ whose `@try` is C++'s: what is caught becomes an `NSException`. `@finally` is left for clang."""
    text = _CAUGHT.sub(
        lambda m: "catch (...) {" + (f" NSException* {m[1]} = porter::caught_exception();" if m[1] else ""), text
    )
    text = re.sub(r"@throw\s*;", "throw;", text)
    text = re.sub(r"@throw\b([^;]*);", r"porter::throw_exception(\1);", text)
    return re.sub(r"@try\b", "try", text)


def make_command(settings: Mapping[str, Sequence[str]], arguments: Sequence[str]) -> list[str]:
    """The command for these arguments: `plain`, or `objective` where there is Objective-C++."""
    kept = list(_translate(arguments))
    if _has_objective(arguments):
        return [*settings["objective"], *kept]
    integers = _INTEGERS if "-c" in kept and any(word.endswith(_CPP) for word in kept) else ()
    return [*settings["plain"], *integers, *_without_clang(kept)]


def _without_clang(arguments: Sequence[str]) -> Iterator[str]:
    rest = iter(arguments)
    for argument in rest:
        if argument == "-Xclang":
            next(rest, None)
        elif not argument.startswith(_OF_CLANG):
            yield argument


def _has_objective(arguments: Sequence[str]) -> bool:
    languages = {after for option, after in pairwise(arguments) if option == "-x"}
    named = any(argument.endswith(OBJECTIVE) and not argument.startswith("-") for argument in arguments)
    return named or bool(languages & {"objective-c", "objective-c++"})


def _translate(arguments: Sequence[str]) -> Iterator[str]:
    rest = iter(arguments)
    for argument in rest:
        if argument in _DROPPED:
            for _ in range(_DROPPED[argument]):
                next(rest, None)
        elif not argument.startswith(_DROPPED_STARTS):
            yield _REPLACED.get(argument, argument)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2:])
