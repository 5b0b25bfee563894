"""`porter add`."""

from __future__ import annotations

import click

from porter.cli.options import command, complete_missing, expression, proof
from porter.cli.output import DONE, INCOMPLETE, Output
from porter.cli.ports import show_port


@command(
    "add",
    ("porter add special_airy_ai", "show the kernel and verify it"),
    ("porter add gcd lcm --write", "add two operators and write both"),
    ("porter status --missing", "what MPS lacks, and what each would take"),
)
@click.argument("ops", metavar="OP...", nargs=-1, required=True, shell_complete=complete_missing)
@click.option("--write", is_flag=True, help="Write the change set to the checkout.")
@click.option("--force", is_flag=True, help="Write even if a touched file has uncommitted changes.")
@click.option("--no-verify", is_flag=True, help="Only plan; do not verify.")
@expression
@proof
def add(
    output: Output,
    ops: tuple[str, ...],
    write: bool,
    force: bool,
    no_verify: bool,
    expr: str | None,
    backend: str,
    arithmetic: str,
    large: bool,
) -> int:
    """Add kernels for operators that MPS lacks.

    OP is an operator that the CPU and CUDA compute through a stub: its kernel is translated from the CPU's. Nothing is
    written without --write.
    """
    from porter.workflows.add import Request
    from porter.workflows.add import add as run
    from porter.workflows.migrate import PortedOperator
    from porter.workflows.verify import Proof

    request = Request(ops, write, force, None if no_verify else Proof(expr, backend, arithmetic, large))
    code = DONE
    for found in run(output.open_checkout(write), request, output.report_step):
        if isinstance(found, PortedOperator):
            show_port(output, found, alone=no_verify)
            code = code if found.done else INCOMPLETE
        else:
            output.note(f"wrote {len(found.files)} files; `porter undo` reverts them")
    return code
