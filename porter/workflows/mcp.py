"""`porter mcp`: porter's commands as the tools of a Model Context Protocol server, for programs that write kernels.

A tool runs a command in a process of its own, as a person would with `--json`, so that both get the same answers: the
device has to come up before torch does, and a script that ends its process ends no server.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

from porter import __version__
from porter.core.python import own_module

INSTRUCTIONS = """\
porter moves PyTorch's MPS operators from MPSGraph to native Metal kernels, and runs Metal kernels on this machine
without a Mac. Verdicts come from the backend they name; none was run on Apple hardware. `exit_code` 0 is success,
1 a finding, a failed verdict or an incomplete plan, 2 an error, with a code that `explain` has a page for.
Nothing is written unless the server was started with --write.\
"""


@dataclass(frozen=True)
class Answer:
    """What a command ends with: the JSON objects it prints, and the messages and errors for a person."""

    exit_code: int
    objects: list[dict[str, Any]]
    messages: str


@dataclass(frozen=True)
class Commands:
    """The tools. Their docstrings and types are what a client reads."""

    checkout: Path | None

    async def status(self, pattern: str = "*", portable: bool = False) -> Answer:
        """List the operators of the PyTorch fork whose names match a pattern such as `log*`: what each is written in,
        and how it could be ported. `portable` keeps those that can be.
        """
        return await self._run("status", *["--portable"] * portable, "--", pattern)

    async def explain(self, name: str) -> Answer:
        """Show each stage of the port of an operator and the kernel, or the page of an error code such as PTR264."""
        return await self._run("explain", "--", name)

    async def plan_migration(self, operators: list[str], verify: bool = True) -> Answer:
        """Plan the port of operators from MPSGraph to Metal: the diff, and by default its verdict, which takes from
        ten seconds to a few minutes an operator. Nothing is written.
        """
        return await self._run("migrate", *["--no-verify"] * (not verify), "--", *operators)

    async def verify(self, operators: list[str]) -> Answer:
        """Build and test the fork's code of operators as it is now."""
        return await self._run("verify", "--", *operators)

    async def review(self, base: str = "HEAD", verify: bool = False) -> Answer:
        """Review what changed in the fork since a commit or branch: findings by file and line, and on request the
        verdicts of the operators it touches.
        """
        return await self._run("review", *["--no-verify"] * (not verify), "--", base)

    async def check_kernel(self, file: str, arithmetic: str = "default", sanitize: str = "") -> Answer:
        """Compare the kernels of a script, a Python file with a SCRIPT, with their references: cases, layouts, sizes of
        threadgroups. `arithmetic`: default, fused, flush, reorder, fast or all. `sanitize`: races, bounds or all.
        The file is run as Python.
        """
        checks = ["--sanitize", sanitize] if sanitize else []
        return await self._run("kernel", "check", "--arithmetic", arithmetic, *checks, "--", file)

    async def trace_kernel(self, file: str, watch_nan: bool = False) -> Answer:
        """Run a script stage by stage up to the first element that is wrong: its index, what was expected, who wrote
        it. `watch_nan` also stops at the first NaN or infinity made of finite numbers. The file is run as Python.
        """
        return await self._run("kernel", "trace", *["--watch", "nan"] * watch_nan, "--", file)

    async def write_migration(self, operators: list[str]) -> Answer:
        """Write the port of operators to the checkout after a thorough verdict that passes. `undo` reverts it."""
        return await self._run("migrate", "--write", "--", *operators)

    async def undo(self) -> Answer:
        """Revert what porter wrote last to the checkout, byte for byte."""
        return await self._run("undo")

    async def _run(self, *words: str) -> Answer:
        fork = ["--checkout", str(self.checkout)] if self.checkout else []
        program = own_module("porter.__main__", "--json", "--no-color", *fork, *words)
        # A client that gives up ends the command. Scripts are named from the folder that the server was started in.
        done = await anyio.run_process(
            program.command, stdin=subprocess.DEVNULL, env=dict(program.environment), check=False
        )
        lines = done.stdout.decode(errors="replace").splitlines()
        objects, rest = [], []
        for line in lines:
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            if isinstance(value, dict):
                objects.append(value)
            else:
                rest.append(line)  # printed by the script
        messages = "\n".join((*rest, done.stderr.decode(errors="replace")))
        return Answer(done.returncode, objects, messages.strip())


def make_server(checkout: Path | None, may_write: bool) -> MCPServer[Any]:
    """The server. Only with `may_write` does it have tools that write to the checkout."""
    commands = Commands(checkout)
    reading: tuple[Callable[..., Any], ...] = (
        commands.status, commands.explain, commands.plan_migration, commands.verify, commands.review,
        commands.check_kernel, commands.trace_kernel,
    )  # fmt: skip
    writing: tuple[Callable[..., Any], ...] = (commands.write_migration, commands.undo) if may_write else ()
    server = MCPServer[Any]("porter", instructions=INSTRUCTIONS, version=__version__)
    for tool in (*reading, *writing):
        annotations = ToolAnnotations(read_only_hint=tool in reading, destructive_hint=tool in writing)
        server.tool(annotations=annotations)(tool)
    return server


def serve(checkout: Path | None, may_write: bool) -> None:
    """Answers on stdin and stdout until stdin ends."""
    make_server(checkout, may_write).run("stdio")
