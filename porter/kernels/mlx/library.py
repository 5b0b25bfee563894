"""What MLX itself puts before each kernel: functions and types of its Metal headers, which its package brings."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from porter.core import files
from porter.kernels.kernel import Kernel, Library
from porter.kernels.signature import HELPERS, words

_ENTRY = "mlx/backend/metal/kernels/utils.h"
_INCLUDE = re.compile(r'^#include "(mlx/[\w./]+)"$')
# What a line of a header declares: a class, a macro, an alias or a function.
_DECLARED = re.compile(
    r"^(?:struct|class|#define)\s+(\w+)|^using (\w+) =|^typedef [\w ]+ (\w+);"
    r"|^(?:inline|METAL_FUNC) [\w<>, ]+?\s(\w+)\(",
    re.M,
)
_COMPLEX = (("float2", "complex64_t"),)  # as porter's kernels pass it, and as MLX does


def find_library(package: Path, kernel: Kernel, has_complex: bool) -> Library | None:
    """MLX's headers of `package`, if the kernel has complex numbers or uses what these alone declare.

    Most kernels do not, and compile sooner without them.
    """
    library = _read(package / "include")
    if library is None:
        return None
    return library if has_complex or (words(kernel.body) | words(kernel.header)) & _names(library.text) else None


@lru_cache
def _read(folder: Path) -> Library | None:
    seen = set[str]()

    def read(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        lines = files.read_regular(folder / name).decode().splitlines()
        return "".join(
            read(include[1]) if (include := _INCLUDE.match(line)) else f"{line}\n"
            for line in lines
            if line.strip() != "#pragma once"
        )

    return Library(read(_ENTRY), _COMPLEX) if (folder / _ENTRY).is_file() else None


@lru_cache
def _names(text: str) -> frozenset[str]:
    return frozenset(name for names in _DECLARED.findall(text) for name in names if name) - HELPERS
