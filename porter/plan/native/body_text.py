"""What the text of a function's body says of its variables: what they are set to, refer to, and are returned as."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from porter.languages.assignments import list_values, read_assignments
from porter.languages.brackets import split_at_commas
from porter.languages.patterns import find_code, match_code

_ENUMERATOR = re.compile(r"\b(?:\w+::\w+|MPSGraph[A-Z]\w+)\b")
# A tensor, that converted, or with a dimension where it has none.
_CONVERTED = ("$name", "$name.to($$type)", "$name.view({1})", "$name.view(1)")
_LISTED = ("make_tuple($$all)", "forward_as_tuple($$all)", "tie($$all)", "tuple<$$types>($$all)", "($$all)", "{$$all}")


def list_enumerators(text: str) -> frozenset[str]:
    """The enumerators that a file has or names."""
    return frozenset((*_ENUMERATOR.findall(text), *_list_own_enumerators(text)))


def _list_own_enumerators(text: str) -> Iterator[str]:
    """The names of a file's own enumerations without a scope."""
    for listed in find_code(text, "enum $$head {$$names}"):
        if not listed["head"].startswith(("class ", "struct ")):
            yield from (each.partition("=")[0].strip() for each in split_at_commas(listed["names"]))


def read_borrowed(body: str) -> dict[str, str]:
    """The references to tensors that optional ones hold, by these."""
    assignments = read_assignments(body)
    owned = {each.name: each.value for each in assignments if each.type.endswith("MaybeOwned<Tensor>")}
    references = {each.name: each.value.removeprefix("*") for each in assignments if each.type == "Tensor&"}
    borrowed = {
        name: match_code(owned.get(holder, ""), "borrow_from_optional_tensor($name)")
        for name, holder in references.items()
    }
    return {name: match["name"] for name, match in borrowed.items() if match}


def read_converted(body: str, names: Iterable[str]) -> dict[str, str]:
    """Those of some variables that stand for another alone, and this one.

    Each is set to it and to that converted or viewed, or once to a dimension that it counts from the end, as the
    functions of 2.14 do before they call the helper that runs the graph (SoftMax.mm).
    """
    converted = {}
    for name in names:
        values = list_values(body, name)
        matches = [match_code(value, *_CONVERTED) for value in values]
        sources = {match["name"] if match else "" for match in matches}
        if len(values) > 1 and len(sources) == 1 and "" not in sources:
            converted[name] = sources.pop()
        elif len(values) == 1 and (wrapped := match_code(values[0], "maybe_wrap_dim($dim, $$rank)")):
            converted[name] = wrapped["dim"]
    return converted


def read_returned(body: str) -> list[str]:
    """The variables that a function returns at its end."""
    end, returned = len(body.rstrip()), list(find_code(body, "return $$value;"))
    if not returned or returned[-1].end != end:
        return []
    value = returned[-1]["value"]
    listed = match_code(value, *_LISTED)
    parts = split_at_commas(listed["all"]) if listed else [value]
    moved = [match_code(part, "$name", "move($name)") for part in parts]
    return [each["name"] for each in moved if each] if all(moved) else []
