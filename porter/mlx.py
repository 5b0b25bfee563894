"""`import porter.mlx`: MLX's `mx.fast.metal_kernel` runs here, on porter's stand-in device. Import it before torch.

`mx.metal.is_available()` is true from then on, and the default device the GPU; `without_metal()` is a block in which
they are not. `watching(watcher)` is one in which `watcher` gets every launch. `uninstall()` takes everything back.
"""

from __future__ import annotations

import aten_overlay

aten_overlay.start()  # before anything imports torch; a device that is up stays

from porter.kernels.mlx.calls import Launched, watching  # noqa: E402
from porter.kernels.mlx.installing import Installation, import_mlx  # noqa: E402

__all__ = ["Launched", "uninstall", "watching", "without_metal"]

_installation = Installation(import_mlx())
_installation.install()
uninstall, without_metal = _installation.uninstall, _installation.without_metal
