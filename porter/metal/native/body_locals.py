"""What the body of a function sets its local variables to, as far as host code that launches kernels asks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from porter.languages.statements import name_tokens
from porter.loops.host_values import Number

_LOCAL = re.compile(r"^\s*(?:const\s+)?(?:int64_t|auto|bool)\s+(\w+)\s*=\s*([^;]+);", re.M)
_SET_TO_CALL = re.compile(r"const int64_t (\w+) = ([\w:.]+\([\w:., ]*\));")
_CONTIGUOUS = re.compile(r"=\s*(?:at::(?:empty|zeros)|create_reduction_result)\(|CONTIGUOUS|MemoryFormat::Contiguous")


def is_contiguous(assignment: str) -> bool:
    """Whether a tensor is allocated without strides of another's."""
    formats = re.findall(r"\b(?:\w*[fF]ormat\w*(?:::\w+)*)(?=\s*[,)])", assignment)
    others = [each for each in formats if not each.endswith("::Contiguous")]
    return _CONTIGUOUS.search(assignment) is not None and not others


def list_locals(body: str) -> Iterator[tuple[str, str]]:
    """The variables of a body and what they are set to, without those that a resized tensor makes wrong."""
    for match in _LOCAL.finditer(body):
        resized = re.findall(r"\b(\w+)\.resize_\w*\(|\bresize_\w+\(\s*(\w+)\b", body[match.end() :])
        used = {token.text for token in name_tokens(match[2])}
        if used.isdisjoint(name for each in resized for name in each):
            yield match[1], match[2]


def find_locals(body: str, value: str) -> Iterator[tuple[str, Number | None]]:
    """The variables of a body that have a value, and what they have instead where that is left out."""
    number = r"(?:Scalar\()?(-?[\d.]+)(?:\)\.to<double>\(\))?"
    given = re.compile(rf"(?:[\w.]+\.has_value\(\) \? )?{re.escape(value)}(?: : {number})?")
    for name, known in list_locals(body):
        found = given.fullmatch(" ".join(known.split()))
        if found:
            yield name, float(found[1]) if found[1] else None


def use_variables(lines: Iterable[str]) -> list[str]:
    """Statements with the variables that earlier ones, outside of blocks, set to what a call returns, for that call."""
    made, depth = list[str](), 0
    known: dict[str, str] = {}
    for line in lines:
        for call, name in known.items():
            line = re.sub(rf"(?<![\w:.]){re.escape(call)}", name, line)
        made.append(line)
        depth += line.count("{") - line.count("}")
        if depth == 0 and (found := _SET_TO_CALL.fullmatch(line)):
            known[found[2]] = found[1]
    return made
