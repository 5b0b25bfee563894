"""`porter mcp`, asked over stdin and stdout by the client of the package `mcp`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters, stdio_client

SCRIPT = Path(__file__).parents[3] / "templates/silu.py"
READING = {"status", "explain", "plan_migration", "verify", "review", "check_kernel", "trace_kernel"}


def ask(*calls: tuple[str, dict[str, Any]], arguments: tuple[str, ...] = ()) -> tuple[set[str], list[dict[str, Any]]]:
    """The names of the server's tools, and its answer to each call."""

    async def talk() -> tuple[set[str], list[dict[str, Any]]]:
        words = ["-m", "porter", "--checkout", "embedded", "mcp", *arguments]
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            for name, tool in tools.items():
                assert tool.annotations is not None and tool.annotations.read_only_hint is (name in READING)
            results = [await client.call_tool(name, values) for name, values in calls]
        assert not any(result.is_error for result in results)
        return set(tools), [dict(result.structured_content or {}) for result in results]

    return asyncio.run(talk())


def test_tools_answer_as_commands_do() -> None:
    tools, (status, page, plan, unknown, option) = ask(
        ("status", {"pattern": "log*", "portable": True}),
        ("explain", {"name": "PTR264"}),
        ("plan_migration", {"operators": ["log1p"], "verify": False}),
        ("explain", {"name": "nothing_of_the_kind"}),
        ("plan_migration", {"operators": ["--write", "log1p"], "verify": False}),
    )
    assert tools == READING
    assert {row["name"] for row in status["objects"][0]["rows"]} >= {"log1p.out", "logit"}
    assert page["objects"][0]["page"].startswith("# PTR264: ")
    assert plan["objects"][0]["op"] == "log1p" and "+++ b/" in plan["objects"][0]["diff"]
    assert (unknown["exit_code"], unknown["objects"]) == (2, []) and "PTR012" in unknown["messages"]
    # An operator is never read as an option: nothing is written.
    assert option["exit_code"] == 2 and "PTR012" in option["messages"]


def test_a_script_is_checked() -> None:
    _, (checked,) = ask(("check_kernel", {"file": str(SCRIPT)}))
    assert checked["exit_code"] == 0, checked["messages"]
    assert checked["objects"] and all(json.dumps(result) for result in checked["objects"])


def test_only_a_server_that_may_write_has_tools_that_do() -> None:
    tools, _ = ask(arguments=("--write",))
    assert tools == READING | {"write_migration", "undo"}
