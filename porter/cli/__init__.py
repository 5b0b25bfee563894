"""The command line: one module a command. Each reads its arguments, calls one workflow, and prints what comes back."""

from porter.cli.app import main

__all__ = ["main"]
