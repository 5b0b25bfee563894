"""`porter run`: any Python program with an mps device, and a report of the Metal that it ran."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import allow_bytes, as_mac, command, family, large_tensors, macos, metal, sanitize
from porter.cli.output import DONE, INCOMPLETE, Output


def _complete_arithmetic(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from aten_overlay.metal.build import ARITHMETICS

    return [name for name in ARITHMETICS if name.startswith(incomplete)]


def _choose_arithmetic(_ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    from aten_overlay.metal.build import ARITHMETICS

    if name is not None and name not in ARITHMETICS:
        raise click.BadParameter(f"{name} is none of {', '.join(ARITHMETICS)}", param=param)
    return name


@command(
    "run",
    ("porter run train.py --epochs 1", "a script and its arguments"),
    ("porter run --sanitize all -m pytest tests", "a module; every launch is watched"),
    ("porter run --keep metal --json run.json train.py", "keep the sources, and the report as JSON"),
    runs_program=True,
)
@sanitize
@allow_bytes
@large_tensors
@family
@metal
@macos
@click.option(
    "--arithmetic",
    metavar="NAME",
    callback=_choose_arithmetic,
    shell_complete=_complete_arithmetic,
    help="Arithmetic of kernels that name none: default, strict, fused, flush, reorder, relaxed, finite, fast.",
)
@click.option(
    "--shuffle", type=click.IntRange(0), metavar="SEED", help="Run the lanes of each launch in an order made of SEED."
)
@click.option(
    "--operators", metavar="NAMES", help="Operators that run the checkout's own code, with commas between: atan2,erf."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Copy the source of each kernel into DIR.",
)
@click.option(
    "--json", "file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the report as JSON."
)
@as_mac
@click.option("--mlx", is_flag=True, help="Run the kernels of MLX's metal_kernel, under its CPU backend.")
@click.option("--quiet", is_flag=True, help="Print no report, unless there is a finding.")
@click.option("-m", "is_module", is_flag=True, help="PROGRAM is a module, as for python -m.")
@click.option("-c", "is_code", is_flag=True, help="PROGRAM is code, as for python -c.")
@click.argument("words", metavar="PROGRAM [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    output: Output,
    words: tuple[str, ...],
    arithmetic: str | None,
    shuffle: int | None,
    operators: str | None,
    keep: Path | None,
    file: Path | None,
    as_mac: bool,
    mlx: bool,
    quiet: bool,
    is_module: bool,
    is_code: bool,
) -> int:
    """Run a Python program with an mps device, and report its Metal.

    PROGRAM is a Python file, or a command that is one, such as pytest or torchrun. The kernels that it compiles run on
    the host, whoever wrote them: compile_shader, Inductor, an extension. At its end a report on stderr counts them by
    producer and names each finding with the line of the program that launched the kernel. Processes that it starts are
    part of it. Options stand before PROGRAM; what follows is the program's.

    Exit code: the program's own, or 1 on a finding.
    """
    import json

    from porter.core.files import write_whole
    from porter.report.run import run_lines, run_object
    from porter.workflows.run import RunSettings, find_folder, run_program

    if is_module and is_code:
        raise click.UsageError("give -m or -c, not both")
    words = (*(("-m",) if is_module else ("-c",) if is_code else ()), *words)
    folders = (find_folder(words),) if as_mac else ()
    chosen = RunSettings(output.settings.checkout, operators, arithmetic, shuffle, mlx, folders)
    ended = run_program(words, chosen, keep)
    code = ended.code or (INCOMPLETE if ended.run.findings else DONE)
    if file is not None:
        write_whole(file, json.dumps(run_object(ended.run, ended.checks, code, ended.as_mac)) + "\n")
    if output.json:
        output.object(run_object(ended.run, ended.checks, code, ended.as_mac))
    elif ended.run.findings or not quiet:
        output.note("\n".join(run_lines(ended.run, ended.checks, keep, ended.as_mac)))
    return code
