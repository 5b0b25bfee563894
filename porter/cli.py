"""The command line: every command reads its arguments, calls the room that does the work, and prints what comes
back.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from porter.core.checkout import Checkout, find_checkout
from porter.core.edits import ChangeSet
from porter.core.errors import PorterError
from porter.plan.plan import Loser, Plan

if TYPE_CHECKING:
    from porter.metal.elementwise import Recorded
    from porter.verdict.result import Verdict

DONE, INCOMPLETE, NOT_PLANNED = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 done, 1 planned but not complete or the verdict failed, 2 could not plan."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except PorterError as error:
        print(f"porter: {error}", file=sys.stderr)
        return NOT_PLANNED
    except BrokenPipeError:
        sys.stderr.close()
        return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="porter", description="Moves PyTorch operators to native Metal.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    migrate = _command(commands, "migrate", _migrate, "plan, show and verify the complete port of operators")
    migrate.add_argument("ops", nargs="*", metavar="OP", help="an ATen base name or overload: atan2, atan2.out")
    migrate.add_argument("--all", action="store_true", help="every operator that porter can port")
    migrate.add_argument("--write", action="store_true", help="write the change set to the checkout")
    migrate.add_argument("--force", action="store_true", help="write even where a touched file has uncommitted changes")
    migrate.add_argument("--no-verify", action="store_true", help="plan only")
    migrate.add_argument("--pull-request", action="store_true", help="print the text of the pull request, not the diff")
    _output(migrate)
    explain = _command(commands, "explain", _explain, "show each stage for one operator")
    explain.add_argument("op", metavar="OP")
    explain.add_argument("--no-record", action="store_true", help="read the source only: run nothing")
    explain.add_argument("--macos", default="", metavar="VERSION", help="run the old code as this macOS would: 14.4")
    _output(_command(commands, "status", _status, "list every operator with an MPS dispatch"))
    verify = _command(commands, "verify", _verify, "lint, compile and test the port of operators")
    verify.add_argument("ops", nargs="+", metavar="OP")
    verify.add_argument("-k", dest="expr", metavar="EXPR", help="only tests whose name matches, as in pytest")
    _judging(verify)
    watch = _command(commands, "watch", _watch, "verify an operator again whenever a file of it changes")
    watch.add_argument("ops", nargs="+", metavar="OP")
    watch.add_argument("-k", dest="expr", metavar="EXPR", help="only tests whose name matches, as in pytest")
    _judging(watch)
    _command(commands, "undo", _undo, "take the last written change set back")
    _command(commands, "setup", _setup, "find a compiler, install it where possible; build the stand-in for Apple")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: object, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument("--checkout", type=Path, metavar="DIR", help="the PyTorch fork to work on")
    command.set_defaults(run=run)
    return command


def _judging(command: argparse.ArgumentParser) -> None:
    command.add_argument("--backend", default="auto", help="host, kernels or mps")
    command.add_argument(
        "--arithmetic", default="default", help="what a GPU may do besides: fused, flush, reorder, or all"
    )
    _output(command)


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="one object per operator")
    command.add_argument("--no-color", action="store_true", help="plain text")


def _fork(options: argparse.Namespace) -> Checkout:
    from porter.core.journal import recover

    checkout = find_checkout(options.checkout, Path.cwd(), dict(os.environ))
    print(f"checkout: {checkout.root.name} ({checkout.origin})", file=sys.stderr)
    settled = recover(checkout)
    if settled:
        print(f"an interrupted write was {settled}", file=sys.stderr)
    return checkout


def _migrate(options: argparse.Namespace) -> int:
    from porter.plan.planner import changes_between, plan_operator
    from porter.recording.readings import recorded_graph
    from porter.status import portable

    checkout = _fork(options)
    if not options.ops and not options.all:
        raise PorterError("PTR012", "no operator is named", hint="Name one, or use --all.")
    recorded = partial(recorded_graph, checkout, run=not options.no_verify)
    fork, code, touched = checkout, DONE, set[str]()
    for op in portable(checkout) if options.all else options.ops:
        try:
            plan = plan_operator(fork, op, recorded=recorded)
        except PorterError as error:
            if not options.all:
                raise
            print(f"porter: {op}: {error}", file=sys.stderr)
            continue
        verdict: Verdict | PorterError | None = None
        losers: tuple[Loser, ...] = ()
        if not options.no_verify:
            plan, verdict, losers = _judged(fork, plan, recorded)
        code = max(code, _shown(options, plan, verdict, losers))
        fork = fork.layer(plan.changes.apply())
        touched |= set(plan.changes.files)
    if options.write:
        _written(checkout, changes_between(checkout, fork, sorted(touched)), options.force)
    return code


def _judged(fork: Checkout, plan: Plan, recorded: Recorded) -> tuple[Plan, Verdict | PorterError, tuple[Loser, ...]]:
    """The plan that is proven best, its verdict or why there is none, and the candidates it was preferred to."""
    from porter.verdict.prove import prove
    from porter.workflows.candidates import judged

    try:
        best = judged(fork, plan, lambda each: prove(fork.root, each, plan.op.split(".")[0]), recorded)
    except PorterError as error:
        return plan, error, ()
    return best.plan, best.verdict, best.losers


def _shown(
    options: argparse.Namespace, plan: Plan, verdict: Verdict | PorterError | None, losers: tuple[Loser, ...]
) -> int:
    from porter.report.as_json import plan_object, verdict_object
    from porter.report.pull_request import pull_request
    from porter.report.terminal import diff_text, summary

    judged = None if isinstance(verdict, PorterError) else verdict
    ok = verdict is None or bool(judged and judged.ok)
    if options.json:
        print(json.dumps(plan_object(plan, verdict_object(judged) if judged else None, losers)))
    elif options.pull_request:
        print(pull_request(plan, judged))
    else:
        print(diff_text(plan.changes.diff(), sys.stdout.isatty() and not options.no_color), end="")
        print(summary(plan, losers), file=sys.stderr if options.no_verify else sys.stdout)
    if isinstance(verdict, PorterError):
        print(f"no verdict: {verdict}", file=sys.stderr)
    elif judged and not options.json and not options.pull_request:
        from porter.overlay.table import table

        print(table(judged))
    return DONE if ok and plan.complete else INCOMPLETE


def _written(checkout: Checkout, changes: ChangeSet, force: bool) -> None:
    from porter.core.writing import write

    files = write(checkout, changes, force)
    print(f"wrote {len(files)} files; porter undo takes them back", file=sys.stderr)


def _explain(options: argparse.Namespace) -> int:
    from porter.explain import explanation

    for line in explanation(_fork(options), options.op, not options.no_record, options.macos):
        print(line, flush=True)
    return DONE


def _status(options: argparse.Namespace) -> int:
    from porter.status import as_rows, counts, lines, with_readings

    checkout = _fork(options)
    found = with_readings(checkout, as_rows(checkout))
    if options.json:
        print(json.dumps({"counts": counts(found), "rows": [row.as_object() for row in found]}))
    else:
        print("\n".join(lines(found)))
    return DONE


def _verify(options: argparse.Namespace) -> int:
    from porter.overlay.table import table
    from porter.report.as_json import verdict_object
    from porter.workflows.verify import verified

    checkout, code = _fork(options), DONE
    for op in options.ops:
        verdict = verified(checkout, op, options.expr, options.backend, options.arithmetic)
        print(json.dumps(verdict_object(verdict)) if options.json else table(verdict))
        code = max(code, DONE if verdict.ok else INCOMPLETE)
    return code


def _watch(options: argparse.Namespace) -> int:
    from porter.overlay.watch import watch
    from porter.workflows.verify import files_of

    def judge() -> None:
        try:
            _verify(options)
        except PorterError as error:
            print(f"porter: {error}", file=sys.stderr)

    watch(lambda: files_of(_fork(options)), judge)
    return DONE


def _undo(options: argparse.Namespace) -> int:
    from porter.core.journal import undo

    files = undo(_fork(options))
    print(f"took back {len(files)} files")
    return DONE


def _setup(options: argparse.Namespace) -> int:
    from porter.setup import prepare, set_up

    print(set_up())
    print(prepare(_fork(options)))
    return DONE


if __name__ == "__main__":
    sys.exit(main())
