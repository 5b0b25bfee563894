"""`porter bench`: a fork's kernels timed on an NVIDIA GPU, beside another fork's and torch's."""

from __future__ import annotations

from pathlib import Path

import click

from porter.cli.options import command, complete_operator
from porter.cli.output import DONE, INCOMPLETE, Output
from porter.core.errors import PorterError

_CUDA, _GRAPH = "cuda", "graph"


@command(
    "bench",
    ("porter bench sum --checkout FORK", "a port that is written, beside torch's CUDA operator"),
    ("porter bench sum --checkout FORK --against OTHER", "beside the code of another checkout too"),
    ("porter bench sum --checkout FORK --folder race --record", "on a machine without a GPU: launches and PTX"),
    ("porter bench --replay race", "on a machine with one"),
)
@click.argument("ops", metavar="[OP...]", nargs=-1, shell_complete=complete_operator)
@click.option(
    "--against",
    metavar="cuda|CHECKOUT",
    default=_CUDA,
    help="A checkout in which a person wrote these operators. Torch's CUDA operator always runs. Default: that alone.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep launches, PTX and timings in DIR.",
)
@click.option("--record", is_flag=True, help="Time nothing: record launches and compile them into --folder.")
@click.option(
    "--replay",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Time what --record kept in DIR.",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=1 << 26,
    metavar="N",
    help="Halve tensors until they have at most N elements: the host records what it runs. Default: 2^26.",
)
@click.option("--tensor-cores", is_flag=True, help="Multiply simdgroup matrices of 16 bits by tensor cores.")
def bench(
    output: Output,
    ops: tuple[str, ...],
    against: str,
    folder: Path | None,
    record: bool,
    replay: Path | None,
    most: int,
    tensor_cores: bool,
) -> int:
    """Time a fork's kernels on an NVIDIA GPU, beside a person's and torch's.

    The checkout's own code runs each call on the host, and what it launches is compiled to PTX and timed, so that its
    host code and its Metal are those that a verdict proves. A ratio says how kernels share work and memory, not what a
    Mac measures. OP is written in the checkout: run `porter migrate OP --write` first.

    Exit code: 1 where a result differs from torch's, or a call was not timed.
    """
    from porter.race.calls import PERSON, PORT
    from porter.report.race import timing_lines, timing_object
    from porter.workflows.bench import Race, run_race

    if bool(ops) is bool(replay):
        raise click.UsageError("give OP, or --replay DIR")
    if record and folder is None:
        raise click.UsageError("--record goes with --folder")
    if replay and (record or folder or against != _CUDA):
        raise click.UsageError("--replay times what is recorded: it goes with no other folder or side")
    if against == _GRAPH:
        raise PorterError(
            "PTR304", "MPSGraph's own kernels are Apple's: they run on a Mac alone",
            hint="Write a script for a Mac: porter verify OP --emit-benchmark FILE.",
        )  # fmt: skip
    sides = {}
    if ops:
        sides[PORT] = output.find_checkout().root
        if against != _CUDA:
            sides[PERSON] = Path(against)
    race = Race(ops, sides, most, replay or folder, tensor_cores)
    timings = run_race(race, output.report_step, times=not record)
    if timings is None:
        output.note(f"{folder}: on a machine with an NVIDIA GPU, porter bench --replay {folder}")
        return DONE
    output.show(timing_object(timings), timing_lines(timings))
    return INCOMPLETE if timings.failures or any(row.wrong for row in timings.rows) else DONE
