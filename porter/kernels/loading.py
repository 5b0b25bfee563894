"""Runs a script's file and finds its `SCRIPT`."""

from __future__ import annotations

import runpy
import traceback
from pathlib import Path

from porter.core.errors import Place, PorterError
from porter.kernels.script import Script

NAME = "SCRIPT"


def load(path: Path) -> Script:
    """The `SCRIPT` of a file. Raises PTR238 (cannot be run) or PTR239 (has none)."""
    if not path.is_file():
        raise PorterError("PTR238", "there is no such script", Place(str(path)), "Check the path.")
    try:
        found = runpy.run_path(str(path)).get(NAME)
    except PorterError:
        raise
    except Exception as error:
        raise PorterError("PTR238", f"the script cannot be run: {_told(error)}", _place(path, error)) from error
    if not isinstance(found, Script):
        hint = "Give it a module-level `SCRIPT = Script(...)`, as `porter kernel new quickstart` does."
        raise PorterError("PTR239", f"the script has no {NAME}", Place(str(path)), hint)
    return found


def _told(error: Exception) -> str:
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]


def _place(path: Path, error: Exception) -> Place:
    """The script's last line on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return Place(str(path), error.lineno or 0)
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return Place(str(path), lines[-1] if lines else 0)
