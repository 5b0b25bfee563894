"""The tokens of an edited text, from those that it had before: they are those that lexing all of it gives."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from porter.languages.lexer import lex
from porter.languages.source import Source, parse_source, relex

# What decides how far a token goes: quotes, comments, raw strings, directives and lines that go on.
FRAGMENTS = (
    '"',
    "'",
    "\\\n",
    "\n",
    " ",
    "/*",
    "*/",
    "//",
    "#if x",
    'R"(',
    ')"',
    "a",
    "1'0",
    "{",
    "}",
    "\\",
    "\r\n",
    '@"',
)
TEXT = st.lists(st.sampled_from(FRAGMENTS), max_size=24)


@settings(max_examples=400)
@given(TEXT, TEXT.map(lambda parts: parts[:4]), st.integers(0, 24), st.integers(0, 4))
@example(['"', "a", "\\\n", "a", "\n", "a"], ['"'], 4, 0)
@example(["a", "\n", "/*", "\n", "a", "\n"], ["*/"], 4, 0)
def test_an_edited_text_has_the_tokens_of_the_whole_text(parts: list[str], new: list[str], at: int, gone: int) -> None:
    before, after = "".join(parts), "".join([*parts[:at], *new, *parts[at + gone :]])
    assert relex(before, tuple(lex(before)), after) == tuple(lex(after))


LINES = st.lists(st.sampled_from((*FRAGMENTS, f"\n{'ab ' * 30}\n", f"\n{'cd;' * 30}\n  ")), max_size=40)
EDIT = st.tuples(LINES.map(lambda parts: parts[:3]), st.integers(0, 40), st.integers(0, 3))


@settings(max_examples=400)
@given(LINES, st.lists(EDIT, max_size=4))
def test_a_text_with_several_edits_has_the_tokens_of_the_whole_text(
    parts: list[str], edits: list[tuple[list[str], int, int]]
) -> None:
    before, edited = "".join(parts), parts
    for new, at, gone in edits:
        edited = [*edited[:at], *new, *edited[at + gone :]]
    after = "".join(edited)
    assert relex(before, tuple(lex(before)), after) == tuple(lex(after))


def test_tokens_between_edits_are_not_lexed_again() -> None:
    text = "".join(f"int a{at};\n" for at in range(300))
    tokens = tuple(lex(text))
    edited = f"int b;\n{text.replace('int a150;', 'int a_150;').replace('int a151;', '')}int c;\n"
    made = relex(text, tokens, edited)
    kept = {id(token.text) for token in tokens} & {id(token.text) for token in made}
    assert made == tuple(lex(edited))
    assert len(kept) > 300


def test_tokens_far_from_an_edit_are_not_lexed_again() -> None:
    text = "int a;\n" * 100
    tokens = tuple(lex(text))
    edited = text[:350] + "int b;\n" + text[350:]
    made = relex(text, tokens, edited)
    kept = {id(token) for token in tokens} & {id(token) for token in made}
    assert made == tuple(lex(edited))
    assert len(kept) > 200


def test_a_later_version_of_a_file_is_read_as_it_stands() -> None:
    first = parse_source("a.mm", "void f() {}\n\nvoid g() {}\n")
    second = parse_source("a.mm", "void f() {}\n\nvoid h() { int a; }\n\nvoid g() {}\n")
    assert [each.name for each in first.functions()] == ["f", "g"]
    assert second == Source.parse("a.mm", second.text)
    assert [each.name for each in second.functions()] == ["f", "h", "g"]
