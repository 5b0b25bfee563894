"""`python -m aten_overlay SCRIPT.py ARGS...` or `-m MODULE ARGS...`: runs a program with the mps device present.

With `$PORTER_CHECKOUT` and `$PORTER_OPERATORS` (names with commas between) those operators run the fork's own code.
"""

import os
import sys


def leave_out_current_folder() -> None:
    """Takes out of `sys.path` what `-m` and empty entries of `$PYTHONPATH` put there.

    In the root of a fork its `torch` and `torchgen` would hide the installed ones. It stays where this package itself
    is there, or `$PYTHONPATH` names it.
    """
    here, packages = os.getcwd(), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH109, PTH100, PTH120
    named = [os.path.realpath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if os.path.realpath(here) not in (os.path.realpath(packages), *named):
        sys.path[:] = [entry for entry in sys.path if entry not in ("", here)]


if __name__ == "__main__":
    leave_out_current_folder()

import faulthandler  # noqa: E402
import gc  # noqa: E402
import runpy  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

import aten_overlay  # noqa: E402
from aten_overlay.errors import OverlayError  # noqa: E402

# Torch and the device stay: looking for garbage among them at the usual rate takes a fifth of the time to start.
_GARBAGE = (50_000, 10, 10)
_USAGE = "usage: python -m aten_overlay (SCRIPT.py | -m MODULE | -c CODE) [ARGS...]"


def main(arguments: Sequence[str] | None = None, prepare: Callable[[], None] | None = None) -> int:
    """Starts the device, calls `prepare`, then runs the program as Python would. 2 if there is no program or no device.

    Without arguments, those of the process.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help") or (arguments[0] in ("-m", "-c") and len(arguments) == 1):
        print(_USAGE, file=sys.stderr)
        return 2
    usual = gc.get_threshold()
    gc.set_threshold(*_GARBAGE)
    try:
        aten_overlay.start_from_environment(os.environ)
    except OverlayError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        gc.set_threshold(*usual)  # the program's own garbage holds tensors
    faulthandler.enable()  # a kernel may write where no memory is
    if prepare is not None:
        prepare()
    _run(arguments)
    return 0


def _run(arguments: Sequence[str]) -> None:
    """Runs a program with the folder first on `sys.path` that Python puts there: the current one for `-m` and `-c`."""
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        _put_first(str(Path.cwd()))
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        _put_first("")
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = list(arguments)
        _put_first(str(Path(arguments[0]).resolve().parent))
        runpy.run_path(arguments[0], run_name="__main__")


def _put_first(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


if __name__ == "__main__":
    sys.exit(main())
