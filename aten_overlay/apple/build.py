"""Builds the stand-in for Apple's frameworks, and says how Objective-C++ is compiled against it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aten_overlay import cache, memory, toolchain

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
OLDER = HERE / "older"
_PARTS = ("runtime", "foundation", "metal_api", "mpsgraph")

# clang's objfw ABI: a message is a plain call of what objc_msg_lookup() answers, and classes are direct symbols.
LANGUAGE = ("-std=c++20", "-fblocks", "-fobjc-runtime=objfw-1.0", "-fexceptions")

# To optimize host code takes more than half of the time that a file takes, and most files run for one verdict alone. A
# launch takes 5% longer.
_UNOPTIMIZED = ("-O0", "-fPIC", "-fvisibility=default")
OBJECTIVE_CPP, CPP = "objective-c++", "c++"
_FIRST = {OBJECTIVE_CPP: "host.h", CPP: "registration.h"}  # what host code reads first
# As the wheel was built, without asserts: the stubs of DispatchStub.h have a slot for each of these CPU levels.
_DEFINES = (
    "-DNDEBUG", "-DUSE_MPS", "-DFMT_HEADER_ONLY=1", "-DFMT_USE_CONSTEVAL=0", "-DHAVE_AVX2_CPU_DEFINITION",
    "-DHAVE_AVX512_CPU_DEFINITION",
)  # fmt: skip


@toolchain.once
def build_frameworks() -> Path:
    """`libporter_apple.so`: Objective-C runtime, Foundation, dispatch, Metal and MPSGraph, without torch."""
    sources = [path for part in _PARTS for path in sorted((HERE / part).glob("*.cpp"))]
    sources += [path for part in _PARTS for path in sorted((HERE / part).glob("*.mm"))]
    flags = (*LANGUAGE, *include_flags(), "-I", str(HERE), "-I", str(HERE.parent))
    link = (*toolchain.link_with(memory.build_library()), "-ldl", "-lstdc++")
    first = {
        kind: ("-include-pch", str(toolchain.precompiled_header(HERE / "first.h", flags, kind, [INCLUDE])))
        for kind in (OBJECTIVE_CPP, CPP)
    }
    return toolchain.build("porter_apple", sources, flags, [INCLUDE], link=link, more=first)


def fork_include_flags(fork: Path) -> tuple[str, ...]:
    """Flags that put a fork's own MPS headers in front of the wheel's.

    `fork` holds what a fork has under `aten/src/ATen/mps`, `aten/src/ATen/native/mps` and `c10/metal`, and no other
    header: those come from the wheel that the result is linked with.
    """
    return ("-I", str(fork / "aten" / "src"), "-I", str(fork))


def general_flags() -> tuple[str, ...]:
    """Flags for any fork's host code: the frameworks' headers, then the wheel's."""
    torch = (flag for flag in toolchain.torch_flags() if not flag.startswith("-std="))
    return (*LANGUAGE, *_UNOPTIMIZED, *include_flags(), *torch, "-idirafter", str(OLDER), *_DEFINES, "-w")


def precompile_headers(kinds: Sequence[str] = (OBJECTIVE_CPP, CPP)) -> dict[str, tuple[str, ...]]:
    """What follows `general_flags`, by language: at the end the header that host code reads first, precompiled."""

    with ThreadPoolExecutor() as pool:
        headers = pool.map(_precompile, kinds)
        return {kind: ("-include-pch", str(header)) for kind, header in zip(kinds, headers, strict=True)}


@toolchain.once
def _precompile(kind: str) -> Path:
    flags = (*general_flags(), toolchain.SEPARATE)
    return toolchain.precompiled_header(HERE / _FIRST[kind], flags, kind, [INCLUDE, OLDER])


def build_headers(kinds: Sequence[str] = (OBJECTIVE_CPP, CPP)) -> tuple[Path, ...]:
    """`libporter_host.so` and others: the functions of the headers that host code reads first, which it is linked with.

    To compile them with each file takes half of the time that a file takes.
    """
    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(_build_functions, kinds))


@toolchain.once
def _build_functions(kind: str) -> Path:
    link = (*toolchain.torch_libraries(), *toolchain.link_with(build_frameworks()), "-lstdc++")
    return toolchain.build_precompiled(f"porter_{Path(_FIRST[kind]).stem}", _precompile(kind), link)


@functools.cache
def headers_digest() -> str:
    """A digest of every header of the frameworks."""
    return cache.digest(
        *(p.read_bytes() for folder in (INCLUDE, OLDER) for p in sorted(folder.rglob("*")) if p.is_file())
    )


def include_flags() -> tuple[str, ...]:
    """Flags that put the stand-in's framework headers in front, as system headers."""
    return ("-isystem", str(INCLUDE))
