"""Finds libdevice.10.bc, CUDA's mathematical functions as bitcode, and ptxas: in wheels, else in a toolkit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from aten_overlay import cache
from aten_overlay.errors import OverlayError

_LIBRARY, _ASSEMBLER = "libdevice.10.bc", "ptxas"
# Where packages have them: triton's wheel, and NVIDIA's of the compiler. Both are namespace packages or plain ones.
_IN_PACKAGES = {
    _LIBRARY: (
        ("triton", "backends/nvidia/lib"),
        ("nvidia", "cuda_nvcc/nvvm/libdevice"),
        ("nvidia", "cu13/nvvm/libdevice"),
    ),
    _ASSEMBLER: (("triton", "backends/nvidia/bin"), ("nvidia", "cuda_nvcc/bin"), ("nvidia", "cu13/bin")),
}
_IN_TOOLKITS = {_LIBRARY: "nvvm/libdevice", _ASSEMBLER: "bin"}


@lru_cache(maxsize=1)
def find_libdevice() -> Path:
    """The path of libdevice.10.bc. Raises PTR380."""
    found = _find(_LIBRARY)
    if found is None:
        raise OverlayError(
            "PTR380",
            f"{_LIBRARY} was not found: Metal's mathematical functions on an NVIDIA GPU are made of it",
            hint="Install a package that has it (pip install nvidia-cuda-nvcc-cu12, or triton), or set $CUDA_HOME.",
        )
    return found


@lru_cache(maxsize=1)
def libdevice_digest() -> str:
    """A hash of the library that kernels are compiled with."""
    return cache.digest(find_libdevice().read_bytes())


@lru_cache(maxsize=1)
def find_assembler() -> str | None:
    """The path of ptxas, which checks PTX; None where there is none."""
    found = _find(_ASSEMBLER)
    return str(found) if found else shutil.which(_ASSEMBLER)


def _find(name: str) -> Path | None:
    return next((folder / name for folder in _folders(name) if (folder / name).is_file()), None)


def _folders(name: str) -> Iterator[Path]:
    for package, folder in _IN_PACKAGES[name]:
        spec = find_spec(package)
        for root in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(root) / folder
    homes = [os.environ[key] for key in ("CUDA_HOME", "CUDA_PATH") if key in os.environ]
    for home in (*map(Path, homes), *sorted(Path("/usr/local").glob("cuda*"), reverse=True)):
        yield home / _IN_TOOLKITS[name]
