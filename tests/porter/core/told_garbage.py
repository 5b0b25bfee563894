"""A program for tests: prints how seldom Python looks for garbage, where it is imported, runs, and runs porter."""

from __future__ import annotations

import gc

import porter.__main__

_AT_IMPORT = gc.get_threshold()


def main() -> int:
    """Prints the thresholds in turn."""
    print(_AT_IMPORT)
    print(gc.get_threshold())
    vars(porter.__main__)["_run"] = lambda: print(gc.get_threshold())
    porter.__main__.main()
    return 0
