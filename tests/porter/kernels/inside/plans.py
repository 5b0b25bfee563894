"""Plans that make operators of templates."""

from __future__ import annotations

from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.kernels.promotion.reading import read_promotion
from porter.kernels.promotion.subject import find_subject
from porter.plan.promotion.planner import PromotionPlan, plan_promotion
from porter.plan.promotion.promotion import ScriptWish

ROOT = Path(__file__).resolve().parents[4]


def plan(template: str, op: str, stage: str) -> PromotionPlan:
    """The plan that makes operator `op` of a stage of a template."""
    asked = ScriptWish(op, stage)
    subject = find_subject(ROOT / "templates" / f"{template}.py", asked)
    return plan_promotion(Checkout(EMBEDDED_FORK, "embedded"), read_promotion(subject, asked))
