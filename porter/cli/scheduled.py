"""Runs the shares of a command on the machines of a scheduler, and prints what they print."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from porter.cli.output import Output

# Options of one machine: where the scheduler is, what it shares, and what is written here.
_OWN = ("scheduler", "insecure", "results", "shard", "checkout")
_ALONE = ("write", "force", "pull_request", "shard")


def run_scheduled(output: Output, address: str, results: Path | None, insecure: bool = False) -> int:
    """Runs the current command in shares, one for each worker. Returns the highest exit code among them."""
    from porter.workflows.results import digest_fork, write_results
    from porter.workflows.scheduler import run_shares

    context = click.get_current_context()
    given = context.params
    if not given.get("every") or any(given.get(name) for name in _ALONE):
        raise click.UsageError("--scheduler goes with --all, without --write, --shard and --pull-request.")
    checkout = output.open_checkout()
    arguments = [*_list_arguments(context), "--checkout", str(checkout.root.resolve())]
    found, merged = run_shares(address, arguments, digest_fork(checkout), output.report_step, insecure=insecure)
    for each in found:
        output.note(each.notes.rstrip("\n"))
        output.text(each.output.rstrip("\n"))
    if results:
        write_results(results, merged)
    return max(each.code for each in found)


def _list_arguments(context: click.Context) -> list[str]:
    """Returns the command with the options that were given."""
    made = [context.info_name or ""]
    for param in context.command.params:
        name = param.name or ""
        written = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not isinstance(param, click.Option) or name in _OWN or not written or not param.expose_value:
            continue
        made += [param.opts[0]] if param.is_flag else [param.opts[0], str(context.params[name])]
    return made
