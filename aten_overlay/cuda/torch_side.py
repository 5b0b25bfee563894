"""What launches need of torch: the current device and stream, memory for constants, whether a graph is captured."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from aten_overlay.errors import OverlayError


class TorchSide(Protocol):
    """Torch's CUDA as launches see it. A test has another one: it runs without a GPU."""

    @property
    def tensor_types(self) -> tuple[type, ...]:
        """The types whose methods are a tensor's own."""

    def current_device(self) -> int:
        """The device whose context is current in this thread."""

    def current_stream(self, device: int) -> int:
        """The handle of torch's current stream on a device."""

    def is_capturing(self) -> bool:
        """Whether the current stream is captured into a graph."""

    def upload(self, data: bytes, device: int) -> Any:
        """A tensor of these bytes on a device; they are there for all that is launched from now on."""


class Torch:
    """The installed torch."""

    tensor_types = (torch.Tensor, torch.nn.Parameter)

    def __init__(self) -> None:
        if not torch.cuda.is_available():
            raise OverlayError(
                "PTR385",
                "torch sees no CUDA device",
                hint="Install a build of torch for CUDA, on a machine with a GPU.",
            )
        torch.cuda.init()
        self.current_device = torch._C._cuda_getDevice
        self.current_stream = torch._C._cuda_getCurrentRawStream
        self.is_capturing = torch.cuda.is_current_stream_capturing

    def upload(self, data: bytes, device: int) -> torch.Tensor:
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).to(f"cuda:{device}")
