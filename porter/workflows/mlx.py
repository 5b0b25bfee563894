"""What `porter run --mlx` starts: `python -m aten_overlay`, with porter's kernels under MLX's."""

from __future__ import annotations

import sys

from aten_overlay import __main__ as overlay
from porter.core.errors import PorterError


def main() -> int:
    """Runs the program of the command line. 2 where MLX or the device is missing."""
    try:
        return overlay.main(prepare=_install)
    except PorterError as error:
        if error.code != "PTR223":  # the program's own
            raise
        print(f"porter: {error}", file=sys.stderr)
        return 2


def _install() -> None:
    from porter.kernels.mlx.installing import Installation, import_mlx  # imports torch

    Installation(import_mlx()).install()
