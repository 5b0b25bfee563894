"""A driver that records its calls, and a torch without a GPU: what launches do is tested without one."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import Any

import torch

from aten_overlay.cuda.driver import Driver
from aten_overlay.cuda.library import CudaLibrary
from aten_overlay.cuda.native import Launcher, load_module
from aten_overlay.metal.cuda.module import Entry, Parameter, PtxModule

FUNCTION, MODULE, VARIABLE = 0x1000, 0x2000, 0x3000
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)  # fmt: skip
_callbacks: list[Any] = []  # C keeps their addresses alone


@dataclass
class RecordingLibrary:
    """libcuda's functions as a driver calls them: `calls` are their names and what they got, in order.

    `statuses` has what calls answer, if not 0.
    """

    capability: tuple[int, int] = (9, 0)
    statuses: dict[str, list[int]] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    log: bytes = b""
    entries: list[str] = field(default_factory=list)
    in_c: int = 0
    memory: dict[int, bytes] = field(default_factory=dict)

    def _note(self, name: str, *what: Any) -> int:
        self.calls.append((name, *what))
        waiting = self.statuses.get(name, [])
        return waiting.pop(0) if waiting else 0

    def cuInit(self, flags: int) -> int:
        return self._note("cuInit", flags)

    def cuDeviceGet(self, device: Any, index: int) -> int:
        device._obj.value = index
        return self._note("cuDeviceGet", index)

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        value._obj.value = self.capability[attribute - 75]
        return self._note("cuDeviceGetAttribute", attribute, device.value)

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        context._obj.value = 0xC000 + device.value
        return self._note("cuDevicePrimaryCtxRetain", device.value)

    def cuCtxSetCurrent(self, context: Any) -> int:
        return self._note("cuCtxSetCurrent", context.value)

    def cuCtxSynchronize(self) -> int:
        return self._note("cuCtxSynchronize")

    def cuModuleLoadDataEx(self, module: Any, image: Any, count: int, options: Any, values: Any) -> int:
        module._obj.value = MODULE
        given = dict(zip(options, values, strict=True))
        ctypes.memmove(given[5], self.log + b"\0", len(self.log) + 1)
        return self._note("cuModuleLoadDataEx", image.value, {k: v for k, v in given.items() if k != 5})

    def cuModuleGetFunction(self, function: Any, module: Any, entry: bytes) -> int:
        self.entries.append(entry.decode())
        function._obj.value = FUNCTION + len(self.entries) - 1
        return self._note("cuModuleGetFunction", module.value, entry.decode())

    def cuModuleGetGlobal_v2(self, address: Any, size: Any, module: Any, name: bytes) -> int:
        address._obj.value = VARIABLE
        return self._note("cuModuleGetGlobal_v2", name.decode())

    def cuMemcpyHtoD_v2(self, address: Any, data: bytes, size: int) -> int:
        self.memory = {**self.memory, address.value: data}
        return self._note("cuMemcpyHtoD_v2", address.value, size)

    def cuMemcpyDtoH_v2(self, data: Any, address: Any, size: int) -> int:
        start = max(each for each in self.memory if each <= address.value)
        found = self.memory[start][address.value - start :][:size]
        ctypes.memmove(data, found, len(found))
        return self._note("cuMemcpyDtoH_v2", address.value, size)

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        return self._note("cuFuncSetAttribute", attribute, value)

    def cuGetErrorString(self, status: int, text: Any) -> int:
        text._obj.value = f"status of {status}".encode()
        return 0

    def cuLaunchKernel(self, function: Any, *given: Any) -> int:
        *sizes, dynamic, stream, parameters, extra = given
        assert extra is None
        data = ctypes.string_at(parameters[0], parameters[len(parameters) - 1] - parameters[0] + 16)
        entry = self.entries[function.value - FUNCTION]
        return self._note("cuLaunchKernel", entry, tuple(sizes), dynamic, stream.value, data)

    def launch_in_c(self, function: int, *given: Any) -> int:
        """What the launcher in C calls, in the place of `cuLaunchKernel`."""
        *sizes, dynamic, stream, parameters, extra = given
        assert extra is None
        addresses = list(takewhile(bool, (parameters[i] for i in count())))
        data = ctypes.string_at(addresses[0], addresses[-1] - addresses[0] + 16)
        self.in_c += 1
        return self._note("cuLaunchKernel", self.entries[function - FUNCTION], tuple(sizes), dynamic, stream, data)

    @property
    def launches(self) -> list[tuple[Any, ...]]:
        """The launches alone: entry, blocks and threads, dynamic bytes, stream, parameters."""
        return [call[1:] for call in self.calls if call[0] == "cuLaunchKernel"]


@dataclass
class RecordingTorch:
    """Torch's side without a GPU. `uploads` are the bytes that went to a device."""

    device: int = 0
    stream: int = 0x7F0000000001
    capturing: bool = False
    uploads: list[tuple[bytes, int]] = field(default_factory=list)

    @property
    def tensor_types(self) -> tuple[type, ...]:
        return (OnDevice,)

    def current_device(self) -> int:
        return self.device

    def current_stream(self, device: int) -> int:
        return self.stream + device

    def is_capturing(self) -> bool:
        return self.capturing

    def upload(self, data: bytes, device: int) -> torch.Tensor:
        self.uploads.append((data, device))
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)


class OnDevice(torch.Tensor):
    """A CPU tensor that says that it lies on a CUDA device."""

    place = 0

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    def get_device(self) -> int:
        return self.place


def on_device(tensor: torch.Tensor, index: int = 0) -> OnDevice:
    """A tensor that says that it lies on that device."""
    made = tensor.as_subclass(OnDevice)
    made.place = index
    return made


def make_entry(name: str, *parameters: Parameter, forms: Sequence[str] = ("grid", "flat", "several")) -> Entry:
    """A kernel with these parameters and forms, of up to 1024 threads."""
    return Entry(name, {form: f"{name}_{form}" for form in forms}, 4, parameters, 1024, 0, False)


def make_buffer(name: str, index: int, writable: bool = True) -> Parameter:
    """A pointer."""
    return Parameter(name, "buffer", index, 8, 8, 4, 4, writable)


def make_constant(name: str, index: int, size: int = 4) -> Parameter:
    """A reference, whose value is passed."""
    return Parameter(name, "constant", index, size, min(size, 16), size, min(size, 16), False)


def make_shared(name: str, index: int) -> Parameter:
    """Threadgroup memory whose length is the launch's."""
    return Parameter(name, "threadgroup", index, 4, 4, 4, 4, True)


@dataclass
class Bench:
    """A library, what records its driver's calls, and its torch. `variants` are those that were compiled."""

    library: CudaLibrary
    recorder: RecordingLibrary
    side: RecordingTorch
    variants: list[tuple[str, tuple[int, ...]]]


def make_launcher(recorder: RecordingLibrary) -> Launcher:
    """The launcher in C, whose launches are recorded."""
    _callbacks.append(LAUNCH(recorder.launch_in_c))
    address = ctypes.cast(_callbacks[-1], ctypes.c_void_p).value
    assert address
    return Launcher(load_module(), address)


def make_bench(entry: Entry, restrict: bool = True, in_c: bool = False, **recorded: Any) -> Bench:
    """A library with one kernel, and what records its calls. Launches go through the launcher `in_c`, or ctypes."""
    recorder, side, variants = RecordingLibrary(**recorded), RecordingTorch(), []
    launcher = make_launcher(recorder) if in_c else None

    def compile_variant(name: str, by_address: tuple[int, ...]) -> PtxModule:
        variants.append((name, by_address))
        changed = [
            replace(p, kind="buffer", size=8, alignment=8) if p.index in by_address else p for p in entry.parameters
        ]
        return PtxModule(".variant", {name: replace(entry, parameters=tuple(changed))})

    module = PtxModule(".version 8.0", {entry.name: entry})
    return Bench(
        CudaLibrary(module, compile_variant, Driver(recorder, launcher), side, restrict), recorder, side, variants
    )


def grid_of(parameters: bytes) -> tuple[int, ...]:
    """The grid and the group that a launch passes."""
    return struct.unpack_from("<6I", parameters)
