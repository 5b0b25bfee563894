"""Memory that a graph wrote in the place of a result that is not contiguous: kernels write the result itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from porter.languages.assignments import list_values, read_assignments
from porter.languages.inlining import rename
from porter.languages.statements import read_statements
from porter.plan.native.target import Target

_CHOSEN = re.compile(r"Tensor (\w+) = [^?;]*\?(?P<one>(?:[^:;]|::)*):(?P<other>(?:[^:;]|::)*);")
_NEEDED = re.compile(r"if \((?:mps::)?needsGather\((\w+)\)\) \{\s*(\w+) = at::empty_like\(\1\b[^;]*\);\s*\}")


def without_scratch(target: Target) -> Target:
    """The target with the result where its graph wrote other memory, that was copied to it.

    That is a tensor which is made only for a result whose elements have gaps, and is copied there: one that is declared
    empty, or the result itself for other results.
    """
    body = target.body
    for scratch in [each.name for each in read_assignments(body) if each.type == "Tensor" and not each.value]:
        body = _replace_scratch(body, scratch)
    results = {variable for name, variable in target.variables.items() if re.fullmatch(r"result\d+", name)}
    for chosen in _CHOSEN.finditer(target.body):
        body = _replace_chosen(body, chosen, results)
    return replace(target, body=body)


def _replace_chosen(body: str, chosen: re.Match[str], results: set[str]) -> str:
    """A body with a result where the graph wrote that or memory like it."""
    scratch, values = chosen[1], {chosen["one"].strip(), chosen["other"].strip()}
    for result in values & results:
        [other] = values - {result} or {""}
        copied = rf"if \([^;]*\) \{{\s*{result}\.copy_\({scratch}\);\s*\}}"
        spans = [*_find_statements(body, (re.escape(chosen[0]), copied))]
        is_set = list_values(body, scratch)
        if _is_like(other, result) and len(spans) == 2 and len(is_set) == 1:
            for start, end in reversed(spans):
                body = body[:start].rstrip(" ") + body[end:].removeprefix("\n")
            return rename(body, {scratch: result})
    return body


def _is_like(value: str, result: str) -> bool:
    """Whether a value is memory of a result's shape."""
    return re.fullmatch(rf"at::empty_like\({result}\b[^;]*\)|{result}\.contiguous\(\)", value) is not None


def _replace_scratch(body: str, scratch: str) -> str:
    found = [each for each in _NEEDED.finditer(body) if each[2] == scratch]
    is_set = list_values(body, scratch)
    copied = (
        rf"if \({scratch}\.(?:has_storage|defined)\(\)\) \{{\s*{found[0][1]}\.copy_\({scratch}\);\s*\}}"
        if found
        else ""
    )
    if len(found) != 1 or len(is_set) != 1 or not re.search(copied, body):
        return body
    result = found[0][1]
    for start, end in reversed([*_find_statements(body, (rf"Tensor {scratch};", re.escape(found[0][0]), copied))]):
        body = body[:start].rstrip(" ") + body[end:].removeprefix("\n")
    return re.sub(rf"\b{scratch}\.(?:has_storage|defined)\(\) \? {scratch} : {result}\b", result, body)


def _find_statements(body: str, patterns: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """The spans of the statements that are one of some texts."""
    for each in (inner for outer in read_statements(body) for inner in outer.walk()):
        if any(re.fullmatch(pattern, body[each.start : each.end]) for pattern in patterns):
            yield each.start, each.end
