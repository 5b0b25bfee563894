"""Runs the `main` of a module of porter: `python start_module.py MODULE ARGS...`, as `porter.core.python` starts it.

Python puts this file's folder first among those that modules come from, and never the current one, which `-m` and `-c`
do. Before anything is imported, the folder of porter's packages takes its place.
"""

import sys

_HERE = __file__.rpartition("/")[0]
_PACKAGES = _HERE.rpartition("/")[0].rpartition("/")[0]


def _import_from_packages() -> None:
    sys.path[:] = [entry for entry in sys.path if entry not in ("", _HERE)]
    if _PACKAGES not in sys.path:  # where it is installed, it stays behind the standard library
        sys.path.insert(0, _PACKAGES)


if __name__ == "__main__":
    _import_from_packages()
    from importlib import import_module

    from porter.core.garbage import collecting_seldom

    del sys.argv[0]
    with collecting_seldom():
        module = import_module(sys.argv[0])
    sys.exit(module.main())
