"""`porter watch`."""

from __future__ import annotations

from porter.cli.options import command, expression, operators, proof
from porter.cli.output import DONE, Output
from porter.cli.verify import judge
from porter.core.errors import PorterError


@command("watch", ("porter watch exp -k float32", "while you edit its kernel"))
@operators(required=True)
@expression
@proof
def watch(
    output: Output,
    ops: tuple[str, ...],
    expr: str | None,
    backend: str,
    arithmetic: str,
    large: bool,
    strict: bool,
    thorough: bool | None,
) -> int:
    """Verify operators again whenever their files change.

    Watches the files of the fork's MPS backend. Press Ctrl-C to stop.
    """
    from porter.core.checkout import Checkout
    from porter.verdict.proof import Proof
    from porter.workflows.verify import find_watched_files
    from porter.workflows.watch import watch as run

    opened, how = output.open_checkout(), Proof(expr, backend, arithmetic, large, thorough, strict)

    def now() -> Checkout:
        return Checkout(opened.root, opened.origin)

    def act() -> None:
        try:
            judge(output, now(), ops, how)
        except PorterError as error:
            output.error(error)

    run(lambda: find_watched_files(now()), act)
    return DONE
