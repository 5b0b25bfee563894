"""`porter extension`: the group of commands for C++ extensions of PyTorch, one's own and other people's."""

from __future__ import annotations

import os
from pathlib import Path

import click

from porter.cli.options import as_mac, command, group, sanitize
from porter.cli.output import DONE, INCOMPLETE, Output


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


@command(
    "check",
    ("porter extension check mps_ops-0.2.tar.gz", "an sdist; or a folder, or a package of the index"),
    ("porter extension check --as-mac mps-ops==0.2", "one whose setup.py refuses other systems"),
)
@click.argument("source", metavar="SOURCE")
@sanitize
@as_mac
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=1800, metavar="SECONDS", show_default=True,
    help="The longest that the build, and each run of tests, may take.",
)  # fmt: skip
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Copy the logs, the built package and the sources of its kernels into DIR.",
)
def check(output: Output, source: str, as_mac: bool, timeout: float, keep: Path | None) -> int:
    """Build a package's MPS extension as it is, run its tests, and report.

    SOURCE is a folder, an sdist, or the name of a package on pip's index, which is downloaded as source. It is built in
    a temporary folder under the overlay, and so is a kernel-builder project, without Nix. Its tests run against the
    built package, watched by all of the sanitizer's checks unless --sanitize says otherwise. Building and testing a
    package runs its code.
    """
    from aten_overlay.metal.sanitizer.checks import ALL, VARIABLE
    from porter.report.package import package_lines, package_object
    from porter.workflows.package import CheckSettings, check_package

    os.environ.setdefault(VARIABLE, ALL)
    checked = check_package(source, CheckSettings(as_mac, timeout, keep), output.report_progress)
    output.show(package_object(checked), package_lines(checked, keep))
    return DONE if checked.ok else INCOMPLETE


extension = group(
    "extension", "Start C++ extensions of PyTorch with Metal kernels, and check other people's.", new, check
)
