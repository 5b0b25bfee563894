"""`porter cache`."""

from __future__ import annotations

import click

from porter.cli.options import command
from porter.cli.output import DONE, Output


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
    from porter.core import cache as files
    from porter.core import cache_size
    from porter.report.cache import cache_object, cache_text

    bound = cache_size.parse_size(size) if size else cache_size.bound()
    removed = cache_size.prune(bound) if prune else None
    found = files.root(), bound, cache_size.measure(), removed
    if output.json:
        output.object(cache_object(*found))
    else:
        output.text(cache_text(*found))
    return DONE
