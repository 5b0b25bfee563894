"""`python -m porter`: the command line of this very package, whichever is installed.

`-m` puts the current folder first among those that modules come from. Where that is a checkout, its `torch` or `yaml`
would run: it goes before anything else is imported. (Python itself looks there for `runpy` and for porter before this;
`python -P -m porter` and `porter` keep a checkout out from the start.)
"""

import os
import sys


def leave_out_current_folder() -> None:
    """Takes out of `sys.path` what `-m` and empty entries of `$PYTHONPATH` put there.

    It stays where porter itself is there, or `$PYTHONPATH` names it.
    """
    here, packages = os.getcwd(), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH109, PTH100, PTH120
    named = [os.path.realpath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if os.path.realpath(here) not in (os.path.realpath(packages), *named):
        sys.path[:] = [entry for entry in sys.path if entry not in ("", here)]


if __name__ == "__main__":
    leave_out_current_folder()

import gc  # noqa: E402
import signal  # noqa: E402

INTERRUPTED = 130
# Of what a plan allocates, most is kept until the end: looking for garbage at the usual rate takes a fifth of the time.
GARBAGE = (2_000_000, 20, 100)
# Folders of porter's. A process that it starts is in another folder, where a relative path would be another one.
FOLDERS = ("PORTER_CACHE", "PORTER_STATE", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")


def make_folders_absolute() -> None:
    """Replaces relative paths of porter's folders in the environment, which its processes inherit."""
    os.environ.update({name: os.path.abspath(os.environ[name]) for name in FOLDERS if os.environ.get(name)})  # noqa: PTH100


def main() -> int:
    """Runs one command, ended by Ctrl-C without a traceback: at once while it starts or ends, else by cleaning up."""
    gc.set_threshold(*GARBAGE)
    try:
        return _run()
    finally:
        gc.freeze()  # the process ends: Python would look for garbage in all of it several times


def _run() -> int:
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, as under nohup, or another's
        make_folders_absolute()
        from porter.cli import main as run

        return run()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    make_folders_absolute()
    from porter.cli import main as run

    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        return INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
