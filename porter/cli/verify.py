"""`porter verify` and `porter watch`."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from porter.cli.options import Together, command, operators, proof, together
from porter.cli.output import DONE, INCOMPLETE, NOT_PLANNED, Output
from porter.cli.ports import show_lines
from porter.cli.scheduled import run_scheduled
from porter.core.errors import PorterError

if TYPE_CHECKING:
    from porter.core.checkout import Checkout
    from porter.verdict.result import Proof
    from porter.workflows.migrate import Request


@command(
    "verify",
    ("porter verify exp", "a native operator, as it is in the fork"),
    ("porter verify atan2 -k float16", "some tests of a port"),
    ("porter verify atan2 --arithmetic all", "under every arithmetic a GPU may use"),
    ("porter verify --all --jobs 8", "every port, built once and tested side by side"),
    ("porter verify atan2 --baseline HEAD~1", "a port that is committed, against the fork before it"),
    ("porter verify exp --large", "on tensors whose offsets pass 2^31 and 2^32 too"),
    ("porter verify exp erf --emit-benchmark bench.py", "no verdict, but a script that times both on a Mac"),
)
@operators(required=False)
@click.option("--all", "every", is_flag=True, help="Verify the port of every operator that porter can port.")
@click.option(
    "--baseline",
    metavar="DIR|REV",
    help="The fork before the ports: a folder or a commit. Default: what porter kept.",
)
@click.option(
    "--emit-benchmark",
    "benchmark",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Instead of a verdict, write a script that times the operators on a Mac, with an old torch and a new one.",
)
@together
@proof
def verify(
    output: Output,
    ops: tuple[str, ...],
    every: bool,
    baseline: str | None,
    benchmark: Path | None,
    many: Together,
    proof: Proof,
) -> int:
    """Lint, compile and test operators or their ports.

    OP is a base name, an overload or a shell pattern: 'log*'.

    A native operator is tested as it is in the fork, against the fork before its port where that is known: porter's
    journal keeps it of what porter wrote, and --baseline names it. For any other, its port is tested.
    """
    from porter.workflows.migrate import Request

    if many.scheduler:
        return run_scheduled(output, many.scheduler, many.results, many.insecure)
    if ops and every:
        raise click.UsageError(f"--all cannot be combined with operators (got {ops[0]}).")
    if every and benchmark:
        raise click.UsageError("--emit-benchmark goes with operators that are named, not with --all.")
    if every and baseline:
        raise click.UsageError("--baseline goes with operators that are named, not with --all.")
    if every:
        request = Request(all=True, jobs=many.jobs or 0, shard=many.shard, proof=proof, recorded=many.recorded)
        return _judge_all(output, request, many.results)
    if not ops:
        raise click.UsageError("Missing argument 'OP...'. Name one, or use --all.")
    if many.jobs or many.shard or many.results or many.recorded:
        raise click.UsageError(
            "--jobs, --shard, --recorded and --results go with --all; `porter migrate OP` has --results too."
        )
    from porter.workflows.status import name_operators

    checkout = output.open_checkout()
    if benchmark:
        return _emit(output, checkout, name_operators(checkout, ops), benchmark)
    return judge(output, checkout, name_operators(checkout, ops), proof, baseline)


def _emit(output: Output, checkout: Checkout, ops: tuple[str, ...], file: Path) -> int:
    """Writes a script that times operators on a Mac, and says what a person has to fill in."""
    from porter.workflows.emit import emit_benchmark

    blanks = emit_benchmark(checkout, ops, file)
    if output.json:
        output.object({"file": str(file), "blanks": list(blanks)})
        return DONE
    output.text(str(file))
    for operator in blanks:
        output.note(f'fill in the arguments of {operator} in CALLS: each "?" is a blank')
    output.note(f"on a Mac: python {file.name} --old PYTHON --new PYTHON, which prints a table for the pull request")
    return DONE


def _judge_all(output: Output, request: Request, results: Path | None) -> int:
    """Prints one line per verdict as it comes, then what failed in full."""
    from porter.report.as_json import verdict_object
    from porter.report.verdict import summary, table
    from porter.verdict.result import Verdict
    from porter.workflows.migrate import NotPlanned, PortedOperator, migrate
    from porter.workflows.results import collect, write_results

    checkout = output.open_checkout()

    def show(verdict: Verdict) -> None:
        output.show(verdict_object(verdict), summary(verdict))

    done = migrate(checkout, request, output.report_step, show)
    found = [each for each in done if isinstance(each, PortedOperator | NotPlanned)]
    for each in found:
        match each:
            case NotPlanned(op, error):
                output.error(error, f"porter: {op}")
            case PortedOperator(no_verdict=error) if error:
                output.error(error, f"no verdict on {each.plan.op}")
            case PortedOperator(verdict=verdict) if verdict and not (verdict.ok or output.json):
                output.text(table(verdict))
    if results:
        write_results(results, collect(checkout, found, request.shard))
    return DONE if all(isinstance(each, PortedOperator) and each.done for each in found) else INCOMPLETE


def judge(output: Output, checkout: Checkout, ops: tuple[str, ...], proof: Proof, baseline: str | None = None) -> int:
    """Prints the verdict on each operator, and at the end of several what became of each.

    Raises what `verify_operators` raises.
    """
    from porter.report.verdict import summary
    from porter.workflows.verify import NotVerified, verify_operators

    code, judged, lines = DONE, False, list[str]()
    for found in verify_operators(checkout, ops, proof, output.report_step, baseline):
        if isinstance(found, NotVerified):
            output.error(found.error, f"no verdict on {found.op}")
            lines.append(f"{found.op}: no verdict: {found.error.code} {found.error.what}")
            code = INCOMPLETE
            continue
        output.verdict(found)
        lines.append(summary(found))
        code, judged = code if found.ok else INCOMPLETE, True
    show_lines(output, lines)
    return code if judged else NOT_PLANNED


@command("watch", ("porter watch exp -k float32", "while you edit its kernel"))
@operators(required=True)
@proof
def watch(
    output: Output,
    ops: tuple[str, ...],
    proof: Proof,
) -> int:
    """Verify operators again whenever their files change.

    Watches the files of the fork's MPS backend. Press Ctrl-C to stop.
    """
    from porter.core.checkout import Checkout
    from porter.workflows.verify import find_watched_files
    from porter.workflows.verify import watch as run

    opened = output.open_checkout()

    def now() -> Checkout:
        return Checkout(opened.root, opened.origin)

    runs = count()

    def act() -> None:
        if next(runs):
            output.note("a file changed: verifying again")
        try:
            judge(output, now(), ops, proof)
        except PorterError as error:
            output.error(error)
        watched = sum(1 for _ in find_watched_files(now()))
        output.note(f"waiting for a change of {watched} files; Ctrl-C ends")

    run(lambda: find_watched_files(now()), act)
    return DONE
