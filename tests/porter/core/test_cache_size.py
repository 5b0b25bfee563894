"""The cache is bounded: what was not used for longest goes, what is in use stays."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from aten_overlay import cache as overlay_cache
from porter.cli import main
from porter.core import cache
from porter.core.errors import PorterError

ORDER = "the least recently used files go first"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def library(root: Path, name: str, size: int, used: float) -> Path:
    path = overlay_cache.seal(overlay_cache.write(root / "libraries" / name, b"x" * size))
    for each in root.rglob(f"{name}*"):
        os.utime(each, (used, used))
    return path


def test_what_was_not_used_for_longest_goes_first(own_cache: Path) -> None:
    old, older, oldest = (library(own_cache, f"{n}.so", 1000, n) for n in (3, 2, 1))
    assert overlay_cache.is_intact(oldest)
    assert cache.prune(2100) == 1000 + 32
    assert (old.exists(), older.exists(), oldest.exists()) == (True, False, True)
    assert not older.with_name(f"{older.name}.seal").exists()


def test_a_value_that_is_read_counts_as_used(own_cache: Path) -> None:
    paths = [cache.put(cache.key("kind", str(n), str(n)), "x" * 100) for n in range(2)]
    for path in paths:
        os.utime(path, (1, 1))
    assert cache.get(paths[0])
    cache.prune(0)
    assert [path.exists() for path in paths] == [True, False]


def test_what_is_used_after_it_was_measured_stays(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache.put(own_cache / "kind" / "value.json", "1")
    os.utime(path, (1, 1))
    measured = list(cache._entries(own_cache))
    os.utime(path)
    monkeypatch.setattr(cache, "_entries", lambda _root: measured)
    assert cache.prune(0) == 0 and path.is_file()


def test_what_is_in_use_and_locks_stay(own_cache: Path) -> None:
    library(own_cache, "new.so", 10, 4e9)
    lock = overlay_cache.write(own_cache / "libraries" / "a.lock", b"")
    os.utime(lock, (1, 1))
    assert cache.prune(0) == 0 and lock.exists()


@pytest.mark.parametrize("kind", ["trees", "commands"])
def test_a_tree_or_a_command_and_its_settings_go_as_one(kind: str, own_cache: Path) -> None:
    for name in ("a/x", "a/x.json", "b/x", "b/x.json"):
        overlay_cache.write(own_cache / kind / name, b"12345")
    for path in sorted(own_cache.rglob("*")):
        os.utime(path, (1, 1) if "a" in path.parts or path.suffix == ".json" else None)
    assert cache.prune(10) == 10
    assert sorted(path.name for path in (own_cache / kind / "b").iterdir()) == ["x", "x.json"]
    assert not (own_cache / kind / "a").exists()


@pytest.mark.parametrize(("text", "size"), [("7", 7), ("2k", 2048), ("500M", 500 << 20), ("2GB", 2 << 30)])
def test_sizes_are_read(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_CACHE_SIZE", text)
    assert cache.bound() == size


def test_the_limit_is_one_gigabyte_if_nobody_says_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORTER_CACHE_SIZE", raising=False)
    assert cache.bound() == 1 << 30


def test_a_command_keeps_the_cache_bounded_oldest_first(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [library(own_cache, f"{used}.so", 1000, used) for used in (3, 1, 2)]
    running = library(own_cache, "running.so", 5000, time.time() - cache.IN_USE_SECONDS / 2)
    monkeypatch.setenv("PORTER_CACHE_SIZE", "6100")
    assert main(["cache"]) == 0
    assert [path.exists() for path in paths] == [True, False, False]
    assert running.exists()
    monkeypatch.setenv("PORTER_CACHE_SIZE", "10")
    assert main(["cache"]) == 0
    assert paths[0].exists()  # nothing is measured again within ten minutes
    os.utime(own_cache / "bounded", (1, 1))
    assert main(["cache"]) == 0
    assert running.exists() and not paths[0].exists()


def test_a_cache_that_is_not_there_is_not_made_to_be_bounded(own_cache: Path) -> None:
    cache.keep_bounded()
    assert not own_cache.exists()


@pytest.mark.parametrize("text", ["-1", "G", "1.5G", "²", "", " "])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(PorterError) as refused:
        cache.parse_size(text)
    assert refused.value.code == "PTR006"


def test_the_command_shows_and_prunes(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library(own_cache, "a.so", 3000, 1)
    assert main(["cache"]) == 0
    told = capsys.readouterr().out
    assert told == f"cache: {own_cache}\n  libraries     3.0 kB  2 files\n3.0 kB of at most 1.0 GB; {ORDER}\n"
    assert main(["cache", "--prune", "--to", "1k", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "root": str(own_cache),
        "bound": 1024,
        "kinds": [{"name": "libraries", "files": 0, "bytes": 0}],
        "removed": 3032,
    }


def test_an_empty_cache_is_shown(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--prune"]) == 0
    assert f"0 B of at most 1.0 GB; {ORDER}\nremoved 0 B\n" in capsys.readouterr().out
    assert not own_cache.exists()
