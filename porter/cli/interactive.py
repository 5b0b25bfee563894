"""`porter migrate -i`: asks about each candidate, then about each hunk of the one that is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from porter.cli.output import DONE, INCOMPLETE, Output

if TYPE_CHECKING:
    from porter.core.checkout import Checkout
    from porter.core.hunks import Hunk
    from porter.verdict.result import Proof
    from porter.workflows.choosing import Offer

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
    from porter.workflows.choosing import judge, take_hunks, write_offer

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
    from porter.workflows.choosing import offer_candidates, require_committed

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
    from porter.report.explained import explain

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
    from porter.core.hunks import split_hunks

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
