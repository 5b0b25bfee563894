"""What the text of a function's body says of its variables: what they are set to, refer to, and are returned as."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from porter.languages.assignments import list_values, read_assignments
from porter.languages.brackets import split_at_commas

_RETURN = re.compile(r"\breturn\b([^;]*);\s*\Z")
_LISTED = re.compile(r"(?:std::(?:make_tuple|forward_as_tuple|tie)|std::tuple\s*<.*>|)\s*[({](.*)[)}]", re.S)
# A tensor, that converted, or with a dimension where it has none; and a dimension that may be counted from the end.
_CONVERTED = re.compile(r"(\w+)(?:\.to\([\w.:()]+\)|\.view\(\{?1\}?\))?")
_WRAPPED = re.compile(r"(?:at::|c10::)?maybe_wrap_dim\((\w+), [^;]*\)")
_BORROWED = re.compile(r"(?:at::)?borrow_from_optional_tensor\((\w+)\)")
_ENUMERATOR = re.compile(r"\b(?:\w+::\w+|MPSGraph[A-Z]\w+)\b")


def list_enumerators(text: str) -> frozenset[str]:
    """The enumerators that a file has or names."""
    return frozenset((*_ENUMERATOR.findall(text), *_list_own_enumerators(text)))


def _list_own_enumerators(text: str) -> Iterator[str]:
    """The names of a file's own enumerations without a scope."""
    for listed in re.findall(r"\benum\s+(?!class\b|struct\b)\w*[^{};]*\{([^}]*)\}", text):
        yield from re.findall(r"(?:^|,)\s*(\w+)", listed)


def read_borrowed(body: str) -> dict[str, str]:
    """The references to tensors that optional ones hold, by these."""
    assignments = read_assignments(body)
    owned = {each.name: each.value for each in assignments if each.type.endswith("MaybeOwned<Tensor>")}
    references = {each.name: each.value.removeprefix("*") for each in assignments if each.type == "Tensor&"}
    borrowed = {name: _BORROWED.fullmatch(owned.get(holder, "")) for name, holder in references.items()}
    return {name: match[1] for name, match in borrowed.items() if match}


def read_converted(body: str, names: Iterable[str]) -> dict[str, str]:
    """Those of some variables that stand for another alone, and this one.

    Each is set to it and to that converted or viewed, or once to a dimension that it counts from the end, as the
    functions of 2.14 do before they call the helper that runs the graph (SoftMax.mm).
    """
    converted = {}
    for name in names:
        values = list_values(body, name)
        matches = [_CONVERTED.fullmatch(value) for value in values]
        sources = {match[1] if match else "" for match in matches}
        if len(values) > 1 and len(sources) == 1 and "" not in sources:
            converted[name] = sources.pop()
        elif len(values) == 1 and (wrapped := _WRAPPED.fullmatch(values[0])):
            converted[name] = wrapped[1]
    return converted


def read_returned(body: str) -> list[str]:
    """The variables that a function returns at its end."""
    match = _RETURN.search(body)
    if match is None:
        return []
    value = match[1].strip()
    listed = _LISTED.fullmatch(value)
    parts = split_at_commas(listed[1]) if listed else [value]
    moved = [re.sub(r"^std::move\((\w+)\)$", r"\1", part) for part in parts]
    return moved if all(re.fullmatch(r"\w+", part) for part in moved) else []
