"""What a fork's own tools call of porter: edits of the files that configure spin, lintrunner, pre-commit and GitHub.

A tool is a function that yields edits, none where the fork has them already. Nothing of the fork is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.plan.toolbelt.github import add_problem_matcher
from porter.plan.toolbelt.lintrunner import add_linter
from porter.plan.toolbelt.pre_commit import add_hook
from porter.plan.toolbelt.spin import add_commands

TOOLS: Mapping[str, Callable[[Checkout], Iterator[Edit]]] = {
    "spin": add_commands,
    "lintrunner": add_linter,
    "pre-commit": add_hook,
    "github": add_problem_matcher,
}
NO_PLACE = "PTR151"


@dataclass(frozen=True)
class Toolbelt:
    """The edits for some tools, and the tools for which the fork has no place, each with why."""

    changes: ChangeSet
    left_out: tuple[tuple[str, PorterError], ...]


def plan_toolbelt(checkout: Checkout, tools: Sequence[str] = ()) -> Toolbelt:
    """Plans what some of `TOOLS` need; none stands for all, less what the fork has no place for.

    Raises PTR151 for a tool that is named and has no place, PTR152 for a file that is not as its tool reads it, and
    what `Checkout.read` raises.
    """
    edits, left_out = list[Edit](), list[tuple[str, PorterError]]()
    for tool in dict.fromkeys(tools) or TOOLS:
        try:
            edits += TOOLS[tool](checkout)
        except PorterError as error:
            if tools or error.code != NO_PLACE:
                raise
            left_out.append((tool, error))
    base = {edit.file: checkout.read(edit.file) for edit in edits if checkout.exists(edit.file)}
    return Toolbelt(ChangeSet(base, tuple(edits)), tuple(left_out))
