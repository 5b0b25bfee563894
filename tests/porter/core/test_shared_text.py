"""What two texts share at their start and end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from porter.core.edits import common_end, common_start

WORDS = st.text(alphabet="ab", max_size=12)


@given(WORDS, WORDS)
def test_texts_share_no_more_than_what_is_found(one: str, other: str) -> None:
    start = common_start(one, other)
    assert one[:start] == other[:start]
    assert one[start : start + 1] != other[start : start + 1] or start == min(len(one), len(other))
    end = common_end(one, other, start)
    assert one[len(one) - end :] == other[len(other) - end :]
    assert start + end <= min(len(one), len(other))
    full = start + end == min(len(one), len(other))
    assert full or one[len(one) - end - 1] != other[len(other) - end - 1]
