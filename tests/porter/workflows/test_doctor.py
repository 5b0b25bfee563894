"""porter doctor: one table has the parts and the versions that were tried, and the pages say the same."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.report.upkeep import Part, is_complete, parts_lines, parts_object
from porter.workflows import setup

ROOT = Path(__file__).resolve().parents[3]
TORCH = Part("torch", "verdicts", True, "pip install torch", ("2.13.0", "2.15"), "2.13.0+cpu")
NUMPY = Part("numpy", "verdicts", True, "pip install torch", (), "")
MCP = Part("mcp", "porter mcp", False, "pip install mcp", (), "")


def test_what_is_missing_has_one_command_each() -> None:
    newer = Part("clang", "verdicts", True, "porter setup", ("19",), "190.1")
    assert_expected_inline(
        "\n".join(parts_lines((TORCH, NUMPY, MCP, newer))),
        """\
part   version            tried         for
torch  2.13.0+cpu         2.13.0, 2.15  verdicts
numpy  missing                          verdicts
mcp    missing                          porter mcp
clang  190.1 (not tried)  19            verdicts
verdicts need: numpy: pip install torch
optional: mcp: pip install mcp""",
    )
    assert not is_complete((TORCH, NUMPY)) and is_complete((TORCH, MCP))


def test_a_version_of_the_table_stands_for_those_that_begin_with_it() -> None:
    versions = {"2.13.0+cpu": True, "2.15.1": True, "2.13.1": False, "2.150": False}
    parts = [Part("torch", "", True, "", TORCH.tried, version) for version in versions]
    assert [part["is_tried"] for part in parts_object(parts)["parts"]] == list(versions.values())


def test_this_machine_runs_tests_and_so_has_what_they_need() -> None:
    parts = {part.name: part for part in setup.examine()}
    assert is_complete(tuple(parts.values()))
    assert parts["torch"].version == metadata.version("torch") and re.match(r"\d+\.\d", parts["clang"].version)


def test_without_a_compiler_or_a_package_these_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setenv("PATH", "")
    from aten_overlay.metal import compiler, zig

    compiler.find_clang.cache_clear()
    monkeypatch.setattr(zig, "find_clang", lambda: None)
    try:
        parts = setup.examine()
    finally:
        compiler.find_clang.cache_clear()
    assert [part.name for part in parts if part.version] == ["Python"]
    assert not is_complete(parts)


def test_the_page_and_the_table_have_the_same_releases_of_torch() -> None:
    page = (ROOT / "docs" / "your-fork.md").read_text()
    table = page[page.index("| torch | tried | result |") :].split("\n\n")[0]
    (torch,) = (part for part in setup.examine() if part.name == "torch")
    assert tuple(re.findall(r"\d+\.\d+\.\d+", table)) == torch.tried
    assert f"torch=={torch.tried[0]} " in (ROOT / "README.md").read_text()


def test_each_extra_that_a_command_names_is_one_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    for part in setup.examine():
        for extra in re.findall(r"torch-porter\[(\w+)\]", part.command):
            assert re.search(rf"^{extra} = ", project, re.MULTILINE), part
