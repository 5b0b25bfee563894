"""What the variables of a body are declared as and set to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.languages.liveness import list_values, read_assignments


def read(body: str) -> list[tuple[str, str, str]]:
    return [(each.name, each.type, each.value) for each in read_assignments(body)]


@pytest.mark.parametrize(
    ("body", "assignments"),
    [
        ("const auto a = b.size(1);", [("a", "auto", "b.size(1)")]),
        ("static const Tensor & a = *b;", [("a", "Tensor&", "*b")]),
        ("std::vector<int64_t> a = {1, 2};", [("a", "std::vector<int64_t>", "{1, 2}")]),
        ("a = b ? c == d : e;", [("a", "", "b ? c == d : e")]),
        ("Tensor a, b;", [("a", "Tensor", ""), ("b", "Tensor", "")]),
        ("IntArrayRef a(b, 3);", [("a", "IntArrayRef", "")]),
        ("if (flag) {\n  a = 1;\n} else\n  a = 2;", [("a", "", "1"), ("a", "", "2")]),
        ("auto a = [&] { auto b = 1; return b; }();", [("a", "auto", "[&] { auto b = 1; return b; }()")]),
        ('TORCH_CHECK(a == b, "differ") auto c = 2;', [("c", "auto", "2")]),  # mse_loss_backward_out_mps
    ],
)
def test_assignments(body: str, assignments: list[tuple[str, str, str]]) -> None:
    assert read(body) == assignments


@pytest.mark.parametrize(
    "body",
    ["a.b = 1;", "a->b = 1;", "a[0] = 1;", "*a = 1;", "a += 1;", "call(a = 1);", "// a = 1;", "auto [a, b] = c;"],
)
def test_nothing_else_sets_a_variable(body: str) -> None:
    assert not [each for each in read_assignments(body) if each.value]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), max_size=6))
def test_all_values_in_order(pairs: list[tuple[str, int]]) -> None:
    body = "\n".join(f"{name} = {value};" for name, value in pairs)
    assert all(list_values(body, name) == [str(v) for n, v in pairs if n == name] for name in "abc")
