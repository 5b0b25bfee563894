"""What the installed wheel's MPS headers declare is there to be linked with: newer wheels and forks ask for more."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from clang.cindex import AccessSpecifier, Cursor, CursorKind, Diagnostic, Index

from aten_overlay import toolchain
from aten_overlay.apple import build
from aten_overlay.device import libraries
from aten_overlay.errors import OverlayError

INCLUDE = toolchain.torch_root() / "include"
FOLDERS = ("ATen/mps", "ATen/native/mps")
# Headers that nothing may include, and the code that says so.
ABSENT_HEADERS = {"ATen/mps/MPSAllocator.h": "PTR148"}
SCOPES = {CursorKind.NAMESPACE, CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.LINKAGE_SPEC}
NAMED = {
    CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR, CursorKind.DESTRUCTOR, CursorKind.VAR_DECL,
}  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """A function or variable that a header declares and does not define, by the name that the linker sees."""

    symbol: str
    name: str
    header: str


def is_called_from_outside(cursor: Cursor) -> bool:
    return (
        cursor.kind in NAMED
        and cursor.access_specifier != AccessSpecifier.PRIVATE
        and not cursor.is_definition()
        and not cursor.is_pure_virtual_method()
        and not cursor.is_deleted_method()
        and not cursor.is_default_method()
    )


def list_declared(parent: Cursor) -> list[Declared]:
    listed = []
    for cursor in parent.get_children():
        file = cursor.location.file
        header = Path(file.name).relative_to(INCLUDE) if file and Path(file.name).is_relative_to(INCLUDE) else None
        if header is None or str(header.parent) not in FOLDERS:
            continue
        if cursor.kind in SCOPES:
            listed += list_declared(cursor)
        elif is_called_from_outside(cursor):
            listed.append(Declared(cursor.mangled_name, cursor.displayname, str(header)))
    return listed


@pytest.fixture(scope="module")
def declared() -> list[Declared]:
    headers = [str(path.relative_to(INCLUDE)) for folder in FOLDERS for path in sorted((INCLUDE / folder).glob("*.h"))]
    source = "".join(f"#include <{header}>\n" for header in headers if header not in ABSENT_HEADERS)
    folder = subprocess.run([toolchain.clang(), "-print-resource-dir"], capture_output=True, text=True, check=True)
    flags = ["-x", "objective-c++", *build.general_flags(), "-resource-dir", folder.stdout.strip()]
    unit = Index.create().parse("declared.mm", args=flags, unsaved_files=[("declared.mm", source)])
    assert [str(d) for d in unit.diagnostics if d.severity >= Diagnostic.Error] == []
    return list_declared(unit.cursor)


def find_undefined(symbols: list[str], folder: Path) -> set[str]:
    """The symbols that no library of the stand-in defines."""
    source = folder / "asks.cpp"
    asked = "".join(f"  extern char {symbol}; asked({symbol});\n" for symbol in symbols)
    source.write_text('extern "C" {\nvoid asked(char&) {}\nvoid ask() {\n' + asked + "}\n}\n")
    answering = (
        libraries.build_native(), libraries.build_mps(None), libraries.build_device(), build.build_frameworks(),
    )  # fmt: skip
    flags = (flag for library in answering for flag in toolchain.link_with(library))
    link = ("-shared", "-fPIC", "-Wl,-z,defs", *toolchain.torch_libraries(), *flags, "-lstdc++")
    command = [toolchain.clang(), str(source), "-w", "-Wl,--no-demangle", *link, "-o", str(folder / "asks.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    undefined = set(re.findall(r"undefined reference to [`'](\w+)'", done.stderr))
    assert bool(undefined) == bool(done.returncode), done.stderr
    return undefined


def test_everything_that_is_declared_is_defined(declared: list[Declared], tmp_path: Path) -> None:
    names = {each.name.partition("(")[0] for each in declared}
    assert {
        "is_available",
        "GetMPSAllocator",
        "checkLastError",
        "acquireEvent",
        "StartTrace",
        "record",
        "runMPSGraph",
    } <= names
    undefined = find_undefined([each.symbol for each in declared], tmp_path)
    assert [f"{each.header}: {each.name}" for each in declared if each.symbol in undefined] == []


def test_an_undefined_function_would_be_named(tmp_path: Path) -> None:
    assert find_undefined(["_ZN2at3mps19getDefaultMPSStreamEv", "_ZN2at3mps6absentEv"], tmp_path) == {
        "_ZN2at3mps6absentEv"
    }


@pytest.mark.parametrize(("header", "code"), ABSENT_HEADERS.items())
def test_an_absent_header_says_so(header: str, code: str, tmp_path: Path) -> None:
    source = tmp_path / "includes.mm"
    source.write_text(f"#include <{header}>\n")
    with pytest.raises(OverlayError, match=code):
        toolchain.build("porter_includes", [source], build.general_flags())
