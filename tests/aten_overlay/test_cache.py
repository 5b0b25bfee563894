"""A cached result is whole, or it is made again; and nobody else may enter the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aten_overlay import cache
from aten_overlay.errors import OverlayError
from porter.core import cache as porter_cache
from porter.core.errors import PorterError
from porter.verdict.build.tree import materialise

DAMAGE: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "changed": lambda path: path.write_bytes(b"?" + path.read_bytes()[1:]),
    "gone": lambda path: path.unlink(),
}


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", ["", cache.SEAL])
def test_a_damaged_result_counts_as_missing(root: Path, damage: str, suffix: str) -> None:
    path = cache.seal(cache.write(root / "a" / "b.so", b"content"))
    assert cache.is_intact(path)
    DAMAGE[damage](path.with_name(path.name + suffix))
    cache._checked.clear()  # as another process sees it
    assert not cache.is_intact(path)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_result_that_was_read_once_is_read_again_when_it_changed(root: Path, damage: str) -> None:
    path = cache.seal(cache.write(root / "b.so", b"content"))
    assert cache.is_intact(path)
    DAMAGE[damage](path)
    assert not cache.is_intact(path)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_value_counts_as_missing(damage: str) -> None:
    path = porter_cache.put(porter_cache.key("kind", "name", "x"), '{"a": 1}')
    DAMAGE[damage](path)
    assert porter_cache.get(path) is None


@pytest.mark.parametrize("damage", ["emptied", "gone"])
@pytest.mark.parametrize("name", ["c10/metal/a.h", "c10/metal/edited.h"])
def test_a_damaged_tree_is_made_again(root: Path, tmp_path: Path, name: str, damage: str) -> None:
    (tmp_path / "fork/c10/metal").mkdir(parents=True)
    (tmp_path / "fork/c10/metal/a.h").write_text("int a;")
    texts = {"c10/metal/edited.h": "int b;"}
    tree = materialise(tmp_path / "fork", texts, root)
    file = tree.root / name
    file.unlink()
    if damage == "emptied":
        file.write_text("")
    again = materialise(tmp_path / "fork", texts, root).root
    assert [(again / each).read_text() for each in ("c10/metal/a.h", "c10/metal/edited.h")] == ["int a;", "int b;"]
    assert (again / "c10/metal/a.h").is_symlink()


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077])
def test_the_cache_is_private_whatever_the_umask(root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        cache.seal(cache.write(root / "one" / "two" / "file", b"x"))
        porter_cache.put(porter_cache.key("kind", "name", "x"), "value")
        porter_cache.put_if_changed(root / "three" / "file", "text")
    finally:
        os.umask(before)
    assert not [path for path in (root, *root.rglob("*")) if path.stat().st_mode & 0o077]


def test_an_open_cache_is_closed_and_one_that_others_wrote_to_refused(root: Path) -> None:
    root.mkdir(mode=0o755)
    for find in (cache.root, porter_cache.root):
        root.chmod(0o755)
        assert find().stat().st_mode & 0o777 == 0o700
    (root / "x").touch()
    root.chmod(0o777)
    with pytest.raises(OverlayError, match="can be written to by other users"):
        cache.root()
    with pytest.raises(PorterError, match="can be written to by other users"):
        porter_cache.root()


def test_a_writer_that_dies_leaves_what_was_there(root: Path) -> None:
    path = cache.write(root / "file", b"before")
    code = (
        "import os, sys, pathlib; from aten_overlay import cache\n"
        "pathlib.Path.replace = lambda *_: os._exit(9)\n"
        f"cache.write(pathlib.Path({str(path)!r}), b'after')"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert path.read_bytes() == b"before"
