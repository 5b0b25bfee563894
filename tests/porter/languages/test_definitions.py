"""Definitions are parsed once, whatever becomes of them."""

from __future__ import annotations

import pytest

from porter.core.errors import Place, PorterError
from porter.languages import cpp, cpp_parser, definitions
from porter.languages.definitions import Definition, parse_definition


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
