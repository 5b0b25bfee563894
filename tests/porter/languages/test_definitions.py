"""Definitions are parsed once, whatever becomes of them."""

from __future__ import annotations

import pytest

from porter.core.errors import Place, PorterError
from porter.languages import cpp, cpp_parser, definitions
from porter.languages.definitions import (
    Definition,
    drop_dead_branches,
    find_definitions,
    keep_first_branches,
    parse_definition,
)


def test_a_damaged_definition_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(path: str, text: str, templates: tuple[str, ...]) -> cpp.Function:
        parsed.append(text)
        return cpp_parser.parse_function(path, text, templates)

    monkeypatch.setattr(definitions, "parse_function", parse)
    damaged = Definition("Twice.cpp", "int twice(int x) { return x + (; }", Place("Twice.cpp", 7))
    for _ in range(3):
        with pytest.raises(PorterError) as refused:
            parse_definition(damaged)
        assert (refused.value.code, refused.value.place) == ("PTR070", Place("Twice.cpp", 7))
    assert len(parsed) == 1


SOURCE = """\
// twice(int x) { return 2 * x; }
template <typename T, bool exact = false>
inline T twice(T x) {
  return x + x;
}
template <>
inline std::pair<int, std::vector<int>> twice <std::pair<int, std::vector<int>>> (int x) {
  return {};
}
int Holder::twice(int x) {
  return x;
}
template <typename scalar_t>
C10_LAUNCH_BOUNDS_1(256)
__global__ void launched(scalar_t* out, int n) {
  out[0] = twice(n);
}
TORCH_META_FUNC2(pow,  Scalar) (const Tensor& base) {
  twice(1);
}
TORCH_IMPL_FUNC( twice )(const Tensor& x) {}
#define MAKE(name) int name##_made(int x) { return x; }
MAKE(macro)
"""


@pytest.mark.parametrize(
    ("name", "wrapper", "expected"),
    [
        ("twice", "", [(3, "inline T twice(T x)", ("typename T", "bool exact = false"))]),
        ("twice<", "", [(3, "inline T twice(T x)", ("typename T", "bool exact = false")),
                        (7, "inline std::pair<int, std::vector<int>> twice <std::pair<int, std::vector<int>>> (int x)",
                         ("",))]),
        ("launched", "", [(14, "C10_LAUNCH_BOUNDS_1(256)\n__global__ void launched(scalar_t* out, int n)",
                           ("typename scalar_t",))]),
        ("pow, Scalar", "TORCH_META_FUNC2", [(18, "TORCH_META_FUNC2(pow,  Scalar) (const Tensor& base)", ())]),
        ("twice", "TORCH_IMPL_FUNC", [(21, "TORCH_IMPL_FUNC( twice )(const Tensor& x)", ())]),
        ("macro_made", "", [(23, "int macro_made(int x)", ())]),
        ("return", "", []),
        ("", "", []),
    ],
)  # fmt: skip
def test_functions_are_found_by_name(name: str, wrapper: str, expected: list[tuple[int, str, tuple[str, ...]]]) -> None:
    definitions = find_definitions("Twice.cpp", SOURCE, name, wrapper)
    heads = [each.text[: each.text.index("{")].rstrip() for each in definitions]
    lines, templates = [each.place.line for each in definitions], [each.templates for each in definitions]
    assert list(zip(lines, heads, templates, strict=True)) == expected


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("#if A\n1\n#elif B\n2\n#else\n3\n#endif", "1"),
        ("#ifndef A\n1\n#else\n2\n#endif", "2"),
        ("#ifndef A\n1\n#elif B\n2\n#else\n3\n#endif", "2"),
        ("#if 0\n1\n#else\n2\n#endif", "2"),
        ("#if A\n#if 0\n1\n#endif\n2\n#endif", "2"),
        ("#if 0\n1\n#endif\n2\n#endif\n3", "23"),
        ("#if (0)\n1\n#elif B\n2\n#else\n3\n#endif", "2"),
    ],
)
def test_one_branch_of_each_condition_is_kept(text: str, kept: str) -> None:
    assert keep_first_branches(text).replace("\n", "") == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("#if A\n1\n#elif B\n2\n#else\n3\n#endif", "123"),
        ("#if A\n1\n#elif 1\n2\n#else\n3\n#endif", "12"),
        ("#if A\n1\n#elif 0\n2\n#else\n3\n#endif", "13"),
        ("#if (0)\n1\n#elif (A)\n2\n#else\n3\n#endif", "23"),
        ("#if((1)) /* always */\n1\n#elif A\n2\n#else\n3\n#endif", "1"),
        ("#ifdef A\n#if B\n1\n#elif ( 1 )\n2\n#else\n3\n#endif\n#else\n4\n#endif", "124"),
        ("#if A\n1\n#elif 1\n#if B\n2\n#else\n3\n#endif\n#else\n#if 1\n4\n#endif\n#endif", "123"),
        ("#if A == 1\n1\n#elif (0) || B\n2\n#else\n3\n#endif", "123"),
    ],
)
def test_only_branches_that_a_number_leaves_out_are_dropped(text: str, kept: str) -> None:
    directives = ("#if", "#elif", "#else", "#endif")
    lines = (line for line in drop_dead_branches(text).split("\n") if not line.startswith(directives))
    assert "".join(lines) == kept


def test_a_function_of_a_file_with_a_bracket_in_each_branch_is_found() -> None:
    text = "#ifdef A\nint twice(int x) {\n#else\nint twice(long x) {\n#endif\n  return x;\n}\nint once(int x) { return x; }\n"
    assert [each.place.line for each in find_definitions("Twice.cpp", text, "once")] == [8]
    assert find_definitions("Twice.cpp", "int once(int x) { return (x; }\n", "once") == ()
