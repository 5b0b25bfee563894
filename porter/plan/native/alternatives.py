"""A helper that is called once for each result: one launch makes all, if its other code is the same for each call."""

from __future__ import annotations

import re
from collections.abc import Collection

from porter.core.errors import PorterError
from porter.metal.native.host_values import list_results
from porter.plan.native.body import replace_graph
from porter.plan.native.target import Target

_RETURNED = re.compile(r"\breturn\b[^;]*;")
_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_ASKED = re.compile(r"\bRESULT\b(?!\.(?:numel|dim|sizes|scalar_type)\(\))")  # all else but what results have in common


def refuse_differing(target: Target, needed: Collection[str]) -> None:
    """Raises PTR405 for a helper whose code besides the graph depends on the result that it is called for."""
    bodies = (target.body, *target.alternatives)
    plain = {_normalize(replace_graph(each, target.place, needed).code, target) for each in bodies}
    if target.alternatives and (len(plain) > 1 or any(map(_ASKED.search, plain))):
        what = f"{target.function.name} calls a helper for each result, which does more than to run a graph"
        raise PorterError("PTR405", what, target.place, "See docs/errors/PTR405.md.")


def _normalize(body: str, target: Target) -> str:
    """A body with one name for all results, without what it returns and without the words of its messages."""
    body = _RETURNED.sub("return;", body)
    for each in list_results(target.variables).values():
        body = re.sub(rf"\b{re.escape(each)}\b", "RESULT", body)
    return " ".join(_STRINGS.sub('""', body).split())
