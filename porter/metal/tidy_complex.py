"""Writes a translated body of complex elements as a person would: cast once, computed in float2 where it needs it."""

from __future__ import annotations

import re
from collections.abc import Collection

from porter.languages.brackets import ALL, ROUND, find_closing_end, has_outside, is_balanced
from porter.languages.identifiers import contains_identifier, rename_identifiers

_WIDE = re.compile(r"(?<![\w<:])float2\(")


def tidy_complex(lines: list[str], params: Collection[str], result: str) -> list[str]:
    """Returns the lines with each element cast at most once."""
    text = "\n".join(lines)
    if result == "T" and re.search(r"(?<![\w<:])float2\((?:T\(|-)", text) and not contains_identifier(text, "A"):
        return _compute_wide(text, params)
    for name in params:
        cast = f"float2({name})"
        if text.count(cast) > 1:
            local = "z" if len(params) == 1 and not contains_identifier(text, "z") else f"{name}_"
            text = f"const float2 {local} = {cast};\n{text.replace(cast, local)}"
    return text.split("\n")


def _compute_wide(text: str, params: Collection[str]) -> list[str]:
    """Returns the statements computed in float2, and their result cast back."""
    text = rename_identifiers(text, {"T": "float2"})
    for name in params:
        text = rename_identifiers(text, {name: f"{name}_"})
    lines = [_return_element(_drop_wide(line)) for line in text.split("\n")]
    return [*(f"const float2 {name}_ = float2({name});" for name in params), *lines]


def _drop_wide(line: str) -> str:
    """Removes conversions to float2 of what is one."""
    for match in _WIDE.finditer(line):
        end = find_closing_end(line, match.end() - 1, ROUND)
        inner = line[match.end() : end - 1]
        if has_outside(inner, ",") or re.fullmatch(r"-?[\d.]+f?", inner):
            continue
        return _drop_wide(line[: match.start()] + f"({inner})" + line[end:])
    return line


def _return_element(line: str) -> str:
    match = re.fullmatch(r"(\s*)return (.*);", line)
    if match is None:
        return line
    inner = match[2][1:-1] if match[2].startswith("(") and is_balanced(match[2][1:-1], ALL) else match[2]
    return f"{match[1]}return T({inner});"
