"""`porter verify`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from porter.cli.options import command, expression, operators, proof
from porter.cli.output import DONE, INCOMPLETE, Output

if TYPE_CHECKING:
    from porter.core.checkout import Checkout
    from porter.workflows.verify import Proof


@command(
    "verify",
    ("porter verify exp", "a native operator as the fork has it"),
    ("porter verify atan2 -k float16", "a port, in some of its tests"),
    ("porter verify atan2 --arithmetic all", "under every arithmetic that a GPU may have"),
)
@operators(required=True)
@expression
@proof
def verify(output: Output, ops: tuple[str, ...], expr: str | None, backend: str, arithmetic: str) -> int:
    """Lint, compile and test operators: as they stand, or their ports.

    An operator that is native is tested as the fork has it, any other as its port would be.
    """
    from porter.workflows.verify import Proof

    return judge(output, output.open_checkout(), ops, Proof(expr, backend, arithmetic))


def judge(output: Output, checkout: Checkout, ops: tuple[str, ...], proof: Proof) -> int:
    """Prints the verdict on each operator; raises what verifying raises."""
    from porter.report.as_json import verdict_object
    from porter.report.verdict import style_verdict, table
    from porter.workflows.verify import verify_operators

    code = DONE
    for verdict in verify_operators(checkout, ops, proof, output.report_step):
        if output.json:
            output.object(verdict_object(verdict))
        else:
            output.text(table(verdict), partial(style_verdict, verdict))
        code = code if verdict.ok else INCOMPLETE
    return code
