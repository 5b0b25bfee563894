"""Generated source on CUDA devices: compiled to PTX once, and launched in torch's current stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeAlias

from aten_overlay.cuda.compile import SCHEDULED, compile_kernels
from aten_overlay.cuda.library import CudaLibrary, compile_shader
from aten_overlay.cuda.schedule import ScheduledLibrary, compile_scheduled
from aten_overlay.errors import OverlayError
from porter.core.errors import Place, PorterError
from porter.core.setting import setting

_COMPILES = ("PTR101", "PTR102", "PTR103", "PTR104", "PTR105", "PTR108", "PTR109")
# Gets the source of each call of a block.
Collector: TypeAlias = Callable[[str], None]
_collector: ContextVar[Collector | None] = ContextVar("collector", default=None)


@lru_cache(maxsize=256)
def compiled(source: str) -> CudaLibrary:
    """The library that `source` compiles to. Raises PTR219 with the compiler's message, and PTR380-PTR391."""
    with raising():
        return compile_shader(source)


@lru_cache(maxsize=256)
def compiled_in_order(source: str, seed: int) -> ScheduledLibrary:
    """The same, whose calls run in orders made of a seed. Raises the same."""
    with raising():
        return compile_scheduled(source, seed)


@contextmanager
def raising() -> Iterator[None]:
    """Converts what the launcher and the compiler raise."""
    try:
        yield
    except OverlayError as error:
        raise convert(error) from error


def convert(error: OverlayError) -> PorterError:
    """The same error as porter's own; PTR219 for source that does not compile."""
    place = Place(error.place.file, error.place.line) if error.place else None
    if error.code in _COMPILES:
        what = error.what.removeprefix("the Metal source does not compile: ")
        return PorterError("PTR219", f"the kernel does not compile: {what}", place, error.hint)
    return PorterError(error.code, error.what, place, error.hint)


@contextmanager
def compiling_ahead() -> Iterator[list[str]]:
    """Compiles the kernels that a block calls with CPU tensors to PTX, and runs none: their results are zeros.

    Gives the list of the sources, which grows. The PTX lies in the cache afterwards.
    """
    sources: list[str] = []

    def collect(source: str) -> None:
        if source not in sources:
            with raising():
                compile_kernels(source)
                compile_kernels(source, cuda=SCHEDULED)
            sources.append(source)

    with setting(_collector, collect):
        yield sources


def find_collector() -> Collector | None:
    """What takes the sources of calls instead of a device, if anything does."""
    return _collector.get()
