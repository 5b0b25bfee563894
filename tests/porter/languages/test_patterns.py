"""Patterns of C++ find what they say, however it is laid out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.languages.patterns import find_code, has_code, match_code

CODE = "Tensor out = at::empty({2, f(x)}, self.options());\nout.copy_(  memory);  // out.copy_(none)\nint a = b; a = c;"


@pytest.mark.parametrize(
    ("pattern", "holes"),
    [
        ("$to.copy_($from)", {"to": "out", "from": "memory"}),
        ("$name = empty($$arguments)", {"name": "out", "arguments": "{2, f(x)}, self.options()"}),
        ("empty({$$sizes}, $$rest)", {"sizes": "2, f(x)", "rest": "self.options()"}),
        ("$a = b; $a = $c;", {"a": "a", "c": "c"}),
        ("f($$x", {"x": ""}),
    ],
)
def test_holes_have_what_stands_there(pattern: str, holes: dict[str, str]) -> None:
    [place] = find_code(CODE, pattern)
    assert place.holes == holes


@pytest.mark.parametrize(
    "pattern", ["$a = b; $a = $a;", "out.copy_(none)", "empty($one)", "std::empty($$all)", "empt($$all)"]
)
def test_what_differs_is_not_found(pattern: str) -> None:
    assert not has_code(CODE, pattern)


def test_all_of_a_text_has_a_pattern() -> None:
    assert match_code("ns::f(a, (b))", "$f($$x)") is None
    assert match_code("ns::f(a, (b))", "g($$x)", "f($$x)") is not None
    assert match_code("f(a) + g(b)", "f($$x)") is None


@given(st.text(alphabet="ab;(){} ,", max_size=30))
def test_any_text_is_found_in_itself_up_to_spaces(text: str) -> None:
    spaced = f"z {text} z".replace("(", " ( ")
    if text.strip() and "$" not in text:
        assert has_code(spaced, f"z {text} z")
