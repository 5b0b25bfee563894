"""Puts porter's kernels under `mlx.core`, and makes it look like an MLX with a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from porter.core.errors import PorterError
from porter.kernels.mlx.calls import MetalFunction

# What takes a device or a stream, and would refuse the GPU that this MLX was built without.
_OF_STREAMS = ("default_stream", "new_stream", "new_thread_local_stream", "stream")


def import_mlx() -> Any:
    """The module `mlx.core`. Raises PTR223 where it is not installed."""
    try:
        import mlx.core
    except ImportError as error:
        raise PorterError(
            "PTR223",
            f"mlx.core cannot be imported: {error}",
            hint='Install it with its CPU backend: pip install "mlx[cpu]".',
        ) from error
    return mlx.core


class Installation:
    """The changes to `mlx.core`; `metal` is whether it says that Metal is there, and that the GPU is the default."""

    def __init__(self, mx: Any) -> None:
        self.mx, self.metal = mx, True
        self._chosen: Any = None
        self._originals: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Makes the changes. Compilation is disabled: what MLX traces has no values that a kernel could read."""
        mx = self.mx
        self._replace(mx.fast, "metal_kernel", partial(MetalFunction.of, mx))
        self._replace(mx.metal, "is_available", lambda: self.metal)
        self._replace(mx, "is_available", self._is_available)
        self._replace(mx, "default_device", self._default_device)
        self._replace(mx, "set_default_device", self._set_default_device)
        for name in _OF_STREAMS:
            if hasattr(mx, name):
                self._replace(mx, name, self._on_host(getattr(mx, name)))
        mx.disable_compile()

    def uninstall(self) -> None:
        """Takes the changes back."""
        while self._originals:
            setattr(*self._originals.pop())
        self.mx.enable_compile()

    @contextmanager
    def without_metal(self) -> Iterator[None]:
        """MLX without a GPU in a block: programs that ask take their other path."""
        before, self.metal = self.metal, False
        try:
            yield
        finally:
            self.metal = before

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _is_gpu(self, device: Any) -> bool:
        return bool(device == self.mx.gpu) or bool(getattr(device, "type", None) == self.mx.gpu)

    def _is_available(self, device: Any) -> bool:
        return self.metal or not self._is_gpu(device)

    def _default_device(self) -> Any:
        if not self.metal:
            return self.mx.Device(self.mx.cpu, 0)
        return self.mx.Device(self.mx.gpu, 0) if self._chosen is None else self._chosen

    def _set_default_device(self, device: Any) -> None:
        """Remembers a choice. What MLX computes itself runs on its CPU backend, there is no other."""
        self._chosen = device if hasattr(device, "type") else self.mx.Device(device, 0)

    def _on_host(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda device, *rest: function(self.mx.cpu if self._is_gpu(device) else device, *rest)
