"""`porter setup`, `porter doctor`, `porter cache` and `porter undo`: what is not about one operator."""

from __future__ import annotations

from dataclasses import asdict

import click

from porter.cli.options import command
from porter.cli.output import DONE, INCOMPLETE, Output


@command("setup", ("porter setup", "run once, before the first verdict"))
def setup(output: Output) -> int:
    """Find or install a compiler, and build what all verdicts share.

    As root, installs a system package; in a virtual environment, installs `ziglang` from PyPI. Then builds the
    stand-in for Apple's frameworks and the host code that every operator of the checkout shares.
    """
    from porter.report.upkeep import compiler_text, overlay_text
    from porter.workflows.setup import prepare, set_up

    compiler = set_up()
    if not output.json:
        output.text(compiler_text(compiler))
    overlay = prepare(output.open_checkout(), output.report_progress)
    output.show({"compiler": asdict(compiler), "overlay": asdict(overlay)}, overlay_text(overlay))
    return DONE


@command("doctor", ("porter doctor", "what is installed, and a command for what is not"))
def doctor(output: Output) -> int:
    """Say what of porter is installed, what is missing, and which versions were tried.

    Changes nothing and imports nothing of what it lists. Exits with 1 where something is missing that verdicts need.
    """
    from porter.report.upkeep import is_complete, parts_lines, parts_object
    from porter.workflows.setup import examine

    parts = examine()
    output.show(parts_object(parts), parts_lines(parts))
    return DONE if is_complete(parts) else INCOMPLETE


@command(
    "cache",
    ("porter cache", "show its size, by kind"),
    ("porter cache --prune --to 500M", "shrink it to 500 MB"),
)
@click.option("--prune", is_flag=True, help="Remove the least recently used files until the cache fits the limit.")
@click.option("--to", "size", metavar="SIZE", help="Another limit for --prune: 500M, 1G.")
def cache(output: Output, prune: bool, size: str | None) -> int:
    """Show the cache's size, and remove what has not been used for long.

    The limit is $PORTER_CACHE_SIZE, or 1G. Commands and verdicts keep to it: the least recently used files go first.
    Files used within the last hour stay.
    """
    from porter.core import cache
    from porter.core import cache as files
    from porter.report.upkeep import cache_object, cache_text

    bound = cache.parse_size(size) if size else cache.bound()
    removed = cache.prune(bound) if prune else None
    found = files.root(), bound, cache.measure(), removed
    output.show(cache_object(*found), cache_text(*found))
    return DONE


@command(
    "undo",
    ("porter undo --checkout ~/pytorch", "revert the last write to that checkout"),
    ("porter undo --list", "the writes that can be reverted, newest first"),
    ("porter undo hypot", "revert the last write that is about an operator"),
)
@click.argument("op", metavar="[OP]", required=False, default="")
@click.option("--list", "only_list", is_flag=True, help="List the writes that can be reverted; revert nothing.")
def undo(output: Output, op: str, only_list: bool) -> int:
    """Revert the last write, byte for byte.

    With OP, the last write that is about this operator. A file that has changed since is an error.
    """
    from porter.core import journal
    from porter.report.upkeep import list_writes, reverted_text, write_object

    checkout = output.find_checkout(to_write=not only_list)
    if only_list:
        writes = journal.list_writes(checkout)
        output.show({"writes": [write_object(write) for write in writes]}, list_writes(writes))
        return DONE
    record = journal.undo(checkout, op)
    output.show(write_object(record), reverted_text(record))
    return DONE
