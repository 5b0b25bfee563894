"""`porter undo`."""

from __future__ import annotations

from porter.cli.options import command
from porter.cli.output import DONE, Output


@command("undo", ("porter undo --checkout ~/pytorch", "take back what porter wrote there last"))
def undo(output: Output) -> int:
    """Take the last written change set back, byte for byte."""
    from porter.core import journal

    files = journal.undo(output.find_checkout())
    if output.json:
        output.object({"files": list(files)})
    else:
        output.text(f"took back {len(files)} files")
    return DONE
