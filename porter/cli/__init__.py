"""The command line: one module per command. Each reads its arguments, calls a workflow and prints the result."""

from porter.cli.app import main

__all__ = ["main"]
