"""What Python expects of `torch._C` in a build with MPS and a Linux wheel lacks."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from aten_overlay.cuda.seed import read_seed
from aten_overlay.device import metallib, shader
from aten_overlay.errors import OverlayError

if TYPE_CHECKING:
    from aten_overlay.device.state import Device

_NAME = "porter stand-in"
_CORES = 8
_DEVICE_TYPE = 13  # c10::DeviceType::MPS


def install(device: Device) -> None:
    """Adds the missing entries, then lets the modules that were made without them see the device."""
    torch._C._has_mps = True
    torch.has_mps = True
    for name, value in {**_properties(), **_capture(), **_shaders(device), **_streams()}.items():
        if not hasattr(torch._C, name):
            setattr(torch._C, name, value)
    for cached in ("is_built", "is_available", "is_macos_or_newer", "get_name", "get_core_count"):
        getattr(getattr(torch.backends.mps, cached, None), "cache_clear", lambda: None)()
    _rebuild_streams()
    _patch_storage(device)


def _properties() -> Mapping[str, Callable[..., Any]]:
    return {"_mps_get_name": lambda: _NAME, "_mps_get_core_count": lambda: _CORES}


def _capture() -> Mapping[str, Callable[..., Any]]:
    """Metal captures: there is nothing to capture, which PyTorch says too where captures are not enabled."""

    def refuse(*_: object) -> None:
        error = OverlayError(
            "PTR188",
            "the stand-in device runs kernels on the CPU, so there is no GPU trace to capture",
            hint="Ask torch.mps.profiler.is_metal_capture_enabled() first; torch.profiler records operators here too.",
        )
        raise RuntimeError(f"Failed to start capture: {error}") from error

    return {
        "_mps_isCaptureEnabled": lambda: False,
        "_mps_isCapturing": lambda: False,
        "_mps_startCapture": refuse,
        "_mps_stopCapture": lambda: None,
    }


def _shaders(device: Device) -> Mapping[str, Any]:
    return {
        "_mps_compileShader": lambda source: shader.ShaderLibrary(source, device, shuffle=read_seed()),
        "_mps_loadMetalllib": lambda data: metallib.load_from_bytes(data, device),
        "_mps_loadMetallibFromPath": lambda path: metallib.load_from_path(path, device),
        "_mps_ShaderLibrary": shader.ShaderLibrary,
        "_mps_MetalKernel": shader.MetalKernel,
    }


class _MPSStream(torch.Stream):
    """A stream of the device, for wheels whose `torch.mps.Stream` derives from a class of the MPS build.

    It is the stream `stream_id`, else the next one of the pool.
    """

    def __new__(cls, *, stream_id: int | None = None, **_: object) -> _MPSStream:
        if stream_id is None:
            stream_id = torch.Stream(device="mps").stream_id
        return super().__new__(cls, stream_id=stream_id, device_index=0, device_type=_DEVICE_TYPE)


def _streams() -> Mapping[str, Any]:
    return {
        "_MPSStreamBase": _MPSStream,
        "_mps_getCurrentStream": lambda: _MPSStream(stream_id=torch.accelerator.current_stream().stream_id),
        "_mps_setStream": torch.accelerator.set_stream,
        "_mps_allocator_waitForEvents": lambda addresses: True,
    }


def _rebuild_streams() -> None:
    """Newer wheels made `torch.mps.Stream` on a dummy base during `import torch`."""
    if "torch.mps.streams" not in sys.modules:
        return
    torch._C._MPSStreamBase = _MPSStream
    rebuilt = importlib.reload(sys.modules["torch.mps.streams"])
    for name in rebuilt.__all__:
        setattr(torch.mps, name, getattr(rebuilt, name))


def _patch_storage(device: Device) -> None:
    """`torch.UntypedStorage(n, device="mps")` and what uses it: torch.load, storage.mps(), host aliases."""
    plain_new = torch.UntypedStorage.__new__

    def new(cls: type[torch.UntypedStorage], *args: Any, **kwargs: Any) -> torch.UntypedStorage:
        where = kwargs.get("device")
        if where is None or torch.device(where).type != "mps" or cls is not torch.UntypedStorage:
            return plain_new(cls, *args, **kwargs)
        return _storage(*args)

    def to_mps(self: torch.UntypedStorage) -> torch.UntypedStorage:
        return self if self.device.type == "mps" else _storage(self.nbytes()).copy_(self, False)

    torch.UntypedStorage.__new__ = new  # type: ignore[method-assign, assignment]
    torch.UntypedStorage.mps = to_mps  # type: ignore[method-assign, assignment]
    if not hasattr(torch._C, "_mps_host_alias_storage"):
        torch._C._mps_host_alias_storage = lambda storage: shader.host_alias(storage, device)


def _storage(size: int | list[int] = 0) -> torch.UntypedStorage:
    if isinstance(size, int):
        return torch.empty(size, dtype=torch.uint8, device="mps").untyped_storage()
    return torch.tensor(size, dtype=torch.uint8).to("mps").untyped_storage()
