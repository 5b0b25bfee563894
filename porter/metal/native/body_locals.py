"""What the body of a function sets its local variables to, as far as host code that launches kernels asks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from porter.languages.statements import name_tokens
from porter.loops.host_values import Number
from porter.metal.native.host_code import Line, Node, change_text

_LOCAL = re.compile(r"^\s*(?:const\s+)?(?:int64_t|auto|bool)\s+(\w+)\s*=\s*([^;]+);", re.M)
_CALL = re.compile(r"[\w:.]+\([\w:., ]*\)")
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


def use_variables(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes with the sizes that earlier ones set to what a call returns, for that call."""
    calls: dict[str, str] = {}
    for node in nodes:
        for call, name in calls.items():
            node = change_text(node, partial(re.sub, rf"(?<![\w:.]){re.escape(call)}", name))
        yield node
        if isinstance(node, Line) and node.text.startswith("const int64_t ") and _CALL.fullmatch(node.value):
            calls[node.value] = node.declares
