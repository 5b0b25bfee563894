"""Rows read without a YAML parser: what is read is what the parser says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porter.aten import declarations
from porter.aten.declarations import read_plain_row
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS

TEXT = Checkout(EMBEDDED_FORK, "test").read(NATIVE_FUNCTIONS)
STARTS = [at for at in range(len(TEXT)) if TEXT.startswith("- func", at) and TEXT[at - 1] == "\n"]
ROWS = tuple(TEXT[start:end] for start, end in pairwise((*STARTS, len(TEXT))))
PIECES = st.sampled_from(
    (
        ": ",
        " #",
        "#",
        "'",
        '"',
        "[",
        "]",
        "{",
        "\t",
        "\n",
        " ",
        "  ",
        "- ",
        "|",
        "&",
        "*",
        ",",
        "CPU: made",
        "\u00e9",
        "",
    )
)


def compare(row: str) -> bool:
    """Whether a row is read without the parser; it says the same then."""
    plain = read_plain_row(row)
    if plain is None:
        return False
    try:
        expected = declarations.parse_yaml(row)
    except PorterError as error:
        assert error.code == "PTR011", row  # the schema, which is looked at in both cases
        return False
    assert declarations.parse_declarations(row) == expected, row
    return True


def test_nearly_all_rows_are_plain() -> None:
    assert sum(map(compare, ROWS)) > 0.9 * len(ROWS)


@pytest.mark.parametrize(
    "line",
    [
        "    CPU: made_: ",
        "    CPU: made:",
        "  tags: a: b",
        "  tags: a # b: c",
        "  tags: a#b:c",
        "  tags: [,a]",
        "  tags: [a, b]",
    ],
)
def test_a_colon_at_the_end_of_a_name_is_read_as_the_parser_reads_it(line: str) -> None:
    compare(f"- func: made(Tensor self) -> Tensor\n  dispatch:\n    CUDA: made\n{line}\n")


@settings(max_examples=600)
@given(st.sampled_from(ROWS), st.data())
def test_a_damaged_row_is_read_as_the_parser_reads_it(row: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(row)))
        end = min(len(row), start + data.draw(st.integers(0, 3)))
        row = row[:start] + data.draw(PIECES) + row[end:]
    compare(row)
