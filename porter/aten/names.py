"""Names of native functions and of the operators they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DEFAULT = re.compile(r"^(?P<type>.+?)\s+(?P<name>\w+)(?:=(?P<default>.*))?$", re.S)

# torchgen.model.AUGMENTED_ASSIGNMENT_NAMES
_AUGMENTED = re.compile(r"__i(add|sub|mul|div|mod|pow|lshift|rshift|and|xor|or)__")


def parse_base_name(name: str) -> str:
    """Returns the operator's base name: `atan2` for `atan2_` and `atan2.out`, `__and__` for `__iand__.Tensor`."""
    root = name.split(".", 1)[0]
    augmented = root.startswith("__i") and _AUGMENTED.fullmatch(root)
    if augmented:
        return f"__{augmented[1]}__"
    return root[:-1] if root.endswith("_") and not root.endswith("__") else root


def split_arguments(schema: str) -> Iterator[tuple[str, str, str | None]]:
    """Yields the type, name and default of each argument of a schema, leaving out the `*` before keyword-only ones."""
    inside = schema[schema.index("(") + 1 : schema.rindex(" -> ")].rstrip()[:-1]
    depth, start = 0, 0
    for at, character in enumerate(inside + ","):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            match = _DEFAULT.match(inside[start:at].strip())
            if match:
                yield match["type"], match["name"], match["default"]
            start = at + 1
