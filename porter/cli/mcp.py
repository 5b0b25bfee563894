"""`porter mcp`: porter's commands as tools of a Model Context Protocol server."""

from __future__ import annotations

import click

from porter.cli.options import command
from porter.cli.output import DONE, Output


@command(
    "mcp",
    ("porter mcp", "on stdin and stdout, for the fork that commands would take"),
    ("porter --checkout ~/pytorch mcp --write", "ports may be written to this fork, and undone"),
)
@click.option("--write", is_flag=True, help="Also offer the tools that write a port to the checkout and undo it.")
def mcp(output: Output, write: bool) -> int:
    """Serve status, explain, migrate, verify, review and kernel checks to a program, as MCP tools.

    Speaks the Model Context Protocol on stdin and stdout until stdin ends. A tool answers with the exit code, the JSON
    objects and the messages of the command it stands for. Without --write, none writes to the checkout; a kernel's
    script is run as Python by the tools that say so.
    """
    from porter.workflows.mcp import serve

    serve(output.settings.checkout, write)
    return DONE
