"""The functions that a plan needs of a fork's MetalShaderLibrary, as a change set of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.metal.launchers.library import add_to_library, find_lacking
from porter.plan.plan import Draft, Plan


@dataclass(frozen=True)
class HelperPlan:
    """Functions to add to MetalShaderLibrary, for an operator."""

    op: str
    names: tuple[str, ...]
    changes: ChangeSet


def plan_helpers(fork: Checkout, op: str, plan: Callable[[Checkout], Plan]) -> HelperPlan | None:
    """Plans the functions that the fork lacks and the plan of an operator calls, or None if it calls none."""
    lacking = find_lacking(fork)
    if not lacking:
        return None
    try:
        wanted = plan(Draft(fork).apply(add_to_library(fork, lacking)).fork)
    except PorterError:  # the operator's own plan says why
        return None
    called = [each for each in lacking if any(f".{each.name}(" in edit.text for edit in wanted.changes.edits)]
    if not called:
        return None
    changes = Draft(fork).apply(add_to_library(fork, called)).changes
    return HelperPlan(op, tuple(each.name for each in called), changes)
