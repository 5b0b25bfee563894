"""`python -m porter`: the command line of this very package, whichever is installed."""

import sys

from porter.cli import main

if __name__ == "__main__":
    sys.exit(main())
