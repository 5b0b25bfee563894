"""`porter toolbelt`: writes what a fork's own tools call of porter."""

from __future__ import annotations

from porter.core.checkout import Checkout
from porter.core.writing import write
from porter.plan.toolbelt import Toolbelt

NAME = "toolbelt"  # what `porter undo` takes


def write_toolbelt(checkout: Checkout, planned: Toolbelt, force: bool = False) -> tuple[str, ...]:
    """Writes the edits, and returns the files. Raises as `write` does."""
    return write(checkout, planned.changes, force, (NAME,))
