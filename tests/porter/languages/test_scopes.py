"""What statements of a body may name, by where they stand."""

from __future__ import annotations

import pytest

from porter.languages.liveness import bring_declarations

BODY = """
auto rows = input.size(0);
if (auto width = input.size(1); width > 0) {
  auto inner = input.view({rows});
  HERE_IN_BLOCK;
} else {
  HERE_IN_ELSE;
}
for (const auto i : c10::irange(rows)) {
  HERE_IN_LOOP;
}
HERE_AFTER_BLOCKS;
auto flat = input.view({1});
auto two = flat.mul(count);
auto count = at::ones({1});
Tensor late;
late = flat;
auto changed = 1;
changed += 2;
auto twice = 1;
{
  auto twice = 2;
}
"""


def at(mark: str) -> int:
    return BODY.index(mark)


@pytest.mark.parametrize(
    ("mark", "visible", "lacking"),
    [
        ("HERE_IN_BLOCK", ("rows", "width", "inner"), ()),
        ("HERE_IN_ELSE", ("rows", "width"), ("inner",)),
        ("HERE_IN_LOOP", ("rows", "i"), ("inner",)),
        ("HERE_AFTER_BLOCKS", ("rows",), ("inner",)),
    ],
)
def test_blocks_that_have_ended_hide_what_they_declare(
    mark: str, visible: tuple[str, ...], lacking: tuple[str, ...]
) -> None:
    assert bring_declarations(BODY, at(mark), visible) == []
    brought = ["auto inner = input.view({rows});"]
    assert bring_declarations(BODY, at(mark), lacking) == (brought if lacking else [])


def test_parameters_and_names_of_the_file_lack_nothing() -> None:
    assert bring_declarations(BODY, 0, ("input", "self", "kSomething")) == []


def test_a_declaration_comes_with_what_it_needs() -> None:
    lines = ["auto count = at::ones({1});", "auto flat = input.view({1});", "auto two = flat.mul(count);"]
    assert bring_declarations(BODY, at("HERE_AFTER_BLOCKS"), ("two", "flat")) == [lines[1], lines[0], lines[2]]


@pytest.mark.parametrize("name", ["late", "changed", "twice"])
def test_a_local_without_one_value_is_not_declared_again(name: str) -> None:
    assert bring_declarations(BODY, at("HERE_AFTER_BLOCKS"), (name,)) is None
