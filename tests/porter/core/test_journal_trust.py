"""What a checkout says of earlier writes is not believed, and what the own journal says only where all of it fits."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.cli import main
from porter.core import confined, journal
from porter.core.change_set import ChangeSet
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.record import parse_record
from porter.core.writing import write

GOOD: Mapping[str, Any] = {
    "kind": "write",
    "number": 1,
    "token": "0123abcd",
    "folders": ["a/b"],
    "files": [{"path": "a/b/c", "before": None, "after": "0" * 32, "mode": 0o644, "blob": "0"}],
}
WRONG: Mapping[str, tuple[Any, ...]] = {
    "kind": ("", "undo ", 1, None, ["write"]),
    "number": ("/tmp/victim", "1", 0, -1, True, 1.0, None, [1]),
    "token": ("a", "../../x1", "0123ABCD", "0123abcd\n", 5, None),
    "folders": ("a", None, [""], ["/a"], [".."], ["a/../.."], ["a//b"], ["a\0b"], [1], {"a": 1}),
    "files": (None, "a", {}, [1], [None], [[]], GOOD["files"] * 2),
}
WRONG_FILE: Mapping[str, tuple[Any, ...]] = {
    "path": ("", "/etc/passwd", "../x", "a/../../x", ".", "a\0", 1, None, ["a"]),
    "before": ("", "0" * 31, "G" * 32, "0" * 32 + "\n", 0, [0]),
    "after": ("../../x", True),
    "mode": (-1, 0o10000, "644", True, 1.5),
    "blob": ("/etc/passwd", "../1", "", "x", 0, None, "1\n"),
}
CASES = [{**GOOD, name: value} for name, values in WRONG.items() for value in values]
CASES += [
    {**GOOD, "files": [{**GOOD["files"][0], name: value}]} for name, values in WRONG_FILE.items() for value in values
]
CASES += [{name: GOOD[name] for name in GOOD if name != left_out} for left_out in GOOD]
CASES += [{**GOOD, "more": 1}, {**GOOD, "files": [{}]}]

READING = (["status", "exp"], ["explain", "--no-record", "exp"], ["migrate", "atan2", "--no-verify"])

texts = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
anything = st.recursive(texts, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each, max_size=3))


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes | str | None]]:
    """Every path below a folder with its mode and what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        held = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, held)
    return found


def interrupt(root: Path) -> None:
    """Leaves a write of which the journal is complete and no file is written."""
    child = os.fork()
    if child == 0:
        journal._carry_out = lambda *_: os._exit(9)
        change(root)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def change(root: Path) -> None:
    checkout = Checkout(root, "a test")
    write(checkout, ChangeSet({"version.txt": checkout.read("version.txt")}, (Edit("version.txt", 0, 0, "x"),)))


def test_a_record_that_fits_is_read() -> None:
    assert parse_record(GOOD).files[0].path == "a/b/c"


@pytest.mark.parametrize("raw", CASES, ids=lambda raw: json.dumps(raw)[:60] if raw else "")
def test_a_record_with_a_wrong_field_is_none(raw: object) -> None:
    with pytest.raises(ValueError):
        parse_record(raw)


@given(anything, st.sampled_from(["", *GOOD]))
def test_no_json_is_followed_or_ends_in_another_error(value: Any, name: str) -> None:
    try:
        record = parse_record({**GOOD, name: value} if name else value)
    except ValueError:
        return
    assert all(map(confined.is_plain, (*record.folders, *(file.path for file in record.files))))


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("role", ["pending", "preparing", "done", "history/1"])
def test_a_journal_inside_a_checkout_is_not_followed(fork: Path, role: str, command: list[str]) -> None:
    victim = fork.parent / "victim"
    (victim / "empty").mkdir(parents=True)
    (fork / ".porter" / role).mkdir(parents=True)
    hostile = {**GOOD, "kind": "undo", "number": str(victim), "files": [], "folders": [str(victim / "empty")]}
    (fork / ".porter" / role / "record.json").write_text(json.dumps(hostile))
    before = snapshot(fork.parent)
    assert main(["--checkout", str(fork), *command]) == 0
    assert main(["--checkout", str(fork), "undo"]) == 2
    assert snapshot(fork.parent) == before


@pytest.mark.parametrize("name", ["", "/.gitignore", "/lock", "/history", "/done", "/pending"])
def test_links_in_a_checkout_s_porter_folder_are_not_followed(fork: Path, name: str) -> None:
    victim = fork.parent / "victim"
    victim.write_text("precious")
    place = fork / f".porter{name}"
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(victim)
    before = snapshot(fork.parent)
    change(fork)
    journal.undo(Checkout(fork, "a test"))
    assert snapshot(fork.parent) == before


def test_a_file_written_to_is_not_reached_through_a_new_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "sub").symlink_to(outside)
    (outside / "file").write_text("precious")
    for act in (
        lambda: confined.write_beside(tmp_path / "root", "sub/file", "t", b"x", None),
        lambda: confined.swap_in(tmp_path / "root", "sub/file", "t", "d"),
        lambda: confined.take_away(tmp_path / "root", "sub/file", "t", "d"),
        lambda: confined.read(tmp_path / "root", "sub/file"),
        lambda: confined.remove_empty_folder(tmp_path / "root", "sub/file"),
    ):
        with pytest.raises(OSError):
            act()
    assert snapshot(outside) == {"file": (0o100644, b"precious")}


@pytest.mark.parametrize("command", READING)
def test_a_command_that_writes_nothing_leaves_an_interrupted_write(
    fork: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt(fork)
    before = snapshot(fork), snapshot(journal.home_of(fork))
    assert main(["--checkout", str(fork), *command]) == 2
    assert (snapshot(fork), snapshot(journal.home_of(fork))) == before
    assert "PTR181 a write to this checkout was interrupted\n  Run `porter undo`" in capsys.readouterr().err


def test_undo_takes_an_interrupted_write_back_and_nothing_more(fork: Path) -> None:
    change(fork)
    before = snapshot(fork)
    interrupt(fork)
    assert [each.path for each in journal.undo(Checkout(fork, "a test")).files] == ["version.txt"]
    assert snapshot(fork) == before
    assert [each.path for each in journal.undo(Checkout(fork, "a test")).files] == ["version.txt"]
    assert snapshot(fork) != before


def test_the_next_write_settles_an_interrupted_one(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    interrupt(fork)
    assert main(["--checkout", str(fork), "migrate", "atan2", "--no-verify", "--unverified", "--write"]) == 0
    assert "an interrupted write was rolled back" in capsys.readouterr().err


@pytest.mark.parametrize("raw", [b"", b"[", b"[" * 100_000, b"{}", b"\xff", b"null"])
def test_a_damaged_record_of_the_own_journal_changes_nothing(fork: Path, raw: bytes) -> None:
    interrupt(fork)
    (journal.home_of(fork) / "pending" / "record.json").write_bytes(raw)
    before = snapshot(fork)
    with pytest.raises(PorterError) as refused:
        journal.recover(Checkout(fork, "a test"))
    assert refused.value.code == "PTR062"
    assert snapshot(fork) == before


def test_the_journal_of_one_checkout_is_not_another_s(fork: Path) -> None:
    change(fork)
    copy = shutil.copytree(fork, fork.parent / "copy")
    with pytest.raises(PorterError) as refused:
        journal.undo(Checkout(copy, "a test"))
    assert refused.value.code == "PTR057"


def test_the_journal_is_private_whatever_the_umask(fork: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PORTER_STATE", str(tmp_path / "state"))
    before = os.umask(0)
    try:
        change(fork)
    finally:
        os.umask(before)
    found = snapshot(tmp_path / "state")
    assert found and not [name for name, (mode, _) in found.items() if mode & 0o077]
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_state_folder_that_others_can_write_to_is_refused(
    fork: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int
) -> None:
    monkeypatch.setenv("PORTER_STATE", str(tmp_path / "state"))
    (tmp_path / "state" / "journals").mkdir(parents=True)
    (tmp_path / "state").chmod(mode)
    with pytest.raises(PorterError) as refused:
        change(fork)
    assert refused.value.code == "PTR180"


def test_what_cannot_be_settled_is_a_coded_error(fork: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(fork)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(30, "Read-only file system")))
        with pytest.raises(PorterError) as refused:
            journal.recover(Checkout(fork, "a test"))
    assert refused.value.code == "PTR060"
    assert journal.recover(Checkout(fork, "a test")) == "rolled back"
