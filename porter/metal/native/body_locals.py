"""What the body of a function sets its local variables to, as far as host code that launches kernels asks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from porter.languages.assignments import read_assignments
from porter.languages.brackets import find_closing_end
from porter.languages.patterns import find_code
from porter.languages.statements import name_tokens
from porter.loops.host_values import Number
from porter.metal.native.host_code import Line, Node, change_text

_TYPES = ("int64_t", "auto", "bool")
_TENSORS = ("auto", "Tensor")
_OF_FIRST = ("resize_output", "resize_outputs", "resize_reduction_result", "resize_tensor")
_RESIZED = ("$name.resize_(", "$name.resize_as_(", *(f"{each}($name" for each in _OF_FIRST))
_CONTIGUOUS = re.compile(r"\A(?:at::(?:empty|zeros)|create_reduction_result)\(|CONTIGUOUS|MemoryFormat::Contiguous")


def is_allocated(body: str, tensor: str) -> bool:
    """Whether a body declares a tensor, and whatever it is set to is allocated without strides of another's."""
    assignments = [each for each in read_assignments(body) if each.name == tensor]
    values = [each.value for each in assignments if each.value]
    return bool(values) and any(each.type in _TENSORS for each in assignments) and all(map(_is_contiguous, values))


def _is_contiguous(value: str) -> bool:
    formats = re.findall(r"\b(?:\w*[fF]ormat\w*(?:::\w+)*)(?=\s*[,)])", value)
    others = [each for each in formats if not each.endswith("::Contiguous")]
    return _CONTIGUOUS.search(value) is not None and not others


def list_locals(body: str) -> Iterator[tuple[str, str]]:
    """The variables of a body and what they are set to, without those that a resized tensor makes wrong."""
    for local in (each for each in read_assignments(body) if each.value and each.type in _TYPES):
        resized = {place["name"] for place in find_code(body[local.statement.end :], *_RESIZED)}
        if resized.isdisjoint(token.text for token in name_tokens(local.value)):
            yield local.name, local.value


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
        if isinstance(node, Line) and node.text.startswith("const int64_t ") and _is_call(node.value):
            calls[node.value] = node.declares


def _is_call(value: str) -> bool:
    """Whether a value is what one call returns."""
    opener = value.find("(")
    return opener > 0 and not set(value[:opener]) & set(" ?-") and find_closing_end(value, opener) == len(value)
