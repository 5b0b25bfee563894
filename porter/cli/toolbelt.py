"""`porter toolbelt`: porter in the tools that contributors of a fork type all day."""

from __future__ import annotations

import click

from porter.cli.options import command, group
from porter.cli.output import DONE, Output

TOOL_NAMES = ("spin", "lintrunner", "pre-commit", "github")


@command(
    "install",
    ("porter toolbelt install", "show what each tool of the fork would get"),
    ("porter toolbelt install --write", "the same, then write it"),
    ("porter toolbelt install spin lintrunner --write", "two tools only"),
    ("porter undo toolbelt", "revert it"),
)
@click.argument("tools", metavar="[TOOL...]", nargs=-1, type=click.Choice(TOOL_NAMES))
@click.option("--write", is_flag=True, help="Write the change set to the checkout.")
@click.option("--force", is_flag=True, help="Write even if a touched file has uncommitted changes.")
def install(output: Output, tools: tuple[str, ...], write: bool, force: bool) -> int:
    """Give the tools of a fork what calls porter, and show the diff.

    TOOL is spin (the commands port, port-verify and port-status), lintrunner (an adapter), pre-commit (a hook) or
    github (a problem matcher); by default each that the fork has a place for. Nothing of the fork is run, nothing is
    written without --write, and what is there already stays.
    """
    from porter.plan.toolbelt import plan_toolbelt
    from porter.workflows.toolbelt import write_toolbelt

    checkout = output.open_checkout(write)
    planned = plan_toolbelt(checkout, tools)
    diff = planned.changes.diff()
    written = write_toolbelt(checkout, planned, force) if write else ()
    if output.json:
        left_out = {tool: f"{error.code} {error.what}" for tool, error in planned.left_out}
        output.object({"diff": diff, "left_out": left_out, "written": list(written)})
        return DONE
    output.diff(diff)
    for tool, error in planned.left_out:
        output.note(f"{tool} is left out: {error.what}")
    if not diff:
        output.note("nothing to install: the fork has it all")
    elif write:
        output.note(f"wrote {', '.join(written)}\n  `porter undo toolbelt` reverts it")
    return DONE


toolbelt = group("toolbelt", "Call porter from the tools of a fork: spin, lintrunner, pre-commit and GitHub.", install)
