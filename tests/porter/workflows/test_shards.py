"""Shares of a run: each name is in one of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.errors import PorterError
from porter.report.results import Shard, parse_shard


@given(st.lists(st.text(), unique=True), st.integers(1, 12))
def test_shares_divide_the_names(names: list[str], count: int) -> None:
    shares = [Shard(number, count).select(names) for number in range(1, count + 1)]
    assert sorted(name for share in shares for name in share) == sorted(names)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_share_is_read_as_it_is_written() -> None:
    assert parse_shard("2/8") == Shard(2, 8)
    assert str(parse_shard("8/8")) == "8/8"


@pytest.mark.parametrize(
    "text", ["", "2", "0/8", "9/8", "2/0", "2/8/3", "a/b", "-1/8", "2/ 8", "1/" + "9" * 5000, "\u0661/8"]
)
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(PorterError, match="PTR326"):
        parse_shard(text)
