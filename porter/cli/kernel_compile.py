"""`porter kernel compile`."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command
from porter.cli.output import DONE, Output


@command(
    "compile",
    ("porter kernel compile softmax.py", "one script"),
    ("porter kernel compile --all", "every template"),
)
@click.argument("files", type=click.Path(path_type=Path), nargs=-1)
@click.option("--all", "every", is_flag=True, help="Compile every template.")
def compile_kernels(output: Output, files: tuple[Path, ...], every: bool) -> int:
    """Compile a script's kernels for NVIDIA GPUs.

    Needs no GPU. The PTX goes into the cache; a machine with a GPU and no clang finds it in a copy of the cache, which
    $PORTER_CACHE names. Each FILE is run as Python.
    """
    from porter.workflows.kernel import compile_scripts

    if bool(files) is every:
        raise click.UsageError("give FILE or --all")
    for name, count in compile_scripts(files, output.report_step):
        if output.json:
            output.object({"script": name, "sources": count})
        else:
            output.text(f"{name}: {count} sources compiled")
    return DONE
