"""Metal source to PTX: found in the store, or compiled with this machine's clang and kept there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from aten_overlay.cuda import store
from aten_overlay.errors import OverlayError
from aten_overlay.metal import compiler
from aten_overlay.metal.build import DEFAULT, Options, host_names
from aten_overlay.metal.cuda.compile import compile_ptx
from aten_overlay.metal.cuda.module import PtxModule
from aten_overlay.metal.cuda.target import GRID, CudaOptions

# Lines change no code, and tell compute-sanitizer where an access stands.
PLAIN = CudaOptions(lines=True)
SCHEDULED = replace(PLAIN, scheduled=True, forms=(GRID,))
# The names of the kernels to compile, of all that a source has.
Choose: TypeAlias = Callable[[Sequence[str]], Sequence[str]]


def compile_kernels(
    source: Path | str, names: Sequence[str] | None = None, options: Options = DEFAULT, cuda: CudaOptions = PLAIN
) -> PtxModule:
    """The kernels `names` of a source as PTX, or all. Raises PTR391 without a compiler, and what compiling raises."""
    asked = ("all",) if names is None else ("named", *names)
    return _find_or_compile(source, asked, lambda every: every if names is None else names, options, cuda)


def compile_family(source: Path | str, prefix: str, options: Options = DEFAULT, cuda: CudaOptions = PLAIN) -> PtxModule:
    """The kernels of a source whose names begin alike; without entries if there are none. Raises as above."""
    asked = ("prefix", prefix)
    return _find_or_compile(source, asked, lambda every: [n for n in every if n.startswith(prefix)], options, cuda)


def _find_or_compile(
    source: Path | str, asked: Sequence[str], choose: Choose, options: Options, cuda: CudaOptions
) -> PtxModule:
    key = store.find_key(source, options.include, repr(replace(options, include=())), repr(cuda), *asked)
    found = store.find(key)
    if found is not None:
        return found
    _require_compiler(source)
    names = choose(host_names(source, options))
    return store.keep(key, compile_ptx(source, names, options, cuda) if names else PtxModule("", {}))


def _require_compiler(source: Path | str) -> None:
    try:
        compiler.find_clang()
    except OverlayError as error:
        name = source.name if isinstance(source, Path) else "this source"
        raise OverlayError(
            "PTR391",
            f"{name} is not in the store of PTX, and {error.what}",
            hint="Compile it on a machine with clang, and name a copy of its cache with $PORTER_CACHE.",
        ) from error
