"""What the tools of a fork get to call porter: edits of the fork's own files, once, and undone as a whole."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from expecttest import assert_expected_inline

from porter.cli.toolbelt import TOOL_NAMES
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.journal import undo
from porter.core.layout import LINTRUNNER, MATCHER, NATIVE_FUNCTIONS, PRE_COMMIT, PROJECT, SPIN_COMMANDS, SPIN_PORTER
from porter.plan.toolbelt import ENTRY, TOOLS, plan_toolbelt
from porter.report.review import LINTER, review_text
from porter.review.rule import Finding, Review, Severity
from porter.workflows.toolbelt import NAME, write_toolbelt

ROOT = Path(__file__).resolve().parents[3]
PYPROJECT = """\
[project]
name = "torch"

[tool.spin]
package = 'torch'

[tool.spin.commands]
"Build" = [
  ".spin/cmds.py:lint",
]

# Types #####

[tool.other]
strict = true
"""
COMMANDS = """\
import click, nowhere_to_be_found

QUICK_LINTERS = {
    "TABS",
}
FAST_LINTERS = {
    "NATIVEFUNCTIONS",
    "RUFF",
}
"""
HOOKS = """\
repos:
- repo: https://example.com/hooks
  rev: v1
  hooks:
  - id: check-yaml

# what follows is not a hook
ci: {}
"""


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    files = {
        NATIVE_FUNCTIONS: "", PROJECT: PYPROJECT, SPIN_COMMANDS: COMMANDS, PRE_COMMIT: HOOKS,
        LINTRUNNER: "merge_base_with = 'origin/main'\n\n[[linter]]\ncode = 'RUFF'\ncommand = ['ruff']",
    }  # fmt: skip
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def read_all(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_the_fork_has_it_all_after_one_write_and_a_second_changes_nothing(fork: Path) -> None:
    before = read_all(fork)
    write_toolbelt(Checkout(fork, ""), plan_toolbelt(Checkout(fork, "")))
    assert set(read_all(fork)) - set(before) == {SPIN_PORTER, MATCHER}
    again = plan_toolbelt(Checkout(fork, ""))
    assert (again.changes.edits, again.left_out) == ((), ())
    undo(Checkout(fork, ""), NAME)
    assert read_all(fork) == before


def test_each_file_keeps_its_lines(fork: Path) -> None:
    changes = plan_toolbelt(Checkout(fork, "")).changes
    diff = "".join(
        part for part in re.split(r"^(?=diff)", changes.diff(1), flags=re.MULTILINE) if "new file" not in part
    )
    assert_expected_inline(
        diff,
        """\
diff --git a/.lintrunner.toml b/.lintrunner.toml
--- a/.lintrunner.toml
+++ b/.lintrunner.toml
@@ -4,2 +4,20 @@
 code = 'RUFF'
-command = ['ruff']
\\ No newline at end of file
+command = ['ruff']
+
+[[linter]]
+code = 'PORTER'
+include_patterns = [
+    'aten/src/ATen/native/mps/**',
+    'aten/src/ATen/native/native_functions.yaml',
+    'c10/metal/**',
+    'test/test_mps.py',
+    'torch/testing/_internal/**',
+]
+command = [
+    'porter',
+    'lint',
+    '--format',
+    'lintrunner',
+    '--',
+    '@{{PATHSFILE}}',
+]
diff --git a/.pre-commit-config.yaml b/.pre-commit-config.yaml
--- a/.pre-commit-config.yaml
+++ b/.pre-commit-config.yaml
@@ -5,2 +5,10 @@
   - id: check-yaml
+- repo: local
+  hooks:
+    - id: porter-lint
+      name: porter lint
+      entry: porter lint
+      language: system
+      files: ^(aten/src/ATen/native/(mps/|native_functions\\.yaml)|c10/metal/|test/test_mps\\.py|torch/testing/_internal/)
+      require_serial: true
 
diff --git a/.spin/cmds.py b/.spin/cmds.py
--- a/.spin/cmds.py
+++ b/.spin/cmds.py
@@ -7,2 +7,3 @@
     "NATIVEFUNCTIONS",
+    "PORTER",
     "RUFF",
diff --git a/pyproject.toml b/pyproject.toml
--- a/pyproject.toml
+++ b/pyproject.toml
@@ -10,2 +10,7 @@
 ]
+"Ports of MPS operators" = [
+  ".spin/porter.py:port",
+  ".spin/porter.py:port_verify",
+  ".spin/porter.py:port_status",
+]
 
""",
    )


def test_the_tools_read_what_is_written(fork: Path) -> None:
    texts = plan_toolbelt(Checkout(fork, "")).changes.apply()
    repositories = yaml.safe_load(texts[PRE_COMMIT])["repos"]
    assert [hook["id"] for each in repositories for hook in each["hooks"]] == ["check-yaml", "porter-lint"]
    if sys.version_info >= (3, 11):
        import tomllib

        commands = tomllib.loads(texts[PROJECT])["tool"]["spin"]["commands"]
        assert list(commands) == ["Build", "Ports of MPS operators"]
        adapters = tomllib.loads(texts[LINTRUNNER])["linter"]
        assert adapters[1]["code"] == LINTER and adapters[1]["command"][-1] == "@{{PATHSFILE}}"
        assert {entry.partition(":")[2] for entry in commands["Ports of MPS operators"]} <= set(
            re.findall(r"^def (\w+)", texts[SPIN_PORTER], re.MULTILINE)
        )


def test_commands_that_one_version_lacked_join_the_others(fork: Path) -> None:
    text = PYPROJECT.replace('cmds.py:lint",\n', f'cmds.py:lint",\n  "{SPIN_PORTER}:port",\n')
    (fork / PROJECT).write_text(text)
    new = plan_toolbelt(Checkout(fork, ""), ["spin"]).changes.apply()[PROJECT]
    assert f'"{SPIN_PORTER}:port",\n  "{SPIN_PORTER}:port_verify",\n  "{SPIN_PORTER}:port_status",\n]\n' in new


def test_a_fork_without_commands_gets_a_table_for_them(fork: Path) -> None:
    (fork / PROJECT).write_text("[project]\nname = 'torch'")
    new = plan_toolbelt(Checkout(fork, ""), ["spin"]).changes.apply()[PROJECT]
    assert new.startswith("[project]\nname = 'torch'\n\n[tool.spin]\npackage = 'torch'\n\n[tool.spin.commands]\n")


def test_a_file_of_spins_own_comes_before_the_project(fork: Path) -> None:
    (fork / "spin.toml").write_text("[tool.spin.commands]\n")
    changed = plan_toolbelt(Checkout(fork, ""), ["spin"]).changes.files
    assert changed == (SPIN_PORTER, "spin.toml")


def test_tools_without_a_place_are_left_out_unless_they_are_named(fork: Path) -> None:
    (fork / PROJECT).unlink()
    (fork / LINTRUNNER).unlink()
    planned = plan_toolbelt(Checkout(fork, ""))
    assert [tool for tool, _ in planned.left_out] == ["spin", "lintrunner"]
    assert set(planned.changes.files) == {MATCHER, PRE_COMMIT}
    with pytest.raises(PorterError) as error:
        plan_toolbelt(Checkout(fork, ""), ["spin"])
    assert error.value.code == "PTR151"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (PROJECT, "[tool.spin]\ncommands = ['.spin/cmds.py:lint']\n"),
        (SPIN_COMMANDS, "FAST_LINTERS = {"),
        (SPIN_COMMANDS, "SLOW_LINTERS = {'RUFF'}"),
        (PRE_COMMIT, "repos: [{repo: local, hooks: [{id: mine}]}]\n"),
        (PRE_COMMIT, "- no hooks\n"),
        (PRE_COMMIT, "repos: [\n"),
        pytest.param(
            LINTRUNNER, "[[linter]\n", marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="reads no TOML")
        ),
    ],
)
def test_a_file_that_is_written_in_another_way_is_refused(fork: Path, path: str, text: str) -> None:
    (fork / path).write_text(text)
    with pytest.raises(PorterError) as error:
        plan_toolbelt(Checkout(fork, ""))
    assert (error.value.code, error.value.place and error.value.place.file) == ("PTR152", path)


def test_the_matcher_reads_what_lint_prints(fork: Path) -> None:
    text = plan_toolbelt(Checkout(fork, ""), ["github"]).changes.apply()[MATCHER]
    pattern = json.loads(text)["problemMatcher"][0]["pattern"][0]
    finding = Finding("a/b.mm", 7, 3, "index-width", Severity.ERROR, "an offset: 32 bits [sic]", "Widen it.")
    lines = review_text(Review("HEAD", ("a/b.mm",), (), (finding,))).splitlines()
    (match,) = filter(None, (re.search(pattern["regexp"], line) for line in lines))
    fields = {name: match[group] for name, group in pattern.items() if name != "regexp"}
    assert fields == {
        "file": "a/b.mm", "line": "7", "severity": "error", "message": "an offset: 32 bits [sic]", "code": "index-width",
    }  # fmt: skip


def test_the_pages_and_the_hook_of_the_repository_say_the_same(fork: Path) -> None:
    assert tuple(TOOLS) == TOOL_NAMES
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    local = yaml.safe_load(plan_toolbelt(Checkout(fork, ""), ["pre-commit"]).changes.apply()[PRE_COMMIT])["repos"][-1]
    (written,) = local["hooks"]
    assert written | {"language": hook["language"], "description": hook["description"]} == hook
    assert ENTRY.strip() in (ROOT / "docs" / "toolbelt.md").read_text()
