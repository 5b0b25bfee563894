"""What the text of a function's body says of its variables: what they are set to, refer to, and are returned as."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from porter.languages.brackets import split_at_commas

_RETURN = re.compile(r"\breturn\b([^;]*);\s*\Z")
_LISTED = re.compile(r"(?:std::(?:make_tuple|forward_as_tuple|tie)|std::tuple\s*<.*>|)\s*[({](.*)[)}]", re.S)
_CONVERTED = re.compile(r"(\w+)(?:\.to\([\w.:()]+\))?")
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
    owned = dict(re.findall(r"\bMaybeOwned<Tensor> (\w+)\s*=\s*(?:at::)?borrow_from_optional_tensor\((\w+)\);", body))
    references = re.findall(r"\bconst Tensor& (\w+)\s*=\s*\*(\w+);", body)
    return {name: owned[holder] for name, holder in references if holder in owned}


def read_converted(body: str, names: Iterable[str]) -> dict[str, str]:
    """Those of some variables that are set to another alone, or to that converted, and this one."""
    found = {}
    for name in (each for each in names if re.fullmatch(r"\w+", each)):
        values = re.findall(rf"\b{name} = ([^;]*);", body)
        sources = {match[1] if (match := _CONVERTED.fullmatch(each.strip())) else "" for each in values}
        if len(values) > 1 and len(sources) == 1 and "" not in sources:
            found[name] = sources.pop()
    return found


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
