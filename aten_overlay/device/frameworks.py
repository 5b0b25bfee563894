"""Loads the stand-in for Apple's frameworks into this process, and `at::mps` above it."""

from __future__ import annotations

import atexit
import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from aten_overlay.apple.build import build_frameworks
from aten_overlay.apple.compiler import Compiler
from aten_overlay.device import libraries
from aten_overlay.metal.build import Options
from aten_overlay.metal.launch import SHUFFLE_LANES
from aten_overlay.metal.sanitizer.checks import select
from aten_overlay.toolchain import torch_root

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import Recorder
    from aten_overlay.device.state import Device


@dataclass(frozen=True)
class LoadedFrameworks:
    """The frameworks as they stand in this process: their library, what compiles Metal, what evaluates MPSGraph."""

    library: ctypes.CDLL
    compiler: Compiler
    recorder: Recorder

    def watch_slices(self, device: Device) -> None:
        """From now on launches know the bytes that are a tensor's of each buffer that host code binds."""
        device.library.porter_watch_slices()
        self.library.porter_set_extents(device.library.porter_slice_extent)

    def kernel_calls(self) -> dict[str, int]:
        """Kernel calls of host code by host_name, since the start."""
        text = ctypes.create_string_buffer(self.library.porter_kernel_calls(None, 0))
        self.library.porter_kernel_calls(text, len(text))
        pairs = (line.rsplit(" ", 1) for line in text.value.decode().splitlines())
        return {name: int(count) for name, count in pairs}

    def shuffle_lanes(self, seed: int) -> None:
        """From now on lanes run in orders made of a seed, on one thread of the host."""
        self.library.porter_launch_options(SHUFFLE_LANES, ctypes.c_uint64(seed), 1)


_loaded: list[LoadedFrameworks] = []


def load(device: Device) -> LoadedFrameworks:
    """Loads the frameworks, so that host code finds their symbols. A second call returns the same."""
    if not _loaded:
        _loaded.append(_load_now(device))
    return _loaded[0]


def count_launches() -> int:
    """All kernel calls since the start, of Python and of host code."""
    from aten_overlay.device.shader import calls  # imports torch, which the device has to come before

    return sum(calls.values()) + sum(sum(frameworks.kernel_calls().values()) for frameworks in _loaded)


@cache  # pytest's plugin asks again in a process that has it: to see that the library is current reads every source
def load_mps(headers: Path | None = None) -> ctypes.CDLL:
    """Loads `at::mps` as these headers declare it, else as the wheel does: what torch::mps and extensions call.

    The frameworks have to be loaded. Raises as `libraries.build_mps` does.
    """
    return ctypes.CDLL(str(libraries.build_mps(headers)), mode=ctypes.RTLD_GLOBAL)


@cache
def load_native() -> ctypes.CDLL:
    """Loads `at::native::mps` for compiled extensions, above `load_mps()`. Host code of a fork brings its own.

    What they take of libtorch_python they find too, which on a Mac `-undefined dynamic_lookup` lets them do.
    Raises as `libraries.build_native` does.
    """
    ctypes.CDLL(str(torch_root() / "lib" / "libtorch_python.so"), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(libraries.build_native()), mode=ctypes.RTLD_GLOBAL)


def _load_now(device: Device) -> LoadedFrameworks:
    from aten_overlay.apple.mpsgraph.objects import Frameworks  # these import torch
    from aten_overlay.apple.mpsgraph.recorder import Recorder

    library = ctypes.CDLL(str(build_frameworks()), mode=ctypes.RTLD_GLOBAL)
    library.porter_kernel_calls.restype = ctypes.c_size_t
    library.porter_kernel_calls.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    # Host code of an extension compiles its own source: no fork's bundle says what to watch for.
    compiler = Compiler(library, Options(sanitize=select()))
    compiler.install()
    recorder = Recorder(Frameworks(library), device.host_address)
    recorder.install()
    frameworks = LoadedFrameworks(library, compiler, recorder)
    if compiler.options.sanitize:
        frameworks.watch_slices(device)
    if "races" in compiler.options.sanitize:
        library.porter_watch_order()
    if "uninitialized" in compiler.options.sanitize:
        library.porter_watch_writers()
    atexit.register(library.porter_run_late)  # what nobody waited for is watched and counted too
    return frameworks
