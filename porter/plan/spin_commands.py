"""Commands of spin that port MPS operators to Metal: `porter toolbelt install` wrote this file.

They run `porter` (`pip install torch-porter`), and hand it all words after their name.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
ALL_WORDS = {"ignore_unknown_options": True, "help_option_names": []}


def run_porter(*words: str) -> None:
    """Runs porter on this checkout, and ends with its exit code."""
    program = shutil.which("porter")
    if program is None:
        raise click.ClickException("porter is not installed: pip install torch-porter")
    done = subprocess.run([program, *words, "--checkout", str(ROOT)], check=False)
    raise SystemExit(done.returncode)


@click.command(context_settings=ALL_WORDS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def port(words: tuple[str, ...]) -> None:
    """Port operators from MPSGraph to Metal, show the diff and verify it; --write also writes it."""
    run_porter("migrate", *words)


@click.command(context_settings=ALL_WORDS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def port_verify(words: tuple[str, ...]) -> None:
    """Build and test operators as this checkout has them, without a Mac."""
    run_porter("verify", *words)


@click.command(context_settings=ALL_WORDS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def port_status(words: tuple[str, ...]) -> None:
    """List the operators with an MPS implementation, and what can be ported."""
    run_porter("status", *words)
