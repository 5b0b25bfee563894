"""Snapshots: layers share what was read, and searches look where the word stands."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.checkout import Checkout, Folder
from porter.core.errors import PorterError

LINES = st.lists(st.text("ab(_ ", max_size=6), max_size=6).map("\n".join)


def folder(text: str) -> Folder:
    return Folder((("f.cpp", text.encode()),))


def test_a_pattern_may_span_the_lines_next_to_the_word() -> None:
    text = "first\nWRAP(\n  name)\nlast\n"
    assert folder(text).files_containing("name", r"WRAP\(\s*name\b") == ("f.cpp",)
    assert folder(text).files_containing("name", r"first\s*WRAP") == ()
    assert folder(text).files_containing("named") == ()


@given(LINES)
def test_a_search_of_one_line_finds_what_a_search_of_the_file_finds(text: str) -> None:
    pattern = r"^a\w*\(|\bb\b"
    for word in ("a", "b"):
        around = [line for line in text.split("\n") if word in line and re.search(pattern, line)]
        found = folder(text).files_containing(word, pattern)
        assert not around or found
        assert not found or re.search(pattern, text, re.M)


def test_layers_share_one_read_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("one")
    below = Checkout(tmp_path, "test")
    above = below.layer({"b.cpp": "two"})
    assert above.read("a.cpp") == "one"
    (tmp_path / "a.cpp").write_text("changed")
    assert (below.read("a.cpp"), above.read("a.cpp")) == ("one", "one")
    assert (above.exists("b.cpp"), below.exists("b.cpp")) == (True, False)
    assert set(below.hashes) == {"a.cpp"}


def test_a_search_caches_no_file_and_skips_unreadable_ones(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cpp").write_bytes(b"word \xff")
    (tmp_path / "src" / "a.h").write_text("word")
    checkout = Checkout(tmp_path, "test")
    assert checkout.folder("src", ".cpp").files_containing("word") == ("src/a.cpp",)
    assert checkout.folder("src", ".cpp") is checkout.layer({}).folder("src", ".cpp")
    assert checkout.hashes == {}


@pytest.mark.parametrize("missing", ["nowhere", "src/nowhere"])
def test_a_missing_folder_is_empty(tmp_path: Path, missing: str) -> None:
    assert Checkout(tmp_path, "test").folder(missing, ".cpp").files == ()


def test_a_snapshot_of_an_earlier_fork_has_its_texts_and_files(tmp_path: Path) -> None:
    for name in ("changed.mm", "new.mm", "same.mm"):
        (tmp_path / name).write_text("now")
    now = Checkout(tmp_path, "test")
    before = now.as_before({"changed.mm": "before", "new.mm": None, "gone.mm": "then"})
    assert [before.exists(name) for name in ("changed.mm", "new.mm", "gone.mm", "same.mm")] == [True, False, True, True]
    assert [before.read(name) for name in ("changed.mm", "gone.mm", "same.mm")] == ["before", "then", "now"]
    with pytest.raises(PorterError, match="PTR003"):
        before.read("new.mm")
    assert before.layer({"new.mm": "planned"}).read("new.mm") == "planned"
    assert now.read("changed.mm") == "now"


def test_folders_of_an_earlier_fork_are_those_of_then(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("changed.mm", "new.mm", "same.mm"):
        (tmp_path / "src" / name).write_text("now")
    before = Checkout(tmp_path, "test").as_before({"src/changed.mm": "x", "src/new.mm": None, "src/gone.mm": "then"})
    assert before.list("src", ".mm") == ["src/changed.mm", "src/gone.mm", "src/same.mm"]
    assert dict(before.folder("src", ".mm").files) == {
        "src/changed.mm": b"x",
        "src/gone.mm": b"then",
        "src/same.mm": b"now",
    }
    planned = before.layer({"src/new.mm": "planned"})
    assert planned.list("src", ".mm") == ["src/changed.mm", "src/gone.mm", "src/new.mm", "src/same.mm"]
