"""A promotion as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from porter.plan.promotion.planner import PromotionPlan


def summary(plan: PromotionPlan) -> str:
    """The schema, the kernels, who runs the operator, and what is left to decide."""
    return "\n".join([plan.promotion.op, *(f"  {label:<9}{value}" for label, value in _rows(plan))])


def _rows(plan: PromotionPlan) -> Iterator[tuple[str, str]]:
    promotion = plan.promotion
    yield "schema", str(promotion.schema)
    names = ("_".join((promotion.op, *each)) for each in promotion.kernel.instances)
    yield "kernels", " ".join(names) if promotion.kernel.parameters else promotion.op
    yield "CPU", "; ".join(promotion.cpu) if promotion.cpu else "none"
    yield from _label("decide", map(str, plan.decisions))


def _label(label: str, values: Iterator[str]) -> Iterator[tuple[str, str]]:
    for at, value in enumerate(values):
        yield "" if at else label, value


def promotion_object(plan: PromotionPlan) -> dict[str, Any]:
    """A planned promotion as a JSON object, with its diff."""
    promotion = plan.promotion
    return {
        "op": promotion.op,
        "schema": str(promotion.schema),
        "files": list(plan.changes.files),
        "cpu": list(promotion.cpu),
        "decisions": [
            {"code": each.code, "file": each.place.file, "line": each.place.line, "what": each.what}
            for each in plan.decisions
        ],
        "diff": plan.changes.diff(),
    }
