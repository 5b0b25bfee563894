"""Words found by plain search are those that a regular expression finds."""

import re

from hypothesis import given
from hypothesis import strategies as st

from porter.languages.identifiers import contains_identifier, rename_identifiers


@given(st.text("ab_é1 .(", max_size=12), st.text("ab_", min_size=1, max_size=3))
def test_a_word_is_found_where_a_regular_expression_finds_it(text: str, name: str) -> None:
    assert contains_identifier(text, name) is (re.search(rf"\b{name}\b", text) is not None)


@given(st.text("ab_é1 .(", max_size=20), st.lists(st.text("ab_1é.", max_size=3), min_size=8, max_size=20))
def test_words_asked_of_one_text_again_and_again_are_the_same(text: str, names: list[str]) -> None:
    text += " " * 5000  # what was asked of a short text is not kept
    for name in names:
        found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
        assert contains_identifier(text, name) is (bool(name) and found)


def test_identifiers_are_renamed_together_and_members_are_not() -> None:
    assert rename_identifiers("a + b.a - ab * a(b)", {"a": "b", "b": "a"}) == "b + a.a - ab * b(a)"
