"""The command line that every tool has: its docstring is its help."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path


def parser(doc: str | None) -> ArgumentParser:
    """A parser whose help is the tool's docstring as it stands."""
    return ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)


def fork_parser(doc: str | None) -> ArgumentParser:
    """A parser whose first argument, `fork`, is the root of a checkout."""
    made = parser(doc)
    made.add_argument("fork", type=Path, help="the root of a PyTorch checkout")
    return made
