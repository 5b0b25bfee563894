"""Compares the stand-in's declarations of Apple's frameworks with Apple's own, as PyObjC publishes them.

    pip download --no-deps --no-binary :none: --only-binary :all: --platform macosx_10_13_universal2 \\
        --python-version 3.12 pyobjc-framework-Metal pyobjc-framework-MetalPerformanceShaders{,Graph}
    python tools/declarations.py pyobjc_framework_*.whl

PyObjC's metadata is made from Apple's SDK: the value of every enumerator, and which arguments and results of a method
are BOOL or blocks. Prints what differs, then how much was compared; ends with 1 where anything differs. A wheel is read
as text, never imported.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aten_overlay import toolchain
from aten_overlay.apple import build
from shared.arguments import parser
from shared.objc import METHOD, PART

_ENUMERATOR = re.compile(r"\$(\w+)@(-?\d+)")
_SKIPPED = 2  # self and the selector come before a method's arguments
_BOOL = (b"Z", "Z")


def main() -> int:
    options = parser(__doc__)
    options.add_argument("wheels", type=Path, nargs="+", help="wheels of PyObjC's frameworks")
    return compare(options.parse_args().wheels)


def compare(wheels: list[Path]) -> int:
    """Prints what differs from these wheels' metadata; 1 where anything does."""
    modules = [ast.parse(text) for wheel in wheels for text in _metadata(wheel)]
    values = {name: value for module in modules for name, value in _enumerators(module)}
    headers = "\n".join(path.read_text() for path in sorted(build.INCLUDE.rglob("*.h")))
    names = sorted(values.keys() & set(re.findall(r"\b\w+\b", headers)))
    wrong = list(_wrong_values({name: values[name] for name in names}))
    declared = dict(_declared(headers))
    told = {selector: bools for module in modules for selector, bools in _methods(module)}
    both = sorted(declared.keys() & told.keys())
    wrong += [
        f"{s}: BOOL at {sorted(declared[s])}, Apple's at {sorted(told[s])}" for s in both if declared[s] != told[s]
    ]
    if not names or not both:
        found = f"{len(names)} enumerators and {len(both)} methods in {len(modules)} files of metadata"
        sys.exit(f"nothing to compare: {found}")
    print(*wrong, f"{len(names)} enumerators, {len(both)} methods compared, {len(wrong)} differ", sep="\n")
    return 1 if wrong else 0


def _metadata(wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith("/_metadata.py"):
                yield archive.read(name).decode()


def _enumerators(module: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((m[1], int(m[2])) for m in _ENUMERATOR.finditer(node.value))


def _wrong_values(values: Mapping[str, int]) -> Iterator[str]:
    """What the compiler says of the values; one that is no enumerator here says nothing."""
    lines = [f'static_assert((long long){name} == {value}LL, "value of {name}");' for name, value in values.items()]
    frameworks = ("Foundation", "Metal", "MetalPerformanceShaders", "MetalPerformanceShadersGraph")
    source = "\n".join((*(f"#import <{name}/{name}.h>" for name in frameworks), *lines))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.mm"
        file.write_text(source)
        flags = (*build.LANGUAGE, *build.include_flags(), "-ferror-limit=0", "-x", "objective-c++", "-fsyntax-only")
        done = subprocess.run([toolchain.clang(), *flags, str(file)], capture_output=True, text=True, check=False)
    errors = re.findall(r"error: (?:static assertion failed.*: )?(.*)", done.stderr)
    if done.returncode and not errors:
        sys.exit(f"the compiler ended with {done.returncode}:\n{done.stderr}")
    yield from errors


def _declared(headers: str) -> Iterator[tuple[str, frozenset[int]]]:
    """Every method with arguments, and the places that are BOOL: -1 is its result."""
    for match in METHOD.finditer(headers):
        parts = PART.findall(match["rest"])
        places = {i for i, (_, kind) in enumerate(parts) if kind.strip() == "BOOL"}
        result = {-1} if match["result"].strip() == "BOOL" else set()
        if parts:
            yield "".join(f"{name}:" for name, _ in parts), frozenset(places | result)


def _methods(module: ast.Module) -> Iterator[tuple[str, frozenset[int]]]:
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Call)
            and len(node.args) == 3
            and isinstance(node.func, ast.Name)
            and node.func.id == "r"
        ):
            try:
                _, selector, told = (ast.literal_eval(each) for each in node.args)
            except ValueError:  # a type that depends on the machine
                continue
            yield selector.decode(), frozenset(_bools(told))


def _bools(told: Mapping[str, Any]) -> Iterator[int]:
    if told.get("retval", {}).get("type") in _BOOL:
        yield -1
    yield from (i - _SKIPPED for i, each in told.get("arguments", {}).items() if each.get("type") in _BOOL)


if __name__ == "__main__":
    sys.exit(main())
