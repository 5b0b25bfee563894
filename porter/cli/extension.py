"""`porter extension`: the group of commands for C++ extensions of PyTorch."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command, group
from porter.cli.output import DONE, Output


@command(
    "new",
    ("porter extension new fused_ops", "a project with one operator, ready to change"),
    ("porter extension new my_ops --from silu.py", "one with the kernels of a file"),
)
@click.argument("name", metavar="NAME")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), metavar="KERNEL", help="A Python file with MetalKernels."
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="The new folder. Default: ./NAME."
)
@click.option("--without-vjp", is_flag=True, help="Leave out gradients that kernels define themselves.")
@click.option("--metallib", is_flag=True, help="On a Mac, compile the kernels in setup.py and embed them.")
def new(output: Output, name: str, source: Path | None, out: Path | None, without_vjp: bool, metallib: bool) -> int:
    """Start a C++ extension with Metal kernels.

    The project builds with torch.utils.cpp_extension alone: on a Mac as it is, on Linux under `python -m aten_overlay`.
    Nothing is overwritten.
    """
    from porter.workflows.kernel import start_extension

    folder = out or Path(name)
    written = start_extension(name, source, folder, without_vjp=without_vjp, metallib=metallib)
    if output.json:
        output.object({"folder": str(folder), "files": [str(path) for path in written]})
    else:
        output.text("\n".join(map(str, written)))
        output.note(
            f"Build and test it in {folder}:\n"
            "  python -m aten_overlay setup.py build_ext --inplace\n"
            "  python -m aten_overlay -m pytest tests\n"
            "To install it: python -m aten_overlay -m pip install --no-build-isolation .\n"
            "On a Mac, the same without aten_overlay: python setup.py ..., python -m pytest tests"
        )
    return DONE


extension = group("extension", "Start C++ extensions of PyTorch with Metal kernels.", new)
