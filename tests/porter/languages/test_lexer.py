"""Texts without their comments."""

from porter.languages.lexer import strip_comments


def test_comments_go_and_what_looks_like_one_in_a_string_stays() -> None:
    text = 'a("// no"); // yes\n#define M(x) /* in a macro */ x\nb /* over\nlines */ c\n'
    assert strip_comments(text) == 'a("// no"); \n#define M(x)  x\nb  c\n'
