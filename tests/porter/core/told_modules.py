"""A program for tests: prints what it was started with."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Prints the arguments, the folders of modules and this file. Exits with 7."""
    print(sys.argv[1:])
    print(os.pathsep.join(sys.path))
    print(__file__)
    return 7
