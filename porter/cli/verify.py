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
    ("porter verify exp", "a native operator, as it is in the fork"),
    ("porter verify atan2 -k float16", "some tests of a port"),
    ("porter verify atan2 --arithmetic all", "under every arithmetic a GPU may use"),
    ("porter verify exp --large", "on tensors whose offsets pass 2^31 and 2^32 too"),
)
@operators(required=True)
@expression
@proof
def verify(output: Output, ops: tuple[str, ...], expr: str | None, backend: str, arithmetic: str, large: bool) -> int:
    """Lint, compile and test operators or their ports.

    A native operator is tested as it is in the fork; for any other, its port is tested.
    """
    from porter.workflows.verify import Proof

    return judge(output, output.open_checkout(), ops, Proof(expr, backend, arithmetic, large))


def judge(output: Output, checkout: Checkout, ops: tuple[str, ...], proof: Proof) -> int:
    """Prints the verdict on each operator. Raises what `verify_operators` raises."""
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
