"""Words found by plain search are those that a regular expression finds."""

import re

from hypothesis import given
from hypothesis import strategies as st

from porter.languages.identifiers import contains_identifier


@given(st.text("ab_é1 .(", max_size=12), st.text("ab_", min_size=1, max_size=3))
def test_a_word_is_found_where_a_regular_expression_finds_it(text: str, name: str) -> None:
    assert contains_identifier(text, name) is (re.search(rf"\b{name}\b", text) is not None)
