"""The C and C++ compiler as programs for macOS know it: one that takes Objective-C++ and Apple's options.

A script of its own: `driver.py SETTINGS.json ARGS...`. What needs no Apple goes to the compiler that Linux has.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

OBJECTIVE = (".mm", ".m")
# Options of Apple's compiler and linker that mean nothing here, by the number of arguments that follow them.
_DROPPED = {
    "-framework": 1, "-weak_framework": 1, "-arch": 1, "-isysroot": 1, "-install_name": 1, "-undefined": 1,
    "-compatibility_version": 1, "-current_version": 1, "-headerpad_max_install_names": 0, "-ObjC++": 0, "-ObjC": 0,
    "-lobjc": 0, "-lc++": 0, "-stdlib=libc++": 0,
}  # fmt: skip
_DROPPED_STARTS = (
    "-mmacosx-version-min=",
    "-mmacos-version-min=",
    "-Wl,-framework,",
    "-Wl,-undefined,",
    "-Wl,-rpath,@",
)
_REPLACED = {"-bundle": "-shared", "-dynamiclib": "-shared"}


def main(settings: Mapping[str, Sequence[str]], arguments: Sequence[str]) -> None:
    """Becomes the compiler that these arguments need."""
    command = make_command(settings, arguments)
    os.execvp(command[0], command)


def make_command(settings: Mapping[str, Sequence[str]], arguments: Sequence[str]) -> list[str]:
    """The command for these arguments: `plain`, or `objective` where there is Objective-C++."""
    kept = list(_translate(arguments))
    return [*settings["objective" if _has_objective(arguments) else "plain"], *kept]


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
