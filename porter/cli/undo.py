"""`porter undo`."""

from __future__ import annotations

from porter.cli.options import command
from porter.cli.output import DONE, Output


@command("undo", ("porter undo --checkout ~/pytorch", "revert the last write to that checkout"))
def undo(output: Output) -> int:
    """Revert the last write, byte for byte."""
    from porter.core import journal

    files = journal.undo(output.find_checkout())
    if output.json:
        output.object({"files": list(files)})
    else:
        output.text(f"reverted {len(files)} files")
    return DONE
