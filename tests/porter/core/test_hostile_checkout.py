"""A checkout's own configuration, style and modules run and read nothing outside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from porter.core import formatting
from porter.core.change_set import ChangeSet
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.writing import write
from tests.conftest import ROOT

BLOCK = "void f( ) { }\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "fork"
    root.mkdir()
    (root / "a.mm").write_text("one\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *arguments], cwd=root, check=True)


def trap(root: Path) -> tuple[str, Path]:
    """A program that leaves a trace when it runs."""
    trace, program = root.parent / "ran", root.parent / "trap"
    program.write_text(f"#!/bin/sh\necho ran > {trace}\ncat\n")
    program.chmod(0o755)
    return str(program), trace


def change(root: Path) -> tuple[str, ...]:
    checkout = Checkout(root, "a test")
    return write(checkout, ChangeSet({"a.mm": checkout.read("a.mm")}, (Edit("a.mm", 0, 0, "x"),)))


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("core", "fsmonitor"),
        ("core", "sshCommand"),
        ("core", "pager"),
        ("diff", "external"),
        ('filter "f"', "clean"),
        ('filter "F"', "process"),
        ('filter "a.b"', "clean"),
        ('filter "a=b"', "clean"),
        ('filter ""', "clean"),
        ('filter ""', "process"),
    ],
)
@pytest.mark.parametrize("attributes", [".gitattributes", ".git/info/attributes"])
def test_nothing_that_a_repository_s_configuration_names_is_run(
    root: Path, section: str, key: str, attributes: str
) -> None:
    program, trace = trap(root)
    name = section.partition(" ")[2].strip('"')
    (root / attributes).write_text(f"* filter={name}\n")
    with (root / ".git/config").open("a") as config:
        config.write(f"[{section}]\n\t{key} = {program}\n\trequired = true\n")
    os.utime(root / "a.mm", (1, 1))  # so that git looks into it
    assert change(root) == ("a.mm",)
    assert not trace.exists()


def test_hooks_are_not_run(root: Path) -> None:
    program, trace = trap(root)
    git(root, "config", "core.hooksPath", str(root / "hooks"))
    for folder in (root / "hooks", root / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
            shutil.copy(program, folder / hook)
    os.utime(root / "a.mm", (1, 1))
    change(root)
    assert not trace.exists()


@pytest.mark.parametrize(
    "setting", ["core.worktree=/", "core.bare=true", "core.excludesFile=all", "core.attributesFile=all"]
)
def test_no_setting_of_the_repository_hides_an_uncommitted_change(root: Path, setting: str) -> None:
    name, _, value = setting.partition("=")
    (root.parent / "all").write_text("*\n")
    git(root, "config", name, str(root.parent / value) if value == "all" else value)
    (root / ".git/info/exclude").write_text("*\n")
    (root / "a.mm").write_text("mine\n")
    with pytest.raises(PorterError) as refused:
        change(root)
    assert refused.value.code == "PTR055"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_no_mark_in_the_index_hides_an_uncommitted_change(root: Path, flag: str) -> None:
    git(root, "update-index", flag, "a.mm")
    (root / "a.mm").write_text("mine\n")
    with pytest.raises(PorterError) as refused:
        change(root)
    assert refused.value.code == "PTR055"


@pytest.mark.parametrize("setting", ["core.excludesFile", "core.attributesFile", "include.path"])
def test_a_pipe_that_the_configuration_names_is_not_waited_for(root: Path, setting: str) -> None:
    os.mkfifo(root.parent / "pipe")
    for file in (".gitattributes", ".gitignore", ".git/info/attributes"):
        os.mkfifo(root / file)
    git(root, "config", setting, str(root.parent / "pipe"))
    assert change(root) == ("a.mm",)


@pytest.mark.parametrize("file", ["HEAD", "config", "packed-refs", "refs/heads/main", "objects/info/alternates"])
def test_a_pipe_inside_the_repository_stops_the_write(root: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("porter.core.git.SECONDS", 1)
    git(root, "branch", "-M", "main")
    if file == "packed-refs":
        git(root, "pack-refs", "--all")
    (root / ".git" / file).unlink(missing_ok=True)
    os.mkfifo(root / ".git" / file)
    with pytest.raises(PorterError) as refused:
        change(root)
    assert refused.value.code == "PTR063" and (root / "a.mm").read_text() == "one\n"


def test_git_looks_where_it_is_told_even_in_a_hook(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(root / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(root / "nowhere"))
    assert change(root) == ("a.mm",)


@pytest.mark.parametrize(
    "style",
    [
        "BasedOnStyle: InheritParentConfig\n",
        "InheritParentConfig: true\n",
        "BasedOnStyle: InheritParentConfig=/etc\n",
        'BasedOnStyle: "Inherit\\x50arentConfig"\n',
        "BasedOnStyle: Google\n---\nLanguage: Cpp\nBasedOnStyle: InheritParentConfig\n",
    ],
)
def test_a_style_that_inherits_from_outside_is_refused(root: Path, style: str) -> None:
    (root / ".clang-format").write_text(style)
    with pytest.raises(PorterError) as refused:
        formatting.format_block(Checkout(root, "a test"), "x.mm", BLOCK)
    assert refused.value.code == "PTR066"


def test_a_style_that_is_no_yaml_is_refused(root: Path) -> None:
    (root / ".clang-format").write_text("{" * 100_000)
    with pytest.raises(PorterError) as refused:
        formatting.format_block(Checkout(root, "a test"), "x.mm", BLOCK)
    assert refused.value.code == "PTR065"


def test_a_style_that_leads_out_is_refused(root: Path) -> None:
    (root.parent / "style").write_text("BasedOnStyle: Google\n")
    (root / ".clang-format").symlink_to(root.parent / "style")
    with pytest.raises(PorterError) as refused:
        formatting.format_block(Checkout(root, "a test"), "x.mm", BLOCK)
    assert refused.value.code == "PTR004"


@pytest.mark.parametrize("path", [f"{ROOT}", f"{ROOT}{os.pathsep}", f"{os.pathsep}{ROOT}"])
def test_modules_of_the_checkout_one_is_in_are_not_imported(tmp_path: Path, path: str) -> None:
    fork = shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")
    trace = tmp_path / "ran"
    for name in ("yaml", "click", "rich", "libcst", "torch", "json", "difflib", "fcntl", "numpy", "clang_format"):
        (fork / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write('{name} ')\n")
    for command in (["status", "exp"], ["migrate", "atan2", "--no-verify"], ["explain", "--no-record", "exp"]):
        done = subprocess.run(
            [sys.executable, "-m", "porter", *command], cwd=fork, env={**os.environ, "PYTHONPATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "the enclosing checkout" in done.stderr
    assert not trace.exists(), trace.read_text()
