"""Plans the kernels of an operator that ATen computes on CPU and CUDA through a stub, and that MPS lacks."""

from __future__ import annotations

from collections.abc import Collection

from porter.aten.lacking import Family, explain_lack, find_family
from porter.aten.operator import Blocked, Migration, Operator, find_additions
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.metal.distributions import distributions
from porter.metal.kernel import FIRST_CANDIDATES, CandidateChoice
from porter.metal.kernel_spec import RecordedGraph, no_recording
from porter.plan.dialect import require_library
from porter.plan.plan import Plan
from porter.plan.planner import plan_kernels


def plan_addition(
    checkout: Checkout,
    op: str,
    choice: CandidateChoice = FIRST_CANDIDATES,
    recorded: RecordedGraph = no_recording,
    *,
    listed: Collection[str] = (),
    functor: str = "",
) -> Plan:
    """Plans the kernels of an operator that MPS lacks, with this choice of candidates.

    Entries of the test lists stay for the tests `listed`. A person's `functor` is written as it is.

    Raises PTR012 (unknown), PTR310 to PTR313 (not one that can be added), and what writing its kernels raises.
    """
    require_library(checkout)
    operator = Operator.read(checkout, op)
    rows = find_addable(checkout, operator)
    return plan_kernels(checkout, operator, rows, choice, recorded, listed=listed, functor=functor)


def find_addable(checkout: Checkout, operator: Operator) -> tuple[Migration | Blocked, ...]:
    """The rows that MPS can join. Raises PTR310 to PTR313 if none can, or none should."""
    found = find_additions(checkout, operator)
    family = find_family(checkout, operator)
    fills = family is Family.RANDOM and all(map(_only_fills, found))
    if not found or not (fills or family is Family.ELEMENTWISE):
        raise explain_lack(checkout, operator)
    return found


def _only_fills(row: Migration | Blocked) -> bool:
    """Whether a row only fills a tensor with random numbers of known distributions."""
    return isinstance(row, Migration) and all(call.stub.name in distributions() for call in row.stubs)


def find_obstacle(checkout: Checkout, operator: Operator) -> PorterError | None:
    """Why an operator cannot be added; None if there is a plan. A fork without the dialect is the last reason."""
    try:
        found = find_addable(checkout, operator)
        plan_kernels(checkout, operator, found, FIRST_CANDIDATES, no_recording)
    except PorterError as error:
        return error
    return None
