"""The CUDA driver by ctypes: no toolkit, and nothing of torch. A test puts a recorder in the place of the library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from aten_overlay.cuda.native import Launcher, find_launcher
from aten_overlay.errors import OverlayError

LIBRARY = "libcuda.so.1"
OLDEST = (8, 0)  # mma of bfloat and tf32, and what PTX here is compiled for
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_OUT_OF_MEMORY = 2
_NO_CONTEXT = 201
# What a kernel may have done to its context; none of its memory can be used after that.
_FAULTS = (700, 714, 715, 716, 717, 718, 719)
_INVALID_PTX = (200, 209, 218, 221, 222, 223)
_ERROR_LOG, _ERROR_LOG_SIZE, _LINE_INFO = 5, 6, 13  # CU_JIT_*
_LOG_BYTES = 8192
_DYNAMIC_BYTES = 8  # CU_FUNC_ATTRIBUTE_*


class Driver:
    """The calls of the driver that kernels need. `library` is libcuda, or a recorder of calls.

    `launcher`, where there is one, launches in the place of ctypes.
    """

    def __init__(self, library: Any, launcher: Launcher | None = None) -> None:
        self.library, self.launcher = library, launcher
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self._check("cuInit", library.cuInit(0))

    def require_device(self, index: int) -> None:
        """Raises PTR385 for a device that is not there, PTR386 for one that is too old."""
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        if self.library.cuDeviceGet(ctypes.byref(device), index):
            raise OverlayError("PTR385", f"there is no CUDA device {index}", hint=_NO_DEVICE)
        for attribute, value in ((_MAJOR, major), (_MINOR, minor)):
            status = self.library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            self._check("cuDeviceGetAttribute", status)
        found = (major.value, minor.value)
        if found < OLDEST:
            what = f"CUDA device {index} is an sm_{found[0]}{found[1]}; kernels need sm_{OLDEST[0]}{OLDEST[1]} or newer"
            raise OverlayError("PTR386", what, hint="Use an Ampere GPU or a newer one.")

    def enter(self, index: int) -> None:
        """Makes the primary context of a device, torch's own, the current one of this thread."""
        context = self._contexts.get(index)
        if context is None:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self._check("cuDeviceGet", self.library.cuDeviceGet(ctypes.byref(device), index))
            self._check(
                "cuDevicePrimaryCtxRetain", self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
            )
            self._contexts[index] = context
        self._check("cuCtxSetCurrent", self.library.cuCtxSetCurrent(context))

    def load_module(self, ptx: bytes) -> ctypes.c_void_p:
        """A module of PTX, in the current context. Raises PTR387 with what the driver says of PTX that it refuses."""
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 3)(_ERROR_LOG, _ERROR_LOG_SIZE, _LINE_INFO)
        values = (ctypes.c_void_p * 3)(ctypes.addressof(log), _LOG_BYTES, 1)
        image = ctypes.c_char_p(ptx + b"\0")
        status = self.library.cuModuleLoadDataEx(ctypes.byref(module), image, len(options), options, values)
        if status in _INVALID_PTX:
            said = " ".join(log.value.decode(errors="replace").split()) or self.describe(status)
            what = f"the driver refuses the PTX: {said}"
            raise OverlayError("PTR387", what, hint="Update the driver, or compile for an older PTX.")
        self._check("cuModuleLoadDataEx", status)
        return module

    def find_function(self, module: ctypes.c_void_p, entry: str) -> ctypes.c_void_p:
        """An entry of a module."""
        function = ctypes.c_void_p()
        status = self.library.cuModuleGetFunction(ctypes.byref(function), module, entry.encode())
        self._check(f"cuModuleGetFunction({entry})", status)
        return function

    def allow_dynamic(self, function: ctypes.c_void_p, size: int) -> None:
        """Lets launches of an entry have that many bytes of threadgroup memory beside what it declares."""
        self._check("cuFuncSetAttribute", self.library.cuFuncSetAttribute(function, _DYNAMIC_BYTES, size))

    def find_variable(self, module: ctypes.c_void_p, name: str) -> int:
        """The address of a module's variable."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        status = self.library.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, name.encode())
        self._check(f"cuModuleGetGlobal({name})", status)
        return address.value

    def write(self, address: int, data: bytes) -> None:
        """Writes bytes to the current context's memory."""
        self._check("cuMemcpyHtoD", self.library.cuMemcpyHtoD_v2(ctypes.c_uint64(address), data, len(data)))

    def read(self, address: int, size: int) -> bytes:
        """Reads bytes of the current context's memory."""
        data = ctypes.create_string_buffer(size)
        self._check("cuMemcpyDtoH", self.library.cuMemcpyDtoH_v2(data, ctypes.c_uint64(address), size))
        return data.raw

    def synchronize(self) -> None:
        """Waits for the current context, and raises what its kernels did: PTR390 for a fault."""
        self._check("cuCtxSynchronize", self.library.cuCtxSynchronize())

    def refuse_launch(self, name: str, status: int) -> None:
        """Raises what a status of `cuLaunchKernel` means."""
        self._check(f"a launch of `{name}`", status)

    def describe(self, status: int) -> str:
        """The driver's words for a status."""
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(status, ctypes.byref(text))
        return f"{text.value.decode() if text.value else 'unknown error'} ({status})"

    def _check(self, call: str, status: int) -> None:
        if not status:
            return
        what = f"{call}: {self.describe(status)}"
        if status == _OUT_OF_MEMORY:
            raise OverlayError(
                "PTR389", f"the GPU has no memory left: {what}", hint="Free tensors, or use smaller ones."
            )
        if status in _FAULTS:
            raise OverlayError("PTR390", f"a kernel faulted: {what}", hint=_FAULTED)
        if call == "cuInit":
            raise OverlayError("PTR385", f"the CUDA driver does not start: {what}", hint=_NO_DEVICE)
        raise OverlayError("PTR390", f"the CUDA driver refuses {what}", hint=_REFUSED)


class Block:
    """The parameters of an entry as the driver takes them: numbers set once, addresses by every launch.

    `offsets` are where each lies in the block; the driver asks for their addresses alone.
    """

    def __init__(self, offsets: Sequence[int], size: int) -> None:
        self.spare = -(-size // 8)  # a word that is no parameter's
        self.data = ctypes.create_string_buffer(8 * self.spare + 16)
        self.words = memoryview(self.data).cast("B").cast("Q")
        self.offsets = tuple(offsets)
        start = ctypes.addressof(self.data)
        self.addresses = (ctypes.c_void_p * len(offsets))(*(start + offset for offset in offsets))

    def put(self, at: int, data: bytes) -> None:
        """Writes bytes at an offset."""
        memoryview(self.data).cast("B")[at : at + len(data)] = data


@lru_cache(maxsize=256)
def as_pointer(handle: int) -> ctypes.c_void_p:
    """A handle as ctypes passes it, without declared types, with which a call takes eight times as long."""
    return ctypes.c_void_p(handle)


def lost_context(status: int) -> bool:
    """Whether a launch failed for want of a context in its thread."""
    return status == _NO_CONTEXT


@lru_cache(maxsize=1)
def find_driver() -> Driver:
    """This machine's CUDA driver. Raises PTR385 without one."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise OverlayError("PTR385", f"there is no CUDA driver: {error}", hint=_NO_DEVICE) from None
    return Driver(library, find_launcher(library))


def available() -> bool:
    """Whether this machine has a CUDA driver with a device."""
    try:
        find_driver().require_device(0)
    except OverlayError:
        return False
    return True


_NO_DEVICE = "Run on a machine with an NVIDIA GPU and its driver; everything else runs on the host."
_FAULTED = "Nothing on the GPU can be used in this process any more; run it under compute-sanitizer to find the access."
_REFUSED = "Check the size of the threadgroup and of its memory."
