"""Brings the mps device up in this process: builds the libraries, loads them in order, proves that torch uses them."""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

from aten_overlay import memory, toolchain
from aten_overlay.device import libraries
from aten_overlay.device.state import Device
from aten_overlay.errors import OverlayError

EMBEDDED_FORK = Path(__file__).resolve().parent.parent / "fork"

# Internal symbols that preload.cpp supplies: libtorch_cpu has to define each, or nobody would call ours.
SYMBOLS = (
    "_ZN2at6native16DispatchStubImpl12get_call_ptrEN3c1010DeviceTypeEPvS4_S4_",
    "_ZN2at6native16DispatchStubImpl16try_get_call_ptrEN3c1010DeviceTypeEPvS4_S4_",
    "_ZN2at11accelerator14getAcceleratorEb",
)


_started: list[Device] = []


def start(fork: Path | None = None) -> Device:
    """Makes `torch.device("mps")` work in this process, which must not have imported torch yet.

    A second call returns the same device.

    `fork` is the checkout whose `c10/metal` headers shaders include: the embedded one unless given.
    Raises PTR140 (torch came first), PTR141 (no torch, or one without a symbol), PTR100 or PTR142-PTR144
    (cannot be built), PTR145 (not a machine for it) or PTR146 (torch does not use the device).
    """
    if not _started:
        _refuse_wrong_process()
        _started.append(_bring_up(fork or EMBEDDED_FORK))
    return _started[0]


def started() -> Device | None:
    """The device, if it is up."""
    return _started[0] if _started else None


def _refuse_wrong_process() -> None:
    if not sys.platform.startswith("linux"):
        raise OverlayError(
            "PTR145", f"the stand-in device needs Linux, not {sys.platform}", hint="On a Mac, use --backend mps."
        )
    if "torch" in sys.modules:
        raise OverlayError(
            "PTR140",
            "torch is already imported, so its symbols cannot be replaced",
            hint="Call aten_overlay.start() first, or run the program with python -m aten_overlay.",
        )


def check_symbols(library: Path) -> None:
    """Raises PTR141 if `library` lacks a symbol that the stand-in replaces."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        missing = [name for name in SYMBOLS if data.find(b"\0" + name.encode() + b"\0") < 0]
    if missing:
        raise OverlayError(
            "PTR141",
            f"torch {toolchain.torch_version()} does not define {', '.join(missing)}",
            hint="Install torch 2.13 or the newest release.",
        )


def _bring_up(fork: Path) -> Device:
    check_symbols(toolchain.torch_root() / "lib" / "libtorch_cpu.so")
    built = (memory.build_library(), libraries.build_preload(), libraries.build_device())
    device_memory, preload = (ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) for path in built[:2])
    import torch

    _refuse_real_device(torch.backends.mps.is_built())
    library = ctypes.CDLL(str(built[2]), mode=ctypes.RTLD_GLOBAL)
    device = Device(fork, _declare_types(device_memory), preload, _declare_types(library))
    ctypes.c_int.in_dll(preload, "porter_device_ready").value = 1
    from aten_overlay.device import bindings, packages

    bindings.install(device)
    packages.serve(device)
    _prove(preload)
    return device


def _refuse_real_device(built: bool) -> None:
    if built:
        raise OverlayError("PTR145", "this torch already has an mps device", hint="Use it with --backend mps.")


def _declare_types(library: ctypes.CDLL) -> ctypes.CDLL:
    """Declares the C types of a library's functions."""
    if hasattr(library, "porter_fallback_counts"):
        library.porter_fallback_counts.restype = ctypes.c_size_t
        library.porter_fallback_counts.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.porter_host_address.restype = ctypes.c_void_p
    library.porter_host_address.argtypes = [ctypes.c_void_p]
    library.porter_memory_extents.restype = ctypes.POINTER(ctypes.c_uint64)
    library.porter_memory_overruns.restype = ctypes.c_uint64
    return library


def _prove(preload: ctypes.CDLL) -> None:
    """Raises PTR146 unless torch's own look-ups come through the preloaded library and name mps its accelerator."""
    import torch

    lookups = ctypes.c_ulong.in_dll(preload, "porter_stub_lookups")
    before = lookups.value
    torch.ones(1).add(1)
    accelerator = torch.accelerator.current_accelerator()
    if lookups.value == before:
        raise OverlayError("PTR146", "torch does not call the replaced stub lookup", hint=_UNKNOWN_BUILD)
    if accelerator is None or accelerator.type != "mps":
        raise OverlayError("PTR146", f"torch's accelerator is {accelerator}, not mps", hint=_UNKNOWN_BUILD)


_UNKNOWN_BUILD = "This build of torch binds its symbols internally. Install an official torch wheel."
