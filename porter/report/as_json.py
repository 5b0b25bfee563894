"""Plans and verdicts as JSON objects, with the keys of docs/json.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from porter.plan.helpers import HelperPlan
from porter.plan.plan import Plan, RejectedCandidate
from porter.plan.promotion.planner import PromotionPlan

if TYPE_CHECKING:
    from porter.verdict.result import Failure, Verdict


def plan_object(
    plan: Plan, verdict: Mapping[str, Any] | None, rejected: Sequence[RejectedCandidate] = (), doubt: str = ""
) -> dict[str, Any]:
    """A plan as a JSON object. `functor` is the first of `functors`; `verdict` is null until verified, with `doubt`
    where no verdict that is remembered passed it either.
    """
    functors = [{"file": f.file, "name": f.name, "source": f.source, "origin": f.origin} for f in plan.functors]
    return {
        "op": plan.op,
        "entries": [{"name": e.name, "before": str(e.before), "after": str(e.after)} for e in plan.entries],
        "functor": functors[0] if functors else None,
        "functors": functors,
        "losers": [
            {
                "functor": each.functor,
                "kinds": [kind.value for kind in each.kinds],
                "source": str(each.source),
                "failed": each.failed,
                "reason": each.reason,
            }
            for each in rejected
        ],
        "registrations": [
            {"functor": r.functor, "macro": r.macro, "in": r.input, "out": r.output} for r in plan.registrations
        ],
        "stubs": [{"stub": s.stub, "function": s.function, "file": s.file} for s in plan.stubs],
        "removed": [{"file": r.file, "symbol": r.symbol} for r in plan.removed],
        "skip_lists": [{"file": c.file, "list": c.list, "entry": c.entry, "change": c.outcome} for c in plan.lists],
        "unported": [
            {"code": u.code, "file": u.place.file, "line": u.place.line, "reason": u.reason} for u in plan.unported
        ],
        "notes": list(plan.notes),
        "diff": plan.changes.diff(),
        "verdict": dict(verdict) if verdict is not None else None,
        "doubt": doubt,
    }


def helpers_object(found: HelperPlan) -> dict[str, Any]:
    """Functions that are added to MetalShaderLibrary for an operator, as a JSON object."""
    return {"helpers": list(found.names), "for": found.op, "diff": found.changes.diff()}


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


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """A verdict as a JSON object, with `dtypes` keyed by torch name, and each failure before and after the port."""
    dtypes = {each.dtype: {k: v for k, v in asdict(each).items() if k != "dtype"} for each in verdict.dtypes}
    failures = {name: [_failure(each) for each in getattr(verdict, name)] for name in ("failures", "failed_before")}
    return {"ok": verdict.ok, **asdict(verdict), "where": verdict.where, "dtypes": dtypes, **failures}


def _failure(failure: Failure) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(failure).items() if name != "findings"}
    return {**shown, "after": "failed"}
