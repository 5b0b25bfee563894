"""`porter extension new`: makes the project, then writes it."""

from __future__ import annotations

from pathlib import Path

from porter.core.errors import PorterError
from porter.workflows.kernel import start_device


def start_extension(
    name: str, kernels: Path | None, folder: Path, *, without_vjp: bool = False, metallib: bool = False
) -> tuple[Path, ...]:
    """Writes an extension `name`, with the kernels of a file if one is given, or with a Metal library on a Mac.

    Raises PTR251-PTR257, and what `start_device` raises for a file, which may use the device.
    """
    if kernels is not None and metallib:
        raise PorterError(
            "PTR257", "the kernels of a file are compiled for the types of a call, so no library can hold them",
            hint="Leave out --metallib, or start without --from and put your Metal source into csrc/kernels.h.",
        )  # fmt: skip
    if kernels is not None:
        start_device()
    from porter.kernels.extension import project  # imports torch

    if kernels is None:
        return project.write(project.example(name, metallib), folder)
    from porter.kernels.extension.from_kernels import project_of_file

    return project.write(project_of_file(name, kernels, without_vjp), folder)
