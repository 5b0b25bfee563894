"""Plans the change set that adds a promoted kernel to a fork, and the same files for a folder of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from porter.core.change_set import ChangeSet
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import SCALAR_TYPES, Kind
from porter.core.errors import Place
from porter.core.layout import OPINFOS
from porter.plan.new_operator.operator import NewOperator
from porter.plan.new_operator.planner import draft_operator, format_files
from porter.plan.promotion.operator import write_operator
from porter.plan.promotion.promotion import Decision, Promotion
from porter.plan.promotion.style import Style, read_style

_KINDS = {scalar_type.torch: scalar_type.kind for scalar_type in SCALAR_TYPES}
_DIFFERENTIABLE = (Kind.FLOATING, Kind.COMPLEX)


@dataclass(frozen=True)
class PromotionPlan:
    """The promotion, the operator that it is, the change set that adds it, and what a person has to decide."""

    promotion: Promotion
    operator: NewOperator
    changes: ChangeSet
    decisions: tuple[Decision, ...]


def plan_promotion(checkout: Checkout, promotion: Promotion) -> PromotionPlan:
    """The change set that adds an operator to a fork.

    Raises PTR242 for an operator or a file that is there already, and what reading and formatting raise.
    """
    operator = write_operator(promotion, read_style(checkout))
    changes = draft_operator(checkout, operator, "PTR242", "Choose another --op.").changes
    decisions = list(_list_decisions(promotion))
    if not checkout.exists(OPINFOS):
        decisions.append(Decision(Place(OPINFOS), "the checkout has no list of OpInfos, so the operator has none"))
    return PromotionPlan(promotion, operator, changes, tuple(dict.fromkeys(decisions)))


def write_files(checkout: Checkout, promotion: Promotion) -> Mapping[str, str]:
    """The same texts as files of a folder: new files by their names, additions to others by what they are added to.

    The embedded fork stands for none: its files lack what PyTorch's do.
    """
    operator = write_operator(promotion, Style() if checkout.root == EMBEDDED_FORK else read_style(checkout))
    entry = f"\n\n# In op_db\n{operator.tests.opinfo}" if operator.tests.opinfo else ""
    decided = "".join(f"- {decision}\n" for decision in _list_decisions(promotion))
    return {
        **{path.rpartition("/")[2]: text for path, text in format_files(checkout, operator).items()},
        "native_functions.yaml": operator.write_rows(),
        "common_methods_invocations.py": operator.tests.functions + entry,
        "test_mps.py": operator.tests.case,
        "README.md": f"# {promotion.op}\n\nTo decide:\n\n{decided}",
    }


def _list_decisions(promotion: Promotion) -> Iterator[Decision]:
    yield from promotion.decisions
    place = promotion.program.launch.place
    if promotion.cpu and not promotion.has_opinfo:
        yield Decision(place, "the first argument is no tensor, as OpInfo's tests want it to be: there is no OpInfo")
    if any(_KINDS[dtype] in _DIFFERENTIABLE for dtypes in promotion.dtypes.values() for dtype in dtypes):
        what = "there is no gradient: add a formula to derivatives.yaml, or leave the operator without one"
        yield Decision(place, what)
