"""The verdict on an operator as a fork has it: on its native code, or on the port that porter plans."""

from __future__ import annotations

from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.planner import plan_operator
from porter.verdict.native import native_target
from porter.verdict.prove import prove
from porter.verdict.result import Verdict
from porter.verdict.verify import verify
from porter.workflows.candidates import judged

NOT_NATIVE = "PTR019"


def verified(checkout: Checkout, op: str, expr: str | None, backend: str, arithmetic: str) -> Verdict:
    """The verdict on an operator as the fork has it where it is native, else on its port. Raises as `prove` does."""
    try:
        target = native_target(checkout, op)
    except PorterError as error:
        if error.code != NOT_NATIVE:
            raise
        plan, base = plan_operator(checkout, op), op.split(".")[0]
        return judged(checkout, plan, lambda each: prove(checkout.root, each, base, expr, backend, arithmetic)).verdict
    return verify(checkout.root, {}, target, expr, backend, arithmetic=arithmetic)


def files_of(checkout: Checkout) -> tuple[Path, ...]:
    """The files whose change can change the verdict on operators: MPS's own, its headers, the yaml and the lists."""
    folders = ((MPS, (".h", ".mm")), (OPERATIONS, (".h", ".mm")), (KERNELS, (".metal", ".h")), (METAL_HEADERS, (".h",)))
    names = [path for folder, endings in folders for path in checkout.list(folder, *endings)]
    return tuple(checkout.root / name for name in (NATIVE_FUNCTIONS, *names))
