"""The cache: keys differ where what they were made from does, and a value is whole or not there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core import cache

parts = st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=2, max_size=3)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))


def test_the_root_is_the_variable_s_or_the_home_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache.root() == tmp_path
    monkeypatch.setenv("PORTER_CACHE", "")
    assert cache.root() == Path.home() / ".cache" / "porter"


@given(parts, parts)
def test_digests_of_several_parts_keep_their_boundaries(one: list[str], other: list[str]) -> None:
    assert (cache.digest(*one) == cache.digest(*other)) == (one == other)


@given(st.binary(max_size=8))
def test_the_digest_of_one_part_is_the_hash_of_its_content(data: bytes) -> None:
    assert cache.digest(data) == hashlib.blake2b(data, digest_size=16).hexdigest()


def test_a_key_names_its_kind_and_its_subject(tmp_path: Path) -> None:
    assert (
        cache.key("recordings", "atan2", "a", "b") == tmp_path / "recordings" / f"atan2-{cache.digest('a', 'b')}.json"
    )
    assert cache.key("table", "", "a") == tmp_path / "table" / f"{cache.digest('a')}.json"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=8))
def test_what_is_put_is_got(text: str) -> None:
    file = cache.key("kind", "name", text)
    assert cache.get(cache.put(file, text)) == text
    assert [each.name for each in file.parent.glob(f"{file.name}*")] == [file.name]


def test_nothing_is_got_where_nothing_was_put() -> None:
    assert cache.get(cache.key("kind", "name", "never")) is None


def test_an_unchanged_file_is_not_written_again(tmp_path: Path) -> None:
    file = cache.put_if_changed(tmp_path / "folder" / "file", "text")
    before = file.stat().st_ino
    assert cache.put_if_changed(file, "text").stat().st_ino == before
    assert cache.put_if_changed(file, "other").read_text() == "other"
