"""The lexer: its tokens tile any text, and its functions are those that clang finds."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError
from porter.core.layout import OPERATIONS
from porter.languages.directives import expand, read_includes, read_macros
from porter.languages.source import Source

FILES = sorted((EMBEDDED_FORK / OPERATIONS).glob("*.mm"))
PIECES = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    '"',
    "'",
    "/*",
    "*/",
    "//",
    "\n",
    "#define X",
    "\\\n",
    'R"(',
    ')"',
    "f",
    " ",
    "^",
    "@",
    ";",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4)))
def test_tokens_tile_any_text(parts: list[str]) -> None:
    text = "".join(parts)
    tokens = Source.parse("x.mm", text).tokens
    assert "".join(token.text for token in tokens) == text
    assert all(a.end == b.start for a, b in pairwise(tokens))


DIRECTIVES = ("\r\n", "\f", "\ufeff", "#define Y(a) a\n", "#include <a>\n", "// ", "/* a */", "\n#", "#")


@given(st.lists(st.sampled_from((*PIECES, *DIRECTIVES))))
def test_directives_read_alone_are_those_of_the_lexed_text(parts: list[str]) -> None:
    text = "".join(parts)
    assert read_macros(text) == Source.parse("x.metal", text).macros()
    assert read_includes(text) == Source.parse("x.metal", text).includes()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@given(data=st.data())
def test_a_mutated_file_is_read_or_refused_with_a_code(path: Path, data: st.DataObject) -> None:
    text = path.read_text()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    mutated = text[:start] + data.draw(st.sampled_from(PIECES)) + text[end:]
    source = Source.parse(path.name, mutated)
    assert "".join(token.text for token in source.tokens) == mutated
    try:
        spans = [(f.start, f.end) for f in source.functions()]
    except PorterError as error:
        assert error.code == "PTR030"
    else:
        assert spans == sorted(spans)


CODE = """\
#define MAKE(name) \\
  int name(int x) { return x; }
struct S {
  int a = 1;
  S() {}
  int get() const { return a; }
};
namespace n {
// says what it does
static int plain(int a, int b) {
  auto f = [&](int c) { return c + b; };
  const char* text = "} not code {";
  return f(a) + '}';
}
template <typename T>
T twice(T x) { return x + x; }
} // namespace n
int table[] = {1, 2, 3};
MAKE(made)
"""


def test_functions_have_the_extents_that_clang_gives_them() -> None:
    from clang import cindex

    unit = cindex.Index.create().parse("x.cpp", args=["-std=c++17"], unsaved_files=[("x.cpp", CODE)])
    kinds = {cindex.CursorKind.FUNCTION_DECL, cindex.CursorKind.CXX_METHOD, cindex.CursorKind.FUNCTION_TEMPLATE}
    wanted = {
        (cursor.spelling, cursor.extent.start.offset, cursor.extent.end.offset)
        for cursor in unit.cursor.walk_preorder()
        if cursor.kind in kinds and cursor.is_definition() and cursor.spelling != "made"
    }
    found = {(f.name, f.start, f.end) for f in Source.parse("x.cpp", CODE).functions() if f.name != "S"}
    assert found == wanted


def test_a_macro_line_is_found_and_expands() -> None:
    source = Source.parse("x.cpp", CODE)
    (use,) = source.macro_uses("MAKE")
    assert expand(source.macros()[0], use.arguments) == "int made(int x) { return x; }"


def test_the_comment_above_belongs_to_the_function() -> None:
    plain = next(f for f in Source.parse("x.cpp", CODE).functions() if f.name == "plain")
    assert CODE[plain.leading : plain.start] == "// says what it does\n"
    assert plain.static
