"""What is committed, and files of a commit, in repositories of each shape that git makes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from porter.core.errors import PorterError
from porter.core.git import read_differing, uncommitted


def read_blob(root: Path, revision: str, path: str) -> bytes | None:
    """What a commit has of a file that the checkout has not."""
    return read_differing(root, revision, [path], {}).get(path)


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def commit(root: Path, **files: str) -> str:
    for name, text in files.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    return git(root, "rev-parse", "HEAD")


def plain(folder: Path) -> Path:
    git(folder, "init", "-q")
    return folder


def hashed_by_sha256(folder: Path) -> Path:
    git(folder, "init", "-q", "--object-format=sha256")
    return folder


def linked(folder: Path) -> Path:
    (folder / "first").mkdir()
    git(folder / "first", "init", "-q")
    commit(folder / "first", unrelated="")
    git(folder / "first", "worktree", "add", "-q", "../second")
    return folder / "second"


def submodule(folder: Path) -> Path:
    for name in ("inner", "outer"):
        (folder / name).mkdir()
        git(folder / name, "init", "-q")
        commit(folder / name, unrelated="")
    git(folder / "outer", "submodule", "add", "-q", str(folder / "inner"), "sub")
    return folder / "outer" / "sub"


def shared(folder: Path) -> Path:
    (folder / "first").mkdir()
    git(folder / "first", "init", "-q")
    commit(folder / "first", unrelated="")
    git(folder, "clone", "-q", "--shared", "first", "second")
    return folder / "second"


@pytest.fixture(params=[plain, hashed_by_sha256, linked, submodule, shared])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made: Path = request.param(tmp_path)
    return made


def test_a_file_differs_from_the_commit_by_its_bytes(root: Path) -> None:
    commit(root, a="one\n", sub__b="two\n")
    contents = {"a": b"one\n", "sub/b": b"changed\n", "new": b"", "absent": None}
    assert uncommitted(root, contents) == ["sub/b", "new"]
    assert uncommitted(root, {"sub": None}) == ["sub"]
    assert uncommitted(root / "sub", {"b": b"two\n", "../a": b"", "c": b""}) == ["../a", "c"]


def test_a_file_is_read_as_a_commit_has_it(root: Path) -> None:
    first = commit(root, a="one\n", sub__b="two\n")
    commit(root, a="changed\n", c="three\n")
    git(root, "tag", "-a", "release", "-m", "x")
    git(root, "pack-refs", "--all")
    git(root, "gc", "-q")
    assert read_blob(root, first, "a") == b"one\n" == read_blob(root, "HEAD~1", "a")
    assert read_blob(root, "release", "c") == b"three\n"
    assert read_blob(root / "sub", first[:12], "b") == b"two\n"
    assert [read_blob(root, first, path) for path in ("c", "sub", "sub/c", "a/b")] == [None] * 4


@pytest.mark.parametrize("revision", ["nowhere", "--help", "HEAD:a", "HEAD^{tree}", "", "f" * 40, "a\0b"])
def test_what_names_no_commit_is_refused(tmp_path: Path, revision: str) -> None:
    commit(plain(tmp_path), a="one\n")
    with pytest.raises(PorterError) as refused:
        read_blob(tmp_path, revision, "a")
    assert refused.value.code == "PTR063"


def test_without_a_repository_nothing_counts_and_nothing_is_read(tmp_path: Path) -> None:
    assert uncommitted(tmp_path, {"a": b""}) == []
    with pytest.raises(PorterError, match="no git repository"):
        read_blob(tmp_path, "HEAD", "a")


def test_before_the_first_commit_every_file_counts(tmp_path: Path) -> None:
    assert uncommitted(plain(tmp_path), {"a": b"", "b": None}) == ["a"]


def test_a_checkout_that_its_surrounding_repository_does_not_have_is_free(tmp_path: Path) -> None:
    commit(plain(tmp_path), a="one\n")
    (tmp_path / "unpacked").mkdir()
    assert uncommitted(tmp_path / "unpacked", {"a": b""}) == []


def test_line_ends_that_git_makes_are_no_change(tmp_path: Path) -> None:
    commit(plain(tmp_path), unix="a\nb\n", dos="a\r\nb\r\n")
    assert uncommitted(tmp_path, {"unix": b"a\r\nb\r\n", "dos": b"a\r\nb\r\n"}) == []
    assert uncommitted(tmp_path, {"unix": b"a\r\nc\r\n"}) == ["unix"]


def test_a_replaced_object_hides_no_change(tmp_path: Path) -> None:
    commit(plain(tmp_path), a="one\n", b="mine\n")
    git(tmp_path, "replace", git(tmp_path, "rev-parse", "HEAD:a"), git(tmp_path, "rev-parse", "HEAD:b"))
    assert uncommitted(tmp_path, {"a": b"mine\n"}) == ["a"]
    assert read_blob(tmp_path, "HEAD", "a") == b"one\n"


@pytest.mark.parametrize("text", ["gitdir: nowhere\n", "x", "gitdir: /dev\n"])
def test_a_repository_that_is_none_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    with pytest.raises(PorterError) as refused:
        uncommitted(tmp_path, {"a": b""})
    assert refused.value.code == "PTR063"


def test_without_git_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(plain(tmp_path), a="one\n")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PorterError, match="cannot run git"):
        uncommitted(tmp_path, {"a": b""})
