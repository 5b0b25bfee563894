"""The short form of the kill harness, and that it finds what it looks for."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kill_writes
from porter.core import confined, journal
from porter.core.errors import PorterError


def test_a_write_that_is_ended_or_fails_anywhere_leaves_all_or_nothing() -> None:
    result = kill_writes.run(kills=250)
    assert result.wrong == ()
    assert result.kills == 250 and result.failures > 50
    assert {"nothing to do", "finished", "rolled back", "edited: nothing to do", "edited: PTR059"} == set(
        result.outcomes
    )


def test_no_change_leaves_a_file_empty() -> None:
    """A change set deletes such a file: the tree after it is another."""
    subjects = [kill_writes.make_subject(random.Random(seed)) for seed in range(300)]
    assert all(data or data == each.before.get(name) for each in subjects for name, data in each.after.items())


def in_place(root: Path, path: str, token: str, data: bytes, mode: int | None) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)
    confined.write_synced(os.open(root / f"{path}.{token}", os.O_WRONLY | os.O_CREAT, 0o600), data)
    (root / f"{path}.{token}").replace(root / path)


def unchecked(root: Path, path: str, token: str, _expected: str | None) -> bool:
    (root / path).with_name(f".{(root / path).name}.{token}.porter").replace(root / path)
    return True


def uncoded(*_: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        (journal, "_roll_back", lambda *_: None),
        (journal, "_remove_folders", lambda *_: None),
        (journal, "_settle", lambda *_: "rolled back"),
        (journal, "_missing_folders", uncoded),
        (confined, "discard_beside", lambda *_: None),
        (confined, "write_beside", in_place),
        (confined, "swap_in", unchecked),
        (confined, "put_back", lambda *_: None),
    ],
)
def test_the_harness_finds_a_journal_that_is_broken(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, fault: Callable[..., Any]
) -> None:
    monkeypatch.setattr(where, name, fault)
    try:
        wrong = bool(kill_writes.run(kills=400, seed=10).wrong)
    except (PorterError, OSError):  # what recovery itself raises is found as well
        wrong = True
    assert wrong
