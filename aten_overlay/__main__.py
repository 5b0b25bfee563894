"""`python -m aten_overlay SCRIPT.py ARGS...` or `-m MODULE ARGS...`: runs a program with the mps device present.

With `$PORTER_CHECKOUT` and `$PORTER_OPERATORS` (names with commas between) those operators run the fork's own code.
"""

from __future__ import annotations

import faulthandler
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import aten_overlay
from aten_overlay.errors import OverlayError

_USAGE = "usage: python -m aten_overlay (SCRIPT.py | -m MODULE | -c CODE) [ARGS...]"


def main(arguments: Sequence[str]) -> int:
    """Starts the device, then runs the program as Python would. 2 if there is no program or no device."""
    if not arguments or arguments[0] in ("-h", "--help") or (arguments[0] in ("-m", "-c") and len(arguments) == 1):
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        aten_overlay.start_from_environment(os.environ)
    except OverlayError as error:
        print(error, file=sys.stderr)
        return 2
    faulthandler.enable()  # a kernel may write where no memory is
    _run(arguments)
    return 0


def _run(arguments: Sequence[str]) -> None:
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = list(arguments)
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
