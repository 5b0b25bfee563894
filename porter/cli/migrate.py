"""`porter migrate`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from porter.cli.options import Together, command, operators, proof, together
from porter.cli.output import DONE, INCOMPLETE, NOT_PLANNED, Output
from porter.cli.ports import show_commits, show_groups, show_helpers, show_outcomes, show_port
from porter.cli.scheduled import run_scheduled
from porter.core.errors import PorterError

if TYPE_CHECKING:
    from porter.core.change_set import Hunk
    from porter.core.checkout import Checkout
    from porter.verdict.result import Proof, Verdict
    from porter.workflows.migrate import Offer

_NAME_ONE = "Name one, as in `porter migrate atan2`, or use --all. `porter status --portable` lists them."
_ALONE = "Run `porter migrate OP` to see the failures, or `porter migrate OP --write` to write it anyway."


@command(
    "migrate",
    ("porter migrate atan2", "show the port and verify it"),
    ("porter migrate atan2 --no-verify > atan2.diff", "only the diff, for git apply, as the last verdict chose it"),
    ("porter migrate erf log1p --write", "port two operators and write both"),
    ("porter migrate --all --no-verify --json", "all plans as JSON"),
    ("porter migrate --all --shard 2/8", "one of eight shares, for CI"),
    ("porter migrate hypot -i --write", "choose the candidate, and the hunks that are written"),
    ("porter migrate 'log*' --write --ghstack", "a commit for each family, with its text"),
    ("porter migrate xlogy --from cuda", "the functor is that of ATen's CUDA kernel"),
    ("porter migrate --from my.cu --function NAME", "the functor of a CUDA kernel of your own"),
)
@operators(required=False)
@click.option("--all", "every", is_flag=True, help="Port every operator that porter can port.")
@click.option("--write", is_flag=True, help="Write the change set to the checkout.")
@click.option("--force", is_flag=True, help="Write even if a touched file has uncommitted changes.")
@click.option("--no-verify", is_flag=True, help="Only plan, with what the last verdict chose, if any; do not verify.")
@click.option("--unverified", is_flag=True, help="With --write, also write what no verdict of all tests has passed.")
@click.option("--from", "source", metavar="SOURCE", help="cuda: ATen's CUDA kernel. FILE.cu: a kernel of your own.")
@click.option("--function", metavar="NAME", help="The kernel in FILE.cu.")
@click.option("--scaffold", is_flag=True, help="Write the frame of what cannot be ported, to be completed by hand.")
@click.option("--with-helpers", is_flag=True, help="Add functions that MetalShaderLibrary lacks, as their own change.")
@click.option(
    "--keep-dtypes",
    is_flag=True,
    help="Also register dtypes that the old code took and the CPU does not: computed in float.",
)
@click.option("--pull-request", is_flag=True, help="Print the text of a pull request instead of the diff.")
@click.option("--ghstack", is_flag=True, help="With --write, commit each group with its text, for ghstack.")
@click.option(
    "--group", type=click.Choice(["family", "operator"]), help="What one pull request holds. Default: family."
)
@click.option(
    "--max-lines", type=click.IntRange(1), metavar="N", help="How many lines a group may change. Default: 600."
)
@click.option("-i", "interactive", is_flag=True, help="Ask about each candidate with its verdict, then each hunk.")
@click.option("--explain-diff", is_flag=True, help="Say behind the @@ of each hunk why it is there.")
@together
@proof
def migrate(
    output: Output,
    ops: tuple[str, ...],
    every: bool,
    write: bool,
    force: bool,
    no_verify: bool,
    unverified: bool,
    source: str | None,
    function: str | None,
    scaffold: bool,
    with_helpers: bool,
    keep_dtypes: bool,
    pull_request: bool,
    interactive: bool,
    ghstack: bool,
    group: str | None,
    max_lines: int | None,
    explain_diff: bool,
    many: Together,
    proof: Proof,
) -> int:
    """Plan, show and verify the port of one or more operators.

    OP is a base name or an overload in native_functions.yaml, or a shell pattern: atan2, atan2.out, 'log*'. Nothing is
    written without --write. The port of a single operator that is written has a thorough verdict, unless --no-thorough
    is given. One of several that has no plan is left out, and the last lines say what became of each.
    """
    from porter.metal.functor import Source
    from porter.plan.helpers import HelperPlan
    from porter.workflows.commits import Committed
    from porter.workflows.migrate import NotPlanned, PortedOperator, Request, Wrote
    from porter.workflows.migrate import migrate as run
    from porter.workflows.results import collect, write_results
    from porter.workflows.stacking import MOST_LINES, Grouping
    from porter.workflows.status import name_operators

    if many.scheduler:
        return run_scheduled(output, many.scheduler, many.results, many.insecure)
    if function or (source and source != Source.CUDA.value):
        return _translate_own(output, ops, source, function, no_verify)
    wanted = Source(source) if source else Source.ANY
    if not (ops or every):
        raise PorterError("PTR012", "no operator is named", hint=_NAME_ONE)
    if ops and every:
        raise click.UsageError(f"--all cannot be combined with operators (got {ops[0]}).")
    if many.recorded and not every:
        raise click.UsageError("--recorded goes with --all; operators that are named need none.")
    if scaffold and every:
        raise click.UsageError("--scaffold goes with operators that are named, not with --all.")
    if keep_dtypes and every:
        raise click.UsageError("--keep-dtypes goes with operators that are named, not with --all.")
    if with_helpers and every:
        raise click.UsageError("--with-helpers goes with operators that are named, not with --all.")
    if explain_diff and (pull_request or output.json):
        raise click.UsageError(
            f"--explain-diff goes with a diff: omit {'--json' if output.json else '--pull-request'}."
        )
    if ghstack and not write:
        raise click.UsageError("--ghstack goes with --write: it commits what is written.")
    if ghstack and with_helpers:
        raise click.UsageError("--with-helpers is a change of its own: write and commit it first, without --ghstack.")
    if (group or max_lines) and not (ghstack or pull_request):
        raise click.UsageError(f"{'--group' if group else '--max-lines'} goes with --ghstack or --pull-request.")
    grouping = Grouping(group != "operator", max_lines or MOST_LINES)
    checkout = output.open_checkout(write)
    ops = name_operators(checkout, ops, served=False)
    if interactive:
        others: dict[str, object] = {"--all": every, "--json": output.json, "-k": proof.selects, "--ghstack": ghstack}
        others |= {"--no-verify": no_verify, "--pull-request": pull_request, "--scaffold": scaffold, "--from": source}
        others |= {"--with-helpers": with_helpers, "--explain-diff": explain_diff, "--results": many.results}
        op = require_alone(ops, others)
        return choose(
            output, checkout, op, proof, write=write, force=force, unverified=unverified, keep_dtypes=keep_dtypes
        )
    if proof.thorough is None and write and len(ops) == 1 and not no_verify:
        proof = replace(proof, thorough=True)
        output.note("the verdict is thorough, as the port is written: --no-thorough leaves out what takes longer")
    request = Request(
        ops,
        every,
        many.jobs or 0,
        many.shard,
        write,
        force,
        None if no_verify else proof,
        wanted,
        scaffold,
        many.recorded,
        with_helpers,
        unverified,
        keep_dtypes,
        grouping if ghstack else None,
    )
    code, kept, commits = DONE, list[PortedOperator | NotPlanned](), list[Committed]()

    def conclude() -> None:
        if not every:
            show_outcomes(output, kept, alone=no_verify)
        if many.results:
            write_results(many.results, collect(checkout, kept, many.shard))

    try:
        for found in run(checkout, request, output.report_step, partial(_note_verdict, output)):
            if isinstance(found, PortedOperator | NotPlanned):
                kept.append(found)
            match found:
                case PortedOperator():
                    if not (pull_request and (every or len(ops) > 1)) or output.json:
                        show_port(output, found, no_verify, pull_request, explain_diff)
                    code = code if found.done else INCOMPLETE
                case HelperPlan():
                    show_helpers(output, found, alone=no_verify)
                case NotPlanned(op, error, came_along):
                    output.error(error, f"porter: {op}")
                    code = code if came_along and not every else INCOMPLETE
                case Wrote(files, left_out):
                    for op in left_out:
                        output.error(
                            PorterError("PTR331", f"{op} is not written: its port fails its verdict", hint=_ALONE)
                        )
                    if not ghstack:
                        output.note(f"wrote {len(files)} files; `porter undo` reverts them")
                case Committed():
                    commits.append(found)
    except PorterError as error:
        if not kept and len(ops) == 1 and many.results:
            kept.append(NotPlanned(ops[0], error))
        if kept:  # the verdicts took minutes
            conclude()
        show_commits(output, commits)
        raise
    if pull_request and (every or len(ops) > 1) and not output.json:
        show_groups(output, checkout, [port for port in kept if isinstance(port, PortedOperator)], grouping)
    conclude()
    show_commits(output, commits)
    planned = any(isinstance(port, PortedOperator) for port in kept)
    return NOT_PLANNED if kept and not (planned or many.shard) else code  # other shares may have plans


def _note_verdict(output: Output, verdict: Verdict) -> None:
    from porter.report.verdict import summary

    output.note(summary(verdict))


def _translate_own(
    output: Output, ops: tuple[str, ...], source: str | None, function: str | None, no_verify: bool
) -> int:
    """Shows the functor of a CUDA kernel of a file, and compares its values with the kernel's own."""
    from porter.report.kernel import describe_translation, translation_object
    from porter.workflows.own_kernel import translate_own_kernel

    found = translate_own_kernel(output.open_checkout(), ops, source, function, not no_verify, output.note)
    output.show(translation_object(found), (found.functor.text, describe_translation(found)))
    return DONE if found.done else INCOMPLETE


_ABOUT_CANDIDATE = "Take it [y], see the next [n], or quit [q]?"
_ABOUT_HUNK = "Keep this hunk [y], leave it out [n], keep all others too [a], or quit [q]?"
_NOTHING = "nothing is written"
_YES, _NO, _ALL, _QUIT = "y", "n", "a", "q"


def choose(
    output: Output,
    checkout: Checkout,
    op: str,
    proof: Proof,
    *,
    write: bool,
    force: bool,
    unverified: bool,
    keep_dtypes: bool,
) -> int:
    """Asks a person what to take of a port, and writes or prints it. What leaves out a hunk is verified again."""
    from porter.workflows.migrate import judge, take_hunks, write_offer

    try:
        offer = _choose_candidate(output, checkout, op, proof, force or not write, keep_dtypes)
        hunks = _choose_hunks(output, offer) if offer else None
    except click.Abort:
        offer, hunks = None, None
    if offer is None or not hunks:
        output.note(_NOTHING)
        return INCOMPLETE
    is_whole = len(hunks) == sum(map(len, _list_hunks(offer)))
    if not is_whole:
        offer = judge(checkout, take_hunks(offer, hunks), proof, output.report_progress)
        _show_verdict(output, offer)
    if write:
        files = write_offer(checkout, offer, force, unverified)
        output.note(f"wrote {len(files)} files; `porter undo` reverts them")
    else:
        output.diff(offer.plan.changes.diff())
    return DONE if offer.is_proven else INCOMPLETE


def _choose_candidate(
    output: Output, checkout: Checkout, op: str, proof: Proof, dirty: bool, keep_dtypes: bool
) -> Offer | None:
    """The candidate that a person takes; None for none."""
    from porter.workflows.migrate import offer_candidates, require_committed

    for offer in offer_candidates(checkout, op, proof, output.report_progress, keep_dtypes):
        require_committed(checkout, offer.plan, dirty)
        output.note(f"\ncandidate {offer.number} of {offer.count}")
        for functor in offer.plan.functors:
            output.note(f"{functor.name}, from {functor.origin}:\n{functor.source.rstrip()}")
        _show_verdict(output, offer)
        answer = _ask(_ABOUT_CANDIDATE, _YES if offer.is_proven else _NO, (_YES, _NO, _QUIT))
        if answer == _YES:
            return offer
        if answer == _QUIT:
            return None
    output.note("there are no more candidates")
    return None


def _choose_hunks(output: Output, offer: Offer) -> list[Hunk]:
    """The hunks that a person keeps; none where a person quits."""
    from porter.report.terminal import explain

    kept: list[Hunk] = []
    asks = True
    for hunks in _list_hunks(offer):
        for hunk in hunks:
            answer = _YES
            if asks:
                output.note(f"\n{hunk.file}\n{hunk.explained(explain(offer.plan, hunk)).rstrip()}")
                answer = _ask(_ABOUT_HUNK, _YES, (_YES, _NO, _ALL, _QUIT))
            if answer == _QUIT:
                return []
            asks = asks and answer != _ALL
            kept += [] if answer == _NO else [hunk]
    return kept


def _list_hunks(offer: Offer) -> list[tuple[Hunk, ...]]:
    from porter.core.change_set import split_hunks

    return [hunks for _, hunks in split_hunks(offer.plan.changes)]


def _show_verdict(output: Output, offer: Offer) -> None:
    from porter.report.verdict import style_verdict, table

    if offer.error:
        output.error(offer.error, "no verdict")
    elif verdict := offer.verdict:
        output.note(table(verdict), lambda: style_verdict(verdict))


def _ask(question: str, default: str, answers: tuple[str, ...]) -> str:
    answer: str = click.prompt(
        question, default=default, type=click.Choice(answers), show_choices=False, err=True, prompt_suffix=" "
    )
    return answer


def require_alone(ops: tuple[str, ...], others: dict[str, object]) -> str:
    """The one operator that is asked about. Raises a usage error where options ask for something else."""
    if len(ops) != 1:
        raise click.UsageError("-i asks about one operator: name it.")
    if wrong := next((name for name, value in others.items() if value), None):
        raise click.UsageError(f"-i asks and verifies by itself: omit {wrong}.")
    return ops[0]
