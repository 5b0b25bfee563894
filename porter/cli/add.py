"""`porter add`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from porter.cli.options import command, complete_missing, proof
from porter.cli.output import DONE, INCOMPLETE, NOT_PLANNED, Output
from porter.cli.ports import show_helpers, show_outcomes, show_port
from porter.core.errors import PorterError
from porter.core.files import read_named

if TYPE_CHECKING:
    from porter.verdict.result import Proof
    from porter.workflows.add import NewRequest, Request


@command(
    "add",
    ("porter add special_airy_ai", "show the kernel and verify it"),
    ("porter add gcd lcm --write", "add two operators and write both"),
    ("porter add --schema 'scale(Tensor self, *, float by=1) -> Tensor' --expr 'self * exp(by)'", "a new operator"),
)
@click.argument("ops", metavar="[OP...]", nargs=-1, shell_complete=complete_missing)
@click.option("--schema", metavar="TEXT", help="The schema of an operator that is new to PyTorch.")
@click.option("--expr", "formula", metavar="EXPR", help="What it computes, such as 'self * exp(alpha)'.")
@click.option("--functor", type=click.Path(path_type=Path), metavar="FILE", help="Its Metal functor, if not from EXPR.")
@click.option("--write", is_flag=True, help="Write the change set to the checkout.")
@click.option("--force", is_flag=True, help="Write even if a touched file has uncommitted changes.")
@click.option("--no-verify", is_flag=True, help="Only plan; do not verify.")
@click.option("--unverified", is_flag=True, help="With --write, also write what no verdict of all tests has passed.")
@click.option("--with-helpers", is_flag=True, help="Add functions that MetalShaderLibrary lacks, as their own change.")
@proof
def add(
    output: Output,
    ops: tuple[str, ...],
    schema: str | None,
    formula: str | None,
    functor: Path | None,
    write: bool,
    force: bool,
    no_verify: bool,
    unverified: bool,
    with_helpers: bool,
    proof: Proof,
) -> int:
    """Add operators that MPS lacks, or one that is new to PyTorch.

    OP is an operator that the CPU and CUDA compute through a stub: its kernel is translated from the CPU's. With
    --schema, a new operator is made of an expression or a functor. Nothing is written without --write.
    """
    from porter.plan.new_operator.elementwise import ExpressionWish
    from porter.workflows.add import NewRequest, Request

    _check_options(ops, schema, formula, functor)
    if schema is not None:
        text = read_named(functor, "PTR319", "Check its name.") if functor else ""
        return _add_new(output, NewRequest(ExpressionWish(schema, formula or "", text), write, force, not no_verify))
    return _add(output, Request(ops, write, force, None if no_verify else proof, with_helpers, unverified))


def _check_options(ops: tuple[str, ...], schema: str | None, formula: str | None, functor: Path | None) -> None:
    """Raises PTR320 for options that do not go together."""
    given = formula is not None or functor is not None
    if ops and (schema is not None or given):
        what = f"{ops[0]} is named beside --schema, --expr or --functor"
    elif schema is None and given:
        what = "--expr and --functor need --schema"
    elif schema is not None and not given:
        what = "--schema needs --expr or --functor"
    elif schema is None and not ops:
        what = "no operator is named"
    else:
        return
    raise PorterError("PTR320", what, hint="Name operators that MPS lacks, or give --schema with --expr or --functor.")


def _add(output: Output, request: Request) -> int:
    from porter.plan.helpers import HelperPlan
    from porter.workflows.add import add as run
    from porter.workflows.migrate import NotPlanned, PortedOperator, Wrote

    code, kept = DONE, list[PortedOperator | NotPlanned]()
    try:
        for found in run(output.open_checkout(request.write), request, output.report_step):
            if isinstance(found, PortedOperator | NotPlanned):
                kept.append(found)
            match found:
                case NotPlanned(op, error):
                    output.error(error, f"porter: {op}")
                    code = INCOMPLETE
                case HelperPlan():
                    show_helpers(output, found, alone=request.proof is None)
                case PortedOperator():
                    show_port(output, found, alone=request.proof is None)
                    code = code if found.done else INCOMPLETE
                case Wrote(files):
                    output.note(f"wrote {len(files)} files; `porter undo` reverts them")
    finally:
        show_outcomes(output, kept, alone=request.proof is None)
    return code if any(isinstance(port, PortedOperator) for port in kept) else NOT_PLANNED


def _add_new(output: Output, request: NewRequest) -> int:
    from porter.plan.new_operator.planner import NewOperatorPlan
    from porter.verdict.result import Verdict
    from porter.workflows.add import add_new as run
    from porter.workflows.migrate import PortedOperator, Wrote

    code = DONE
    for found in run(output.open_checkout(request.write), request, output.report_progress):
        match found:
            case NewOperatorPlan():
                show_port(output, PortedOperator(found.plan), alone=not request.verify)
            case Verdict():
                output.verdict(found)
                code = code if found.ok else INCOMPLETE
            case Wrote(files):
                output.note(f"wrote {len(files)} files; `porter undo` reverts them")
    return code
