"""`metal` and `metallib`, which setup scripts for macOS compile their kernels with: here a library is Metal source.

A script of its own: `offline.py metal|metallib ARGS...`. What `metal -c a.metal -o a.air` writes is the text with the
headers of the package in it, each within a guard; what `metallib` writes is these one after the other. Nothing is
compiled: the device does that when it loads the library, with the options that it knows.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "// A Metal library of porter: source, compiled where it is loaded\n"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*(?:include|import)[ \t]*(["<])([^">\n]+)[">].*$', re.M)
_SUFFIX = ".metal"


@dataclass(frozen=True)
class Call:
    """A call of either tool: its inputs, and what they are compiled with."""

    inputs: tuple[Path, ...]
    output: Path
    folders: tuple[Path, ...] = ()
    definitions: tuple[str, ...] = ()


def read_arguments(tool: str, arguments: Sequence[str]) -> Call:
    """What a call asks for. Options that say how to compile are passed over. Raises ValueError without an input."""
    inputs, folders, definitions = list[Path](), list[Path](), list[str]()
    output, is_object = "", "-c" in arguments
    rest = iter(arguments)
    for word in rest:
        if word in ("-o", "-I", "-D", "-isystem", "-target", "-arch", "-x", "-MF", "-MT", "-module-name"):
            value = next(rest, "")
            output = value if word == "-o" else output
            folders += [Path(value)] if word in ("-I", "-isystem") else []
            definitions += [value] if word == "-D" else []
        elif word.startswith("-I"):
            folders.append(Path(word[2:]))
        elif word.startswith("-D"):
            definitions.append(word[2:])
        elif not word.startswith("-"):
            inputs.append(Path(word))
    if not inputs:
        raise ValueError(f"{tool}: no input files")
    default = inputs[0].with_suffix(".air").name if tool == "metal" and is_object else "default.metallib"
    return Call(tuple(inputs), Path(output or default), tuple(folders), tuple(definitions))


def write_library(call: Call) -> str:
    """The text of a library. Raises OSError for an input that cannot be read, and ValueError for one that is none."""
    parts = []
    for path in call.inputs:
        text = path.read_text()
        if path.suffix == _SUFFIX:
            parts += [*map(_define, call.definitions), _inline(text, path, call.folders)]
        elif text.startswith(MARK):
            parts.append(text.removeprefix(MARK))
        else:
            raise ValueError(f"{path} is neither Metal source nor what porter's metal wrote")
    return MARK + "\n".join(parts)


def _define(definition: str) -> str:
    name, _, value = definition.partition("=")
    return f"#ifndef {name}\n#define {name} {value if '=' in definition else 1}\n#endif"


def _inline(text: str, path: Path, folders: Sequence[Path]) -> str:
    """`text` with its own headers in the place of their includes; those of Metal itself stay."""
    return _INCLUDE.sub(lambda m: _find_header(m, path, folders) or m[0], text)


def _find_header(include: re.Match[str], path: Path, folders: Sequence[Path]) -> str:
    near = [path.parent] if include[1] == '"' else []
    for folder in [*near, *folders]:
        header = folder / include[2]
        if header.is_file():
            guard = f"PORTER_{hashlib.sha256(str(header.resolve()).encode()).hexdigest()[:16]}"
            text = re.sub(r"^[ \t]*#[ \t]*pragma[ \t]+once[ \t]*$", "", header.read_text(), flags=re.M)
            return f"#ifndef {guard}\n#define {guard}\n{_inline(text, header, folders)}\n#endif"
    return ""


def main(tool: str, arguments: Sequence[str]) -> int:
    """Writes the library that a call asks for; 1 where it cannot."""
    if "--version" in arguments:
        print("porter's metal: a library is its source, compiled where it is loaded")
        return 0
    try:
        call = read_arguments(tool, arguments)
        call.output.write_text(write_library(call))
    except (OSError, ValueError, RecursionError) as error:
        print(f"{tool}: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
